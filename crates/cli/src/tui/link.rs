//! Carries out what the screen wants done, and tells it what becomes of sessions: by their handles alone.

mod ask_end;
mod branch;
mod daemon;
mod export;
mod follow;
mod news;

use std::sync::Arc;

use holdpoint_common::{AskId, SessionId};
use holdpoint_session::folders::Folders;
use holdpoint_session::state::Refused;
use holdpoint_session::{AttachFrom, Interruption, OpenSession, SessionError, SessionHandle, Sessions};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{AbortHandle, JoinHandle, JoinSet};

use super::message::{Command, Message};
use crate::error::CliError;
use crate::sessions::forget;

/// Messages that wait to be looked at. Whoever has more to tell waits.
const MESSAGES: usize = 64;

/// What the link tells: the screen, or the loop, which keeps the handle of the session that is shown.
pub(crate) enum Word {
    Message(Message),
    /// A session to be followed, in which so much was said.
    Opened {
        session: SessionHandle,
        attachment: u64,
        limit: usize,
        /// It was opened for this.
        fresh: bool,
    },
}

/// What opens fresh sessions.
pub(crate) type Fresh = Box<dyn Fn() -> Result<OpenSession, CliError> + Send>;

/// The way to the sessions.
pub(crate) struct Link {
    shared: Shared,
    fresh: Fresh,
    session: Option<SessionHandle>,
    following: Option<JoinHandle<()>>,
    /// The session that is being looked for, to be shown.
    opening: Option<AbortHandle>,
    /// What is being done.
    doing: JoinSet<()>,
    /// Ends when all that was wanted of the session that is shown, up to now, is done.
    before: Option<oneshot::Receiver<()>>,
    /// The prompts that were sent last, and what ends when they are taken or refused.
    sent: Vec<(AbortHandle, SessionId, String)>,
}

/// What every task of it has.
#[derive(Clone)]
struct Shared {
    sessions: Sessions,
    folders: Arc<Folders>,
    words: mpsc::Sender<Word>,
    daemon: watch::Sender<Wanted>,
}

/// Whether the daemon is to be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// It is, as far as is known.
    Here,
    /// It is gone, and is to be started until it is there: it has died, or the user wants it back.
    Back,
    /// It was told to stop, and is not to be started until the user wants it.
    Stopped,
}

impl Shared {
    async fn tell(&self, message: Message) {
        // Nobody listens when the screen is about to be left.
        let _ = self.words.send(Word::Message(message)).await;
    }

    async fn failed(&self, error: SessionError) {
        self.tell(Message::Failed(why(error))).await;
    }
}

impl Link {
    /// The way to these sessions, and where what it tells comes out.
    pub(crate) fn new(sessions: Sessions, folders: &Folders, fresh: Fresh) -> (Self, mpsc::Receiver<Word>) {
        let (words, told) = mpsc::channel(MESSAGES);
        let shared =
            Shared { sessions, folders: Arc::new(folders.clone()), words, daemon: watch::Sender::new(Wanted::Here) };
        tokio::spawn(news::watch(shared.clone()));
        let (doing, sent) = (JoinSet::new(), Vec::new());
        (Self { shared, fresh, session: None, following: None, opening: None, doing, before: None, sent }, told)
    }

    /// Follows a session from here on, instead of the one before.
    pub(crate) fn follow(&mut self, session: SessionHandle, attachment: u64, limit: usize) {
        self.detach();
        self.session = Some(session.clone());
        let from = AttachFrom { limit: Some(limit), ..AttachFrom::start() };
        self.following = Some(tokio::spawn(follow::follow(self.shared.clone(), session, attachment, from)));
    }

    /// No longer follows anything, or is about to.
    pub(crate) fn detach(&mut self) {
        self.session = None;
        if let Some(opening) = self.opening.take() {
            opening.abort();
        }
        if let Some(following) = self.following.take() {
            following.abort();
        }
    }

    /// Waits until all that was begun is done.
    pub(crate) async fn finish(&mut self) {
        self.detach();
        while self.doing.join_next().await.is_some() {}
    }

