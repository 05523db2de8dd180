//! Who has connected: nobody but this user's own processes is served.

use std::net::SocketAddr;

use tokio::net::TcpStream;

/// Whether the other end of a connection is a process of ours, by what Linux says of its socket.
///
/// Elsewhere, on macOS say, nobody says whose it is, and every user of the machine is served while a browser runs:
/// what they reach so, they reach without it.
pub(super) fn is_ours(stream: &TcpStream, peer: SocketAddr) -> bool {
    #[cfg(target_os = "linux")]
    return stream
        .local_addr()
        .is_ok_and(|local| linux::owner(peer, local) == Some(rustix::process::geteuid().as_raw()));
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (stream, peer);
        true
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs::File;
    use std::io::{BufRead, BufReader};
    use std::net::{IpAddr, SocketAddr};

    /// The state of a connection that neither side has closed. One that its owner has closed is nobody's, which reads as
    /// root's.
    const ESTABLISHED: &str = "01";

    /// The user whose socket is at `this` end of a connection on loopback.
    pub(super) fn owner(this: SocketAddr, that: SocketAddr) -> Option<u32> {
        let (this, that) = (written(this)?, written(that)?);
        for line in BufReader::new(File::open("/proc/self/net/tcp").ok()?).lines() {
            let line = line.ok()?;
            // Number, this end, that end, state, queues, timer, retransmits, user.
            let mut words = line.split_ascii_whitespace().skip(1);
            if words.next() == Some(&this) && words.next() == Some(&that) && words.next() == Some(ESTABLISHED) {
                return words.nth(3)?.parse().ok();
            }
        }
        None
    }

    /// An address as `/proc/net/tcp` writes it: the number of four bytes, in the machine's order, and the port.
    fn written(address: SocketAddr) -> Option<String> {
        match address.ip() {
            IpAddr::V4(ip) => Some(format!("{:08X}:{:04X}", u32::from_ne_bytes(ip.octets()), address.port())),
            IpAddr::V6(_) => None,
        }
    }
}
