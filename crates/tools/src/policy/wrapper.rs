//! Programs that run other programs, and the calls and scripts that they would run.

use super::shells;
use crate::programs::{self, Kind, Prefix, Running};
use crate::script::Word;

/// The most words of one call that are tried as scripts. Such a call is unclear in any case.
const MAX_POSSIBLE_SCRIPTS: usize = 64;

/// The calls and scripts that a program would run.
#[derive(Debug, Default)]
pub(super) struct Wrapper {
    /// Whether the wrapper itself needs no approval.
    pub(super) harmless: bool,
    /// Whether it always runs external programs, never builtins of bash.
    pub(super) external: bool,
    /// Whether some of its calls are unknown.
    pub(super) unclear: bool,
    /// The variables that it sets for its calls, with their values.
    pub(super) sets: Vec<(String, String)>,
    /// The calls that it would make.
    pub(super) calls: Vec<Vec<Word>>,
    /// Scripts that it would run.
    pub(super) scripts: Vec<String>,
    /// How many trailing words may each start the wrapped command.
    pub(super) possible_starts: usize,
}

/// Whether a program of this name runs others.
pub(super) fn is_wrapper(name: &str) -> bool {
    unwrap_wrapper(&[Word::Literal(name.to_owned())]).is_some()
}

/// The calls and scripts that `words` would run; `None` if their program runs no others.
pub(super) fn unwrap_wrapper(words: &[Word]) -> Option<Wrapper> {
    let (program, rest) = words.split_first()?;
    let name = match program {
        Word::Literal(program) | Word::Home(program) => programs::name_of(program),
        Word::Dynamic => return None,
    };
    let plain = programs::without_g(name);
    if let Some(prefix) = Prefix::with_name(plain) {
        let wrapper = prefixed(prefix, rest);
        return Some(Wrapper { harmless: wrapper.harmless && plain == name, ..wrapper });
    }
    let wrapper = match plain {
        _ if programs::is_shell(plain) => bash_shell(shells::script(rest)),
        "eval" => joined(operands(rest)),
        "trap" => joined(operands(rest).get(..1).unwrap_or_default()),
        "alias" => alias(operands(rest)),
        "compgen" | "complete" | "mapfile" | "readarray" => Wrapper {
            unclear: rest.contains(&Word::Dynamic),
            scripts: values_of(rest, Some('C'), &[]),
            ..Wrapper::default()
        },
        "." | "source" => Wrapper { unclear: true, ..Wrapper::default() },
        "jobs" => jobs(rest)?,
        "find" => find(rest),
        // The syntax of other shells differs, so this is only a guess.
        _ if programs::is_other_shell(plain) || programs::runs_scripts(plain) => {
            possible_scripts(rest)
        }
        "capsh" | "flock" | "runuser" | "script" | "su" => Wrapper {
            scripts: values_of(rest, Some('c'), &["command", "session-command"]),
            ..possible_calls(rest)
        },
        // These have too many options to list: any argument may begin the program that they run.
        _ if programs::has_unknown_syntax(name) => possible_calls(rest),
        _ => by_option(&programs::running(name, rest), rest)?,
    };
    Some(wrapper)
}

/// The words after a `--` that ends the options.
fn operands(words: &[Word]) -> &[Word] {
    match words.split_first() {
        Some((Word::Literal(word), rest)) if word == "--" => rest,
        _ => words,
    }
}

