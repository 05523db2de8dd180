//! Sessions that clients keep busy from all machines while these fail, and checks of everything that was
//! acknowledged.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use holdpoint_common::{Body, Delta, Event, Fact, SessionError, SessionId, ToolFact, TurnFact};
use holdpoint_session::{AttachFrom, Sessions};
use tempfile::TempDir;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::daemon::harness::DaemonWorld;
use crate::soak::ledger::Ledger;
use crate::world::patience;

/// How long a client waits for a machine before it uses another one.
const VISIT: Duration = Duration::from_secs(4);

/// The pause of a client after a failure.
const PAUSE: Duration = Duration::from_millis(50);

/// Sessions with work.
pub(super) struct Load {
    ledger: Arc<Ledger>,
    sessions: Vec<SessionId>,
    /// Tool calls append a line to a file in it when they start.
    folder: TempDir,
    over: Arc<AtomicBool>,
    clients: JoinSet<Client>,
}

impl Load {
    /// Opens two sessions on each machine, each with a client that prompts it through one machine after
    /// the other.
    pub(super) async fn start(description: &str, machines: &[DaemonWorld]) -> Self {
        let ledger = Arc::new(Ledger::new(description.to_owned()));
        let over = Arc::new(AtomicBool::new(false));
        let folder = TempDir::new().unwrap();
        let (mut sessions, mut clients) = (Vec::new(), JoinSet::new());
        for number in 0..2 * machines.len() {
            let home = &machines[number % machines.len()];
            let session = home.sessions().open(home.session()).await.unwrap().id().clone();
            let client = Client {
                session: session.clone(),
                number,
                machines: machines.iter().map(DaemonWorld::sessions).collect(),
                starts: folder.path().join("starts"),
                ledger: Arc::clone(&ledger),
                visits: 0,
                after: 0,
            };
            sessions.push(session);
            clients.spawn(client.keep_busy(Arc::clone(&over)));
        }
        Self { ledger, sessions, folder, over, clients }
    }

    /// Ends the work, while all machines run. Checks that every session can be used from every machine,
    /// that everything acknowledged is there once, and that no call was started twice.
    pub(super) async fn finish(mut self, machines: &[DaemonWorld]) {
        self.over.store(true, Ordering::SeqCst);
        while let Some(client) = self.clients.join_next().await {
            client.unwrap().end().await;
        }
        self.ledger.check(&machines[0].sessions(), machines[0].0.census.mark()).await;
        self.check_starts(&machines[0]);
        for machine in machines {
            machine.run(&["daemon", "stop"]).code(0);
            machine.0.census.wait_none();
        }
    }

    /// Checks that each call has started at most as often as the logs have saved its start, which is
    /// once. The model may request a command again after its turn was cut.
    fn check_starts(&self, machine: &DaemonWorld) {
        let (mut commands, mut started) = (BTreeMap::new(), Vec::new());
        for session in &self.sessions {
            let logged = machine.run(&["logs", session.as_str(), "--json"]).code(0);
            for event in logged.events() {
                match event.body {
                    Body::Fact(Fact::Turn(TurnFact::AssistantMessage(answer))) => {
                        let calls = answer.calls.iter();
                        commands.extend(
                            calls.map(|call| {
                                ((session, call.id.to_string()), call.input.to_string())
                            }),
                        );
                    }
                    Body::Fact(Fact::Tool(ToolFact::Started { call })) => {
                        let command = commands.remove(&(session, call.to_string()));
                        started.push(command.expect("a call starts once, after its request"));
                    }
                    _ => {}
                }
            }
        }
        let file = fs::read_to_string(self.folder.path().join("starts")).unwrap();
        let mut lines = BTreeMap::<_, usize>::new();
        file.lines().for_each(|line| *lines.entry(line).or_default() += 1);
        for (line, times) in &lines {
            let saved = started.iter().filter(|command| command.contains(line)).count();
            assert!(
                *times <= saved,
                "{}: {line}: {times} starts, {saved} saved",
                self.ledger.round
            );
        }
        println!("{} calls have started, {} wrote their line", started.len(), lines.len());
    }
}

