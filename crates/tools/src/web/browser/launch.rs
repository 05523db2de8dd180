//! The thread of a browser: makes its folder, starts it, runs its connection, and cleans up.

use std::ffi::OsString;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::drive::Drive;
use super::{LaunchPlan, State};
use crate::ask::SubjectGuard;
use crate::process::lossy::Lossy;
use crate::process::{Process, ProcessSpec, Processes, Read};
use crate::web::profile::Profile;

/// The time limit from the start of a browser to its first answer.
pub(in crate::web) const LAUNCH_LIMIT: Duration = Duration::from_secs(20);

/// The line that Chromium prints when its DevTools port is open, up to the address.
const LISTENING: &str = "DevTools listening on ";

/// The most bytes of the browser's output that the error for a failed start quotes.
const MAX_ERROR_BYTES: usize = 2_048;

/// Arguments for every browser: no traffic of its own, no connection that bypasses the proxy, and
/// no settings of the user.
const ARGUMENTS: [&str; 16] = [
    // Open a window only for a page, and stay alive when the last window closes.
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
    // Use the network only as TCP through the proxy.
    "--dns-prefetch-disable",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    // Keep hidden pages running at full speed.
    "--disable-backgrounding-occluded-windows",
];

/// The parameters of a browser's thread.
pub(super) struct BrowserThread {
    pub(super) plan: LaunchPlan,
    pub(super) ended: CancellationToken,
    pub(super) subject_guard: SubjectGuard,
    pub(super) lease_count: watch::Receiver<usize>,
    pub(super) state: watch::Sender<State>,
}

impl BrowserThread {
    /// Runs the browser, until its folder is removed.
    pub(super) fn run(self) {
        let Self { plan, ended, subject_guard, lease_count, state } = self;
        let LaunchPlan {
            program,
            visible,
            sandbox,
            env,
            guard,
            profile,
            idle,
            processes,
            session_guard,
            lister,
        } = plan;
        // Callers that wait are released in every case, even on a panic.
        let _over = ended.clone().drop_guard();
        let fail = |why: String| {
            tracing::warn!(why, "the browser could not be started");
            state.send_replace(State::Failed(why.into()));
        };
        let (port, devtools) = match devtools_arguments() {
            Ok(chosen) => chosen,
            Err(error) => {
                return fail(format!("no free port for the browser's developer tools: {error}"));
            }
        };
        // Forbidden before the browser listens on it.
        guard.forbid_port(port);
        let mut args: Vec<OsString> = devtools.into();
        args.extend(guard.arguments().into_iter().map(OsString::from));
        args.extend(arguments(visible, sandbox, profile.path()));
        let spec = ProcessSpec {
            program: program.into(),
            args,
            cwd: profile.path().to_owned(),
            env: private_env(env, &profile),
        };
        let mut process = match processes.spawn(spec) {
            Ok(process) => process,
            Err(error) => return fail(format!("the browser could not be started: {error}")),
        };
        match read_address(&mut process) {
            Err(_) if ended.is_cancelled() => {}
            Err(output) => fail(start_error(&output, visible)),
            Ok(address) => {
                tracing::info!(pid = process.id(), address, visible, sandbox, "browser started");
                let _listed = lister.add(process.id(), &address, visible, sandbox);
                let drive = Drive {
                    address,
                    guard: Arc::new(guard),
                    idle,
                    ended: ended.clone(),
                    subject_guard,
                    lease_count,
                    state,
                };
                run_driver(drive, &mut process, &processes, &ended);
            }
        }
        ended.cancel();
        let ended_processes = processes.finish();
        tracing::info!(ended = ended_processes.total(), "browser ended");
        drop(profile);
        drop(session_guard);
    }
}

/// Runs the driver on a thread of its own, and reads the browser's output on this one. Both end when
/// the browser ends or the driver returns.
fn run_driver(
    drive: Drive,
    process: &mut Process,
    processes: &Processes,
    ended: &CancellationToken,
) {
    let ending = processes.clone();
    let driver = thread::Builder::new().name("browser driver".to_owned()).spawn(move || {
        drive.run();
        ending.end();
    });
    if driver.is_ok() {
        drain(process);
    }
    ended.cancel();
    processes.end();
    if driver.is_ok_and(|driver| driver.join().is_err()) {
        tracing::error!("the browser's driver panicked");
    }
}

