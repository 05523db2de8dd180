//! A substitution that only gives the text of a here-document, and its neighbours, which must not slip through.

use holdpoint_common::{PolicyMode, Verdict};

use super::support::Written;
use super::traps::{ALLOW, differing};

/// What the rules allow.
const PLAIN: &[&str] = &[
    "echo \"$(cat <<'EOF'\n$(touch S) `touch S` don't \") }\n\nEOF\n)\" b",
    "x=\"$(cat <<\"A\"\na\nA\n)\"; echo \"$x\"",
    "echo a > \"$(cat <<'EOF'\nout/x\nEOF\n)\"",
];

/// What must be asked.
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
    // What the text becomes is judged as if it were written there.
    "\"$(cat <<'EOF'\ntouch\nEOF\n)\" S",
    "eval \"$(cat <<'EOF'\ntouch S\nEOF\n)\"",
    "bash -c \"$(cat <<'EOF'\ntouch S\nEOF\n)\"",
    "PS4=\"$(cat <<'EOF'\n$(touch S)\nEOF\n)\"; echo a",
    "echo a > \"$(cat <<'EOF'\nx\nEOF\n)\"",
];

#[test]
fn neighbours_of_a_text_are_asked_for() {
    let rules = Written { allow: ALLOW, ..Written::default() };
    assert_eq!(differing(&rules, PLAIN, Verdict::Allow), []);
    assert_eq!(differing(&rules, TRAPS, Verdict::Ask), []);
    let rules = Written { mode: PolicyMode::Readonly, allow: ALLOW, ..Written::default() };
    assert_eq!(differing(&rules, &[PLAIN, TRAPS].concat(), Verdict::Deny), []);
}

#[test]
fn m_e7_a_text_in_a_substitution_needs_no_rule_and_is_an_argument_like_any_other() {
    let commit = "git commit -m \"$(cat <<'EOF'\nfix: don't \"stop\" $(here)\n\nWhy.\nEOF\n)\"";
    let rules = Written { allow: &["shell(git commit *)"], ..Written::default() };
    let all = [commit, &format!("cd . && {commit}"), &format!("{commit} && {commit}")];
    assert_eq!(differing(&rules, &all, Verdict::Allow), []);
    let text = "git commit -m \"$(cat <<'EOF'\nwip\n\nEOF\n)\"";
    let exact = |allow| Written { allow, ..Written::default() }.world().verdict(text);
    assert_eq!(exact(&["shell(git commit -m wip)"]), Verdict::Allow);
    assert_eq!(exact(&["shell(git commit -m other)"]), Verdict::Ask);
    // A rule about `cat` is about this one, too.
    let restricted = Written { ask: &["shell(cat)"], ..rules.clone() };
    assert_eq!(differing(&restricted, &[commit], Verdict::Ask), []);
    let restricted = Written { deny: &["shell(cat)"], ..rules };
    assert_eq!(differing(&restricted, &[commit], Verdict::Deny), []);
    let touch = Written { mode: PolicyMode::All, deny: &["shell(touch)"], ..Written::default() };
    let runs = [
        "\"$(cat <<'EOF'\ntouch\nEOF\n)\" S",
        "eval \"$(cat <<'EOF'\ntouch S\nEOF\n)\"",
        "bash -c \"$(cat <<'EOF'\ntouch S\nEOF\n)\"",
    ];
    assert_eq!(differing(&touch, &runs, Verdict::Deny), []);
    assert_eq!(differing(&touch, &[commit], Verdict::Allow), []);
}
