//! The policy in a real session: a model that tries, a real shell, and marks of the programs that
//! ran.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;

use holdpoint_common::{
    Answer, AskFact, AsksMode, Fact, PolicyMode, PolicyRules, Rule, Supplies, ToolFact, ToolResult,
    ToolStatus,
};
use holdpoint_session::testing::{Harness, Recorder, ScriptedModel, reply};
use holdpoint_session::{OpenSession, Refused, SessionError, Sessions};
use serde_json::json;

/// A harness, a home folder, and a folder of programs that only leave a mark with their name.
struct World {
    harness: Harness,
    home: PathBuf,
    programs: PathBuf,
    _folder: tempfile::TempDir,
}

fn rules(written: &[&str]) -> Vec<Rule> {
    written.iter().map(|rule| rule.parse().unwrap()).collect()
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (home, programs) = (folder.path().join("home"), folder.path().join("bin"));
        fs::create_dir(&home).unwrap();
        fs::create_dir(&programs).unwrap();
        let world = Self { harness: Harness::start(), home, programs, _folder: folder };
        fs::create_dir_all(world.work(".git/hooks")).unwrap();
        world
    }

    /// Makes a program that leaves a mark in the work folder.
    fn program(&self, name: &str) {
        let path = self.programs.join(name);
        fs::write(
            &path,
            format!("#!/bin/sh\n: > '{}'\n", self.work(&format!("ran {name}")).display()),
        )
        .unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn work(&self, name: &str) -> PathBuf {
        self.harness.folder.path().join(name)
    }

    fn sessions(&self) -> Sessions {
        let path = format!("{}:{}", self.programs.display(), std::env::var("PATH").unwrap());
        let env =
            vec![("PATH".to_owned(), path), ("HOME".to_owned(), self.home.display().to_string())];
        self.harness.sessions().with_supplies(Supplies::env(env))
    }

    fn session(&self, rules: PolicyRules) -> OpenSession {
        self.harness.session().policy(PolicyMode::Ask).rules(rules)
    }

    /// Makes the model call the shell with each command in one turn of a session. Returns the
    /// results.
    async fn try_all(
        &self,
        session: OpenSession,
        commands: &[String],
    ) -> (Vec<Arc<ToolResult>>, Recorder) {
        for command in commands {
            self.harness.model.then(reply().call("shell", json!({"command": command})));
        }
        self.harness.model.then(reply().text("ok"));
        let session = self.sessions().open(session).await.unwrap();
        let mut events = self.harness.watch(&session).await;
        session.prompt("go").await.unwrap();
        events.turn_finished().await;
        let results = events.facts().filter_map(|fact| match fact {
            Fact::Tool(ToolFact::Finished(result)) => Some(result.clone()),
            _ => None,
        });
        (results.collect(), events)
    }
}

fn asks(events: &Recorder) -> usize {
    events.facts().filter(|fact| matches!(fact, Fact::Ask(AskFact::Raised { .. }))).count()
}

#[tokio::test]
async fn t_a1_commands_joined_to_an_allowed_one_are_asked_about() {
    let world = World::new();
    let joined = [";", "&&", "||", "|", "&", "\n", "\r", "|&"].into_iter().flat_map(|joint| {
        let words = [
            format!("echo a{joint}touch S"),
            format!("echo a {joint} touch S"),
            format!("echo 'a'{joint}touch S #"),
            format!("echo a {joint} echo b {joint} touch S"),
            format!("touch S {joint} echo a"),
        ];
        words.into_iter()
    });
    let commands: Vec<_> = joined.collect();
    assert_eq!(commands.len(), 40);
    let allowed = PolicyRules { allow: rules(&["shell(echo)"]), ..PolicyRules::default() };
    let session = world.session(allowed).asks(AsksMode::Deny);
    let (results, events) = world.try_all(session, &commands).await;
    for (result, command) in results.iter().zip(&commands) {
        assert_eq!(result.status, ToolStatus::Denied, "{command:?}: {result:?}");
    }
    assert_eq!((results.len(), asks(&events)), (40, 40), "each command is asked about");
    assert!(!world.work("S").exists());

    // The allowed commands run.
    let allowed = PolicyRules { allow: rules(&["shell(echo)"]), ..PolicyRules::default() };
    let session = world.session(allowed).asks(AsksMode::Deny);
    let (results, events) =
        world.try_all(session, &["echo a; echo b && echo $(echo c)".to_owned()]).await;
    assert_eq!((results[0].status, asks(&events)), (ToolStatus::Ok, 0), "{results:?}");
}

