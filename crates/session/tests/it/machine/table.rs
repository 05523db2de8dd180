//! Every phase × input pair, against `table.txt`.
//!
//! The form of the table: `# input`, then for each outcome a line `reply | facts | effects` (or
//! `refused: why`), and below it, indented, the phases in which the input has this outcome; `(all)`
//! means every phase.

use std::collections::BTreeMap;

use holdpoint_common::api::RunRequest;
use holdpoint_common::{
    Answer, AskId, AskRequest, AsksMode, HoldState, Outcome, PauseKind, PolicyMode, PromptId,
    QuestionReply, RestoreCause, SessionStatus, TaskState, TurnId,
};
use holdpoint_session::state::{CallStage, Clearance, Confirm, Gate, GateReply, Phase, Report};

use super::bench::{
    Bench, LONGEST, add_task, allow, allow_key, ann, answer, ask, ask_id, ben, confirm,
    confirm_deniable, finished, gate, job_ended, job_started, next_task, pause, piece, prompt,
    question, refused_client, report, restored, run, session, step_finished, tasks, tool_finished,
};
use super::describe;
use super::input::{Input, Reply};

const TABLE: &str = include_str!("table.txt");

/// The call of the phases that have one.
const CALL: u64 = 2;

/// Every phase, by name. The queue has room for one prompt.
#[rustfmt::skip]
const PHASES: [&str; 37] = [
    // No turn; held with an empty queue; held with one queued prompt.
    "idle", "held", "queued",
    // A turn before its first step, and in one.
    "starting", "stepping",
    // A call without a verdict: with asks mode wait, deny and approve, and after it was approved or
    // denied with *always*.
    "proposed", "proposed/deny", "proposed/approve", "proposed/always", "proposed/never",
    // A call that needs a Confirm: asking, approved, denied.
    "asking", "approved", "denied",
    // A call that runs, in each asks mode, and a call that asks.
    "started", "started/deny", "started/approve", "continue?", "confirm?", "question?",
    // A running call that has started a background job; the job alone, after its turn.
    "started/job", "idle/job",
    // A step with one queued prompt; a requested hold; a hold between two steps, with one queued
    // prompt.
    "busy", "pausing", "paused",
    // A turn cut while its call asks; cut while it runs, then held again with one queued prompt.
    "cut", "cut/pausing",
    // The runtime stops with an open turn and one queued prompt; the call has started a background
    // job.
    "stopping", "stopping/job",
    // The first iteration of a run of one at a time, with a task; its call runs; a hold is
    // requested.
    "run", "run-started", "run-pausing",
    // A failed iteration before the next; a run held by its limit, with one queued prompt; a run
    // cut by a restart.
    "run-waiting", "run-limit", "run-restored",
    // A session closing with an open turn; the call has started a background job; the session is
    // closed.
    "closing", "closing/job", "closed",
];

