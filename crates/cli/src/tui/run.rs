//! The event loop: applies messages to the state, carries out the commands that follow, and draws.
//!
//! User input is drawn at once. Streamed events are drawn at most thirty times a second, except
//! important ones such as an ask or the end of a turn. The loop draws only after a change and never
//! polls.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use holdpoint_common::{Fact, SessionFact, TurnFact};
use ratatui::backend::CrosstermBackend;
use ratatui::layout::Rect;
use tokio::sync::mpsc;

use super::link::{Link, LinkMessage};
use super::message::{Command, EventTime, Message};
use super::state::State;
use super::style::without_colours;
use super::update::update;
use super::{editor, view};
use crate::error::CliError;
use crate::signals::screen::ScreenSignal;
use crate::terminal::{Frames, Input, Reader, ScreenTerminal};

/// The shortest time between two frames of streamed output.
const FRAME_INTERVAL: Duration = Duration::from_millis(33);
/// How long leaving waits for commands that are still in progress.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);
/// The capacity of the input channel. Keys beyond it are dropped: typing is never that fast, and a
/// paste is one message.
pub(super) const EVENT_CAPACITY: usize = 4096;

/// Input from the terminal, or a change of the terminal or of the process.
pub(super) enum TerminalEvent {
    Message(Message, EventTime),
    /// The terminal was resized.
    Resized,
    /// The process was stopped and has resumed.
    Continued,
    /// The terminal is gone.
    Gone,
}

impl From<ScreenSignal> for TerminalEvent {
    fn from(signal: ScreenSignal) -> Self {
        match signal {
            ScreenSignal::Resized => Self::Resized,
            ScreenSignal::Continued => Self::Continued,
        }
    }
}

/// The running screen.
pub(super) struct Loop {
    pub(super) state: State,
    pub(super) link: Link,
    pub(super) link_messages: mpsc::Receiver<LinkMessage>,
    pub(super) terminal: ScreenTerminal,
    pub(super) tty: Arc<OwnedFd>,
    pub(super) event_sender: mpsc::Sender<TerminalEvent>,
    pub(super) events: mpsc::Receiver<TerminalEvent>,
    /// Draws without colours.
    pub(super) plain: bool,
}

type Screen = ratatui::Terminal<CrosstermBackend<Frames>>;

impl Loop {
    /// Runs until the user leaves, and returns the last state.
    ///
    /// # Errors
    /// Fails if the terminal can't be written to.
    pub(super) async fn run(mut self) -> Result<State, CliError> {
        self.terminal.enter()?;
        let frames = Frames::new(self.terminal.clone());
        let mut screen = Screen::new(CrosstermBackend::new(frames.clone()))?;
        let mut input = Some(self.listen()?);
        let mut title = String::new();
        let mut last_drawn = Instant::now();
        self.draw(&mut screen, &frames, &mut title)?;
        let (mut stale, mut at_once) = (false, false);
        loop {
            let due = last_drawn + FRAME_INTERVAL;
            let tick = self.state.next_tick();
            let mut commands = Vec::new();
            tokio::select! {
                biased;
                Some(event) = self.events.recv() => {
                    at_once = true;
                    commands = self.handle_event(event);
                    stale = true;
                }
                // The due frame is drawn even while events keep arriving.
                () = tokio::time::sleep_until(due.into()), if stale => at_once = true,
                Some(received) = self.link_messages.recv() => {
                    stale = true;
                    at_once |= matches!(&received, LinkMessage::Message(message) if is_urgent(message));
                    commands = self.receive(received);
                }
                () = tokio::time::sleep(tick.unwrap_or_default()), if tick.is_some() => {
                    commands = update(&mut self.state, Message::Tick, EventTime::now());
                    (stale, at_once) = (true, true);
                }
            }
            for command in commands {
                if let Command::Quit = command {
                    drop(input.take());
                    self.finish().await;
                    return Ok(self.state);
                }
                self.carry_out(command, &mut screen, &mut input).await?;
            }
            // Input that arrives together is drawn in one frame.
            if at_once && stale && self.events.is_empty() {
                self.draw(&mut screen, &frames, &mut title)?;
                last_drawn = Instant::now();
                (stale, at_once) = (false, false);
            }
        }
    }

    /// Handles an event of the terminal.
    fn handle_event(&mut self, event: TerminalEvent) -> Vec<Command> {
        match event {
            TerminalEvent::Message(message, at) => update(&mut self.state, message, at),
            TerminalEvent::Resized => vec![],
            TerminalEvent::Continued => {
                self.state.hide_asks();
                vec![Command::Redraw]
            }
            TerminalEvent::Gone => vec![Command::Quit],
        }
    }

    /// Handles a message of the link.
    fn receive(&mut self, message: LinkMessage) -> Vec<Command> {
        match message {
            LinkMessage::Message(message) => {
                return update(&mut self.state, message, EventTime::now());
            }
            LinkMessage::Opened { session, attachment, limit, .. }
                if self.state.awaits(attachment) =>
            {
                self.link.follow(session, attachment, limit);
            }
            // The user has chosen something else meanwhile.
            LinkMessage::Opened { session, fresh: true, .. } => {
                self.link.spawn_discard_unused(session.id().clone());
            }
            LinkMessage::Opened { .. } => {}
        }
        vec![]
    }