    /// The prompts that were sent, and of which nothing is told.
    pub(crate) fn unanswered(&mut self) -> Vec<(SessionId, String)> {
        let unanswered = self.sent.drain(..).filter(|(sends, ..)| !sends.is_finished());
        unanswered.map(|(_, id, text)| (id, text)).collect()
    }

    fn begin(&mut self, task: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        // What is done is dropped.
        while self.doing.try_join_next().is_some() {}
        self.doing.spawn(task)
    }

    /// Deletes a session in which nothing was said, and returns when that is done.
    pub(crate) async fn forgotten(&self, id: &SessionId) {
        forget(&self.shared.sessions, id).await;
    }

    /// Deletes a session that was opened to be shown, and is not.
    pub(crate) fn forget(&mut self, id: SessionId) {
        let sessions = self.shared.sessions.clone();
        self.begin(async move { forget(&sessions, &id).await });
    }

    /// Carries out what concerns sessions. What becomes of it is told.
    pub(crate) fn carry_out(&mut self, command: Command) {
        match command {
            Command::Open { id, attachment, limit } => self.open(id, attachment, limit),
            Command::Reach { id, attachment, limit } => self.reach(id, attachment, limit),
            Command::New { attachment, limit } => self.open_fresh(attachment, limit),
            Command::Detach => self.detach(),
            Command::Start => _ = self.shared.daemon.send_replace(Wanted::Back),
            Command::InterruptOther { ask } => self.interrupt_other(ask),
            Command::ReadAskEnd { ask } => {
                let shared = self.shared.clone();
                self.begin(async move { ask_end::read(&shared, ask).await });
            }
            Command::Close { id } => self.close(id),
            Command::Delete { id } => {
                let shared = self.shared.clone();
                self.begin(async move {
                    match shared.sessions.delete(id.as_str()).await {
                        Ok(()) => shared.tell(Message::Told("deleted".to_owned())).await,
                        Err(error) => shared.failed(error).await,
                    }
                });
            }
            Command::Answer { ask, answer } => {
                let shared = self.shared.clone();
                self.begin(async move {
                    // A saved session is opened for it only if it takes it.
                    if let Err(error) = shared.sessions.answer(&ask, answer).await {
                        shared.tell(Message::AnswerRefused { ask, why: why(error) }).await;
                    }
                });
            }
            command => self.with_shown(command),
        }
    }

    /// Carries out what concerns the session that is shown.
    fn with_shown(&mut self, command: Command) {
        let (shared, Some(session)) = (self.shared.clone(), self.session.clone()) else { return };
        // An interrupt waits for nothing, and nothing for what takes long; else one comes after the other, as it was typed.
        let in_order = !matches!(command, Command::Interrupt { .. } | Command::Export { .. });
        let (ends, ended) = oneshot::channel::<()>();
        let before = in_order.then(|| self.before.replace(ended)).flatten();
        let prompt =
            if let Command::Prompt { text } = &command { Some((session.id().clone(), text.clone())) } else { None };
        let begun = self.begin(async move {
            // Dropped when all of this is done, which is what the next one waits for.
            let _ends = ends;
            if let Some(before) = before {
                let _ = before.await;
            }
            let done = match command {
                Command::Prompt { text } => match session.prompt(text.clone()).await {
                    Ok(_) => Ok(()),
                    Err(error) => {
                        let (id, why) = (session.id().clone(), why(error));
                        return shared.tell(Message::PromptRefused { id, text, why }).await;
                    }
                },
                Command::Interrupt { turn } => session.interrupt(turn).await.map(drop),
                Command::ToggleHold { shown } => session.toggle_hold(shown).await.map(drop),
                Command::Hold => session.hold().await.map(drop),
                Command::Release => session.release().await.map(drop),
                Command::Rename { name } => session.rename(name).await,
                Command::Model { name } => session.change_model(name).await,
                Command::Debug { enabled } => session.change_debug(enabled).await,
                Command::Export { path } => {
                    let message = export::export(&session, &path).await;
                    return shared.tell(message).await;
                }
                _ => Ok(()),
            };
            if let Err(error) = done {
                shared.failed(error).await;
            }
        });
        if let Some((id, text)) = prompt {
            self.sent.retain(|(sends, ..)| !sends.is_finished());
            self.sent.push((begun, id, text));
        }
    }

