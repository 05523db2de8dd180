//! Damage to a store: readable data is read, and lost data is reported.

use std::fs::{self, Permissions};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::sync::Arc;

use holdpoint_common::{Delta, Event, SessionId};
use holdpoint_session::store::{NewLog, SavedPage, SessionStore, Sqlite, StoreError};
use rusqlite::Connection;
use tempfile::TempDir;

use super::{id, opened, prompt, summary};

#[tokio::test]
async fn t_u5_garbage_in_one_row_costs_that_row_alone_and_is_a_declared_gap() {
    let folder = TempDir::new().unwrap();
    let store = Sqlite::open(folder.path()).unwrap();
    for name in ["good", "bad"] {
        let session = id(name);
        let log = store.create(&session, NewLog::default()).await.unwrap();
        let facts = (2..6).map(|seq| prompt(seq, "words"));
        let facts = std::iter::once(opened(&session, 1)).chain(facts).collect();
        log.append(0, facts, summary(&session, name)).await.unwrap();
    }
    let db = Connection::open(folder.path().join("sessions.db")).unwrap();
    db.execute("UPDATE facts SET event = '{\"garbage' WHERE session = 'bad' AND seq = 3", [])
        .unwrap();
    let bad = store.open(&id("bad")).await.unwrap().read(0..9).await.unwrap();
    assert_eq!(bad.iter().map(|event| event.seq).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    assert_eq!(bad[2].delta(), Some(&Delta::Gap { from: 3, to: 3 }));
    let good = store.open(&id("good")).await.unwrap().read(0..9).await.unwrap();
    assert!(good.iter().all(|event| event.fact().is_some()));
    assert_eq!(store.list().await.unwrap().len(), 2);
    // The damaged row was not rewritten.
    let left: String = db
        .query_row("SELECT event FROM facts WHERE session = 'bad' AND seq = 3", [], |row| {
            row.get(0)
        })
        .unwrap();
    assert_eq!(left, "{\"garbage");
}

/// A lost row is noticed by the reader of its page, even at the start or the end of the page.
#[tokio::test]
async fn t_u5_a_lost_row_is_a_declared_gap_at_the_edge_of_a_page_too() {
    let folder = TempDir::new().unwrap();
    let store = Sqlite::open(folder.path()).unwrap();
    let session = id("one");
    let log = store.create(&session, NewLog::default()).await.unwrap();
    let facts = (2..20).map(|seq| prompt(seq, "words"));
    log.append(
        0,
        std::iter::once(opened(&session, 1)).chain(facts).collect(),
        summary(&session, ""),
    )
    .await
    .unwrap();
    let db = Connection::open(folder.path().join("sessions.db")).unwrap();
    db.execute("DELETE FROM facts WHERE seq IN (9, 10, 19)", []).unwrap();
    for page in 1..20 {
        let mut missed = Vec::new();
        for from in (0..20).step_by(page) {
            let to = (from + page as u64).min(20);
            for event in log.read(from..to).await.unwrap() {
                if let Some(Delta::Gap { from, to }) = event.delta() {
                    missed.extend(*from..=*to);
                }
            }
        }
        let (mut next, mut first) = (Some(0), Vec::new());
        while let Some(from) = next {
            let read = log.page(from..u64::MAX, page).await.unwrap();
            for event in &read.facts {
                if let Some(Delta::Gap { from, to }) = event.delta() {
                    first.extend(*from..=*to);
                }
            }
            next = read.next;
        }
        assert_eq!(first, [9, 10, 19], "pages of {page} facts");
        assert_eq!(missed, [9, 10, 19], "ranges of {page} numbers");
    }
}

/// The contents of the store before it is damaged.
struct Before {
    folder: TempDir,
    sessions: Vec<(SessionId, Vec<Arc<Event>>)>,
    bytes: Vec<u8>,
}

impl Before {
    async fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let store = Sqlite::open(folder.path()).unwrap();
        let mut sessions = Vec::new();
        for n in 0..6 {
            let session = id(&format!("s{n}"));
            let log = store.create(&session, NewLog::default()).await.unwrap();
            // Of all sizes: rows that share a page, and rows of many pages.
            let facts = (2..40).map(|seq| {
                prompt(seq, &"words ".repeat(usize::try_from(seq * seq % 1_500).unwrap()))
            });
            let facts: Vec<_> = std::iter::once(opened(&session, 1)).chain(facts).collect();
            log.append(0, facts.clone(), summary(&session, "t")).await.unwrap();
            sessions.push((session, facts));
        }
        let path = folder.path().join("sessions.db");
        let db = Connection::open(&path).unwrap();
        db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
        drop(db);
        let bytes = fs::read(path).unwrap();
        Self { folder, sessions, bytes }
    }

    /// Opens the store on a database of these bytes and reads everything. Returns how many sessions
    /// are whole.
    async fn open_damaged(&self, name: &str, bytes: &[u8]) -> usize {
        let folder = self.folder.path().join(name.replace(' ', "-"));
        fs::DirBuilder::new().mode(0o700).create(&folder).unwrap();
        fs::write(folder.join("sessions.db"), bytes).unwrap();
        fs::set_permissions(folder.join("sessions.db"), Permissions::from_mode(0o600)).unwrap();
        let store = match Sqlite::open(&folder) {
            Ok(store) => store,
            // A flipped bit can look like a later version; then the store is left alone.
            Err(StoreError::Newer { .. }) => return 0,
            Err(error) => panic!("{name}: {error}"),
        };
        let listed = store.list().await.unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut whole = 0;
        for (session, facts) in &self.sessions {
            let read = match store.open(session).await {
                Ok(log) => log.read(0..u64::MAX).await,
                Err(error) => Err(error),
            };
            let reported =
                store.salvaged().iter().any(|salvaged| !salvaged.whole.contains(session));
            let mut lost = !listed.iter().any(|saved| saved.summary.id == *session);
            match read {
                Ok(read) => {
                    let has_gap = read.iter().any(|event| event.delta().is_some());
                    let kept: Vec<_> = read.iter().filter(|event| event.fact().is_some()).collect();
                    // Every fact that is read was written.
                    for fact in &kept {
                        assert!(
                            facts.contains(fact),
                            "{name}: {session} has a fact that was never written: {fact:?}"
                        );
                    }
                    lost |= kept.len() != facts.len() && !has_gap;
                    whole += usize::from(kept.len() == facts.len());
                }
                Err(_) => lost = true,
            }
            assert!(!lost || reported, "{name}: {session} lost facts without a gap");
        }
        // The store accepts a new session.
        let fresh = id("fresh");
        let log = store
            .create(&fresh, NewLog::default())
            .await
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        log.append(0, vec![opened(&fresh, 1)], summary(&fresh, "")).await.unwrap();
        for salvaged in store.salvaged() {
            assert!(salvaged.kept_at.exists(), "{name}: the damaged database is kept");
        }
        fs::remove_dir_all(folder).unwrap();
        whole
    }
}

