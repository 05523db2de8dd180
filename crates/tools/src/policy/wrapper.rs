//! Programs that run other programs: what they would run.

use super::prefixes::Prefix;
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
    pub(super) sets: Vec<(String, String)>,
    /// Calls that it would make.
    pub(super) calls: Vec<Vec<Word>>,
    /// Scripts that it would run.
    pub(super) scripts: Vec<String>,
    /// With any of so many last words a call may begin that it would make.
    pub(super) guesses: usize,
}

/// What a call of `words` would run in its turn, if its program is one that runs others.
pub(super) fn look_through(words: &[Word]) -> Option<Wrapper> {
    let (program, rest) = words.split_first()?;
    let name = name_of(program.literal()?);
    if let Some(prefix) = Prefix::of(name) {
        return Some(prefixed(prefix, rest));
    }
    let wrapper = match name {
        "sh" | "bash" | "dash" | "zsh" | "ksh" | "ash" | "rbash" | "fish" => shell(rest),
        "eval" => joined(rest),
        "trap" => quoted(&rest[..rest.len().min(1)]),
        "alias" => quoted(rest),
        "." | "source" => Wrapper { unclear: true, ..Wrapper::default() },
        "find" => find(rest),
        "parallel" | "ssh" | "watch" => remote(rest),
        "flock" | "runuser" | "script" | "su" => with_command_option(rest),
        // Their options are many: whatever follows may be what they run.
        "caffeinate" | "choom" | "ltrace" | "nsenter" | "numactl" | "prlimit" | "setarch" | "setpriv"
        | "systemd-run" | "unshare" | "valgrind" | "xvfb-run" => guessed(rest),
        _ => return None,
    };
    Some(wrapper)
}

/// Options, operands, then the program.
fn prefixed(prefix: &Prefix, words: &[Word]) -> Wrapper {
    let mut wrapper = match prefix.skip(words) {
        Ok(at) => {
            let (sets, call) =
                if matches!(prefix.name, "env" | "sudo") { assignments(&words[at..]) } else { (vec![], &words[at..]) };
            let calls = if call.is_empty() { vec![] } else { vec![call.to_vec()] };
            Wrapper { harmless: prefix.harmless, outside: true, sets, calls, ..Wrapper::default() }
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
        // `-S` splits a word into a command.
        "env" if wrapper.unclear => {
            let split = |word: &str| word.trim_start_matches("--split-string=").trim_start_matches("-S").to_owned();
            wrapper.scripts = words.iter().filter_map(Word::literal).take(64).map(split).collect();
        }
        _ => {}
    }
    wrapper
}

/// Any word may begin what it runs.
fn guessed(words: &[Word]) -> Wrapper {
    Wrapper { unclear: true, outside: true, guesses: words.len(), ..Wrapper::default() }
}

/// Goes past words that set a variable.
fn assignments(words: &[Word]) -> (Vec<(String, String)>, &[Word]) {
    let mut sets = Vec::new();
    let mut rest = words;
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

/// A shell: the script that follows `-c`. Without one it runs a file, or what it reads. It is never harmless: it
/// may not be bash, and read its script in another way.
fn shell(words: &[Word]) -> Wrapper {
    let mut has_script = false;
    let mut words = words.iter();
    while let Some(word) = words.next().and_then(Word::literal) {
        match word.strip_prefix(['-', '+']) {
            Some(long) if long.starts_with('-') && long != "-" => {}
            Some(letters) if !letters.is_empty() => {
                has_script |= letters.contains('c');
                // Each of these takes a word; what is not known may be more than one.
                for _ in letters.matches(['o', 'O']) {
                    if words.next().is_none_or(|value| *value == Word::Dynamic) {
                        return Wrapper { unclear: true, ..Wrapper::default() };
                    }
                }
            }
            _ if has_script => return Wrapper { scripts: vec![word.to_owned()], ..Wrapper::default() },
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

/// The words after some options make one script, or any of them is one, or begins a program.
fn remote(words: &[Word]) -> Wrapper {
    let is_option = |word: &&Word| word.literal().is_some_and(|word| word.starts_with('-'));
    let mut scripts = joined(&words[words.iter().take_while(is_option).count()..]).scripts;
    scripts.extend(words.iter().filter_map(Word::literal).take(64).map(str::to_owned));
    Wrapper { scripts, ..guessed(words) }
}

/// Each word is a script, or has one after its `=`.
fn quoted(words: &[Word]) -> Wrapper {
    let script = |word: &str| word.split_once('=').map_or(word, |(_, script)| script).to_owned();
    let scripts: Vec<_> = words.iter().filter_map(Word::literal).map(script).collect();
    Wrapper { unclear: scripts.len() < words.len(), scripts, ..Wrapper::default() }
}

/// A script after `-c` or `--command`; any other word may begin a program.
fn with_command_option(words: &[Word]) -> Wrapper {
    let mut scripts = Vec::new();
    for (at, word) in words.iter().enumerate().take(64) {
        let Some(word) = word.literal() else { continue };
        let next = words.get(at + 1).and_then(Word::literal);
        if let Some(script) = word.strip_prefix("--command=") {
            scripts.push(script.to_owned());
        } else if word == "--command" {
            scripts.extend(next.map(str::to_owned));
        } else if let Some(letters) = word.strip_prefix('-')
            && let Some((_, attached)) = letters.split_once('c')
        {
            let script = if attached.is_empty() { next } else { Some(attached) };
            scripts.extend(script.map(str::to_owned));
        }
    }
    Wrapper { scripts, ..guessed(words) }
}
