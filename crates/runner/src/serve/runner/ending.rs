//! The child's life, from waiting for its start to its exit record.
//!
//! A part of the [`Runner`]: what follows what, when, and what ending the process tree takes. The event loop calls
//! [`Runner::advance`] after every event, so a step is taken as soon as its cause is there.

use std::time::Duration;

use rustix::process::Signal;
use tokio::time::Instant;

use super::{Outcome, Runner, SCRATCH};
use crate::process;
use crate::protocol::{Exit, Stop};
use crate::serve::child::Read;
use crate::serve::log;
use crate::spec::{StopLimits, StopStep};

/// How long a runner waits to be told what to start.
pub const START_LIMIT: Duration = Duration::from_secs(10);

/// How long output is awaited from descendants that outlived the child.
const DRAIN_LIMIT: Duration = Duration::from_millis(500);

/// How often SIGKILL is repeated for processes that were started meanwhile.
const KILL_AGAIN: Duration = Duration::from_millis(100);

/// Enough reads to empty the largest pipe there is.
const LAST_READS: usize = 2 * (1 << 20) / SCRATCH;

/// Where the child's life stands.
pub enum Phase {
    /// Waiting to be told what to start.
    Unstarted {
        until: Instant,
    },
    /// The child could not be started.
    StartFailed,
    Running,
    /// The child ended by itself; descendants may still be writing.
    Draining {
        until: Instant,
    },
    /// The tree is asked to end, more firmly with each step.
    Stopping {
        step: StopStep,
        until: Instant,
        limits: StopLimits,
    },
    /// Every process of the tree is being killed.
    Killing {
        until: Instant,
        again: Instant,
    },
    /// No process is left; what they wrote is read to its end.
    Flushing,
    /// The exit record is in the journal, at this offset.
    Ended {
        exit_offset: u64,
    },
}

impl Runner {
    /// When something is due although nothing happens.
    pub fn deadline(&self) -> Option<Instant> {
        let of_phase = match self.phase {
            Phase::Unstarted { until } | Phase::Draining { until } | Phase::Stopping { until, .. } => {
                Some(until)
            }
            Phase::Killing { until, again } => Some(until.min(again)),
            Phase::Running | Phase::Ended { .. } => self.orphaned_at(),
            Phase::StartFailed | Phase::Flushing => None,
        };
        of_phase.into_iter().chain(self.disk_retry).min()
    }

    /// When an absent daemon will have been absent for too long, if none comes and the child stays idle.
    fn orphaned_at(&self) -> Option<Instant> {
        let child = self.child.as_ref().filter(|_| self.connection.is_none())?;
        let absent = self.alone_since.checked_add(self.orphan_after)?;
        match self.phase {
            Phase::Running => Some(absent.max(child.last_activity.checked_add(self.idle_after)?)),
            _ => Some(absent),
        }
    }

    /// Takes every step of the child's life that is due; returns how the runner ends, if it does.
    pub fn advance(&mut self) -> Option<Outcome> {
        let now = Instant::now();
        if self.disk_retry.is_some_and(|at| at <= now) {
            self.store_and_send();
        }
        loop {
            let child = self.child.as_ref();
            let ended = child.is_some_and(|child| child.exit.is_some());
            let tree_gone = child.is_some_and(|child| child.tree_gone);
            let orphaned = self.orphaned_at().is_some_and(|at| at <= now);
            let next = match self.phase {
                Phase::Unstarted { .. } if self.leaving => return Some(Outcome::Done),
                Phase::Unstarted { until } if until <= now => {
                    log(format_args!("nobody said what to start within {} s", START_LIMIT.as_secs()));
                    return Some(Outcome::Done);
                }
                Phase::StartFailed => return Some(Outcome::Done),
                Phase::Running if tree_gone => Phase::Flushing,
                Phase::Running if ended => Phase::Draining { until: now + DRAIN_LIMIT },
                Phase::Running if orphaned => {
                    self.leaving = true;
                    self.stop(Stop::default());
                    continue;
                }
                Phase::Draining { .. } | Phase::Stopping { .. } if tree_gone => Phase::Flushing,
                Phase::Draining { until }
                    if until <= now || child.is_some_and(|child| child.stdout.is_none()) =>
                {
                    self.kill(self.stop_limits)
                }
                Phase::Stopping { step, until, limits } if until <= now || self.nobody_listens() => {
                    self.stop_step(step.next(), limits)
                }
                Phase::Killing { until, .. } if tree_gone || until <= now => {
                    if !tree_gone {
                        log(format_args!("some processes of the child could not be ended"));
                    }
                    Phase::Flushing
                }
                Phase::Killing { until, again } if again <= now => {
                    process::kill_tree();
                    Phase::Killing { until, again: now + KILL_AGAIN }
                }
                Phase::Flushing => match self.finish_output() {
                    Some(exit_offset) => Phase::Ended { exit_offset },
                    None => return None,
                },
                Phase::Ended { exit_offset } if self.confirmed > exit_offset => return Some(Outcome::Done),
                Phase::Ended { .. } if (self.leaving || orphaned) && !self.journal.has_unwritten() => {
                    self.send();
                    return Some(Outcome::Left);
                }
                _ => return None,
            };
            self.phase = next;
        }
    }

