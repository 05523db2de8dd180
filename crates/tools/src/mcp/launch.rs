//! The thread of a server: starts its program, keeps the list of its tools, and ends it.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use holdpoint_common::McpServer;
use rmcp::RoleClient;
use rmcp::model::ProtocolVersion;
use rmcp::model::SubscriptionFilter;
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, Peer, RunningService, Subscription,
    serve_client_with_lifecycle_and_ct,
};
use tokio::runtime::Builder;
use tokio::sync::{Notify, watch};

use super::calls::Calls;
use super::client::{self, Client};
use super::listing::{self, Listing};
use super::server::{Connection, Control, State};
use super::stdio::{Fault, Stdio};
use crate::process::{Duplex, DuplexProcess, Exit, ProcessSpec};
use crate::sandbox::{Domains, Widening};
use crate::shown::last_lines;
use crate::source::SourceContext;

/// How often a server may end by itself. It is started again after the first time.
const MAX_DEATHS: u32 = 2;

/// The time from a report that tools have changed to their new list. Further reports in the
/// meantime have no effect.
const LIST_INTERVAL: Duration = Duration::from_secs(1);

/// The least bytes of a value that is hidden in messages. Shorter ones, such as `1` and `true`, are
/// parts of other words.
const MIN_SECRET: usize = 6;

/// The size of the thread's stack in bytes.
const STACK: usize = 1024 * 1024;

/// Everything that is needed to start a server.
pub(super) struct Launch {
    pub(super) name: String,
    pub(super) settings: McpServer,
    /// The session. Its processes are in the session's sandbox.
    pub(super) session: SourceContext,
}

/// The thread of a server.
pub(super) struct ServerThread {
    pub(super) launch: Launch,
    pub(super) control: Arc<Control>,
    pub(super) calls: Calls,
    pub(super) state: watch::Sender<State>,
}

/// A program that answers.
struct Started {
    process: DuplexProcess,
    service: RunningService<RoleClient, Client>,
    fault: Fault,
    tools_changed: Arc<Notify>,
    /// Reports changed tools. Servers of the old era report them without one.
    subscription: Option<Subscription>,
}

impl Launch {
    fn spec(&self) -> ProcessSpec {
        let root = self.session.workspace.root();
        let McpServer { command, args, env, cwd, .. } = &self.settings;
        // As the session's processes, but programs of the workspace are named by their path.
        let mut all = crate::environment::outside(self.session.workspace.env(), root);
        all.retain(|(name, _)| !env.contains_key(name));
        all.extend(env.iter().map(|(name, value)| (name.clone(), value.clone())));
        ProcessSpec {
            program: command.into(),
            args: args.iter().map(Into::into).collect(),
            cwd: cwd.as_ref().map_or_else(|| root.to_owned(), |cwd| root.join(cwd)),
            env: all,
        }
    }

    /// A text of the server without the values of its variables, which may be secrets.
    fn without_values(&self, text: String) -> String {
        let values = self.settings.env.values().filter(|value| value.len() >= MIN_SECRET);
        values.fold(text, |text, value| text.replace(value, "***"))
    }

    /// Starts the program in its sandbox.
    fn spawn(&self, control: &Control) -> Result<Duplex, String> {
        let McpServer { network, domains, sandbox, .. } = &self.settings;
        let mut widenings = Vec::new();
        if *network {
            widenings.push(Widening::Network);
        } else if !domains.is_empty() {
            widenings.push(Widening::Domains(Domains::parse(domains)?));
        }
        if !sandbox {
            widenings.push(Widening::Outside);
        }
        let processes = &self.session.processes;
        let sandbox = processes.sandbox().and_then(|sandbox| sandbox.widened(&widenings));
        // A call waits for half of the grace before it ends the server, and for the end after that.
        let processes = processes.sandboxed(sandbox).with_grace(processes.grace() / 2);
        control.set_running(processes.clone());
        let spec = self.spec();
        processes.spawn_duplex(spec).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                format!("the program `{}` is not found: {error}", self.settings.command)
            }
            _ => format!("the program can't be started: {error}"),
        })
    }
}

