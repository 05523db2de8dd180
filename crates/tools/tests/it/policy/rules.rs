//! The meaning of rules: their precedence, commands by program and words, places by glob.

use std::fs;
use std::os::unix::fs::symlink;

use holdpoint_common::{PolicyMode, Verdict};
use holdpoint_tools::{Act, Place};

use super::support::{PolicyWorkspace, RuleText};

use Verdict::{Allow, Ask, Deny};

/// Ways to call `curl`, to be denied whatever else the rules allow.
const CURL: &[&str] = &[
    "curl evil",
    "env curl evil",
    "env A=b curl evil",
    "env -S 'curl evil'",
    "env -u A curl evil",
    "sudo curl evil",
    "sudo -u root -E A=b curl evil",
    "doas curl evil",
    "su -c 'curl evil' root",
    "setsid curl evil",
    "timeout 5 curl evil",
    "timeout --weird 5 curl evil",
    "nice -n 5 curl evil",
    "ionice -c 3 curl evil",
    "watch -n 1 curl evil",
    "watch 'curl evil'",
    "/usr/bin/curl evil",
    "./curl evil",
    "~/bin/curl evil",
    "c\"\"url evil",
    "\\curl evil",
    "$'curl' evil",
    "$'\\x63url' evil",
    "'curl' evil",
    "busybox curl evil",
    "alias c=curl",
    "alias c='curl evil'; c",
    "xargs curl",
    "xargs -I{} curl {}",
    "xargs -I{} sh -c 'curl {}'",
    "unshare -r bash -c 'curl evil'",
    "find . -exec curl {} \\;",
    "find . -execdir curl {} +",
    "command curl evil",
    "exec curl evil",
    "exec -a ls curl evil",
    "eval curl evil",
    "eval 'curl evil'",
    "bash -c 'curl evil'",
    "bash -ec 'curl evil'",
    "bash -o pipefail -c 'curl evil'",
    "bash --norc -c 'true; curl evil'",
    "sh -c 'echo $(curl evil)'",
    "trap 'curl evil' EXIT",
    "trap 'curl http://evil/?q=x' EXIT",
    "trap 'x=1; curl evil' EXIT",
    "coproc curl evil",
    "coproc NAME { curl evil; }",
    "time curl evil",
    "! curl evil",
    "nohup curl evil &",
    "stdbuf -oL curl evil",
    "strace -f -o x curl evil",
    "strace --weird curl evil",
    "flock x curl evil",
    "flock x -c 'curl evil'",
    "script -c 'curl evil' x",
    "script -qc 'curl evil' x",
    "chroot / curl evil",
    "unshare -rn curl evil",
    "chrt -r 1 curl evil",
    "taskset -c 0 curl evil",
    "parallel curl ::: evil",
    "ssh host curl evil",
    "A=b curl evil",
    "echo $(curl evil)",
    "echo \"`curl evil`\"",
    "echo ${x:-$(curl evil)}",
    "cat <(curl evil)",
    "cat <<EOF\n$(curl evil)\nEOF",
    "f() { curl evil; }; f",
    "if x; then curl evil; fi",
    "cu\\\nrl evil",
    "curl \\\n evil",
    "curl evil\n)",
    "echo $((x)); curl evil",
    "((x)); curl evil",
    "a=(b); curl evil",
    "env env env sudo timeout 5 curl evil",
    "jobs -x curl evil",
    "jobs -lx -n curl evil",
    "jobs -xr -- curl evil",
    "jobs -x -- env curl evil",
    "jobs -x eval 'curl evil'",
    "builtin jobs -x curl evil",
    "command -- jobs -x curl evil",
    "jobs $x curl evil",
    "eval -- 'curl evil'",
    "builtin eval -- 'curl evil'",
    "command -p eval -- 'curl evil'",
    "trap -- 'curl evil' EXIT",
    "alias -- c='curl evil'",
    "env - curl evil",
    "env - A=b curl evil",
    "env A=b -- curl evil",
    "env '-vScurl evil'",
    "env -S '-i curl evil'",
    "env --split-string='A=b curl evil'",
    "bash -oc pipefail 'curl evil'",
    "bash -oOc pipefail extglob 'curl evil'",
    "bash --rcfile x -c 'curl evil'",
    "bash -norc -c 'curl evil'",
    "bash -c -posix errexit 'curl evil'",
    "bash -c -rcfile 'curl evil' ls",
    "bash +posix errexit -c 'curl evil'",
    "bash -c - 'curl evil'",
    "bash -c -- 'curl evil'",
    "zsh --emulate sh -c 'curl evil'",
    "csh -c 'curl evil'",
    "tcsh -c 'curl evil'",
    "mksh -c 'curl evil'",
    "ksh -c 'curl evil'",
    "fish -c 'curl evil'",
    "fish --command='curl evil'",
    "pwsh -NoProfile -c 'curl evil'",
    "su --session-command='curl evil'",
    "compgen -C 'curl evil'",
    "complete -C 'curl evil' x",
    "mapfile -C 'curl evil' -c 1 a <<< b",
    "readarray -tC'curl evil' -c 1 a <<< b",
    "sg root 'curl evil'",
    "sg root -c 'curl evil'",
    "ssh-agent curl evil",
    "gpg-agent --daemon curl evil",
    "gpg-agent --daemon --default-cache-ttl 5 sh -c 'curl evil'",
    "start-stop-daemon --start --exec /usr/bin/curl",
    "capsh -- -c 'curl evil'",
    "/lib64/ld-linux-x86-64.so.2 /bin/sh -c 'curl evil'",
    "/lib/ld-musl-x86_64.so.1 /usr/bin/curl evil",
    "perf stat curl evil",
    "gdb --args curl evil",
    "bwrap --ro-bind / / curl evil",
    "proot curl evil",
    "firejail --quiet curl evil",
    "gosu root curl evil",
    "setuidgid root curl evil",
    "cgexec -g cpu:x curl evil",
    "gtimeout 5 curl evil",
    "gfind . -exec curl {} +",
    "gtime -v curl evil",
    "x86_64 -R curl evil",
    "i386 curl evil",
    "uname26 curl evil",
    "uclampset -m 5 curl evil",
    "pipesz -c curl evil",
    "coresched exec -- curl evil",
    "systemd-cat -t x curl evil",
    "systemd-inhibit --what=sleep curl evil",
    "run0 -u root curl evil",
    "sshpass -p x curl evil",
    "cpulimit -l 5 -- curl evil",
    "echo a | ifne -n curl evil",
    "echo a | pee cat 'curl evil'",
    // Programs that run others only by an option.
    "rg --pre curl evil",
    "rg --pre=/usr/bin/curl evil",
    "rg --hostname-bin=curl evil",
    "sort --compress-program=curl evil",
    "gsort --comp curl evil",
    "split --filter='curl evil' x",
    "fd -x curl evil",
    "fd --exec-batch curl evil",
    "sdiff --diff-program=curl a b",
    "install --strip-program=curl -s a b",
    "timeout 5 rg --pre curl evil",
];

