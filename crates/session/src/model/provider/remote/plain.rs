//! The short way for the plain pieces of an answer.
//!
//! rig-core reads each frame three times as a JSON tree and keeps all text twice: 13 µs of CPU a delta of one token,
//! where the short way takes 2 µs, HTTP included. So frames that hold text or thought and nothing else are taken out
//! before rig sees them; all others go its careful way, and order is kept because a frame is only read once what came
//! before it was taken.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holdpoint_common::limits::TEXT_DELTA;
use rig_core::wire::WireFrame;

use crate::model::ModelEvent;

/// What an answer and its frames know of each other.
#[derive(Clone, Default)]
pub(super) struct Plain(Arc<Mutex<Pieces>>);

#[derive(Default)]
struct Pieces {
    /// Text and thought that went the short way and were not taken yet: at most two pieces and one frame.
    ready: VecDeque<ModelEvent>,
    /// Bytes that went the long way since something last came of it: rig may keep them, as it does the arguments of
    /// a call that has no name yet.
    unheard: usize,
}

impl Plain {
    fn lock(&self) -> MutexGuard<'_, Pieces> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A frame goes the long way. How many bytes did so since something last came of it.
    pub(super) fn unheard(&self, frame: &WireFrame) -> usize {
        let mut pieces = self.lock();
        pieces.unheard += frame.as_str().len();
        pieces.unheard
    }

    /// Something came of a frame that went the long way.
    pub(super) fn heard(&self) {
        self.lock().unheard = 0;
    }

    /// Bytes of all pieces.
    pub(super) fn bytes(&self) -> usize {
        self.lock().ready.iter().map(ModelEvent::bytes).sum()
    }

    /// Takes the oldest piece.
    pub(super) fn pop(&self) -> Option<ModelEvent> {
        self.lock().ready.pop_front()
    }

    /// Adds the pieces of a frame.
    pub(super) fn add(&self, more: Vec<ModelEvent>) {
        let pieces = &mut self.lock().ready;
        for piece in more {
            match (pieces.back_mut(), piece) {
                (Some(ModelEvent::Text(text)), ModelEvent::Text(more))
                | (Some(ModelEvent::Thought(text)), ModelEvent::Thought(more)) => text.push_str(&more),
                (_, piece) => pieces.push_back(piece),
            }
        }
    }

    /// Whether it is time to hand over what there is.
    pub(super) fn is_full(&self) -> bool {
        let pieces = &self.lock().ready;
        match (pieces.len(), pieces.back()) {
            (0, _) => false,
            (1, Some(piece)) => piece.bytes() >= TEXT_DELTA,
            _ => true,
        }
    }
}
