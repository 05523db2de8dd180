//! The keys of the ask that a followed session waits for: shown, pressed, answered.

use std::time::Instant;

use holdpoint_session::{Interruption, SessionError};
use holdpoint_tools::shown::prose;

use super::course::Ended;
use super::{Follower, asked};
use crate::asking::{Asking, Pressed};
use crate::error::CliError;
use crate::terminal::Key;
use crate::ui::Style;

impl Follower<'_> {
    /// Shows the ask that is to be answered, if it is another than the one that is shown.
    pub(super) fn ask(&mut self) -> Result<(), CliError> {
        let Some(terminal) = &self.terminal else { return Ok(()) };
        let next = self.attachment.shown();
        if next.map(|ask| &ask.id) == self.asking.as_ref().map(|(asking, _)| &asking.ask().id) {
            return Ok(());
        }
        if let Some((asking, _)) = &mut self.asking {
            let was_over = asking.is_over();
            if asking.close() {
                if !was_over {
                    asked::show_keys(asking, self.ui)?;
                }
                return Ok(());
            }
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
    pub(super) async fn press(&mut self, key: Key, at: Instant) -> Result<(), CliError> {
        let Some((asking, _)) = &mut self.asking else { return Ok(()) };
        let leaves = self.course.is_left_at_will() || self.leaving.code().is_some();
        if key == Key::Ctrl('c') && leaves {
            self.course.ended = Some(Ended::Left);
            return Ok(());
        }
        match asking.press(key, at) {
            Pressed::Nothing => {}
            Pressed::Typed => self.ui.input(asking.typed())?,
            turned @ (Pressed::Turned | Pressed::Next) => {
                asked::show_keys(asking, self.ui)?;
                self.ui.flush()?;
                if turned == Pressed::Next {
                    asking.appear(Instant::now());
                }
            }
            Pressed::Interrupt => self.interrupt().await?,
            Pressed::Left => {
                self.asking = None;
                // That key has its meaning wherever something runs.
                if key == Key::Ctrl('c') {
                    self.interrupt().await?;
                }
                self.ui.end_line()?;
                self.ask()?;
            }
            Pressed::Answer(answer) => {
                let (session, ask) = (self.session.clone(), asking.ask().id.clone());
                let answered =
                    self.unless_left(false, async move { session.answer(&ask, answer).await.map(drop) }).await;
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

    /// Ends the turn that asks, and no later one.
    async fn interrupt(&mut self) -> Result<(), CliError> {
        let (session, turn) = (self.session.clone(), self.now);
        match self.unless_left(true, async move { session.interrupt(turn).await }).await {
            // An interrupted turn or run ends the follower, unless the user may leave it at any time.
            Some(Ok(Interruption::Interrupting(_) | Interruption::RunEnded)) if !self.course.is_left_at_will() => {
                self.leaving.interrupted();
                Ok(())
            }
            // The stream of events ends, too, and is begun again.
            None | Some(Ok(_) | Err(SessionError::Unreachable { .. } | SessionError::Disconnected { .. })) => Ok(()),
            Some(Err(error)) => Err(error.into()),
        }
    }

    /// Waits for what comes of a key, unless the user leaves meanwhile, or wants to interrupt: a daemon that hangs says
    /// nothing. Where what was sent is an interrupt, Ctrl+C `leaves`.
    async fn unless_left<T>(&mut self, leaves: bool, sent: impl Future<Output = T>) -> Option<T> {
        let mut sent = std::pin::pin!(sent);
        let mut later = Vec::new();
        let done = loop {
            tokio::select! {
                biased;
                done = &mut sent => break Some(done),
                Some((key, at)) = self.pressed.recv() => match key {
                    Key::Ctrl('c') if leaves || self.course.is_left_at_will() => {
                        self.course.ended = Some(Ended::Left);
                        break None;
                    }
                    // What runs is to end, whatever comes of the answer.
                    Key::Ctrl('c') => {
                        later.insert(0, (key, at));
                        break None;
                    }
                    key => later.push((key, at)),
                },
                () = self.leaving.asked(), if self.course.is_left_at_will() => break None,
            }
        };
        for pressed in later {
            let _ = self.press.try_send(pressed);
        }
        done
    }
}
