//! The environment that tools are started with: an allow-list.

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

/// Those of `vars` that tools may see.
///
/// They are: `PATH`, `HOME`, `USER`, `LOGNAME`, `SHELL`, `TMPDIR`, `PWD`; `LANG`, `LANGUAGE`, `LC_*`, `TZ`,
/// `TERM`, `COLORTERM`, `NO_COLOR`; `XDG_*`; `CARGO_HOME`, `RUSTUP_HOME`, `RUSTUP_TOOLCHAIN`,
/// `CARGO_TARGET_DIR`, `GOPATH`, `GOROOT`, `GOBIN`, `JAVA_HOME`, `NVM_DIR`, `PNPM_HOME`, `VIRTUAL_ENV`,
/// `PYENV_ROOT`, `CONDA_PREFIX`, `GEM_HOME`; `SSL_CERT_FILE`, `SSL_CERT_DIR`, `PKG_CONFIG_PATH`,
/// `NIX_PROFILES`. A name that contains `KEY`, `TOKEN`, `SECRET` or `PASSWORD` never passes.
///
/// Entries of `PATH` that are empty or relative are left out: by them a name would be a file of the workspace. If that
/// leaves none, it is `/usr/bin:/bin`.
///
/// ```
/// let vars = [("PATH", "/bin"), ("OPENAI_API_KEY", "sk"), ("XDG_TOKEN", "t")].map(|(n, v)| (n.into(), v.into()));
/// assert_eq!(holdpoint_tools::environment::allowed(vars), [("PATH".into(), "/bin".into())]);
/// ```
pub fn allowed(vars: impl IntoIterator<Item = (String, String)>) -> Vec<(String, String)> {
    let vars = vars.into_iter().filter(|(name, _)| is_allowed(name));
    vars.map(|(name, value)| if name == "PATH" { (name, absolute(&value)) } else { (name, value) }).collect()
}

/// The absolute entries of a `PATH`. An empty one would be the folder a program stands in, too.
fn absolute(path: &str) -> String {
    let entries: Vec<_> = path.split(':').filter(|entry| entry.starts_with('/')).collect();
    if entries.is_empty() { "/usr/bin:/bin".to_owned() } else { entries.join(":") }
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

fn is_allowed(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    (NAMES.contains(&name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix)))
        && !SECRETS.iter().any(|part| upper.contains(part))
}
