//! There is one daemon, however many are started.

use std::collections::BTreeSet;
use std::process::Child;

use rustix::process::Signal;

use super::client::at_once;
use super::house::House;
use crate::world::{rounds, wait};

/// How many start at once.
const CROWD: usize = 50;

#[test]
fn t_n1_fifty_commands_at_once_start_one_daemon_and_all_are_served() {
    for round in 0..rounds(10, 100) {
        let house = House::new();
        let outcomes = at_once(CROWD, |_| house.0.command(&["daemon", "start"]).output().unwrap());
        let mut told = BTreeSet::new();
        for outcome in outcomes {
            assert!(outcome.status.success(), "round {round}: {outcome:?}");
            told.insert(outcome.stdout);
        }
        assert_eq!(told.len(), 1, "round {round}: all are told of the same daemon");
        assert_eq!(house.programs(), [house.pid()], "round {round}: and it is the only one");
    }
}

#[test]
fn t_n1_fifty_daemons_at_once_are_one_and_the_others_say_why() {
    for round in 0..rounds(2, 20) {
        let house = House::new();
        let mut crowd: Vec<Child> = (0..CROWD).map(|_| house.0.command(&["daemon"]).spawn().unwrap()).collect();
        let mut left = 0;
        // All but one end by themselves; the one is what holds the claim then.
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
            let said = String::from_utf8(outcome.stderr).unwrap();
            assert_eq!(outcome.status.code(), Some(1), "round {round}: {said}");
            assert!(said.contains("a daemon runs already") && said.contains("hint: "), "round {round}: {said}");
        }
    }
}

#[test]
fn another_runtime_folder_leads_to_the_same_daemon() {
    let house = House::new();
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
async fn t_n7_after_a_logout_it_is_still_found() {
    let house = House::new();
    let pid = house.start();
    let session = house.sessions().open(house.session().name("kept")).await.unwrap();
    // As the system does when its user has left.
    std::fs::remove_dir_all(house.0.path("run")).unwrap();
    assert_eq!(house.pid(), pid);
    assert_eq!(house.start(), pid);
    assert_eq!(house.status()["sessions"]["live"], 1);
    house.run(&["daemon", "stop"]).code(0);
    assert_eq!(house.holder(), None);
    drop(session);
}
