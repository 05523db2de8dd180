//! The lease of this machine: while it lasts, no other machine can take its sessions.

use std::sync::Arc;
use std::time::Duration;

use holdpoint_common::SessionId;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row, Statement};

use super::connection::{Connected, Connection, Database, Statements, failed};
use super::notifying::{CHANNEL, MACHINES_CHANNEL};
use super::{Machine, OtherMachine, StoreError, io_error};
use crate::store::Deadline;

/// How long a lease lasts after a heartbeat, by the server's clock.
const LEASE: Duration = Duration::from_secs(10);

/// How long before the end of the lease the machine ends its work: the time to end processes.
const MARGIN: Duration = Duration::from_secs(2);

/// The time between two heartbeats, and how long one may take.
const BEAT: Duration = Duration::from_secs(3);

/// How long after its last heartbeat a machine is shown as one that does not respond: it has missed
/// two. Its sessions are its own until its lease ends.
pub(super) const SILENT: &str = "interval '6 seconds'";

/// The pause before a heartbeat that failed is tried again.
const RETRY: Duration = Duration::from_millis(500);

/// How often the machine reads the other machines, and looks for sessions of those without a lease.
const LOOK: Duration = Duration::from_secs(1);

/// The most such sessions that are found at once.
const MAX_ABANDONED: i64 = 1_000;

const TAKE: &str = "
    INSERT INTO machines (name, id, incarnation, until, seen, certificate, address, places)
        VALUES ($1, $2, 1, now() + make_interval(secs => $3), now(), $4, $5, $6)
    ON CONFLICT (name) DO UPDATE
        SET incarnation = machines.incarnation + 1, until = excluded.until, seen = excluded.seen,
            certificate = excluded.certificate, address = excluded.address,
            places = excluded.places
        WHERE machines.id = excluded.id
    RETURNING incarnation";

/// Another machine with the name of a place of this one, or with a place that has the name of this one.
const SAME_NAME: &str = "
    SELECT name FROM machines WHERE name <> $1 AND (name = ANY ($2) OR $1 = ANY (places)) LIMIT 1";

const EXTEND: &str = "
    UPDATE machines SET until = now() + make_interval(secs => $3), seen = now()
        WHERE name = $1 AND incarnation = $2";

const GIVE_BACK: &str = "
    UPDATE machines SET until = now(), seen = now() WHERE name = $1 AND incarnation = $2";

const ABANDONED: &str = "
    SELECT sessions.id FROM sessions JOIN machines ON machines.name = sessions.owner
    WHERE machines.name <> $1 AND machines.until <= now() LIMIT $2";

const NOTIFY: &str = "SELECT pg_notify($1, $2)";

fn others() -> String {
    format!(
        "SELECT name, until > now(), seen >= now() - {SILENT}, certificate, address, places
        FROM machines WHERE name <> $1 ORDER BY name"
    )
}

struct LeaseStatements {
    take: Statement,
    extend: Statement,
    give_back: Statement,
    abandoned: Statement,
    others: Statement,
    notify: Statement,
}

impl Statements for LeaseStatements {
    async fn prepare(client: &Client) -> Result<Self, tokio_postgres::Error> {
        // This connection is the one that is always open.
        client.batch_execute(&format!("LISTEN {CHANNEL}; LISTEN {MACHINES_CHANNEL}")).await?;
        let others = others();
        let (take, extend, give_back, abandoned, others, notify) = tokio::try_join!(
            client.prepare(TAKE),
            client.prepare(EXTEND),
            client.prepare(GIVE_BACK),
            client.prepare(ABANDONED),
            client.prepare(&others),
            client.prepare(NOTIFY)
        )?;
        Ok(Self { take, extend, give_back, abandoned, others, notify })
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
    /// How often `until` has passed before the lease was extended.
    pub(super) lapses: watch::Receiver<u64>,
    /// The sessions of other machines without a lease, as they are found.
    pub(super) abandoned: watch::Receiver<Vec<SessionId>>,
    /// The other machines, as they were last read.
    pub(super) others: watch::Receiver<Arc<[OtherMachine]>>,
}

/// The lease of this machine, on a connection of its own.
pub(super) struct Lease {
    connection: Connection<LeaseStatements>,
    incarnation: Incarnation,
    /// See [`LeaseView`].
    until: watch::Sender<Deadline>,
    /// See [`LeaseView`].
    lapses: watch::Sender<u64>,
    /// See [`LeaseView`].
    abandoned: watch::Sender<Vec<SessionId>>,
    /// See [`LeaseView`].
    others: watch::Sender<Arc<[OtherMachine]>>,
    /// Changes when another machine starts or stops.
    changed_machines: watch::Receiver<()>,
}

impl Lease {
    /// Takes the lease.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the server can't be reached, or the name belongs to another machine.
    pub(super) async fn take(database: &Database, machine: &Machine) -> Result<Self, StoreError> {
        let mut connection = Connection::<LeaseStatements>::new(database);
        let connected = connection.get().await?;
        let Machine { name, id, certificate, address, places } = machine;
        if places.contains_key(name) {
            return Err(place_name_error(name));
        }
        let places: Vec<_> = places.keys().collect();
        let until = deadline();
        let taking = async {
            let (client, statements) = (&connected.client, &connected.statements);
            let lasts = LEASE.as_secs_f64();
            let same = client.query_opt(SAME_NAME, &[name, &places]).await;
            if let Some(row) = same.map_err(|error| failed(&error))? {
                let other: &str = row.get(0);
                return Err(match machine.places.contains_key(other) {
                    true => place_name_error(other),
                    false => io_error(format!(
                        "`{name}` can't be the name of a machine: the machine `{other}` has a place with \
                         this name"
                    )),
                });
            }
            let parameters: [&(dyn ToSql + Sync); 6] =
                [name, id, &lasts, certificate, address, &places];
            let taken = client.query_opt(&statements.take, &parameters).await;
            let taken = taken.map_err(|error| failed(&error))?;
            notify(&connected, name).await.map(|()| taken)
        };
        let Some(row) = connected.within(BEAT, taking).await? else {
            return Err(io_error(format!(
                "the name `{name}` belongs to another machine of this database; choose another name"
            )));
        };
        let until = watch::Sender::new(until);
        let incarnation = Incarnation { machine: name.clone(), number: row.get(0) };
        let lapses = watch::Sender::default();
        let (abandoned, others) = (watch::Sender::default(), watch::Sender::new([].into()));
        let changed_machines = database.changed_machines();
        let mut lease =
            Self { connection, incarnation, until, lapses, abandoned, others, changed_machines };
        if let Err(error) = lease.look().await {
            tracing::warn!(%error, "the other machines can't be read yet");
        }
        Ok(lease)
    }

