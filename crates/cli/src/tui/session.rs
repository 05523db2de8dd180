//! The session that is shown: what has come of it, and what the user is about to do in it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use holdpoint_common::{Event, Fact, HoldShown, PromptId, SessionId, SessionStatus, Snapshot, Timestamp};
use holdpoint_session::form::AfterAsk;

use super::ask::{AskView, Begun};
use super::layout::{Layouts, Look, Scroll};
use super::prompt::Prompt;
use super::transcript::{Entry, Transcript};

/// Facts of the past that a session is opened with.
pub(crate) const PAST: usize = 400;

/// What has come of a session.
#[derive(Debug, Default)]
pub(crate) struct Told {
    pub(crate) transcript: Transcript,
    /// Facts that have come.
    facts: usize,
    /// The prompts there were, for the history.
    prompts: Vec<String>,
}

impl Told {
    pub(crate) fn new(own: u32) -> Self {
        Self { transcript: Transcript::new(own), ..Self::default() }
    }

    pub(crate) fn add(&mut self, event: &Event) {
        self.facts += usize::from(event.fact().is_some());
        if let Some(Fact::PromptAccepted { text, .. }) = event.fact() {
            self.prompts.push(text.to_string());
        }
        self.transcript.add(event);
    }
}

/// The session that is shown.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: SessionId,
    pub(crate) snapshot: Arc<Snapshot>,
    /// The branch that its folder is on, if it is one of git.
    pub(crate) branch: Option<String>,
    /// Which attachment it is fed by.
    pub(crate) attachment: u64,
    pub(crate) told: Told,
    /// What comes of an attachment that goes further back, until all of the past is there.
    pub(crate) pending: Option<Told>,
    /// Facts of the past that were asked for.
    pub(crate) limit: usize,
    /// There may be more of it.
    pub(crate) older: bool,
    pub(crate) layouts: Layouts,
    pub(crate) scroll: Scroll,
    pub(crate) steps: bool,
    pub(crate) asking: Option<AskView>,
    pub(crate) prompt: Prompt,
    /// This process, and the prompts it sent that have not begun.
    own: u32,
    sent: BTreeSet<PromptId>,
    /// How many were sent from here and not refused: it has them, or is about to, whatever is told of it so far.
    given: usize,
    /// What was handed back of them, and is typed again.
    handed_back: String,
    pub(crate) closed: bool,
    /// Since when nobody knows what becomes of it: there is no connection.
    pub(crate) lost: Option<Timestamp>,
    /// It was opened here.
    pub(crate) fresh: bool,
    /// Ctrl+C was pressed with nothing to interrupt.
    pub(crate) leaving: Option<Instant>,
    pub(crate) after: AfterAsk,
    /// The size of the transcript on the screen, as it was last drawn.
    pub(crate) shown: (usize, usize),
    /// There is more below.
    pub(crate) below: bool,
}

impl Session {
    pub(crate) fn new(snapshot: Arc<Snapshot>, attachment: u64, own: u32, steps: bool, fresh: bool) -> Self {
        Self {
            id: snapshot.settings.id.clone(),
            snapshot,
            branch: None,
            attachment,
            told: Told::new(own),
            pending: Some(Told::new(own)),
            limit: PAST,
            older: false,
            layouts: Layouts::default(),
            scroll: Scroll::End,
            steps,
            asking: None,
            prompt: Prompt::default(),
            own,
            sent: BTreeSet::new(),
            given: 0,
            handed_back: String::new(),
            closed: false,
            lost: None,
            fresh,
            leaving: None,
            after: AfterAsk::default(),
            shown: (0, 0),
            below: false,
        }
    }

    /// Takes what happened.
    pub(crate) fn add(&mut self, events: &[Arc<Event>]) {
        self.take_back(events);
        self.asking.iter_mut().for_each(|view| view.note(events));
        let told = self.pending.as_mut().unwrap_or(&mut self.told);
        for event in events {
            told.add(event);
        }
        if self.pending.is_none() {
            self.remember();
        }
    }

    /// What is handed back of what was sent from here is to be typed again, unless something else is being typed.
    fn take_back(&mut self, events: &[Arc<Event>]) {
        let mut back = Vec::new();
        for fact in events.iter().filter_map(|event| event.fact()) {
            match fact {
                Fact::PromptAccepted { prompt, by, .. } if by.pid == Some(self.own) => _ = self.sent.insert(*prompt),
                Fact::TurnStarted { prompt, .. } | Fact::PromptDelivered { prompt, .. } => _ = self.sent.remove(prompt),
                Fact::PromptReturned { prompt, text } if self.sent.remove(prompt) => back.push(&**text),
                _ => {}
            }
        }
        let typed = self.prompt.text();
        if self.pending.is_none() && !back.is_empty() && (typed.is_empty() || typed == self.handed_back) {
            self.handed_back = [typed.as_str()]
                .into_iter()
                .filter(|typed| !typed.is_empty())
                .chain(back)
                .collect::<Vec<_>>()
                .join("\n");
            self.prompt.set(&self.handed_back);
        }
    }