#[tokio::test]
async fn t_a3_redirections_of_an_allowed_command_are_judged_by_their_target() {
    let world = World::new();
    let home = world.home.display();
    let commands = [
        "echo x >> ~/.bashrc".to_owned(),
        "echo x > ~/.bashrc".to_owned(),
        format!("echo x >| {home}/.bashrc"),
        format!("echo x &> '{home}'/.bashrc"),
        "echo x > \"$HOME/.bashrc\"".to_owned(),
        "echo x >& ~/.profile".to_owned(),
        "echo x <> ~/.bashrc >&0".to_owned(),
        "echo x > .git/hooks/pre-commit".to_owned(),
        "echo x > ./.GIT/../.git/hooks/pre-commit".to_owned(),
        "cd .git/hooks && echo x > pre-commit".to_owned(),
        "{ echo x; } > .git/hooks/pre-commit".to_owned(),
        "echo x > $(echo .git/hooks/pre-commit)".to_owned(),
        "echo x > /proc/self/fd/1".to_owned(),
        "echo x > /dev/fd/../../proc/self/cwd/.git/hooks/pre-commit".to_owned(),
        "for f in a; do echo x; done >> /proc/self/cwd/.git/config".to_owned(),
    ];
    // Everything that rules can allow is allowed.
    let allowed =
        PolicyRules { allow: rules(&["shell(echo)", "write", "read"]), ..PolicyRules::default() };
    let session = world.session(allowed).policy(PolicyMode::Edits).asks(AsksMode::Deny);
    let (results, events) = world.try_all(session, &commands).await;
    assert_eq!((results.len(), asks(&events)), (15, 15));
    assert!(results.iter().all(|result| result.status == ToolStatus::Denied), "{results:#?}");
    assert_eq!(fs::read_dir(&world.home).unwrap().count(), 0);
    assert_eq!(fs::read_dir(world.work(".git/hooks")).unwrap().count(), 0);
    assert!(!world.work(".git/config").exists());
}

#[tokio::test]
async fn t_a5_a_denied_program_is_denied_however_it_is_called() {
    let world = World::new();
    world.program("curl");
    let commands = [
        "curl x",
        "env curl x",
        "env -i A=b curl x",
        "sudo curl x",
        "setsid curl x",
        "timeout 5 curl x",
        "nice curl x",
        "watch -n 1 curl x",
        "/usr/bin/curl x",
        "c\"\"url x",
        "\\curl x",
        "$'curl' x",
        "busybox curl x",
        "alias c=curl; c x",
        "xargs curl",
        "bash -c 'curl x'",
        "eval 'curl x'",
        "echo $(curl x)",
        "find . -exec curl {} +",
        "nohup stdbuf -oL command curl x &",
    ];
    let commands = commands.map(str::to_owned);
    let denied = PolicyRules { deny: rules(&["shell(curl)"]), ..PolicyRules::default() };
    for mode in [PolicyMode::Ask, PolicyMode::All] {
        // An ask would wait for ever, so there must be none.
        let (results, events) =
            world.try_all(world.session(denied.clone()).policy(mode), &commands).await;
        assert_eq!((results.len(), asks(&events)), (20, 0));
        for (result, command) in results.iter().zip(&commands) {
            assert_eq!(result.status, ToolStatus::Denied, "{command:?}");
            assert!(
                result.result.contains("denied by the rule `shell(curl)`"),
                "{command:?}: {}",
                result.result
            );
        }
    }
    assert!(!world.work("ran curl").exists());
    // Approving every ask does not help either.
    let session = world.session(denied).asks(AsksMode::Approve);
    let (results, _) = world.try_all(session, &commands).await;
    assert!(results.iter().all(|result| result.status == ToolStatus::Denied), "{results:#?}");
    assert!(!world.work("ran curl").exists());
}