/// The page size of a database.
const PAGE: usize = 4_096;

/// A store on a database of these bytes.
fn store_of(bytes: &[u8]) -> (TempDir, Sqlite) {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("sessions.db"), bytes).unwrap();
    fs::set_permissions(folder.path().join("sessions.db"), Permissions::from_mode(0o600)).unwrap();
    let store = Sqlite::open(folder.path()).unwrap();
    (folder, store)
}

/// The first page of a table or index.
fn root_of(bytes: &[u8], name: &str) -> usize {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("copy.db"), bytes).unwrap();
    let db = Connection::open(folder.path().join("copy.db")).unwrap();
    let root = "SELECT rootpage FROM sqlite_schema WHERE name = ?1";
    db.query_row(root, [name], |row| row.get::<_, i64>(0)).unwrap().try_into().unwrap()
}

/// A database in which the first page of a table or index is overwritten.
pub(super) fn without_root(bytes: &[u8], name: &str) -> Vec<u8> {
    let (root, mut bytes) = (root_of(bytes, name), bytes.to_vec());
    bytes[(root - 1) * PAGE..root * PAGE].fill(0xa5);
    bytes
}

/// The readable facts of a session.
async fn facts_of(store: &Sqlite, session: &SessionId) -> Vec<Arc<Event>> {
    let read = store.open(session).await.unwrap().read(0..u64::MAX).await.unwrap();
    read.into_iter().filter(|event| event.fact().is_some()).collect()
}

