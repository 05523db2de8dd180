//! One session of the connection: a task that follows its events, carries out the editor's requests
//! and asks the editor.
//!
//! Everything that the editor sends to the session arrives in the task's mailbox, and requests to
//! the daemon run beside the stream of events. So a slow request delays no event, and the end of a
//! prompt is replied to in the order of the events.

mod cancels;
mod open_asks;
mod operations;
mod orders;
mod prompts;
mod requests;
mod stream;

use std::sync::Arc;

use agent_client_protocol_schema::v1::{
    AvailableCommandsUpdate, CLIENT_METHOD_NAMES, ConfigOptionUpdate, Error, ErrorCode, Meta,
    RequestId, SessionInfoUpdate, SessionNotification, SessionUpdate,
};
use holdpoint_common::api::PromptRequest;
use holdpoint_common::{Event, Fact, Refused, SessionFact, Snapshot};
use holdpoint_session::folders::Folders;
use holdpoint_session::{Attachment, SessionHandle, Sessions};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use self::open_asks::OpenAsks;
use self::operations::Operations;
use self::orders::Orders;
use self::prompts::Prompts;
use super::features::Features;
use super::modes::{self, Change, Models};
use super::updates::Updates;
use super::wire::Lines;
use super::{commands, rpc};
use crate::narrator::Remark;
use crate::tone::Tone;

/// How many messages of the connection wait for a session.
const MAILBOX: usize = 16;
/// The maximum number of events handled before the mailbox is read again.
const BATCH: usize = 256;

/// A message of the connection for a session.
pub(super) enum ToSession {
    Prompt {
        request: RequestId,
        prompt: PromptRequest,
    },
    /// Cancel the open turn and the open prompts.
    Cancel,
    /// Cancel this request, if it is one of the session.
    CancelRequest(RequestId),
    Set {
        request: RequestId,
        change: Change,
        reply: SetReply,
    },
    /// The editor's reply to a request of the session.
    Reply {
        id: String,
        result: Result<Value, Error>,
    },
    Close {
        request: RequestId,
        /// The sessions of the daemon, if this connection has created the session. It is deleted
        /// if it has had no prompt.
        created: Option<Sessions>,
    },
}

/// The reply to a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SetReply {
    Mode,
    Options,
}

/// The request that opened the session, and so the form of its reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opening {
    New,
    Load,
    Resume,
}

/// A session that is open and attached to, and not followed yet.
pub(super) struct OpenedSession {
    pub(super) sessions: Sessions,
    pub(super) handle: SessionHandle,
    pub(super) attachment: Attachment,
    pub(super) models: Models,
    pub(super) opening: Opening,
    /// The number of the last event that the editor does not need.
    pub(super) after: u64,
    /// The notice for an editor that brings MCP servers, if they have no effect.
    pub(super) servers_remark: Option<&'static str>,
}

/// The parts of the connection that a session uses.
#[derive(Clone)]
pub(super) struct Surroundings {
    pub(super) lines: Lines,
    pub(super) features: Features,
    pub(super) folders: Arc<Folders>,
    /// The number of the opening, unique in the connection.
    pub(super) number: u64,
}

/// The task of one session.
pub(super) struct SessionTask {
    around: Surroundings,
    handle: SessionHandle,
    /// `None` while the daemon is stopped.
    attachment: Option<Attachment>,
    models: Models,
    mailbox: mpsc::Receiver<ToSession>,
    updates: Updates,
    prompts: Prompts,
    orders: Orders,
    asks: OpenAsks,
    operations: Operations,
    /// The number of the last event that the editor has.
    after: u64,
    /// How many times in a row the stream has ended without an event.
    breaks: u32,
    title: String,
    servers_remark: Option<&'static str>,
    is_closed: bool,
}

