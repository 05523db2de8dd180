//! Several processes that write at once.

use std::io::BufRead;
use std::path::Path;
use std::process::Stdio;

use holdpoint_session::store::{NewLog, SessionStore, Sqlite, StoreError};
use holdpoint_tests::mounts::Mounted;
use holdpoint_tools::testing::{again, part};
use tempfile::TempDir;

use super::{id, opened, prompt, summary};

/// The folder of their store.
const STORE: &str = "HOLDPOINT_TEST_STORE";

/// How many processes write, and how many writes each makes.
const WRITERS: u64 = 8;
const WRITES: u64 = 200;

/// How often a process tries a write; each try lasts as long as the store's busy timeout.
const TRIES: usize = 12;

#[tokio::test]
async fn t_u10_eight_processes_write_and_not_one_write_is_lost() {
    if let Some(name) = part() {
        return write(&name).await;
    }
    let folder = TempDir::new().unwrap();
    drop(Sqlite::open(folder.path()).unwrap());
    let writers: Vec<_> = (0..WRITERS)
        .map(|n| {
            let mut writer = again(&format!("w{n}"));
            writer.env(STORE, folder.path()).stdout(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    for writer in writers {
        let output = writer.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        assert!(output.stdout.lines().any(|line| line.unwrap() == format!("wrote {WRITES}")));
    }
    let store = Sqlite::open(folder.path()).unwrap();
    let mut all = 0;
    for n in 0..WRITERS {
        let log = store.open(&id(&format!("w{n}"))).await.unwrap();
        let facts = log.read(2..u64::MAX).await.unwrap();
        let expected: Vec<_> =
            (2..2 + WRITES).map(|seq| prompt(seq, &format!("w{n} {seq}"))).collect();
        assert_eq!(facts, expected);
        all += facts.len();
    }
    assert_eq!(all, 1_600);
}

#[tokio::test]
async fn t_u10_a_process_that_can_not_write_exits_with_an_error() {
    if let Some(name) = part() {
        return write(&name).await;
    }
    let folder = TempDir::new().unwrap();
    drop(Sqlite::open(folder.path()).unwrap());
    let Some(mounted) = Mounted::read_only(folder.path()) else { return };
    let output = again("w0").env(STORE, folder.path()).output().unwrap();
    drop(mounted);
    let (printed, status) = (String::from_utf8_lossy(&output.stdout), output.status);
    assert!(!status.success() && !printed.contains("wrote"), "{status}: {printed}");
    assert!(Sqlite::open(folder.path()).unwrap().list().await.unwrap().is_empty());
}

/// The work of each process.
async fn write(name: &str) {
    let session = id(name);
    let store = Sqlite::open(Path::new(&std::env::var_os(STORE).unwrap())).unwrap();
    let log = write_with_retries(async || store.create(&session, NewLog::default()).await).await;
    write_with_retries(async || {
        log.append(0, vec![opened(&session, 1)], summary(&session, "")).await
    })
    .await;
    for seq in 2..2 + WRITES {
        let fact = prompt(seq, &format!("{name} {seq}"));
        write_with_retries(async || {
            log.append(seq - 1, vec![fact.clone()], summary(&session, "")).await
        })
        .await;
    }
    println!("\nwrote {WRITES}");
}

/// Writes, and tries again when others had the store for too long: on a slow disk, processes are
/// not served in turn.
async fn write_with_retries<T>(write: impl AsyncFn() -> Result<T, StoreError>) -> T {
    for _ in 0..TRIES {
        match write().await {
            Ok(written) => return written,
            Err(error) => assert!(error.to_string().contains("locked"), "{error}"),
        }
    }
    panic!("this store never gets the lock");
}
