//! The approval that a call of a server's tool needs.

use holdpoint_common::{PolicyMode, PolicyRules, Rule, Verdict};
use holdpoint_tools::{Act, Policy, Tool};
use serde_json::json;

use super::session::{Session, bad};

fn verdict(mode: PolicyMode, allow: &[&str], ask: &[&str], deny: &[&str]) -> (Verdict, String) {
    let parse = |rules: &[&str]| rules.iter().map(|rule| rule.parse::<Rule>().unwrap()).collect();
    let rules = PolicyRules { allow: parse(allow), ask: parse(ask), deny: parse(deny) };
    let policy = Policy::new(mode, &rules, None).unwrap();
    let act = Act::Mcp { server: "files".to_owned(), tool: "read_file".to_owned() };
    let judgement = policy.judge("mcp__files__read_file", &[act], "/".as_ref());
    (judgement.verdict, judgement.why().to_owned())
}

#[test]
fn m_h2_a_call_asks_unless_a_rule_names_it() {
    use PolicyMode as M;
    use Verdict as V;
    for mode in [M::Ask, M::Edits, M::Sandboxed] {
        assert_eq!(verdict(mode, &[], &[], &[]).0, V::Ask, "{mode}");
        for rule in ["mcp(files read_file)", "mcp(files read_*)", "mcp(files)", "mcp(f* *)"] {
            let (verdict, why) = verdict(mode, &[rule], &[], &[]);
            assert_eq!((verdict, why), (V::Allow, format!("allowed by the rule `{rule}`")));
        }
        for rule in ["mcp(files write_*)", "mcp(other *)", "shell(read_file)", "read_file"] {
            assert_eq!(verdict(mode, &[rule], &[], &[]).0, V::Ask, "{rule}");
        }
        assert_eq!(verdict(mode, &["mcp(files)"], &["mcp"], &[]).0, V::Ask);
        assert_eq!(verdict(mode, &["mcp(files)"], &[], &["mcp(* read_*)"]).0, V::Deny);
    }
    assert_eq!(verdict(M::All, &[], &["mcp"], &[]).0, V::Allow);
    assert_eq!(verdict(M::All, &[], &[], &["mcp(files)"]).0, V::Deny);
    assert_eq!(verdict(M::Readonly, &["mcp(files)"], &[], &[]).0, V::Deny);
    // The name by which the model calls a tool is a rule as well.
    assert_eq!(verdict(M::Ask, &["mcp__files__read_file"], &[], &[]).0, V::Allow);
    for (rule, why) in [("mcp", "name the server"), ("mcp(* x)", "name the server")] {
        let rules = PolicyRules { allow: vec![rule.parse().unwrap()], ..PolicyRules::default() };
        let error = Policy::new(M::Ask, &rules, None).unwrap_err();
        assert!(error.problem.contains(why), "{error}");
    }
}

#[test]
fn m_h2_a_confirm_shows_server_tool_and_all_arguments() {
    let mut session = Session::of(bad("none"));
    session.names();
    let tool = session.tool("mcp__s__work");
    let long = "x".repeat(100_000);
    let input = json!({"path": "a\u{202e}b", "long": long, "nested": {"n": [1, 2]}});
    let intent = tool.intent(&input, session.bench.workspace()).unwrap();
    assert_eq!(intent.message, "Call the tool `work` of the MCP server `s`?");
    let details = intent.details.unwrap();
    assert!(details.starts_with("server: s\ntool: work\narguments:\n{"), "{}", &details[..100]);
    assert!(details.contains("a\\u{202e}b") && details.contains(&long), "hidden and long parts");
    // Its annotation says that it only reads.
    assert_eq!(intent.acts, [Act::Mcp { server: "s".into(), tool: "work".into() }]);
    let other = tool.intent(&json!({"path": "c"}), session.bench.workspace()).unwrap();
    assert_ne!(intent.always, other.always, "an *always* is for these arguments only");
}
