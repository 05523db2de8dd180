//! Exporting a session from a store.

use std::io::{self, Write};

use holdpoint_common::{SessionError, SessionId};
use serde::Serialize;
use thiserror::Error;

use super::{FORMAT, Footer, Header, Sum, VERSION};
use crate::store::{Pages, SessionStore, StoreError};

/// The reason why an export failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The session can't be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is no such session, or its engine can't be reached.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The received text has no last line.
    #[error("the received session is incomplete; the daemon's log says why")]
    Truncated,
    /// The text can't be written.
    #[error("the session can't be exported: {0}")]
    Io(#[from] io::Error),
}

/// Exports the saved part of a session. Facts that can't be read appear as gaps, as they do in the
/// log.
///
/// # Errors
/// [`ExportError`] if there is no such session, it can't be read, or a write to `out` fails.
/// Incomplete text has no last line.
pub async fn export(
    store: &dyn SessionStore,
    session: &SessionId,
    out: &mut (dyn Write + Send),
) -> Result<(), ExportError> {
    let log = store.open(session).await?;
    let mut sum = Sum::default();
    let header = Header { format: FORMAT.to_owned(), version: VERSION, id: session.clone() };
    sum.add(&write(out, &header)?);
    let mut pages = Pages::whole_log(&*log);
    while let Some(page) = pages.next().await? {
        for event in page {
            sum.add(&write(out, &*event)?);
        }
    }
    write(out, &Footer { end: sum.end() })?;
    Ok(out.flush()?)
}

/// Writes a line and returns it.
fn write(out: &mut (dyn Write + Send), value: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    out.write_all(&line)?;
    Ok(line)
}
