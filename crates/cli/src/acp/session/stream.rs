//! The stream of a session's events: continues after the last event when it breaks.

use std::sync::Arc;

use agent_client_protocol_schema::v1::Error;
use holdpoint_common::{Event, Refused};
use holdpoint_session::{AttachFrom, Attachment, ClientEnd, SessionError};

use super::SessionTask;
use crate::acp::rpc::{self, Failure};
use crate::daemon::Daemon;
use crate::error::CliError;

/// How many times in a row a stream that ends at once is opened again.
const MAX_BREAKS: u32 = 5;

/// Waits for the next events. Without an attachment, waits forever.
pub(super) async fn next_batch(
    attachment: Option<&mut Attachment>,
    batch: &mut Vec<Arc<Event>>,
    max: usize,
) -> usize {
    match attachment {
        Some(attachment) => attachment.next_batch(batch, max).await,
        None => std::future::pending().await,
    }
}

impl SessionTask {
    /// Attaches again after the last event. A crashed daemon is started again. If that fails, or
    /// the daemon was stopped, the open prompts get the error, and the next prompt attaches again.
    pub(super) async fn reattach(&mut self) {
        if let Err(error) = self.try_reattach().await {
            self.fail_prompts(&error.into()).await;
        }
    }

    /// Shows the events from before the attach, also those that a broken stream did not bring.
    ///
    /// # Errors
    /// The error for the editor, if they can't be read, or the session is closed.
    pub(super) async fn replay_whole(&mut self) -> Result<(), Error> {
        self.replay().await;
        while let Some(
            ClientEnd::Lagged { .. }
            | ClientEnd::Moved { .. }
            | ClientEnd::Disconnected { .. }
            | ClientEnd::Stopped,
        ) = self.attachment.as_ref().map(Attachment::end)
        {
            self.try_reattach().await?;
        }
        match self.is_closed {
            true => Err(rpc::from_session_error(Refused::Closed.into())),
            false => Ok(()),
        }
    }

    async fn try_reattach(&mut self) -> Result<(), Failure> {
        let end = self.attachment.take().map_or(ClientEnd::Detached, |attachment| attachment.end());
        self.breaks += 1;
        let attached = match end {
            ClientEnd::Stopped => return Err(stopped()),
            _ if self.breaks > MAX_BREAKS => {
                let message = "the event stream ends as soon as it has begun";
                return Err(CliError::failed(message).into());
            }
            _ => self.attach_again().await?,
        };
        match attached {
            Some(attachment) => self.attached(attachment).await,
            // Another client has closed the session.
            None => self.is_closed = true,
        }
        Ok(())
    }

    /// Attaches if the daemon was stopped, and starts it.
    ///
    /// # Errors
    /// The error for the editor, if there is no daemon or the session is gone.
    pub(super) async fn ensure_attached(&mut self) -> Result<(), Error> {
        if self.attachment.is_some() {
            return Ok(());
        }
        self.breaks = 0;
        let attached = async {
            Daemon::connect_or_start(&self.around.folders).await?;
            Ok::<_, Failure>(self.handle.attach(AttachFrom::after(self.after)).await?)
        };
        let attachment = attached.await?;
        self.attached(attachment).await;
        Ok(())
    }

    /// Attaches after the last event; `None` if the session is closed.
    async fn attach_again(&self) -> Result<Option<Attachment>, Failure> {
        let from = AttachFrom::after(self.after);
        let attached = match self.handle.attach(from).await {
            Err(SessionError::Unreachable { .. } | SessionError::Disconnected { .. }) => {
                let folders = &self.around.folders;
                // A stopped daemon has removed its sockets, a crashed one has left them.
                if !folders.sockets().map_err(CliError::from)?.iter().any(|socket| socket.exists())
                {
                    return Err(stopped());
                }
                Daemon::connect_or_start(folders).await?;
                self.handle.attach(from).await
            }
            attached => attached,
        };
        match attached {
            Ok(attachment) => Ok(Some(attachment)),
            Err(SessionError::Refused(Refused::Closed)) => Ok(None),
            Err(SessionError::Stopped) => Err(stopped()),
            Err(error) => Err(error.into()),
        }
    }

    /// Follows a new attachment. Asks that were raised meanwhile are raised at the editor.
    async fn attached(&mut self, attachment: Attachment) {
        let open = attachment.snapshot().asks.clone();
        self.attachment = Some(attachment);
        self.replay().await;
        for ask in &open {
            self.raise(ask).await;
        }
    }
}

fn stopped() -> Failure {
    CliError::stopped("the next prompt starts it again and returns to the session").into()
}
