//! Follows a session: shows its events to the user and passes the user's keys to it.

pub(crate) mod asked;
mod iterations;
mod keys;
pub(crate) mod saved;
mod state;
mod step_view;
mod view;

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use holdpoint_common::api::PromptRequest;
use holdpoint_common::{Event, Refused};
use holdpoint_session::folders::Folders;
use holdpoint_session::form::{AfterAsk, AskForm};
use holdpoint_session::{
    AttachFrom, Attachment, ClientEnd, Interruption, RunRequest, SessionError, SessionHandle,
};
use tokio::sync::mpsc;

pub(crate) use self::iterations::Iterations;
pub(crate) use self::state::FollowEnd;
use self::state::{FollowState, Until};
use self::step_view::StepView;
pub(crate) use self::view::View;
use crate::daemon::Daemon;
use crate::error::CliError;
use crate::sessions::stays_open_text;
use crate::signals::ExitRequest;
use crate::terminal::{Input, KeyTerminal, Keys};
use crate::tone::Tone;
use crate::ui::Ui;

/// The maximum number of events handled before keys are read again.
const BATCH: usize = 1024;
/// The capacity of the key queue. Further keys are dropped: neither typing nor a pasted answer
/// fills the queue.
const MAX_KEYS: usize = 4096;
/// How often the progress line is redrawn while no events arrive.
const TICK: Duration = Duration::from_secs(1);
/// How many times in a row a stream that ends at once is reopened.
const MAX_BREAKS: u32 = 5;

/// The session to follow, and the way to follow it.
pub(crate) struct FollowRequest<'a> {
    pub(crate) session: SessionHandle,
    /// The part of the past that is shown first.
    pub(crate) from: AttachFrom,
    /// The folders of the session's daemon, which is restarted if it crashes; `None` without a
    /// daemon.
    pub(crate) daemon: Option<&'a Folders>,
    /// Whether asks are shown and answered by keys.
    pub(crate) answers: bool,
}

/// The work that a session starts with.
pub(crate) enum Begin {
    Prompt(PromptRequest),
    Run(RunRequest),
}

/// The plain-terminal view of one session.
pub(crate) struct Follower<'a> {
    session: SessionHandle,
    daemon: Option<&'a Folders>,
    attachment: Attachment,
    state: FollowState,
    /// The terminal with the keys that answer asks and interrupt.
    terminal: Option<KeyTerminal>,
    leaving: ExitRequest,
    view: View,
    ui: &'a mut Ui,
    /// The position to attach from again: behind the last handled event.
    from: AttachFrom,
    /// Whether asks are shown and answered by keys.
    answers: bool,
    /// The shown ask.
    form: Option<AskForm>,
    after_ask: AfterAsk,
    /// Present while keys are read.
    keys: Option<Keys>,
    key_receiver: mpsc::Receiver<(Input, Instant)>,
    key_sender: mpsc::Sender<(Input, Instant)>,
    /// Keys that arrived while a reply was awaited. They are handled before those of the receiver.
    deferred_keys: VecDeque<(Input, Instant)>,
}

impl<'a> Follower<'a> {
    pub(crate) async fn attach(
        followed: FollowRequest<'a>,
        terminal: Option<KeyTerminal>,
        leaving: ExitRequest,
        view: View,
        ui: &'a mut Ui,
    ) -> Result<Self, CliError> {
        let FollowRequest { session, from, daemon, answers } = followed;
        let attachment = session.attach(from).await?;
        let (key_sender, key_receiver) = mpsc::channel(MAX_KEYS);
        Ok(Self {
            session,
            daemon,
            attachment,
            state: FollowState::new(Until::Left),
            answers: answers && terminal.is_some(),
            terminal,
            leaving,
            view,
            ui,
            from,
            form: None,
            after_ask: AfterAsk::default(),
            keys: None,
            key_receiver,
            key_sender,
            deferred_keys: VecDeque::new(),
        })
    }

    /// Gives the session its work, follows it to the end and closes the session. Returns the exit
    /// code.
    pub(crate) async fn run(mut self, begin: Begin) -> Result<i32, CliError> {
        if let Err(error) = self.begin(begin).await {
            // The session was opened for this work only.
            let closed = self.session.close().await;
            tracing::debug!(?closed, "closed without a turn");
            return Err(CliError::from_first_prompt(error));
        }
        let followed = self.follow().await;
        self.swallow_last_keys().await;
        if let Err(error) = followed {
            self.end_unshown().await;
            return self.leaving.code().ok_or(error);
        }
        if self.state.ended == Some(FollowEnd::Stopped) {
            return self.leaving.code().ok_or_else(|| self.stopped_error());
        }
        let code = self.state.code(self.leaving.code());
        match self.state.ended {
            Some(FollowEnd::Turn(_) | FollowEnd::Run(_)) => self.close_if_unused().await?,
            Some(FollowEnd::Left) if self.daemon.is_some() => {
                self.ui.line(Tone::Warning, &stays_open_text(&self.session))?
            }
            _ => {}
        }
        self.ui.flush()?;
        Ok(code)
    }

