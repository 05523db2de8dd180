//! The link to an agent: its connection, its open turn, and the events that were not used yet.

mod ending;
mod incoming;
mod serving;

use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::FutureExt;
use holdpoint_common::{AgentSettings, AgentStart};
use holdpoint_tools::Workspace;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::Mutex;

use self::ending::Ending;
use super::connection::{Connection, Incoming, RpcError};
use super::consent::Consent;
use super::conversation::Conversation;
use super::deferred::Deferred;
use super::event::Permission;
use super::known_calls::KnownCalls;
use super::protocol::{self, ModelChoice, method};
use super::served::Served;
use super::start;
use super::terminals::Terminals;

pub(super) use self::serving::Done;

/// The most messages from between two turns that are read before a prompt.
const MAX_STALE: usize = 1024;

/// The link to an agent, for the one that uses it now.
pub(super) struct Link {
    name: String,
    /// The running agent.
    running: Option<Running>,
    /// The id of the agent's own session, also if the agent does not run.
    own_session: Option<String>,
    /// The model that the agent is to use.
    model: Option<String>,
    /// How the agent got that session, until the session knows it.
    start: Option<AgentStart>,
    /// Whether the agent's own session has a prompt.
    is_used: bool,
    /// The user's approval of the start, where it needs one.
    pub(super) consent: Consent,
    /// The id of the prompt that has no reply.
    prompt: Option<u64>,
    pub(super) calls: KnownCalls,
    pub(super) deferred: Deferred,
    /// The plan that was shown last in the turn.
    plan: String,
    /// The permission requests that were not judged yet.
    pub(super) requests: VecDeque<Permission>,
    /// The ids of all permission requests without a reply.
    unanswered: Vec<Value>,
    /// Whether a permission request of the turn was not allowed.
    pub(super) has_denial: bool,
    /// The requests for files and terminals.
    pub(super) served: Served,
    pub(super) terminals: Terminals,
    /// The agent that is being ended, and the reason.
    ending: Option<Ending>,
    /// Why the agent could not be started.
    failure: Option<String>,
    /// Why the agent has ended in the open turn, which ends with it.
    death: Option<String>,
}

/// The link of a session. It is held by the answer that is read, by the call that runs, or while the
/// agent is started or ended.
pub(super) type SharedLink = Arc<Mutex<Link>>;

/// A running agent.
struct Running {
    connection: Connection,
    /// Whether the agent can take a prompt.
    is_ready: bool,
    /// The workspace with which it was started.
    workspace: Arc<Workspace>,
}

impl Link {
    /// Creates the link to an agent that does not run.
    pub(super) fn shared(settings: &AgentSettings) -> SharedLink {
        Arc::new(Mutex::new(Self {
            name: settings.name.clone(),
            running: None,
            own_session: None,
            model: settings.model.clone(),
            start: None,
            is_used: false,
            consent: Consent::default(),
            prompt: None,
            calls: KnownCalls::default(),
            deferred: Deferred::default(),
            plan: String::new(),
            requests: VecDeque::new(),
            unanswered: Vec::new(),
            has_denial: false,
            served: Served::default(),
            terminals: Terminals::default(),
            ending: None,
            failure: None,
            death: None,
        }))
    }

    /// Whether the agent is ready, and runs with this workspace. In the middle of a turn, neither the
    /// workspace nor the end of the program counts: the turn reports its end.
    pub(super) fn is_ready(&self, workspace: &Arc<Workspace>) -> bool {
        self.running.as_ref().is_some_and(|running| {
            let is_current =
                || Arc::ptr_eq(&running.workspace, workspace) && !running.connection.has_ended();
            running.is_ready && (self.is_in_turn() || is_current())
        })
    }

    /// Whether the agent has a turn that has not ended.
    pub(super) fn is_prompted(&self) -> bool {
        self.prompt.is_some()
    }

    /// Whether the agent has a turn whose end was not read yet.
    pub(super) fn is_in_turn(&self) -> bool {
        self.prompt.is_some() || !self.deferred.is_empty()
    }

    /// Takes a started program, which is not ready yet.
    pub(super) fn started(&mut self, connection: Connection, workspace: Arc<Workspace>) {
        self.running = Some(Running { connection, is_ready: false, workspace });
        self.forget_turn();
        self.failure = None;
    }

    /// Notes that the agent is ready, with this session of its own.
    pub(super) fn ready(&mut self, session: String, how: AgentStart) {
        self.running.iter_mut().for_each(|running| running.is_ready = true);
        self.own_session = Some(session);
        self.start = Some(how);
        self.is_used = matches!(how, AgentStart::Resumed | AgentStart::Loaded);
    }

    /// Chooses the model of the session that this reply has opened. A session that `continues` may
    /// have its model already, without an offer of others.
    ///
    /// # Errors
    /// The reason why the agent has to be ended.
    pub(super) async fn choose_model(
        &mut self,
        opened: &RawValue,
        session: &str,
        continues: bool,
    ) -> Result<(), String> {
        let Some(model) = &self.model else { return Ok(()) };
        match protocol::model_choice(opened, session, model)? {
            Some(ModelChoice { method, params }) => {
                let reply = self.request(method, params).await?;
                reply.map(drop).map_err(|error| format!("it reported: {}", error.message))
            }
            None if continues => Ok(()),
            None => Err("it offers no choice of a model (hint: leave out --model)".to_owned()),
        }
    }

    /// The id of the agent's own session, if it had one.
    pub(super) fn own_session(&self) -> Option<&str> {
        self.own_session.as_deref()
    }

