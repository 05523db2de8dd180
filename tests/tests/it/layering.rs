//! The house's rules, held by reading the house.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// The dependencies of a crate that end up in what is built of it, and its features' own.
fn dependencies(krate: &str) -> Vec<String> {
    let manifest = fs::read_to_string(root().join("crates").join(krate).join("Cargo.toml")).unwrap();
    let manifest: toml::Table = toml::from_str(&manifest).unwrap();
    // Those of some systems only are some, too.
    let of_targets = manifest.get("target").and_then(toml::Value::as_table).into_iter().flat_map(toml::Table::values);
    let tables = std::iter::once(&manifest["dependencies"])
        .chain(of_targets.filter_map(|target| target.get("dependencies")))
        .filter_map(toml::Value::as_table);
    tables.flat_map(toml::Table::keys).cloned().collect()
}

/// Every source file of a crate: its path below `src`, and its lines without comments and without what is only
/// compiled for tests.
fn sources(krate: &str) -> Vec<(String, Vec<String>)> {
    fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, files);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    let src = root().join("crates").join(krate).join("src");
    let mut files = Vec::new();
    walk(&src, &mut files);
    assert!(!files.is_empty(), "{krate} has sources");
    let lines = |path: &PathBuf| {
        let text = fs::read_to_string(path).unwrap();
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        let code = code.lines().filter(|line| !line.trim_start().starts_with("//"));
        code.map(str::to_owned).collect()
    };
    let name = |path: &Path| path.strip_prefix(&src).unwrap().display().to_string();
    files.iter().map(|path| (name(path), lines(path))).collect()
}

/// The places of a crate's code where one of `words` stands.
fn places(krate: &str, words: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for (file, lines) in sources(krate) {
        if file.starts_with("testing") {
            continue;
        }
        for line in lines.iter().filter(|line| words.iter().any(|word| line.contains(word))) {
            found.push(format!("{file}: {}", line.trim()));
        }
    }
    found
}

#[test]
fn invariant_9_crates_depend_one_way() {
    let ours = |krate: &str| -> Vec<String> {
        let mut ours = dependencies(krate);
        ours.retain(|name| name.starts_with("holdpoint"));
        ours
    };
    assert_eq!(ours("common"), Vec::<String>::new());
    assert_eq!(ours("tools"), ["holdpoint-common"]);
    assert_eq!(ours("session"), ["holdpoint-common", "holdpoint-tools"]);
    // Which never see each other.
    for program in ["cli", "napi"] {
        assert_eq!(ours(program), ["holdpoint-common", "holdpoint-session", "holdpoint-tools"], "{program}");
    }
}

#[test]
fn invariant_9_common_does_no_io() {
    let io = ["tokio", "actix", "crossbeam-channel", "rustix", "tempfile", "tracing"];
    let found: Vec<_> = dependencies("common").into_iter().filter(|name| io.contains(&name.as_str())).collect();
    assert_eq!(found, Vec::<String>::new());
    let io = ["std::fs", "std::net", "std::process", "std::thread", "std::env", "println!", "SystemTime::now"];
    assert_eq!(places("common", &io), Vec::<String>::new());
}

#[test]
fn invariant_9_only_tools_and_session_name_actix() {
    // The daemon's HTTP server is of the same house, but has no actors.
    for (krate, server) in [("common", &[][..]), ("cli", &["actix-web"]), ("napi", &[])] {
        let found: Vec<_> = dependencies(krate).into_iter().filter(|name| name.starts_with("actix")).collect();
        assert_eq!(found, server, "{krate}");
    }
}

/// The machine is pure: no clock, no I/O, no tasks.
#[test]
fn the_machine_is_pure() {
    let impure = ["tokio", "actix", "std::time", "std::fs", "std::thread", "SystemTime", "tracing", "Mutex", "async "];
    for (file, lines) in sources("session").iter().filter(|(file, _)| file.starts_with("state")) {
        for line in lines {
            assert!(!impure.iter().any(|word| line.contains(word)), "{file}: {line}");
        }
    }
}

