//! Rules from the configuration and the command line: applied, explained and refused.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;

use crate::world::{Ran, World};

/// The output of `policy explain --json`.
fn explained(ran: &Ran) -> serde_json::Value {
    serde_json::from_str(&ran.out).unwrap()
}

#[test]
fn m_e7_rules_of_the_configuration_and_the_command_line_both_apply() {
    let world = World::new();
    world.config("[rules]\nallow = ['shell(echo)', 'write(out/**)']\ndeny = ['shell(rm)']\n");
    std::fs::create_dir(world.work("out")).unwrap();
    let ran = world.play(&[], "shell: echo hi > out/made").code(0);
    assert!(world.work("out/made").exists(), "{ran:#?}");
    world.play(&[], "shell: touch made").code(3);
    world.play(&["--allow", "shell(touch *)"], "shell: touch made").code(0);
    assert!(world.work("made").exists());
    let ran = world.play(&["--policy", "all", "--json"], "shell: rm made").code(0);
    assert!(
        ran.out.contains("denied by the rule `shell(rm)`") && world.work("made").exists(),
        "{ran:#?}"
    );
    world.play(&["--ask", "shell(echo)"], "shell: echo hi").code(3);
    let ran = world
        .play(
            &["--deny", "shell(echo)", "--asks", "approve", "--json"],
            "shell: echo hi > out/more",
        )
        .code(0);
    assert!(!world.work("out/more").exists(), "{ran:#?}");
}

/// They hold keys and logins.
#[test]
fn m_e7_reads_of_holdpoints_own_folders_ask_and_searches_leave_them_out() {
    let world = World::new();
    world.config("# the key of the user\n");
    std::fs::write(world.work("note"), "the key of nobody\n").unwrap();
    let root = world.path("work").canonicalize().unwrap().parent().unwrap().display().to_string();
    let play = |policy: &str, args: &[&str], script: &str| {
        let base = ["--cwd", &root, "--policy", policy, "--asks", "deny", "--json"];
        world.play(&[&base[..], args].concat(), script)
    };
    let read = r#"call read_file {"path":"config/holdpoint/config.toml"}"#;
    let search = r#"call grep {"pattern":"the key of"}"#;
    for policy in ["ask", "edits", "readonly"] {
        for script in [
            read,
            r#"call grep {"pattern":"key","path":"config/holdpoint"}"#,
            r#"call list_dir {"path":"config/holdpoint"}"#,
        ] {
            for args in [&[][..], &["--allow", "read(**)"]] {
                let ran = play(policy, args, script).code(3);
                assert!(!ran.out.contains("of the user"), "{policy} {script}: {ran:#?}");
            }
        }
        let ran = play(policy, &[], search).code(0);
        assert!(ran.out.contains("of nobody") && !ran.out.contains("of the user"), "{ran:#?}");
        assert!(ran.out.contains("left out by the policy"), "{ran:#?}");
    }
    for script in [read, search] {
        let ran = play("all", &[], script).code(0);
        assert!(ran.out.contains("of the user"), "{ran:#?}");
    }
}

#[test]
fn t_a13_an_unenforceable_rule_is_an_error_and_nothing_runs() {
    let world = World::new();
    let play = |args: &[&str]| world.play(args, "shell: touch made").code(2);
    for (rule, says) in [
        ("shell(", "`shell(` is not a rule"),
        ("", "`` is not a rule"),
        ("shell()", "`shell()` is not a rule"),
        ("sh ell", "`sh ell` is not a rule"),
        ("shell(a[)", "unclosed character class"),
        ("shell(git)", "`git` can run other programs"),
        ("shell(sudo touch *)", "`sudo` runs other programs"),
        ("web(x)", "`web` takes no pattern"),
    ] {
        let ran = play(&["--policy", "all", "--allow", rule]);
        assert!(ran.err.contains(says), "{rule}: {ran:#?}");
        world.config(&format!("policy = 'all'\n[rules]\nallow = ['{rule}']\n"));
        let ran = play(&[]);
        assert!(ran.err.contains(says) && ran.err.contains("\nhint: "), "{rule}: {ran:#?}");
        world.config("");
    }
    for config in [
        "[rules]\nallow = 'shell(ls)'\n",
        "[rules]\nalow = []\n",
        "policy = 'yes'\n",
        "[rules\n",
        "\0",
    ] {
        world.config(config);
        assert!(play(&[]).err.contains("\nhint: "), "{config}");
    }
    assert!(!world.work("made").exists());
}

