//! Attacks on processes outside of the sandbox: their memory, their files, and signals to them.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::fd::AsRawFd;
use std::process::{Command, Stdio};

use libc::{
    SYS_kcmp, SYS_mq_open, SYS_mq_unlink, SYS_pidfd_getfd, SYS_pidfd_open, SYS_pidfd_send_signal,
    SYS_process_vm_readv, SYS_ptrace, SYS_shmget, SYS_tgkill,
};

use holdpoint_common::SandboxLevel;
use holdpoint_tools::testing::in_own_process;
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Pid, Signal, geteuid, kill_process};

use super::{World, check, check_possible, kernel};

/// Attacks on the process `pid` of this user, which has the file `state/key` open as `fd`.
fn attacks(pid: u32, fd: i32) -> Vec<(String, bool)> {
    // Linux 6.12 restricts signals by Landlock.
    let signals = kernel() < (6, 12);
    let is_read =
        |file: &str| format!("[ -n \"$(head -c 1 {file} | tr '\\0' x)\" ] && echo REACHED");
    let opens = |mode: &str, file: &str| {
        format!("perl -e 'open(F, \"{mode}\", \"/proc/{pid}/{file}\") and print \"REACHED\"'")
    };
    // A call that fails with another error than the one of a refusal reaches the process.
    let call = |body: &str| {
        format!(
            "perl -e '$! = 0; {body}; \
             print \"REACHED\" unless $!{{EPERM}} or $!{{EACCES}} or $!{{ESRCH}} or $!{{EBADF}}'"
        )
    };
    let pidfd = format!("my $p = syscall({SYS_pidfd_open}, {pid}, 0)");
    vec![
        (opens("<", "mem"), false),
        (opens("+<", "mem"), false),
        (opens("<", "auxv"), false),
        (opens(">", "clear_refs"), false),
        (opens(">", "coredump_filter"), false),
        (opens(">", "oom_score_adj"), false),
        (opens("<", "ns/mnt"), false),
        (is_read(&format!("/proc/{pid}/environ")), false),
        (is_read(&format!("/proc/{pid}/maps")), false),
        (is_read(&format!("/proc/{pid}/task/{pid}/environ")), false),
        (format!("[ -n \"$(readlink /proc/{pid}/exe)\" ] && echo REACHED"), false),
        (format!("[ -n \"$(readlink /proc/{pid}/fd/{fd})\" ] && echo REACHED"), false),
        (format!("[ -n \"$(ls /proc/{pid}/map_files/)\" ] && echo REACHED"), false),
        (format!("grep -q CONTENT /proc/{pid}/fd/{fd} && echo REACHED"), false),
        (format!("grep -q CONTENT /proc/{pid}/root$BASE/state/key && echo REACHED"), false),
        (format!("cd /proc/{pid}/cwd && echo REACHED"), false),
        (call(&format!("syscall({SYS_ptrace}, 0x4206, {pid}, 0, 0)")), false),
        (
            call(&format!(
                "my $b = \"x\" x 8; my $l = pack(\"pQ\", $b, 8); my $r = pack(\"QQ\", 4096, 8); \
                 syscall({SYS_process_vm_readv}, {pid}, $l, 1, $r, 1, 0)"
            )),
            false,
        ),
        (call(&format!("{pidfd}; syscall({SYS_pidfd_getfd}, $p, {fd}, 0)")), false),
        (call(&format!("syscall({SYS_kcmp}, {pid}, $$ + 0, 1, 0, 0)")), false),
        (format!("kill -CONT {pid} && echo REACHED"), signals),
        (call(&format!("syscall({SYS_tgkill}, {pid}, {pid}, 18)")), signals),
        (call(&format!("{pidfd}; syscall({SYS_pidfd_send_signal}, $p, 18, 0, 0)")), signals),
        (format!("prlimit --pid {pid} --nofile=1000:1000 && echo REACHED"), false),
        // Landlock does not restrict priorities, but a process that has lost capabilities of root
        // can't change those of another process of root.
        (
            format!(
                "perl -e '$! = 0; setpriority(0, {pid}, getpriority(0, {pid})); \
                 print \"REACHED\" unless $!'"
            ),
            !geteuid().is_root(),
        ),
    ]
}

