//! The tool `write_file`.

use holdpoint_common::PolicyClass;
use serde_json::{Value, json};

use crate::context::{ToolContext, Workspace};
use crate::tool::{Intent, Tool, ToolError, ToolOutcome};

/// The tool `write_file`.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct WriteFile;

impl WriteFile {
    /// The tool.
    #[must_use]
    pub fn new() -> Self {
        Self
    }
}

impl Tool for WriteFile {
    fn name(&self) -> &str {
        "write_file"
    }
    fn description(&self) -> &str {
        ""
    }
    fn schema(&self) -> Value {
        json!({"type": "object"})
    }
    fn intent(&self, _: &Value, _: &Workspace) -> Result<Intent, ToolError> {
        Ok(Intent::new(PolicyClass::Run, ""))
    }
    fn call(&mut self, _: Value, _: &ToolContext) -> Result<ToolOutcome, ToolError> {
        Err(ToolError::failed("not yet"))
    }
}