#[test]
fn t_a5_a_denied_program_is_denied_in_every_kind_of_call() {
    for mode in [PolicyMode::Ask, PolicyMode::Edits, PolicyMode::All, PolicyMode::Readonly] {
        let allow = &["shell(echo)", "shell(cat)"];
        let world = RuleText { mode, allow, deny: &["shell(curl)"], ..RuleText::default() }.world();
        for command in CURL {
            assert_eq!(
                world.verdict(command),
                Deny,
                "{command:?}: {:#?}",
                world.command(command).parts
            );
        }
        for command in ["echo curl", "echo 'curl evil'", "cat curl", "echo a # curl"] {
            assert_eq!(world.verdict(command) == Deny, mode == PolicyMode::Readonly, "{command:?}");
        }
    }
}

/// Commands that may contain `curl`: the programs they run are known only when they run.
const MAY_BE_CURL: &[&str] = &[
    "timeout -k $x 5 true",
    "sudo -u $x true",
    "exec -a $x true",
    "bash -o $x -c true",
    "chroot $x true",
    "echo '5 5 curl x' | xargs timeout -k",
    "echo '5 curl x' | xargs nice -n",
    "echo 'pipefail -c curl' | xargs bash -o",
    // Builtins of bash that evaluate their arguments.
    "test -v 'a[$(curl x)]'",
    "[ -v 'a[$(curl x)]' ]",
    "x='a[$(curl x)]'; test -v \"$x\"",
    "printf -v 'a[$(curl x)]' b",
    "wait -p 'a[$(curl x)]'",
    "read 'a[$(curl x)]' <<< b",
    "let 'x=a[$(curl x)]'",
    "x='a[$(curl x)]'; let \"$x\"",
    "x='a[$(curl x)]'; let y=x",
    "declare 'a[$(curl x)]=1'",
    "declare -i i='b[$(curl x)]'",
    "x='b[$(curl x)]'; declare -ri i=x",
    "declare -n i='b[$(curl x)]'",
    "typeset \"$x\"",
    "local \"$x\"",
    // Text in parentheses makes an array and is expanded, quoted or not.
    "declare -a 'a=($(curl x))'",
    "declare -a a='($(curl x))'",
    "declare -a a+='($(curl x))'",
    "declare 'DIRSTACK=($(curl x))'",
    "declare -a a; declare 'a=($(curl x))'",
    "mapfile -t a < f; declare \"a=(\\$(curl x))\"",
    "read -a a < f; command typeset 'a=($(curl x))'",
    "typeset -a 'a=($(curl x))'",
    "f() { local -a 'a=($(curl x))'; }; f",
    "export -a 'a=($(curl x))'",
    "readonly -a 'a=($(curl x))'",
    "readonly -A 'a=([q]=$(curl x))'",
    "x='($(curl x))'; readonly -a a=$x",
    "x='($(curl x))'; builtin export -A a=$x",
    "a=1; unset 'a[$(curl x)]'",
    "command unset 'a[$(curl x)]'",
    "compgen -W '$(curl x)'",
    "bind -x '\"a\":curl x'",
    "enable -f ./x.so curl",
    "fc -s",
    "jobs -x $x evil",
    "x='1 PS4=$(curl${IFS}x)'; jobs -x export a=$x; set -x; true",
    "x='1 PS4=$(curl${IFS}x)'; jobs -x readonly a=$x; set -x; true",
    "x='-x curl'; jobs $x",
    "x='curl x'; jobs -lx $x",
    "jobs -x -- $x evil",
    "jobs -x let 'x=a[$(curl x)]'",
    "hash -p /usr/bin/curl foo; foo",
    // Variables that bash evaluates.
    "PS4='$(curl x)'; set -x; true",
    "declare -n r=PS4; r='$(curl x)'; set -x; true",
    "declare -gn r=PS4; r='$(curl x)'; set -x; true",
    "RANDOM='a[$(curl x)]'",
    "OPTIND+='a[$(curl x)]'",
    "for SRANDOM in 'a[$(curl x)]'; do :; done",
    "read RANDOM <<< 'a[$(curl x)]'",
    "export PS4='$(curl x)'; set -x; true",
    "declare -x PS4='$(curl x)'; set -x; true",
    "read PS4 <<< '$(curl x)'; set -x; true",
    "BASH_ENV=<(echo curl x) bash -c :",
    "bash --rcfile ./evil.sh -ic true",
    "BASH_ENV=/dev/stdin bash -c : <<< 'curl x'",
    "ENV=x sh -c :",
    "env BASH_ENV=x bash -c :",
    "env 'BASH_FUNC_true%%=() { curl x; }' bash -c true",
    "x='PS4=$(curl x)'; export \"$x\"; set -x; true",
    "x='1 PS4=$(curl x)'; \\export a=$x; set -x; true",
    "x='1 PS4=$(curl x)'; command export a=$x; set -x; true",
    "x='$(curl x)'; export PS4=\"$x\"; set -x; true",
    "x='$(curl x)'; readonly PS4+=$x; set -x; true",
    "strace -E BASH_ENV=/dev/stdin bash -c : <<< 'curl x'",
    // Another name for a program that runs others.
    "shopt -s expand_aliases\nalias e=env\ne curl evil",
    "shopt -s expand_aliases\nalias \"$x\"\ne curl evil",
    // Commands that change how the rest is read: words after a program set variables, and lines are
    // built from earlier ones.
    "set -k; bash -c : BASH_ENV=/dev/stdin <<< 'curl x'",
    "set -ek; bash -c : BASH_ENV=/dev/stdin <<< 'curl x'",
    "set -o keyword; bash -c : BASH_ENV=/dev/stdin <<< 'curl x'",
    "shopt -so keyword; bash -c : BASH_ENV=/dev/stdin <<< 'curl x'",
    "set $x; bash -c : BASH_ENV=/dev/stdin <<< 'curl x'",
    "bash -kc 'bash -c : BASH_ENV=/dev/stdin' <<< 'curl x'",
    "bash -o keyword -c 'bash -c : BASH_ENV=/dev/stdin' <<< 'curl x'",
    "env SHELLOPTS=keyword bash -c 'bash -c : BASH_ENV=/dev/stdin' <<< 'curl x'",
    "set -o history -H\necho wget x\n!echo:s/wget/curl/:s/echo//",
    "bash -H -o history -c 'echo wget x\n!echo:s/wget/curl/:s/echo//'",
    // In an interactive shell without this option, `#` begins no comment.
    "bash -i +O interactive_comments -c 'echo a # ; curl x'",
    "bash -i -c 'shopt -u interactive_comments\necho a # ; curl x'",
    "bash -i +o interactive-comments -c 'echo a # ; curl x'",
    "bash -i -c 'set +o interactive-comments\necho a # ; curl x'",
    "bash -i -c 'shopt -uo interactive-comments\necho a # ; curl x'",
    "bash -i -c 'shopt -u -- interactive_comments\necho a # ; curl x'",
    "shopt -so -- keyword; bash -c : BASH_ENV=/dev/stdin <<< 'curl x'",
    "shopt -so - keyword; bash -c : BASH_ENV=/dev/stdin <<< 'curl x'",
    // The delimiter is the whole word, with the process substitution.
    "cat <<EOF<(echo a)\nEOF<(echo a)\ncurl x\nEOF",
    "cat <<'EOF'>(cat)\nEOF>(cat)\ncurl x\nEOF",
    // Shells that read their standard input.
    "echo curl | fakeroot",
    "echo curl | chroot /",
    "echo curl | linux64",
    "echo curl | sudo -s",
    "echo curl | sudo -i",
    "echo curl | doas -s",
    "echo curl | csh",
    "echo curl | newgrp",
    "bash --rcfile -c ./evil.sh",
    "bash -init-file -c ./evil.sh",
    "fish -c 'set x curl; $x'",
    "zsh -c '=curl x'",
    "rg $x evil",
    "wget -e use_askpass=./evil.sh x",
];

