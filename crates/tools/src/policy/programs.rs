//! What is known of programs: those that run others, and those that bash itself has.

/// Programs that run what follows, and nothing else: looked through.
const WRAPPERS: [&str; 56] = [
    "ash",
    "bash",
    "builtin",
    "busybox",
    "caffeinate",
    "choom",
    "chroot",
    "chrt",
    "command",
    "dash",
    "dbus-run-session",
    "doas",
    "env",
    "eval",
    "exec",
    "fakeroot",
    "fish",
    "flock",
    "ionice",
    "ksh",
    "linux32",
    "linux64",
    "ltrace",
    "nice",
    "nohup",
    "nsenter",
    "numactl",
    "parallel",
    "pkexec",
    "prlimit",
    "rbash",
    "runuser",
    "script",
    "setarch",
    "setpriv",
    "setsid",
    "sh",
    "ssh",
    "stdbuf",
    "strace",
    "su",
    "sudo",
    "systemd-run",
    "taskset",
    "time",
    "timeout",
    "toybox",
    "unbuffer",
    "unshare",
    "valgrind",
    "watch",
    "xargs",
    "xvfb-run",
    "zsh",
    "find",
    "trap",
];

/// Programs that can run others, by an argument, a file or a setting: never allowed by their name alone.
const RUNNERS: [&str; 78] = [
    // Version control: hooks, aliases, pagers, editors.
    "git",
    "gh",
    "hg",
    "svn",
    "jj",
    // Builds and packages.
    "make",
    "gmake",
    "cmake",
    "ninja",
    "just",
    "meson",
    "bazel",
    "cargo",
    "go",
    "npm",
    "npx",
    "pnpm",
    "yarn",
    "bun",
    "bunx",
    "deno",
    "gradle",
    "mvn",
    "ant",
    "pip",
    "pip3",
    "pipx",
    "poetry",
    "uv",
    "uvx",
    "tox",
    "nox",
    "bundle",
    "rake",
    "gem",
    "composer",
    "nix",
    "brew",
    "apt",
    "apt-get",
    "dpkg",
    // Interpreters.
    "python",
    "python3",
    "node",
    "perl",
    "ruby",
    "php",
    "lua",
    "awk",
    "gawk",
    "mawk",
    "sed",
    "ed",
    "tclsh",
    "expect",
    "osascript",
    "gdb",
    "java",
    // Editors and pagers.
    "vi",
    "vim",
    "nvim",
    "emacs",
    "nano",
    "less",
    "more",
    "man",
    // Elsewhere, or later.
    "docker",
    "podman",
    "kubectl",
    "rsync",
    "scp",
    "sftp",
    "tar",
    "zip",
    "tmux",
    "screen",
    "crontab",
    "at",
];

/// Commands of bash that change nothing but where it stands, and end it: always allowed, unless denied.
const QUIET: [&str; 8] = [":", "true", "false", "cd", "exit", "return", "break", "continue"];

/// Commands of bash that evaluate their arguments, or change what later words mean: never allowed by a rule.
const EVALUATING: [&str; 36] = [
    ".",
    "alias",
    "bind",
    "caller",
    "compgen",
    "complete",
    "compopt",
    "coproc",
    "declare",
    "enable",
    "eval",
    "exec",
    "export",
    "fc",
    "getopts",
    "hash",
    "history",
    "jobs",
    "let",
    "local",
    "mapfile",
    "popd",
    "pushd",
    "read",
    "readarray",
    "readonly",
    "set",
    "shopt",
    "source",
    "suspend",
    "trap",
    "typeset",
    "ulimit",
    "umask",
    "unalias",
    "unset",
];

/// Commands that change the folder that relative paths begin at.
const MOVING: [&str; 3] = ["cd", "pushd", "popd"];

/// The last part of a program's path.
pub(super) fn name_of(program: &str) -> &str {
    program.rsplit_once('/').map_or(program, |(_, name)| name)
}

pub(super) fn is_wrapper(name: &str) -> bool {
    WRAPPERS.contains(&name)
}

/// Whether it can run others. Versions count: `python3.12`.
pub(super) fn is_runner(name: &str) -> bool {
    let unversioned = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
    RUNNERS.contains(&name) || RUNNERS.contains(&unversioned)
}

pub(super) fn is_quiet(name: &str) -> bool {
    QUIET.contains(&name)
}

pub(super) fn is_evaluating(name: &str) -> bool {
    EVALUATING.contains(&name)
}

pub(super) fn is_moving(name: &str) -> bool {
    MOVING.contains(&name)
}
