//! The daemon's API: the latencies of an attached client, and the daemon's cost of streams.

use std::time::{Duration, Instant, SystemTime};

use holdpoint_common::{
    Answer, AskFact, Delta, Fact, ModelSupplies, PolicyMode, PromptFact, ProviderSettings,
    Supplies, ToolFact, TurnFact, Who,
};
use holdpoint_session::{AttachFrom, Attachment, OpenSession, SessionHandle, Sessions};
use holdpoint_tests::model_server::{ModelServer, Reply};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::daemon::{StateDir, busy};
use crate::floors::{self, Floor};
use crate::stored;
use crate::support::{MODEL, until};
use crate::table::{Amount, Samples, Table};

const ROUNDS: usize = 200;
const DELTAS: usize = 200_000;

/// The number of concurrent streams, the pieces per second of each, and the duration in seconds.
pub(crate) const STREAMS: usize = 10;
pub(crate) const RATE: usize = 50;
pub(crate) const SECONDS: usize = 10;

/// Rounds that measure the cost of a client that never reads.
const DEAF_ROUNDS: usize = 7;

/// The facts of the replayed session. Two in five are messages.
const FACTS: u64 = 25_000;

/// A daemon, and a client of it.
pub(crate) struct DaemonWorld {
    pub(crate) place: StateDir,
    pub(crate) server: ModelServer,
    pub(crate) runtime: Runtime,
    pub(crate) sessions: Sessions,
    folder: TempDir,
}

pub(crate) fn measure(table: &Table) {
    if table.wants("api", &["attach to first event", "ask raised to seen", "answer to call begun"])
    {
        let world = DaemonWorld::new();
        let attached = world.attach();
        table.figure_beside(
            Floor::RoundTrip,
            "attach to first event",
            attached.median(),
            Amount::ms(2),
        );
        table.note("   … p99", attached.p99());
        let (seen, begun) = world.asks();
        table.figure_beside(
            Floor::RoundTrip,
            "ask raised to seen by an attached client (± 0.5 ms)",
            seen.median(),
            Amount::ms(1),
        );
        table.note("answer sent to its call begun, as the client sees it", begun.median());
        table.note("   … p99", begun.p99());
    }
    if table.wants("streams", &["deltas to one API client"]) {
        DaemonWorld::new().flood(table);
    }
    if table.wants("deaf", &["with a client that never reads, of the time without"]) {
        DaemonWorld::new().non_reader(table);
    }
    if table.wants("trickle", &["session(s) at 50 words a second"]) {
        for (streams, most) in [(STREAMS, None), (1, Some(Amount::us(150)))] {
            let floor = floors::relay(1, streams);
            let most = most.unwrap_or(Amount::Time(floor * 5 / 2));
            let used = DaemonWorld::new().trickle(streams);
            let what = format!("{streams} session(s) at 50 words a second, daemon's CPU for each");
            table.figure_beside(Floor::Hop, &what, used, most);
            table.note("   … a piece read and written by one thread", Amount::Time(floor));
            let row = Amount::Time(floors::relay(3, streams));
            table.note("   … by three threads in a row", row);
        }
        let place = StateDir::new();
        place.configure("[limits]\ntext_interval_ms = 0\n");
        let used = DaemonWorld::on(place).trickle(STREAMS);
        table.note(&format!("{STREAMS} sessions, if each piece is sent at once"), used);
    }
    if table.wants("replay", &["replay of 10,000 messages"]) {
        DaemonWorld::new().replay(table);
    }
}

impl DaemonWorld {
    pub(crate) fn new() -> Self {
        Self::on(StateDir::new())
    }

    /// Starts a daemon in this place.
    pub(crate) fn on(place: StateDir) -> Self {
        let server = ModelServer::start();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        place.succeed(&["daemon", "start"]);
        let openai =
            ProviderSettings { api_key: Some("key".into()), base_url: Some(server.base_url()) };
        let models = ModelSupplies {
            providers: [("openai".to_owned(), openai)].into(),
            ..ModelSupplies::default()
        };
        let env = vec![("PATH".to_owned(), std::env::var("PATH").unwrap())];
        let supplies = Supplies { env, models: Some(models), ..Supplies::default() };
        let sessions =
            Sessions::remote(place.socket(), &Who::named("figures")).with_supplies(supplies);
        Self { place, server, runtime, sessions, folder: TempDir::new().unwrap() }
    }

