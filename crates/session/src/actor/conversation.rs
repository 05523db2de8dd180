//! Reading the conversation of a restored session from its log, before its first turn.
//!
//! A session that was opened from its saved state can be attached to, listed and answered without
//! its conversation. The runner of its first turn waits for it. If it can't be read, the turn fails,
//! and the next one tries again.

use std::sync::Arc;

use actix::prelude::*;
use holdpoint_common::{Event, TurnId};

use super::SessionActor;
use crate::saved::read_facts;
use crate::state::Phase;
use crate::store::StoreError;

/// The reading of a conversation.
#[derive(Default)]
pub(super) struct ConversationReads {
    /// Whether the log is being read.
    reading: bool,
    /// The turn whose runner waits for the conversation.
    pub(super) waiting: Option<TurnId>,
}

impl SessionActor {
    /// Starts the runner of this turn, once the conversation is read. A turn that was cut does not
    /// need it.
    pub(super) fn start_runner(&mut self, turn: TurnId, ctx: &mut Context<Self>) {
        let is_cut = matches!(self.state.phase(), Phase::Interrupting(..));
        if is_cut || self.state.unread().is_none() {
            self.conversation.waiting = None;
            return self.start_runner_now(turn, ctx);
        }
        self.conversation.waiting = Some(turn);
        if !std::mem::replace(&mut self.conversation.reading, true) {
            self.read_conversation(ctx);
        }
    }

    /// Starts the runner that waits for the conversation, if its turn was cut.
    pub(super) fn start_cut_runner(&mut self, ctx: &mut Context<Self>) {
        if let (Some(turn), Phase::Interrupting(..)) =
            (self.conversation.waiting, self.state.phase())
        {
            self.start_runner(turn, ctx);
        }
    }

    fn read_conversation(&mut self, ctx: &mut Context<Self>) {
        let (log, unread) = (Arc::clone(&self.log), self.state.unread().unwrap_or_default());
        let reading = async move { read_facts(&*log, &unread).await };
        ctx.spawn(
            reading.into_actor(self).map(|read, actor, ctx| actor.conversation_read(read, ctx)),
        );
    }

    fn conversation_read(
        &mut self,
        read: Result<Vec<Arc<Event>>, StoreError>,
        ctx: &mut Context<Self>,
    ) {
        self.conversation.reading = false;
        let waiting = self.conversation.waiting;
        match (read, waiting) {
            (Ok(facts), _) => {
                self.state.read(&facts);
                waiting.into_iter().for_each(|turn| self.start_when_allowed(turn, ctx));
            }
            (Err(error), Some(turn)) => self.fail_turn(
                turn,
                format!("the conversation can't be read: {error} (hint: prompt again)"),
                ctx,
            ),
            (Err(_), None) => {}
        }
    }
}
