//! Nobody but its user gets at the daemon and its files.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::{Uid, geteuid};

use crate::house::{House, ask};
use crate::world::rounds;

const NOBODY: u32 = 65_534;

fn mode(path: &Path) -> Option<u32> {
    fs::symlink_metadata(path).ok().map(|found| found.mode() & 0o777)
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn t_f1_folders_and_socket_are_private_at_every_moment() {
    let mut seen = 0;
    for round in 0..rounds(20, 200) {
        let house = House::new();
        let (folder, socket) = (house.socket().parent().unwrap().to_owned(), house.socket());
        let done = AtomicBool::new(false);
        seen += std::thread::scope(|scope| {
            let watched = scope.spawn(|| {
                let mut seen = 0;
                while !done.load(Ordering::Relaxed) {
                    assert!(mode(&folder).is_none_or(|mode| mode == 0o700), "round {round}: the folder");
                    assert!(mode(&house.data()).is_none_or(|mode| mode == 0o700), "round {round}: the data");
                    if let Some(mode) = mode(&socket) {
                        assert_eq!(mode, 0o600, "round {round}: the socket");
                        seen += 1;
                    }
                }
                seen
            });
            let started = house.open_handed(&["daemon", "start"]).output().unwrap();
            done.store(true, Ordering::Relaxed);
            assert!(started.status.success(), "{started:?}");
            watched.join().unwrap()
        });
    }
    assert!(seen > 0, "the socket was looked at while daemons started");
}

#[test]
fn t_h4_all_files_of_the_state_are_private_under_any_umask() {
    fn walk(path: &Path) {
        let found = fs::symlink_metadata(path).unwrap();
        let expected = if found.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(found.mode() & 0o777, expected, "{}", path.display());
        if found.is_dir() {
            fs::read_dir(path).unwrap().for_each(|entry| walk(&entry.unwrap().path()));
        }
    }
    let house = House::new();
    assert!(house.open_handed(&["daemon", "start"]).status().unwrap().success());
    walk(&house.data());
    walk(house.socket().parent().unwrap());
}

#[test]
fn t_h4_a_folder_that_others_get_into_is_refused() {
    let house = House::new();
    house.start();
    house.run(&["daemon", "stop"]).code(0);
    let runtime = house.socket().parent().unwrap().to_owned();
    for folder in [house.data(), house.data().join("logs"), house.data().join("run"), runtime] {
        for wider in [0o750, 0o705, 0o701, 0o777] {
            set_mode(&folder, wider);
            house.refuses(2, &[&format!("mode 0{wider:o}"), "chmod 700"]);
            assert_eq!(mode(&folder), Some(wider), "it is left as it is");
        }
        set_mode(&folder, 0o700);
    }
    if geteuid().is_root() {
        chown(house.data(), Some(NOBODY), None).unwrap();
        house.refuses(2, &["belongs to somebody else"]);
    }
}

#[test]
fn t_h4_a_file_that_others_get_at_or_that_is_a_link_is_refused() {
    let house = House::new();
    house.start();
    house.run(&["daemon", "stop"]).code(0);
    for file in ["daemon.lock", "logs/daemon.log", "sessions.db"] {
        let path = house.data().join(file);
        for wider in [0o640, 0o604, 0o666] {
            set_mode(&path, wider);
            house.refuses(2, &[&format!("mode 0{wider:o}"), "chmod 600"]);
            assert_eq!(mode(&path), Some(wider), "it is left as it is");
        }
        set_mode(&path, 0o600);
    }
    let start = house.data().join("start.lock");
    set_mode(&start, 0o666);
    assert!(house.run(&["daemon", "start"]).code(2).err.contains("start.lock"));
    set_mode(&start, 0o600);
    // Whoever could put a link there would have what it points to written over.
    let victim = house.0.path("victim");
    fs::write(&victim, "mine").unwrap();
    set_mode(&victim, 0o600);
    for file in ["daemon.lock", "logs/daemon.log"] {
        let path = house.data().join(file);
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(&victim, &path).unwrap();
        house.refuses(2, &["is a link"]);
        fs::remove_file(&path).unwrap();
    }
    assert_eq!(fs::read_to_string(&victim).unwrap(), "mine");
    house.start();
}

#[test]
fn t_f2_another_user_is_refused_by_the_kernels_word() {
    if !geteuid().is_root() {
        println!("left out: to be another user takes root");
        return;
    }
    let house = House::new();
    house.start();
    // By mistake, everything stands open.
    let mut folder = house.socket();
    set_mode(&folder, 0o777);
    while folder.pop() && folder.starts_with(house.0.path("")) {
        set_mode(&folder, 0o755);
    }
    let socket = house.socket();
    let answer = std::thread::spawn(move || {
        // Of this thread alone.
        rustix::thread::set_thread_uid(Uid::from_raw(NOBODY)).unwrap();
        ask(UnixStream::connect(socket).unwrap(), "/v1/status", "")
    });
    let answer = answer.join().unwrap();
    assert!(answer.starts_with("HTTP/1.1 403") && !answer.contains("pid"), "{answer}");
    let ours = ask(UnixStream::connect(house.socket()).unwrap(), "/v1/status", "");
    assert!(ours.starts_with("HTTP/1.1 200"), "{ours}");
    let log = house.last_words();
    assert!(log.lines().any(|line| line.contains("refused") && line.contains("uid 65534")), "{log}");
}