impl SessionTask {
    /// Creates the task, and the sender of its mailbox.
    pub(super) fn new(
        opened: OpenedSession,
        around: Surroundings,
    ) -> (Self, mpsc::Sender<ToSession>) {
        let OpenedSession { handle, attachment, models, after, servers_remark, .. } = opened;
        let (sender, mailbox) = mpsc::channel(MAILBOX);
        let updates = Updates::new(attachment.snapshot(), around.features, std::process::id());
        let task = Self {
            around,
            handle,
            attachment: Some(attachment),
            models,
            mailbox,
            updates,
            prompts: Prompts::default(),
            orders: Orders::default(),
            asks: OpenAsks::default(),
            operations: Operations::default(),
            after,
            breaks: 0,
            title: String::new(),
            servers_remark,
            is_closed: false,
        };
        (task, sender)
    }

    /// Replays the past, replies to the request that opened the session, and follows the session
    /// until it is closed or the connection ends.
    pub(super) async fn run(mut self, opening: Opening, request: RequestId) {
        self.updates.set_past(true);
        if let Err(error) = self.replay_whole().await {
            self.fail(&request, error.clone()).await;
            return self.refuse_rest(&error).await;
        }
        self.updates.set_past(false);
        self.reply_opened(opening, &request).await;
        self.show_state().await;
        while !self.is_closed {
            let mut batch = Vec::with_capacity(BATCH);
            tokio::select! {
                biased;
                message = self.mailbox.recv() => match message {
                    Some(message) => self.take(message).await,
                    None => return self.replaced().await,
                },
                done = self.operations.next() => self.done(done).await,
                count = stream::next_batch(self.attachment.as_mut(), &mut batch, BATCH) => {
                    self.show(&batch).await;
                    if count == 0 {
                        self.reattach().await;
                    }
                }
            }
        }
        self.end().await;
    }

    /// Replies to everything that is open, because the session is closed.
    async fn end(&mut self) {
        let closed = rpc::from_session_error(Refused::Closed.into());
        self.fail_orders(&closed).await;
        while !self.operations.is_empty() {
            let done = self.operations.next().await;
            self.done(done).await;
        }
        self.fail_prompts(&closed).await;
        self.refuse_rest(&closed).await;
    }

    /// Withdraws the open asks, and replies to the requests in the mailbox with this error.
    async fn refuse_rest(&mut self, error: &Error) {
        self.withdraw_asks().await;
        self.mailbox.close();
        while let Some(message) = self.mailbox.recv().await {
            if let ToSession::Prompt { request, .. }
            | ToSession::Set { request, .. }
            | ToSession::Close { request, .. } = message
            {
                self.fail(&request, error.clone()).await;
            }
        }
    }

    /// Shows the events from before the attach.
    async fn replay(&mut self) {
        let mut batch = Vec::with_capacity(BATCH);
        while let Some(attachment) = &mut self.attachment
            && attachment.next_past(&mut batch, BATCH).await > 0
        {
            self.show(&batch).await;
            batch.clear();
        }
    }

    async fn reply_opened(&mut self, opening: Opening, request: &RequestId) {
        let Some(snapshot) = self.snapshot_at_attach() else { return };
        self.after = self.after.max(snapshot.seq);
        let settings = &snapshot.settings;
        let mut reply = json!({
            "modes": modes::state(settings),
            "configOptions": modes::options(settings, &self.models),
            "_meta": { "holdpoint": { "name": settings.name, "cursor": self.after } },
        });
        if opening == Opening::New {
            reply["sessionId"] = json!(self.handle.id());
        }
        self.around.lines.reply(request, Ok(reply)).await;
    }

    /// Shows the state that no later event repeats, and raises the open asks.
    async fn show_state(&mut self) {
        let Some(snapshot) = self.snapshot_at_attach() else { return };
        let commands = AvailableCommandsUpdate::new(commands::available());
        self.update(SessionUpdate::AvailableCommandsUpdate(commands), snapshot.seq).await;
        for update in self.updates.state(&snapshot) {
            self.update(update, snapshot.seq).await;
        }
        self.show_title(&snapshot).await;
        if let Some(text) = self.servers_remark {
            let remark = Remark::new(Tone::Warning, text);
            if let Some(update) = self.updates.notice(&remark, snapshot.seq, true) {
                self.update(update, snapshot.seq).await;
            }
        }
        for ask in &snapshot.asks {
            self.raise(ask).await;
        }
    }

