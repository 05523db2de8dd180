//! The daemon and its files are private to their user.

use std::fs;
use std::io::ErrorKind;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::inotify::{self, ReadFlags, WatchFlags};
use rustix::process::{Uid, geteuid};

use super::harness::{DaemonWorld, ask};
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
    let (mut seen, mut reported) = (0, 0);
    for round in 0..rounds(20, 200) {
        let house = DaemonWorld::new();
        let (folder, socket) = (house.socket().parent().unwrap().to_owned(), house.socket());
        // Made before the daemon starts, so that the watch reports everything made inside.
        let above = folder.parent().unwrap();
        fs::create_dir(above).unwrap();
        let done = AtomicBool::new(false);
        seen += std::thread::scope(|scope| {
            let watched = scope.spawn(|| {
                let mut seen = 0;
                let mut changes = Changes::of(above);
                while !done.load(Ordering::Relaxed) {
                    // After each event, the modes are checked once more.
                    for (name, changed) in changes.next() {
                        if name == "holdpoint" {
                            changes.watch(&folder);
                        }
                        let private = changed.contains(ReadFlags::ATTRIB);
                        assert!(!private, "round {round}: {name} was created with another mode");
                        reported += usize::from(name.ends_with(".sock"));
                    }
                    assert!(
                        mode(&folder).is_none_or(|mode| mode == 0o700),
                        "round {round}: the folder"
                    );
                    assert!(
                        mode(&house.data()).is_none_or(|mode| mode == 0o700),
                        "round {round}: the data"
                    );
                    if let Some(mode) = mode(&socket) {
                        assert_eq!(mode, 0o600, "round {round}: the socket");
                        seen += 1;
                    }
                }
                seen
            });
            let started = house.with_open_umask(&["daemon", "start"]).output().unwrap();
            done.store(true, Ordering::Relaxed);
            assert!(started.status.success(), "{started:?}");
            watched.join().unwrap()
        });
    }
    assert!(seen > 0, "the socket was looked at while daemons started");
    assert!(reported > 0, "its creation was reported");
}

/// Changes of folders, as inotify reports them.
struct Changes(OwnedFd);

impl Changes {
    fn of(folder: &Path) -> Self {
        let changes = Self(inotify::init(inotify::CreateFlags::NONBLOCK).unwrap());
        changes.watch(folder);
        changes
    }

    fn watch(&self, folder: &Path) {
        let all = WatchFlags::CREATE | WatchFlags::MOVED_TO | WatchFlags::ATTRIB;
        // The folder may be gone again.
        let _ = inotify::add_watch(&self.0, folder, all);
    }

    /// Files that were made or got another mode since the last call.
    fn next(&mut self) -> Vec<(String, ReadFlags)> {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(&self.0, &mut buffer);
        let mut all = Vec::new();
        while let Ok(event) = reader.next() {
            let name = event
                .file_name()
                .map(|name| name.to_string_lossy().into_owned())
                .unwrap_or_default();
            all.push((name, event.events()));
        }
        all
    }
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
    let house = DaemonWorld::new();
    assert!(house.with_open_umask(&["daemon", "start"]).status().unwrap().success());
    walk(&house.data());
    walk(house.socket().parent().unwrap());
}

#[test]
fn t_h4_a_folder_open_to_others_is_refused() {
    let house = DaemonWorld::new();
    house.start();
    house.run(&["daemon", "stop"]).code(0);
    let runtime = house.socket().parent().unwrap().to_owned();
    for folder in [house.data(), house.data().join("logs"), house.data().join("run"), runtime] {
        for wider in [0o750, 0o705, 0o701, 0o777] {
            set_mode(&folder, wider);
            house.refuses(2, &[&format!("mode 0{wider:o}"), "chmod 700"]);
            assert_eq!(mode(&folder), Some(wider), "the mode is unchanged");
        }
        set_mode(&folder, 0o700);
    }
    if geteuid().is_root() {
        chown(house.data(), Some(NOBODY), None).unwrap();
        house.refuses(2, &["belongs to another user"]);
    }
}

#[test]
fn t_h4_a_file_open_to_others_or_a_link_is_refused() {
    let house = DaemonWorld::new();
    house.start();
    house.run(&["daemon", "stop"]).code(0);
    for file in ["daemon.lock", "logs/daemon.log", "sessions.db"] {
        let path = house.data().join(file);
        for wider in [0o640, 0o604, 0o666] {
            set_mode(&path, wider);
            house.refuses(2, &[&format!("mode 0{wider:o}"), "chmod 600"]);
            assert_eq!(mode(&path), Some(wider), "the mode is unchanged");
        }
        set_mode(&path, 0o600);
    }
    let start = house.data().join("start.lock");
    set_mode(&start, 0o666);
    assert!(house.run(&["daemon", "start"]).code(2).err.contains("start.lock"));
    set_mode(&start, 0o600);
    // A link planted there would redirect the write to its target.
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
fn t_f2_another_user_is_refused_by_peer_credentials() {
    if !geteuid().is_root() {
        println!("skipped: to be another user takes root");
        return;
    }
    let house = DaemonWorld::new();
    house.start();
    let folder = house.socket().parent().unwrap().to_owned();
    for above in folder.ancestors().skip(1).take_while(|above| above.starts_with(house.0.path("")))
    {
        set_mode(above, 0o755);
    }
    let connect = || {
        let socket = house.socket();
        let connected = std::thread::spawn(move || {
            // This changes the user of this thread alone.
            rustix::thread::set_thread_uid(Uid::from_raw(NOBODY)).unwrap();
            UnixStream::connect(socket)
        });
        connected.join().unwrap()
    };
    // With the folder's usual mode, and with a folder that is open to all: other users can't
    // connect.
    for open in [0o700, 0o755] {
        set_mode(&folder, open);
        assert_eq!(connect().unwrap_err().kind(), ErrorKind::PermissionDenied, "{open:o}");
    }
    // By mistake, everything is open to all.
    set_mode(&house.socket(), 0o777);
    let answer = ask(connect().unwrap(), "/v1/status", "");
    assert!(answer.starts_with("HTTP/1.1 403") && !answer.contains("pid"), "{answer}");
    let ours = ask(UnixStream::connect(house.socket()).unwrap(), "/v1/status", "");
    assert!(ours.starts_with("HTTP/1.1 200"), "{ours}");
    let log = house.last_words();
    assert!(
        log.lines().any(|line| line.contains("refused") && line.contains("uid 65534")),
        "{log}"
    );
}
