//! The manual's pages: their terminal sessions match the program's output, and every command they
//! name exists.
//!
//! The `console` blocks of a page are one story, run in a world of its own.
//! `HOLDPOINT_SNAPSHOTS=overwrite` rewrites them with the current output. A line `...` matches any
//! lines. Numbers may differ, and so may the ids of sessions and asks: an id on a page, such as
//! `k3v9x2m7qa`, matches one id of the output throughout.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use crate::world::{World, program};

/// The work folder, inside the home folder.
const WORK: &str = "shop";

/// Marks the end of a command's output.
const END_MARKER: char = '\u{1}';

pub(crate) fn manual() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

pub(crate) fn page(name: &str) -> String {
    std::fs::read_to_string(manual().join(name)).unwrap()
}

/// The paths of all pages.
pub(crate) fn pages() -> Vec<String> {
    let docs =
        std::fs::read_dir(manual().join("docs")).unwrap().map(|entry| entry.unwrap().file_name());
    let docs = docs.filter_map(|name| name.into_string().ok()).filter(|name| name.ends_with(".md"));
    let others = [
        "README.md",
        "crates/cli/README.md",
        "crates/session/README.md",
        "examples/fleet/README.md",
        "examples/ink-client/README.md",
    ];
    docs.map(|name| format!("docs/{name}")).chain(others.map(str::to_owned)).collect()
}

/// A bash process without a screen that runs one command after the other.
struct Console {
    bash: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    home: PathBuf,
    #[allow(dead_code, reason = "ends the processes of the story when dropped")]
    world: World,
}

impl Console {
    fn new() -> Self {
        let world = World::new();
        // The pages show the sandbox that a reader gets by default.
        world.config("[sandbox]\n");
        let home = world.path("home");
        let examples = home.join(WORK).join("examples/loop");
        std::fs::create_dir_all(&examples).unwrap();
        for file in ["goal.md", "tasks.md"] {
            std::fs::copy(manual().join("examples/loop").join(file), examples.join(file)).unwrap();
        }
        let path =
            format!("{}:{}", program().parent().unwrap().display(), std::env::var("PATH").unwrap());
        let mut bash = std::process::Command::new("bash");
        bash.args(["--norc", "-s"])
            .current_dir(home.join(WORK))
            .env_clear()
            .envs(world.env())
            .env("PATH", path);
        let mut bash = bash.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (stdin, stdout) =
            (bash.stdin.take().unwrap(), BufReader::new(bash.stdout.take().unwrap()));
        let mut console = Self { bash, stdin, stdout, home, world };
        console.say("exec 2>&1");
        console
    }

    /// Runs a command and returns its output.
    fn say(&mut self, command: &str) -> String {
        writeln!(self.stdin, "{command}\nprintf '{END_MARKER}\\n'").unwrap();
        let mut output = String::new();
        while !output.ends_with(&format!("{END_MARKER}\n")) {
            assert!(
                self.stdout.read_line(&mut output).unwrap() > 0,
                "bash has ended: {command}: {output}"
            );
        }
        let output = output.trim_end_matches(['\n', END_MARKER]);
        let output = output.replace(&self.home.display().to_string(), "~");
        // The same pages are right where another level works.
        let levels = ["sandbox: landlock", "sandbox: off (commands have your permissions)"];
        levels
            .iter()
            .fold(output, |output, level| output.replace(level, "sandbox: bwrap"))
            .replace("Run this command without a sandbox?", "Run this command?")
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        let _ = self.bash.kill();
        let _ = self.bash.wait();
    }
}

/// Whether a word is the id of a session or an ask.
fn is_id(word: &str) -> bool {
    let (session, ask) = word.split_once('.').unwrap_or((word, "0"));
    let is_session = session.len() == 10
        && session.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        && session.bytes().any(|byte| byte.is_ascii_digit());
    is_session && !ask.is_empty() && ask.bytes().all(|byte| byte.is_ascii_digit())
}

fn words(line: &str) -> Vec<&str> {
    line.split([' ', '\'', '"', ',', ':', '(', ')', '`', '$', '='])
        .filter(|word| !word.is_empty())
        .collect()
}

/// Maps the ids on a page to the ids of the output.
#[derive(Default)]
struct Ids(BTreeMap<String, String>);

impl Ids {
    /// Whether a line of the output matches a line of the page; learns the ids of a match.
    fn line_matches(&mut self, written: &str, output: &str) -> bool {
        let (written, output) = (words(written), words(output));
        let mut known = self.0.clone();
        let same = written.len() == output.len()
            && written.iter().zip(&output).all(|(written, output)| match is_id(written) {
                true => {
                    known.entry((*written).to_owned()).or_insert_with(|| (*output).to_owned())
                        == output
                }
                false => without_numbers(written) == without_numbers(output),
            });
        if same {
            self.0 = known;
        }
        same
    }

    /// Pairs the ids of the page with those of the output, if there are equally many.
    fn learn(&mut self, written: &[&str], output: &[&str]) {
        let ids = |lines: &[&str]| {
            let mut ids: Vec<String> = Vec::new();
            for word in lines.iter().flat_map(|line| words(line)).filter(|word| is_id(word)) {
                if !ids.iter().any(|id| id == word) {
                    ids.push(word.to_owned());
                }
            }
            ids
        };
        let (written, output) = (ids(written), ids(output));
        if written.len() == output.len() {
            self.0.extend(written.into_iter().zip(output));
        }
    }

