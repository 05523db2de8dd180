//! The table of programs: shells, languages, programs that run others, and the builtins of bash.
//! The policy judges by it, and secrets are masked by it.

mod options;
mod prefixes;

use std::collections::HashSet;
use std::sync::OnceLock;

pub(crate) use options::{Kind, Running, running};
pub(crate) use prefixes::Prefix;

/// A set of names, built on the first lookup.
struct Names {
    text: &'static str,
    set: OnceLock<HashSet<&'static str>>,
}

impl Names {
    const fn new(text: &'static str) -> Self {
        Self { text, set: OnceLock::new() }
    }

    fn contains(&self, name: &str) -> bool {
        self.set.get_or_init(|| self.text.split_whitespace().collect()).contains(name)
    }
}

/// Shells with the syntax and the options of bash.
static SHELLS: Names = Names::new("ash bash dash rbash sh");

/// Shells with a syntax of their own.
static OTHER_SHELLS: Names = Names::new("csh elvish fish ksh mksh nu pwsh tcsh xonsh zsh");

/// Programs that run the text of their arguments with a shell, here or on another machine.
static SCRIPT_RUNNERS: Names =
    Names::new("hyperfine newgrp nodemon parallel pee sg ssh watch watchexec");

/// Interpreters, debuggers and editors that run text in a language of their own, which can read
/// environment variables.
static LANGUAGES: Names = Names::new(
    "
    awk bun clojure dc deno duckdb ed elixir emacs erl ex expect gawk gdb ghci gnuplot groovy guile iex ipython irb
    jshell julia lldb lua luajit m4 mawk nawk node nodejs nvim ocaml octave original-awk osascript perl php pry pypy
    python R racket raku Rscript ruby runghc sage sbcl scala sed sqlite3 tclsh ts-node tsx vi view vim wish
",
);

/// Programs that run another program and have too many options to list: any argument may begin the
/// program that they run.
static UNKNOWN_SYNTAX: Names = Names::new(
    "
    bwrap caffeinate catchsegv cgexec choom chpst chronic coresched cpulimit dumb-init eatmydata entr faketime
    firejail gdb gosu gpg-agent i386 ifne lldb ltrace nsenter numactl perf pipesz prlimit proot proxychains proxychains4 rlwrap
    run-parts run0 runcon setarch setpriv setuidgid softlimit ssh-agent sshpass start-stop-daemon su-exec systemd-cat
    systemd-inhibit systemd-run tini torify torsocks uclampset uname26 unshare valgrind x86_64 xvfb-run
",
);

/// GNU tools that are installed with the prefix `g` on systems with tools of their own.
const WITH_G: [&str; 15] = [
    "chroot", "env", "find", "install", "make", "nice", "nohup", "sed", "sort", "split", "stdbuf",
    "tar", "time", "timeout", "xargs",
];

/// Further programs that can run others because of an argument, a file or a setting, so that no
/// rule allows them by name alone. [`LANGUAGES`] and [`WITH_SUBCOMMANDS`] have more of them.
static RUNNERS: Names = Names::new(
    "
    ansible at bsdtar bunx c++ cc ccache clang clang++ cmake cpan crontab ctest dbus-send dpkg ftp fzf g++ gcc hx ip
    java jest joe jupyter kak latex latexmk lazygit ld less lftp lualatex man mariadb mocha more mosh mysql nano nc
    ncat netcat ninja nix-shell nmap npx open pandoc pdflatex prename psql pytest rename rpm rsync rustc sccache scp
    screen sftp socat ssh-copy-id tar tcpdump tex tig tmux tox ts uvx vitest xcrun xdg-open xelatex zip
",
);

/// Further [`RUNNERS`], which take a subcommand that a rule can name.
static WITH_SUBCOMMANDS: Names = Names::new(
    "
    ant apt apt-get asdf bazel brew bun bundle busctl cabal cargo composer conda dart deno direnv docker dotnet gem
    gh git go gradle hatch helm hg jj just kubectl make mamba meson mise mix mvn nix nox npm openssl pdm pip pip3
    pipx pnpm podman poetry pre-commit rake rclone restic rustup scons stack svn swift systemctl terraform tofu uv
    vagrant yarn zig
",
);

