//! Only one daemon runs, however many are started.

use std::collections::BTreeSet;
use std::process::Child;

use rustix::process::Signal;

use super::client::at_once;
use super::harness::DaemonWorld;
use crate::world::{is_root, rounds, wait};

/// How many processes start at once.
const CROWD: usize = 50;

#[test]
fn t_n1_fifty_commands_at_once_start_one_daemon_and_all_are_served() {
    for round in 0..rounds(10, 100) {
        let house = DaemonWorld::new();
        let outcomes = at_once(CROWD, |_| house.0.command(&["daemon", "start"]).output().unwrap());
        let mut reports = BTreeSet::new();
        for outcome in outcomes {
            assert!(outcome.status.success(), "round {round}: {outcome:?}");
            reports.insert(outcome.stdout);
        }
        assert_eq!(reports.len(), 1, "round {round}: all report the same daemon");
        if is_root() {
            assert_eq!(house.programs(), [house.pid()], "round {round}: no other daemon runs");
        }
    }
}

#[test]
fn t_n1_of_fifty_concurrent_daemons_one_runs_and_the_others_report_it() {
    for round in 0..rounds(2, 20) {
        let house = DaemonWorld::new();
        let mut crowd: Vec<Child> =
            (0..CROWD).map(|_| house.0.command(&["daemon"]).spawn().unwrap()).collect();
        let mut left = 0;
        // All but one end by themselves; that one holds the claim.
        while left < CROWD - 1 {
            left = crowd.iter_mut().filter_map(|child| child.try_wait().unwrap()).count();
            std::thread::yield_now();
        }
        let pid = house.pid();
        for mut child in crowd {
            if child.id() == pid {
                house.signal(Signal::TERM);
                assert_eq!(wait(&mut child).code(), Some(0), "round {round}");
                continue;
            }
            let outcome = child.wait_with_output().unwrap();
            let stderr = String::from_utf8(outcome.stderr).unwrap();
            assert_eq!(outcome.status.code(), Some(1), "round {round}: {stderr}");
            assert!(
                stderr.contains("a daemon is already running") && stderr.contains("hint: "),
                "round {round}: {stderr}"
            );
        }
    }
}

#[test]
fn another_runtime_folder_leads_to_the_same_daemon() {
    let house = DaemonWorld::new();
    let pid = house.start();
    let elsewhere = |args: &[&str]| {
        let mut command = house.0.command(args);
        command.env_remove("XDG_RUNTIME_DIR");
        crate::world::Ran::of(command).code(0).out
    };
    assert!(elsewhere(&["daemon", "start"]).contains(&format!("pid {pid}")));
    assert!(elsewhere(&["daemon", "stop"]).contains(&format!("pid {pid}")));
    assert_eq!(house.holder(), None);
}

#[tokio::test]
async fn t_n7_a_daemon_is_found_after_a_logout() {
    let house = DaemonWorld::new();
    let pid = house.start();
    let session = house.sessions().open(house.session().name("kept")).await.unwrap();
    // The system does this when the user logs out.
    std::fs::remove_dir_all(house.0.path("run")).unwrap();
    assert_eq!(house.pid(), pid);
    assert_eq!(house.start(), pid);
    assert_eq!(house.status()["sessions"]["live"], 1);
    house.run(&["daemon", "stop"]).code(0);
    assert_eq!(house.holder(), None);
    drop(session);
}
