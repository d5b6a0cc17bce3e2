//! When the next frame may be drawn: at most 60 a second, and what a person waits for before anything else.
//!
//! Text that streams is drawn 30 times a second, which leaves room for frames between: a key that comes then need not wait for
//! the next one. A few may follow each other at once, as when the screen opens.

use std::time::{Duration, Instant};

/// Frames for a person that may follow each other at once; the time between is kept on their average.
const BURST: usize = 4;

/// The least time between two frames.
const FRAME: Duration = Duration::from_micros(16_600);

/// The least time between two frames that nobody waits for: text that streams.
const SLOW_FRAME: Duration = Duration::from_millis(33);

/// What a frame is drawn for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// A person did something.
    Person,
    /// Something else than text changed.
    Change,
    /// Text arrived, or a spinner turned.
    Text,
}

/// When the last frames were drawn, the latest first.
#[derive(Clone, Copy, Default, Debug)]
pub struct Pace([Option<Instant>; BURST]);

impl Pace {
    /// When a frame may be drawn; at once, where no time is given.
    pub fn due(self, cause: Cause) -> Option<Instant> {
        let Self([last, .., first]) = self;
        match cause {
            Cause::Person => first.map(|first| first + BURST as u32 * FRAME),
            Cause::Change => last.map(|last| last + FRAME),
            Cause::Text => last.map(|last| last + SLOW_FRAME),
        }
    }

    /// A frame was drawn.
    pub fn drawn(&mut self, now: Instant) {
        self.0.rotate_right(1);
        self.0[0] = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_between_two_frames_of_a_stream_is_drawn_at_once() {
        let start = Instant::now();
        let mut pace = Pace::default();
        assert_eq!(pace.due(Cause::Text), None);
        for n in 0..BURST as u32 {
            pace.drawn(start + n * SLOW_FRAME);
        }
        let key = start + (BURST as u32 - 1) * SLOW_FRAME + Duration::from_millis(1);
        assert!(pace.due(Cause::Person).unwrap() <= key);
        assert!(pace.due(Cause::Change).unwrap() > key);
        for _ in 0..BURST {
            pace.drawn(key);
        }
        assert!(pace.due(Cause::Person).unwrap() > key, "after a few, the next one has to wait");
    }

    #[test]
    fn whatever_happens_there_are_at_most_60_frames_a_second() {
        for causes in
            [[Cause::Person, Cause::Person], [Cause::Person, Cause::Change], [Cause::Person, Cause::Text]]
        {
            let start = Instant::now();
            let (mut pace, mut now) = (Pace::default(), start);
            let mut frames = 0;
            for cause in causes.into_iter().cycle() {
                now = pace.due(cause).map_or(now, |due| due.max(now));
                if now >= start + Duration::from_secs(1) {
                    break;
                }
                pace.drawn(now);
                frames += 1;
            }
            assert!(frames <= 60 + BURST, "{frames} with {causes:?}");
        }
    }
}
