//! The time that the policy takes to judge a command.

use std::time::Instant;

use holdpoint_common::{PolicyMode, PolicyRules, Rule, Verdict};
use holdpoint_tools::{Act, Policy};

use crate::table::{Amount, Samples, Table};

const ROUNDS: usize = 21;
const KIB: usize = 1024;

/// A line in the style of models, with syntax of every kind.
const LINE: &str = "cd src && grep -rn 'fn main' . 2>/dev/null | sort -u | head -20 > out/mains.txt; \
    for f in *.rs; do echo \"$f: $(wc -l < \"$f\")\" || exit 1; done; timeout 5 env NO_COLOR=1 cargo test -- --nocapture\n";

pub(crate) fn measure(table: &Table) {
    if !table.wants("policy", &["a command of 10 KiB of usual lines, decided", "of `a;`"]) {
        return;
    }
    let lines = |bytes: usize| LINE.repeat(bytes / LINE.len() + 1)[..bytes].to_owned();
    let most = Amount::ms(5);
    table.figure("a command of 10 KiB of usual lines, decided", decided(lines(10 * KIB)), most);
    table.figure("   … of `a;`", decided("a;".repeat(5 * KIB)), most);
    table.note("   … of substitutions", decided("echo $(echo \"`a`\");".repeat(10 * KIB / 19)));
    table.note("a usual line, decided", decided(LINE.to_owned()));
    for (what, command) in [
        ("a command of 120 KiB of usual lines, decided", lines(120 * KIB)),
        ("   … of `env `", "env ".repeat(30 * KIB)),
        ("   … of `ssh `", "ssh ".repeat(30 * KIB)),
        ("   … of `eval `", "eval ".repeat(24 * KIB)),
        ("   … of `sudo -x `", "sudo -x ".repeat(15 * KIB)),
        ("   … of `sudo -x … ;`", format!("{};", "sudo -x ".repeat(60)).repeat(250)),
        ("   … of `(`", "(".repeat(120 * KIB)),
    ] {
        table.note(what, decided(command));
    }
}

fn decided(command: String) -> Amount {
    let rules =
        |written: &[&str]| written.iter().map(|rule| rule.parse::<Rule>().unwrap()).collect();
    let rules = PolicyRules {
        allow: rules(&[
            "shell(grep)",
            "shell(sort)",
            "shell(head)",
            "shell(echo)",
            "shell(wc)",
            "shell(cargo test *)",
            "write(out/**)",
        ]),
        ask: rules(&["shell(git push *)", "write(docs/**)"]),
        deny: rules(&["shell(curl)", "shell(rm -rf *)", "read(**/.env)"]),
    };
    let policy = Policy::new(PolicyMode::Ask, &rules, None).unwrap();
    let root = std::env::temp_dir().canonicalize().unwrap();
    let acts = [Act::Command(command)];
    let took = Samples::of(ROUNDS, || {
        let since = Instant::now();
        let judgement = policy.judge("shell", &acts, &root);
        let took = since.elapsed();
        assert_eq!(judgement.verdict, Verdict::Ask);
        took
    });
    took.median()
}
