//! The proxy of a program that may reach named domains. Without the feature `web` there is none.

#[cfg(all(feature = "web", target_os = "linux"))]
pub(crate) use crate::web::guard::{DomainProxy, RefusedHosts};
#[cfg(not(all(feature = "web", target_os = "linux")))]
pub(crate) use none::{DomainProxy, RefusedHosts};

/// Whether programs can have a proxy.
pub(crate) const HAS_PROXY: bool = cfg!(all(feature = "web", target_os = "linux"));

#[cfg(not(all(feature = "web", target_os = "linux")))]
mod none {
    use std::io;
    use std::os::unix::net::UnixStream;

    use super::super::domains::{Reach, Refused};

    /// A proxy that does not exist.
    #[derive(Debug)]
    pub(crate) enum DomainProxy {}

    /// The refused hosts of a proxy that does not exist.
    #[derive(Debug, Clone)]
    pub(crate) enum RefusedHosts {}

    impl DomainProxy {
        pub(crate) fn start(_: &Reach, _: UnixStream) -> io::Result<Self> {
            Err(io::Error::other("this program has no proxy for domains"))
        }

        pub(crate) fn refused(&self) -> RefusedHosts {
            match *self {}
        }
    }

    impl RefusedHosts {
        pub(crate) fn list(&self) -> Vec<Refused> {
            match *self {}
        }
    }
}
