//! Calls of the kernel that change namespaces, mounts, devices or settings, or bypass permissions.

use libc::{
    SYS_bpf, SYS_io_uring_setup, SYS_mount, SYS_open_by_handle_at, SYS_perf_event_open,
    SYS_pivot_root, SYS_unshare,
};

use super::{World, check, check_possible};

/// A Perl program.
fn perl(body: &str) -> String {
    format!("perl -MSocket -MFcntl -e '{body}'")
}

/// Each preparation is tried before the same two attacks, which must fail nevertheless.
#[test]
fn m_g2_no_mount_and_no_namespace_shows_a_hidden_file() {
    let world = World::new();
    let (mount, pivot) = (SYS_mount, SYS_pivot_root);
    let newuser = format!("syscall({SYS_unshare}, 0x10020000)");
    let namespace = |body: &str| perl(&format!("{newuser}; {body}; exec(\"bash\", \"attack\")"));
    for prepare in [
        "mount -o remount,rw /; bash attack".to_owned(),
        "mount -o remount,bind,rw $BASE/outside; bash attack".to_owned(),
        "mount -o remount,bind,rw $BASE; bash attack".to_owned(),
        "umount -l $BASE/state; umount -l $HOME/.ssh; umount -l $HOME/.netrc; bash attack"
            .to_owned(),
        "umount -l $BASE/work/.envrc; umount -l $BASE/work; bash attack".to_owned(),
        "unshare -m bash attack; unshare -Urm bash attack; bash attack".to_owned(),
        "unshare -Urm bash -c 'umount -l $BASE/state; mount -o remount,bind,rw /; bash attack'; \
         bash attack"
            .to_owned(),
        "nsenter -t 1 -m -U bash $BASE/work/attack; nsenter -t $PPID -m bash $BASE/work/attack; \
         bash attack"
            .to_owned(),
        "for p in 1 $PPID; do chroot /proc/$p/root bash $BASE/work/attack; done; bash attack"
            .to_owned(),
        "mkdir -p m; mount --bind /proc/1/root m; mount --rbind / m; ROOT=m bash attack".to_owned(),
        "mkdir -p m; mount -t proc p m; mount -t overlay o -o lowerdir=/,upperdir=.,workdir=. m; \
         ROOT=m bash attack"
            .to_owned(),
        namespace(&format!(
            "syscall({mount}, my $n = \"none\", my $r = \"/\", 0, 0x44000, 0); \
             syscall({mount}, $n, $r, 0, 0x1020, 0)"
        )),
        namespace(&format!(
            "mkdir(\"m\"); syscall({mount}, my $b = \"/\", my $m = \"m\", 0, 0x5000, 0); \
             $ENV{{ROOT}} = \"m\""
        )),
        namespace(&format!(
            "chdir(\"/\"); syscall({pivot}, my $o = \".\", my $n = \".\"); chroot(\".\"); \
             chdir(\"$ENV{{BASE}}/work\")"
        )),
    ] {
        // The path through `ROOT` is another one to the same files.
        let attack = "cat $ROOT$BASE/state/key $BASE/state/key $ROOT$HOME/.ssh/id; \
                      echo x > $ROOT$BASE/outside/new; echo x > $BASE/outside/new";
        std::fs::write(world.path("work/attack"), attack).unwrap();
        for level in world.sandboxes() {
            let output = world.run(level, &prepare);
            assert!(!output.contains("CONTENT"), "{level}: {prepare}: {output}");
            assert!(!world.path("outside/new").exists(), "{level}: {prepare}: {output}");
        }
        // The control: the attacks succeed without a sandbox.
        let output = world.run(holdpoint_common::SandboxLevel::Off, "bash attack");
        assert!(output.contains("CONTENT"), "{output}");
        std::fs::remove_file(world.path("outside/new")).unwrap();
    }
}

#[test]
fn m_g2_the_kernel_refuses_mounts_and_devices() {
    let world = World::new();
    let call = |body: &str| perl(&format!("({body}) == 0 and print \"REACHED\""));
    check(
        &world,
        &[
            // In a user namespace, a process has all capabilities for its new namespaces.
            (&call(&format!("syscall({SYS_unshare}, 0x10000000)")), true),
        ],
    );
    let mount =
        |flags: &str| format!("syscall({SYS_mount}, my $s = \"t\", my $t = \"m\", {flags})");
    check_possible(
        &world,
        &[
            // In a mount namespace of its own, so that nothing remains if it succeeds.
            (
                &call(&format!(
                    "(mkdir(\"m\"), syscall({SYS_unshare}, 0x20000), syscall({SYS_mount}, \
                     my $n = \"none\", my $r = \"/\", 0, 0x44000, 0), {})[3]",
                    mount("my $f = \"tmpfs\", 0, 0")
                )),
                false,
            ),
            (
                &call(&format!(
                    "(mkdir(\"m\"), syscall({SYS_unshare}, 0x10020000), {})[2]",
                    mount("my $f = \"tmpfs\", 0, 0")
                )),
                false,
            ),
            ("rm -f n; mknod n c 1 3 && echo REACHED", false),
            ("rm -f n; mknod n b 7 0 && echo REACHED", false),
            (&perl("chroot(\".\") and print \"REACHED\""), false),
            // Raw devices and messages of the kernel.
            ("head -c 1 /dev/kmsg > /dev/null && echo REACHED", false),
            (&perl("sysopen(F, \"/dev/kmsg\", O_WRONLY) and print \"REACHED\""), false),
            (
                "for d in /dev/*; do [ -b $d ] && head -c 1 $d > /dev/null && echo REACHED; done",
                false,
            ),
            (
                "cd /dev; for d in kvm fuse uinput; do [ -c $d ] && : <> $d && echo REACHED; done",
                false,
            ),
            ("head -c 1 /proc/kcore > /dev/null && echo REACHED", false),
        ],
    );
}

