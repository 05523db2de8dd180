//! The environment that tools are started with: an allow-list, and what keeps a command from waiting for a person. And
//! the programs that are found by it.

use std::env::split_paths;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Names that pass, besides those that begin with one of [`PREFIXES`].
const NAMES: [&str; 31] = [
    // Where programs and the user are.
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
    // Where tool chains live.
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

/// Beginnings of names that pass.
const PREFIXES: [&str; 2] = ["LC_", "XDG_"];

/// Parts of names that never pass, in any case of letters, whatever else holds.
const SECRETS: [&str; 4] = ["KEY", "TOKEN", "SECRET", "PASSWORD"];

/// Variables that keep a command from waiting for a person at a terminal: pagers print, and editors and questions fail at
/// once.
///
/// An editor is `false` with a sentence for its arguments: programs name the command that failed, so the model reads what
/// to do instead. Git hands it to a shell, others split it at its spaces, so it has neither quotes nor operators.
const UNATTENDED: [(&str, &str); 11] = [
    ("EDITOR", "false no editor can be used in a tool call: pass the text as an argument or in a file"),
    ("VISUAL", "false no editor can be used in a tool call: pass the text as an argument or in a file"),
    ("GIT_EDITOR", "false no editor can be used in a tool call: pass -m, -F or --no-edit or set GIT_EDITOR=true"),
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

/// Those of `vars` that tools may see, and those that keep commands from waiting for a person.
///
/// The first are: `PATH`, `HOME`, `USER`, `LOGNAME`, `SHELL`, `TMPDIR`, `PWD`; `LANG`, `LANGUAGE`, `LC_*`, `TZ`,
/// `TERM`, `COLORTERM`, `NO_COLOR`; `XDG_*`; `CARGO_HOME`, `RUSTUP_HOME`, `RUSTUP_TOOLCHAIN`,
/// `CARGO_TARGET_DIR`, `GOPATH`, `GOROOT`, `GOBIN`, `JAVA_HOME`, `NVM_DIR`, `PNPM_HOME`, `VIRTUAL_ENV`,
/// `PYENV_ROOT`, `CONDA_PREFIX`, `GEM_HOME`; `SSL_CERT_FILE`, `SSL_CERT_DIR`, `PKG_CONFIG_PATH`,
/// `NIX_PROFILES`. A name that contains `KEY`, `TOKEN`, `SECRET` or `PASSWORD` never passes.
///
/// The others: `EDITOR`, `VISUAL`, `GIT_EDITOR`, `GIT_SEQUENCE_EDITOR`, `JJ_EDITOR`, `HGEDITOR` and `SVN_EDITOR` fail at
/// once with a line that says what to do instead; `PAGER` and `GIT_PAGER` are `cat`; `GIT_TERMINAL_PROMPT` is `0` and `DEBIAN_FRONTEND` `noninteractive`.
///
/// Entries of `PATH` that are empty or relative are left out: by them a name would be a file of the workspace. If that
/// leaves none, it is `/usr/bin:/bin`.
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
    let vars = vars.map(|(name, value)| if name == "PATH" { (name, absolute(&value)) } else { (name, value) });
    vars.chain(UNATTENDED.map(|(name, value)| (name.to_owned(), value.to_owned()))).collect()
}

/// The absolute entries of a `PATH`. An empty one would be the folder a program stands in, too.
fn absolute(path: &str) -> String {
    path_of(path.split(':').filter(|entry| entry.starts_with('/')))
}

/// A `PATH` of these entries.
fn path_of<'a>(entries: impl Iterator<Item = &'a str>) -> String {
    let entries: Vec<_> = entries.collect();
    if entries.is_empty() { PATH.to_owned() } else { entries.join(":") }
}

/// The `PATH` where there is none.
const PATH: &str = "/usr/bin:/bin";

/// The `PATH` of an environment. Of several, a program gets the last.
fn path(env: &[(String, String)]) -> &str {
    env.iter().rev().find(|(name, _)| name == "PATH").map_or(PATH, |(_, path)| path)
}

