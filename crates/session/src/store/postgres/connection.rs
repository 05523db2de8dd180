//! A connection to the server, which is made again if it is lost.

use std::error::Error;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use holdpoint_common::Certificates;
use tokio::sync::watch;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::error::SqlState;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{AsyncMessage, Client, Config, NoTls, Notification, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::notifying::MACHINES_CHANNEL;
use super::{StoreError, io_error, schema};
use crate::model::http;

/// How long it may take to connect.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

/// How long a statement, or a group of writes, may take.
const STATEMENT_LIMIT: Duration = Duration::from_secs(10);

/// The prepared statements of a connection.
pub(super) trait Statements: Sized {
    async fn prepare(client: &Client) -> Result<Self, tokio_postgres::Error>;
}

/// A connection with its prepared statements.
pub(super) struct Connected<S> {
    pub(super) client: Client,
    pub(super) statements: S,
    /// Whether the connection is in an unknown state, for example because the server did not answer.
    suspect: AtomicBool,
}

/// A connection that is made when it is needed.
pub(super) struct Connection<S> {
    database: Database,
    connected: Option<Arc<Connected<S>>>,
}

/// A database and the way to it.
#[derive(Clone)]
pub(super) struct Database {
    config: Config,
    /// The machine that uses this, if one does.
    machine: Option<Arc<str>>,
    /// The notifications of other machines, on connections that listen.
    notified: Arc<Notified>,
    /// `None` for a server on this machine, which is reached over a Unix socket.
    tls: Option<MakeRustlsConnect>,
}

/// The notifications of other machines.
#[derive(Default)]
struct Notified {
    sessions: watch::Sender<()>,
    machines: watch::Sender<()>,
}

impl Notified {
    fn receive(&self, note: &Notification) {
        let kind = if note.channel() == MACHINES_CHANNEL { &self.machines } else { &self.sessions };
        kind.send_replace(());
    }
}

/// The database with this address.
///
/// # Errors
/// [`StoreError::Io`] if the text is not valid, or would use the network without TLS, or if there is
/// no certificate authority.
pub(super) fn database(url: &str, authorities: &Certificates) -> Result<Database, StoreError> {
    // The error could quote a password.
    let invalid = |_| {
        io_error(
            "the address of the database is not valid; it is a connection string of libpq, such as \
             `host=/var/run/postgresql user=holdpoint dbname=holdpoint`"
                .to_owned(),
        )
    };
    let mut config: Config = url.parse().map_err(invalid)?;
    config.connect_timeout(CONNECT_LIMIT).application_name("holdpoint");
    // `hostaddr` has precedence over `host`.
    let is_local = |host: &Host| matches!(host, Host::Unix(_));
    if config.get_hosts().iter().all(is_local) && config.get_hostaddrs().is_empty() {
        config.ssl_mode(SslMode::Disable);
        return Ok(Database { config, machine: None, notified: Arc::default(), tls: None });
    }
    if config.get_ssl_mode() == SslMode::Disable {
        let message = "a database that is not on this machine has to be reached with TLS: remove \
                       `sslmode=disable`";
        return Err(io_error(message.to_owned()));
    }
    config.ssl_mode(SslMode::Require);
    // The certificate is always checked, and so is the name in it.
    let mut tls = http::trusting(authorities).map_err(|error| io_error(error.to_string()))?;
    tls.alpn_protocols.clear();
    let tls = Some(MakeRustlsConnect::new(tls));
    Ok(Database { config, machine: None, notified: Arc::default(), tls })
}

impl Database {
    /// The same database, as this machine uses it.
    pub(super) fn used_by(self, machine: Arc<str>) -> Self {
        Self { machine: Some(machine), ..self }
    }

    /// Changes when the sessions of another machine change, if a connection listens.
    pub(super) fn changed_sessions(&self) -> watch::Receiver<()> {
        self.notified.sessions.subscribe()
    }

    /// Changes when another machine starts or stops, if a connection listens.
    pub(super) fn changed_machines(&self) -> watch::Receiver<()> {
        self.notified.machines.subscribe()
    }

    /// Whether the address contains a password.
    pub(super) fn uses_password(&self) -> bool {
        self.config.get_password().is_some()
    }
}

impl<S: Statements> Connection<S> {
    pub(super) fn new(database: &Database) -> Self {
        Self { database: database.clone(), connected: None }
    }

    /// The connection. One that was lost, or is in an unknown state, is replaced.
    pub(super) async fn get(&mut self) -> Result<Arc<Connected<S>>, StoreError> {
        if let Some(connected) = self.connected.as_ref().filter(|connected| connected.is_usable()) {
            return Ok(Arc::clone(connected));
        }
        self.connected = None;
        let connecting = tokio::time::timeout(CONNECT_LIMIT, connect(&self.database));
        let (client, statements) = connecting.await.map_err(|_| {
            io_error(format!("the database did not accept a connection in {CONNECT_LIMIT:?}"))
        })??;
        let connected = Connected { client, statements, suspect: AtomicBool::new(false) };
        Ok(Arc::clone(self.connected.insert(Arc::new(connected))))
    }
}

impl<S> Connected<S> {
    fn is_usable(&self) -> bool {
        !self.client.is_closed() && !self.suspect.load(Ordering::Relaxed)
    }

    /// Notes that the connection is in an unknown state, so that the next statement gets another.
    pub(super) fn suspect(&self) {
        self.suspect.store(true, Ordering::Relaxed);
    }

    /// Waits for a statement, within the time limit of statements.
    pub(super) async fn within_limit<T>(
        &self,
        running: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        self.within(STATEMENT_LIMIT, running).await
    }

    /// Waits for a statement, within this time.
    pub(super) async fn within<T>(
        &self,
        limit: Duration,
        running: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        match tokio::time::timeout(limit, running).await {
            Ok(result) => result,
            Err(_) => {
                self.suspect();
                Err(io_error(format!("the database did not answer in {limit:?}")))
            }
        }
    }
}

async fn connect<S: Statements>(database: &Database) -> Result<(Client, S), StoreError> {
    let mut client = match &database.tls {
        Some(tls) => open(database, tls.clone()).await?,
        None => open(database, NoTls).await?,
    };
    schema::prepare(&mut client).await?;
    let statements = S::prepare(&client).await.map_err(|error| failed(&error))?;
    Ok((client, statements))
}

async fn open<T>(database: &Database, tls: T) -> Result<Client, StoreError>
where
    T: MakeTlsConnect<Socket, Stream: Send + 'static>,
{
    let connecting = database.config.connect(tls);
    let (client, mut connection) = connecting.await.map_err(|error| failed(&error))?;
    let Database { machine, notified, .. } = database.clone();
    tokio::spawn(async move {
        while let Some(message) = poll_fn(|context| connection.poll_message(context)).await {
            match message {
                Ok(AsyncMessage::Notification(note))
                    if machine.as_deref() != Some(note.payload()) =>
                {
                    notified.receive(&note);
                }
                Ok(_) => {}
                Err(error) => {
                    tracing::debug!(%error, "a connection to the database ended");
                    return;
                }
            }
        }
    });
    Ok(client)
}

/// The store's error for an error of the server or of the connection.
pub(super) fn failed(error: &tokio_postgres::Error) -> StoreError {
    let Some(reported) = error.as_db_error() else {
        let source = error.source().map(|source| format!(": {source}")).unwrap_or_default();
        return io_error(format!("the database can't be reached: {error}{source}"));
    };
    let message = format!("the database reports: {}", reported.message());
    match reported.code() {
        &SqlState::DATA_CORRUPTED | &SqlState::INDEX_CORRUPTED => StoreError::Damaged { message },
        _ => io_error(message),
    }
}
