//! Changes of protected files by commands in a sandbox: they are put aside, and the user is asked.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Instant;

use holdpoint_common::{
    AskRequest, CallId, PauseResponse, PolicyMode, PolicyRules, SandboxLevel, Verdict,
};
use holdpoint_tools::testing::{Bench, Called, patience, rounds};
use holdpoint_tools::{
    Act, AskReply, EditFile, Jobs, Policy, SandboxProfile, Shell, ToolError, Widening, Workspace,
    WriteFile,
};
use serde_json::json;

use crate::sandbox::World;

/// The answer of the user to each ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum User {
    Approves,
    Denies,
}

/// A workspace with a repository in the folder `sub`. Bubblewrap protects only names at the top.
fn world() -> World {
    filled(World::new())
}

fn filled(world: World) -> World {
    for path in ["work/sub/.git/hooks", "work/sub/.git/objects", "work/sub/.git/refs"] {
        fs::create_dir_all(world.path(path)).unwrap();
    }
    for (path, text) in [
        ("outside/AGENTS.md", "CONTENT\n"),
        ("work/sub/AGENTS.md", "old\n"),
        ("work/sub/.git/HEAD", "ref: refs/heads/main\n"),
        ("work/sub/.git/config", "[core]\n\tbare = false\n"),
        ("work/sub/.git/hooks/update", "old\n"),
    ] {
        fs::write(world.path(path), text).unwrap();
    }
    world
}

fn bench(world: &World, level: SandboxLevel) -> Bench {
    let profile = world.profile().aside(world.path("state/sandbox/aside"));
    let mut bench = Bench::within(world.path("work")).sandbox(world.sandbox(level, profile));
    for (name, value) in world.env() {
        bench = bench.env(name, value);
    }
    bench
        .env("GIT_CONFIG_COUNT", "2")
        .env("GIT_CONFIG_KEY_0", "user.name")
        .env("GIT_CONFIG_VALUE_0", "A")
        .env("GIT_CONFIG_KEY_1", "user.email")
        .env("GIT_CONFIG_VALUE_1", "a@example.org")
}

impl User {
    fn reply(self) -> AskReply {
        AskReply::Pause(match self {
            Self::Approves => PauseResponse::Approved,
            Self::Denies => PauseResponse::Denied { reason: None },
        })
    }
}

fn shell(bench: &Bench, script: &str, user: User) -> Called {
    let calling = bench.start(Shell::new(), json!({ "command": script }));
    calling.answer(user.reply());
    calling.wait()
}

/// The details of the only ask; empty if there was none.
fn details(called: &Called) -> String {
    match &*called.asked {
        [] => String::new(),
        [AskRequest::Pause(pause)] => pause.details.clone().unwrap(),
        asked => panic!("{asked:?}"),
    }
}

/// The lines of an ask that name the changes.
fn listed(called: &Called) -> Vec<String> {
    let details = details(called);
    let list = details.split("\n\n").next().unwrap_or_default();
    list.lines().map(str::to_owned).collect()
}

fn result(called: &Called) -> &str {
    match &called.result {
        Ok(outcome) => &outcome.output,
        Err(error) => panic!("{error}"),
    }
}

/// The target, or the permissions and the contents of a file; `None` if it is missing.
fn state(path: &Path) -> Option<(u32, Vec<u8>)> {
    let metadata = path.symlink_metadata().ok()?;
    let content = match fs::read_link(path) {
        Ok(target) => target.into_os_string().into_encoded_bytes(),
        Err(_) => fs::read(path).unwrap(),
    };
    Some((metadata.mode(), content))
}

