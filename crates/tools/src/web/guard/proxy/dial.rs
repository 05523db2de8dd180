//! Dialling of addresses that were judged, without another name lookup.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::timeout;

use super::descriptors::is_in_share;
use crate::web::guard::verdict::RefusalReason;

/// How many addresses of a host are tried.
const MAX_TRIES: usize = 4;

/// How long one address may take to answer.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

/// Connects to the first of these addresses that answers.
pub(super) async fn dial(addresses: &[SocketAddr]) -> Result<TcpStream, RefusalReason> {
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in addresses.iter().take(MAX_TRIES) {
        match timeout(CONNECT_LIMIT, TcpStream::connect(address)).await {
            Ok(Ok(stream)) if !is_in_share(&stream) => {
                last = io::Error::other("too many connections are open");
            }
            Ok(Ok(stream)) => {
                // Otherwise a small packet waits for the acknowledgement of the one before it.
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Ok(Err(error)) => last = error,
            Err(_) => last = io::Error::new(io::ErrorKind::TimedOut, "no answer within 5 s"),
        }
    }
    Err(RefusalReason::Unreachable { error: last.to_string() })
}