/// By default, SQLite reads nothing of a database that is shorter than its header says.
#[tokio::test]
async fn t_u3_a_store_that_lost_pages_keeps_the_data_of_the_others() {
    let before = Before::new().await;
    let all: usize = before.sessions.iter().map(|(_, facts)| facts.len()).sum();
    for pages in 1..4 {
        let (_folder, store) = store_of(&before.bytes[..before.bytes.len() - pages * PAGE]);
        assert_eq!(
            store.list().await.unwrap().len(),
            before.sessions.len(),
            "{pages} pages are cut"
        );
        let mut kept = 0;
        for (session, facts) in &before.sessions {
            let read = facts_of(&store, session).await;
            assert!(read.iter().all(|fact| facts.contains(fact)));
            kept += read.len();
        }
        assert!(kept > all / 2, "{pages} pages are cut: {kept} of {all} facts are kept");
        assert!(
            !store.salvaged()[0].whole.is_empty(),
            "{pages} pages are cut: {:?}",
            store.salvaged()
        );
    }
}

/// Without the list, a session's facts show by themselves whether they are complete.
#[tokio::test]
async fn t_u3_sessions_are_relisted_from_their_facts_and_not_reported_as_damaged() {
    let before = Before::new().await;
    let bytes = without_root(&before.bytes, "sessions");
    let (_folder, store) = store_of(&bytes);
    assert_eq!(store.list().await.unwrap().len(), before.sessions.len());
    for (session, facts) in &before.sessions {
        assert_eq!(facts_of(&store, session).await, *facts);
    }
    let ids: Vec<_> = before.sessions.iter().map(|(session, _)| session.clone()).collect();
    let salvaged = &store.salvaged()[0];
    assert_eq!((&salvaged.relisted, &salvaged.damaged), (&ids, &vec![]), "{salvaged:?}");
}

/// Sessions are found by an index, or without it if it is damaged.
#[tokio::test]
async fn t_u3_sessions_are_whole_without_the_index_of_their_list() {
    let before = Before::new().await;
    let (_folder, store) = store_of(&without_root(&before.bytes, "sqlite_autoindex_sessions_1"));
    // This look-up finds the damage.
    let _ = store.open(&before.sessions[0].0).await.unwrap();
    let ids: Vec<_> = before.sessions.iter().map(|(session, _)| session.clone()).collect();
    assert_eq!(store.salvaged()[0].whole, ids);
}

/// Damage of the list's index can hide a session without an error of SQLite.
#[tokio::test]
async fn t_u3_an_index_of_the_list_that_lacks_a_session_is_made_again() {
    let before = Before::new().await;
    let root = root_of(&before.bytes, "sessions_by_age");
    let mut bytes = before.bytes.clone();
    // The number of cells in the page's header.
    bytes[(root - 1) * PAGE + 4] -= 1;
    let (_folder, store) = store_of(&bytes);
    let page = || store.list_page(SavedPage { after: None, limit: 9 });
    assert_eq!(page().await.unwrap().len(), before.sessions.len() - 1);
    assert_eq!(store.list().await.unwrap().len(), before.sessions.len());
    // A later write is saved after the index was made again.
    store.create(&id("later"), NewLog::default()).await.unwrap();
    assert_eq!(page().await.unwrap().len(), before.sessions.len());
    assert_eq!(store.salvaged(), []);
}

