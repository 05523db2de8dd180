//! The sandbox of processes: the same attacks at each level, and without a sandbox as the control.

mod as_nobody;
mod browser;
mod domains;
mod files;
mod kernel;
mod orphans;
mod processes;
mod sockets;
mod swaps;

use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::{MetadataExt, symlink};
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fs, thread};

use rustix::process::{Pid, Signal, kill_process};

use holdpoint_common::SandboxLevel;
use holdpoint_tools::testing::{patience, rounds};
use holdpoint_tools::{
    Exit, ProcessSpec, Processes, Read, Sandbox, SandboxProfile, SandboxSupport, Supervisor,
    environment,
};

const GRACE: Duration = Duration::from_millis(500);

/// A user with a home folder, a workspace, and folders of Holdpoint, below one folder that is not
/// among those for temporary files.
pub(super) struct World {
    _folder: Option<tempfile::TempDir>,
    base: PathBuf,
    support: SandboxSupport,
}

impl World {
    pub(super) fn new() -> Self {
        Self::with(|base| SandboxSupport::probe(&Supervisor::ThisProgram, &base.join("trial")))
    }

    /// Another user on the same machine, whose levels were already tried.
    pub(super) fn another(&self) -> Self {
        Self::with(|_| self.support.clone())
    }

    /// A world that every level shows: in no folder that another one replaces in the sandbox.
    pub(super) fn visible() -> Self {
        Self::in_folder(Path::new("/var/tmp"), |base| {
            SandboxSupport::probe(&Supervisor::ThisProgram, &base.join("trial"))
        })
    }

    /// Another visible user on the same machine, whose levels were already tried.
    pub(super) fn another_visible(&self) -> Self {
        Self::in_folder(Path::new("/var/tmp"), |_| self.support.clone())
    }

    fn with(support: impl FnOnce(&Path) -> SandboxSupport) -> Self {
        Self::in_folder(Path::new(env!("CARGO_TARGET_TMPDIR")), support)
    }

    fn in_folder(base: &Path, support: impl FnOnce(&Path) -> SandboxSupport) -> Self {
        let folder = tempfile::tempdir_in(base).or_else(|_| tempfile::tempdir()).unwrap();
        let base = folder.path().canonicalize().unwrap();
        for path in [
            "home/.ssh",
            "home/.config/gh",
            "home/.cargo/registry",
            "work/.git/hooks",
            "state",
            "outside",
        ] {
            fs::create_dir_all(base.join(path)).unwrap();
        }
        for path in
            ["home/.ssh/id", "home/.netrc", "state/key", "outside/file", "work/.git/hooks/update"]
        {
            fs::write(base.join(path), "CONTENT\n").unwrap();
        }
        fs::write(base.join("work/.git/config"), "").unwrap();
        fs::write(base.join("work/.envrc"), "").unwrap();
        fs::write(base.join("work/AGENTS.md"), "").unwrap();
        let support = support(&base);
        Self { _folder: Some(folder), base, support }
    }

