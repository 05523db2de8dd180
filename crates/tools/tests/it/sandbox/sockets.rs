//! Sockets of other programs: of services that would start a process outside of the sandbox, and of
//! agents that use keys.

use std::fs;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::path::{Path, PathBuf};

use holdpoint_common::SandboxLevel;
use rustix::process::geteuid;

use super::{World, accept_all, check};

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
        listen_and_check(&world, service, &path, &format!("\"{}\"", path.display()));
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

/// Listens at a path with sockets of both kinds, and tries to reach them.
fn listen_and_check(world: &World, service: &str, path: &Path, name: &str) {
    println!("{service}: {}", path.display());
    let [connect, send] = attacks(name);
    let listener = UnixListener::bind(path).unwrap();
    accept_all(move || listener.accept().map(drop));
    check(world, &[(&connect, false)]);
    fs::remove_file(path).unwrap();
    let datagrams = UnixDatagram::bind(path).unwrap();
    datagrams.set_nonblocking(true).unwrap();
    check(world, &[(&send, false)]);
    // Each message has been received, or refused.
    while datagrams.recv(&mut [0]).is_ok() {}
    fs::remove_file(path).unwrap();
}

/// At the level `bwrap`, only the mounts separate a process from sockets and pipes with a path.
#[test]
fn m_g2_sockets_and_pipes_in_readable_folders() {
    let world = World::new();
    // A world among temporary files is not visible at `bwrap`.
    let is_visible = |level| match level {
        SandboxLevel::Off => true,
        SandboxLevel::Landlock => false,
        SandboxLevel::Bwrap | SandboxLevel::Auto => !world.base.starts_with("/tmp"),
    };
    fs::create_dir(world.path("home/.tmux")).unwrap();
    let socket = UnixListener::bind(world.path("home/.tmux/default")).unwrap();
    let [connect, _] = attacks("\"$ENV{HOME}/.tmux/default\"");
    accept_all(move || socket.accept().map(drop));
    for level in world.levels() {
        let expected = is_visible(level);
        assert_eq!(world.run(level, &connect).contains("REACHED"), expected, "{level}");
    }
    let pipe = world.path("home/pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    // Opened for reading too, so that nothing waits for a reader.
    let open = fs::File::options().read(true).write(true).open(&pipe).unwrap();
    for level in world.levels() {
        let expected = is_visible(level);
        let output = world.run(level, "test -p $HOME/pipe && echo x > $HOME/pipe && echo REACHED");
        assert_eq!(output.contains("REACHED"), expected, "{level}: {output}");
    }
    drop(open);
}