    /// A prompt is sent.
    pub(crate) fn give(&mut self) {
        self.given += 1;
    }

    /// It was not taken: typed again.
    pub(crate) fn refuse(&mut self, text: &str) {
        self.given = self.given.saturating_sub(1);
        self.type_again(text);
    }

    /// What was sent and not taken is typed again, before what is being typed.
    pub(crate) fn type_again(&mut self, text: &str) {
        let typed = self.prompt.text();
        let between = if typed.is_empty() { "" } else { "\n" };
        self.prompt.set(&format!("{text}{between}{typed}"));
    }

    /// All of the past is there.
    pub(crate) fn live(&mut self) {
        if let Some(told) = self.pending.take() {
            self.older = told.facts >= self.limit;
            self.told = told;
            self.layouts.forget();
            self.prompt.remember_anew(&self.told.prompts);
            self.told.prompts.clear();
        }
    }

    fn remember(&mut self) {
        for text in self.told.prompts.drain(..) {
            self.prompt.remember(&text);
        }
    }

    /// Shows the ask that is first now, if it is another one. Whether one appears, and how the one before was closed, if not
    /// by this user.
    pub(crate) fn ask(&mut self, begun: &mut Begun, now: Instant) -> (bool, Option<String>) {
        let first = self.snapshot.asks.first().filter(|_| !self.closed);
        if first.map(|ask| &ask.id) == self.asking.as_ref().map(|view| &view.form.ask().id) {
            return (false, None);
        }
        let mut closed = None;
        if let Some(view) = self.asking.take() {
            self.after.begin(now);
            let is_open = !self.closed && self.snapshot.asks.iter().any(|ask| ask.id == view.form.ask().id);
            if is_open {
                begun.keep(Some(view));
            } else {
                closed = view.closed();
            }
        }
        self.asking = first.map(|ask| begun.view(ask, now));
        (self.asking.is_some(), closed)
    }

    /// Whether there is something to interrupt: a turn, or a run, which may be between two of its turns.
    pub(crate) fn runs(&self) -> bool {
        self.snapshot.turn.is_some() || self.snapshot.run.is_some()
    }

    /// Whether something moves on the screen.
    pub(crate) fn spins(&self) -> bool {
        let working = matches!(self.snapshot.status, SessionStatus::Running | SessionStatus::Interrupted);
        !self.closed && self.lost.is_none() && (working || self.snapshot.hold.shown() == HoldShown::Requested)
    }

    /// Nothing was ever said in it, nor is about to be.
    pub(crate) fn is_untouched(&self) -> bool {
        let snapshot = &self.snapshot;
        self.fresh
            && self.given == 0
            && self.prompt.is_empty()
            && snapshot.turn.is_none()
            && snapshot.last_turn.is_none()
            && snapshot.queue.is_empty()
            && snapshot.clients <= 1
            && self.told.transcript.entries().is_empty()
    }

    pub(crate) fn look(&self) -> Look {
        Look { width: self.shown.0, steps: self.steps }
    }

    /// Shows the first line. Whether more of the past is wanted.
    pub(crate) fn scroll_to_first(&mut self) -> bool {
        let shown = |entry: &&Entry| self.steps || !entry.kind.is_step();
        if let Some(first) = self.told.transcript.entries().iter().find(shown) {
            self.scroll = Scroll::At { key: first.key, row: 0 };
        }
        self.can_fetch()
    }

    /// Whether there may be more of the past, and it can be had: of what was closed, only by opening it again.
    fn can_fetch(&self) -> bool {
        self.older && self.pending.is_none() && !self.closed
    }

    /// Chooses a call: the one before, or the one after.
    pub(crate) fn choose(&mut self, earlier: bool) {
        let look = self.look();
        self.layouts.choose(&self.told.transcript, look, &mut self.scroll, self.shown.1, earlier);
    }

    /// No call is chosen any more.
    pub(crate) fn choose_none(&mut self) {
        self.layouts.folds.choose(None);
    }

    /// Scrolls the transcript. Whether more of the past is wanted.
    pub(crate) fn scroll(&mut self, rows: isize) -> bool {
        let look = self.look();
        let at_first = self.layouts.scroll(&self.told.transcript, look, &mut self.scroll, self.shown.1, rows);
        at_first && rows < 0 && self.can_fetch()
    }
}