/// The machine in this phase.
fn at(phase: &str) -> Bench {
    let (asks, phase) = match phase.rsplit_once('/') {
        Some((phase, "deny")) => (AsksMode::Deny, phase),
        Some((phase, "approve")) => (AsksMode::Approve, phase),
        _ => (AsksMode::Wait, phase),
    };
    let idle = || Bench::open(asks, 1);
    let begun = || idle().with([prompt("one")]);
    let step = || begun().with([gate(1, Gate::Step)]);
    let proposed = || step().with([report(1, Report::Answered(answer(1, 1)))]);
    let asking = || proposed().with([gate(1, confirm(CALL, Some("true")))]);
    let answered = |answer| {
        let bench = asking();
        let ask = bench.last_ask().expect("an open ask");
        bench.with([Input::Answer { ask, answer, by: ann() }])
    };
    let proposed_again = |first| {
        answered(first).with([
            report(1, tool_finished(CALL)),
            gate(1, Gate::Step),
            report(1, Report::Answered(answer(1, 1))),
        ])
    };
    let started = || proposed().with([gate(1, allow(CALL))]);
    let hold = || Input::Hold { by: ann() };
    let interrupt = || Input::Interrupt { turn: None, by: ann() };
    let close = || Input::Close { unused_since: None, by: ann() };
    match phase {
        "idle" => idle(),
        "held" => idle().with([hold()]),
        "queued" => idle().with([hold(), prompt("one")]),
        "starting" => begun(),
        "stepping" => step(),
        "proposed" => proposed(),
        "proposed/always" => proposed_again(Answer::Approve { always: true }),
        "proposed/never" => {
            proposed_again(Answer::Deny { reason: Some("too risky".to_owned()), always: true })
        }
        "asking" => asking(),
        "approved" => answered(Answer::Approve { always: false }),
        "denied" => answered(Answer::Deny { reason: Some("too risky".to_owned()), always: false }),
        "started" => started(),
        "continue?" => {
            started().with([ask(1, CALL, AskRequest::Pause(pause(PauseKind::Continue)))])
        }
        "confirm?" => started().with([ask(1, CALL, AskRequest::Pause(pause(PauseKind::Confirm)))]),
        "question?" => started().with([ask(1, CALL, question())]),
        "started/job" => started().with([job_started(1, CALL)]),
        "idle/job" => started().with([
            job_started(1, CALL),
            report(1, tool_finished(CALL)),
            report(1, finished(Outcome::Done)),
        ]),
        "busy" => step().with([prompt("two")]),
        "pausing" => step().with([hold()]),
        "paused" => step().with([
            report(1, Report::Answered(answer(1, 1))),
            gate(1, allow(CALL)),
            report(1, tool_finished(CALL)),
            hold(),
            gate(1, Gate::Step),
            prompt("two"),
        ]),
        "cut" => asking().with([interrupt()]),
        "cut/pausing" => started().with([interrupt(), hold(), prompt("two")]),
        "stopping" => started().with([prompt("two"), Input::Shutdown]),
        "stopping/job" => started().with([job_started(1, CALL), Input::Shutdown]),
        "run" => idle().with([run(1), gate(1, Gate::Step)]),
        "run-started" => idle().with([
            run(1),
            gate(1, Gate::Step),
            report(1, Report::Answered(answer(1, 1))),
            gate(1, allow(CALL)),
        ]),
        "run-pausing" => idle().with([run(2), gate(1, Gate::Step), hold()]),
        "run-waiting" => {
            idle().with([run(2), gate(1, Gate::Step), report(1, finished(Outcome::Failed))])
        }
        "run-limit" => idle().with([
            run(1),
            gate(1, Gate::Step),
            prompt("one"),
            report(1, finished(Outcome::Done)),
        ]),
        "run-restored" => {
            idle().with([run(1), gate(1, Gate::Step), restored(RestoreCause::Restart)])
        }
        "closing" => started().with([prompt("two"), close()]),
        "closing/job" => started().with([job_started(1, CALL), close()]),
        "closed" => started().with([close(), report(1, finished(Outcome::Done))]),
        other => panic!("no phase `{other}`"),
    }
}

