//! Machines of a fleet, each a daemon, with a PostgreSQL server: the cost of a machine, and of verbs for
//! sessions of another one.

use std::path::Path;
use std::time::{Duration, Instant};

use holdpoint_common::{Answer, AskFact, Fact, PolicyMode, TurnFact};
use holdpoint_session::{AttachFrom, SessionHandle};
use holdpoint_tests::postgres_server::PostgresServer;

use crate::api::DaemonWorld;
use crate::daemon::{StateDir, unshared};
use crate::floors::Floor;
use crate::support::until;
use crate::table::{Amount, Samples, Table};

const STARTS: usize = 20;
const ROUNDS: usize = 300;

/// The machines under load, and their sessions without and with work.
const MACHINES: usize = 3;
const IDLE: usize = 200;
const BUSY: usize = 20;
/// Words of a busy session, at 50 a second: more than there is time for.
const WORDS: usize = 10_000;

pub(crate) fn measure(table: &Table) {
    if table.wants("fleet", &["fleet: daemon start", "fleet: memory of a daemon"]) {
        let database = Database::new();
        costs(table, &StateDir::new(), &database.member("m1"));
    }
    if table.wants("fleet verbs", &["fleet: hold", "fleet: answer", "fleet: interrupt"]) {
        verbs(table, &Database::new());
    }
    if table.wants("fleet load", &["fleet: hold saved"]) {
        let held = under_load(&Database::new());
        let what = "fleet: hold saved, 200 idle and 20 busy on 3 machines, p99";
        table.figure_beside(Floor::Sync, what, held.p99(), Amount::ms(5));
        table.note_beside(Floor::Sync, "   … median", held.median());
    }
}

struct Database {
    url: String,
    _server: PostgresServer,
}

impl Database {
    fn new() -> Self {
        let server = PostgresServer::start(Path::new(env!("CARGO_TARGET_TMPDIR")));
        Self { url: server.database("figures"), _server: server }
    }

    /// A machine of the fleet, which the others can reach.
    fn member(&self, name: &str) -> StateDir {
        let place = StateDir::new();
        place.configure("[limits]\nmax_sessions = 100\n");
        place.succeed(&["fleet", "join", &self.url, "--name", name, "--listen", "127.0.0.1:0"]);
        place
    }
}

/// The costs of a machine of a fleet, beside one without.
fn costs(table: &Table, alone: &StateDir, member: &StateDir) {
    let started = |place: &StateDir| {
        Samples::of(STARTS, || {
            let took = place.timed(&["daemon", "start"]);
            place.succeed(&["daemon", "stop"]);
            took
        })
    };
    let (without, within) = (started(alone), started(member));
    table.figure_beside(Floor::Spawn, "fleet: daemon start", within.median(), Amount::ms(150));
    table.note_beside(Floor::Spawn, "   … without a fleet", without.median());
    // While both run, they share the pages of the program.
    let both = [member, alone];
    both.iter().for_each(|place| place.succeed(&["daemon", "start"]));
    let [within, without] = both.map(|place| unshared(place.pid()).0);
    let more = within.saturating_sub(without);
    table.figure(
        "fleet: memory of a daemon, more than without",
        Amount::Bytes(more),
        Amount::mib(8),
    );
}

/// The time until a verb is replied to, for a session of this machine and for one of another.
fn verbs(table: &Table, database: &Database) {
    let [owner, other] = ["m1", "m2"].map(|name| DaemonWorld::on(database.member(name)));
    let near = owner.runtime.block_on(owner.open("rehearsal", PolicyMode::Ask));
    let far = other.runtime.block_on(other.sessions.get(near.id().as_str())).unwrap();
    let ends = [(&owner, &near), (&other, &far)];
    let show = |verb: &str, [near, far]: [Samples; 2]| {
        let what = format!("fleet: {verb}, session of another machine, p99");
        table.figure_beside(Floor::RoundTrip, &what, far.p99(), Amount::ms(10));
        table.note_beside(Floor::RoundTrip, "   … median", far.median());
        table.note_beside(Floor::RoundTrip, "   … session of this machine, p99", near.p99());
        table.note_beside(Floor::RoundTrip, "   … median", near.median());
    };
    show("hold", ends.map(|(client, session)| held(client, session, ROUNDS)));
    show("answer", answered(ends));
    show("interrupt", ends.map(|(client, session)| interrupted(client, session)));
}

/// Holds an idle session, and releases it.
fn held(client: &DaemonWorld, session: &SessionHandle, rounds: usize) -> Samples {
    Samples::of(rounds, || {
        client.runtime.block_on(async {
            let since = Instant::now();
            session.hold().await.unwrap();
            let took = since.elapsed();
            session.release().await.unwrap();
            took
        })
    })
}

/// Answers the asks of one turn alternately on both machines.
fn answered(ends: [(&DaemonWorld, &SessionHandle); 2]) -> [Samples; 2] {
    let (owner, session) = ends[0];
    let mut took = [const { Vec::<Duration>::new() }; 2];
    let mut attached = owner.runtime.block_on(async {
        let attached = session.attach(AttachFrom::now()).await.unwrap();
        session.prompt("ask: Which one?\n---\n".repeat(2 * ROUNDS)).await.unwrap();
        attached
    });
    for round in 0..2 * ROUNDS {
        let raised = until(&mut attached, |event| match event.fact() {
            Some(Fact::Ask(AskFact::Raised { ask })) => Some(ask.id.clone()),
            _ => None,
        });
        let ask = owner.runtime.block_on(raised);
        let (client, session) = ends[round % 2];
        took[round % 2].push(client.runtime.block_on(async {
            let since = Instant::now();
            session.answer(&ask, Answer::Cancel).await.unwrap();
            since.elapsed()
        }));
    }
    took.map(Samples::new)
}

/// Interrupts turns that wait for the model.
fn interrupted(client: &DaemonWorld, session: &SessionHandle) -> Samples {
    Samples::of(ROUNDS, || {
        client.runtime.block_on(async {
            let mut attached = session.attach(AttachFrom::now()).await.unwrap();
            session.prompt("hang").await.unwrap();
            until(&mut attached, |event| {
                matches!(event.fact(), Some(Fact::Turn(TurnFact::StepStarted))).then_some(())
            })
            .await;
            let since = Instant::now();
            session.interrupt_and_wait().await.unwrap();
            since.elapsed()
        })
    })
}

/// Holds of one session while others are open and some of them stream.
fn under_load(database: &Database) -> Samples {
    let machines: [_; MACHINES] =
        ["m1", "m2", "m3"].map(|name| DaemonWorld::on(database.member(name)));
    let words = format!("say@50 {}", "word ".repeat(WORDS));
    for n in 0..IDLE + BUSY {
        let machine = &machines[n % MACHINES];
        machine.runtime.block_on(async {
            let session = machine.open("rehearsal", PolicyMode::Ask).await;
            if n >= IDLE {
                session.prompt(&*words).await.unwrap();
            }
        });
    }
    let session = machines[0].runtime.block_on(machines[0].open("rehearsal", PolicyMode::Ask));
    held(&machines[0], &session, ROUNDS)
}
