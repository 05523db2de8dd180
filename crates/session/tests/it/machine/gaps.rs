//! Histories of which facts are lost: whatever those were, nothing gets a name that was given.

use std::collections::BTreeSet;
use std::sync::Arc;

use holdpoint_common::{Body, Delta, Event, Fact, Limits, RestoreCause};
use holdpoint_session::state::{Input, Phase, State};

use super::bench::{Bench, prompt, restored};
use super::stories::{Seen, Watch, ensure, watched};

/// The names that facts give: of prompts, turns and items.
#[derive(Debug, Default)]
struct Given {
    prompts: BTreeSet<u64>,
    turns: BTreeSet<u64>,
    items: BTreeSet<u64>,
}

impl Given {
    fn by(facts: &[Arc<Event>]) -> Self {
        let mut given = Self::default();
        for fact in facts.iter().filter_map(|event| event.fact()) {
            match fact {
                Fact::PromptAccepted { prompt, .. } => given.prompts.extend([prompt.0]),
                Fact::TurnStarted { turn, .. } | Fact::IterationStarted { turn, .. } => given.turns.extend([turn.0]),
                Fact::AssistantMessage(message) => {
                    given.items.extend(message.blocks.iter().map(|block| block.item.0));
                    given.items.extend(message.calls.iter().map(|call| call.id.item().0));
                }
                _ => {}
            }
        }
        given
    }
}

/// Facts, with a gap in the place of those from one on to another, as a store declares it.
fn without(facts: &[Arc<Event>], first: usize, last: usize) -> Vec<Arc<Event>> {
    let (from, to) = (facts[first - 1].seq + 1, facts[last].seq);
    let body = Body::Delta(Delta::Gap { from, to });
    let gap = Arc::new(Event { seq: from, at: facts[first - 1].at, turn: None, step: None, body });
    facts[..first].iter().cloned().chain([gap]).chain(facts[last + 1..].iter().cloned()).collect()
}

/// Opens what is left of a session again, and checks what is named from then on.
fn goes_on(facts: &[Arc<Event>], given: &Given, bench: &Bench) -> Result<(), String> {
    let Some(state) = State::fold(facts) else { return Err("it does not begin".to_owned()) };
    let item = state.next_item().0;
    ensure!(!given.items.contains(&item), "item {item} was given: {given:?}");
    let limits = Limits { max_queued_prompts: usize::MAX, ..bench.limits.clone() };
    let mut again = Bench { state, log: Vec::new(), next: bench.next, now: bench.now, limits };
    let inputs = [restored(RestoreCause::Restart), restored(RestoreCause::Unloaded), prompt("go on")];
    for input in inputs.into_iter().chain([Input::Release]) {
        again.take(input.clone()).map_err(|refused| format!("{input:?} was refused: {refused}"))?;
    }
    ensure!(!matches!(again.state.phase(), Phase::Closed), "it is closed");
    let named = Given::by(&again.log);
    ensure!(named.prompts.len() == 1 && named.prompts.is_disjoint(&given.prompts), "{named:?} after {given:?}");
    ensure!(named.turns.is_disjoint(&given.turns), "{named:?} after {given:?}");
    Ok(())
}

struct NeverNamedAgain;

impl Watch for NeverNamedAgain {
    fn open(_: &Bench) -> Self {
        Self
    }

    fn see(&mut self, _: &Seen<'_>) -> Result<(), String> {
        Ok(())
    }

    fn end(&mut self, bench: &Bench) -> Result<(), String> {
        let (facts, given) = (&bench.log, Given::by(&bench.log));
        let end = facts.len();
        if end < 2 {
            return Ok(());
        }
        // One fact, some, and all behind one: where, says the history.
        let first = 1 + usize::try_from(bench.next).unwrap_or_default() * 7 % (end - 1);
        for last in [first, first + (end - first) / 2, end - 1] {
            let left = without(facts, first, last.min(end - 1));
            goes_on(&left, &given, bench)
                .map_err(|why| format!("{why}\nwithout facts {first} to {last} of {end}: {:?}", &facts[first..]))?;
        }
        Ok(())
    }
}

#[test]
fn m_a5_nothing_gets_a_name_that_a_lost_fact_may_have_given() {
    watched::<NeverNamedAgain>();
}

/// A name that is known to be the newest is what the next one follows: a gap before it counts no more.
#[test]
fn m_a5_a_gap_before_a_known_name_leaves_no_hole_behind_it() {
    let bench = Bench::open(holdpoint_common::AsksMode::Wait, 9).with((0..5).map(|_| prompt("again")));
    // One of the first prompt, which starts, has two facts.
    let left = without(&bench.log, 3, 4);
    let state = State::fold(&left).expect("it begins");
    let mut again = Bench { state, log: Vec::new(), ..bench };
    again.take(prompt("go on")).expect("not refused");
    assert_eq!(Given::by(&again.log).prompts, BTreeSet::from([6]));
}
