//! The mouse: everything it can do can be done with keys too.

use std::collections::HashMap;

use consort_model::AgentId;
use ratatui::layout::Rect;

use super::{App, Focus};
use crate::input::{Mouse, MouseAct};
use crate::keys::{Action, Context, TABLE};
use crate::overlay::{Command, Overlay};
use crate::tree::Row;

/// Lines that one step of the wheel scrolls.
const WHEEL: isize = 3;

/// Something that can be clicked.
#[derive(Clone, PartialEq, Debug)]
pub enum Hit {
    /// A row of the list of agents.
    Row(usize),
    /// A pane and who is in it.
    Pane(usize, Option<AgentId>),
    /// A line of a conversation.
    Line(AgentId, u64),
    /// The prompt.
    Composer,
    /// What is asked in a pane.
    Ask,
    /// A button.
    Button(Action),
    /// A row of a list.
    Choice(usize),
    /// A row of the inbox.
    InboxRow(consort_model::AskId),
    /// A completion.
    Completion(usize),
    /// A part of the settings, or a row in it.
    Setting(usize),
    /// A tab of the settings.
    Tab(usize),
    /// An entry of a form; a row of it, and where that row begins.
    Entry(usize, usize, u16),
    /// What saves a form, or takes what a field holds.
    Submit,
    /// An overlay, where nothing else is.
    Overlay,
}

/// Text that is being marked with the mouse.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Selection {
    /// What it stays within.
    pub area: Rect,
    /// Where it begins.
    pub from: (u16, u16),
    /// Where it ends.
    pub to: (u16, u16),
    /// What is marked, once it was drawn.
    pub text: String,
}

/// What can be clicked, the last one on top; and how large panes are.
#[derive(Default)]
pub struct Hits {
    areas: Vec<(Rect, Hit)>,
    panes: HashMap<AgentId, (u16, u16)>,
}

impl Hits {
    /// Forgets everything: the screen is drawn anew.
    pub fn clear(&mut self) {
        self.areas.clear();
    }

    /// Forgets what was within an area that is drawn anew.
    pub fn clear_within(&mut self, area: Rect) {
        self.areas.retain(|(hit, _)| hit.intersection(area).is_empty());
    }

    /// Something can be clicked here.
    pub fn add(&mut self, area: Rect, hit: Hit) {
        self.areas.push((area, hit));
    }

    /// The text of an agent's conversation has this size.
    pub fn set_pane(&mut self, agent: AgentId, width: u16, height: u16) {
        self.panes.insert(agent, (width, height));
    }

    /// The width of an agent's conversation.
    pub fn pane_width(&self, agent: AgentId) -> u16 {
        self.panes.get(&agent).map_or(80, |(width, _)| *width)
    }

    /// The height of an agent's conversation.
    pub fn pane_height(&self, agent: AgentId) -> u16 {
        self.panes.get(&agent).map_or(20, |(_, height)| *height)
    }

    fn at(&self, x: u16, y: u16) -> Option<&Hit> {
        let within = |area: &Rect| area.contains(ratatui::layout::Position { x, y });
        self.areas.iter().rev().find(|(area, _)| within(area)).map(|(_, hit)| hit)
    }

    /// The part of the screen that text is marked within: an overlay, a pane, or the prompt.
    fn part_at(&self, x: u16, y: u16) -> Option<Rect> {
        let within = |area: &Rect| area.contains(ratatui::layout::Position { x, y });
        let is_part = |hit: &Hit| matches!(hit, Hit::Overlay | Hit::Pane(..) | Hit::Composer | Hit::Ask);
        self.areas.iter().rev().find(|(area, hit)| within(area) && is_part(hit)).map(|(area, _)| *area)
    }

    fn agent_at(&self, x: u16, y: u16) -> Option<AgentId> {
        let within = |area: &Rect| area.contains(ratatui::layout::Position { x, y });
        self.areas.iter().rev().filter(|(area, _)| within(area)).find_map(|(_, hit)| match hit {
            Hit::Pane(_, agent) => *agent,
            Hit::Line(agent, _) => Some(*agent),
            _ => None,
        })
    }
}

impl App {
    /// The mouse did something.
    pub fn mouse(&mut self, mouse: Mouse) {
        match mouse.act {
            MouseAct::WheelUp => self.wheel(mouse, -WHEEL),
            MouseAct::WheelDown => self.wheel(mouse, WHEEL),
            MouseAct::Press => {
                self.drag_from = self.hits.part_at(mouse.x, mouse.y).map(|area| (area, (mouse.x, mouse.y)));
                if let Some(hit) = self.hits.at(mouse.x, mouse.y).cloned() {
                    self.clicked(hit, mouse);
                } else if !self.overlays.is_empty() {
                    self.overlays.pop();
                    self.redraw();
                }
            }
            MouseAct::RightPress => {
                if let Some(Hit::Line(agent, index)) = self.hits.at(mouse.x, mouse.y).cloned() {
                    let text = self.transcripts.get(&agent).and_then(|it| it.item(index));
                    if let Some(text) = text.map(crate::transcript::item::plain_text) {
                        self.copy(text);
                    }
                }
            }
            MouseAct::Drag => {
                if let Some((area, from)) = self.drag_from {
                    let to = (
                        mouse.x.clamp(area.left(), area.right() - 1),
                        mouse.y.clamp(area.top(), area.bottom() - 1),
                    );
                    self.selection = Some(Selection { area, from, to, text: String::new() });
                    self.redraw();
                }
            }
            MouseAct::Release => {
                self.drag_from = None;
                if let Some(selection) = self.selection.take() {
                    if !selection.text.trim().is_empty() {
                        self.copy(selection.text);
                    }
                    self.redraw();
                }
            }
            MouseAct::MiddlePress => {}
        }
    }

