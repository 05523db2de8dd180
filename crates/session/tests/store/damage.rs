//! Damage: what can be read is read, and what can't is said.

use holdpoint_common::Delta;
use holdpoint_session::store::{SessionStore, Sqlite};
use rusqlite::Connection;
use tempfile::TempDir;

use super::{id, opened, prompt, summary};

#[tokio::test]
async fn t_u5_garbage_in_one_row_costs_that_row_alone_and_is_a_declared_gap() {
    let folder = TempDir::new().unwrap();
    let store = Sqlite::open(folder.path()).unwrap();
    for name in ["good", "bad"] {
        let session = id(name);
        let log = store.create(&session).await.unwrap();
        let facts = (2..6).map(|seq| prompt(seq, "words"));
        let facts = std::iter::once(opened(&session, 1)).chain(facts).collect();
        log.append(0, facts, summary(&session, name)).await.unwrap();
    }
    let db = Connection::open(folder.path().join("sessions.db")).unwrap();
    db.execute("UPDATE facts SET event = '{\"garbage' WHERE session = 'bad' AND seq = 3", []).unwrap();
    let bad = store.open(&id("bad")).await.unwrap().read(0..9, None).await.unwrap();
    assert_eq!(bad.iter().map(|event| event.seq).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    assert_eq!(bad[2].delta(), Some(&Delta::Gap { from: 3, to: 3 }));
    let good = store.open(&id("good")).await.unwrap().read(0..9, None).await.unwrap();
    assert!(good.iter().all(|event| event.fact().is_some()));
    assert_eq!(store.list().await.unwrap().len(), 2);
    // Nothing was rewritten.
    let left: String =
        db.query_row("SELECT event FROM facts WHERE session = 'bad' AND seq = 3", [], |row| row.get(0)).unwrap();
    assert_eq!(left, "{\"garbage");
}