#[tokio::test]
async fn t_u3_sessions_are_whole_without_the_index_of_their_order() {
    let before = Before::new().await;
    let (_folder, store) = store_of(&without_root(&before.bytes, "sessions_by_age"));
    assert_eq!(store.list().await.unwrap().len(), before.sessions.len());
    let page = SavedPage { after: None, limit: 9 };
    assert_eq!(store.list_page(page).await.unwrap().len(), before.sessions.len());
    let ids: Vec<_> = before.sessions.iter().map(|(session, _)| session.clone()).collect();
    assert_eq!(store.salvaged()[0].whole, ids);
}

/// A damaged tree can return a row twice.
#[tokio::test]
async fn a_row_that_is_found_twice_damages_its_session_alone() {
    let before = Before::new().await;
    let mut bytes = without_root(&before.bytes, "sessions");
    // A leaf of an index whose second cell becomes the first once more.
    let has_prompts = |page: &[u8]| page.windows(14).any(|text| text == b"promptAccepted");
    let leaf = bytes
        .chunks_exact_mut(PAGE)
        .find(|page| page[0] == 0x0a && page[4] > 1 && has_prompts(page))
        .unwrap();
    leaf.copy_within(8..10, 10);
    let (_folder, store) = store_of(&bytes);
    assert_eq!(store.list().await.unwrap().len(), before.sessions.len());
    let salvaged = &store.salvaged()[0];
    assert_eq!((salvaged.damaged.len(), salvaged.relisted.len()), (1, 5), "{salvaged:?}");
    for (session, facts) in &before.sessions {
        let read = facts_of(&store, session).await;
        let lost = usize::from(salvaged.damaged.contains(session));
        assert_eq!(read.len(), facts.len() - lost, "{session}");
    }
}

/// Without the list, too, a session that lacks a fact is damaged.
#[tokio::test]
async fn t_u3_sessions_whose_list_is_lost_are_damaged_where_facts_are_missing() {
    let before = Before::new().await;
    let bytes = without_root(&before.bytes, "sessions");
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("copy.db"), &bytes).unwrap();
    let db = Connection::open(folder.path().join("copy.db")).unwrap();
    db.execute("DELETE FROM facts WHERE session = 's1' AND seq = 1", []).unwrap();
    db.execute("DELETE FROM facts WHERE session = 's2' AND seq = 9", []).unwrap();
    db.execute("UPDATE facts SET event = '{bad' WHERE session = 's3' AND seq = 1", []).unwrap();
    db.close().unwrap();
    let (_folder, store) = store_of(&fs::read(folder.path().join("copy.db")).unwrap());
    assert!(!store.list().await.unwrap().is_empty());
    let salvaged = &store.salvaged()[0];
    assert_eq!(salvaged.damaged, ["s1", "s2", "s3"].map(id), "{salvaged:?}");
    assert_eq!(salvaged.relisted, ["s0", "s4", "s5"].map(id), "{salvaged:?}");
}

/// Without their facts, sessions are listed by their summaries.
#[tokio::test]
async fn t_u3_sessions_without_facts_are_listed_with_a_gap() {
    let before = Before::new().await;
    let bytes = without_root(&before.bytes, "facts");
    let (_folder, store) = store_of(&bytes);
    // Damage in a part that was not read yet is found when it is read.
    let _ = store.open(&before.sessions[0].0).await.unwrap().page(0..u64::MAX, 1).await;
    let listed = store.list().await.unwrap();
    assert_eq!(listed.len(), before.sessions.len());
    assert!(listed.iter().all(|saved| saved.summary.title == "t"));
    for (session, facts) in &before.sessions {
        let read = store.open(session).await.unwrap().read(0..u64::MAX).await.unwrap();
        let lost = Delta::Gap { from: 1, to: facts.last().unwrap().seq };
        assert_eq!(read.iter().map(|event| event.delta()).collect::<Vec<_>>(), [Some(&lost)]);
    }
    let ids: Vec<_> = before.sessions.iter().map(|(session, _)| session.clone()).collect();
    assert_eq!(store.salvaged()[0].damaged, ids);
}

fn rounds() -> u64 {
    holdpoint_tools::testing::rounds(100, 2_000)
}