/// Scripts with the changes that they make. Each runs without a sandbox as the control.
const CHANGES: [(&str, &[&str]); 26] = [
    (
        "echo x > sub/.git/hooks/pre-commit && chmod 755 sub/.git/hooks/pre-commit",
        &["created: sub/.git/hooks/pre-commit, mode 755"],
    ),
    ("chmod 755 sub/.git/hooks/update", &["changed: sub/.git/hooks/update, mode 755"]),
    ("rm -r sub/.git/hooks", &["removed: sub/.git/hooks/update"]),
    (
        "rm -r sub/.git/hooks && ln -s $BASE/outside sub/.git/hooks",
        &["created: sub/.git/hooks", "removed: sub/.git/hooks/update"],
    ),
    ("echo x >> sub/AGENTS.md", &["changed: sub/AGENTS.md"]),
    ("ln sub/AGENTS.md sub/copy && echo x >> sub/copy", &["changed: sub/AGENTS.md"]),
    ("rm sub/AGENTS.md", &["removed: sub/AGENTS.md"]),
    (
        "rm sub/AGENTS.md && mkdir sub/AGENTS.md && echo x > sub/AGENTS.md/x",
        &["removed: sub/AGENTS.md", "created: sub/AGENTS.md/x, mode 644"],
    ),
    ("mkdir -p a/b && echo x > a/b/.envrc", &["created: a/b/.envrc, mode 644"]),
    ("mkdir .vscode && echo x > .vscode/tasks.json", &["created: .vscode/tasks.json, mode 644"]),
    ("mkdir .husky && echo x > .husky/pre-commit", &["created: .husky/pre-commit, mode 644"]),
    ("ln -s $BASE/outside/file CLAUDE.md", &["created: CLAUDE.md"]),
    ("mkdir .cargo && ln -s ../x .cargo/config.toml", &["created: .cargo/config.toml"]),
    (
        "mv sub sub2",
        &["created: sub2/AGENTS.md, mode 644", "created: sub2/.git/hooks/update, mode 644"],
    ),
    (
        "mv sub/.git sub/g && ln -s g sub/.git",
        &["created: sub/.git", "created: sub/g/hooks/update, mode 644"],
    ),
    (
        "mv sub/.git sub/g && echo 'gitdir: g' > sub/.git",
        &["created: sub/.git, mode 644", "created: sub/g/hooks/update, mode 644"],
    ),
    (
        "mkdir -p r/objects r/refs r/hooks && echo ref: x > r/HEAD && echo x > r/hooks/update",
        &["created: r/hooks/update, mode 644"],
    ),
    (
        "mkdir -p sub/.git/modules/a/b/hooks && echo x > sub/.git/modules/a/b/hooks/update",
        &["created: sub/.git/modules/a/b/hooks/update, mode 644"],
    ),
    // The name of a submodule.
    (
        "mkdir -p sub/.git/modules/logs && git config -f sub/.git/modules/logs/config core.pager x",
        &["created: sub/.git/modules/logs/config, mode 644"],
    ),
    (
        "mkdir sub/.git/info && echo '* filter=x' > sub/.git/info/attributes",
        &["created: sub/.git/info/attributes, mode 644"],
    ),
    ("git -C sub config core.fsmonitor ./x", &["changed: sub/.git/config"]),
    ("git -C sub config core.hooksPath x", &["changed: sub/.git/config"]),
    ("git -C sub config alias.x '!y'", &["changed: sub/.git/config"]),
    ("git -C sub config include.path ../x", &["changed: sub/.git/config"]),
    ("git -C sub config filter.x.clean y", &["changed: sub/.git/config"]),
    ("git -C sub config core.bare true && rm sub/.git/config", &["removed: sub/.git/config"]),
];

