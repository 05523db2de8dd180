//! Folders of another user, as under `sudo -E` and `su`: the program makes no file in them.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;
use std::process::Command;

use crate::world::{Ran, World, is_root, program};

const OTHER: u32 = 65_534;

/// The paths below a folder, with their owners.
fn below(folder: &Path) -> BTreeMap<String, u32> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        all.insert(entry.path().display().to_string(), entry.metadata().unwrap().uid());
        if entry.file_type().unwrap().is_dir() {
            all.extend(below(&entry.path()));
        }
    }
    all
}

/// A world with folders that another user may enter; those in `theirs` belong to that user.
fn world(theirs: &[&str]) -> World {
    let world = World::new();
    fs::set_permissions(world.path(""), fs::Permissions::from_mode(0o755)).unwrap();
    for folder in theirs {
        fs::create_dir_all(world.path(folder)).unwrap();
        chown(world.path(folder), Some(OTHER), Some(OTHER)).unwrap();
    }
    world
}

/// Runs the program with only `PATH` and these folders in its environment.
fn command(world: &World, before: &[&str], variables: &[(&str, &str)], args: &[&str]) -> Command {
    let mut words =
        before.iter().copied().chain([program().to_str().unwrap()]).chain(args.iter().copied());
    let mut command = Command::new(words.next().unwrap());
    command.args(words).current_dir("/").env_clear().env("PATH", std::env::var("PATH").unwrap());
    command.envs(variables.iter().map(|(name, folder)| (name, world.path(folder))));
    command
}

#[test]
fn t_h4_root_makes_nothing_in_another_users_folders() {
    if !is_root() {
        return;
    }
    let home = ("HOME", "home");
    for (theirs, variables, named) in [
        // `sudo -E`, in a home that already has more or less of the state folder.
        (&["home"][..], &[home][..], "home"),
        (&["home", "home/.local"], &[home], "home/.local"),
        (&["home", "home/.local/share"], &[home], "home/.local/share"),
        (
            &["home", "home/.local/share", "home/.local/share/holdpoint"],
            &[home],
            "home/.local/share",
        ),
        // `su`, which keeps these variables.
        (&["run"], &[home, ("XDG_RUNTIME_DIR", "run")], "run"),
        (&["run", "run/holdpoint"], &[home, ("XDG_RUNTIME_DIR", "run")], "run"),
        (&["data"], &[home, ("XDG_DATA_HOME", "data")], "data"),
        (&["data/holdpoint"], &[home, ("XDG_DATA_HOME", "data")], "data/holdpoint"),
    ] {
        let world = world(theirs);
        let before = below(&world.path(""));
        for args in [
            // First, because it returns, and leaves a daemon only briefly if it is not refused.
            &["daemon", "start", "--idle-stop", "1s"][..],
            &["daemon"],
            &["run", "echo"],
            &["loop", "--goal", "echo"],
            &["new", "echo"],
            &["list"],
            &["attach", "x"],
            &["inbox"],
            &["logs", "x"],
            &[],
        ] {
            let ran = Ran::of(command(&world, &[], variables, args));
            let (error, hint) =
                ran.err.split_once("hint: ").unwrap_or_else(|| panic!("{args:?}: {ran:?}"));
            let expected =
                format!("{} belongs to another user (uid {OTHER})", world.path(named).display());
            assert!(
                ran.code == Some(2) && error.contains(&expected),
                "{theirs:?} {args:?}: {ran:?}"
            );
            assert!(hint.contains("--state-dir") && hint.contains("sudo -H"), "{args:?}: {ran:?}");
            assert_eq!(below(&world.path("")), before, "{theirs:?} {args:?}");
        }
    }
}

#[test]
fn t_h4_root_makes_no_state_in_another_users_folder() {
    if !is_root() {
        return;
    }
    let world = world(&["theirs", "theirs/state"]);
    let before = below(&world.path("theirs"));
    for dir in ["theirs/new", "theirs/new/below", "theirs/state"] {
        let dir = world.path(dir).display().to_string();
        let ran = Ran::of(command(
            &world,
            &[],
            &[("HOME", "home")],
            &["--state-dir", &dir, "daemon", "start", "--idle-stop", "1s"],
        ));
        assert!(
            ran.code == Some(2) && ran.err.contains("belongs to another user"),
            "{dir}: {ran:?}"
        );
    }
    assert_eq!(below(&world.path("theirs")), before);
}

#[test]
fn t_h4_the_other_user_has_a_daemon_there_and_root_has_one_elsewhere() {
    if !is_root() {
        return;
    }
    let other = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"];
    let may_run = Command::new(other[0])
        .args(&other[1..])
        .args(["test", "-x"])
        .arg(program())
        .status()
        .unwrap();
    if !may_run.success() {
        println!("skipped: another user may not run {}", program().display());
        return;
    }
    let world = world(&["home", "run"]);
    let variables = [("HOME", "home"), ("XDG_RUNTIME_DIR", "run")];
    Ran::of(command(&world, &other, &variables, &["daemon", "start"])).code(0);
    let before = below(&world.path(""));
    assert!(before.keys().any(|path| path.ends_with("run/holdpoint/holdpoint.sock")), "{before:?}");
    let theirs = |path: &str| path.contains("/home/") || path.contains("/run/");
    assert!(before.iter().all(|(path, uid)| !theirs(path) || *uid == OTHER), "{before:?}");
    // Root can't use that daemon and leaves it as it is.
    for args in [&["daemon", "start"][..], &["list"], &["run", "echo"]] {
        let ran = Ran::of(command(&world, &[], &variables, args));
        assert!(ran.code != Some(0) && ran.err.contains("another user"), "{args:?}: {ran:?}");
    }
    let state = world.path("state").display().to_string();
    for args in [["daemon", "start"], ["daemon", "stop"]] {
        let args = [&["--state-dir", &state][..], &args].concat();
        Ran::of(command(&world, &[], &variables, &args)).code(0);
    }
    Ran::of(command(&world, &other, &variables, &["daemon", "stop"])).code(0);
    let after = below(&world.path(""));
    assert!(after.iter().all(|(path, uid)| !theirs(path) || *uid == OTHER), "{after:?}");
    assert_eq!(fs::metadata(&state).unwrap().uid(), 0);
}
