//! Finding the addresses of a name.

use std::io;
use std::net::{IpAddr, ToSocketAddrs};

/// Finds the addresses of names. What it finds is judged, and then dialled as it is: no name is looked up twice
/// between the two.
pub trait Resolve: Send + Sync + 'static {
    /// The addresses of a name, the best first. May block.
    ///
    /// # Errors
    /// Those of looking it up; none found is an empty list or [`NotFound`](io::ErrorKind::NotFound).
    fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>>;
}

/// As the system does it: `/etc/hosts`, DNS and what else it is set up for.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        Ok((name, 0).to_socket_addrs()?.map(|address| address.ip()).collect())
    }
}
