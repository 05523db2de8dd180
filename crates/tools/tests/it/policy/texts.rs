//! Substitutions that only output the text of a here-document, and similar ones that must not slip
//! through.

use holdpoint_common::{PolicyMode, Verdict};

use super::support::RuleText;
use super::traps::{ALLOW, differing};

/// Commands that the rules allow.
const PLAIN: &[&str] = &[
    "echo \"$(cat <<'EOF'\n$(touch S) `touch S` don't \") }\n\nEOF\n)\" b",
    "x=\"$(cat <<\"A\"\na\nA\n)\"; echo \"$x\"",
    "echo a > \"$(cat <<'EOF'\nout/x\nEOF\n)\"",
];

/// Commands that must ask.
const TRAPS: &[&str] = &[
    "echo \"$(cat <<EOF\na\nEOF\n)\"",
    "echo \"$(cat <<EOF\n$(touch S)\nEOF\n)\"",
    "echo \"$(cat <<$'EOF'\na\nEOF\n)\"",
    "echo \"$(cat <<'EOF'x\na\nEOFx\n)\"",
    "echo \"$(cat <<E'O'F\na\nEOF\n)\"",
    "echo \"$(cat <<'E F'\na\nE F\n)\"",
    "echo \"$(cat <<''\na\n\n)\"",
    "echo \"$(cat <<'EOF'\na\nEOF)\"",
    "echo \"$(cat <<'EOF'\na\nEOF \n)\"",
    "echo \"$(cat <<'EOF'\na\n EOF\n)\"",
    "echo \"$(cat <<'EOF'\na\n\tEOF\n)\"",
    "echo \"$(cat <<'EOF'\nEOF) \"; touch S; echo \"\nEOF\n)\"",
    "echo \"$(cat <<'EOF'\nEOF x) \"; touch S; echo \"\nEOF\n)\"",
    "echo \"$(cat <<-'EOF'\n\tEOF) \"; touch S; echo \"\nEOF\n)\"",
    "echo \"$(cat <<'EOF'\nEOF\ntouch S\nEOF\n)\"",
    "echo \"$(cat <<'EOF'\na\nEOF\ntouch S)\"",
    "echo \"$(cat <<'EOF'\na\nEOF\n; touch S)\"",
    "echo \"$(cat <<'EOF'\na\nEOF\n# b\n)\"",
    "echo \"$(cat <<'EOF'\na\nEOF\n)$(touch S)\"",
    "echo \"$(cat <<'EOF'\na\nEOF\n\"",
    "echo \"$(cat <<'EOF' | cat\na\nEOF\n)\"",
    "echo \"$(cat <<'EOF' # b\na\nEOF\n)\"",
    "echo \"$(cat <<'EOF'; touch S\na\nEOF\n)\"",
    "echo \"$(cat <<'EOF' & touch S\na\nEOF\n)\"",
    "echo \"$(cat <<'EOF' && cat\na\nEOF\n)\"",
    "echo \"$(cat <<'EOF' -\na\nEOF\n)\"",
    "echo \"$(cat <<'EOF' x\na\nEOF\n)\"",
    "echo \"$(cat <<'EOF' > out/x\na\nEOF\n)\"",
    "echo \"$(cat <<'EOF' < x\na\nEOF\n)\"",
    "echo \"$(cat <<'EOF' <<'A'\na\nEOF\na\nA\n)\"",
    "echo \"$(cat <<'EOF' <(echo a)\na\nEOF\n)\"",
    "echo \"$(cat <<'EOF' \\\n\na\nEOF\n)\"",
    "echo \"$(cat 0<<'EOF'\na\nEOF\n)\"",
    "echo \"$(cat 3<<'EOF'\na\nEOF\n)\"",
    "echo \"$(cat - <<'EOF'\na\nEOF\n)\"",
    "echo \"$(cat x <<'EOF'\na\nEOF\n)\"",
    "echo \"$(<<'EOF' cat\na\nEOF\n)\"",
    "echo \"$(<<'EOF'\na\nEOF\n)\"",
    "echo \"$(\ncat <<'EOF'\na\nEOF\n)\"",
    "echo \"$(x=1 cat <<'EOF'\na\nEOF\n)\"",
    "echo \"$(! cat <<'EOF'\na\nEOF\n)\"",
    "echo \"$(/bin/cat <<'EOF'\na\nEOF\n)\"",
    "echo \"$(./cat <<'EOF'\na\nEOF\n)\"",
    "echo \"$(\\cat <<'EOF'\na\nEOF\n)\"",
    "echo \"$('cat' <<'EOF'\na\nEOF\n)\"",
    "echo \"$(command cat <<'EOF'\na\nEOF\n)\"",
    "echo \"$(catx <<'EOF'\na\nEOF\n)\"",
    "echo \"$(bash <<'EOF'\ntouch S\nEOF\n)\"",
    "echo \"$(head <<'EOF'\na\nEOF\n)\"",
    "echo \"$((cat <<'EOF'\na\nEOF\n))\"",
    "echo \"$({ cat <<'EOF'\na\nEOF\n})\"",
    "echo \"`cat <<'EOF'\na\nEOF\n`\"",
    "echo $(cat <<'EOF'\na\nEOF\n)",
    "echo ${x:-$(cat <<'EOF'\na\nEOF\n)}",
    "echo \"${x:-$(cat <<'EOF'\na\nEOF\n)}\"",
    "echo $((\"$(cat <<'EOF'\na\nEOF\n)\"))",
    "echo \"$(echo \"$(cat <<'EOF'\na\nEOF\n)\")\"",
    "cat <<A \"$(cat <<'EOF'\na\nEOF\n)\"\nA",
    "cat <<A\n\"$(cat <<'EOF'\na\nEOF\n)\"\nA",
    "echo \"$(cat <<'EOF'\n\r\nEOF\n)\"",
    "cat() { touch S; }; echo \"$(cat <<'EOF'\na\nEOF\n)\"",
    "alias cat='touch S'; echo \"$(cat <<'EOF'\na\nEOF\n)\"",
    "export PATH=.; echo \"$(cat <<'EOF'\na\nEOF\n)\"",
    // The text is judged as if the command contained it.
    "\"$(cat <<'EOF'\ntouch\nEOF\n)\" S",
    "eval \"$(cat <<'EOF'\ntouch S\nEOF\n)\"",
    "bash -c \"$(cat <<'EOF'\ntouch S\nEOF\n)\"",
    "PS4=\"$(cat <<'EOF'\n$(touch S)\nEOF\n)\"; echo a",
    "echo a > \"$(cat <<'EOF'\nx\nEOF\n)\"",
];

