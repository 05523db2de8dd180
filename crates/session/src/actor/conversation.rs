//! Reading the older facts of a conversation from the log, and preparing for the next request.
//!
//! A session that was opened from its saved state has no conversation. It can be attached to, listed
//! and answered without it. A request needs only the newest facts. They are read ahead when a client
//! attaches, and the runner asks for those that it lacks. The tokens of a long conversation are
//! counted ahead, too.

use std::sync::Arc;
use std::time::Duration;

use actix::prelude::*;
use holdpoint_common::Event;
use tokio::sync::oneshot;

use super::SessionActor;
use crate::context::Counter;
use crate::saved::read_facts;
use crate::state::{Conversation, UnreadPart};
use crate::store::StoreError;
use crate::turn;

/// The time between an attach and reading ahead. In this time, the client reads from the log itself.
const READ_AHEAD_AFTER: Duration = Duration::from_millis(50);

/// The reading of a conversation.
#[derive(Default)]
pub(super) struct ConversationReads {
    /// Whether the log is being read.
    reading: bool,
    waiting: Option<WaitingRunner>,
    /// Whether tokens were counted ahead, or are being counted.
    counted: bool,
    /// The counts, for the next runner.
    counter: Option<Counter>,
}

impl ConversationReads {
    /// The tokens that were counted ahead. From now on, runners count.
    pub(super) fn take_counter(&mut self) -> Option<Counter> {
        self.counted = true;
        self.counter.take()
    }
}

/// A runner that waits for older facts.
struct WaitingRunner {
    /// How many bytes of the newest facts it needs.
    bytes: u64,
    answer_to: oneshot::Sender<Result<Conversation, StoreError>>,
}

impl SessionActor {
    /// Prepares for the next request, which may come soon: loads the vocabulary that counts tokens, reads
    /// the part of the conversation that the request probably needs, and counts its tokens.
    pub(super) fn prepare_request(&mut self, ctx: &mut Context<Self>) {
        let Some(bounds) = self.env.bounds() else { return };
        let expected = self.env.fixed_bytes + self.state.request_bytes();
        self.env.tokenizer.load_if_near(&bounds, expected, &self.env.runtime);
        let to_count = bounds.are_near(expected) && !self.conversation.counted;
        let bytes = bounds.newest_bytes();
        if to_count || self.lacks(bytes) {
            ctx.run_later(READ_AHEAD_AFTER, move |actor, ctx| {
                if actor.clients.len() == 0 {
                    return;
                }
                match actor.lacks(bytes) {
                    true => actor.read_part(bytes, ctx),
                    false => actor.count_ahead(ctx),
                }
            });
        }
    }

    /// Counts the tokens of the newest facts, unless a runner has.
    fn count_ahead(&mut self, ctx: &mut Context<Self>) {
        if std::mem::replace(&mut self.conversation.counted, true) {
            return;
        }
        let (conversation, env) = (self.state.history(), Arc::clone(&self.env));
        let counted =
            self.env.runtime.spawn_blocking(move || turn::count_ahead(&conversation, &env));
        ctx.spawn(counted.into_actor(self).map(|counter, actor, _| {
            actor.conversation.counter = counter.ok().flatten();
        }));
    }

    /// Reads this many bytes of the newest facts for a runner.
    pub(super) fn read_for_runner(
        &mut self,
        bytes: u64,
        answer_to: oneshot::Sender<Result<Conversation, StoreError>>,
        ctx: &mut Context<Self>,
    ) {
        self.conversation.waiting = Some(WaitingRunner { bytes, answer_to });
        self.read_for_waiting(ctx);
    }

    /// Drops the request of a runner that has ended.
    pub(super) fn forget_waiting_runner(&mut self) {
        self.conversation.waiting = None;
    }

    /// Reads a conversation that has to be cut to its bound. Nothing waits for it.
    pub(super) fn read_if_too_large(&mut self, ctx: &mut Context<Self>) {
        if self.state.is_too_large_to_stay_unread() {
            self.read_part(u64::MAX, ctx);
        }
    }

    /// Whether older facts have to be read for a request of this many bytes.
    fn lacks(&self, bytes: u64) -> bool {
        let conversation = self.state.history();
        conversation.has_unread() && conversation.start_of_newest(bytes).is_none()
    }

    /// Answers the waiting runner, or reads another part for it.
    fn read_for_waiting(&mut self, ctx: &mut Context<Self>) {
        let Some(waiting) = &self.conversation.waiting else { return };
        let bytes = waiting.bytes;
        if self.lacks(bytes) {
            self.read_part(bytes, ctx);
        } else if let Some(WaitingRunner { answer_to, .. }) = self.conversation.waiting.take() {
            // The runner may be gone.
            let _ = answer_to.send(Ok(self.state.history()));
        }
    }

    /// Reads a part of this many bytes, unless one is being read.
    fn read_part(&mut self, bytes: u64, ctx: &mut Context<Self>) {
        let Some(part) = self.state.unread(bytes) else { return };
        if std::mem::replace(&mut self.conversation.reading, true) {
            return;
        }
        let log = Arc::clone(&self.log);
        let reading = async move {
            let read = read_facts(&*log, part.seqs()).await;
            (part, read)
        };
        ctx.spawn(
            reading
                .into_actor(self)
                .map(|(part, read), actor, ctx| actor.part_read(&part, read, ctx)),
        );
    }

    fn part_read(
        &mut self,
        part: &UnreadPart,
        read: Result<Vec<Arc<Event>>, StoreError>,
        ctx: &mut Context<Self>,
    ) {
        self.conversation.reading = false;
        match read {
            Ok(facts) => {
                self.state.read(part, &facts);
                self.show_gaps();
                self.read_for_waiting(ctx);
                self.count_ahead(ctx);
            }
            Err(error) => {
                tracing::warn!(%error, "the conversation can't be read");
                // Memory is bounded, even if the log can never be read.
                if self.state.is_too_large_to_stay_unread() {
                    self.state.drop_unread();
                    return self.read_for_waiting(ctx);
                }
                if let Some(WaitingRunner { answer_to, .. }) = self.conversation.waiting.take() {
                    let _ = answer_to.send(Err(error));
                }
            }
        }
    }

    /// Shows the gaps that were found.
    fn show_gaps(&self) {
        let gaps = self.state.gaps();
        self.shown.send_if_modified(|shown| {
            let is_new = shown.gaps != *gaps;
            if is_new {
                Arc::make_mut(shown).gaps = gaps.clone();
            }
            is_new
        });
    }
}
