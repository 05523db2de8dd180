//! The program protects its own process and its configuration from other processes and users.

use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::net::UnixListener;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::geteuid;

use super::harness::DaemonWorld;
use crate::world::{Ran, is_root, program, wait};

const NOBODY: u32 = 65_534;

/// Starts a daemon, a client and another program, and prints those of their files in `/proc` that
/// another process of the same user can read.
const READER: &str = r#"
"$0" daemon start >/dev/null
daemon=$("$0" status --json | sed -n 's/.*"pid": \([0-9]*\).*/\1/p')
"$0" run --json 'ask_user {"kind": "confirm", "message": "?"}' >events 2>&- &
client=$!
# A client that has written has long protected its memory.
until [[ -s events ]]; do kill -0 $client || exit; sleep 0.01; done
sleep 600 &
other=$!
until [[ $(cat /proc/$other/comm) == sleep ]]; do sleep 0.01; done
readable() {
    local file
    for file in environ maps auxv; do
        head -c 1 /proc/$1/$file >/dev/null 2>&- && echo -n " $file"
    done
    for file in cwd root exe fd/0; do
        readlink /proc/$1/$file >/dev/null 2>&- && echo -n " $file"
    done
    (exec 3</proc/$1/mem) 2>&- && echo -n " mem"
    echo
}
for process in daemon client other; do
    echo "$process:$(readable ${!process})"
