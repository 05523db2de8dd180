//! Runs the commands that the policy allows: no program may run without an allow rule or despite a
//! deny rule, and no file may be written elsewhere.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use holdpoint_common::Verdict;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use rustix::process::{Pid, Signal, geteuid, kill_process_group};
use tempfile::TempDir;

use super::hostile;
use super::support::PolicyWorkspace;
use super::tries::tries;

/// The programs that may be executed: those of the allow rules, wrappers that only run them, and
/// `strace` itself.
const ALLOWED: [&str; 16] = [
    "bash", "good", "echo", "cat", "printf", "test", "[", "env", "timeout", "nice", "nohup",
    "setsid", "stdbuf", "xargs", "time", "strace",
];

/// The user who runs the commands if the tests are root. Some commands write to paths that come from
/// the grammar, such as `/d` from a broken `/dev/null`.
const NOBODY: u32 = 65534;

/// Words of the grammar that get a stand-in program, so that running one by mistake is noticed.
const STAND_INS: [&str; 22] = [
    "bad", "a", "b", "x", "y", "EOF", "-n", "-v", "-o", "1", "2", "in", "-", "a#b", "a;b", "a b",
    "%d", "]", "b c", "out", "true", "false",
];

/// A workspace in which commands really run, and a `PATH` of stand-ins for programs. A stand-in that
/// must not run leaves a mark.
struct BashSandbox {
    world: PolicyWorkspace,
    programs: PathBuf,
    /// The program that leaves a mark, and the text of its file.
    bad: (PathBuf, String),
    mark: PathBuf,
    _folder: TempDir,
}

impl BashSandbox {
    /// A sandbox in which only the programs of the rules are allowed; all others leave a mark.
    fn allowing() -> Self {
        // `write(-*)` allows the file that `>&-bad` would write if it did not run `bad`.
        Self::new(hostile::world(&["write(out/**)", "write(-*)"]), |bad| bad.to_owned())
    }

    /// A sandbox in which everything but `bad` is allowed; only `bad` leaves a mark.
    fn denying() -> Self {
        Self::new(hostile::denying(), |_| "/bin/true".into())
    }

    fn new(world: PolicyWorkspace, other: impl Fn(&Path) -> PathBuf) -> Self {
        fs::create_dir(world.root.join("out")).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let (programs, mark) = (folder.path().join("bin"), folder.path().join("mark"));
        fs::create_dir(&programs).unwrap();
        let bad = programs.join("bad");
        let script = format!("#!/bin/sh\n: > {}\n", mark.display());
        fs::write(&bad, &script).unwrap();
        fs::set_permissions(&bad, fs::Permissions::from_mode(0o755)).unwrap();
        for name in STAND_INS.iter().filter(|name| **name != "bad") {
            symlink(other(&bad), programs.join(name)).unwrap();
        }
        symlink("/bin/true", programs.join("good")).unwrap();
        // `time` is not installed everywhere. Without options, `env` does the same.
        symlink("/usr/bin/env", programs.join("time")).unwrap();
        for name in [
            "cat", "env", "timeout", "nice", "nohup", "setsid", "stdbuf", "xargs", "bash",
            "printf", "test", "[",
        ] {
            let real = ["/bin", "/usr/bin"].map(|folder| Path::new(folder).join(name));
            symlink(real.iter().find(|path| path.exists()).unwrap(), programs.join(name)).unwrap();
        }
        symlink(&bad, world.root.join("bad")).unwrap();
        symlink(&bad, world.home.join("bad")).unwrap();
        if geteuid().is_root() {
            for path in [folder.path(), world.root.parent().unwrap(), &world.root, &world.home] {
                chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
            }
            for path in [&mark.with_file_name("bin"), &world.root.join("out")] {
                chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
            }
        }
        Self { world, programs, bad: (bad, script), mark, _folder: folder }
    }

    /// Runs `command` with bash, under `wrapper`, until its standard error is closed, and kills the
    /// rest of its process group. Returns its standard error.
    fn run(&self, wrapper: &[&str], command: &str) -> String {
        // An earlier command may have overwritten the file.
        fs::write(&self.bad.0, &self.bad.1).unwrap();
        let words: Vec<_> = wrapper.iter().copied().chain(["/bin/bash", "-c", command]).collect();
        let mut bash = Command::new(words[0]);
        if geteuid().is_root() {
            bash.uid(NOBODY).gid(NOBODY);
        }
        let mut child = bash
            .args(&words[1..])
            .current_dir(&self.world.root)
            .env_clear()
            .env("PATH", &self.programs)
            .env("HOME", &self.world.home)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        let mut errors = child.stderr.take().unwrap();
        let (send, read) = mpsc::channel();
        std::thread::spawn(move || {
            let mut text = Vec::new();
            errors.read_to_end(&mut text).unwrap();
            let _ = send.send(String::from_utf8_lossy(&text).into_owned());
        });
        // An endless loop is killed: by then, it has had all its effects.
        let text = read.recv_timeout(Duration::from_secs(3));
        let group = Pid::from_child(&child);
        let _ = kill_process_group(group, Signal::KILL);
        child.wait().unwrap();
        text.unwrap_or_default()
    }

