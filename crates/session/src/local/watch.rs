//! All sessions of an engine in this process, watched.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use actix::prelude::*;
use futures_util::StreamExt;
use holdpoint_common::api::SessionNews;
use holdpoint_common::{SessionId, SessionSummary, Snapshot};
use tokio::sync::watch;
use tokio_stream::StreamMap;
use tokio_stream::wrappers::WatchStream;

use super::LocalSessions;
use crate::error::SessionError;
use crate::manager::{GetWatched, List, Manager, Watched};

type Shown = HashMap<SessionId, watch::Receiver<Arc<Snapshot>>>;

/// Sees what becomes of all sessions. What changes faster than it is looked at is told as it is then.
pub(crate) struct LocalWatch {
    manager: Addr<Manager>,
    roster: watch::Receiver<u64>,
    live: StreamMap<SessionId, WatchStream<Arc<Snapshot>>>,
    /// The same to look at: what a session showed last, it is when it is no longer live.
    shown: Shown,
    /// How often sessions had become live when it was looked last.
    came: u64,
    /// Which of the saved sessions were told of.
    listed: Option<u64>,
    /// What was told of each.
    told: HashMap<SessionId, SessionSummary>,
    /// What is to be told next.
    news: VecDeque<SessionNews>,
    /// Which sessions there are could not be found out: at the next change it is tried again.
    behind: bool,
}

impl LocalSessions {
    pub(crate) async fn watch(&self) -> Result<LocalWatch, SessionError> {
        let manager = self.manager().clone();
        let roster = manager.send(GetWatched).await.map_err(|_| SessionError::Stopped)?.roster;
        let (live, shown, told) = (StreamMap::new(), HashMap::new(), HashMap::new());
        let (came, listed, news, behind) = (0, None, VecDeque::new(), false);
        let mut watch = LocalWatch { manager, roster, live, shown, came, listed, told, news, behind };
        watch.call_roll().await?;
        Ok(watch)
    }
}

impl LocalWatch {
    /// What has changed, once something has; nothing when the engine has stopped.
    pub(crate) async fn next(&mut self) -> Option<SessionNews> {
        // Who gave up waiting may have done so in the middle of this.
        let mut tried = false;
        loop {
            if let Some(news) = self.news.pop_front() {
                return Some(news);
            }
            if self.behind && !tried {
                tried = true;
                match self.call_roll().await {
                    Ok(()) | Err(SessionError::Stopped) => self.behind = false,
                    Err(error) => tracing::warn!(%error, "who watches is not told which sessions there are"),
                }
                continue;
            }
            tokio::select! {
                changed = self.roster.changed() => match changed {
                    Ok(()) => self.behind = true,
                    // The engine has stopped; how its sessions have ended is still told.
                    Err(_) => {
                        let (_, snapshot) = self.live.next().await?;
                        self.tell(SessionSummary::from(&*snapshot));
                    }
                },
                Some((_, snapshot)) = self.live.next() => self.tell(SessionSummary::from(&*snapshot)),
            }
            tried = false;
        }
    }

    /// Finds out which sessions there are. The saved ones, which may be many, only if there may be others.
    async fn call_roll(&mut self) -> Result<(), SessionError> {
        let watched = self.manager.send(GetWatched).await.map_err(|_| SessionError::Stopped)?;
        let Watched { roster, live, came, saved, stopping } = watched;
        // Keeps the streams of the sessions that are ending: each reports how its last turn ends.
        if stopping && self.listed.is_some() {
            return Ok(());
        }
        self.roster = roster;
        let before = std::mem::replace(&mut self.shown, live.iter().cloned().collect());
        // The first time, all are told in their order.
        if self.listed.is_some() {
            self.tell_live(&before, &live);
        }
        let new = live.iter().filter(|(id, _)| !before.contains_key(id)).count();
        let missed = came - self.came != new as u64;
        self.live = live.into_iter().map(|(id, shown)| (id, WatchStream::from_changes(shown))).collect();
        if missed || self.listed != Some(saved) {
            self.tell_all().await?;
            self.listed = Some(saved);
        }
        self.came = came;
        Ok(())
    }

    /// Tells of those that are live, and of those that were.
    fn tell_live(&mut self, before: &Shown, live: &[(SessionId, watch::Receiver<Arc<Snapshot>>)]) {
        for (id, shown) in before {
            if !self.shown.contains_key(id) {
                let summary = SessionSummary::from(&**shown.borrow());
                self.tell(SessionSummary { live: false, ..summary });
            }
        }
        for (_, shown) in live {
            let summary = SessionSummary::from(&**shown.borrow());
            self.tell(summary);
        }
    }

    /// Tells of all there are.
    async fn tell_all(&mut self) -> Result<(), SessionError> {
        let sessions = self.manager.send(List).await.map_err(|_| SessionError::Stopped)??;
        let known: HashSet<_> = sessions.iter().map(|session| &session.id).collect();
        let gone: Vec<_> = self.told.keys().filter(|id| !known.contains(id)).cloned().collect();
        for id in gone {
            self.told.remove(&id);
            self.news.push_back(SessionNews::Deleted(id));
        }
        // The oldest first, so that who shows the newest on top puts each above the last.
        sessions.into_iter().rev().for_each(|session| self.tell(session));
        Ok(())
    }

    /// Tells of a session, if it is not as it was told of last.
    fn tell(&mut self, session: SessionSummary) {
        if self.told.get(&session.id) != Some(&session) {
            self.told.insert(session.id.clone(), session.clone());
            self.news.push_back(SessionNews::Session(Box::new(session)));
        }
    }
}