#[test]
fn t_a5_a_possibly_denied_command_asks_in_mode_all() {
    let world =
        RuleText { mode: PolicyMode::All, deny: &["shell(curl)"], ..RuleText::default() }.world();
    for command in MAY_BE_CURL {
        assert_eq!(world.verdict(command), Ask, "{command:?}: {:#?}", world.command(command).parts);
    }
}

#[test]
fn m_a6_an_ask_about_a_possibly_denied_command_says_so() {
    for mode in [PolicyMode::Ask, PolicyMode::Edits, PolicyMode::All] {
        let deny = &["shell(touch)", "read(.env)"];
        let world = RuleText { mode, allow: &["shell(echo)"], deny, ..RuleText::default() }.world();
        for command in
            ["x=touch; $x pwned", "eval \"$x\"", "echo $((x))", "cat < $x", "ls; $x", "bash"]
        {
            let judgement = world.command(command);
            assert_eq!((judgement.verdict, judgement.may_be_denied()), (Ask, true), "{command}");
        }
        for command in [
            "touch a",
            "ls",
            "echo a",
            "echo a > x",
            "rg a b",
            "sort -u x",
            "wget x",
            "rg --pre cat x",
            "sort --compress-program=gzip x",
            "fd -x ls",
        ] {
            assert!(!world.command(command).may_be_denied(), "{command}");
        }
    }
    let world = RuleText { ask: &["shell(touch)"], ..RuleText::default() }.world();
    for command in ["$x a", "touch a", "ls"] {
        let judgement = world.command(command);
        assert_eq!((judgement.verdict, judgement.may_be_denied()), (Ask, false), "{command}");
    }
}

#[test]
fn t_a5_a_denied_program_is_found_behind_any_number_of_options() {
    let world =
        RuleText { mode: PolicyMode::All, deny: &["shell(curl)"], ..RuleText::default() }.world();
    let command = format!("mapfile {}-C 'curl evil' -c 1 a <<< b", "-t ".repeat(64));
    assert_eq!(world.verdict(&command), Deny, "{:#?}", world.command(&command).parts);
}

#[test]
fn t_a5_relative_paths_of_a_script_run_elsewhere_are_unknown() {
    let deny = &["write(/etc/**)", "read(/etc/shadow)"];
    let world = RuleText { mode: PolicyMode::All, deny, ..RuleText::default() }.world();
    for command in [
        "find /etc -maxdepth 1 -name passwd -execdir sh -c 'echo x > passwd' \\;",
        "find /etc -maxdepth 1 -name passwd -okdir sh -c 'echo x > passwd' \\;",
        "sudo -D /etc sh -c 'echo x > passwd'",
        "sudo -R /etc sh -c 'echo x > passwd'",
        "sudo -nR / sh -c 'echo x > passwd'",
        "sudo -i sh -c 'echo x > passwd'",
        "chroot / sh -c 'echo x > passwd'",
        "pkexec sh -c 'echo x > passwd'",
        // The meaning of `~` changes, too.
        "HOME=/etc; cat < ~/shadow",
        "HOME=/etc sh -c 'cat < ~/shadow'",
        "env HOME=/etc sh -c 'cat < ~/shadow'",
        "export HOME=/etc; cat < ~/shadow",
        "unset HOME; cat < ~/shadow",
        // Bash reads the contents of an array as words.
        "declare -a 'a=($(< /etc/shadow))'",
        "sudo sh -c 'cat < ~/shadow'",
        "sudo -u x env sh -c 'cat < ~/shadow'",
    ] {
        assert_eq!(world.verdict(command), Ask, "{command:?}: {:#?}", world.command(command).parts);
    }
    for command in [
        "find . -exec sh -c 'echo x > passwd' \\;",
        "sudo -n sh -c 'echo x > passwd'",
        "cat < ~/shadow",
        "sudo ls ~/a",
        "alias",
        "alias -p ls",
        "jobs; jobs -lp; jobs -- -x; jobs - -x; jobs %1 -x; jobs -x; jobs -x ls",
        "set -euo pipefail; shopt -s nullglob; set -- -k",
        "declare -x A=b; typeset -a c; readonly -a d; export E=f",
        "SECONDS=0; OPTIND=1",
        "export PATH=\"$PATH:/x\" A+=$B C; readonly D=$(true); echo export $x",
    ] {
        assert_eq!(
            world.verdict(command),
            Allow,
            "{command:?}: {:#?}",
            world.command(command).parts
        );
    }
}

