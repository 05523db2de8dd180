//! Follows a session: events to the user, keys to the session.

pub(crate) mod asked;
mod course;
mod human;
mod iterations;
mod keys;
pub(crate) mod saved;
mod view;

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use holdpoint_common::Event;
use holdpoint_session::folders::Folders;
use holdpoint_session::form::{AfterAsk, AskForm};
use holdpoint_session::state::Refused;
use holdpoint_session::{AttachFrom, Attachment, ClientEnd, Interruption, RunRequest, SessionError, SessionHandle};
use tokio::sync::mpsc;

pub(crate) use self::course::Ended;
use self::course::{Course, Until};
use self::human::Human;
pub(crate) use self::iterations::Iterations;
pub(crate) use self::view::View;
use crate::daemon::Daemon;
use crate::error::CliError;
use crate::sessions::stays;
use crate::signals::Leaving;
use crate::terminal::{Input, Keys, Terminal};
use crate::ui::{Style, Ui};

/// Events that are taken at once, before keys are looked at.
const BATCH: usize = 1024;
/// Keys that wait to be looked at. More are lost: nobody types so fast, and pastes so much as an answer.
const KEYS: usize = 4096;
/// How often a clock is shown anew while nothing happens.
const TICK: Duration = Duration::from_secs(1);
/// How often a stream that ends at once is begun again.
const BREAKS: u32 = 5;

/// What is followed, and how far.
pub(crate) struct Followed<'a> {
    /// The session.
    pub(crate) session: SessionHandle,
    /// What is seen of it first.
    pub(crate) from: AttachFrom,
    /// The folders of the daemon that has it; it is started again if it ends.
    pub(crate) daemon: Option<&'a Folders>,
    /// Its asks are shown, and answered by keys.
    pub(crate) answers: bool,
}

/// What a session is given to do.
pub(crate) enum Begin {
    /// A prompt: one turn.
    Prompt(String),
    /// A run of iterations.
    Run(RunRequest),
}

/// Follows one session.
pub(crate) struct Follower<'a> {
    session: SessionHandle,
    daemon: Option<&'a Folders>,
    attachment: Attachment,
    course: Course,
    /// Its keys answer asks, and Esc interrupts.
    terminal: Option<Terminal>,
    leaving: Leaving,
    view: View,
    ui: &'a mut Ui,
    /// Where it would go on: behind the last event that was handled.
    from: AttachFrom,
    /// Asks are shown.
    answers: bool,
    /// The ask that is shown.
    form: Option<AskForm>,
    after: AfterAsk,
    /// They are read now.
    keys: Option<Keys>,
    pressed: mpsc::Receiver<(Input, Instant)>,
    press: mpsc::Sender<(Input, Instant)>,
}

impl<'a> Follower<'a> {
    /// Attaches.
    pub(crate) async fn attach(
        followed: Followed<'a>,
        terminal: Option<Terminal>,
        leaving: Leaving,
        view: View,
        ui: &'a mut Ui,
    ) -> Result<Self, CliError> {
        let Followed { session, from, daemon, answers } = followed;
        let attachment = session.attach(from).await?;
        let (press, pressed) = mpsc::channel(KEYS);
        Ok(Self {
            session,
            daemon,
            attachment,
            course: Course::new(Until::Left),
            answers: answers && terminal.is_some(),
            terminal,
            leaving,
            view,
            ui,
            from,
            form: None,
            after: AfterAsk::default(),
            keys: None,
            pressed,
            press,
        })
    }

