//! The task of a server: starts its program or connects to its address, keeps the list of its tools,
//! and ends it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use holdpoint_common::McpServer;
use rmcp::model::{ProtocolVersion, SubscriptionFilter};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, Peer, RunningService, Subscription,
    serve_client_with_lifecycle_and_ct,
};
use rmcp::transport::Transport;
use rmcp::{ClientCacheConfig, RoleClient};
use tokio::sync::{Notify, watch};

use super::calls::Calls;
use super::client::{self, Client};
use super::content;
use super::driver::blocking;
use super::http::{self, Http, OwnStream};
use super::listing::{self, Listing};
use super::login::ServerLogin;
use super::server::{Connection, Control, State};
use super::sse::Sse;
use super::stdio::{Fault, Stdio};
use crate::process::{Duplex, DuplexProcess, Exit};
use crate::shown::{last_lines_without, without_values};
use crate::source::{HttpClients, SourceContext};

/// How often a server may end by itself. It is started again after the first time.
const MAX_DEATHS: u32 = 2;

/// The time from a report that tools have changed to their new list. Further reports in the
/// meantime have no effect.
const LIST_INTERVAL: Duration = Duration::from_secs(1);

/// The time after which an address that could not be reached is tried again. It doubles each time,
/// up to [`MAX_RETRY_DELAY`].
const RETRY_DELAY: Duration = Duration::from_secs(60);
const MAX_RETRY_DELAY: Duration = Duration::from_secs(16 * 60);

/// Everything that is needed to start a server.
pub(super) struct Launch {
    pub(super) name: String,
    pub(super) settings: McpServer,
    /// The session. Its processes are in the session's sandbox.
    pub(super) session: SourceContext,
    pub(super) clients: HttpClients,
    pub(super) login: ServerLogin,
}

/// The task of a server.
pub(super) struct ServerTask {
    pub(super) launch: Arc<Launch>,
    pub(super) control: Arc<Control>,
    pub(super) calls: Calls,
    pub(super) state: watch::Sender<State>,
}

/// A server that answers.
struct Started {
    /// The program, if the server is one.
    process: Option<DuplexProcess>,
    service: RunningService<RoleClient, Client>,
    fault: Fault,
    tools_changed: Arc<Notify>,
    /// Reports changed tools. Servers of the old era report them without one.
    subscription: Option<Subscription>,
}

/// The end of a pause before an address is tried again.
enum Paused {
    /// The session has ended.
    Closed,
    /// There is a login now.
    Needed,
    /// The time is over.
    Over,
}

impl Launch {
    /// The values of the server's variables and headers, which may be secrets.
    pub(super) fn values(&self) -> Vec<String> {
        let mut values = http::secrets(&self.settings);
        values.extend(self.settings.env.values().cloned());
        values
    }
}

impl ServerTask {
    /// Runs until the session ends, or the server can't be used any more.
    pub(super) async fn run(self) {
        if let Some(problem) = &self.launch.settings.problem {
            self.state.send_replace(State::Failed(problem.as_str().into()));
            return;
        }
        let (mut deaths, mut failures) = (0, 0);
        loop {
            self.calls.program_starts();
            // Boxed, so that a server that runs does not keep the memory of its start.
            let ended = match Box::pin(self.start()).await {
                Ok((started, listing)) => Ok(Box::pin(self.serve(started, listing)).await),
                Err(why) => Err(why),
            };
            self.calls.program_ended();
            let control = Arc::clone(&self.control);
            // Also waits for the supervisor.
            blocking(move || control.finish()).await;
            if self.control.close.is_cancelled() {
                return;
            }
            let has_started = ended.is_ok();
            let (Ok(why) | Err(why)) = ended;
            tracing::warn!(server = self.launch.name, has_started, why, "an MCP server ended");
            if self.launch.settings.url.is_some() {
                failures = if has_started { 0 } else { failures + 1 };
                let paused =
                    if failures > 0 { self.pause(&why, failures).await } else { Paused::Over };
                match paused {
                    Paused::Closed => return,
                    // The permit makes the wait below end at once.
                    Paused::Needed => self.control.needed.notify_one(),
                    Paused::Over => {}
                }
                self.state.send_replace(State::Stopped(why.into()));
            } else if !has_started {
                self.state.send_replace(State::Failed(why.into()));
                return;
            } else {
                deaths += u32::from(!self.control.take_was_ended());
                if deaths >= MAX_DEATHS {
                    let why = format!("it has ended {deaths} times; the last time, {why}");
                    self.state.send_replace(State::Failed(why.into()));
                    return;
                }
                self.state.send_replace(State::Stopped(why.into()));
            }
            tokio::select! {
                () = self.control.close.cancelled() => return,
                () = self.control.needed.notified() => {}
            }
            self.state.send_replace(State::Starting);
        }
    }

    /// Waits before an address is tried again that could not be reached.
    async fn pause(&self, why: &str, failures: u32) -> Paused {
        self.state.send_replace(State::Failed(why.into()));
        let delay = RETRY_DELAY.saturating_mul(2_u32.saturating_pow(failures - 1));
        tokio::select! {
            () = self.control.close.cancelled() => Paused::Closed,
            () = self.control.needed.notified() => Paused::Needed,
            () = tokio::time::sleep(delay.min(MAX_RETRY_DELAY)) => Paused::Over,
        }
    }