    /// A world with folders that exist.
    fn within(folder: Option<tempfile::TempDir>, base: PathBuf) -> Self {
        let support = SandboxSupport::probe(&Supervisor::ThisProgram, &base.join("trial"));
        Self { _folder: folder, base, support }
    }

    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.base.join(path)
    }

    pub(super) fn profile(&self) -> SandboxProfile {
        let [work, temporary, caches] =
            ["work", "state/sandbox/tmp", "state/sandbox/caches"].map(|path| self.path(path));
        SandboxProfile::new(work, self.path("home"), temporary, caches)
            .own_folders([self.path("state")])
    }

    pub(super) fn env(&self) -> Vec<(String, String)> {
        let shown = |path: &str| self.path(path).to_str().unwrap().to_owned();
        let path = std::env::var("PATH").unwrap();
        let vars = [("PATH".to_owned(), path), ("HOME".to_owned(), shown("home"))];
        let mut env = environment::allowed(vars);
        env.push(("BASE".to_owned(), shown(".")));
        env
    }

    /// The files that no process in a sandbox may change: their paths, contents, permissions and
    /// times.
    pub(super) fn guarded(&self) -> Vec<(PathBuf, Vec<u8>, u32, i64)> {
        let mut found = Vec::new();
        let mut paths: Vec<_> =
            ["outside", "home", "work/.git/hooks", "work/.envrc", "work/AGENTS.md"]
                .map(|path| self.path(path))
                .into();
        while let Some(path) = paths.pop() {
            let entries = fs::read_dir(&path).into_iter().flatten().flatten();
            paths.extend(entries.map(|entry| entry.path()));
            let metadata = path.symlink_metadata().unwrap();
            let content = if metadata.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
            let mode = metadata.mode();
            found.push((path, content, mode, metadata.mtime()));
        }
        found.sort();
        found
    }

    /// The sandbox of a level that works here.
    pub(super) fn sandbox(&self, level: SandboxLevel, profile: SandboxProfile) -> Option<Sandbox> {
        self.support.sandbox(level, profile)
    }

    /// The levels that work here, from none to the strongest. All must work where CI runs.
    pub(super) fn levels(&self) -> Vec<SandboxLevel> {
        let works = |level: &SandboxLevel| match self.support.why_not(*level) {
            None => true,
            Some(why) if std::env::var_os("CI").is_some() => panic!("{level}: {why}"),
            Some(why) => {
                println!("skipped {level}: {why}");
                false
            }
        };
        let levels = [SandboxLevel::Off, SandboxLevel::Landlock, SandboxLevel::Bwrap];
        levels.into_iter().filter(works).collect()
    }

    /// The levels that work here, without `off`.
    pub(super) fn sandboxes(&self) -> Vec<SandboxLevel> {
        self.levels().split_off(1)
    }

    fn processes(&self, level: SandboxLevel, profile: SandboxProfile) -> Processes {
        let sandbox = self.sandbox(level, profile);
        Processes::new(Supervisor::ThisProgram, GRACE).sandboxed(sandbox)
    }

    fn spec(&self, script: &str) -> ProcessSpec {
        self.spec_in(&self.path("work"), script)
    }

    fn spec_in(&self, folder: &Path, script: &str) -> ProcessSpec {
        ProcessSpec {
            program: "bash".into(),
            args: vec!["-c".into(), script.into()],
            cwd: folder.to_owned(),
            env: self.env(),
        }
    }

    /// The output of a script.
    fn run_with(&self, level: SandboxLevel, profile: SandboxProfile, script: &str) -> String {
        let processes = self.processes(level, profile);
        let mut process = processes.spawn(self.spec(script)).unwrap();
        let output = read_all(&mut process);
        let (_, ended) = process.finish();
        assert!(ended.not_ended.is_empty(), "{script}: {ended:?}");
        output
    }

    fn run(&self, level: SandboxLevel, script: &str) -> String {
        self.run_with(level, self.profile(), script)
    }
}

fn read_all(process: &mut holdpoint_tools::Process) -> String {
    let (mut output, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        match process.read_by(&mut buffer, Some(Instant::now() + patience())).unwrap() {
            Read::Bytes(bytes) => output.extend(&buffer[..bytes]),
            Read::Ended => return String::from_utf8_lossy(&output).into_owned(),
            Read::TimedOut => panic!("{}", String::from_utf8_lossy(&output)),
        }
    }
}

/// Runs each attack at each level. An attack prints `REACHED` if it succeeds, which it must without
/// a sandbox. `at_landlock` says whether it also succeeds at the weaker level.
fn check(world: &World, attacks: &[(&str, bool)]) {
    for (attack, at_landlock) in attacks {
        for level in world.levels() {
            let output = world.run(level, attack);
            let expected = match level {
                SandboxLevel::Off => true,
                SandboxLevel::Landlock => *at_landlock,
                SandboxLevel::Bwrap | SandboxLevel::Auto => false,
            };
            assert_eq!(output.contains("REACHED"), expected, "{level:?}: {attack}\n{output}");
        }
    }
}

