//! Follows a session: events to the user, keys to the session.

pub(crate) mod asked;
mod human;
mod iterations;
pub(crate) mod runs;
pub(crate) mod saved;
mod view;

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use holdpoint_common::{
    Answer, AnsweredBy, AskId, AskRequest, AsksMode, CutCause, Event, Fact, Outcome, PauseKind, PromptId, RunEnd,
    TurnId,
};
use holdpoint_session::state::Refused;
use holdpoint_session::{AttachFrom, Attachment, ClientEnd, RunRequest, SessionError, SessionHandle};
use holdpoint_tools::shown::prose;
use tokio::sync::mpsc;

use self::human::Human;
pub(crate) use self::iterations::Iterations;
pub(crate) use self::view::View;
use crate::asking::{Asking, Entry, Pressed};
use crate::daemon::Daemon;
use crate::error::{CliError, FAILED};
use crate::folders::Folders;
use crate::signals::Leaving;
use crate::terminal::{Key, Keys, Terminal};
use crate::ui::{Style, Ui};

/// Events that are taken at once, before keys are looked at.
const BATCH: usize = 1024;
/// Keys that wait to be looked at. More are lost: nobody types so fast, and pastes so much as an answer.
const KEYS: usize = 4096;
/// How often a clock is shown anew while nothing happens.
const TICK: Duration = Duration::from_secs(1);
/// How often a stream that ends at once is begun again.
const BREAKS: u32 = 5;

/// Done, but something was denied because nobody was there.
const DENIED_UNSEEN: i32 = 3;
/// Interrupted, by a key.
const INTERRUPTED: i32 = 130;

/// What is followed, and how far.
pub(crate) struct Followed<'a> {
    /// The session.
    pub(crate) session: SessionHandle,
    /// What is seen of it first.
    pub(crate) from: AttachFrom,
    /// The folders of the daemon that has it; it is started again if it ends.
    pub(crate) daemon: Option<&'a Folders>,
}

/// What a session is given to do.
pub(crate) enum Begin {
    /// A prompt: one turn.
    Prompt(String),
    /// A run of iterations.
    Run(RunRequest),
}

/// How far a session is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Until {
    /// To the end of the turn.
    Turn,
    /// To the end of the run.
    Run,
    /// Until the user leaves.
    Left,
}

/// How following ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The turn ended.
    Turn(Outcome),
    /// The run ended.
    Run(RunEnd),
    /// The session was closed.
    Closed,
    /// The daemon was told to stop.
    Stopped,
    /// The user left it.
    Left,
}

