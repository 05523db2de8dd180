//! The level `bwrap`: bubblewrap runs the program in namespaces with a table of mounts.

use std::ffi::{OsStr, OsString};
#[cfg(target_os = "linux")]
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

use super::profile::{Access, Layout};
use crate::process::ProcessSpec;

/// An installed bubblewrap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bwrap {
    pub(super) program: PathBuf,
    /// Whether it can prevent further user namespaces. Versions before 0.8 can't.
    pub(super) disables_namespaces: bool,
    /// Whether it mounts open files. Versions before 0.10 can't, unless the system has corrected
    /// them (CVE-2024-42472). They follow a link that takes the place of a path at that moment.
    pub(super) binds_descriptors: bool,
}

/// Options that mount an open file. In a call that is not yet prepared, a path follows them.
const BIND: &str = "--bind-fd";
const BIND_READABLE: &str = "--ro-bind-fd";

/// The namespaces that a program gets, in which it has no capabilities. It stays in the session of
/// its supervisor (no `--new-session`), by which it is found if the supervisor is killed.
const NAMESPACES: [&str; 7] = [
    "--unshare-user",
    "--unshare-ipc",
    "--unshare-pid",
    "--unshare-uts",
    "--unshare-cgroup-try",
    "--cap-drop",
    "ALL",
];

/// Settings of the kernel. Bubblewrap leaves their files writable. They belong to root, who needs
/// no capability to write them.
const SETTINGS: &str = "/proc/sys";

/// Folders in `/proc` with files that control hardware and file systems, like [`SETTINGS`]. No
/// program needs to read them, and an empty folder is mounted in an eighth of the time.
const CONTROLS: [&str; 6] =
    ["/proc/acpi", "/proc/bus", "/proc/dynamic_debug", "/proc/fs", "/proc/irq", "/proc/scsi"];

impl Bwrap {
    /// The call of bubblewrap that runs `spec` in this layout.
    ///
    /// Bubblewrap does not end with its parent (`--die-with-parent`): when a program ends, the
    /// processes that it leaves would be killed before they can end by themselves. The supervisor
    /// ends them.
    pub(super) fn wrap(&self, spec: &ProcessSpec, layout: Layout, network: bool) -> ProcessSpec {
        let ProcessSpec { program, args, cwd, .. } = spec;
        let mut call = Args(NAMESPACES.map(OsString::from).into());
        if self.disables_namespaces {
            call.add(["--disable-userns"]);
        }
        if !network {
            call.add(["--unshare-net"]);
        }
        let [bind, bind_readable] = match self.binds_descriptors {
            true => [BIND, BIND_READABLE],
            false => ["--bind", "--ro-bind"],
        };
        for (path, access) in &layout.access {
            let path = path.as_os_str();
            match access {
                Access::Readable => call.add([bind_readable.as_ref(), path, path]),
                Access::Writable | Access::Pinned => call.add([bind.as_ref(), path, path]),
                Access::Replaced(by) => call.add(["--bind".as_ref(), by.as_os_str(), path]),
                Access::Empty => {
                    call.add(["--perms", "1777", "--tmpfs"].map(OsStr::new));
                    call.add([path]);
                }
                // An empty folder, or a device that can't be opened.
                Access::Hidden if Path::new(path).is_dir() => call.add_empty(path),
                Access::Hidden => {
                    call.add(["--ro-bind".as_ref(), OsStr::new("/dev/null"), path]);
                }
            }
            // Before the paths below, which may be in `/dev`.
            if path == "/" {
                call.add(["--dev", "/dev", "--proc", "/proc"]);
                if geteuid().is_root() {
                    call.add(["--ro-bind", SETTINGS, SETTINGS]);
                    CONTROLS.into_iter().filter(|path| Path::new(path).is_dir()).for_each(|path| {
                        call.add_empty(path);
                    });
                }
            }
        }
        call.add([OsStr::new("--chdir"), cwd.as_os_str(), OsStr::new("--"), program]);
        call.0.extend(args.iter().cloned());
        ProcessSpec {
            program: self.program.clone().into(),
            args: call.0,
            cwd: cwd.clone(),
            env: layout.env,
        }
    }
}

/// Prepares a call: opens the paths to mount, and puts the descriptors in their places. A process
/// in another sandbox may have replaced a path by a link since the layout was made, which is an
/// error.
///
/// # Errors
/// A path can't be opened.
#[cfg(target_os = "linux")]
pub(crate) fn open_mounted(args: &mut [OsString]) -> std::io::Result<Vec<OwnedFd>> {
    let mut opened = Vec::new();
    // The arguments of the program begin after `--`. All other values are words or absolute paths.
    let end = args.iter().position(|arg| arg == "--").unwrap_or(args.len());
    for at in 1..end {
        if args[at - 1] == BIND || args[at - 1] == BIND_READABLE {
            let path = Path::new(&args[at]);
            let failed = |error| std::io::Error::other(format!("{}: {error}", path.display()));
            let file = super::confine::open_without_links(path).map_err(failed)?;
            rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty())?;
            args[at] = file.as_raw_fd().to_string().into();
            opened.push(file);
        }
    }
    Ok(opened)
}

/// The arguments of a call.
struct Args(Vec<OsString>);

impl Args {
    fn add<const N: usize, T: AsRef<OsStr>>(&mut self, args: [T; N]) {
        self.0.extend(args.iter().map(|arg| arg.as_ref().to_owned()));
    }

    /// Puts an empty folder in the place of a folder.
    fn add_empty(&mut self, path: impl AsRef<OsStr>) {
        self.add(["--perms", "0555", "--tmpfs"].map(OsStr::new));
        self.add([path]);
    }
}
