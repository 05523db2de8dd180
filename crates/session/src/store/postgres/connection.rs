//! A connection to the server, which is made again if it is lost.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use tokio_postgres::config::Host;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Config, NoTls};

use super::{StoreError, io_error, schema};

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
}

/// A connection that is made when it is needed.
pub(super) struct Connection<S> {
    config: Config,
    connected: Option<Arc<Connected<S>>>,
}

/// The settings of a connection.
///
/// # Errors
/// [`StoreError::Io`] if the text is not valid, or names a server that is not on this machine.
pub(super) fn config(url: &str) -> Result<Config, StoreError> {
    // The error could quote a password.
    let invalid = |_| {
        io_error(
            "the address of the database is not valid; it is a connection string of libpq, such as \
             `host=/var/run/postgresql user=holdpoint dbname=holdpoint`"
                .to_owned(),
        )
    };
    let mut config: Config = url.parse().map_err(invalid)?;
    if !matches!(config.get_hosts(), [Host::Unix(_), ..]) {
        let message = "the database has to be reached over a Unix socket: set `host` to the folder \
                       of the socket";
        return Err(io_error(message.to_owned()));
    }
    config.connect_timeout(CONNECT_LIMIT).application_name("holdpoint");
    Ok(config)
}

impl<S: Statements> Connection<S> {
    pub(super) fn new(config: &Config) -> Self {
        Self { config: config.clone(), connected: None }
    }

    /// The connection. A lost one is replaced.
    pub(super) async fn get(&mut self) -> Result<Arc<Connected<S>>, StoreError> {
        if let Some(connected) = self.connected.as_ref().filter(|it| !it.client.is_closed()) {
            return Ok(Arc::clone(connected));
        }
        let connecting = tokio::time::timeout(CONNECT_LIMIT, connect(&self.config));
        let (client, statements) = connecting.await.map_err(|_| {
            io_error(format!("the database did not accept a connection in {CONNECT_LIMIT:?}"))
        })??;
        let connected = Arc::new(Connected { client, statements });
        self.connected = Some(Arc::clone(&connected));
        Ok(connected)
    }

    /// Drops the connection, because it is in an unknown state.
    pub(super) fn reset(&mut self) {
        self.connected = None;
    }
}

async fn connect<S: Statements>(config: &Config) -> Result<(Client, S), StoreError> {
    let (mut client, connection) = config.connect(NoTls).await.map_err(|error| failed(&error))?;
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection to the database ended");
        }
    });
    schema::prepare(&mut client).await?;
    let statements = S::prepare(&client).await.map_err(|error| failed(&error))?;
    Ok((client, statements))
}

/// Waits for a statement, within its time limit.
pub(super) async fn within_limit<T>(
    running: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let limit = STATEMENT_LIMIT;
    match tokio::time::timeout(limit, running).await {
        Ok(result) => result,
        Err(_) => Err(io_error(format!("the database did not answer in {limit:?}"))),
    }
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
