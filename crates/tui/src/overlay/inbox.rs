//! Everything that agents ask, in one list.

use crate::app::AskFocus;

/// The inbox.
#[derive(Default)]
pub struct Inbox {
    /// The ask that has the keyboard.
    pub ask: AskFocus,
}
