//! Histories with lost facts: whatever was lost, no id is given twice.

use std::collections::BTreeSet;
use std::sync::Arc;

use holdpoint_common::{
    Body, Delta, Event, Fact, Limits, PromptFact, RestoreCause, RunFact, TurnFact,
};
use holdpoint_session::state::{Phase, State};

use super::bench::{Bench, prompt, restored};
use super::input::Input;
use super::stories::{Property, StepOfHistory, check_property, ensure};

/// The ids that facts give to prompts, turns and items.
#[derive(Debug, Default)]
struct UsedIds {
    prompts: BTreeSet<u64>,
    turns: BTreeSet<u64>,
    items: BTreeSet<u64>,
}

impl UsedIds {
    fn by(facts: &[Arc<Event>]) -> Self {
        let mut given = Self::default();
        for fact in facts.iter().filter_map(|event| event.fact()) {
            match fact {
                Fact::Prompt(PromptFact::Accepted { prompt, .. }) => {
                    given.prompts.extend([prompt.0])
                }
                Fact::Turn(TurnFact::Started { turn, .. })
                | Fact::Run(RunFact::IterationStarted { turn, .. }) => given.turns.extend([turn.0]),
                Fact::Turn(TurnFact::AssistantMessage(message)) => {
                    given.items.extend(message.blocks.iter().map(|block| block.item.0));
                    given.items.extend(message.calls.iter().map(|call| call.id.item().0));
                }
                _ => {}
            }
        }
        given
    }
}

/// Replaces a range of facts by a gap, as a store declares it.
fn without(facts: &[Arc<Event>], first: usize, last: usize) -> Vec<Arc<Event>> {
    let (from, to) = (facts[first - 1].seq + 1, facts[last].seq);
    let body = Body::Delta(Delta::Gap { from, to });
    let gap = Arc::new(Event { seq: from, at: facts[first - 1].at, turn: None, step: None, body });
    facts[..first].iter().cloned().chain([gap]).chain(facts[last + 1..].iter().cloned()).collect()
}

/// Restores a session from the remaining facts and checks the ids that it gives from then on.
fn check_continuation(facts: &[Arc<Event>], given: &UsedIds, bench: &Bench) -> Result<(), String> {
    let Some(state) = State::fold(facts) else {
        return Err("the first fact opens no session".to_owned());
    };
    let item = state.next_item().0;
    ensure!(!given.items.contains(&item), "item {item} was already used: {given:?}");
    let limits = Limits { max_queued_prompts: usize::MAX, ..bench.limits.clone() };
    let mut again = Bench { state, log: Vec::new(), next: bench.next, now: bench.now, limits };
    let inputs =
        [restored(RestoreCause::Restart), restored(RestoreCause::Unloaded), prompt("go on")];
    for input in inputs.into_iter().chain([Input::Release]) {
        again.take(input.clone()).map_err(|refused| format!("{input:?} was refused: {refused}"))?;
    }
    ensure!(!matches!(again.state.phase(), Phase::Closed), "the session is closed");
    let named = UsedIds::by(&again.log);
    ensure!(
        named.prompts.len() == 1 && named.prompts.is_disjoint(&given.prompts),
        "{named:?} after {given:?}"
    );
    ensure!(named.turns.is_disjoint(&given.turns), "{named:?} after {given:?}");
    Ok(())
}

struct NeverNamedAgain;

impl Property for NeverNamedAgain {
    fn open(_: &Bench) -> Self {
        Self
    }

    fn see(&mut self, _: &StepOfHistory<'_>) -> Result<(), String> {
        Ok(())
    }

    fn end(&mut self, bench: &Bench) -> Result<(), String> {
        let (facts, given) = (&bench.log, UsedIds::by(&bench.log));
        let end = facts.len();
        if end < 2 {
            return Ok(());
        }
        // One fact, some, and all facts behind one. The history decides where.
        let first = 1 + usize::try_from(bench.next).unwrap_or_default() * 7 % (end - 1);
        for last in [first, first + (end - first) / 2, end - 1] {
            let left = without(facts, first, last.min(end - 1));
            check_continuation(&left, &given, bench).map_err(|why| {
                format!("{why}\nwithout facts {first} to {last} of {end}: {:?}", &facts[first..])
            })?;
        }
        Ok(())
    }
}

#[test]
fn m_a5_no_id_of_a_lost_fact_is_given_again() {
    check_property::<NeverNamedAgain>();
}

/// The next id follows the newest known one; a gap before that no longer counts.
#[test]
fn m_a5_the_next_id_follows_the_newest_known_one() {
    let bench =
        Bench::open(holdpoint_common::AsksMode::Wait, 9).with((0..5).map(|_| prompt("again")));
    // The first prompt starts its turn, so it has two facts.
    let left = without(&bench.log, 3, 4);
    let state = State::fold(&left).expect("it begins");
    let mut again = Bench { state, log: Vec::new(), ..bench };
    again.take(prompt("go on")).expect("not refused");
    assert_eq!(UsedIds::by(&again.log).prompts, BTreeSet::from([6]));
}