    /// Ends the turn that asks this, and no later one.
    fn interrupt_other(&mut self, ask: AskId) {
        let shared = self.shared.clone();
        self.begin(async move {
            let done = async {
                let now = shared.sessions.look(ask.session.as_str()).await?;
                if !now.asks.iter().any(|open| open.id == ask) {
                    return Ok("it is no longer asked".to_owned());
                }
                // A session that was closed or unloaded since is not opened for it.
                let session = shared.sessions.reach(&ask.session).await?;
                // What is cut is told by its receipt, when all of it is down.
                Ok(match session.interrupt(now.turn).await? {
                    Interruption::NotRunning => "nothing was running".to_owned(),
                    Interruption::RunEnded => "Agent interrupted; the run is over".to_owned(),
                    Interruption::Interrupting(turn) => match turn.end().await?.receipt {
                        Some(receipt) => format!("Agent interrupted: {receipt}"),
                        None => "Agent interrupted".to_owned(),
                    },
                })
            };
            match done.await {
                Ok(what) => shared.tell(Message::Told(what)).await,
                Err(error) => shared.failed(error).await,
            }
        });
    }

    fn close(&mut self, id: SessionId) {
        let shared = self.shared.clone();
        self.begin(async move {
            match shared.sessions.close(&id).await {
                // Somebody was first.
                Ok(()) | Err(SessionError::Refused(Refused::Closed)) => {
                    shared.tell(Message::Told("closed; it stays saved".to_owned())).await
                }
                Err(error) => shared.failed(error).await,
            }
        });
    }

    fn open(&mut self, id: SessionId, attachment: u64, limit: usize) {
        // Of the one that is shown, only more of its past is wanted.
        if let Some(session) = self.session.clone().filter(|session| *session.id() == id) {
            return self.follow(session, attachment, limit);
        }
        self.detach();
        let shared = self.shared.clone();
        let opening = self.begin(async move {
            match shared.sessions.get(id.as_str()).await {
                Ok(session) => {
                    // Nobody listens when the screen is about to be left.
                    let _ = shared.words.send(Word::Opened { session, attachment, limit, fresh: false }).await;
                }
                Err(error) => shared.tell(Message::NotOpened { attachment, why: why(error) }).await,
            }
        });
        self.opening = Some(opening);
    }

    /// Shows a session that is live; one that is closed or only saved is not opened.
    fn reach(&mut self, id: SessionId, attachment: u64, limit: usize) {
        self.detach();
        let shared = self.shared.clone();
        let reaching = self.begin(async move {
            match shared.sessions.reach(&id).await {
                Ok(session) => {
                    // Nobody listens when the screen is about to be left.
                    let _ = shared.words.send(Word::Opened { session, attachment, limit, fresh: false }).await;
                }
                Err(SessionError::Refused(Refused::Closed) | SessionError::NotLive { .. }) => {
                    shared.tell(Message::Closed { attachment }).await;
                }
                Err(error) => shared.tell(Message::NotOpened { attachment, why: why(error) }).await,
            }
        });
        self.opening = Some(reaching);
    }

    fn open_fresh(&mut self, attachment: u64, limit: usize) {
        self.detach();
        let (shared, open) = (self.shared.clone(), (self.fresh)());
        self.begin(async move {
            let opened = match open {
                Ok(open) => shared.sessions.open(open).await.map_err(CliError::from),
                Err(error) => Err(error),
            };
            match opened {
                Ok(session) => {
                    let id = session.id().clone();
                    let opened = Word::Opened { session, attachment, limit, fresh: true };
                    if shared.words.send(opened).await.is_err() {
                        forget(&shared.sessions, &id).await;
                    }
                }
                Err(error) => shared.tell(Message::NotOpened { attachment, why: why(error) }).await,
            }
        });
    }
}

/// What went wrong and what to do about it, in a line.
fn why(error: impl Into<CliError>) -> String {
    error.into().in_a_line()
}
