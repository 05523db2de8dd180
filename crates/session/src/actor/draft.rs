//! The draft: the saved part of an answer that is still streaming. A draft is not a fact, and the
//! answer replaces it.

use std::sync::Arc;

use actix::prelude::*;
use holdpoint_common::limits::DRAFT_EVERY;
use holdpoint_common::{Body, Delta, Event};

use super::SessionActor;
use crate::store::StoreError;

/// The unsaved pieces of the answer that is streaming.
#[derive(Default)]
pub(super) struct Draft {
    /// The pieces in order, with those of one item merged.
    pieces: Vec<Arc<Event>>,
    /// The pieces before them that were sent to the store, until they are known to be saved. They
    /// don't change, because the store may have saved them in spite of an error.
    sent: Vec<Arc<Event>>,
    /// The next save, which is scheduled or under way.
    saving: Option<SpawnHandle>,
    /// Why saves of the draft fail at present. Facts may be saved all the same. Clients have been
    /// notified.
    pub(super) failing: Option<Arc<str>>,
}

impl SessionActor {
    /// Adds a piece of an answer to the draft, and schedules its save after [`DRAFT_EVERY`].
    pub(super) fn add_to_draft(&mut self, event: &Arc<Event>, ctx: &mut Context<Self>) {
        if matches!(event.body, Body::Delta(Delta::Text { .. } | Delta::Thought { .. })) {
            self.draft.add(event);
            self.save_draft_soon(ctx);
        }
    }

    /// Drops the draft, because the answer is a fact now or its turn is over.
    pub(super) fn end_draft(&mut self, ctx: &mut Context<Self>) {
        self.draft.pieces.clear();
        self.draft.sent.clear();
        if let Some(saving) = self.draft.saving.take() {
            ctx.cancel_future(saving);
        }
    }

    fn save_draft_soon(&mut self, ctx: &mut Context<Self>) {
        if self.draft.saving.is_none() && !self.draft.is_saved() {
            self.draft.saving = Some(ctx.run_later(DRAFT_EVERY, Self::save_draft));
        }
    }

    fn save_draft(&mut self, ctx: &mut Context<Self>) {
        self.draft.sent.append(&mut self.draft.pieces);
        let saving = self.log.keep_draft(self.draft.sent.clone());
        let saved = saving.into_actor(self).map(|saved, actor, ctx| actor.draft_saved(saved, ctx));
        self.draft.saving = Some(ctx.spawn(saved));
    }

    fn draft_saved(&mut self, saved: Result<(), StoreError>, ctx: &mut Context<Self>) {
        self.draft.saving = None;
        match saved {
            Ok(()) => {
                self.draft.sent.clear();
                self.notify_if_saved_again(ctx);
            }
            Err(error) if self.end_if_fenced(&error, ctx) => {}
            Err(error) => self.notify_draft_not_saved(&error.to_string(), ctx),
        }
        self.save_draft_soon(ctx);
    }
}

impl Draft {
    fn is_saved(&self) -> bool {
        self.pieces.is_empty() && self.sent.is_empty()
    }

    /// Whether the store still has to confirm a save.
    pub(super) fn is_save_pending(&self) -> bool {
        !self.sent.is_empty()
    }

    fn add(&mut self, event: &Arc<Event>) {
        match self.pieces.last_mut().filter(|last| item(last) == item(event)) {
            Some(last) => {
                let last = Arc::make_mut(last);
                last.seq = event.seq;
                if let (Some(so_far), Some(more)) = (text_mut(last), text(event)) {
                    so_far.push_str(more);
                }
            }
            None => self.pieces.push(Arc::clone(event)),
        }
    }
}

fn item(event: &Event) -> Option<holdpoint_common::ItemId> {
    match event.delta()? {
        Delta::Text { item, .. } | Delta::Thought { item, .. } => Some(*item),
        _ => None,
    }
}

fn text(event: &Event) -> Option<&str> {
    match event.delta()? {
        Delta::Text { text, .. } | Delta::Thought { text, .. } => Some(text),
        _ => None,
    }
}

fn text_mut(event: &mut Event) -> Option<&mut String> {
    match &mut event.body {
        Body::Delta(Delta::Text { text, .. } | Delta::Thought { text, .. }) => Some(text),
        _ => None,
    }
}
