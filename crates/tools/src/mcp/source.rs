//! The servers of one session as a source of its tools.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use holdpoint_common::{McpServer, McpServers, check_mcp_servers};

use super::driver::Driver;
use super::launch::Launch;
use super::listing::{CHOOSE, Listing, MAX_SESSION_BYTES, MAX_SESSION_TOOLS};
use super::login::ServerLogin;
use super::named::{self, Ready};
use super::server::{Connection, Server};
use super::tool::McpTool;
use crate::login::McpLoginStore;
use crate::shown::prose_line;
use crate::source::{
    HttpClients, MakeTool, McpTools, NamedContent, Refreshed, SourceContext, ToolSource,
};
use crate::tool::Tool;

/// How long a call may take.
const CALL_LIMIT: Duration = Duration::from_secs(10 * 60);

/// The tools of a session's MCP servers.
///
/// The servers start with the first refresh, all at once, and end with this value.
pub struct McpSource {
    /// The servers to start and to end at the next refresh.
    change: Option<McpServers>,
    clients: HttpClients,
    logins: Option<McpLoginStore>,
    /// How long a call may take.
    call_limit: Duration,
    /// The thread of the servers, once there are some.
    driver: Option<Driver>,
    /// The servers that were started, by their names.
    servers: BTreeMap<String, Entry>,
    /// Problems that are not reported yet.
    notices: Vec<String>,
    /// Whether the session has more tools than it may have, and that was reported.
    reported_full: bool,
    /// Whether a server with tools has ended since the last refresh.
    has_lost_tools: bool,
}

/// A server, and its state at the last refresh.
struct Entry {
    settings: McpServer,
    server: Arc<Server>,
    seen: Option<Arc<Connection>>,
    reported: Option<Arc<str>>,
    /// The reason why tools are missing, as it was reported last.
    reported_left_out: Option<String>,
}

impl Entry {
    /// The notice that tools are missing in a new list, unless the last one has the same reason.
    fn left_out(&mut self, listing: &Listing) -> Option<String> {
        if self.reported_left_out == listing.left_out {
            return None;
        }
        self.reported_left_out.clone_from(&listing.left_out);
        let why = listing.left_out.as_ref()?;
        Some(format!("MCP server `{}`: {why}", self.server.name))
    }
}

impl McpSource {
    /// Creates a source of these servers, none of which is started yet. `clients` creates the HTTP
    /// clients of those that have an address.
    #[must_use]
    pub fn new(settings: McpServers, clients: HttpClients) -> Self {
        Self {
            change: Some(settings),
            clients,
            logins: None,
            call_limit: CALL_LIMIT,
            driver: None,
            servers: BTreeMap::new(),
            notices: Vec::new(),
            reported_full: false,
            has_lost_tools: false,
        }
    }

    /// Uses the user's logins for servers that have an address and no key.
    #[must_use]
    pub fn with_logins(mut self, logins: McpLoginStore) -> Self {
        self.logins = Some(logins);
        self
    }

    /// Ends calls that take longer than this, however much progress the server reports: ten minutes
    /// by default. The time that a call waits for the user does not count.
    #[must_use]
    pub fn with_call_limit(mut self, limit: Duration) -> Self {
        self.call_limit = limit;
        self
    }

    /// Starts and ends servers, so that exactly these run.
    fn apply(&mut self, mut settings: McpServers, context: &SourceContext) {
        if let Err(error) = check_mcp_servers(&settings) {
            self.notices.push(error.to_string());
            settings.clear();
        }
        self.servers.retain(|name, entry| {
            let stays = settings.get(name) == Some(&entry.settings);
            if !stays {
                entry.server.close();
                self.has_lost_tools |= entry.seen.is_some();
            }
            stays
        });
        if self.driver.is_none() && !settings.is_empty() {
            match Driver::start() {
                Ok(driver) => self.driver = Some(driver),
                Err(error) => self.notices.push(format!("no thread for MCP servers: {error}")),
            }
        }
        let Some(driver) = &self.driver else { return };
        for (name, settings) in settings {
            if self.servers.contains_key(&name) {
                continue;
            }
            let clients = Arc::clone(&self.clients);
            let session = context.clone();
            let login = ServerLogin::new(&name, &settings, self.logins.clone(), clients.clone());
            let launch =
                Launch { name: name.clone(), settings: settings.clone(), session, clients, login };
            let server = Server::start(launch, self.call_limit, driver);
            let entry =
                Entry { settings, server, seen: None, reported: None, reported_left_out: None };
            self.servers.insert(name, entry);
        }
    }

    async fn refreshed(&mut self, context: &SourceContext) -> Refreshed {
        if let Some(settings) = self.change.take() {
            self.apply(settings, context);
        }
        let mut changed = false;
        for entry in self.servers.values_mut() {
            if entry.server.has_new_login() {
                // The same reason is reported again if the login does not help.
                entry.reported = None;
            }
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
                if let Some(connection) = &connection {
                    self.notices.extend(entry.left_out(&connection.listing));
                }
                entry.seen = connection;
            }
            if why != entry.reported {
                let notice = |why: &Arc<str>| format!("MCP server `{}`: {why}", entry.server.name);
                self.notices.extend(why.as_ref().map(notice));
                entry.reported = why;
            }
        }
        let changed = changed | std::mem::take(&mut self.has_lost_tools);
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
        for Entry { server, seen, .. } in self.servers.values() {
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

    fn named_content<'a>(
        &'a mut self,
        prompt: &'a str,
    ) -> Pin<Box<dyn Future<Output = Result<NamedContent, String>> + Send + 'a>> {
        Box::pin(async {
            let ready = |name: &str| {
                let Entry { server, seen, .. } = self.servers.get(name)?;
                seen.as_ref().map(|connection| Ready { server, connection })
            };
            let content = named::read(prompt, ready).await;
            let one_line = |text: String| prose_line(&text).into_owned();
            let NamedContent { parts, notices } = content.map_err(one_line)?;
            Ok(NamedContent { parts, notices: notices.into_iter().map(one_line).collect() })
        })
    }
}

impl McpTools for McpSource {
    fn set_servers(&mut self, servers: McpServers) {
        self.change = Some(servers);
    }
}

impl Drop for McpSource {
    fn drop(&mut self) {
        self.servers.values().for_each(|entry| entry.server.close());
    }
}