impl ServerThread {
    /// Spawns the thread.
    pub(super) fn spawn(self) -> io::Result<()> {
        let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
        let name = format!("mcp {}", self.launch.name);
        let thread = std::thread::Builder::new().name(name).stack_size(STACK);
        thread.spawn(move || {
            runtime.block_on(self.run());
            // Tasks that wait for a user's answer end here.
            runtime.shutdown_background();
        })?;
        Ok(())
    }

    async fn run(self) {
        let mut deaths = 0;
        loop {
            self.calls.program_starts();
            let ended = match self.start().await {
                Ok((started, listing)) => Ok(self.serve(started, listing).await),
                Err(why) => Err(why),
            };
            self.calls.program_ended();
            // Also waits for the supervisor.
            self.control.finish();
            if self.control.close.is_cancelled() {
                return;
            }
            match ended {
                Ok(why) => {
                    tracing::warn!(server = self.launch.name, why, "an MCP server ended");
                    deaths += u32::from(!self.control.take_was_ended());
                    if deaths >= MAX_DEATHS {
                        let why = format!("it has ended {deaths} times; the last time, {why}");
                        self.state.send_replace(State::Failed(why.into()));
                        return;
                    }
                    self.state.send_replace(State::Stopped(why.into()));
                }
                Err(why) => {
                    tracing::warn!(server = self.launch.name, why, "an MCP server did not start");
                    self.state.send_replace(State::Failed(why.into()));
                    return;
                }
            }
            tokio::select! {
                () = self.control.close.cancelled() => return,
                () = self.control.needed.notified() => {}
            }
            self.state.send_replace(State::Starting);
        }
    }

    /// Starts the program and lists its tools.
    ///
    /// # Errors
    /// The reason why that failed. The program has ended.
    async fn start(&self) -> Result<(Started, Listing), String> {
        let Duplex { process, input, output } = self.launch.spawn(&self.control)?;
        let limit = self.launch.settings.startup_s;
        let fault = Fault::default();
        let tools_changed = Arc::new(Notify::new());
        let client = Client {
            calls: self.calls.clone(),
            roots: client::roots(self.launch.session.workspace.root()),
            tools_changed: Arc::clone(&tools_changed),
        };
        let connecting = async {
            let transport = Stdio::new(input, output, self.calls.clone(), fault.clone())
                .map_err(|error| format!("its streams can't be used: {error}"))?;
            let lifecycle = ClientLifecycleMode::Auto {
                preferred_versions: vec![ProtocolVersion::LATEST],
                legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
            };
            let close = self.control.close.child_token();
            let service = serve_client_with_lifecycle_and_ct(client, transport, lifecycle, close);
            let service = service.await.map_err(|error| start_error(&error))?;
            let listing = self.list(&service).await?;
            let subscription = subscribe(&service).await;
            Ok::<_, String>((service, listing, subscription))
        };
        match tokio::time::timeout(Duration::from_secs(limit.into()), connecting).await {
            Ok(Ok((service, listing, subscription))) => {
                let started = Started { process, service, fault, tools_changed, subscription };
                Ok((started, listing))
            }
            Ok(Err(why)) => Err(self.end(process, fault.take().unwrap_or(why))),
            Err(_) => Err(self.end(process, format!("it did not answer within {limit} s"))),
        }
    }

    async fn list(&self, peer: &Peer<RoleClient>) -> Result<Listing, String> {
        listing::list(&self.launch.name, peer, self.launch.settings.tools.as_deref()).await
    }

    /// Lists the tools after a change, if the server answers.
    async fn list_again(&self, peer: &Peer<RoleClient>) -> Option<Listing> {
        tokio::time::sleep(LIST_INTERVAL).await;
        let limit = Duration::from_secs(self.launch.settings.startup_s.into());
        match tokio::time::timeout(limit, self.list(peer)).await {
            Ok(Ok(listing)) => Some(listing),
            Ok(Err(why)) => {
                tracing::warn!(server = self.launch.name, why, "an MCP server's tools");
                None
            }
            Err(_) => None,
        }
    }