/// Every input, by name, as it would arrive in this phase.
fn inputs(bench: &Bench) -> Vec<(&'static str, Input)> {
    let turn = bench.state.turn().map_or(1, |turn| turn.id.0);
    let stale = turn + 7;
    let next = bench.state.next_item().0;
    let to = |ask: AskId, answer| Input::Answer { ask, answer, by: ben() };
    let last = || bench.last_ask().unwrap_or_else(|| ask_id(1));
    let reply = |answer: &str| {
        let reply = QuestionReply { id: "q".to_owned(), answer: Some(answer.to_owned()) };
        Answer::Reply { answers: vec![reply] }
    };
    let toggle = |shown| Input::Toggle { shown, by: ben() };
    let unqueue = |prompt| Input::Unqueue { prompt, by: ben() };
    let last_prompt =
        bench.state.snapshot(0, 0, None).queue.last().map_or(PromptId(1), |queued| queued.prompt);
    let draft = piece(turn, bench.state.turn().map_or(1, |turn| turn.step), next);
    let cont = || AskRequest::Pause(pause(PauseKind::Continue));
    vec![
        ("prompt", prompt("words")),
        ("prompt: empty", prompt(" \n")),
        ("prompt: too long", prompt(&"x".repeat(LONGEST + 1))),
        ("unqueue the last prompt", unqueue(last_prompt)),
        ("unqueue a prompt that never was", unqueue(PromptId(99))),
        ("run", run(3)),
        ("run: no goal", Input::Run { request: RunRequest::new(" \n"), by: ben() }),
        ("wait over", Input::WaitOver { turn: TurnId(turn) }),
        ("wait over: of another turn", Input::WaitOver { turn: TurnId(7) }),
        ("tasks: add", tasks(turn, CALL, add_task("another"))),
        ("tasks: start the next", tasks(turn, CALL, next_task(TaskState::Doing))),
        ("tasks: by another call", tasks(turn, 99, add_task("another"))),
        ("tasks: of another turn", tasks(stale, CALL, add_task("another"))),
        ("answer the last ask: resume", to(last(), Answer::Resume)),
        ("answer the last ask: approve", to(last(), Answer::Approve { always: false })),
        ("answer the last ask: approve always", to(last(), Answer::Approve { always: true })),
        ("answer the last ask: deny", to(last(), Answer::Deny { reason: None, always: false })),
        (
            "answer the last ask: deny always",
            to(last(), Answer::Deny { reason: None, always: true }),
        ),
        ("answer the last ask: reply", to(last(), reply("yes"))),
        ("answer the last ask: empty reply", to(last(), reply(" "))),
        ("answer the last ask: cancel", to(last(), Answer::Cancel)),
        ("answer an ask that never was", to(ask_id(999), Answer::Resume)),
        (
            "answer another session's ask",
            to(AskId { session: session("other"), seq: last().seq }, Answer::Resume),
        ),
        ("interrupt", Input::Interrupt { turn: None, by: ben() }),
        ("interrupt this turn", Input::Interrupt { turn: Some(TurnId(turn)), by: ben() }),
        ("interrupt another turn", Input::Interrupt { turn: Some(TurnId(stale)), by: ben() }),
        ("hold", Input::Hold { by: ben() }),
        ("release", Input::Release),
        ("toggle, off shown", toggle(HoldState::Off)),
        ("toggle, requested shown", toggle(HoldState::Requested)),
        ("toggle, standing shown", toggle(HoldState::Standing)),
        ("rename", Input::Rename { name: "payments".to_owned(), by: ben() }),
        ("rename: two lines", Input::Rename { name: "pay\nments".to_owned(), by: ben() }),
        ("move", Input::Move { workspace: "/elsewhere".to_owned(), by: ben() }),
        ("model", Input::Model { model: "openai/gpt-5".to_owned(), by: ben() }),
        ("model: the same", Input::Model { model: "rehearsal".to_owned(), by: ben() }),
        ("debug", Input::Debug { enabled: true, by: ben() }),
        ("client refused", refused_client()),
        ("debug: the same", Input::Debug { enabled: false, by: ben() }),
        ("asks: wait", Input::Asks { asks: AsksMode::Wait, by: ben() }),
        ("asks: deny", Input::Asks { asks: AsksMode::Deny, by: ben() }),
        ("asks: approve", Input::Asks { asks: AsksMode::Approve, by: ben() }),
        ("policy: ask", Input::Policy { policy: PolicyMode::Ask, by: ben() }),
        ("policy: edits", Input::Policy { policy: PolicyMode::Edits, by: ben() }),
        ("close", Input::Close { unused_since: None, by: ben() }),
        ("close, unused since now", Input::Close { unused_since: Some(bench.next - 1), by: ben() }),
        ("close, unused since its opening", Input::Close { unused_since: Some(1), by: ben() }),
        ("shutdown", Input::Shutdown),
        ("ask: Continue", ask(turn, CALL, cont())),
        ("ask: Confirm", ask(turn, CALL, AskRequest::Pause(pause(PauseKind::Confirm)))),
        ("ask: question", ask(turn, CALL, question())),
        ("withdraw the last ask", Input::Withdraw { ask: last() }),
        ("withdraw an ask that never was", Input::Withdraw { ask: ask_id(999) }),
        ("ask of another turn", ask(stale, CALL, cont())),
        ("ask of another call", ask(turn, 99, cont())),
        ("job started", job_started(turn, CALL)),
        ("job started: by another call", job_started(turn, 99)),
        ("job started: of another turn", job_started(stale, CALL)),
        ("job ended", job_ended(CALL)),
        ("job ended: another", job_ended(99)),
        ("gate: step", gate(turn, Gate::Step)),
        ("gate: step of another turn", gate(stale, Gate::Step)),
        ("gate: call, allowed", gate(turn, allow(CALL))),
        ("gate: call, allowed, with a key", gate(turn, allow_key(CALL, Some("true")))),
        ("gate: call, to be confirmed", gate(turn, confirm(CALL, Some("true")))),
        ("gate: call, to be confirmed, no always", gate(turn, confirm(CALL, None))),
        ("gate: call, to be confirmed, may be denied", gate(turn, confirm_deniable(CALL))),
        ("gate: another call", gate(turn, allow(99))),
        ("gate: call of another turn", gate(stale, allow(CALL))),
        ("answered", report(turn, Report::Answered(answer(next, 1)))),
        ("answered: nothing", report(turn, Report::Answered(Default::default()))),
        ("answered: of another turn", report(stale, Report::Answered(answer(next, 1)))),
        ("tool finished", report(turn, tool_finished(CALL))),
        ("tool finished: another call", report(turn, tool_finished(99))),
        ("tool finished: of another turn", report(stale, tool_finished(CALL))),
        ("step finished", report(turn, step_finished())),
        ("step finished: of another turn", report(stale, step_finished())),
        ("files changed", report(turn, Report::FilesChanged(vec!["a.rs".to_owned()]))),
        ("files changed: none", report(turn, Report::FilesChanged(vec![]))),
        ("finished: done", report(turn, finished(Outcome::Done))),
        ("finished: failed", report(turn, finished(Outcome::Failed))),
        ("finished: of another turn", report(stale, finished(Outcome::Done))),
        ("restored: restart", restored(RestoreCause::Restart)),
        (
            "restored: restart, with a draft",
            Input::Restored { cause: RestoreCause::Restart, draft: vec![draft] },
        ),
        ("restored: panic", restored(RestoreCause::Panic)),
        ("restored: unloaded", restored(RestoreCause::Unloaded)),
    ]
}

