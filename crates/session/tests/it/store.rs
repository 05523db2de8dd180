//! The stores: rules that all keep, tests of SQLite alone for damage, versions, several processes and
//! a full disk, and tests of PostgreSQL alone for owners, leases and the server.

mod crashes;
mod damage;
mod many;
mod postgres;
mod rules;
mod versions;

use std::sync::Arc;

use holdpoint_common::{
    AsksMode, Body, Event, Fact, Hold, PolicyMode, PolicyRules, PromptFact, SandboxSettings,
    SessionFact, SessionId, SessionSettings, SessionStatus, SessionSummary, Timestamp, Who,
};
use holdpoint_session::store::Machine;

pub(crate) fn id(text: &str) -> SessionId {
    text.parse().unwrap()
}

/// A machine with this name.
pub(crate) fn machine(name: &str) -> Machine {
    Machine {
        name: name.to_owned(),
        id: format!("id of {name}"),
        certificate: format!("certificate of {name}"),
        address: None,
        places: Default::default(),
    }
}

pub(crate) fn opened(session: &SessionId, seq: u64) -> Arc<Event> {
    let settings = SessionSettings {
        id: session.clone(),
        name: "demo".into(),
        workspace: "/w".into(),
        model: "rehearsal".into(),
        agent: None,
        asks: AsksMode::Wait,
        policy: PolicyMode::Ask,
        rules: PolicyRules::default(),
        sandbox: SandboxSettings::off(),
        max_steps: 0,
        max_turn_tokens: 0,
    };
    event(seq, Fact::Session(SessionFact::Opened { settings }))
}

pub(crate) fn prompt(seq: u64, text: &str) -> Arc<Event> {
    let fact = Fact::Prompt(PromptFact::Accepted {
        prompt: holdpoint_common::PromptId(1),
        text: text.into(),
        by: Who::named("t"),
        typed_bytes: None,
        idempotency_key: None,
    });
    event(seq, fact)
}

pub(crate) fn event(seq: u64, fact: Fact) -> Arc<Event> {
    Arc::new(Event {
        seq,
        at: Timestamp(1_790_000_000_000 + seq),
        turn: None,
        step: None,
        body: Body::Fact(fact),
    })
}

pub(crate) fn summary(session: &SessionId, title: &str) -> SessionSummary {
    SessionSummary {
        id: session.clone(),
        name: "demo".into(),
        title: title.to_owned(),
        last_line: None,
        live: false,
        status: SessionStatus::Idle,
        since: Timestamp(1),
        last_turn: None,
        last_run: None,
        waits_for: None,
        asks: 0,
        hold: Hold::Off,
        run: None,
        tasks: Default::default(),
        model: "rehearsal".into(),
        workspace: "/w".into(),
        machine: None,
        away: None,
        gaps: Default::default(),
    }
}