#[test]
fn t_a13_an_unreadable_configuration_is_an_error_and_nothing_runs() {
    let world = World::new();
    let path = world.config("policy = 'all'\n");
    // Bytes that are not UTF-8, a folder, and an unreadable file, which root could still read.
    std::fs::write(&path, b"policy = '\xff'").unwrap();
    let assert_reported = |ran: Ran| {
        assert!(ran.err.contains("config.toml") && ran.err.contains("\nhint: "), "{ran:#?}")
    };
    assert_reported(world.play(&[], "shell: touch made").code(2));
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    assert_reported(world.play(&[], "shell: touch made").code(2));
    std::fs::remove_dir(&path).unwrap();
    world.config("policy = 'ask'\n");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o000)).unwrap();
    if std::fs::read(&path).is_err() {
        assert_reported(world.play(&["--policy", "all"], "shell: touch made").code(2));
    }
    assert!(!world.work("made").exists());
}

#[test]
fn t_a9_a_command_that_is_not_utf8_is_refused() {
    let world = World::new();
    let mut command = world.command(&["policy", "explain"]);
    command.arg(std::ffi::OsStr::from_bytes(b"echo \xff"));
    Ran::of(command).code(2);
    let ran = world.run(&["policy", "explain", "echo a\u{1b}[2Kb\\\nc"]).code(0);
    assert!(!ran.out.contains('\u{1b}'), "{ran:#?}");
}

#[test]
fn each_part_is_explained_and_the_worst_decides() {
    let world = World::new();
    world.config("[rules]\nallow = ['shell(echo)']\ndeny = ['shell(curl)']\n");
    let ran = world.run(&["policy", "explain", "echo $(sudo curl x) > out; ls"]).code(0);
    let expected = "\
deny   sudo curl x
       denied by the rule `shell(curl)`
ask    > out
       the policy is `ask`
allow  echo $(sudo curl x) > out
       allowed by the rule `shell(echo)`
ask    ls
       the policy is `ask`

deny: denied by the rule `shell(curl)`
";
    assert_eq!(ran.out, expected);
    let ran =
        world.run(&["policy", "explain", "--json", "--allow", "shell(ls *)", "ls -l"]).code(0);
    let part = serde_json::json!({"what": "ls -l", "verdict": "allow", "why": "allowed by the rule `shell(ls *)`"});
    let whole = serde_json::json!({"verdict": "allow", "why": "allowed by the rule `shell(ls *)`", "parts": [part]});
    assert_eq!(explained(&ran), whole);
}

#[test]
fn m_e7_an_incomplete_command_is_reported_as_incomplete() {
    let world = World::new();
    let incomplete = "the command is incomplete";
    for (command, part) in [
        ("for", "for"),
        ("if true", "if true"),
        ("ls\nwhile true\n", "while true"),
        ("{ ls; ", "{ ls;"),
    ] {
        let ran = world.run(&["policy", "explain", "--allow", "shell(ls)", command]).code(0);
        assert!(
            ran.out.contains(&format!("ask    {part}\n       {incomplete}\n")),
            "{command}: {}",
            ran.out
        );
        assert!(ran.out.ends_with(&format!("\nask: {incomplete}\n")), "{command}: {}", ran.out);
    }
    // Even if a command can't be parsed, each part is named.
    for command in
        ["echo \"a", "(", "while", "case x", "cat <<EOF", "f()", "a &&", "echo \\", "select x"]
    {
        let explanation = explained(&world.run(&["policy", "explain", "--json", command]).code(0));
        for part in explanation["parts"].as_array().unwrap() {
            assert!(!part["what"].as_str().unwrap().trim().is_empty(), "{command}: {explanation}");
        }
    }
}

#[test]
fn paths_of_tools_are_explained_too() {
    let world = World::new();
    let verdict = |args: &[&str]| {
        let ran = world.run(&[&["policy", "explain", "--json"], args].concat()).code(0);
        explained(&ran)["verdict"].as_str().unwrap().to_owned()
    };
    assert_eq!(verdict(&["--tool", "read_file", "a"]), "allow");
    assert_eq!(verdict(&["--tool", "read_file", "/etc/hosts"]), "ask");
    assert_eq!(verdict(&["--tool", "write_file", "a"]), "ask");
    assert_eq!(verdict(&["--tool", "write_file", "--policy", "edits", "a"]), "allow");
    assert_eq!(verdict(&["--tool", "edit_file", "--policy", "edits", ".git/config"]), "ask");
    assert_eq!(
        verdict(&["--tool", "read_file", "--deny", "read(~/.ssh/**)", "../home/.ssh/id"]),
        "deny"
    );
    assert_eq!(verdict(&["--policy", "readonly", "ls"]), "deny");
    let ran = world
        .run(&["policy", "explain", "--policy", "edits", "echo a > .cargo/config.toml"])
        .code(0);
    assert!(
        ran.out.contains("ask    > .cargo/config.toml\n       its name is protected"),
        "{ran:#?}"
    );
    world.run(&["policy", "explain", "--tool", "web", "a"]).code(2);
    assert!(world.run(&["policy", "explain", " "]).code(2).err.contains("nothing to explain"));
    world.run(&["policy", "explain", "--cwd", "nowhere", "ls"]).code(2);
}