#[test]
fn t_a9_every_command_is_judged_and_a_too_long_one_is_not_allowed() {
    let world = RuleText { allow: &["shell(echo)"], ..RuleText::default() }.world();
    assert_eq!(world.verdict("ec\\\nho a"), Ask);
    assert_eq!(world.verdict("echo a \0"), Ask);
    assert_eq!(world.verdict(&"echo a;".repeat(10_000)), Allow);
    for open in [
        "(",
        "( ",
        "{ ",
        "$(",
        "\"$(",
        "`",
        "${x:-",
        "$((",
        "if ",
        "echo $(",
        "[[ ",
        "case a in a) ",
        "! ",
        "time ",
        "f() { ",
        "coproc ",
    ] {
        for length in [60, 1_000, 100_000] {
            let command = open.repeat(length / open.len() + 60);
            assert_eq!(world.verdict(&command), Ask, "{open:?} {length}");
            let closed = format!("{command}echo a{}", ")".repeat(60));
            assert_eq!(world.verdict(&closed), Ask, "{open:?} {length}");
        }
    }
    assert_eq!(world.verdict(&format!("echo {}", "a".repeat(1 << 20))), Ask);
    assert_eq!(world.verdict(&format!("{}echo a", "env ".repeat(3_000))), Ask);
    assert_eq!(world.verdict(&"eval ".repeat(2_000)), Ask);
    assert_eq!(world.verdict(&"ssh ".repeat(2_000)), Ask);
    // Every word may be a script, and every script contains such words.
    let judgement = world.command(&format!("{}a", "watch ".repeat(16)));
    assert_eq!(judgement.verdict, Ask);
    assert!(judgement.parts.len() < 1_000, "{} parts", judgement.parts.len());
    assert_eq!(world.verdict(&format!("find {}", "-exec ".repeat(10_000))), Ask);
    assert_eq!(world.verdict(&"sudo -x ".repeat(2_000)), Ask);
    assert_eq!(world.verdict(&format!("{};", "sudo -x ".repeat(60)).repeat(20)), Ask);
}

/// `find` ends a command at `+` only directly after `{}`, and one of `-ok` only at `;`.
#[test]
fn a_plus_among_the_arguments_of_find_hides_none_of_them() {
    let deny = &["shell(curl * evil)", "shell(rm)"];
    let world = RuleText { mode: PolicyMode::All, deny, ..RuleText::default() }.world();
    for (command, verdict) in [
        ("find . -exec curl + evil \\;", Deny),
        // The path may be anything.
        ("find . -exec curl {} x + evil \\;", Ask),
        ("find . -ok curl {} + evil \\;", Ask),
        ("find . -exec ls {} + -exec rm {} +", Deny),
        ("find . -exec ls + \\; -exec rm {} \\;", Deny),
        ("find . -exec ls {} + -name evil", Allow),
    ] {
        assert_eq!(world.verdict(command), verdict, "{command}");
    }
    let find = ["find", ".", "-maxdepth", "0", "-exec", "echo", "+", "evil", ";"];
    let output = std::process::Command::new(find[0]).args(&find[1..]).output().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "+ evil\n",
        "the arguments reach a program"
    );
}

#[test]
fn rules_take_precedence_deny_ask_allow_mode() {
    let all = &["shell(git *)", "write"];
    let words =
        |mode, allow, ask, deny| RuleText { mode, allow, ask, deny }.world().verdict("ls a");
    let (ls, none): (&[&str], &[&str]) = (&["shell(ls *)"], &[]);
    assert_eq!(words(PolicyMode::Ask, none, none, none), Ask);
    assert_eq!(words(PolicyMode::Ask, ls, none, none), Allow);
    assert_eq!(words(PolicyMode::Ask, ls, ls, none), Ask);
    assert_eq!(words(PolicyMode::Ask, ls, ls, ls), Deny);
    assert_eq!(words(PolicyMode::Ask, ls, &["shell"], none), Ask);
    assert_eq!(words(PolicyMode::Ask, ls, none, &["shell"]), Deny);
    assert_eq!(words(PolicyMode::Edits, none, none, none), Ask);
    assert_eq!(words(PolicyMode::All, none, ls, none), Allow);
    assert_eq!(words(PolicyMode::All, none, ls, ls), Deny);
    assert_eq!(words(PolicyMode::Readonly, ls, ls, none), Deny);
    assert!(RuleText { deny: all, ..RuleText::default() }.policy(None).is_ok());
}

#[test]
fn a_command_is_judged_by_its_worst_part() {
    let world =
        RuleText { allow: &["shell(echo)"], deny: &["shell(rm)"], ..RuleText::default() }.world();
    assert_eq!(world.verdict("echo a; echo b"), Allow);
    assert_eq!(world.verdict("echo a; ls; echo b"), Ask);
    assert_eq!(world.verdict("echo a; ls; rm b"), Deny);
    let judgement = world.command("echo a; rm b");
    assert_eq!(judgement.why(), "denied by the rule `shell(rm)`");
    let parts: Vec<_> =
        judgement.parts.iter().map(|part| (part.what.as_str(), part.verdict)).collect();
    assert_eq!(parts, [("echo a", Allow), ("rm b", Deny)]);
}