/// A call of the form options, operands, program.
fn prefixed(prefix: &Prefix, words: &[Word]) -> Wrapper {
    let mut wrapper = match prefix.words_before_program(words) {
        Ok(at) => {
            let rest = &words[at..];
            let (sets, call) = if matches!(prefix.name, "env" | "sudo") {
                assignments(rest)
            } else {
                (vec![], rest)
            };
            let is_option =
                call.first().and_then(Word::literal).is_some_and(|word| word.starts_with('-'));
            let calls = if call.is_empty() { vec![] } else { vec![call.to_vec()] };
            let known =
                Wrapper { harmless: prefix.harmless, external: true, calls, ..Wrapper::default() };
            // After an assignment, some versions of `env` run a word with a dash instead of reading
            // an option.
            let wrapper =
                if is_option && call.len() < rest.len() { possible_calls(call) } else { known };
            Wrapper { sets, ..wrapper }
        }
        Err(at) => possible_calls(&words[at..]),
    };
    match prefix.name {
        "command" | "builtin" => wrapper.external = false,
        // `xargs` appends words from its input; without a command it calls `echo`.
        "xargs" if !wrapper.unclear => {
            let mut call =
                wrapper.calls.pop().unwrap_or_else(|| vec![Word::Literal("echo".to_owned())]);
            call.push(Word::Dynamic);
            wrapper.calls = vec![call];
        }
        // These run the call in another folder.
        "chroot" | "pkexec" => wrapper.unclear = true,
        "doas" | "fakeroot" | "linux32" | "linux64" | "sudo" if wrapper.calls.is_empty() => {
            wrapper.unclear = true; // They start a shell that reads its input.
        }
        // Another user has another home folder.
        "doas" | "sudo"
            if words.iter().filter_map(Word::literal).any(|word| word.contains('~')) =>
        {
            wrapper.unclear = true;
        }
        // `-S` splits its value into further arguments of `env`.
        "env" if wrapper.unclear => {
            let split = values_of(words, Some('S'), &["split-string"]);
            wrapper.scripts = split.iter().map(|words| format!("env {words}")).collect();
        }
        _ => {}
    }
    wrapper
}

/// The words after leading options.
fn without_options(words: &[Word]) -> &[Word] {
    let is_option = |word: &&Word| word.literal().is_some_and(|word| word.starts_with('-'));
    &words[words.iter().take_while(is_option).count()..]
}

/// A wrapper that may run a command beginning at any of `words`.
fn possible_calls(words: &[Word]) -> Wrapper {
    Wrapper { unclear: true, external: true, possible_starts: words.len(), ..Wrapper::default() }
}

/// A program that runs others because of options or a subcommand; `None` if it has none of them.
fn by_option(running: &[Running], words: &[Word]) -> Option<Wrapper> {
    let sets = |found: &Running| !found.certain || found.kind != Kind::Command;
    let unclear = words.contains(&Word::Dynamic) || running.iter().any(sets);
    let scripts = |found: &Running| match (found.option.strip_prefix("--"), found.at) {
        _ if found.kind != Kind::Command => vec![],
        (Some(name), _) => values_of(words, None, &[name]),
        (None, _) if found.option.starts_with('-') => {
            values_of(words, found.option.chars().nth(1), &[])
        }
        // The words after it are the command.
        (None, at) => joined(without_options(&words[at.map_or(0, |at| at + 1)..])).scripts,
    };
    let mut certain: Vec<_> = running.iter().filter(|found| found.certain).collect();
    // The values of an option are found at once, wherever they are.
    certain.sort_by_key(|found| found.option);
    certain.dedup_by_key(|found| found.option);
    let possible_starts = if certain.is_empty() { 0 } else { words.len() };
    (!running.is_empty()).then(|| Wrapper {
        unclear,
        possible_starts,
        scripts: certain.into_iter().flat_map(scripts).collect(),
        external: true,
        ..Wrapper::default()
    })
}

/// Splits off the words that set variables. A leading `-`, which is `-i` to `env`, is skipped.
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

/// The commands after `-exec` and similar options, up to `;`, or up to `{} +` except after `-ok`.
/// `find` replaces `{}` by a path.
fn find(words: &[Word]) -> Wrapper {
    let mut wrapper =
        Wrapper { external: true, unclear: words.contains(&Word::Dynamic), ..Wrapper::default() };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let Some(option @ ("-exec" | "-execdir" | "-ok" | "-okdir")) = word.literal() else {
            continue;
        };
        // These run in the folder of each path that is found.
        wrapper.unclear |= option.ends_with("dir");
        let (mut call, mut is_after_path) = (Vec::new(), false);
        for word in words.by_ref() {
            match word.literal() {
                Some(";") => break,
                Some("+") if is_after_path && option.starts_with("-exec") => break,
                Some(text) if text.contains("{}") => call.push(Word::Dynamic),
                _ => call.push(word.clone()),
            }
            is_after_path = word.literal() == Some("{}");
        }
        wrapper.calls.push(call);
    }
    wrapper
}

