//! The sessions that a program keeps.
//!
//! Owns how a program is asked for them, in a short conversation of its own, and what it says. Like a driver it does no
//! I/O. Codex and ACP agents answer a request; Claude Code has none, so the files that it keeps are read, a line at a
//! time. The invariant: bad input gives fewer sessions or a reason, never a panic.

use consort_model::{DriverKind, KeptSession, Timestamp};
use serde_json::{Value, json};

/// How many sessions are asked for at most.
pub const MOST: usize = 200;

/// The longest title, in characters.
const LONGEST_TITLE: usize = 120;

/// The id of the first request.
const HELLO: u64 = 1;

/// A conversation that asks a program for the sessions of a folder.
#[derive(Clone, PartialEq, Debug)]
pub struct Listing {
    kind: DriverKind,
    cwd: String,
    next_id: u64,
    found: Vec<KeptSession>,
}

/// What comes next.
#[derive(Clone, PartialEq, Debug)]
pub enum Next {
    /// Write these lines and go on reading.
    Say(Vec<Vec<u8>>),
    /// These are all, the newest first.
    Done(Vec<KeptSession>),
    /// There is no list, for this reason: part of a sentence about the program.
    Refused(String),
}

impl Listing {
    /// A conversation about the sessions of a folder, where the program can be asked.
    pub fn new(kind: DriverKind, cwd: &str) -> Option<Self> {
        match kind {
            DriverKind::Codex | DriverKind::Acp => {
                Some(Self { kind, cwd: cwd.to_owned(), next_id: HELLO, found: Vec::new() })
            }
            DriverKind::Claude | DriverKind::Native | DriverKind::Terminal => None,
        }
    }

    /// What to say first.
    pub fn start(&mut self) -> Vec<Vec<u8>> {
        let about = json!({"name": "consort", "title": "Consort", "version": env!("CARGO_PKG_VERSION")});
        let params = match self.kind {
            DriverKind::Codex => json!({"clientInfo": about, "capabilities": {"experimentalApi": true}}),
            _ => json!({"protocolVersion": 1, "clientInfo": about, "clientCapabilities": {}}),
        };
        vec![self.request("initialize", params)]
    }

    /// Takes in a line.
    pub fn receive(&mut self, line: &[u8]) -> Next {
        let nothing = Next::Say(Vec::new());
        let Ok(said) = serde_json::from_slice::<Value>(line) else { return nothing };
        // Whatever it asks or tells is not for us; it is about to end.
        if said.get("method").is_some() || said.get("id").and_then(Value::as_u64) != Some(self.next_id - 1) {
            return nothing;
        }
        if let Some(error) = said.get("error").filter(|error| !error.is_null()) {
            let message = error.get("message").and_then(Value::as_str).unwrap_or("it gave no reason");
            return Next::Refused(format!("does not list its sessions: {}", one_line(message)));
        }
        let result = said.get("result").unwrap_or(&Value::Null);
        if self.next_id - 1 == HELLO { self.greeted(result) } else { self.page(result) }
    }

    fn greeted(&mut self, result: &Value) -> Next {
        if self.kind == DriverKind::Codex {
            let done = line(&json!({"method": "initialized"}));
            return Next::Say(vec![done, self.ask(None)]);
        }
        let lists = &result["agentCapabilities"]["sessionCapabilities"]["list"];
        if lists.is_null() {
            return Next::Refused("keeps no list of its sessions that it would tell".to_owned());
        }
        Next::Say(vec![self.ask(None)])
    }

    fn page(&mut self, result: &Value) -> Next {
        let (list, read): (&str, fn(&Value) -> Option<KeptSession>) = match self.kind {
            DriverKind::Codex => ("data", thread),
            _ => ("sessions", session),
        };
        let page = result.get(list).and_then(Value::as_array).into_iter().flatten();
        // Some list all that they have.
        let cwd = self.cwd.clone();
        self.found.extend(page.filter_map(read).filter(|found| found.cwd == cwd));
        let cursor = result.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
        match cursor {
            Some(cursor) if self.found.len() < MOST && self.next_id < MOST as u64 => {
                Next::Say(vec![self.ask(Some(&cursor))])
            }
            _ => Next::Done(newest_first(std::mem::take(&mut self.found))),
        }
    }

    fn ask(&mut self, cursor: Option<&str>) -> Vec<u8> {
        let mut params = json!({"cwd": self.cwd});
        if let Some(cursor) = cursor {
            params["cursor"] = json!(cursor);
        }
        if self.kind != DriverKind::Codex {
            return self.request("session/list", params);
        }
        params["limit"] = json!(100);
        params["sortKey"] = json!("updated_at");
        // An empty list means all providers, and those of sub-agents are no sessions of a person's.
        params["modelProviders"] = json!([]);
        params["sourceKinds"] = json!(["cli", "vscode", "exec", "appServer"]);
        self.request("thread/list", params)
    }

