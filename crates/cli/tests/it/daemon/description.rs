//! The API's description and its page match the daemon that serves it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

use super::client::{Api, Frame};
use super::harness::DaemonWorld;
use crate::world::{Ran, program};

fn docs(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(file)
}

/// `HOLDPOINT_SNAPSHOTS=overwrite` rewrites the file.
#[test]
fn the_served_openapi_description_matches_the_file() {
    let house = DaemonWorld::new();
    house.start();
    let served = Api::new(&house).get("openapi.json").ok();
    let served = serde_json::to_string_pretty(&served).unwrap() + "\n";
    if std::env::var_os("HOLDPOINT_SNAPSHOTS").is_some_and(|what| what == "overwrite") {
        std::fs::write(docs("openapi.json"), &served).unwrap();
    }
    let written = std::fs::read_to_string(docs("openapi.json")).unwrap();
    assert!(
        served == written,
        "docs/openapi.json differs from the served one: HOLDPOINT_SNAPSHOTS=overwrite rewrites it"
    );
}

#[test]
fn the_description_has_every_path_and_no_dangling_reference() {
    let written = written();
    let table = include_str!("../../../../common/src/api.rs");
    let rows = table.lines().filter_map(|line| line.strip_prefix("//! | `"));
    let mut documented = BTreeSet::new();
    for row in rows {
        // Cells such as `GET`, `DELETE sessions/{session}`, or `GET sessions/{id}/asks`, `GET asks`,
        // or `…/{hold,release}`.
        let cell = row.split(" | ").next().unwrap().replace('`', "");
        let mut methods = Vec::new();
        for part in cell.split(", ") {
            match part.split_once(' ') {
                None => methods.push(part.to_owned()),
                Some((method, path)) => {
                    methods.push(method.to_owned());
                    let paths = match path.split_once("{hold,release}") {
                        Some((start, _)) => vec![format!("{start}hold"), format!("{start}release")],
                        None => vec![path.to_owned()],
                    };
                    for path in paths {
                        documented.extend(methods.iter().map(|method| format!("{method} /{path}")));
                    }
                    methods.clear();
                }
            }
        }
    }
    let mut described = BTreeSet::new();
    for (path, methods) in written["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            described.insert(format!("{} {path}", method.to_uppercase()));
            assert!(!operation["summary"].as_str().unwrap().is_empty());
            assert!(operation["responses"].as_object().unwrap().len() > 1, "{path}");
        }
    }
    assert_eq!(described, documented);
    let (mut named, schemas) =
        (BTreeSet::new(), written["components"]["schemas"].as_object().unwrap());
    references(&written, &mut named);
    for name in named {
        assert!(
            schemas.contains_key(name.strip_prefix("#/components/schemas/").unwrap()),
            "{name}"
        );
    }
}

#[test]
fn a_body_is_required_unless_it_can_be_left_out() {
    let written = written();
    let body = |path: &str| &written["paths"][path]["post"]["requestBody"];
    for path in ["/sessions", "/sessions/{id}/prompts", "/asks/{ask}/answer"] {
        assert_eq!(body(path)["required"], true, "{path}");
    }
    let optional = body("/sessions/{session}/open");
    assert!(optional.is_object() && optional.get("required").is_none(), "{optional}");
}

fn written() -> Value {
    serde_json::from_str(&std::fs::read_to_string(docs("openapi.json")).unwrap()).unwrap()
}

fn references(value: &Value, named: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            named.extend(object.get("$ref").and_then(Value::as_str).map(str::to_owned));
            object.values().for_each(|value| references(value, named));
        }
        Value::Array(values) => values.iter().for_each(|value| references(value, named)),
        _ => {}
    }
}

