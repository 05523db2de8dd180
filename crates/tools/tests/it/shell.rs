//! The shell tool: its output, its end, its environment, and its errors.
#![cfg(unix)]

use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use holdpoint_common::limits::MAX_OUTPUT_DELTA;
use holdpoint_tools::testing::{Bench, Called, again, part, patience};
use holdpoint_tools::{
    Act, Exit, ProcessSpec, Processes, Read, Shell, Supervisor, Tool, ToolError, environment,
};
use serde_json::json;

const SUPERVISORS: [Supervisor; 2] = [Supervisor::ThisProgram, Supervisor::None];

fn run(bench: &Bench, command: &str) -> Called {
    bench.call(Shell::new(), json!({ "command": command }))
}

fn result_of(called: &Called) -> &str {
    &called.result.as_ref().unwrap().output
}

#[test]
fn both_output_streams_are_merged_in_order() {
    for supervisor in SUPERVISORS {
        let bench = Bench::new().supervisor(supervisor);
        let called = run(&bench, "for i in 1 2 3; do echo out$i; echo err$i >&2; done; pwd");
        assert_eq!(
            called.output,
            format!("out1\nerr1\nout2\nerr2\nout3\nerr3\n{}\n", bench.root().display())
        );
        assert_eq!(result_of(&called), "[exit code 0]");
    }
}

/// The user approved the folder that was shown, even if another one has replaced it since.
#[test]
fn m_e7_a_command_runs_only_in_the_shown_folder() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let (root, other) = (folder.join("root"), folder.join("other"));
    for folder in [&root, &other] {
        std::fs::create_dir(folder).unwrap();
    }
    let bench = Bench::within(&root);
    let command = json!({ "command": "touch made" });
    let shown = |tool: &Shell| tool.intent(&command, bench.workspace()).unwrap().details.unwrap();

    let tool = Shell::new();
    assert!(shown(&tool).ends_with(&format!("in {}", root.display())));
    std::fs::rename(&root, folder.join("moved")).unwrap();
    std::os::unix::fs::symlink(&other, &root).unwrap();
    let error = bench.call(tool, command.clone()).result.unwrap_err().to_string();
    assert!(
        error.contains(&other.display().to_string()) && error.contains("nothing was done"),
        "{error}"
    );
    assert!(!other.join("made").exists());

    // A new ask shows the new folder.
    let tool = Shell::new();
    assert!(shown(&tool).ends_with(&format!("in {}", other.display())));
    assert_eq!(result_of(&bench.call(tool, command)), "[exit code 0]");
    assert!(other.join("made").exists());
}

/// A new folder with the same name is another folder.
#[test]
fn m_e7_a_command_does_not_run_in_a_replaced_folder() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let root = folder.join("root");
    std::fs::create_dir(&root).unwrap();
    let bench = Bench::within(&root);
    for removed in [false, true] {
        for background in [false, true] {
            let command = json!({ "command": "touch made", "background": background });
            let tool = Shell::new();
            tool.intent(&command, bench.workspace()).unwrap();
            match removed {
                false => std::fs::rename(&root, folder.join(format!("moved{background}"))).unwrap(),
                // The new folder may get the same inode number.
                true => std::fs::remove_dir_all(&root).unwrap(),
            }
            std::fs::create_dir(&root).unwrap();
            let error = bench.call(tool, command.clone()).result.unwrap_err().to_string();
            assert!(
                error.contains(&root.display().to_string()) && error.contains("nothing was done"),
                "{error}"
            );
            assert!(!root.join("made").exists());
        }
    }
    // A change inside the folder does not make it another one.
    let (tool, command) = (Shell::new(), json!({ "command": "touch made" }));
    tool.intent(&command, bench.workspace()).unwrap();
    std::fs::write(root.join("x"), "").unwrap();
    assert_eq!(result_of(&bench.call(tool, command)), "[exit code 0]");
    assert!(root.join("made").exists());
}

