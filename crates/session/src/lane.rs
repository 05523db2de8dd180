//! The lane: the ordered, bounded channel from a turn's runner and its tools to the session's
//! actor.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, TryLockError};

use holdpoint_common::limits::MAX_OUTPUT_DELTA;
use holdpoint_common::{AskRequest, CallId, Delta, HeadAndTail};
use holdpoint_tools::{Sink, ToolAsk};
use tokio::sync::{mpsc, oneshot};

use crate::state::{Conversation, Gate, Report};
use crate::store::StoreError;
use crate::turn::Kept;

/// How many messages of one turn wait for the actor before senders wait.
pub(crate) const LANE_CAPACITY: usize = 256;

/// A message from a runner or a tool to the actor. The actor gets the messages in the order in
/// which they were sent, the turn's end included.
pub(crate) enum LaneMessage {
    /// A piece of text, thought or output.
    Delta(Delta),
    /// The end of an answer, a call, a step or the turn.
    Report(Report),
    /// The runner wants to begin a step or a call, and waits for the answer.
    Gate(Gate, oneshot::Sender<GateAnswer>),
    /// The runner needs this many bytes of the newest facts of the conversation, and waits for them.
    ReadOlder(u64, oneshot::Sender<Result<Conversation, StoreError>>),
    /// The parts that the next runner uses again, handed back by the runner at its end.
    Kept(Kept),
    /// An ask of a tool. It reaches the actor as a message, and the actor puts it at the end of the
    /// lane: it is raised after everything that its call has sent before.
    Ask(ToolAsk),
}

/// Identifies a runner that waits at a gate.
pub(crate) type GateKey = u64;

/// The actor's answer at a gate.
pub(crate) enum GateAnswer {
    /// Begin the step with this conversation.
    Step(Conversation),
    /// Begin the call.
    Call {
        /// The Confirm that the user has approved, if there was one, and whether with *always*.
        approved: Option<(AskRequest, bool)>,
    },
    /// The call is denied, for a reason that the model gets.
    Denied(String),
    /// The turn has reached a limit and ends, for this reason.
    Limit(String),
    /// Begin no more work.
    Cut,
}

/// The sink of one call. It sends the output to the actor at once, and keeps part of it for the
/// result.
pub(crate) struct LaneSink {
    call: CallId,
    lane: mpsc::Sender<LaneMessage>,
    // Shared by the call's thread and its runner. `None` once the runner has closed the sink.
    kept: Mutex<Option<HeadAndTail>>,
    /// Set when the sink is being closed, so that the call's thread sends no more pieces.
    closing: AtomicBool,
}

impl LaneSink {
    pub(crate) fn new(call: CallId, lane: mpsc::Sender<LaneMessage>) -> Self {
        Self {
            call,
            lane,
            kept: Mutex::new(Some(HeadAndTail::default())),
            closing: AtomicBool::new(false),
        }
    }

    /// Closes the sink and returns the kept output. Later output of the call's thread is dropped.
    pub(crate) async fn close(&self) -> HeadAndTail {
        self.closing.store(true, Ordering::Relaxed);
        loop {
            if let Some(kept) = self.try_close() {
                return kept.finish();
            }
            // The call's thread waits for space in the lane, which the actor soon makes.
            tokio::task::yield_now().await;
        }
    }

    /// Closes the sink, unless the call's thread is sending.
    fn try_close(&self) -> Option<HeadAndTail> {
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
            let (piece, later) = rest.split_at(rest.floor_char_boundary(MAX_OUTPUT_DELTA));
            // Locked while sending, so that the kept output is the sent output.
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(open) = kept.as_mut() else { return };
            let delta = Delta::Output { item: self.call.item(), text: piece.to_owned() };
            if self.lane.blocking_send(LaneMessage::Delta(delta)).is_err() {
                return;
            }
            open.push(piece);
            rest = later;
        }
    }
}
