//! Owners and leases of sessions in PostgreSQL, and faults of the server.

mod failover;
mod races;

use std::path::Path;
use std::sync::Arc;

use holdpoint_common::{Certificates, Delta, Fact, SessionFact, SessionId, SessionSummary, Who};
use holdpoint_session::store::{
    Home, Machine, NewLog, Postgres, SavedPage, SavedSession, SavedState, SessionLog, SessionStore,
    StoreError,
};
use holdpoint_tests::postgres_server::PostgresServer;
use holdpoint_tests::tls_server::Authority;
use holdpoint_tools::testing::rounds;
use rustix::process::{Pid, Signal, kill_process};

use super::{event, id, machine, opened, prompt, summary};

fn start(settings: &[&str]) -> PostgresServer {
    PostgresServer::with(Path::new(env!("CARGO_TARGET_TMPDIR")), settings)
}

async fn connect(url: &str, name: &str) -> Postgres {
    Postgres::connect(url, &Certificates::default(), &machine(name)).await.unwrap()
}

/// A session with its first fact.
async fn create(store: &Postgres, session: &SessionId) -> std::sync::Arc<dyn SessionLog> {
    let first = (opened(session, 1), summary(session, ""));
    store.create(session, NewLog { first: Some(first), reserved: 9 }).await.unwrap()
}

/// Lets the lease of a machine end, as if the machine had died.
fn end_lease(server: &PostgresServer, name: &str) {
    server.query(
        "fleet",
        &format!(
            "UPDATE holdpoint.machines SET until = now(), incarnation = incarnation + 1 \
             WHERE name = '{name}'"
        ),
    );
}

/// Waits until a store has carried out all earlier writes.
async fn written(store: &Postgres) {
    assert!(store.delete(&id("none")).await.is_err());
}

fn fenced(by: &str) -> StoreError {
    StoreError::Fenced { session: id("s"), by: by.to_owned() }
}

fn owned(by: &str) -> StoreError {
    StoreError::Owned { session: id("s"), by: by.to_owned() }
}

#[tokio::test]
async fn a_session_has_one_owner_until_that_gives_it_up() {
    let server = start(&[]);
    let url = server.database("fleet");
    let (one, two) = (connect(&url, "m1").await, connect(&url, "m2").await);
    let session = id("s");
    let log = create(&one, &session).await;
    assert_eq!(two.own(&session).await.err(), Some(owned("m1")));
    assert_eq!(two.delete(&session).await, Err(owned("m1")));
    assert_eq!(two.open(&session).await.unwrap().read(0..9).await.unwrap().len(), 1);
    let past = Arc::clone(&log).past();
    drop(log);
    written(&one).await;
    let log = two.own(&session).await.unwrap();
    assert_eq!(past.read(0..9).await.unwrap().len(), 1);
    log.append(1, vec![prompt(2, "two's")], summary(&session, "")).await.unwrap();
    assert_eq!(one.own(&session).await.err(), Some(owned("m2")));
}

#[tokio::test]
async fn m_i3_an_owner_that_was_replaced_can_write_nothing() {
    let server = start(&[]);
    let url = server.database("fleet");
    let (one, two) = (connect(&url, "m1").await, connect(&url, "m2").await);
    let session = id("s");
    let log = create(&one, &session).await;
    end_lease(&server, "m1");
    let new = two.own(&session).await.unwrap();
    new.append(1, vec![prompt(2, "new")], summary(&session, "new")).await.unwrap();
    for after in [1, 2] {
        let late = log.append(after, vec![prompt(3, "old")], summary(&session, "old")).await;
        assert_eq!(late, Err(fenced("m2")));
    }
    assert_eq!(log.keep_draft(vec![prompt(4, "old")]).await, Err(fenced("m2")));
    assert_eq!(log.reserve(1).await, Err(fenced("m2")));
    assert_eq!(log.give_back(5..9).await, Err(fenced("m2")));
    let state = SavedState { upto: 2, text: "old".to_owned() };
    assert_eq!(log.keep_state(state).await, Err(fenced("m2")));
    assert_eq!(two.list().await.unwrap()[0].summary.title, "new");
    // Nor does it give up the session of the new owner.
    drop(log);
    written(&one).await;
    new.append(2, vec![prompt(3, "new")], summary(&session, "")).await.unwrap();
}

