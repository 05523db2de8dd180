//! How long the policy takes to decide: `cargo bench -p holdpoint-tools --bench policy`.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark")]

use std::path::Path;
use std::time::{Duration, Instant};

use holdpoint_common::{PolicyMode, PolicyRules, Rule, Verdict};
use holdpoint_tools::{Act, Policy};

/// A line as models write them, every kind of thing in it.
const LINE: &str = "cd src && grep -rn 'fn main' . 2>/dev/null | sort -u | head -20 > out/mains.txt; \
    for f in *.rs; do echo \"$f: $(wc -l < \"$f\")\" || exit 1; done; timeout 5 env NO_COLOR=1 cargo test -- --nocapture\n";

fn main() {
    let rules = |written: &[&str]| written.iter().map(|rule| rule.parse::<Rule>().unwrap()).collect();
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
    let lines = |bytes: usize| LINE.repeat(bytes / LINE.len() + 1)[..].to_owned();
    for (what, command) in [
        ("one line of 240 bytes", LINE.to_owned()),
        ("10 KiB of such lines", lines(10 * 1024)),
        ("120 KiB of such lines", lines(120 * 1024)),
        ("10 KiB of `a;`", "a;".repeat(5 * 1024)),
        ("10 KiB of substitutions", "echo $(echo \"`a`\");".repeat(10 * 1024 / 19)),
        ("120 KiB of `env `", "env ".repeat(30 * 1024)),
        ("120 KiB of `ssh `", "ssh ".repeat(30 * 1024)),
        ("120 KiB of `eval `", "eval ".repeat(24 * 1024)),
        ("120 KiB of `sudo -x `", "sudo -x ".repeat(15 * 1024)),
        ("120 KiB of `sudo -x … ;`", format!("{};", "sudo -x ".repeat(60)).repeat(250)),
        ("120 KiB of `(`", "(".repeat(120 * 1024)),
    ] {
        let took = median(&policy, &command, &root);
        println!("{what:<28} {:>8.3} ms", took.as_secs_f64() * 1e3);
    }
}

/// The median of some rounds, after one to warm up.
fn median(policy: &Policy, command: &str, root: &Path) -> Duration {
    let acts = [Act::Command(command.to_owned())];
    let judge = || {
        let begun = Instant::now();
        let judgement = policy.judge("shell", &acts, root);
        (begun.elapsed(), judgement.verdict)
    };
    assert_eq!(judge().1, Verdict::Ask);
    let mut took: Vec<_> = (0..21).map(|_| judge().0).collect();
    took.sort();
    took[took.len() / 2]
}