/// A shell with the syntax of bash. Without a script, it runs a file or its input. It is never
/// harmless, because it may be another shell, which reads the script differently.
fn bash_shell(script: Option<&str>) -> Wrapper {
    Wrapper {
        unclear: script.is_none(),
        scripts: script.map(str::to_owned).into_iter().collect(),
        ..Wrapper::default()
    }
}

/// With `-x`, `jobs` calls the words after its options. It replaces a word that begins with `%` by
/// the process id of a job.
fn jobs(words: &[Word]) -> Option<Wrapper> {
    let is_option = |word: &&Word| {
        let text = word.literal().unwrap_or_default();
        text.starts_with('-') && !matches!(text, "-" | "--")
    };
    let (options, rest) = words.split_at(words.iter().take_while(is_option).count());
    if rest.first() == Some(&Word::Dynamic) {
        return Some(Wrapper { external: false, ..possible_calls(words) }); // It may be an option.
    }
    let runs = options.iter().filter_map(Word::literal).any(|word| word.contains('x'));
    let expanded = |word: &Word| match word.literal() {
        Some(text) if text.starts_with('%') => Word::Dynamic,
        _ => word.clone(),
    };
    let call = operands(rest).iter().map(expanded).collect();
    runs.then(|| Wrapper { calls: vec![call], ..Wrapper::default() })
}

/// A wrapper that joins its words to one script.
fn joined(words: &[Word]) -> Wrapper {
    let literal: Vec<_> = words.iter().filter_map(Word::literal).collect();
    Wrapper {
        unclear: literal.len() < words.len(),
        scripts: vec![literal.join(" ")],
        ..Wrapper::default()
    }
}

/// A wrapper for which the words after the options form one script, or any word is a script or
/// begins a command.
fn possible_scripts(words: &[Word]) -> Wrapper {
    let mut scripts = joined(without_options(words)).scripts;
    let literals = words.iter().filter_map(Word::literal);
    scripts.extend(literals.take(MAX_POSSIBLE_SCRIPTS).map(str::to_owned));
    scripts.extend(values_of(words, Some('c'), &["command", "init-command"]));
    Wrapper { scripts, ..possible_calls(words) }
}

/// The aliases: the text after each `=` is a script, to which bash appends the words after the
/// name.
fn alias(words: &[Word]) -> Wrapper {
    let script = |word: &str| word.split_once('=').map(|(_, script)| script.to_owned());
    let names =
        words.iter().filter(|word| word.literal().is_some_and(|word| !word.contains('='))).count();
    let scripts = words.iter().filter_map(Word::literal).filter_map(script).collect();
    Wrapper { unclear: names < words.len(), scripts, ..Wrapper::default() }
}

/// The values of an option wherever it occurs, by its letter, if it has one, or by its long names.
pub(super) fn values_of(words: &[Word], letter: Option<char>, names: &[&str]) -> Vec<String> {
    let mut values = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let Some(option) = word.literal().and_then(|word| word.strip_prefix('-')) else { continue };
        let attached = match option.strip_prefix('-') {
            Some(long) => {
                let (name, value) = long.split_once('=').unwrap_or((long, ""));
                names
                    .iter()
                    .any(|known| !name.is_empty() && known.starts_with(name))
                    .then_some(value)
            }
            None => letter.and_then(|letter| option.split_once(letter)).map(|(_, value)| value),
        };
        let next = || words.get(at + 1).and_then(Word::literal);
        let value = attached.and_then(|value| if value.is_empty() { next() } else { Some(value) });
        values.extend(value.map(str::to_owned));
    }
    values
}
