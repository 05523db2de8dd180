//! The machines that share a database, for a program that is none of them.

use std::time::{Duration, SystemTime};

use holdpoint_common::{Certificates, Timestamp};
use tokio_postgres::{Client, Statement};

use super::StoreError;
use super::connection::{Connection, Statements, database, failed};
use super::lease::SILENT;

/// A machine, as its database knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownMachine {
    /// The name of the machine.
    pub name: String,
    /// Whether the machine has a lease: it has sent a heartbeat in the last ten seconds. Until then, its
    /// sessions are its own.
    pub has_lease: bool,
    /// Whether it has a lease, and has sent a heartbeat in the last six seconds.
    pub responds: bool,
    /// The time of its last heartbeat or, if it has given back its lease, of that.
    pub seen: Timestamp,
    /// How many sessions the machine owns.
    pub sessions: u64,
    /// The address at which the other machines reach it; `None` if they can't.
    pub address: Option<String>,
}

/// The result of [`Machines::remove`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    /// The machine is removed.
    Removed,
    /// The machine has a lease, so it is not removed.
    HasLease,
    /// There is no such machine.
    Unknown,
}

/// The machines of a database.
pub struct Machines {
    connection: Connection<MachineStatements>,
    uses_password: bool,
}

/// The age of the last heartbeat is measured by the clock of the server, as the lease is.
fn list() -> String {
    format!(
        "SELECT name, until > now(), until > now() AND seen >= now() - {SILENT},
            extract(epoch FROM now() - seen)::float8,
            (SELECT count(*) FROM sessions WHERE owner = name), address
        FROM machines ORDER BY name"
    )
}

const REMOVE: &str = "DELETE FROM machines WHERE name = $1 AND until <= now()";

const EXISTS: &str = "SELECT FROM machines WHERE name = $1";

struct MachineStatements {
    list: Statement,
    remove: Statement,
    exists: Statement,
}

impl Statements for MachineStatements {
    async fn prepare(client: &Client) -> Result<Self, tokio_postgres::Error> {
        let list = list();
        let (list, remove, exists) = tokio::try_join!(
            client.prepare(&list),
            client.prepare(REMOVE),
            client.prepare(EXISTS)
        )?;
        Ok(Self { list, remove, exists })
    }
}

impl Machines {
    /// The machines of the database with this address; see [`Postgres::connect`](super::Postgres::connect).
    /// Connects on use, and must be used inside a tokio runtime.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the address is not valid.
    pub fn of(url: &str, authorities: &Certificates) -> Result<Self, StoreError> {
        let database = database(url, authorities)?;
        let uses_password = database.uses_password();
        Ok(Self { connection: Connection::new(&database), uses_password })
    }

    /// Whether the address of the database contains a password.
    #[must_use]
    pub fn uses_password(&self) -> bool {
        self.uses_password
    }

    /// Lists the machines by their names.
    ///
    /// # Errors
    /// [`StoreError`] if the database can't be read.
    pub async fn list(&mut self) -> Result<Vec<KnownMachine>, StoreError> {
        let connected = self.connection.get().await?;
        let listing = async {
            let rows = connected.client.query(&connected.statements.list, &[]).await;
            rows.map_err(|error| failed(&error))
        };
        let rows = connected.within_limit(listing).await?;
        let now = SystemTime::now();
        let machines = rows.iter().map(|row| {
            let (has_lease, responds, age_s): (_, _, f64) = (row.get(1), row.get(2), row.get(3));
            let seen = now - Duration::from_secs_f64(age_s.max(0.0));
            let sessions = row.get::<_, i64>(4).cast_unsigned();
            let (name, address) = (row.get(0), row.get(5));
            KnownMachine { name, has_lease, responds, seen: seen.into(), sessions, address }
        });
        Ok(machines.collect())
    }

    /// Removes a machine that has no lease. Its sessions stay. If its program starts again, it is
    /// listed again.
    ///
    /// # Errors
    /// [`StoreError`] if the database can't be changed.
    pub async fn remove(&mut self, name: &str) -> Result<Removal, StoreError> {
        let connected = self.connection.get().await?;
        let removing = async {
            let (client, statements) = (&connected.client, &connected.statements);
            if client.execute(&statements.remove, &[&name]).await? > 0 {
                return Ok(Removal::Removed);
            }
            let found = client.query_opt(&statements.exists, &[&name]).await?;
            Ok(if found.is_some() { Removal::HasLease } else { Removal::Unknown })
        };
        let removing =
            async { removing.await.map_err(|error: tokio_postgres::Error| failed(&error)) };
        connected.within_limit(removing).await
    }
}
