//! A disk that can't be written to.

use std::io::Write;

use holdpoint_tests::mounts::Mounted;

use super::harness::DaemonWorld;

#[test]
fn t_u9_a_folder_that_can_not_be_written_is_refused_at_the_start() {
    let house = DaemonWorld::new();
    // With the folder of an earlier daemon, and without one.
    for fresh in [false, true] {
        if fresh {
            std::fs::remove_dir_all(house.data()).unwrap();
        } else {
            house.start();
            house.run(&["daemon", "stop"]).code(0);
        }
        let Some(_mounted) = Mounted::read_only(&house.0.path("data")) else { return };
        let expected = ["Read-only file system", "--state-dir"];
        house.refuses(1, &expected);
        for args in [&["run", "say Hello."][..], &["new"], &["attach", "one"], &["list"]] {
            let ran = house.run(args).code(1);
            assert!(
                expected.iter().all(|words| ran.err.contains(words)) && ran.err.contains("hint: "),
                "{args:?}: {ran:#?}"
            );
        }
        house.run(&["status"]).code(3);
        assert!(house.programs().is_empty());
    }
    house.start();
}

#[test]
fn t_u9_a_first_prompt_that_is_not_saved_is_reported() {
    let house = DaemonWorld::new();
    let Some(_disk) = Mounted::disk(&house.0.path("data"), 1) else { return };
    house.start();
    // Leaves room for the session, but not for its prompt.
    let ballast = house.0.path("data/ballast");
    let mut file = std::fs::File::create(&ballast).unwrap();
    while file.write_all(&[0; 4096]).is_ok() {}
    file.set_len(file.metadata().unwrap().len() - 60 * 1024).unwrap();
    let ran = house.run(&["new", &format!("say {}", "x".repeat(60_000))]).code(0);
    assert!(ran.err.ends_with(", not saved\n"), "{ran:#?}");
    std::fs::remove_file(ballast).unwrap();
}
