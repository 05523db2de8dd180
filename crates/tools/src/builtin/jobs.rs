//! The tool `jobs`: lists, reads and stops background jobs.

use std::fmt::Write;
use std::time::{Duration, Instant};

use holdpoint_common::{CallId, JobEnd};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::act::Act;
use crate::background::JobState;
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::input::{parse, schema_of};
use crate::script::excerpt;
use crate::shown::prose_line;
use crate::tool::{Intent, Tool, ToolOutcome};
use crate::workspace::Workspace;

/// The most bytes of output that one call reads.
const MAX_READ_BYTES: usize = 16 * 1024;

/// How long a call may wait for output.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// The tool `jobs`: lists, reads and stops the background jobs that `shell` has started in this
/// session.
///
/// One call reads at most 16 KiB. At least the newest 256 KiB of each job's output are kept. A call
/// may wait up to 60 s for new output.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Jobs;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The action.
    action: Action,
    /// For read and stop: the number of the job, as shell returned it.
    job: Option<u64>,
    /// For read: the offset of the first byte in the whole output of the job. Default: the newest
    /// output.
    from: Option<u64>,
    /// For read: how many milliseconds to wait for output after `from`, or for the end of the job.
    /// At most 60000.
    wait_ms: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Action {
    /// List all jobs.
    List,
    /// Read the output of a job.
    Read,
    /// Stop a job.
    Stop,
}

impl Jobs {
    /// Creates an instance of the tool.
    #[must_use]
    pub fn new() -> Self {
        Self
    }

    fn input(input: &Value) -> Result<(Input, CallId), ToolError> {
        let input: Input = parse(input)?;
        let job = match (input.action, input.job) {
            // A list needs no number.
            (Action::List, _) => 0,
            (Action::Read | Action::Stop, Some(job)) => job,
            (Action::Read | Action::Stop, None) => {
                return Err(ToolError::input("`job` is missing: give the number of a job"));
            }
        };
        if input.wait_ms.is_some_and(|wait| u128::from(wait) > MAX_WAIT.as_millis()) {
            return Err(ToolError::input("wait_ms must be at most 60000"));
        }
        Ok((input, CallId(job)))
    }
}

impl Tool for Jobs {
    fn name(&self) -> &str {
        "jobs"
    }

    fn description(&self) -> &str {
        "Lists, reads and stops background jobs: commands that shell has started with `background`. A read returns the \
         offset for the next one, and can wait for more output."
    }

    fn schema(&self) -> Value {
        schema_of::<Input>()
    }

    fn intent(&self, input: &Value, _: &Workspace) -> Result<Intent, ToolError> {
        Self::input(input)?;
        // The jobs belong to the session, and their commands were judged when they were started.
        Ok(Intent::new(Act::Internal, "Manage background jobs?"))
    }

    fn call(&mut self, input: Value, context: &ToolContext) -> Result<ToolOutcome, ToolError> {
        let (input, job) = Self::input(&input)?;
        let no_such_job =
            || ToolError::failed(format!("there is no job {job}: the action list shows all jobs"));
        match input.action {
            Action::List => Ok(ToolOutcome::text(list(&context.background().list()))),
            Action::Read => {
                let deadline =
                    input.wait_ms.map(|wait| Instant::now() + Duration::from_millis(wait));
                let read = context
                    .read_job(job, input.from, MAX_READ_BYTES, deadline)
                    .ok_or_else(no_such_job)?;
                if context.is_cancelled() {
                    return Err(ToolError::Interrupted);
                }
                let mut output = read.text;
                if !output.is_empty() && !output.ends_with('\n') {
                    output.push('\n');
                }
                let _ = write!(output, "[bytes {} to {} of {}", read.from, read.next, read.written);
                if let Some(gone) =
                    input.from.and_then(|from| read.from.checked_sub(from)).filter(|gone| *gone > 0)
                {
                    let _ = write!(output, "; {gone} earlier bytes are no longer kept");
                }
                if read.next < read.written {
                    let _ = write!(output, "; continue with from={}", read.next);
                }
                let _ = write!(output, "; {}]", state(read.end));
                Ok(ToolOutcome::text(output))
            }
            Action::Stop => {
                let end = context.background().stop(job).ok_or_else(no_such_job)?;
                Ok(ToolOutcome::text(format!("[job {job}: {end}]")))
            }
        }
    }
}

fn list(jobs: &[JobState]) -> String {
    if jobs.is_empty() {
        return "[no background jobs]".to_owned();
    }
    let lines = jobs.iter().map(|job| {
        let JobState { id, command, age, written, end } = job;
        let start = excerpt(command.trim());
        let cut = if start.len() < command.trim().len() { "…" } else { "" };
        format!(
            "job {id}: {}; {} s, {written} bytes of output; {}{cut}",
            state(*end),
            age.as_secs(),
            prose_line(start)
        )
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn state(end: Option<JobEnd>) -> String {
    end.map_or_else(|| "running".to_owned(), |end| end.to_string())
}
