//! The connection to one editor: its messages, and the sessions that it has open.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol_schema::ProtocolVersion;
use agent_client_protocol_schema::v1::{
    self as acp, AGENT_METHOD_NAMES, AgentCapabilities, CancelNotification,
    CancelRequestNotification, Error, ErrorCode, Implementation, InitializeRequest,
    InitializeResponse, PROTOCOL_LEVEL_METHOD_NAMES, PromptCapabilities, RequestId,
    SessionCapabilities,
};
use futures_util::StreamExt;
use futures_util::future::{BoxFuture, join_all};
use futures_util::stream::FuturesUnordered;
use holdpoint_common::SessionSummary;
use holdpoint_session::Sessions;
use holdpoint_session::folders::Folders;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::features::Features;
use super::list::{ListPage, Lists};
use super::rpc::{self, Incoming, Malformed, Params, failure};
use super::session::{OpenedSession, Opening, SessionTask, SetReply, Surroundings, ToSession};
use super::wire::{HangUp, Line, Lines, MAX_LINE};
use super::{modes, prompt};
use crate::sessions::discard_unused;

mod open;

/// The maximum number of sessions that a connection has open.
const MAX_SESSIONS: usize = 64;
/// The maximum number of requests in progress that open, list or delete sessions.
const MAX_REQUESTS: usize = 32;
/// How long the requests in progress may take when the connection ends.
const LAST_REQUESTS: Duration = Duration::from_secs(5);
/// How long the last replies and the deletion of unused sessions may take after that.
const LAST_WORK: Duration = Duration::from_secs(1);

/// The result of a request in progress.
enum Finished {
    /// A session is open, and its task can start.
    Opened { request: RequestId, session: Box<OpenedSession> },
    /// The sessions are known, and a page of them is the reply.
    Listed { request: RequestId, sessions: Vec<SessionSummary>, page: ListPage },
    /// The request has this reply.
    Reply { request: RequestId, result: Result<Value, Error> },
}

/// The editor's view of an open session: the mailbox of its task, which ends when that is dropped.
struct View {
    mailbox: mpsc::Sender<ToSession>,
    task: JoinHandle<()>,
}

impl View {
    /// Waits until the task has ended.
    async fn end(self) {
        drop(self.mailbox);
        // A panic was logged.
        let _ = self.task.await;
    }
}

/// The connection to one editor.
pub(super) struct Connection {
    folders: Arc<Folders>,
    lines: Lines,
    /// The features of the editor; `None` before `initialize`.
    features: Option<Features>,
    /// The sessions that this connection has created. Those without a prompt are deleted when they
    /// are closed or the connection ends.
    created: HashMap<acp::SessionId, Sessions>,
    /// The number of sessions opened so far.
    openings: u64,
    sessions: HashMap<acp::SessionId, View>,
    lists: Lists,
    requests: FuturesUnordered<BoxFuture<'static, Finished>>,
}

impl Connection {
    pub(super) fn new(folders: Folders, lines: Lines) -> Self {
        Self {
            folders: Arc::new(folders),
            lines,
            features: None,
            created: HashMap::new(),
            openings: 0,
            sessions: HashMap::new(),
            lists: Lists::default(),
            requests: FuturesUnordered::new(),
        }
    }

    /// Serves the editor until its input ends, or it can't be written to. Sessions and their turns
    /// continue, except for new sessions without a prompt, which are deleted.
    pub(super) async fn serve(mut self, mut input: mpsc::Receiver<Line>, hang_up: HangUp) {
        let serving = async {
            self.serve_lines(&mut input).await;
            // The editor may still read the replies, and unused sessions have to be known.
            let _ = tokio::time::timeout(LAST_REQUESTS, self.finish_requests()).await;
        };
        tokio::select! {
            () = serving => {}
            // Its last lines can't be handled, because it does not read the replies.
            () = hang_up.wait_final() => {}
        }
        // The tasks reply to their requests, and are not attached any more.
        let ending = join_all(self.sessions.drain().map(|(_, view)| view.end()));
        let discards = self.created.iter().filter_map(|(id, sessions)| {
            let id = id.0.parse().ok()?;
            Some(async move { discard_unused(sessions, &id).await })
        });
        let ending = async {
            // Prompts that are being sent reach their sessions first.
            ending.await;
            join_all(discards).await;
        };
        // A daemon that does not answer must not keep this process.
        let _ = tokio::time::timeout(LAST_WORK, ending).await;
    }

    async fn finish_requests(&mut self) {
        while let Some(finished) = self.requests.next().await {
            self.finish(finished).await;
        }
    }

    async fn serve_lines(&mut self, input: &mut mpsc::Receiver<Line>) {
        loop {
            tokio::select! {
                line = input.recv() => match line {
                    Some(line) => self.take(line).await,
                    None => return,
                },
                Some(finished) = self.requests.next() => self.finish(finished).await,
                () = self.lines.closed() => return,
            }
        }
    }