/// Only the actor, and whoever rebuilds one from its log, applies facts.
#[test]
fn invariant_2_only_the_actor_changes_a_sessions_state() {
    let mut found = places("session", &[".apply("]);
    found.sort();
    assert_eq!(
        found,
        [
            "actor.rs: self.state.apply(&event);",
            // What a model is told of the tasks, by the same facts.
            "history.rs: Fact::TaskAdded { .. } | Fact::TaskMoved { .. } | Fact::NoteTaken { .. } => conversation.tasks.apply(fact),",
            // The log of a session that has no actor: what a crash has cut is ended, or it is closed or renamed.
            "saved/scribe.rs: self.state.apply(&event);",
            // From a log.
            "state.rs: facts.iter().for_each(|fact| self.apply(fact));",
            // The part of the state that is the tasks.
            "state/apply.rs: self.tasks.apply(fact);",
        ]
    );
}

/// What lives as long as the process.
const STATICS: [&str; 5] = ["static ", "thread_local!", "LazyLock", "OnceCell", "lazy_static"];

/// Every lock of the session crate, and why no two actors meet at it. A new one is argued for here.
#[test]
fn invariant_10_no_lock_or_static_is_shared_between_actors() {
    for krate in ["common", "tools", "session", "cli", "napi"] {
        let mut statics = places(krate, &STATICS);
        // `'static` is a lifetime; what else is in its line may be one of these all the same.
        statics.retain(|place| STATICS.iter().any(|word| place.replace("'static ", "").contains(word)));
        // Patterns and lists of names, made once and never changed.
        let fixed = ["secrets/", "policy/programs.rs"];
        let constant = |place: &str| place.contains("LazyLock") || place.contains(": Names = Names::new(");
        statics.retain(|place| !(fixed.iter().any(|file| place.starts_with(file)) && constant(place)));
        // The engine of a Node.js process, which loads the bindings once for each of its threads.
        let engine = "engine.rs: static PROCESS: Mutex<Process> =";
        statics.retain(|place| !(krate == "napi" && place.starts_with(engine)));
        assert_eq!(statics, Vec::<String>::new(), "{krate}");
    }
    let mut files: Vec<_> = places("session", &["Mutex<", "Mutex::new", "RwLock"])
        .iter()
        .filter_map(|place| place.split_once(':').map(|(file, _)| file.to_owned()))
        .collect();
    files.sort();
    files.dedup();
    assert_eq!(
        files,
        [
            // One session's actor and one of its clients.
            "actor/queue.rs",
            // One call's thread and its runner.
            "lane.rs",
            // A client's handle and its clones.
            "local/session.rs",
            // The manager's own tasks.
            "manager.rs",
            "manager/room.rs",
            "manager/saved.rs",
            // The manager, when a session is opened.
            "model/catalog.rs",
            // The runners of sessions with one model, for a look-up; the client is made without it.
            "model/provider/remote/client.rs",
            // One session's actor and those who read its past; the manager, when a session is opened.
            "store/memory.rs",
            // The threads of the store: taken when something was damaged, and to look whether it was.
            "store/sqlite.rs",
        ]
    );
}

/// The only blocking receive of the workspace is where a tool waits for its answer; but for a thread that has nothing
/// else to do.
#[test]
fn the_only_blocking_recv_is_in_tools() {
    let blocking = [".recv()", "blocking_recv", ".recv_timeout("];
    let mut found = places("session", &blocking);
    found.retain(|place| !place.contains(".await"));
    // The store's own thread, which nobody waits for but by messages.
    assert_eq!(found, ["store/sqlite/writer.rs: while let Ok(first) = jobs.recv() {"]);
    let mut found = places("tools", &[&blocking[..], &["select_biased!"]].concat());
    found.retain(|place| !place.contains(".await") && !place.starts_with("testing"));
    assert_eq!(
        found,
        [
            // Threads that are there before their program is, and have nothing else to do.
            "process/group.rs: waiter.spawn(move || given.recv().map(|child| wait(child, &tell_exited)))?;",
            "process/watch.rs: let Ok((mut supervisor, mut reports)) = given.recv() else { return };",
            // Before anything is asked, and off the threads that serve anybody: a lookup that is given up in time.
            "web/guard/judge.rs: let found = told.recv_timeout(LOOKUP_LIMIT).ok()??.ok()?;",
            // With and without something that makes the answer needless.
            "ask.rs: select_biased! {",
            "ask.rs: self.send(request)?.recv().ok()",
        ]
    );
}