#[test]
fn rule_words_are_globs_on_literal_words() {
    let allow = &[
        "shell(git status)",
        "shell(npm run *)",
        "shell(git checkout feature/*)",
        "shell(/opt/x/run *)",
        "shell([ *)",
    ];
    let world = RuleText { allow, ..RuleText::default() }.world();
    for command in [
        "git status",
        "npm run dev",
        "npm run 'a b' $x",
        "git checkout feature/a/b",
        "/opt/x/run",
        "[ -f x ]",
    ] {
        assert_eq!(world.verdict(command), Allow, "{command}");
    }
    for command in [
        "git status -s",
        "git checkout main",
        "git checkout $x",
        "npm $x",
        "run",
        "/opt/x/../y/run",
        "/usr/bin/git status",
    ] {
        assert_eq!(world.verdict(command), Ask, "{command}");
    }
    // A denied program may hide behind unknown text.
    let world = RuleText {
        mode: PolicyMode::All,
        deny: &["shell(git push *)", "shell(/bin/x)"],
        ..RuleText::default()
    }
    .world();
    // It may also be called by another path.
    for command in ["//bin/x", "/bin/./x", "/usr/bin/x", "cd /bin; ./x", "sudo /opt/x"] {
        assert_eq!(world.verdict(command), Ask, "{command}");
    }
    for command in ["git push", "git push origin", "/usr/bin/git push -f", "/bin/x"] {
        assert_eq!(world.verdict(command), Deny, "{command}");
    }
    for command in ["git $x", "$x push", "git $(echo push)", "git pu*", "x"] {
        assert_eq!(world.verdict(command), Ask, "{command}");
    }
    for command in ["git pull", "git commit -m \"$x\"", "/opt/y", "y", "xy", "/x/y"] {
        assert_eq!(world.verdict(command), Allow, "{command}");
    }
}

#[test]
fn a_tilde_in_a_rule_is_the_home_folder() {
    let world =
        RuleText { allow: &["shell(~/bin/x)", "shell(ls ~/a ~/b*)"], ..RuleText::default() }
            .world();
    let home = world.home.display();
    for command in [
        "~/bin/x",
        "~/bin/x a",
        "ls ~/a ~/bc",
        &format!("ls {home}/a {home}/b"),
        &format!("{home}/bin/x"),
    ] {
        assert_eq!(world.verdict(command), Allow, "{command}");
    }
    for command in [
        "'~/bin/x'",
        "\\~/bin/x",
        "/bin/x",
        "x",
        "~/bin/y",
        "ls '~/a' ~/b",
        "ls ~/a '~/b'",
        "ls /a /b",
    ] {
        assert_eq!(world.verdict(command), Ask, "{command}");
    }
    let world = RuleText {
        mode: PolicyMode::All,
        deny: &["shell(~/bin/x)", "shell(ls ~)"],
        ..RuleText::default()
    }
    .world();
    let home = world.home.display();
    for command in
        ["~/bin/x", "sudo ~/bin/x", &format!("{home}/bin/x a"), "ls ~", &format!("ls {home}")]
    {
        assert_eq!(world.verdict(command), Deny, "{command}");
    }
    for command in ["./x", "x", "cd; bin/x", &format!("/{home}/bin/x")] {
        assert_eq!(world.verdict(command), Ask, "{command}");
    }
    for command in ["~/bin/y", "ls '~'", "ls"] {
        assert_eq!(world.verdict(command), Allow, "{command}");
    }
    for rules in [
        RuleText { deny: &["shell(~/x)"], ..RuleText::default() },
        RuleText { ask: &["shell(a ~)"], ..RuleText::default() },
    ] {
        assert!(rules.policy(None).unwrap_err().to_string().contains("needs HOME"));
    }
}

#[test]
fn a_command_that_leaves_the_workspace_is_asked_for() {
    let world = RuleText { allow: &["shell(npm run dev)"], ..RuleText::default() }.world();
    let root = world.root.display().to_string();
    fs::create_dir_all(world.root.join("a/b")).unwrap();
    symlink("/", world.root.join("a/out")).unwrap();
    for command in [
        "cd a && npm run dev",
        "cd a/b; npm run dev",
        "cd new && npm run dev",
        &format!("cd {root}/a; npm run dev"),
    ] {
        assert_eq!(world.verdict(command), Allow, "{command}");
    }
    // The folder in which the second one begins depends on the first.
    for command in [
        "cd a/out; npm run dev",
        "cd a; cd out; npm run dev",
        "cd out; cd a; npm run dev",
        "cd /; npm run dev",
    ] {
        assert_eq!(world.verdict(command), Ask, "{command}");
    }
    let judgement = world.command("cd a && npm run dev");
    assert_eq!(judgement.why(), "every part is allowed");
    // Each of many folders is resolved from each of many others.
    let many =
        |count: usize| -> String { (0..count).map(|folder| format!("cd f{folder}; ")).collect() };
    assert_eq!(world.verdict(&format!("{}npm run dev", many(32))), Allow);
    assert_eq!(world.verdict(&format!("{}npm run dev", many(33))), Ask);
    assert_eq!(world.verdict(&format!("{}npm run dev", "cd a; ".repeat(20_000))), Allow);
}