/// The files there decide what the policy allows.
#[tokio::test]
async fn m_e7_writes_to_our_own_folders_always_ask() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config/holdpoint");
    let harness = Harness::with(|engine| engine.own_folders([&config]));
    let session =
        OpenSession::in_folder(folder.path()).model(ScriptedModel::NAME).policy(PolicyMode::Edits);
    let session = session
        .rules(PolicyRules { allow: rules(&["write(config/**)"]), ..PolicyRules::default() });
    let write = |path: &str| {
        reply().call("write_file", json!({"path": path, "content": "policy = \"all\""}))
    };
    harness
        .model
        .then(write("config/holdpoint/config.toml"))
        .then(write("config/other.toml"))
        .then(reply());
    let session = harness.sessions().open(session).await.unwrap();
    let mut events = harness.watch(&session).await;
    session.prompt("go").await.unwrap();
    // It offers no *always*.
    assert_eq!(events.asked().await.always, None);
    events.answer(Answer::Deny { reason: None, always: false }).await.unwrap();
    events.turn_finished().await;
    assert_eq!(asks(&events), 1);
    assert!(!config.exists() && folder.path().join("config/other.toml").exists());
}

#[tokio::test]
async fn t_a10_an_always_is_for_exactly_this_command() {
    let world = World::new();
    world.program("npm");
    let session =
        world.harness.sessions().open(world.session(PolicyRules::default())).await.unwrap();
    let mut events = world.harness.watch(&session).await;
    let call = |command: &str| reply().call("shell", json!({"command": command}));
    let model = &world.harness.model;
    model.then(call("npm run dev")).then(call("npm run dev")).then(call("npm run deploy"));
    model.then(call("npm run dev; x")).then(call("npm run dev ")).then(reply().text("ok"));
    session.prompt("go").await.unwrap();
    let shown = |ask: holdpoint_common::Ask| ask.pause().unwrap().request.details.clone().unwrap();
    assert!(shown(events.asked().await).starts_with("npm run dev\n"));
    events.answer(Answer::Approve { always: true }).await.unwrap();
    for command in ["npm run deploy\n", "npm run dev; x\n", "npm run dev"] {
        assert!(shown(events.asked().await).starts_with(command), "{command}");
        events.answer(Answer::Deny { reason: None, always: false }).await.unwrap();
    }
    events.turn_finished().await;
    assert_eq!(asks(&events), 4);
}

/// Only a person can tell whether it is the denied command, and no person is asked.
#[tokio::test]
async fn m_a6_a_call_that_a_rule_may_deny_needs_a_person() {
    let world = World::new();
    world.program("denied");
    let denies = || PolicyRules { deny: rules(&["shell(denied)"]), ..PolicyRules::default() };
    let commands = ["x=denied; $x a".to_owned(), "denied".to_owned(), ": > plain".to_owned()];
    let session = || world.session(denies());
    let (results, events) = world.try_all(session().asks(AsksMode::Approve), &commands).await;
    let statuses: Vec<_> = results.iter().map(|result| result.status).collect();
    assert_eq!(statuses, [ToolStatus::Denied, ToolStatus::Denied, ToolStatus::Ok], "{results:?}");
    assert!(results[0].result.contains("only a person can approve"), "{results:?}");
    assert_eq!(asks(&events), 2, "the denied ask is in the log");
    assert!(!world.work("ran denied").exists() && world.work("plain").exists());

    world
        .harness
        .model
        .then(reply().call("shell", json!({"command": commands[0]})))
        .then(reply().text("ok"));
    let session = world.sessions().open(session()).await.unwrap();
    let mut events = world.harness.watch(&session).await;
    session.prompt("go").await.unwrap();
    events.asked().await;
    events.answer(Answer::Approve { always: false }).await.unwrap();
    events.turn_finished().await;
    assert!(world.work("ran denied").exists());

    // The same holds for an ask that is open when the mode changes.
    std::fs::remove_file(world.work("ran denied")).unwrap();
    world
        .harness
        .model
        .then(reply().call("shell", json!({"command": commands[0]})))
        .then(reply().text("ok"));
    session.prompt("again").await.unwrap();
    assert!(events.asked().await.may_be_denied);
    session.change_asks(AsksMode::Approve).await.unwrap();
    events.turn_finished().await;
    assert!(!world.work("ran denied").exists());
}

