//! Names that are given, taken and freed, and saved sessions that are deleted.

use std::os::unix::ffi::OsStrExt;

use holdpoint_common::{Fact, NameError, Refused, SessionFact};
use holdpoint_session::store::Sqlite;
use holdpoint_session::testing::{Harness, reply};
use holdpoint_session::{OpenSession, SessionError};
use tempfile::TempDir;

#[tokio::test]
async fn m_b9_a_renamed_session_has_its_new_name_and_the_old_one_is_free() {
    let harness = Harness::start();
    let sessions = harness.sessions();
    let one = sessions.open(harness.session().name("one")).await.unwrap();
    let two = sessions.open(harness.session().name("two")).await.unwrap();
    one.prompt("fix the tests\nall of them").await.unwrap();
    one.settled().await.unwrap();
    assert_eq!(one.snapshot().title, "fix the tests");

    assert_eq!(one.rename("two").await, Err(SessionError::NameTaken { name: "two".into() }));
    assert_eq!(one.rename(" ").await, Err(SessionError::Refused(Refused::Name(NameError::Empty))));
    let long = "x".repeat(256);
    let too_long = NameError::TooLong { bytes: 256 };
    assert_eq!(one.rename(long).await, Err(SessionError::Refused(Refused::Name(too_long))));
    let control = SessionError::Refused(Refused::Name(NameError::Control));
    assert_eq!(one.rename("pay\nments").await, Err(control.clone()));
    assert_eq!(sessions.open(harness.session().name("pay\nments")).await.err(), Some(control));
    assert_eq!(one.snapshot().settings.name, "one", "a refused rename changes nothing");

    let mut events = harness.watch(&one).await;
    one.rename("payments").await.unwrap();
    let snapshot = one.snapshot();
    assert_eq!(
        (snapshot.settings.name.as_str(), snapshot.title.as_str()),
        ("payments", "payments")
    );
    let renamed = |fact: &Fact| matches!(fact, Fact::Session(SessionFact::Renamed { name, .. }) if name == "payments");
    events.until("the name", |event| event.fact().filter(|fact| renamed(fact)).map(|_| ())).await;
    assert_eq!(sessions.get("payments").await.unwrap().id(), one.id());
    one.prompt("another prompt").await.unwrap();
    one.settled().await.unwrap();
    assert_eq!(one.snapshot().title, "payments");

    two.rename("one").await.unwrap();
    assert_eq!(sessions.get("one").await.unwrap().id(), two.id());
    one.close().await.unwrap();
    two.rename("payments").await.unwrap();
    assert_eq!(
        sessions.get("payments").await.unwrap().id(),
        two.id(),
        "a name means the live session"
    );
    // A closed session can be renamed, and does not reserve its name.
    one.rename("late").await.unwrap();
    two.rename("late").await.unwrap();
}

#[tokio::test]
async fn a_name_is_given_to_one_of_many_concurrent_renames() {
    let harness = Harness::start();
    let mut open = Vec::new();
    for _ in 0..8 {
        open.push(harness.open().await);
    }
    let wanted = open.iter().map(|session| session.rename("wanted"));
    let given = futures_util::future::join_all(wanted).await;
    assert_eq!(given.iter().filter(|given| given.is_ok()).count(), 1, "{given:?}");
    let named = open.iter().filter(|session| session.snapshot().settings.name == "wanted").count();
    assert_eq!(named, 1);
}

/// The name of a rename is reserved, also while its session is opened.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn m_b9_a_session_renamed_while_it_is_opened_keeps_its_new_name() {
    let folder = TempDir::new().unwrap();
    let harness = Harness::with(|engine| {
        let limits =
            holdpoint_common::Limits { max_sessions: 2, ..holdpoint_common::Limits::default() };
        engine.limits(limits).store(Sqlite::open(&folder.path().join("sessions.sqlite")).unwrap())
    });
    let sessions = harness.sessions();
    let id = sessions.open(harness.session()).await.unwrap().id().clone();
    for round in 0..20 {
        // Unloads it.
        for _ in 0..2 {
            sessions.open(harness.session()).await.unwrap();
        }
        let name = format!("round {round}");
        let (opened, renamed) =
            tokio::join!(sessions.get(id.as_str()), sessions.rename(&id, name.clone()));
        opened.unwrap();
        renamed.unwrap();
        assert_eq!(sessions.look(&name).await.unwrap().settings.id, id);
        let taken = sessions.open(harness.session().name(name.clone())).await.err();
        assert!(matches!(taken, Some(SessionError::NameTaken { .. })), "{taken:?}");
    }
}

#[tokio::test]
async fn m_b9_a_reopened_session_with_a_taken_name_is_renamed() {
    let folder = TempDir::new().unwrap();
    let harness = Harness::with(|engine| engine.store(Sqlite::open(folder.path()).unwrap()));
    let sessions = harness.sessions();
    for long in ["dup".to_owned(), "ü".repeat(127)] {
        let first = sessions.open(harness.session().name(&long)).await.unwrap();
        first.close().await.unwrap();
        let second = sessions.open(harness.session().name(&long)).await.unwrap();
        let back = sessions.get(first.id().as_str()).await.unwrap();
        let name = back.snapshot().settings.name.clone();
        assert!(name.ends_with("-2") && name.len() <= holdpoint_common::MAX_SESSION_NAME, "{name}");
        assert_eq!(sessions.get(&long).await.unwrap().id(), second.id());
        assert_eq!(sessions.get(&name).await.unwrap().id(), first.id());
        let mut events = harness.watch(&back).await;
        let renamed = |fact: &Fact| matches!(fact, Fact::Session(SessionFact::Renamed { name: to, .. }) if *to == name);
        events
            .until("the name", |event| event.fact().filter(|fact| renamed(fact)).map(|_| ()))
            .await;
        let names: Vec<_> =
            sessions.list().await.unwrap().into_iter().map(|session| session.name).collect();
        let unique: std::collections::BTreeSet<_> = names.iter().collect();
        assert_eq!(unique.len(), names.len(), "{names:?}");
    }
}