#[test]
fn a_too_wide_allow_rule_is_refused() {
    let refused = [
        "shell",
        "shell(*)",
        "shell(g*)",
        "shell(git)",
        "shell(git *)",
        "shell(/usr/bin/git *)",
        "shell(git -* *)",
        "shell(git -C *)",
        "shell(git * status)",
        "shell(git -C * *)",
        "shell(git -c x=y *)",
        "shell(npm --prefix * *)",
        "shell(python3 -I * *)",
        "shell(cargo +nightly *)",
        "shell(csh *)",
        "shell(nodejs *)",
        "shell(wish)",
        "shell(socat)",
        "shell(perf stat *)",
        "shell(run-parts *)",
        "shell(gfind . *)",
        "shell(original-awk *)",
        "shell(x86_64-linux-gnu-gcc)",
        "shell(aarch64-linux-gnu-g++-12 *)",
        "shell(git-lfs *)",
        "shell(make)",
        "shell(npm)",
        "shell(npx *)",
        "shell(python3)",
        "shell(python3.12 *)",
        "shell(python -c *)",
        "shell(find . *)",
        "shell(env *)",
        "shell(sudo)",
        "shell(sudo ls *)",
        "shell(timeout 5 *)",
        "shell(xargs *)",
        "shell(bash -c *)",
        "shell(awk)",
        "shell(read)",
        "shell(export x=1)",
        "shell(sed *)",
        "shell(vim)",
        "shell(tar)",
        "shell(docker *)",
        "shell(ssh host *)",
        "shell(ssh-copy-id)",
        "shell(sshpass -e *)",
        "shell(x86_64 *)",
        "shell(pee)",
        "shell(gtar)",
        "shell(gsed *)",
        "shell(gmake)",
        "shell(gmake-4.4 *)",
        "shell(bsdtar)",
        "shell(pypy3)",
        "shell(tsx)",
        "shell(duckdb)",
        "shell(xcrun *)",
        "shell(ccache *)",
        "shell(ctest)",
        "shell(mix *)",
        "shell(mise *)",
        "shell(rclone *)",
        "shell(rename *)",
        "shell(luajit *)",
        "shell(guile-3.0 *)",
        "shell(ocaml)",
        "shell(racket *)",
        "shell(sbcl *)",
        "shell(clojure *)",
        "shell(jshell)",
        "shell(tofu *)",
        "shell(scons)",
        "shell(ftp)",
        "shell(hx *)",
        "shell(kak)",
        "shell(joe *)",
        "shell(tig)",
        "shell(lazygit)",
        "shell(jest *)",
        "shell(vitest *)",
        "shell(mocha)",
        "shell(gpg-agent *)",
        "shell(latexmk)",
        "shell(mariadb)",
        "shell(eval *)",
        "web(example.com)",
        "write(../x)",
        "write(a[)",
        "shell(a[)",
        "read(~/x)",
    ];
    for rule in refused {
        let error = RuleText { allow: &[rule], ..RuleText::default() }.policy(None).unwrap_err();
        assert!(error.to_string().starts_with(&format!("invalid rule `{rule}`: ")), "{error}");
    }
    let kept = [
        "shell(git status)",
        "shell(git log *)",
        "shell(npm run *)",
        "shell(make test)",
        "shell(python -m pytest *)",
        "shell(git -C * status *)",
        "shell(npm --prefix=x run *)",
        "shell(cargo +nightly test *)",
        "shell(docker compose -f * ps)",
        "web",
        "write(a/**)",
    ];
    for rule in kept {
        RuleText { allow: &[rule], ..RuleText::default() }.policy(None).unwrap();
    }
    let world =
        RuleText { allow: &["shell(wget)", "shell(batcat)"], ..RuleText::default() }.world();
    for command in ["wget -q x", "batcat x"] {
        assert_eq!(world.verdict(command), Allow, "{command}");
    }
    for option in [
        "-e use_askpass=./x",
        "-qeuse_askpass=./x",
        "--execute=use_askpass=./x",
        "--exec x",
        "--config=x",
    ] {
        assert_eq!(world.verdict(&format!("wget {option} y")), Ask, "{option}");
    }
    assert_eq!(world.verdict("batcat --pager=./x y"), Ask);
    let world = RuleText { allow: &["shell(sdiff)", "shell(ag)"], ..RuleText::default() }.world();
    for (plain, runs) in
        [("sdiff x y", "sdiff --diff-program=./x y z"), ("ag x", "ag --pager ./x y")]
    {
        assert_eq!(world.verdict(plain), Allow, "{plain}");
        assert_eq!(world.verdict(runs), Ask, "{runs}");
    }
    let allow = &["shell(gsort)", "shell(gsplit)", "shell(ginstall)"];
    let world = RuleText { allow, ..RuleText::default() }.world();
    for (plain, runs) in [
        ("gsort -u x", "gsort --compress-program=./x y"),
        ("gsplit -l 5 x", "gsplit --filter=./x y"),
        ("ginstall -m 644 x y", "ginstall -s --strip-program=./x y z"),
    ] {
        assert_eq!(world.verdict(plain), Allow, "{plain}");
        assert_eq!(world.verdict(runs), Ask, "{runs}");
    }
    // Deny and ask rules may be as wide as the user likes.
    RuleText { ask: &["shell(g*)"], deny: &["shell(git)", "shell(*)"], ..RuleText::default() }
        .policy(None)
        .unwrap();
}

#[test]
fn the_error_for_a_too_wide_rule_names_an_alternative() {
    let problem = |rule: &str| {
        RuleText { allow: &[rule], ..RuleText::default() }.policy(None).unwrap_err().problem
    };
    let with = |name: &str| {
        format!(
            "`{name}` can run other programs: name a subcommand, for example shell({name} SUBCOMMAND *), or write the \
             whole command"
        )
    };
    let whole = |name: &str| {
        format!(
            "`{name}` can run other programs, depending on its arguments: write the whole command, without a `*` at \
             the end"
        )
    };
    assert_eq!(problem("shell(git)"), with("git"));
    assert_eq!(problem("shell(tofu *)"), with("tofu"));
    for name in ["sed", "python3.12", "vim", "gmake", "tig"] {
        let says = if name == "gmake" { with(name) } else { whole(name) };
        assert_eq!(problem(&format!("shell({name} *)")), says);
    }
    RuleText { allow: &["shell(sed -n 5p a.txt)"], ..RuleText::default() }.policy(None).unwrap();
}

