//! Helpers for the tests of the file tools.

use holdpoint_tools::testing::Bench;
use holdpoint_tools::{EditFile, Intent, ReadFile, Tool, ToolOutcome, WriteFile};
use serde_json::{Value, json};

pub(super) fn call(
    bench: &Bench,
    tool: impl Tool + 'static,
    input: Value,
) -> Result<ToolOutcome, String> {
    let called = bench.call(tool, input);
    assert_eq!(called.streamed, 0);
    called.result.map_err(|error| error.to_string())
}

pub(super) fn intent(bench: &Bench, tool: &impl Tool, input: &Value) -> Result<Intent, String> {
    tool.intent(input, bench.workspace()).map_err(|error| error.to_string())
}

/// Judges, then calls the same instance, like a session.
pub(super) fn judge_and_call(
    bench: &Bench,
    tool: impl Tool + 'static,
    input: Value,
) -> Result<ToolOutcome, String> {
    intent(bench, &tool, &input)?;
    call(bench, tool, input)
}

pub(super) fn read(bench: &Bench, input: Value) -> Result<ToolOutcome, String> {
    call(bench, ReadFile::new(), input)
}

pub(super) fn write(bench: &Bench, path: &str, content: &str) -> Result<ToolOutcome, String> {
    judge_and_call(bench, WriteFile::new(), json!({ "path": path, "content": content }))
}

pub(super) fn edit(bench: &Bench, input: Value) -> Result<ToolOutcome, String> {
    judge_and_call(bench, EditFile::new(), input)
}

/// The input for a single edit.
pub(super) fn replace(path: &str, old: &str, new: &str) -> Value {
    json!({ "path": path, "old_string": old, "new_string": new })
}
