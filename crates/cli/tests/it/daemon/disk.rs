//! A disk that nothing can be written to.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::house::House;

/// A folder that is read-only for as long as this lives; root has to have it so.
struct ReadOnly(PathBuf);

impl ReadOnly {
    fn make(folder: &Path) -> Option<Self> {
        let mount = |how: &[&str]| Command::new("mount").args(how).output().is_ok_and(|ran| ran.status.success());
        let path = folder.to_str().unwrap();
        if !mount(&["--bind", path, path]) {
            println!("skipped: nothing can be mounted here");
            return None;
        }
        let mounted = Self(folder.to_owned());
        assert!(mount(&["-o", "remount,ro,bind", path]));
        Some(mounted)
    }
}

impl Drop for ReadOnly {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn t_u9_a_folder_that_can_not_be_written_is_refused_at_the_start() {
    let house = House::new();
    // There is one of before, and there is none.
    for fresh in [false, true] {
        if fresh {
            std::fs::remove_dir_all(house.data()).unwrap();
        } else {
            house.start();
            house.run(&["daemon", "stop"]).code(0);
        }
        let Some(_mounted) = ReadOnly::make(&house.0.path("data")) else { return };
        let told = ["Read-only file system", "--state-dir"];
        house.refuses(1, &told);
        for args in [&["run", "say Hello."][..], &["new"], &["attach", "one"], &["list"]] {
            let ran = house.run(args).code(1);
            assert!(
                told.iter().all(|words| ran.err.contains(words)) && ran.err.contains("hint: "),
                "{args:?}: {ran:#?}"
            );
        }
        house.run(&["status"]).code(3);
        assert!(house.programs().is_empty());
    }
    house.start();
}
