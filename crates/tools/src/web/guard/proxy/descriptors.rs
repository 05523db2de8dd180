//! The share of this process's file descriptors that proxies may use.

use std::os::fd::AsRawFd;

use rustix::process::{Resource, getrlimit};

/// Whether a socket has one of the lower half of the descriptors that this process may open. A new
/// socket gets the lowest free one. Proxies close all others at once, so they leave the upper half
/// to the rest of the process, such as the connections of clients.
pub(super) fn is_in_share(socket: &impl AsRawFd) -> bool {
    let limit = getrlimit(Resource::Nofile).current;
    limit.is_none_or(|limit| u64::try_from(socket.as_raw_fd()).is_ok_and(|fd| fd < limit / 2))
}
