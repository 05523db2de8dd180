//! The agents that the user has approved for all sessions, each with the needs that are approved.

use std::path::PathBuf;
use std::time::SystemTime;

use holdpoint_common::Timestamp;
use serde::{Deserialize, Serialize};

use super::{FoldersError, record};
use crate::hosted::{Approvals, KnownAgent};

/// An agent that the user has approved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApprovedAgent {
    /// The name of the agent.
    pub name: String,
    /// The needs that are approved, as the Confirm has shown them.
    pub needs: String,
    /// The time at which the user approved them.
    pub since: Timestamp,
}

/// The agents that the user has approved for all sessions. Each has a file of its own. Cheap to clone;
/// every call reads or writes the files.
#[derive(Debug, Clone)]
pub struct AgentStore(PathBuf);

impl AgentStore {
    /// The store in this folder, which need not exist.
    pub(super) fn new(folder: PathBuf) -> Self {
        Self(folder)
    }

    /// The record of a known agent; `None` if it was never approved.
    ///
    /// # Errors
    /// [`FoldersError`] if the record can't be read, or another user could have changed it.
    pub fn get(&self, agent: &KnownAgent) -> Result<Option<ApprovedAgent>, FoldersError> {
        record::read(&self.path(agent.name))
    }

    /// Removes the record of a known agent. Returns whether there was one.
    ///
    /// # Errors
    /// [`FoldersError`] if the record can't be removed.
    pub fn remove(&self, agent: &KnownAgent) -> Result<bool, FoldersError> {
        record::remove(&self.path(agent.name))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(format!("{name}.json"))
    }
}

impl Approvals for AgentStore {
    fn has(&self, agent: &str, needs: &str) -> bool {
        match record::read::<ApprovedAgent>(&self.path(agent)) {
            Ok(record) => record.is_some_and(|record| record.needs == needs),
            Err(error) => {
                tracing::warn!(%error, "the approval of an agent can't be read");
                false
            }
        }
    }

    fn remember(&self, agent: &str, needs: &str) -> Result<(), String> {
        let (name, needs) = (agent.to_owned(), needs.to_owned());
        let since = SystemTime::now().into();
        let record = ApprovedAgent { name, needs, since };
        record::write(&self.path(agent), &record).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m_h3_the_needs_of_an_approved_agent_are_kept_private() {
        use std::os::unix::fs::PermissionsExt;

        let home = tempfile::tempdir().unwrap();
        let store = AgentStore::new(home.path().join("data/agents"));
        let gemini = KnownAgent::named("gemini").unwrap();
        assert!(!store.has("gemini", "a") && !store.remove(gemini).unwrap());
        store.remember("gemini", "a").unwrap();
        store.remember("gemini", "b").unwrap();
        assert!(store.has("gemini", "b") && !store.has("gemini", "a") && !store.has("codex", "b"));
        assert_eq!(store.get(gemini).unwrap().unwrap().needs, "b");
        let path = store.path("gemini");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        // Another user could have changed it.
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o666)).unwrap();
        assert!(!store.has("gemini", "b"));
        assert!(store.remove(gemini).unwrap() && !store.has("gemini", "b"));
    }
}
