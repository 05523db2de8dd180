//! Shows the log of a saved session without opening the session.

use std::collections::VecDeque;
use std::sync::Arc;

use holdpoint_common::{Event, SessionId};
use holdpoint_session::transfer::{ExportError, Facts};
use holdpoint_session::{AttachFrom, Sessions};

use super::View;
use crate::error::CliError;
use crate::signals::ExitRequest;
use crate::ui::Ui;

/// Shows the facts of the log that `from` selects.
///
/// # Errors
/// Fails if the log can't be read, or only in part, or if the output has no reader.
pub(crate) async fn show(
    sessions: &Sessions,
    session: &SessionId,
    from: AttachFrom,
    leaving: &mut ExitRequest,
    mut view: View,
    ui: &mut Ui,
) -> Result<(), CliError> {
    let mut newest: VecDeque<Arc<Event>> = VecDeque::new();
    let mut facts = Facts::new(|event| match from.limit {
        _ if event.seq <= from.after => Ok(()),
        None => view.show(&event, ui),
        Some(limit) => {
            newest.push_back(event);
            newest.drain(..newest.len().saturating_sub(limit));
            Ok(())
        }
    });
    let read = tokio::select! {
        biased;
        // The user leaves in the middle of it.
        () = leaving.requested() => None,
        read = sessions.export(session.as_str(), &mut facts) => Some(read),
    };
    drop(facts);
    match read {
        None => newest.clear(),
        Some(Err(ExportError::Io(error))) => return Err(error.into()),
        Some(Err(ExportError::Session(error))) => return Err(error.into()),
        Some(read) => read.map_err(CliError::failed)?,
    }
    for event in newest {
        view.show(&event, ui)?;
    }
    ui.end_line()?;
    Ok(ui.flush()?)
}
