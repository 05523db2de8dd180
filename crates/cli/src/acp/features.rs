//! The optional features that the editor has announced.

use agent_client_protocol_schema::v1::ClientCapabilities;

/// The features of the editor that change the messages to it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Features {
    /// The editor shows the output of commands in a terminal of its own: `_meta.terminal_output`.
    pub(super) terminal_output: bool,
    /// The editor shows notices.
    pub(super) notices: bool,
    /// The editor shows forms.
    pub(super) forms: bool,
}

impl From<&ClientCapabilities> for Features {
    fn from(client: &ClientCapabilities) -> Self {
        let announced = |name: &str| client.meta.as_ref()?.get(name)?.as_bool();
        Self {
            terminal_output: announced("terminal_output") == Some(true),
            notices: client.session.as_ref().is_some_and(|session| session.notices.is_some()),
            forms: client.elicitation.as_ref().is_some_and(|forms| forms.form.is_some()),
        }
    }
}