    fn request(&mut self, method: &str, params: Value) -> Vec<u8> {
        let id = self.next_id;
        self.next_id += 1;
        let mut request = json!({"id": id, "method": method, "params": params});
        if self.kind != DriverKind::Codex {
            request["jsonrpc"] = json!("2.0");
        }
        line(&request)
    }
}

/// The newest first, and not too many.
pub fn newest_first(mut sessions: Vec<KeptSession>) -> Vec<KeptSession> {
    sessions.sort_by(|a, b| b.updated_at.cmp(&a.updated_at).then_with(|| a.id.cmp(&b.id)));
    sessions.truncate(MOST);
    sessions
}

/// The name of the folder in which Claude Code keeps the sessions of a folder, below `projects` in its own.
pub fn claude_folder(cwd: &str) -> String {
    cwd.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' }).collect()
}

/// What a session of Claude Code's is about, from the beginning of its file: what a person said first.
pub fn claude_title(beginning: &[u8]) -> Option<String> {
    beginning.split(|byte| *byte == b'\n').find_map(|line| {
        let said: Value = serde_json::from_slice(line).ok()?;
        let is = |key: &str| said.get(key).and_then(Value::as_bool) == Some(true);
        if said["type"] != "user" || is("isMeta") || is("isSidechain") {
            return None;
        }
        let content = &said["message"]["content"];
        let blocks = content.as_array().into_iter().flatten();
        let text = content.as_str().or_else(|| {
            blocks.filter(|block| block["type"] == "text").find_map(|block| block["text"].as_str())
        })?;
        // What the program itself adds is in tags.
        if text.starts_with('<') { None } else { title(text) }
    })
}

fn thread(said: &Value) -> Option<KeptSession> {
    let text = |key: &str| said.get(key).and_then(Value::as_str);
    let seconds = said.get("updatedAt").and_then(Value::as_i64);
    Some(KeptSession {
        id: text("id")?.to_owned(),
        title: text("name").and_then(title).or_else(|| text("preview").and_then(title)),
        cwd: text("cwd")?.to_owned(),
        updated_at: seconds.map(|seconds| Timestamp(seconds.saturating_mul(1000))),
    })
}

fn session(said: &Value) -> Option<KeptSession> {
    let text = |key: &str| said.get(key).and_then(Value::as_str);
    Some(KeptSession {
        id: text("sessionId")?.to_owned(),
        title: text("title").and_then(title),
        cwd: text("cwd")?.to_owned(),
        updated_at: text("updatedAt").and_then(instant),
    })
}

fn title(text: &str) -> Option<String> {
    let line = one_line(text);
    let short: String = line.chars().take(LONGEST_TITLE).collect();
    (!short.is_empty()).then_some(short)
}