#[test]
fn forms_similar_to_a_text_substitution_ask() {
    let rules = RuleText { allow: ALLOW, ..RuleText::default() };
    assert_eq!(differing(&rules, PLAIN, Verdict::Allow), []);
    assert_eq!(differing(&rules, TRAPS, Verdict::Ask), []);
    let rules = RuleText { mode: PolicyMode::Readonly, allow: ALLOW, ..RuleText::default() };
    assert_eq!(differing(&rules, &[PLAIN, TRAPS].concat(), Verdict::Deny), []);
}

#[test]
fn m_e7_a_text_substitution_is_judged_as_a_literal_argument() {
    let commit = "git commit -m \"$(cat <<'EOF'\nfix: don't \"stop\" $(here)\n\nWhy.\nEOF\n)\"";
    let rules = RuleText { allow: &["shell(git commit *)"], ..RuleText::default() };
    let all = [commit, &format!("cd . && {commit}"), &format!("{commit} && {commit}")];
    assert_eq!(differing(&rules, &all, Verdict::Allow), []);
    let text = "git commit -m \"$(cat <<'EOF'\nwip\n\nEOF\n)\"";
    let exact = |allow| RuleText { allow, ..RuleText::default() }.world().verdict(text);
    assert_eq!(exact(&["shell(git commit -m wip)"]), Verdict::Allow);
    assert_eq!(exact(&["shell(git commit -m other)"]), Verdict::Ask);
    // A rule about `cat` applies to this call too.
    let restricted = RuleText { ask: &["shell(cat)"], ..rules.clone() };
    assert_eq!(differing(&restricted, &[commit], Verdict::Ask), []);
    let restricted = RuleText { deny: &["shell(cat)"], ..rules };
    assert_eq!(differing(&restricted, &[commit], Verdict::Deny), []);
    let touch = RuleText { mode: PolicyMode::All, deny: &["shell(touch)"], ..RuleText::default() };
    let runs = [
        "\"$(cat <<'EOF'\ntouch\nEOF\n)\" S",
        "eval \"$(cat <<'EOF'\ntouch S\nEOF\n)\"",
        "bash -c \"$(cat <<'EOF'\ntouch S\nEOF\n)\"",
    ];
    assert_eq!(differing(&touch, &runs, Verdict::Deny), []);
    assert_eq!(differing(&touch, &[commit], Verdict::Allow), []);
}