    /// Whether the agent's own session has a prompt.
    pub(super) fn is_used(&self) -> bool {
        self.is_used
    }

    /// Notes the agent's own session from before a restart, which has a prompt.
    pub(super) fn know_session(&mut self, session: String) {
        if self.own_session.is_none() {
            self.own_session = Some(session);
            self.is_used = true;
        }
    }

    pub(super) fn set_failure(&mut self, why: String) {
        self.failure = Some(why);
    }

    /// Whether the agent has ended in the open turn. It is started again in the next one.
    pub(super) fn has_died(&self) -> bool {
        self.death.is_some()
    }

    /// Sends the newest prompt of a conversation, which begins a turn. Returns how the agent was
    /// started, with its session, if it was since the last prompt.
    ///
    /// # Errors
    /// The reason why the agent does not run, or can't begin a new session.
    pub(super) async fn send_prompt(
        &mut self,
        Conversation { before, prompt }: Conversation,
    ) -> Result<Option<(String, AgentStart)>, String> {
        if let Some(why) = &self.death {
            return Err(why.clone());
        }
        self.forget_turn();
        if self.running.as_ref().is_some_and(|running| running.is_ready) {
            self.take_stale().await?;
        }
        if before.is_none() && self.is_used {
            self.renew_session().await?;
        }
        let (Some(Running { connection, is_ready: true, .. }), Some(session)) =
            (&mut self.running, &self.own_session)
        else {
            let why = self.failure.as_deref().unwrap_or("it has ended");
            return Err(format!("{}: {why}", self.name));
        };
        let (start, text) = match (self.start.take(), before) {
            (Some(AgentStart::New | AgentStart::Replayed), Some(before)) => {
                (Some(AgentStart::Replayed), format!("{before}{prompt}"))
            }
            (start, _) => (start, prompt),
        };
        self.prompt = Some(connection.request(method::PROMPT, protocol::prompt(session, text)));
        self.is_used = true;
        Ok(start.map(|start| (session.clone(), start)))
    }

    /// Takes the messages that the agent has sent between two turns. Its requests for permission,
    /// for files and for new terminals are refused.
    async fn take_stale(&mut self) -> Result<(), String> {
        for _ in 0..MAX_STALE {
            match self.receive().now_or_never() {
                Some(event) => drop(self.deferred.push(event?)),
                // It has ended, and the reason is known soon.
                None if self.ending.is_some() => drop(self.receive().await?),
                None => break,
            }
        }
        Ok(())
    }

    /// Opens another session of the agent, for a conversation that begins afresh.
    async fn renew_session(&mut self) -> Result<(), String> {
        let Some(Running { workspace, is_ready: true, .. }) = &self.running else { return Ok(()) };
        let folder = workspace.root().to_owned();
        let session = start::new_session(self, None, &folder).await;
        match session {
            Ok(session) => {
                self.ready(session, AgentStart::New);
                Ok(())
            }
            Err(why) => {
                self.begin_end(why);
                let (why, _) = self.ended().await;
                self.death = Some(why.clone());
                Err(why)
            }
        }
    }

    /// Notes that the session's turn has ended.
    pub(super) fn end_turn(&mut self) {
        self.forget_turn();
        self.death = None;
        self.consent.end_turn();
    }

    fn forget_turn(&mut self) {
        self.prompt = None;
        self.calls.clear();
        self.deferred.clear();
        self.plan.clear();
        self.requests.clear();
        self.cancel_permissions();
        self.has_denial = false;
        self.refuse_requests("the turn has ended");
    }

    /// Sends a request and waits for its reply. Everything else that the agent sends meanwhile has no
    /// consequence.
    ///
    /// # Errors
    /// The error of the agent, or the reason why it has to be ended.
    pub(super) async fn request(
        &mut self,
        method: &str,
        params: impl serde::Serialize,
    ) -> Result<Result<Box<RawValue>, RpcError>, String> {
        let id = self.connection()?.request(method, params);
        loop {
            match self.connection()?.next().await? {
                Some(Incoming::Reply { id: replied, result }) if replied == id => {
                    return Ok(result);
                }
                Some(Incoming::Request { id, method, params }) => {
                    self.take_outside_turn(&id, &method, &params);
                }
                Some(Incoming::Reply { .. } | Incoming::Notification { .. }) => {}
                None => return Err(String::new()),
            }
        }
    }

    fn connection(&mut self) -> Result<&mut Connection, String> {
        match &mut self.running {
            Some(running) => Ok(&mut running.connection),
            None => Err(format!("{}: it has ended", self.name)),
        }
    }

    /// Replies to a permission request: with this option, or that none was chosen.
    pub(super) fn answer(&mut self, id: &Value, option: Option<String>, reason: Option<String>) {
        self.unanswered.retain(|unanswered| unanswered != id);
        let Ok(connection) = self.connection() else { return };
        match option {
            Some(option) => connection.reply(id, Ok(protocol::chosen(option, reason))),
            None => connection.reply(id, Ok(protocol::not_chosen())),
        }
    }

    /// Replies to all open permission requests that none of their options was chosen.
    pub(super) fn cancel_permissions(&mut self) {
        for id in std::mem::take(&mut self.unanswered) {
            self.answer(&id, None, None);
        }
    }

    /// Writes the queued replies.
    pub(super) async fn flush(&mut self) {
        if let Ok(connection) = self.connection() {
            connection.flush().await;
        }
    }
}