/// Endings of the names of cross compilers, after the name of the target.
const COMPILERS: [&str; 4] = ["-gcc", "-g++", "-clang", "-clang++"];

/// Builtins that affect only the working folder or the flow of the script. Allowed unless denied.
const QUIET: [&str; 8] = [":", "true", "false", "cd", "exit", "return", "break", "continue"];

/// Builtins that evaluate their arguments or change the meaning of later words. No rule allows
/// them.
static EVALUATING: Names = Names::new(
    "
    . alias bind caller compgen complete compopt coproc declare enable eval exec export fc getopts hash
    history jobs let local mapfile popd pushd read readarray readonly set shopt source suspend trap typeset
    ulimit umask unalias unset
",
);

/// Builtins that can run a builtin.
const BUILTIN_RUNNERS: [&str; 3] = ["builtin", "command", "jobs"];

/// Builtins that change the working folder.
const FOLDER_CHANGING: [&str; 3] = ["cd", "pushd", "popd"];

/// The last part of a program's path.
pub(crate) fn name_of(program: &str) -> &str {
    program.rsplit_once('/').map_or(program, |(_, name)| name)
}

/// Whether any argument may begin the program that this one runs. Dynamic linkers count, because
/// `/lib/ld-linux.so.2` runs its argument.
pub(crate) fn has_unknown_syntax(name: &str) -> bool {
    UNKNOWN_SYNTAX.contains(name)
        || ["ld-linux", "ld-musl", "ld.so", "ld64.so"].iter().any(|linker| name.starts_with(linker))
}

/// The name without the `g` of GNU tools.
pub(crate) fn without_g(name: &str) -> &str {
    name.strip_prefix('g').filter(|name| WITH_G.contains(name)).unwrap_or(name)
}

/// The name without a version: `python` for `python3.12`.
fn unversioned(name: &str) -> &str {
    name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-')
}

/// Whether a list has the program, with or without its version and the `g` of GNU tools.
fn is_in(list: &Names, name: &str) -> bool {
    list.contains(without_g(name)) || list.contains(without_g(unversioned(name)))
}

/// Whether the program is a shell with the syntax and the options of bash.
pub(crate) fn is_shell(name: &str) -> bool {
    SHELLS.contains(name)
}

/// Whether the program is a shell with a syntax of its own.
pub(crate) fn is_other_shell(name: &str) -> bool {
    OTHER_SHELLS.contains(name)
}

/// Whether the program runs the text of its arguments with a shell.
pub(crate) fn runs_scripts(name: &str) -> bool {
    SCRIPT_RUNNERS.contains(name)
}

/// Whether the program runs text in a language of its own.
pub(crate) fn is_language(name: &str) -> bool {
    is_in(&LANGUAGES, name)
}

/// Whether the program can run others. Versions are ignored: `python3.12`.
pub(crate) fn is_runner(name: &str) -> bool {
    let is_compiler = COMPILERS.iter().any(|compiler| unversioned(name).ends_with(compiler));
    is_language(name)
        || is_in(&RUNNERS, name)
        || has_subcommands(name)
        || is_compiler
        || name.starts_with("git-")
}

/// Whether the first argument of the program is a subcommand that a rule can name.
pub(crate) fn has_subcommands(name: &str) -> bool {
    is_in(&WITH_SUBCOMMANDS, name)
}

pub(crate) fn is_quiet(name: &str) -> bool {
    QUIET.contains(&name)
}

pub(crate) fn is_evaluating(name: &str) -> bool {
    EVALUATING.contains(name)
}

/// Whether this builtin of bash can run another builtin, which may follow it.
pub(crate) fn runs_builtins(name: &str) -> bool {
    BUILTIN_RUNNERS.contains(&name)
}

pub(crate) fn changes_folder(name: &str) -> bool {
    FOLDER_CHANGING.contains(&name)
}
