//! Checks of the architecture's rules, by reading the sources.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// The dependencies in a crate's manifest, including optional and target-specific ones.
fn dependencies(krate: &str) -> Vec<String> {
    let manifest =
        fs::read_to_string(root().join("crates").join(krate).join("Cargo.toml")).unwrap();
    let manifest: toml::Table = toml::from_str(&manifest).unwrap();
    // Includes the dependencies of single targets.
    let of_targets = manifest
        .get("target")
        .and_then(toml::Value::as_table)
        .into_iter()
        .flat_map(toml::Table::values);
    let tables = std::iter::once(&manifest["dependencies"])
        .chain(of_targets.filter_map(|target| target.get("dependencies")))
        .filter_map(toml::Value::as_table);
    tables.flat_map(toml::Table::keys).cloned().collect()
}

/// The source files of a crate: each path below `src`, and the lines without comments and test
/// modules.
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

/// The lines of a crate's code, without its module `testing`, that contain one of `words`.
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
    // The two programs do not depend on each other.
    for program in ["cli", "napi"] {
        assert_eq!(
            ours(program),
            ["holdpoint-common", "holdpoint-session", "holdpoint-tools"],
            "{program}"
        );
    }
}

#[test]
fn invariant_9_common_does_no_io() {
    let io = ["tokio", "actix", "crossbeam-channel", "rustix", "tempfile", "tracing"];
    let found: Vec<_> =
        dependencies("common").into_iter().filter(|name| io.contains(&name.as_str())).collect();
    assert_eq!(found, Vec::<String>::new());
    let io = [
        "std::fs",
        "std::net",
        "std::process",
        "std::thread",
        "std::env",
        "println!",
        "SystemTime::now",
    ];
    assert_eq!(places("common", &io), Vec::<String>::new());
}

#[test]
fn invariant_9_only_tools_and_session_name_actix() {
    // The daemon's HTTP server is of the actix family but has no actors.
    for (krate, server) in
        [("common", &[][..]), ("cli", &["actix-tls", "actix-web"]), ("napi", &[])]
    {
        let found: Vec<_> =
            dependencies(krate).into_iter().filter(|name| name.starts_with("actix")).collect();
        assert_eq!(found, server, "{krate}");
    }
}

/// The protocol's crate stays in one room, so that another can replace it.
#[test]
fn only_the_room_of_mcp_names_its_crate() {
    for krate in ["common", "session", "cli", "napi"] {
        assert!(!dependencies(krate).contains(&"rmcp".to_owned()), "{krate}");
    }
    let mut found = places("tools", &["rmcp"]);
    found.retain(|place| !place.starts_with("mcp/"));
    assert_eq!(found, Vec::<String>::new());
}

/// The machine has no clock, no I/O and no tasks.
#[test]
fn the_state_machine_does_no_io() {
    let impure = [
        "tokio",
        "actix",
        "std::time",
        "std::fs",
        "std::thread",
        "SystemTime",
        "tracing",
        "Mutex",
        "async ",
    ];
    for (file, lines) in sources("session").iter().filter(|(file, _)| file.starts_with("state")) {
        for line in lines {
            assert!(!impure.iter().any(|word| line.contains(word)), "{file}: {line}");
        }
    }
}

/// Only the actor and the code that restores a state from a log apply facts.
#[test]
fn invariant_2_only_the_actor_changes_a_sessions_state() {
    let mut found = places("session", &[".apply("]);
    found.sort();
    assert_eq!(
        found,
        [
            "actor.rs: self.state.apply(&event);",
            // The tasks in a model's context, computed from the same facts.
            "history.rs: Fact::Task(fact) => conversation.tasks.apply(fact),",
            // The log of a saved session: ending the turn that a crash cut, closing, and renaming.
            "saved/offline.rs: self.state.apply(&event);",
            // Restoring a state from a log.
            "state.rs: facts.iter().for_each(|fact| self.apply(fact));",
            // Tasks are a part of the state.
            "state/apply.rs: Fact::Task(fact) => self.tasks.apply(fact),",
        ]
    );
}

