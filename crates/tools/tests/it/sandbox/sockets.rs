//! Sockets of other programs: of services that would start a process outside of the sandbox, and of
//! agents that use keys.

use std::fs;
use std::io::Write;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, chown, symlink};
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use holdpoint_common::SandboxLevel;
use holdpoint_tools::Read;
use holdpoint_tools::testing::patience;
use rustix::process::geteuid;

use super::{World, accept_all, check, read_all};
use crate::guard::network;

/// The attacks that connect to a socket, or send to it. `name` is an expression of Perl.
fn attacks(name: &str) -> [String; 2] {
    let perl = |body: &str| format!("perl -MSocket -e '{body} and print \"REACHED\"'");
    let to = format!("pack_sockaddr_un({name})");
    [
        perl(&format!("socket(S, AF_UNIX, SOCK_STREAM, 0) and connect(S, {to})")),
        // The kernel takes "raw" for datagrams.
        perl(&format!("(socketpair(A, B, AF_UNIX, SOCK_RAW, 0) and send(A, \"x\", 0, {to}))")),
    ]
}

/// The sockets of well-known services, and others in their folders: the program, its folder, and
/// its name there. `RUNTIME` is the folder of the user in `/run`.
const SERVICES: [(&str, &str, &str); 18] = [
    ("systemd-run --user", "RUNTIME", "systemd/private"),
    ("systemd-run --user", "RUNTIME", "bus"),
    ("systemd-run", "/run", "systemd/private"),
    ("D-Bus", "/run", "dbus/system_bus_socket"),
    ("D-Bus", "/tmp", "dbus-socket"),
    ("docker", "/run", "docker.sock"),
    ("podman", "RUNTIME", "podman/podman.sock"),
    ("tmux", "/tmp", "tmux/default"),
    ("screen", "/run", "screen/S-user/1.tty"),
    ("X11", "/tmp/.X11-unix", "X99"),
    ("Wayland", "RUNTIME", "wayland-0"),
    ("ssh-agent", "/tmp", "ssh-agent/agent.1"),
    ("ssh-agent", "HOME", ".ssh/agent/s.1"),
    ("gpg-agent", "RUNTIME", "gnupg/S.gpg-agent"),
    ("gpg-agent", "HOME", ".gnupg/S.gpg-agent"),
    ("docker", "HOME", ".docker/run/docker.sock"),
    ("a browser", "HOME", ".mozilla/socket"),
    ("Holdpoint", "BASE", "state/daemon.sock"),
];

#[test]
fn m_g2_processes_reach_no_service_of_the_user() {
    let world = World::new();
    let user = geteuid().as_raw();
    for (service, folder, name) in SERVICES {
        let folder = match folder {
            "RUNTIME" if geteuid().is_root() => PathBuf::from("/run"),
            "RUNTIME" => format!("/run/user/{user}").into(),
            "HOME" => world.path("home"),
            "BASE" => world.path("."),
            folder => folder.into(),
        };
        // A folder in this one, so that no socket of the real service is in the way.
        let own = format!("holdpoint-{}", std::process::id());
        let is_shared = !folder.starts_with(world.path(""));
        let folder = if is_shared { folder.join(&own) } else { folder };
        let mut builder = fs::DirBuilder::new();
        let path = folder.join(name);
        if let Err(error) = builder.recursive(true).mode(0o700).create(path.parent().unwrap()) {
            println!("skipped {service}: {}: {error}", folder.display());
            continue;
        }
        println!("{service}: {}", path.display());
        listen_and_check(&world, &path, |_| ());
        if is_shared {
            fs::remove_dir_all(&folder).unwrap();
        }
    }
}