#[test]
fn a_command_pattern_that_matches_nothing_is_refused_with_a_hint() {
    for (written, instead) in [
        ("git push && *", "`git push`"),
        ("git push || *", "`git push`"),
        ("ls; rm", "`ls`"),
        ("ls;rm", "`ls`"),
        ("make &", "`make`"),
        ("(ls)", "`ls`"),
        ("cat * | tee *", "`cat *`"),
        ("cat * > out", "`read(PATH)` or `write(PATH)`"),
        ("cat <in", "`read(PATH)` or `write(PATH)`"),
        ("make 2>&1", "`read(PATH)` or `write(PATH)`"),
        ("FOO=1 make", "`make`"),
        ("FOO+=1 BAR= make all", "`make all`"),
        ("! ls", "`ls`"),
        ("\"git\" push", "`git push`"),
        ("'git push'", "`git push`"),
        ("`ls`", "`ls`"),
        ("echo $HOME", "write the value itself"),
        ("echo ${x}", "write the value itself"),
        ("$EDITOR", "write the value itself"),
    ] {
        for allows in [false, true] {
            let rule = format!("shell({written})");
            let rules = [rule.as_str()];
            let rules = if allows {
                RuleText { allow: &rules, ..RuleText::default() }
            } else {
                RuleText { deny: &rules, ..RuleText::default() }
            };
            let error = rules.policy(None).unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("invalid rule `{rule}`: ")) && error.contains(instead),
                "{error}"
            );
        }
    }
    for (written, instead) in [
        ("$HOME/.ssh/**", "`~/.ssh/**`"),
        ("${HOME}/x", "`~/x`"),
        ("$TMPDIR/x", "the folder itself"),
        ("\"a\"", "`a`"),
    ] {
        for tool in ["read", "write_file"] {
            let rule = format!("{tool}({written})");
            let error = RuleText { deny: &[&rule], ..RuleText::default() }
                .policy(Some("/home/x".as_ref()))
                .unwrap_err();
            assert!(error.problem.contains(instead), "{error}");
        }
    }
    // A special character that is part of a word, after a backslash.
    let deny = &[
        "shell(curl *\\&*)",
        "shell(awk \\$1)",
        "shell(rm [ab])",
        "shell([ -f *)",
        "shell(x a=b)",
    ];
    let world = RuleText { mode: PolicyMode::All, deny, ..RuleText::default() }.world();
    for command in ["curl 'a?b&c'", "awk '$1'", "rm b", "[ -f x ]", "x a=b"] {
        assert_eq!(world.verdict(command), Deny, "{command}");
    }
    RuleText { deny: &["read(a$b)", "read(a$/x)", "write(\\$x)"], ..RuleText::default() }
        .policy(None)
        .unwrap();
}

#[test]
fn a_path_pattern_that_matches_nothing_is_refused_with_a_hint() {
    for (written, instead) in [
        ("secrets/", "secrets/**"),
        ("./secrets/.", "secrets/**"),
        ("docs/**/", "docs/**"),
        ("a//b", "a/b"),
        ("a/./b", "a/b"),
        ("/etc//x", "/etc/x"),
        ("//etc/", "/etc/**"),
        ("~/.ssh/", "~/.ssh/**"),
        (".", "**"),
        ("./", "**"),
    ] {
        for tool in ["read", "write_file"] {
            let rule = format!("{tool}({written})");
            let error = RuleText { deny: &[&rule], ..RuleText::default() }
                .policy(Some("/home/x".as_ref()))
                .unwrap_err();
            let expected =
                format!("invalid rule `{rule}`: no path matches this form: write `{instead}`");
            assert_eq!(error.to_string(), expected);
        }
        let rule = format!("read({instead})");
        RuleText { deny: &[&rule], ..RuleText::default() }
            .policy(Some("/home/x".as_ref()))
            .unwrap();
    }
    RuleText { deny: &["read(/)", "read(./a)", "read(/**)"], ..RuleText::default() }
        .policy(None)
        .unwrap();
}

fn place(world: &PolicyWorkspace, tool: &str, path: &str, writes: bool) -> Verdict {
    let place = Place::resolve(path, &world.root).unwrap();
    let act = if writes { Act::Write(place) } else { Act::Read(place) };
    world.policy.judge(tool, &[act], &world.root).verdict
}

#[test]
fn paths_are_matched_resolved_and_for_deny_also_as_given() {
    let rules = RuleText {
        allow: &[
            "write(docs/**)",
            "write(/tmp/out/*)",
            "read(~/notes/*.md)",
            "write_file(src/*.rs)",
            "write(.github/**)",
        ],
        ask: &["read(private/**)"],
        deny: &["read(**/.env)", "write(docs/final/**)"],
        ..RuleText::default()
    };
    let world = rules.world();
    let (root, home) = (&world.root, &world.home);
    fs::create_dir_all(root.join("docs/final")).unwrap();
    fs::create_dir(root.join("private")).unwrap();
    fs::create_dir(root.join("hooks")).unwrap();
    symlink(root.join("docs"), root.join("link")).unwrap();
    symlink(root.join("docs/final"), root.join("docs/newest")).unwrap();
    symlink(root.join("src.env"), root.join("docs/.env")).unwrap();
    symlink("/etc", root.join("docs/etc")).unwrap();
    let write = |path: &str| place(&world, "write_file", path, true);
    let read = |path: &str| place(&world, "read_file", path, false);
    assert_eq!(write("docs/a/b"), Allow);
    assert_eq!(write("link/a"), Allow);
    assert_eq!(write("/tmp/out/a"), Allow);
    assert_eq!(write("/tmp/out/a/b"), Ask);
    assert_eq!(write("docs/etc/passwd"), Ask);
    assert_eq!(write("docs/final/a"), Deny);
    assert_eq!(write("docs/newest/a"), Deny);
    assert_eq!(write("docs/final/../a"), Allow);
    assert_eq!(write("src/a.rs"), Allow);
    assert_eq!(place(&world, "edit_file", "src/a.rs", true), Ask);
    assert_eq!(write("docs/.git/config"), Ask);
    assert_eq!(write("x/.git/hooks/y"), Ask);
    assert_eq!(read("a"), Allow);
    assert_eq!(read("private/a"), Ask);
    assert_eq!(read("docs/.env"), Deny);
    assert_eq!(read(".env"), Deny);
    assert_eq!(read(home.join("notes/a.md").to_str().unwrap()), Allow);
    assert_eq!(read(home.join("notes/a.txt").to_str().unwrap()), Ask);
    // A folder may contain a denied file.
    assert_eq!(place(&world, "grep", ".", false), Ask);
    // Redirections are places too.
    let world = RuleText {
        allow: &["shell(echo)", "write(docs/**)"],
        deny: &["write(/etc/**)"],
        ..RuleText::default()
    }
    .world();
    fs::create_dir(world.root.join("docs")).unwrap();
    symlink("/proc/self/fd", world.root.join("docs/fd")).unwrap();
    assert_eq!(world.verdict("echo a > docs/x"), Allow);
    assert_eq!(world.verdict("echo a > docs/fd/1"), Ask);
    assert_eq!(world.verdict("echo a > x"), Ask);
    assert_eq!(world.verdict("echo a > /etc/x"), Deny);
    assert_eq!(world.verdict("echo a > docs/../../../../../../../../etc/x"), Deny);
    assert_eq!(world.verdict("echo a > /dev/../etc/x"), Deny);
    assert_eq!(world.verdict("echo a > $x"), Ask);
}