    /// Gives it something to do, follows it to the end of that, closes the session. Returns the exit code.
    pub(crate) async fn run(mut self, begin: Begin) -> Result<i32, CliError> {
        if let Err(error) = self.begin(begin).await {
            // What was opened for it is of no use.
            let closed = self.session.close().await;
            tracing::debug!(?closed, "closed without a turn");
            return Err(CliError::of_first_prompt(error));
        }
        let followed = self.follow().await;
        self.end_keys().await;
        if let Err(error) = followed {
            self.end_unshown().await;
            return self.leaving.code().ok_or(error);
        }
        if self.course.ended == Some(Ended::Stopped) {
            return self.leaving.code().ok_or_else(|| self.stopped());
        }
        let code = self.course.code(self.leaving.code());
        match self.course.ended {
            Some(Ended::Turn(_) | Ended::Run(_)) => self.leave_closed().await?,
            Some(Ended::Left) if self.daemon.is_some() => self.ui.line(Style::Warning, &stays(&self.session))?,
            _ => {}
        }
        self.ui.flush()?;
        Ok(code)
    }

    /// Ends what can't be shown: whatever that is, nothing of it is left running. What others have given the session since
    /// goes on.
    async fn end_unshown(&self) {
        if self.course.ended.is_some() {
            // What runs now is another client's.
            let closed = self.session.close_unused(self.course.ended_at).await;
            return tracing::debug!(?closed, "the end was not shown");
        }
        if self.course.follows_run() && self.session.refresh().await.is_ok() && self.session.snapshot().run.is_none() {
            // The run has ended, and that event was not read any more.
            let closed = self.session.close_unused(self.from.after).await;
            return tracing::debug!(?closed, "the end was not read");
        }
        let turn = self.course.turn();
        let ended = match self.session.interrupt(turn).await {
            Ok(Interruption::Interrupting(cut)) => cut.end().await.map(Some),
            Ok(Interruption::RunEnded | Interruption::NotRunning) => Ok(None),
            Err(error) => Err(error),
        };
        let closed = match turn {
            Some(_) => self.session.close_unused(self.course.begun_at).await,
            None => self.session.close().await,
        };
        tracing::debug!(?ended, ?closed, "ended without being shown");
    }

    /// Gives it what it is to do.
    async fn begin(&mut self, begin: Begin) -> Result<(), SessionError> {
        match begin {
            Begin::Prompt(prompt) => {
                let prompt = self.session.prompt(prompt).await?.prompt;
                self.course = Course::new(Until::Turn { prompt });
            }
            Begin::Run(request) => {
                self.session.start_run(request).await?;
                self.course = Course::new(Until::Run);
                if self.leaving.code().is_some() {
                    // The signal came before there was a run to interrupt.
                    self.session.interrupt(None).await?;
                }
            }
        }
        Ok(())
    }