fn one_line(text: &str) -> String {
    let words = text.split_whitespace().map(|word| word.replace(char::is_control, ""));
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// A time in the form `2026-11-15T20:00:56.035Z`, or with an offset instead of the `Z`.
fn instant(text: &str) -> Option<Timestamp> {
    let (date, rest) = text.split_once('T')?;
    let mut date = date.split('-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let zone = rest.find(['Z', '+', '-'])?;
    let mut clock = rest[..zone].split(':');
    let hour = clock.next()?.parse::<i64>().ok()?;
    let minute = clock.next()?.parse::<i64>().ok()?;
    let seconds = clock.next().unwrap_or("0").parse::<f64>().ok()?;
    let offset = match rest[zone..].split_at(1) {
        ("Z", _) => 0,
        (sign, offset) => {
            let (hours, minutes) = offset.split_once(':')?;
            let minutes = hours.parse::<i64>().ok()? * 60 + minutes.parse::<i64>().ok()?;
            if sign == "-" { -minutes } else { minutes }
        }
    };
    let fits = (1970..10_000).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    let fits = fits && hour < 24 && minute < 60 && (0.0..61.0).contains(&seconds) && offset.abs() < 24 * 60;
    if !fits || hour < 0 || minute < 0 {
        return None;
    }
    // Years are counted from March, so that the day that is sometimes there is the last one.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 1 - 719_468;
    let minutes = (days * 24 + hour) * 60 + minute - offset;
    Some(Timestamp(minutes * 60_000 + (seconds * 1000.0) as i64))
}

fn line(message: &Value) -> Vec<u8> {
    format!("{message}\n").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(next: Next) -> Vec<Value> {
        match next {
            Next::Say(lines) => lines.iter().map(|line| serde_json::from_slice(line).unwrap()).collect(),
            other => panic!("nothing is said: {other:?}"),
        }
    }

    fn hear(listing: &mut Listing, message: Value) -> Next {
        listing.receive(message.to_string().as_bytes())
    }

    #[test]
    fn codex_is_asked_page_by_page() {
        let mut listing = Listing::new(DriverKind::Codex, "/w").unwrap();
        assert_eq!(listing.start().len(), 1);
        assert_eq!(hear(&mut listing, json!({"method": "configWarning", "params": {}})), Next::Say(vec![]));
        let asked = said(hear(&mut listing, json!({"id": 1, "result": {"userAgent": "x"}})));
        assert_eq!((&asked[0]["method"], &asked[1]["params"]["cwd"]), (&json!("initialized"), &json!("/w")));
        let thread = |id: &str, at: u64, cwd: &str| json!({"id": id, "preview": "do\nit", "name": null, "updatedAt": at, "cwd": cwd});
        let page =
            json!({"data": [thread("a", 5, "/w"), thread("x", 9, "/v"), {"id": 7}], "nextCursor": "c"});
        let asked = said(hear(&mut listing, json!({"id": 2, "result": page})));
        assert_eq!(asked[0]["params"]["cursor"], "c");
        let page = json!({"data": [thread("b", 6, "/w")], "nextCursor": null});
        let Next::Done(found) = hear(&mut listing, json!({"id": 3, "result": page})) else { panic!() };
        let expected = KeptSession {
            id: "b".into(),
            title: Some("do it".into()),
            cwd: "/w".into(),
            updated_at: Some(Timestamp(6000)),
        };
        assert_eq!(
            found,
            [expected.clone(), KeptSession { id: "a".into(), updated_at: Some(Timestamp(5000)), ..expected }]
        );
    }

    #[test]
    fn an_acp_agent_is_asked_where_it_says_that_it_can_be() {
        let mut listing = Listing::new(DriverKind::Acp, "/w").unwrap();
        listing.start();
        let can = json!({"agentCapabilities": {"sessionCapabilities": {"list": {}}}});
        let asked = said(hear(&mut listing, json!({"jsonrpc": "2.0", "id": 1, "result": can})));
        assert_eq!(asked[0]["method"], "session/list");
        let mut refused = listing.clone();
        let error = json!({"id": 2, "error": {"code": -32601, "message": "no"}});
        assert!(matches!(hear(&mut refused, error), Next::Refused(why) if why.ends_with(": no")));
        let sessions =
            json!([{"sessionId": "s", "cwd": "/w", "title": "T", "updatedAt": "2026-11-15T20:00:56.035Z"}]);
        let Next::Done(found) = hear(&mut listing, json!({"id": 2, "result": {"sessions": sessions}})) else {
            panic!()
        };
        assert_eq!((found[0].id.as_str(), found[0].updated_at), ("s", Some(Timestamp(1_794_772_856_035))));
        let mut listing = Listing::new(DriverKind::Acp, "/w").unwrap();
        listing.start();
        assert!(matches!(hear(&mut listing, json!({"id": 1, "result": {}})), Next::Refused(_)));
        assert_eq!(listing.receive(b"\xff{"), Next::Say(vec![]));
        assert_eq!(Listing::new(DriverKind::Claude, "/w"), None);
    }

    #[test]
    fn times_are_read_in_any_zone() {
        let table = [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("2000-02-29T12:30:00+01:30", Some(951_822_000_000)),
            ("2026-11-15T20:00:56.035Z", Some(1_794_772_856_035)),
            ("2024-12-31T23:59:59-00:30", Some(1_735_691_399_000)),
            ("2026-13-15T20:00:56Z", None),
            ("yesterday", None),
            ("2026-11-15T", None),
            ("2026-11-15T99:00:00Z", None),
        ];
        for (text, expected) in table {
            assert_eq!(instant(text).map(|at| at.0), expected, "{text}");
        }
    }

    #[test]
    fn a_claude_session_is_called_by_what_was_said_first() {
        let lines = [
            json!({"type": "queue-operation"}).to_string(),
            "{broken".to_owned(),
            json!({"type": "user", "isMeta": true, "message": {"content": "not this"}}).to_string(),
            json!({"type": "user", "message": {"content": "<command-name>/clear</command-name>"}})
                .to_string(),
            json!({"type": "user", "message": {"content": [{"type": "text", "text": "Mend\nthe gate"}]}})
                .to_string(),
        ];
        assert_eq!(claude_title(lines.join("\n").as_bytes()).as_deref(), Some("Mend the gate"));
        assert_eq!(claude_title(b""), None);
        assert_eq!(claude_folder("/home/me/my_repo.git"), "-home-me-my-repo-git");
    }
}
