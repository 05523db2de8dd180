//! The files that a run has changed, by git in a repository. Git is called in a way that runs no
//! program of the repository's own.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use holdpoint_common::{PolicyMode, Supplies};
use holdpoint_session::testing::{Harness, ScriptedModel, reply};
use holdpoint_session::{OpenSession, RunRequest};
use serde_json::json;

fn git(folder: &Path, args: &[&str]) {
    let mut command = Command::new("git");
    command
        .current_dir(folder)
        .env_clear()
        .env("PATH", std::env::var("PATH").unwrap())
        .env("HOME", folder);
    let who = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "init.defaultBranch=main"];
    let done = command.args(who).args(args).output().unwrap();
    assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
}

/// The changed files that are reported for a run of one iteration with this command.
async fn changed(harness: &Harness, command: &str) -> Vec<String> {
    changed_in(harness, harness.folder.path(), command).await
}

/// The same in another folder.
async fn changed_in(harness: &Harness, folder: &Path, command: &str) -> Vec<String> {
    changed_with(harness, folder, command, "/bin").await
}

/// The same with the folders `also` in the search path.
async fn changed_with(harness: &Harness, folder: &Path, command: &str, also: &str) -> Vec<String> {
    harness
        .model
        .then(reply().call("shell", json!({ "command": command })))
        .then(reply().text("done"));
    let open = OpenSession::in_folder(folder).model(ScriptedModel::NAME).policy(PolicyMode::All);
    // With this path, a program in the folder is found first.
    let path = format!("{}/.git/bin:{also}:{}", folder.display(), std::env::var("PATH").unwrap());
    let supplies = Supplies::env(vec![("PATH".to_owned(), path)]);
    let session = harness.sessions().with_supplies(supplies).open(open).await.unwrap();
    session.start_run(RunRequest::new("change something")).await.unwrap();
    let files = session.settled().await.unwrap().files_modified.clone();
    files.iter().cloned().collect()
}

#[tokio::test]
async fn m_d6_files_changed_by_a_command_in_a_repository_are_listed() {
    let harness = Harness::start();
    let folder = harness.folder.path();
    git(folder, &["init", "-q"]);
    fs::write(folder.join(".gitignore"), "built\n").unwrap();
    for file in ["kept", "changed", "removed", "mine", "moved", "undone"] {
        fs::write(folder.join(file), "old").unwrap();
    }
    git(folder, &["add", "."]);
    git(folder, &["commit", "-qm", "first"]);
    for file in ["mine", "undone"] {
        fs::write(folder.join(file), "changed before").unwrap();
    }
    let command = "echo new > changed; rm removed; mkdir -p 'a b'; echo x > 'a b/new'; echo x > built; git mv moved to; \
                   git checkout -q undone";
    assert_eq!(
        changed(&harness, command).await,
        ["a b/new", "changed", "moved", "removed", "to", "undone"]
    );
}

#[tokio::test]
async fn m_d6_files_changed_and_committed_at_once_are_listed() {
    let harness = Harness::start();
    let top = harness.folder.path();
    // The work folder is one of the repository's folders.
    let folder = top.join("part");
    fs::create_dir_all(folder.join("deep")).unwrap();
    git(top, &["init", "-q"]);
    git(top, &["config", "user.name", "t"]);
    git(top, &["config", "user.email", "t@t"]);
    let run = async |command: &str| changed_in(&harness, &folder, command).await;
    let commit = "git add -A . && git commit -qm one";
    fs::write(folder.join("mine"), "written before").unwrap();
    let first = run(&format!("echo a > made; echo b > 'deep/a b'; {commit}")).await;
    assert_eq!(first, ["deep/a b", "made"], "the first commit has an unchanged `mine`");
    fs::write(folder.join("mine"), "changed before").unwrap();
    let second = run(&format!(
        "rm made; echo c > other; echo d > ../beside; {commit}; {commit}; echo e >> other"
    ))
    .await;
    assert_eq!(second, ["made", "other"], "changes outside the folder do not count");
    assert_eq!(run("git commit -q --allow-empty -m none").await, Vec::<String>::new());
    assert_eq!(
        run("git checkout -qf HEAD~2").await,
        ["made", "mine", "other"],
        "a checkout changes the files of its commit"
    );
}

