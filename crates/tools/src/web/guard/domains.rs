//! The proxy of a program in a sandbox, which can reach named hosts only.

use std::convert::Infallible;
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::TcpListener;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use rustix::net::sockopt::{socket_acceptconn, socket_domain, socket_type};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SocketType, recvmsg,
};
use tokio::io::Interest;

use super::judge::Judge;
use super::own::OwnPorts;
use super::proxy::{Clients, serve};
use super::resolve::SystemResolver;
use super::rules::Rules;
use super::thread::{ProxyThread, runtime};
use super::{Ledger, RefusalReason};
use crate::sandbox::{Reach, Refused};

/// The proxy of one program. Its thread and all its connections end when this is dropped.
///
/// The proxy accepts connections on a socket that was made in the network namespace of the sandbox
/// and handed over. A socket stays in its namespace, so nothing else can connect to it, and no
/// process in the sandbox has to relay data. The connections that the proxy makes are outside.
#[derive(Debug)]
pub(crate) struct DomainProxy {
    ledger: Arc<Ledger>,
    _thread: ProxyThread,
}

/// The hosts that a program could not reach.
#[derive(Debug, Clone)]
pub(crate) struct RefusedHosts(Arc<Ledger>);

impl DomainProxy {
    /// Starts a proxy, which serves when it has received a listening socket over `handover`.
    ///
    /// # Errors
    /// A rule is invalid, or the proxy can't be started.
    pub(crate) fn start(reach: &Reach, handover: UnixStream) -> io::Result<Self> {
        let rules = Rules::new(&reach.allow, &reach.deny).map_err(io::Error::other)?;
        let rules = rules.only(reach.domains.clone());
        let judge = Arc::new(Judge::new(rules, Arc::new(SystemResolver), OwnPorts::default()));
        let ledger = Arc::new(judge.ledgers().open());
        handover.set_nonblocking(true)?;
        let runtime = runtime()?;
        let handover = {
            let _in = runtime.enter();
            tokio::net::UnixStream::from_std(handover)?
        };
        let thread = ProxyThread::spawn("domain-proxy", runtime, run(handover, judge))?;
        Ok(Self { ledger, _thread: thread })
    }

    /// The hosts that are refused from the start on, even after the end of the proxy.
    pub(crate) fn refused(&self) -> RefusedHosts {
        RefusedHosts(Arc::clone(&self.ledger))
    }
}

impl RefusedHosts {
    /// The hosts so far.
    pub(crate) fn list(&self) -> Vec<Refused> {
        let refusals = self.0.refused().hosts.into_iter();
        let refused = refusals.map(|refusal| {
            use RefusalReason::{NotNamed, Private};

            let is_private = matches!(refusal.why, Private { .. });
            let why = (refusal.why != NotNamed).then(|| refusal.why.to_string());
            Refused { host: refusal.host, why, is_private }
        });
        refused.collect()
    }
}

/// Receives the listening socket and serves it. A program without a listener has no network.
async fn run(handover: tokio::net::UnixStream, judge: Arc<Judge>) -> Infallible {
    match receive(handover).await {
        Ok(listener) => serve(listener, judge, Clients::Namespace).await,
        Err(error) => {
            tracing::debug!(%error, "a program in a sandbox has handed over no listener");
            std::future::pending().await
        }
    }
}

/// Receives the one message that counts, and closes the socket.
async fn receive(handover: tokio::net::UnixStream) -> io::Result<tokio::net::TcpListener> {
    let listener = loop {
        handover.readable().await?;
        match handover.try_io(Interest::READABLE, || receive_descriptor(&handover)) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            received => break received?,
        }
    };
    // A process in the sandbox has sent it.
    if socket_domain(&listener)? != AddressFamily::INET
        || socket_type(&listener)? != SocketType::STREAM
        || !socket_acceptconn(&listener)?
    {
        return Err(io::Error::other("this is not a listening socket of TCP"));
    }
    let listener = TcpListener::from(listener);
    listener.set_nonblocking(true)?;
    tokio::net::TcpListener::from_std(listener)
}

fn receive_descriptor(from: impl AsFd) -> io::Result<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let parts = &mut [IoSliceMut::new(&mut byte)];
    recvmsg(from, parts, &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    let rights = ancillary.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut received) => received.next(),
        _ => None,
    });
    rights.ok_or_else(|| io::Error::other("no descriptor came with the message"))
}
