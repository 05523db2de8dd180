//! When a machine notifies the others that its sessions have changed.

use std::collections::HashMap;

use holdpoint_common::{SessionId, SessionStatus, SessionSummary};

use super::writer::{Change, PendingWrite, Write};

/// The channel on which machines notify each other of changes in their lists of sessions. With a
/// notification in each commit, the server writes about half as much.
pub(super) const CHANNEL: &str = "holdpoint";

/// The channel on which a machine notifies the others that it has started or stopped.
pub(super) const MACHINES_CHANNEL: &str = "holdpoint_machines";

/// The sessions of this machine as the lists of other machines show them, which are read again after
/// a notification.
#[derive(Default)]
pub(super) struct ShownSessions(HashMap<SessionId, (SessionStatus, usize, String)>);

impl ShownSessions {
    /// Takes note of writes. Returns whether they change the lists.
    pub(super) fn change(&mut self, group: &[PendingWrite]) -> bool {
        group.iter().fold(false, |changed, pending| self.change_one(&pending.write) | changed)
    }

    fn change_one(&mut self, write: &Write) -> bool {
        match write {
            Write::Create { .. } | Write::Own { .. } => true,
            Write::Change { session, change: Change::Release, .. } | Write::Delete { session } => {
                self.0.remove(session);
                true
            }
            Write::Change { session, change: Change::Append { summary, .. }, .. } => {
                let SessionSummary { status, asks, name, .. } = &**summary;
                let shown = (*status, *asks, name.clone());
                self.0.insert(session.clone(), shown.clone()) != Some(shown)
            }
            Write::Change { .. } | Write::TakeName { .. } | Write::KeepNames { .. } => false,
        }
    }
}