/// Like [`check`], but skips the attacks that do not succeed without a sandbox, for lack of
/// permissions or because this kernel does not have the feature.
fn check_possible(world: &World, attacks: &[(&str, bool)]) {
    let mut possible = attacks.to_vec();
    possible.retain(|(attack, _)| {
        let succeeds = world.run(SandboxLevel::Off, attack).contains("REACHED");
        if !succeeds {
            println!("skipped: not possible here without a sandbox: {attack}");
        }
        succeeds
    });
    check(world, &possible);
}

#[test]
fn m_g2_processes_do_not_change_files_outside_the_workspace() {
    let levels = World::new().levels();
    for (attack, at_landlock) in [
        ("echo x > $BASE/outside/new", false),
        ("echo x >> $BASE/outside/file", false),
        ("perl -e 'truncate(\"$ENV{BASE}/outside/file\", 1)'", false),
        ("rm -f $BASE/outside/file", false),
        ("mkdir $BASE/outside/folder", false),
        ("ln $BASE/outside/file $BASE/outside/link", false),
        ("ln -s x $BASE/outside/link", false),
        ("mkfifo $BASE/outside/fifo", false),
        ("mv $BASE/outside/file $BASE/outside/moved", false),
        ("cp $BASE/outside/file x && mv x $BASE/outside/moved", false),
        ("ln -s $BASE/outside/file l && echo x >> l", false),
        ("ln $BASE/outside/file l && echo x >> l", false),
        ("echo x > $HOME/.bashrc", false),
        ("echo x > $HOME/.cargo/env", false),
        // Landlock does not restrict attributes.
        ("chmod 600 $BASE/outside/file", true),
        ("touch -d 2001-01-01 $BASE/outside/file", true),
        // Landlock can't protect names in a writable folder.
        ("echo x > .git/hooks/pre-commit", true),
        ("echo x > .envrc", true),
        ("echo x > AGENTS.md", true),
        ("mv .git/hooks .git/h && mkdir .git/hooks", true),
        ("mv .git g && mkdir -p .git/hooks", true),
    ] {
        for &level in &levels {
            let world = World::new();
            let before = world.guarded();
            let output = world.run(level, attack);
            let expected = match level {
                SandboxLevel::Off => true,
                SandboxLevel::Landlock => at_landlock,
                SandboxLevel::Bwrap | SandboxLevel::Auto => false,
            };
            let has_changed = world.guarded() != before;
            assert_eq!(has_changed, expected, "{level:?}: {attack}\n{output}");
        }
    }
    // The workspace and the folders of the sandbox are usable.
    for level in levels {
        let world = World::new();
        let script = "echo x > new && mkdir -p a/b && mv new a/b && rm -r a && echo x > .git/index \
                      && touch \"$(mktemp)\" && cat $BASE/outside/file";
        let output = world.run(level, script);
        // A world among temporary files is not visible.
        let is_hidden = level == SandboxLevel::Bwrap && world.base.starts_with("/tmp");
        assert_eq!(output == "CONTENT\n", !is_hidden, "{level:?}: {output}");
    }
}

#[test]
fn m_g2_processes_do_not_read_keys_and_state() {
    let world = World::new();
    symlink(world.path("home/.ssh"), world.path("work/keys")).unwrap();
    check(
        &world,
        &[
            ("grep -q CONTENT $HOME/.ssh/id && echo REACHED", false),
            ("grep -q CONTENT keys/id && echo REACHED", false),
            ("grep -q CONTENT $HOME/.netrc && echo REACHED", false),
            ("grep -q CONTENT $BASE/state/key && echo REACHED", false),
            ("grep -q CONTENT /proc/self/root$BASE/state/key && echo REACHED", false),
            (
                "cp -r $HOME/.ssh copied && grep -q CONTENT copied/id && echo REACHED; rm -rf copied",
                false,
            ),
            // Landlock hides contents, not names.
            ("ls $HOME/.ssh | grep -q id && echo REACHED", true),
        ],
    );
    let hidden = world.profile().hidden([world.path("outside")]);
    for level in world.sandboxes() {
        let output = world.run_with(level, hidden.clone(), "cat $BASE/outside/file");
        assert!(!output.contains("CONTENT"), "{level:?}: {output}");
    }
}

