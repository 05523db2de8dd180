//! Holdpoint's own folders, which the requests of an agent do not reach.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::json;

use super::files::{read, replies, request, write};
use crate::world::World;

#[test]
fn m_h3_requests_do_not_reach_holdpoints_own_folders() {
    let world = World::new();
    world.run(&["run", "--model", "rehearsal", "say Started."]).code(0);
    fs::write(world.path("data/holdpoint/login"), "{ \"key\": \"of the user\" }").unwrap();
    fs::write(world.work("a.txt"), "the text").unwrap();
    symlink(world.path("config/holdpoint"), world.work("link")).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/hosted/plain.py");
    for folder in ["plain.py", "work/plain.py"] {
        fs::copy(&script, world.path(folder)).unwrap();
    }
    let root = world.path("work").canonicalize().unwrap().parent().unwrap().to_owned();
    let at = |path: &str| root.join(path).display().to_string();
    let cat = json!({ "command": "cat login", "cwd": at("data/holdpoint") });
    let script = [
        read(&at("config/holdpoint/config.toml")),
        read(&at("data/holdpoint/login")),
        read(&at("data/holdpoint/missing")),
        read(&at("work/link/config.toml")),
        write(&at("config/holdpoint/config.toml"), "policy = \"all\"\n"),
        write(&at("data/holdpoint/new/login"), "x"),
        request("terminal/create", &cat),
        read(&at("work/a.txt")),
    ];
    for (level, policy, folder) in [
        ("off", "ask", ""),
        ("off", "edits", ""),
        ("off", "all", ""),
        ("off", "all", "work"),
        ("landlock", "readonly", ""),
    ] {
        let config = world.config(&format!(
            "[rules]\nallow = [\"agent(python3)\"]\n[sandbox]\nlevel = \"{level}\"\n"
        ));
        let before = fs::read_to_string(&config).unwrap();
        let folder = world.path(folder).display().to_string();
        let args = ["run", "--policy", policy, "--asks", "deny", "--cwd", &folder];
        let agent = ["--agent", "python3 plain.py", &script.concat()];
        let ran = world.run(&[&args[..], &agent].concat());
        let replies = replies(&ran.out);
        let (text, refused) = replies.split_last().unwrap();
        assert_eq!((text, refused.len()), (&json!({ "content": "the text" }), 7), "{ran:#?}");
        for reply in refused {
            let why = reply["message"].as_str().unwrap_or_default();
            let is_refused = why.contains("Holdpoint's own folders are not in reach of an agent");
            assert!(is_refused, "{level} {policy} {folder}: {reply}");
        }
        // Each is shown as a failed call, and none was asked about.
        assert_eq!(ran.code, Some(0), "{ran:#?}");
        assert!(ran.err.matches("not run: ").count() >= 7, "{ran:#?}");
        assert_eq!(fs::read_to_string(&config).unwrap(), before);
        assert!(!world.path("data/holdpoint/new").exists());
    }
}
