//! Carries out the screen's commands on session handles, and reports changes of sessions as
//! messages.

mod ask_end;
mod branch;
mod daemon;
mod export;
mod follow;
mod news;

use std::sync::Arc;

use holdpoint_common::{AskId, Refused, SessionId};
use holdpoint_session::folders::Folders;
use holdpoint_session::{
    AttachFrom, Interruption, OpenSession, SessionError, SessionHandle, Sessions,
};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{AbortHandle, JoinHandle, JoinSet};

use super::message::{Command, Message};
use crate::error::CliError;
use crate::sessions::discard_unused;

/// The capacity of the message channel; senders wait while it is full.
const MESSAGE_CAPACITY: usize = 64;

/// A message from the link, for the screen or for the loop.
pub(crate) enum LinkMessage {
    Message(Message),
    /// A session that is open and can be followed.
    Opened {
        session: SessionHandle,
        attachment: u64,
        limit: usize,
        /// Whether the session was created by this process.
        fresh: bool,
    },
}

/// A function that returns the settings of a new session.
pub(crate) type NewSession = Box<dyn Fn() -> Result<OpenSession, CliError> + Send>;

/// The connection between the screen and the sessions.
pub(crate) struct Link {
    shared: Shared,
    new_session: NewSession,
    session: Option<SessionHandle>,
    following: Option<JoinHandle<()>>,
    /// Aborts the task that opens the session to show next.
    opening: Option<AbortHandle>,
    /// Commands in progress.
    tasks: JoinSet<()>,
    /// Resolves when the last ordered command is done.
    previous: Option<oneshot::Receiver<()>>,
    /// Recent prompts, each with the task that sends it. The task ends when the prompt is accepted
    /// or refused.
    sent: Vec<(AbortHandle, SessionId, String)>,
}

/// The parts that every task of the link shares.
#[derive(Clone)]
struct Shared {
    sessions: Sessions,
    folders: Arc<Folders>,
    messages: mpsc::Sender<LinkMessage>,
    daemon: watch::Sender<DaemonState>,
}

/// The known state of the daemon, and whether to start it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DaemonState {
    /// The daemon was running when last seen.
    Running,
    /// The daemon is gone and must be started, because it died or the user wants it back.
    Starting,
    /// The daemon was stopped, and stays so until the user wants it back.
    Stopped,
}

impl Shared {
    async fn send(&self, message: Message) {
        // Fails only while the screen is closing.
        let _ = self.messages.send(LinkMessage::Message(message)).await;
    }

    /// Reports that an existing session is open.
    async fn send_opened(&self, session: SessionHandle, attachment: u64, limit: usize) {
        let opened = LinkMessage::Opened { session, attachment, limit, fresh: false };
        // Fails only while the screen is closing.
        let _ = self.messages.send(opened).await;
    }

    async fn report_failure(&self, error: SessionError) {
        self.send(Message::Failed(error_line(error))).await;
    }
}

impl Link {
    /// Creates the link and the channel of its messages.
    pub(crate) fn new(
        sessions: Sessions,
        folders: &Folders,
        new_session: NewSession,
    ) -> (Self, mpsc::Receiver<LinkMessage>) {
        let (messages, receiver) = mpsc::channel(MESSAGE_CAPACITY);
        let shared = Shared {
            sessions,
            folders: Arc::new(folders.clone()),
            messages,
            daemon: watch::Sender::new(DaemonState::Running),
        };
        tokio::spawn(news::watch(shared.clone()));
        let (tasks, sent) = (JoinSet::new(), Vec::new());
        (
            Self {
                shared,
                new_session,
                session: None,
                following: None,
                opening: None,
                tasks,
                previous: None,
                sent,
            },
            receiver,
        )
    }

    /// Follows a session from now on, instead of the previous one.
    pub(crate) fn follow(&mut self, session: SessionHandle, attachment: u64, limit: usize) {
        self.detach();
        self.session = Some(session.clone());
        let from = AttachFrom { limit: Some(limit), ..AttachFrom::start() };
        self.following =
            Some(tokio::spawn(follow::follow(self.shared.clone(), session, attachment, from)));
    }

    /// Stops following, and cancels an opening in progress.
    pub(crate) fn detach(&mut self) {
        self.session = None;
        if let Some(opening) = self.opening.take() {
            opening.abort();
        }
        if let Some(following) = self.following.take() {
            following.abort();
        }
    }

