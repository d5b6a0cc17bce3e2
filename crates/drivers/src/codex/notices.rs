//! What the app server tells beside the conversation: errors, limits, warnings. Each becomes one sentence.

use std::hash::{DefaultHasher, Hash, Hasher};

use consort_model::{NoticeLevel, Signal};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::wire::{lenient, one_line, read};
use super::{Codex, Place, notice, warn};
use crate::Output;

/// From which share of a limit on a person is told.
const NEAR_LIMIT: u64 = 90;

/// How many warnings are remembered as told.
const TOLD_WARNINGS: usize = 32;

/// What went wrong in a turn.
#[derive(Deserialize, Default, Debug)]
#[serde(rename_all = "camelCase", default)]
pub struct Failure {
    #[serde(deserialize_with = "lenient")]
    message: String,
    codex_error_info: Value,
    #[serde(deserialize_with = "lenient")]
    additional_details: Option<String>,
}

impl Failure {
    /// One sentence that says what failed and, where that is known, what to do.
    pub fn sentence(&self) -> String {
        let said = sentence_of("Codex failed", &self.words());
        match self.hint() {
            Some(hint) => format!("{said} {hint}"),
            None => said,
        }
    }

    /// What it says, with its details.
    pub fn details(&self) -> String {
        let words = self.words();
        match self.additional_details.as_deref().map(str::trim) {
            Some(details) if !details.is_empty() && !words.contains(details) => format!("{words}: {details}"),
            _ => words,
        }
    }

    /// The message; where it is the raw answer of an API, the message within.
    fn words(&self) -> String {
        let within = serde_json::from_str::<Value>(&self.message).ok();
        let within = within.as_ref().and_then(|body| {
            let error = body.get("error").unwrap_or(body);
            error.get("message").and_then(Value::as_str).or_else(|| error.as_str())
        });
        within.unwrap_or(&self.message).to_owned()
    }

    /// The kind of error and the HTTP status, where there is one.
    fn kind(&self) -> (&str, Option<u64>) {
        match &self.codex_error_info {
            Value::String(kind) => (kind, None),
            Value::Object(fields) => match fields.iter().next() {
                Some((kind, more)) => (kind, more.get("httpStatusCode").and_then(Value::as_u64)),
                None => ("", None),
            },
            _ => ("", None),
        }
    }

    fn hint(&self) -> Option<&'static str> {
        match self.kind() {
            ("unauthorized", _) | (_, Some(401 | 403)) => {
                Some("Check the key, or run `codex login` with this profile's environment.")
            }
            ("contextWindowExceeded", _) => Some("Send `/compact`, or go on in a new agent."),
            ("usageLimitExceeded" | "sessionBudgetExceeded", _) => {
                Some("Wait until the limit resets, or use another profile.")
            }
            ("modelNotFound", _) => Some("Choose another model."),
            ("rateLimitExceeded" | "serverOverloaded", _) | (_, Some(429)) => Some("Try again later."),
            _ => None,
        }
    }
}

