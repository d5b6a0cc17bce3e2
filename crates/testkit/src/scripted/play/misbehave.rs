//! What a client has to survive: broken frames, deaths, children left behind.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use rustix::process::{Signal, getpid, kill_process, setsid};
use serde_json::json;

use super::super::steps::Misbehaviour;
use super::Turn;

/// An id that the client never gave out.
const NOBODYS_ID: u64 = 999_999_999;

impl Turn<'_> {
    pub(super) fn misbehave(&self, misbehaviour: Misbehaviour) {
        let wire = &self.agent.wire;
        match misbehaviour {
            Misbehaviour::Crash(code) => std::process::exit(code),
            Misbehaviour::KillSelf => {
                if let Err(error) = kill_process(getpid(), Signal::KILL) {
                    eprintln!("consort-testkit agent: cannot kill itself: {error}");
                }
            }
            Misbehaviour::Torn => {
                wire.bytes(br#"{"jsonrpc":"2.0","method":"session/upd"#);
                std::process::exit(1);
            }
            Misbehaviour::Garbage(text) | Misbehaviour::Raw(text) => {
                wire.bytes(format!("{text}\n").as_bytes())
            }
            Misbehaviour::BadUtf8 => {
                let frame = json!({"jsonrpc": "2.0", "method": "session/update", "params": {
                    "sessionId": self.session.id,
                    "update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "bad "}},
                }});
                let mut line = Vec::new();
                // The bytes go into the string, so that only the encoding is wrong.
                for piece in frame.to_string().split_inclusive("bad ") {
                    line.extend_from_slice(piece.as_bytes());
                    if piece.ends_with("bad ") {
                        line.extend_from_slice(b"\xff\xfe");
                    }
                }
                line.push(b'\n');
                wire.bytes(&line);
            }
            Misbehaviour::BigLine { megabytes } => {
                self.chunk("agent_message_chunk", &"x".repeat(usize::from(megabytes) << 20), None);
            }
            Misbehaviour::EmptyLines => wire.bytes(b"\n\n \n\r\n"),
            Misbehaviour::ReplyToNothing => wire.answer(&json!(NOBODYS_ID), Ok(json!({}))),
            Misbehaviour::Stderr(text) => eprintln!("{text}"),
            Misbehaviour::SpawnOrphan { seconds, own_session, hold } => {
                match spawn_sleep(seconds, own_session, hold) {
                    Ok(pid) => self.say(&format!("orphan: {pid}")),
                    Err(error) => self.say(&format!("no orphan: {error}")),
                }
            }
        }
    }
}

fn spawn_sleep(seconds: u64, own_session: bool, hold: bool) -> std::io::Result<u32> {
    let out = || if hold { Stdio::inherit() } else { Stdio::null() };
    let mut command = Command::new("sleep");
    command.arg(seconds.to_string()).stdin(Stdio::null()).stdout(out()).stderr(out());
    if own_session {
        // SAFETY: between fork and exec only the system call setsid is made, which is async-signal-safe.
        unsafe {
            command.pre_exec(|| setsid().map(|_| ()).map_err(Into::into));
        }
    }
    Ok(command.spawn()?.id())
}
