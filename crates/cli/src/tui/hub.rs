//! The state of the hub: all sessions, those with open asks first.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use holdpoint_common::{SessionId, SessionStatus, SessionSummary, Timestamp};
use holdpoint_session::form::{AfterAsk, Guard};
use holdpoint_session::model::DefaultModel;

use super::ask::{AskView, StartedForms};

/// All sessions, and the user's place among them.
#[derive(Debug, Default)]
pub(crate) struct Hub {
    sessions: BTreeMap<SessionId, SessionSummary>,
    pub(crate) filter: String,
    pub(crate) cursor: usize,
    /// The row under the cursor before the list changed, until the cursor is restored.
    moved_row: Option<Row>,
    /// The ask in the panel, which is answered from the hub.
    pub(crate) panel_ask: Option<AskView>,
    /// The session whose next ask the panel waits for: its turn continues after an answer.
    pub(crate) followed_session: Option<SessionId>,
    /// Set when the followed session's next ask appears in the panel: an Esc at that moment was
    /// meant to leave the panel.
    follow_guard: Option<Guard>,
    /// The last ask that was closed by someone else while it was in the panel, kept until its
    /// session reports how.
    pub(crate) closed_ask: Option<AskView>,
    pub(crate) after_ask: AfterAsk,
    /// The process's folder, and the model of sessions opened in it.
    pub(crate) folder: String,
    pub(crate) model: Option<DefaultModel>,
    /// Whether the list of sessions has arrived.
    pub(crate) loaded: bool,
}

/// A row of the hub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Row {
    /// A session with an open ask.
    Waiting(SessionId),
    /// Resumes the most recent session.
    Resume(SessionId),
    New,
    Session(SessionId),
    Quit,
}

impl Row {
    /// The session of the row.
    pub(crate) fn session(&self) -> Option<&SessionId> {
        match self {
            Self::Waiting(id) | Self::Resume(id) | Self::Session(id) => Some(id),
            Self::New | Self::Quit => None,
        }
    }
}

impl Hub {
    pub(crate) fn new(folder: String, model: DefaultModel) -> Self {
        Self { folder, model: Some(model), ..Self::default() }
    }