#[test]
fn m_g2_settings_of_the_kernel_can_not_be_written() {
    let world = World::new();
    // Writes the value that a file has, or opens it only.
    let same = |path: &str| {
        perl(&format!(
            "open(F, \"<\", \"{path}\"); my $v = <F>; $v =~ s/.*\\[(.*)\\].*/$1/; \
             open(G, \">\", \"{path}\") and syswrite(G, $v) and print \"REACHED\""
        ))
    };
    let opened = |path: &str| perl(&format!("open(F, \">\", \"{path}\") and print \"REACHED\""));
    check_possible(
        &world,
        &[
            (&same("/proc/sys/kernel/core_pattern"), false),
            (&same("/proc/sys/kernel/modprobe"), false),
            (&same("/proc/sys/kernel/hostname"), false),
            (&same("/proc/sys/vm/overcommit_memory"), false),
            (&same("/proc/sys/net/ipv4/ip_forward"), false),
            ("for f in /proc/irq/*/smp_affinity; do : >> $f && echo REACHED; done", false),
            (&same("/sys/kernel/mm/transparent_hugepage/enabled"), false),
            (&opened("/proc/sysrq-trigger"), false),
            (&opened("/proc/sys/fs/binfmt_misc/register"), false),
            (&opened("/sys/power/state"), false),
            (&opened("/sys/fs/cgroup/cgroup.procs"), false),
        ],
    );
    // A process can make itself more likely to be killed when memory is short.
    let own = "echo 500 > /proc/self/oom_score_adj && echo REACHED";
    for (level, expected) in world.levels().into_iter().zip([true, false, true]) {
        assert_eq!(world.run(level, own).contains("REACHED"), expected, "{level}");
    }
}

#[test]
fn m_g2_the_kernel_refuses_calls_that_bypass_permissions() {
    let world = World::new();
    let succeeds = |body: &str| perl(&format!("({body}) >= 0 and print \"REACHED\""));
    let allowed = |body: &str| {
        perl(&format!("$! = 0; {body}; print \"REACHED\" unless $!{{EPERM}} or $!{{EACCES}}"))
    };
    let pid = std::process::id();
    // A map of the kernel; a counter of events in this process.
    let bpf = succeeds(&format!(
        "syscall({SYS_bpf}, 0, my $a = pack(\"L4\", 2, 4, 4, 1) . \"\\0\" x 112, 128)"
    ));
    let perf = succeeds(&format!(
        "syscall({SYS_perf_event_open}, my $a = pack(\"L2Q\", 1, 112, 0) . \"\\0\" x 96, {pid}, \
         -1, -1, 0)"
    ));
    let handle = allowed(&format!(
        "open(D, \"<\", \".\"); syscall({SYS_open_by_handle_at}, fileno(D), \
         my $h = pack(\"L2\", 8, 1) . \"\\0\" x 8, 0)"
    ));
    let ring = allowed(&format!("syscall({SYS_io_uring_setup}, 8, my $p = \"\\0\" x 120)"));
    let hostname = perl(&format!(
        "open(F, \"<\", \"/proc/sys/kernel/hostname\"); my $n = <F>; chomp $n; \
         syscall({}, $n, length($n)) == 0 and print \"REACHED\"",
        libc::SYS_sethostname
    ));
    check_possible(
        &world,
        &[(&bpf, false), (&perf, false), (&handle, false), (&ring, false), (&hostname, false)],
    );
    // A program with the bit `setuid` gets no further permissions.
    let may_gain = "grep -q 'NoNewPrivs:.0' /proc/self/status && echo REACHED";
    check_possible(&world, &[(may_gain, false)]);
}

/// Every family that this kernel has, besides those of programs' usual sockets.
#[test]
fn m_g2_the_kernel_refuses_unusual_sockets() {
    let world = World::new();
    let mut attacks = Vec::new();
    for family in (0..46).filter(|family| ![1, 2, 10, 16].contains(family)) {
        for call in ["socket(S, F, $_, 0)", "socketpair(S, T, F, $_, 0)"] {
            let call = call.replace('F', &family.to_string());
            attacks.push(perl(&format!("{call} and print \"REACHED\" for 1..5")));
        }
    }
    attacks.push(perl("socket(S, AF_INET, SOCK_RAW, 1) and print \"REACHED\""));
    attacks.push(perl("socket(S, AF_INET6, SOCK_RAW, 58) and print \"REACHED\""));
    let attacks: Vec<_> = attacks.iter().map(|attack| (attack.as_str(), false)).collect();
    check_possible(&world, &attacks);
}
