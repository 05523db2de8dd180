//! Clients that the daemon has refused, because a tool call of this session had started them.

use actix::prelude::*;
use holdpoint_common::{Refused, RefusedClient};

use super::{Replied, SessionActor};

/// Records a refused client in the log.
#[derive(Message)]
#[rtype(result = "Result<(), Refused>")]
pub(crate) struct RecordRefusal(pub(crate) RefusedClient);

impl Handler<RecordRefusal> for SessionActor {
    type Result = Replied<Result<(), Refused>>;

    fn handle(
        &mut self,
        RecordRefusal(client): RecordRefusal,
        ctx: &mut Self::Context,
    ) -> Self::Result {
        if self.outbox.is_ending() {
            return Replied::Never;
        }
        Replied::Now(self.check_room_for_work().and_then(|()| self.handle_input(client, ctx)))
    }
}