#[test]
fn the_result_reports_how_the_command_ended() {
    for supervisor in SUPERVISORS {
        let bench = Bench::new().supervisor(supervisor);
        for (command, expected) in [
            ("exit 3", "[exit code 3]"),
            ("kill -SEGV $$", "[ended by signal 11 (SIGSEGV)]"),
            ("no-such-program", "[exit code 127]"),
            ("exec >&- 2>&-; sleep 0.05; exit 4", "[exit code 4]"),
        ] {
            let called = run(&bench, command);
            assert_eq!(result_of(&called), expected, "{command}");
            assert!(called.result.unwrap().failed);
        }
    }
}

#[test]
fn a_timeout_is_reported_and_earlier_output_is_kept() {
    let bench = Bench::new();
    // A busy machine may need more time to print the output.
    for timeout in [50, 1_000, 20_000, 100_000] {
        let command = "echo early; exec sleep 1000";
        let called = bench.call(Shell::new(), json!({"command": command, "timeout_ms": timeout}));
        if called.output.is_empty() && timeout < 100_000 {
            continue;
        }
        assert_eq!(called.output, "early\n");
        let expected =
            format!("[timed out after {timeout} ms; 1 process was still running and was ended]");
        assert_eq!(result_of(&called), expected);
        break;
    }
    let called =
        bench.call(Shell::new(), json!({"command": "exec >&- 2>&-; sleep 1000", "timeout_ms": 50}));
    assert!(result_of(&called).starts_with("[timed out"), "{}", result_of(&called));
}

#[test]
fn characters_are_not_split_across_pieces() {
    let bench = Bench::new();
    let called = run(&bench, r"printf '\xe6'; sleep 0.02; printf '\xbc\xa2\xff\xc3'");
    assert_eq!(called.output, "漢\u{fffd}\u{fffd}");
    let called = run(&bench, "for ((i = 0; i < 20000; i++)); do echo 漢漢漢漢; done");
    assert_eq!(called.output, "漢漢漢漢\n".repeat(20_000));
    assert!(called.largest_piece <= MAX_OUTPUT_DELTA);
}

/// Also the worst case of t-P4: without a supervisor, and with a process that has left the group.
#[test]
fn t_p4_a_process_that_keeps_the_output_open_does_not_block_the_call() {
    for (supervisor, command) in [
        (Supervisor::ThisProgram, "setsid sleep 1000 & echo $!"),
        (Supervisor::ThisProgram, "(trap '' TERM; exec setsid sleep 1000) & echo $!"),
        (Supervisor::None, "setsid sleep 1000 & echo $!; sleep 0.1"),
        (
            Supervisor::None,
            "setsid bash -c 'trap \"\" PIPE; while sleep 0.01; do echo more; done' & echo $!; sleep 0.1",
        ),
    ] {
        let is_supervised = supervisor != Supervisor::None;
        let bench = Bench::new().supervisor(supervisor);
        let called = run(&bench, command);
        assert!(
            result_of(&called).starts_with("[exit code 0"),
            "{command}: {}",
            result_of(&called)
        );
        // The process in the background may write before the shell does.
        let pid = called.output.lines().find_map(|line| line.parse().ok()).unwrap();
        // Without a supervisor the process may live on: the call did not wait for its end.
        let pid = rustix::process::Pid::from_raw(pid).unwrap();
        let killed = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        assert!(is_supervised || killed.is_ok(), "{command}: {killed:?}");
    }
}

/// The pipe is never empty: it is read slowly and filled fast.
#[test]
fn t_p4_a_flood_does_not_block_the_call() {
    let bench = Bench::new();
    let processes = Processes::new(Supervisor::None, Duration::from_millis(100));
    let mut process = processes
        .spawn(ProcessSpec {
            program: "bash".into(),
            // Ended by SIGPIPE once the output is closed.
            args: vec!["-c".into(), "setsid yes & sleep 0.1".into()],
            cwd: bench.root().to_owned(),
            env: bench.workspace().env().to_vec(),
        })
        .unwrap();
    assert_eq!(process.wait_by(None), Some(Exit::Code(0)));
    let by = Instant::now() + patience();
    while process.read_by(&mut [0], None).unwrap() != Read::Ended {
        assert!(Instant::now() < by, "reading never ends");
    }
}