#[test]
fn m_g2_changed_protected_files_are_put_aside_and_asked_about() {
    let tried = World::new();
    for (script, changes) in CHANGES {
        let paths: Vec<PathBuf> = changes
            .iter()
            .map(|change| {
                let path = change.split_once(": ").unwrap().1.split(", mode").next().unwrap();
                Path::new("work").join(path)
            })
            .collect();
        let states = |world: &World| -> Vec<_> {
            let state = |path: &PathBuf| match world.path(path.to_str().unwrap()) {
                path if path.is_dir() && !path.is_symlink() => None,
                path => state(&path),
            };
            paths.iter().map(state).collect()
        };
        let control = filled(tried.another());
        let before = states(&control);
        let called = shell(&bench(&control, SandboxLevel::Off), script, User::Approves);
        assert!(called.asked.is_empty() && !called.result.unwrap().failed, "{script}");
        let after = states(&control);
        let base = |world: &World| world.path("").to_str().unwrap().to_owned();
        let expected = |world: &World| {
            let moved = |(mode, content): (u32, Vec<u8>)| {
                let text = String::from_utf8(content).unwrap();
                (mode, text.replace(&base(&control), &base(world)).into_bytes())
            };
            after.iter().map(|state| state.clone().map(moved)).collect::<Vec<_>>()
        };
        for level in tried.sandboxes() {
            for user in [User::Denies, User::Approves] {
                let world = filled(tried.another());
                let outside = world.guarded();
                let bench = bench(&world, level);
                let called = shell(&bench, script, user);
                let mut listed = listed(&called);
                listed.sort();
                let mut changes = changes.to_vec();
                changes.sort_unstable();
                assert_eq!(listed, changes, "{level:?}: {script}: {called:?}");
                let expected = match user {
                    User::Denies => before.clone(),
                    User::Approves => expected(&world),
                };
                assert_eq!(states(&world), expected, "{level:?}, {user:?}: {script}: {called:?}");
                let word = if user == User::Denies { "denied" } else { "approved" };
                assert!(result(&called).contains(word), "{called:?}");
                assert_eq!(world.guarded(), outside, "{script}");
                // The next command finds nothing new.
                let next = shell(&bench, "true", user);
                assert!(next.asked.is_empty(), "{script}: {next:?}");
            }
        }
    }
}

#[test]
fn m_g2_gits_normal_work_is_not_asked_about() {
    for level in world().levels() {
        let world = world();
        let bench = bench(&world, level);
        let script = "set -e
            git init -q --bare -b main remote.git
            git init -q -b main repo && cd repo
            git remote add origin ../remote.git
            echo x > file && git add file && git commit -qm first
            git push -q -u origin main
            git switch -qc other && git push -q -u origin other && git switch -q main
            git branch -qD other && git fetch -q && git checkout -q --track origin/other
            git config user.name B && git config branch.other.description x
            git clone -q ../remote.git ../clone && cd ../clone
            git switch -q other && git submodule -q init
            grep -q 'branch \"other\"' ../repo/.git/config && grep -q origin .git/config";
        let called = shell(&bench, script, User::Denies);
        assert!(called.asked.is_empty(), "{level:?}: {called:?}");
        assert_eq!(result(&called), "[exit code 0]", "{level:?}: {called:?}");
        // A change of two settings, of which one is not git's, is undone as a whole.
        let config = world.path("work/clone/.git/config");
        let before = fs::read(&config).unwrap();
        let script = "cd clone && git branch -q --unset-upstream && git config core.pager ./x";
        let called = shell(&bench, script, User::Denies);
        let changed = fs::read(&config).unwrap() != before;
        assert_eq!(changed, level == SandboxLevel::Off, "{level:?}: {called:?}");
        // A whole folder is removed without an ask, together with its protected files.
        let called = shell(&bench, "rm -rf clone repo sub", User::Denies);
        assert!(called.asked.is_empty(), "{level:?}: {called:?}");
        assert!(!world.path("work/sub").exists());
    }
}

#[test]
fn m_g2_details_show_exact_changes_on_their_lines() {
    for level in world().sandboxes() {
        let world = world();
        let bench = bench(&world, level);
        let script = "mkdir $'a\\n\\e[31mb' $'\\xff' && echo x > $'a\\n\\e[31mb/AGENTS.md'
            echo x > $'\\xff/AGENTS.md'; printf 'old\\n\\e[8mnew\\n' > sub/AGENTS.md
            printf '\\xff' > sub/CLAUDE.md; ln -s $'x\\ny' GEMINI.md";
        let called = shell(&bench, script, User::Approves);
        let details = details(&called);
        for expected in [
            "created: a\\u{a}\\u{1b}[31mb/AGENTS.md, mode 644\n",
            "created: \u{fffd}/AGENTS.md, mode 644\n",
            "--- sub/AGENTS.md\n+++ sub/AGENTS.md\n@@ -1 +1,2 @@\n old\n+\\u{1b}[8mnew\n",
            "sub/CLAUDE.md: not shown\n- nothing\n+ 1 bytes, BLAKE3 ",
            "GEMINI.md: not shown\n- nothing\n+ a link to x\\u{a}y, in ",
        ] {
            assert!(details.contains(expected), "{level:?}: {expected:?} is not in:\n{details}");
        }
        assert_eq!(fs::read(world.path("work/sub/CLAUDE.md")).unwrap(), b"\xff");
        assert!(world.path("work/a\n\u{1b}[31mb/AGENTS.md").exists());
    }
}

