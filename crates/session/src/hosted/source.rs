//! The start and the end of an agent with the turns of its session.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use holdpoint_common::{AgentSettings, EndedProcesses};
use holdpoint_tools::shown::prose_line;
use holdpoint_tools::{Refreshed, SourceContext, ToolSource};

use super::link::SharedLink;
use super::start;

/// Starts the agent before a step that needs it, and ends it with a turn that is cut, with a turn
/// that ends before the agent's own turn, and with the session.
pub(super) struct HostedSource {
    settings: Arc<AgentSettings>,
    link: SharedLink,
    /// The agent's own session from before, until the first start.
    known: Option<String>,
    /// The time between TERM and KILL, once it is known.
    grace: Duration,
}

impl HostedSource {
    pub(super) fn new(
        settings: Arc<AgentSettings>,
        link: SharedLink,
        known: Option<String>,
    ) -> Self {
        Self { settings, link, known, grace: Duration::ZERO }
    }

    async fn start(&mut self, context: &SourceContext) {
        self.grace = context.processes.grace();
        let mut link = self.link.lock().await;
        if link.has_died() || link.is_ready(&context.workspace) {
            return;
        }
        if let Some(known) = self.known.take() {
            link.know_session(known);
        }
        // It runs with an older policy, or its start was cut.
        let _ = link.end("it is started again".to_owned()).await;
        if let Err(why) = start::start(&mut link, &self.settings, context).await {
            let why = prose_line(&why).into_owned();
            tracing::warn!(agent = self.settings.name, why, "an agent did not start");
            link.set_failure(why);
        }
    }

    async fn end(&mut self, cut: bool) -> EndedProcesses {
        let mut link = self.link.lock().await;
        if !cut && !link.is_prompted() {
            link.end_turn();
            return EndedProcesses::default();
        }
        link.cancel(self.grace / 2).await;
        let (_, ended) = link.end("its turn was cut".to_owned()).await;
        link.end_turn();
        ended
    }
}

impl ToolSource for HostedSource {
    fn refresh<'a>(
        &'a mut self,
        context: &'a SourceContext,
    ) -> Pin<Box<dyn Future<Output = Refreshed> + Send + 'a>> {
        Box::pin(async {
            self.start(context).await;
            Refreshed::default()
        })
    }

    fn end_turn(&mut self, cut: bool) -> Pin<Box<dyn Future<Output = EndedProcesses> + Send + '_>> {
        Box::pin(self.end(cut))
    }
}

impl Drop for HostedSource {
    fn drop(&mut self) {
        // The session has ended, so that no one else has the link. A runner that was abandoned drops
        // it later.
        if let Ok(mut link) = self.link.try_lock() {
            link.close();
        }
    }
}
