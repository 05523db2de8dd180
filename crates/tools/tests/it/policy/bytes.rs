//! The policy judges any text without a panic.

use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use super::hostile;
use super::support::RuleText;
use super::tries::tries;

const RULES: RuleText<'_> = RuleText {
    mode: holdpoint_common::PolicyMode::Ask,
    allow: &["shell(echo)"],
    ask: &[],
    deny: &["shell(bad x)", "write(a)"],
};

#[test]
fn the_policy_never_panics() {
    let world = RULES.world();
    let shell = proptest::collection::vec(
        proptest::sample::select(
            r#"$(){}[]<>&|;!#'"`\~*?=+-:/@%^, 	eachofin01x
é"#
            .chars()
            .collect::<Vec<_>>(),
        ),
        0..60,
    );
    let shell = shell.prop_map(String::from_iter);
    let texts = prop_oneof![any::<String>(), shell, hostile::command()];
    let mut runner =
        TestRunner::new(tries(5_000, 500_000, "tests/it/policy/bytes.proptest-regressions"));
    let judged = runner.run(&texts, |text| {
        let judgement = world.command(&text);
        prop_assert_eq!(
            judgement.parts.iter().map(|part| part.verdict).max(),
            Some(judgement.verdict)
        );
        Ok(())
    });
    judged.unwrap();
}