/// Output that a program has written before its end is read, even if the reader is late.
#[test]
fn t_p4_output_left_in_the_pipe_is_read() {
    const WRITTEN: usize = 60_000;
    let bench = Bench::new();
    for supervisor in SUPERVISORS {
        let processes = Processes::new(supervisor, Duration::from_millis(100));
        let mut process = processes
            .spawn(ProcessSpec {
                program: "bash".into(),
                args: vec!["-c".into(), format!("head -c {WRITTEN} /dev/zero").into()],
                cwd: bench.root().to_owned(),
                env: bench.workspace().env().to_vec(),
            })
            .unwrap();
        let mut buffer = [0; 1000];
        let mut read = 0;
        assert_eq!(process.wait_by(None), Some(Exit::Code(0)));
        while let Read::Bytes(bytes) = process.read_by(&mut buffer, None).unwrap() {
            if read == 0 {
                // Longer than output is read after the end of the program was noticed.
                std::thread::sleep(Duration::from_secs(2));
            }
            read += bytes;
        }
        assert_eq!(read, WRITTEN);
    }
}

#[test]
fn t_p9_standard_input_and_the_terminal_are_unavailable() {
    let bench = Bench::new();
    let called =
        run(&bench, "read line; echo \"$? [$line]\"; (echo x > /dev/tty) 2>&1; ps -o tty= -p $$");
    let lines: Vec<_> = called.output.lines().collect();
    assert_eq!(lines[0], "1 []");
    assert!(lines[1].contains("/dev/tty: No such device or address"), "{lines:?}");
    assert_eq!(lines[2], "?");
}