/// Checks that the API's page has this text between two markers, apart from numbers.
/// `HOLDPOINT_SNAPSHOTS=overwrite` rewrites it.
#[track_caller]
fn page_says(what: &str, begins: &str, ends: &str) {
    // One test at a time rewrites the page.
    static PAGE: Mutex<()> = Mutex::new(());
    let _page = PAGE.lock().unwrap_or_else(PoisonError::into_inner);
    let page = std::fs::read_to_string(docs("api.md")).unwrap();
    let (before, rest) = page.split_once(begins).expect(begins);
    let (written, after) = rest.split_once(ends).expect(ends);
    if std::env::var_os("HOLDPOINT_SNAPSHOTS").is_some_and(|how| how == "overwrite") {
        return std::fs::write(docs("api.md"), [before, begins, what, ends, after].concat())
            .unwrap();
    }
    let without_numbers = |text: &str| {
        let parts =
            text.split(|letter: char| letter.is_ascii_digit()).filter(|part| !part.is_empty());
        parts.collect::<Vec<_>>().join("0")
    };
    assert_eq!(
        without_numbers(written),
        without_numbers(what),
        "HOLDPOINT_SNAPSHOTS=overwrite rewrites it"
    );
}

#[test]
fn the_table_of_the_page_has_every_path() {
    let described: Value =
        serde_json::from_str(&std::fs::read_to_string(docs("openapi.json")).unwrap()).unwrap();
    let mut table = String::new();
    for (path, methods) in described["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let (method, what) = (method.to_uppercase(), operation["summary"].as_str().unwrap());
            table.push_str(&format!("| `{method}` | `{path}` | {what} |\n"));
        }
    }
    page_says(table.trim_end(), "| method | path | |\n| --- | --- | --- |\n", "\n\n");
}

#[test]
fn the_event_on_the_page_is_real() {
    let house = DaemonWorld::new();
    house.start();
    let api = Api::new(&house);
    let session = api.open("ask");
    api.prompt(&session, "shell: echo hello | tr a-z A-Z");
    let asked = |frame: &Frame| frame.kind == "message" && frame.data.contains("askRaised");
    let mut event: Value = api.attach(&session, "").until(asked).read();
    // Fixed times, so that rewriting the page does not change them.
    for time in ["/at", "/body/ask/since"] {
        *event.pointer_mut(time).unwrap() = Value::from(1_795_715_448_055_u64);
    }
    let event = serde_json::to_string_pretty(&event).unwrap() + "\n";
    let work = house.0.path("work").display().to_string();
    page_says(
        &event
            .replace(&session, "k3v9x2m7qa")
            .replace(&work, "/home/me/shop")
            .replace(" without a sandbox?", "?"),
        "```json\n",
        "```\n",
    );
}

#[test]
fn the_examples_of_the_page_work() {
    let house = DaemonWorld::new();
    let page = std::fs::read_to_string(docs("api.md")).unwrap();
    let mut script = "set -eu\n".to_owned();
    for block in page.split("```sh\n").skip(1) {
        script.push_str(block.split("```").next().unwrap());
    }
    let mut shell = Command::new("bash");
    let path =
        format!("{}:{}", program().parent().unwrap().display(), std::env::var("PATH").unwrap());
    shell
        .args(["-c", &script])
        .current_dir(house.0.path("work"))
        .env_clear()
        .envs(house.0.env())
        .env("PATH", path);
    shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let ran = Ran::of(shell);
    assert!(ran.code == Some(0) && ran.out.contains("HELLO"), "{ran:#?}");
}

#[test]
fn t_f13_the_log_names_the_client_of_each_attach_and_answer() {
    let house = DaemonWorld::new();
    house.start();
    let api = Api::new(&house).named("the one%1b[31m");
    let session = api.open("ask");
    api.prompt(&session, "shell: touch made");
    let ask = api.asks(&session, 1).remove(0);
    for _ in 0..2 {
        api.answer(&ask, &serde_json::json!({ "type": "deny" }));
    }
    let mut line = api.line();
    line.send(&api.request("GET", "sessions/nobody/events", "", b"")).unwrap();
    line.answer().unwrap().error(404);
    let log = house.last_words();
    let pid = format!("pid {}", std::process::id());
    for (what, session) in [
        ("attach accepted", session.as_str()),
        ("attach refused", "nobody"),
        ("answer accepted", &ask),
        ("answer refused", &ask),
    ] {
        let entry = log
            .lines()
            .find(|line| line.contains(what) && line.contains("peer="))
            .unwrap_or_else(|| panic!("{what}: {log}"));
        assert!(entry.starts_with("20"), "the time: {entry}");
        for part in ["uid ", &pid, "client=\"the one", session] {
            assert!(entry.contains(part), "{part}: {entry}");
        }
    }
    assert!(!log.contains('\u{1b}'));
}
