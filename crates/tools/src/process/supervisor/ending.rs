//! Ends everything below a supervisor: TERM, then the grace, then freeze and KILL.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use holdpoint_common::EndedProcesses;
use rustix::process::{Pid, Signal, getpid, kill_process};

use crate::process::{GIVE_UP, end_counts, tree};

/// How often killed processes are checked, in case no child's end wakes the supervisor.
const RECHECK_INTERVAL: Duration = Duration::from_millis(5);

/// How often killing is repeated after the supervisor has given up.
const KILL_RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// The progress of the ending.
pub(super) struct Ending {
    grace: Duration,
    /// The process of bubblewrap that the supervisor has started, if the program has a sandbox.
    bwrap: Option<Pid>,
    stage: Stage,
    /// The processes that were sent TERM.
    sent_term: HashSet<Pid>,
    /// The processes that were sent KILL.
    killed: HashSet<Pid>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Ending has not begun.
    NotStarted,
    /// All processes were sent TERM and have until `until` to end.
    Terminating { until: Instant },
    /// All processes are being sent KILL. `reported_left` is set once those that still live were
    /// reported.
    Killing { since: Instant, next: Instant, reported_left: bool },
}

impl Ending {
    pub(super) fn new(grace: Duration, bwrap: Option<Pid>) -> Self {
        Self {
            grace,
            bwrap,
            stage: Stage::NotStarted,
            sent_term: HashSet::new(),
            killed: HashSet::new(),
        }
    }

    /// Starts the ending, if it has not started: sends TERM to every process below the supervisor.
    pub(super) fn begin(&mut self) {
        if self.stage != Stage::NotStarted {
            return;
        }
        self.stage = Stage::Terminating { until: Instant::now() + self.grace };
        // The program of a sandbox has not started, or has ended.
        if self.bwrap.is_some() && self.orphans().is_some_and(|found| found.is_empty()) {
            self.kill();
            return;
        }
        // Repeated for processes that were started meanwhile. Parents come first: a shell must not
        // continue with its next command because the current one was ended.
        for _ in 0..4 {
            if !self.send_term(tree::descendants(getpid())) {
                break;
            }
        }
    }

    /// Does the work of the current stage. May be called at any time, and must be called when
    /// `next_due` is reached. Returns the counts to report if a process can't be ended.
    pub(super) fn step(&mut self, now: Instant) -> Option<EndedProcesses> {
        match self.stage {
            Stage::NotStarted => None,
            Stage::Terminating { until } if now < until => {
                // An orphan may have been started after TERM was sent. A child with a living parent
                // is left to it, because the child may be part of how the parent ends. On a kernel
                // that does not list children, all descendants get TERM.
                let found = self.orphans().unwrap_or_else(|| tree::descendants(getpid()));
                self.send_term(found.into_iter().filter(|pid| tree::is_alive(*pid)).collect());
                None
            }
            Stage::Terminating { .. } => {
                self.stage = Stage::Killing {
                    since: now,
                    next: now + RECHECK_INTERVAL,
                    reported_left: false,
                };
                self.kill();
                None
            }
            Stage::Killing { since, reported_left, .. } => {
                self.kill();
                let give_up = now >= since + GIVE_UP;
                let pause = if give_up { KILL_RETRY_INTERVAL } else { RECHECK_INTERVAL };
                self.stage = Stage::Killing { since, next: now + pause, reported_left: give_up };
                (give_up && !reported_left).then(|| self.counts())
            }
        }
    }

    /// When the next step is due.
    pub(super) fn next_due(&self) -> Option<Instant> {
        match self.stage {
            Stage::NotStarted => None,
            Stage::Terminating { until } => Some(until),
            Stage::Killing { next, .. } => Some(next),
        }
    }

    /// The processes that were ended so far, and those that live.
    pub(super) fn counts(&self) -> EndedProcesses {
        let mut living = tree::descendants(getpid());
        self.remove_wrappers(&mut living);
        end_counts(&self.sent_term, &self.killed, living)
    }

    /// The processes of bubblewrap, which are not the program's: the one that waits for the end of
    /// the program, and its child, which is process 1 in the sandbox. They end by themselves, after
    /// the program and all of its processes. If process 1 is killed, the kernel kills all others in
    /// the sandbox.
    fn wrappers(&self) -> Vec<Pid> {
        let Some(bwrap) = self.bwrap else { return Vec::new() };
        // When the first has ended, the second is a child of the supervisor. In this order it is found
        // even if that happens in between.
        [bwrap, getpid()].into_iter().filter_map(tree::children).flatten().collect()
    }

    /// The program, if it lives, and the processes that have lost their parents: the children of the
    /// supervisor, or of process 1 in a sandbox. `None` if this kernel does not list children.
    fn orphans(&self) -> Option<Vec<Pid>> {
        if self.bwrap.is_none() {
            return tree::children(getpid());
        }
        let wrappers = self.wrappers();
        let children = wrappers.iter().map(|wrapper| tree::children(*wrapper));
        let children = children.collect::<Option<Vec<_>>>()?.into_iter().flatten();
        Some(children.filter(|pid| !wrappers.contains(pid)).collect())
    }

    fn remove_wrappers(&self, found: &mut Vec<Pid>) {
        let wrappers = self.wrappers();
        found.retain(|pid| !wrappers.contains(pid));
    }

    /// Sends TERM to the processes that have not received it. Returns true if there were any.
    fn send_term(&mut self, mut found: Vec<Pid>) -> bool {
        self.remove_wrappers(&mut found);
        let mut found_new = false;
        for pid in found {
            if self.sent_term.insert(pid) {
                found_new = true;
                let _ = kill_process(pid, Signal::TERM);
                // A stopped process receives TERM when it continues.
                let _ = kill_process(pid, Signal::CONT);
            }
        }
        found_new
    }

    /// Freezes and kills all processes. The next call finds those that this one misses.
    fn kill(&mut self) {
        let frozen = tree::freeze(|| tree::descendants(getpid()));
        let mut counted = frozen.iter().copied().collect();
        self.remove_wrappers(&mut counted);
        self.killed.extend(counted);
        for pid in frozen {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}
