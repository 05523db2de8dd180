//! Changing a session's policy mode.

use std::sync::Arc;

use actix::prelude::*;
use holdpoint_common::api::PolicyRequest;
use holdpoint_common::{Refused, Who};
use holdpoint_tools::Workspace;

use super::{Replied, SessionActor};
use crate::state::ByClient;

/// Judges the calls to come, those of the open turn included, with the policy of this workspace.
/// Replies when the change is saved, or is known not to be.
#[derive(Message)]
#[rtype(result = "Result<(), Refused>")]
pub(crate) struct UsePolicy {
    pub(crate) workspace: Arc<Workspace>,
    pub(crate) by: Who,
}

impl Handler<UsePolicy> for SessionActor {
    type Result = Replied<Result<(), Refused>>;

    fn handle(
        &mut self,
        UsePolicy { workspace, by }: UsePolicy,
        ctx: &mut Self::Context,
    ) -> Self::Result {
        let request = ByClient { verb: PolicyRequest { policy: workspace.policy().mode() }, by };
        match self.check_room_for_work().and_then(|()| self.handle_input(&request, ctx)) {
            Ok(()) => {
                tracing::info!(policy = %request.verb.policy, by = %request.by, "policy mode");
                self.env.workspace.send_replace(workspace);
                self.reply(|_| Ok(()), ctx)
            }
            Err(refused) => Replied::Now(Err(refused)),
        }
    }
}
