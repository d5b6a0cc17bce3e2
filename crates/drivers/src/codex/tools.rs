//! Tool calls that are open: whole, because everyone else sees whole calls only.
//!
//! Owns which calls run, in which thread, and what they still need: a command its process, a started sub-agent its
//! thread. A call leaves when it ends; the few that a turn's end cut off are remembered by name for a late word.

use std::sync::Arc;

use consort_model::{Signal, ToolCall, ToolCallId, ToolKind, ToolStatus};
use serde::{Deserialize, Serialize};

use super::items::{self, Item, ItemKind};
use super::{Codex, Place};
use crate::Output;

/// How many calls may be open; more is a fault of the agent, not work.
const OPEN_CALLS: usize = 256;

/// How many cut calls are remembered by name.
const CUT_NAMED: usize = 64;

/// The open calls, in order of their beginning.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Tools {
    open: Vec<OpenCall>,
    /// Calls that ended with their turn and may be heard of once more.
    cut: Vec<String>,
}

/// A call that has not ended.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct OpenCall {
    pub call: Arc<ToolCall>,
    pub place: Place,
    /// The process of a command, by which it can be ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<String>,
    /// The server of an MCP call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// Whether it only waits for a sub-agent that it started.
    #[serde(default)]
    pub parent: bool,
    /// Whether its turn is over and it goes on.
    #[serde(default)]
    pub background: bool,
}

impl Tools {
    pub fn find(&self, id: &str) -> Option<&OpenCall> {
        self.open.iter().find(|open| open.call.id.as_str() == id)
    }

    /// The call of a server's tool with these arguments.
    pub fn of_server(&self, server: &str, arguments: &serde_json::Value) -> Option<&OpenCall> {
        let calls = || self.open.iter().filter(|open| open.server.as_deref() == Some(server));
        calls().find(|open| open.call.input == *arguments).or_else(|| calls().next_back())
    }

    /// The processes of this turn that still run, each with its thread.
    pub fn processes(&self) -> impl Iterator<Item = (&Place, &str)> {
        self.of_turn().filter_map(|open| Some((&open.place, open.process.as_deref()?)))
    }

    /// The commands of this turn whose process was not told, each with its thread.
    pub fn commands_of_unknown_process(&self) -> impl Iterator<Item = (&Place, &str)> {
        let unknown = |open: &&OpenCall| open.process.is_none() && open.call.tool == ToolKind::Execute;
        self.of_turn().filter(unknown).map(|open| (&open.place, open.call.id.as_str()))
    }

    /// What the running turn called.
    fn of_turn(&self) -> impl Iterator<Item = &OpenCall> {
        self.open.iter().filter(|open| !open.background)
    }

    pub fn clear(&mut self) {
        *self = Self::default();
    }

    fn put(&mut self, open: OpenCall) -> bool {
        if let Some(known) = self.open.iter_mut().find(|known| known.call.id == open.call.id) {
            *known = open;
            return true;
        }
        let room = self.open.len() < OPEN_CALLS;
        if room {
            self.open.push(open);
        }
        room
    }

    fn take(&mut self, id: &str) -> Option<OpenCall> {
        let index = self.open.iter().position(|open| open.call.id.as_str() == id)?;
        Some(self.open.remove(index))
    }

    fn take_cut(&mut self, id: &str) -> bool {
        let known = self.cut.iter().position(|cut| cut == id);
        known.map(|index| self.cut.remove(index)).is_some()
    }

    fn remember_cut(&mut self, id: &ToolCallId) {
        self.cut.push(id.to_string());
        let excess = self.cut.len().saturating_sub(CUT_NAMED);
        self.cut.drain(..excess);
    }
}

impl Codex {
    /// A tool call began.
    pub(super) fn tool_started(&mut self, item: &Item, place: Place, out: &mut Output) {
        let Some(call) = item.tool_call(false) else { return };
        let call = Arc::new(call);
        self.tell_tool(&call, &place, out);
        let server = (item.kind == ItemKind::McpToolCall).then(|| item.server.clone());
        let process = item.process_id.clone();
        self.tools.put(OpenCall { call, place, process, server, parent: false, background: false });
    }