    fn wheel(&mut self, mouse: Mouse, lines: isize) {
        match self.overlays.last_mut() {
            Some(Overlay::Picker(picker)) => {
                let to = picker.at().saturating_add_signed(lines.signum());
                picker.go(to);
                self.redraw();
            }
            Some(Overlay::Pager(pager)) => {
                pager.step(lines);
                self.redraw();
            }
            Some(Overlay::Inbox(inbox)) => {
                inbox.ask.scroll(lines);
                self.redraw();
            }
            Some(Overlay::Settings(settings)) => {
                settings.step(lines.signum());
                self.redraw();
            }
            Some(_) => {}
            None => match self.hits.at(mouse.x, mouse.y) {
                Some(Hit::Ask | Hit::Button(_)) => {
                    self.ask.scroll(lines);
                    self.damage.panes = true;
                }
                Some(Hit::Row(_)) => {
                    self.row = self.row.saturating_add_signed(lines.signum());
                    self.row = self.row.min(self.rows().len().saturating_sub(1));
                    self.damage.sidebar = true;
                }
                _ => {
                    if let Some(agent) = self.hits.agent_at(mouse.x, mouse.y).or(self.focused()) {
                        self.scroll(agent, lines);
                    }
                }
            },
        }
    }

    fn clicked(&mut self, hit: Hit, mouse: Mouse) {
        match hit {
            Hit::Row(row) => {
                self.row = row;
                match self.rows().get(row).copied() {
                    Some(Row::Workspace(at)) => self.carry_out(Command::Workspace(at)),
                    Some(Row::Agent { id, .. } | Row::Companion { id, .. }) => {
                        self.show(id, mouse.held.alt || mouse.held.control);
                        self.asks_changed();
                    }
                    None => {}
                }
            }
            Hit::Pane(at, _) => self.focus_pane(at),
            Hit::Line(agent, index) => {
                let at = self.arranged().panes.iter().position(|pane| *pane == Some(agent));
                if let Some(at) = at {
                    self.focus_pane(at);
                }
                if let Some(transcript) = self.transcripts.get_mut(&agent) {
                    // A click chooses, a click on what is chosen unfolds it.
                    if transcript.chosen() == Some(index) {
                        transcript.toggle(index);
                    } else {
                        transcript.choose_at(index);
                        self.focus = Focus::Transcript;
                    }
                }
            }
            Hit::Composer => {
                self.focus = Focus::Composer;
                let text = self.composer_place;
                if text.contains(ratatui::layout::Position { x: mouse.x, y: mouse.y }) {
                    let (row, column) = (usize::from(mouse.y - text.y), usize::from(mouse.x - text.x));
                    self.composer_mut().place(text.width.into(), text.height.into(), row, column);
                    self.composer_changed();
                }
            }
            Hit::Ask => self.focus_ask(),
            Hit::Button(action) => {
                let answers = TABLE.iter().any(|it| it.action == action && it.context == Context::Ask);
                if answers && self.overlays.is_empty() && self.focus != Focus::Ask {
                    self.focus_ask();
                }
                self.act(action);
            }
            Hit::Choice(row) => {
                if let Some(Overlay::Picker(picker)) = self.overlays.last_mut()
                    && picker.go(row)
                {
                    self.choose();
                }
            }
            Hit::InboxRow(ask) => self.ask_focus_mut().go(Some(ask)),
            Hit::Completion(at) => {
                if let Some(completion) = &mut self.completion {
                    completion.at = at;
                }
                self.take_completion();
            }
            Hit::Setting(row) => {
                if let Some(Overlay::Settings(settings)) = self.overlays.last_mut() {
                    // A click chooses, a click on what is chosen changes it.
                    let chosen = settings.row == row;
                    settings.row = row;
                    if chosen {
                        self.act(Action::SettingEdit);
                    }
                }
            }
            Hit::Tab(tab) => {
                if let Some(Overlay::Settings(settings)) = self.overlays.last_mut() {
                    settings.go_to(tab);
                }
            }
            Hit::Entry(at, row, x) => {
                if let Some(Overlay::Form(form)) = self.overlays.last_mut() {
                    form.click(at, row, usize::from(mouse.x.saturating_sub(x)));
                }
            }
            Hit::Submit => self.submit_top(),
            Hit::Overlay => {}
        }
        self.redraw();
    }

    fn focus_pane(&mut self, at: usize) {
        self.focus = Focus::Composer;
        if self.arranged().focus != at {
            self.memory.desk.workspace_mut().focus = at;
            self.completion = None;
            self.asks_changed();
            self.follow_row();
            self.screen_changed();
        }
    }
}
