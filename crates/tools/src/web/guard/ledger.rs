//! What was not let through, as it concerns one tab: a browser does not tell its proxy which of them asks.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use url::Url;

use super::host::Target;
use super::verdict::{Refusals, Why};

/// How many hosts of one tab are known. Of further ones it is not known whose they are.
const MAX_KNOWN: usize = 1_000;

/// What was not let through, or did not arrive, since it was made by [`Guard::ledger`](super::Guard::ledger): everything,
/// but for hosts of which is known that others have asked for them and this one has not.
#[derive(Debug)]
pub struct Ledger {
    page: Arc<Page>,
    all: Ledgers,
}

/// The ledgers of a guard. Clones are the same.
#[derive(Debug, Clone, Default)]
pub(super) struct Ledgers(Arc<Mutex<Vec<Weak<Page>>>>);

#[derive(Debug, Default)]
struct Page(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    refused: Refusals,
    /// The hosts that this one has asked for, and those that another one has.
    own: HashSet<String>,
    others: HashSet<String>,
}

impl Ledgers {
    /// One more, of what is to come.
    pub(super) fn open(&self) -> Ledger {
        let mut all = self.all();
        all.retain(|page| page.strong_count() > 0);
        let mut entries = Entries::default();
        for other in all.iter().filter_map(Weak::upgrade) {
            entries.others.extend(other.entries().own.iter().cloned());
        }
        let page = Arc::new(Page(Mutex::new(entries)));
        all.push(Arc::downgrade(&page));
        Ledger { page, all: self.clone() }
    }

    /// Remembers one more that was not let through.
    pub(super) fn refuse(&self, host: &str, why: &Why) {
        for page in self.all().iter().filter_map(Weak::upgrade) {
            page.entries().refused.add(host, why);
        }
    }

    fn all(&self) -> MutexGuard<'_, Vec<Weak<Page>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ledger {
    /// This one has asked for the host of this address. What is no address of a host is passed over.
    pub fn asked(&self, url: &str) {
        let Some(target) = Url::parse(url).ok().as_ref().and_then(Target::of) else { return };
        let host = target.to_string();
        if !add(&mut self.page.entries().own, &host) {
            return;
        }
        for other in self.all.all().iter().filter_map(Weak::upgrade).filter(|other| !Arc::ptr_eq(other, &self.page)) {
            add(&mut other.entries().others, &host);
        }
    }

    /// What was not let through, or did not answer, so far.
    #[must_use]
    pub fn refused(&self) -> Refusals {
        let entries = self.page.entries();
        let is_ours = |host: &String| entries.own.contains(host) || !entries.others.contains(host);
        let hosts = entries.refused.hosts.iter().filter(|refusal| is_ours(&refusal.host)).cloned().collect();
        Refusals { hosts, more: entries.refused.more }
    }
}

impl Page {
    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether it was new, and there was a place for it.
fn add(hosts: &mut HashSet<String>, host: &str) -> bool {
    hosts.len() < MAX_KNOWN && !hosts.contains(host) && hosts.insert(host.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(ledger: &Ledger) -> Vec<String> {
        ledger.refused().hosts.into_iter().map(|refusal| refusal.host).collect()
    }

    #[test]
    fn m_e7_web_each_tab_is_told_of_its_own_and_of_what_is_nobodys() {
        let ledgers = Ledgers::default();
        let early = ledgers.open();
        early.asked("http://early.example/a?b");
        let late = ledgers.open();
        late.asked("wss://late.example:444/");
        late.asked("data:text/html,hello");
        for host in ["early.example:80", "late.example:444", "worker.example:443"] {
            ledgers.refuse(host, &Why::Metadata);
        }
        assert_eq!(hosts(&early), ["early.example:80", "worker.example:443"]);
        assert_eq!(hosts(&late), ["late.example:444", "worker.example:443"]);
        // Both ask for it.
        early.asked("https://late.example:444/b");
        assert_eq!(hosts(&early), ["early.example:80", "late.example:444", "worker.example:443"]);
        assert_eq!(hosts(&early).len(), 3, "it is told as often as one looks");
        // What one that is closed by now has asked for was its own.
        drop(early);
        assert_eq!(hosts(&late), ["late.example:444", "worker.example:443"]);
        assert!(hosts(&ledgers.open()).is_empty(), "what was before is not told");
    }
}
