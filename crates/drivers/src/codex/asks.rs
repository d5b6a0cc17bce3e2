//! Asks: approvals, elicitations and questions that wait for a person.
//!
//! Owns which are open and turns a person's answer into the app server's. An ask goes by the id of the request, as it
//! stood in the JSON, so that `1` and `"1"` stay apart. Every answer that is offered carries the very reply that it
//! stands for, so that choosing is only sending.

use consort_model::ToolStatus;
use consort_model::{
    Answer, AnswerOption, AskBody, OptionKind, Question, Signal, ToolCall, ToolCallId, ToolKind,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::items::{command_input, empty};
use super::wire::{self, code, lenient, one_line, read, title_of};
use super::{Codex, Incoming, Place, shell, warn};
use crate::Output;

/// The open asks, oldest first.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Asks(Vec<(String, Open)>);

/// What an open ask needs for its answer.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum Open {
    Approval { place: Place, offers: Vec<Offer>, cancel: Value },
    Form { schema: Value },
    Page,
    Questions { ids: Vec<String> },
}

/// An answer that is offered, and the reply that it stands for.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Offer {
    option: AnswerOption,
    reply: Value,
}

impl Asks {
    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }

    fn holds(&self, key: &str) -> bool {
        self.0.iter().any(|(open, _)| open == key)
    }

    fn take(&mut self, key: &str) -> Option<Open> {
        let index = self.0.iter().position(|(open, _)| open == key)?;
        Some(self.0.remove(index).1)
    }
}

fn offer(id: &str, name: impl Into<String>, kind: OptionKind, reply: Value) -> Offer {
    Offer { option: AnswerOption { id: id.to_owned(), name: name.into(), kind }, reply }
}

fn decision(decision: impl Into<Value>) -> Value {
    json!({"decision": decision.into()})
}

