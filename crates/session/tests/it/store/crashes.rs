//! A crash or a full disk at any call that changes files, while a store is made, migrated, salvaged
//! or written.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use holdpoint_common::Event;
use holdpoint_session::store::{NewLog, SessionStore, Sqlite, StoreError};
use holdpoint_tests::faults::{Fault, Faults};
use holdpoint_tools::testing::{again, part, rounds};
use rusqlite::Connection;
use tempfile::TempDir;

use super::damage::without_root;
use super::versions::OLDER;
use super::{id, opened, prompt, summary};

/// The folder of the store, for the process that meets the fault.
const STORE: &str = "HOLDPOINT_TEST_STORE";

/// How many facts the process writes, one commit each.
const FACTS: u64 = 20;

const ALL: [Fault; 4] = [Fault::Kill, Fault::Torn, Fault::FullOnce, Fault::Full];

/// The facts of the session, up to the number `last`.
fn facts(last: u64) -> Vec<Arc<Event>> {
    let fact = |seq| match seq {
        1 => opened(&id("s"), 1),
        _ => prompt(seq, &"words ".repeat(300)),
    };
    (1..=last).map(fact).collect()
}

/// Runs in the process that meets the fault: continues the session and prints the number of each
/// saved fact.
async fn write_on() -> Result<(), StoreError> {
    let folder = std::env::var_os(STORE).unwrap();
    let store = Sqlite::open(Path::new(&folder))?;
    let log = match store.own(&id("s")).await {
        Err(StoreError::Unknown { .. }) => store.create(&id("s"), NewLog::default()).await?,
        log => log?,
    };
    let last = log.read(0..u64::MAX).await?.len() as u64;
    for fact in facts(last + FACTS).split_off(usize::try_from(last).unwrap()) {
        let seq = fact.seq;
        log.append(seq - 1, vec![fact], summary(&id("s"), "t")).await?;
        println!("\nsaved {seq}");
    }
    drop(log);
    store.close().await;
    Ok(())
}

/// Makes each fault happen at each call of a process that writes to the store from `prepare`.
/// Afterwards the store opens, has every fact that was there or reported as saved, and accepts
/// more.
async fn at_every_call(prepare: impl AsyncFn(&Path)) {
    if part().is_some() {
        return write_on().await.unwrap_or_else(|error| println!("\nrefused: {error}"));
    }
    let Some(faults) = Faults::build() else {
        println!("skipped: no library can be preloaded here");
        return;
    };
    let step = rounds(12, 1);
    for (offset, fault) in ALL.into_iter().enumerate() {
        let mut reached = 0;
        for call in (1 + offset % step..).step_by(step) {
            let case = format!("{fault:?} at call {call}");
            let folder = TempDir::new().unwrap();
            prepare(folder.path()).await;
            let before = fs::read_dir(folder.path()).unwrap().count();
            let before = if before == 0 { 0 } else { FACTS };
            let mut process = again("writer");
            process.env(STORE, folder.path());
            faults.inject(&mut process, fault, call);
            let output = process.output().unwrap();
            let printed = String::from_utf8_lossy(&output.stdout);
            assert!(!printed.contains("panicked"), "{case}: {printed}");
            let mut saved = printed.lines().filter_map(|line| line.strip_prefix("saved "));
            let saved = saved.next_back().map_or(before, |seq| seq.parse().unwrap());

            let store =
                Sqlite::open(folder.path()).unwrap_or_else(|error| panic!("{case}: {error}"));
            let log = match store.own(&id("s")).await {
                Err(StoreError::Unknown { .. }) if saved == 0 => {
                    store.create(&id("s"), NewLog::default()).await.unwrap()
                }
                log => log.unwrap_or_else(|error| panic!("{case}: {error}")),
            };
            let read = log.read(0..u64::MAX).await.unwrap();
            let last = read.len() as u64;
            assert!(saved <= last, "{case}: {saved} facts were saved, {last} are there");
            assert_eq!(read, facts(last), "{case}");
            let next = facts(last + 1).split_off(read.len());
            log.append(last, next, summary(&id("s"), "t"))
                .await
                .unwrap_or_else(|error| panic!("{case}: {error}"));
            if !Faults::was_reached(&output) {
                assert!(output.status.success() && saved == before + FACTS, "{case}: {printed}");
                break;
            }
            reached += 1;
        }
        assert!(reached * step > 50, "{fault:?}: only {reached} calls");
    }
}

