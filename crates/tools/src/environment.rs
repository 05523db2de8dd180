//! The environment of tool processes: an allow-list, and variables that keep commands from waiting
//! for a person. Also the search for programs in its `PATH`.

use std::env::split_paths;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::place::Place;

/// Names of allowed variables, besides those that begin with one of [`PREFIXES`].
const NAMES: [&str; 31] = [
    // Programs and the user.
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "TMPDIR",
    "PWD",
    // Language, time and terminal.
    "LANG",
    "LANGUAGE",
    "TZ",
    "TERM",
    "COLORTERM",
    "NO_COLOR",
    // Toolchains.
    "CARGO_HOME",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "CARGO_TARGET_DIR",
    "GOPATH",
    "GOROOT",
    "GOBIN",
    "JAVA_HOME",
    "NVM_DIR",
    "PNPM_HOME",
    "VIRTUAL_ENV",
    "PYENV_ROOT",
    "CONDA_PREFIX",
    "GEM_HOME",
    // Certificates and package configuration.
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "PKG_CONFIG_PATH",
    "NIX_PROFILES",
];

/// Prefixes of the names of allowed variables.
const PREFIXES: [&str; 2] = ["LC_", "XDG_"];

/// A name that contains one of these, in any case, is never allowed.
const SECRETS: [&str; 4] = ["KEY", "TOKEN", "SECRET", "PASSWORD"];

/// Variables that keep a command from waiting for a person at a terminal: pagers print, and editors
/// and prompts fail at once.
///
/// An editor is `false` with a sentence as its arguments. Programs print the command that failed,
/// so the model reads how to avoid the editor. Git passes the value to a shell, and others split it
/// at spaces, so it contains neither quotes nor operators.
const UNATTENDED: [(&str, &str); 11] = [
    (
        "EDITOR",
        "false no editor can be used in a tool call: pass the text as an argument or in a file",
    ),
    (
        "VISUAL",
        "false no editor can be used in a tool call: pass the text as an argument or in a file",
    ),
    (
        "GIT_EDITOR",
        "false no editor can be used in a tool call: pass -m, -F or --no-edit or set GIT_EDITOR=true",
    ),
    (
        "GIT_SEQUENCE_EDITOR",
        "false no editor can be used in a tool call: set GIT_SEQUENCE_EDITOR to a command that edits",
    ),
    ("JJ_EDITOR", "false no editor can be used in a tool call: pass -m"),
    ("HGEDITOR", "false no editor can be used in a tool call: pass -m"),
    ("SVN_EDITOR", "false no editor can be used in a tool call: pass -m"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("DEBIAN_FRONTEND", "noninteractive"),
];

/// The environment of tool processes: the allowed part of `vars`, and variables that keep commands
/// from waiting for a person.
///
/// The allowed variables are: `PATH`, `HOME`, `USER`, `LOGNAME`, `SHELL`, `TMPDIR`, `PWD`; `LANG`,
/// `LANGUAGE`, `LC_*`, `TZ`, `TERM`, `COLORTERM`, `NO_COLOR`; `XDG_*`; `CARGO_HOME`, `RUSTUP_HOME`,
/// `RUSTUP_TOOLCHAIN`, `CARGO_TARGET_DIR`, `GOPATH`, `GOROOT`, `GOBIN`, `JAVA_HOME`, `NVM_DIR`,
/// `PNPM_HOME`, `VIRTUAL_ENV`, `PYENV_ROOT`, `CONDA_PREFIX`, `GEM_HOME`; `SSL_CERT_FILE`,
/// `SSL_CERT_DIR`, `PKG_CONFIG_PATH`, `NIX_PROFILES`. A name that contains `KEY`, `TOKEN`, `SECRET`
/// or `PASSWORD` is never allowed.
///
/// The added variables are: `EDITOR`, `VISUAL`, `GIT_EDITOR`, `GIT_SEQUENCE_EDITOR`, `JJ_EDITOR`,
/// `HGEDITOR` and `SVN_EDITOR`, which fail at once with a hint; `PAGER` and `GIT_PAGER`, which are
/// `cat`; `GIT_TERMINAL_PROMPT`, which is `0`; and `DEBIAN_FRONTEND`, which is `noninteractive`.
///
/// Empty and relative entries of `PATH` are left out, because they would let files of the workspace
/// run as programs. If no entry remains, `PATH` is `/usr/bin:/bin`.
///
/// ```
/// let vars = [("PATH", "/bin"), ("OPENAI_API_KEY", "sk"), ("XDG_TOKEN", "t")].map(|(n, v)| (n.into(), v.into()));
/// let allowed = holdpoint_tools::environment::allowed(vars);
/// assert_eq!(allowed[0], ("PATH".into(), "/bin".into()));
/// assert!(allowed.contains(&("PAGER".into(), "cat".into())));
/// assert!(!allowed.iter().any(|(name, _)| name.contains("KEY") || name.contains("TOKEN")));
/// ```
pub fn allowed(vars: impl IntoIterator<Item = (String, String)>) -> Vec<(String, String)> {
    let vars = vars.into_iter().filter(|(name, _)| is_allowed(name));
    let vars = vars.map(|(name, value)| {
        let value = if name == "PATH" { absolute_entries(&value) } else { value };
        (name, value)
    });
    vars.chain(UNATTENDED.map(|(name, value)| (name.to_owned(), value.to_owned()))).collect()
}

/// The absolute entries of a `PATH`. An empty entry would mean the current folder.
fn absolute_entries(path: &str) -> String {
    join_entries(path.split(':').filter(|entry| entry.starts_with('/')))
}

/// Joins entries to a `PATH`, or returns the default if there are none.
fn join_entries<'a>(entries: impl Iterator<Item = &'a str>) -> String {
    let entries: Vec<_> = entries.collect();
    if entries.is_empty() { DEFAULT_PATH.to_owned() } else { entries.join(":") }
}

