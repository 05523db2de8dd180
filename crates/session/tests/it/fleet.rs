//! Engines of several machines over one PostgreSQL database.

use std::path::Path;

use holdpoint_common::{Certificates, Outcome, SessionError, SessionStatus};
use holdpoint_session::store::{Machine, Postgres};
use holdpoint_session::testing::{Harness, reply, within_patience};
use holdpoint_session::{AttachFrom, ClientEnd};
use holdpoint_tests::postgres_server::PostgresServer;

fn start() -> PostgresServer {
    PostgresServer::start(Path::new(env!("CARGO_TARGET_TMPDIR")))
}

/// An engine of the machine with this name.
async fn machine(url: &str, name: &str) -> Harness {
    let machine = Machine { name: name.to_owned(), id: format!("id of {name}") };
    let store = Postgres::connect(url, &Certificates::default(), &machine).await.unwrap();
    Harness::with(|engine| engine.store(store))
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
async fn a_session_of_a_machine_without_a_lease_continues_on_another() {
    let server = start();
    let url = server.database("fleet");
    let one = machine(&url, "m1").await;
    let live = one.model.then_live();
    let session = one.open().await;
    let mut events = one.watch(&session).await;
    session.prompt("first").await.unwrap();
    events.step_started().await;
    let seen = events.events().last().unwrap().seq;

    end_lease(&server, "m1");
    let two = machine(&url, "m2").await;
    let moved = two.sessions().get(session.id().as_str()).await.unwrap();
    let mut after = holdpoint_session::testing::Recorder::new(
        moved.attach(AttachFrom::after(seen)).await.unwrap(),
    );
    // The turn was cut when the second machine started, and is not run again.
    assert_eq!(after.turn_finished().await.outcome, Outcome::Interrupted);
    assert!(two.model.requests().is_empty());
    two.model.then(reply().text("second"));
    moved.prompt("second").await.unwrap();
    assert_eq!(after.turn_finished().await.outcome, Outcome::Done);

    // The first machine learns it with its next write, and ends what runs.
    live.text("late");
    drop(live);
    while within_patience("the end", events.next()).await.is_some() {}
    assert!(matches!(events.end(), ClientEnd::Moved { .. }), "{:?}", events.end());
    let elsewhere = SessionError::NotOwner { session: session.id().clone(), owner: "m2".into() };
    assert_eq!(session.prompt("third").await.unwrap_err(), elsewhere);
}
