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
use crate::context::{Bounds, Counter};
use crate::saved::read_facts;
use crate::state::{Conversation, UnreadPart};
use crate::store::StoreError;
use crate::turn::count_ahead;

/// The time between an attach and the preparation of a request. In this time, the client reads from
/// the log itself.
const PREPARE_AFTER: Duration = Duration::from_millis(50);

/// The reading of a conversation.
#[derive(Default)]
pub(super) struct ConversationReads {
    /// Whether the log is being read.
    reading: bool,
    waiting: Option<WaitingRunner>,
    counting: CountingAhead,
}

/// The count of tokens before the first turn.
#[derive(Default)]
enum CountingAhead {
    #[default]
    NotBegun,
    Begun,
    Ended(Option<Counter>),
}

impl ConversationReads {
    /// The tokens that were counted ahead. From now on, runners count.
    pub(super) fn take_counter(&mut self) -> Option<Counter> {
        match std::mem::replace(&mut self.counting, CountingAhead::Ended(None)) {
            CountingAhead::Ended(counter) => counter,
            CountingAhead::NotBegun | CountingAhead::Begun => None,
        }
    }
}

/// A runner that waits for older facts.
struct WaitingRunner {
    /// How many bytes of the newest facts it needs.
    bytes: u64,
    answer_to: oneshot::Sender<Result<Conversation, StoreError>>,
}

impl SessionActor {
    /// Prepares for the next request, which may come soon after an attach. The vocabulary that counts
    /// tokens is loaded at once, if it will be needed.
    pub(super) fn expect_request(&mut self, ctx: &mut Context<Self>) {
        let Some(bounds) = self.env.bounds() else { return };
        self.env.tokenizer.load_if_near(&bounds, self.request_bytes(), &self.env.runtime);
        if self.lacks(bounds.newest_bytes()) || self.should_count(&bounds) {
            ctx.run_later(PREPARE_AFTER, Self::prepare_request);
        }
    }

    /// Reads a part that the next request probably needs, and then counts its tokens. Only the request
    /// itself reads more: this client may just watch.
    fn prepare_request(&mut self, ctx: &mut Context<Self>) {
        let Some(bounds) = self.env.bounds().filter(|_| self.clients.len() > 0) else { return };
        let bytes = bounds.newest_bytes();
        match self.lacks(bytes) {
            true => self.read_part(bytes, ctx),
            false => self.count_if_read(ctx),
        }
    }

    /// Counts the tokens of the next request ahead, if its facts were read.
    fn count_if_read(&mut self, ctx: &mut Context<Self>) {
        let Some(bounds) = self.env.bounds().filter(|_| self.clients.len() > 0) else { return };
        if !self.lacks(bounds.newest_bytes()) && self.should_count(&bounds) {
            self.count_ahead(ctx);
        }
    }

    fn should_count(&self, bounds: &Bounds) -> bool {
        matches!(self.conversation.counting, CountingAhead::NotBegun)
            && bounds.are_near(self.request_bytes())
    }

    /// About how many bytes the next request has.
    fn request_bytes(&self) -> u64 {
        self.env.fixed_bytes + self.state.request_bytes()
    }

    /// Counts the tokens of the newest facts, after those of other sessions, so that all sessions
    /// together use one thread for it.
    fn count_ahead(&mut self, ctx: &mut Context<Self>) {
        self.conversation.counting = CountingAhead::Begun;
        let permit = Arc::clone(&self.env.tokenizer.ahead).acquire_owned();
        let counting = permit.into_actor(self).then(|permit, actor, _| {
            let env = Arc::clone(&actor.env);
            // A runner may have begun to count.
            let is_needed = matches!(actor.conversation.counting, CountingAhead::Begun);
            let conversation = is_needed.then(|| actor.state.history());
            let counted = actor.env.runtime.spawn_blocking(move || {
                let _permit = permit;
                count_ahead(conversation?, &env)
            });
            counted.into_actor(actor)
        });
        ctx.spawn(counting.map(|counter, actor, _| {
            if let CountingAhead::Begun = actor.conversation.counting {
                actor.conversation.counting = CountingAhead::Ended(counter.ok().flatten());
            }
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
                self.count_if_read(ctx);
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