/// Sockets without a path belong to the network.
#[test]
fn m_g2_processes_reach_no_socket_without_a_path() {
    let world = World::new();
    for name in ["/tmp/.X11-unix/X99", "/tmp/dbus-AbCd", "/run/user/1000/systemd/private"] {
        let name = format!("{name}-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let listener = UnixListener::bind_addr(&address).unwrap();
        accept_all(move || listener.accept().map(drop));
        let [connect, _] = attacks(&format!("\"\\0{name}\""));
        check(&world, &[(&connect, false)]);
    }
}

/// Listens at a path with sockets of both kinds, prepares them, and tries to reach them.
fn listen_and_check(world: &World, path: &Path, prepare: impl Fn(&Path)) {
    let [connect, send] = attacks(&format!("\"{}\"", path.display()));
    let listener = UnixListener::bind(path).unwrap();
    prepare(path);
    accept_all(move || listener.accept().map(drop));
    check(world, &[(&connect, false)]);
    fs::remove_file(path).unwrap();
    let datagrams = UnixDatagram::bind(path).unwrap();
    prepare(path);
    datagrams.set_nonblocking(true).unwrap();
    check(world, &[(&send, false)]);
    // Each message has been received, or refused.
    while datagrams.recv(&mut [0]).is_ok() {}
    fs::remove_file(path).unwrap();
}

/// Makes a socket as old as one of a service. Only such sockets are hidden one by one.
fn age(path: &Path) {
    assert!(Command::new("touch").args(["-d", "2001-01-01"]).arg(path).status().unwrap().success());
}

/// A tmux server of the user, outside of any sandbox.
struct Tmux(PathBuf);

impl Tmux {
    fn start(socket: PathBuf) -> Self {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(socket.parent().unwrap()).unwrap();
        let server = Self(socket);
        assert!(server.run(&["new-session", "-d", "cat"]).unwrap().success());
        age(&server.0);
        server
    }

    fn run(&self, command: &[&str]) -> std::io::Result<std::process::ExitStatus> {
        let mut tmux = Command::new("tmux");
        tmux.env_remove("TMUX").args(["-f", "/dev/null", "-S"]).arg(&self.0);
        tmux.args(command).stdin(Stdio::null()).status()
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let _ = self.run(&["kill-server"]);
        let _ = fs::remove_file(&self.0);
    }
}

/// The real tmux: a server would run the command outside of the sandbox.
#[test]
fn m_g2_no_tmux_server_runs_a_command_outside_of_the_sandbox() {
    if !Command::new("tmux").arg("-V").output().is_ok_and(|version| version.status.success()) {
        println!("skipped: tmux is not installed");
        return;
    }
    // So that the sandboxes of other tests do not contain the sockets.
    if !network::enter() {
        return;
    }
    let world = World::visible();
    let mark = world.path("outside/mark");
    symlink(world.path("outside"), world.path("home/link")).unwrap();
    let temporary = tempfile::tempdir_in("/tmp").unwrap();
    for socket in [
        temporary.path().join("tmux-0/default"),
        world.path("home/.tmux/default"),
        // Beside the workspace, and bound by a path with a link.
        world.path("outside/tmux"),
        world.path("home/link/linked"),
    ] {
        let server = Tmux::start(socket);
        let tmux = format!("tmux -S {}", server.0.display());
        for attack in [
            format!("{tmux} run-shell 'touch {}'", mark.display()),
            format!(
                "{tmux} new-window -d 'touch {}; {tmux} wait-for -S done' \\; wait-for done",
                mark.display()
            ),
            format!(
                "cd {}; tmux -S ./{} run-shell 'touch {}'",
                server.0.parent().unwrap().display(),
                server.0.file_name().unwrap().display(),
                mark.display()
            ),
        ] {
            for level in world.levels() {
                let output = world.run(level, &attack);
                let is_off = level == SandboxLevel::Off;
                assert_eq!(mark.exists(), is_off, "{level}: {attack}: {output}");
                let _ = fs::remove_file(&mark);
            }
        }
    }
}

/// Sockets in readable folders are hidden one by one; pipes are not.
#[test]
fn m_g2_sockets_and_pipes_in_readable_folders() {
    if !network::enter() {
        return;
    }
    let world = World::visible();
    fs::create_dir(world.path("home/.tmux")).unwrap();
    for name in ["home/.tmux/default", "outside/a socket"] {
        listen_and_check(&world, &world.path(name), age);
    }
    let pipe = world.path("home/pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    // Opened for reading too, so that nothing waits for a reader.
    let open = fs::File::options().read(true).write(true).open(&pipe).unwrap();
    for level in world.levels() {
        let expected = level != SandboxLevel::Landlock;
        let output = world.run(level, "test -p $HOME/pipe && echo x > $HOME/pipe && echo REACHED");
        assert_eq!(output.contains("REACHED"), expected, "{level}: {output}");
    }
    drop(open);
}

/// A socket is hidden if it exists when the command starts, and has existed for a while, unless it is
/// in a writable folder.
#[test]
fn m_g2_only_sockets_that_exist_at_the_start_are_hidden() {
    if !network::enter() {
        return;
    }
    let world = World::visible();
    let listen = |name: &str| {
        let socket = UnixListener::bind(world.path(name)).unwrap();
        age(&world.path(name));
        accept_all(move || socket.accept().map(drop));
    };
    let [connect, _] = attacks("\"$ENV{SOCKET}\"");
    listen("work/own");
    for level in world.levels() {
        let is_reached = level != SandboxLevel::Landlock;
        let output = world.run(level, &format!("export SOCKET=$BASE/work/own; {connect}"));
        assert_eq!(output.contains("REACHED"), is_reached, "{level}: {output}");
        // Created while the command waits for a line of a pipe.
        let later = format!("outside/later-{level}");
        assert!(Command::new("mkfifo").arg(world.path("work/go")).status().unwrap().success());
        // A pipe keeps its contents as long as it is open.
        let go = fs::File::options().read(true).write(true).open(world.path("work/go"));
        let mut go = go.unwrap();
        let script = format!("export SOCKET=$BASE/{later}; echo; read -r go < go; {connect}");
        let processes = world.processes(level, world.profile());
        let mut process = processes.spawn(world.spec(&script)).unwrap();
        let started = process.read_by(&mut [0], Some(Instant::now() + patience())).unwrap();
        assert_eq!(started, Read::Bytes(1), "{level}");
        listen(&later);
        go.write_all(b"go\n").unwrap();
        let output = read_all(&mut process);
        drop(go);
        assert_eq!(output.contains("REACHED"), is_reached, "{level}: {output}");
        fs::remove_file(world.path("work/go")).unwrap();
        // For the next command it exists.
        let output = world.run(level, &format!("export SOCKET=$BASE/{later}; {connect}"));
        assert_eq!(output.contains("REACHED"), level == SandboxLevel::Off, "{level}: {output}");
        // A new socket may be removed while a sandbox starts.
        let now = Command::new("touch").arg(world.path(&later)).status().unwrap();
        assert!(now.success());
        let output = world.run(level, &format!("export SOCKET=$BASE/{later}; {connect}"));
        assert_eq!(output.contains("REACHED"), is_reached, "{level}: {output}");
    }
}

/// The number of mounts is bounded. A user with more sockets still has working commands.
#[test]
fn m_g2_a_bounded_number_of_sockets_is_hidden() {
    if !network::enter() {
        return;
    }
    let world = World::visible();
    let sockets: Vec<_> = (0..300)
        .map(|at| {
            let path = world.path(&format!("outside/{at:03}"));
            let socket = UnixListener::bind(&path).unwrap();
            age(&path);
            socket
        })
        .collect();
    let count = "perl -e 'print scalar(grep { -S } glob(\"$ENV{BASE}/outside/*\")), \" left\"'";
    for level in world.levels() {
        let output = world.run(level, count);
        let hidden = if level == SandboxLevel::Bwrap { 64 } else { 0 };
        let left: usize = output.strip_suffix(" left").unwrap().parse().unwrap();
        // Other sockets of this machine may be among those that are hidden.
        assert!((300 - hidden..=300).contains(&left), "{level}: {output}");
        assert_eq!(left < 300, hidden > 0, "{level}: {output}");
    }
    drop(sockets);
}

/// Other users must not be able to have commands fail.
#[test]
fn m_g2_sockets_of_other_users_are_no_obstacle() {
    if !geteuid().is_root() {
        return println!("skipped: only root can make files of other users");
    }
    const OTHER: Option<u32> = Some(65_534);
    let world = World::visible();
    let folder = world.path("outside/private");
    fs::create_dir(&folder).unwrap();
    let listen = |path: &Path, owner: Option<u32>| {
        let socket = UnixListener::bind(path).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
        chown(path, owner, owner).unwrap();
        age(path);
        accept_all(move || socket.accept().map(drop));
    };
    listen(&folder.join("own"), None);
    listen(&folder.join("other"), OTHER);
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
    chown(&folder, OTHER, OTHER).unwrap();
    let visible = world.path("outside/other");
    listen(&visible, OTHER);
    for level in world.levels() {
        assert_eq!(world.run(level, "echo ran"), "ran\n", "{level}");
    }
    // These are not hidden, but nobody in the sandbox can enter their folder.
    for path in [folder.join("own"), folder.join("other")] {
        let [connect, _] = attacks(&format!("\"{}\"", path.display()));
        check(&world, &[(&connect, false)]);
    }
    // This one is in the list of those that are not hidden.
    let [connect, _] = attacks(&format!("\"{}\"", visible.display()));
    assert!(world.run(SandboxLevel::Bwrap, &connect).contains("REACHED"));
}