/// The outcome of every pair, by input, in the table's own form.
fn actual_table() -> String {
    // By input: each outcome, with its phases.
    #[expect(clippy::type_complexity, reason = "the comment above describes the type")]
    let mut table: Vec<(&str, Vec<(String, Vec<&str>)>)> =
        inputs(&at("idle")).iter().map(|(name, _)| (*name, Vec::new())).collect();
    for phase in PHASES {
        let count = inputs(&at(phase)).len();
        for (n, (name, outcomes)) in table.iter_mut().enumerate().take(count) {
            let mut bench = at(phase);
            let (input_name, input) = inputs(&bench).swap_remove(n);
            assert_eq!(input_name, *name);
            let (before, events) = (bench.state.clone(), bench.log.len());
            let outcome = bench.take(input);
            if outcome.as_ref().map_or(true, |decision| decision.facts.is_empty()) {
                assert_eq!(bench.state, before, "`{name}` when {phase}: no fact, no change");
                assert_eq!(bench.log.len(), events);
            }
            let outcome = describe::outcome(&outcome);
            match outcomes.iter_mut().find(|(known, _)| *known == outcome) {
                Some((_, phases)) => phases.push(phase),
                None => outcomes.push((outcome, vec![phase])),
            }
        }
    }
    let mut text = String::new();
    for (name, outcomes) in table {
        text.push_str(&format!("\n# {name}\n"));
        for (outcome, phases) in outcomes {
            text.push_str(&format!("{outcome}\n"));
            let phases = if phases.len() == PHASES.len() { vec!["(all)"] } else { phases };
            for line in phases.chunks(12) {
                text.push_str(&format!("    {}\n", line.join(" ")));
            }
        }
    }
    text
}

/// The table as `input × phase → outcome`.
fn pairs(table: &str) -> BTreeMap<(String, String), String> {
    let (mut input, mut outcome) = (String::new(), String::new());
    let mut pairs = BTreeMap::new();
    for line in table.lines().filter(|line| !line.is_empty() && !line.starts_with("//")) {
        if let Some(name) = line.strip_prefix("# ") {
            name.clone_into(&mut input);
        } else if let Some(phases) = line.strip_prefix("    ") {
            let phases =
                if phases == "(all)" { PHASES.to_vec() } else { phases.split(' ').collect() };
            for phase in phases {
                let twice = pairs.insert((input.clone(), phase.to_owned()), outcome.clone());
                assert!(twice.is_none(), "`{input}` when {phase} is in the table twice");
            }
        } else {
            line.clone_into(&mut outcome);
        }
    }
    pairs
}

