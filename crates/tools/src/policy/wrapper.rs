//! Programs that run other programs: what they would run.

use super::prefixes::Prefix;
use super::{programs, shells};
use crate::script::Word;

/// What a program would run.
#[derive(Debug, Default)]
pub(super) struct Wrapper {
    /// It does nothing itself that needs to be allowed.
    pub(super) harmless: bool,
    /// It runs what follows as a program, never as a command of bash.
    pub(super) outside: bool,
    /// What it would run is not all known.
    pub(super) unclear: bool,
    /// Variables it sets for what it runs, with their values.
    pub(super) sets: Vec<(String, String)>,
    /// Calls that it would make.
    pub(super) calls: Vec<Vec<Word>>,
    /// Scripts that it would run.
    pub(super) scripts: Vec<String>,
    /// With any of so many last words a call may begin that it would make.
    pub(super) guesses: usize,
}

/// Whether a program of this name runs others.
pub(super) fn is_wrapper(name: &str) -> bool {
    look_through(&[Word::Literal(name.to_owned())]).is_some()
}

/// What a call of `words` would run in its turn, if its program is one that runs others.
pub(super) fn look_through(words: &[Word]) -> Option<Wrapper> {
    let (program, rest) = words.split_first()?;
    let name = match program {
        Word::Literal(program) | Word::Home(program) => programs::name_of(program),
        Word::Dynamic => return None,
    };
    let plain = programs::without_g(name);
    if let Some(prefix) = Prefix::of(plain) {
        let wrapper = prefixed(prefix, rest);
        return Some(Wrapper { harmless: wrapper.harmless && plain == name, ..wrapper });
    }
    let wrapper = match plain {
        "sh" | "bash" | "dash" | "ash" | "rbash" => posix(shells::script(rest)),
        "eval" => joined(operands(rest)),
        "trap" => joined(operands(rest).get(..1).unwrap_or_default()),
        "alias" => alias(operands(rest)),
        "compgen" | "complete" | "mapfile" | "readarray" => Wrapper {
            unclear: rest.contains(&Word::Dynamic),
            scripts: values_of(rest, Some('C'), &[]),
            ..Wrapper::default()
        },
        "." | "source" => Wrapper { unclear: true, ..Wrapper::default() },
        "find" => find(rest),
        // Other shells read scripts in another way, of which this is a guess.
        "csh" | "elvish" | "fish" | "ksh" | "mksh" | "nu" | "pwsh" | "tcsh" | "xonsh" | "zsh" => remote(rest),
        "hyperfine" | "newgrp" | "nodemon" | "parallel" | "pee" | "sg" | "ssh" | "watch" | "watchexec" => remote(rest),
        "capsh" | "flock" | "runuser" | "script" | "su" => {
            Wrapper { scripts: values_of(rest, Some('c'), &["command", "session-command"]), ..guessed(rest) }
        }
        // Their options are many: whatever follows may be what they run.
        _ if programs::is_guessed(name) => guessed(rest),
        _ if programs::option_that_runs(name, rest).is_some() => by_option(programs::options_that_run(name), rest),
        _ => return None,
    };
    Some(wrapper)
}

/// The words after a `--` that ends options.
fn operands(words: &[Word]) -> &[Word] {
    match words.split_first() {
        Some((Word::Literal(word), rest)) if word == "--" => rest,
        _ => words,
    }
}

/// Options, operands, then the program.
fn prefixed(prefix: &Prefix, words: &[Word]) -> Wrapper {
    let mut wrapper = match prefix.skip(words) {
        Ok(at) => {
            let rest = &words[at..];
            let (sets, call) = if matches!(prefix.name, "env" | "sudo") { assignments(rest) } else { (vec![], rest) };
            let is_option = call.first().and_then(Word::literal).is_some_and(|word| word.starts_with('-'));
            let calls = if call.is_empty() { vec![] } else { vec![call.to_vec()] };
            // After what is set, not every `env` takes an option for one.
            let known = Wrapper { harmless: prefix.harmless, outside: true, calls, ..Wrapper::default() };
            let wrapper = if is_option && call.len() < rest.len() { guessed(call) } else { known };
            Wrapper { sets, ..wrapper }
        }
        Err(at) => guessed(&words[at..]),
    };
    match prefix.name {
        "command" | "builtin" => wrapper.outside = false,
        // What it reads comes after the words; without words it calls `echo`.
        "xargs" if !wrapper.unclear => {
            let mut call = wrapper.calls.pop().unwrap_or_else(|| vec![Word::Literal("echo".to_owned())]);
            call.push(Word::Dynamic);
            wrapper.calls = vec![call];
        }
        // It runs in another folder.
        "chroot" | "pkexec" => wrapper.unclear = true,
        "doas" | "fakeroot" | "linux32" | "linux64" | "sudo" if wrapper.calls.is_empty() => {
            wrapper.unclear = true; // They start a shell, which reads.
        }
        // Another user has another home folder.
        "doas" | "sudo" if words.iter().filter_map(Word::literal).any(|word| word.contains('~')) => {
            wrapper.unclear = true;
        }
        // `-S` splits a word into more of its own.
        "env" if wrapper.unclear => {
            let split = values_of(words, Some('S'), &["split-string"]);
            wrapper.scripts = split.iter().map(|words| format!("env {words}")).collect();
        }
        _ => {}
    }
    wrapper
}