#[tokio::test]
async fn m_b9_sessions_that_other_machines_own_are_listed_first() {
    let server = start(&[]);
    let url = server.database("fleet");
    let (one, two) = (connect(&url, "m1").await, connect(&url, "m2").await);
    let _live = create(&two, &id("live")).await;
    for name in ["a", "b", "c"] {
        drop(create(&one, &id(name)).await);
    }
    let page = async |after, limit| one.list_page(SavedPage { after, limit }).await.unwrap();
    let ids = |page: &[SavedSession]| -> Vec<String> {
        page.iter().map(|saved| saved.summary.id.to_string()).collect()
    };
    let first = page(None, 2).await;
    assert_eq!(ids(&first), ["live", "c"]);
    let after_live = page(Some(first[0].cursor()), 9).await;
    assert_eq!(ids(&after_live), ["c", "b", "a"]);
    assert_eq!(ids(&page(Some(first[1].cursor()), 1).await), ["b"]);
    // A session that can't be read is left out, and ends no page.
    server.query("fleet", "UPDATE holdpoint.sessions SET summary = '?' WHERE id = 'b'");
    assert_eq!(ids(&page(Some(first[1].cursor()), 1).await), ["a"]);
}

#[tokio::test]
async fn a_machine_that_starts_again_gets_its_sessions_at_once() {
    let server = start(&[]);
    let url = server.database("fleet");
    let first = connect(&url, "m1").await;
    let session = id("s");
    let log = create(&first, &session).await;
    let again = connect(&url, "m1").await;
    let new = again.own(&session).await.unwrap();
    new.append(1, vec![prompt(2, "again")], summary(&session, "")).await.unwrap();
    let late = log.append(1, vec![prompt(2, "first")], summary(&session, "")).await;
    assert_eq!(late, Err(fenced("m1")));

    let other = Machine { id: "of another machine".to_owned(), ..machine("m1") };
    let error =
        Postgres::connect(&url, &Certificates::default(), &other).await.err().unwrap().to_string();
    assert!(error.contains("the name `m1` belongs to another machine"), "{error}");
}

async fn connect_with(url: &str, name: &str, places: &[(&str, &str)]) -> Postgres {
    let places = places.iter().map(|&(name, folder)| (name.to_owned(), folder.to_owned()));
    let machine = Machine { places: places.collect(), ..machine(name) };
    Postgres::connect(url, &Certificates::default(), &machine).await.unwrap()
}

/// The home of the only session in a list.
async fn home(store: &Postgres) -> Home {
    store.list().await.unwrap().pop().unwrap().home
}

fn shared(folder: &str) -> Home {
    Home::Here { shared: Some(folder.to_owned()) }
}

#[tokio::test]
async fn a_session_in_a_place_has_its_home_on_every_machine_with_that_place() {
    let server = start(&[]);
    let url = server.database("fleet");
    let one = connect_with(&url, "m1", &[("work", "/w")]).await;
    let two = connect_with(&url, "m2", &[("other", "/w"), ("work", "/mnt/two")]).await;
    let three = connect(&url, "m3").await;
    let session = id("s");
    let log = create(&one, &session).await;
    let found = [home(&one).await, home(&two).await, home(&three).await];
    let expected = [shared("/w"), shared("/mnt/two"), Home::Elsewhere("work".to_owned())];
    assert_eq!(found, expected);
    assert_eq!(two.own(&session).await.err(), Some(owned("m1")));
    drop(log);
    written(&one).await;
    for (store, home) in [&one, &two, &three].into_iter().zip(expected) {
        assert_eq!(store.own(&session).await.unwrap().home(), home);
        written(store).await;
        // A place is not away.
        assert_eq!(store.list().await.unwrap()[0].away, None);
    }

    // A move to a folder outside of the place, and back into it.
    let moved = |seq, machine: &str, workspace: &str| {
        let (machine, workspace) = (Some(machine.to_owned()), workspace.to_owned());
        let by = Who::named("test");
        event(seq, Fact::Session(SessionFact::Moved { machine, workspace, by }))
    };
    let log = one.own(&session).await.unwrap();
    log.append(1, vec![moved(2, "m1", "/x")], summary(&session, "")).await.unwrap();
    assert_eq!(home(&one).await, Home::Here { shared: None });
    assert_eq!(home(&two).await, Home::Elsewhere("m1".to_owned()));
    let moved = moved(3, "m2", "/mnt/two/a/b");
    let workspace = "/mnt/two/a/b".to_owned();
    let summary = SessionSummary { workspace, ..summary(&session, "") };
    log.append(2, vec![moved], summary).await.unwrap();
    drop(log);
    written(&one).await;
    assert_eq!(home(&two).await, Home::Here { shared: None });
    // The new machine knows its places.
    assert_eq!(two.own(&session).await.unwrap().home(), shared("/mnt/two/a/b"));
    assert_eq!(home(&one).await, shared("/w/a/b"));
}

