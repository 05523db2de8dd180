//! Hostile commands: a grammar of bash that mixes allowed and forbidden parts, then broken at
//! random.

use holdpoint_common::PolicyMode;
use proptest::prelude::*;
use proptest::sample::select;

use super::support::{PolicyWorkspace, RuleText};

/// A world with rules that allow the harmless programs of the grammar, reading everything, and
/// writing `written`.
pub(crate) fn world(written: &[&str]) -> PolicyWorkspace {
    let programs =
        ["shell(good)", "shell(echo)", "shell(cat)", "shell(printf)", "shell(test)", "shell([)"];
    let allow = [&programs[..], written, &["read(**)"]].concat();
    RuleText { mode: PolicyMode::Ask, allow: &allow, ask: &[], deny: &[] }.world()
}

/// A world in which only one program is denied.
pub(crate) fn denying() -> PolicyWorkspace {
    RuleText { mode: PolicyMode::All, allow: &[], ask: &[], deny: &["shell(bad)"] }.world()
}

/// Commands that change the meaning of later words, and such words.
const CHANGES: &[&str] = &[
    "trap 'bad a=b' EXIT",
    "shopt -s expand_aliases",
    "alias e=env",
    "e bad",
    "declare -n r=PS4",
    "r='$(bad)'",
    "x='PS4=$(bad)'",
    "export \"$x\"",
    "export PS4=$r",
    "set -x",
    "set -k",
    "bash -c : BASH_ENV=/dev/stdin <<< bad",
    "RANDOM+='a[$(bad)]'",
    "declare -a q",
    "q=($(bad))",
    "r='($(bad))'",
    "declare 'q=($(bad))'",
    "typeset q=\"$r\"",
    "readonly -a z=\"$r\"",
    "export q=$r",
    "good",
    "echo a",
];

/// Programs: allowed, forbidden, and both in disguise.
const PROGRAMS: &[&str] = &[
    "good",
    "good",
    "good",
    "good",
    "good",
    "good",
    "good",
    "good",
    "good",
    "good",
    "good",
    "good",
    "good",
    "good",
    "echo",
    "echo",
    "echo",
    "echo",
    "echo",
    "echo",
    "cat",
    "cat",
    "printf",
    "cat",
    "printf",
    "test",
    "[",
    ":",
    "true",
    "bad",
    "./bad",
    "g\"oo\"d",
    "\\good",
    "$'good'",
    "b''ad",
    "$x",
    "good$x",
    "{good,bad}",
    "goo?",
    "~/bad",
    "b\\ad",
    "xargs good",
    "env good",
    "env bad",
    "timeout 1 good",
    "timeout 1 bad",
    "nice good",
    "nohup good",
    "setsid -w good",
    "command good",
    "command bad",
    "builtin echo",
    "exec good",
    "eval good",
    "bash -c good",
    "sh -c bad",
    "x=1 good",
    "PATH=. good",
    "NO_COLOR=1 good",
    "x=1",
    "x=bad",
    "export x=bad",
    "time good",
    "! good",
    "coproc good",
    "read x",
    "unset x",
    "set -- bad",
    "cd .",
    "env -i good",
    "stdbuf -oL good",
    "xargs -I{} {}",
    // An option of a wrapper takes one word, but an expansion may give several; a `-` that closes a
    // file is a word.
    "x='1 bad'",
    "x='KILL 1 bad'",
    "timeout -s $x 1 good",
    "timeout -k $x 1 good",
    "timeout $x good",
    "timeout -s $(echo KILL 1 bad) 1 good",
    "timeout --signal ${x:-KILL 1 bad} 1 good",
    "nice -n $x good",
    "nice -n `echo 1 bad` good",
    "stdbuf -o $x good",
    "echo 1 bad | xargs nice -n",
    "echo 1 bad | xargs timeout -k",
    "xargs -n $x good",
    "xargs -P \"$x\" good",
    "env - good",
    "env - x=1 bad",
    ">&-bad good",
    "2>&-bad",
    "<&-\"bad\" good",
    ">& -bad",
    ">&- good",
    "trap 'bad a=b' EXIT",
    "shopt -s expand_aliases",
    "alias e=env",
    "e bad",
    "declare -n r=PS4",
    "r='$(bad)'",
    "set -x",
    "set -k",
    "RANDOM+='a[$(bad)]'",
    "declare -a q",
    "q=($(bad))",
    "r='($(bad))'",
    "declare 'q=($(bad))'",
    "typeset q=\"$r\"",
    "readonly -a z=\"$r\"",
    "export q=$r",
];