/// Declarations with the lifetime of the process.
const STATICS: [&str; 5] = ["static ", "thread_local!", "LazyLock", "OnceCell", "lazy_static"];

/// Every lock of the session crate, with the reason why no two actors share it. A new lock needs
/// one too.
#[test]
fn invariant_10_no_lock_or_static_is_shared_between_actors() {
    for krate in ["common", "tools", "session", "cli", "napi"] {
        let mut statics = places(krate, &STATICS);
        // Ignores the lifetime `'static`, but not another match on its line.
        statics.retain(|place| {
            STATICS.iter().any(|word| place.replace("'static ", "").contains(word))
        });
        // Patterns and name lists, which are built once and never changed.
        let fixed = ["secrets/", "programs.rs"];
        let constant = |place: &str| place.contains("LazyLock") || place.contains(": Names =");
        statics
            .retain(|place| !(fixed.iter().any(|file| place.starts_with(file)) && constant(place)));
        // The engine of a Node.js process, which loads the bindings once for each thread.
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
            // Shared by one session's actor and one of its clients.
            "actor/queue.rs",
            // Shared by the model and the tool of one session, which use it in turn.
            "hosted/link.rs",
            // Shared by the threads of MCP servers, for a look-up when one starts; the authorities
            // are loaded unlocked.
            "http_clients.rs",
            // Shared by one call's thread and its runner.
            "lane.rs",
            // Shared by the clones of a client's handle.
            "local/session.rs",
            // Locked by the manager when a session is opened.
            "model/catalog.rs",
            // Shared by the runners of sessions with one model, for a lookup only; the client is
            // built unlocked.
            "model/provider/remote/client.rs",
            // Shared by one session's actor and readers of its past, and the manager when a session
            // is opened.
            "store/memory.rs",
            // Shared by the clones and the threads of a store, to report damage.
            "store/reads.rs",
            // Shared by the store's threads, to salvage a damaged database.
            "store/sqlite.rs",
        ]
    );
}

/// A blocking receive is allowed where a tool waits for its answer, and on threads that have no
/// other work.
#[test]
fn blocking_receives_are_only_in_tools_and_own_threads() {
    let blocking = [".recv()", "blocking_recv", ".recv_timeout("];
    let mut found = places("session", &blocking);
    found.retain(|place| !place.contains(".await"));
    assert_eq!(
        found,
        [
            // The thread of a call, which gets its tool when it has started.
            "turn/call.rs: let Ok(mut tool) = from_runner.blocking_recv() else { return };",
            // The store's own thread; other threads exchange messages with it.
            "store/sqlite/writer.rs: while let Ok(first) = pending_writes.recv() {",
        ]
    );
    let mut found = places("tools", &[&blocking[..], &["select_biased!"]].concat());
    found.retain(|place| !place.contains(".await") && !place.starts_with("testing"));
    assert_eq!(
        found,
        [
            // Threads that start before their program and have no other work.
            "process/group.rs: waiter.spawn(move || child_receiver.recv().map(|child| wait(child, &exited_sender)))?;",
            "process/watch.rs: let Ok((mut supervisor, mut reports, mut proxy)) = program_receiver.recv() else {",
            // A lookup with a time limit, before the ask and not on an actor's thread.
            "web/guard/judge.rs: let found = receiver.recv_timeout(LOOKUP_LIMIT).ok()??.ok()?;",
            // The two receives of an answer: without a subject that can end the ask, and with one.
            "ask.rs: self.send(request)?.recv().ok()",
            "ask.rs: select_biased! {",
        ]
    );
}

/// The protocol changes often, so one room on each side knows its types.
#[test]
fn m_h1_m_h3_only_the_agent_for_editors_and_hosted_agents_name_the_types_of_the_protocol() {
    for krate in ["common", "tools", "session", "cli", "napi"] {
        let mut found = places(krate, &["agent_client_protocol"]);
        let room = match krate {
            "cli" => "acp",
            "session" => "hosted/protocol",
            _ => "no room",
        };
        found.retain(|place| !place.starts_with(room));
        assert_eq!(found, Vec::<String>::new(), "{krate}");
    }
}