#[tokio::test]
async fn t_u3_a_truncated_store_opens_and_reports_its_losses() {
    let before = Before::new().await;
    let mut random = fastrand::Rng::with_seed(3);
    for round in 0..rounds() {
        // An empty file can't be distinguished from a new store.
        let length = match round {
            0 => 1,
            1 => 50,
            _ => before.bytes.len() - random.usize(1..8 * 4_096),
        };
        let whole = before.open_damaged(&format!("cut {round}"), &before.bytes[..length]).await;
        // The last few pages belong to the sessions that were written last.
        assert!(
            round < 2 || whole >= 3,
            "cut {round}, to {length} bytes: {whole} sessions are whole"
        );
    }
}

/// A store as SIGKILL leaves it: the newest facts are in the write-ahead log.
struct Killed {
    database: Vec<u8>,
    log: Vec<u8>,
    session: SessionId,
    facts: Vec<Arc<Event>>,
    /// The length of the log when each fact was acknowledged; 0 for facts in the database.
    saved: Vec<usize>,
}

impl Killed {
    async fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let store = Sqlite::open(folder.path()).unwrap();
        let (path, beside) =
            (folder.path().join("sessions.db"), folder.path().join("sessions.db-wal"));
        let session = id("killed");
        let log = store.create(&session, NewLog::default()).await.unwrap();
        let (mut facts, mut saved) = (vec![opened(&session, 1)], vec![0]);
        log.append(0, facts.clone(), summary(&session, "t")).await.unwrap();
        for seq in 2..40 {
            if seq == 10 {
                let db = Connection::open(&path).unwrap();
                db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
                saved.fill(0);
            }
            let fact = prompt(seq, &"words ".repeat(usize::try_from(seq * seq % 1_500).unwrap()));
            log.append(seq - 1, vec![Arc::clone(&fact)], summary(&session, "t")).await.unwrap();
            facts.push(fact);
            saved.push(fs::metadata(&beside).unwrap().len().try_into().unwrap());
        }
        // Read while the store is open, because closing it would merge the two files.
        Self {
            database: fs::read(path).unwrap(),
            log: fs::read(beside).unwrap(),
            session,
            facts,
            saved,
        }
    }

    /// Opens the store with these bytes as its write-ahead log, which is damaged from `at` on.
    async fn open_damaged(&self, name: &str, log: &[u8], at: usize) {
        let folder = TempDir::new().unwrap();
        for (file, bytes) in [("sessions.db", &*self.database), ("sessions.db-wal", log)] {
            fs::write(folder.path().join(file), bytes).unwrap();
            fs::set_permissions(folder.path().join(file), Permissions::from_mode(0o600)).unwrap();
        }
        let store = Sqlite::open(folder.path()).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(store.list().await.unwrap().len(), 1, "{name}");
        let log = store.own(&self.session).await.unwrap();
        let kept = log.read(0..u64::MAX).await.unwrap();
        assert!(self.facts.starts_with(&kept), "{name}: the kept facts are the first ones");
        // Without its header, the rest of the log can't be read.
        let sound =
            self.saved.iter().filter(|saved| **saved <= if at < WAL_HEAD { 0 } else { at }).count();
        assert!(
            kept.len() >= sound,
            "{name}: {} of {sound} facts before the damage are kept",
            kept.len()
        );
        // The session accepts another fact.
        let next = prompt(kept.last().unwrap().seq + 1, "next");
        log.append(next.seq - 1, vec![next.clone()], summary(&self.session, "t")).await.unwrap();
        assert_eq!(log.read(next.seq..u64::MAX).await.unwrap(), [next], "{name}");
    }
}

/// The bytes of a log before its first page.
const WAL_HEAD: usize = 32;

