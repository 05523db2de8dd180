//! The state of the shown session: its events, its prompt and its ask.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use holdpoint_common::{
    Event, Fact, HoldState, PromptFact, PromptId, SessionId, SessionStatus, Snapshot, Timestamp,
    TurnFact,
};
use holdpoint_session::form::AfterAsk;

use super::ask::{AskView, StartedForms};
use super::layout::{LayoutOptions, Layouts, Scroll};
use super::prompt::Prompt;
use super::transcript::{Entry, Transcript};

/// How many past facts are requested when a session is opened.
pub(crate) const INITIAL_FACTS: usize = 400;

/// The events received from a session.
#[derive(Debug, Default)]
pub(crate) struct ReceivedEvents {
    pub(crate) transcript: Transcript,
    /// How many facts were received.
    facts: usize,
    /// The prompts among them, for the prompt's history.
    prompts: Vec<String>,
}

impl ReceivedEvents {
    pub(crate) fn new(own_pid: u32) -> Self {
        Self { transcript: Transcript::new(own_pid), ..Self::default() }
    }

    pub(crate) fn add(&mut self, event: &Event) {
        self.facts += usize::from(event.fact().is_some());
        if let Some(Fact::Prompt(PromptFact::Accepted { text, .. })) = event.fact() {
            self.prompts.push(text.to_string());
        }
        self.transcript.add(event);
    }
}

/// The shown session.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: SessionId,
    pub(crate) snapshot: Arc<Snapshot>,
    /// The git branch of the workspace, if it is in a repository.
    pub(crate) branch: Option<String>,
    /// The number of the attachment that delivers the events.
    pub(crate) attachment: u64,
    pub(crate) received: ReceivedEvents,
    /// The newest event so far. A replay repeats events up to it.
    newest: u64,
    /// The events of an attachment that is still replaying the past. They replace `received` when
    /// the replay ends.
    pub(crate) pending: Option<ReceivedEvents>,
    /// How many past facts were requested.
    pub(crate) limit: usize,
    /// Whether the log may hold older facts.
    pub(crate) older: bool,
    pub(crate) layouts: Layouts,
    pub(crate) scroll: Scroll,
    /// Whether tool calls and thoughts are shown.
    pub(crate) steps: bool,
    pub(crate) open_ask: Option<AskView>,
    pub(crate) prompt: Prompt,
    /// This process's id.
    own_pid: u32,
    /// Prompts of this process that are accepted and not started.
    unstarted: BTreeSet<PromptId>,
    /// How many prompts were sent from here and not refused. The snapshot may not show them yet.
    sent_count: usize,
    /// Returned prompts that were put back into the input.
    handed_back: String,
    pub(crate) closed: bool,
    /// When the connection was lost; `None` while connected.
    pub(crate) lost: Option<Timestamp>,
    /// Whether the session was created by this process.
    pub(crate) fresh: bool,
    /// When Ctrl+C was pressed with nothing to interrupt.
    pub(crate) leaving: Option<Instant>,
    pub(crate) after_ask: AfterAsk,
    /// Columns and rows of the transcript when it was last drawn.
    pub(crate) drawn_size: (usize, usize),
    /// Whether the transcript continues below the screen.
    pub(crate) below: bool,
}

impl Session {
    pub(crate) fn new(
        snapshot: Arc<Snapshot>,
        attachment: u64,
        own_pid: u32,
        steps: bool,
        fresh: bool,
    ) -> Self {
        Self {
            id: snapshot.settings.id.clone(),
            newest: snapshot.seq,
            snapshot,
            branch: None,
            attachment,
            received: ReceivedEvents::new(own_pid),
            pending: Some(ReceivedEvents::new(own_pid)),
            limit: INITIAL_FACTS,
            older: false,
            layouts: Layouts::default(),
            scroll: Scroll::End,
            steps,
            open_ask: None,
            prompt: Prompt::default(),
            own_pid,
            unstarted: BTreeSet::new(),
            sent_count: 0,
            handed_back: String::new(),
            closed: false,
            lost: None,
            fresh,
            leaving: None,
            after_ask: AfterAsk::default(),
            drawn_size: (0, 0),
            below: false,
        }
    }

    pub(crate) fn add(&mut self, events: &[Arc<Event>]) {
        self.restore_returned(events);
        self.open_ask.iter_mut().for_each(|view| view.record_close(events));
        let received = self.pending.as_mut().unwrap_or(&mut self.received);
        for event in events {
            received.add(event);
        }
        if self.pending.is_none() {
            self.remember_prompts();
        }
    }

    /// Puts returned prompts of this process back into the input, unless the user is typing
    /// something else.
    fn restore_returned(&mut self, events: &[Arc<Event>]) {
        let mut returned = Vec::new();
        for (seq, fact) in events.iter().filter_map(|event| Some((event.seq, event.fact()?))) {
            match fact {
                Fact::Prompt(PromptFact::Accepted { prompt, by, .. })
                    if by.pid == Some(self.own_pid) =>
                {
                    _ = self.unstarted.insert(*prompt)
                }
                Fact::Turn(TurnFact::Started { prompt, .. })
                | Fact::Prompt(PromptFact::Delivered { prompt, .. }) => {
                    _ = self.unstarted.remove(prompt)
                }
                Fact::Prompt(PromptFact::Returned { prompt, text }) => {
                    let is_new = seq > self.newest;
                    returned.extend((self.unstarted.remove(prompt) && is_new).then_some(&**text));
                }
                _ => {}
            }
        }
        self.newest = events.last().map_or(self.newest, |last| self.newest.max(last.seq));
        if returned.is_empty() {
            return;
        }
        let typed = self.prompt.text();
        if typed.is_empty() || typed == self.handed_back {
            self.handed_back = [typed.as_str()]
                .into_iter()
                .filter(|typed| !typed.is_empty())
                .chain(returned)
                .collect::<Vec<_>>()
                .join("\n");
            self.prompt.set(&self.handed_back);
        }
    }