    /// Carries out a command other than [`Command::Quit`].
    async fn carry_out(
        &mut self,
        command: Command,
        screen: &mut Screen,
        input: &mut Option<Reader>,
    ) -> Result<(), CliError> {
        match command {
            Command::DiscardUnused { id } => {
                self.link.detach();
                // If this fails, the empty session stays listed, which does no harm.
                let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, self.link.discard_unused(&id)).await;
            }
            Command::Notify { text } => {
                self.terminal.write_codes(&format!("\x07\x1b]9;{text}\x07"))?
            }
            Command::Redraw => {
                self.terminal.enter_again()?;
                redraw(screen)?;
            }
            Command::Suspend => {
                drop(input.take());
                self.terminal.suspend()?;
                self.state.hide_asks();
                *input = Some(self.listen()?);
                redraw(screen)?;
            }
            Command::Edit { text } => {
                drop(input.take());
                let edited = self.terminal.lend(|| editor::edit(&text))?;
                self.state.hide_asks();
                *input = Some(self.listen()?);
                redraw(screen)?;
                let message = match edited {
                    Ok(text) => Message::Edited(text),
                    Err(error) => Message::Failed(format!("the editor failed: {error}")),
                };
                let _ = update(&mut self.state, message, EventTime::now());
            }
            command => self.link.carry_out(command),
        }
        Ok(())
    }

    /// Waits up to [`SHUTDOWN_TIMEOUT`] for commands in progress, and records the prompts that were
    /// not accepted.
    async fn finish(&mut self) {
        let mut timeout = std::pin::pin!(tokio::time::sleep(SHUTDOWN_TIMEOUT));
        loop {
            tokio::select! {
                biased;
                () = &mut timeout => {
                    tracing::warn!("shutdown timed out with commands in progress");
                    break;
                }
                Some(message) = self.link_messages.recv() => self.handle_late(message),
                () = self.link.finish() => if self.link_messages.is_empty() { break },
            }
        }
        // No more messages are accepted.
        self.link_messages.close();
        while let Ok(message) = self.link_messages.try_recv() {
            self.handle_late(message);
        }
        for (id, text) in self.link.take_unanswered() {
            if !self.state.has_refused(&id, &text) {
                let why = "the daemon has not answered; it may still accept the prompt".to_owned();
                self.apply_refused(Message::PromptRefused { id, text, why });
            }
        }
    }

    /// Handles a message that arrives after the user left. Only new sessions and refused prompts
    /// matter then.
    fn handle_late(&mut self, message: LinkMessage) {
        match message {
            LinkMessage::Opened { session, fresh: true, .. } => {
                self.link.spawn_discard_unused(session.id().clone())
            }
            LinkMessage::Message(message @ Message::PromptRefused { .. }) => {
                self.apply_refused(message)
            }
            LinkMessage::Opened { .. } | LinkMessage::Message(_) => {}
        }
    }

    fn apply_refused(&mut self, message: Message) {
        // The commands are dropped: the screen is gone.
        let _ = update(&mut self.state, message, EventTime::now());
    }

    fn draw(&mut self, screen: &mut Screen, frames: &Frames, title: &mut String) -> io::Result<()> {
        screen.draw(|frame| {
            view::draw(frame, &mut self.state);
            if self.plain {
                without_colours(frame.buffer_mut());
            }
        })?;
        frames.show()?;
        // Only now can the user see the frame.
        self.state.after_frame(Instant::now());
        let new_title = self.state.title();
        if new_title != *title {
            self.terminal.write_codes(&format!("\x1b]2;{new_title}\x07"))?;
            *title = new_title;
        }
        Ok(())
    }

    /// Starts reading keys.
    fn listen(&self) -> io::Result<Reader> {
        let sender = self.event_sender.clone();
        let gone_sender = self.event_sender.clone();
        let take = move |input, instant| {
            let message = match input {
                Input::Key(key) => Some(Message::Key(key)),
                Input::Paste(text) => Some(Message::Paste(text)),
                Input::Focus(focused) => Some(Message::Focus(focused)),
                Input::Other => Some(Message::Other),
                Input::Continued | Input::Foreground => None,
            };
            let at = EventTime { instant, ..EventTime::now() };
            // A full channel drops keys (see [`EVENT_CAPACITY`]); a closed one means the loop has
            // ended.
            let _ =
                sender.try_send(message.map_or(TerminalEvent::Continued, |message| {
                    TerminalEvent::Message(message, at)
                }));
        };
        Reader::start(Arc::clone(&self.tty), take, move || {
            _ = gone_sender.try_send(TerminalEvent::Gone)
        })
    }
}

/// Makes the next frame draw every cell, whatever the terminal shows now. `Screen::clear` would
/// query the cursor position and read the reply from among the keys.
fn redraw(screen: &mut Screen) -> io::Result<()> {
    let size = screen.size()?;
    screen.resize(Rect::new(0, 0, size.width, size.height))
}

/// Whether the message is drawn at once.
fn is_urgent(message: &Message) -> bool {
    let Message::Events { events, .. } = message else {
        return !matches!(message, Message::SessionChanged(_));
    };
    events.iter().filter_map(|event| event.fact()).any(|fact| {
        matches!(
            fact,
            Fact::Ask(_)
                | Fact::Session(SessionFact::HoldChanged { .. })
                | Fact::Turn(
                    TurnFact::Started { .. } | TurnFact::Cut { .. } | TurnFact::Finished { .. }
                )
        )
    })
}
