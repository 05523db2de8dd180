//! Watching all sessions of an engine in this process.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use actix::prelude::*;
use futures_util::StreamExt;
use holdpoint_common::api::{ListQuery, SessionList, SessionNews};
use holdpoint_common::{SessionError, SessionId, SessionSummary, Snapshot};
use tokio::sync::watch;
use tokio_stream::StreamMap;
use tokio_stream::wrappers::WatchStream;

use crate::backend::WatchBackend;
use crate::manager::{GetWatchSources, List, Manager, WatchSources};

type Snapshots = HashMap<SessionId, watch::Receiver<Arc<Snapshot>>>;

/// A stream of session changes. A slow reader gets the latest state; intermediate changes are
/// coalesced.
pub(crate) struct LocalWatch {
    manager: Addr<Manager>,
    roster: watch::Receiver<u64>,
    live: StreamMap<SessionId, WatchStream<Arc<Snapshot>>>,
    /// The same snapshots, to read the last one of a session that is no longer live.
    shown: Snapshots,
    /// How often a session had become live when the sessions were last read.
    live_starts: u64,
    /// Which version of the saved sessions was reported; `None` before the first report.
    listed: Option<u64>,
    /// The last reported summary of each session.
    reported: HashMap<SessionId, SessionSummary>,
    /// The changes to report next.
    news: VecDeque<SessionNews>,
    /// Whether the set of sessions has to be read again, after a change or a failed read.
    needs_reload: bool,
}

impl LocalWatch {
    /// Starts to watch the sessions of this manager.
    pub(super) async fn open(manager: Addr<Manager>) -> Result<Self, SessionError> {
        let sources = manager.send(GetWatchSources).await.map_err(|_| SessionError::Stopped)?;
        let mut watch = Self {
            manager,
            roster: sources.roster,
            live: StreamMap::new(),
            shown: HashMap::new(),
            live_starts: 0,
            listed: None,
            reported: HashMap::new(),
            news: VecDeque::new(),
            needs_reload: false,
        };
        watch.reload_sessions().await?;
        Ok(watch)
    }

    /// Reads the set of sessions. The saved ones, which can be many, are listed only if they may
    /// have changed.
    async fn reload_sessions(&mut self) -> Result<(), SessionError> {
        let sources =
            self.manager.send(GetWatchSources).await.map_err(|_| SessionError::Stopped)?;
        let WatchSources { roster, live, live_starts, saved_changes, stopping, .. } = sources;
        // Keeps the streams of the sessions that are ending: each reports how its last turn ends.
        if stopping && self.listed.is_some() {
            return Ok(());
        }
        self.roster = roster;
        let before = std::mem::replace(&mut self.shown, live.iter().cloned().collect());
        // The first time, all sessions are reported in their order.
        if self.listed.is_some() {
            self.report_live(&before, &live);
        }
        let new = live.iter().filter(|(id, _)| !before.contains_key(id)).count();
        // A session that became live and ended since the last read is only in the list.
        let missed_starts = live_starts - self.live_starts != new as u64;
        self.live =
            live.into_iter().map(|(id, shown)| (id, WatchStream::from_changes(shown))).collect();
        if missed_starts || self.listed != Some(saved_changes) {
            self.report_all().await?;
            self.listed = Some(saved_changes);
        }
        self.live_starts = live_starts;
        Ok(())
    }

    /// Reports the live sessions, and those that were live before.
    fn report_live(
        &mut self,
        before: &Snapshots,
        live: &[(SessionId, watch::Receiver<Arc<Snapshot>>)],
    ) {
        for (id, shown) in before {
            if !self.shown.contains_key(id) {
                let summary = SessionSummary::from(&**shown.borrow());
                self.report(SessionSummary { live: false, ..summary });
            }
        }
        for (_, shown) in live {
            let summary = SessionSummary::from(&**shown.borrow());
            self.report(summary);
        }
    }

    /// Reports all sessions, and those that were deleted.
    async fn report_all(&mut self) -> Result<(), SessionError> {
        let listed = self.manager.send(List(ListQuery::default())).await;
        let SessionList { sessions, .. } = listed.map_err(|_| SessionError::Stopped)??;
        let known: HashSet<_> = sessions.iter().map(|session| &session.id).collect();
        let gone: Vec<_> = self.reported.keys().filter(|id| !known.contains(id)).cloned().collect();
        for id in gone {
            self.reported.remove(&id);
            self.news.push_back(SessionNews::Deleted(id));
        }
        // The oldest goes first, so that the newest is on top if a client adds each one at the top.
        sessions.into_iter().rev().for_each(|session| self.report(session));
        Ok(())
    }

    /// Reports a session, unless its summary is unchanged.
    fn report(&mut self, session: SessionSummary) {
        if self.reported.get(&session.id) != Some(&session) {
            self.reported.insert(session.id.clone(), session.clone());
            self.news.push_back(SessionNews::Session(Box::new(session)));
        }
    }
}

impl WatchBackend for LocalWatch {
    async fn next(&mut self) -> Option<SessionNews> {
        // `needs_reload` may be left from an earlier call that was dropped half-way.
        let mut tried = false;
        loop {
            if let Some(news) = self.news.pop_front() {
                return Some(news);
            }
            if self.needs_reload && !tried {
                tried = true;
                match self.reload_sessions().await {
                    Ok(()) | Err(SessionError::Stopped) => self.needs_reload = false,
                    Err(error) => tracing::warn!(%error, "sessions can't be listed for a watch"),
                }
                continue;
            }
            tokio::select! {
                changed = self.roster.changed() => match changed {
                    Ok(()) => self.needs_reload = true,
                    // The engine has stopped, but the ends of its sessions are still reported.
                    Err(_) => {
                        let (_, snapshot) = self.live.next().await?;
                        self.report(SessionSummary::from(&*snapshot));
                    }
                },
                Some((_, snapshot)) = self.live.next() => self.report(SessionSummary::from(&*snapshot)),
            }
            tried = false;
        }
    }

    fn has_stopped(&self) -> bool {
        true
    }
}
