//! The command `holdpoint loop`, which works through a goal in iterations.

use std::fs;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::ArgGroup;
use holdpoint_common::{
    AsksMode, Config, RUN_ITERATIONS, RunLimits, TaskError, TaskRequest, Tasks,
};
use holdpoint_session::folders::Folders;
use holdpoint_session::model::{Catalog, DefaultModel};
use holdpoint_session::{AttachFrom, RunRequest};
use holdpoint_tools::shown::prose_line;

use crate::error::CliError;
use crate::follow::{Begin, FollowRequest, Follower, Iterations, View};
use crate::open::OpenArgs;
use crate::prompt_input::check_prompt;
use crate::prompt_input::read_stdin;
use crate::runtime::block_on;
use crate::sessions::{daemon_sessions, discard_unused, supplies};
use crate::signals::{self, SignalAction};
use crate::summaries::{self, shorten};
use crate::terminal::KeyTerminal;
use crate::tone::Tone;
use crate::ui::Ui;

/// Work towards a goal in iterations until no task is left
///
/// Each iteration begins with a fresh context: the goal, the task list and the newest notes. The
/// agent keeps the list itself; `--tasks` gives it the first tasks. The run can be held between two
/// iterations, and is held at a limit or when three iterations in a row have failed:
/// `holdpoint release` grants the same amount again. Prompts sent meanwhile (`holdpoint prompt`)
/// are delivered to the next iteration. Esc or Ctrl+C interrupts, and the run ends; a second Ctrl+C
/// leaves at once, and the session stays open.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit codes:
  0    no task is left
  1    this program failed
  2    the command line or the configuration is wrong
  3    the run ended, but a Confirm was denied because no user was there to answer
  129  this program was ended by HUP (the terminal is gone); the run continues
  130  interrupted (Ctrl+C, Esc), or closed by another client
  141  the reader of the output is gone; the agent was interrupted
  143  interrupted by TERM")]
#[command(group = ArgGroup::new("what").required(true).args(["goal", "spec"]))]
pub(crate) struct Args {
    /// The goal of the run
    #[arg(long, value_name = "TEXT")]
    goal: Option<String>,

    /// Read the goal from a file; `-` reads it from standard input
    #[arg(long, value_name = "FILE")]
    spec: Option<PathBuf>,

    /// Read the first tasks from a file, one per line, plain or as a Markdown list; checked items
    /// are left out
    #[arg(long, value_name = "FILE")]
    tasks: Option<PathBuf>,

    /// Hold the run after this many iterations; 0 for no limit
    #[arg(long, value_name = "N", default_value_t = RUN_ITERATIONS.get())]
    max_iterations: u64,

    /// Hold the run when it has used this many tokens; 0 for no limit
    #[arg(long, value_name = "N", default_value_t = 0)]
    max_tokens: u64,

    /// Hold the run when it has worked for this long (30m, 8h, ...), not counting holds and asks;
    /// 0s for no limit
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    max_time: Option<Duration>,

    #[command(flatten)]
    open: OpenArgs,

    /// Print the session's id and leave the run to the daemon
    #[arg(long)]
    detach: bool,

    /// Print every event as one line of JSON on standard output
    #[arg(long, conflicts_with = "detach")]
    json: bool,
}

pub(crate) fn carry_out(args: &Args, folders: &Folders, ui: &mut Ui) -> Result<i32, CliError> {
    let config = args.open.add_mcp_file(folders.config()?)?;
    let request = args.request(&config)?;
    let catalog = Catalog::new(&config, |name| std::env::var(name).ok());
    let DefaultModel { name: model, why } = args.open.model(&catalog);
    check_prompt(&model, &request.goal)?;
    // An ask may be answered from anywhere, at any later time.
    let (asks, asks_why) = args
        .open
        .asks(&config)
        .unwrap_or((AsksMode::Wait, "any client can answer: see `holdpoint inbox`"));
    let open = args.open.session(&config, &model, asks)?;
    let exit_timeout = config.limits.grace() + signals::EXIT_MARGIN;
    let answers = asks == AsksMode::Wait && !args.json;
    block_on(async {
        let sessions = daemon_sessions(folders, "loop", supplies(&config, &catalog)).await?;
        let session = sessions.open(open).await?;
        let settings = session.snapshot().settings.clone();
        ui.line(Tone::Dim, &format!("session: {} ({})", prose_line(&settings.name), settings.id))?;
        ui.line(
            Tone::Dim,
            &format!("model: {} ({})", prose_line(&settings.model), prose_line(&why)),
        )?;
        ui.line(Tone::Dim, &format!("asks: {asks} ({asks_why})"))?;
        ui.line(Tone::Dim, &format!("sandbox: {}", summaries::sandbox(&settings.sandbox)))?;
        if args.detach {
            if let Err(error) = session.start_run(request).await {
                discard_unused(&sessions, session.id()).await;
                return Err(error.into());
            }
            ui.print(&format!("{}\n", session.id()))?;
            ui.flush()?;
            return Ok(0);
        }
        ui.flush()?;
        let terminal = KeyTerminal::find().filter(|_| ui.err_is_terminal());
        let on_signal =
            SignalAction::Interrupts { session: session.clone(), exit_timeout, in_process: false };
        let leaving = signals::watch(on_signal, terminal.clone()).map_err(|error| {
            CliError::failed(format!("signal handlers can't be installed: {error}"))
        })?;
        let view = match args.json {
            true => View::Json,
            false => View::Iterations(Box::new(Iterations::new(answers && terminal.is_some()))),
        };
        let id = session.id().clone();
        let followed =
            FollowRequest { session, from: AttachFrom::start(), daemon: Some(folders), answers };
        let result = match Follower::attach(followed, terminal, leaving, view, ui).await {
            Ok(follower) => follower.run(Begin::Run(request)).await,
            Err(error) => Err(error),
        };
        if result.is_err() {
            // A session that can't be followed, or that refused its run, is not needed.
            discard_unused(&sessions, &id).await;
        }
        result
    })
}