    fn snapshot_at_attach(&self) -> Option<Arc<Snapshot>> {
        self.attachment.as_ref().map(|attachment| Arc::clone(attachment.snapshot()))
    }

    /// Shows events, replies to the prompts that they end, and keeps the open asks.
    async fn show(&mut self, events: &[Arc<Event>]) {
        for event in events {
            self.breaks = 0;
            self.after = self.after.max(event.seq);
            for update in self.updates.event(event) {
                self.update(update, event.seq).await;
            }
            self.follow_asks(event).await;
            let max_steps = self.handle.snapshot().settings.max_steps;
            match self.prompts.take_handed_back(event) {
                Some((request, prompt)) => self.orders.repeat(request, prompt),
                None => {
                    for (request, reply) in self.prompts.event(event, max_steps) {
                        self.around.lines.reply(&request, reply).await;
                    }
                }
            }
            if let Some(Fact::Session(
                SessionFact::ModelChanged { .. } | SessionFact::PolicyChanged { .. },
            )) = event.fact()
            {
                self.show_options(event.seq).await;
            }
        }
        if !events.is_empty() {
            let snapshot = self.handle.snapshot();
            self.show_title(&snapshot).await;
            self.pursue_cancels();
            self.next_order();
        }
    }

    /// Shows the options with their present values.
    async fn show_options(&mut self, seq: u64) {
        let options = modes::options(&self.handle.snapshot().settings, &self.models);
        let update = SessionUpdate::ConfigOptionUpdate(ConfigOptionUpdate::new(options));
        self.update(update, seq).await;
    }

    /// Shows the title of the session, if it has changed.
    async fn show_title(&mut self, snapshot: &Snapshot) {
        if self.title == snapshot.title {
            return;
        }
        self.title.clone_from(&snapshot.title);
        let update = SessionInfoUpdate::new().title(self.title.clone());
        self.update(SessionUpdate::SessionInfoUpdate(update), snapshot.seq).await;
    }

    /// Sends an update. `seq` is the number of the event that it shows, after which a client can
    /// continue.
    async fn update(&self, update: SessionUpdate, seq: u64) {
        let meta = Meta::from_iter([("holdpoint".to_owned(), json!({ "seq": seq }))]);
        let update = SessionNotification::new(self.handle.id().to_string(), update).meta(meta);
        self.around.lines.notify(CLIENT_METHOD_NAMES.session_update, &update).await;
    }

    /// Replies to a request with an error of the session.
    async fn fail(&self, request: &RequestId, error: Error) {
        self.around.lines.reply::<Value>(request, Err(error)).await;
    }

    /// Ends the task, because the editor has opened the session again and a new task shows it, or the
    /// connection has ended.
    async fn replaced(&mut self) {
        self.withdraw_asks().await;
        let message = "this view of the session has ended; the session keeps the prompt";
        let error = rpc::failure(ErrorCode::InvalidRequest, message);
        self.fail_orders(&error).await;
        self.fail_prompts(&error).await;
        while !self.operations.is_empty() {
            let done = self.operations.next().await;
            self.done(done).await;
        }
    }

    /// Replies to all open prompts with the same error.
    async fn fail_prompts(&mut self, error: &Error) {
        self.orders.take_prompts();
        for (request, reply) in self.prompts.fail(error) {
            self.around.lines.reply(&request, reply).await;
        }
    }

    /// Replies to all orders that wait, except for prompts, with the same error.
    async fn fail_orders(&mut self, error: &Error) {
        self.orders.take_prompts();
        for order in self.orders.take_all() {
            self.fail(&order.request, error.clone()).await;
        }
    }
}