#[tokio::test]
async fn a_name_outlives_the_process_and_a_fault() {
    let folder = TempDir::new().unwrap();
    let on = || Harness::with(|engine| engine.store(Sqlite::open(folder.path()).unwrap()));
    let id = {
        let harness = on();
        let session = harness.open().await;
        session.rename("before").await.unwrap();
        session.panic_now().await;
        session.rename("after").await.unwrap();
        assert_eq!(harness.sessions().get("after").await.unwrap().id(), session.id());
        session.id().clone()
    };
    let harness = on();
    let list = harness.sessions().list().await.unwrap();
    assert_eq!((list[0].name.as_str(), list[0].title.as_str()), ("after", "after"));
    assert_eq!(*harness.sessions().get("after").await.unwrap().id(), id);
}

#[tokio::test]
async fn a_saved_session_is_deleted_with_its_log_and_a_live_one_is_refused() {
    let folder = TempDir::new().unwrap();
    let on = || Harness::with(|engine| engine.store(Sqlite::open(folder.path()).unwrap()));
    let harness = on();
    let sessions = harness.sessions();
    harness.model.then(reply().text("a secret"));
    let gone = sessions.open(harness.session().name("gone")).await.unwrap();
    let stays = sessions.open(harness.session().name("stays")).await.unwrap();
    gone.prompt("say it").await.unwrap();
    gone.settled().await.unwrap();

    let live = SessionError::Live { session: gone.id().clone() };
    for what in ["gone", gone.id().as_str()] {
        assert_eq!(sessions.delete(what).await, Err(live.clone()));
    }
    let hidden = harness.model.then_live();
    gone.prompt("go on").await.unwrap();
    assert_eq!(
        sessions.delete("gone").await,
        Err(live),
        "a live session can't be deleted, busy or not"
    );
    drop(hidden);
    gone.close().await.unwrap();
    assert_eq!(sessions.delete("gone").await, Ok(()));
    let unknown = SessionError::UnknownSession { given: "gone".into() };
    assert_eq!(sessions.delete("gone").await, Err(unknown.clone()));
    assert_eq!(sessions.get("gone").await.err(), Some(unknown));
    let unknown = SessionError::UnknownSession { given: gone.id().to_string() };
    assert_eq!(gone.prompt("?").await, Err(unknown), "a remaining handle reports the deletion");
    let again = sessions.open(harness.session().name("gone")).await.unwrap();
    again.close().await.unwrap();

    let (stays, again) = (stays.id().clone(), again.id().clone());
    drop(harness);
    let harness = on();
    let mut left: Vec<_> =
        harness.sessions().list().await.unwrap().into_iter().map(|line| line.id).collect();
    left.sort();
    let mut expected = vec![stays, again.clone()];
    expected.sort();
    assert_eq!(left, expected);
    let begun = &again.as_str()[..9];
    let inexact = SessionError::Inexact { given: begun.to_owned(), session: again.clone() };
    assert_eq!(harness.sessions().delete(begun).await, Err(inexact), "a prefix deletes nothing");
    assert_eq!(harness.sessions().delete(again.as_str()).await, Ok(()));
    drop(harness);
    let db = rusqlite::Connection::open(folder.path().join("sessions.db")).unwrap();
    let count: u32 = db
        .query_row("SELECT count(*) FROM facts WHERE event LIKE '%a secret%'", [], |row| row.get(0))
        .unwrap();
    assert_eq!(count, 0);
}

#[tokio::test]
async fn t_u16_a_folder_whose_path_is_not_utf_8_is_refused() {
    let harness = Harness::start();
    let folder = harness.folder.path().join(std::ffi::OsStr::from_bytes(b"caf\xe9"));
    std::fs::create_dir(&folder).unwrap();
    let refused = harness.sessions().open(OpenSession::in_folder(folder)).await.err().unwrap();
    assert!(
        matches!(&refused, SessionError::Workspace { message, .. } if message.contains("UTF-8")),
        "{refused}"
    );
}

/// While a session has a folder's name, no number behind that name is given twice. Without such a
/// session, the numbers start again.
#[tokio::test]
async fn numbers_after_a_folder_name_restart_when_no_session_has_it() {
    let harness = Harness::start();
    let name = async || harness.open().await.snapshot().settings.name.clone();
    let close =
        async |name: &str| harness.sessions().get(name).await.unwrap().close().await.unwrap();
    let folder = name().await;
    for number in 2..5 {
        let numbered = name().await;
        assert_eq!(numbered, format!("{folder}-{number}"));
        close(&numbered).await;
    }
    close(&folder).await;
    assert_eq!(name().await, folder);
    assert_eq!(name().await, format!("{folder}-2"));
}
