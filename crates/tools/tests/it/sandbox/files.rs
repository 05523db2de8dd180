//! Files outside of the workspace, by paths and descriptors that seem to be in it.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use holdpoint_common::SandboxLevel;
use libc::{SYS_linkat, SYS_renameat2, SYS_setxattr};

use super::{World, check};

fn perl(body: &str) -> String {
    format!("perl -MFcntl -e '{body}'")
}

/// Each attack writes outside of the workspace, at `outside/file` or `outside/new`.
#[test]
fn m_g2_no_descriptor_and_no_path_leads_outside() {
    let levels = World::new().levels();
    let syscall = |number: i64, arguments: &str| {
        perl(&format!(
            "my $f = \"$ENV{{BASE}}/outside/file\"; my $n = \"$ENV{{BASE}}/outside/new\"; \
                       my $w = \"w\"; open(W, \">\", $w); syswrite(W, \"x\"); open(F, \"<\", $f); \
                       syscall({number}, {arguments})"
        ))
    };
    let cwd = libc::AT_FDCWD;
    for (attack, at_landlock) in [
        ("exec 3< $BASE/outside/file; echo x > /proc/self/fd/3".to_owned(), false),
        ("exec 3< $BASE/outside/file; echo x > /dev/fd/3".to_owned(), false),
        ("exec 3< $BASE/outside; echo x > /proc/self/fd/3/new".to_owned(), false),
        ("echo x > /proc/self/cwd/../outside/new".to_owned(), false),
        ("echo x > /proc/$$/root$BASE/outside/new".to_owned(), false),
        ("echo x > /proc/self/task/$$/cwd/../outside/new".to_owned(), false),
        ("mkdir -p a/b; cd a/b; mv ../b ../../b; echo x > ../../outside/new".to_owned(), false),
        ("mkdir a; ln -s /proc/self/cwd/../outside a/l; echo x > a/l/new".to_owned(), false),
        ("cd $BASE/outside && echo x > new".to_owned(), false),
        ("mv $BASE/work $BASE/moved; mv $BASE/outside $BASE/work".to_owned(), false),
        ("mv $BASE/outside $BASE/work/".to_owned(), false),
        (
            "ln $BASE/outside/file l; cp --remove-destination w $BASE/outside/file; echo x > l"
                .to_owned(),
            false,
        ),
        ("echo x > x; ln -f x $BASE/outside/file".to_owned(), false),
        ("echo x | tee -a $BASE/outside/file".to_owned(), false),
        ("dd if=/dev/zero of=$BASE/outside/file bs=1 count=1 conv=notrunc".to_owned(), false),
        ("tar -C $BASE/outside -xf <(echo x > new; tar -cf - new)".to_owned(), false),
        (perl("truncate(\"$ENV{BASE}/outside/file\", 0)"), false),
        (
            perl(&format!(
                "sysopen(F, \"$ENV{{BASE}}/outside\", {} | O_RDWR, 0600); \
                 syscall({SYS_linkat}, {cwd}, my $p = \"/proc/self/fd/\" . fileno(F), {cwd}, \
                 my $n = \"$ENV{{BASE}}/outside/new\", 0x400)",
                libc::O_TMPFILE
            )),
            false,
        ),
        (syscall(SYS_renameat2, &format!("{cwd}, $w, {cwd}, $f, 2")), false),
        (syscall(SYS_renameat2, &format!("{cwd}, $f, {cwd}, $w, 2")), false),
        (syscall(SYS_linkat, &format!("{cwd}, $w, {cwd}, $n, 0")), false),
        (
            syscall(
                SYS_linkat,
                &format!("{cwd}, my $p = \"/proc/self/fd/\" . fileno(W), {cwd}, $n, 0x400"),
            ),
            false,
        ),
        ("echo x > w; cp --reflink=auto w $BASE/outside/file".to_owned(), false),
        // Landlock does not restrict attributes.
        ("chmod 4755 $BASE/outside/file".to_owned(), true),
    ] {
        for &level in &levels {
            let world = World::new();
            let before = world.guarded();
            let output = world.run(level, &attack);
            let expected = match level {
                SandboxLevel::Off => true,
                SandboxLevel::Landlock => at_landlock,
                SandboxLevel::Bwrap | SandboxLevel::Auto => false,
            };
            let has_changed = !world.path("outside").exists() || world.guarded() != before;
            assert_eq!(has_changed, expected, "{level}: {attack}\n{output}");
        }
    }
}

