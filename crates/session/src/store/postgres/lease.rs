//! The lease of this machine: while it lasts, no other machine can take its sessions.

use std::time::Duration;

use tokio_postgres::{Client, Config, Statement};

use super::connection::{Connection, Statements, failed, within_limit};
use super::{Machine, StoreError, io_error};

/// How long a lease lasts after a heartbeat, by the server's clock, in seconds.
const LEASE_S: f64 = 10.0;

/// The time between two heartbeats.
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

/// The lease of this machine, on a connection of its own.
pub(super) struct Lease {
    connection: Connection<LeaseStatements>,
    name: String,
    /// How often the machine has started. An earlier start can't extend the lease.
    incarnation: i64,
}

impl Lease {
    /// Takes the lease.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the server can't be reached, or the name belongs to another machine.
    pub(super) async fn take(config: &Config, machine: &Machine) -> Result<Self, StoreError> {
        let mut connection = Connection::<LeaseStatements>::new(config);
        let connected = connection.get().await?;
        let Machine { name, id } = machine;
        let taking = async {
            let (client, statements) = (&connected.client, &connected.statements);
            let taken = client.query_opt(&statements.take, &[name, id, &LEASE_S]).await;
            taken.map_err(|error| failed(&error))
        };
        let Some(row) = within_limit(taking).await? else {
            return Err(io_error(format!(
                "the name `{name}` belongs to another machine of this database; choose another name"
            )));
        };
        Ok(Self { connection, name: name.clone(), incarnation: row.get(0) })
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
                        machine = self.name,
                        "this machine was started again elsewhere"
                    );
                    BEAT
                }
                Err(error) => {
                    tracing::warn!(%error, "the lease can't be extended");
                    self.connection.reset();
                    RETRY
                }
            };
            tokio::time::sleep(pause).await;
        }
    }

    /// Extends the lease. Returns `false` if another start of this machine has it.
    async fn extend(&mut self) -> Result<bool, StoreError> {
        let connected = self.connection.get().await?;
        let extending = async {
            let (client, statement) = (&connected.client, &connected.statements.extend);
            let extended =
                client.execute(statement, &[&self.name, &self.incarnation, &LEASE_S]).await;
            extended.map_err(|error| failed(&error))
        };
        Ok(within_limit(extending).await? > 0)
    }

    async fn give_back(&mut self) -> Result<(), StoreError> {
        let connected = self.connection.get().await?;
        let giving = async {
            let (client, statement) = (&connected.client, &connected.statements.give_back);
            let given = client.execute(statement, &[&self.name, &self.incarnation]).await;
            given.map_err(|error| failed(&error))
        };
        within_limit(giving).await.map(drop)
    }
}
