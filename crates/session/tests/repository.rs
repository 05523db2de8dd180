//! The files that a run has changed, by git where there is one: asked so that nothing of the repository's own runs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "a test")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use holdpoint_session::RunRequest;
use holdpoint_session::testing::{Harness, reply};
use serde_json::json;

fn git(folder: &Path, args: &[&str]) {
    let mut command = Command::new("git");
    command.current_dir(folder).env_clear().env("PATH", std::env::var("PATH").unwrap()).env("HOME", folder);
    let who = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "init.defaultBranch=main"];
    let done = command.args(who).args(args).output().unwrap();
    assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
}

/// The files that a run of one iteration, which runs this command, is said to have changed.
async fn changed(harness: &Harness, command: &str) -> Vec<String> {
    harness.model.then(reply().call("shell", json!({ "command": command }))).then(reply().text("done"));
    let session = harness.open().await;
    session.start_run(RunRequest::towards("change something")).await.unwrap();
    let files = session.settled().await.unwrap().files_modified.clone();
    files.iter().cloned().collect()
}

#[tokio::test]
async fn m_d6_what_a_command_changes_in_a_repository_is_seen() {
    let harness = Harness::start();
    let folder = harness.folder.path();
    git(folder, &["init", "-q"]);
    fs::write(folder.join(".gitignore"), "built\n").unwrap();
    for file in ["kept", "changed", "removed", "mine"] {
        fs::write(folder.join(file), "old").unwrap();
    }
    git(folder, &["add", "."]);
    git(folder, &["commit", "-qm", "first"]);
    fs::write(folder.join("mine"), "changed before").unwrap();
    let command = "echo new > changed; rm removed; mkdir -p 'a b'; echo x > 'a b/new'; echo x > built";
    assert_eq!(changed(&harness, command).await, ["a b/new", "changed", "removed"]);
}

#[tokio::test]
async fn m_d6_without_a_repository_there_is_only_what_tools_say() {
    let harness = Harness::start();
    assert_eq!(changed(&harness, "echo new > made").await, Vec::<String>::new());
}

/// A repository is not to be trusted: whatever it sets up to be run when it is looked at, is not.
#[tokio::test]
async fn m_d6_nothing_that_the_repository_configures_is_run() {
    let harness = Harness::start();
    let folder = harness.folder.path();
    let traps = tempfile::tempdir().unwrap();
    let sprung = traps.path().join("sprung");
    let trap = traps.path().join("trap");
    fs::write(&trap, format!("#!/bin/sh\necho \"$0 $*\" >> {}\ncat\n", sprung.display())).unwrap();
    fs::set_permissions(&trap, fs::Permissions::from_mode(0o755)).unwrap();
    git(folder, &["init", "-q"]);
    fs::write(folder.join("file"), "old").unwrap();
    git(folder, &["add", "."]);
    git(folder, &["commit", "-qm", "first"]);
    fs::write(folder.join(".gitattributes"), "* filter=bad.one diff=bad\n").unwrap();
    let trap = trap.to_str().unwrap();
    let hooks = folder.join(".git/hooks");
    fs::create_dir_all(&hooks).unwrap();
    fs::copy(trap, hooks.join("post-index-change")).unwrap();
    for key in
        ["core.fsmonitor", "filter.bad.one.clean", "filter.bad.one.process", "diff.bad.textconv", "core.sshCommand"]
    {
        git(folder, &["config", key, trap]);
    }
    git(folder, &["config", "filter.bad.one.required", "true"]);
    // The same length, so that git has to look into it.
    assert_eq!(changed(&harness, "echo -n new > file").await, ["file"]);
    assert!(!sprung.exists(), "{}", fs::read_to_string(&sprung).unwrap());
    // The traps are set: asked without care, git runs them.
    let status = Command::new("git").args(["status"]).current_dir(folder).output().unwrap();
    assert!(sprung.exists(), "{status:?}");
}