/// The default `PATH`.
const DEFAULT_PATH: &str = "/usr/bin:/bin";

/// The `PATH` of an environment. If there are several, the last one counts, as it does for a
/// program.
fn path_variable(env: &[(String, String)]) -> &str {
    env.iter().rev().find(|(name, _)| name == "PATH").map_or(DEFAULT_PATH, |(_, path)| path)
}

/// Finds a program that Holdpoint itself starts, as opposed to a command: the first executable file
/// with one of these names, tried in order, in an absolute folder of the `PATH` of `env`. A program
/// below `workspace` is never returned, whether it lies there as named or with links resolved: an
/// agent can write there, so the file can be from anyone.
///
/// ```
/// let env = [("PATH".into(), "/nowhere:/usr/bin:/bin".into())];
/// let program = |root: &str| holdpoint_tools::environment::program(&["sh"], &env, root.as_ref());
/// assert!(program("/home/me/project").is_some_and(|sh| sh.ends_with("bin/sh")));
/// assert_eq!(program("/"), None);
/// ```
#[must_use]
pub fn program(names: &[&str], env: &[(String, String)], workspace: &Path) -> Option<PathBuf> {
    let folders: Vec<_> =
        split_paths(path_variable(env)).filter(|folder| is_outside(folder, workspace)).collect();
    let mut files =
        names.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    files.find(|file| is_program(file) && is_outside(file, workspace))
}

/// The environment of a program that Holdpoint itself starts and that may start others. Its `PATH`
/// has only the entries that exist and do not lie below `workspace`.
#[must_use]
pub fn outside(env: &[(String, String)], workspace: &Path) -> Vec<(String, String)> {
    let entries =
        path_variable(env).split(':').filter(|entry| is_outside(Path::new(entry), workspace));
    let others = env.iter().filter(|(name, _)| name != "PATH").cloned();
    others.chain([("PATH".to_owned(), join_entries(entries))]).collect()
}

