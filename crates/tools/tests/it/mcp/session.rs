//! A session that has MCP servers, without an actor.

use std::sync::{Arc, mpsc};
use std::time::Duration;

use holdpoint_common::{McpServer, McpServers};
use holdpoint_tools::mcp::McpSource;
use holdpoint_tools::testing::{Bench, Called, Calling, Census, patience};
use holdpoint_tools::{
    BackgroundJobs, McpLoginStore, NamedContent, Processes, Sandbox, SourceContext, Supervisor,
    Tool, Toolbox,
};
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};

use super::http_server::http_clients;
use super::installed;

pub(super) const GRACE: Duration = Duration::from_millis(500);

/// A session with MCP servers.
pub(super) struct Session {
    pub(super) bench: Bench,
    pub(super) census: Census,
    toolbox: Option<Toolbox>,
    context: Option<SourceContext>,
    runtime: Runtime,
    /// Closed when nothing of the session is left.
    ended: mpsc::Receiver<()>,
}

/// A server of ours that misbehaves in this way.
pub(super) fn bad(kind: &str) -> McpServer {
    let script = installed::folder().join("bad.py").to_str().unwrap().to_owned();
    McpServer {
        sandbox: false,
        cwd: Some("/".to_owned()),
        ..McpServer::program("python3", [script, kind.to_owned()])
    }
}

impl Session {
    /// A session with one server, which is called `s`.
    pub(super) fn of(server: McpServer) -> Self {
        Self::with(Bench::new(), None, [("s", server)])
    }

    pub(super) fn with<const N: usize>(
        bench: Bench,
        sandbox: Option<Sandbox>,
        servers: [(&str, McpServer); N],
    ) -> Self {
        Self::with_source(bench, sandbox, servers, |source| source)
    }

    /// A session with one server, which is called `s`, and these logins.
    pub(super) fn with_logins(bench: Bench, server: McpServer, logins: McpLoginStore) -> Self {
        Self::with_source(bench, None, [("s", server)], |source| source.with_logins(logins))
    }

    pub(super) fn with_source<const N: usize>(
        bench: Bench,
        sandbox: Option<Sandbox>,
        servers: [(&str, McpServer); N],
        change: impl FnOnce(McpSource) -> McpSource,
    ) -> Self {
        let census = Census::new();
        let mut settings = McpServers::new();
        for (name, mut server) in servers {
            if server.url.is_none() {
                server.env.insert("HOLDPOINT_TEST".to_owned(), census.mark().to_owned());
            }
            settings.insert(name.to_owned(), server);
        }
        let (keep, ended) = mpsc::channel();
        let bench = bench.grace(GRACE);
        let context = SourceContext {
            workspace: Arc::new(bench.workspace().clone()),
            processes: Processes::new(Supervisor::ThisProgram, GRACE).sandboxed(sandbox),
            background: BackgroundJobs::new(Arc::new(std::sync::Mutex::new(keep))),
        };
        let source = change(McpSource::new(settings, http_clients()));
        Self {
            bench,
            census,
            toolbox: Some(Toolbox::new().with_source(Box::new(source))),
            context: Some(context),
            runtime: Builder::new_current_thread().enable_time().build().unwrap(),
            ended,
        }
    }

    /// Begins a step of a turn. Returns the messages for the user.
    pub(super) fn step(&mut self) -> Vec<String> {
        let (toolbox, context) = (self.toolbox.as_mut().unwrap(), self.context.as_ref().unwrap());
        self.runtime.block_on(toolbox.refresh(context)).1
    }

    /// Reads the content that a prompt names.
    pub(super) fn named(&mut self, prompt: &str) -> Result<NamedContent, String> {
        self.runtime.block_on(self.toolbox.as_mut().unwrap().named_content(prompt))
    }

    /// Begins to start the servers, and gives up waiting for them, as a turn that is cut.
    pub(super) fn begin_step(&mut self) {
        let (toolbox, context) = (self.toolbox.as_mut().unwrap(), self.context.as_ref().unwrap());
        let refreshing = toolbox.refresh(context);
        self.runtime.block_on(async {
            tokio::select! {
                biased;
                _ = refreshing => {}
                () = async {} => {}
            }
        });
    }

    /// Begins a step that has nothing to report. Returns the names of the tools.
    pub(super) fn names(&mut self) -> Vec<String> {
        assert_eq!(self.step(), Vec::<String>::new());
        self.toolbox.as_ref().unwrap().specs().map(|spec| spec.name.clone()).collect()
    }

    /// The names of the tools, with their schemas.
    pub(super) fn schemas(&self) -> Vec<(String, Value)> {
        let specs = self.toolbox.as_ref().unwrap().specs();
        specs.map(|spec| (spec.name.clone(), spec.schema.clone())).collect()
    }

    pub(super) fn description(&self, name: &str) -> String {
        let spec = self.toolbox.as_ref().unwrap().specs().find(|spec| spec.name == name);
        spec.unwrap().description.clone()
    }

    pub(super) fn tool(&mut self, name: &str) -> Box<dyn Tool> {
        self.toolbox.as_mut().unwrap().take(name).unwrap_or_else(|| panic!("no {name}"))
    }

    pub(super) fn start(&mut self, name: &str, input: Value) -> Calling {
        let tool = self.tool(name);
        self.bench.start(tool, input)
    }

    pub(super) fn call(&mut self, name: &str, input: Value) -> Called {
        self.start(name, input).wait()
    }

    /// Calls a tool of the server `s`, which fails. Returns the error.
    pub(super) fn error(&mut self, tool: &str) -> String {
        self.call(&format!("mcp__s__{tool}"), Value::Object(Default::default()))
            .result
            .unwrap_err()
            .to_string()
    }

    /// Calls a tool of the server `s`, and returns its output.
    pub(super) fn output(&mut self, tool: &str, input: Value) -> String {
        let called = self.call(&format!("mcp__s__{tool}"), input);
        assert!(!called.result.unwrap().failed, "{}", called.output);
        called.output
    }

    /// Ends the session, and waits until nothing of it is left.
    pub(super) fn end(&mut self) {
        self.toolbox = None;
        self.context = None;
        let ended = self.ended.recv_timeout(patience());
        assert_eq!(ended, Err(mpsc::RecvTimeoutError::Disconnected));
        assert_eq!(self.census.living(), []);
    }
}