#[tokio::test]
async fn t_u17_a_store_opens_after_a_crash_at_any_call_of_its_first_start() {
    at_every_call(async |_| {}).await;
}

#[tokio::test]
async fn t_u17_a_store_opens_after_a_crash_at_any_call_of_a_migration() {
    at_every_call(async |folder: &Path| {
        let path = folder.join("sessions.db");
        let db = Connection::open(&path).unwrap();
        OLDER[0..1].iter().for_each(|step| db.execute_batch(step).unwrap());
        db.pragma_update(None, "user_version", 1).unwrap();
        let session = "INSERT INTO sessions (id, opened, last, reserved) VALUES ('s', 5, ?1, ?1)";
        db.execute(session, [FACTS.cast_signed()]).unwrap();
        for fact in facts(FACTS) {
            let text = serde_json::to_string(&fact).unwrap();
            let insert = "INSERT INTO facts (session, seq, event) VALUES ('s', ?1, ?2)";
            db.execute(insert, (fact.seq.cast_signed(), text)).unwrap();
        }
        drop(db);
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    })
    .await;
}

/// A store with a damaged index and with its newest facts in the write-ahead log.
async fn damaged(folder: &Path) {
    let made = TempDir::new().unwrap();
    let store = Sqlite::open(made.path()).unwrap();
    let log = store.create(&id("s"), NewLog::default()).await.unwrap();
    log.append(0, facts(FACTS / 2), summary(&id("s"), "t")).await.unwrap();
    let path = made.path().join("sessions.db");
    let db = Connection::open(&path).unwrap();
    db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    let newest = facts(FACTS).split_off(facts(FACTS / 2).len());
    log.append(FACTS / 2, newest, summary(&id("s"), "t")).await.unwrap();
    let database = without_root(&fs::read(&path).unwrap(), "sqlite_autoindex_sessions_1");
    let log = fs::read(made.path().join("sessions.db-wal")).unwrap();
    for (name, bytes) in [("sessions.db", database), ("sessions.db-wal", log)] {
        fs::write(folder.join(name), bytes).unwrap();
        fs::set_permissions(folder.join(name), Permissions::from_mode(0o600)).unwrap();
    }
}

#[tokio::test]
async fn t_u17_a_store_opens_after_a_crash_at_any_call_while_it_is_salvaged() {
    at_every_call(damaged).await;
}

/// A crash while the damaged database is moved aside: it has both names, and its write-ahead log
/// may have only the new one.
#[tokio::test]
async fn t_u17_a_log_that_was_moved_aside_before_a_crash_is_read() {
    for moved in [false, true] {
        let folder = TempDir::new().unwrap();
        damaged(folder.path()).await;
        let [path, kept_at] =
            ["sessions.db", "sessions.damaged-1.db"].map(|name| folder.path().join(name));
        fs::hard_link(&path, &kept_at).unwrap();
        if moved {
            fs::rename(
                folder.path().join("sessions.db-wal"),
                folder.path().join("sessions.damaged-1.db-wal"),
            )
            .unwrap();
        }
        let store = Sqlite::open(folder.path()).unwrap();
        assert!(!kept_at.exists());
        let log = store.own(&id("s")).await.unwrap();
        assert_eq!(log.read(0..u64::MAX).await.unwrap(), facts(FACTS), "moved: {moved}");
        assert_eq!(store.salvaged()[0].whole, [id("s")]);
    }
}
