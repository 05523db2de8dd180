//! Files in the place of the socket, and the length of the socket's path.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};

use rustix::process::Signal;

use super::harness::DaemonWorld;
use crate::world::wait;

/// Makes the socket's folder as a daemon does.
fn make_folder(house: &DaemonWorld) {
    let folder = house.socket().parent().unwrap().to_owned();
    fs::create_dir_all(&folder).unwrap();
    fs::set_permissions(&folder, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
}

#[test]
fn t_n2_leftovers_of_a_dead_daemon_do_not_prevent_a_start() {
    let house = DaemonWorld::new();
    let first = house.start();
    house.signal(Signal::KILL);
    house.wait_gone();
    assert!(
        fs::symlink_metadata(house.socket()).unwrap().file_type().is_socket(),
        "the daemon could not clean up"
    );
    // Its process id now belongs to another program.
    let mut other = Command::new("sleep").arg("1000").stdout(Stdio::null()).spawn().unwrap();
    let lock = house.data().join("daemon.lock");
    fs::write(
        &lock,
        fs::read_to_string(&lock).unwrap().replace(&first.to_string(), &other.id().to_string()),
    )
    .unwrap();
    house.run(&["status"]).code(3);
    assert!(house.run(&["daemon", "stop"]).code(0).out.contains("is not running"));
    house.run(&["daemon", "start"]).code(0);
    assert_ne!(house.pid(), first);
    assert_eq!(other.try_wait().unwrap(), None, "the other program is untouched");
    other.kill().unwrap();
    other.wait().unwrap();
}

#[test]
fn t_n4_a_file_in_the_place_of_the_socket_is_refused_and_kept() {
    type Make = fn(&std::path::Path);
    let things: [(&str, Make); 5] = [
        ("file", |path| fs::write(path, "mine").unwrap()),
        ("folder", |path| fs::create_dir(path).unwrap()),
        ("fifo", |path| assert!(Command::new("mkfifo").arg(path).status().unwrap().success())),
        ("dangling link", |path| std::os::unix::fs::symlink("nowhere", path).unwrap()),
        ("link to a file", |path| {
            fs::write(path.with_extension("target"), "mine").unwrap();
            std::os::unix::fs::symlink(path.with_extension("target"), path).unwrap();
        }),
    ];
    for (what, make) in things {
        let house = DaemonWorld::new();
        make_folder(&house);
        make(&house.socket());
        let before = fs::symlink_metadata(house.socket()).unwrap();
        house.refuses(1, &["is in the way"]);
        let after = fs::symlink_metadata(house.socket()).unwrap();
        assert_eq!(
            (before.file_type(), before.len()),
            (after.file_type(), after.len()),
            "{what} stays"
        );
    }
}

#[test]
fn t_n4_a_socket_that_another_program_listens_on_stays_its_own() {
    let house = DaemonWorld::new();
    make_folder(&house);
    let theirs = UnixListener::bind(house.socket()).unwrap();
    let mut daemon = house.0.command(&["daemon"]).spawn().unwrap();
    assert_eq!(wait(&mut daemon).code(), Some(1));
    theirs.set_nonblocking(true).unwrap();
    theirs.accept().expect("the socket is unchanged");
}

#[test]
fn m_e2_a_socket_path_that_is_too_long_is_an_error() {
    let house = DaemonWorld::new();
    // `/run/holdpoint.sock` is appended, and the limit is 107 bytes.
    let base = house.0.path("s").display().to_string();
    let dir = |length: usize| {
        format!("{base}{}", "x".repeat(length - base.len() - "/run/holdpoint.sock".len()))
    };
    for args in [&["daemon"][..], &["daemon", "start"], &["status"]] {
        let ran = house.run(&[&["--state-dir", &dir(108)], args].concat()).code(2);
        assert!(
            ran.err.contains("108 bytes") && ran.err.contains("107") && ran.err.contains("hint: "),
            "{ran:#?}"
        );
    }
    house.run(&["--state-dir", &dir(107), "daemon", "start"]).code(0);
    house.run(&["--state-dir", &dir(107), "daemon", "stop"]).code(0);
}

#[test]
fn a_state_folder_with_a_name_that_is_not_utf8_works() {
    let house = DaemonWorld::new();
    let mut folder = house.0.path("s").into_os_string();
    folder.push(OsStr::from_bytes(b"\xff"));
    for args in [&["daemon", "start"][..], &["list"], &["daemon", "stop"]] {
        let mut command = house.0.command(args);
        let output = command.arg("--state-dir").arg(&folder).output().unwrap();
        assert!(output.status.success(), "{args:?}: {output:#?}");
    }
}

#[test]
fn only_its_own_socket_is_removed_at_the_end() {
    let house = DaemonWorld::new();
    house.start();
    fs::remove_file(house.socket()).unwrap();
    fs::write(house.socket(), "mine").unwrap();
    house.signal(Signal::TERM);
    house.wait_gone();
    assert_eq!(fs::read_to_string(house.socket()).unwrap(), "mine");
}