#[test]
fn m_g2_processes_reach_no_sockets_and_no_network() {
    let world = World::new();
    let socket = UnixListener::bind(world.path("state/socket")).unwrap();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = tcp.local_addr().unwrap().port();
    accept_all(move || socket.accept().map(drop));
    accept_all(move || tcp.accept().map(drop));
    let perl = |body: &str| format!("perl -MSocket -e '{body} and print \"REACHED\"'");
    let connect = |family: &str, kind: &str, address: &str| {
        perl(&format!("socket(S, {family}, {kind}, 0) and connect(S, {address})"))
    };
    let tcp_attack = connect(
        "AF_INET",
        "SOCK_STREAM",
        &format!("pack_sockaddr_in({port}, inet_aton(\"127.0.0.1\"))"),
    );
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let udp_port = udp.local_addr().unwrap().port();
    thread::spawn(move || {
        while udp.recv_from(&mut [0]).and_then(|(_, from)| udp.send_to(b"x", from)).is_ok() {}
    });
    let udp_attack = perl(&format!(
        "socket(S, AF_INET, SOCK_DGRAM, 0) and connect(S, pack_sockaddr_in({udp_port}, \
         inet_aton(\"127.0.0.1\"))) and send(S, \"x\", 0) and defined(recv(S, my $x, 1, 0))"
    ));
    let datagrams = UnixDatagram::bind(world.path("state/datagrams")).unwrap();
    let datagram_attack = perl(
        "socketpair(A, B, AF_UNIX, SOCK_DGRAM, PF_UNSPEC) \
         and send(A, \"x\", 0, pack_sockaddr_un(\"$ENV{BASE}/state/datagrams\"))",
    );
    // A socket to the host of a virtual machine, where the kernel has them.
    let vsock = perl("socket(S, 40, SOCK_STREAM, 0)");
    if world.run(SandboxLevel::Off, &vsock).contains("REACHED") {
        check(&world, &[(&vsock, false)]);
    }
    check(
        &world,
        &[
            (
                &connect("AF_UNIX", "SOCK_STREAM", "pack_sockaddr_un(\"$ENV{BASE}/state/socket\")"),
                false,
            ),
            (&tcp_attack, false),
            (&udp_attack, false),
            (&datagram_attack, false),
            (&format!("exec 3<> /dev/tcp/127.0.0.1/{port} && echo REACHED"), false),
        ],
    );
    // Pairs of sockets, which programs use between their own processes, work.
    let pair = perl("socketpair(A, B, AF_UNIX, SOCK_STREAM, PF_UNSPEC)");
    for level in world.levels() {
        assert!(world.run(level, &pair).contains("REACHED"), "{level:?}");
        let output = world.run_with(level, world.profile().network(true), &tcp_attack);
        assert!(output.contains("REACHED"), "{level:?} with the network: {output}");
    }
    drop(datagrams);
}

/// Accepts connections until the test ends.
fn accept_all(mut accept: impl FnMut() -> std::io::Result<()> + Send + 'static) {
    thread::spawn(move || while accept().is_ok() {});
}

/// The version of the kernel.
fn kernel() -> (u32, u32) {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut parts = release.split(['.', '-']).map(|part| part.parse().unwrap());
    (parts.next().unwrap(), parts.next().unwrap())
}

