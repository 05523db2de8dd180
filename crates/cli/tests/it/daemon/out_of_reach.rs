//! A command in a sandbox does not reach the process of the daemon, or other sessions.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::json;

use super::client::Api;
use super::harness::DaemonWorld;
use super::sandbox::open_under;
use crate::world::{World, is_root};

const LEVELS: [&str; 3] = ["off", "landlock", "bwrap"];

/// A world in a folder that no other one replaces in the sandbox, with a running daemon.
fn visible() -> DaemonWorld {
    let house = DaemonWorld(World::within(Path::new("/var/tmp")));
    house.start();
    house
}

/// Runs a command of a session, and returns its output.
fn output(house: &DaemonWorld, session: &str, command: &str) -> String {
    let api = Api::new(house);
    let _ = fs::remove_file(house.0.work("out"));
    let command = format!("{{ {command}; echo end; }} > out 2> errors");
    api.prompt(session, &format!("call shell {}", json!({ "command": command })));
    api.settled(session);
    let out = String::from_utf8_lossy(&fs::read(house.0.work("out")).unwrap()).into_owned();
    out.strip_suffix("end\n").unwrap_or_else(|| panic!("{out}")).to_owned()
}

/// Prints each way in which a process is reached. The first needs the permission to read it, the
/// others that to change it.
const WAYS: &str = r#"
my ($pid, $file, $ptrace) = @ARGV;
my $proc = "/proc/$pid";
sub reads { my $b; open(F, "<", "$proc/$_[0]") and sysread(F, $b, 1) }
sub way { print "$_[0]\n" if $_[1] }
way("environ", reads("environ"));
way("maps", reads("maps"));
way("thread", reads("task/$pid/environ"));
opendir(D, "$proc/fd");
way("fd", scalar(grep { defined readlink("$proc/fd/$_") } readdir(D)));
way($_, defined readlink("$proc/$_")) for ("root", "cwd", "exe");
way("into root", reads("root$file"));
way("into cwd", opendir(D, "$proc/cwd/"));
way("mem", open(F, "<", "$proc/mem"));
way("mem to write", open(F, "+<", "$proc/mem"));
way("pidfd_getfd", syscall(438, syscall(434, $pid + 0, 0), 0, 0) >= 0);
way("ptrace", syscall($ptrace, 0x4206, $pid + 0, 0, 0) == 0);
"#;

const READING: [&str; 9] =
    ["environ", "maps", "thread", "fd", "root", "cwd", "exe", "into root", "into cwd"];
const CHANGING: [&str; 4] = ["mem", "mem to write", "pidfd_getfd", "ptrace"];

/// The control is the same command without a sandbox. It reaches another process of the user, and
/// the daemon of root, as `docs/security.md` says.
#[test]
fn m_g2_a_command_reaches_nothing_of_the_process_of_the_daemon() {
    let house = visible();
    let daemon = house.pid();
    fs::write(house.0.work("ways.pl"), WAYS).unwrap();
    let mut other = Command::new("cat");
    // It ends with this process, even if the test fails.
    let mut other =
        other.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let ptrace = if cfg!(target_arch = "x86_64") { 101 } else { 117 };
    let all = [&READING[..], &CHANGING].concat();
    for level in LEVELS {
        let session = open_under("all", &house, &json!({ "level": level }));
        for pid in [daemon, other.id()] {
            let lock = house.data().join("daemon.lock");
            let command = format!("perl ways.pl {pid} {} {ptrace}", lock.display());
            let out = output(&house, &session, &command);
            let reached: Vec<_> = out.lines().collect();
            match (level, pid == daemon) {
                // Another process of a user may not be traced where the system forbids it.
                ("off", false) if !is_root() => assert_eq!(reached[..READING.len()], READING),
                ("off", false) => assert_eq!(reached, all),
                ("off", true) if is_root() => assert_eq!(reached, all),
                _ => assert!(reached.is_empty(), "{level}, {pid}: {reached:?}"),
            }
        }
    }
    assert_eq!(house.pid(), daemon);
    drop(other.stdin.take());
    assert!(other.wait().unwrap().success());
}

/// The files of a session that has a secret in every folder of its own.
struct Other {
    session: String,
    /// The secret, which no command line contains.
    secret: String,
    /// The files that contain it, by their real paths.
    files: Vec<String>,
    /// Those of them that only this session changes.
    own: Vec<String>,
}