#[tokio::test]
async fn m_d6_without_a_repository_only_files_of_tools_are_listed() {
    let harness = Harness::start();
    assert_eq!(changed(&harness, "echo new > made").await, Vec::<String>::new());
}

#[tokio::test]
async fn m_d6_files_of_any_name_are_listed_and_submodules_are_left_out() {
    let harness = Harness::start();
    let folder = harness.folder.path();
    let sub = tempfile::tempdir().unwrap();
    for top in [folder, sub.path()] {
        git(top, &["init", "-q"]);
        fs::write(top.join("file"), "old").unwrap();
    }
    for name in ["new\nline", "\"quoted\"", "-dash", "tab\tand  spaces", "ünï", "gone\nfor good"]
    {
        fs::write(folder.join(name), "old").unwrap();
    }
    git(sub.path(), &["add", "."]);
    git(sub.path(), &["commit", "-qm", "theirs"]);
    let path = sub.path().to_str().unwrap();
    git(folder, &["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", path, "sub"]);
    git(folder, &["add", "."]);
    git(folder, &["commit", "-qm", "first"]);
    // The submodule's configuration is not trusted either.
    let sprung = sub.path().join("sprung");
    let trap = sub.path().join("trap");
    fs::write(&trap, format!("#!/bin/sh\ntouch {}\n", sprung.display())).unwrap();
    fs::set_permissions(&trap, fs::Permissions::from_mode(0o755)).unwrap();
    git(&folder.join("sub"), &["config", "core.fsmonitor", trap.to_str().unwrap()]);
    let command = "for name in 'new\nline' '\"quoted\"' -dash 'tab\tand  spaces' ünï fresh; do \
                   echo new > \"$(printf %b \"$name\")\"; done; rm gone*; echo new > sub/file";
    let seen = changed(&harness, command).await;
    assert_eq!(
        seen,
        ["\"quoted\"", "-dash", "fresh", "gone\nfor good", "new\nline", "tab\tand  spaces", "ünï"],
        "changes in the submodule do not count"
    );
    assert!(!sprung.exists());
}

/// A repository is not trusted: programs that it configures for git must not run.
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
    git(folder, &["checkout", "-qb", "other"]);
    fs::write(folder.join("later"), "new").unwrap();
    git(folder, &["add", "."]);
    git(folder, &["commit", "-qm", "second"]);
    git(folder, &["checkout", "-q", "main"]);
    fs::write(folder.join(".gitattributes"), "* filter=bad.one diff=bad\n").unwrap();
    let trap = trap.to_str().unwrap();
    let hooks = folder.join(".git/hooks");
    fs::create_dir_all(&hooks).unwrap();
    fs::copy(trap, hooks.join("post-index-change")).unwrap();
    for key in [
        "core.fsmonitor",
        "filter.bad.one.clean",
        "filter.bad.one.process",
        "diff.bad.textconv",
        "core.sshCommand",
    ] {
        git(folder, &["config", key, trap]);
    }
    git(folder, &["config", "filter.bad.one.required", "true"]);
    // A trap called git in the folder, found first; a link to it from outside; and a file called
    // git that is no program.
    fs::create_dir_all(folder.join(".git/bin")).unwrap();
    fs::copy(trap, folder.join(".git/bin/git")).unwrap();
    let (linked, none) = (traps.path().join("linked"), traps.path().join("none"));
    symlink(folder.join(".git/bin"), &linked).unwrap();
    fs::create_dir(&none).unwrap();
    fs::write(none.join("git"), "").unwrap();
    let also = format!("{}:{}", linked.display(), none.display());
    // Text of the same length, so that git must read the file; and another commit, made without
    // git, which would run the traps.
    let command = "echo -n new > file; cp .git/refs/heads/other .git/refs/heads/main";
    assert_eq!(changed_with(&harness, folder, command, &also).await, ["file", "later"]);
    assert!(!sprung.exists(), "{}", fs::read_to_string(&sprung).unwrap());
    // The traps are set: a plain `git status` runs them.
    let status = Command::new("git").args(["status"]).current_dir(folder).output().unwrap();
    assert!(sprung.exists(), "{status:?}");
}

