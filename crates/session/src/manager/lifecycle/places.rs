//! The places for actors: how many are taken, who waits for one, and which session makes room.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use holdpoint_common::SessionId;

/// The places for actors. If none is free, live sessions are asked to unload for the first waiting
/// caller, one after the other, the least recently used first.
pub(super) struct Places<C> {
    limit: usize,
    taken: usize,
    /// How many of the taken places belong to sessions that are being opened, and so may be asked
    /// to unload soon.
    opening: usize,
    waiting: VecDeque<(SessionId, C)>,
    live: LeastRecentlyUsed,
    /// The search for a session that makes room for the first waiting caller.
    search: Search,
    /// Whether actors may start.
    open: bool,
}

/// The next step for the callers that wait.
pub(super) enum Step<C> {
    /// This session has a place.
    Grant(SessionId, C),
    /// This session is to unload.
    Unload(SessionId),
    /// No session makes room. The number is the limit of live sessions.
    Refuse(C, usize),
}

#[derive(Default)]
struct Search {
    /// The sessions that were asked.
    asked: HashSet<SessionId>,
    /// The session that was asked and has not replied yet.
    pending: Option<SessionId>,
}

/// Live sessions in the order of their last use.
#[derive(Default)]
struct LeastRecentlyUsed {
    order: BTreeMap<u64, SessionId>,
    uses: HashMap<SessionId, u64>,
    newest: u64,
}

impl<C> Places<C> {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            taken: 0,
            opening: 0,
            waiting: VecDeque::new(),
            live: LeastRecentlyUsed::default(),
            search: Search::default(),
            open: false,
        }
    }

    /// From now on, actors may start.
    pub(super) fn open(&mut self) {
        self.open = true;
    }

    /// From now on, no actor may start. Returns the callers that waited.
    pub(super) fn close(&mut self) -> impl Iterator<Item = C> {
        self.open = false;
        self.waiting.drain(..).map(|(_, caller)| caller)
    }

    pub(super) fn request(&mut self, id: SessionId, caller: C) {
        self.waiting.push_back((id, caller));
    }

    /// The session needs no place any more. If it was first, all sessions may be asked again for the
    /// next one.
    pub(super) fn cancel(&mut self, id: &SessionId) {
        if self.waiting.front().is_some_and(|(first, _)| first == id) {
            self.search.asked.clear();
        }
        self.waiting.retain(|(waiting, _)| waiting != id);
    }

    /// The next step, if there is one now.
    pub(super) fn next_step(&mut self) -> Option<Step<C>> {
        if !self.open || self.waiting.is_empty() {
            return None;
        }
        if self.taken < self.limit {
            let (id, caller) = self.waiting.pop_front()?;
            self.search.asked.clear();
            self.taken += 1;
            self.opening += 1;
            return Some(Step::Grant(id, caller));
        }
        if self.search.pending.is_some() {
            return None;
        }
        let Search { asked, pending } = &mut self.search;
        // A session that refused became the most recently used one, so a session that was not asked
        // yet is usually near the start.
        if let Some(id) = self.live.iter().find(|id| !asked.contains(*id)) {
            asked.insert(id.clone());
            *pending = Some(id.clone());
            return Some(Step::Unload(id.clone()));
        }
        if self.opening > 0 {
            return None;
        }
        self.search.asked.clear();
        let (_, caller) = self.waiting.pop_front()?;
        Some(Step::Refuse(caller, self.limit))
    }

    /// The session is used now.
    pub(super) fn touch(&mut self, id: &SessionId) {
        self.live.touch(id);
    }

    /// The session has its actor. With `rebuilding`, this is the next actor of a session that
    /// failed, which kept its place and is not counted in `opening`.
    pub(super) fn started(&mut self, id: &SessionId, rebuilding: bool) {
        self.opening -= usize::from(!rebuilding);
        self.live.add(id);
    }

    /// The session does not unload, because it is in use.
    pub(super) fn refused_unload(&mut self, id: &SessionId) {
        self.live.touch(id);
        self.replied(id);
    }

    /// The session's actor has failed. Its place is kept for the session's next actor.
    pub(super) fn failed(&mut self, id: &SessionId) {
        self.live.remove(id);
        self.replied(id);
    }

    /// The session's actor has ended.
    pub(super) fn ended(&mut self, id: &SessionId) {
        self.taken -= 1;
        self.live.remove(id);
        self.replied(id);
    }

    /// The session did not get its actor: its place is free.
    pub(super) fn start_failed(&mut self, rebuilding: bool) {
        self.taken -= 1;
        self.opening -= usize::from(!rebuilding);
    }

    fn replied(&mut self, id: &SessionId) {
        self.search.pending.take_if(|pending| pending == id);
    }
}

impl LeastRecentlyUsed {
    fn iter(&self) -> impl Iterator<Item = &SessionId> {
        self.order.values()
    }

    fn add(&mut self, id: &SessionId) {
        self.remove(id);
        self.newest += 1;
        self.order.insert(self.newest, id.clone());
        self.uses.insert(id.clone(), self.newest);
    }

    fn touch(&mut self, id: &SessionId) {
        if self.uses.contains_key(id) {
            self.add(id);
        }
    }

    fn remove(&mut self, id: &SessionId) {
        if let Some(used) = self.uses.remove(id) {
            self.order.remove(&used);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The next step, as text.
    fn next_step(places: &mut Places<&'static str>) -> Option<String> {
        Some(match places.next_step()? {
            Step::Grant(id, caller) => format!("grant {id} to {caller}"),
            Step::Unload(id) => format!("unload {id}"),
            Step::Refuse(caller, limit) => format!("refuse {caller}: {limit}"),
        })
    }

    #[test]
    fn after_a_cancel_the_next_caller_has_a_search_of_its_own() {
        let [live, cancelled, next] =
            ["live", "cancelled", "next"].map(|id| id.parse::<SessionId>().unwrap());
        let mut places = Places::new(1);
        places.open();
        places.request(live.clone(), "one");
        assert_eq!(next_step(&mut places).unwrap(), "grant live to one");
        places.started(&live, false);
        places.request(cancelled.clone(), "two");
        assert_eq!(next_step(&mut places).unwrap(), "unload live");
        places.request(next, "three");
        places.cancel(&cancelled);
        places.refused_unload(&live);
        assert_eq!(next_step(&mut places).unwrap(), "unload live");
        places.refused_unload(&live);
        assert_eq!(next_step(&mut places).unwrap(), "refuse three: 1");
    }
}
