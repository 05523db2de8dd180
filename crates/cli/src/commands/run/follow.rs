//! Follows a session from its prompt to the end of its turn: events to the user, keys to the session.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use holdpoint_common::{Answer, AnsweredBy, AskId, AskRequest, AsksMode, Event, Fact, Outcome, PauseKind};
use holdpoint_session::{AttachFrom, Attachment, ClientEnd, SessionError, SessionHandle};
use holdpoint_tools::shown::prose;
use tokio::sync::mpsc;

use super::asked;
use super::asking::{Asking, Entry, Pressed};
use super::human::Human;
use crate::error::{CliError, FAILED};
use crate::signals::Leaving;
use crate::terminal::{Key, Keys, Terminal};
use crate::ui::{Style, Ui};

/// Events that are taken at once, before keys are looked at.
const BATCH: usize = 1024;
/// Keys that wait to be looked at. More are lost: nobody types so fast, and pastes so much as an answer.
const KEYS: usize = 4096;
/// How often a session whose actor failed is looked for again.
const REBUILDS: u32 = 3;

/// Done, but something was denied because nobody was there.
const DENIED_UNSEEN: i32 = 3;
/// Interrupted, by a key.
const INTERRUPTED: i32 = 130;

/// Follows one session.
pub(super) struct Follower<'a> {
    session: SessionHandle,
    attachment: Attachment,
    /// Where asks are answered by keys.
    terminal: Option<Terminal>,
    leaving: Leaving,
    /// None: events are written as they are.
    human: Option<Human>,
    ui: &'a mut Ui,
    /// The last event that was handled.
    after: u64,
    /// The Confirms there were.
    confirms: Vec<AskId>,
    denied_unseen: bool,
    ended: Option<Outcome>,
    /// The ask that is shown, and its keys.
    asking: Option<(Asking, Keys)>,
    pressed: mpsc::Receiver<(Key, Instant)>,
    press: mpsc::Sender<(Key, Instant)>,
}

impl<'a> Follower<'a> {
    pub(super) fn new(
        session: SessionHandle,
        attachment: Attachment,
        terminal: Option<Terminal>,
        leaving: Leaving,
        human: Option<Human>,
        ui: &'a mut Ui,
    ) -> Self {
        let (press, pressed) = mpsc::channel(KEYS);
        Self {
            session,
            attachment,
            terminal,
            leaving,
            human,
            ui,
            after: 0,
            confirms: Vec::new(),
            denied_unseen: false,
            ended: None,
            asking: None,
            pressed,
            press,
        }
    }

    /// Prompts, follows the turn to its end, closes the session. Returns the exit code.
    pub(super) async fn run(mut self, prompt: String) -> Result<i32, CliError> {
        self.session.prompt(prompt).await?;
        if self.leaving.code().is_some() {
            // The signal came before there was a turn to interrupt.
            self.session.interrupt(None).await?;
        }
        let followed = self.follow().await;
        self.asking = None;
        if let Err(error) = followed {
            // Whatever it is, nothing is left running.
            let ended = self.session.interrupt_and_wait().await;
            tracing::debug!(?ended, "ended without being shown");
            return self.leaving.code().ok_or(error);
        }
        self.session.close().await?;
        self.drain().await?;
        self.ui.flush()?;
        Ok(self.code())
    }

    /// Shows events until the turn has ended.
    async fn follow(&mut self) -> Result<(), CliError> {
        let mut batch = Vec::with_capacity(BATCH);
        let mut rebuilds = 0;
        while self.ended.is_none() {
            tokio::select! {
                biased;
                Some((key, at)) = self.pressed.recv() => self.press(key, at).await?,
                count = self.attachment.next_batch(&mut batch, BATCH) => {
                    if count == 0 {
                        rebuilds += u32::from(self.attachment.end() == ClientEnd::Ended);
                        if rebuilds > REBUILDS {
                            return Err(CliError::failed("the session has ended"));
                        }
                        self.attachment = self.session.attach(AttachFrom::after(self.after)).await?;
                        let told_to = self.attachment.snapshot().seq;
                        self.human.iter_mut().for_each(|human| human.resume(told_to));
                    }
                    self.show(&mut batch)?;
                    self.ask()?;
                    self.ui.flush()?;
                }
            }
        }
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
            self.after = self.after.max(event.seq);
            if let Some(fact) = event.fact() {
                self.note(fact);
            }
            match &mut self.human {
                Some(human) => human.show(&event, self.ui)?,
                None => self.ui.event(&event)?,
            }
        }
        Ok(())
    }

    /// Follows what the exit code depends on.
    fn note(&mut self, fact: &Fact) {
        match fact {
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
            Fact::TurnFinished { outcome, .. } => self.ended = Some(*outcome),
            // No turn will come of it.
            Fact::PromptReturned { .. } => self.ended = Some(Outcome::Interrupted),
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
                self.session.interrupt(None).await?;
            }
            Pressed::Answer(answer) => match self.session.answer(&asking.ask().id.clone(), answer).await {
                Ok(_) => {}
                // Somebody was first, or it is closed: the event that says so is on its way.
                Err(SessionError::Answer(error)) => {
                    self.ui.line(Style::Warning, &prose(&error.to_string()))?;
                    asking.reopen(Instant::now());
                    asked::show_keys(asking, self.ui)?;
                    self.ui.flush()?;
                    asking.appear(Instant::now());
                }
                Err(error) => return Err(error.into()),
            },
        }
        Ok(())
    }

    fn code(&self) -> i32 {
        match self.ended {
            Some(Outcome::Done) if self.denied_unseen => DENIED_UNSEEN,
            Some(Outcome::Done) => 0,
            Some(Outcome::Interrupted) => self.leaving.code().unwrap_or(INTERRUPTED),
            Some(Outcome::Failed | Outcome::Panicked | Outcome::Limit) | None => FAILED,
        }
    }
}
