//! A command that bash itself rejects is never allowed: a reader that accepts it has misread it.

use std::cell::Cell;
use std::process::Command;

use holdpoint_common::Verdict;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::TestRunner;

use super::hostile;
use super::tries::tries;

/// The file of failed cases, which are tried first in every later run.
const REGRESSIONS: &str = "tests/it/policy/parsing.proptest-regressions";

/// Scripts that contain every kind of word, list and compound command once.
const WHOLE: [&str; 12] = [
    "good a \"b c\" 'd e' f\\ g $x ${x:-a} \"$(echo a)\" `echo a`",
    "good && echo a || cat b; good | cat & good",
    "if good; then echo a; elif cat b; then :; else good; fi",
    "for x in a b \"$y\"; do echo \"$x\"; done",
    "while good; do break; done; until good; do continue; done",
    "case a in (a|b) echo a;; *) good ;; esac",
    "( good; ( echo a ) ); { good; echo b; }",
    "[[ -n a && ! -f b || a == b ]] && good",
    "cat <<EOF\na $x\nEOF\ngood <<'END'\nb\nEND\n",
    "good > out 2>&1 < /dev/null >> more &> all",
    "echo {a,b} ~ * ? '#' a#b # c",
    "! good; good !; echo $((1 + 2)) <(good) >(cat)",
];

/// The errors of bash for a command, started as the shell tool would do it. The command is not run.
fn bash_says(command: &str) -> String {
    let bash = Command::new("/bin/bash")
        .args(["-n", "-c", command])
        .env_clear()
        .env("LC_ALL", "C.UTF-8")
        .output();
    let bash = bash.unwrap();
    let errors = String::from_utf8_lossy(&bash.stderr).into_owned();
    if bash.status.success() { errors } else { format!("{}: {errors}", bash.status) }
}

/// A script in which a few characters are missing or doubled.
fn broken() -> impl Strategy<Value = String> {
    let slips = prop::collection::vec((any::<Index>(), any::<bool>()), 1..4);
    (prop_oneof![select(WHOLE.to_vec()).prop_map(str::to_owned), hostile::command()], slips)
        .prop_map(|(script, slips)| {
            let mut characters: Vec<_> = script.chars().collect();
            for (at, twice) in slips {
                let at = at.index(characters.len().max(1));
                match characters.get(at).copied() {
                    Some(character) if twice => characters.insert(at, character),
                    Some(_) => drop(characters.remove(at)),
                    None => {}
                }
            }
            characters.into_iter().collect()
        })
}

#[test]
fn conditions_are_parsed_like_in_bash() {
    let world = hostile::world(&["write(**)"]);
    for read in [
        "[[ a ]]",
        "[[ a == b ]]",
        "[[ a < b ]]",
        "[[ ! ( -n a ) ]]",
        "[[ -f a && ( b != c || ! -d d ) ]]",
        "[[\n-n a\n&&\n-n b\n]]",
        "[[ -n == ]]",
        "[[ -f a ]] && good",
    ] {
        assert_eq!((world.verdict(read), bash_says(read).as_str()), (Verdict::Allow, ""), "{read}");
    }
    for not in [
        "[[ a b ]]",
        "[[ a === b ]]",
        "[[ a == ]]",
        "[[ -n ]]",
        "[[ && a ]]",
        "[[ a && ]]",
        "[[ a ) ]]",
        "[[ ( a ]]",
        "[[ -n a b ]]",
        "[[ a\n== b ]]",
        "[[ a\n]]",
        "[[ a",
        "[[ -f #b ]]",
        "[[ a == #b ]]",
        "[[ a #b ]]",
        "[[ #a ]]",
        "[[ 2> a ]]",
        "[[ a && 2<b ]]",
        "[[ {a}> b ]]",
    ] {
        assert_eq!(world.verdict(not), Verdict::Ask, "{not}");
    }
}

#[test]
fn after_a_redirection_no_word_is_reserved() {
    let world = hostile::world(&["write(**)"]);
    for command in [
        "while (good) > f do break; done",
        "while (good)<&- do break; done",
        "if { good; } 2>&1 then good; fi",
        "{ { good; } > f }",
    ] {
        assert_ne!(bash_says(command), "", "{command}");
        assert_eq!(world.verdict(command), Verdict::Ask, "{command}");
    }
    for command in ["while (good) do break; done", "{ (good) }", "{ (good) > f; }"] {
        assert_eq!(bash_says(command), "", "{command}");
        assert_eq!(world.verdict(command), Verdict::Allow, "{command}");
    }
}

#[test]
fn a_process_substitution_continues_a_reserved_word() {
    let world = hostile::world(&["write(**)"]);
    for command in [
        "for x in<(good); do good; done",
        "for x in a; do<(good) good; done",
        "if good; then<(good) good; fi",
        "if good; then good; fi<(good)",
        "while good; do good; done>(good)",
    ] {
        assert_ne!(bash_says(command), "", "{command}");
        assert_eq!(world.verdict(command), Verdict::Ask, "{command}");
    }
    for command in ["if good; then good; fi > f", "while good; do good; done > f"] {
        assert_eq!(bash_says(command), "", "{command}");
        assert_eq!(world.verdict(command), Verdict::Allow, "{command}");
    }
}

#[test]
fn every_allowed_command_is_valid_in_bash() {
    let world = hostile::world(&["write(**)"]);
    for script in WHOLE {
        assert_eq!(bash_says(script), "", "{script}");
    }
    let (judged, allowed) = (Cell::new(0_u32), Cell::new(0_u32));
    let mut runner = TestRunner::new(tries(4_000, 500_000, REGRESSIONS));
    let result = runner.run(&prop_oneof![hostile::command(), broken()], |command| {
        judged.set(judged.get() + 1);
        // Bash's errors for other commands do not matter: those ask or are denied.
        if world.verdict(&command) == Verdict::Allow && !command.contains('\0') {
            allowed.set(allowed.get() + 1);
            let errors = bash_says(&command);
            prop_assert!(errors.is_empty(), "{command:?} is allowed, but bash reports: {errors}");
        }
        Ok(())
    });
    println!("{} of {} were allowed", allowed.get(), judged.get());
    result.unwrap();
    assert!(
        allowed.get() * 20 > judged.get(),
        "enough commands are allowed: {} of {}",
        allowed.get(),
        judged.get()
    );
}