#[test]
fn m_g2_programs_have_no_capabilities_of_root() {
    if !rustix::process::geteuid().is_root() {
        return; // There are none to lose.
    }
    let world = World::new();
    // CAP_SYS_ADMIN and CAP_SYS_PTRACE, and at the level `bwrap` all others.
    let has = |mask: &str| {
        format!("c=$(sed -n 's/CapEff:.//p' /proc/self/status); ((0x$c & {mask})) && echo REACHED")
    };
    check(&world, &[(&has("1 << 21"), false), (&has("1 << 19"), false), (&has("-1"), true)]);
}

/// One program prepares an escape, and the next one, with a new sandbox for the same session, tries
/// it.
#[test]
fn m_g2_no_program_prepares_an_escape_of_the_next_one() {
    for level in World::new().sandboxes() {
        for (workspace, prepare, attack) in [
            ("work", "ln -s $HOME/.ssh .vscode", "cat .vscode/id"),
            ("work", "ln -s $HOME/.netrc .npmrc", "cat .npmrc"),
            (
                "work",
                "ln -s $BASE/state .git/x && mv .git/hooks h; ln -s ../../state .git/hooks",
                "cat .git/hooks/key",
            ),
            (
                "work",
                "cd $XDG_CACHE_HOME/.. && mv xdg x; ln -s $HOME xdg",
                "cat $XDG_CACHE_HOME/.ssh/id; echo x > $XDG_CACHE_HOME/.bashrc",
            ),
            (
                "work",
                "cd $XDG_CACHE_HOME/../.. && mv cargo x; mkdir -p cargo; ln -s $HOME cargo/registry",
                "cat $HOME/.cargo/registry/.ssh/id; echo x > $HOME/.cargo/registry/.bashrc",
            ),
            ("home", "mv .config moved", "cat moved/gh/hosts"),
            ("home", "mv .ssh moved", "cat moved/id"),
            (".", "mv state moved", "cat moved/key"),
            (".", "mv home moved", "cat moved/.ssh/id moved/.netrc"),
        ] {
            let world = World::new();
            let [tmp, caches] = ["state/tmp", "state/caches"].map(|path| world.path(path));
            let workspace = world.path(workspace).canonicalize().unwrap();
            let profile = SandboxProfile::new(&workspace, world.path("home"), tmp, caches)
                .own_folders([world.path("state")]);
            let run = |script: &str| {
                let processes = world.processes(level, profile.clone());
                let spec = ProcessSpec { cwd: workspace.clone(), ..world.spec(script) };
                let mut process = processes.spawn(spec).unwrap();
                read_all(&mut process)
            };
            let prepared = run(prepare);
            let output = run(attack);
            assert!(
                !output.contains("CONTENT"),
                "{level}: {prepare}: {prepared}{attack}: {output}"
            );
            assert!(!world.path("home/.bashrc").exists(), "{level}: {prepare}");
        }
    }
}

#[test]
fn m_g2_a_writable_path_that_becomes_a_link_is_not_used() {
    let world = World::new();
    fs::create_dir(world.path("work/build")).unwrap();
    let profile = world.profile().writable([world.path("work/build")]);
    for level in world.sandboxes() {
        let processes = world.processes(level, profile.clone());
        let mut process =
            processes.spawn(world.spec("rm -rf build; ln -s $HOME build; echo done")).unwrap();
        assert_eq!(read_all(&mut process), "done\n");
        let error = processes.spawn(world.spec("echo x > build/.bashrc")).unwrap_err().to_string();
        assert!(error.contains("work/build has been replaced by a link"), "{error}");
        fs::remove_file(world.path("work/build")).unwrap();
        fs::create_dir(world.path("work/build")).unwrap();
    }
}

#[test]
fn m_g2_own_folders_are_hidden_even_if_they_do_not_exist() {
    for level in World::new().sandboxes() {
        let world = World::new();
        let own = world.path("work/config");
        let output = world.run_with(
            level,
            world.profile().own_folders([own.clone()]),
            "mkdir -p config && echo x > config/config.toml; echo done",
        );
        assert!(output.ends_with("done\n"), "{output}");
        assert!(own.exists() && !own.join("config.toml").exists(), "{level}: {output}");
    }
}

