//! The program in front of a sandboxed program that may reach named hosts. In the network namespace
//! of the sandbox it makes a listening socket, hands it over to the proxy outside, and becomes the
//! sandboxed program.

use std::convert::Infallible;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::fs::{Mode, OFlags, open};
use rustix::net::{
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, Shutdown, sendmsg, shutdown,
};

use crate::sandbox::close_inherited_at_exec;

/// The first argument of the program in front.
const LISTENER_NAME: &str = "tool-listener";

/// The folder of open files, by which the program in front is started. Its path may not exist in the
/// sandbox.
const DESCRIPTORS: &str = "/proc/self/fd/";

/// The variables that name the proxy. Node.js reads them if the last one is set.
const PROXY: [&str; 6] =
    ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"];
const NODE_USES_PROXY: &str = "NODE_USE_ENV_PROXY";

/// The variables that name hosts which are reached without the proxy.
const NO_PROXY: [&str; 2] = ["NO_PROXY", "no_proxy"];

/// Prepares a call of bubblewrap: puts this program in front of the one that it runs. Returns the
/// open file of this program, which bubblewrap must inherit.
pub(super) fn run_in_front(args: &mut Vec<OsString>) -> rustix::io::Result<OwnedFd> {
    // Without `CLOEXEC`.
    let program = open("/proc/self/exe", OFlags::PATH, Mode::empty())?;
    let path = format!("{DESCRIPTORS}{}", program.as_raw_fd());
    let at = args.iter().position(|arg| arg == "--").map_or(args.len(), |at| at + 1);
    args.splice(at..at, [path.into(), LISTENER_NAME.into()]);
    Ok(program)
}

/// Runs as the program in front and never returns if this process was started as one.
pub(super) fn listen_if_asked() {
    let mut args = std::env::args_os();
    let is_open_file =
        args.next().is_some_and(|path| path.as_bytes().starts_with(DESCRIPTORS.as_bytes()));
    if is_open_file && args.next().is_some_and(|name| name == LISTENER_NAME) {
        let Err(error) = listen_and_become(args);
        let message = format!("the program can't be started in the sandbox: {error}\n");
        let _ = rustix::io::write(rustix::stdio::stderr(), message.as_bytes());
        std::process::exit(1);
    }
}

fn listen_and_become(mut args: impl Iterator<Item = OsString>) -> io::Result<Infallible> {
    let program = args.next().ok_or(io::ErrorKind::InvalidInput)?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = format!("http://{}", listener.local_addr()?);
    send_descriptor(io::stdin(), &listener)?;
    // Bubblewrap keeps a copy.
    shutdown(rustix::stdio::stdin(), Shutdown::Both)?;
    // The program inherits neither the socket, nor the listener, nor the file of this program.
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    close_inherited_at_exec()?;
    let mut command = Command::new(program);
    command.args(args).env(NODE_USES_PROXY, "1").envs(PROXY.map(|name| (name, &address)));
    for name in NO_PROXY {
        command.env_remove(name);
    }
    Err(command.exec())
}

fn send_descriptor(to: impl AsFd, sent: impl AsFd) -> io::Result<()> {
    let sent = [sent.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    ancillary.push(SendAncillaryMessage::ScmRights(&sent));
    sendmsg(to, &[IoSlice::new(&[0])], &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(())
}