/// What every approval of a command or a change can be answered with, whether it is listed or not.
fn plain_offers() -> Vec<Offer> {
    vec![
        offer("accept", "Allow", OptionKind::AllowOnce, decision("accept")),
        offer(
            "acceptForSession",
            "Allow for this session",
            OptionKind::AllowAlways,
            decision("acceptForSession"),
        ),
        offer("decline", "Deny", OptionKind::RejectOnce, decision("decline")),
        offer("cancel", "Deny and stop", OptionKind::RejectOnce, decision("cancel")),
    ]
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct CommandApproval {
    #[serde(deserialize_with = "lenient")]
    thread_id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    item_id: String,
    #[serde(deserialize_with = "lenient")]
    reason: Option<String>,
    #[serde(deserialize_with = "lenient")]
    command: Option<String>,
    #[serde(deserialize_with = "lenient")]
    cwd: Option<String>,
    #[serde(deserialize_with = "lenient")]
    network_approval_context: Option<Network>,
    additional_permissions: Value,
    #[serde(deserialize_with = "lenient")]
    available_decisions: Vec<Value>,
    #[serde(deserialize_with = "lenient")]
    proposed_execpolicy_amendment: Option<Vec<String>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Network {
    #[serde(deserialize_with = "lenient")]
    host: String,
    #[serde(deserialize_with = "lenient")]
    protocol: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct ChangeApproval {
    #[serde(deserialize_with = "lenient")]
    thread_id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    item_id: String,
    #[serde(deserialize_with = "lenient")]
    reason: Option<String>,
    #[serde(deserialize_with = "lenient")]
    grant_root: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct PermissionsApproval {
    #[serde(deserialize_with = "lenient")]
    thread_id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    item_id: String,
    #[serde(deserialize_with = "lenient")]
    reason: Option<String>,
    #[serde(deserialize_with = "lenient")]
    permissions: Map<String, Value>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Elicitation {
    #[serde(deserialize_with = "lenient")]
    thread_id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    server_name: String,
    #[serde(deserialize_with = "lenient")]
    mode: String,
    #[serde(deserialize_with = "lenient")]
    message: String,
    requested_schema: Value,
    #[serde(deserialize_with = "lenient")]
    url: Option<String>,
    #[serde(rename = "_meta")]
    meta: Value,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct UserInput {
    #[serde(deserialize_with = "lenient")]
    questions: Vec<AskedQuestion>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct AskedQuestion {
    #[serde(deserialize_with = "lenient")]
    id: String,
    #[serde(deserialize_with = "lenient")]
    header: String,
    #[serde(deserialize_with = "lenient")]
    question: String,
    #[serde(deserialize_with = "lenient")]
    is_other: bool,
    #[serde(deserialize_with = "lenient")]
    is_secret: bool,
    #[serde(deserialize_with = "lenient")]
    options: Vec<AskedOption>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct AskedOption {
    #[serde(deserialize_with = "lenient")]
    label: String,
    #[serde(deserialize_with = "lenient")]
    description: String,
}

impl Codex {
    pub(super) fn command_approval(&mut self, request: &Incoming<'_>, out: &mut Output) {
        let asked: CommandApproval = read(request.params);
        let Some(place) = self.asker(request, asked.thread_id.as_deref(), out) else { return };
        let mut tool = self.call_of(&asked.item_id);
        // The request says what would run; what was told of the call before is not what is allowed.
        if let Some(command) = &asked.command {
            tool.tool = ToolKind::Execute;
            tool.title = title_of(&shell::script(command));
            tool.input = command_input(command, asked.cwd.as_deref().unwrap_or(&self.launch.cwd));
        }
        if let Some(Network { host, protocol }) = &asked.network_approval_context {
            tool.tool = ToolKind::Fetch;
            tool.title = one_line(&format!("Reach {host} over {protocol}"));
            tool.input = json!({"host": host, "protocol": protocol, "for_command": asked.command});
        }
        if !asked.additional_permissions.is_null() {
            // More than the command is asked for, so no rule about the command alone may answer.
            tool.tool = ToolKind::Other;
            tool.title = format!("{}, with more permissions", tool.title);
            tool.input = json!({"permissions": asked.additional_permissions, "for_command": asked.command});
        }
        if tool.title.is_empty() || tool.input.is_null() {
            return self.refuse_unread(request, out);
        }
        let mut offers = plain_offers();
        let listed = asked.available_decisions.iter().filter_map(listed_offer).collect::<Vec<_>>();
        let proposed = asked.proposed_execpolicy_amendment.map(amendment_offer);
        let lasting = listed.into_iter().chain(proposed);
        for lasting in lasting {
            if offers.iter().all(|known| known.option.id != lasting.option.id) {
                offers.insert(2, lasting);
            }
        }
        self.ask_approval(request, place, tool, asked.reason, offers, decision("cancel"), out);
    }

    pub(super) fn change_approval(&mut self, request: &Incoming<'_>, out: &mut Output) {
        let asked: ChangeApproval = read(request.params);
        let Some(place) = self.asker(request, asked.thread_id.as_deref(), out) else { return };
        let mut tool = self.call_of(&asked.item_id);
        if !matches!(tool.tool, ToolKind::Edit | ToolKind::Delete | ToolKind::Move) {
            tool.tool = ToolKind::Edit;
            "Change files".clone_into(&mut tool.title);
        }
        if let Some(root) = asked.grant_root {
            // More than the change itself is asked for, so no rule about the change alone may answer.
            tool.title = format!("{}, and then anything in {root}", tool.title);
            tool.tool = ToolKind::Other;
            tool.input = json!({"grant_root": root});
            tool.locations.push(root);
        }
        self.ask_approval(request, place, tool, asked.reason, plain_offers(), decision("cancel"), out);
    }

    pub(super) fn permissions_approval(&mut self, request: &Incoming<'_>, out: &mut Output) {
        let asked: PermissionsApproval = read(request.params);
        let Some(place) = self.asker(request, asked.thread_id.as_deref(), out) else { return };
        let wanted: Map<String, Value> =
            asked.permissions.into_iter().filter(|(_, value)| !value.is_null()).collect();
        let mut tool = empty(ToolCallId::new(&asked.item_id));
        let names: Vec<&str> = wanted.keys().map(String::as_str).collect();
        tool.title = format!("Get more permissions: {}", one_line(&names.join(", ")));
        tool.input = Value::Object(wanted.clone());
        let granted = |scope: &str| json!({"permissions": wanted, "scope": scope});
        let denied = json!({"permissions": {}, "scope": "turn"});
        let offers = vec![
            offer("turn", "Allow for this turn", OptionKind::AllowOnce, granted("turn")),
            offer("session", "Allow for this session", OptionKind::AllowAlways, granted("session")),
            offer("decline", "Deny", OptionKind::RejectOnce, denied.clone()),
        ];
        self.ask_approval(request, place, tool, asked.reason, offers, denied, out);
    }

    pub(super) fn elicitation(&mut self, request: &Incoming<'_>, out: &mut Output) {
        let asked: Elicitation = read(request.params);
        let Some(place) = self.asker(request, asked.thread_id.as_deref(), out) else { return };
        let fields = asked.requested_schema.get("properties").and_then(Value::as_object);
        let nothing_to_fill = fields.is_none_or(Map::is_empty);
        match (asked.mode.as_str(), &asked.url) {
            ("form" | "openai/form" | "openaiForm" | "", _) if nothing_to_fill => {
                self.tool_elicitation(request, place, &asked, out);
            }
            ("form" | "openai/form" | "openaiForm" | "", _) => {
                let schema = asked.requested_schema;
                let text = format!("{} (asked by {})", asked.message, asked.server_name);
                let question = Question { text, schema: schema.clone(), url: None };
                self.ask(request, Open::Form { schema }, &asked.message, AskBody::Question(question), out);
            }
            ("url", Some(url)) => {
                let text = format!("{} (asked by {})", asked.message, asked.server_name);
                let question = Question { text, schema: Value::Null, url: Some(url.clone()) };
                self.ask(request, Open::Page, &asked.message, AskBody::Question(question), out);
            }
            (mode, _) => {
                out.frames.push(wire::reply(request.id, elicited("cancel", Value::Null, None)));
                let server = one_line(&asked.server_name);
                warn(
                    out,
                    format!("{server} asked in a way that is not known to Consort: {}.", one_line(mode)),
                );
            }
        }
    }

    /// An elicitation with nothing to fill in: may this tool run.
    fn tool_elicitation(
        &mut self,
        request: &Incoming<'_>,
        place: Place,
        asked: &Elicitation,
        out: &mut Output,
    ) {
        let arguments = asked.meta.get("tool_params").cloned().unwrap_or_default();
        let mut tool = match self.tools.of_server(&asked.server_name, &arguments) {
            Some(open) => (*open.call).clone(),
            None => empty(ToolCallId::new(format!("elicitation-{}", request.id))),
        };
        tool.status = ToolStatus::Pending;
        if tool.input != arguments || tool.input.is_null() {
            tool.title = title_of(&asked.message);
            tool.input =
                json!({"server": asked.server_name, "message": asked.message, "arguments": arguments});
        }
        let persist = asked.meta.get("persist").and_then(Value::as_array).into_iter().flatten();
        let mut offers =
            vec![offer("accept", "Allow", OptionKind::AllowOnce, elicited("accept", json!({}), None))];
        for how in persist.filter_map(Value::as_str) {
            let name = match how {
                "session" => "Allow for this session".to_owned(),
                "always" => "Always allow".to_owned(),
                other => format!("Allow: {}", one_line(other)),
            };
            offers.push(offer(how, name, OptionKind::AllowAlways, elicited("accept", json!({}), Some(how))));
        }
        let cancel = elicited("cancel", Value::Null, None);
        offers.push(offer("decline", "Deny", OptionKind::RejectOnce, elicited("decline", Value::Null, None)));
        self.ask_approval(request, place, tool, None, offers, cancel, out);
    }

    pub(super) fn user_input(&mut self, request: &Incoming<'_>, out: &mut Output) {
        let asked: UserInput = read(request.params);
        if asked.questions.iter().all(|question| question.id.is_empty()) {
            return self.refuse_unread(request, out);
        }
        let mut properties = Map::new();
        let mut texts = Vec::new();
        for question in &asked.questions {
            let labels: Vec<&str> = question.options.iter().map(|option| option.label.as_str()).collect();
            let mut field = json!({"type": "string", "title": question.question});
            let mut text = question.question.clone();
            for AskedOption { label, description } in &question.options {
                text.push_str(&format!("\n- {label}: {description}"));
            }
            if !labels.is_empty() && question.is_other {
                text.push_str("\n- or something else");
                field["examples"] = json!(labels);
            } else if !labels.is_empty() {
                field["enum"] = json!(labels);
            }
            if question.is_secret {
                field["writeOnly"] = json!(true);
            }
            properties.insert(question.id.clone(), field);
            texts.push(text);
        }
        let ids: Vec<String> = properties.keys().cloned().collect();
        let schema = json!({"type": "object", "properties": properties, "required": ids});
        let title = asked.questions.first().map(|first| match first.header.as_str() {
            "" => first.question.clone(),
            header => format!("{header}: {}", first.question),
        });
        let question = Question { text: texts.join("\n\n"), schema, url: None };
        let title = title.unwrap_or_default();
        self.ask(request, Open::Questions { ids }, &title, AskBody::Question(question), out);
    }

    /// Whose request it is; a request about a thread that is not ours is refused.
    fn asker(&self, request: &Incoming<'_>, thread: Option<&str>, out: &mut Output) -> Option<Place> {
        let place = self.place(thread);
        if place.is_none() {
            out.frames.push(wire::refuse(
                request.id,
                code::INVALID_PARAMS,
                "the thread is not known to Consort",
            ));
            warn(out, "Codex asked for a thread that is not this agent's, which was refused.");
        }
        place
    }

    fn refuse_unread(&self, request: &Incoming<'_>, out: &mut Output) {
        let message = format!("the parameters of {} cannot be read", request.method);
        out.frames.push(wire::refuse(request.id, code::INVALID_PARAMS, &message));
        warn(out, format!("A {} of Codex could not be read and was refused.", one_line(request.method)));
    }

    /// The call as it was told, waiting.
    fn call_of(&self, item: &str) -> ToolCall {
        let mut call = match self.tools.find(item) {
            Some(open) => (*open.call).clone(),
            None => empty(ToolCallId::new(item)),
        };
        call.status = ToolStatus::Pending;
        call
    }

    #[allow(clippy::too_many_arguments, reason = "one place where all parts of an approval meet")]
    fn ask_approval(
        &mut self,
        request: &Incoming<'_>,
        place: Place,
        mut tool: ToolCall,
        reason: Option<String>,
        offers: Vec<Offer>,
        cancel: Value,
        out: &mut Output,
    ) {
        let mut title = tool.title.clone();
        if let Some(reason) = reason.as_deref().map(one_line).filter(|reason| !reason.is_empty()) {
            title = format!("{title} ({reason})");
            tool.meta = json!({"reason": reason});
        }
        let options = offers.iter().map(|offer| offer.option.clone()).collect();
        let body = AskBody::Approval { tool, options };
        self.ask(request, Open::Approval { place, offers, cancel }, &title, body, out);
    }

    fn ask(&mut self, request: &Incoming<'_>, open: Open, title: &str, body: AskBody, out: &mut Output) {
        if self.asks.holds(request.id) {
            // An id that is in use cannot be told from its first use.
            return warn(out, "Codex asked twice under one id; the second ask was left out.");
        }
        let key = request.id.to_owned();
        self.asks.0.push((key.clone(), open));
        out.signals.push(Signal::Ask { key, title: title_of(title), body });
    }

    pub(crate) fn answer_ask(&mut self, key: &str, answer: &Answer, out: &mut Output) {
        match self.asks.take(key) {
            Some(Open::Approval { place, offers, cancel }) => {
                self.answer_approval(key, &place, &offers, cancel, answer, out);
            }
            Some(Open::Form { schema }) => out.frames.push(wire::reply(key, form_answer(&schema, answer))),
            Some(Open::Page) => {
                let action = match answer {
                    Answer::Deny { .. } => "decline",
                    Answer::Stop => "cancel",
                    Answer::Allow { .. } | Answer::Choose { .. } | Answer::Reply { .. } => "accept",
                };
                out.frames.push(wire::reply(key, elicited(action, Value::Null, None)));
            }
            Some(Open::Questions { ids }) => {
                out.frames.push(wire::reply(key, json!({"answers": answers(&ids, answer)})));
            }
            None => return,
        }
        if *answer == Answer::Stop {
            self.stop_turn(out);
        }
    }

    fn answer_approval(
        &mut self,
        key: &str,
        place: &Place,
        offers: &[Offer],
        cancel: Value,
        answer: &Answer,
        out: &mut Output,
    ) {
        let of_kind = |kind: OptionKind| offers.iter().find(|offer| offer.option.kind == kind);
        let named = |name: &str| {
            let by_id = offers.iter().find(|offer| offer.option.id == name);
            by_id.or_else(|| offers.iter().find(|offer| offer.option.name.eq_ignore_ascii_case(name)))
        };
        let deny = || of_kind(OptionKind::RejectOnce);
        let mut words = None;
        let chosen = match answer {
            // How long it lasts is kept by Consort, where it can be seen and taken back.
            Answer::Allow { .. } => of_kind(OptionKind::AllowOnce),
            Answer::Deny { message } => {
                words = message.as_deref();
                deny()
            }
            Answer::Choose { option } => named(option).or_else(deny),
            Answer::Reply { value } => match value.as_str() {
                Some(text) if named(text).is_some() => named(text),
                // Words instead of a yes are a no with a reason.
                text => {
                    words = text;
                    deny()
                }
            },
            Answer::Stop => None,
        };
        // An approval has no place for a reason, so the words go first, to be read with the denial.
        if let Some(words) = words.map(str::trim).filter(|words| !words.is_empty())
            && !self.add_words(place, words, out)
        {
            out.follow_up = Some(words.to_owned());
        }
        out.frames.push(wire::reply(key, chosen.map_or(cancel, |offer| offer.reply.clone())));
    }

    /// The app server does not wait for an answer any more.
    pub(super) fn resolved(&mut self, params: &str, out: &mut Output) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Resolved<'a> {
            #[serde(borrow)]
            request_id: &'a serde_json::value::RawValue,
        }
        let Ok(Resolved { request_id }) = serde_json::from_str(params) else { return };
        let key = request_id.get();
        if self.asks.take(key).is_some() {
            out.signals.push(Signal::AskWithdrawn { key: key.to_owned() });
        }
    }

    /// Answers all open asks as cancelled.
    pub(super) fn cancel_asks(&mut self, out: &mut Output) {
        for (key, ask) in std::mem::take(&mut self.asks.0) {
            let answer = match ask {
                Open::Approval { cancel, .. } => cancel,
                Open::Form { .. } | Open::Page => elicited("cancel", Value::Null, None),
                Open::Questions { .. } => json!({"answers": {}}),
            };
            out.frames.push(wire::reply(&key, answer));
            out.signals.push(Signal::AskWithdrawn { key });
        }
    }

    /// The turn is over, and nobody waits for these any more. They are answered all the same: an answer is owed.
    pub(super) fn withdraw_asks(&mut self, out: &mut Output) {
        self.cancel_asks(out);
    }
}

/// The offer for a decision that the app server lists, beside the plain ones.
fn listed_offer(listed: &Value) -> Option<Offer> {
    let (name, more) = listed.as_object()?.iter().next()?;
    match name.as_str() {
        "acceptWithExecpolicyAmendment" => {
            let words = more.get("execpolicy_amendment")?.as_array()?;
            let words: Option<Vec<String>> =
                words.iter().map(|word| word.as_str().map(str::to_owned)).collect();
            Some(amendment_offer(words?))
        }
        "applyNetworkPolicyAmendment" => {
            let amendment = more.get("network_policy_amendment")?;
            let host = amendment.get("host")?.as_str()?;
            let action = amendment.get("action")?.as_str()?;
            let (verb, kind) = match action {
                "allow" => ("Always allow", OptionKind::AllowAlways),
                "deny" => ("Always deny", OptionKind::RejectAlways),
                _ => return None,
            };
            let name = one_line(&format!("{verb} {host}"));
            Some(offer(&format!("network-{action}-{host}"), name, kind, decision(listed.clone())))
        }
        _ => None,
    }
}

/// To allow commands that begin with these words, for ever.
fn amendment_offer(words: Vec<String>) -> Offer {
    let name = one_line(&format!("Always allow commands that begin with `{}`", words.join(" ")));
    let reply = decision(json!({"acceptWithExecpolicyAmendment": {"execpolicy_amendment": words}}));
    offer("acceptWithExecpolicyAmendment", name, OptionKind::AllowAlways, reply)
}

fn elicited(action: &str, content: Value, persist: Option<&str>) -> Value {
    json!({"action": action, "content": content, "_meta": persist.map(|how| json!({"persist": how}))})
}

fn form_answer(schema: &Value, answer: &Answer) -> Value {
    let filled = |value: &Value| match value {
        Value::Object(fields) => Value::Object(fields.clone()),
        value => {
            let first = schema.get("properties").and_then(Value::as_object);
            let first = first.and_then(|fields| fields.keys().next().cloned());
            Value::Object(first.map(|field| (field, value.clone())).into_iter().collect())
        }
    };
    match answer {
        Answer::Reply { value } => elicited("accept", filled(value), None),
        Answer::Choose { option } => elicited("accept", filled(&Value::String(option.clone())), None),
        Answer::Allow { .. } => elicited("accept", json!({}), None),
        Answer::Deny { .. } => elicited("decline", Value::Null, None),
        Answer::Stop => elicited("cancel", Value::Null, None),
    }
}

/// The answers to questions by their ids. Without an answer the agent is told that there is none.
fn answers(ids: &[String], answer: &Answer) -> Map<String, Value> {
    let words = |value: &Value| -> Vec<String> {
        let word = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        match value {
            Value::Null => vec![],
            Value::Array(values) => values.iter().map(word).collect(),
            value => vec![word(value)],
        }
    };
    let said = |value: &Value| json!({"answers": words(value)});
    let first = |value: &Value| ids.first().map(|id| (id.clone(), said(value))).into_iter().collect();
    match answer {
        Answer::Reply { value: Value::Object(fields) } => fields
            .iter()
            .filter(|(id, _)| ids.contains(id))
            .map(|(id, value)| (id.clone(), said(value)))
            .collect(),
        Answer::Reply { value } => first(value),
        Answer::Choose { option } => first(&Value::String(option.clone())),
        Answer::Deny { message: Some(message) } => first(&Value::String(message.clone())),
        Answer::Allow { .. } | Answer::Deny { message: None } | Answer::Stop => Map::new(),
    }
}