/// A text's stand-in where only sameness matters, so that the text need not be held.
pub fn hash_of(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// `what: words.` on one line.
pub fn sentence_of(what: &str, words: &str) -> String {
    match one_line(words).trim_end_matches('.') {
        "" => format!("{what}."),
        words => format!("{what}: {words}."),
    }
}

/// Which shares of which limits were told.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Limits {
    told: [u64; 2],
    reached: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct LimitParams {
    #[serde(deserialize_with = "lenient")]
    rate_limits: Snapshot,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Snapshot {
    #[serde(deserialize_with = "lenient")]
    primary: Option<Window>,
    #[serde(deserialize_with = "lenient")]
    secondary: Option<Window>,
    #[serde(deserialize_with = "lenient")]
    rate_limit_reached_type: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Window {
    #[serde(deserialize_with = "lenient")]
    used_percent: f64,
    #[serde(deserialize_with = "lenient")]
    window_duration_mins: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    resets_at: Option<u64>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct ErrorParams {
    #[serde(deserialize_with = "lenient")]
    thread_id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    error: Failure,
    #[serde(deserialize_with = "lenient")]
    will_retry: bool,
}

/// The fields of everything that warns.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Warning {
    #[serde(deserialize_with = "lenient")]
    thread_id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    message: String,
    #[serde(deserialize_with = "lenient")]
    summary: String,
    #[serde(deserialize_with = "lenient")]
    details: Option<String>,
}

impl Warning {
    fn text(&self) -> String {
        let words = if self.summary.is_empty() { &self.message } else { &self.summary };
        match self.details.as_deref().map(str::trim) {
            Some(details) if !details.is_empty() => {
                one_line(&format!("{}: {details}", words.trim_end_matches('.')))
            }
            _ => one_line(words),
        }
    }
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct ServerStatus {
    #[serde(deserialize_with = "lenient")]
    name: String,
    #[serde(deserialize_with = "lenient")]
    status: String,
    #[serde(deserialize_with = "lenient")]
    error: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Rerouted {
    #[serde(deserialize_with = "lenient")]
    from_model: String,
    #[serde(deserialize_with = "lenient")]
    to_model: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct HookParams {
    #[serde(deserialize_with = "lenient")]
    run: HookRun,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct HookRun {
    #[serde(deserialize_with = "lenient")]
    event_name: String,
    #[serde(deserialize_with = "lenient")]
    status: String,
    #[serde(deserialize_with = "lenient")]
    status_message: Option<String>,
}

impl Codex {
    pub(super) fn error_notified(&mut self, params: &str, out: &mut Output) {
        let ErrorParams { thread_id, error, will_retry } = read(params);
        let Some(place) = self.place(thread_id.as_deref()) else { return };
        self.error_told(&error, will_retry, &place, out);
    }

    pub(super) fn warned(&mut self, params: &str, out: &mut Output) {
        let warning: Warning = read(params);
        let text = warning.text();
        // A sub-agent runs under the same configuration; what is wrong with it was told by the agent itself.
        if text.is_empty() || !matches!(self.place(warning.thread_id.as_deref()), Some(Place::Main)) {
            return;
        }
        // It comes at every start where no sandbox is installed beside the one that Codex brings.
        let harmless = text.contains("bundled bubblewrap");
        self.tell_once(if harmless { NoticeLevel::Info } else { NoticeLevel::Warning }, text, out);
    }

    /// Tells what is wrong with the surroundings, which Codex repeats with every turn, once.
    fn tell_once(&mut self, level: NoticeLevel, text: String, out: &mut Output) {
        let hash = hash_of(&text);
        if self.told_warnings.contains(&hash) {
            return;
        }
        self.told_warnings.push(hash);
        let excess = self.told_warnings.len().saturating_sub(TOLD_WARNINGS);
        self.told_warnings.drain(..excess);
        notice(out, level, text);
    }

    /// Warns of trouble within a turn, unless that was the last warning too.
    pub(super) fn warn_anew(&mut self, text: String, out: &mut Output) {
        if self.last_warning.as_ref() != Some(&text) {
            self.last_warning = Some(text.clone());
            warn(out, text);
        }
    }

    pub(super) fn informed(&mut self, params: &str, out: &mut Output) {
        let text = read::<Warning>(params).text();
        if !text.is_empty() {
            notice(out, NoticeLevel::Info, text);
        }
    }

    pub(super) fn server_status(&mut self, params: &str, out: &mut Output) {
        let ServerStatus { name, status, error } = read(params);
        if status == "failed" {
            let what = format!("Codex cannot reach the MCP server {}", one_line(&name));
            self.tell_once(NoticeLevel::Warning, sentence_of(&what, &error.unwrap_or_default()), out);
        }
    }

    pub(super) fn rerouted(&mut self, params: &str, out: &mut Output) {
        let Rerouted { from_model, to_model } = read(params);
        let (from, to) = (one_line(&from_model), one_line(&to_model));
        warn(out, format!("Codex uses the model {to} in place of {from}."));
    }

    pub(super) fn hook_completed(&mut self, params: &str, out: &mut Output) {
        let HookRun { event_name, status, status_message } = read::<HookParams>(params).run;
        if matches!(status.as_str(), "failed" | "blocked" | "stopped") {
            let what = format!("A {} hook {}", one_line(&event_name), one_line(&status));
            warn(out, sentence_of(&what, &status_message.unwrap_or_default()));
        }
    }

    /// Limits are told with every answer of the model; a person is told when one comes near and when it is reached.
    pub(super) fn limits_changed(&mut self, params: &str, emitted_at: Option<u64>, out: &mut Output) {
        let Snapshot { primary, secondary, rate_limit_reached_type } =
            read::<LimitParams>(params).rate_limits;
        for (index, window) in [primary, secondary].into_iter().enumerate() {
            let Some(window) = window else { continue };
            let used =
                if window.used_percent.is_finite() { window.used_percent.clamp(0.0, 100.0) } else { 0.0 };
            let used = used.round() as u64;
            let step = match used {
                100.. => 100,
                NEAR_LIMIT.. => NEAR_LIMIT,
                _ => 0,
            };
            if step > self.limits.told[index] {
                let span = window.window_duration_mins.map(span).unwrap_or_default();
                let until = window.resets_at.zip(emitted_at);
                let until = until.map(|(at, now)| at.saturating_sub(now / 1000).div_ceil(60));
                let until =
                    until.map(|minutes| format!("; it resets in {}", length(minutes))).unwrap_or_default();
                warn(out, format!("Codex has used {used} % of its {span}limit{until}."));
            }
            self.limits.told[index] = step;
        }
        if rate_limit_reached_type.is_some() && rate_limit_reached_type != self.limits.reached {
            let which = rate_limit_reached_type.as_deref().unwrap_or_default().replace('_', " ");
            warn(out, format!("Codex is at a limit of its account: {}.", one_line(&which)));
        }
        self.limits.reached = rate_limit_reached_type.map(|which| one_line(&which));
    }

    pub(super) fn renamed(&mut self, params: &str, out: &mut Output) {
        #[derive(Deserialize, Default)]
        #[serde(rename_all = "camelCase", default)]
        struct Named {
            #[serde(deserialize_with = "lenient")]
            thread_id: Option<String>,
            #[serde(deserialize_with = "lenient")]
            thread_name: Option<String>,
        }
        let Named { thread_id, thread_name } = read(params);
        if let (Some(Place::Main), Some(name)) = (self.place(thread_id.as_deref()), thread_name) {
            out.signals.push(Signal::Title(one_line(&name)));
        }
    }
}

/// The name of a limit by its length.
fn span(minutes: u64) -> String {
    match minutes {
        10080 => "weekly ".to_owned(),
        minutes if minutes >= 60 && minutes % 60 == 0 => format!("{}-hour ", minutes / 60),
        minutes => format!("{minutes}-minute "),
    }
}

fn length(minutes: u64) -> String {
    match minutes {
        0..120 => format!("{minutes} min"),
        120..2880 => format!("{} h", minutes / 60),
        _ => format!("{} days", minutes / 1440),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_failure_is_one_sentence_and_says_what_to_do_where_that_is_known() {
        let table = [
            (json!({"message": "broken\nagain."}), "Codex failed: broken again."),
            (json!({"message": ""}), "Codex failed."),
            (json!({"message": "{\"error\":{\"message\":\"bad key\"}}"}), "Codex failed: bad key."),
            (
                json!({"message": "no", "codexErrorInfo": {"httpConnectionFailed": {"httpStatusCode": 401}}}),
                "Codex failed: no. Check the key, or run `codex login` with this profile's environment.",
            ),
            (
                json!({"message": "full", "codexErrorInfo": "contextWindowExceeded"}),
                "Codex failed: full. Send `/compact`, or go on in a new agent.",
            ),
            (json!({"message": "odd", "codexErrorInfo": [1]}), "Codex failed: odd."),
        ];
        for (failure, expected) in table {
            assert_eq!(serde_json::from_value::<Failure>(failure).unwrap().sentence(), expected);
        }
    }
}