    /// A tool call ended. Its sub-agent, if it started one, goes on within it.
    pub(super) fn tool_completed(&mut self, item: &Item, place: Place, out: &mut Output) {
        let Some(mut call) = item.tool_call(true) else { return };
        let earlier = self.tools.take(&item.id);
        if earlier.is_none() && self.tools.take_cut(&item.id) && self.turn.is_some() {
            // It belongs to a turn that is over, and was told as ended then.
            return;
        }
        if call.output.is_empty()
            && let Some(earlier) = &earlier
        {
            call.output.clone_from(&earlier.call.output);
        }
        let (children, starts) = match item.kind {
            ItemKind::CollabAgentToolCall => (item.receiver_thread_ids.as_slice(), item.tool == "spawnAgent"),
            ItemKind::SubAgentActivity => {
                (std::slice::from_ref(&item.agent_thread_id), item.activity == "started")
            }
            _ => (&[][..], false),
        };
        // One that an earlier process started is first heard of when it is written to.
        let new: Vec<String> =
            children.iter().filter(|child| starts || self.place(Some(child)).is_none()).cloned().collect();
        let adopted = call.status == ToolStatus::Completed && self.adopt(&new, &call.id) && starts;
        if adopted {
            call.status = ToolStatus::Running;
        }
        let call = Arc::new(call);
        self.tell_tool(&call, &place, out);
        if adopted {
            let (process, server) = (None, None);
            self.tools.put(OpenCall { call, place, process, server, parent: true, background: false });
        }
    }

    /// More of what a call puts out.
    pub(super) fn tool_grows(&mut self, id: &str, piece: &str, out: &mut Output) {
        self.change_tool(id, out, |call| items::grow(&mut call.output, piece));
    }

    /// Changes an open call and tells it.
    pub(super) fn change_tool(&mut self, id: &str, out: &mut Output, change: impl FnOnce(&mut ToolCall)) {
        let Some(open) = self.tools.open.iter_mut().find(|open| open.call.id.as_str() == id) else { return };
        change(Arc::make_mut(&mut open.call));
        let (call, place) = (Arc::clone(&open.call), open.place.clone());
        self.tell_tool(&call, &place, out);
    }

    /// An open call's end was too long to be read.
    pub(super) fn tool_ended_unread(&mut self, id: &str, out: &mut Output) {
        let Some(mut open) = self.tools.take(id) else { return };
        let call = Arc::make_mut(&mut open.call);
        call.status = ToolStatus::Completed;
        self.tell_tool(&open.call, &open.place, out);
    }

    /// A sub-agent's turn is over, and so is the call that started it.
    pub(super) fn parent_ended(&mut self, within: &ToolCallId, status: ToolStatus, out: &mut Output) {
        let waits = self.tools.find(within.as_str()).is_some_and(|open| open.parent);
        if !waits {
            return;
        }
        if let Some(mut open) = self.tools.take(within.as_str()) {
            Arc::make_mut(&mut open.call).status = status;
            self.tell_tool(&open.call, &open.place, out);
        }
    }

    /// A turn is over: nothing of it stays open, but for what goes on in the background.
    pub(super) fn end_tools(&mut self, of: Ended<'_>, out: &mut Output) {
        for mut open in std::mem::take(&mut self.tools.open) {
            // What a sub-agent does goes on with the call that started it, and a command that the turn did not wait for.
            let lasts = open.parent || open.place != Place::Main || open.call.tool == ToolKind::Execute;
            let stays = match of {
                Ended::Process => false,
                Ended::Turn { cleanly } => open.background || (cleanly && lasts),
                Ended::Thread(place) => open.place != *place,
            };
            if stays {
                open.background |= matches!(of, Ended::Turn { .. });
                self.tools.open.push(open);
                continue;
            }
            Arc::make_mut(&mut open.call).status = ToolStatus::Failed;
            self.tools.remember_cut(&open.call.id);
            self.tell_tool(&open.call, &open.place, out);
        }
    }

    pub(super) fn tell_tool(&self, call: &Arc<ToolCall>, place: &Place, out: &mut Output) {
        out.signals.push(Signal::Tool { call: ToolCall::clone(call), within: place.within() });
    }
}

/// Whose calls end.
#[derive(Clone, Copy)]
pub enum Ended<'a> {
    /// All: the process is over.
    Process,
    /// Those of the agent's turn.
    Turn {
        /// Whether it ended by itself and well.
        cleanly: bool,
    },
    /// Those of one sub-agent.
    Thread(&'a Place),
}
