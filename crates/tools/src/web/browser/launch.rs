//! The life of a browser on its own thread: folder, program, connection, end, and nothing left.

use std::ffi::OsString;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::drive::Drive;
use super::{Plan, State};
use crate::ask::SubjectKept;
use crate::process::lossy::Lossy;
use crate::process::{Process, ProcessSpec, Read};
use crate::web::profile::Profile;

/// How long a browser may take until it answers.
pub(in crate::web) const LAUNCH_WITHIN: Duration = Duration::from_secs(20);

/// What it says once its debugging port is open, followed by the address.
const LISTENING: &str = "DevTools listening on ";

/// Bytes of what a browser says that are kept, to tell why it did not start.
const SAID: usize = 2_048;

/// What it is started with, always. No traffic of its own, nothing past the proxy, nobody else's settings.
const ARGUMENTS: [&str; 16] = [
    // Windows come when a page does, and the last one that is closed does not end the browser.
    "--no-startup-window",
    "--keep-alive-for-test",
    "--window-size=1280,900",
    "--no-first-run",
    "--no-default-browser-check",
    "--password-store=basic",
    "--use-mock-keychain",
    "--disable-extensions",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-breakpad",
    "--metrics-recording-only",
    // The network is TCP through the proxy, and nothing else.
    "--dns-prefetch-disable",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    // A page that nobody looks at works as well.
    "--disable-backgrounding-occluded-windows",
];

/// What a browser's thread has.
pub(super) struct Life {
    pub(super) plan: Plan,
    pub(super) ended: CancellationToken,
    pub(super) kept: SubjectKept,
    pub(super) used: watch::Receiver<usize>,
    pub(super) state: watch::Sender<State>,
}

impl Life {
    /// From the folder that is made to the one that is removed.
    pub(super) fn run(self) {
        let Self { plan, ended, kept, used, state } = self;
        let Plan { program, visible, sandbox, env, guard, folders, idle, processes, keep, roll } = plan;
        // However this ends, nobody goes on waiting for it.
        let _over = ended.clone().drop_guard();
        let failed = |why: String| {
            tracing::warn!(why, "the browser could not be started");
            state.send_replace(State::Failed(why.into()));
        };
        let profile = match Profile::make(&folders) {
            Ok(profile) => profile,
            Err(error) => {
                return failed(format!("the browser's folder can't be made in {}: {error}", folders.display()));
            }
        };
        let (port, debugging) = match debugging() {
            Ok(debugging) => debugging,
            Err(error) => return failed(format!("there is no port for the browser's developer tools: {error}")),
        };
        // Before it listens there.
        guard.forbid_port(port);
        let mut args: Vec<OsString> = ARGUMENTS.iter().map(OsString::from).chain(debugging).collect();
        args.extend(guard.arguments().into_iter().map(OsString::from));
        args.push(if visible { "--ozone-platform-hint=auto" } else { "--headless=new" }.into());
        if !sandbox {
            args.push("--no-sandbox".into());
        }
        let mut user_data = OsString::from("--user-data-dir=");
        user_data.push(profile.path());
        args.push(user_data);
        let spec =
            ProcessSpec { program: program.into(), args, cwd: profile.path().to_owned(), env: home(env, &profile) };
        let mut process = match processes.spawn(spec) {
            Ok(process) => process,
            Err(error) => return failed(format!("the browser could not be started: {error}")),
        };
        match listen(&mut process) {
            Err(_) if ended.is_cancelled() => {}
            Err(said) => failed(why(&said, visible)),
            Ok(address) => {
                tracing::info!(pid = process.id(), address, visible, sandbox, "a browser runs");
                let _listed = roll.enter(process.id(), &address, visible, sandbox);
                let guard = Arc::new(guard);
                let drive = Drive { address, guard, idle, ended: ended.clone(), kept, used, state };
                let ending = processes.clone();
                let driver = thread::Builder::new().name("browser driver".to_owned()).spawn(move || {
                    drive.run();
                    ending.end();
                });
                if driver.is_ok() {
                    drain(&mut process);
                }
                ended.cancel();
                processes.end();
                if driver.is_ok_and(|driver| driver.join().is_err()) {
                    tracing::error!("the browser's driver panicked");
                }
            }
        }
        ended.cancel();
        let left = processes.finish();
        tracing::info!(ended = left.total(), "a browser has ended");
        drop(profile);
        drop(keep);
    }
}

/// What opens its developer tools: on a free port of 127.0.0.1, to programs, and to the tools' own pages, which it has to
/// be told of by their port; so that is not left to it.
fn debugging() -> io::Result<(u16, [OsString; 2])> {
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
    let pages = format!("--remote-allow-origins=http://127.0.0.1:{port}");
    Ok((port, [format!("--remote-debugging-port={port}").into(), pages.into()]))
}

/// Its home and its working directory are its own folder: nothing of the user's is read or written.
fn home(env: Vec<(String, String)>, profile: &Profile) -> Vec<(String, String)> {
    let own = ["HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "TMPDIR", "PWD"];
    let mut env: Vec<_> = env.into_iter().filter(|(name, _)| !own.contains(&name.as_str())).collect();
    let folder = profile.path().to_string_lossy().into_owned();
    // It makes a socket among its temporary files, and ends if the path to it is longer than 107 bytes.
    let temporary = if cfg!(target_os = "linux") { "/proc/self/cwd".to_owned() } else { folder.clone() };
    env.extend(own.map(|name| (name.to_owned(), if name == "TMPDIR" { &temporary } else { &folder }.clone())));
    env
}

/// Reads what it says until it says where it listens. If it does not: what it said instead.
fn listen(process: &mut Process) -> Result<String, String> {
    let deadline = Instant::now() + LAUNCH_WITHIN;
    let mut text = Lossy::default();
    let mut said = String::new();
    let mut buffer = [0; 4096];
    loop {
        match process.read_by(&mut buffer, Some(deadline)) {
            Ok(Read::Bytes(bytes)) => said.push_str(&text.push(&buffer[..bytes])),
            Ok(Read::Ended) => return Err(said),
            Ok(Read::TimedOut) => {
                return Err(format!("{said}\nit did not answer within {} s", LAUNCH_WITHIN.as_secs()));
            }
            Err(error) => return Err(format!("{said}\n{error}")),
        }
        let address = said.find(LISTENING).map(|at| &said[at + LISTENING.len()..]);
        if let Some((address, _)) = address.and_then(|address| address.split_once('\n')) {
            return Ok(address.trim().to_owned());
        }
        // It may say a lot before that.
        if said.len() > 64 * SAID {
            said.drain(..said.ceil_char_boundary(said.len() - SAID));
        }
    }
}

/// Reads the rest, so that it never waits for a reader, until it has ended.
fn drain(process: &mut Process) {
    let mut buffer = [0; 4096];
    while matches!(process.read_by(&mut buffer, None), Ok(Read::Bytes(_))) {}
}

/// Why it did not start, by what it said.
fn why(said: &str, visible: bool) -> String {
    let last = said[said.ceil_char_boundary(said.len().saturating_sub(SAID))..].trim();
    let hint = if visible && (said.contains("X server") || said.contains("display") || said.contains("Wayland")) {
        ". There is no display for its window: without a pause, pages need none; for a pause without a window the user can \
         set web.pause_headless = true in the configuration"
    } else if said.contains("No usable sandbox") || said.contains("without --no-sandbox") {
        ". Its sandbox does not work here, as for root it never does. The user can set web.sandbox = false in the \
         configuration"
    } else {
        ""
    };
    format!("the browser did not start{hint}. It said:\n{last}")
}
