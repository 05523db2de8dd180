//! The start and the end of an agent with the turns of its session.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use holdpoint_common::{EndedProcesses, Verdict};
use holdpoint_tools::shown::prose_line;
use holdpoint_tools::{Refreshed, SourceContext, ToolSource};

use super::agent::Agent;
use super::link::{Link, SharedLink};
use super::needs::{self, Needs};
use super::start;
use super::tool::TOOL;

/// Starts the agent before a step that needs it, and ends it with a turn that is cut, with a turn
/// that ends before the agent's own turn, and with the session.
pub(super) struct HostedSource {
    agent: Arc<Agent>,
    link: SharedLink,
    /// Until the first start.
    before: Option<Before>,
    /// The time between TERM and KILL, once it is known.
    grace: Duration,
}

/// The parts of an agent that its session knows from before a restart.
pub(super) struct Before {
    /// The agent's own session.
    pub(super) session: Option<String>,
    /// The id of the needs that the user has approved.
    pub(super) approved: Option<String>,
}

impl HostedSource {
    pub(super) fn new(agent: Arc<Agent>, link: SharedLink, before: Before) -> Self {
        Self { agent, link, before: Some(before), grace: Duration::ZERO }
    }

    async fn start(&mut self, context: &SourceContext) {
        self.grace = context.processes.grace();
        let mut link = self.link.lock().await;
        if link.has_died() || link.is_ready(&context.workspace) {
            return;
        }
        if let Some(Before { session, approved }) = self.before.take() {
            session.into_iter().for_each(|session| link.know_session(session));
            approved.into_iter().for_each(|id| link.consent.approve(id));
        }
        // It runs with an older policy, it has ended, or its start was cut.
        let _ = link.end("it is started again".to_owned()).await;
        let started = match self.may_start(&mut link, context).await {
            Ok(Some(needs)) => start::start(&mut link, &self.agent, &needs, context).await,
            Ok(None) => return,
            Err(why) => Err(why),
        };
        if let Err(why) = started {
            let why = prose_line(&why).into_owned();
            tracing::warn!(agent = self.agent.name(), why, "an agent did not start");
            link.set_failure(why);
        }
    }

    /// The needs of the agent, if it may start now. If not, the user is asked.
    async fn may_start(
        &self,
        link: &mut Link,
        context: &SourceContext,
    ) -> Result<Option<Needs>, String> {
        link.consent.not_required();
        let (agent, workspace) = (Arc::clone(&self.agent), Arc::clone(&context.workspace));
        let determine = move || {
            let needs = Needs::of(&agent, &workspace)?;
            let acts = [needs::start_of(&agent)];
            let judgement = workspace.policy().judge(TOOL, &acts, workspace.root());
            let is_approved = match judgement.verdict {
                Verdict::Allow => true,
                Verdict::Ask if !needs.needs_approval => true,
                Verdict::Ask => !judgement.may_be_denied() && agent.is_remembered(&needs.details),
                Verdict::Deny => {
                    return Err(format!("its start is denied: {}", judgement.why()));
                }
            };
            Ok((needs, is_approved))
        };
        let determined = tokio::task::spawn_blocking(determine).await;
        let (needs, is_approved) = determined.unwrap_or_else(|panic| Err(panic.to_string()))?;
        Ok((is_approved || link.consent.covers(&needs)).then_some(needs))
    }

    async fn end(&mut self, cut: bool) -> EndedProcesses {
        let mut link = self.link.lock().await;
        if !cut && !link.is_prompted() {
            link.end_turn();
            // An agent that does not read gets the rest later.
            let _ = link.flush().now_or_never();
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
