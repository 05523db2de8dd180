//! The program in front of a sandboxed program that may reach named hosts. In the network namespace
//! of the sandbox it makes a listening socket, hands it over to the proxy outside by its standard
//! input, and becomes the sandboxed program.

use std::convert::Infallible;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::fs::{Mode, OFlags, open};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::net::{Shutdown, shutdown};

use super::descriptors;
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

/// Prepares a call of bubblewrap: puts this program in front of the one that it runs, which gets
/// `stdin` or an empty input. Returns the open file of this program, which bubblewrap must inherit,
/// as it must inherit `stdin`.
pub(super) fn run_in_front(
    args: &mut Vec<OsString>,
    stdin: Option<&OwnedFd>,
) -> rustix::io::Result<OwnedFd> {
    // Without `CLOEXEC`.
    let program = open("/proc/self/exe", OFlags::PATH, Mode::empty())?;
    let path = |file: &OwnedFd| format!("{DESCRIPTORS}{}", file.as_raw_fd());
    let stdin = match stdin {
        Some(stdin) => {
            fcntl_setfd(stdin, FdFlags::empty())?;
            path(stdin)
        }
        None => "/dev/null".to_owned(),
    };
    let at = args.iter().position(|arg| arg == "--").map_or(args.len(), |at| at + 1);
    args.splice(at..at, [path(&program).into(), LISTENER_NAME.into(), stdin.into()]);
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
    let stdin = args.next().ok_or(io::ErrorKind::InvalidInput)?;
    let program = args.next().ok_or(io::ErrorKind::InvalidInput)?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = format!("http://{}", listener.local_addr()?);
    descriptors::send(io::stdin(), &[listener.as_fd()])?;
    // Bubblewrap keeps a copy.
    shutdown(rustix::stdio::stdin(), Shutdown::Both)?;
    // The program inherits neither the socket, nor the listener, nor the file of this program.
    rustix::stdio::dup2_stdin(File::open(stdin)?)?;
    close_inherited_at_exec()?;
    let mut command = Command::new(program);
    command.args(args).env(NODE_USES_PROXY, "1").envs(PROXY.map(|name| (name, &address)));
    for name in NO_PROXY {
        command.env_remove(name);
    }
    Err(command.exec())
}
