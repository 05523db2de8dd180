//! Commands of the user in place of a prompt, which an editor offers after a slash.

use agent_client_protocol_schema::v1::{
    AvailableCommand, AvailableCommandInput, UnstructuredCommandInput,
};

/// A command of the editor's user.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Command {
    Hold,
    Release,
    Rename(String),
}

/// The commands, with the descriptions that an editor shows.
pub(super) fn available() -> Vec<AvailableCommand> {
    let name = AvailableCommandInput::Unstructured(UnstructuredCommandInput::new("NAME"));
    vec![
        AvailableCommand::new("hold", "Hold the session at its next boundary"),
        AvailableCommand::new("release", "Release the session, so that it continues"),
        AvailableCommand::new("rename", "Rename the session").input(name),
    ]
}

/// The command that a prompt is. Any other text is a prompt for the model.
pub(super) fn parse(prompt: &str) -> Option<Command> {
    let prompt = prompt.trim();
    match prompt {
        "/hold" => Some(Command::Hold),
        "/release" => Some(Command::Release),
        _ => {
            let name = prompt.strip_prefix("/rename ")?.trim();
            (!name.is_empty()).then(|| Command::Rename(name.to_owned()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m_h1_only_the_exact_words_are_a_command() {
        assert_eq!(parse(" /hold\n"), Some(Command::Hold));
        assert_eq!(parse("/release"), Some(Command::Release));
        assert_eq!(parse("/rename my work "), Some(Command::Rename("my work".to_owned())));
        for prompt in ["/hold on", "hold", "/rename", "/rename  ", "/usr/bin/hold", "say /hold"] {
            assert_eq!(parse(prompt), None, "{prompt}");
        }
    }
}
