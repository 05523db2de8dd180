//! A person acting at random: opens, prompts, answers, holds, interrupts, watches, closes.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use holdpoint_common::api::RunRequest;
use holdpoint_common::{HoldState, PolicyMode, SessionId};
use holdpoint_session::{AttachFrom, OpenSession, SessionError, SessionHandle, Sessions};
use tokio::task::JoinSet;

use super::client::{Pace, answer, watch};
use super::ledger::Ledger;
use crate::daemon::harness::DaemonWorld;

/// Scripts for prompts. `TOKEN` becomes a word unique to the prompt, which its processes carry.
const SCRIPTS: [&str; 9] = [
    "say@200 one two three four five six seven eight nine ten eleven twelve",
    "flood 20000 40",
    "shell: : TOKEN; for word in 1 2 3; do echo $word; done\nsay done",
    "shell: bash -c 'setsid sleep 300 & sleep 300' TOKEN & bash -c 'sleep 300 & wait' TOKEN",
    "shell: bash -c 'trap \"\" TERM; sleep 300' TOKEN & sleep 0.05",
    "shell: bash -c 'sleep 0.3; echo a' TOKEN\nshell: bash -c 'echo b; sleep 0.3' TOKEN\n---\nsay and on",
    "ask: What shall it be called?\nsay thanks",
    "call write_file {\"path\": \"made-TOKEN\", \"content\": \"text\"}\n---\nfail the script wanted it so",
    "think@300 thinking about it for a while\nhang",
];

/// Errors that random acts must expect, because other people act, too.
const EXPECTED: [&str; 17] = [
    "tooManySessions",
    "tooManyClients",
    "closed",
    "queueFull",
    "alreadyAnswered",
    "askClosed",
    "unknownAsk",
    "kindMismatch",
    "incompleteAnswer",
    "unknownSession",
    "live",
    "notLive",
    "runOpen",
    "turnOpen",
    "nameTaken",
    "nothingShown",
    // The session was closed before the act reached it.
    "gone",
];

/// Errors of a daemon that is being stopped or killed.
const FALLING: [&str; 3] = ["disconnected", "unreachable", "stopped"];

pub(crate) struct Person {
    number: u64,
    sessions: Sessions,
    work: PathBuf,
    mark: String,
    dice: fastrand::Rng,
    ledger: Arc<Ledger>,
}

impl Person {
    pub(crate) fn new(house: &DaemonWorld, number: u64, seed: u64, ledger: &Arc<Ledger>) -> Self {
        Self {
            number,
            sessions: house.sessions(),
            work: house.0.path("work"),
            mark: house.0.census.mark().to_owned(),
            dice: fastrand::Rng::with_seed(seed),
            ledger: Arc::clone(ledger),
        }
    }

    /// Acts until `by`, or until the daemon is gone. Returns the number of acts.
    pub(crate) async fn busy(mut self, by: Instant) -> u64 {
        let mut clients = JoinSet::new();
        let mut acts = 0;
        while Instant::now() < by {
            match self.act(by, &mut clients).await {
                Ok(()) => acts += 1,
                Err(error) if EXPECTED.contains(&error.code().as_ref()) => acts += 1,
                Err(error)
                    if FALLING.contains(&error.code().as_ref()) && self.ledger.is_falling() =>
                {
                    break;
                }
                Err(error) => panic!("{}: {}: {error}", self.ledger.round, error.code()),
            }
        }
        while let Some(client) = clients.join_next().await {
            client.unwrap();
        }
        acts
    }

    async fn act(&mut self, by: Instant, clients: &mut JoinSet<()>) -> Result<(), SessionError> {
        let known = self.ledger.sessions();
        if known.len() < 3 || self.dice.u8(0..20) == 0 {
            return self.open().await;
        }
        let id = known[self.dice.usize(0..known.len())].clone();
        match self.dice.u8(0..40) {
            0..10 => self.prompt(&id).await,
            10..19 => self.answer().await,
            19..24 => self.session(&id).await?.interrupt_and_wait().await.map(drop),
            24..27 => self.session(&id).await?.hold().await.map(drop),
            27..30 => self.session(&id).await?.release().await.map(drop),
            30 => self.session(&id).await?.toggle_hold(HoldState::Off).await.map(drop),
            31..35 => self.attach(&id, by, clients).await,
            35 => self.run(&id).await,
            36 => self.session(&id).await?.close().await,
            37 => self.delete(&id).await,
            38 => {
                self.session(&id).await?.rename(format!("person {} called it", self.number)).await
            }
            _ => self.look().await,
        }
    }

