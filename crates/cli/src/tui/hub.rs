//! All sessions as the hub shows them: what waits for the user first.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use holdpoint_common::{SessionId, SessionStatus, SessionSummary, Timestamp};
use holdpoint_session::form::{AfterAsk, Guard};
use holdpoint_session::model::DefaultModel;

use super::ask::{AskView, Begun};

/// All sessions, and where the user is among them.
#[derive(Debug, Default)]
pub(crate) struct Hub {
    sessions: BTreeMap<SessionId, SessionSummary>,
    pub(crate) filter: String,
    /// The row the cursor is on.
    pub(crate) cursor: usize,
    /// The ask that is answered from here.
    pub(crate) asking: Option<AskView>,
    /// The session whose next ask the panel waits for: its turn runs on after an answer.
    pub(crate) working: Option<SessionId>,
    /// Set when an ask takes the place of a session at work: an Esc pressed right then was meant to leave the panel.
    followed: Option<Guard>,
    /// The ask that was closed last, not by this user, while it was in the panel: until its session has reported how.
    pub(crate) closed: Option<AskView>,
    pub(crate) after: AfterAsk,
    /// This process's folder, and the model of a session that is opened in it.
    pub(crate) folder: String,
    pub(crate) model: Option<DefaultModel>,
    /// Whether the sessions have come.
    pub(crate) known: bool,
}

/// What a row of the hub is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Row {
    /// Waits for an answer.
    Waiting(SessionId),
    /// Opens what was done last.
    Resume(SessionId),
    New,
    Session(SessionId),
    Quit,
}

impl Row {
    /// The session it is about.
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

    /// Whether there is no session at all.
    pub(crate) fn is_empty(&self) -> bool {
        self.known && self.sessions.is_empty()
    }

    pub(crate) fn get(&self, id: &SessionId) -> Option<&SessionSummary> {
        self.sessions.get(id)
    }

    pub(crate) fn put(&mut self, summary: SessionSummary) {
        self.keep_cursor(|hub| {
            hub.sessions.insert(summary.id.clone(), summary);
        });
    }

    pub(crate) fn remove(&mut self, id: &SessionId) {
        self.keep_cursor(|hub| {
            hub.sessions.remove(id);
        });
    }

    /// Changes what is listed; the cursor stays on its row, but for the first one: there stands what is most urgent.
    fn keep_cursor(&mut self, change: impl FnOnce(&mut Self)) {
        if self.cursor == 0 {
            return change(self);
        }
        let at = self.row();
        change(self);
        let rows = self.rows();
        let kept = at.and_then(|row| rows.iter().position(|other| *other == row));
        self.cursor = kept.unwrap_or(self.cursor).min(rows.len().saturating_sub(1));
    }

    /// After how long an age is another one, as they are shown: in their largest unit.
    pub(crate) fn next_age(&self, now: Timestamp) -> Option<Duration> {
        let asked = |session: &SessionSummary| session.waits_for.as_ref().map(|ask| ask.since);
        let since = self.sessions.values().flat_map(|session| [Some(session.since), asked(session)]).flatten();
        let left = since.map(|since| {
            let age = now.since(since);
            let unit = match age.as_secs() {
                0..60 => 1,
                60..3_600 => 60,
                3_600..86_400 => 3_600,
                _ => 86_400,
            };
            Duration::from_secs((age.as_secs() / unit + 1) * unit).saturating_sub(age)
        });
        left.min()
    }

    /// The sessions that wait for an answer, the longest first.
    pub(crate) fn waiting(&self) -> Vec<&SessionSummary> {
        let mut waiting: Vec<_> = self.sessions.values().filter(|session| session.waits_for.is_some()).collect();
        waiting.sort_by_key(|session| (session.waits_for.as_ref().map(|ask| ask.since), session.id.clone()));
        waiting
    }

