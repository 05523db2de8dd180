//! Decisions on clients that the daemon has refused.

use holdpoint_common::{Refused, RefusedClient, SessionFact};

use super::DecisionBuilder;
use crate::state::input::Input;

/// A process of one of the session's tool calls was refused as a client.
impl Input for RefusedClient {
    type Reply = ();

    fn decide(self, builder: &mut DecisionBuilder<'_>) -> Result<(), Refused> {
        builder.check_open()?;
        builder.record(SessionFact::ClientRefused(self));
        Ok(())
    }
}
