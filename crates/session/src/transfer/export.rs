//! Out of a store.

use std::io::{self, Write};

use holdpoint_common::SessionId;
use serde::Serialize;
use thiserror::Error;

use super::{FORMAT, Footer, Header, Sum, VERSION};
use crate::error::SessionError;
use crate::store::{Pages, SessionStore, StoreError};

/// Why a session was not written out.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The session can't be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is no such session, or its engine can't be reached.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// What came of it has no last line.
    #[error("the session came only in part; the daemon's log says why")]
    Part,
    /// The text can't be written.
    #[error("the session can't be written out: {0}")]
    Io(#[from] io::Error),
}

/// Writes a session out, as far as it is saved. Where facts can't be read, the text says so as the log does.
///
/// # Errors
/// [`ExportError`] if there is no such session, it can't be read, or `out` fails: what was written then has no last line.
pub async fn export(
    store: &dyn SessionStore,
    session: &SessionId,
    out: &mut (dyn Write + Send),
) -> Result<(), ExportError> {
    let log = store.open(session).await?;
    let mut sum = Sum::default();
    let header = Header { format: FORMAT.to_owned(), version: VERSION, id: session.clone() };
    sum.add(&write(out, &header)?);
    let mut pages = Pages::of(&*log);
    while let Some(page) = pages.next().await? {
        for event in page {
            sum.add(&write(out, &*event)?);
        }
    }
    write(out, &Footer { end: sum.end() })?;
    Ok(out.flush()?)
}

/// Writes a line, and returns it.
fn write(out: &mut (dyn Write + Send), what: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(what)?;
    line.push(b'\n');
    out.write_all(&line)?;
    Ok(line)
}