    async fn take(&mut self, line: Line) {
        let incoming = match line {
            Line::Whole(line) => rpc::parse(&line),
            Line::TooLong => {
                let message = format!("the line is longer than {MAX_LINE} bytes");
                let error = failure(ErrorCode::InvalidRequest, message);
                Err(Box::new(Malformed { id: RequestId::Null, error }))
            }
        };
        match incoming {
            Ok(Incoming::Request { id, method, params }) => {
                if let Err(error) = self.request(&id, &method, &params).await {
                    self.lines.reply::<Value>(&id, Err(error)).await;
                }
            }
            Ok(Incoming::Notification { method, params }) => {
                if let Err(error) = self.notification(&method, &params).await {
                    tracing::debug!(method, %error, "a notification of the editor is ignored");
                }
            }
            Ok(Incoming::Reply { id, result }) => self.reply(id, result).await,
            Err(malformed) => {
                let Malformed { id, error } = *malformed;
                self.lines.reply::<Value>(&id, Err(error)).await;
            }
        }
    }

    /// Handles a request. It is replied to here, later, or with the error.
    async fn request(
        &mut self,
        id: &RequestId,
        method: &str,
        params: &Params,
    ) -> Result<(), Error> {
        let names = AGENT_METHOD_NAMES;
        if method == names.initialize {
            let reply = self.initialize(&params.read()?);
            self.lines.reply(id, Ok(reply)).await;
            return Ok(());
        }
        let Some(_) = self.features else {
            let message = "the first request must be `initialize`";
            return Err(failure(ErrorCode::InvalidRequest, message));
        };
        match method {
            _ if method == names.authenticate => {
                let message = "this agent needs no authentication";
                Err(failure(ErrorCode::InvalidParams, message))
            }
            _ if method == names.session_new => self.open(id, open::new(params.read()?)?),
            _ if method == names.session_load => self.open(id, open::load(params.read()?)?),
            _ if method == names.session_resume => self.open(id, open::resume(params.read()?)?),
            _ if method == names.session_list => {
                self.start(open::list(id.clone(), Arc::clone(&self.folders), params.read()?))
            }
            _ if method == names.session_delete => {
                let acp::DeleteSessionRequest { session_id, .. } = params.read()?;
                self.forget_closed();
                if self.sessions.contains_key(&session_id) {
                    let message = format!("session {session_id} is open in this connection");
                    return Err(failure(ErrorCode::InvalidRequest, message).data(
                        serde_json::json!({ "hint": "close it first, with session/close" }),
                    ));
                }
                self.start(open::delete(id.clone(), Arc::clone(&self.folders), session_id))
            }
            _ => self.session_request(id, method, params).await,
        }
    }

    /// Handles a request about an open session.
    async fn session_request(
        &mut self,
        id: &RequestId,
        method: &str,
        params: &Params,
    ) -> Result<(), Error> {
        let names = AGENT_METHOD_NAMES;
        let request = id.clone();
        let (session, message) = match method {
            _ if method == names.session_prompt => {
                let acp::PromptRequest { session_id, prompt, .. } = params.read()?;
                (session_id, ToSession::Prompt { request, prompt: prompt::prompt(&prompt)? })
            }
            _ if method == names.session_set_mode => {
                let acp::SetSessionModeRequest { session_id, mode_id, .. } = params.read()?;
                let change = modes::Change::Policy(modes::mode(&mode_id.0)?);
                (session_id, ToSession::Set { request, change, reply: SetReply::Mode })
            }
            _ if method == names.session_set_config_option => {
                let option: acp::SetSessionConfigOptionRequest = params.read()?;
                let change = modes::change(&option)?;
                let reply = SetReply::Options;
                (option.session_id, ToSession::Set { request, change, reply })
            }
            _ if method == names.session_close => {
                let acp::CloseSessionRequest { session_id, .. } = params.read()?;
                let created = self.created.remove(&session_id);
                (session_id, ToSession::Close { request, created })
            }
            _ => {
                let message = format!("there is no method `{method}`");
                return Err(failure(ErrorCode::MethodNotFound, message));
            }
        };
        self.send(&session, message).await.ok_or_else(|| rpc::not_open(&session))
    }

    async fn notification(&mut self, method: &str, params: &Params) -> Result<(), Error> {
        if method == AGENT_METHOD_NAMES.session_cancel {
            let CancelNotification { session_id, .. } = params.read()?;
            let sent = self.send(&session_id, ToSession::Cancel).await;
            return sent.ok_or_else(|| rpc::not_open(&session_id));
        }
        if method == PROTOCOL_LEVEL_METHOD_NAMES.cancel_request {
            let CancelRequestNotification { request_id, .. } = params.read()?;
            // The request is known to its session only.
            for View { mailbox, .. } in self.sessions.values() {
                let _ = mailbox.send(ToSession::CancelRequest(request_id.clone())).await;
            }
        }
        Ok(())
    }

    /// Passes the reply to a request on to the session that has sent it.
    async fn reply(&mut self, id: RequestId, result: Result<Value, Error>) {
        let RequestId::Str(id) = id else { return };
        let Some((session, _)) = id.split_once('/') else { return };
        let session = acp::SessionId::new(session);
        // A reply to a session that is closed changes nothing.
        let _ = self.send(&session, ToSession::Reply { id, result }).await;
    }

