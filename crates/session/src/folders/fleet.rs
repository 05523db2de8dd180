//! The membership of this machine in a fleet.

use std::fmt;
use std::path::PathBuf;
use std::time::SystemTime;

use holdpoint_common::Timestamp;
use serde::{Deserialize, Serialize};

use super::{FoldersError, record};
use crate::names::fresh_id;

/// The membership of this machine in a fleet: machines that keep their sessions in one database.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Membership {
    /// The address of the database, which may contain a password; see
    /// [`Postgres::connect`](crate::store::Postgres::connect).
    pub database: String,
    /// The name of this machine in the fleet.
    pub name: String,
    /// A random text by which the database recognizes this machine.
    pub id: String,
    /// The time at which the machine joined.
    pub since: Timestamp,
}

impl Membership {
    /// The membership of a machine that joins now.
    #[must_use]
    pub fn new(database: String, name: String) -> Self {
        let id = format!("{}-{}", fresh_id(), fresh_id());
        Self { database, name, id, since: SystemTime::now().into() }
    }
}

/// Hides the address, because it may contain a password.
impl fmt::Debug for Membership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Membership").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The record of the membership. Cheap to clone; every call reads or writes the file.
#[derive(Debug, Clone)]
pub struct FleetStore(PathBuf);

impl FleetStore {
    /// The store with this file, which need not exist.
    pub(super) fn new(file: PathBuf) -> Self {
        Self(file)
    }

    /// The membership; `None` if this machine is in no fleet.
    ///
    /// # Errors
    /// [`FoldersError`] if the record can't be read, or another user could have changed it.
    pub fn get(&self) -> Result<Option<Membership>, FoldersError> {
        record::read(&self.0)
    }

    /// Records a membership in place of an earlier one. A running daemon does not notice.
    ///
    /// # Errors
    /// [`FoldersError`] if the record can't be written.
    pub fn set(&self, membership: &Membership) -> Result<(), FoldersError> {
        record::write(&self.0, membership)
    }

    /// Removes the membership. Returns whether there was one. A running daemon does not notice.
    ///
    /// # Errors
    /// [`FoldersError`] if the record can't be removed.
    pub fn remove(&self) -> Result<bool, FoldersError> {
        record::remove(&self.0)
    }
}