    /// Ends the work if it can't be shown any longer, so that it does not keep running unseen. Work
    /// that other clients have added continues.
    async fn end_unshown(&self) {
        if self.state.ended.is_some() {
            // Any work that runs now is another client's.
            let closed = self.session.close_unused(self.state.end_seq).await;
            return tracing::debug!(?closed, "the end was not shown");
        }
        if self.state.follows_run()
            && self.session.refresh().await.is_ok()
            && self.session.snapshot().run.is_none()
        {
            // The run has ended, but its last event was not read.
            let closed = self.session.close_unused(self.from.after).await;
            return tracing::debug!(?closed, "the end was not read");
        }
        let turn = self.state.turn();
        let ended = match self.session.interrupt(turn).await {
            Ok(Interruption::Interrupting(cut)) => cut.end().await.map(Some),
            Ok(Interruption::RunEnded | Interruption::NotRunning) => Ok(None),
            Err(error) => Err(error),
        };
        let closed = match turn {
            Some(_) => self.session.close_unused(self.state.turn_seq).await,
            None => self.session.close().await,
        };
        tracing::debug!(?ended, ?closed, "ended without being shown");
    }

    /// Starts the session's work.
    async fn begin(&mut self, begin: Begin) -> Result<(), SessionError> {
        match begin {
            Begin::Prompt(prompt) => {
                let prompt = self.session.prompt(prompt).await?.prompt;
                self.state = FollowState::new(Until::Turn { prompt });
            }
            Begin::Run(request) => {
                self.session.start_run(request).await?;
                self.state = FollowState::new(Until::Run);
                if self.leaving.code().is_some() {
                    // The signal arrived before there was a run to interrupt.
                    self.session.interrupt(None).await?;
                }
            }
        }
        Ok(())
    }

