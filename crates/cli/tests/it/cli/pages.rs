//! The manual's pages: what they show a terminal to say is what it says, and every command that they name is one.
//!
//! The `console` blocks of a page are one story, told in a world of its own. `HOLDPOINT_SNAPSHOTS=overwrite` writes down
//! what is said now. A line `...` stands for any lines. Numbers are those of another day, and so are the ids of sessions
//! and asks: what a page calls `k3v9x2m7qa` stands for the one that came in its place.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use crate::world::{World, program};

/// The folder to work in, of a home folder.
const WORK: &str = "shop";

/// Stands behind what a command has said.
const SAID: char = '\u{1}';

pub(crate) fn manual() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A page's text.
pub(crate) fn page(name: &str) -> String {
    std::fs::read_to_string(manual().join(name)).unwrap()
}

/// Every page, by its path.
pub(crate) fn pages() -> Vec<String> {
    let docs = std::fs::read_dir(manual().join("docs")).unwrap().map(|entry| entry.unwrap().file_name());
    let docs = docs.filter_map(|name| name.into_string().ok()).filter(|name| name.ends_with(".md"));
    let others = ["README.md", "crates/cli/README.md", "crates/session/README.md", "examples/ink-client/README.md"];
    docs.map(|name| format!("docs/{name}")).chain(others.map(str::to_owned)).collect()
}

/// A terminal without a screen: bash, told one command after the other.
struct Console {
    bash: Child,
    tell: ChildStdin,
    hear: BufReader<ChildStdout>,
    home: PathBuf,
    #[allow(dead_code, reason = "dropped, it ends what is left of the story")]
    world: World,
}

impl Console {
    fn new() -> Self {
        let world = World::new();
        let home = world.path("home");
        let examples = home.join(WORK).join("examples/loop");
        std::fs::create_dir_all(&examples).unwrap();
        for file in ["goal.md", "tasks.md"] {
            std::fs::copy(manual().join("examples/loop").join(file), examples.join(file)).unwrap();
        }
        let path = format!("{}:{}", program().parent().unwrap().display(), std::env::var("PATH").unwrap());
        let mut bash = std::process::Command::new("bash");
        bash.args(["--norc", "-s"]).current_dir(home.join(WORK)).env_clear().envs(world.env()).env("PATH", path);
        let mut bash = bash.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (tell, hear) = (bash.stdin.take().unwrap(), BufReader::new(bash.stdout.take().unwrap()));
        let mut console = Self { bash, tell, hear, home, world };
        console.say("exec 2>&1");
        console
    }

    /// What is said to a command.
    fn say(&mut self, command: &str) -> String {
        writeln!(self.tell, "{command}\nprintf '{SAID}\\n'").unwrap();
        let mut said = String::new();
        while !said.ends_with(&format!("{SAID}\n")) {
            assert!(self.hear.read_line(&mut said).unwrap() > 0, "bash has ended: {command}: {said}");
        }
        let said = said.trim_end_matches(['\n', SAID]);
        said.replace(&self.home.display().to_string(), "~")
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        let _ = self.bash.kill();
        let _ = self.bash.wait();
    }
}

/// An id of a session or an ask, as pages have them.
fn is_id(word: &str) -> bool {
    let (session, ask) = word.split_once('.').unwrap_or((word, "0"));
    let is_session = session.len() == 10
        && session.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        && session.bytes().any(|byte| byte.is_ascii_digit());
    is_session && !ask.is_empty() && ask.bytes().all(|byte| byte.is_ascii_digit())
}

fn words(line: &str) -> Vec<&str> {
    line.split([' ', '\'', '"', ',', ':', '(', ')', '`', '$', '=']).filter(|word| !word.is_empty()).collect()
}

/// What pages call the ids that there are.
#[derive(Default)]
struct Ids(BTreeMap<String, String>);

impl Ids {
    /// Whether a line says what is written.
    fn says(&mut self, written: &str, said: &str) -> bool {
        let (written, said) = (words(written), words(said));
        let mut known = self.0.clone();
        let same = written.len() == said.len()
            && written.iter().zip(&said).all(|(written, said)| match is_id(written) {
                true => known.entry((*written).to_owned()).or_insert_with(|| (*said).to_owned()) == said,
                false => without_numbers(written) == without_numbers(said),
            });
        if same {
            self.0 = known;
        }
        same
    }

    /// Takes what is written for the ids of what was said instead, where there are as many.
    fn learn(&mut self, written: &[&str], said: &[&str]) {
        let ids = |lines: &[&str]| {
            let mut ids: Vec<String> = Vec::new();
            for word in lines.iter().flat_map(|line| words(line)).filter(|word| is_id(word)) {
                if !ids.iter().any(|id| id == word) {
                    ids.push(word.to_owned());
                }
            }
            ids
        };
        let (written, said) = (ids(written), ids(said));
        if written.len() == said.len() {
            self.0.extend(written.into_iter().zip(said));
        }
    }