/// The browser's arguments besides those for its developer tools and its proxy.
fn arguments(visible: bool, sandbox: bool, profile: &Path) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = ARGUMENTS.iter().map(OsString::from).collect();
    let window = if visible { "--ozone-platform-hint=auto" } else { "--headless=new" };
    arguments.push(window.into());
    if !sandbox {
        arguments.push("--no-sandbox".into());
    }
    let mut user_data = OsString::from("--user-data-dir=");
    user_data.push(profile);
    arguments.push(user_data);
    arguments
}

/// A free port of 127.0.0.1 for DevTools, and the arguments that open it. The port is chosen here
/// and not by the browser, because `--remote-allow-origins` has to name it for the pages of
/// DevTools.
fn devtools_arguments() -> io::Result<(u16, [OsString; 2])> {
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
    let pages = format!("--remote-allow-origins=http://127.0.0.1:{port}");
    Ok((port, [format!("--remote-debugging-port={port}").into(), pages.into()]))
}

/// The environment with the home, the XDG folders and the temporary folder inside the profile, so
/// that the browser neither reads nor writes files of the user.
fn private_env(env: Vec<(String, String)>, profile: &Profile) -> Vec<(String, String)> {
    let replaced = ["HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "TMPDIR", "PWD"];
    let mut env: Vec<_> =
        env.into_iter().filter(|(name, _)| !replaced.contains(&name.as_str())).collect();
    let folder = profile.path().to_string_lossy().into_owned();
    // Chromium makes a socket below `TMPDIR` and exits if that path is longer than 107 bytes. Its
    // working folder is the profile.
    let temporary =
        if cfg!(target_os = "linux") { "/proc/self/cwd".to_owned() } else { folder.clone() };
    env.extend(replaced.map(|name| {
        (name.to_owned(), if name == "TMPDIR" { &temporary } else { &folder }.clone())
    }));
    env
}

/// Reads the browser's output up to its DevTools address. Without an address, the error is the
/// output, with the reason if reading failed or timed out.
fn read_address(process: &mut Process) -> Result<String, String> {
    let deadline = Instant::now() + LAUNCH_LIMIT;
    let mut decoder = Lossy::default();
    let mut output = String::new();
    let mut buffer = [0; 4096];
    loop {
        match process.read_by(&mut buffer, Some(deadline)) {
            Ok(Read::Bytes(bytes)) => output.push_str(&decoder.push(&buffer[..bytes])),
            Ok(Read::Ended) => return Err(output),
            Ok(Read::TimedOut) => {
                let limit = LAUNCH_LIMIT.as_secs();
                return Err(format!("{}\nno answer within {limit} s", output.trim_end()));
            }
            Err(error) => return Err(format!("{}\n{error}", output.trim_end())),
        }
        let address = output.find(LISTENING).map(|at| &output[at + LISTENING.len()..]);
        if let Some((address, _)) = address.and_then(|address| address.split_once('\n')) {
            return Ok(address.trim().to_owned());
        }
        // The output before the address can be long.
        if output.len() > 64 * MAX_ERROR_BYTES {
            output.drain(..output.ceil_char_boundary(output.len() - MAX_ERROR_BYTES));
        }
    }
}

/// Reads the output until the browser ends, so that it never blocks on a full pipe.
fn drain(process: &mut Process) {
    let mut buffer = [0; 4096];
    while matches!(process.read_by(&mut buffer, None), Ok(Read::Bytes(_))) {}
}

/// The error for a failed start, with a hint that depends on the browser's output.
fn start_error(output: &str, visible: bool) -> String {
    let last =
        output[output.ceil_char_boundary(output.len().saturating_sub(MAX_ERROR_BYTES))..].trim();
    let hint = if visible
        && (output.contains("X server") || output.contains("display") || output.contains("Wayland"))
    {
        ". There is no display for its window. Without `pause`, no window is needed; to pause without a window, the \
         user can set web.pause_headless = true in the configuration"
    } else if output.contains("No usable sandbox") || output.contains("without --no-sandbox") {
        ". Its sandbox does not work here; it never works as root. The user can set web.sandbox = false in the \
         configuration"
    } else {
        ""
    };
    format!("the browser did not start{hint}. Its output:\n{last}")
}