    /// Keeps the server's tools until it ends or its session does. Returns the reason of the end.
    async fn serve(&self, started: Started, listing: Listing) -> String {
        let Started { process, service, fault, tools_changed, mut subscription } = started;
        let peer = service.peer().clone();
        let publish = |listing| {
            let connection = Connection { peer: peer.clone(), listing };
            self.state.send_replace(State::Ready(Arc::new(connection)));
        };
        publish(listing);
        let token = service.cancellation_token();
        let waiting = service.waiting();
        tokio::pin!(waiting);
        let is_open = loop {
            tokio::select! {
                _ = &mut waiting => break false,
                () = self.control.close.cancelled() => break true,
                () = changed(&tools_changed, &mut subscription) => {
                    tokio::select! {
                        () = self.control.close.cancelled() => break true,
                        listing = self.list_again(&peer) => listing.into_iter().for_each(publish),
                    }
                }
            }
        };
        if !is_open {
            return self.end(process, fault.take().unwrap_or_default());
        }
        // Closes the streams. A program may end by itself at the end of its input.
        token.cancel();
        let half = self.launch.session.processes.grace() / 2;
        let _ = tokio::time::timeout(half, waiting).await;
        let _ = process.wait_by(Some(Instant::now() + half));
        self.end(process, "its session has ended".to_owned())
    }

    /// Ends the program and returns the reason, with its error output. Without a reason, the
    /// program has ended by itself.
    fn end(&self, process: DuplexProcess, why: String) -> String {
        // Waits for a program that ends by itself, so that its exit code is known.
        let has_ended = why.is_empty() || why.starts_with(CLOSED);
        let settle = self.launch.session.processes.grace() / 2;
        let by_itself = has_ended.then(|| process.wait_by(Some(Instant::now() + settle))).flatten();
        let (_, _, errors) = process.finish();
        let mut text = match (why.is_empty(), by_itself) {
            (true, None) => "it closed its output".to_owned(),
            (true, Some(exit)) => exit_text(exit),
            (false, None) => why,
            (false, Some(exit)) => format!("{why}: {}", exit_text(exit)),
        };
        if let Some(errors) = last_lines(&errors) {
            text.push_str(&format!("; it wrote: {errors}"));
        }
        self.launch.without_values(text)
    }
}

/// The reason of a start that failed because the program ended.
const CLOSED: &str = "it ended before it was ready";

fn exit_text(exit: Exit) -> String {
    match exit {
        Exit::Code(code) => format!("it exited with code {code}"),
        Exit::Signal(_) | Exit::Unknown => format!("it was {exit}"),
    }
}

fn start_error(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::ConnectionClosed(_)
        | ClientInitializeError::TransportError { .. } => CLOSED.to_owned(),
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => start_error(fallback),
        error => format!("it does not speak the protocol: {error}"),
    }
}

/// Subscribes to changes of the tools, if the server is of the era that needs it.
async fn subscribe(service: &RunningService<RoleClient, Client>) -> Option<Subscription> {
    let info = service.peer().peer_info()?;
    let reports = info.capabilities.tools.as_ref()?.list_changed == Some(true);
    if info.protocol_version.has_initialize() || !reports {
        return None;
    }
    let filter = SubscriptionFilter::builder().tools_list_changed().build();
    service.peer().listen(filter).await.ok()
}

/// Waits until the server reports that its tools have changed.
async fn changed(notify: &Notify, subscription: &mut Option<Subscription>) {
    let subscribed = async {
        match subscription.as_mut().map(Subscription::next) {
            Some(next) => next.await.ok().flatten().is_some(),
            None => std::future::pending().await,
        }
    };
    let is_open = tokio::select! {
        () = notify.notified() => true,
        is_open = subscribed => is_open,
    };
    if !is_open {
        // The server has ended the subscription.
        *subscription = None;
        notify.notified().await;
    }
}