/// Follows one session.
pub(crate) struct Follower<'a> {
    session: SessionHandle,
    daemon: Option<&'a Folders>,
    attachment: Attachment,
    until: Until,
    /// The prompt that is followed, and its turn.
    prompt: Option<PromptId>,
    turn: Option<TurnId>,
    /// Where asks are answered by keys.
    terminal: Option<Terminal>,
    leaving: Leaving,
    view: View,
    ui: &'a mut Ui,
    /// Where it would go on: behind the last event that was handled.
    from: AttachFrom,
    /// The turn that event was of: what is asked is asked in it.
    now: Option<TurnId>,
    /// The Confirms there were.
    confirms: Vec<AskId>,
    denied_unseen: bool,
    ended: Option<Ended>,
    /// The ask that is shown, and its keys.
    asking: Option<(Asking, Keys)>,
    pressed: mpsc::Receiver<(Key, Instant)>,
    press: mpsc::Sender<(Key, Instant)>,
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
        let Followed { session, from, daemon } = followed;
        let attachment = session.attach(from).await?;
        let now = attachment.snapshot().turn;
        let (press, pressed) = mpsc::channel(KEYS);
        Ok(Self {
            session,
            daemon,
            attachment,
            until: Until::Left,
            prompt: None,
            turn: None,
            terminal,
            leaving,
            view,
            ui,
            from,
            now,
            confirms: Vec::new(),
            denied_unseen: false,
            ended: None,
            asking: None,
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
            return Err(error.into());
        }
        if self.leaving.code().is_some() {
            // The signal came before there was a turn to interrupt.
            self.session.interrupt(None).await?;
        }
        let followed = self.follow().await;
        self.asking = None;
        if let Err(error) = followed {
            // Whatever it is, nothing is left running.
            let ended = self.session.interrupt_and_wait().await;
            let closed = self.session.close().await;
            tracing::debug!(?ended, ?closed, "ended without being shown");
            return self.leaving.code().ok_or(error);
        }
        if self.ended == Some(Ended::Stopped) {
            return self.leaving.code().ok_or_else(|| self.stopped());
        }
        let code = self.code();
        if matches!(self.ended, Some(Ended::Turn(_) | Ended::Run(_))) {
            self.leave_closed().await?;
        }
        self.ui.flush()?;
        Ok(code)
    }

    /// Gives it what it is to do.
    async fn begin(&mut self, begin: Begin) -> Result<(), SessionError> {
        match begin {
            Begin::Prompt(prompt) => {
                self.until = Until::Turn;
                self.prompt = Some(self.session.prompt(prompt).await?.prompt);
            }
            Begin::Run(request) => {
                self.until = Until::Run;
                self.session.start_run(request).await?;
            }
        }
        Ok(())
    }

    /// Closes the session, unless others have given it more to do meanwhile.
    async fn leave_closed(&mut self) -> Result<(), CliError> {
        let now = self.session.snapshot();
        if now.turn.is_some_and(|turn| Some(turn) != self.turn) || !now.queue.is_empty() {
            let what = format!("others have given it more to do: session {} goes on", self.session.id());
            return Ok(self.ui.line(Style::Warning, &what)?);
        }
        match self.session.close().await {
            // Somebody was first.
            Ok(()) | Err(SessionError::Refused(Refused::Closed)) => self.drain().await,
            Err(error) => Err(error.into()),
        }
    }

    /// Follows the session until it is closed or the user leaves.
    pub(crate) async fn watch(mut self) -> Result<Ended, CliError> {
        self.show_past().await?;
        self.ask()?;
        let followed = self.follow().await;
        self.asking = None;
        followed?;
        self.ui.end_line()?;
        self.ui.flush()?;
        Ok(self.ended.unwrap_or(Ended::Left))
    }

    /// Shows what has happened so far.
    pub(crate) async fn past(mut self) -> Result<(), CliError> {
        self.show_past().await?;
        self.ui.end_line()?;
        self.ui.flush()?;
        if self.ended == Some(Ended::Stopped) { Err(self.stopped()) } else { Ok(()) }
    }

    /// That the daemon was told to stop, and how to come back.
    fn stopped(&self) -> CliError {
        CliError::stopped(format!("`holdpoint attach {}` starts it and comes back", self.session.id()))
    }

    async fn show_past(&mut self) -> Result<(), CliError> {
        let mut batch = Vec::with_capacity(BATCH);
        let mut breaks = 0;
        while self.leaving.code().is_none() && self.ended.is_none() {
            if self.attachment.next_past(&mut batch, BATCH).await > 0 {
                breaks = 0;
                self.show(&mut batch)?;
                continue;
            }
            match self.attachment.end() {
                // Some of it may not have come.
                ClientEnd::Lagged { .. } | ClientEnd::Disconnected { .. } => self.begin_again(&mut breaks).await?,
                ClientEnd::Stopped => self.ended = Some(Ended::Stopped),
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
        while self.ended.is_none() {
            let ticks = self.ui.shows_progress() && self.view.ticks(&self.session.snapshot());
            tokio::select! {
                biased;
                () = self.leaving.asked(), if self.until == Until::Left => self.ended = Some(Ended::Left),
                Some((key, at)) = self.pressed.recv() => self.press(key, at).await?,
                count = self.attachment.next_batch(&mut batch, BATCH) => {
                    if count > 0 {
                        breaks = 0;
                    } else if self.attachment.end() == ClientEnd::Stopped {
                        self.ended = Some(Ended::Stopped);
                    } else {
                        self.begin_again(&mut breaks).await?;
                    }
                    self.show(&mut batch)?;
                    self.ask()?;
                    if self.ended.is_none() {
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
                self.ui.line(Style::Warning, "the daemon is gone, and is started again")?;
                self.ui.flush()?;
                Daemon::connect_or_start(folders).await?;
                self.session.attach(from).await
            }
            (attached, _) => attached,
        };
        self.attachment = match attached {
            Err(SessionError::Refused(Refused::Closed)) => {
                self.ended = Some(Ended::Closed);
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
            self.now = event.turn.or(self.now);
            if let Some(fact) = event.fact() {
                self.note(&event, fact);
            }
            self.view.show(&event, self.ui)?;
        }
        Ok(())
    }

    /// Follows what the exit code depends on.
    fn note(&mut self, event: &Event, fact: &Fact) {
        if self.ended.is_some() {
            return;
        }
        let turn = event.turn;
        match fact {
            Fact::TurnStarted { turn, prompt } if Some(*prompt) == self.prompt => self.turn = Some(*turn),
            Fact::AskRaised { ask } => {
                if matches!(&ask.request, AskRequest::Pause(pause) if pause.kind == PauseKind::Confirm) {
                    self.confirms.push(ask.id.clone());
                }
            }
            Fact::AskAnswered { ask, answer, by } => {
                let unseen =
                    *by == AnsweredBy::Setting { asks: AsksMode::Deny } && matches!(answer, Answer::Deny { .. });
                self.denied_unseen |= unseen && self.confirms.contains(ask);
            }
            Fact::TurnFinished { outcome, cause, .. } if turn.is_some() && turn == self.turn => {
                use CutCause::{Panic, Restart, Shutdown};
                // Nobody has wanted that.
                let fault = matches!(cause, Some(Panic | Restart | Shutdown));
                self.ended = Some(Ended::Turn(if fault { Outcome::Failed } else { *outcome }));
            }
            Fact::RunFinished { end, .. } if self.until == Until::Run => self.ended = Some(Ended::Run(*end)),
            // No turn will come of it.
            Fact::PromptReturned { prompt, .. } if Some(*prompt) == self.prompt => {
                self.ended = Some(Ended::Turn(Outcome::Interrupted));
            }
            // One of the past was opened again.
            Fact::SessionClosed { .. } if event.seq > self.attachment.snapshot().seq => {
                self.ended = Some(Ended::Closed);
            }
            _ => {}
        }
    }

    /// Shows the ask that is to be answered, if it is another than the one that is shown.
    fn ask(&mut self) -> Result<(), CliError> {
        let Some(terminal) = &self.terminal else { return Ok(()) };
        let next = self.attachment.shown();
        if next.map(|ask| &ask.id) == self.asking.as_ref().map(|(asking, _)| &asking.ask().id) {
            return Ok(());
        }
        let Some(ask) = next else {
            self.asking = None;
            return Ok(());
        };
        let keys = match self.asking.take() {
            Some((_, keys)) => keys,
            None => {
                let press = self.press.clone();
                let keys = terminal.keys(move |key, at| {
                    // More than anyone types: what is lost answers nothing.
                    let _ = press.try_send((key, at));
                });
                keys.map_err(|error| CliError::failed(format!("keys can't be read: {error}")))?
            }
        };
        let mut asking = Asking::new(ask.clone(), Instant::now());
        asked::show(asking.ask(), self.attachment.waiting(), true, self.ui)?;
        asked::show_keys(&asking, self.ui)?;
        self.ui.flush()?;
        // It has appeared when it is written, not before.
        asking.appear(Instant::now());
        self.asking = Some((asking, keys));
        Ok(())
    }

    /// Does what a key means.
    async fn press(&mut self, key: Key, at: Instant) -> Result<(), CliError> {
        let Some((asking, _)) = &mut self.asking else { return Ok(()) };
        if key == Key::Ctrl('c') && self.until == Until::Left {
            self.ended = Some(Ended::Left);
            return Ok(());
        }
        match asking.press(key, at) {
            Pressed::Nothing => {}
            Pressed::Typed => {
                if let Entry::Words { typed, .. } = asking.entry() {
                    self.ui.input(typed)?;
                }
            }
            Pressed::Turned => {
                asked::show_keys(asking, self.ui)?;
                self.ui.flush()?;
                asking.appear(Instant::now());
            }
            Pressed::Interrupt => {
                // The turn that asks, and no later one.
                let (session, turn) = (self.session.clone(), self.now);
                match self.unless_left(async move { session.interrupt(turn).await.map(drop) }).await {
                    // The stream of events ends, too, and is begun again.
                    None | Some(Ok(()) | Err(SessionError::Unreachable { .. } | SessionError::Disconnected { .. })) => {
                    }
                    Some(Err(error)) => return Err(error.into()),
                }
            }
            Pressed::Answer(answer) => {
                let (session, ask) = (self.session.clone(), asking.ask().id.clone());
                let answered = self.unless_left(async move { session.answer(&ask, answer).await.map(drop) }).await;
                let Some((asking, _)) = &mut self.asking else { return Ok(()) };
                match answered {
                    None | Some(Ok(())) => {}
                    // Somebody was first, or it is closed: the event that says so is on its way.
                    Some(Err(SessionError::Answer(error))) => {
                        self.ui.line(Style::Warning, &prose(&error.to_string()))?;
                        asking.reopen(Instant::now());
                        asked::show_keys(asking, self.ui)?;
                        self.ui.flush()?;
                        asking.appear(Instant::now());
                    }
                    // The stream of events ends, too, and is begun again.
                    Some(Err(SessionError::Unreachable { .. } | SessionError::Disconnected { .. })) => {
                        asking.reopen(Instant::now());
                    }
                    Some(Err(error)) => return Err(error.into()),
                }
            }
        }
        Ok(())
    }

    /// Waits for what comes of a key, unless the user leaves meanwhile: a daemon that hangs says nothing.
    async fn unless_left<T>(&mut self, sent: impl Future<Output = T>) -> Option<T> {
        let mut sent = std::pin::pin!(sent);
        let mut later = Vec::new();
        let done = loop {
            tokio::select! {
                biased;
                done = &mut sent => break Some(done),
                Some((key, at)) = self.pressed.recv() => match key {
                    Key::Ctrl('c') => {
                        self.ended = Some(Ended::Left);
                        break None;
                    }
                    key => later.push((key, at)),
                },
                () = self.leaving.asked(), if self.until == Until::Left => break None,
            }
        };
        for pressed in later {
            let _ = self.press.try_send(pressed);
        }
        done
    }

    fn code(&self) -> i32 {
        match self.ended {
            Some(Ended::Turn(Outcome::Done) | Ended::Run(RunEnd::Done)) if self.denied_unseen => DENIED_UNSEEN,
            Some(Ended::Turn(Outcome::Done) | Ended::Run(RunEnd::Done)) => 0,
            Some(
                Ended::Turn(Outcome::Interrupted)
                | Ended::Run(RunEnd::Interrupted | RunEnd::Closed)
                | Ended::Closed
                | Ended::Left,
            ) => self.leaving.code().unwrap_or(INTERRUPTED),
            Some(Ended::Turn(Outcome::Failed | Outcome::Panicked | Outcome::Limit) | Ended::Stopped) | None => FAILED,
        }
    }
}