/// A client of one session.
struct Client {
    session: SessionId,
    number: usize,
    machines: Vec<Sessions>,
    starts: PathBuf,
    ledger: Arc<Ledger>,
    visits: usize,
    /// The number of the last event that it has seen.
    after: u64,
}

impl Client {
    async fn keep_busy(mut self, over: Arc<AtomicBool>) -> Self {
        while !over.load(Ordering::SeqCst) {
            let sessions = self.machines[(self.number + self.visits) % self.machines.len()].clone();
            self.visits += 1;
            let scripts = ["a", "b"].map(|part| self.script(part));
            // Machines are killed and stopped.
            if !matches!(timeout(VISIT, self.visit(&sessions, &scripts)).await, Ok(Ok(()))) {
                tokio::time::sleep(PAUSE).await;
            }
        }
        self
    }

    /// Two calls, one after the other, each with a unique line.
    fn script(&self, part: &str) -> String {
        let line = format!("start-{}-{}-{part}", self.number, self.visits);
        let starts = self.starts.display();
        format!(
            "shell: echo {line}1 >> {starts}; sleep 0.1\n---\n\
             shell: echo {line}2 >> {starts}; sleep 0.1 & wait"
        )
    }

    /// Attaches where it left, sends prompts, and reads until the turn of the last one is over.
    async fn visit(&mut self, sessions: &Sessions, scripts: &[String]) -> Result<(), SessionError> {
        let session = sessions.get(self.session.as_str()).await?;
        let mut events = session.attach(AttachFrom::after(self.after)).await?;
        // Prompts that waited when the session was cut are held.
        session.release().await?;
        let mut last = None;
        for script in scripts {
            let prompted = session.prompt(script.as_str()).await?;
            last = Some(prompted.prompt);
            self.ledger.promised(&self.session, prompted.saved, |records| {
                records.prompts.push(prompted.prompt);
            });
        }
        let mut saves = events.snapshot().not_saved.is_none();
        let (mut facts, mut last_turn) = (Vec::new(), None);
        while let Some(event) = events.next().await {
            assert!(event.seq > self.after, "{}: {event:?}", self.ledger.round);
            self.after = event.seq;
            match &event.body {
                // Those before it may not be saved either.
                Body::Delta(Delta::NotSaved { .. }) => {
                    facts.clear();
                    saves = false;
                }
                Body::Delta(Delta::SavedAgain) => saves = true,
                Body::Fact(fact) => {
                    if saves {
                        facts.push(Arc::clone(&event));
                    }
                    match fact {
                        Fact::Turn(TurnFact::Started { turn, prompt }) if Some(*prompt) == last => {
                            last_turn = Some(*turn);
                        }
                        Fact::Turn(TurnFact::Finished { .. })
                            if last_turn.is_some() && event.turn == last_turn =>
                        {
                            break;
                        }
                        _ => {}
                    }
                }
                Body::Delta(_) => {}
            }
        }
        self.acknowledged(facts);
        Ok(())
    }

    fn acknowledged(&self, facts: Vec<Arc<Event>>) {
        self.ledger.note(&self.session, |records| {
            for fact in facts {
                let (seq, before) = (fact.seq, records.facts.insert(fact.seq, Arc::clone(&fact)));
                assert!(before.is_none_or(|before| before == fact), "{seq} is two facts");
            }
        });
    }

    /// Uses the session through each machine, once the faults are over.
    async fn end(mut self) {
        for sessions in self.machines.clone() {
            let by = Instant::now() + patience();
            loop {
                match timeout(patience(), self.visit(&sessions, &["say Done.".to_owned()])).await {
                    Ok(Ok(())) => break,
                    failed => assert!(Instant::now() < by, "{}: {failed:?}", self.ledger.round),
                }
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}