/// The name of a filter may have any bytes.
#[tokio::test]
async fn no_filter_of_the_repository_is_run_whatever_its_name() {
    for name in [&b"\xff"[..], b"\xc3.\xfe", b"", b"x=y", b"Upper", "ü".as_bytes()] {
        let shown = name.escape_ascii();
        let harness = Harness::start();
        let folder = harness.folder.path();
        let outside = tempfile::tempdir().unwrap();
        let (sprung, trap) = (outside.path().join("sprung"), outside.path().join("trap"));
        fs::write(&trap, format!("#!/bin/sh\ntouch {}\ncat\n", sprung.display())).unwrap();
        fs::set_permissions(&trap, fs::Permissions::from_mode(0o755)).unwrap();
        git(folder, &["init", "-q"]);
        fs::write(folder.join("file"), "old").unwrap();
        git(folder, &["add", "."]);
        git(folder, &["commit", "-qm", "first"]);
        fs::write(folder.join(".gitattributes"), [b"file filter=", name, b"\n"].concat()).unwrap();
        let clean = format!("\"]\n\tclean = {}\n", trap.display());
        let mut config = fs::read(folder.join(".git/config")).unwrap();
        config.extend([b"[filter \"", name, clean.as_bytes()].concat());
        fs::write(folder.join(".git/config"), config).unwrap();
        // Text of the same length, so that git must read the file.
        let files = changed(&harness, "echo -n new > file").await;
        assert!(!sprung.exists(), "filter `{shown}`");
        assert_eq!(files, ["file"], "filter `{shown}`");
        let status = Command::new("git").args(["status"]).current_dir(folder).output().unwrap();
        assert!(sprung.exists(), "a plain `git status` runs filter `{shown}`: {status:?}");
    }
}

/// A missing object would have to be fetched, by a command that the repository chooses.
#[tokio::test]
async fn m_d6_nothing_is_fetched() {
    let harness = Harness::start();
    let folder = harness.folder.path();
    let outside = tempfile::tempdir().unwrap();
    let fetched = outside.path().join("fetched");
    git(folder, &["init", "-q"]);
    fs::write(folder.join("file"), "old").unwrap();
    git(folder, &["add", "."]);
    git(folder, &["commit", "-qm", "first"]);
    let url = format!("ext::sh -c touch% {}", fetched.display());
    for (key, value) in [
        ("core.repositoryFormatVersion", "1"),
        ("extensions.partialClone", "origin"),
        ("remote.origin.promisor", "true"),
        ("remote.origin.url", &url),
        ("protocol.ext.allow", "always"),
    ] {
        git(folder, &["config", key, value]);
    }
    let tree = Command::new("git")
        .args(["rev-parse", "HEAD^{tree}"])
        .current_dir(folder)
        .output()
        .unwrap();
    let tree = String::from_utf8(tree.stdout).unwrap();
    fs::remove_file(folder.join(".git/objects").join(&tree[..2]).join(tree[2..].trim())).unwrap();
    assert_eq!(changed(&harness, "echo new > file").await, Vec::<String>::new(), "git can't say");
    assert!(!fetched.exists());
    let status = Command::new("git").args(["status"]).current_dir(folder).output().unwrap();
    assert!(fetched.exists(), "without precautions git fetches: {status:?}");
}

/// A process can change the configuration while git runs, so that git runs a program of the folder.
/// That program is a process of a tool call, like any other that the agent starts.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn m_g1_git_has_a_supervisor() {
    let harness = Harness::start();
    git(harness.folder.path(), &["init", "-q"]);
    let found = Command::new("sh").args(["-c", "command -v git"]).output().unwrap().stdout;
    let (other, real) = (tempfile::tempdir().unwrap(), String::from_utf8(found).unwrap());
    let (wrapper, parents) = (other.path().join("git"), other.path().join("parents"));
    let script = format!(
        "#!/bin/sh\nps -o comm= -p $PPID >> {}\nexec {} \"$@\"\n",
        parents.display(),
        real.trim()
    );
    fs::write(&wrapper, script).unwrap();
    fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755)).unwrap();
    let also = other.path().to_str().unwrap();
    let changed = changed_with(&harness, harness.folder.path(), "echo new > made", also).await;
    assert_eq!(changed, ["made"]);
    let parents = fs::read_to_string(parents).unwrap();
    assert!(parents.lines().count() > 3, "{parents}");
    assert!(parents.lines().all(|parent| parent == holdpoint_tools::SUPERVISOR_NAME), "{parents}");
}
