//! Engines of several machines over one PostgreSQL database.

mod ended_lease;

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::join_all;
use holdpoint_common::api::SessionNews;
use holdpoint_common::{
    Away, Body, Certificates, Delta, Fact, OpenSession, Outcome, PromptFact, PromptId,
    SessionError, SessionId, SessionStatus, SessionSummary, Timestamp, TurnFact, TurnId,
};
use holdpoint_session::store::{
    Copied, Memory, NewLog, Page, Postgres, SessionLog, SessionStore, Sqlite, copy_session,
};
use holdpoint_session::testing::{
    Harness, LogLayer, Recorder, StoreLayer, Stored, reply, within_patience,
};
use holdpoint_session::{AttachFrom, ClientEnd, SessionHandle, Watch};
use holdpoint_tests::postgres_server::PostgresServer;
use holdpoint_tools::testing::rounds;

use crate::store::{event, id, opened, prompt, summary};

fn start() -> PostgresServer {
    PostgresServer::start(Path::new(env!("CARGO_TARGET_TMPDIR")))
}

/// An engine of the machine with this name.
async fn machine(url: &str, name: &str) -> Harness {
    let store = Postgres::connect(url, &Certificates::default(), &crate::store::machine(name))
        .await
        .unwrap();
    Harness::with(|engine| engine.store(store))
}

/// Waits for the first of these news of a session.
async fn news(watch: &mut Watch, wanted: fn(&SessionSummary) -> bool) -> SessionSummary {
    within_patience("news of the session", async {
        loop {
            match watch.next().await {
                Some(SessionNews::Session(summary)) if wanted(&summary) => return *summary,
                Some(_) => {}
                None => panic!("the watch has ended"),
            }
        }
    })
    .await
}

/// Lets the lease of a machine end, as if it had not reached the server for long.
fn end_lease(server: &PostgresServer, name: &str) {
    let statement = format!(
        "UPDATE holdpoint.machines SET until = now(), incarnation = incarnation + 1 \
         WHERE name = '{name}'"
    );
    server.query("fleet", &statement);
}

#[tokio::test]
async fn a_machine_that_starts_leaves_the_running_sessions_of_others_alone() {
    let server = start();
    let url = server.database("fleet");
    let one = machine(&url, "m1").await;
    let live = one.model.then_live();
    let session = one.open().await;
    let mut events = one.watch(&session).await;
    session.prompt("go").await.unwrap();
    events.step_started().await;

    let two = machine(&url, "m2").await;
    let id = session.id().as_str();
    let elsewhere = SessionError::NotOwner { session: session.id().clone(), owner: "m1".into() };
    // Waits until unfinished sessions were looked at.
    assert_eq!(two.sessions().get(id).await.err(), Some(elsewhere));
    assert_eq!(two.sessions().look(id).await.unwrap().status, SessionStatus::Running);
    assert!(live.text("still here"));
    drop(live);
    assert_eq!(events.turn_finished().await.outcome, Outcome::Done);
}

#[tokio::test]
async fn m_i13_a_session_of_a_machine_without_a_lease_is_read_on_another_and_continues_at_home() {
    let server = start();
    let url = server.database("fleet");
    let one = machine(&url, "m1").await;
    let live = one.model.then_live();
    let session = one.open().await;
    let id = session.id().clone();
    let mut events = one.watch(&session).await;
    session.prompt("first").await.unwrap();
    events.step_started().await;
    let seen = events.events().last().unwrap().seq;

    end_lease(&server, "m1");
    let two = machine(&url, "m2").await;
    let away = SessionError::HomeAway { session: id.clone(), home: "m1".into() };
    // Waits until unfinished sessions were looked at.
    assert_eq!(two.sessions().get(id.as_str()).await.err(), Some(away));
    // The turn was cut when the second machine started.
    let found = two.sessions().look(id.as_str()).await.unwrap();
    assert_eq!(found.last_turn.as_ref().map(|turn| turn.outcome), Some(Outcome::Interrupted));
    let listed = two.sessions().list().await.unwrap();
    assert_eq!((listed[0].machine.as_deref(), listed[0].live), (Some("m1"), false));

    // The first program learns it with its next write, and ends its work.
    live.text("late");
    drop(live);
    while within_patience("the end", events.next()).await.is_some() {}
    assert!(matches!(events.end(), ClientEnd::Moved { .. }), "{:?}", events.end());
    // It was replaced on its machine.
    let refused = session.prompt("second").await.unwrap_err();
    assert!(matches!(refused, SessionError::NotOwner { .. }), "{refused:?}");

    let again = machine(&url, "m1").await;
    let moved = again.sessions().get(id.as_str()).await.unwrap();
    let mut after = Recorder::new(moved.attach(AttachFrom::after(seen)).await.unwrap());
    assert_eq!(after.turn_finished().await.outcome, Outcome::Interrupted);
    assert!(again.model.requests().is_empty());
    again.model.then(reply().text("second"));
    moved.prompt("second").await.unwrap();
    assert_eq!(after.turn_finished().await.outcome, Outcome::Done);
    let listed = two.sessions().list().await.unwrap();
    assert_eq!((listed[0].machine.as_deref(), listed[0].live), (Some("m1"), true));
}