#[test]
fn m_g2_a_change_that_is_not_answered_stays_aside_for_the_next_ask() {
    for level in world().sandboxes() {
        let world = world();
        let (bench, path) = (bench(&world, level), world.path("work/sub/AGENTS.md"));
        let script = "echo first > sub/AGENTS.md";
        let called = bench.call(Shell::new(), json!({ "command": script }));
        assert!(matches!(called.result, Err(ToolError::Interrupted)), "{called:?}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "old\n");
        // A command that is cut has no ask at all.
        let calling = bench.start(
            Shell::new(),
            json!({ "command": "echo x > CLAUDE.md; echo ready; sleep 1000" }),
        );
        calling.wait_for("ready");
        calling.cut();
        assert!(calling.wait().asked.is_empty());
        assert!(!world.path("work/CLAUDE.md").exists());
        let called = shell(&bench, "true", User::Approves);
        assert_eq!(listed(&called), ["created: CLAUDE.md, mode 644", "changed: sub/AGENTS.md"]);
        assert_eq!(fs::read_to_string(&path).unwrap(), "first\n");
        assert_eq!(fs::read_to_string(world.path("work/CLAUDE.md")).unwrap(), "x\n");
        // Denied files stay in the folder of the session.
        let called = shell(&bench, "echo second > sub/AGENTS.md", User::Denies);
        assert!(result(&called).contains("denied the changes of protected files"), "{called:?}");
        let aside = world.path("state/sandbox/aside/2/sub/AGENTS.md");
        assert_eq!(fs::read_to_string(aside).unwrap(), "second\n");
    }
}

#[test]
fn m_g2_a_change_during_two_calls_is_asked_about_once() {
    for level in world().sandboxes() {
        let world = world();
        let bench = bench(&world, level);
        let start = |script: &str| bench.start(Shell::new(), json!({ "command": script }));
        let wait = "echo x > sub/GEMINI.md; echo ready; until [ -e go ]; do sleep 0.01; done";
        let other = start(wait);
        other.wait_for("ready");
        let first = start("ln sub/AGENTS.md copy; echo first > copy");
        let _ = first.wait_asked();
        // The shown contents are put in place, even if the file has another name.
        fs::write(world.path("work/copy"), "second\n").unwrap();
        fs::write(world.path("work/go"), "").unwrap();
        other.answer(User::Denies.reply());
        let other = other.wait();
        assert!(other.asked.is_empty(), "{other:?}");
        first.answer(User::Approves.reply());
        let first = first.wait();
        // The baseline is that of the first of the commands.
        let changes = ["changed: sub/AGENTS.md", "created: sub/GEMINI.md, mode 644"];
        assert_eq!(listed(&first), changes);
        assert_eq!(fs::read_to_string(world.path("work/sub/AGENTS.md")).unwrap(), "first\n");
    }
}

#[test]
fn m_g2_approved_writes_are_kept_while_commands_run() {
    for level in world().sandboxes() {
        let world = world();
        let bench = bench(&world, level);
        let job = "until [ -e stop ]; do sleep 0.01; done; echo x > GEMINI.md";
        let job = bench.call(Shell::new(), json!({ "command": job, "background": true }));
        assert!(job.result.is_ok(), "{job:?}");
        for path in ["sub/CLAUDE.md", "sub/AGENTS.md"] {
            let input = json!({ "path": path, "content": "written\n" });
            assert!(bench.call(WriteFile::new(), input).result.is_ok());
        }
        let edit = json!({
            "path": "sub/AGENTS.md",
            "edits": [{ "old_string": "written", "new_string": "edited" }],
        });
        let edited = bench.call(EditFile::new(), edit);
        assert!(edited.result.is_ok(), "{edited:?}");
        let kept = || {
            let read = |path: &str| fs::read_to_string(world.path(path)).unwrap();
            assert_eq!(read("work/sub/CLAUDE.md"), "written\n");
            assert_eq!(read("work/sub/AGENTS.md"), "edited\n");
        };
        let called = shell(&bench, "true", User::Denies);
        assert!(called.asked.is_empty(), "{called:?}");
        kept();
        // A second write is compared with neither the first nor the missing file.
        for content in ["again\n", "written\n"] {
            let input = json!({ "path": "sub/CLAUDE.md", "content": content });
            assert!(bench.call(WriteFile::new(), input).result.is_ok());
            let called = shell(&bench, "true", User::Denies);
            assert!(called.asked.is_empty(), "{called:?}");
        }
        kept();
        // Changes of these files by a command are undone.
        let called = shell(&bench, "echo x > sub/AGENTS.md; echo x > sub/CLAUDE.md", User::Denies);
        assert_eq!(listed(&called), ["changed: sub/AGENTS.md", "changed: sub/CLAUDE.md"]);
        kept();
        // At its end, the job has nobody to ask. The next command does.
        fs::write(world.path("work/stop"), "").unwrap();
        wait_for_end(&bench, CallId(1));
        assert!(!world.path("work/GEMINI.md").exists());
        let jobs = bench.call(Jobs::new(), json!({ "action": "read", "job": 1 }));
        let line = "; the next command of shell asks for approval: GEMINI.md]";
        assert!(format!("{jobs:?}").contains(line), "{jobs:?}");
        let called = shell(&bench, "true", User::Approves);
        assert_eq!(listed(&called), ["created: GEMINI.md, mode 644"]);
        assert!(world.path("work/GEMINI.md").exists());
        kept();
    }
}

/// Waits until a job has ended.
fn wait_for_end(bench: &Bench, job: CallId) {
    let deadline = Instant::now() + patience();
    let is_running = || bench.background().list().iter().any(|it| it.id == job && it.end.is_none());
    while is_running() {
        assert!(Instant::now() < deadline, "the job has not ended");
        std::thread::yield_now();
    }
}

#[test]
fn m_g2_swapped_folders_lead_no_write_outside() {
    for level in world().sandboxes() {
        let world = world();
        fs::create_dir(world.path("outside/.husky")).unwrap();
        for name in 1..=40 {
            fs::write(world.path(&format!("outside/.husky/{name}")), "CONTENT").unwrap();
        }
        let outside = world.guarded();
        let bench = bench(&world, level);
        let swap = "mkdir sub/d && touch sub/d/here && exec perl -e 'chdir \"sub\"; while (1) { rename \"d\", \"e\"; \
                    symlink \"$ENV{BASE}/outside\", \"d\"; unlink \"d\"; rename \"e\", \"d\" }'";
        let job = bench.call(Shell::new(), json!({ "command": swap, "background": true }));
        assert!(job.result.is_ok(), "{job:?}");
        let mut asked = 0;
        for round in 0..rounds(40, 400) {
            // The writes begin in the folder itself, wherever it is.
            let script = format!(
                "for i in {{1..300}}; do cd -P sub/d 2> /dev/null && [ -e here ] && break; cd $BASE/work; done
                 [ -e here ] || exit 0
                 mkdir -p .husky; echo {round} > AGENTS.md
                 for i in {{1..40}}; do echo {round} > .husky/$i; done; true"
            );
            let user = if round % 2 == 0 { User::Approves } else { User::Denies };
            asked += shell(&bench, &script, user).asked.len();
        }
        assert!(asked > 0);
        bench.background().stop(CallId(1)).unwrap();
        assert_eq!(world.guarded(), outside, "{level:?}");
    }
}

/// A write through a mapping changes the times of a file only once.
#[test]
fn m_g2_a_mapping_hides_no_change() {
    if std::process::Command::new("python3").arg("-V").output().is_err() {
        return println!("skipped: python3 is not installed");
    }
    let map = "import mmap, os, time
f = open('sub/AGENTS.md', 'r+b'); m = mmap.mmap(f.fileno(), 0); m[0] = m[0]
open('mapped', 'w').close()
while not os.path.exists('go'): time.sleep(0.01)
m[0:3] = b'new'";
    for level in world().sandboxes() {
        let world = world();
        let bench = bench(&world, level);
        fs::write(world.path("work/map.py"), map).unwrap();
        let job = json!({ "command": "python3 map.py", "background": true });
        let job = bench.call(Shell::new(), job);
        assert!(job.result.is_ok(), "{job:?}");
        // The file was last changed before this command by more than the resolution of times.
        let wait = "until [ -e mapped ]; do sleep 0.01; done; sleep 0.1";
        for script in [wait, "true"] {
            let called = shell(&bench, script, User::Denies);
            assert!(called.asked.is_empty(), "{called:?}");
        }
        fs::write(world.path("work/go"), "").unwrap();
        wait_for_end(&bench, CallId(1));
        assert_eq!(fs::read_to_string(world.path("work/sub/AGENTS.md")).unwrap(), "old\n");
        let called = shell(&bench, "true", User::Denies);
        assert_eq!(listed(&called), ["changed: sub/AGENTS.md"], "{level:?}: {called:?}");
    }
}

/// A job can't use the permission that another command got.
#[test]
fn m_g2_a_widening_covers_no_other_command() {
    for level in world().sandboxes() {
        let world = world();
        let profile = world.profile().aside(world.path("state/sandbox/aside"));
        let sandbox = world.sandbox(level, profile).unwrap();
        let widening = Widening::Writable(world.path("work/sub/.git"));
        let [plain, widened] =
            [Some(sandbox.clone()), sandbox.widened(&[widening])].map(|sandbox| {
                let bench = Bench::within(world.path("work")).sandbox(sandbox);
                world.env().into_iter().fold(bench, |bench, (name, value)| bench.env(name, value))
            });
        let set = "git -C sub config alias.x status";
        let called = shell(&widened, set, User::Denies);
        assert!(called.asked.is_empty(), "{called:?}");
        let job =
            "git -C sub config core.pager ./x; touch set; until [ -e go ]; do sleep 0.01; done";
        let job = plain.call(Shell::new(), json!({ "command": job, "background": true }));
        assert!(job.result.is_ok(), "{job:?}");
        let wait = "until [ -e set ]; do sleep 0.01; done; git -C sub config alias.y status";
        let called = shell(&widened, wait, User::Denies);
        assert_eq!(listed(&called), ["changed: sub/.git/config"], "{level:?}: {called:?}");
        let config = fs::read_to_string(world.path("work/sub/.git/config")).unwrap();
        assert!(config.contains("x = status") && !config.contains("pager"), "{config}");
        fs::write(world.path("work/go"), "").unwrap();
        wait_for_end(&plain, CallId(1));
    }
}

#[test]
fn m_g2_files_that_cannot_be_kept_are_renamed() {
    for level in world().sandboxes() {
        let world = world();
        let bench = bench(&world, level);
        let script = "mkfifo CLAUDE.md sub/GEMINI.md; head -c 2000000 /dev/zero > .envrc
            mkdir .vscode && head -c 2000000 /dev/zero > .vscode/x; head -c 2000000 /dev/zero > sub/AGENTS.md";
        let called = shell(&bench, script, User::Approves);
        let left = |path: &str| world.path(path).symlink_metadata().is_ok();
        for path in ["work/CLAUDE.md", "work/sub/GEMINI.md", "work/.vscode"] {
            assert!(!left(path), "{level:?}: {path}: {called:?}");
        }
        // At `bwrap`, this file could not be changed.
        assert!(world.path("work/.envrc").metadata().unwrap().len() == 0);
        assert_eq!(fs::read_to_string(world.path("work/sub/AGENTS.md")).unwrap(), "old\n");
        let line = "[CLAUDE.md can't be kept aside, and is now holdpoint-aside-";
        assert!(result(&called).contains(line), "{called:?}");
        assert!(called.asked.is_empty(), "{called:?}");
        let called = shell(&bench, "true", User::Approves);
        assert_eq!(result(&called), "[exit code 0]");
    }
}

#[test]
fn m_g2_a_flood_of_names_is_put_aside_in_bounds() {
    for level in world().sandboxes() {
        let world = world();
        let bench = bench(&world, level);
        let called = shell(
            &bench,
            "mkdir f f/{1..10000}; for i in {1..10000}; do echo x > f/$i/AGENTS.md; done",
            User::Approves,
        );
        let approved = listed(&called).len();
        assert_eq!(approved, 1000);
        let left = fs::read_dir(world.path("work/f")).unwrap().flatten();
        let left = left.filter(|folder| folder.path().join("AGENTS.md").exists()).count();
        assert_eq!(left, approved);
        assert!(details(&called).len() < 1024 * 1024);
        // Nor does a flood of folders hide the change of a known file.
        let script = "mkdir -p sub/0/{1..21000} sub/0/1/deep && echo x > sub/0/1/deep/CLAUDE.md && echo x > sub/AGENTS.md";
        let called = shell(&bench, script, User::Denies);
        assert_eq!(listed(&called), ["changed: sub/AGENTS.md"], "{level:?}");
        assert!(result(&called).contains("more than 20000 are new"), "{called:?}");
    }
}

#[test]
fn m_g2_folders_that_a_command_closes_are_reported_or_opened() {
    if rustix::process::geteuid().is_root() {
        return println!("skipped: root reads every folder");
    }
    for level in world().sandboxes() {
        let world = world();
        let bench = bench(&world, level);
        let closed = |path: &str| fs::Permissions::from_mode(if path == "c" { 0 } else { 0o755 });
        fs::create_dir(world.path("work/c")).unwrap();
        fs::set_permissions(world.path("work/c"), closed("c")).unwrap();
        let script = "mkdir a && echo x > a/AGENTS.md && chmod 555 a \
                      && mkdir b && echo x > b/AGENTS.md && chmod 000 b \
                      && echo x > sub/AGENTS.md && chmod 311 sub";
        let called = shell(&bench, script, User::Denies);
        let changes = [
            "created: a/AGENTS.md, mode 644",
            "created: b/AGENTS.md, mode 644",
            "changed: sub/AGENTS.md",
        ];
        assert_eq!(listed(&called), changes, "{called:?}");
        assert_eq!(fs::read_to_string(world.path("work/sub/AGENTS.md")).unwrap(), "old\n");
        // A folder that was closed before is not opened.
        let line = "[c could not be compared: Permission denied";
        assert!(result(&called).contains(line), "{called:?}");
        let called = shell(&bench, "chmod 755 c && echo x > c/AGENTS.md", User::Denies);
        assert_eq!(listed(&called), ["created: c/AGENTS.md, mode 644"], "{called:?}");
    }
}

#[test]
fn m_g2_a_workspace_with_the_home_folder_is_not_compared() {
    for level in world().sandboxes() {
        let world = world();
        let [work, temporary, caches] =
            ["work", "state/tmp", "state/caches"].map(|path| world.path(path));
        let profile = SandboxProfile::new(&work, work.join("sub"), temporary, caches)
            .aside(world.path("state/aside"));
        let bench = Bench::within(&work).sandbox(world.sandbox(level, profile.clone()));
        let called = shell(&bench, "echo x > sub/AGENTS.md", User::Denies);
        assert!(called.asked.is_empty());
        assert_eq!(fs::read_to_string(work.join("sub/AGENTS.md")).unwrap(), "x\n");
        // So the policy `sandboxed` does not let commands run there without an ask.
        let compared = world.profile().aside(world.path("state/aside"));
        let verdict = |profile| {
            let rules = PolicyRules::default();
            let policy = Policy::new(PolicyMode::Sandboxed, &rules, None).unwrap();
            let workspace = Workspace::new(&work, Vec::new(), policy);
            let workspace = workspace.with_sandbox(world.sandbox(level, profile));
            let acts = [Act::Command("make".to_owned())];
            workspace.policy().judge("shell", &acts, &work).verdict
        };
        assert_eq!([profile, compared].map(verdict), [Verdict::Ask, Verdict::Allow]);
    }
}

/// Changes in these folders are not compared.
#[test]
fn m_g2_dependencies_and_build_results_are_not_compared() {
    for level in world().sandboxes() {
        let world = world();
        let script = "for i in node_modules target .venv venv; do mkdir $i && echo x > $i/.npmrc; done; \
                      mkdir -p .gradle/8 .jj/repo && echo x > .gradle/8/x && echo x > .jj/repo/op";
        let called = shell(&bench(&world, level), script, User::Denies);
        assert_eq!(result(&called), "[exit code 0]", "{level:?}: {called:?}");
    }
}