/// Opens a session in another workspace, and has it leave its secret.
fn other(house: &DaemonWorld, level: &str) -> Other {
    let api = Api::new(house);
    let workspace = house.0.path(&format!("other-{level}"));
    fs::create_dir_all(&workspace).unwrap();
    let secret = format!("SECRET-{level}");
    fs::write(workspace.join("secret"), format!("{secret}\n")).unwrap();
    let body = json!({
        "workspace": workspace,
        "policy": "sandboxed",
        "model": "rehearsal",
        "sandbox": { "level": level },
        "supplies": api.supplies(),
    });
    let session = api.post("sessions", &body).ok()["settings"]["id"].as_str().unwrap().to_owned();
    let command = "cp secret ${TMPDIR:-/tmp}/file; mkdir -p $XDG_CACHE_HOME
        cp secret $XDG_CACHE_HOME/file; cat secret > AGENTS.md; cat secret";
    api.prompt(&session, &format!("call shell {}", json!({ "command": command })));
    let ask = api.asks(&session, 1).remove(0);
    api.answer(&ask, &json!({ "type": "deny" })).ok();
    api.settled(&session);
    api.wait_saved(&session);
    let mut grep = Command::new("grep");
    let found = grep.arg("-rlaF").arg(&secret).arg(house.data()).output().unwrap();
    let found = String::from_utf8(found.stdout).unwrap();
    let files: Vec<_> = found.lines().map(str::to_owned).collect();
    for folder in ["sandbox/tmp/", "sandbox/caches/", "sandbox/aside/", "sessions"] {
        assert!(files.iter().any(|file| file.contains(folder)), "{folder}: {files:?}");
    }
    let own = files.iter().filter(|file| file.contains("/sandbox/")).cloned().collect();
    Other { session, secret, files, own }
}

#[test]
fn m_g2_a_command_reaches_nothing_of_another_session() {
    let house = visible();
    for other_level in ["landlock", "bwrap"] {
        let Other { session: other, secret, files, own } = other(&house, other_level);
        let contents = || own.iter().map(|file| fs::read(file).unwrap()).collect::<Vec<_>>();
        let before = contents();
        let data = house.data();
        let data = data.display();
        for level in ["landlock", "bwrap", "off"] {
            let session = open_under("all", &house, &json!({ "level": level }));
            let is_off = level == "off";
            let reads = |command: &str| output(&house, &session, command).contains(&secret);
            // Without a sandbox, the daemon's own files change meanwhile.
            for file in if is_off { &own } else { &files } {
                assert_eq!(reads(&format!("cat '{file}'")), is_off, "{level}: {file}");
                let copied = format!("ln -s '{file}' l; cat l; rm l; cp '{file}' c && cat c; rm c");
                assert_eq!(reads(&copied), is_off, "{level}: {file}");
            }
            for command in [
                format!("grep -rha SECRET {data}"),
                format!(
                    "cat /tmp/file ${{TMPDIR:-/tmp}}/../{other}/file {data}/sandbox/tmp/*/file"
                ),
                "cat $XDG_CACHE_HOME/file $XDG_CACHE_HOME/../../../*/named/xdg/file".to_owned(),
                format!("cat /proc/*/root{data}/sandbox/tmp/{other}/file"),
            ] {
                assert!(is_off || !reads(&command), "{level}: {command}");
            }
            assert_eq!(reads(&format!("grep -rha SECRET {data}")), is_off, "{level}");
            if !is_off {
                for file in &files {
                    let folder = Path::new(file).parent().unwrap().display();
                    let command = format!(
                        "echo x >> '{file}'; rm -f '{file}'; mv '{folder}' m; touch '{folder}/new'"
                    );
                    output(&house, &session, &command);
                    assert!(!Path::new(&format!("{folder}/new")).exists(), "{level}: {folder}");
                }
                assert!(contents() == before, "{level}: {own:?}");
                assert!(files.iter().all(|file| Path::new(file).exists()), "{level}: {files:?}");
            }
        }
    }
    // The control: without a sandbox, the files can be changed.
    let Other { own, .. } = other(&house, "landlock");
    let session = open_under("all", &house, &json!({ "level": "off" }));
    for file in &own {
        output(&house, &session, &format!("rm -f '{file}'"));
        assert!(!Path::new(file).exists(), "{file}");
    }
}