    /// Waits until all commands in progress are done.
    pub(crate) async fn finish(&mut self) {
        self.detach();
        while self.tasks.join_next().await.is_some() {}
    }

    /// Takes the prompts that were neither accepted nor refused.
    pub(crate) fn take_unanswered(&mut self) -> Vec<(SessionId, String)> {
        let unanswered = self.sent.drain(..).filter(|(sending, ..)| !sending.is_finished());
        unanswered.map(|(_, id, text)| (id, text)).collect()
    }

    fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        // Removes finished tasks.
        while self.tasks.try_join_next().is_some() {}
        self.tasks.spawn(task)
    }

    /// Closes and deletes a session that was never used, and waits for the result.
    pub(crate) async fn discard_unused(&self, id: &SessionId) {
        discard_unused(&self.shared.sessions, id).await;
    }

    /// Discards a new session that is no longer to be shown.
    pub(crate) fn spawn_discard_unused(&mut self, id: SessionId) {
        let sessions = self.shared.sessions.clone();
        self.spawn(async move { discard_unused(&sessions, &id).await });
    }

    /// Carries out a command on sessions. The result arrives as a message.
    pub(crate) fn carry_out(&mut self, command: Command) {
        match command {
            Command::Open { id, attachment, limit } => self.open(id, attachment, limit),
            Command::ShowLive { id, attachment, limit } => self.show_live(id, attachment, limit),
            Command::New { attachment, limit } => self.open_new(attachment, limit),
            Command::Detach => self.detach(),
            Command::StartDaemon => _ = self.shared.daemon.send_replace(DaemonState::Starting),
            Command::InterruptOther { ask } => self.interrupt_other(ask),
            Command::ReadAskEnd { ask } => {
                let shared = self.shared.clone();
                self.spawn(async move { ask_end::report(&shared, ask).await });
            }
            Command::Close { id } => self.close(id),
            Command::Delete { id } => {
                let shared = self.shared.clone();
                self.spawn(async move {
                    match shared.sessions.delete(id.as_str()).await {
                        Ok(()) => shared.send(Message::Notice("deleted".to_owned())).await,
                        Err(error) => shared.report_failure(error).await,
                    }
                });
            }
            Command::Answer { ask, answer } => {
                let shared = self.shared.clone();
                self.spawn(async move {
                    // A saved session is opened only if it accepts the answer.
                    if let Err(error) = shared.sessions.answer(&ask, answer).await {
                        shared.send(Message::AnswerRefused { ask, why: error_line(error) }).await;
                    }
                });
            }
            command => self.carry_out_on_shown(command),
        }
    }

    /// Carries out a command on the shown session.
    fn carry_out_on_shown(&mut self, command: Command) {
        let (shared, Some(session)) = (self.shared.clone(), self.session.clone()) else { return };
        // Commands run in the order they were typed. Interrupts do not wait, and a slow export
        // delays no other command.
        let in_order = !matches!(command, Command::Interrupt { .. } | Command::Export { .. });
        let (done_sender, done) = oneshot::channel::<()>();
        let previous = in_order.then(|| self.previous.replace(done)).flatten();
        let prompt = if let Command::Prompt { text } = &command {
            Some((session.id().clone(), text.clone()))
        } else {
            None
        };
        let sending = self.spawn(async move {
            // Dropped at the end of this task, which lets the next one start.
            let _done_sender = done_sender;
            if let Some(previous) = previous {
                let _ = previous.await;
            }
            let result = match command {
                Command::Prompt { text } => match session.prompt(text.clone()).await {
                    Ok(_) => Ok(()),
                    Err(error) => {
                        let (id, why) = (session.id().clone(), error_line(error));
                        return shared.send(Message::PromptRefused { id, text, why }).await;
                    }
                },
                Command::Interrupt { turn } => session.interrupt(turn).await.map(drop),
                Command::ToggleHold { shown } => session.toggle_hold(shown).await.map(drop),
                Command::Hold => session.hold().await.map(drop),
                Command::Release => session.release().await.map(drop),
                Command::Rename { name } => session.rename(name).await,
                Command::Model { name } => session.change_model(name).await,
                Command::Asks { asks } => session.change_asks(asks).await,
                Command::Debug { enabled } => session.change_debug(enabled).await,
                Command::Export { path } => {
                    let message = export::export(&session, &path).await;
                    return shared.send(message).await;
                }
                // `carry_out` and the loop carry out all others.
                _ => Ok(()),
            };
            if let Err(error) = result {
                shared.report_failure(error).await;
            }
        });
        if let Some((id, text)) = prompt {
            self.sent.retain(|(sending, ..)| !sending.is_finished());
            self.sent.push((sending, id, text));
        }
    }

    /// Interrupts the turn of this ask, and no later one.
    fn interrupt_other(&mut self, ask: AskId) {
        let shared = self.shared.clone();
        self.spawn(async move {
            let interrupted = async {
                let snapshot = shared.sessions.look(ask.session.as_str()).await?;
                if !snapshot.asks.iter().any(|open| open.id == ask) {
                    return Ok("the ask is no longer open".to_owned());
                }
                // A session that was closed or unloaded since is not opened.
                let session = shared.sessions.reach(&ask.session).await?;
                // The receipt, sent when the turn has ended, lists the interrupted work.
                Ok(match session.interrupt(snapshot.turn).await? {
                    Interruption::NotRunning => "nothing was running".to_owned(),
                    Interruption::RunEnded => "Agent interrupted; the run is over".to_owned(),
                    Interruption::Interrupting(turn) => match turn.end().await?.receipt {
                        Some(receipt) => format!("Agent interrupted: {receipt}"),
                        None => "Agent interrupted".to_owned(),
                    },
                })
            };
            match interrupted.await {
                Ok(text) => shared.send(Message::Notice(text)).await,
                Err(error) => shared.report_failure(error).await,
            }
        });
    }

    fn close(&mut self, id: SessionId) {
        let shared = self.shared.clone();
        self.spawn(async move {
            match shared.sessions.close(&id).await {
                // Another client closed it first.
                Ok(()) | Err(SessionError::Refused(Refused::Closed)) => {
                    shared.send(Message::Notice("closed; it stays saved".to_owned())).await
                }
                Err(error) => shared.report_failure(error).await,
            }
        });
    }

    fn open(&mut self, id: SessionId, attachment: u64, limit: usize) {
        // The shown session is only attached again, with more of its past.
        if let Some(session) = self.session.clone().filter(|session| *session.id() == id) {
            return self.follow(session, attachment, limit);
        }
        self.detach();
        let shared = self.shared.clone();
        let opening = self.spawn(async move {
            match shared.sessions.get(id.as_str()).await {
                Ok(session) => shared.send_opened(session, attachment, limit).await,
                Err(error) => {
                    shared.send(Message::NotOpened { attachment, why: error_line(error) }).await
                }
            }
        });
        self.opening = Some(opening);
    }

    /// Shows a live session; a closed or saved one is not opened.
    fn show_live(&mut self, id: SessionId, attachment: u64, limit: usize) {
        self.detach();
        let shared = self.shared.clone();
        let reaching = self.spawn(async move {
            match shared.sessions.reach(&id).await {
                Ok(session) => shared.send_opened(session, attachment, limit).await,
                Err(SessionError::Refused(Refused::Closed) | SessionError::NotLive { .. }) => {
                    shared.send(Message::Closed { attachment }).await;
                }
                Err(error) => {
                    shared.send(Message::NotOpened { attachment, why: error_line(error) }).await
                }
            }
        });
        self.opening = Some(reaching);
    }

    fn open_new(&mut self, attachment: u64, limit: usize) {
        self.detach();
        let shared = self.shared.clone();
        let settings = (self.new_session)();
        // Not aborted by `detach`: an abort could leave the new session behind.
        self.spawn(async move {
            let opened = match settings {
                Ok(settings) => shared.sessions.open(settings).await.map_err(CliError::from),
                Err(error) => Err(error),
            };
            match opened {
                Ok(session) => {
                    let id = session.id().clone();
                    let opened = LinkMessage::Opened { session, attachment, limit, fresh: true };
                    if shared.messages.send(opened).await.is_err() {
                        discard_unused(&shared.sessions, &id).await;
                    }
                }
                Err(error) => {
                    shared.send(Message::NotOpened { attachment, why: error_line(error) }).await
                }
            }
        });
    }
}

/// Formats the error and its hint in one line.
fn error_line(error: impl Into<CliError>) -> String {
    error.into().in_a_line()
}
