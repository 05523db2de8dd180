//! Checks of a session's whole log against the invariants.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use holdpoint_common::{
    AskFact, AskId, Event, Fact, PromptFact, PromptId, RunFact, Timestamp, TurnFact, TurnId,
};

use super::ledger::SessionRecords;

/// The turn, asks and prompts that are open at one point of the log.
#[derive(Default)]
struct Open {
    turn: Option<TurnId>,
    over: BTreeSet<TurnId>,
    asks: BTreeSet<AskId>,
    asked: BTreeSet<AskId>,
    waiting: BTreeSet<PromptId>,
    prompts: BTreeSet<PromptId>,
}

/// Checks invariants 1, 3 and 4 over a log that ends with the session's close.
///
/// # Panics If one does not hold.
pub(crate) fn check(log: &[Arc<Event>], round: &str) {
    let mut open = Open::default();
    let mut last = 0;
    for event in log {
        assert!(event.seq > last, "{round}: numbers rise: {} after {last}", event.seq);
        last = event.seq;
        if let Some(fact) = event.fact() {
            open.take(event, fact, round);
        }
    }
    assert!(open.turn.is_none(), "{round}: a turn has no end: {:?}", open.turn);
    assert!(open.asks.is_empty(), "{round}: asks have no end: {:?}", open.asks);
    assert!(open.waiting.is_empty(), "{round}: prompts have no end: {:?}", open.waiting);
}

impl Open {
    fn take(&mut self, event: &Event, fact: &Fact, round: &str) {
        let at = event.seq;
        if let Some(turn) = event.turn {
            assert!(
                !self.over.contains(&turn),
                "{round}: {at} is of a turn that is over: {fact:?}"
            );
        }
        match fact {
            Fact::Prompt(PromptFact::Accepted { prompt, .. }) => {
                assert!(
                    self.prompts.insert(*prompt),
                    "{round}: {at}: prompt {prompt} was accepted before"
                );
                self.waiting.insert(*prompt);
            }
            Fact::Prompt(PromptFact::Returned { prompt, .. }) => {
                assert!(self.waiting.remove(prompt), "{round}: {at}: prompt {prompt} ends twice");
            }
            Fact::Turn(TurnFact::Started { turn, prompt }) => {
                assert!(self.waiting.remove(prompt), "{round}: {at}: prompt {prompt} begins twice");
                assert_eq!(self.turn.replace(*turn), None, "{round}: {at}: two turns at once");
            }
            Fact::Prompt(PromptFact::Delivered { prompt, .. }) => {
                assert!(self.waiting.remove(prompt), "{round}: {at}: prompt {prompt} ends twice");
            }
            Fact::Run(RunFact::IterationStarted { turn, .. }) => {
                assert_eq!(self.turn.replace(*turn), None, "{round}: {at}: two turns at once");
            }
            Fact::Turn(TurnFact::Finished { .. }) => {
                assert_eq!(event.turn, self.turn, "{round}: {at}: another turn ends than is open");
                assert!(
                    self.asks.is_empty(),
                    "{round}: {at}: asks outlive their turn: {:?}",
                    self.asks
                );
                self.over.extend(self.turn.take());
            }
            Fact::Ask(AskFact::Raised { ask }) => {
                assert!(self.turn.is_some(), "{round}: {at}: an ask outside of a turn");
                assert!(
                    self.asked.insert(ask.id.clone()),
                    "{round}: {at}: an ask's id is used again: {}",
                    ask.id
                );
                self.asks.insert(ask.id.clone());
            }
            Fact::Ask(AskFact::Answered { ask, .. } | AskFact::Closed { ask, .. }) => {
                assert!(self.asks.remove(ask), "{round}: {at}: ask {ask} closes twice");
            }
            _ => {}
        }
    }
}

/// Checks invariant 3 for the facts that clients received, and invariant 7 for the acknowledged
/// saves.
pub(crate) fn has(log: &[Arc<Event>], records: &SessionRecords, round: &str) {
    let facts: BTreeMap<u64, &Arc<Event>> =
        log.iter().filter(|event| event.fact().is_some()).map(|event| (event.seq, event)).collect();
    for (seq, fact) in &records.facts {
        assert_eq!(facts.get(seq), Some(&fact), "{round}: a client was given this");
    }
    let of = |wanted: &dyn Fn(&Fact) -> bool| {
        facts.values().filter_map(|event| event.fact()).filter(|fact| wanted(fact)).count()
    };
    for prompt in &records.prompts {
        let accepted = of(
            &|fact| matches!(fact, Fact::Prompt(PromptFact::Accepted { prompt: of, .. }) if of == prompt),
        );
        assert_eq!(accepted, 1, "{round}: prompt {prompt} was saved");
    }
    for ask in &records.answers {
        let answered =
            of(&|fact| matches!(fact, Fact::Ask(AskFact::Answered { ask: of, .. }) if of == ask));
        assert_eq!(answered, 1, "{round}: the answer to {ask} was saved");
    }
}

/// Checks invariant 5 once everything is over: no process of any of the session's turns is alive.
pub(crate) fn nothing_runs(log: &[Arc<Event>], mark: &str, round: &str) {
    let now = log.last().expect("a log has a first fact").at;
    for token in log.iter().filter_map(|event| token(event)) {
        let living = living(mark, &token, now);
        assert!(living.is_empty(), "{round}: {token} still runs: {living:?}");
    }
}

/// The token that the processes of a prompt's turn carry, if it has one.
pub(crate) fn token(event: &Event) -> Option<String> {
    let Some(Fact::Prompt(PromptFact::Accepted { text, .. })) = event.fact() else { return None };
    let from = text.find("token-")?;
    Some(
        text[from..]
            .chars()
            .take_while(|letter| letter.is_ascii_alphanumeric() || *letter == '-')
            .collect(),
    )
}

/// The processes of this world that carry this token and began before `at`. Later ones belong to a
/// later turn: if a turn is cut before its answer, its script is played with the next prompt.
pub(crate) fn living(mark: &str, token: &str, at: Timestamp) -> Vec<(u32, String)> {
    let entries = std::fs::read_dir("/proc").unwrap();
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    pids.filter_map(|pid| {
        let arguments = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let text = String::from_utf8_lossy(&arguments).replace('\0', " ");
        let environment = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
        let ours = environment.windows(mark.len()).any(|part| part == mark.as_bytes());
        let carries = ours && text.split(' ').any(|word| word == token);
        (carries && begun(pid)? < at.0).then_some((pid, text))
    })
    .collect()
}

/// The latest time at which a running process can have begun, in ms since 1970.
fn begun(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let is_dead = fields.next()? == "Z";
    let ticks: u64 = fields.nth(18)?.parse().ok()?;
    let uptime: f64 =
        std::fs::read_to_string("/proc/uptime").ok()?.split_whitespace().next()?.parse().ok()?;
    let age = Duration::from_secs_f64(uptime).saturating_sub(Duration::from_millis(ticks * 10));
    let now = UNIX_EPOCH.elapsed().unwrap();
    // The kernel's times are in ticks of 10 ms.
    let begun = now.saturating_sub(age) + Duration::from_millis(20);
    (!is_dead).then(|| u64::try_from(begun.as_millis()).unwrap())
}