/// Pieces that end, open or change a construct.
const JOINTS: &[&str] = &[
    ";",
    "&",
    "&&",
    "||",
    "|",
    "|&",
    "\n",
    "\r",
    "\r\n",
    "\\\n",
    "\\",
    "'",
    "\"",
    "`",
    "$",
    "(",
    ")",
    "((",
    "))",
    "{",
    "}",
    " { ",
    " } ",
    "[[ ",
    " ]]",
    "#",
    " #",
    "!",
    "! ",
    "$(",
    "${",
    "$((",
    "<(",
    ">(",
    "<",
    ">",
    ">>",
    "<<EOF",
    "<<-EOF",
    "<<'EOF'",
    "\nEOF\n",
    "\"$(cat <<'EOF'\n",
    "\nEOF\n)\"",
    "<<<",
    "&>",
    ">&",
    ">&-",
    ">&-bad ",
    "<&-",
    "2>",
    "{x}>",
    ";;",
    ";&",
    " in ",
    " do ",
    "; done",
    " then ",
    "; fi",
    "if ",
    "case a in ",
    " esac",
    "for x in ",
    "while ",
    "function ",
    "()",
    "=",
    "+=",
    "a=",
    "a[",
    "]",
    "~",
    "*",
    "?",
    ",",
    "..",
    "\t",
    " ",
    "$'",
    "$\"",
    "$x",
    "${x:-",
    "${x:=",
    "${x@P}",
    "bad",
    " bad ",
    ";bad;",
    "\nbad\n",
    "$(bad)",
    "`bad`",
    "|bad",
    "&bad&",
    "&&bad",
    " -v ",
    "'a[$(bad)]'",
    "x='a[$(bad)]'",
    "$((x))",
    "\u{a0}",
    "\u{85}",
    "\u{2028}",
    "é",
];

fn word(command: BoxedStrategy<String>) -> BoxedStrategy<String> {
    let leaf = select(vec![
        "a",
        "b",
        "a",
        "b",
        "c",
        "'a'",
        "\"b\"",
        "$x",
        "\"$x\"",
        "-n",
        "-v",
        "\"a b\"",
        "'a;b'",
        "'a\nb'",
        "\"a\nb\"",
        "\\;",
        "$x",
        "\"$x\"",
        "${x}",
        "${x:-a}",
        "${x%a}",
        "$((1+2))",
        "$((x))",
        "{a,b}",
        "*",
        "?",
        "~",
        "$'a\\n'",
        "$'\\x41'",
        "#a",
        "a#b",
        "=",
        "a=b",
        "!",
        "-",
        "--",
        "'$(bad)'",
        "\\$(bad)",
        "'`bad`'",
        "]",
        "}",
        "done",
        "\"\\\"\"",
        "\"'\"",
        "\"$\"",
        "$",
        "\"\\$(bad)\"",
        "a\\\nb",
        "\"a \\\nb\"",
        "-o",
        "1",
        "2",
        "%d",
        "${#x}",
        "${x[0]}",
        "$1",
        "\"$@\"",
        "\"$(cat <<'EOF'\n$(bad) \"'`bad`\nEOF\n)\"",
        "\"a $(cat <<-'EOF'\n\t)\"; bad\n\tEOF\n) b\"",
        "\"$(cat <<'EOF'\nEOF)\"; bad; echo \"\nEOF\n)\"",
    ]);
    prop_oneof![
        10 => leaf.prop_map(str::to_owned),
        1 => command.clone().prop_map(|inner| format!("$({inner})")),
        1 => command.clone().prop_map(|inner| format!("\"$({inner})\"")),
        1 => command.clone().prop_map(|inner| format!("`{inner}`")),
        1 => command.clone().prop_map(|inner| format!("${{x:-$({inner})}}")),
        1 => command.prop_map(|inner| format!("<({inner})")),
    ]
    .boxed()
}

