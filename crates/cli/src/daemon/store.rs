//! The store of the daemon: a file on this machine, or the database of its fleet.

use std::net::TcpListener;

use holdpoint_common::{Certificates, FleetSettings};
use holdpoint_session::EngineBuilder;
use holdpoint_session::folders::{self, Folders, Membership};
use holdpoint_session::store::{Machine, Postgres, Sqlite};

use super::fleet::{self, Fleet};
use crate::error::CliError;

/// The store of the daemon. Cheap to clone.
#[derive(Clone)]
pub(super) enum Store {
    /// The database in the data folder.
    File(Sqlite),
    /// The database of the fleet that this machine is in.
    Fleet(Postgres, Fleet),
}

impl Store {
    /// Opens the store. The caller holds the lock on the sessions. Returns also the socket for the other
    /// machines of a fleet, if they can reach this one.
    pub(super) async fn open(
        folders: &Folders,
        settings: &FleetSettings,
    ) -> Result<(Self, Option<TcpListener>), CliError> {
        match folders.fleet().get()? {
            Some(membership) => {
                let (listener, address) = fleet::bind(&membership)?.unzip();
                let database = connect(&membership, address, settings).await.map_err(|error| {
                    error.hint(
                        "check the database; after `holdpoint fleet leave`, this machine uses its \
                         own sessions",
                    )
                })?;
                let fleet = Fleet::new(&membership, database.other_machines())?;
                Ok((Self::Fleet(database, fleet), listener))
            }
            None => Ok((Self::File(open_file(folders)?), None)),
        }
    }

    /// Gives the store to an engine.
    pub(super) fn serve(&self, engine: EngineBuilder) -> EngineBuilder {
        match self {
            Self::File(store) => engine.store(store.clone()),
            Self::Fleet(store, _) => engine.store(store.clone()),
        }
    }

    /// The name of this machine in its fleet, if it is in one.
    pub(super) fn machine(&self) -> Option<&str> {
        match self {
            Self::File(_) => None,
            Self::Fleet(_, fleet) => Some(&fleet.name),
        }
    }

    /// The fleet that this machine is in.
    pub(super) fn fleet(&self) -> Option<&Fleet> {
        match self {
            Self::File(_) => None,
            Self::Fleet(_, fleet) => Some(fleet),
        }
    }

    /// The database in the data folder, if that is the store.
    pub(super) fn file(&self) -> Option<&Sqlite> {
        match self {
            Self::File(store) => Some(store),
            Self::Fleet(..) => None,
        }
    }

    /// Waits until the store is closed, which happens once every other clone is dropped.
    pub(super) async fn close(self) {
        match self {
            Self::File(store) => store.close().await,
            Self::Fleet(store, _) => store.close().await,
        }
    }
}

/// Opens the database in the data folder. The caller holds the lock on the sessions.
pub(crate) fn open_file(folders: &Folders) -> Result<Sqlite, CliError> {
    for file in Sqlite::files(folders.data()) {
        folders::check_file(&file)?;
    }
    Sqlite::open(folders.data()).map_err(|error| {
        let data = folders.data().display();
        CliError::failed(format!("the sessions in {data} can't be opened: {error}"))
            .hint("the folder is left unchanged: check it, or set another one with --state-dir")
    })
}

/// Connects to the database of a fleet, as a machine of it with these settings that the others reach at
/// this address.
pub(crate) async fn connect(
    membership: &Membership,
    address: Option<String>,
    settings: &FleetSettings,
) -> Result<Postgres, CliError> {
    let Membership { database, name, id, certificate, .. } = membership.clone();
    let places = settings.places.clone();
    let machine = Machine { name, id, certificate, address, places };
    Postgres::connect(&database, &authorities(), &machine).await.map_err(|error| {
        CliError::failed(format!("the database of the fleet can't be used: {error}"))
    })
}

/// The certificate authorities that the servers of databases are checked against.
pub(crate) fn authorities() -> Certificates {
    Certificates::from_env(|name| std::env::var(name).ok())
}