/// The program that we start ourselves, and not a command: the first executable file of one of these names, the first
/// name first, in an absolute folder of the `PATH` of `env`. None that lies below `outside`, the workspace's folder, as it
/// is named or with links resolved: there an agent writes, and what is there may come from anybody.
///
/// ```
/// let env = [("PATH".into(), "/nowhere:/usr/bin:/bin".into())];
/// let program = |outside: &str| holdpoint_tools::environment::program(&["sh"], &env, outside.as_ref());
/// assert!(program("/home/me/project").is_some_and(|sh| sh.ends_with("bin/sh")));
/// assert_eq!(program("/"), None);
/// ```
#[must_use]
pub fn program(names: &[&str], env: &[(String, String)], outside: &Path) -> Option<PathBuf> {
    let folders: Vec<_> = split_paths(path(env)).filter(|folder| is_outside(folder, outside)).collect();
    let mut files = names.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    files.find(|file| is_program(file) && is_outside(file, outside))
}

/// The same environment for a program that we start ourselves, which may start others in turn: with those entries of
/// its `PATH` that do not lie below `outside`.
#[must_use]
pub fn outside(env: &[(String, String)], outside: &Path) -> Vec<(String, String)> {
    let entries = path(env).split(':').filter(|entry| is_outside(Path::new(entry), outside));
    let others = env.iter().filter(|(name, _)| name != "PATH").cloned();
    others.chain([("PATH".to_owned(), path_of(entries))]).collect()
}

/// A program by its name alone, wherever it is.
pub(crate) fn program_anywhere(name: &OsStr, env: &[(String, String)]) -> Option<PathBuf> {
    let mut files = split_paths(path(env)).filter(|folder| folder.is_absolute()).map(|folder| folder.join(name));
    files.find(|file| is_program(file))
}

/// Whether it is an executable file.
pub(crate) fn is_program(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
}

/// Whether it is absolute and there, and does not lie below `folder`, as it is named or with links resolved.
fn is_outside(path: &Path, folder: &Path) -> bool {
    let is_outside = |path: &Path| path.is_absolute() && !path.starts_with(folder);
    is_outside(path) && path.canonicalize().is_ok_and(|real| is_outside(&real))
}

/// Those of `vars` that say where windows are shown, for a program that opens one: `DISPLAY`, `WAYLAND_DISPLAY` and
/// `XAUTHORITY`. Nothing without one of the first two.
///
/// Not among those that commands get: who reaches a display sees and types into all its windows.
pub fn display(vars: impl IntoIterator<Item = (String, String)>) -> Vec<(String, String)> {
    let vars: Vec<_> =
        vars.into_iter().filter(|(name, value)| DISPLAY.contains(&name.as_str()) && !value.is_empty()).collect();
    if vars.iter().any(|(name, _)| name != XAUTHORITY) { vars } else { Vec::new() }
}

/// Where windows are shown.
const DISPLAY: [&str; 3] = ["DISPLAY", "WAYLAND_DISPLAY", XAUTHORITY];

/// The key to an X display. Without it, the file `.Xauthority` in the home folder.
const XAUTHORITY: &str = "XAUTHORITY";

/// Those of `vars` by which a program reaches a user's desktop: [`DESKTOP`]. Nothing without a display or a session bus.
///
/// Not among those that commands get, see [`display`].
pub fn desktop(vars: impl IntoIterator<Item = (String, String)>) -> Vec<(String, String)> {
    let is_one = |(name, value): &(String, String)| DESKTOP.contains(&name.as_str()) && !value.is_empty();
    let vars: Vec<_> = vars.into_iter().filter(is_one).collect();
    let reaches = |name: &str| matches!(name, "DISPLAY" | "WAYLAND_DISPLAY" | "DBUS_SESSION_BUS_ADDRESS");
    if vars.iter().any(|(name, _)| reaches(name)) { vars } else { Vec::new() }
}

/// The variables of a desktop: displays, the key to an X display, the session bus, and the folder of their sockets.
pub const DESKTOP: [&str; 5] =
    ["DISPLAY", "WAYLAND_DISPLAY", XAUTHORITY, "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR"];

fn is_allowed(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    (NAMES.contains(&name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix)))
        && !SECRETS.iter().any(|part| upper.contains(part))
}
