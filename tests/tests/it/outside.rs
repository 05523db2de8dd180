//! Tests of the `testing` modules from projects outside of the workspace. Each project depends on
//! one crate and has only that crate's features, while tests in the workspace have the features of
//! all crates.
//!
//! The projects are in cargo's temporary folder for tests. They use the workspace's target folder
//! and profile, so that dependencies that are already built are reused.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Writes a file only if its content changes, because cargo rebuilds after every write.
fn write_if_changed(path: &Path, text: &str) {
    if fs::read_to_string(path).is_ok_and(|current| current == text) {
        return;
    }
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// The workspace's test profile, which optimizes dependencies. The holdpoint crates are
/// dependencies here, so they are excluded.
fn profile() -> String {
    let mut manifest: toml::Table =
        fs::read_to_string(root().join("Cargo.toml")).unwrap().parse().unwrap();
    manifest.retain(|key, _| key == "profile");
    manifest["profile"].as_table_mut().unwrap().retain(|key, _| key == "dev");
    let packages = manifest["profile"]["dev"]["package"].as_table_mut().unwrap();
    for ours in ["common", "tools", "session"] {
        packages.insert(format!("holdpoint-{ours}"), toml::toml! { opt-level = 0 }.into());
    }
    manifest.to_string()
}

/// Runs the tests of a project that depends on one crate, and returns how many passed. `None` if
/// this test was not started by cargo, because cargo may then not be installed.
fn run_tests(krate: &str, tests: &str, extra_dependencies: &str) -> Option<usize> {
    let cargo = std::env::var_os("CARGO")?;
    let files = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let (project, crates) = (files.join("outside").join(krate), root().join("crates"));
    let crates = crates.display();
    let manifest = format!(
        r#"[package]
name = "outside-{krate}"
edition = "2024"
publish = false

[workspace]

[lib]
doctest = false

[dev-dependencies]
holdpoint-{krate} = {{ path = "{crates}/{krate}", features = ["test-support"] }}
serde_json = "1"
{extra_dependencies}
{profile}"#,
        profile = profile(),
    );
    write_if_changed(&project.join("Cargo.toml"), &manifest);
    write_if_changed(&project.join("src/lib.rs"), tests);
    // Uses the workspace's versions. Cargo removes the packages that the project does not need.
    let locked = project.join("Cargo.lock.of-the-workspace");
    let lock = fs::read_to_string(root().join("Cargo.lock")).unwrap();
    if fs::read_to_string(&locked).ok().as_ref() != Some(&lock) {
        fs::write(project.join("Cargo.lock"), &lock).unwrap();
        fs::write(locked, lock).unwrap();
    }
    let ran = Command::new(cargo)
        .args(["test", "--offline", "--lib", "--target-dir"])
        .arg(files.parent().unwrap())
        .current_dir(&project)
        .env("CARGO_TERM_COLOR", "never")
        .output()
        .unwrap();
    let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{}\n{out}\n{err}", ran.status);
    assert!(!err.contains("warning: unused"), "{err}");
    let passed = out.split(" passed;").next().and_then(|before| before.rsplit(' ').next());
    Some(
        passed
            .and_then(|passed| passed.parse().ok())
            .unwrap_or_else(|| panic!("no test ran: {out}")),
    )
}

/// The number of tests in a file.
fn count(tests: &str) -> usize {
    tests.matches("#[test]").count()
}

#[test]
fn a_project_can_test_its_tools_with_the_tools_crate_alone() {
    let tests = include_str!("../outside/tools.rs");
    assert!(run_tests("tools", tests, "").is_none_or(|passed| passed == count(tests)));
}

#[test]
fn a_project_can_test_its_sessions_with_the_session_crate_alone() {
    let tests = include_str!("../outside/session.rs");
    let extra_dependencies =
        "tokio = { version = \"1\", default-features = false, features = [\"rt-multi-thread\"] }\n";
    assert!(
        run_tests("session", tests, extra_dependencies).is_none_or(|passed| passed == count(tests))
    );
}
