//! The lease of this machine: while it lasts, no other machine can take its sessions.

use std::time::Duration;

use tokio::sync::watch;
use tokio_postgres::{Client, Statement};

use super::connection::{Connection, Database, Statements, failed};
use super::{Machine, StoreError, io_error};
use crate::store::Deadline;

/// How long a lease lasts after a heartbeat, by the server's clock.
const LEASE: Duration = Duration::from_secs(10);

/// How long before the end of the lease the machine ends its work: the time to end processes.
const MARGIN: Duration = Duration::from_secs(2);

/// The time between two heartbeats, and how long one may take.
const BEAT: Duration = Duration::from_secs(3);

/// The pause before a heartbeat that failed is tried again.
const RETRY: Duration = Duration::from_millis(500);

const TAKE: &str = "
    INSERT INTO machines (name, id, incarnation, until)
        VALUES ($1, $2, 1, now() + make_interval(secs => $3))
    ON CONFLICT (name) DO UPDATE
        SET incarnation = machines.incarnation + 1, until = excluded.until
        WHERE machines.id = excluded.id
    RETURNING incarnation";

const EXTEND: &str = "
    UPDATE machines SET until = now() + make_interval(secs => $3)
        WHERE name = $1 AND incarnation = $2";

const GIVE_BACK: &str = "UPDATE machines SET until = now() WHERE name = $1 AND incarnation = $2";

struct LeaseStatements {
    take: Statement,
    extend: Statement,
    give_back: Statement,
}

impl Statements for LeaseStatements {
    async fn prepare(client: &Client) -> Result<Self, tokio_postgres::Error> {
        let (take, extend, give_back) = tokio::try_join!(
            client.prepare(TAKE),
            client.prepare(EXTEND),
            client.prepare(GIVE_BACK)
        )?;
        Ok(Self { take, extend, give_back })
    }
}

/// This start of a machine.
#[derive(Debug, Clone)]
pub(super) struct Incarnation {
    /// The name of the machine.
    pub(super) machine: String,
    /// How often the machine has started. An earlier start can't extend the lease.
    pub(super) number: i64,
}

/// The lease of this machine, on a connection of its own.
pub(super) struct Lease {
    connection: Connection<LeaseStatements>,
    incarnation: Incarnation,
    /// When the machine has to end its work, unless the lease is extended.
    until: watch::Sender<Deadline>,
}

impl Lease {
    /// Takes the lease.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the server can't be reached, or the name belongs to another machine.
    pub(super) async fn take(database: &Database, machine: &Machine) -> Result<Self, StoreError> {
        let mut connection = Connection::<LeaseStatements>::new(database);
        let connected = connection.get().await?;
        let Machine { name, id } = machine;
        let until = deadline();
        let taking = async {
            let (client, statements) = (&connected.client, &connected.statements);
            let taken = client.query_opt(&statements.take, &[name, id, &LEASE.as_secs_f64()]).await;
            taken.map_err(|error| failed(&error))
        };
        let Some(row) = connected.within(BEAT, taking).await? else {
            return Err(io_error(format!(
                "the name `{name}` belongs to another machine of this database; choose another name"
            )));
        };
        let until = watch::Sender::new(until);
        let incarnation = Incarnation { machine: name.clone(), number: row.get(0) };
        Ok(Self { connection, incarnation, until })
    }

    pub(super) fn incarnation(&self) -> Incarnation {
        self.incarnation.clone()
    }

    /// When the machine has to end its work, unless the lease is extended.
    pub(super) fn until(&self) -> watch::Receiver<Deadline> {
        self.until.subscribe()
    }

    /// Extends the lease again and again, and gives it back when `serving` is done.
    pub(super) async fn keep_during<T>(mut self, serving: impl Future<Output = T>) {
        tokio::select! {
            _ = serving => {}
            () = self.keep() => {}
        }
        if let Err(error) = self.give_back().await {
            tracing::warn!(%error, "the lease can't be given back; it ends by itself");
        }
    }

    async fn keep(&mut self) -> ! {
        loop {
            let pause = match self.extend().await {
                Ok(true) => BEAT,
                Ok(false) => {
                    tracing::error!(
                        machine = self.incarnation.machine,
                        "this machine was started again elsewhere"
                    );
                    BEAT
                }
                Err(error) => {
                    tracing::warn!(%error, "the lease can't be extended");
                    RETRY
                }
            };
            tokio::time::sleep(pause).await;
        }
    }

    /// Extends the lease. Returns `false` if another start of this machine has it.
    async fn extend(&mut self) -> Result<bool, StoreError> {
        let connected = self.connection.get().await?;
        let until = deadline();
        let Incarnation { machine, number } = &self.incarnation;
        let extending = async {
            let (client, statement) = (&connected.client, &connected.statements.extend);
            let extended =
                client.execute(statement, &[machine, number, &LEASE.as_secs_f64()]).await;
            extended.map_err(|error| failed(&error))
        };
        let is_extended = connected.within(BEAT, extending).await? > 0;
        if is_extended {
            self.until.send_replace(until);
        }
        Ok(is_extended)
    }

    async fn give_back(&mut self) -> Result<(), StoreError> {
        let connected = self.connection.get().await?;
        let Incarnation { machine, number } = &self.incarnation;
        let giving = async {
            let (client, statement) = (&connected.client, &connected.statements.give_back);
            let given = client.execute(statement, &[machine, number]).await;
            given.map_err(|error| failed(&error))
        };
        connected.within(BEAT, giving).await.map(drop)
    }
}

/// When the work has to end, if a heartbeat that is sent now is the last one.
fn deadline() -> Deadline {
    Deadline::after(LEASE - MARGIN)
}
