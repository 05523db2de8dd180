//! Short texts about the state of a session.

use std::time::SystemTime;

use holdpoint_common::{
    Away, Hold, HoldCause, RunProgress, SessionStatus, SessionSummary, TaskCounts, Timestamp,
};
use holdpoint_tools::shown::prose_line;

use crate::table::span;

/// The progress of a run: `#3 ✓2 ●1 ○3, 1200 tokens, 12m`.
fn progress(run: &RunProgress, tasks: TaskCounts) -> String {
    let tasks = if tasks.is_empty() { String::new() } else { format!(" {tasks}") };
    let worked = run.worked(Timestamp::from(SystemTime::now()));
    format!("#{}{tasks}, {} tokens, {}", run.iteration, run.tokens, span(worked))
}

/// The status of a session and its run, and whether the session is only saved or damaged.
pub(crate) fn status(session: &SessionSummary) -> String {
    let status = status_with_reason(session);
    let status = match &session.run {
        Some(run) => format!("{status}, {}", progress(run, session.tasks)),
        None => status,
    };
    let status = format!("{}{status}", presence(session));
    if session.gaps.is_empty() { status } else { format!("damaged, {status}") }
}

/// Whether the session is only saved, or its machine does not respond, as a prefix for its status.
pub(crate) fn presence(session: &SessionSummary) -> &'static str {
    match (session.away, session.live) {
        (Some(_), _) => "not responding, ",
        (None, false) => "saved, ",
        (None, true) => "",
    }
}

/// Describes the absence of the machine of a session: `m2 does not respond, last seen 40s ago`.
pub(crate) fn absence(machine: Option<&str>, away: Option<Away>, now: Timestamp) -> Option<String> {
    let (machine, Away { seen }) = (prose_line(machine?), away?);
    Some(match seen {
        Some(seen) => {
            format!("{machine} does not respond, last seen {} ago", span(now.since(seen)))
        }
        None => format!("{machine} is not in the fleet"),
    })
}

/// The folder of a session; on another machine, as `MACHINE:FOLDER`.
pub(crate) fn folder(session: &SessionSummary) -> String {
    on_its_machine(session, &session.workspace)
}

/// A path on the machine of a session, which is named if it is another one.
pub(crate) fn on_its_machine(session: &SessionSummary, path: &str) -> String {
    let path = prose_line(path);
    match &session.machine {
        Some(machine) => format!("{}:{path}", prose_line(machine)),
        None => path.into_owned(),
    }
}

/// Describes a damaged session and its gaps.
pub(crate) fn damage(session: &SessionSummary) -> String {
    format!("{} ({}): {}", prose_line(&session.name), session.id, session.gaps)
}

/// The status without the run, followed by its detail: the tool that asks, the cause of a hold, or
/// the last outcome of an idle session.
pub(crate) fn status_with_reason(session: &SessionSummary) -> String {
    match (&session.waits_for, &session.hold, session.status) {
        (Some(ask), Hold::Requested { .. }, _) => {
            format!("asks ({}), hold requested", prose_line(ask.request.tool_name()))
        }
        (Some(ask), ..) => format!("asks ({})", prose_line(ask.request.tool_name())),
        (None, Hold::Standing { cause: HoldCause::User { .. }, .. }, _) => "held".to_owned(),
        (None, Hold::Standing { cause, .. }, _) => format!("held ({cause})"),
        (None, Hold::Requested { .. }, _) => "hold requested".to_owned(),
        (None, Hold::Off, SessionStatus::Idle) => match last_outcome(session) {
            Some(outcome) => format!("idle ({outcome})"),
            None => "idle".to_owned(),
        },
        (None, Hold::Off, status) => status.to_string(),
    }
}

/// The outcome of the last run, or of the last turn if that came later.
fn last_outcome(session: &SessionSummary) -> Option<String> {
    let turn = session.last_turn.as_ref().map(|last| last.turn);
    let run = session.last_run.filter(|run| run.turn == turn).map(|run| run.end.to_string());
    run.or_else(|| session.last_turn.as_ref().map(|last| last.outcome.to_string()))
}
