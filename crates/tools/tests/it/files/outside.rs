//! No file outside is read or written unasked, whatever the path and whatever changes under it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use holdpoint_common::{PolicyMode, PolicyRules, Verdict};
use holdpoint_tools::testing::{Bench, rounds};
use holdpoint_tools::{EditFile, Glob, Grep, ListDir, Policy, ReadFile, Tool, WriteFile};
use proptest::prelude::*;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::support::call;

/// The text of every file outside, which occurs in no other file.
const SECRET: &str = "outside_is_none_of_its_business";

/// A workspace, and a folder beside it with a name that begins in the same way. Each has a file,
/// and a folder with a file.
struct OutsideWorkspace {
    bench: Bench,
    outside: PathBuf,
    _folder: TempDir,
}

impl OutsideWorkspace {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap().join("w");
        let outside = root.with_file_name("w-evil");
        for (place, text) in [(&root, "inside\n".to_owned()), (&outside, format!("{SECRET}\n"))] {
            fs::create_dir_all(place.join("folder")).unwrap();
            fs::write(place.join("file"), &text).unwrap();
            fs::write(place.join("folder/file"), &text).unwrap();
        }
        // The mode that allows the most without asking.
        let bench = Bench::within(root)
            .policy(Policy::new(PolicyMode::Edits, &PolicyRules::default(), None).unwrap());
        Self { bench, outside, _folder: folder }
    }

    fn root(&self) -> &Path {
        self.bench.root()
    }

    fn link(&self, target: impl AsRef<Path>, name: &str) {
        symlink(target, self.root().join(name)).unwrap();
    }

    /// Handles a call like a session in which every ask is denied: judges it, and runs it if it is
    /// allowed.
    fn run_without_ask<T: Tool + 'static>(
        &self,
        tool: T,
        input: &Value,
    ) -> Option<Result<String, String>> {
        let intent = match tool.intent(input, self.bench.workspace()) {
            Ok(intent) => intent,
            Err(error) => return Some(Err(error.to_string())),
        };
        let judgement =
            self.bench.workspace().policy().judge(tool.name(), &intent.acts, self.root());
        (judgement.verdict == Verdict::Allow)
            .then(|| call(&self.bench, tool, input.clone()).map(|outcome| outcome.output))
    }

    /// Calls every file tool on this path, unasked. Returns the results of those that ran.
    fn all(&self, path: &str) -> Vec<(&'static str, Option<Result<String, String>>)> {
        let edit = |old: &str| json!({"path": path, "old_string": old, "new_string": "PWNED"});
        vec![
            ("read_file", self.run_without_ask(ReadFile::new(), &json!({ "path": path }))),
            (
                "write_file",
                self.run_without_ask(WriteFile::new(), &json!({"path": path, "content": "PWNED"})),
            ),
            // An error about the text of an unreadable file would reveal the text.
            (
                "edit_file",
                self.run_without_ask(EditFile::new(), &edit("outside_is_none _of_its_business")),
            ),
            ("edit_file", self.run_without_ask(EditFile::new(), &edit(SECRET))),
            ("list_dir", self.run_without_ask(ListDir::new(), &json!({"path": path, "depth": 5}))),
            ("glob", self.run_without_ask(Glob::new(), &json!({"path": path, "pattern": "**"}))),
            ("grep", self.run_without_ask(Grep::new(), &json!({"path": path, "pattern": "."}))),
        ]
    }

    /// Every path outside, with its text.
    fn seen_outside(&self) -> Vec<(PathBuf, Option<String>)> {
        let mut found = Vec::new();
        let mut todo = vec![self.outside.clone()];
        while let Some(folder) = todo.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                found.push((path.clone(), fs::read_to_string(&path).ok()));
                if path.is_dir() && !path.is_symlink() {
                    todo.push(path);
                }
            }
        }
        found.sort();
        found
    }

    fn check(&self, path: &str) {
        let before = self.seen_outside();
        for (tool, ran) in self.all(path) {
            if let Some(Ok(output) | Err(output)) = &ran {
                assert!(!output.contains(SECRET), "{tool} {path:?}: {output}");
            }
        }
        assert_eq!(self.seen_outside(), before, "{path:?}");
        assert!(!Path::new("/tmp/holdpoint-was-here").exists(), "{path:?}");
    }
}

