//! The conversation of a session, as an agent gets it: the newest prompt, and the rest as text for an
//! agent that can't continue its own session.

use holdpoint_common::{BlockKind, ToolStatus};
use serde_json::Value;

use super::consent;
use crate::model::Message;

/// The most bytes of the conversation that is sent as text. The oldest messages are left out.
const MAX_TEXT: usize = 64 * 1024;

/// The most bytes of one result in that text.
const MAX_RESULT: usize = 2 * 1024;

/// The prompt of a turn that continues after a restart, in which the agent's own turn was lost.
const CONTINUE: &str =
    "The program that runs you was restarted during your turn. Continue with it.";

const HEADING: &str = "This conversation began in a session that you can't read. It follows as text, \
                       up to the line ---. Then follows the next message of the user.";

/// The conversation of a request.
pub(super) struct Conversation {
    /// Everything before the newest prompt, as text; `None` if the prompt is the first.
    pub(super) before: Option<String>,
    pub(super) prompt: String,
}

impl Conversation {
    /// Reads the messages of a request.
    pub(super) fn of(messages: &[Message]) -> Self {
        let messages = consent::without_requests(messages);
        let (before, prompt) = match &messages[..] {
            [before @ .., Message::User(text)] => (before, text.clone()),
            messages => (messages, CONTINUE.to_owned()),
        };
        Self { before: text(before), prompt }
    }
}

/// The newest of these messages as text, and a line that ends them; `None` if there are none.
fn text(messages: &[&Message]) -> Option<String> {
    let mut parts: Vec<String> = Vec::new();
    let mut bytes = 0;
    for message in messages.iter().rev() {
        let part = part(message);
        bytes += part.len();
        if bytes > MAX_TEXT {
            let left_out = messages.len() - parts.len();
            parts.push(format!("(earlier messages that are left out: {left_out})"));
            break;
        }
        parts.push(part);
    }
    parts.push(HEADING.to_owned());
    parts.reverse();
    (!messages.is_empty()).then(|| format!("{}\n\n---\n\n", parts.join("\n\n")))
}

fn part(message: &Message) -> String {
    match message {
        Message::User(text) => format!("User: {text}"),
        Message::Assistant(answer) => {
            let blocks = answer.blocks.iter().filter(|block| block.kind == BlockKind::Text);
            let blocks = blocks.map(|block| format!("You: {}", block.text));
            let title = |input: &Value| {
                input.get("title").and_then(Value::as_str).unwrap_or_default().to_owned()
            };
            let calls = answer.calls.iter().map(|call| format!("Tool: {}", title(&call.input)));
            blocks.chain(calls).collect::<Vec<_>>().join("\n")
        }
        Message::Tool(result) => {
            let output = format!("{}{}", result.output.to_text(), result.result);
            let end = output.floor_char_boundary(MAX_RESULT);
            let status = if result.status == ToolStatus::Ok { "" } else { " (failed)" };
            let more = if end < output.len() { " …" } else { "" };
            format!("Result{status}: {}{more}", &output[..end])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m_h3_the_newest_messages_are_sent_as_text() {
        let first = Conversation::of(&[Message::User("one".to_owned())]);
        assert!(first.before.is_none() && first.prompt == "one");
        let messages: Vec<_> =
            (0..100).map(|n| Message::User(format!("{n} {}", "x".repeat(1000)))).collect();
        let Conversation { before, prompt } = Conversation::of(&messages);
        let before = before.unwrap();
        assert!(before.len() <= MAX_TEXT + 1000 && before.ends_with("\n\n---\n\n"));
        assert!(before.contains("User: 98 ") && !before.contains("User: 10 "));
        assert!(
            before.contains("(earlier messages that are left out: ") && prompt.starts_with("99 ")
        );
        let large = [Message::User("x".repeat(MAX_TEXT + 1)), Message::User("last".to_owned())];
        let before = Conversation::of(&large).before.unwrap();
        assert!(before.contains("that are left out: 1)") && before.len() < 1000, "{before}");
    }
}