    pub(super) fn incarnation(&self) -> Incarnation {
        self.incarnation.clone()
    }

    pub(super) fn view(&self) -> LeaseView {
        LeaseView {
            until: self.until.subscribe(),
            lapses: self.lapses.subscribe(),
            abandoned: self.abandoned.subscribe(),
            others: self.others.subscribe(),
        }
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
            match self.extend().await {
                Ok(true) => self.watch_others(BEAT).await,
                Ok(false) => {
                    let machine = &self.incarnation.machine;
                    tracing::error!(machine, "this machine was started again elsewhere");
                    self.watch_others(BEAT).await;
                }
                Err(error) => {
                    tracing::warn!(%error, "the lease can't be extended");
                    tokio::time::sleep(RETRY).await;
                }
            }
        }
    }

    /// Reads the other machines again and again for this long, at once when one starts or stops.
    async fn watch_others(&mut self, time: Duration) {
        let until = Instant::now() + time;
        while let Some(left) = until.checked_duration_since(Instant::now()) {
            // Never closed.
            let _ = tokio::time::timeout(left.min(LOOK), self.changed_machines.changed()).await;
            if let Err(error) = self.look().await {
                tracing::warn!(%error, "the other machines can't be read");
            }
        }
    }

    /// Reads the other machines, and looks for sessions of those without a lease.
    async fn look(&mut self) -> Result<(), StoreError> {
        let connected = self.connection.get().await?;
        let looking = async {
            let (client, statements) = (&connected.client, &connected.statements);
            let machine = &self.incarnation.machine;
            let abandoned: [&(dyn ToSql + Sync); 2] = [machine, &MAX_ABANDONED];
            let others: [&(dyn ToSql + Sync); 1] = [machine];
            let found = tokio::try_join!(
                client.query(&statements.abandoned, &abandoned),
                client.query(&statements.others, &others)
            );
            found.map_err(|error| failed(&error))
        };
        let (abandoned, others) = connected.within(LOOK, looking).await?;
        let abandoned: Vec<_> =
            abandoned.iter().filter_map(|row| row.get::<_, &str>(0).parse().ok()).collect();
        if !abandoned.is_empty() {
            self.abandoned.send_replace(abandoned);
        }
        let others: Arc<[_]> = others.iter().map(other_machine).collect();
        self.others.send_if_modified(|known| {
            let differs = *known != others;
            *known = others;
            differs
        });
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
            // Also while this was sent.
            if self.until.borrow().has_passed() {
                self.lapses.send_modify(|lapses| *lapses += 1);
            }
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
            given.map_err(|error| failed(&error))?;
            notify(&connected, machine).await
        };
        connected.within(BEAT, giving).await
    }
}

/// Notifies the other machines that this one has started or stopped.
async fn notify(
    Connected { client, statements, .. }: &Connected<LeaseStatements>,
    machine: &str,
) -> Result<(), StoreError> {
    let notified = client.query_one(&statements.notify, &[&MACHINES_CHANNEL, &machine]).await;
    notified.map(drop).map_err(|error| failed(&error))
}

fn other_machine(row: &Row) -> OtherMachine {
    OtherMachine {
        name: row.get(0),
        has_lease: row.get(1),
        responds: row.get(2),
        certificate: row.get(3),
        address: row.get(4),
        places: row.get(5),
    }
}

fn place_name_error(place: &str) -> StoreError {
    io_error(format!(
        "the place `{place}` has the name of a machine; choose another name for it in `[fleet] places`"
    ))
}

/// When the work has to end, if a heartbeat that is sent now is the last one.
fn deadline() -> Deadline {
    Deadline::after(LEASE - MARGIN)
}