#[test]
fn t_d1_no_path_leads_outside_without_an_ask() {
    let world = OutsideWorkspace::new();
    let outside = world.outside.display().to_string();
    let root = world.root().display().to_string();
    world.link(&world.outside, "dir");
    world.link(world.outside.join("file"), "one");
    world.link("chain2", "chain1");
    world.link("chain3", "chain2");
    world.link(&world.outside, "chain3");
    world.link(world.outside.join("new"), "dangling");
    world.link(world.outside.join("no/such"), "dangling-deep");
    world.link("/proc/self/root", "proc-root");
    world.link("/proc/self/cwd", "proc-cwd");
    world.link("/", "slash");
    world.link("..", "up");
    world.link("folder/../..", "around");
    world.link("../w-evil", "relative");
    world.link(world.root(), "same");
    fs::create_dir(world.root().join("a")).unwrap();
    world.link("../dir", "a/b");
    let cases = [
        outside.clone(),
        format!("{outside}/file"),
        format!("{outside}/new"),
        "../w-evil/file".to_owned(),
        "./../w-evil".to_owned(),
        "folder/../../w-evil/file".to_owned(),
        format!("{root}/../w-evil/file"),
        format!("{root}-evil/file"),
        "dir".to_owned(),
        "dir/file".to_owned(),
        "dir/new".to_owned(),
        "dir/folder/../file".to_owned(),
        "dir/../w-evil/file".to_owned(),
        "one".to_owned(),
        "chain1".to_owned(),
        "chain1/file".to_owned(),
        "chain1/folder".to_owned(),
        "dangling".to_owned(),
        "dangling-deep".to_owned(),
        format!("proc-root{outside}/file"),
        format!("proc-root{outside}"),
        "proc-cwd/new".to_owned(),
        format!("slash{outside}/file"),
        format!("/proc/self/root{outside}/file"),
        format!("/proc/thread-self/root/{outside}/folder"),
        "up/w-evil/file".to_owned(),
        "around/w-evil/file".to_owned(),
        "relative/folder/file".to_owned(),
        "a/b/file".to_owned(),
        "same/same/dir/file".to_owned(),
        "same/../w-evil/file".to_owned(),
        format!("//{outside}//file"),
        "folder/../dir/./folder/../file".to_owned(),
    ];
    assert!(cases.len() >= 30);
    for path in &cases {
        for (tool, ran) in world.all(path) {
            let output = ran.as_ref().map(|ran| ran.as_ref().unwrap_or_else(|error| error));
            assert!(ran.is_none(), "{tool} {path:?} ran without an ask: {output:?}");
        }
        world.check(path);
    }
    // Paths that lead back inside are read and written there.
    for path in
        ["same/file", "same/folder/../file", "up/w/file", &format!("/proc/self/root{root}/file")]
    {
        fs::write(world.root().join("file"), "inside\n").unwrap();
        let read = world.run_without_ask(ReadFile::new(), &json!({ "path": path }));
        assert_eq!(read, Some(Ok("     1\tinside\n".to_owned())), "{path}");
    }
    // Even this process may not be able to resolve the root of another process.
    world.check(&format!("/proc/1/root{outside}/file"));
    // From the top folder, links are shown and not followed.
    for (tool, ran) in world.all(".") {
        let output = ran.unwrap().unwrap_or_else(|error| error);
        assert!(!output.contains(SECRET) && !output.contains("w-evil/folder"), "{tool}: {output}");
    }
    world.check(".");
}

