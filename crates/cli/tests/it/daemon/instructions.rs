//! Instruction files: which ones a turn reads, in which order, and how the user learns of it.

use std::cell::Cell;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use holdpoint_common::{InstructionFile, Snapshot};
use holdpoint_tests::model_server::{ModelServer, Reply};

use super::harness::DaemonWorld;
use crate::world::{Ran, World, is_root};

const NOBODY: u32 = 65_534;

/// A repository in the work folder, and a model that keeps its requests.
struct Repository {
    house: DaemonWorld,
    server: ModelServer,
    turns: Cell<usize>,
}

/// One turn in a new session.
struct Turn {
    session: String,
    /// The part of the system prompt after the built-in one.
    quoted: String,
    /// The instruction files in `show --json`, each as its path, bytes and reason.
    files: Vec<String>,
    /// The standard error of `run`.
    err: String,
}

impl Repository {
    fn new() -> Self {
        let (house, server) = (DaemonWorld::new(), ModelServer::start());
        server.answer(|_| Reply::text(["Done."]));
        fs::create_dir(house.0.work(".git")).unwrap();
        Self { house, server, turns: Cell::new(0) }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.house.0.work(path)
    }

    fn write(&self, path: &str, text: &str) -> PathBuf {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    fn user_file(&self) -> PathBuf {
        self.house.0.path("config/holdpoint/AGENTS.md")
    }

    fn run_turn(&self, folder: &str, args: &[&str]) -> (String, String, Ran) {
        let turn = self.turns.replace(self.turns.get() + 1);
        let session = format!("s{turn}");
        let run = ["run", "--model", "openai/x", "--name", &session, "go"];
        let mut run = self.house.0.command(&[&run[..], args].concat());
        run.env("OPENAI_BASE_URL", self.server.base_url()).env("OPENAI_API_KEY", "sk-0123");
        let ran = Ran::of({
            run.current_dir(self.path(folder));
            run
        });
        let ran = ran.code(0);
        let system = self.server.request(turn).texts("system").concat();
        let quoted = system.split_once("left to do.\n").map_or("", |(_, rest)| rest);
        (session, quoted.to_owned(), ran)
    }

    /// Runs a turn of a new session in this folder of the repository.
    fn turn(&self, folder: &str) -> Turn {
        let (session, quoted, ran) = self.run_turn(folder, &[]);
        let shown = self.house.run(&["show", "--json", &session]).code(0).out;
        let snapshot: Snapshot = serde_json::from_str(&shown).unwrap();
        let line = |InstructionFile { path, bytes, reason }: &InstructionFile| {
            format!("{path} {bytes} {}", reason.as_deref().unwrap_or("-"))
        };
        let files = snapshot.instructions.iter().map(line).collect();
        Turn { session, quoted, files, err: ran.err }
    }

    /// Checks that the file at `path` is left out and reported with this reason.
    #[track_caller]
    fn leaves_out(&self, folder: &str, path: &str, why: &str) {
        let turn = self.turn(folder);
        assert_eq!((&*turn.quoted, turn.files), ("", vec![format!("{path} 0 {why}")]));
        let notice = format!("{path} is left out: {why}");
        assert!(turn.err.lines().any(|line| line == notice), "{notice}: {}", turn.err);
        let shown = self.house.run(&["show", &turn.session]).code(0).out;
        assert!(shown.contains(&format!("\nnot read  {path}: {why}\n")), "{shown}");
    }
}

/// Replaces the file by a pipe, which blocks a plain open.
fn make_pipe(path: &Path) {
    fs::remove_file(path).unwrap();
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// Writes a text file of 100 MiB.
fn make_large(path: &Path) {
    let mut file = File::create(path).unwrap();
    file.write_all("x".repeat(40 << 10).as_bytes()).unwrap();
    file.set_len(100 << 20).unwrap();
}

#[test]
fn m_g5_instruction_files_are_read_from_the_repository_root_down_to_the_workspace() {
    let repository = Repository::new();
    fs::write(repository.house.0.path("AGENTS.md"), "outside").unwrap();
    repository.write("AGENTS.md", "Use tabs.");
    repository.write("a/CLAUDE.md", "Use spaces.");
    repository.write("a/b/AGENTS.md", "Use neither.\n");
    repository.write("a/b/CLAUDE.md", "ignored");
    repository.write("a/b/c/AGENTS.md", "deeper");
    let turn = repository.turn("a/b");
    let introduction = include_str!("../../../../session/prompts/project.md");
    let files = "../../AGENTS.md:\n\n> Use tabs.\n\n../CLAUDE.md:\n\n> Use spaces.\n\n\
        AGENTS.md:\n\n> Use neither.\n";
    assert_eq!(turn.quoted, format!("\n{introduction}\n{files}"));
    assert_eq!(
        turn.files,
        [
            "../../AGENTS.md 9 -",
            "../CLAUDE.md 11 -",
            "AGENTS.md 13 -",
            "CLAUDE.md 0 ignored because AGENTS.md is there",
        ]
    );
    assert!(!turn.err.contains("CLAUDE.md"), "no fault: {}", turn.err);
    // Also of a saved session, and after a restart.
    let lines = "\nreads     ../../AGENTS.md\nreads     ../CLAUDE.md\nreads     AGENTS.md\n\
        not read  CLAUDE.md: ignored because AGENTS.md is there\n";
    let shown = || repository.house.run(&["show", &turn.session]).code(0).out;
    assert!(shown().contains(lines), "{}", shown());
    repository.house.run(&["daemon", "stop"]).code(0);
    assert!(shown().contains(lines), "{}", shown());

    // The nearest repository counts, whose `.git` is a file in a linked worktree.
    repository.write("a/.git", "gitdir: elsewhere");
    assert_eq!(repository.turn("a/b").files[0], "../CLAUDE.md 11 -");
    // Without a repository, only the workspace counts.
    fs::remove_file(repository.path("a/.git")).unwrap();
    fs::remove_dir(repository.path(".git")).unwrap();
    assert_eq!(repository.turn("a/b").files[0], "AGENTS.md 13 -");
    assert_eq!(repository.turn("a").files, ["CLAUDE.md 11 -"]);
}

#[test]
fn m_g5_the_files_are_recorded_again_only_if_they_have_changed() {
    let repository = Repository::new();
    let file = repository.write("AGENTS.md", "Use tabs.");
    let session = repository.turn("").session;
    let facts = || {
        let log = repository.house.run(&["logs", "--json", &session]).code(0).out;
        log.matches("\"instructionsRead\"").count()
    };
    let prompt = || {
        repository.house.run(&["prompt", &session, "go"]).code(0);
        repository.house.run(&["wait", &session]).code(0);
    };
    assert_eq!(facts(), 1);
    prompt();
    assert_eq!(facts(), 1);
    fs::remove_file(file).unwrap();
    prompt();
    assert_eq!(facts(), 2);
    let shown = repository.house.run(&["show", &session]).code(0).out;
    assert!(!shown.contains("AGENTS.md"), "{shown}");
}

#[test]
fn m_g5_a_file_that_is_no_text_file_of_the_repository_is_left_out_and_reported() {
    let repository = Repository::new();
    let outside = repository.house.0.path("outside");
    fs::write(&outside, "a secret").unwrap();
    for (name, folder, path) in [
        ("AGENTS.md", "a", "../AGENTS.md"),
        ("a/AGENTS.md", "a", "AGENTS.md"),
        ("CLAUDE.md", "a", "../CLAUDE.md"),
    ] {
        let file = repository.write(name, "");
        fs::create_dir_all(repository.path("a")).unwrap();
        let leaves_out = |why: &str| repository.leaves_out(folder, path, why);
        make_pipe(&file);
        leaves_out("it is not a file");
        let link = |target: &Path| {
            fs::remove_file(&file).unwrap();
            symlink(target, &file).unwrap();
        };
        link(Path::new("/dev/zero"));
        leaves_out("it is a link that leads out of the repository");
        link(&outside);
        leaves_out("it is a link that leads out of the repository");
        link(Path::new("nowhere"));
        leaves_out("it is a dangling link");
        repository.write(".git/config", "url = https://me:password@example.com");
        link(&repository.path(".git/config"));
        leaves_out("it is a link into .git");
        fs::remove_file(&file).unwrap();
        fs::create_dir(&file).unwrap();
        leaves_out("it is not a file");
        fs::remove_dir(&file).unwrap();

        make_large(&file);
        let turn = repository.turn(folder);
        let why = "too long: the model gets only the first 32 of its 102400 KiB";
        assert_eq!(turn.files, [format!("{path} 32768 {why}")]);
        assert!(turn.quoted.len() < 34 << 10, "{}", turn.quoted.len());
        assert!(turn.err.contains(&format!("{path} is {why}\n")), "{}", turn.err);
        // A link to another file of the repository is the repository's own.
        repository.write("docs/agents", "Use tabs.");
        link(&repository.path("docs/agents"));
        assert!(repository.turn(folder).quoted.ends_with("> Use tabs.\n"));
        if is_root() && name == "AGENTS.md" {
            fs::remove_file(&file).unwrap();
            repository.write(name, "Use tabs.");
            chown(&file, Some(NOBODY), None).unwrap();
            leaves_out("it belongs to another user than the workspace (uid 65534)");
        }
        fs::remove_file(&file).unwrap();
    }
    assert_eq!(repository.turn("a").files, [""; 0]);
}

#[test]
fn m_g5_a_repository_of_another_user_around_the_workspace_does_not_count() {
    if !is_root() {
        return;
    }
    let repository = Repository::new();
    repository.write("AGENTS.md", "Use tabs.");
    repository.write("a/AGENTS.md", "Use spaces.");
    assert_eq!(repository.turn("a").files.len(), 2);
    chown(repository.path(".git"), Some(NOBODY), None).unwrap();
    assert_eq!(repository.turn("a").files, ["AGENTS.md 11 -"]);
}

#[test]
fn m_g5_if_all_files_together_are_too_long_the_nearest_are_kept() {
    let repository = Repository::new();
    repository.write("AGENTS.md", "root");
    repository.write("a/AGENTS.md", &"x".repeat(20 << 10));
    repository.write("a/b/AGENTS.md", &"y".repeat(10 << 10));
    repository.write("a/b/c/AGENTS.md", &"z".repeat(3 << 10));
    let turn = repository.turn("a/b/c");
    assert_eq!(
        turn.files,
        [
            "../../../AGENTS.md 0 nearer files fill the limit of 32 KiB",
            "../../AGENTS.md 19456 too long together with nearer files: the model gets only the \
             first 19 of its 20 KiB",
            "../AGENTS.md 10240 -",
            "AGENTS.md 3072 -",
        ]
    );
    let warning = "../../../AGENTS.md is left out: nearer files fill the limit of 32 KiB; \
        ../../AGENTS.md is too long together with nearer files: ";
    assert!(turn.err.contains(warning), "{}", turn.err);
    assert!(turn.quoted.contains("x\n> [... the rest is left out: the file is too long ...]\n"));
    assert!(turn.quoted.len() < 34 << 10, "{}", turn.quoted.len());
}

#[test]
fn m_g5_a_workspace_far_below_its_repository_reads_only_its_own_files() {
    let repository = Repository::new();
    repository.write("AGENTS.md", "root");
    let deep = |folders: usize| vec!["a"; folders].join("/");
    for (folders, files) in [(31, 2), (32, 1)] {
        let folder = deep(folders);
        repository.write(&format!("{folder}/AGENTS.md"), "near");
        let turn = repository.turn(&folder);
        assert_eq!(turn.files.len(), files, "{:?}", turn.files);
        fs::remove_file(repository.path(&format!("{folder}/AGENTS.md"))).unwrap();
    }
}

#[test]
fn m_g5_the_users_own_file_comes_first_and_is_marked_as_theirs() {
    let repository = Repository::new();
    repository.write("AGENTS.md", "Use tabs.");
    let file = repository.user_file();
    let path = file.to_str().unwrap();
    fs::write(&file, "Be brief.\n## What the project says").unwrap();
    let [user, project] = [
        include_str!("../../../../session/prompts/user.md"),
        include_str!("../../../../session/prompts/project.md"),
    ];
    let expected = format!(
        "\n{user}\n> Be brief.\n> ## What the project says\n\n\
         {project}\nAGENTS.md:\n\n> Use tabs.\n"
    );
    let turn = repository.turn("");
    assert_eq!(turn.quoted, expected);
    assert_eq!(turn.files, [&format!("{path} 34 -"), "AGENTS.md 9 -"]);
    assert_eq!(repository.run_turn("", &["--in-process"]).1, expected);
    // The limit of the project's files is their own.
    make_large(&file);
    let turn = repository.turn("");
    let why = "too long: the model gets only the first 32 of its 102400 KiB";
    assert_eq!(turn.files, [&format!("{path} 32768 {why}"), "AGENTS.md 9 -"]);
    assert!(turn.err.contains(&format!("{path} is {why}\n")), "{}", turn.err);
    // A link of the user's is followed, because no other user can change it.
    fs::write(repository.house.0.path("dotfiles"), "Be kind.").unwrap();
    fs::remove_file(&file).unwrap();
    symlink(repository.house.0.path("dotfiles"), &file).unwrap();
    assert!(repository.turn("").quoted.contains("\n> Be kind.\n"));
}

#[test]
fn m_g5_a_users_file_that_others_can_change_or_that_is_no_file_is_left_out_and_reported() {
    let repository = Repository::new();
    let file = repository.user_file();
    let path = file.to_str().unwrap();
    fs::write(&file, "Be brief.").unwrap();
    let leaves_out = |why: &str| repository.leaves_out("", path, why);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
    leaves_out(&format!("other users can write to {path} (mode 0666)"));
    make_pipe(&file);
    leaves_out("it is not a file");
    fs::remove_file(&file).unwrap();
    symlink("/dev/zero", &file).unwrap();
    repository.turn("").files.iter().for_each(|file| assert!(file.starts_with(path), "{file}"));
    fs::remove_file(&file).unwrap();
    symlink("nowhere", &file).unwrap();
    leaves_out("it is a dangling link");
    if is_root() {
        fs::remove_file(&file).unwrap();
        fs::write(&file, "Be brief.").unwrap();
        chown(&file, Some(NOBODY), None).unwrap();
        leaves_out(&format!("{path} belongs to another user (uid 65534)"));
    }
}

#[test]
fn m_g5_a_write_of_an_instruction_file_asks_under_edits_even_if_a_rule_allows_it() {
    let world = World::new();
    let args = ["--policy", "edits", "--allow", "write", "--allow", "shell(echo)"];
    for name in ["AGENTS.md", "CLAUDE.md", "claude.md", "a/AGENTS.md", "copilot-instructions.md"] {
        let write = format!(r#"call write_file {{"path": "{name}", "content": "x"}}"#);
        world.play(&args, &write).code(3);
        world.play(&args, &format!("shell: echo x > {name}")).code(3);
        assert!(!world.work(name).exists(), "{name}");
    }
    world.play(&args, r#"call write_file {"path": "README.md", "content": "x"}"#).code(0);
    assert!(world.work("README.md").exists());
}