fn simple(command: BoxedStrategy<String>) -> BoxedStrategy<String> {
    let redirections = select(vec![
        "",
        "",
        "",
        "",
        "",
        "",
        "",
        "",
        "",
        "",
        " >/dev/null",
        " 2>&1",
        " > out/x",
        " 2>&1",
        " > out/x",
        " >> out/x",
        " > x",
        " <<< a",
        " < /dev/null",
        " 2>&-",
        " >&-",
        " >&-a",
        " &> out/x",
        " > $x",
        " >& x",
        " >| out/y",
        " <<EOF\na $(good) $x\nEOF\n",
        " <<'EOF'\n$(bad)\nEOF\n",
        " <<EOF\n$(bad)\nEOF\n",
        " <<-EOF\n\ta\n\tEOF\n",
    ]);
    let words = proptest::collection::vec(word(command), 0..3);
    (select(PROGRAMS), words, redirections)
        .prop_map(|(program, words, redirection)| {
            let arguments: String = words.iter().map(|word| format!(" {word}")).collect();
            format!("{program}{arguments}{redirection}")
        })
        .boxed()
}

fn compound(command: BoxedStrategy<String>) -> BoxedStrategy<String> {
    let joint = select(vec![
        " ; ", " & ", " && ", " || ", " | ", " |& ", "\n", ";", "&", "&&", "||", "|", " # a\n",
    ]);
    let c = || command.clone();
    prop_oneof![
        4 => (c(), joint, c()).prop_map(|(a, joint, b)| format!("{a}{joint}{b}")),
        1 => c().prop_map(|a| format!("({a})")),
        1 => c().prop_map(|a| format!("( ({a}) )")),
        1 => c().prop_map(|a| format!("{{ {a}; }}")),
        1 => c().prop_map(|a| format!("! {a}")),
        1 => (c(), c()).prop_map(|(a, b)| format!("if {a}; then {b}; fi")),
        1 => (c(), c()).prop_map(|(a, b)| format!("if {a}\nthen\n{b}\nelse {a}; fi")),
        1 => c().prop_map(|a| format!("for x in a 'b c' $x; do {a}; done")),
        1 => c().prop_map(|a| format!("while {a}; do break; done")),
        1 => c().prop_map(|a| format!("case a in (a|b) {a};; *) {a} ;; esac")),
        1 => c().prop_map(|a| format!("[[ -n a && ! -f b ]] && {a}")),
        1 => c().prop_map(|a| format!("x() {{ {a}; }}; x")),
        1 => c().prop_map(|a| format!("x=$({a})")),
        1 => c().prop_map(|a| format!("eval '{a}'")),
        1 => c().prop_map(|a| format!("bash -c '{a}'")),
    ]
    .boxed()
}

/// A command with a few joints inserted at any position.
pub(crate) fn command() -> impl Strategy<Value = String> {
    let leaf = simple(
        select(vec!["good", "echo a", "good a", "echo $x", "good >/dev/null", "bad"])
            .prop_map(str::to_owned)
            .boxed(),
    );
    let tree =
        leaf.prop_recursive(3, 12, 3, |inner| prop_oneof![simple(inner.clone()), compound(inner)]);
    let breaks = proptest::collection::vec(
        (any::<prop::sample::Index>(), select(JOINTS), any::<bool>()),
        0..3,
    );
    (tree, breaks).prop_map(|(mut command, breaks)| {
        for (at, joint, replaces) in breaks {
            let ends: Vec<_> =
                command.char_indices().map(|(at, _)| at).chain([command.len()]).collect();
            let place = at.index(ends.len());
            let end = if replaces {
                ends.get(place + 1).copied().unwrap_or(command.len())
            } else {
                ends[place]
            };
            command.replace_range(ends[place]..end, joint);
        }
        command
    })
}

/// A few commands, each of which may change the meaning of the next ones.
pub(crate) fn changes() -> impl Strategy<Value = String> {
    let commands = proptest::collection::vec(select(CHANGES), 1..7);
    (commands, select(&["; ", "\n"][..])).prop_map(|(commands, joint)| commands.join(joint))
}
