//! The servers of one session as a source of its tools.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use holdpoint_common::{McpServers, check_mcp_servers};

use super::launch::Launch;
use super::listing::{CHOOSE, MAX_SESSION_BYTES, MAX_SESSION_TOOLS};
use super::server::{Connection, Server};
use super::tool::McpTool;
use crate::shown::prose_line;
use crate::source::{MakeTool, Refreshed, SourceContext, ToolSource};
use crate::tool::Tool;

/// The tools of a session's MCP servers.
///
/// The servers start with the first refresh, all at once, and end with this value.
pub struct McpSource {
    settings: McpServers,
    servers: Option<Vec<Entry>>,
    /// Problems that are not reported yet.
    notices: Vec<String>,
    /// Whether the session has more tools than it may have, and that was reported.
    reported_full: bool,
}

/// A server, and its state at the last refresh.
struct Entry {
    server: Arc<Server>,
    seen: Option<Arc<Connection>>,
    reported: Option<Arc<str>>,
}

impl McpSource {
    /// Creates a source of these servers, none of which is started yet.
    #[must_use]
    pub fn new(settings: McpServers) -> Self {
        Self { settings, servers: None, notices: Vec::new(), reported_full: false }
    }

    fn start(&mut self, context: &SourceContext) {
        let mut servers = Vec::new();
        if let Err(error) = check_mcp_servers(&self.settings) {
            self.notices.push(error.to_string());
            self.settings = BTreeMap::new();
        }
        for (name, settings) in std::mem::take(&mut self.settings) {
            let launch = Launch { name: name.clone(), settings, session: context.clone() };
            match Server::start(launch) {
                Ok(server) => servers.push(Entry { server, seen: None, reported: None }),
                Err(error) => {
                    self.notices.push(format!("MCP server `{name}`: no thread for it: {error}"));
                }
            }
        }
        self.servers = Some(servers);
    }

    async fn refreshed(&mut self, context: &SourceContext) -> Refreshed {
        if self.servers.is_none() {
            self.start(context);
        }
        let mut changed = false;
        for entry in self.servers.iter_mut().flatten() {
            let (connection, why) = match entry.server.connection().await {
                Ok(connection) => (Some(connection), None),
                Err(why) => (None, Some(why)),
            };
            let is_same = match (&connection, &entry.seen) {
                (Some(new), Some(old)) => Arc::ptr_eq(new, old),
                (None, None) => true,
                _ => false,
            };
            if !is_same {
                changed = true;
                let left_out = connection.as_ref().and_then(|it| it.listing.left_out.clone());
                self.notices.extend(
                    left_out.map(|why| format!("MCP server `{}`: {why}", entry.server.name)),
                );
                entry.seen = connection;
            }
            if why != entry.reported {
                let notice = |why: &Arc<str>| format!("MCP server `{}`: {why}", entry.server.name);
                self.notices.extend(why.as_ref().map(notice));
                entry.reported = why;
            }
        }
        let tools = changed.then(|| self.tools());
        let notices = std::mem::take(&mut self.notices);
        let notices = notices.iter().map(|notice| prose_line(notice).into_owned()).collect();
        Refreshed { tools, notices }
    }

    /// The tools of all servers that fit into the bounds of a session, in the order of the servers'
    /// names.
    fn tools(&mut self) -> Vec<MakeTool> {
        let mut tools: Vec<MakeTool> = Vec::new();
        let (mut bytes, mut missing) = (0, BTreeMap::<&str, usize>::new());
        for Entry { server, seen, .. } in self.servers.iter().flatten() {
            for info in seen.iter().flat_map(|connection| &connection.listing.tools) {
                if tools.len() >= MAX_SESSION_TOOLS || bytes + info.bytes > MAX_SESSION_BYTES {
                    *missing.entry(&server.name).or_default() += 1;
                    continue;
                }
                bytes += info.bytes;
                let tool = McpTool::new(Arc::clone(server), Arc::clone(info));
                tools.push(Box::new(move || Box::new(tool.clone()) as Box<dyn Tool>));
            }
        }
        let missing: Vec<_> =
            missing.iter().map(|(server, count)| format!("{count} of `{server}`")).collect();
        if !missing.is_empty() && !std::mem::replace(&mut self.reported_full, true) {
            self.notices.push(format!(
                "tools of MCP servers are left out, {}: a session has at most \
                 {MAX_SESSION_TOOLS} with {MAX_SESSION_BYTES} bytes of descriptions and schemas\
                 {CHOOSE}",
                missing.join(", ")
            ));
        }
        tools
    }
}

impl ToolSource for McpSource {
    fn refresh<'a>(
        &'a mut self,
        context: &'a SourceContext,
    ) -> Pin<Box<dyn Future<Output = Refreshed> + Send + 'a>> {
        Box::pin(self.refreshed(context))
    }
}

impl Drop for McpSource {
    fn drop(&mut self) {
        self.servers.iter().flatten().for_each(|entry| entry.server.close());
    }
}