    pub(crate) async fn open(&self, model: &str, policy: PolicyMode) -> SessionHandle {
        self.sessions
            .open(OpenSession::in_folder(self.folder.path()).model(model).policy(policy))
            .await
            .unwrap()
    }

    pub(crate) async fn watched(&self, model: &str) -> (SessionHandle, Attachment) {
        let session = self.open(model, PolicyMode::Ask).await;
        let client = session.attach(AttachFrom::now()).await.unwrap();
        (session, client)
    }

    fn attach(&self) -> Samples {
        let session = self.runtime.block_on(self.open("rehearsal", PolicyMode::Ask));
        Samples::of(ROUNDS, || {
            self.runtime.block_on(async {
                let since = Instant::now();
                let mut client = session.attach(AttachFrom::start()).await.unwrap();
                client.next().await.unwrap();
                since.elapsed()
            })
        })
    }

    /// The times from raised asks until they are seen, and from answers until the calls begin.
    fn asks(&self) -> (Samples, Samples) {
        self.runtime.block_on(async {
            let (session, mut client) = self.watched("rehearsal").await;
            session.prompt("shell: touch probe\n---\n".repeat(ROUNDS)).await.unwrap();
            let (mut seen, mut begun) = (Vec::new(), Vec::new());
            for _ in 0..ROUNDS {
                let raised = until(&mut client, |event| {
                    matches!(event.fact(), Some(Fact::Ask(AskFact::Raised { .. })))
                        .then_some(event.at)
                });
                let raised = raised.await;
                let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
                // Events have whole milliseconds, which lose half of one on average.
                seen.push(now.saturating_sub(Duration::from_micros(raised.0 * 1_000 + 500)));
                let since = Instant::now();
                client.answer(Answer::Approve { always: false }).await.unwrap();
                until(&mut client, |event| {
                    matches!(event.fact(), Some(Fact::Tool(ToolFact::Started { .. }))).then_some(())
                })
                .await;
                begun.push(since.elapsed());
            }
            (Samples::new(seen), Samples::new(begun))
        })
    }

    fn flood(&self, table: &Table) {
        self.server.reply(Reply::flood(DELTAS));
        let before = busy(self.place.pid());
        let (events, bytes) = self.runtime.block_on(async {
            let (session, mut client) = self.watched(MODEL).await;
            session.prompt("go").await.unwrap();
            let (mut events, mut bytes, mut batch) = (0, 0, Vec::new());
            loop {
                assert!(
                    client.next_batch(&mut batch, 256).await > 0,
                    "it lagged: {:?}",
                    client.end()
                );
                for event in batch.drain(..) {
                    match (event.delta(), event.fact()) {
                        (Some(Delta::Text { text, .. }), _) => {
                            events += 1;
                            bytes += text.len() as u64;
                        }
                        (_, Some(Fact::Turn(TurnFact::Finished { .. }))) => return (events, bytes),
                        _ => {}
                    }
                }
            }
        });
        assert_eq!(bytes, (DELTAS * "tok ".len()) as u64);
        let used = busy(self.place.pid()) - before;
        table.figure(
            "200,000 deltas to one API client, daemon's CPU",
            Amount::Time(used),
            Amount::ms(2_000),
        );
        table.figure(
            "   … daemon's memory (peak)",
            Amount::Bytes(self.place.peak()),
            Amount::mib(40),
        );
        table.note("   … events they came in (µs for one)", Amount::us(events));
    }

    /// Measures how a client that never reads slows others, of its own session and of another one.
    fn non_reader(&self, table: &Table) {
        // The first round is a warm-up.
        let rounds: Vec<_> = (0..=DEAF_ROUNDS)
            .map(|_| (self.two_floods(false), self.two_floods(true)))
            .skip(1)
            .collect();
        let (without, with): (Vec<_>, Vec<_>) = rounds.into_iter().unzip();
        let (without, with) = (Samples::new(without).median(), Samples::new(with).median());
        table.note("2 sessions, 200,000 deltas each, to a client each", without);
        // 95 % of full speed.
        let most = Amount::Times(1.0 / 0.95);
        table.figure(
            "   … with a client that never reads, of the time without",
            with.of(without),
            most,
        );
    }

