//! The loop: what is told changes the state, the state is drawn, what it wants is carried out.
//!
//! What the user does is drawn at once; what streams in at most thirty times a second, but for what matters: an ask,
//! an end. Nothing is drawn where nothing has changed, and nothing is looked at again and again.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use holdpoint_common::Fact;
use ratatui::backend::CrosstermBackend;
use ratatui::layout::Rect;
use tokio::sync::mpsc;

use super::link::{Link, Word};
use super::message::{Command, Message, Moment};
use super::state::State;
use super::style::without_colours;
use super::terminal::{Frames, Terminal};
use super::update::update;
use super::{editor, view};
use crate::error::CliError;
use crate::terminal::{Input, Reader};

/// Between two frames of what streams in.
const FRAME: Duration = Duration::from_millis(33);
/// How long leaving waits for what was begun.
const LEAVE: Duration = Duration::from_secs(2);
/// What waits to be looked at. Keys beyond it are lost: nobody types so fast, and pastes are one each.
pub(super) const HEARD: usize = 4096;

/// What comes from the terminal and its signals.
pub(super) enum Heard {
    Message(Message, Moment),
    /// The terminal has another size.
    Resized,
    /// The program was stopped, and goes on.
    Continued,
    /// The terminal is gone.
    Gone,
}

/// The screen at work.
pub(super) struct Loop {
    pub(super) state: State,
    pub(super) link: Link,
    pub(super) words: mpsc::Receiver<Word>,
    pub(super) terminal: Terminal,
    pub(super) tty: Arc<OwnedFd>,
    pub(super) hear: mpsc::Sender<Heard>,
    pub(super) heard: mpsc::Receiver<Heard>,
    /// No colours are wanted.
    pub(super) plain: bool,
}

type Screen = ratatui::Terminal<CrosstermBackend<Frames>>;

impl Loop {
    /// Runs until the user leaves. Returns the state as it was then.
    ///
    /// # Errors
    /// The terminal can't be written to.
    pub(super) async fn run(mut self) -> Result<State, CliError> {
        self.terminal.enter()?;
        let frames = Frames::new(self.terminal.clone());
        let mut screen = Screen::new(CrosstermBackend::new(frames.clone()))?;
        let mut input = Some(self.listen()?);
        let mut title = String::new();
        let mut drawn = Instant::now();
        self.draw(&mut screen, &frames, &mut title)?;
        let (mut stale, mut at_once) = (false, false);
        loop {
            let due = drawn + FRAME;
            let tick = self.state.next_tick();
            let mut commands = Vec::new();
            tokio::select! {
                biased;
                Some(heard) = self.heard.recv() => {
                    at_once = true;
                    commands = match heard {
                        Heard::Message(message, at) => update(&mut self.state, message, at),
                        Heard::Resized => vec![],
                        Heard::Continued => {
                            self.state.hide_asks();
                            vec![Command::Redraw]
                        }
                        Heard::Gone => vec![Command::Quit],
                    };
                    stale = true;
                }
                // What is due is drawn even if there is always more.
                () = tokio::time::sleep_until(due.into()), if stale => at_once = true,
                Some(word) = self.words.recv() => {
                    stale = true;
                    match word {
                        Word::Message(message) => {
                            at_once |= matters(&message);
                            commands = update(&mut self.state, message, Moment::now());
                        }
                        Word::Opened { session, attachment, limit, .. } if self.state.awaits(attachment) => {
                            self.link.follow(session, attachment, limit);
                        }
                        // Something else was chosen meanwhile.
                        Word::Opened { session, fresh: true, .. } => self.link.forget(session.id().clone()),
                        Word::Opened { .. } => {}
                    }
                }
                () = tokio::time::sleep(tick.unwrap_or_default()), if tick.is_some() => {
                    commands = update(&mut self.state, Message::Tick, Moment::now());
                    (stale, at_once) = (true, true);
                }
            }
            for command in commands {
                match command {
                    Command::Quit => {
                        drop(input.take());
                        self.finish().await;
                        return Ok(self.state);
                    }
                    Command::Forget { id } => {
                        self.link.detach();
                        // One that stays is listed, and does no harm.
                        let _ = tokio::time::timeout(LEAVE, self.link.forgotten(&id)).await;
                    }
                    Command::Notify { text } => self.terminal.say(&format!("\x07\x1b]9;{text}\x07"))?,
                    Command::Redraw => {
                        self.terminal.enter_again()?;
                        redraw(&mut screen)?;
                    }
                    Command::Suspend => {
                        drop(input.take());
                        self.terminal.suspend()?;
                        self.state.hide_asks();
                        input = Some(self.listen()?);
                        redraw(&mut screen)?;
                    }
                    Command::Edit { text } => {
                        drop(input.take());
                        let edited = self.terminal.lend(|| editor::edit(&text))?;
                        self.state.hide_asks();
                        input = Some(self.listen()?);
                        redraw(&mut screen)?;
                        let message = match edited {
                            Ok(text) => Message::Edited(text),
                            Err(error) => Message::Failed(format!("the editor can't be used: {error}")),
                        };
                        let _ = update(&mut self.state, message, Moment::now());
                    }
                    command => self.link.carry_out(command),
                }
            }
            // What has come at the same time is drawn at the same time.
            if at_once && stale && self.heard.is_empty() {
                self.draw(&mut screen, &frames, &mut title)?;
                drawn = Instant::now();
                (stale, at_once) = (false, false);
            }
        }
    }

