//! Records of refused and failed connections for each tab, although the proxy does not see which
//! tab makes a request.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use url::Url;

use super::host::Target;
use super::verdict::{RefusalReason, Refusals};

/// How many hosts are remembered for a tab. Refusals of further hosts appear in every ledger.
const MAX_KNOWN: usize = 1_000;

/// The connections that were refused, or that failed, for one tab since
/// [`Guard::ledger`](super::Guard::ledger). A host is left out if other tabs are known to have
/// requested it and this tab is not.
#[derive(Debug)]
pub struct Ledger {
    tab: Arc<LedgerEntries>,
    ledgers: Ledgers,
}

/// The ledgers of a guard. Clones share one list.
#[derive(Debug, Clone, Default)]
pub(super) struct Ledgers(Arc<Mutex<Vec<Weak<LedgerEntries>>>>);

#[derive(Debug, Default)]
struct LedgerEntries(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    refused: Refusals,
    /// Hosts that this tab has requested.
    own_hosts: HashSet<String>,
    /// Hosts that other tabs have requested.
    other_hosts: HashSet<String>,
}

impl Ledgers {
    /// Opens a ledger for the refusals from now on.
    pub(super) fn open(&self) -> Ledger {
        let mut tabs = self.tabs();
        tabs.retain(|tab| tab.strong_count() > 0);
        let mut entries = Entries::default();
        for other in tabs.iter().filter_map(Weak::upgrade) {
            entries.other_hosts.extend(other.entries().own_hosts.iter().cloned());
        }
        let tab = Arc::new(LedgerEntries(Mutex::new(entries)));
        tabs.push(Arc::downgrade(&tab));
        Ledger { tab, ledgers: self.clone() }
    }

    /// Records a refusal in every open ledger.
    pub(super) fn record_refusal(&self, host: &str, why: &RefusalReason) {
        for tab in self.tabs().iter().filter_map(Weak::upgrade) {
            tab.entries().refused.add(host, why);
        }
    }

    fn tabs(&self) -> MutexGuard<'_, Vec<Weak<LedgerEntries>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ledger {
    /// Records a URL that this tab has requested. URLs without a host are ignored.
    pub fn requested(&self, url: &str) {
        let Some(target) = Url::parse(url).ok().as_ref().and_then(Target::from_url) else { return };
        let host = target.to_string();
        if !add(&mut self.tab.entries().own_hosts, &host) {
            return;
        }
        for other in self
            .ledgers
            .tabs()
            .iter()
            .filter_map(Weak::upgrade)
            .filter(|other| !Arc::ptr_eq(other, &self.tab))
        {
            add(&mut other.entries().other_hosts, &host);
        }
    }

    /// The refusals and failures that were recorded so far.
    #[must_use]
    pub fn refused(&self) -> Refusals {
        let entries = self.tab.entries();
        let is_ours =
            |host: &String| entries.own_hosts.contains(host) || !entries.other_hosts.contains(host);
        let hosts = entries
            .refused
            .hosts
            .iter()
            .filter(|refusal| is_ours(&refusal.host))
            .cloned()
            .collect();
        Refusals { hosts, more: entries.refused.more }
    }
}

impl LedgerEntries {
    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Adds a host. Returns false if the host is known already or the set is full.
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
    fn m_e7_web_each_tab_lists_its_own_and_unattributed_refusals() {
        let ledgers = Ledgers::default();
        let early = ledgers.open();
        early.requested("http://early.example/a?b");
        let late = ledgers.open();
        late.requested("wss://late.example:444/");
        late.requested("data:text/html,hello");
        for host in ["early.example:80", "late.example:444", "worker.example:443"] {
            ledgers.record_refusal(host, &RefusalReason::Metadata);
        }
        assert_eq!(hosts(&early), ["early.example:80", "worker.example:443"]);
        assert_eq!(hosts(&late), ["late.example:444", "worker.example:443"]);
        // Both tabs request it.
        early.requested("https://late.example:444/b");
        assert_eq!(hosts(&early), ["early.example:80", "late.example:444", "worker.example:443"]);
        assert_eq!(hosts(&early).len(), 3, "reading does not clear the ledger");
        // A host of a closed tab still counts as requested by another tab.
        drop(early);
        assert_eq!(hosts(&late), ["late.example:444", "worker.example:443"]);
        assert!(hosts(&ledgers.open()).is_empty(), "earlier refusals are left out");
    }
}
