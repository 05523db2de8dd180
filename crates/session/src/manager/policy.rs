//! Changing a session's policy mode: the workspace with the new policy is made here, because its
//! sandbox takes time to make, and given to the session's actor.

use std::rc::Rc;
use std::sync::Arc;

use holdpoint_common::api::PolicyRequest;
use holdpoint_common::{SessionError, SessionId, Supplies};

use super::registry::Registry;
use crate::actor::UsePolicy;
use crate::state::ByClient;

impl Registry {
    /// Changes the policy mode of the session. With supplies, a saved session is opened first. If
    /// the actor ends in the meantime, tries once more with the next one; a repeated change does no
    /// harm.
    pub(super) async fn change_policy(
        self: &Rc<Self>,
        id: &SessionId,
        request: ByClient<PolicyRequest>,
        supplies_to_open: Option<&Supplies>,
    ) -> Result<(), SessionError> {
        let ByClient { verb, by } = request;
        let mut seen = 0;
        for _ in 0..2 {
            let live = self.reach(id, seen, supplies_to_open).await?;
            seen = live.actor.number;
            let Some(env) = self.read_record(id, |record| record.env.clone()).flatten() else {
                continue;
            };
            let settings = Arc::clone(&live.shown.borrow().settings);
            let workspace =
                self.engine.with_policy_mode(&env.workspace(), &settings, verb.policy).await;
            let change = UsePolicy { workspace: Arc::new(workspace), by: by.clone() };
            if let Ok(changed) = live.actor.address.send(change).await {
                return Ok(changed?);
            }
        }
        Err(SessionError::Gone { session: id.clone() })
    }
}
