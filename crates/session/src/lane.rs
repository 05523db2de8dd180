//! The lane: the one ordered, bounded way from a turn's runner and its tools to the session's actor.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError, TryLockError};

use holdpoint_common::limits::OUTPUT_DELTA;
use holdpoint_common::{AskRequest, CallId, Delta, Kept};
use holdpoint_tools::{Sink, Toolbox};
use tokio::sync::{mpsc, oneshot};

use crate::state::{Conversation, Gate, Report};

/// Messages of one turn that wait for the actor. Who sends one more, waits.
pub(crate) const LANE: usize = 256;

/// What a runner or a tool tells the actor. In the order it was sent, the turn's end included.
pub(crate) enum Lane {
    /// A piece of text, thought or output.
    Delta(Delta),
    /// Something ended.
    Report(Report),
    /// The runner wants to begin something, and waits for the answer.
    Gate(Gate, oneshot::Sender<Passage>),
    /// The tools, handed back by a runner that is done with them.
    Tools(Toolbox),
}

/// Names a runner that waits at a gate.
pub(crate) type GateKey = u64;

/// What a runner is told at a gate.
pub(crate) enum Passage {
    /// Begin the step. With the conversation as it stands.
    Step(Conversation),
    /// Begin the call.
    Call {
        /// What the user was shown of it and has approved, if they were asked.
        approved: Option<AskRequest>,
    },
    /// The user said no to the call; the reason is for the model.
    Denied(String),
    /// The turn has taken what it may, and ends; what that is.
    Limit(String),
    /// Begin nothing any more.
    Cut,
}

/// Where one call's output goes: to the actor as it comes, and into what is kept of it.
pub(crate) struct LaneSink {
    call: CallId,
    lane: mpsc::Sender<Lane>,
    // Shared between the call's thread and its runner: `None` once the runner has closed it.
    kept: Mutex<Option<Kept>>,
    /// It is being ended: its thread sends no other piece.
    closing: AtomicBool,
    /// Pieces sent so far.
    pieces: AtomicU64,
}

impl LaneSink {
    pub(crate) fn new(call: CallId, lane: mpsc::Sender<Lane>) -> Self {
        Self {
            call,
            lane,
            kept: Mutex::new(Some(Kept::default())),
            closing: AtomicBool::new(false),
            pieces: AtomicU64::new(0),
        }
    }

    /// Ends it: what the call's thread still sends is dropped. Returns what is kept.
    pub(crate) async fn close(&self) -> Kept {
        self.closing.store(true, Ordering::Relaxed);
        loop {
            if let Some(kept) = self.try_close() {
                return kept.finish();
            }
            // The call's thread waits for its place in the lane, which the actor makes: never for long.
            tokio::task::yield_now().await;
        }
    }

    /// Ends it, unless its thread is sending.
    fn try_close(&self) -> Option<Kept> {
        match self.kept.try_lock() {
            Ok(mut kept) => Some(kept.take().unwrap_or_default()),
            Err(TryLockError::Poisoned(kept)) => Some(kept.into_inner().take().unwrap_or_default()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

impl Sink for LaneSink {
    fn output(&self, text: &str) {
        let mut rest = text;
        while !rest.is_empty() && !self.closing.load(Ordering::Relaxed) {
            let (piece, later) = rest.split_at(rest.floor_char_boundary(OUTPUT_DELTA));
            // Held while sending, so that what is kept is what was sent.
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(open) = kept.as_mut() else { return };
            let delta = Delta::Output { item: self.call.item(), text: piece.to_owned() };
            if self.lane.blocking_send(Lane::Delta(delta)).is_err() {
                return;
            }
            self.pieces.fetch_add(1, Ordering::Relaxed);
            open.push(piece);
            rest = later;
        }
    }

    fn pieces(&self) -> u64 {
        self.pieces.load(Ordering::Relaxed)
    }
}