impl Args {
    /// Builds the request for the run from the command line.
    fn request(&self, config: &Config) -> Result<RunRequest, CliError> {
        let tasks = match &self.tasks {
            Some(file) => first_tasks(file)?,
            None => Vec::new(),
        };
        let time = self.max_time.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        let limits = RunLimits {
            iterations: NonZeroU64::new(self.max_iterations),
            tokens: NonZeroU64::new(self.max_tokens),
            time_ms: time.and_then(NonZeroU64::new),
        };
        Ok(RunRequest {
            goal: self.goal(config.limits.max_prompt_bytes)?,
            tasks,
            limits,
            hold_at: config.hold_at,
        })
    }

    /// Reads and checks the goal, before a session is opened for it.
    fn goal(&self, max_bytes: usize) -> Result<String, CliError> {
        let goal = match (&self.goal, &self.spec) {
            (Some(goal), _) => goal.clone(),
            (None, Some(file)) if file == Path::new("-") => {
                read_stdin(max_bytes).map_err(|error| {
                    CliError::usage(format!("the goal can't be read from standard input: {error}"))
                })?
            }
            (None, Some(file)) => read(file)?,
            (None, None) => String::new(),
        };
        if goal.trim().is_empty() {
            return Err(CliError::usage("the goal is empty")
                .hint("give it with --goal TEXT or --spec FILE"));
        }
        if goal.len() > max_bytes {
            let message = format!("the goal has {} bytes; the limit is {max_bytes}", goal.len());
            return Err(CliError::usage(message)
                .hint("`max_prompt_bytes` under [limits] in the configuration sets the limit"));
        }
        Ok(goal)
    }
}

/// The tasks of a file, checked against the limits of a session.
fn first_tasks(file: &Path) -> Result<Vec<String>, CliError> {
    let titles = parse_tasks(&read(file)?);
    let check = |titles: &[String]| {
        Tasks::default().decide(TaskRequest::Add { titles: titles.to_vec() }, None)
    };
    let invalid = |error: TaskError, title: &str| {
        CliError::usage(format!("{}: {error}{title}", file.display()))
    };
    for title in &titles {
        check(std::slice::from_ref(title))
            .map_err(|error| invalid(error, &format!(": {}", prose_line(&shorten(title)))))?;
    }
    check(&titles).map_err(|error| invalid(error, &format!("; the file has {}", titles.len())))?;
    Ok(titles)
}

fn read(file: &Path) -> Result<String, CliError> {
    fs::read_to_string(file)
        .map_err(|error| CliError::usage(format!("{} can't be read: {error}", file.display())))
}

/// The tasks of a text, one per line, without list markers. Headings, rules and completed items are
/// left out.
fn parse_tasks(text: &str) -> Vec<String> {
    text.lines()
        .map(str::trim)
        .filter(|line| !is_heading(line) && !is_rule(line))
        .filter_map(parse_task)
        .collect()
}

/// Whether the line is a heading of Markdown. `#42` is not one.
fn is_heading(line: &str) -> bool {
    line.strip_prefix('#')
        .map(|line| line.trim_start_matches('#'))
        .is_some_and(|title| title.is_empty() || title.starts_with(char::is_whitespace))
}

/// Whether the line is a rule of Markdown, such as `---`.
fn is_rule(line: &str) -> bool {
    line.len() >= 3 && ["-", "*", "_"].iter().any(|mark| line.replace(mark, "").is_empty())
}

fn parse_task(line: &str) -> Option<String> {
    let after_number = line.trim_start_matches(|digit: char| digit.is_ascii_digit());
    let item = ["- ", "* ", "+ "].into_iter().find_map(|mark| line.strip_prefix(mark));
    let item = item
        .or_else(|| after_number.strip_prefix(". ").filter(|_| after_number.len() < line.len()))
        .unwrap_or(line);
    if item.starts_with("[x]") || item.starts_with("[X]") {
        return None;
    }
    let item = item.strip_prefix("[ ]").unwrap_or(item).trim();
    (!item.is_empty()).then(|| item.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_are_read_from_plain_lines_and_lists() {
        let text = "# Plan\n##\n\nplain\n- dash\n * star\n---\n- [ ] open\n- [x] done\n2. second\n2 apples\n-\n#4 bug\n";
        let tasks = ["plain", "dash", "star", "open", "second", "2 apples", "-", "#4 bug"];
        assert_eq!(parse_tasks(text), tasks);
    }
}
