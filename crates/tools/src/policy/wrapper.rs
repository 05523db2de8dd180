//! Programs that run other programs: what they would run.

use super::options::Options;
use super::programs::name_of;
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
    pub(super) sets: Vec<(String, Option<String>)>,
    /// Calls that it would make.
    pub(super) calls: Vec<Vec<Word>>,
    /// Calls that it may make, if an option that is not understood is what it could be.
    pub(super) guesses: Vec<Vec<Word>>,
    /// Scripts that it would run.
    pub(super) scripts: Vec<String>,
}

/// What a call of `words` would run in its turn, if its program is one that runs others.
pub(super) fn look_through(words: &[Word]) -> Option<Wrapper> {
    let (program, rest) = words.split_first()?;
    let name = name_of(program.literal()?);
    // What it does before it runs the rest: its options, and how many operands come first.
    let (options, operands, harmless) = match name {
        "env" => return Some(env(rest)),
        "xargs" => return Some(xargs(rest)),
        "find" => return Some(find(rest)),
        "command" | "builtin" => {
            let options = Options { flags: "pvV", ..Options::NONE };
            return Some(Wrapper { outside: false, ..simple(rest, &options, 0, true) });
        }
        "sh" | "bash" | "dash" | "zsh" | "ksh" | "ash" | "rbash" | "fish" => return Some(shell(rest)),
        "eval" => return Some(joined(rest)),
        "." | "source" => return Some(Wrapper { unclear: true, ..Wrapper::default() }),
        "watch" => return Some(script_or_guesses(rest)),
        "ssh" | "parallel" => return Some(script_or_guesses(rest)),
        "trap" => return Some(quoted(rest.iter().take(1).collect())),
        "alias" => return Some(quoted(rest.iter().collect())),
        "su" | "runuser" | "script" | "flock" => return Some(with_command_option(rest)),
        "timeout" => (
            Options {
                flags: "v",
                values: "ks",
                long_flags: &["foreground", "preserve-status", "verbose"],
                long_values: &["kill-after", "signal"],
            },
            1,
            true,
        ),
        "nice" => {
            (Options { flags: "0123456789", values: "n", long_flags: &[], long_values: &["adjustment"] }, 0, true)
        }
        "ionice" => (
            Options { flags: "t", values: "cn", long_flags: &["ignore"], long_values: &["class", "classdata"] },
            0,
            true,
        ),
        "nohup" => (Options::NONE, 0, true),
        "setsid" => (Options { flags: "cfw", long_flags: &["ctty", "fork", "wait"], ..Options::NONE }, 0, true),
        "stdbuf" => (Options { values: "ioe", long_values: &["input", "output", "error"], ..Options::NONE }, 0, true),
        "time" => (Options { flags: "pv", long_flags: &["portability", "verbose"], ..Options::NONE }, 0, true),
        "chrt" => (Options { flags: "bfior", ..Options::NONE }, 1, true),
        "taskset" => (Options { flags: "c", long_flags: &["cpu-list"], ..Options::NONE }, 1, true),
        "sudo" => (
            Options { flags: "AbEHiknPSs", values: "CDghpRrTtUu", long_flags: &[], long_values: &["user", "group"] },
            0,
            false,
        ),
        "doas" => (Options { flags: "nsL", values: "uC", ..Options::NONE }, 0, false),
        "exec" => (Options { flags: "cl", values: "a", ..Options::NONE }, 0, false),
        "strace" | "ltrace" => {
            (Options { flags: "fFqvyTtrxzCcdihkwDY", values: "oeaEIOPpsSuUX", ..Options::NONE }, 0, false)
        }
        "chroot" => (Options { long_values: &["userspec", "groups"], ..Options::NONE }, 1, false),
        "busybox" | "toybox" | "fakeroot" | "dbus-run-session" | "unbuffer" | "pkexec" | "linux32" | "linux64" => {
            (Options::NONE, 0, false)
        }
        // Their options are many: whatever follows may be what they run.
        "caffeinate" | "choom" | "nsenter" | "numactl" | "prlimit" | "setarch" | "setpriv" | "systemd-run"
        | "unshare" | "valgrind" | "xvfb-run" => return Some(guessed(rest)),
        _ => return None,
    };
    Some(simple(rest, &options, operands, harmless))
}

/// Options, operands, then the program.
fn simple(words: &[Word], options: &Options, operands: usize, harmless: bool) -> Wrapper {
    match options.skip(words) {
        Ok(at) => {
            let (sets, rest) = assignments(words.get(at + operands..).unwrap_or_default());
            let calls = if rest.is_empty() { vec![] } else { vec![rest.to_vec()] };
            Wrapper { harmless: harmless && sets.is_empty(), outside: true, sets, calls, ..Wrapper::default() }
        }
        Err(at) => guessed(&words[at..]),
    }
}

/// Any word that follows may begin what it runs.
fn guessed(words: &[Word]) -> Wrapper {
    let guesses = (0..words.len().min(64)).map(|at| words[at..].to_vec()).collect();
    Wrapper { unclear: true, outside: true, guesses, ..Wrapper::default() }
}