/// At `bwrap` the supervisor is not visible: `$PPID` is the first process of the sandbox.
#[test]
fn m_g2_processes_do_not_reach_their_supervisor() {
    let world = World::new();
    let mut levels = world.levels();
    levels.retain(|level| *level != SandboxLevel::Bwrap);
    for attack in ["kill -CONT $PPID", ": < /proc/$PPID/mem", "readlink /proc/$PPID/fd/0"] {
        for level in &levels {
            let output = world.run(*level, &format!("({attack}) && echo REACHED"));
            let is_restricted = *level == SandboxLevel::Landlock
                && (!attack.starts_with("kill") || kernel() >= (6, 12));
            assert_eq!(output.contains("REACHED"), !is_restricted, "{level}: {attack}\n{output}");
        }
    }
}

#[test]
fn m_g2_processes_do_not_reach_other_processes() {
    let world = World::new();
    let key = File::open(world.path("state/key")).unwrap();
    let mut other = Command::new("sleep");
    // A copy of the key is its standard input.
    let mut other = other.arg("1000").stdin(Stdio::from(key.try_clone().unwrap())).spawn().unwrap();
    // This process is the owner of the supervisor.
    for (pid, fd) in [(other.id(), 0), (std::process::id(), key.as_raw_fd())] {
        let attacks = attacks(pid, fd);
        let attacks: Vec<_> =
            attacks.iter().map(|(attack, landlock)| (attack.as_str(), *landlock)).collect();
        check_possible(&world, &attacks);
    }
    assert!(other.try_wait().unwrap().is_none());
    other.kill().unwrap();
    other.wait().unwrap();
}