    async fn session(&self, id: &SessionId) -> Result<SessionHandle, SessionError> {
        self.sessions.get(id.as_str()).await
    }

    async fn open(&mut self) -> Result<(), SessionError> {
        let policy = [PolicyMode::All, PolicyMode::Ask][self.dice.usize(0..2)];
        let open = OpenSession::in_folder(&self.work).policy(policy).model("rehearsal");
        let session = self.sessions.open(open).await?;
        self.ledger.note(session.id(), |_| {});
        Ok(())
    }

    /// A random script with a unique token, by which its processes are known.
    fn script(&mut self) -> String {
        let token = format!("token-{}-{}", self.number, self.dice.u64(..));
        SCRIPTS[self.dice.usize(0..SCRIPTS.len())].replace("TOKEN", &token)
    }

    async fn prompt(&mut self, id: &SessionId) -> Result<(), SessionError> {
        let script = self.script();
        let prompted = self.session(id).await?.prompt(script).await?;
        self.ledger.promised(id, prompted.saved, |records| records.prompts.push(prompted.prompt));
        Ok(())
    }

    /// Answers a random open ask, rightly or wrongly.
    async fn answer(&mut self) -> Result<(), SessionError> {
        let inbox = self.sessions.inbox().await?;
        let Some(open) = (!inbox.is_empty()).then(|| &inbox[self.dice.usize(0..inbox.len())])
        else {
            return Ok(());
        };
        let answer = answer(&mut self.dice);
        let answered = self.session(&open.session).await?.answer(&open.ask.id, answer).await?;
        self.ledger.promised(&open.session, answered.saved, |records| {
            records.answers.push(open.ask.id.clone())
        });
        Ok(())
    }

    async fn attach(
        &mut self,
        id: &SessionId,
        by: Instant,
        clients: &mut JoinSet<()>,
    ) -> Result<(), SessionError> {
        let session = self.session(id).await?;
        let from = if self.dice.bool() { AttachFrom::start() } else { AttachFrom::now() };
        let pace = match self.dice.u8(0..10) {
            0 => Pace::Sleeps,
            1 | 2 => Pace::Dawdles,
            _ => Pace::Reads,
        };
        let until = by.min(Instant::now() + Duration::from_millis(self.dice.u64(1..3_000)));
        let (ledger, mark) = (Arc::clone(&self.ledger), self.mark.clone());
        clients.spawn(async move { watch(session, from, pace, until, &mark, &ledger).await });
        Ok(())
    }

    /// Starts a run of a few iterations.
    async fn run(&mut self, id: &SessionId) -> Result<(), SessionError> {
        let goal = format!("Work through it.\n```rehearsal\n{}\n```", self.script());
        self.session(id).await?.start_run(RunRequest::new(goal)).await.map(drop)
    }

    async fn delete(&mut self, id: &SessionId) -> Result<(), SessionError> {
        // From now on the session may be gone, whatever the result.
        self.ledger.note(id, |records| records.deleted = Some(false));
        let deleted = self.sessions.delete(id.as_str()).await;
        match &deleted {
            Ok(()) => self.ledger.note(id, |records| records.deleted = Some(true)),
            Err(error) if error.code() == "live" => {
                self.ledger.note(id, |records| records.deleted = None)
            }
            Err(_) => {}
        }
        deleted
    }

    /// Checks that the list has every session of the ledger, and none twice.
    async fn look(&mut self) -> Result<(), SessionError> {
        let known = self.ledger.sessions();
        let mut listed: Vec<SessionId> =
            self.sessions.list().await?.into_iter().map(|session| session.id).collect();
        let count = listed.len();
        listed.sort();
        listed.dedup();
        assert_eq!(listed.len(), count, "{}: listed twice: {listed:?}", self.ledger.round);
        let still = self.ledger.sessions();
        for id in known.iter().filter(|id| still.contains(id)) {
            assert!(listed.contains(id), "{}: {id} is not listed", self.ledger.round);
        }
        Ok(())
    }
}
