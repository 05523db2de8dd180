//! The membership of this machine in a fleet.

use std::fmt;
use std::path::{Path, PathBuf};

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
    /// A random text by which the database recognizes this machine; see [`FleetStore::machine_id`].
    pub id: String,
    /// The certificate by which the other machines recognize this one, as PEM.
    pub certificate: String,
    /// The private key of the certificate, as PEM.
    pub key: String,
    /// The address at which the other machines reach this one; `None` if they can't.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listen: Option<String>,
}

/// Hides the address of the database, which may contain a password, and the key.
impl fmt::Debug for Membership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Membership").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The record of the membership. Cheap to clone; every call reads or writes a file.
#[derive(Debug, Clone)]
pub struct FleetStore {
    membership: PathBuf,
    machine: PathBuf,
}

impl FleetStore {
    /// The store in this folder, which need not exist.
    pub(super) fn new(folder: &Path) -> Self {
        Self { membership: folder.join("fleet.json"), machine: folder.join("machine.json") }
    }

    /// A random text that belongs to this machine for ever. So a machine can join again under its name,
    /// also after a try that was broken off.
    ///
    /// # Errors
    /// [`FoldersError`] if the text can't be read or, the first time, written.
    pub fn machine_id(&self) -> Result<String, FoldersError> {
        if let Some(id) = record::read(&self.machine)? {
            return Ok(id);
        }
        let id = format!("{}-{}", fresh_id(), fresh_id());
        record::write(&self.machine, &id)?;
        Ok(id)
    }

    /// The membership; `None` if this machine is in no fleet.
    ///
    /// # Errors
    /// [`FoldersError`] if the record can't be read, or another user could have changed it.
    pub fn get(&self) -> Result<Option<Membership>, FoldersError> {
        record::read(&self.membership)
    }

    /// Records a membership in place of an earlier one. A running daemon does not notice.
    ///
    /// # Errors
    /// [`FoldersError`] if the record can't be written.
    pub fn set(&self, membership: &Membership) -> Result<(), FoldersError> {
        record::write(&self.membership, membership)
    }

    /// Removes the membership. Returns whether there was one. A running daemon does not notice.
    ///
    /// # Errors
    /// [`FoldersError`] if the record can't be removed.
    pub fn remove(&self) -> Result<bool, FoldersError> {
        record::remove(&self.membership)
    }
}