#[tokio::test]
async fn a_session_has_its_home_in_a_place_once_its_machine_has_that_place() {
    let server = start(&[]);
    let url = server.database("fleet");
    let first = connect(&url, "m1").await;
    let session = id("s");
    drop(create(&first, &session).await);
    first.close().await;
    let one = connect_with(&url, "m1", &[("work", "/w")]).await;
    let two = connect_with(&url, "m2", &[("work", "/w")]).await;
    assert_eq!(home(&two).await, Home::Elsewhere("m1".to_owned()));
    drop(one.own(&session).await.unwrap());
    written(&one).await;
    assert_eq!(home(&two).await, shared("/w"));
}

#[tokio::test]
async fn a_store_that_is_closed_gives_back_its_lease() {
    let server = start(&[]);
    let url = server.database("fleet");
    let (one, two) = (connect(&url, "m1").await, connect(&url, "m2").await);
    let session = id("s");
    let log = create(&one, &session).await;
    assert!(two.own(&session).await.is_err());
    drop(log);
    one.close().await;
    two.own(&session).await.unwrap();
    let ended = "SELECT until <= now() FROM holdpoint.machines WHERE name = 'm1'";
    assert_eq!(server.query("fleet", ended), "t");
}

#[tokio::test]
async fn a_server_that_can_lose_acknowledged_facts_is_refused() {
    let server = start(&[]);
    let url = format!("{} options='-c synchronous_commit=off'", server.database("fleet"));
    let error = Postgres::connect(&url, &Certificates::default(), &machine("m1"))
        .await
        .err()
        .unwrap()
        .to_string();
    assert!(error.contains("`synchronous_commit` is off"), "{error}");
    let server = start(&["fsync=off"]);
    let error =
        Postgres::connect(&server.database("fleet"), &Certificates::default(), &machine("m1"))
            .await;
    let error = error.err().unwrap().to_string();
    assert!(error.contains("`fsync` is off"), "{error}");
}

#[tokio::test]
async fn an_address_that_can_not_be_used_is_an_error() {
    for (url, words) in [
        ("nonsense", "is not valid"),
        ("host=example.com user=x sslmode=disable", "has to be reached with TLS"),
        ("host=/tmp hostaddr=127.0.0.1 user=x sslmode=disable", "has to be reached with TLS"),
        ("hostaddr=127.0.0.1 user=x sslmode=disable", "has to be reached with TLS"),
        ("host=/nonexistent user=x", "can't be reached"),
    ] {
        let error = Postgres::connect(url, &Certificates::default(), &machine("m1"))
            .await
            .err()
            .unwrap()
            .to_string();
        assert!(error.contains(words), "{url}: {error}");
    }
}