done
# A client that lives when the daemon is killed would start another one.
kill -9 $other $client
wait
"#;

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn m_g6_other_processes_of_the_user_can_not_read_its_memory() {
    let house = DaemonWorld::new();
    let mut reader = Command::new("bash");
    // Root may read everything.
    if geteuid().is_root() {
        for folder in ["", "home", "config", "config/holdpoint", "work"] {
            chown(house.0.path(folder), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        reader = Command::new("setpriv");
        reader.args(["--reuid=65534", "--regid=65534", "--clear-groups", "bash"]);
    }
    reader.args(["-c", READER]).arg(program());
    reader.env_clear().envs(house.0.env()).env("OPENAI_API_KEY", "sk-secret");
    reader.current_dir(house.0.path("work")).stdin(Stdio::null());
    let read = Ran::of(reader).out;
    let (ours, other) = read.split_at(read.find("other:").unwrap());
    assert_eq!(ours, "daemon:\nclient:\n");
    // Some systems let only parents read the memory of a process.
    let other = other.trim_end().trim_end_matches(" mem");
    assert_eq!(other, "other: environ maps auxv cwd root exe fd/0");
}

#[test]
fn m_g6_it_leaves_no_core_file() {
    let house = DaemonWorld::new();
    let dumped = |program: &str, args: &[&str]| {
        let mut shell = Command::new("bash");
        shell.args(["-c", "ulimit -c unlimited; exec \"$0\" \"$@\"", program]).args(args);
        shell.env_clear().envs(house.0.env()).current_dir(house.0.path("work"));
        let mut child = shell.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        // It has written, so it runs.
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, rustix::process::Signal::QUIT).unwrap();
        wait(&mut child).core_dumped()
    };
    if !dumped("yes", &[]) {
        println!("skipped: this system writes no core files");
        return;
    }
    assert!(!dumped(program().to_str().unwrap(), &["daemon"]));
    assert!(!dumped(program().to_str().unwrap(), &["run", "shell: yes"]));
}

/// The configuration names a command that the daemon runs, and the rules of the policy.
#[test]
fn m_g6_a_configuration_that_others_can_change_is_refused() {
    let house = DaemonWorld::new();
    let file = house.0.config("[notify]\ncommand = 'true'\n");
    let refused = |path: &Path, why: &str| {
        for args in [&["config", "show"][..], &["daemon", "start"], &["new"], &["list"]] {
            let ran = house.run(args).code(2);
            let (error, hint) = ran.err.split_once("\nhint: ").unwrap();
            assert_eq!(error, format!("error: {why}").replace("PATH", path.to_str().unwrap()));
            assert!(!hint.is_empty() && ran.out.is_empty(), "{ran:?}");
        }
    };
    let accepted = || {
        house.run(&["config", "show"]).code(0);
    };
    let world = file.ancestors().nth(3).unwrap().to_owned();
    for (path, usual) in [
        (file.clone(), 0o644),
        (house.0.path("config/holdpoint"), 0o755),
        (house.0.path("config"), 0o755),
        (world, 0o755),
    ] {
        set_mode(&path, usual | 0o002);
        refused(&path, &format!("other users can write to PATH (mode {:04o})", usual | 0o002));
        set_mode(&path, usual);
        accepted();
    }
    // In a folder like `/tmp`, others can't replace the files.
    set_mode(&house.0.path("config"), 0o1777);
    accepted();
    // A pipe would block, and its writer can move it away before it is checked.
    fs::rename(&file, house.0.path("kept")).unwrap();
    assert!(Command::new("mkfifo").arg(&file).status().unwrap().success());
    set_mode(&file, 0o666);
    refused(&file, "other users can write to PATH (mode 0666)");
    fs::rename(house.0.path("kept"), &file).unwrap();
    // Links lead through a folder that others can write to.
    let (open, link) = (house.0.path("open"), house.0.path("open/link"));
    fs::create_dir(&open).unwrap();
    fs::rename(&file, house.0.path("real")).unwrap();
    symlink("../real", &link).unwrap();
    symlink(&link, &file).unwrap();
    accepted();
    set_mode(&open, 0o777);
    refused(&open, "other users can write to PATH (mode 0777)");
    set_mode(&open, 0o755);
    if is_root() {
        for (path, name) in [(&open, "open"), (&house.0.path("real"), "real")] {
            chown(path, Some(NOBODY), None).unwrap();
            let ran = house.run(&["config", "show"]).code(2);
            let found = format!("{name} belongs to another user (uid 65534)\nhint: ");
            assert!(ran.err.contains(&found), "{ran:?}");
            chown(path, Some(0), None).unwrap();
        }
        // The group `nogroup` may have any members.
        chown(&open, None, Some(NOBODY)).unwrap();
        set_mode(&open, 0o775);
        refused(&open, "other users can write to PATH (mode 0775)");
        // The user's own group has no others.
        chown(&open, None, Some(0)).unwrap();
        accepted();
    }
}

/// A process of another user may listen at the path of the socket.
#[test]
fn m_g6_another_users_process_gets_no_key() {
    if !is_root() {
        return;
    }
    let house = DaemonWorld::new();
    let socket = house.socket();
    // A configuration in such a folder is refused.
    fs::remove_file(house.0.path("config/holdpoint/config.toml")).unwrap();
    fs::create_dir_all(socket.parent().unwrap()).unwrap();
    for folder in ["", "run", "run/holdpoint"] {
        set_mode(&house.0.path(folder), 0o777);
    }
    let listening = std::thread::spawn(move || {
        // This changes the user of this thread alone.
        rustix::thread::set_thread_uid(rustix::process::Uid::from_raw(NOBODY)).unwrap();
        UnixListener::bind(socket).unwrap()
    });
    let listener = listening.join().unwrap();
    let received = std::thread::spawn(move || {
        let mut received = String::new();
        listener.accept().unwrap().0.read_to_string(&mut received).unwrap();
        received
    });
    let ran = house.run(&["new", "say Hello."]);
    assert!(ran.err.contains("another user (uid 65534) listens there"), "{ran:?}");
    assert_ne!(ran.code, Some(0));
    assert_eq!(received.join().unwrap(), "");
}

#[test]
fn m_g6_a_state_folder_that_others_can_replace_is_refused() {
    let house = DaemonWorld::new();
    let open = house.0.work("open");
    fs::create_dir(&open).unwrap();
    set_mode(&open, 0o777);
    for state in ["open/state", "open/new/state"] {
        for args in [&["run", "say Hello."][..], &["daemon", "start"]] {
            let ran = house.run(&[&["--state-dir", state], args].concat()).code(2);
            let found = format!("error: other users can write to {} (mode 0777)", open.display());
            assert!(ran.err.starts_with(&found) && ran.err.contains("\nhint: "), "{ran:?}");
            assert_eq!(fs::read_dir(&open).unwrap().count(), 0);
        }
    }
    set_mode(&open, 0o1777);
    house.run(&["--state-dir", "open/state", "daemon", "start"]).code(0);
    house.run(&["--state-dir", "open/state", "daemon", "stop"]).code(0);
}

#[test]
fn m_g6_a_program_of_the_workspace_runs_by_its_name_only_if_the_path_names_its_folder() {
    let house = DaemonWorld::new();
    fs::create_dir(house.0.work("bin")).unwrap();
    fs::write(house.0.work("bin/greet"), "#!/bin/sh\necho greeted\n").unwrap();
    set_mode(&house.0.work("bin/greet"), 0o755);
    symlink(house.0.path("work"), house.0.path("linked")).unwrap();
    let named = house.0.work("bin").canonicalize().unwrap().display().to_string();
    let linked = house.0.path("linked/bin").display().to_string();
    for (entry, runs) in [(&*named, true), (&*linked, true), ("/proc/self/cwd/bin", false)] {
        let mut command = house.0.command(&["run", "--policy", "all", "shell: greet"]);
        command.env("PATH", format!("{entry}:{}", std::env::var("PATH").unwrap()));
        let ran = Ran::of(command).code(0);
        let (greeted, missing) =
            (ran.err.contains("greeted"), ran.err.contains("greet: command not found"));
        assert_eq!((greeted, missing), (runs, !runs), "{entry}: {ran:?}");
    }
}

/// How often the memory of a process contains `text`.
fn occurrences(pid: u32, text: &str) -> usize {
    let mut memory = fs::File::open(format!("/proc/{pid}/mem")).unwrap();
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let mut found = 0;
    for map in maps.lines().filter(|map| map.contains(" rw")) {
        let (from, to) = map.split_once(' ').unwrap().0.split_once('-').unwrap();
        let [from, to] = [from, to].map(|at| u64::from_str_radix(at, 16).unwrap());
        let mut bytes = vec![0; usize::try_from(to - from).unwrap()];
        // Part of the memory may be gone by now.
        let read = memory.seek(SeekFrom::Start(from)).and_then(|_| memory.read_exact(&mut bytes));
        if read.is_ok() {
            found += bytes.windows(text.len()).filter(|window| *window == text.as_bytes()).count();
        }
    }
    found
}

#[test]
fn m_g6_a_client_sends_the_daemon_no_variables_that_sessions_do_not_use() {
    if !is_root() {
        return;
    }
    let house = DaemonWorld::new();
    let daemon = house.start();
    let mut command = house.0.command(&["run", "say Hello."]);
    command.env("LC_USED", "needle-that-is-used").env("DEPLOY_TOKEN", "needle-that-is-secret");
    Ran::of(command).code(0);
    assert_ne!(occurrences(daemon, "needle-that-is-used"), 0);
    assert_eq!(occurrences(daemon, "needle-that-is-secret"), 0);
}
