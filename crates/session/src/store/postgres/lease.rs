//! The lease of this machine: while it lasts, no other machine can take its sessions.

use std::time::Duration;

use holdpoint_common::SessionId;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_postgres::{Client, Statement};

use super::connection::{Connection, Database, Statements, failed};
use super::notifying::CHANNEL;
use super::{Machine, StoreError, io_error};
use crate::store::Deadline;

/// How long a lease lasts after a heartbeat, by the server's clock.
pub(super) const LEASE: Duration = Duration::from_secs(10);

/// How long before the end of the lease the machine ends its work: the time to end processes.
const MARGIN: Duration = Duration::from_secs(2);

/// The time between two heartbeats, and how long one may take.
const BEAT: Duration = Duration::from_secs(3);

/// The pause before a heartbeat that failed is tried again.
const RETRY: Duration = Duration::from_millis(500);

/// How often the machine looks for sessions of machines without a lease.
const LOOK: Duration = Duration::from_secs(1);

/// The most such sessions that are found at once.
const MAX_ABANDONED: i64 = 1_000;

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

const ABANDONED: &str = "
    SELECT sessions.id FROM sessions JOIN machines ON machines.name = sessions.owner
    WHERE machines.name <> $1 AND machines.until <= now() LIMIT $2";

struct LeaseStatements {
    take: Statement,
    extend: Statement,
    give_back: Statement,
    abandoned: Statement,
}

impl Statements for LeaseStatements {
    async fn prepare(client: &Client) -> Result<Self, tokio_postgres::Error> {
        // This connection is the one that is always open.
        client.batch_execute(&format!("LISTEN {CHANNEL}")).await?;
        let (take, extend, give_back, abandoned) = tokio::try_join!(
            client.prepare(TAKE),
            client.prepare(EXTEND),
            client.prepare(GIVE_BACK),
            client.prepare(ABANDONED)
        )?;
        Ok(Self { take, extend, give_back, abandoned })
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

/// The parts of a lease that others see.
#[derive(Clone)]
pub(super) struct LeaseView {
    /// When the machine has to end its work, unless the lease is extended.
    pub(super) until: watch::Receiver<Deadline>,
    /// The sessions of other machines without a lease, as they are found.
    pub(super) abandoned: watch::Receiver<Vec<SessionId>>,
}

/// The lease of this machine, on a connection of its own.
pub(super) struct Lease {
    connection: Connection<LeaseStatements>,
    incarnation: Incarnation,
    /// See [`LeaseView`].
    until: watch::Sender<Deadline>,
    /// See [`LeaseView`].
    abandoned: watch::Sender<Vec<SessionId>>,
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
        Ok(Self { connection, incarnation, until, abandoned: watch::Sender::default() })
    }

    pub(super) fn incarnation(&self) -> Incarnation {
        self.incarnation.clone()
    }

    pub(super) fn view(&self) -> LeaseView {
        LeaseView { until: self.until.subscribe(), abandoned: self.abandoned.subscribe() }
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
            let next = Instant::now() + pause;
            while Instant::now() + LOOK < next {
                tokio::time::sleep(LOOK).await;
                if let Err(error) = self.look().await {
                    tracing::warn!(%error, "the leases of other machines can't be read");
                }
            }
            tokio::time::sleep_until(next).await;
        }
    }

    /// Looks for sessions of machines without a lease.
    async fn look(&mut self) -> Result<(), StoreError> {
        let connected = self.connection.get().await?;
        let looking = async {
            let (client, statement) = (&connected.client, &connected.statements.abandoned);
            let found = client.query(statement, &[&self.incarnation.machine, &MAX_ABANDONED]).await;
            found.map_err(|error| failed(&error))
        };
        let found = connected.within(LOOK, looking).await?;
        let found: Vec<_> =
            found.iter().filter_map(|row| row.get::<_, &str>(0).parse().ok()).collect();
        if !found.is_empty() {
            self.abandoned.send_replace(found);
        }
        Ok(())
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