    /// Counts a prompt that is sent.
    pub(crate) fn count_sent(&mut self) {
        self.sent_count += 1;
    }

    /// Puts a refused prompt back into the input.
    pub(crate) fn restore_refused(&mut self, text: &str) {
        self.sent_count = self.sent_count.saturating_sub(1);
        self.prepend_text(text);
    }

    /// Inserts unsent text before the current input.
    pub(crate) fn prepend_text(&mut self, text: &str) {
        let typed = self.prompt.text();
        let separator = if typed.is_empty() { "" } else { "\n" };
        self.prompt.set(&format!("{text}{separator}{typed}"));
    }

    /// Handles the end of the replay.
    pub(crate) fn end_replay(&mut self) {
        if let Some(replayed) = self.pending.take() {
            self.older = replayed.facts >= self.limit;
            self.received = replayed;
            self.layouts.forget();
            self.prompt.replace_history(&self.received.prompts);
            self.received.prompts.clear();
        }
    }

    fn remember_prompts(&mut self) {
        for text in self.received.prompts.drain(..) {
            self.prompt.remember(&text);
        }
    }

    /// Shows the first open ask, if it is not the one shown. Returns whether an ask appears, and
    /// how the previous one was closed if not by this user.
    pub(crate) fn show_first_ask(
        &mut self,
        started_forms: &mut StartedForms,
        now: Instant,
    ) -> (bool, Option<String>) {
        let first = self.snapshot.asks.first().filter(|_| !self.closed);
        if first.map(|ask| &ask.id) == self.open_ask.as_ref().map(|view| &view.form.ask().id) {
            return (false, None);
        }
        let mut closed = None;
        if let Some(view) = self.open_ask.take() {
            self.after_ask.begin(now);
            let is_open =
                !self.closed && self.snapshot.asks.iter().any(|ask| ask.id == view.form.ask().id);
            if is_open {
                started_forms.keep(Some(view));
            } else {
                closed = view.close_notice();
            }
        }
        self.open_ask = first.map(|ask| started_forms.view(ask, now));
        (self.open_ask.is_some(), closed)
    }

    /// Whether there is something to interrupt: a turn, or a run, which may be between two turns.
    pub(crate) fn can_be_interrupted(&self) -> bool {
        self.snapshot.turn.is_some() || self.snapshot.run.is_some()
    }

    /// Whether an animation is on the screen.
    pub(crate) fn is_animated(&self) -> bool {
        let is_working =
            matches!(self.snapshot.status, SessionStatus::Running | SessionStatus::Interrupted);
        !self.closed
            && self.lost.is_none()
            && (is_working || self.snapshot.hold.shown() == HoldState::Requested)
    }

    /// Whether a new session is still empty, with no prompt typed or on its way.
    pub(crate) fn is_untouched(&self) -> bool {
        let snapshot = &self.snapshot;
        self.fresh
            && self.sent_count == 0
            && self.prompt.is_empty()
            && snapshot.turn.is_none()
            && snapshot.last_turn.is_none()
            && snapshot.queue.is_empty()
            && snapshot.clients <= 1
            && self.received.transcript.entries().is_empty()
    }

    pub(crate) fn layout_options(&self) -> LayoutOptions {
        LayoutOptions { width: self.drawn_size.0, steps: self.steps }
    }

    /// Scrolls to the first line. Returns whether to fetch more of the past.
    pub(crate) fn scroll_to_first(&mut self) -> bool {
        let is_shown = |entry: &&Entry| self.steps || !entry.kind.is_step();
        if let Some(first) = self.received.transcript.entries().iter().find(is_shown) {
            self.scroll = Scroll::At { key: first.key, row: 0 };
        }
        self.can_fetch()
    }

    /// Whether older facts may exist and can be fetched. A closed session would have to be opened
    /// again.
    fn can_fetch(&self) -> bool {
        self.older && self.pending.is_none() && !self.closed
    }

    /// Chooses the previous or the next tool call.
    pub(crate) fn choose(&mut self, earlier: bool) {
        let options = self.layout_options();
        self.layouts.choose(
            &self.received.transcript,
            options,
            &mut self.scroll,
            self.drawn_size.1,
            earlier,
        );
    }

    pub(crate) fn choose_none(&mut self) {
        self.layouts.calls.choose(None);
    }

    /// Scrolls the transcript. Returns whether to fetch more of the past.
    pub(crate) fn scroll(&mut self, rows: isize) -> bool {
        let options = self.layout_options();
        let at_first = self.layouts.scroll(
            &self.received.transcript,
            options,
            &mut self.scroll,
            self.drawn_size.1,
            rows,
        );
        at_first && rows < 0 && self.can_fetch()
    }
}