#[tokio::test]
async fn m_e7_a_changed_mode_judges_the_next_call_and_leaves_the_open_ask() {
    let world = World::new();
    let touch = |name: &str| json!({ "command": format!("touch {name}") });
    world.harness.model.then(reply().call("shell", touch("asked")));
    world.harness.model.then(reply().call("shell", touch("allowed"))).then(reply().text("ok"));
    let session = world.session(PolicyRules::default()).policy(PolicyMode::Ask);
    let session = world.sessions().open(session).await.unwrap();
    let mut events = world.harness.watch(&session).await;
    session.prompt("go").await.unwrap();
    let ask = events.asked().await;
    session.change_policy(PolicyMode::All).await.unwrap();
    assert_eq!(session.snapshot().settings.policy, PolicyMode::All);
    assert!(!world.work("asked").exists());
    assert_eq!(session.snapshot().asks, [ask], "the open ask stays open");
    let seq = session.snapshot().seq;
    session.change_policy(PolicyMode::All).await.unwrap();
    assert_eq!(session.snapshot().seq, seq, "the same mode changes nothing");
    events.answer(Answer::Approve { always: false }).await.unwrap();
    events.turn_finished().await;
    assert!(world.work("asked").exists() && world.work("allowed").exists());
    session.close().await.unwrap();
    assert_eq!(
        session.change_policy(PolicyMode::Ask).await,
        Err(SessionError::Refused(Refused::Closed))
    );
}

#[tokio::test]
async fn m_e7_a_changed_mode_survives_a_fault_of_the_session() {
    let world = World::new();
    let session = world.session(PolicyRules::default()).policy(PolicyMode::All);
    let session = world.sessions().open(session).await.unwrap();
    session.change_policy(PolicyMode::Readonly).await.unwrap();
    session.panic_now().await;
    world.harness.model.then(reply().call("shell", json!({ "command": "touch made" })));
    world.harness.model.then(reply().text("ok"));
    session.prompt("go").await.unwrap();
    session.settled().await.unwrap();
    assert_eq!(session.snapshot().settings.policy, PolicyMode::Readonly);
    assert!(!world.work("made").exists());
}

/// A tool that has judged a folder keeps it open until it runs. A tool that does not run must close
/// it.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn m_e7_a_denied_call_keeps_no_folder_open() {
    let world = World::new();
    let folder = fs::canonicalize(world.harness.folder.path()).unwrap();
    let held = || {
        let open = fs::read_dir("/proc/self/fd")
            .unwrap()
            .filter_map(|fd| fs::read_link(fd.ok()?.path()).ok());
        open.filter(|path| *path == folder).count()
    };
    let before = held();
    let many =
        || (0..100).fold(reply(), |reply, _| reply.call("shell", json!({"command": "touch ran"})));
    for (policy, asks) in
        [(PolicyMode::Readonly, AsksMode::Wait), (PolicyMode::Ask, AsksMode::Deny)]
    {
        world.harness.model.then(many()).then(reply().text("ok"));
        let session = world.session(PolicyRules::default()).policy(policy).asks(asks);
        let session = world.sessions().open(session).await.unwrap();
        let mut events = world.harness.watch(&session).await;
        session.prompt("go").await.unwrap();
        events.turn_finished().await;
        let denied = events
            .facts()
            .filter(|fact| matches!(fact, Fact::Tool(ToolFact::Finished(result)) if result.status == ToolStatus::Denied));
        assert_eq!(denied.count(), 100);
        assert_eq!(held(), before, "{policy}");
        session.close().await.unwrap();
    }
    assert!(!world.work("ran").exists());
}
