//! The check that a connection to the proxy is made by a process of the same user.

use std::net::SocketAddr;

use tokio::net::TcpStream;

/// Whether the other end of a connection belongs to this user, according to the socket table of
/// Linux.
///
/// Other systems, such as macOS, do not report the owner of a socket, so the proxy serves every
/// user of the machine while a browser runs. Other users can reach the same hosts without the
/// proxy.
pub(super) fn is_ours(stream: &TcpStream, peer: SocketAddr) -> bool {
    #[cfg(target_os = "linux")]
    return stream
        .local_addr()
        .is_ok_and(|ours| linux::owner(peer, ours) == Some(rustix::process::geteuid().as_raw()));
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

    /// The state code of an open connection. A socket that its owner has closed is listed with uid
    /// 0 and must not match.
    const ESTABLISHED: &str = "01";

    /// The uid of the socket that is bound to `local` and connected to `remote`, both on loopback.
    pub(super) fn owner(local: SocketAddr, remote: SocketAddr) -> Option<u32> {
        let (local, remote) = (table_format(local)?, table_format(remote)?);
        for line in BufReader::new(File::open("/proc/self/net/tcp").ok()?).lines() {
            let line = line.ok()?;
            // Fields: slot, local, remote, state, queues, timer, retransmits, uid.
            let mut words = line.split_ascii_whitespace().skip(1);
            if words.next() == Some(&local)
                && words.next() == Some(&remote)
                && words.next() == Some(ESTABLISHED)
            {
                return words.nth(3)?.parse().ok();
            }
        }
        None
    }

    /// An address as in `/proc/net/tcp`: the four bytes as a number in native byte order, then the
    /// port.
    fn table_format(address: SocketAddr) -> Option<String> {
        match address.ip() {
            IpAddr::V4(ip) => {
                Some(format!("{:08X}:{:04X}", u32::from_ne_bytes(ip.octets()), address.port()))
            }
            IpAddr::V6(_) => None,
        }
    }
}