/// The kernel sends a signal to the owner of a pipe that can be read.
#[test]
fn m_g2_processes_have_the_kernel_send_no_signals() {
    let world = World::new();
    let target = "$SIG{USR1} = sub { syswrite(STDOUT, \"got\n\") };
        $SIG{USR2} = sub { syswrite(STDOUT, \"done\n\"); exit };
        syswrite(STDOUT, \"ready\n\"); sleep 1000 while 1";
    for level in world.levels() {
        let mut other = Command::new("perl");
        let mut other = other.args(["-e", target]).stdout(Stdio::piped()).spawn().unwrap();
        let pid = other.id();
        let mut lines = BufReader::new(other.stdout.take().unwrap()).lines();
        let mut line = || lines.next().unwrap().unwrap();
        assert_eq!(line(), "ready");
        let attack = format!(
            "perl -MFcntl -e 'pipe(R, W); fcntl(R, F_SETOWN, {pid}); fcntl(R, 10, {}); \
             fcntl(R, F_SETFL, 0x2000); syswrite(W, \"x\"); print \"tried\"'",
            Signal::USR1.as_raw()
        );
        assert_eq!(world.run(level, &attack), "tried", "{level}");
        kill_process(Pid::from_child(&other), Signal::USR2).unwrap();
        let got = line() == "got";
        let expected = match level {
            SandboxLevel::Off => true,
            SandboxLevel::Landlock => kernel() < (6, 12),
            SandboxLevel::Bwrap | SandboxLevel::Auto => false,
        };
        assert_eq!(got, expected, "{level}");
        other.wait().unwrap();
    }
}

/// The folder of a process that can be seen leads nowhere: that of the supervisor, of bubblewrap,
/// and of all others.
#[test]
fn m_g2_no_visible_process_is_a_way_out() {
    let world = World::new();
    let attack = "cd /
        for p in /proc/[0-9]*; do
            [ $p != /proc/$$ ] || continue
            for f in $p/root $p/cwd $p/fd/* $p/task/*/root $p/map_files/*; do
                cat $f$BASE/state/key $f$HOME/.netrc $f/../state/key 2> /dev/null
                echo x 2> /dev/null > $f$BASE/outside/new
                echo x 2> /dev/null > $f/../outside/new
            done
        done; true";
    for level in world.levels() {
        let output = world.run(level, attack);
        let is_off = level == SandboxLevel::Off;
        assert_eq!(output.contains("CONTENT"), is_off, "{level}: {output}");
        assert_eq!(world.path("outside/new").exists(), is_off, "{level}: {output}");
        let _ = fs::remove_file(world.path("outside/new"));
    }
}

/// Of the owner's files, a program has only its input and its output. A folder outside would lead
/// to all others.
#[test]
fn m_g2_programs_inherit_no_open_files() {
    // Other tests must not start programs while the folder is inherited.
    if !in_own_process() {
        return;
    }
    let world = World::new();
    let folder = File::open(world.path("outside")).unwrap();
    fcntl_setfd(&folder, FdFlags::empty()).unwrap();
    let at = format!("/proc/self/fd/{}", folder.as_raw_fd());
    let attack = format!("cat {at}/../state/key; echo x > {at}/new");
    for level in world.levels() {
        let output = world.run(level, &attack);
        let is_off = level == SandboxLevel::Off;
        assert_eq!(output.contains("CONTENT"), is_off, "{level}: {output}");
        assert_eq!(world.path("outside/new").exists(), is_off, "{level}: {output}");
        let _ = fs::remove_file(world.path("outside/new"));
    }
    for level in world.sandboxes() {
        let output = world.run(level, "cd /proc/self/fd; echo *; readlink 0; [ -p 1 ] && [ -p 2 ]");
        // The shell has the folder open that it lists.
        assert_eq!(output, "0 1 2 3\n/dev/null\n", "{level}");
    }
    // Process 1 is bubblewrap, with a file for the end of its children.
    if world.sandboxes().contains(&SandboxLevel::Bwrap) {
        let script = "readlink /proc/1/fd/* | grep -v '^pipe:\\|^/dev/null$'";
        assert_eq!(world.run(SandboxLevel::Bwrap, script), "anon_inode:[eventfd]\n");
    }
}

#[test]
fn m_g2_message_queues_and_shared_memory_are_separate() {
    let world = World::new();
    let name = format!("holdpoint-{}", std::process::id());
    let perl =
        |body: &str| format!("perl -e 'my $n = \"{name}\"; {body} >= 0 and print \"REACHED\"'");
    // Made outside, and opened in the sandbox.
    let made = perl(&format!("syscall({SYS_mq_open}, $n, 0x42, 0600, 0)"));
    assert!(world.run(SandboxLevel::Off, &made).contains("REACHED"));
    let key = std::process::id();
    let made = perl(&format!("syscall({SYS_shmget}, {key}, 8, 01600)"));
    assert!(world.run(SandboxLevel::Off, &made).contains("REACHED"));
    let file = tempfile::NamedTempFile::new_in("/dev/shm").unwrap();
    check(
        &world,
        &[
            (&perl(&format!("syscall({SYS_mq_open}, $n, 2, 0, 0)")), false),
            (&perl(&format!("syscall({SYS_shmget}, {key}, 0, 0)")), true),
            (
                &format!("f={}; [ -e $f ] && echo x > $f && echo REACHED", file.path().display()),
                false,
            ),
        ],
    );
    let removed = perl(&format!("syscall({SYS_mq_unlink}, $n)"));
    assert!(world.run(SandboxLevel::Off, &removed).contains("REACHED"));
    let removed =
        perl(&format!("syscall({}, syscall({SYS_shmget}, {key}, 0, 0), 0, 0)", libc::SYS_shmctl));
    assert!(world.run(SandboxLevel::Off, &removed).contains("REACHED"));
}