    /// Sends a message to an open session; `None` if it is not open.
    async fn send(&mut self, session: &acp::SessionId, message: ToSession) -> Option<()> {
        let View { mailbox, .. } = self.sessions.get(session)?;
        if mailbox.send(message).await.is_ok() {
            return Some(());
        }
        // Its task has ended, because the session is closed.
        self.sessions.remove(session);
        None
    }

    fn initialize(&mut self, request: &InitializeRequest) -> InitializeResponse {
        self.features = Some(Features::from(&request.client_capabilities));
        let sessions = SessionCapabilities::new()
            .list(acp::SessionListCapabilities::new())
            .delete(acp::SessionDeleteCapabilities::new())
            .resume(acp::SessionResumeCapabilities::new())
            .close(acp::SessionCloseCapabilities::new());
        let capabilities = AgentCapabilities::new()
            .load_session(true)
            .mcp_capabilities(acp::McpCapabilities::new().http(true).sse(true))
            .prompt_capabilities(PromptCapabilities::new().embedded_context(true))
            .session_capabilities(sessions);
        let agent = Implementation::new("holdpoint", env!("CARGO_PKG_VERSION"))
            .title("Holdpoint".to_owned());
        // An editor that wants another version gets this one, and decides.
        InitializeResponse::new(ProtocolVersion::V1)
            .agent_capabilities(capabilities)
            .agent_info(agent)
    }

    /// Starts to open a session.
    fn open(&mut self, id: &RequestId, open: open::Open) -> Result<(), Error> {
        self.forget_closed();
        let is_again = open.session().is_some_and(|session| self.sessions.contains_key(session));
        let others = self.sessions.len() - usize::from(is_again);
        if others + self.requests.len() >= MAX_SESSIONS {
            let message = format!("{MAX_SESSIONS} sessions are open, which is the limit");
            return Err(failure(ErrorCode::InvalidRequest, message)
                .data(serde_json::json!({ "hint": "close one, with session/close" })));
        }
        self.start(open.carry_out(id.clone(), Arc::clone(&self.folders)))
    }

    /// Forgets the sessions whose tasks have ended.
    fn forget_closed(&mut self) {
        self.sessions.retain(|_, view| !view.mailbox.is_closed());
    }

    /// Starts a request that takes time.
    fn start(
        &mut self,
        request: impl Future<Output = Finished> + Send + 'static,
    ) -> Result<(), Error> {
        if self.requests.len() >= MAX_REQUESTS {
            let message = format!("{MAX_REQUESTS} requests are in progress, which is the limit");
            return Err(failure(ErrorCode::InvalidRequest, message));
        }
        self.requests.push(Box::pin(request));
        Ok(())
    }

    async fn finish(&mut self, finished: Finished) {
        match finished {
            Finished::Reply { request, result } => self.lines.reply(&request, result).await,
            Finished::Listed { request, sessions, page } => {
                let page = self.lists.page(&sessions, &page);
                self.lines.reply(&request, page).await;
            }
            Finished::Opened { request, session } => {
                let id = acp::SessionId::new(session.handle.id().as_str());
                let opening = session.opening;
                let around = Surroundings {
                    lines: self.lines.clone(),
                    features: self.features.unwrap_or_default(),
                    folders: Arc::clone(&self.folders),
                    number: self.openings,
                };
                self.openings += 1;
                if opening == Opening::New {
                    self.created.insert(id.clone(), session.sessions.clone());
                }
                let (task, mailbox) = SessionTask::new(*session, around);
                // The editor has lost its view of an open session. The new task shows all of it
                // again, after the last message of the one before.
                let before = self.sessions.remove(&id);
                let task = tokio::spawn(async move {
                    if let Some(before) = before {
                        before.end().await;
                    }
                    task.run(opening, request).await;
                });
                self.sessions.insert(id, View { mailbox, task });
            }
        }
    }
}

/// Refuses a system prompt.
///
/// # Errors
/// An error for the editor, if there is one.
fn check_system_prompt(prompt: Option<&acp::SystemPrompt>) -> Result<(), Error> {
    if prompt.is_none() {
        return Ok(());
    }
    let hint = "put the instructions into the file AGENTS.md of the folder, or into the prompt";
    Err(failure(ErrorCode::InvalidParams, "`systemPrompt` is not supported")
        .data(serde_json::json!({ "hint": hint })))
}

/// Checks the folders of a request. A session works in one folder.
///
/// # Errors
/// An error for the editor, if the path is not absolute, or there are additional folders.
fn check_folders(folder: &Path, additional: &[PathBuf]) -> Result<(), Error> {
    if !additional.is_empty() {
        let message = "`additionalDirectories` are not supported: a session works in one folder";
        let hint = "open the session in a folder that contains all of them";
        return Err(
            failure(ErrorCode::InvalidParams, message).data(serde_json::json!({ "hint": hint }))
        );
    }
    if folder.is_absolute() {
        return Ok(());
    }
    let message = format!("`cwd` must be an absolute path: {}", folder.display());
    Err(failure(ErrorCode::InvalidParams, message))
}
