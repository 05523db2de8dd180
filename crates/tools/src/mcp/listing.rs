//! The list of a server's tools, within bounds.

use std::collections::HashSet;
use std::sync::Arc;

use rmcp::RoleClient;
use rmcp::model::{ClientRequest, ListToolsRequest, PaginatedRequestParams, ServerResult, Tool};
use rmcp::service::Peer;
use serde_json::Value;

use super::content::cut;
use super::name;

/// The most tools that the servers of one session provide together. Further ones are left out.
pub const MAX_SESSION_TOOLS: usize = 256;

/// The most bytes of the schema of one tool, as JSON. A tool with a larger one is left out.
pub const MAX_SCHEMA: usize = 32 * 1024;

/// The most bytes of the names, descriptions and schemas of all tools that the servers of one
/// session provide together. Each request to the model has them. Further tools are left out.
pub const MAX_SESSION_BYTES: usize = 64 * 1024;

/// The most bytes of a description. The rest is cut off.
const MAX_DESCRIPTION: usize = 8 * 1024;

/// The most bytes of the name of a tool. A tool with a longer one is left out.
const MAX_TOOL_NAME: usize = 256;

/// The most pages of a list.
const MAX_PAGES: usize = 64;

/// A tool of a server.
#[derive(Debug)]
pub(super) struct ToolInfo {
    /// The tool's own name.
    pub(super) own_name: String,
    /// The name by which the model calls it.
    pub(super) model_name: String,
    pub(super) description: String,
    pub(super) schema: Value,
    /// The size of the name, the description and the schema.
    pub(super) bytes: usize,
}

/// The tools of a server, and the reason why some are missing.
#[derive(Debug, Default)]
pub(super) struct Listing {
    pub(super) tools: Vec<Arc<ToolInfo>>,
    pub(super) left_out: Option<String>,
}

/// Lists the tools of a server, only those in `allowed`, if there is such a list.
///
/// # Errors
/// The reason why they can't be listed.
pub(super) async fn list(
    server: &str,
    peer: &Peer<RoleClient>,
    allowed: Option<&[String]>,
) -> Result<Listing, String> {
    let has_tools = peer.peer_info().is_some_and(|info| info.capabilities.tools.is_some());
    let mut listing = Filter { server, allowed, ..Filter::default() };
    let mut cursor = None;
    for _ in 0..if has_tools { MAX_PAGES } else { 0 } {
        let page = PaginatedRequestParams::default().with_cursor(cursor);
        let request = ListToolsRequest::with_param(page);
        let page = peer.send_request(ClientRequest::ListToolsRequest(request)).await;
        let page = page.map_err(|error| format!("its tools can't be listed: {error}"))?;
        cursor = listing.add_page(page)?;
        if cursor.is_none() || listing.is_full() {
            break;
        }
    }
    listing.finish()
}

/// The advice for tools that do not fit.
pub(super) const CHOOSE: &str = "; name the ones that you need: `tools = [\"…\"]` in `[mcp.NAME]`";

/// Checks that the arguments of a tool are an object, as providers of models require.
///
/// # Errors
/// The reason why they are not.
fn check_schema(schema: &Value) -> Result<(), &'static str> {
    if schema["type"] != "object" {
        return Err("its schema is not of the type `object`");
    }
    match schema.get("properties") {
        None => Ok(()),
        Some(Value::Object(properties)) => {
            let is_schema = |property: &Value| property.is_object() || property.is_boolean();
            match properties.values().all(is_schema) {
                true => Ok(()),
                false => Err("a property in its schema is not a schema"),
            }
        }
        Some(_) => Err("the `properties` of its schema are not an object"),
    }
}

/// Collects the tools that fit into the bounds.
#[derive(Default)]
struct Filter<'a> {
    server: &'a str,
    allowed: Option<&'a [String]>,
    tools: Vec<Arc<ToolInfo>>,
    names: HashSet<String>,
    bytes: usize,
    /// How many tools are missing, and an example with the reason.
    missing: usize,
    example: Option<String>,
}

impl Filter<'_> {
    fn is_full(&self) -> bool {
        self.tools.len() + self.missing > MAX_SESSION_TOOLS * 4
    }

    /// Adds the tools of a page. Returns the cursor of the next one.
    ///
    /// # Errors
    /// The answer is not a page.
    fn add_page(&mut self, page: ServerResult) -> Result<Option<String>, String> {
        let mut page = match page {
            ServerResult::ListToolsResult(page) => {
                page.tools.into_iter().for_each(|tool| self.add(tool));
                return Ok(page.next_cursor);
            }
            // Something in the page is not valid. The other tools are used.
            ServerResult::CustomResult(page) => page.0,
            _ => return Err("its answer is not a list of tools".to_owned()),
        };
        let Some(Value::Array(tools)) = page.get_mut("tools").map(Value::take) else {
            return Err("its answer is not a list of tools".to_owned());
        };
        for tool in tools {
            let name = tool["name"].as_str().unwrap_or_default().to_owned();
            match serde_json::from_value::<Tool>(tool) {
                Ok(tool) => self.add(tool),
                Err(error) if self.is_allowed(&name) => {
                    self.leave_out(&name, &format!("its description is not valid: {error}"));
                }
                Err(_) => {}
            }
        }
        Ok(page["nextCursor"].as_str().map(str::to_owned))
    }

    fn is_allowed(&self, tool_name: &str) -> bool {
        self.allowed.is_none_or(|allowed| allowed.iter().any(|name| name == tool_name))
    }

    fn add(&mut self, tool: Tool) {
        let tool_name = tool.name.as_ref();
        if !self.is_allowed(tool_name) {
            return;
        }
        let description = tool.description.as_deref().or(tool.title.as_deref());
        let description = cut(description.unwrap_or_default(), MAX_DESCRIPTION);
        let schema = Value::Object((*tool.input_schema).clone());
        let schema_bytes = schema.to_string().len();
        let bytes = schema_bytes + description.len() + tool_name.len();
        let why = if tool_name.len() > MAX_TOOL_NAME {
            format!("its name has more than {MAX_TOOL_NAME} bytes")
        } else if schema_bytes > MAX_SCHEMA {
            format!("its schema has {schema_bytes} bytes; the limit is {MAX_SCHEMA}")
        } else if self.tools.len() >= MAX_SESSION_TOOLS {
            format!("there are more than {MAX_SESSION_TOOLS} tools{CHOOSE}")
        } else if let Err(why) = check_schema(&schema) {
            why.to_owned()
        } else if self.bytes + bytes > MAX_SESSION_BYTES {
            format!("all descriptions and schemas have more than {MAX_SESSION_BYTES} bytes{CHOOSE}")
        } else if !self.names.insert(tool_name.to_owned()) {
            "another tool has the same name".to_owned()
        } else {
            self.bytes += bytes;
            self.tools.push(Arc::new(ToolInfo {
                own_name: tool_name.to_owned(),
                model_name: name::for_model(self.server, tool_name),
                description: description.to_owned(),
                schema,
                bytes,
            }));
            return;
        };
        self.leave_out(tool_name, &why);
    }

    fn leave_out(&mut self, tool_name: &str, why: &str) {
        self.missing += 1;
        self.example.get_or_insert_with(|| format!("`{}`: {why}", cut(tool_name, MAX_TOOL_NAME)));
    }

    fn finish(self) -> Result<Listing, String> {
        let left_out = self.example.map(|example| match self.missing {
            1 => format!("1 tool is left out: {example}"),
            missing => format!("{missing} tools are left out, such as {example}"),
        });
        Ok(Listing { tools: self.tools, left_out })
    }
}