    /// A command with the ids that there are.
    fn in_command(&self, command: &str) -> String {
        let mut command = command.to_owned();
        // The ids of asks begin with those of their sessions.
        for (written, is) in self.0.iter().rev() {
            command = command.replace(written, is);
        }
        command
    }

    /// What was said, as the page would write it.
    fn written(&self, said: &str) -> String {
        self.0.iter().rev().fold(said.to_owned(), |said, (written, is)| said.replace(is, written))
    }
}

fn without_numbers(word: &str) -> String {
    word.split(|letter: char| letter.is_ascii_digit()).filter(|part| !part.is_empty()).collect::<Vec<_>>().join("0")
}

/// Whether what was said is what is written, line by line.
fn is_said(ids: &mut Ids, written: &[&str], said: &[&str]) -> bool {
    match written {
        [] => said.is_empty(),
        ["...", rest @ ..] => (0..=said.len()).any(|skipped| is_said(ids, rest, &said[skipped..])),
        [first, rest @ ..] => {
            said.split_first().is_some_and(|(line, said)| ids.says(first, line) && is_said(ids, rest, said))
        }
    }
}

/// How many lines a command has: it goes on as long as a quote is open.
fn length(lines: &[&str]) -> usize {
    let is_whole = |count: &usize| lines[..*count].concat().matches('\'').count().is_multiple_of(2);
    (1..=lines.len()).find(is_whole).unwrap_or(lines.len())
}

/// Tells the story of a page anew: the page as it should be.
fn told(text: &str) -> String {
    let mut console: Option<Console> = None;
    let (mut ids, mut told) = (Ids::default(), String::new());
    for (n, block) in text.split("```").enumerate() {
        if n > 0 {
            told.push_str("```");
        }
        let Some(story) = block.strip_prefix("console\n").filter(|_| n % 2 == 1) else {
            told.push_str(block);
            continue;
        };
        let console = console.get_or_insert_with(Console::new);
        told.push_str("console\n");
        let commands = story.strip_prefix("$ ").expect("a story begins with a command").split("\n$ ");
        for command in commands {
            let lines: Vec<_> = command.trim_end().lines().collect();
            let (asked, written) = lines.split_at(length(&lines));
            let asked_for = asked.iter().map(|line| line.strip_prefix('>').map_or(*line, str::trim_start));
            let said = console.say(&ids.in_command(&asked_for.collect::<Vec<_>>().join("\n")));
            let said: Vec<_> = said.lines().map(str::trim_end).collect();
            let as_written = is_said(&mut ids, written, &said);
            if !as_written {
                ids.learn(written, &said);
            }
            let answer = if as_written { written.join("\n") } else { ids.written(&said.join("\n")) };
            told.push_str(&format!("$ {}\n{answer}{}", asked.join("\n"), if answer.is_empty() { "" } else { "\n" }));
        }
    }
    told
}

/// Checks the page of this name, or writes it anew.
fn is_true(name: &str) {
    let text = page(name);
    assert!(text.contains("```console\n"), "{name} shows no terminal");
    let told = told(&text);
    if std::env::var_os("HOLDPOINT_SNAPSHOTS").is_some_and(|what| what == "overwrite") {
        return std::fs::write(manual().join(name), &told).unwrap();
    }
    for (line, (written, told)) in text.lines().zip(told.lines()).enumerate() {
        assert_eq!(told, written, "{name}, line {}: HOLDPOINT_SNAPSHOTS=overwrite writes it anew", line + 1);
    }
    assert!(told == text, "{name} ends otherwise: {told}");
}

#[test]
fn the_tour_goes_as_it_says() {
    is_true("docs/tour.md");
}

#[test]
fn what_pages_show_a_terminal_to_say_is_what_it_says() {
    // Told by others: the tour above, loops and commands by their own tests.
    let elsewhere = ["docs/tour.md", "docs/loops.md", "docs/cli.md"];
    let others = pages().into_iter().filter(|name| !elsewhere.contains(&name.as_str()));
    let stories: Vec<_> = others.filter(|name| page(name).contains("```console\n")).collect();
    assert!(stories.len() >= 5, "{stories:?}");
    stories.iter().for_each(|name| is_true(name));
}

/// Where a command is only named, with what it would be given, it has to be one that there is, with options that it has.
#[test]
fn every_command_that_pages_name_is_one() {
    let mut console = Console::new();
    console.say("holdpoint() { command holdpoint \"$@\" --help > help 2>&1 || sed \"s/^/holdpoint $1: /\" help; }");
    let mut named = 0;
    for name in pages() {
        let text = page(&name);
        let blocks = text.split("```").skip(1).step_by(2).filter_map(|block| block.strip_prefix("sh\n"));
        for line in blocks.flat_map(str::lines).filter(|line| line.starts_with("holdpoint ")) {
            let (line, _) = line.split_once(['|', '<', '>']).unwrap_or((line, ""));
            assert_eq!(console.say(line), "", "{name}: {line}");
            named += 1;
        }
    }
    assert!(named > 10, "only {named}");
}
