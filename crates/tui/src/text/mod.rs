//! Text on the screen: from what agents and people wrote to styled lines that fit a width.
//!
//! Everything here is a pure function of its arguments; nothing knows about agents, panes or the terminal. What is laid
//! out when, and how long it is kept, is the views' business.
//!
//! Invariant: a line that comes out of this module holds no control character, no invisible one, and is never wider than
//! it was asked to be, whatever went in. [`clean`] sees to the first, [`width`] and [`wrap`] to the second.

pub mod clean;
pub mod diff;
pub mod fuzzy;
pub mod highlight;
pub mod markdown;
pub mod picture;
pub mod theme;
pub mod width;
pub mod wrap;

#[cfg(test)]
mod testing;
