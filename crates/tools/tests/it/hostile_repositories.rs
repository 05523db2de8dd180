//! Repositories that run a program when an ordinary command is used in them: it asks without a
//! sandbox, and has no effect outside of a sandbox.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use holdpoint_common::{PolicyMode, PolicyRules, SandboxLevel, Verdict};
use holdpoint_tools::testing::Bench;
use holdpoint_tools::{Act, Policy, Shell};
use serde_json::json;

use crate::sandbox::World;

/// The program of hostile repositories, which leaves a mark in the workspace and one outside.
const EVIL: &str = "#!/bin/sh\ntouch \"$BASE/work/ran\"\ntouch \"$BASE/outside/mark\"\n";

/// The start of a configuration that makes `git status` run the program.
const CONFIG: &str =
    "printf '[core]\\nrepositoryformatversion = 0\\nfsmonitor = %s\\n' $BASE/work/evil >>";

/// A kind of repository: its name, a script that makes it, and an ordinary command. `CONFIG` in the
/// script adds to the configuration that follows.
const REPOSITORIES: [(&str, &str, &str); 22] = [
    ("`.git` file", "git init -q --separate-git-dir=data .; CONFIG data/config", "git status"),
    (
        "`.git` link",
        "git init -q .; mv .git data; ln -s data .git; CONFIG data/config",
        "git status",
    ),
    (
        "commondir",
        "git init -q .; mkdir data; mv .git/objects .git/refs .git/config data
            echo ../data > .git/commondir; CONFIG data/config",
        "git status",
    ),
    (
        "bare repository",
        "git init -q --bare sub/x; git -C sub/x config core.bare false
            git -C sub/x config core.worktree ..; CONFIG sub/x/config",
        "git -C sub/x status",
    ),
    (
        "core.hooksPath",
        "git init -q .; git config core.hooksPath hooks; mkdir hooks; cp evil hooks/pre-commit",
        "git commit -q --allow-empty -m a",
    ),
    ("core.fsmonitor", "git init -q .; git config core.fsmonitor ./evil", "git status"),
    (
        "textconv",
        "git init -q .; git config diff.d.textconv ./evil; echo '* diff=d' > .gitattributes
            echo a > a; git add .; echo b > a",
        "git diff",
    ),
    (
        "filter",
        "git init -q .; git config filter.f.clean ./evil; echo '* filter=f' > .gitattributes
            echo a > a",
        "git add a",
    ),
    (
        "include.path",
        "git init -q .; git config include.path ../shared; CONFIG shared",
        "git status",
    ),
    ("alias", "git init -q .; git config alias.st '!./evil'", "git st"),
    (
        "submodule with an odd path",
        "git init -q .; d=$(printf 'odd\\r'); git init -q \"$d\"
            git -C \"$d\" commit -q --allow-empty -m a; git add \"$d\" 2> /dev/null
            git -C \"$d\" config core.fsmonitor $BASE/work/evil",
        "git status",
    ),
    (
        "pre-commit",
        "git init -q .; cp evil .git/hooks/pre-commit",
        "git commit -q --allow-empty -m a",
    ),
    (
        "husky",
        "git init -q .; mkdir -p .husky/_; cp evil .husky/_/pre-commit
            git config core.hooksPath .husky/_",
        "git commit -q --allow-empty -m a",
    ),
    ("make", "printf 'all:\\n\\t./evil\\n' > Makefile", "make"),
    (
        "included Makefile",
        "echo 'include x.mk' > Makefile; echo 'x := $(shell ./evil)' > x.mk; echo all: >> x.mk",
        "make -n",
    ),
    (
        "npm script",
        "echo '{\"name\": \"a\", \"scripts\": {\"preinstall\": \"./evil\"}}' > package.json",
        "npm install",
    ),
    (
        "shell in .npmrc",
        "echo '{\"name\": \"a\", \"scripts\": {\"preinstall\": \"true\"}}' > package.json
            echo script-shell=./evil > .npmrc",
        "npm install",
    ),
    (
        "build.rs",
        "cargo init -q --vcs none --name a . && echo 'fn main() {
            std::process::Command::new(\"./evil\").status().unwrap(); }' > build.rs",
        "cargo build",
    ),
    (
        "cargo configuration",
        "cargo init -q --vcs none --name a . && mkdir .cargo
            printf '[build]\\nrustc-wrapper = \"./evil\"\\n' > .cargo/config.toml",
        "cargo build",
    ),
    (
        "conftest.py",
        "echo 'import subprocess; subprocess.run(\"./evil\")' > conftest.py
            echo 'def test(): pass' > test_a.py",
        "pytest",
    ),
    (".envrc", "echo ./evil > .envrc", "direnv exec . true"),
    (
        "editor settings",
        "mkdir .vscode; echo '{\"git.path\": \"./evil\"}' > .vscode/settings.json",
        "code .",
    ),
];

/// A workspace with a repository, whose programs are found by `PATH`.
fn world(tried: &World, setup: &str) -> (World, Vec<(String, String)>) {
    let world = tried.another_visible();
    for path in [".git", ".envrc", "AGENTS.md"].map(|name| world.path("work").join(name)) {
        fs::remove_dir_all(&path).or_else(|_| fs::remove_file(&path)).unwrap();
    }
    fs::write(world.path("work/evil"), EVIL).unwrap();
    fs::set_permissions(world.path("work/evil"), fs::Permissions::from_mode(0o755)).unwrap();
    let mut env = world.env();
    env.retain(|(name, _)| name != "PATH" && !name.starts_with("GIT_"));
    let mut path = std::env::var("PATH").unwrap();
    // The toolchain itself: a proxy in the home folder of this test would not find it. The user that
    // runs the tests may have none.
    if let Ok(root) = Command::new("rustc").args(["--print", "sysroot"]).output() {
        let root = String::from_utf8(root.stdout).unwrap();
        path = format!("{}/bin:{path}", root.trim());
    }
    let name = |who: &str, what: &str| (format!("GIT_{who}_{what}"), "a@example.org".to_owned());
    env.push(("PATH".to_owned(), path));
    env.push(("CARGO_TARGET_DIR".to_owned(), "target".to_owned()));
    for who in ["AUTHOR", "COMMITTER"] {
        env.extend([name(who, "NAME"), name(who, "EMAIL")]);
    }
    let script = format!("set -e; {}", setup.replace("CONFIG", CONFIG));
    let mut sh = Command::new("/bin/sh");
    sh.args(["-c", &script]).current_dir(world.path("work")).env_clear();
    let made = sh.envs(env.iter().cloned()).stdin(Stdio::null()).output().unwrap();
    assert!(made.status.success(), "{setup}: {}", String::from_utf8_lossy(&made.stderr));
    for mark in ["work/ran", "outside/mark"] {
        let _ = fs::remove_file(world.path(mark));
    }
    (world, env)
}

/// The policy of a session at this level.
fn policy(world: &World, mode: PolicyMode, level: SandboxLevel) -> Policy {
    let policy = Policy::new(mode, &PolicyRules::default(), Some(&world.path("home"))).unwrap();
    policy.sandboxed(level != SandboxLevel::Off)
}

/// The control runs the command without a sandbox, after an approval.
#[test]
fn m_g4_hostile_repositories_have_no_effect_without_an_ask_or_outside_of_the_sandbox() {
    let tried = World::visible();
    for (name, setup, command) in REPOSITORIES {
        let program = command.split(' ').next().unwrap();
        let found = Command::new("sh").args(["-c", "command -v \"$0\"", program]).output().unwrap();
        if !found.status.success() {
            println!("skipped {name}: {program} is not installed");
            continue;
        }
        for level in tried.levels() {
            let (world, env) = world(&tried, setup);
            let judge = |mode| {
                let act = [Act::Command(command.to_owned())];
                policy(&world, mode, level).judge("shell", &act, &world.path("work")).verdict
            };
            let is_off = level == SandboxLevel::Off;
            assert_eq!(judge(PolicyMode::Edits), Verdict::Ask, "{level}: {name}");
            let expected = if is_off { Verdict::Ask } else { Verdict::Allow };
            assert_eq!(judge(PolicyMode::Sandboxed), expected, "{level}: {name}");
            let profile = world.profile().aside(world.path("state/sandbox/aside"));
            let mut bench =
                Bench::within(world.path("work")).sandbox(world.sandbox(level, profile));
            for (name, value) in env {
                bench = bench.env(name, value);
            }
            let called = bench.call(Shell::new(), json!({ "command": command }));
            let marks = ["work/ran", "outside/mark"].map(|mark| world.path(mark).exists());
            // It runs inside, without an effect outside.
            assert_eq!(marks, [true, is_off], "{level}: {name}: {called:?}");
        }
    }
}
