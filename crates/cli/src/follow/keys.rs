//! The keys at a session that is followed: they answer asks, and Esc interrupts.

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use holdpoint_session::form::{AskForm, Key, Pressed};
use holdpoint_session::{Interruption, SessionError};
use holdpoint_tools::shown::prose;
use tokio::time::sleep_until;

use super::course::Ended;
use super::{Follower, KEYS, asked};
use crate::error::CliError;
use crate::terminal::{Input, Terminal, form_key};
use crate::ui::Style;

/// How long the end waits, at the most, for a user to stop typing for an ask that has closed.
const TYPES_ON: Duration = Duration::from_secs(2);

impl Follower<'_> {
    /// Reads keys all the time if both the input and the output of the terminal are this program's. A shell may take it away,
    /// and give it back. Elsewhere keys are read while there is an ask.
    pub(super) fn listen(&mut self) {
        let Some(terminal) = &self.terminal else { return };
        if self.is_at_terminal() && !terminal.is_taken() && terminal.is_in_foreground() {
            // Without keys, signals interrupt.
            let taken = self.take_keys();
            tracing::debug!(?taken, "keys are read");
        }
    }

    fn is_at_terminal(&self) -> bool {
        self.ui.out_is_terminal() && io::stdin().is_terminal()
    }

    fn take_keys(&mut self) -> Result<(), CliError> {
        let Some(terminal) = &self.terminal else { return Ok(()) };
        let failed = |error| CliError::failed(format!("keys can't be read: {error}"));
        if self.keys.is_some() {
            // Another program may have had the terminal since.
            return terminal.take_keys().map_err(failed);
        }
        let press = self.press.clone();
        let keys = terminal.keys(move |input, at| {
            // More than anyone types: a key that is lost answers nothing.
            let _ = press.try_send((input, at));
        });
        self.keys = Some(keys.map_err(failed)?);
        Ok(())
    }

    /// When keys that were read for an ask are no longer: it has closed, and the user has stopped typing for it.
    pub(super) fn keys_end(&self) -> Option<Instant> {
        self.after.end().filter(|_| self.keys.is_some() && self.form.is_none() && !self.is_at_terminal())
    }

    /// Keys are no longer read.
    pub(super) fn leave_keys(&mut self) {
        (self.form, self.keys) = (None, None);
    }

    /// The same at the end: keys that are still typed for an ask which has just closed are not left to the shell.
    pub(super) async fn end_keys(&mut self) {
        let latest = Instant::now() + TYPES_ON;
        while self.keys.is_some() && self.leaving.code().is_none_or(|code| code == super::course::INTERRUPTED) {
            let Some(end) = self.after.end().map(|end| end.min(latest)).filter(|end| *end > Instant::now()) else {
                break;
            };
            tokio::select! {
                () = sleep_until(end.into()) => break,
                Some((input, at)) = self.pressed.recv() => {
                    self.after.swallows(key_of(&input), at);
                }
            }
        }
        self.leave_keys();
    }

    /// Shows the ask that is to be answered, if it is another than the one that is shown.
    pub(super) fn ask(&mut self) -> Result<(), CliError> {
        if !self.answers {
            return Ok(());
        }
        let next = self.attachment.shown().cloned();
        if next.as_ref().map(|ask| &ask.id) == self.form.as_ref().map(|form| &form.ask().id) {
            return Ok(());
        }
        if let Some(form) = self.form.take() {
            self.after.begin(Instant::now());
            if !form.is_done() && form.is_begun() {
                self.ui.line(Style::Warning, "Your words for it were not sent.")?;
            }
        }
        let Some(ask) = next else { return Ok(()) };
        self.take_keys()?;
        self.show_form(AskForm::new(ask, Instant::now()))
    }

    /// Shows an ask, as far as the user is with it. From then on, keys answer it a while later.
    fn show_form(&mut self, mut form: AskForm) -> Result<(), CliError> {
        asked::show(form.ask(), self.attachment.waiting(), true, self.ui)?;
        asked::show_keys(&form, self.ui)?;
        self.ui.flush()?;
        // It has appeared when it is written, not before.
        form.appear(Instant::now());
        self.form = Some(form);
        Ok(())
    }

    /// Shows the ask again: a shell may have written over it, and the user may have typed for that shell.
    pub(super) fn go_on(&mut self) -> Result<(), CliError> {
        if !self.terminal.as_ref().is_some_and(Terminal::is_in_foreground) {
            return Ok(());
        }
        match self.form.take() {
            Some(form) if form.is_done() => self.form = Some(form),
            Some(form) => {
                self.take_keys()?;
                self.ui.end_line()?;
                self.show_form(form)?;
            }
            None => {}
        }
        Ok(())
    }

    /// Does what the user wants with a key.
    pub(super) async fn press(&mut self, input: Input, at: Instant) -> Result<(), CliError> {
        if input == Input::Foreground {
            return self.go_on();
        }
        let key = key_of(&input);
        if self.leaving.code().is_some() {
            // The turn is interrupted: no answer goes with that.
            return Ok(());
        }
        let Some(form) = &mut self.form else {
            let swallowed = self.after.swallows(key, at);
            return if key == Key::Esc && !swallowed { self.interrupt().await } else { Ok(()) };
        };
        if input == Input::Continued {
            form.appear(at);
        }
        let pressed = match &input {
            Input::Paste(text) => form.paste(text, at),
            _ => form.press(key, at),
        };
        match pressed {
            Pressed::Nothing => {}
            Pressed::Typed => self.ui.input(form.words())?,
            turned @ (Pressed::Turned | Pressed::Moved) => {
                asked::show_keys(form, self.ui)?;
                self.ui.flush()?;
                if turned == Pressed::Moved {
                    form.appear(Instant::now());
                }
            }
            Pressed::Interrupt => self.interrupt().await?,
            Pressed::Answer(answer) => {
                let (session, ask) = (self.session.clone(), form.ask().id.clone());
                let answered =
                    self.unless_left(true, async move { session.answer(&ask, answer).await.map(drop) }).await;
                let Some(form) = &mut self.form else { return Ok(()) };
                match answered {
                    None | Some(Ok(())) => {}
                    // Another client was first, or it is closed: the event of that is on its way.
                    Some(Err(SessionError::Answer(error))) => {
                        self.ui.line(Style::Warning, &prose(&error.to_string()))?;
                        form.reopen(Instant::now());
                        asked::show_keys(form, self.ui)?;
                        self.ui.flush()?;
                        form.appear(Instant::now());
                    }
                    // The stream of events ends, too, and is begun again.
                    Some(Err(SessionError::Unreachable { .. } | SessionError::Disconnected { .. })) => {
                        form.reopen(Instant::now());
                    }
                    Some(Err(error)) => return Err(error.into()),
                }
            }
        }
        Ok(())
    }

    /// Ends the turn that is followed, or the run, as INT does; without one, the turn that is shown.
    async fn interrupt(&mut self) -> Result<(), CliError> {
        let turn = if self.course.is_left_at_will() { self.session.snapshot().turn } else { self.course.turn() };
        let session = self.session.clone();
        match self.unless_left(false, async move { session.interrupt(turn).await }).await {
            // It ends the follower, unless the user may leave that at any time. A turn that has not begun yet is
            // interrupted when it begins.
            Some(Ok(Interruption::Interrupting(_) | Interruption::RunEnded | Interruption::NotRunning))
                if !self.course.is_left_at_will() =>
            {
                self.leaving.interrupted();
                Ok(())
            }
            // The stream of events ends, too, and is begun again.
            None | Some(Ok(_) | Err(SessionError::Unreachable { .. } | SessionError::Disconnected { .. })) => Ok(()),
            Some(Err(error)) => Err(error.into()),
        }
    }

    /// Waits for the reply to a request, unless the user leaves meanwhile or, where Esc `interrupts` it, wants to interrupt:
    /// a daemon that hangs does not reply.
    async fn unless_left<T>(&mut self, interrupts: bool, sent: impl Future<Output = T>) -> Option<T> {
        let mut sent = std::pin::pin!(sent);
        let mut later = Vec::new();
        let done = loop {
            tokio::select! {
                biased;
                done = &mut sent => break Some(done),
                Some((input, at)) = self.pressed.recv(), if later.len() < KEYS => {
                    let is_escape = key_of(&input) == Key::Esc;
                    later.push((input, at));
                    if is_escape && interrupts {
                        break None;
                    }
                }
                () = self.leaving.asked(), if self.course.is_left_at_will() => {
                    self.course.ended = Some(Ended::Left);
                    break None;
                }
            }
        };
        for pressed in later {
            let _ = self.press.try_send(pressed);
        }
        done
    }
}

/// Waits until this process goes on after it was stopped, or was in the background.
pub(super) async fn continues(terminal: Option<&Terminal>) {
    match terminal {
        Some(terminal) => terminal.continues().await,
        None => std::future::pending().await,
    }
}

fn key_of(input: &Input) -> Key {
    match input {
        Input::Key(key) => form_key(key),
        Input::Paste(_) | Input::Focus(_) | Input::Other | Input::Continued | Input::Foreground => Key::Other,
    }
}
