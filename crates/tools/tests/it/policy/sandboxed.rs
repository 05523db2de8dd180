//! The mode `sandboxed`, and widenings of the sandbox.

use std::path::PathBuf;

use holdpoint_common::{PolicyMode, Verdict};
use holdpoint_tools::{Act, Widening};

use super::support::{PolicyWorkspace, RuleText};

use Verdict::{Allow, Ask, Deny};

/// The mode `sandboxed` with these rules, in a sandbox.
fn sandboxed(rules: RuleText<'_>) -> PolicyWorkspace {
    let mut world = RuleText { mode: PolicyMode::Sandboxed, ..rules }.world();
    world.policy = world.policy.sandboxed(true);
    world
}

/// Commands that no rule of a usual policy can allow.
const UNCLEAR: [&str; 7] = [
    "eval \"$x\"",
    "$program",
    "bash <(printf 'echo x')",
    "cd .. && ./build.sh",
    "echo x > $file",
    "if",
    "find . -exec sh -c \"$0\" {} +",
];

const CLEAR: [&str; 7] = [
    "PATH=. make",
    "cargo build --workspace",
    "make && npm test",
    "echo x > file",
    "echo x > /etc/passwd",
    "echo x > .git/hooks/pre-commit",
    "git -c core.pager=sh log | sh",
];

#[test]
fn m_g2_commands_in_a_sandbox_are_allowed() {
    let world = sandboxed(RuleText::default());
    for command in CLEAR.into_iter().chain(UNCLEAR) {
        assert_eq!(world.verdict(command), Allow, "{command}: {:?}", world.command(command));
    }
    assert_eq!(world.write("file").verdict, Allow);
    for outside in ["/etc/passwd", ".git/hooks/pre-commit", "AGENTS.md"] {
        assert_eq!(world.write(outside).verdict, Ask, "{outside}");
    }
    let other = world.policy.judge("web", &[Act::Other], &world.root);
    assert_eq!(other.verdict, Ask, "other tools do not run in the sandbox");
}

#[test]
fn m_g2_without_a_sandbox_the_mode_sandboxed_asks_as_ask_does() {
    let [sandboxed, ask] = [PolicyMode::Sandboxed, PolicyMode::Ask]
        .map(|mode| RuleText { mode, allow: &["shell(make test)"], ..RuleText::default() }.world());
    for command in CLEAR.into_iter().chain(UNCLEAR).chain(["make test", "true"]) {
        assert_eq!(sandboxed.verdict(command), ask.verdict(command), "{command}");
    }
    assert_eq!(sandboxed.verdict("cargo build"), Ask);
    let why = sandboxed.command("cargo build").why().to_owned();
    assert!(why.starts_with("the policy is `sandboxed`, which asks without a sandbox"), "{why}");
    for path in ["file", "/etc/passwd", ".envrc"] {
        assert_eq!(sandboxed.write(path).verdict, ask.write(path).verdict, "{path}");
    }
}

#[test]
fn m_g2_rules_restrict_commands_in_a_sandbox() {
    let world = sandboxed(RuleText { deny: &["shell(curl)"], ..RuleText::default() });
    for command in ["cargo build", "make && npm test", "echo x > file"] {
        assert_eq!(world.verdict(command), Allow, "{command}");
    }
    for command in ["curl x", "true && env curl x", "bash -c 'curl x'"] {
        assert_eq!(world.verdict(command), Deny, "{command}");
    }
    // A deny rule may match any command that can't be read.
    for command in UNCLEAR.into_iter().filter(|command| !command.starts_with("cd")) {
        let judgement = world.command(command);
        assert_eq!(judgement.verdict, Ask, "{command}: {judgement:?}");
        assert!(judgement.may_be_denied(), "{command}: {judgement:?}");
    }
    let world = sandboxed(RuleText { ask: &["shell(git push *)"], ..RuleText::default() });
    assert_eq!(world.verdict("git push origin"), Ask);
    assert_eq!(world.verdict("git commit"), Allow);
    let world = sandboxed(RuleText { deny: &["write(secret)"], ..RuleText::default() });
    assert_eq!(world.verdict("echo x > secret"), Deny);
    assert_eq!(world.verdict("echo x > other"), Allow);
}

#[test]
fn m_g3_a_widening_asks_even_where_a_rule_allows_the_command() {
    let widenings = [Widening::Network, Widening::Writable("/srv".into()), Widening::Outside];
    for (mode, expected) in [
        (PolicyMode::Ask, Ask),
        (PolicyMode::Edits, Ask),
        (PolicyMode::Sandboxed, Ask),
        (PolicyMode::All, Allow),
        (PolicyMode::Readonly, Deny),
    ] {
        let world = RuleText { mode, allow: &["shell(make test)"], ..RuleText::default() }.world();
        let policy = world.policy.clone().sandboxed(true);
        let command = Act::Command("make test".to_owned());
        for widening in &widenings {
            let acts = [command.clone(), Act::Widen(widening.clone())];
            let judgement = policy.judge("shell", &acts, &world.root);
            assert_eq!(judgement.verdict, expected, "{mode}: {judgement:?}");
        }
        let inside = policy.judge("shell", &[command], &world.root).verdict;
        assert_eq!(inside == Deny, mode == PolicyMode::Readonly, "{mode}");
    }
}

/// A command outside of the sandbox is judged as if there were none.
#[test]
fn m_g3_a_command_outside_of_the_sandbox_is_judged_without_one() {
    let world = sandboxed(RuleText { deny: &["shell(curl)"], ..RuleText::default() });
    let judge = |command: &str| {
        let acts = [Act::Command(command.to_owned()), Act::Widen(Widening::Outside)];
        world.policy.judge("shell", &acts, &world.root)
    };
    assert_eq!(judge("curl x").verdict, Deny);
    let judgement = judge("cargo build");
    let asked: Vec<_> = judgement.parts.iter().map(|part| (&*part.what, part.verdict)).collect();
    assert_eq!(asked, [("cargo build", Ask), ("run outside of the sandbox", Ask)]);
    // A path is shown in a form in which nothing of it is hidden.
    let path = PathBuf::from("/srv/a\nb");
    assert_eq!(Widening::Writable(path).to_string(), "read and change /srv/a\\u{a}b");
}