/// The folders and files of Holdpoint: other sessions' files, the configuration, keys, sockets.
#[test]
fn m_g2_the_files_of_other_sessions_and_of_holdpoint_are_hidden() {
    let world = World::new();
    let other = "state/sandbox/tmp2";
    for folder in [other, "state/sandbox/caches2/named/xdg", "state/sessions", "config"] {
        fs::create_dir_all(world.path(folder)).unwrap();
    }
    let files = [
        "state/sandbox/tmp2/file",
        "state/sandbox/caches2/named/xdg/file",
        "state/sessions/log",
        "config/config.toml",
    ];
    for level in world.levels() {
        for file in files {
            fs::write(world.path(file), "CONTENT\n").unwrap();
            let (folder, name) = file.rsplit_once('/').unwrap();
            let profile = world.profile().own_folders(["state", "config"].map(|it| world.path(it)));
            for attack in [
                format!("cat $BASE/{file}"),
                format!("cat $TMPDIR/../{name} $TMPDIR/../tmp2/{name} /tmp/../{file}"),
                format!("cat $XDG_CACHE_HOME/../../../{name} $XDG_CACHE_HOME/../../../tmp2/{name}"),
                format!("cd $BASE/{folder} && cat {name}"),
                format!("cp -r $BASE/{folder} copied; cat copied/*; rm -rf copied"),
                format!("mv $BASE/{file} m; cat m; rm -f m"),
                format!("ln $BASE/{file} l; cat l; rm -f l"),
            ] {
                let output = world.run_with(level, profile.clone(), &attack);
                let hidden = level != SandboxLevel::Off;
                assert!(!(hidden && output.contains("CONTENT")), "{level}: {attack}: {output}");
                if !hidden && attack.starts_with(&format!("cat $BASE/{file}")) {
                    assert!(output.contains("CONTENT"), "{attack}: {output}");
                }
            }
            let attack =
                format!("echo x > $BASE/{file}; rm -f $BASE/{file}; echo x > $BASE/{folder}/new");
            world.run_with(level, profile, &attack);
            let is_same = fs::read(world.path(file)).is_ok_and(|content| content == b"CONTENT\n");
            let is_new = world.path(folder).join("new").exists();
            let is_off = level == SandboxLevel::Off;
            assert_eq!((is_same, is_new), (!is_off, is_off), "{level}: {attack}");
            let _ = fs::remove_file(world.path(folder).join("new"));
        }
    }
}

/// Folders in which programs of the system look for work.
#[test]
fn m_g2_folders_of_the_system_can_not_be_written() {
    let world = World::new();
    let attacks = [
        "/var/spool/cron/crontabs",
        "/var/spool/cron",
        "/var/spool/at",
        "/var/spool/cron/atjobs",
        "/etc/cron.d",
        "/etc",
        "/usr/local/bin",
        "/var/tmp",
        "/var/lib",
        "/var/log",
    ]
    .map(|folder| format!("f=$(mktemp {folder}/.holdpoint-XXXXXX) && rm $f && echo REACHED"));
    let attacks: Vec<_> = attacks.iter().map(|attack| (attack.as_str(), false)).collect();
    super::check_possible(&world, &attacks);
}

/// Programs with the names of those that Holdpoint starts, in the workspace and first in `PATH`.
#[test]
fn m_g2_programs_in_the_workspace_do_not_take_part_in_the_sandbox() {
    for level in World::new().sandboxes() {
        let world = World::new();
        for name in ["bwrap", "bash", "sh", "env", "holdpoint-supervisor"] {
            let path = world.path("work").join(name);
            fs::write(&path, "#!/bin/bash\necho x > $BASE/outside/new; exec /bin/bash \"$@\"\n")
                .unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let mut spec = world.spec("cat $BASE/state/key; echo ran");
        let path = format!("{}:{}", world.path("work").display(), std::env::var("PATH").unwrap());
        spec.env.push(("PATH".to_owned(), path));
        let processes = world.processes(level, world.profile());
        let output = super::read_all(&mut processes.spawn(spec).unwrap());
        assert!(output.ends_with("ran\n"), "{level}: {output}");
        assert!(!output.contains("CONTENT"), "{level}: {output}");
        assert!(!world.path("outside/new").exists(), "{level}: {output}");
    }
}

#[test]
fn m_g2_attributes_outside_of_the_workspace() {
    let world = World::new();
    let xattr = format!(
        "perl -e 'syscall({SYS_setxattr}, my $p = \"$ENV{{BASE}}/outside/file\", \
         my $n = \"user.holdpoint\", my $v = \"x\", 1, 0) == 0 and print \"REACHED\"'"
    );
    super::check_possible(&world, &[(&xattr, true)]);
    check(&world, &[("chmod 640 $BASE/outside/file && echo REACHED", true)]);
    assert_eq!(world.path("outside/file").metadata().unwrap().mode() & 0o777, 0o640);
}
