//! A client that is attached for a while and reads at once, slowly, or never.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use holdpoint_common::{
    Answer, Fact, PromptFact, PromptId, SessionStatus, Timestamp, TurnFact, TurnId,
};
use holdpoint_session::testing::Recorder;
use holdpoint_session::{AttachFrom, SessionHandle};

use super::ledger::Ledger;
use super::log::{living, token};

/// How fast a client reads.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Pace {
    Reads,
    Dawdles,
    Sleeps,
}

/// Watches a session until `by`, checks the stream against the invariants, and records the facts.
pub(crate) async fn watch(
    session: SessionHandle,
    from: AttachFrom,
    pace: Pace,
    by: Instant,
    mark: &str,
    ledger: &Ledger,
) {
    let Ok(attachment) = session.attach(from).await else { return };
    let snapshot = Arc::clone(attachment.snapshot());
    let is_paused = matches!(snapshot.status, SessionStatus::Paused | SessionStatus::Interrupted);
    assert!(
        snapshot.asks.is_empty() || is_paused && snapshot.turn.is_some(),
        "{}: {snapshot:?}",
        ledger.round
    );
    if matches!(pace, Pace::Sleeps) {
        tokio::time::sleep_until(by.into()).await;
        return;
    }
    let mut events = Recorder::new(attachment);
    let (mut over, mut prompts, mut turns) = (BTreeSet::new(), BTreeMap::new(), BTreeMap::new());
    // The recorder itself checks that numbers rise and that items add up.
    while let Ok(Some(event)) = tokio::time::timeout_at(by.into(), events.next()).await {
        if let Some(turn) = event.turn {
            assert!(!over.contains(&turn), "{}: {event:?} after its turn's end", ledger.round);
        }
        if matches!(pace, Pace::Dawdles) {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        let Some(fact) = event.fact() else { continue };
        ledger.note(session.id(), |records| {
            let before = records.facts.insert(event.seq, Arc::clone(&event));
            assert!(
                before.is_none_or(|before| before == event),
                "{}: {} is two facts",
                ledger.round,
                event.seq
            );
        });
        follow(
            fact,
            event.turn,
            event.at,
            token(&event),
            (&mut over, &mut prompts, &mut turns),
            mark,
            ledger,
        );
    }
}

type Followed<'a> = (
    &'a mut BTreeSet<TurnId>,
    &'a mut BTreeMap<PromptId, String>,
    &'a mut BTreeMap<TurnId, String>,
);

/// Tracks which turn has which token, and looks for the token's processes when the turn is over.
fn follow(
    fact: &Fact,
    turn: Option<TurnId>,
    at: Timestamp,
    token: Option<String>,
    known: Followed<'_>,
    mark: &str,
    ledger: &Ledger,
) {
    let (over, prompts, turns) = known;
    match fact {
        Fact::Prompt(PromptFact::Accepted { prompt, .. }) => {
            token.map(|token| prompts.insert(*prompt, token));
        }
        Fact::Turn(TurnFact::Started { turn, prompt }) => {
            prompts.remove(prompt).map(|token| turns.insert(*turn, token));
        }
        Fact::Turn(TurnFact::Finished { .. }) => {
            let turn = turn.expect("the end of a turn names its turn");
            over.insert(turn);
            if let Some(token) = turns.remove(&turn) {
                let living = living(mark, &token, at);
                assert!(living.is_empty(), "{}: {turn} is over, and {living:?} live", ledger.round);
            }
        }
        _ => {}
    }
}

/// An answer that may or may not fit.
pub(crate) fn answer(dice: &mut fastrand::Rng) -> Answer {
    match dice.u8(0..8) {
        0..3 => Answer::Approve { always: dice.u8(0..10) == 0 },
        3..5 => Answer::Deny { reason: dice.bool().then(|| "not now".into()), always: false },
        5..7 => Answer::Cancel,
        _ => Answer::Resume,
    }
}