    /// Starts the program or connects to the address, and lists the tools.
    ///
    /// # Errors
    /// The reason why that failed. The program has ended.
    async fn start(&self) -> Result<(Started, Listing), String> {
        let (process, streams) = match &self.launch.settings.url {
            Some(_) => (None, None),
            None => {
                let (launch, control) = (Arc::clone(&self.launch), Arc::clone(&self.control));
                let spawned = blocking(move || launch.spawn(&control)).await;
                let Duplex { process, input, output } = spawned?;
                (Some(process), Some((input, output)))
            }
        };
        let limit = self.launch.settings.startup_s;
        self.launch.login.begin();
        let fault = Fault::default();
        let tools_changed = Arc::new(Notify::new());
        let client = || Client {
            calls: self.calls.clone(),
            roots: client::roots(self.launch.session.workspace.root()),
            tools_changed: Arc::clone(&tools_changed),
        };
        let mut own_stream = OwnStream::default();
        let connecting = async {
            let service = match streams {
                Some((input, output)) => {
                    let stdio = Stdio::new(input, output, self.calls.clone(), fault.clone());
                    let stdio =
                        stdio.map_err(|error| format!("its streams can't be used: {error}"))?;
                    self.connect(client(), stdio, either_era()).await
                }
                None if self.launch.settings.sse => {
                    let sse = self.sse(&fault).await?;
                    self.connect(client(), sse, ClientLifecycleMode::Initialize).await
                }
                None => {
                    let http = self.http(&fault)?;
                    own_stream = http.own_stream();
                    match self.connect(client(), http, either_era()).await {
                        // The server answers anything: it does not know the modern era.
                        Err(ClientInitializeError::ExpectedInitResult(_)) => {
                            let http = self.http(&fault)?;
                            own_stream = http.own_stream();
                            self.connect(client(), http, ClientLifecycleMode::Initialize).await
                        }
                        connected => connected,
                    }
                }
            };
            let service = service.map_err(|error| start_error(&error))?;
            // The cache has no limit in bytes, and replaces errors by old answers.
            service.peer().set_response_cache_config(ClientCacheConfig::disabled()).await;
            let listing = self.list(&service).await?;
            own_stream.settled().await;
            let subscription = subscribe(&service).await;
            Ok::<_, String>((service, listing, subscription))
        };
        match tokio::time::timeout(Duration::from_secs(limit.into()), connecting).await {
            Ok(Ok((service, listing, subscription))) => {
                let started = Started { process, service, fault, tools_changed, subscription };
                Ok((started, listing))
            }
            Ok(Err(why)) => Err(self.end(process, fault.take().unwrap_or(why)).await),
            Err(_) => Err(self.end(process, format!("it did not answer within {limit} s")).await),
        }
    }

    fn http(&self, fault: &Fault) -> Result<Http, String> {
        let Launch { settings, session, clients, login, .. } = &*self.launch;
        let grace = session.processes.grace();
        let login = login.clone();
        Http::new(settings, clients, login, grace, self.calls.clone(), fault.clone())
    }

    async fn sse(&self, fault: &Fault) -> Result<Sse, String> {
        let Launch { settings, clients, login, .. } = &*self.launch;
        Sse::open(settings, clients, login.clone(), self.calls.clone(), fault.clone()).await
    }

    /// Begins the conversation with a server.
    async fn connect(
        &self,
        client: Client,
        transport: impl Transport<RoleClient> + 'static,
        lifecycle: ClientLifecycleMode,
    ) -> Result<RunningService<RoleClient, Client>, ClientInitializeError> {
        let close = self.control.close.child_token();
        serve_client_with_lifecycle_and_ct(client, transport, lifecycle, close).await
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
                let why = without_values(&why, &self.launch.values());
                let why = content::reason(&why);
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
            return self.end(process, fault.take().unwrap_or_default()).await;
        }
        // Closes the streams. A program may end by itself at the end of its input.
        token.cancel();
        let half = self.launch.session.processes.grace() / 2;
        let _ = tokio::time::timeout(half, waiting).await;
        let launch = Arc::clone(&self.launch);
        blocking(move || {
            if let Some(process) = &process {
                let _ = process.wait_by(Some(Instant::now() + half));
            }
            launch.end(process, "its session has ended".to_owned())
        })
        .await
    }

    /// Ends the program and returns the reason, with its error output. Without a reason, the
    /// program has ended by itself.
    async fn end(&self, process: Option<DuplexProcess>, why: String) -> String {
        let launch = Arc::clone(&self.launch);
        blocking(move || launch.end(process, why)).await
    }
}

impl Launch {
    fn end(&self, process: Option<DuplexProcess>, why: String) -> String {
        let values = self.values();
        let why = content::reason(&without_values(&why, &values)).to_owned();
        let Some(process) = process else {
            return match why.is_empty() || why == CLOSED {
                true => "it closed the connection".to_owned(),
                false => why,
            };
        };
        // Waits for a program that ends by itself, so that its exit code is known.
        let has_ended = why.is_empty() || why.starts_with(CLOSED);
        let settle = self.session.processes.grace() / 2;
        let by_itself = has_ended.then(|| process.wait_by(Some(Instant::now() + settle))).flatten();
        let (_, _, errors) = process.finish();
        let mut text = match (why.is_empty(), by_itself) {
            (true, None) => "it closed its output".to_owned(),
            (true, Some(exit)) => exit_text(exit),
            (false, None) => why,
            (false, Some(exit)) => format!("{why}: {}", exit_text(exit)),
        };
        if let Some(errors) = last_lines_without(&errors, &values) {
            text.push_str(&format!("; it wrote: {errors}"));
        }
        text
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

/// Speaks the modern era of the protocol, or the old one if the server does not know it.
fn either_era() -> ClientLifecycleMode {
    ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::LATEST],
        legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
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
