//! How paths are resolved, and that a call acts on the place that was judged.

use std::fs;
use std::os::unix::fs::symlink;

use holdpoint_common::PolicyClass as Class;
use holdpoint_tools::testing::Bench;
use holdpoint_tools::{Place, ReadFile, Tool, WriteFile};
use serde_json::json;

use super::support::write;

#[test]
fn links_are_followed_before_a_path_is_judged() {
    let bench = Bench::new();
    let outside = tempfile::tempdir().unwrap();
    let outside = outside.path().canonicalize().unwrap();
    let root = bench.root();
    fs::create_dir_all(root.join("in/deep")).unwrap();
    fs::create_dir(root.join(".git")).unwrap();
    symlink(&outside, root.join("out")).unwrap();
    symlink("in", root.join("same")).unwrap();
    symlink(".git", root.join("innocent")).unwrap();
    symlink("loop", root.join("loop")).unwrap();
    symlink(outside.join("not-there"), root.join("dangling")).unwrap();
    let absolute = root.join("in/x");
    for (path, reads, writes) in [
        ("in/x", Class::Read, Class::Write),
        ("./in/../in/deep/x", Class::Read, Class::Write),
        ("same/deep/../x", Class::Read, Class::Write),
        (absolute.to_str().unwrap(), Class::Read, Class::Write),
        ("out/x", Class::ReadOutside, Class::WriteOutside),
        ("out/../x", Class::ReadOutside, Class::WriteOutside),
        ("dangling", Class::ReadOutside, Class::WriteOutside),
        ("../a_file_outside", Class::ReadOutside, Class::WriteOutside),
        ("/etc/passwd", Class::ReadOutside, Class::WriteOutside),
        (".git/config", Class::Read, Class::WriteProtected),
        (".ＧＩＴ/config", Class::Read, Class::WriteProtected),
        ("GIT~1/config", Class::Read, Class::WriteProtected),
        (".git./config", Class::Read, Class::WriteProtected),
        ("innocent/config", Class::Read, Class::WriteProtected),
        ("sub/.bashrc", Class::Read, Class::WriteProtected),
        (".vscode/tasks.json", Class::Read, Class::WriteProtected),
        (".holdpoint/x", Class::Read, Class::WriteProtected),
        (".github/x", Class::Read, Class::Write),
    ] {
        let intent = ReadFile::new().intent(&json!({ "path": path }), bench.workspace()).unwrap();
        assert_eq!(intent.acts[0].class(), reads, "reading {path}");
        let input = json!({ "path": path, "content": "text" });
        let intent = WriteFile::new().intent(&input, bench.workspace()).unwrap();
        assert_eq!(intent.acts[0].class(), writes, "writing {path}");
        let details = intent.details.unwrap();
        assert!(details.ends_with("+text\n\\ No newline at end of file\n"), "{details}");
    }
    // No folder is created beside one of nearly the same name. Where both names are the same
    // folder, it is protected.
    for path in [".GIT/hooks/pre-commit", ".gi\u{200c}t/config"] {
        let input = json!({ "path": path, "content": "text" });
        let error = WriteFile::new().intent(&input, bench.workspace()).unwrap_err().to_string();
        assert!(error.contains("no such folder; there is \".git\""), "{error}");
        assert!(Place::resolve(path, bench.root()).unwrap().is_protected(), "{path}");
    }
    let error = ReadFile::new().intent(&json!({"path": "loop"}), bench.workspace()).unwrap_err();
    assert!(error.to_string().contains("symbolic links"), "{error}");

    write(&bench, "dangling", "through").unwrap();
    assert_eq!(fs::read_to_string(outside.join("not-there")).unwrap(), "through");
    assert!(root.join("dangling").is_symlink());
}

#[test]
fn the_call_acts_on_the_judged_place() {
    let bench = Bench::new();
    let outside = tempfile::tempdir().unwrap();
    let root = bench.root();
    fs::create_dir(root.join("in")).unwrap();
    let input = json!({"path": "in/x", "content": "text"});
    let tool = WriteFile::new();
    assert_eq!(tool.intent(&input, bench.workspace()).unwrap().acts[0].class(), Class::Write);
    fs::remove_dir(root.join("in")).unwrap();
    symlink(outside.path(), root.join("in")).unwrap();
    let error = bench.call(tool, input).result.unwrap_err().to_string();
    assert!(error.contains("nothing was done"), "{error}");
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
}