#[test]
fn a_file_opened_for_reading_and_writing_is_judged_as_both() {
    let (mode, allow): (_, &[_]) = (PolicyMode::Edits, &["shell(cat)"]);
    let judge = |deny: &[&str], command| {
        RuleText { mode, allow, deny, ..RuleText::default() }.world().verdict(command)
    };
    assert_eq!(judge(&["read(.env)"], "cat <> .env"), Deny);
    assert_eq!(judge(&["write(.env)"], "cat <> .env"), Deny);
    assert_eq!(judge(&["read(.env)"], "cat <> env"), Allow);
}

#[test]
fn files_that_differ_per_process_always_ask() {
    let world = RuleText {
        allow: &["shell(echo)", "write", "read", "write(~/notes/**)"],
        ..RuleText::default()
    }
    .world();
    symlink("/proc/self/fd", world.root.join("fd")).unwrap();
    for path in [
        "fd/1",
        "/proc/self/fd/1",
        "/dev/stdout",
        "/dev/tcp/127.0.0.1/1",
        "/dev/../proc/self/cwd/x",
    ] {
        assert_eq!(world.verdict(&format!("echo a > {path}")), Ask, "{path}");
    }
    let world =
        RuleText { allow: &["shell(echo)", "write(~/notes/**)"], ..RuleText::default() }.world();
    assert_eq!(world.verdict("echo a > ~/notes/x"), Allow);
    assert_eq!(world.verdict("echo a > ~/x"), Ask);
}

#[test]
fn protected_names_always_ask() {
    for mode in [PolicyMode::Ask, PolicyMode::Edits] {
        let world = RuleText {
            mode,
            allow: &["write", "shell(echo)", "write_file"],
            ..RuleText::default()
        }
        .world();
        assert_eq!(place(&world, "write_file", "a", true), Allow);
        assert_eq!(place(&world, "write_file", "/tmp/a", true), Allow);
        for path in [".git/config", "a/.bashrc", ".vscode/x", "/tmp/.ssh/config"] {
            assert_eq!(place(&world, "write_file", path, true), Ask, "{path}");
            assert_eq!(world.verdict(&format!("echo a >> {path}")), Ask, "{path}");
        }
    }
}

#[test]
fn a_tool_is_judged_by_its_bare_name() {
    let judge = |rules: RuleText<'_>, acts: &[Act]| {
        let world = rules.world();
        world.policy.judge("deploy", acts, &world.root).verdict
    };
    // A tool that names no acts is not trusted to have none.
    for acts in [&[Act::Other][..], &[]] {
        assert_eq!(judge(RuleText::default(), acts), Ask, "{acts:?}");
    }
    assert_eq!(judge(RuleText { allow: &["deploy"], ..RuleText::default() }, &[Act::Other]), Allow);
    assert_eq!(judge(RuleText { deny: &["deploy"], ..RuleText::default() }, &[Act::Other]), Deny);
    assert_eq!(
        judge(RuleText { deny: &["deploy"], ..RuleText::default() }, &[Act::Internal]),
        Deny
    );
    assert_eq!(judge(RuleText { deny: &["deploy"], ..RuleText::default() }, &[]), Deny);
    assert_eq!(judge(RuleText { ask: &["deploy"], ..RuleText::default() }, &[]), Ask);
    assert_eq!(
        judge(
            RuleText { allow: &["deploy"], mode: PolicyMode::Readonly, ..RuleText::default() },
            &[Act::Other]
        ),
        Deny
    );
}

/// Writing in these folders would change the rules themselves, and they hold keys.
#[test]
fn m_e7_writes_and_reads_of_holdpoints_own_folders_always_ask() {
    for mode in [PolicyMode::Ask, PolicyMode::Edits] {
        let allow = &[
            "write",
            "write(**)",
            "write(config/**)",
            "write(~/ours/**)",
            "write_file",
            "read",
            "read(**)",
            "shell(echo)",
        ];
        let mut world = RuleText { mode, allow, ..RuleText::default() }.world();
        let folders =
            [world.root.join("config/holdpoint"), world.root.join("run"), world.home.join("ours")];
        world.policy = world.policy.clone().protecting(folders.clone());
        fs::create_dir(world.root.join("config")).unwrap();
        symlink("config", world.root.join("link")).unwrap();
        let ours = format!("{}/x", folders[2].display());
        let paths = [
            "config/holdpoint/config.toml",
            "config/holdpoint",
            "link/holdpoint/config.toml",
            "a/../run/x",
            &ours,
        ];
        let others = ["config/x", "config/holdpoint.toml", "runs/x", "link/x"];
        let asked = |world: &PolicyWorkspace| {
            for path in paths {
                assert_eq!(place(world, "write_file", path, true), Ask, "{path}");
                assert_eq!(place(world, "read_file", path, false), Ask, "{path}");
                for command in ["echo a >", "echo a <"] {
                    assert_eq!(world.verdict(&format!("{command} {path}")), Ask, "{path}");
                }
            }
            for path in others {
                assert_eq!(place(world, "write_file", path, true), Allow, "{path}");
                assert_eq!(place(world, "read_file", path, false), Allow, "{path}");
            }
        };
        // Both before the folder exists and after it was created.
        asked(&world);
        fs::create_dir(&folders[0]).unwrap();
        asked(&world);
        // If one of these folders is a link, its target is protected.
        fs::create_dir(world.root.join("real")).unwrap();
        fs::remove_dir(&folders[0]).unwrap();
        symlink("../real", &folders[0]).unwrap();
        asked(&world);
        assert_eq!(place(&world, "write_file", "real/config.toml", true), Ask);
    }
    let mut all = RuleText { mode: PolicyMode::All, ..RuleText::default() }.world();
    all.policy = all.policy.clone().protecting([all.root.join("run")]);
    assert_eq!(place(&all, "write_file", "run/x", true), Allow);
}
