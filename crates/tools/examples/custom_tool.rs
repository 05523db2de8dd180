//! A custom tool, written and tested with this crate alone.
//!
//! `cargo run -p holdpoint-tools --example custom_tool`
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use holdpoint_common::{PauseKind, PauseResponse};
use holdpoint_tools::testing::Bench;
use holdpoint_tools::{
    Act, AskReply, Intent, ProcessSpec, Tool, ToolContext, ToolError, ToolOutcome, Workspace,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// Counts the lines of files, and asks before it counts more than one.
struct CountLines;

#[derive(Deserialize, JsonSchema)]
struct Input {
    /// The files, relative to the workspace.
    files: Vec<String>,
}

impl Tool for CountLines {
    fn name(&self) -> &str {
        "count_lines"
    }

    fn description(&self) -> &str {
        "Counts the lines of files."
    }

    fn schema(&self) -> Value {
        holdpoint_tools::schema_of::<Input>()
    }

    fn intent(&self, input: &Value, _: &Workspace) -> Result<Intent, ToolError> {
        let input: Input = holdpoint_tools::parse(input)?;
        // The act that the policy judges, and the text that a user sees if the policy asks.
        Ok(Intent {
            details: Some(input.files.join("\n")),
            ..Intent::new(Act::Other, "Count these files?")
        })
    }

    fn call(&mut self, input: Value, context: &ToolContext) -> Result<ToolOutcome, ToolError> {
        let input: Input = holdpoint_tools::parse(&input)?;
        if input.files.len() > 1 {
            // Blocks until the user answers, without a time limit. The message goes to the actor of
            // the session.
            match context.pause(PauseKind::Confirm, "Count so many?", Some(input.files.join("\n")))
            {
                PauseResponse::Approved | PauseResponse::Resumed => {}
                PauseResponse::Denied { reason } => return Err(ToolError::Denied { reason }),
                PauseResponse::Interrupted => return Err(ToolError::Interrupted),
            }
        }
        // This process and all of its descendants end with the call.
        let mut process = context
            .processes()
            .spawn(ProcessSpec {
                program: "wc".into(),
                args: std::iter::once("-l".into())
                    .chain(input.files.into_iter().map(Into::into))
                    .collect(),
                cwd: context.root().to_owned(),
                env: context.workspace().env().to_vec(),
            })
            .map_err(|error| ToolError::failed(format!("wc could not be started: {error}")))?;
        let counts = std::io::read_to_string(&mut process)
            .map_err(|error| ToolError::failed(error.to_string()))?;
        context.output(&counts);
        // The output has ended, but the process may still run, and `finish` would end it.
        let _ = process.wait_by(None);
        let (exit, _) = process.finish();
        Ok(ToolOutcome { failed: !exit.is_success(), ..ToolOutcome::text(exit.to_string()) })
    }
}

fn main() -> std::io::Result<()> {
    holdpoint_tools::supervise_if_asked();

    let bench = Bench::new().answer(AskReply::Pause(PauseResponse::Approved));
    std::fs::write(bench.root().join("poem"), "roses\nviolets\n")?;
    std::fs::write(bench.root().join("list"), "milk\n")?;
    let called = bench.call(CountLines, json!({"files": ["poem", "list"]}));

    for ask in &called.asked {
        println!("asked: {}", ask.message());
    }
    print!("{}", called.output);
    match called.result {
        Ok(outcome) => println!("the model receives: {}", outcome.output),
        Err(error) => println!("the call failed: {error}"),
    }
    Ok(())
}