#[tokio::test]
async fn over_the_network_only_a_server_with_the_right_certificate_is_used() {
    let (right, wrong) = (Authority::new("right"), Authority::new("wrong"));
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let server = PostgresServer::with_tls(cache, &right.issue(&["localhost"]));
    drop(server.database("fleet"));
    let folder = tempfile::tempdir().unwrap();
    let file = |authority: &Authority, name: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, authority.pem()).unwrap();
        Certificates { file: Some(path.to_str().unwrap().to_owned()), dir: None }
    };
    let (right, wrong) = (file(&right, "right"), file(&wrong, "wrong"));
    let connect = async |host: &str, authorities: &Certificates| {
        let url = server.over_network(host, "fleet");
        Postgres::connect(&url, authorities, &machine("m1")).await
    };
    let store = connect("localhost", &right).await.unwrap();
    create(&store, &id("s")).await;
    let encrypted = "SELECT bool_and(ssl) AND count(*) = 3 FROM pg_stat_ssl \
                     JOIN pg_stat_activity USING (pid) WHERE application_name = 'holdpoint'";
    store.list().await.unwrap();
    assert_eq!(server.query("fleet", encrypted), "t");
    for (host, authorities) in [("localhost", &wrong), ("127.0.0.1", &right)] {
        let error = connect(host, authorities).await.err().unwrap().to_string();
        assert!(error.contains("certificate"), "{host}: {error}");
    }
}

#[tokio::test]
async fn a_database_of_a_later_version_is_left_as_it_is() {
    let server = start(&[]);
    let url = server.database("fleet");
    connect(&url, "m1").await.close().await;
    server.query("fleet", "UPDATE holdpoint.schema_version SET version = 99");
    let error = Postgres::connect(&url, &Certificates::default(), &machine("m1")).await.err();
    assert!(matches!(error, Some(StoreError::Newer { found: 99, .. })), "{error:?}");
}

#[tokio::test]
async fn machines_that_connect_to_a_new_database_at_once_wait_for_each_other() {
    let server = start(&[]);
    let url = server.database("fleet");
    let names: Vec<_> = (0..8).map(|n| format!("m{n}")).collect();
    let connecting = names.iter().map(|name| connect(&url, name));
    let stores = futures_util::future::join_all(connecting).await;
    create(&stores[7], &id("s")).await;
    assert_eq!(stores[0].list().await.unwrap().len(), 1);
}

/// Appends the fact after `last`, as a session's actor does, and returns its number.
async fn append(log: &dyn SessionLog, last: u64, session: &SessionId) -> Result<u64, StoreError> {
    let appended = log.append(last, vec![prompt(last + 1, "x")], summary(session, "")).await;
    match appended {
        // It was written, although an earlier try failed.
        Err(StoreError::Conflict { last: found, .. }) if found == last + 1 => Ok(found),
        appended => appended.map(|()| last + 1),
    }
}

#[tokio::test]
async fn m_i4_acknowledged_facts_outlive_kills_of_the_server() {
    let mut server = start(&[]);
    let store = connect(&server.database("fleet"), "m1").await;
    let session = id("s");
    let log = create(&store, &session).await;
    let mut last = 1;
    for _ in 0..rounds(5, 20) {
        let target = last + 10;
        while last < target {
            last = append(&*log, last, &session).await.unwrap();
        }
        server.kill();
        // A process of the killed server can still answer.
        if let Ok(written) = append(&*log, last, &session).await {
            last = written;
        }
        server.restart();
    }
    let facts = store.open(&session).await.unwrap().read(0..u64::MAX).await.unwrap();
    assert_eq!(
        facts.iter().map(|fact| fact.seq).collect::<Vec<_>>(),
        (1..=last).collect::<Vec<_>>()
    );
}

/// The time limit of statements has to pass, which is 10 s.
#[tokio::test]
async fn a_connection_that_hangs_is_replaced() {
    let server = start(&[]);
    let store = connect(&server.database("fleet"), "m1").await;
    let session = id("s");
    let log = create(&store, &session).await;
    store.list().await.unwrap();
    let connections = "SELECT pid FROM pg_stat_activity WHERE application_name = 'holdpoint' \
                       AND query LIKE '%WHERE last > 0%'";
    let pid = server.query("fleet", connections).parse().unwrap();
    let pid = Pid::from_raw(pid).unwrap();
    let _stopped = Stopped::new(pid);
    let hung = store.list().await;
    // Its answer comes too late.
    assert!(
        hung.as_ref().is_err_and(|error| error.to_string().contains("did not answer")),
        "{hung:?}"
    );
    assert_eq!(store.list().await.unwrap().len(), 1);
    assert_eq!(log.read(0..9).await.unwrap().len(), 1);
}