/// Goes past words that set a variable.
fn assignments(words: &[Word]) -> (Vec<(String, Option<String>)>, &[Word]) {
    let mut sets = Vec::new();
    let mut rest = words;
    while let Some((Word::Literal(word), more)) = rest.split_first()
        && let Some((name, value)) = word.split_once('=')
        && !name.contains('/')
    {
        sets.push((name.to_owned(), Some(value.to_owned())));
        rest = more;
    }
    (sets, rest)
}

fn env(words: &[Word]) -> Wrapper {
    let options = Options { flags: "i0v", long_flags: &["ignore-environment", "null", "debug"], ..Options::NONE };
    match options.skip(words) {
        Ok(at) => Wrapper { harmless: true, ..simple(&words[at..], &Options::NONE, 0, true) },
        Err(at) => {
            let mut wrapper = guessed(&words[at..]);
            // `-S` splits a word into a command; so that it may be one, each word is read as a script too.
            let split = words[at..].iter().filter_map(Word::literal);
            let begins = |word: &str| word.trim_start_matches("--split-string=").trim_start_matches("-S").to_owned();
            wrapper.scripts = split.take(64).map(begins).collect();
            wrapper
        }
    }
}

/// What it reads from its input comes after the words. Where it would come elsewhere, it is not understood.
fn xargs(words: &[Word]) -> Wrapper {
    let options = Options {
        flags: "0rtxo",
        values: "nLPsdE",
        long_flags: &["null", "no-run-if-empty", "verbose", "exit", "open-tty"],
        long_values: &["max-args", "max-procs", "max-chars", "delimiter"],
    };
    let Ok(at) = options.skip(words) else { return guessed(words) };
    let mut call = words[at..].to_vec();
    if call.is_empty() {
        call.push(Word::Literal("echo".to_owned()));
    }
    call.push(Word::Dynamic);
    Wrapper { harmless: true, outside: true, calls: vec![call], ..Wrapper::default() }
}

fn find(words: &[Word]) -> Wrapper {
    let mut wrapper = Wrapper { outside: true, ..Wrapper::default() };
    for (at, word) in words.iter().enumerate() {
        match word.literal() {
            Some("-exec" | "-execdir" | "-ok" | "-okdir") => {
                let ends = |word: &Word| matches!(word.literal(), Some(";" | "+"));
                let call = words[at + 1..].iter().take_while(|word| !ends(word));
                let found = |word: &Word| {
                    if word.literal().is_some_and(|word| word.contains("{}")) { Word::Dynamic } else { word.clone() }
                };
                wrapper.calls.push(call.map(found).collect());
            }
            Some(_) => {}
            None => wrapper.unclear |= *word == Word::Dynamic,
        }
    }
    wrapper
}

/// A shell: the script that follows `-c`. Without one it runs a file, or what it reads.
fn shell(words: &[Word]) -> Wrapper {
    let mut script = false;
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let Some(word) = word.literal() else { break };
        match word.strip_prefix(['-', '+']) {
            Some(long) if long.starts_with('-') && long != "-" => {}
            Some(letters) if !letters.is_empty() => {
                script |= letters.contains('c');
                if letters.ends_with(['o', 'O']) {
                    words.next();
                }
            }
            _ if script => {
                // It may be read by another shell than bash, which reads it in another way.
                return Wrapper { scripts: vec![word.to_owned()], ..Wrapper::default() };
            }
            _ => break,
        }
    }
    Wrapper { unclear: true, ..Wrapper::default() }
}

/// The words make one script.
fn joined(words: &[Word]) -> Wrapper {
    let literal: Vec<_> = words.iter().filter_map(Word::literal).collect();
    Wrapper { unclear: literal.len() < words.len(), scripts: vec![literal.join(" ")], ..Wrapper::default() }
}

/// The words make one script after some options, or any of them begins a program.
fn script_or_guesses(words: &[Word]) -> Wrapper {
    let is_option = |word: &&Word| word.literal().is_some_and(|word| word.starts_with('-'));
    let Wrapper { mut scripts, .. } = joined(&words[words.iter().take_while(is_option).count()..]);
    scripts.extend(words.iter().filter_map(Word::literal).take(64).map(str::to_owned));
    Wrapper { scripts, ..guessed(words) }
}

/// Each word is a script, or has one after its `=`.
fn quoted(words: Vec<&Word>) -> Wrapper {
    let scripts = words.iter().filter_map(|word| word.literal());
    let scripts = scripts.map(|word| word.split_once('=').map_or(word, |(_, script)| script).to_owned());
    Wrapper {
        unclear: words.iter().any(|word| word.literal().is_none()),
        scripts: scripts.collect(),
        ..Wrapper::default()
    }
}

/// A script after `-c` or `--command`; any other word may begin a program.
fn with_command_option(words: &[Word]) -> Wrapper {
    let mut scripts = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let Some(word) = word.literal() else { continue };
        if let Some(script) = word.strip_prefix("--command=") {
            scripts.push(script.to_owned());
        } else if word == "--command" || (word.starts_with('-') && !word.starts_with("--") && word.contains('c')) {
            let (_, attached) = word.split_once('c').unwrap_or_default();
            let next = words.get(at + 1).and_then(Word::literal);
            scripts.extend([Some(attached), next].into_iter().flatten().filter(|it| !it.is_empty()).map(str::to_owned));
        }
    }
    Wrapper { scripts, ..guessed(words) }
}