#[tokio::test]
async fn t_u3_a_damaged_write_ahead_log_loses_only_later_facts() {
    let killed = Killed::new().await;
    assert!(
        killed.saved.iter().filter(|saved| **saved > 0).count() > 20,
        "the log has facts: {:?}",
        killed.saved
    );
    killed.open_damaged("whole", &killed.log, killed.log.len()).await;
    let mut random = fastrand::Rng::with_seed(5);
    for round in 0..rounds() {
        let at = if round == 0 { 0 } else { random.usize(..killed.log.len()) };
        killed.open_damaged(&format!("cut {round} at {at}"), &killed.log[..at], at).await;
        let mut flipped = killed.log.clone();
        flipped[at] ^= 1 << random.u8(..8);
        killed.open_damaged(&format!("flip {round} at {at}"), &flipped, at).await;
    }
}

#[tokio::test]
async fn t_u3_a_database_that_gives_a_wrong_version_is_salvaged() {
    let before = Before::new().await;
    // The version is a number of four bytes in the header, big-endian.
    let (from, to) = (60, 64);
    let newest = before.bytes[to - 1].into();
    for version in (0..newest).chain([-1, i32::MIN]) {
        let mut bytes = before.bytes.clone();
        bytes[from..to].copy_from_slice(&version.to_be_bytes());
        assert_eq!(before.open_damaged(&format!("version {version}"), &bytes).await, 6);
    }
}

/// A database in which this column of the list has no value in any row. A flipped bit in the head of
/// a row can do that.
fn without_values(bytes: &[u8], column: &str) -> Vec<u8> {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("copy.db");
    fs::write(&path, bytes).unwrap();
    // The table takes such a row only while its schema allows it.
    let set_schema = |from: &str, to: &str| {
        let db = Connection::open(&path).unwrap();
        let set = "UPDATE sqlite_schema SET sql = replace(sql, ?1, ?2) WHERE name = 'sessions'";
        db.pragma_update(None, "writable_schema", "ON").unwrap();
        assert_eq!(db.execute(set, [from, to]).unwrap(), 1);
    };
    let (strict, loose) = (format!("{column} INTEGER NOT NULL"), format!("{column} INTEGER"));
    set_schema(&strict, &loose);
    let clear = format!("UPDATE sessions SET {column} = NULL");
    assert_eq!(Connection::open(&path).unwrap().execute(&clear, []).unwrap(), 6);
    set_schema(&loose, &strict);
    fs::read(&path).unwrap()
}

#[tokio::test]
async fn t_u3_rows_with_values_of_another_type_are_salvaged() {
    let before = Before::new().await;
    for column in ["opened", "last", "reserved"] {
        let bytes = without_values(&before.bytes, column);
        let whole = before.open_damaged(&format!("without {column}"), &bytes).await;
        assert_eq!(whole, 6, "{column}");
    }
}

#[tokio::test]
async fn t_u3_flipped_bits_are_never_taken_for_facts() {
    let before = Before::new().await;
    let mut random = fastrand::Rng::with_seed(4);
    for round in 0..rounds() {
        let mut bytes = before.bytes.clone();
        for _ in 0..random.usize(1..30) {
            let at = random.usize(..bytes.len());
            bytes[at] ^= 1 << random.u8(..8);
        }
        before.open_damaged(&format!("flip {round}"), &bytes).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn t_u3_damage_that_many_find_at_once_is_salvaged_once() {
    let before = Before::new().await;
    let path = before.folder.path().join("sessions.db");
    let store = Sqlite::open(before.folder.path()).unwrap();
    // The file changes under an open store, which has to read it again.
    let mut bytes = before.bytes.clone();
    let middle = bytes.len() / 2 / 4_096 * 4_096;
    bytes[4_096..middle].fill(0x5a);
    fs::write(&path, &bytes).unwrap();
    let reads = (0..16).map(|n| {
        let (store, session) = (store.clone(), before.sessions[n % 6].0.clone());
        tokio::spawn(async move {
            let _ = store.list().await;
            if let Ok(log) = store.open(&session).await {
                let _ = log.read(0..u64::MAX).await;
            }
        })
    });
    futures_util::future::join_all(reads).await;
    assert_eq!(store.salvaged().len(), 1);
}