/// The same with a keyboard: the owner runs in its own terminal, made by `script`.
#[test]
#[cfg(target_os = "linux")]
fn t_p9_the_owners_terminal_can_not_be_opened() {
    if part().is_some() {
        return in_a_terminal();
    }
    let owner = again("owner");
    let words = std::iter::once(owner.get_program())
        .chain(owner.get_args())
        .map(|word| word.to_str().unwrap());
    let mut script = std::process::Command::new("script")
        .args(["-qec", &words.collect::<Vec<_>>().join(" "), "/dev/null"])
        .envs(owner.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    // Typed ahead: no process below may read it.
    std::io::Write::write_all(script.stdin.as_mut().unwrap(), b"typed\n").unwrap();
    let output = script.wait_with_output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(printed.contains("owner: Ok"), "{printed}");
    assert!(printed.contains("command: [] [/dev/tty: No such device or address]"), "{printed}");
}

/// The owner in that terminal.
fn in_a_terminal() {
    println!("owner: {:?}", std::fs::File::open("/dev/tty").map(drop));
    let command = "read -t 1 line; read -t 1 more < /dev/tty; echo \"[$line$more]\"";
    let called = run(&Bench::new(), command);
    let printed = called.output.replace("bash: line 1: ", "");
    let (errors, read) = printed.trim_end().rsplit_once('\n').unwrap_or_default();
    println!("command: {read} [{errors}]");
}

#[test]
fn t_h2_the_environment_is_the_allowed_one() {
    let vars = [
        ("PATH", "/usr/bin:/bin"),
        ("LC_ALL", "C"),
        ("XDG_DATA_HOME", "/d"),
        ("TZ", "UTC"),
        ("OPENAI_API_KEY", "1"),
        ("GITHUB_TOKEN", "2"),
        ("XDG_SECRET", "3"),
        ("LC_password", "4"),
        ("LD_PRELOAD", "/x.so"),
        ("BASH_ENV", "/x"),
        ("HOLDPOINT_LOG", "debug"),
    ];
    let allowed =
        environment::allowed(vars.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let names: Vec<_> = allowed.iter().map(|(name, _)| name.as_str()).collect();
    let unattended = [
        "EDITOR",
        "VISUAL",
        "GIT_EDITOR",
        "GIT_SEQUENCE_EDITOR",
        "JJ_EDITOR",
        "HGEDITOR",
        "SVN_EDITOR",
    ];
    let others = ["PAGER", "GIT_PAGER", "GIT_TERMINAL_PROMPT", "DEBIAN_FRONTEND"];
    assert_eq!(
        names,
        [&["PATH", "LC_ALL", "XDG_DATA_HOME", "TZ"][..], &unattended, &others].concat()
    );

    for supervisor in SUPERVISORS {
        let bench = Bench::new().supervisor(supervisor).env("MINE", "yes");
        let called = run(&bench, "env -0 | tr '\\0\\n' '\\n '");
        for line in called.output.lines() {
            let (name, value) = line.split_once('=').unwrap();
            let ours = bench
                .workspace()
                .env()
                .iter()
                .any(|(known, given)| known == name && given == value);
            // The variables that bash itself sets.
            assert!(ours || ["PWD", "OLDPWD", "SHLVL", "_"].contains(&name), "{line}");
        }
        assert!(called.output.contains("MINE=yes"));
    }
}

/// With a relative entry, an allowed program name could be a file of the workspace.
#[test]
fn t_h2_programs_are_looked_for_in_absolute_folders_only() {
    for (given, left) in [
        ("/usr/bin:/bin", "/usr/bin:/bin"),
        (".:/usr/bin:bin:/bin:", "/usr/bin:/bin"),
        (":/a b/c::~/bin:./x:/bin", "/a b/c:/bin"),
        (".", "/usr/bin:/bin"),
        ("", "/usr/bin:/bin"),
    ] {
        let allowed = environment::allowed([("PATH".to_owned(), given.to_owned())]);
        assert_eq!(allowed[0], ("PATH".to_owned(), left.to_owned()), "{given:?}");
    }
    assert!(!environment::allowed([]).iter().any(|(name, _)| name == "PATH"));
}

/// With a link of `/proc`, an entry would have the meaning of a relative one.
#[test]
fn m_g6_path_entries_lead_into_the_workspace_only_by_its_name() {
    let (folder, work) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let work = work.path().canonicalize().unwrap();
    let link = |name: &str, target: &std::path::Path| {
        let link = folder.path().join(name);
        std::os::unix::fs::symlink(target, &link).unwrap();
        link.display().to_string()
    };
    std::fs::create_dir(work.join("bin")).unwrap();
    let named = work.join("bin").display().to_string();
    let linked = link("linked", &work.join("bin"));
    let parent = link("parent", &work);
    let own = link("own", "/proc/self/cwd".as_ref());
    let elsewhere = link("elsewhere", "/usr/bin".as_ref());
    let pid = std::process::id();
    let inside = work.display();
    for (link, target) in [
        (linked.clone(), named.clone()),
        (format!("{linked}/."), named.clone()),
        (format!("{parent}/bin"), named.clone()),
        (format!("{parent}/not/yet/there"), format!("{inside}/not/yet/there")),
    ] {
        let env = vec![("PATH".to_owned(), format!("/bin:{link}"))];
        let env = environment::with_direct_entries(env, &work);
        assert_eq!(env[0].1, format!("/bin:{target}"), "{link}");
    }
    for dropped in [
        own.clone(),
        format!("{own}/bin"),
        "/proc/self/cwd".to_owned(),
        "/proc/self/cwd/bin".to_owned(),
        "/proc/self/root/usr/bin".to_owned(),
        format!("/proc/{pid}/cwd"),
        "/usr/../proc/self/cwd".to_owned(),
    ] {
        let path = format!("{dropped}:{named}:{elsewhere}:/bin:/nowhere");
        let env = vec![("PATH".to_owned(), path), ("HOME".to_owned(), dropped.clone())];
        let env = environment::with_direct_entries(env, &work);
        assert_eq!(env[0].1, format!("{named}:{elsewhere}:/bin:/nowhere"), "{dropped}");
        assert_eq!(env[1].1, dropped);
    }
}

/// Each of these would wait for a user forever, also because of the user's settings of git.
#[test]
fn m_e7_commands_that_need_an_editor_or_a_pager_fail_at_once_with_a_hint() {
    let path = [("PATH".to_owned(), std::env::var("PATH").unwrap())];
    for supervisor in SUPERVISORS {
        let mut bench = Bench::new().supervisor(supervisor);
        for (name, value) in environment::allowed(path.clone()) {
            bench = bench.env(&name, &value);
        }
        let git = "git -c user.name=n -c user.email=e@x -c core.editor='sleep 600' -c core.pager='sleep 600'";
        let commit = format!("{git} commit -q -m one");
        let made = run(&bench, &format!("git init -q . && seq 999 > f && git add f && {commit}"));
        assert_eq!(result_of(&made), "[exit code 0]", "{}", made.output);
        for (command, hint) in [
            ("commit --amend", "pass -m, -F or --no-edit"),
            ("commit --allow-empty", "pass -m, -F or --no-edit"),
            ("tag -a two", "pass -m, -F or --no-edit"),
            ("rebase -i --root", "set GIT_SEQUENCE_EDITOR to a command that edits"),
        ] {
            let called = run(&bench, &format!("{git} {command}"));
            assert!(called.output.contains(hint), "{command}: {}", called.output);
            assert!(
                !called.output.contains("sleep") && result_of(&called) != "[exit code 0]",
                "{command}: {}",
                called.output
            );
        }
        for command in ["$EDITOR f", "sh -c \"$VISUAL f\""] {
            assert_eq!(result_of(&run(&bench, command)), "[exit code 1]", "{command}");
        }
        let shown = run(&bench, "git --paginate log --oneline; $PAGER f");
        assert!(
            shown.output.contains(" one\n1\n2\n") && shown.output.ends_with("\n999\n"),
            "{}",
            shown.output
        );
    }
}

/// A folder of the workspace may be on the PATH, but bash, which reads every command, is not taken
/// from it.
#[test]
fn t_h2_bash_is_never_taken_from_the_workspace() {
    let outside = tempfile::tempdir().unwrap();
    for supervisor in SUPERVISORS {
        let bench = Bench::new();
        let (bin, linked) = (bench.root().join("node_modules/.bin"), outside.path().join("linked"));
        std::fs::create_dir_all(&bin).unwrap();
        let _ = std::fs::remove_file(&linked);
        std::os::unix::fs::symlink(&bin, &linked).unwrap();
        for (program, made) in [("bash", "sprung"), ("date", "dated")] {
            std::fs::write(
                bin.join(program),
                format!("#!/bin/sh\n: > '{}/{made}'\n", bench.root().display()),
            )
            .unwrap();
            std::fs::set_permissions(bin.join(program), std::fs::Permissions::from_mode(0o755))
                .unwrap();
        }
        for entry in [&bin, &linked].map(|folder| folder.display()) {
            let path = format!("{entry}:{}", std::env::var("PATH").unwrap());
            let bench =
                Bench::within(bench.root()).supervisor(supervisor.clone()).env("PATH", path);
            assert_eq!(run(&bench, "echo here; date").output, "here\n", "{entry}");
            assert!(!bench.root().join("sprung").exists(), "{entry}");
            // The command's own PATH is unchanged.
            std::fs::remove_file(bench.root().join("dated")).unwrap();
        }
    }
}

#[test]
fn bash_calls_itself_bash() {
    for supervisor in SUPERVISORS {
        let called = run(&Bench::new().supervisor(supervisor), "echo $0 $#; ${x?}");
        assert_eq!(called.output, "bash 0\nbash: line 1: x: parameter not set\n");
    }
}

#[test]
fn no_descriptor_is_inherited() {
    let bench = Bench::new();
    let called =
        run(&bench, "ls -l /proc/self/fd | grep -vE '^total|/dev/null|pipe:|/proc/[0-9]+/fd'");
    assert_eq!(called.output, "");
}

#[test]
fn signal_handling_is_the_default() {
    let bench = Bench::new();
    let called = run(
        &bench,
        "grep -E 'Sig(Ign|Blk)' /proc/self/status; yes | head -1; echo ${PIPESTATUS[0]}",
    );
    let lines: Vec<_> = called.output.lines().collect();
    for line in &lines[..2] {
        let set = u64::from_str_radix(line.split_once('\t').unwrap().1, 16).unwrap();
        assert_eq!(set & 0x7fff_ffff, 0, "{line}");
    }
    assert_eq!(lines[2..], ["y", "141"]);
}

#[test]
fn invalid_input_is_refused() {
    let bench = Bench::new();
    for (input, expected) in [
        (json!({"command": "a\u{0}b"}), "zero byte"),
        (json!({"command": "  "}), "empty"),
        (json!({"cmd": "ls"}), "unknown field `cmd`"),
        (json!({}), "missing field `command`"),
        (json!({"command": "ls", "timeout_ms": 0}), "timeout_ms"),
        (json!({"command": "ls", "timeout_ms": 3_600_001}), "timeout_ms"),
        (json!("ls"), "invalid type"),
    ] {
        for error in [
            Shell::new().intent(&input, bench.workspace()).unwrap_err(),
            bench.call(Shell::new(), input.clone()).result.unwrap_err(),
        ] {
            assert!(
                matches!(&error, ToolError::Input { message } if message.contains(expected)),
                "{input}: {error}"
            );
        }
    }
}

#[test]
fn the_intent_shows_the_exact_command() {
    let bench = Bench::new();
    let intent = |command: &str| {
        Shell::new().intent(&json!({ "command": command }), bench.workspace()).unwrap()
    };
    let shown = intent(" rm -r  build\n");
    assert!(matches!(&shown.acts[..], [Act::Command(_)]));
    assert_eq!(shown.details.unwrap(), format!(" rm -r  build\n\n\nin {}", bench.root().display()));
    assert_ne!(shown.always, intent("rm -r build").always);
}

#[test]
fn a_program_that_can_not_start_is_an_error() {
    for supervisor in SUPERVISORS {
        let bench = Bench::new();
        let processes = Processes::new(supervisor, Duration::from_millis(100));
        let spec = |program: &str, cwd: &std::path::Path| ProcessSpec {
            program: program.into(),
            args: Vec::new(),
            cwd: cwd.to_owned(),
            env: bench.workspace().env().to_vec(),
        };
        let error = processes.spawn(spec("no-such-program", bench.root())).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
        let missing = bench.root().join("missing");
        let error = processes.spawn(spec("bash", &missing)).unwrap_err();
        assert!(error.to_string().contains(missing.to_str().unwrap()), "{error}");
        assert_eq!(processes.finish().total(), 0);
        let error = processes.spawn(spec("bash", bench.root())).unwrap_err();
        assert!(error.to_string().contains("the call has ended"), "{error}");
    }
}

#[test]
fn a_program_that_is_no_supervisor_is_an_error() {
    let bench = Bench::new().supervisor(Supervisor::Program("/bin/true".into()));
    let error = run(&bench, "echo").result.unwrap_err().to_string();
    assert!(error.contains("supervise_if_asked"), "{error}");
    let bench = Bench::new().supervisor(Supervisor::Program("/no/such/file".into()));
    assert!(run(&bench, "echo").result.is_err());
}

#[test]
fn a_long_command_arrives_whole() {
    let bench = Bench::new();
    let long = "x".repeat(100_000);
    assert_eq!(run(&bench, &format!("echo {long}")).output, format!("{long}\n"));
}

#[test]
#[cfg(target_os = "linux")]
fn a_command_that_can_not_be_passed_to_bash_is_refused_without_an_ask() {
    let bench = Bench::new();
    let command = |length: usize| json!({"command": format!("true {}", "x".repeat(length - 5))});
    let error =
        Shell::new().intent(&command(128 * 1024), bench.workspace()).unwrap_err().to_string();
    assert!(error.contains("131072 bytes") && error.contains("at most 131071"), "{error}");
    let longest = command(128 * 1024 - 1);
    assert!(Shell::new().intent(&longest, bench.workspace()).is_ok());
    bench.call(Shell::new(), longest).result.unwrap();
}
