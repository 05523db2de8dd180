//! Instruction files: files in which users and projects tell agents how to work.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An instruction file that a turn found, whether or not the model gets it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstructionFile {
    /// Path of the file: relative to the workspace for a file of the project, absolute for the
    /// user's own.
    pub path: String,
    /// Number of bytes that the model gets; 0 if the file is left out.
    pub bytes: usize,
    /// Reason why the model does not get the exact file; absent if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