    /// How long two sessions take to stream to their readers, with or without a client of the first
    /// that never reads (`deaf`).
    fn two_floods(&self, deaf: bool) -> Duration {
        self.server.reply(Reply::flood(DELTAS));
        self.server.reply(Reply::flood(DELTAS));
        self.runtime.block_on(async {
            let (first, mut reader) = self.watched(MODEL).await;
            let (second, mut other) = self.watched(MODEL).await;
            let unread =
                if deaf { Some(first.attach(AttachFrom::start()).await.unwrap()) } else { None };
            let since = Instant::now();
            let (one, two) = tokio::join!(first.prompt("go"), second.prompt("go"));
            one.and(two).unwrap();
            tokio::join!(read_turn(&mut reader), read_turn(&mut other));
            let took = since.elapsed();
            drop(unread);
            first.close().await.unwrap();
            second.close().await.unwrap();
            took
        })
    }

    /// The CPU time of the daemon for each word of this many answers.
    fn trickle(&self, streams: usize) -> Amount {
        let script = format!("say@{RATE} {}", "word ".repeat(RATE * SECONDS));
        let mut clients = Vec::new();
        self.runtime.block_on(async {
            for _ in 0..streams {
                clients.push(self.watched("rehearsal").await);
            }
        });
        let before = busy(self.place.pid());
        let words: usize = self.runtime.block_on(async {
            for (session, _) in &clients {
                session.prompt(script.as_str()).await.unwrap();
            }
            let mut words = 0;
            for (_, client) in &mut clients {
                until(client, |event| {
                    if let Some(Delta::Text { text, .. }) = event.delta() {
                        words += text.split_whitespace().count();
                    }
                    matches!(event.fact(), Some(Fact::Turn(TurnFact::Finished { .. })))
                        .then_some(())
                })
                .await;
            }
            words
        });
        assert_eq!(words, streams * RATE * SECONDS);
        let used = busy(self.place.pid()) - before;
        Amount::Time(used / u32::try_from(words).unwrap())
    }

    fn replay(&self, table: &Table) {
        self.place.succeed(&["daemon", "stop"]);
        stored::make(&self.place.data(), "long", FACTS, 400);
        self.place.succeed(&["daemon", "start"]);
        let session = self.runtime.block_on(self.sessions.get("long")).unwrap();
        let both = || busy(self.place.pid()) + busy(std::process::id().into());
        let took: Vec<_> = (0..5)
            .map(|_| {
                let before = both();
                let since = Instant::now();
                self.runtime.block_on(async {
                    let mut client = session.attach(AttachFrom::start()).await.unwrap();
                    let (mut messages, mut batch) = (0, Vec::new());
                    while messages < FACTS * 2 / 5 {
                        assert!(client.next_batch(&mut batch, 256).await > 0, "{:?}", client.end());
                        let is_message = |fact: &Fact| {
                            matches!(
                                fact,
                                Fact::Prompt(PromptFact::Accepted { .. })
                                    | Fact::Turn(TurnFact::AssistantMessage(_))
                            )
                        };
                        messages += batch
                            .drain(..)
                            .filter(|event| event.fact().is_some_and(is_message))
                            .count() as u64;
                    }
                });
                (both() - before, since.elapsed())
            })
            .collect();
        let (used, wall): (Vec<_>, Vec<_>) = took.into_iter().unzip();
        table.figure(
            "replay of 10,000 messages, CPU of both",
            Samples::new(used).median(),
            Amount::ms(60),
        );
        table.note("   … wall", Samples::new(wall).median());
    }
}

/// Reads until the turn has ended, as fast as events arrive.
pub(crate) async fn read_turn(client: &mut Attachment) {
    let mut batch = Vec::new();
    loop {
        assert!(client.next_batch(&mut batch, 256).await > 0, "it lagged: {:?}", client.end());
        if batch
            .drain(..)
            .any(|event| matches!(event.fact(), Some(Fact::Turn(TurnFact::Finished { .. }))))
        {
            return;
        }
    }
}