#[tokio::test]
async fn a_machine_that_misses_heartbeats_is_shown_as_one_that_does_not_respond() {
    let server = start();
    let url = server.database("fleet");
    let (one, two) = (machine(&url, "m1").await, machine(&url, "m2").await);
    let session = one.open().await;
    let mut watch = two.sessions().watch().await.unwrap();
    let shown = news(&mut watch, |session| session.away.is_none()).await;
    assert_eq!((shown.machine.as_deref(), shown.live), (Some("m1"), true));
    // Its own heartbeats change nothing any more.
    let set = |columns: &str| {
        let statement = format!("UPDATE holdpoint.machines SET {columns} WHERE name = 'm1'");
        server.query("fleet", &statement);
    };
    set(
        "incarnation = 9, until = now() + interval '1 hour', seen = 'epoch'::timestamptz + '30 min'",
    );
    let silent = news(&mut watch, |session| session.away.is_some()).await;
    // It still has its session.
    assert_eq!((silent.machine.as_deref(), silent.live), (Some("m1"), true));
    let seen = silent.away.unwrap().seen.unwrap();
    assert!(seen.since(Timestamp(0)) < Duration::from_hours(1), "{seen:?}");
    assert_eq!(two.sessions().list().await.unwrap(), [silent]);
    set("seen = now() + interval '1 hour'");
    assert!(news(&mut watch, |session| session.away.is_none()).await.live);
    // One that was removed was never seen.
    server.query("fleet", "DELETE FROM holdpoint.machines WHERE name = 'm1'");
    let removed = news(&mut watch, |session| session.away.is_some()).await;
    assert_eq!((removed.machine.as_deref(), removed.live), (Some("m1"), false));
    assert_eq!(removed.away, Some(Away { seen: None }));
    // Nor is a machine away for itself.
    assert_eq!(one.sessions().list().await.unwrap()[0].away, None);
    drop(session);
}

/// Opens a session with this name.
async fn open_named(machine: &Harness, name: &str) -> Result<SessionHandle, SessionError> {
    let settings = OpenSession { name: Some(name.to_owned()), ..machine.session() };
    machine.sessions().open(settings).await
}

#[tokio::test]
async fn m_i12_a_name_belongs_to_one_live_session_of_all_machines() {
    let server = start();
    let url = server.database("fleet");
    let (one, two) = (machine(&url, "m1").await, machine(&url, "m2").await);
    let taken = |name: &str| SessionError::NameTaken { name: name.to_owned() };
    let session = open_named(&one, "work").await.unwrap();
    assert_eq!(open_named(&two, "work").await.err(), Some(taken("work")));
    let other = open_named(&two, "other").await.unwrap();
    assert_eq!(other.rename("work").await, Err(taken("work")));
    // A name that a session had before is free.
    session.rename("later").await.unwrap();
    other.rename("work").await.unwrap();
    assert_eq!(one.sessions().look("work").await.unwrap().settings.id, *other.id());
    // As is that of a session that has ended. If it is opened again, it gets another one.
    one.sessions().close(session.id()).await.unwrap();
    let later = within_patience("the end of the session", async {
        loop {
            match open_named(&two, "later").await {
                Err(error) if error == taken("later") => tokio::task::yield_now().await,
                opened => return opened.unwrap(),
            }
        }
    });
    let later = later.await;
    let again = one.sessions().get(session.id().as_str()).await.unwrap();
    assert_eq!(again.snapshot().settings.name, "later-2");
    // Of several sessions with a name, the live one is meant.
    later.rename("earlier").await.unwrap();
    again.rename("later").await.unwrap();
    later.close().await.unwrap();
    two.sessions().rename(later.id(), "later").await.unwrap();
    assert_eq!(two.sessions().look("later").await.unwrap().settings.id, *again.id());
    // The names of a machine without a lease are free.
    end_lease(&server, "m2");
    open_named(&one, "work").await.unwrap();
}