#[test]
fn t_d4_a_folder_with_the_same_name_prefix_is_outside() {
    let world = OutsideWorkspace::new();
    for path in ["../w-evil/file", "../w-evil", "../w-evil/new"] {
        world.check(path);
        assert!(world.all(path).iter().all(|(_, ran)| ran.is_none()));
    }
}

#[test]
fn t_d1_errors_reveal_nothing_outside() {
    let world = OutsideWorkspace::new();
    let path = world.outside.join("file");
    let intent = |old: &str| {
        let input = json!({"path": path, "old_string": old, "new_string": "x"});
        EditFile::new().intent(&input, world.bench.workspace()).unwrap()
    };
    // The user sees whether the edit matches; the model does not.
    assert!(intent(SECRET).details.unwrap().contains(&format!("-{SECRET}\n+x\n")));
    assert!(intent("nothing").details.unwrap().contains("This call will fail: "));
    let below = json!({ "path": path.join("below") });
    assert!(
        ReadFile::new().intent(&below, world.bench.workspace()).is_ok(),
        "the intent does not reveal whether the path is a file"
    );
}

/// Swaps a folder with a link to the outside and back while `work` runs.
#[cfg(target_os = "linux")]
fn swapping<T>(world: &OutsideWorkspace, work: impl FnOnce() -> T) -> T {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    let (place, aside) = (world.root().join("race"), world.root().join("aside"));
    fs::create_dir_all(place.join("folder")).unwrap();
    fs::write(place.join("file"), "inside\n").unwrap();
    fs::write(place.join("folder/file"), "inside\n").unwrap();
    let done = AtomicBool::new(false);
    /// Ends the swapping even if the work panics.
    struct Done<'a>(&'a AtomicBool);
    impl Drop for Done<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    symlink(&world.outside, &aside).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                renameat_with(CWD, &place, CWD, &aside, RenameFlags::EXCHANGE).unwrap();
                std::thread::yield_now();
            }
        });
        let _done = Done(&done);
        work()
    })
}

#[test]
#[cfg(target_os = "linux")]
fn t_d1_a_folder_replaced_by_a_link_is_not_followed() {
    let world = OutsideWorkspace::new();
    let before = world.seen_outside();
    let calls = rounds(1_000, 10_000);
    let mut landed = 0;
    swapping(&world, || {
        for round in 0..calls / 28 {
            for path in ["race/file", "race/folder/file", "race/new/deep/file", "race"] {
                for (tool, ran) in world.all(path) {
                    let Some(ran) = ran else { continue };
                    landed += u32::from(ran.is_ok());
                    let output = ran.unwrap_or_else(|error| error);
                    assert!(!output.contains(SECRET), "round {round}: {tool} {path}: {output}");
                }
            }
            // Also from the folder above.
            let found =
                world.run_without_ask(Grep::new(), &json!({"pattern": "."})).unwrap().unwrap();
            assert!(!found.contains(SECRET), "{found}");
        }
    });
    assert_eq!(world.seen_outside(), before);
    assert!(landed > 0, "some calls succeeded");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(rounds(50, 3_000)))]

    #[test]
    fn t_d1_random_links_do_not_lead_outside_without_an_ask(
        links in prop::collection::vec(
            (prop::collection::vec(part(), 1..3), prop::collection::vec(part(), 1..5), any::<bool>()), 1..6),
        paths in prop::collection::vec(prop::collection::vec(part(), 1..5), 1..5),
    ) {
        let world = OutsideWorkspace::new();
        let top = world.root().parent().unwrap();
        for (name, target, is_absolute) in links {
            let target: PathBuf = target.iter().collect();
            let target = if is_absolute { top.join(target) } else { target };
            // Inside, where there is room for it.
            let name = world.root().join(name.iter().filter(|part| **part != "..").collect::<PathBuf>());
            let _ = symlink(target, name);
        }
        for path in paths {
            world.check(&path.join("/"));
        }
    }
}

fn part() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["a", "b", "c", "folder", "file", "..", "w", "w-evil", "."])
}