    /// Replaces the ids of the page in a command.
    fn in_command(&self, command: &str) -> String {
        let mut command = command.to_owned();
        // In reverse order, because the id of an ask begins with that of its session.
        for (written, is) in self.0.iter().rev() {
            command = command.replace(written, is);
        }
        command
    }

    /// The output with the ids of the page.
    fn written(&self, output: &str) -> String {
        self.0
            .iter()
            .rev()
            .fold(output.to_owned(), |output, (written, is)| output.replace(is, written))
    }
}

fn without_numbers(word: &str) -> String {
    word.split(|letter: char| letter.is_ascii_digit())
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join("0")
}

/// Whether the output matches the page, line by line.
fn output_matches(ids: &mut Ids, written: &[&str], output: &[&str]) -> bool {
    match written {
        [] => output.is_empty(),
        ["...", rest @ ..] => {
            (0..=output.len()).any(|skipped| output_matches(ids, rest, &output[skipped..]))
        }
        [first, rest @ ..] => output.split_first().is_some_and(|(line, output)| {
            ids.line_matches(first, line) && output_matches(ids, rest, output)
        }),
    }
}

/// How many lines a command spans: it continues while a quote is open.
fn length(lines: &[&str]) -> usize {
    let is_whole = |count: &usize| lines[..*count].concat().matches('\'').count().is_multiple_of(2);
    (1..=lines.len()).find(is_whole).unwrap_or(lines.len())
}

/// Runs a page's story again and returns the page with the current output.
fn replayed(text: &str) -> String {
    let mut console: Option<Console> = None;
    let (mut ids, mut current) = (Ids::default(), String::new());
    for (n, block) in text.split("```").enumerate() {
        if n > 0 {
            current.push_str("```");
        }
        let Some(story) = block.strip_prefix("console\n").filter(|_| n % 2 == 1) else {
            current.push_str(block);
            continue;
        };
        let console = console.get_or_insert_with(Console::new);
        current.push_str("console\n");
        let commands =
            story.strip_prefix("$ ").expect("a story begins with a command").split("\n$ ");
        for command in commands {
            let lines: Vec<_> = command.trim_end().lines().collect();
            let (asked, written) = lines.split_at(length(&lines));
            let asked_for =
                asked.iter().map(|line| line.strip_prefix('>').map_or(*line, str::trim_start));
            let output = console.say(&ids.in_command(&asked_for.collect::<Vec<_>>().join("\n")));
            let output: Vec<_> = output.lines().map(str::trim_end).collect();
            let as_written = output_matches(&mut ids, written, &output);
            if !as_written {
                ids.learn(written, &output);
            }
            let answer =
                if as_written { written.join("\n") } else { ids.written(&output.join("\n")) };
            current.push_str(&format!(
                "$ {}\n{answer}{}",
                asked.join("\n"),
                if answer.is_empty() { "" } else { "\n" }
            ));
        }
    }
    current
}

/// Checks a page, or rewrites it under `HOLDPOINT_SNAPSHOTS=overwrite`.
fn check_page(name: &str) {
    let text = page(name);
    assert!(text.contains("```console\n"), "{name} shows no terminal");
    let current = replayed(&text);
    if std::env::var_os("HOLDPOINT_SNAPSHOTS").is_some_and(|what| what == "overwrite") {
        return std::fs::write(manual().join(name), &current).unwrap();
    }
    for (line, (written, current)) in text.lines().zip(current.lines()).enumerate() {
        assert_eq!(
            current,
            written,
            "{name}, line {}: HOLDPOINT_SNAPSHOTS=overwrite writes it anew",
            line + 1
        );
    }
    assert!(current == text, "{name} ends otherwise: {current}");
}

#[test]
fn the_tour_matches_the_program() {
    check_page("docs/tour.md");
}

#[test]
fn terminal_sessions_on_pages_match_the_program() {
    // These pages have tests of their own.
    let elsewhere = ["docs/tour.md", "docs/loops.md", "docs/cli.md"];
    let others = pages().into_iter().filter(|name| !elsewhere.contains(&name.as_str()));
    let stories: Vec<_> = others.filter(|name| page(name).contains("```console\n")).collect();
    assert!(stories.len() >= 5, "{stories:?}");
    stories.iter().for_each(|name| check_page(name));
}

/// Each command in an `sh` block exists and has the options shown there.
#[test]
fn every_command_on_a_page_exists() {
    let mut console = Console::new();
    console.say("holdpoint() { command holdpoint \"$@\" --help > help 2>&1 || sed \"s/^/holdpoint $1: /\" help; }");
    let mut named = 0;
    for name in pages() {
        let text = page(&name);
        let blocks =
            text.split("```").skip(1).step_by(2).filter_map(|block| block.strip_prefix("sh\n"));
        for line in blocks.flat_map(str::lines).filter(|line| line.starts_with("holdpoint ")) {
            let (line, _) = line.split_once(['|', '<', '>']).unwrap_or((line, ""));
            assert_eq!(console.say(line), "", "{name}: {line}");
            named += 1;
        }
    }
    assert!(named > 10, "only {named}");
}