#[tokio::test]
async fn m_i12_of_machines_that_open_a_session_with_one_name_one_gets_it() {
    let server = start();
    let url = server.database("fleet");
    let (one, two) = (machine(&url, "m1").await, machine(&url, "m2").await);
    for round in 0..rounds(20, 1_000) {
        let name = format!("race {round}");
        let (first, second) = tokio::join!(open_named(&one, &name), open_named(&two, &name));
        let won = [&first, &second].into_iter().filter(|opened| opened.is_ok()).count();
        assert_eq!(won, 1, "{round}: {:?}, {:?}", first.err(), second.err());
        for session in first.into_iter().chain(second) {
            session.close().await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_session_is_copied_once_and_only_if_the_other_store_has_no_other_continuation() {
    let server = start();
    let url = server.database("fleet");
    let folder = tempfile::tempdir().unwrap();
    let file = Sqlite::open(folder.path()).unwrap();
    let harness = Harness::with(|engine| engine.store(file.clone()));
    harness.model.then(reply().text("one"));
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    session.prompt("first").await.unwrap();
    events.turn_finished().await;
    drop((events, session));
    let id = harness.sessions().list().await.unwrap()[0].id.clone();
    drop(harness);

    let fleet = Postgres::connect(&url, &Certificates::default(), &crate::store::machine("m1"))
        .await
        .unwrap();
    let saved = file.list().await.unwrap().remove(0);
    assert_eq!(copy_session(&file, &fleet, &saved).await, Ok(Copied::Whole));
    assert_eq!(copy_session(&file, &fleet, &saved).await, Ok(Copied::Known));
    let facts = async |store: &dyn SessionStore| {
        store.open(&id).await.unwrap().read(0..u64::MAX).await.unwrap()
    };
    assert_eq!(facts(&file).await, facts(&fleet).await);
    let copied = fleet.list().await.unwrap().remove(0);
    assert_eq!((&copied.summary, copied.opened), (&saved.summary, facts(&file).await[0].at));
    // Numbers that were reserved for events without a fact are not given out again.
    let reserved = async |store: &dyn SessionStore| {
        store.own(&id).await.unwrap().reserve(0).await.unwrap().start
    };
    assert_eq!(reserved(&file).await, reserved(&fleet).await);

    // A part of a copy that was broken off is continued, and another continuation is kept.
    let last = facts(&file).await.last().unwrap().clone();
    server.query("fleet", &format!("DELETE FROM holdpoint.facts WHERE seq = {}", last.seq));
    let before = "UPDATE holdpoint.sessions SET last = (SELECT max(seq) FROM holdpoint.facts)";
    server.query("fleet", before);
    assert_eq!(copy_session(&file, &fleet, &saved).await, Ok(Copied::Whole));
    assert_eq!(facts(&file).await, facts(&fleet).await);
    let log = fleet.own(&id).await.unwrap();
    let mut other = (*last).clone();
    other.seq += 1;
    log.append(last.seq, vec![Arc::new(other.clone())], saved.summary.clone()).await.unwrap();
    drop(log);
    assert_eq!(copy_session(&file, &fleet, &saved).await, Ok(Copied::Known));
    other.at.0 += 1;
    let log = file.own(&id).await.unwrap();
    log.append(last.seq, vec![Arc::new(other)], saved.summary.clone()).await.unwrap();
    drop(log);
    let refused = copy_session(&file, &fleet, &saved).await.unwrap();
    assert!(
        matches!(&refused, Copied::Refused(why) if why.contains("continuation")),
        "{refused:?}"
    );
}

/// A log that has lost its last fact.
struct Damaged(Arc<dyn SessionLog>);

impl LogLayer for Damaged {
    fn inner(&self) -> &dyn SessionLog {
        &*self.0
    }

    fn page(&self, range: Range<u64>, max_facts: usize) -> Stored<Page> {
        let page = self.0.page(range, max_facts);
        async move {
            let mut page = page.await?;
            let last = Arc::make_mut(page.facts.last_mut().unwrap());
            last.body = Body::Delta(Delta::Gap { from: last.seq, to: last.seq });
            Ok(page)
        }
        .boxed()
    }
}

/// A store with damaged logs.
struct DamagedStore(Sqlite);

impl StoreLayer for DamagedStore {
    fn inner(&self) -> &dyn SessionStore {
        &self.0
    }

    fn own(&self, session: &SessionId) -> Stored<Arc<dyn SessionLog>> {
        let log = self.0.own(session);
        async move {
            let damaged: Arc<dyn SessionLog> = Arc::new(Damaged(log.await?));
            Ok(damaged)
        }
        .boxed()
    }
}

#[tokio::test]
async fn nothing_of_a_damaged_session_is_copied() {
    let folder = tempfile::tempdir().unwrap();
    let file = Sqlite::open(folder.path()).unwrap();
    let harness = Harness::with(|engine| engine.store(file.clone()));
    harness.model.then(reply().text("one"));
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    session.prompt("first").await.unwrap();
    events.turn_finished().await;
    let saved = file.list().await.unwrap().remove(0);
    let (damaged, other) = (DamagedStore(file), Memory::default());
    let refused = copy_session(&damaged, &other, &saved).await.unwrap();
    assert!(
        matches!(&refused, Copied::Refused(why) if why.contains("can't be read")),
        "{refused:?}"
    );
    assert_eq!(other.list().await.unwrap(), []);
}

#[tokio::test]
async fn a_running_machine_shows_the_sessions_of_others_and_ends_the_work_of_a_lost_one() {
    let server = start();
    let url = server.database("fleet");
    let (one, two) = (machine(&url, "m1").await, machine(&url, "m2").await);
    let mut watch = two.sessions().watch().await.unwrap();
    let live = one.model.then_live();
    let session = one.open().await;
    let mut events = one.watch(&session).await;
    session.prompt("go").await.unwrap();
    events.step_started().await;
    let running = news(&mut watch, |session| session.status == SessionStatus::Running).await;
    assert_eq!((running.machine.as_deref(), running.live), (Some("m1"), true));
    end_lease(&server, "m1");
    let cut = news(&mut watch, |session| session.last_turn.is_some()).await;
    assert_eq!((cut.machine.as_deref(), cut.live), (Some("m1"), false));
    assert!(cut.away.is_some_and(|away| away.seen.is_some()), "{:?}", cut.away);
    assert_eq!(cut.last_turn.unwrap().outcome, Outcome::Interrupted);
    drop(live);
}

#[tokio::test]
async fn m_i10_sessions_of_several_machines_work_at_once_and_stay_separate() {
    const TURNS: usize = 5;
    let server = start();
    let url = server.database("fleet");
    let machines = join_all(["m1", "m2", "m3"].map(|name| machine(&url, name))).await;
    let work = machines.iter().flat_map(|at| (0..4).map(move |_| at)).map(async |at| {
        let session = at.open().await;
        let mut events = at.watch(&session).await;
        for turn in 0..TURNS {
            at.model.then(reply().text("done"));
            session.prompt(format!("{} {turn}", session.id())).await.unwrap();
            assert_eq!(events.turn_finished().await.outcome, Outcome::Done);
        }
        session.id().clone()
    });
    let sessions = join_all(work).await;
    let reader = crate::store::machine("m4");
    let store = Postgres::connect(&url, &Certificates::default(), &reader).await.unwrap();
    for session in sessions {
        let facts = store.open(&session).await.unwrap().read(0..u64::MAX).await.unwrap();
        let prompts = facts.iter().filter_map(|event| match event.fact()? {
            Fact::Prompt(PromptFact::Accepted { text, .. }) => Some(text.to_string()),
            _ => None,
        });
        let expected: Vec<_> = (0..TURNS).map(|turn| format!("{session} {turn}")).collect();
        assert_eq!(prompts.collect::<Vec<_>>(), expected);
    }
}

#[tokio::test]
async fn m_i11_all_sessions_of_a_dead_machine_are_taken_and_their_turns_end() {
    let server = start();
    let url = server.database("fleet");
    let count = rounds(50, 1_000);
    let dead = Postgres::connect(&url, &Certificates::default(), &crate::store::machine("m1"))
        .await
        .unwrap();
    let sessions = (0..count).map(|n| id(&format!("s{n}"))).map(async |session| {
        let running = SessionSummary { status: SessionStatus::Running, ..summary(&session, "") };
        let log = dead.create(&session, NewLog::default()).await.unwrap();
        let turn = TurnFact::Started { turn: TurnId(1), prompt: PromptId(1) };
        let mut started = (*event(3, Fact::Turn(turn))).clone();
        started.turn = Some(TurnId(1));
        let facts = vec![opened(&session, 1), prompt(2, "go"), Arc::new(started)];
        log.append(0, facts, running).await.unwrap();
        log
    });
    let logs = join_all(sessions).await;
    let (two, three) = (machine(&url, "m2").await, machine(&url, "m3").await);
    // Waits until they have looked for unfinished sessions, which m1 still has.
    for machine in [&two, &three] {
        machine.sessions().get("s0").await.unwrap_err();
    }
    end_lease(&server, "m1");
    let begun = Instant::now();
    let rows = |of: &str| server.query("fleet", &format!("SELECT count(*) FROM holdpoint.{of}"));
    within_patience("the takeover", async {
        while rows("sessions WHERE owner IS NOT NULL") != "0" {
            tokio::task::yield_now().await;
        }
    })
    .await;
    println!("{count} sessions were taken in {:?}", begun.elapsed());
    assert_eq!(rows("facts WHERE event LIKE '%turnFinished%'"), count.to_string());
    drop(logs);
}
