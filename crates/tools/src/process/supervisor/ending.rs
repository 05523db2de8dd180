//! How everything below a supervisor is ended: TERM, the grace, then frozen and killed.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use holdpoint_common::EndedProcesses;
use rustix::process::{Pid, Signal, getpid, kill_process};

use crate::process::{GIVE_UP, counted, tree};

/// How often what was killed is looked at again, should no child's end wake us.
const AGAIN: Duration = Duration::from_millis(5);

/// How often it is tried then.
const NOW_AND_THEN: Duration = Duration::from_secs(1);

/// Where the ending is.
pub(super) struct Ending {
    grace: Duration,
    stage: Stage,
    /// Who was sent TERM.
    told: HashSet<Pid>,
    /// Who was sent KILL.
    killed: HashSet<Pid>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Nothing is ended.
    Not,
    /// All were sent TERM and may go until then.
    Told { until: Instant },
    /// All are sent KILL.
    Killing { since: Instant, next: Instant, told_left: bool },
}

impl Ending {
    pub(super) fn new(grace: Duration) -> Self {
        Self { grace, stage: Stage::Not, told: HashSet::new(), killed: HashSet::new() }
    }

    /// Sends TERM to all, once.
    pub(super) fn begin(&mut self) {
        if self.stage != Stage::Not {
            return;
        }
        self.stage = Stage::Told { until: Instant::now() + self.grace };
        // Again for what was started meanwhile. Parents come first: a shell must not go on to its next
        // command because this one was ended.
        for _ in 0..4 {
            if !self.ask(tree::descendants(getpid())) {
                break;
            }
        }
    }

    /// Does what it is time for. Returns what is to be told if something can't be ended.
    pub(super) fn go_on(&mut self, now: Instant) -> Option<EndedProcesses> {
        match self.stage {
            Stage::Not => None,
            Stage::Told { until } if now < until => {
                // An orphan started after TERM was sent; a child whose parent lives is its parent's affair, as
                // it may be part of how the parent ends.
                let orphans = tree::children(getpid()).unwrap_or_else(|| tree::descendants(getpid()));
                self.ask(orphans.into_iter().filter(|pid| tree::is_alive(*pid)).collect());
                None
            }
            Stage::Told { .. } => {
                self.stage = Stage::Killing { since: now, next: now + AGAIN, told_left: false };
                self.kill();
                None
            }
            Stage::Killing { since, told_left, .. } => {
                self.kill();
                let give_up = now >= since + GIVE_UP;
                let pause = if give_up { NOW_AND_THEN } else { AGAIN };
                self.stage = Stage::Killing { since, next: now + pause, told_left: give_up };
                (give_up && !told_left).then(|| self.counts())
            }
        }
    }

    /// When there is more to do.
    pub(super) fn next(&self) -> Option<Instant> {
        match self.stage {
            Stage::Not => None,
            Stage::Told { until } => Some(until),
            Stage::Killing { next, .. } => Some(next),
        }
    }

    /// What was ended so far, and what lives.
    pub(super) fn counts(&self) -> EndedProcesses {
        counted(&self.told, &self.killed, tree::descendants(getpid()))
    }

    /// Sends TERM to those that were not sent it; true if there were some.
    fn ask(&mut self, found: Vec<Pid>) -> bool {
        let mut fresh = false;
        for pid in found {
            if self.told.insert(pid) {
                fresh = true;
                let _ = kill_process(pid, Signal::TERM);
                // What is stopped gets TERM when it goes on.
                let _ = kill_process(pid, Signal::CONT);
            }
        }
        fresh
    }

    /// Freezes and kills all: who is missed now is met again.
    fn kill(&mut self) {
        for pid in tree::freeze(|| tree::descendants(getpid())) {
            let _ = kill_process(pid, Signal::KILL);
            self.killed.insert(pid);
        }
    }
}