#[test]
fn every_phase_and_input_has_the_outcome_of_the_table() {
    let (expected, actual) = (pairs(TABLE), actual_table());
    if std::env::var_os("HOLDPOINT_TABLE").is_some() {
        panic!("the actual table:\n{actual}");
    }
    let actual = pairs(&actual);
    assert_eq!(actual.len(), PHASES.len() * inputs(&at("idle")).len());
    for ((input, phase), outcome) in &actual {
        let expected = expected.get(&(input.clone(), phase.clone()));
        assert_eq!(expected, Some(outcome), "`{input}` when {phase}");
    }
    assert_eq!(expected.len(), actual.len(), "the table has an unknown pair");
}

/// A Confirm that was closed as outdated stays closed, even if the runtime dies before its call
/// ends.
#[test]
fn m_b7_a_confirm_closed_as_outdated_is_not_open_after_a_restart() {
    let again = || [Input::Restored { cause: RestoreCause::Restart, draft: vec![] }];
    let mut bench = at("asking").with(again());
    assert!(bench.state.turn().is_some(), "it stands");
    let Gate::Tool { call, clearance: Clearance::Ask(confirm) } = confirm(CALL, None) else {
        unreachable!()
    };
    let clearance = Clearance::Ask(Confirm { message: "something else".to_owned(), ..confirm });
    let decision = bench.take(gate(1, Gate::Tool { call, clearance })).unwrap();
    assert!(matches!(decision.reply, Reply::Gate(GateReply::Denied { .. })), "{decision:?}");
    let bench = bench.with(again());
    assert_eq!((bench.state.turn(), bench.state.status()), (None, SessionStatus::Idle));
}

#[test]
fn m_a1_every_phase_has_its_status() {
    for phase in PHASES {
        let status = match phase {
            "idle" | "idle/job" | "closed" => SessionStatus::Idle,
            "held" | "queued" | "paused" | "run-limit" | "run-restored" | "asking"
            | "continue?" | "confirm?" | "question?" => SessionStatus::Paused,
            "cut" | "cut/pausing" | "stopping" | "stopping/job" | "closing" | "closing/job" => {
                SessionStatus::Interrupted
            }
            _ => SessionStatus::Running,
        };
        assert_eq!(at(phase).state.status(), status, "{phase}");
    }
}

#[test]
fn every_phase_matches_its_name() {
    for phase in PHASES {
        let bench = at(phase);
        let state = &bench.state;
        let is = match state.phase() {
            Phase::Idle if state.run().is_some() => "run-waiting run-limit run-restored",
            Phase::Idle if state.is_at_rest() => "idle",
            Phase::Idle => "held queued idle/job",
            Phase::Running(turn) if turn.step == 0 => "starting",
            Phase::Running(turn) => match turn.calls.front().map(|(_, stage)| stage) {
                None => match state.hold().shown() {
                    HoldState::Off if state.run().is_some() => "run",
                    HoldState::Off => "stepping busy",
                    HoldState::Requested if state.run().is_some() => "run-pausing",
                    HoldState::Requested => "pausing",
                    HoldState::Standing => "paused",
                },
                Some(CallStage::Proposed) => {
                    "proposed proposed/deny proposed/approve proposed/always proposed/never"
                }
                Some(CallStage::Asking) => "asking",
                Some(CallStage::Approved { .. }) => "approved",
                Some(CallStage::Denied { .. }) => "denied",
                Some(CallStage::Started) if state.run().is_some() => "run-started",
                Some(CallStage::Started) => {
                    "started started/deny started/approve started/job continue? confirm? question?"
                }
            },
            Phase::Interrupting(_, cut) if cut.closing.is_some() => "closing closing/job",
            Phase::Interrupting(_, cut) if cut.stopping => "stopping stopping/job",
            Phase::Interrupting(..) => "cut cut/pausing",
            Phase::Closed => "closed",
        };
        assert!(is.split(' ').any(|name| name == phase), "{phase} is none of {is}");
        assert_eq!(phase.contains('?') || phase == "asking", !state.asks().is_empty(), "{phase}");
        let waits =
            ["queued", "busy", "paused", "cut/pausing", "stopping", "run-limit"].contains(&phase);
        assert_eq!(state.snapshot(0, 0, None).queue.len(), usize::from(waits), "{phase}");
    }
}