    /// Removes the new files in the folder and the mark, and returns their names. A failed command
    /// must leave nothing for the simpler ones that are tried after it.
    fn take_new_files(&self) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        for entry in fs::read_dir(&self.world.root).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if name.starts_with('-') || name == "out" || name == "bad" {
                continue;
            }
            if path.is_dir() && !path.is_symlink() {
                fs::remove_dir_all(&path).unwrap();
            } else {
                fs::remove_file(&path).unwrap();
            }
            found.insert(name);
        }
        if fs::remove_file(&self.mark).is_ok() {
            found.insert("the mark of another program".to_owned());
        }
        found
    }
}

/// The file of failed cases, which are tried first in every later run.
const REGRESSIONS: &str = "tests/it/policy/running.proptest-regressions";

#[test]
fn allowed_commands_write_only_allowed_files() {
    let sandbox = BashSandbox::allowing();
    let (judged, ran) = (Cell::new(0u32), Cell::new(0u32));
    let mut runner = TestRunner::new(tries(1_500, 100_000, REGRESSIONS));
    let result = runner.run(&hostile::command(), |command| {
        judged.set(judged.get() + 1);
        if sandbox.world.verdict(&command) != Verdict::Allow {
            return Ok(());
        }
        ran.set(ran.get() + 1);
        let errors = sandbox.run(&[], &command);
        let files = sandbox.take_new_files();
        prop_assert!(files.is_empty(), "{files:?} were left by {command:?}\n{errors}");
        prop_assert!(!errors.contains("command not found"), "{command:?}\n{errors}");
        Ok(())
    });
    result.unwrap();
    assert_enough_ran(&ran, &judged);
}

#[test]
fn allowed_commands_execute_only_allowed_programs() {
    let sandbox = BashSandbox::allowing();
    let trace = sandbox.programs.with_file_name("trace");
    let strace = [
        "/usr/bin/strace",
        "-f",
        "-q",
        "-e",
        "trace=execve,execveat",
        "-s",
        "300",
        "-o",
        trace.to_str().unwrap(),
    ];
    let (judged, ran) = (Cell::new(0u32), Cell::new(0u32));
    let mut runner = TestRunner::new(tries(300, 20_000, REGRESSIONS));
    let result = runner.run(&hostile::command(), |command| {
        judged.set(judged.get() + 1);
        if sandbox.world.verdict(&command) != Verdict::Allow {
            return Ok(());
        }
        ran.set(ran.get() + 1);
        sandbox.run(&strace, &command);
        let traced = fs::read_to_string(&trace).unwrap();
        let mut names = BTreeSet::new();
        for line in
            traced.lines().filter(|line| line.contains("execve(") || line.contains("execveat("))
        {
            let program = line.split('"').nth(1).unwrap_or(line);
            let name = program.rsplit('/').next().unwrap();
            prop_assert!(ALLOWED.contains(&name), "{command:?}\n{line}");
            names.insert(name);
        }
        // Otherwise the command was not traced.
        prop_assert!(names.contains("bash"), "{command:?}\n{traced}");
        Ok(())
    });
    result.unwrap();
    assert_enough_ran(&ran, &judged);
}

#[test]
fn allowed_commands_execute_no_denied_program() {
    let sandbox = BashSandbox::denying();
    let (judged, ran) = (Cell::new(0u32), Cell::new(0u32));
    let mut runner = TestRunner::new(tries(1_500, 100_000, REGRESSIONS));
    let result =
        runner.run(&prop_oneof![2 => hostile::command(), 1 => hostile::changes()], |command| {
            judged.set(judged.get() + 1);
            if sandbox.world.verdict(&command) != Verdict::Allow {
                return Ok(());
            }
            ran.set(ran.get() + 1);
            let errors = sandbox.run(&[], &command);
            prop_assert!(
                fs::remove_file(&sandbox.mark).is_err(),
                "{command:?} has run a denied program\n{errors}"
            );
            Ok(())
        });
    result.unwrap();
    assert_enough_ran(&ran, &judged);
    // Checks that `bad` does leave a mark.
    sandbox.run(&[], "bad");
    assert!(sandbox.mark.exists());
}

/// Checks that more than 5 % of the judged commands were allowed and run.
fn assert_enough_ran(ran: &Cell<u32>, judged: &Cell<u32>) {
    let (ran, judged) = (ran.get(), judged.get());
    println!("{ran} of {judged} commands were run");
    assert!(ran * 20 > judged, "{ran} of {judged} commands were run");
}