    /// Whether asking is in vain: the child is gone and nobody is left in its process group to hear a signal.
    fn nobody_listens(&self) -> bool {
        self.child.as_ref().is_some_and(|child| child.exit.is_some() && process::group_is_empty(child.pid))
    }

    /// Begins to end the tree, or hurries the end that is under way.
    pub fn stop(&mut self, stop: Stop) {
        let limits = stop.limits.unwrap_or(self.stop_limits);
        match self.phase {
            Phase::Unstarted { .. } => self.leaving = true,
            Phase::Running | Phase::Draining { .. } => {
                let step = match (stop.protocol_stop, &mut self.child) {
                    // A child without stdin hears neither of the steps that use it.
                    (_, Some(child)) if child.stdin.is_none() => StopStep::Interrupt,
                    (Some(bytes), Some(child)) => {
                        child.give_stop(bytes, &mut self.scratch);
                        StopStep::Protocol
                    }
                    _ => StopStep::Stdin,
                };
                self.phase = self.stop_step(step, limits);
            }
            Phase::Stopping { step, until, .. } => {
                let until = until.min(later(Instant::now(), limits.of(step)));
                self.phase = Phase::Stopping { step, until, limits };
            }
            Phase::StartFailed | Phase::Killing { .. } | Phase::Flushing | Phase::Ended { .. } => {}
        }
    }

    /// Does what a step of a stop does, or the first one after it that has time to do anything.
    fn stop_step(&mut self, mut step: StopStep, limits: StopLimits) -> Phase {
        while step < StopStep::Kill && limits.of(step).is_zero() {
            step = step.next();
        }
        let Some(child) = &mut self.child else { return Phase::Flushing };
        if step > StopStep::Protocol {
            child.close_stdin();
        }
        let heard = match step {
            StopStep::Protocol | StopStep::Stdin => true,
            StopStep::Interrupt => process::signal_group(child.pid, Signal::INT),
            StopStep::Terminate => process::signal_group(child.pid, Signal::TERM),
            StopStep::Kill => false,
        };
        if heard {
            Phase::Stopping { step, until: later(Instant::now(), limits.of(step)), limits }
        } else {
            self.kill(limits)
        }
    }

    fn kill(&mut self, limits: StopLimits) -> Phase {
        if let Some(child) = &mut self.child {
            child.close_stdin();
        }
        process::kill_tree();
        let now = Instant::now();
        // Even a limit of zero leaves the kernel a moment, else no exit would ever be seen.
        let limit = limits.of(StopStep::Kill).max(KILL_AGAIN);
        Phase::Killing { until: later(now, limit), again: now + KILL_AGAIN }
    }

    pub fn reap(&mut self) {
        let Some(child) = &mut self.child else { return };
        let reaped = process::reap(child.pid);
        child.exit = child.exit.or(reaped.exit);
        child.tree_gone = reaped.tree_gone;
        if let Phase::Killing { until, .. } = self.phase
            && !reaped.tree_gone
        {
            // A death may have brought orphans to light that nobody has signalled yet.
            process::kill_tree();
            self.phase = Phase::Killing { until, again: Instant::now() + KILL_AGAIN };
        }
    }

    /// With all processes gone, journals what is left in the pipes and then the exit; `None` while the disk refuses.
    fn finish_output(&mut self) -> Option<u64> {
        if self.journal.has_unwritten() {
            return None;
        }
        for _ in 0..LAST_READS {
            let child = self.child.as_mut()?;
            if !matches!(child.read_stdout(&mut self.journal, &mut self.scratch), Read::Some(_)) {
                break;
            }
            self.store_and_send();
            if self.journal.has_unwritten() {
                return None;
            }
        }
        let child = self.child.as_mut()?;
        // Nobody of the tree can write any more, even if a stranger was given the pipe.
        child.end_stdout(&mut self.journal);
        child.read_stderr(&mut self.scratch);
        child.stderr = None;
        child.close_stdin();
        let exit_offset = self.journal.append_exit(child.exit.unwrap_or(Exit::Unknown));
        self.store_and_send();
        self.journal.release_buffers();
        Some(exit_offset)
    }
}

/// A point in time that may be too far away to be counted.
fn later(now: Instant, duration: Duration) -> Instant {
    const FAR: Duration = Duration::from_secs(60 * 60 * 24 * 365);
    now + duration.min(FAR)
}