    /// Whether the list has arrived and is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.loaded && self.sessions.is_empty()
    }

    pub(crate) fn get(&self, id: &SessionId) -> Option<&SessionSummary> {
        self.sessions.get(id)
    }

    pub(crate) fn put(&mut self, summary: SessionSummary) {
        self.keep_cursor();
        self.sessions.insert(summary.id.clone(), summary);
    }

    pub(crate) fn remove(&mut self, id: &SessionId) {
        self.keep_cursor();
        self.sessions.remove(id);
    }

    /// Notes the row under the cursor before the list changes. The first row is not noted, because
    /// the most urgent session belongs there.
    fn keep_cursor(&mut self) {
        if self.cursor > 0 && self.moved_row.is_none() {
            self.moved_row = self.row();
        }
    }

    /// Moves the cursor back to its row after changes of the list. Called before each frame, key
    /// and paste, not for each change, because there can be many rows.
    pub(crate) fn restore_cursor(&mut self) {
        if let Some(row) = self.moved_row.take() {
            let rows = self.rows();
            let index = rows.iter().position(|other| *other == row);
            self.cursor = index.unwrap_or(self.cursor).min(rows.len().saturating_sub(1));
        }
    }

    /// The time until a shown age changes. Ages are shown in their largest unit.
    pub(crate) fn until_age_change(&self, now: Timestamp) -> Option<Duration> {
        let asked = |session: &SessionSummary| session.waits_for.as_ref().map(|ask| ask.since);
        let since = self
            .sessions
            .values()
            .flat_map(|session| {
                [Some(session.since), asked(session), session.away.and_then(|away| away.seen)]
            })
            .flatten();
        let delays = since.map(|since| {
            let age = now.since(since);
            let unit = match age.as_secs() {
                0..60 => 1,
                60..3_600 => 60,
                3_600..86_400 => 3_600,
                _ => 86_400,
            };
            Duration::from_secs((age.as_secs() / unit + 1) * unit).saturating_sub(age)
        });
        delays.min()
    }

    /// The sessions with an open ask, the longest wait first.
    pub(crate) fn waiting(&self) -> Vec<&SessionSummary> {
        let mut waiting: Vec<_> =
            self.sessions.values().filter(|session| session.waits_for.is_some()).collect();
        waiting.sort_by_key(|session| {
            (session.waits_for.as_ref().map(|ask| ask.since), session.id.clone())
        });
        waiting
    }

    /// Keeps the panel on its session. After an ask is closed, the panel shows the session's next
    /// ask or, until there is one, that the session is running. Returns the ask if someone else
    /// closed it.
    pub(crate) fn follow(&mut self, started: &mut StartedForms, now: Instant) -> Option<AskView> {
        let shown = self.panel_ask.as_ref().map(|view| &view.form.ask().id);
        let id = shown.map(|ask| &ask.session).or(self.followed_session.as_ref())?.clone();
        let session = self.sessions.get(&id);
        let first = session.and_then(|session| session.waits_for.as_ref());
        let is_running = first.is_none()
            && session.is_some_and(|session| session.status == SessionStatus::Running);
        let is_same = match shown {
            Some(shown) => first.is_some_and(|ask| ask.id == *shown),
            None => is_running,
        };
        if is_same {
            return None;
        }
        self.follow_guard = (shown.is_none() && first.is_some()).then(|| Guard::new(now));
        self.followed_session = is_running.then_some(id);
        self.after_ask.begin(now);
        let next = first.map(|ask| started.view(ask, now));
        std::mem::replace(&mut self.panel_ask, next).filter(|view| !view.form.is_done())
    }

    /// Whether keys go to the panel and not to the list.
    pub(crate) fn has_panel(&self) -> bool {
        self.panel_ask.is_some() || self.followed_session.is_some()
    }

    /// Closes the panel. Returns its ask, if it had one.
    pub(crate) fn close_panel(&mut self) -> Option<AskView> {
        (self.followed_session, self.follow_guard) = (None, None);
        self.panel_ask.take()
    }

    /// Whether the next ask of the followed session has just appeared.
    pub(crate) fn next_ask_just_appeared(&self, now: Instant) -> bool {
        let is_drawn = self.panel_ask.as_ref().is_some_and(|view| view.drawn);
        self.follow_guard.is_some_and(|guard| !is_drawn || !guard.is_over(now))
    }

    /// How many asks of all sessions are open.
    pub(crate) fn count_asks(&self) -> usize {
        // Older daemons and logs do not report the number of asks.
        self.sessions
            .values()
            .map(|session| session.asks.max(usize::from(session.waits_for.is_some())))
            .sum()
    }

    /// The session that Resume opens: the newest used session of this folder, else of any folder, if
    /// possible on a machine that responds.
    pub(crate) fn resumable(&self) -> Option<&SessionSummary> {
        let is_used = |session: &&SessionSummary| {
            session.last_turn.is_some() || session.status != SessionStatus::Idle
        };
        let newest = |session: &&SessionSummary| {
            (session.away.is_none(), session.works_in(&self.folder), session.since)
        };
        self.sessions.values().filter(is_used).max_by_key(newest)
    }

    /// All rows that match the filter.
    pub(crate) fn rows(&self) -> Vec<Row> {
        let wanted = self.filter.to_lowercase();
        let fits = |session: &&SessionSummary| {
            let SessionSummary { id, name, title, workspace, model, machine, .. } = session;
            let machine = machine.as_deref().unwrap_or_default();
            wanted.is_empty()
                || [id.as_str(), name, title, workspace, model, machine]
                    .iter()
                    .any(|text| text.to_lowercase().contains(&wanted))
        };
        let mut rows: Vec<_> = self
            .waiting()
            .into_iter()
            .filter(fits)
            .map(|session| Row::Waiting(session.id.clone()))
            .collect();
        if self.filter.is_empty() {
            rows.extend(self.resumable().map(|session| Row::Resume(session.id.clone())));
            rows.push(Row::New);
        }
        let mut listed: Vec<_> = self.sessions.values().filter(fits).collect();
        listed.sort_by(|a, b| {
            (b.live, b.since).cmp(&(a.live, a.since)).then_with(|| a.id.cmp(&b.id))
        });
        rows.extend(listed.into_iter().map(|session| Row::Session(session.id.clone())));
        if self.filter.is_empty() {
            rows.push(Row::Quit);
        } else {
            // A typed name counts more than age or urgency.
            rows.sort_by_key(|row| {
                row.session()
                    .and_then(|id| self.get(id))
                    .map(|session| rank(&session.name, &wanted))
            });
        }
        rows
    }

    pub(crate) fn row(&self) -> Option<Row> {
        self.rows().into_iter().nth(self.cursor)
    }

    pub(crate) fn move_by(&mut self, rows: isize) {
        let last = self.rows().len().saturating_sub(1);
        self.cursor = self.cursor.saturating_add_signed(rows).min(last);
    }

    /// Clears the filter and moves the cursor to the first row with an open ask.
    pub(crate) fn show_inbox(&mut self) {
        self.filter.clear();
        self.cursor = 0;
    }

    /// Whether the session's workspace is this process's folder.
    pub(crate) fn is_here(&self, session: &SessionSummary) -> bool {
        session.works_in(&self.folder)
    }
}

/// The sort key of a name under a filter: equal names first, then names with that prefix.
fn rank(name: &str, wanted: &str) -> (bool, bool) {
    let name = name.to_lowercase();
    (name != wanted, !name.starts_with(wanted))
}
