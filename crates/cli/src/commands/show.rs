//! The command `holdpoint show`.

use std::time::SystemTime;

use holdpoint_common::{Hold, InstructionFile, SessionSummary, Snapshot, Timestamp, Usage};
use holdpoint_session::folders::Folders;
use holdpoint_tools::shown::prose_line;

use crate::error::CliError;
use crate::follow::asked;
use crate::runtime::block_on;
use crate::select::SessionArg;
use crate::sessions::control_sessions;
use crate::summaries::runs::{so_far, taken};
use crate::summaries::session::{absence, folder, presence, status_with_reason};
use crate::summaries::{self, paused, pausing};
use crate::table::age;
use crate::ui::Ui;

/// Show the state of a session: activity, asks, usage, changed files
///
/// A saved session stays saved.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    session: SessionArg,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn carry_out(args: &Args, folders: &Folders, ui: &mut Ui) -> Result<i32, CliError> {
    let look = async {
        let sessions = control_sessions(folders, "show").await?;
        let snapshot = sessions.look(&args.session.session).await?;
        // If the sessions can't be listed, this one is live: a saved one could not have been read.
        let mut summary = SessionSummary::from(&*snapshot);
        if let Ok(listed) = sessions.list().await {
            let found = listed.into_iter().find(|session| session.id == summary.id);
            summary.live = found.as_ref().is_some_and(|found| found.live);
            if let Some(SessionSummary { machine, away, workspace, .. }) = found {
                (summary.machine, summary.away, summary.workspace) = (machine, away, workspace);
            }
        }
        Ok::<_, CliError>((snapshot, summary))
    };
    let (snapshot, summary) = block_on(look)?;
    if args.json {
        ui.json(&*snapshot)?;
        return Ok(0);
    }
    let text: String =
        lines(&snapshot, &summary).iter().map(|(name, value)| entry(name, value)).collect();
    ui.print(&text)?;
    ui.lines_to_stdout();
    for ask in &snapshot.asks {
        ui.print(&format!("\nask {}, open for {}\n", ask.id, age(ask.since)))?;
        asked::show_alone(ask, ui)?;
        ui.flush()?;
    }
    Ok(0)
}

/// Formats an entry. The value's further lines are indented, so that none looks like another entry.
fn entry(name: &str, value: &str) -> String {
    let mut lines = value.trim_end().split('\n').map(prose_line);
    let first = format!("{name:9} {}\n", lines.next().unwrap_or_default());
    lines.fold(first, |text, line| text + format!("{:9} {line}", "").trim_end() + "\n")
}

fn lines(snapshot: &Snapshot, summary: &SessionSummary) -> Vec<(&'static str, String)> {
    let settings = &snapshot.settings;
    let mut lines = vec![
        ("session", format!("{} ({})", settings.name, settings.id)),
        ("title", snapshot.title.clone()),
        ("status", status(summary, snapshot.since)),
        ("folder", folder(summary)),
        ("model", settings.model.clone()),
        ("asks", settings.asks.to_string()),
        ("policy", settings.policy.to_string()),
        ("sandbox", summaries::sandbox(&settings.sandbox)),
    ];
    if let Some(machine) = &summary.machine {
        let now = Timestamp::from(SystemTime::now());
        let absence = absence(Some(machine), summary.away, now);
        lines.insert(3, ("machine", absence.unwrap_or_else(|| machine.clone())));
    }
    if let Some(cause) = hold_text(snapshot) {
        lines.push(("hold", cause));
    }
    if let Some(run) = &snapshot.run {
        lines.push(("goal", run.settings.goal.clone()));
        let wait = run.waits_until.map(|until| {
            format!("; after a failure, the next iteration begins in {}", time_until(until))
        });
        lines.push(("run", so_far(&run.progress) + &wait.unwrap_or_default()));
    }
    if let Some(last) = &snapshot.last_run {
        lines.push(("last run", format!("{}: {}", last.end, taken(&last.progress))));
    }
    if let Some(last) = &snapshot.last_turn {
        let why = last.error.clone().or_else(|| last.cause.as_ref().map(ToString::to_string));
        lines.push((
            "last turn",
            [Some(last.outcome.to_string()), why]
                .into_iter()
                .flatten()
                .collect::<Vec<_>>()
                .join(": "),
        ));
    }
    lines.extend(
        snapshot
            .tasks
            .iter()
            .map(|task| ("task", format!("{} {}: {}", task.id, task.state, task.title))),
    );
    lines.extend(snapshot.notes.iter().map(|note| ("note", note.text.clone())));
    lines.extend(
        snapshot
            .queue
            .iter()
            .map(|queued| ("queued", format!("prompt {}: {}", queued.prompt, queued.text))),
    );
    lines.extend(
        snapshot
            .jobs
            .iter()
            .map(|job| ("job", format!("{} for {}: {}", job.id, age(job.since), job.command))),
    );
    lines.push(("used", usage_text(&snapshot.usage)));
    if let Some(context) = &snapshot.context {
        lines.push(("context", format!("{} of {} tokens", context.tokens, context.limit)));
    }
    lines.extend(snapshot.instructions.iter().map(instruction_line));
    lines.extend(snapshot.files_modified.iter().map(|file| ("changed", file.clone())));
    lines.push(("clients", snapshot.clients.to_string()));
    if !snapshot.gaps.is_empty() {
        lines.push(("damaged", snapshot.gaps.to_string()));
    }
    if !snapshot.saved {
        let reason =
            snapshot.not_saved.as_deref().unwrap_or("the newest events are only in memory");
        lines.push(("saved", format!("no: {reason}")));
    }
    lines
}

fn status(summary: &SessionSummary, since: Timestamp) -> String {
    format!("{}{} for {}", presence(summary), status_with_reason(summary), age(since))
}

fn instruction_line(file: &InstructionFile) -> (&'static str, String) {
    let InstructionFile { path, bytes, reason } = file;
    match reason {
        None => ("reads", path.clone()),
        Some(reason) if *bytes == 0 => ("not read", format!("{path}: {reason}")),
        Some(reason) => ("reads", format!("{path}: {reason}")),
    }
}

fn hold_text(snapshot: &Snapshot) -> Option<String> {
    match &snapshot.hold {
        Hold::Off => None,
        Hold::Requested { cause, .. } => Some(pausing(cause)),
        Hold::Standing { cause, .. } => Some(paused(cause)),
    }
}

/// The time from now until `then`.
fn time_until(then: Timestamp) -> String {
    let remaining = then.since(Timestamp::from(SystemTime::now()));
    format!("{} s", remaining.as_secs_f64().ceil())
}

fn usage_text(usage: &Usage) -> String {
    let about = if usage.estimated { "about " } else { "" };
    let cost =
        usage.cost.map(|cost| format!(", cost {:.4}", cost as f64 / 1e6)).unwrap_or_default();
    format!(
        "{about}{} tokens in ({} cached), {} out{cost}",
        usage.input, usage.cached, usage.output
    )
}