/// Makes the entries of `PATH` that lead into `workspace` name their folder there, such as
/// `…/node_modules/.bin`: a link is replaced by its target. Leaves out those with a link of `/proc`,
/// such as `/proc/self/cwd`, which leads elsewhere for every process.
#[must_use]
pub fn with_direct_entries(env: Vec<(String, String)>, workspace: &Path) -> Vec<(String, String)> {
    let direct_entry = |entry: &str| {
        let place = Place::resolve(entry, workspace).ok()?;
        let is_linked = place.is_inside() && !place.given_path().starts_with(workspace);
        let direct = if is_linked { place.path().to_str()?.to_owned() } else { entry.to_owned() };
        (!place.differs_per_process()).then_some(direct)
    };
    let direct = |(name, value): (String, String)| {
        if name != "PATH" {
            return (name, value);
        }
        let entries: Vec<_> = value.split(':').filter_map(direct_entry).collect();
        (name, join_entries(entries.iter().map(String::as_str)))
    };
    env.into_iter().map(direct).collect()
}

/// Finds a program by its name, even below the workspace.
pub(crate) fn program_anywhere(name: &OsStr, env: &[(String, String)]) -> Option<PathBuf> {
    let mut files = split_paths(path_variable(env))
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(name));
    files.find(|file| is_program(file))
}

pub(crate) fn is_program(file: &Path) -> bool {
    fs::metadata(file)
        .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

/// Whether a path is absolute, exists, and does not lie below `folder`, neither as named nor with
/// links resolved.
fn is_outside(path: &Path, folder: &Path) -> bool {
    let is_outside = |path: &Path| path.is_absolute() && !path.starts_with(folder);
    is_outside(path) && path.canonicalize().is_ok_and(|real| is_outside(&real))
}

/// The variables in `vars` that a program needs to open a window: `DISPLAY`, `WAYLAND_DISPLAY` and
/// `XAUTHORITY`. Empty without one of the first two.
///
/// Commands do not get these, because a program with access to a display can see and type into all
/// its windows.
pub fn display(vars: impl IntoIterator<Item = (String, String)>) -> Vec<(String, String)> {
    let vars: Vec<_> = vars
        .into_iter()
        .filter(|(name, value)| DISPLAY.contains(&name.as_str()) && !value.is_empty())
        .collect();
    if vars.iter().any(|(name, _)| name != XAUTHORITY) { vars } else { Vec::new() }
}

const DISPLAY: [&str; 3] = ["DISPLAY", "WAYLAND_DISPLAY", XAUTHORITY];

/// The file with the key to an X display. By default `.Xauthority` in the home folder.
const XAUTHORITY: &str = "XAUTHORITY";

/// The variables in `vars` that a program needs to reach a user's desktop: [`DESKTOP`]. Empty
/// without a display or a session bus.
///
/// Commands do not get these, for the reason given at [`display`].
pub fn desktop(vars: impl IntoIterator<Item = (String, String)>) -> Vec<(String, String)> {
    let is_desktop_variable =
        |(name, value): &(String, String)| DESKTOP.contains(&name.as_str()) && !value.is_empty();
    let vars: Vec<_> = vars.into_iter().filter(is_desktop_variable).collect();
    let reaches =
        |name: &str| matches!(name, "DISPLAY" | "WAYLAND_DISPLAY" | "DBUS_SESSION_BUS_ADDRESS");
    if vars.iter().any(|(name, _)| reaches(name)) { vars } else { Vec::new() }
}

/// The variables of a desktop: displays, the key to an X display, the session bus, and the folder
/// of their sockets.
pub const DESKTOP: [&str; 5] =
    ["DISPLAY", "WAYLAND_DISPLAY", XAUTHORITY, "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR"];

/// Whether sessions use the variable of this name: it is [`allowed`] for tool processes, or one of
/// those for a [`display`].
#[must_use]
pub fn is_used(name: &str) -> bool {
    is_allowed(name) || DISPLAY.contains(&name)
}

fn is_allowed(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    (NAMES.contains(&name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix)))
        && !SECRETS.iter().any(|part| upper.contains(part))
}
