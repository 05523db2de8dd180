//! The keys of a followed session: they answer asks, and Esc interrupts.

use std::collections::VecDeque;
use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use holdpoint_common::Refused;
use holdpoint_session::form::{AskForm, Key, Pressed};
use holdpoint_session::{Interruption, SessionError};
use holdpoint_tools::shown::prose;
use tokio::sync::mpsc;
use tokio::time::sleep_until;

use super::state::FollowEnd;
use super::{Follower, MAX_KEYS, asked};
use crate::error::CliError;
use crate::terminal::{Input, KeyTerminal, form_key};
use crate::tone::Tone;

/// The longest wait at the end for a user who is still typing for a closed ask.
const TYPING_TIMEOUT: Duration = Duration::from_secs(2);

impl Follower<'_> {
    /// Starts to read keys if both input and output are the terminal. They are then read all the
    /// time, except while the shell has the terminal. In all other cases keys are read only while
    /// there is an ask.
    pub(super) fn listen(&mut self) {
        let Some(terminal) = &self.terminal else { return };
        if self.is_at_terminal() && !terminal.is_taken() && terminal.is_in_foreground() {
            // Without keys, signals still interrupt.
            let taken = self.take_keys();
            tracing::debug!(?taken, "tried to read keys");
        }
    }

    fn is_at_terminal(&self) -> bool {
        self.ui.out_is_terminal() && io::stdin().is_terminal()
    }

    fn take_keys(&mut self) -> Result<(), CliError> {
        let Some(terminal) = &self.terminal else { return Ok(()) };
        let failed = |error| CliError::failed(format!("keys can't be read: {error}"));
        if self.keys.is_some() {
            // Another program may have used the terminal in between.
            return terminal.take_keys().map_err(failed);
        }
        let press = self.key_sender.clone();
        let keys = terminal.keys(move |input, at| {
            // The queue holds more keys than anyone types. A dropped key answers nothing.
            let _ = press.try_send((input, at));
        });
        self.keys = Some(keys.map_err(failed)?);
        Ok(())
    }

    /// When to stop reading keys that were read for an ask: it has closed, and the user has stopped
    /// typing for it.
    pub(super) fn keys_deadline(&self) -> Option<Instant> {
        self.after_ask
            .end()
            .filter(|_| self.keys.is_some() && self.form.is_none() && !self.is_at_terminal())
    }

    /// Stops reading keys.
    pub(super) fn leave_keys(&mut self) {
        self.form = None;
        self.keys = None;
    }

    /// Stops reading keys at the end. Keys that are still typed for a closed ask are swallowed, so
    /// that the shell does not receive them.
    pub(super) async fn swallow_last_keys(&mut self) {
        let latest = Instant::now() + TYPING_TIMEOUT;
        while self.keys.is_some()
            && self.leaving.code().is_none_or(|code| code == super::state::INTERRUPTED)
        {
            let Some(end) =
                self.after_ask.end().map(|end| end.min(latest)).filter(|end| *end > Instant::now())
            else {
                break;
            };
            tokio::select! {
                () = sleep_until(end.into()) => break,
                Some((input, at)) = next_key(&mut self.deferred_keys, &mut self.key_receiver) => {
                    self.after_ask.swallows(key_of(&input), at);
                }
            }
        }
        self.leave_keys();
    }

    /// Shows the next ask, unless it is shown already.
    pub(super) fn show_next_ask(&mut self) -> Result<(), CliError> {
        if !self.answers {
            return Ok(());
        }
        let next = self.attachment.shown().cloned();
        if next.as_ref().map(|ask| &ask.id) == self.form.as_ref().map(|form| &form.ask().id) {
            return Ok(());
        }
        if let Some(form) = self.form.take() {
            self.after_ask.begin(Instant::now());
            if !form.is_done() && form.is_begun() {
                self.ui.line(Tone::Warning, "Your words for it were not sent.")?;
            }
        }
        let Some(ask) = next else { return Ok(()) };
        self.take_keys()?;
        self.show_form(AskForm::new(ask, Instant::now()))
    }

    /// Shows an ask with the user's input so far. Keys answer it after a short delay.
    fn show_form(&mut self, mut form: AskForm) -> Result<(), CliError> {
        asked::show(form.ask(), self.attachment.waiting(), true, self.ui)?;
        asked::show_keys(&form, self.ui)?;
        self.ui.flush()?;
        // The ask appears when it has been written, not earlier.
        form.show(Instant::now());
        self.form = Some(form);
        Ok(())
    }

    /// Shows the ask again: the shell may have written over it, and the user may have typed for the
    /// shell.
    pub(super) fn show_ask_again(&mut self) -> Result<(), CliError> {
        if !self.terminal.as_ref().is_some_and(KeyTerminal::is_in_foreground) {
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

    /// Handles a key, a paste or a change of the terminal.
    pub(super) async fn press(&mut self, input: Input, at: Instant) -> Result<(), CliError> {
        if input == Input::Foreground {
            return self.show_ask_again();
        }
        let key = key_of(&input);
        if self.leaving.code().is_some() {
            // The turn is being interrupted, so the key answers no ask.
            return Ok(());
        }
        let Some(form) = &mut self.form else {
            let swallowed = self.after_ask.swallows(key, at);
            return if key == Key::Esc && !swallowed { self.interrupt().await } else { Ok(()) };
        };
        if input == Input::Continued {
            // The keys that follow may have been typed for the shell.
            form.show(at);
        }
        let pressed = match &input {
            Input::Paste(text) => form.paste(text, at),
            _ => form.press(key, at),
        };
        match pressed {
            Pressed::Nothing => {}
            Pressed::Typed => self.ui.input(form.line())?,
            changed @ (Pressed::ModeChanged | Pressed::Moved) => {
                asked::show_keys(form, self.ui)?;
                self.ui.flush()?;
                if changed == Pressed::Moved {
                    form.show(Instant::now());
                }
            }
            Pressed::Interrupt => self.interrupt().await?,
            Pressed::Answer(answer) => {
                let (session, ask) = (self.session.clone(), form.ask().id.clone());
                let answered = self
                    .unless_left(true, async move { session.answer(&ask, answer).await.map(drop) })
                    .await;
                let Some(form) = &mut self.form else { return Ok(()) };
                match answered {
                    None | Some(Ok(())) => {}
                    // If the ask is still open, the user can answer again. If not, the event that
                    // closes it is on its way.
                    Some(Err(SessionError::Refused(Refused::Answer(error)))) => {
                        self.ui.line(Tone::Warning, &prose(&error.to_string()))?;
                        form.reopen(Instant::now());
                        asked::show_keys(form, self.ui)?;
                        self.ui.flush()?;
                        form.show(Instant::now());
                    }
                    // The event stream ends as well, and is reopened.
                    Some(Err(
                        SessionError::Unreachable { .. } | SessionError::Disconnected { .. },
                    )) => {
                        form.reopen(Instant::now());
                    }
                    Some(Err(error)) => return Err(error.into()),
                }
            }
        }
        Ok(())
    }

    /// Interrupts the followed turn or run, as INT does; without one, the turn that is open.
    async fn interrupt(&mut self) -> Result<(), CliError> {
        let turn = if self.state.follows_until_left() {
            self.session.snapshot().turn
        } else {
            self.state.turn()
        };
        let session = self.session.clone();
        match self.unless_left(false, async move { session.interrupt(turn).await }).await {
            // Following ends with the work, unless it lasts until the user leaves. A turn that has
            // not begun is interrupted when it begins.
            Some(Ok(
                Interruption::Interrupting(_) | Interruption::RunEnded | Interruption::NotRunning,
            )) if !self.state.follows_until_left() => {
                self.leaving.record_interrupt();
                Ok(())
            }
            // The event stream ends as well, and is reopened.
            None
            | Some(
                Ok(_) | Err(SessionError::Unreachable { .. } | SessionError::Disconnected { .. }),
            ) => Ok(()),
            Some(Err(error)) => Err(error.into()),
        }
    }

    /// Waits for the reply to `request`. A daemon that hangs does not reply, so the wait also ends,
    /// with `None`, if the user leaves, or presses Esc while `esc_ends_wait` is set.
    async fn unless_left<T>(
        &mut self,
        esc_ends_wait: bool,
        request: impl Future<Output = T>,
    ) -> Option<T> {
        let mut request = std::pin::pin!(request);
        let ends_wait = |input: &Input| esc_ends_wait && key_of(input) == Key::Esc;
        let mut is_ended = self.deferred_keys.iter().any(|(input, _)| ends_wait(input));
        loop {
            tokio::select! {
                biased;
                done = &mut request => return Some(done),
                () = std::future::ready(()), if is_ended => return None,
                Some((input, at)) = self.key_receiver.recv(), if self.deferred_keys.len() < MAX_KEYS => {
                    is_ended = ends_wait(&input);
                    self.deferred_keys.push_back((input, at));
                }
                () = self.leaving.requested(), if self.state.follows_until_left() => {
                    self.state.ended = Some(FollowEnd::Left);
                    return None;
                }
            }
        }
    }
}

/// The next key: one that was deferred, or else one that is typed.
pub(super) async fn next_key(
    deferred: &mut VecDeque<(Input, Instant)>,
    typed: &mut mpsc::Receiver<(Input, Instant)>,
) -> Option<(Input, Instant)> {
    match deferred.pop_front() {
        Some(key) => Some(key),
        None => typed.recv().await,
    }
}

/// Waits until this process continues after a stop or returns from the background.
pub(super) async fn wait_resumed(terminal: Option<&KeyTerminal>) {
    match terminal {
        Some(terminal) => terminal.wait_resumed().await,
        None => std::future::pending().await,
    }
}

fn key_of(input: &Input) -> Key {
    match input {
        Input::Key(key) => form_key(key),
        Input::Paste(_) | Input::Focus(_) | Input::Other | Input::Continued | Input::Foreground => {
            Key::Other
        }
    }
}