    /// Closes the session, unless others have given it more to do meanwhile.
    async fn leave_closed(&mut self) -> Result<(), CliError> {
        match self.session.close_unused(self.course.ended_at).await {
            // Somebody was first.
            Ok(()) | Err(SessionError::Refused(Refused::Closed)) => self.drain().await,
            Err(SessionError::Refused(Refused::InUse)) => {
                let what = format!("others have given it more to do: session {} goes on", self.session.id());
                Ok(self.ui.line(Style::Warning, &what)?)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Follows the session until it is closed or the user leaves.
    pub(crate) async fn watch(mut self) -> Result<Ended, CliError> {
        self.show_past().await?;
        self.ask()?;
        let followed = self.follow().await;
        self.end_keys().await;
        followed?;
        self.ui.end_line()?;
        self.ui.flush()?;
        Ok(self.course.ended.unwrap_or(Ended::Left))
    }

    /// Shows what has happened so far.
    pub(crate) async fn past(mut self) -> Result<(), CliError> {
        self.show_past().await?;
        self.ui.end_line()?;
        self.ui.flush()?;
        if self.course.ended == Some(Ended::Stopped) { Err(self.stopped()) } else { Ok(()) }
    }

    /// That the daemon was told to stop, and how to come back.
    fn stopped(&self) -> CliError {
        CliError::stopped(format!("`holdpoint attach {}` starts it and comes back", self.session.id()))
    }

    async fn show_past(&mut self) -> Result<(), CliError> {
        let mut batch = Vec::with_capacity(BATCH);
        let mut breaks = 0;
        while self.leaving.code().is_none() && self.course.ended.is_none() {
            if self.attachment.next_past(&mut batch, BATCH).await > 0 {
                breaks = 0;
                self.show(&mut batch)?;
                continue;
            }
            match self.attachment.end() {
                // Some of it may not have come.
                ClientEnd::Lagged { .. } | ClientEnd::Disconnected { .. } => self.begin_again(&mut breaks).await?,
                ClientEnd::Stopped => self.course.ended = Some(Ended::Stopped),
                ClientEnd::Detached | ClientEnd::Ended => break,
            }
        }
        if self.from.limit.is_some() {
            self.from = AttachFrom::after(self.attachment.snapshot().seq.max(self.from.after));
        }
        Ok(self.ui.flush()?)
    }

    /// Shows events until it has ended.
    async fn follow(&mut self) -> Result<(), CliError> {
        let mut batch = Vec::with_capacity(BATCH);
        let mut breaks = 0;
        let terminal = self.terminal.clone();
        while self.course.ended.is_none() {
            let ticks = self.ui.shows_progress() && self.view.ticks(&self.session.snapshot());
            self.listen();
            let keys_end = self.keys_end();
            tokio::select! {
                biased;
                () = self.leaving.asked(), if self.course.is_left_at_will() => self.course.ended = Some(Ended::Left),
                () = keys::continues(terminal.as_ref()) => self.go_on()?,
                Some((input, at)) = self.pressed.recv() => self.press(input, at).await?,
                () = tokio::time::sleep_until(keys_end.unwrap_or_else(Instant::now).into()), if keys_end.is_some() => {
                    self.leave_keys();
                }
                count = self.attachment.next_batch(&mut batch, BATCH) => {
                    if count > 0 {
                        breaks = 0;
                    } else if self.attachment.end() == ClientEnd::Stopped {
                        self.course.ended = Some(Ended::Stopped);
                    } else {
                        self.begin_again(&mut breaks).await?;
                    }
                    self.show(&mut batch)?;
                    self.ask()?;
                    if self.course.ended.is_none() {
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

    /// Goes on where the stream of events ended, unless it has ended so often since something came.
    async fn begin_again(&mut self, breaks: &mut u32) -> Result<(), CliError> {
        *breaks += 1;
        if *breaks > BREAKS {
            return Err(CliError::failed("the stream of events ends as soon as it has begun"));
        }
        let from = self.from;
        let attached = match (self.session.attach(from).await, self.daemon) {
            (Err(SessionError::Unreachable { .. } | SessionError::Disconnected { .. }), Some(folders)) => {
                // One that was stopped has taken its sockets with it, and is left so; one that has died has not.
                if !folders.sockets()?.iter().any(|socket| socket.exists()) {
                    self.course.ended = Some(Ended::Stopped);
                    return Ok(());
                }
                self.ui.line(Style::Warning, "the daemon is gone, and is started again")?;
                self.ui.flush()?;
                Daemon::connect_or_start(folders).await?;
                self.session.attach(from).await
            }
            (attached, _) => attached,
        };
        self.attachment = match attached {
            Err(SessionError::Refused(Refused::Closed)) => {
                self.course.ended = Some(Ended::Closed);
                return Ok(());
            }
            // It is being stopped, and still answers.
            Err(SessionError::Stopped) => {
                self.course.ended = Some(Ended::Stopped);
                return Ok(());
            }
            attached => attached?,
        };
        let told_to = self.attachment.snapshot().seq;
        self.view.resume(told_to);
        Ok(())
    }

    /// Shows what is still to come of a session that was closed.
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
            let known = self.course.turn();
            self.course.note(&event, self.attachment.snapshot().seq);
            if let Some(turn) = self.course.turn().filter(|turn| known != Some(*turn)) {
                // Before it is shown, which may take long: the next turn may be another client's.
                self.leaving.interrupts_only(&self.session, turn);
            }
            self.view.show(&event, self.ui)?;
        }
        Ok(())
    }
}