/// The processes below one, by their ids outside of the sandbox.
fn below(pid: u32) -> Vec<u32> {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let children = children.unwrap_or_default();
    let children = children.split_whitespace().map(|pid| pid.parse().unwrap());
    children.flat_map(|pid| [vec![pid], below(pid)].concat()).collect()
}

#[test]
fn m_g2_the_processes_of_a_sandbox_end_if_their_supervisor_is_killed() {
    let world = World::new();
    for level in world.levels() {
        let processes = world.processes(level, world.profile());
        let mut process = processes.spawn(world.spec("sleep 1000 & echo started; wait")).unwrap();
        let read = process.read_by(&mut [0; 64], Some(Instant::now() + patience())).unwrap();
        assert_eq!(read, Read::Bytes(8), "{level}");
        let stat = fs::read_to_string(format!("/proc/{}/stat", process.id())).unwrap();
        let parent = stat.rsplit_once(") ").unwrap().1.split(' ').nth(1).unwrap();
        let supervisor = parent.parse::<u32>().unwrap();
        let started = below(supervisor);
        assert!(started.len() >= 2, "{level}: {started:?}");
        kill_process(Pid::from_raw(supervisor.cast_signed()).unwrap(), Signal::KILL).unwrap();
        let _ = process.finish();
        let ended = processes.finish();
        assert!(ended.not_ended.is_empty(), "{level}: {ended:?}");
        let is_alive = |pid: &u32| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            !stat.is_empty() && !stat.contains(") Z ")
        };
        let living: Vec<_> = started.into_iter().filter(is_alive).collect();
        assert!(living.is_empty(), "{level}: {living:?}");
    }
}

#[test]
fn m_g2_the_kernel_refuses_keys_and_typing() {
    let world = World::new();
    // The calls fail with another error if they are not refused.
    let call = |body: &str| {
        format!("perl -e '$! = 0; {body}; print $!{{EPERM}} ? \"refused\" : \"REACHED\"'")
    };
    #[cfg(target_arch = "x86_64")]
    let keyctl = "syscall(250, 0, -3, 0)";
    #[cfg(not(target_arch = "x86_64"))]
    let keyctl = "syscall(219, 0, -3, 0)";
    check(
        &world,
        &[
            (&call("open(T, \"<\", \"/dev/null\"); my $c = \"x\"; ioctl(T, 0x5412, $c)"), false),
            (&call("open(T, \"<\", \"/dev/null\"); my $c = \"x\"; ioctl(T, 0x541c, $c)"), false),
            (&call(keyctl), false),
        ],
    );
}

#[test]
fn m_g2_a_sandbox_has_its_own_temporary_files_and_caches() {
    let world = World::new();
    fs::write(world.path("home/.cargo/registry/index"), "CONTENT").unwrap();
    for level in world.sandboxes() {
        let script = "t=${TMPDIR:-/tmp}; echo kept > $t/file && echo $XDG_CACHE_HOME";
        let output = world.run(level, script);
        assert!(output.contains("state/sandbox/caches/named/xdg"), "{level:?}: {output}");
        assert_eq!(world.run(level, "cat ${TMPDIR:-/tmp}/file"), "kept\n", "{level:?}");
        assert_eq!(fs::read_to_string(world.path("state/sandbox/tmp/file")).unwrap(), "kept\n");
        world.run(level, "mkdir -p $XDG_CACHE_HOME && echo x > $XDG_CACHE_HOME/file");
        assert!(world.path("state/sandbox/caches/named/xdg/file").exists(), "{level:?}");
    }
    // A folder of the user that exists is replaced.
    let script = "echo planted > $HOME/.cargo/registry/new; ls $HOME/.cargo/registry";
    assert_eq!(world.run(SandboxLevel::Bwrap, script), "new\n");
    assert!(!world.path("home/.cargo/registry/new").exists());
    assert!(world.path("state/sandbox/caches/cargo/registry/new").exists());
}