    /// What was begun is done, as far as that takes no long time. What is not taken meanwhile is known then.
    async fn finish(&mut self) {
        let mut over = std::pin::pin!(tokio::time::sleep(LEAVE));
        loop {
            tokio::select! {
                biased;
                () = &mut over => {
                    tracing::warn!("left before all was done");
                    break;
                }
                Some(word) = self.words.recv() => self.take_last(word),
                () = self.link.finish() => if self.words.is_empty() { break },
            }
        }
        // Nobody is told any more.
        self.words.close();
        while let Ok(word) = self.words.try_recv() {
            self.take_last(word);
        }
        for (id, text) in self.link.unanswered() {
            if !self.state.has_refused(&id, &text) {
                let why = "the daemon has not answered, and may take it yet".to_owned();
                self.refused(Message::PromptRefused { id, text, why });
            }
        }
    }

    /// Takes what is told of what was begun before the user left: of all that, only prompts matter.
    fn take_last(&mut self, word: Word) {
        match word {
            Word::Opened { session, fresh: true, .. } => self.link.forget(session.id().clone()),
            Word::Message(message @ Message::PromptRefused { .. }) => self.refused(message),
            Word::Opened { .. } | Word::Message(_) => {}
        }
    }

    fn refused(&mut self, message: Message) {
        // Nothing is shown that could want anything done.
        let _ = update(&mut self.state, message, Moment::now());
    }

    fn draw(&mut self, screen: &mut Screen, frames: &Frames, title: &mut String) -> io::Result<()> {
        screen.draw(|frame| {
            view::draw(frame, &mut self.state);
            if self.plain {
                without_colours(frame.buffer_mut());
            }
        })?;
        frames.show()?;
        // It is on the screen only now.
        self.state.drawn(Instant::now());
        let now = self.state.title();
        if now != *title {
            self.terminal.say(&format!("\x1b]2;{now}\x07"))?;
            *title = now;
        }
        Ok(())
    }

    /// Begins to read keys.
    fn listen(&self) -> io::Result<Reader> {
        let (hear, gone) = (self.hear.clone(), self.hear.clone());
        let take = move |input, instant| {
            let message = match input {
                Input::Key(key) => Some(Message::Key(key)),
                Input::Paste(text) => Some(Message::Paste(text)),
                Input::Focus(focused) => Some(Message::Focus(focused)),
                Input::Other => Some(Message::Other),
                Input::Continued | Input::Foreground => None,
            };
            let at = Moment { instant, ..Moment::now() };
            // Beyond what anyone types, keys are lost; at the end nothing listens.
            let _ = hear.try_send(message.map_or(Heard::Continued, |message| Heard::Message(message, at)));
        };
        Reader::start(Arc::clone(&self.tty), take, move || _ = gone.try_send(Heard::Gone))
    }
}

/// All of the next frame is drawn, whatever the terminal shows now. (`clear` would ask the terminal for its cursor, and
/// read the answer from among the keys.)
fn redraw(screen: &mut Screen) -> io::Result<()> {
    let size = screen.size()?;
    screen.resize(Rect::new(0, 0, size.width, size.height))
}

/// Whether this is to be seen at once.
fn matters(message: &Message) -> bool {
    let Message::Happened { events, .. } = message else {
        return !matches!(message, Message::News(_));
    };
    events.iter().filter_map(|event| event.fact()).any(|fact| {
        matches!(
            fact,
            Fact::AskRaised { .. }
                | Fact::AskAnswered { .. }
                | Fact::AskClosed { .. }
                | Fact::HoldChanged { .. }
                | Fact::TurnStarted { .. }
                | Fact::TurnCut { .. }
                | Fact::TurnFinished { .. }
        )
    })
}