/// Any word may begin what it runs.
fn guessed(words: &[Word]) -> Wrapper {
    Wrapper { unclear: true, outside: true, guesses: words.len(), ..Wrapper::default() }
}

/// Any of these options may say what it runs: a script, or the first word of a program.
fn by_option(options: &[&str], words: &[Word]) -> Wrapper {
    let long = |option: &&str| option.strip_prefix("--").map(|name| values_of(words, None, &[name]));
    // Settings, which may be any.
    let unclear = words.contains(&Word::Dynamic) || options.contains(&"--execute");
    Wrapper { unclear, scripts: options.iter().filter_map(long).flatten().collect(), ..guessed(words) }
}

/// Goes past a `-`, which sets none, and words that set a variable.
fn assignments(words: &[Word]) -> (Vec<(String, String)>, &[Word]) {
    let mut sets = Vec::new();
    let mut rest = match words {
        [Word::Literal(word), rest @ ..] if word == "-" => rest,
        _ => words,
    };
    while let Some((Word::Literal(word), more)) = rest.split_first()
        && let Some((name, value)) = word.split_once('=')
    {
        sets.push((name.to_owned(), value.to_owned()));
        rest = more;
    }
    (sets, rest)
}

/// What follows `-exec` and its like, up to `;` or `+`. What it finds is put in place of `{}`.
fn find(words: &[Word]) -> Wrapper {
    let mut wrapper = Wrapper { outside: true, unclear: words.contains(&Word::Dynamic), ..Wrapper::default() };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if matches!(word.literal(), Some("-exec" | "-execdir" | "-ok" | "-okdir")) {
            // In the folders of what it finds.
            wrapper.unclear |= word.literal().is_some_and(|word| word.ends_with("dir"));
            let ends = |word: &&Word| matches!(word.literal(), Some(";" | "+"));
            let found = |word: &Word| match word.literal() {
                Some(text) if text.contains("{}") => Word::Dynamic,
                _ => word.clone(),
            };
            wrapper.calls.push(words.by_ref().take_while(|word| !ends(word)).map(found).collect());
        }
    }
    wrapper
}

/// A shell that reads scripts as bash does. Without a script it runs a file, or what it reads. It is never harmless: it
/// may not be bash, and read its script in another way.
fn posix(script: Option<&str>) -> Wrapper {
    Wrapper {
        unclear: script.is_none(),
        scripts: script.map(str::to_owned).into_iter().collect(),
        ..Wrapper::default()
    }
}

/// The words make one script.
fn joined(words: &[Word]) -> Wrapper {
    let literal: Vec<_> = words.iter().filter_map(Word::literal).collect();
    Wrapper { unclear: literal.len() < words.len(), scripts: vec![literal.join(" ")], ..Wrapper::default() }
}

/// The words after some options make one script, or any of them is one, or begins a program.
fn remote(words: &[Word]) -> Wrapper {
    let is_option = |word: &&Word| word.literal().is_some_and(|word| word.starts_with('-'));
    let mut scripts = joined(&words[words.iter().take_while(is_option).count()..]).scripts;
    scripts.extend(words.iter().filter_map(Word::literal).take(64).map(str::to_owned));
    scripts.extend(values_of(words, Some('c'), &["command", "init-command"]));
    Wrapper { scripts, ..guessed(words) }
}

/// What stands after each `=` is a script, to which whatever follows its name is added.
fn alias(words: &[Word]) -> Wrapper {
    let script = |word: &str| word.split_once('=').map(|(_, script)| script.to_owned());
    let names = words.iter().filter(|word| word.literal().is_some_and(|word| !word.contains('='))).count();
    let scripts = words.iter().filter_map(Word::literal).filter_map(script).collect();
    Wrapper { unclear: names < words.len(), scripts, ..Wrapper::default() }
}

/// The values of an option, wherever it may stand: a letter, if it has one, or one of these long names.
pub(super) fn values_of(words: &[Word], letter: Option<char>, names: &[&str]) -> Vec<String> {
    let mut values = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let Some(option) = word.literal().and_then(|word| word.strip_prefix('-')) else { continue };
        let attached = match option.strip_prefix('-') {
            Some(long) => {
                let (name, value) = long.split_once('=').unwrap_or((long, ""));
                names.iter().any(|known| !name.is_empty() && known.starts_with(name)).then_some(value)
            }
            None => letter.and_then(|letter| option.split_once(letter)).map(|(_, value)| value),
        };
        let next = || words.get(at + 1).and_then(Word::literal);
        let value = attached.and_then(|value| if value.is_empty() { next() } else { Some(value) });
        values.extend(value.map(str::to_owned));
    }
    values
}
