//! The growth of figures with the number of events, sessions, clients, calls and files, each 1, 10 and
//! 100 times as many.

use std::num::NonZeroUsize;
use std::time::Instant;

use holdpoint_common::api::ListQuery;
use holdpoint_common::limits::MAX_CALLS;
use holdpoint_session::AttachFrom;
use holdpoint_tests::model_server::Reply;
use holdpoint_tools::testing::Bench;

use crate::api::{DaemonWorld, read_turn};
use crate::calls::many_calls;
use crate::daemon::{StateDir, busy};
use crate::files::{found_in, make_files};
use crate::floors::Floor;
use crate::stored;
use crate::support::{MODEL, turn_finished};
use crate::table::{Amount, Samples, Table};

const EVENTS: [u64; 3] = [1_000, 10_000, 100_000];
const SESSIONS: [usize; 3] = [100, 1_000, 10_000];
const CLIENTS: [usize; 3] = [1, 10, 100];
const CALLS: [usize; 3] = [MAX_CALLS / 100, MAX_CALLS / 10, MAX_CALLS];
/// More calls than an answer may have.
const REFUSED_CALLS: usize = 20 * MAX_CALLS;
const FILES: [usize; 3] = [1_000, 10_000, 100_000];

/// The sessions of a page, and the newest facts that an attach reads.
const PAGE: usize = 100;
/// The deltas that each client reads.
const DELTAS: usize = 20_000;
const ROUNDS: usize = 11;

pub(crate) fn measure(table: &Table) {
    if table.wants("growth with events", &["prompt to request"]) {
        EVENTS.into_iter().for_each(|events| with_events(table, events));
    }
    if table.wants("growth with sessions", &["of a page", "sessions listed"]) {
        SESSIONS.into_iter().for_each(|sessions| with_sessions(table, sessions));
    }
    if table.wants("growth with clients", &["daemon's CPU for each client"]) {
        CLIENTS.into_iter().for_each(|clients| with_clients(table, clients));
    }
    if table.wants("growth with calls", &["calls in one answer"]) {
        for calls in CALLS {
            let took = Amount::Time(many_calls(calls));
            table.note(&format!("{calls} calls in one answer: turn"), took);
        }
        let took = Amount::Time(many_calls(REFUSED_CALLS));
        let what = format!("{REFUSED_CALLS} calls in one answer, refused: turn");
        table.figure(&what, took, Amount::ms(300));
    }
    if table.wants("growth with files", &["grep: a word"]) {
        for files in FILES {
            let bench = Bench::new();
            make_files(&bench, files);
            let took = Samples::of(ROUNDS, || found_in(&bench));
            table.note(&format!("{files} files: grep: a word"), took.median());
        }
    }
}

/// A saved session of this many events, two in five of them messages.
fn with_events(table: &Table, events: u64) {
    let place = StateDir::new();
    stored::make_for(&place.data(), "long", MODEL, events, 400);
    let world = DaemonWorld::on(place);
    // The first opening reads all events, and saves the state of the session.
    world.runtime.block_on(world.sessions.get("long")).unwrap();
    world.place.succeed(&["daemon", "stop"]);
    world.place.succeed(&["daemon", "start"]);
    (0..=ROUNDS).for_each(|_| _ = world.server.reply(Reply::text(["done"])));
    world.runtime.block_on(async {
        let newest = AttachFrom { limit: Some(PAGE), ..AttachFrom::start() };
        let since = Instant::now();
        let session = world.sessions.get("long").await.unwrap();
        let mut client = session.attach(newest).await.unwrap();
        client.next().await.unwrap();
        table.note(
            &format!("{events} events: opened to first event"),
            Amount::Time(since.elapsed()),
        );
        let mut attached = Vec::new();
        for _ in 0..ROUNDS {
            let since = Instant::now();
            let mut client = session.attach(newest).await.unwrap();
            client.next().await.unwrap();
            attached.push(since.elapsed());
        }
        let attached = Samples::new(attached).median();
        table.note(&format!("{events} events: attach to first event"), attached);
        // While the user reads, the vocabulary is loaded, tokens are counted and memory is returned.
        tokio::time::sleep(std::time::Duration::from_secs(2)).await;
        let mut took = Vec::new();
        for round in 0..=ROUNDS {
            let since = Instant::now();
            session.prompt("go").await.unwrap();
            took.push(world.server.request(round).at - since);
            turn_finished(&mut client).await;
        }
        let first = Amount::Time(took.remove(0));
        let later = Samples::new(took).median();
        let what = format!("{events} events: prompt to request");
        match events {
            100_000 => table.figure_beside(Floor::Sync, &what, later, Amount::ms(6)),
            _ => table.note_beside(Floor::Sync, &what, later),
        }
        table.note("   … the first one", first);
    });
}

/// This many saved sessions in a daemon.
fn with_sessions(table: &Table, sessions: usize) {
    let place = StateDir::new();
    stored::make_many(&place.data(), sessions);
    let world = DaemonWorld::on(place);
    world.runtime.block_on(async {
        let list = async |limit: usize| {
            let query = ListQuery { limit: NonZeroUsize::new(limit), after: None };
            let since = Instant::now();
            let listed = world.sessions.list_page(query).await.unwrap();
            assert_eq!(listed.sessions.len(), if limit == 0 { sessions } else { limit });
            since.elapsed()
        };
        let (mut pages, mut lists) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            pages.push(list(PAGE).await);
            lists.push(list(0).await);
        }
        let what = format!("{sessions} sessions: list of a page of {PAGE}");
        let page = Samples::new(pages).median();
        match sessions {
            10_000 => table.figure_beside(Floor::RoundTrip, &what, page, Amount::ms(15)),
            _ => table.note_beside(Floor::RoundTrip, &what, page),
        }
        table.note(&format!("{sessions} sessions: all listed"), Samples::new(lists).median());
        let mut opened = Vec::new();
        for n in 0..ROUNDS {
            let since = Instant::now();
            world.sessions.get(&format!("saved-{n}")).await.unwrap();
            opened.push(since.elapsed());
        }
        let opened = Samples::new(opened).median();
        table.note(&format!("{sessions} sessions: one opened by its id"), opened);
    });
}

/// This many clients of one session that floods.
fn with_clients(table: &Table, clients: usize) {
    let world = DaemonWorld::new();
    world.server.reply(Reply::flood(DELTAS));
    let before = busy(world.place.pid());
    world.runtime.block_on(async {
        let (session, mut first) = world.watched(MODEL).await;
        let mut others = Vec::new();
        for _ in 1..clients {
            others.push(session.attach(AttachFrom::now()).await.unwrap());
        }
        session.prompt("go").await.unwrap();
        let others = others.iter_mut().map(read_turn);
        tokio::join!(read_turn(&mut first), futures_util::future::join_all(others));
    });
    let used = busy(world.place.pid()) - before;
    let each = used / u32::try_from(clients * DELTAS).unwrap();
    let what =
        format!("{clients} clients of {DELTAS} deltas: daemon's CPU for each client's delta");
    table.note(&what, Amount::Time(each));
}