    /// Keeps the panel on its session: shows the next ask when the one before is closed, and until there is one, that the
    /// session works. Returns the ask that was closed, if not by this user.
    pub(crate) fn follow(&mut self, begun: &mut Begun, now: Instant) -> Option<AskView> {
        let shown = self.asking.as_ref().map(|view| &view.form.ask().id);
        let id = shown.map(|ask| &ask.session).or(self.working.as_ref())?.clone();
        let session = self.sessions.get(&id);
        let first = session.and_then(|session| session.waits_for.as_ref());
        let works = first.is_none() && session.is_some_and(|session| session.status == SessionStatus::Running);
        let is_same = match shown {
            Some(shown) => first.is_some_and(|ask| ask.id == *shown),
            None => works,
        };
        if is_same {
            return None;
        }
        self.followed = (shown.is_none() && first.is_some()).then(|| Guard::new(now));
        self.working = works.then_some(id);
        self.after.begin(now);
        let next = first.map(|ask| begun.view(ask, now));
        std::mem::replace(&mut self.asking, next).filter(|view| !view.form.is_done())
    }

    /// Whether the keys are for the panel, not for the list.
    pub(crate) fn has_panel(&self) -> bool {
        self.asking.is_some() || self.working.is_some()
    }

    /// Goes back to the list. Returns the ask that was in the panel.
    pub(crate) fn close_panel(&mut self) -> Option<AskView> {
        (self.working, self.followed) = (None, None);
        self.asking.take()
    }

    /// Whether the ask has only now taken the place of a session at work.
    pub(crate) fn has_just_followed(&self, now: Instant) -> bool {
        let is_drawn = self.asking.as_ref().is_some_and(|view| view.drawn);
        self.followed.is_some_and(|guard| !is_drawn || !guard.is_over(now))
    }

    /// How many asks of all sessions wait.
    pub(crate) fn count_asks(&self) -> usize {
        // One of a daemon or a log of before says nothing of how many.
        self.sessions.values().map(|session| session.asks.max(usize::from(session.waits_for.is_some()))).sum()
    }

    /// What Resume opens: this folder's newest session in which something was said, else the newest of all.
    pub(crate) fn resumable(&self) -> Option<&SessionSummary> {
        let said = |session: &&SessionSummary| session.last_turn.is_some() || session.status != SessionStatus::Idle;
        let newest = |session: &&SessionSummary| (session.workspace == self.folder, session.since);
        self.sessions.values().filter(said).max_by_key(newest)
    }

    /// Every row, as far as the filter lets it through.
    pub(crate) fn rows(&self) -> Vec<Row> {
        let wanted = self.filter.to_lowercase();
        let fits = |session: &&SessionSummary| {
            let SessionSummary { id, name, title, workspace, model, .. } = session;
            [id.as_str(), name, title, workspace, model].iter().any(|text| text.to_lowercase().contains(&wanted))
        };
        let mut rows: Vec<_> =
            self.waiting().into_iter().filter(fits).map(|session| Row::Waiting(session.id.clone())).collect();
        if self.filter.is_empty() {
            rows.extend(self.resumable().map(|session| Row::Resume(session.id.clone())));
            rows.push(Row::New);
        }
        let mut listed: Vec<_> = self.sessions.values().filter(fits).collect();
        listed.sort_by(|a, b| (b.live, b.since).cmp(&(a.live, a.since)).then_with(|| a.id.cmp(&b.id)));
        rows.extend(listed.into_iter().map(|session| Row::Session(session.id.clone())));
        if self.filter.is_empty() {
            rows.push(Row::Quit);
        } else {
            // Whoever types a name means it, whatever is newer or more urgent.
            rows.sort_by_key(|row| {
                row.session().and_then(|id| self.get(id)).map(|session| rank(&session.name, &wanted))
            });
        }
        rows
    }

    /// The row the cursor is on.
    pub(crate) fn row(&self) -> Option<Row> {
        self.rows().into_iter().nth(self.cursor)
    }

    /// Moves the cursor.
    pub(crate) fn move_by(&mut self, rows: isize) {
        let last = self.rows().len().saturating_sub(1);
        self.cursor = self.cursor.saturating_add_signed(rows).min(last);
    }

    /// Puts the cursor on the first row that waits for an answer.
    pub(crate) fn show_inbox(&mut self) {
        self.filter.clear();
        self.cursor = 0;
    }

    /// Whether a session works in this process's folder.
    pub(crate) fn is_here(&self, session: &SessionSummary) -> bool {
        session.workspace == self.folder
    }
}

/// How well a name fits what is wanted, the best first: where it is that, then where it begins so.
fn rank(name: &str, wanted: &str) -> (bool, bool) {
    let name = name.to_lowercase();
    (name != wanted, !name.starts_with(wanted))
}