/// A process that is stopped until this is dropped.
struct Stopped(Pid);

impl Stopped {
    fn new(pid: Pid) -> Self {
        kill_process(pid, Signal::STOP).unwrap();
        Self(pid)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        let _ = kill_process(self.0, Signal::CONT);
    }
}

/// Such a program was started again elsewhere, with the same name and id.
#[tokio::test]
async fn a_program_that_was_replaced_on_its_machine_can_own_nothing_more() {
    let server = start(&[]);
    let url = server.database("fleet");
    let first = connect(&url, "m1").await;
    let session = id("s");
    drop(create(&first, &session).await);
    let again = connect(&url, "m1").await;
    let log = again.own(&session).await.unwrap();
    assert_eq!(first.own(&session).await.err(), Some(owned("m1")));
    log.append(1, vec![prompt(2, "again")], summary(&session, "")).await.unwrap();
}

#[tokio::test]
async fn m_i17_changed_and_lost_rows_are_reported_as_gaps() {
    let server = start(&[]);
    let store = connect(&server.database("fleet"), "m1").await;
    let session = id("s");
    let log = create(&store, &session).await;
    let facts = (2..=9).map(|seq| prompt(seq, "plain text")).collect();
    log.append(1, facts, summary(&session, "")).await.unwrap();
    for statement in [
        "UPDATE holdpoint.facts SET event = replace(event, 'plain', 'plaim') WHERE seq = 3",
        "DELETE FROM holdpoint.facts WHERE seq IN (5, 6, 9)",
    ] {
        server.query("fleet", statement);
    }
    let read = log.read(0..u64::MAX).await.unwrap();
    let gaps: Vec<_> = read
        .iter()
        .filter_map(|event| match event.delta() {
            Some(Delta::Gap { from, to }) => Some((*from, *to)),
            _ => None,
        })
        .collect();
    assert_eq!(gaps, [(3, 3), (5, 6), (9, 9)]);
    assert_eq!(store.gaps(&session).to_string(), "events 3, 5 to 6, 9 can't be read");
}

#[tokio::test]
async fn m_i17_a_flipped_bit_in_a_data_file_is_reported() {
    let mut server = start(&[]);
    let url = server.database("fleet");
    let store = connect(&url, "m1").await;
    let session = id("s");
    let log = create(&store, &session).await;
    let facts = (2..=200).map(|seq| prompt(seq, &format!("text {seq}"))).collect();
    log.append(1, facts, summary(&session, "")).await.unwrap();
    drop(log);
    store.close().await;
    for _ in 0..rounds(2, 100) {
        let bit = fastrand::usize(..);
        server.flip_bit("fleet", "holdpoint.facts", bit);
        let store = connect(&url, "m1").await;
        let log = store.open(&session).await.unwrap();
        let read = log.read(0..u64::MAX).await;
        assert!(matches!(read, Err(StoreError::Damaged { .. })), "bit {bit}: {read:?}");
        drop(log);
        store.close().await;
        server.flip_bit("fleet", "holdpoint.facts", bit);
    }
    let store = connect(&url, "m1").await;
    let log = store.open(&session).await.unwrap();
    assert_eq!(log.read(0..u64::MAX).await.unwrap().len(), 200);
}

#[tokio::test]
async fn a_large_fact_ends_its_page() {
    let server = start(&[]);
    let store = connect(&server.database("fleet"), "m1").await;
    let session = id("s");
    let log = create(&store, &session).await;
    let text = "x".repeat(400 * 1024);
    let facts = (2..=9).map(|seq| prompt(seq, &text)).collect();
    log.append(1, facts, summary(&session, "")).await.unwrap();
    let page = log.page(0..u64::MAX, 100).await.unwrap();
    assert_eq!(page.facts.iter().map(|fact| fact.seq).collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert_eq!(page.next, Some(5));
    assert_eq!(log.read(0..u64::MAX).await.unwrap().len(), 9);
}
