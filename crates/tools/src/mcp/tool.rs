//! A tool of a server as a tool of the session.

use std::sync::Arc;

use serde_json::Value;

use super::call::Call;
use super::listing::ToolInfo;
use super::server::Server;
use crate::act::Act;
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::shown;
use crate::tool::{Intent, Tool, ToolOutcome};
use crate::workspace::Workspace;

/// A tool of an MCP server.
#[derive(Clone)]
pub(super) struct McpTool {
    server: Arc<Server>,
    info: Arc<ToolInfo>,
}

impl McpTool {
    pub(super) fn new(server: Arc<Server>, info: Arc<ToolInfo>) -> Self {
        Self { server, info }
    }
}

impl Tool for McpTool {
    fn name(&self) -> &str {
        &self.info.model_name
    }

    fn description(&self) -> &str {
        &self.info.description
    }

    fn schema(&self) -> Value {
        self.info.schema.clone()
    }

    fn intent(&self, input: &Value, _: &Workspace) -> Result<Intent, ToolError> {
        let (server, tool) = (&self.server.name, &self.info.own_name);
        let arguments = serde_json::to_string_pretty(input)
            .map_err(|error| ToolError::input(error.to_string()))?;
        let name = shown::line(tool);
        // Secrets are masked in a text that is shown. The hash tells different ones apart.
        let exact = input.to_string();
        let hash = blake3::hash(exact.as_bytes()).to_hex();
        let exact = match shown::line(&exact) {
            shown if shown == exact => exact.clone(),
            shown => format!("{shown} ({})", &hash[..16]),
        };
        Ok(Intent {
            acts: vec![Act::Mcp { server: server.clone(), tool: tool.clone() }],
            message: format!("Call the tool `{name}` of the MCP server `{server}`?"),
            details: Some(format!(
                "server: {server}\ntool: {name}\narguments:\n{}",
                shown::text(&arguments)
            )),
            always: Some(format!("mcp: {server} {name} {exact}")),
        })
    }

    fn call(&mut self, input: Value, context: &ToolContext) -> Result<ToolOutcome, ToolError> {
        Call::new(&self.server, &self.info, context)?.run(input)
    }
}