#[test]
fn m_g2_writable_paths_can_be_added_but_not_own_folders() {
    let world = World::new();
    let profile = world.profile().writable([world.path("outside"), world.path("state")]);
    for level in world.sandboxes() {
        let script = "echo x > $BASE/outside/new && echo written; cat $BASE/state/key";
        let output = world.run_with(level, profile.clone(), script);
        assert!(output.contains("written") && !output.contains("CONTENT"), "{level:?}: {output}");
    }
}

#[test]
fn m_g2_the_processes_of_a_sandbox_end_with_their_call() {
    let world = World::new();
    for level in world.levels() {
        let processes = world.processes(level, world.profile());
        let script = "setsid sleep 1000 & (trap '' TERM; sleep 1000 & echo started; wait; sleep 1000) & wait";
        let mut process = processes.spawn(world.spec(script)).unwrap();
        let mut buffer = [0; 64];
        let read = process.read_by(&mut buffer, Some(Instant::now() + patience())).unwrap();
        assert_eq!(read, Read::Bytes(8), "{level:?}");
        let ended = processes.finish();
        assert!(ended.not_ended.is_empty(), "{level:?}: {ended:?}");
        // Bubblewrap is not counted. Of the four processes, two ignore TERM.
        assert_eq!((ended.terminated, ended.killed), (2, 2), "{level:?}");
    }
}

/// Also while the sandbox is being set up, when no program runs yet.
#[test]
fn m_g2_a_program_can_be_ended_at_any_time() {
    let world = World::new();
    for level in world.levels() {
        for round in 0..rounds(20, 300) {
            let processes = world.processes(level, world.profile());
            let process = processes.spawn(world.spec("trap '' TERM; sleep 1000")).unwrap();
            // Different moments: each round gives the processes more time.
            for _ in 0..round % 20 {
                let _ = fs::read_dir("/proc").unwrap().count();
            }
            let ended = processes.finish();
            assert!(ended.not_ended.is_empty(), "{level}, {round}: {ended:?}");
            assert!(below(process.id()).is_empty(), "{level}, {round}");
        }
    }
}

#[test]
fn m_g2_the_end_of_a_program_is_reported() {
    let world = World::new();
    for level in world.levels() {
        let processes = world.processes(level, world.profile());
        let mut process = processes.spawn(world.spec("echo out; exit 7")).unwrap();
        assert_eq!(read_all(&mut process), "out\n");
        assert_eq!(process.finish().0, Exit::Code(7), "{level:?}");
        // The processes that a program leaves are ended, and counted.
        let mut process = processes.spawn(world.spec("sleep 1000 & echo out")).unwrap();
        assert_eq!(read_all(&mut process), "out\n");
        let (exit, ended) = process.finish();
        assert_eq!((exit, ended.total()), (Exit::Code(0), 1), "{level:?}");
    }
}

#[test]
fn m_g2_a_level_that_does_not_work_is_never_replaced_silently() {
    let world = World::new();
    let none = SandboxSupport::probe(&Supervisor::None, &world.path("trial"));
    for level in [SandboxLevel::Bwrap, SandboxLevel::Landlock] {
        let sandbox = none.sandbox(level, world.profile()).unwrap();
        assert_eq!(
            (sandbox.level(), sandbox.refusal()),
            (level, Some("processes have no supervisor"))
        );
        let processes = Processes::new(Supervisor::ThisProgram, GRACE).sandboxed(Some(sandbox));
        let error = processes.spawn(world.spec("echo ran > ran")).unwrap_err().to_string();
        assert!(error.contains("does not work here"), "{error}");
        assert!(!world.path("work/ran").exists());
    }
    assert!(none.sandbox(SandboxLevel::Auto, world.profile()).is_none());
    for level in world.sandboxes() {
        assert_eq!(world.sandbox(level, world.profile()).unwrap().level(), level);
    }
    let strongest = world.sandbox(SandboxLevel::Auto, world.profile()).map(|it| it.level());
    assert_eq!(strongest, world.sandboxes().pop());
}
