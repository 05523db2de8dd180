//! The decision for each input in each phase.

mod asks;
mod clients;
mod ends;
mod gates;
mod holds;
mod jobs;
mod moving;
mod prompt;
mod report;
mod restore;
mod run;
mod settings;
mod shutdown;
mod tasks;

use holdpoint_common::{Fact, Refused};

pub(super) use self::asks::denial;
use super::State;
use super::decision::{Decision, Effect};
use super::input::{Input, Moment};

/// Decides what `input` does to `state`, without changing it.
///
/// # Errors
/// Returns [`Refused`] if the state does not allow the input. A refused input changes nothing.
pub fn decide<I: Input>(
    state: &State,
    moment: Moment<'_>,
    input: I,
) -> Result<Decision<I::Reply>, Refused> {
    let mut builder = DecisionBuilder { state, moment, facts: Vec::new(), effects: Vec::new() };
    let reply = input.decide(&mut builder)?;
    Ok(Decision { facts: builder.facts, effects: builder.effects, reply })
}

/// A decision under construction.
pub struct DecisionBuilder<'a> {
    state: &'a State,
    moment: Moment<'a>,
    facts: Vec<Fact>,
    effects: Vec<Effect>,
}

impl DecisionBuilder<'_> {
    /// Adds a fact to the decision.
    fn record(&mut self, fact: impl Into<Fact>) {
        self.facts.push(fact.into());
    }

    /// Adds several facts to the decision.
    fn record_all(&mut self, facts: impl IntoIterator<Item: Into<Fact>>) {
        self.facts.extend(facts.into_iter().map(Into::into));
    }
}