    /// Closes the session, unless other clients have given it more work meanwhile.
    async fn close_if_unused(&mut self) -> Result<(), CliError> {
        match self.session.close_unused(self.state.end_seq).await {
            // Another client may have closed it first.
            Ok(()) | Err(SessionError::Refused(Refused::Closed)) => self.drain().await,
            Err(SessionError::Refused(Refused::InUse)) => {
                let message = format!(
                    "other clients have sent more prompts: session {} stays open",
                    self.session.id()
                );
                Ok(self.ui.line(Tone::Warning, &message)?)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Follows the session until it is closed or the user leaves.
    pub(crate) async fn watch(mut self) -> Result<FollowEnd, CliError> {
        self.show_past().await?;
        self.show_next_ask()?;
        let followed = self.follow().await;
        self.swallow_last_keys().await;
        followed?;
        self.ui.end_line()?;
        self.ui.flush()?;
        Ok(self.state.ended.unwrap_or(FollowEnd::Left))
    }

    /// Shows the events so far.
    pub(crate) async fn show_past_only(mut self) -> Result<(), CliError> {
        self.show_past().await?;
        self.ui.end_line()?;
        self.ui.flush()?;
        if self.state.ended == Some(FollowEnd::Stopped) {
            Err(self.stopped_error())
        } else {
            Ok(())
        }
    }

    /// The error for a daemon that was stopped, with the command that resumes the session.
    fn stopped_error(&self) -> CliError {
        CliError::stopped(format!(
            "`holdpoint attach {}` starts it again and returns to the session",
            self.session.id()
        ))
    }

    async fn show_past(&mut self) -> Result<(), CliError> {
        let mut batch = Vec::with_capacity(BATCH);
        let mut breaks = 0;
        while self.leaving.code().is_none() && self.state.ended.is_none() {
            if self.attachment.next_past(&mut batch, BATCH).await > 0 {
                breaks = 0;
                self.show(&mut batch)?;
                continue;
            }
            match self.attachment.end() {
                // Some of the past may be missing.
                ClientEnd::Lagged { .. }
                | ClientEnd::Moved { .. }
                | ClientEnd::Disconnected { .. } => self.reattach(&mut breaks).await?,
                ClientEnd::Stopped => self.state.ended = Some(FollowEnd::Stopped),
                ClientEnd::Detached | ClientEnd::Ended => break,
            }
        }
        if self.from.limit.is_some() {
            // No event was shown. Attaching again must not count back from a newer event.
            self.from = AttachFrom::after(self.attachment.snapshot().seq.max(self.from.after));
        }
        Ok(self.ui.flush()?)
    }

    /// Shows events until following ends.
    async fn follow(&mut self) -> Result<(), CliError> {
        let mut batch = Vec::with_capacity(BATCH);
        let mut breaks = 0;
        let terminal = self.terminal.clone();
        while self.state.ended.is_none() {
            let ticks = self.ui.shows_progress() && self.view.ticks(&self.session.snapshot());
            self.listen();
            let keys_deadline = self.keys_deadline();
            tokio::select! {
                biased;
                () = self.leaving.requested(), if self.state.follows_until_left() => self.state.ended = Some(FollowEnd::Left),
                () = keys::wait_resumed(terminal.as_ref()) => self.show_ask_again()?,
                Some((input, at)) = keys::next_key(&mut self.deferred_keys, &mut self.key_receiver) => self.press(input, at).await?,
                () = tokio::time::sleep_until(keys_deadline.unwrap_or_else(Instant::now).into()), if keys_deadline.is_some() => {
                    self.leave_keys();
                }
                count = self.attachment.next_batch(&mut batch, BATCH) => {
                    if count > 0 {
                        breaks = 0;
                    } else if self.attachment.end() == ClientEnd::Stopped {
                        self.state.ended = Some(FollowEnd::Stopped);
                    } else {
                        self.reattach(&mut breaks).await?;
                    }
                    self.show(&mut batch)?;
                    self.show_next_ask()?;
                    if self.state.ended.is_none() {
                        self.view.progress(&self.session.snapshot(), self.ui)?;
                    }
                    self.ui.flush()?;
                }
                () = tokio::time::sleep(TICK), if ticks => {
                    self.view.progress(&self.session.snapshot(), self.ui)?;
                }
            }
        }
        Ok(())
    }

    /// Attaches again where the stream ended. Fails if this has happened too often without an event
    /// in between.
    async fn reattach(&mut self, breaks: &mut u32) -> Result<(), CliError> {
        *breaks += 1;
        if *breaks > MAX_BREAKS {
            return Err(CliError::failed("the event stream ends as soon as it has begun"));
        }
        let from = self.from;
        let attached = match (self.session.attach(from).await, self.daemon) {
            (
                Err(SessionError::Unreachable { .. } | SessionError::Disconnected { .. }),
                Some(folders),
            ) => {
                // A stopped daemon has removed its sockets and stays stopped. A crashed one has
                // left them and is restarted.
                if !folders.sockets()?.iter().any(|socket| socket.exists()) {
                    self.state.ended = Some(FollowEnd::Stopped);
                    return Ok(());
                }
                self.ui.line(Tone::Warning, "the daemon is gone; restarting it")?;
                self.ui.flush()?;
                Daemon::connect_or_start(folders).await?;
                self.session.attach(from).await
            }
            (attached, _) => attached,
        };
        self.attachment = match attached {
            Err(SessionError::Refused(Refused::Closed)) => {
                self.state.ended = Some(FollowEnd::Closed);
                return Ok(());
            }
            // The daemon is stopping, but still answers.
            Err(SessionError::Stopped) => {
                self.state.ended = Some(FollowEnd::Stopped);
                return Ok(());
            }
            attached => attached?,
        };
        let replayed_to = self.attachment.snapshot().seq;
        self.view.resume(replayed_to);
        Ok(())
    }

    /// Shows the remaining events of a closed session.
    async fn drain(&mut self) -> Result<(), CliError> {
        let mut batch = Vec::new();
        while self.attachment.next_batch(&mut batch, BATCH).await > 0 {
            self.show(&mut batch)?;
        }
        Ok(())
    }

    fn show(&mut self, batch: &mut Vec<Arc<Event>>) -> io::Result<()> {
        for event in batch.drain(..) {
            self.from = AttachFrom::after(self.from.after.max(event.seq));
            let known = self.state.turn();
            self.state.observe(&event, self.attachment.snapshot().seq);
            if let Some(turn) = self.state.turn().filter(|turn| known != Some(*turn)) {
                // Done before the event is shown, which can take long: the next turn may be another
                // client's.
                self.leaving.interrupt_only(&self.session, turn);
            }
            self.view.show(&event, self.ui)?;
        }
        Ok(())
    }
}
