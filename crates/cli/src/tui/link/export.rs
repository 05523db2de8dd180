//! Writes a session's transcript to a file, as Markdown.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::Path;

use holdpoint_common::api::ClientEnd;
use holdpoint_session::{AttachFrom, SessionHandle};
use holdpoint_tools::shown::{prose, prose_line};

use super::super::message::Message;
use super::super::transcript::{Kind, ToolState, Transcript};
use super::error_line;
use crate::summaries::call_summary;

const BATCH: usize = 1024;
/// How many attachments in a row may end early without a new event.
const TRIES: u32 = 5;

pub(super) async fn export(session: &SessionHandle, path: &Path) -> Message {
    // A relative path starts at this program's folder, not at the session's.
    let path = &std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let name = prose_line(&path.to_string_lossy()).into_owned();
    let transcript = match read(session).await {
        Ok(transcript) => transcript,
        Err(reason) => {
            return Message::Failed(format!("can't write {name}: {}", prose_line(&reason)));
        }
    };
    // `create_new` fails if the file exists.
    let written = File::create_new(path).and_then(|mut file| {
        // Remove a partial file.
        file.write_all(prose(&markdown(&transcript)).as_bytes())
            .inspect_err(|_| _ = std::fs::remove_file(path))
    });
    match written {
        Ok(()) => Message::Notice(format!("exported to {name}")),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Message::Failed(format!(
            "{name} already exists; use /export FILE to choose another file"
        )),
        Err(error) => Message::Failed(format!("can't write {name}: {error}")),
    }
}

/// Reads the transcript so far, or returns why it can't be read.
async fn read(session: &SessionHandle) -> Result<Transcript, String> {
    let mut transcript = Transcript::new(std::process::id());
    // A busy session continues while it is read.
    let newest = session.snapshot().seq;
    let (mut from, mut last) = (AttachFrom::start(), 0);
    let mut tries = 0;
    while tries < TRIES && last < newest {
        tries += 1;
        let mut stream = session.attach(from).await.map_err(error_line)?;
        let mut batch = Vec::new();
        while stream.next_past(&mut batch, BATCH).await > 0 {
            tries = 0;
            for event in batch.drain(..) {
                last = event.seq;
                transcript.add(&event);
            }
        }
        from = AttachFrom::after(last);
        match stream.end() {
            // The stream may have ended early.
            ClientEnd::Lagged { .. } | ClientEnd::Moved { .. } | ClientEnd::Disconnected { .. } => {
            }
            ClientEnd::Stopped => return Err("the daemon was stopped".to_owned()),
            ClientEnd::Detached | ClientEnd::Ended => return Ok(transcript),
        }
    }
    if last >= newest { Ok(transcript) } else { Err("the event stream broke too often".to_owned()) }
}

fn markdown(transcript: &Transcript) -> String {
    let mut text = String::new();
    for entry in transcript.entries() {
        match &entry.kind {
            Kind::Prompt { text: prompt, .. } => {
                text.push_str(&format!("## {}\n", prompt.trim().replace('\n', "\n> ")))
            }
            Kind::Text { text: message, .. } => text.push_str(&format!("{}\n", message.trim_end())),
            Kind::Thought { text: thought, .. } => {
                text.push_str(&format!("> {}\n", thought.trim().replace('\n', "\n> ")));
            }
            Kind::Tool(tool) => {
                let result = match &tool.state {
                    ToolState::Ended { result, .. } => result.as_str(),
                    ToolState::Waits | ToolState::Runs => "",
                };
                let output = format!("{}\n{result}", tool.output.to_text());
                // In a list item, a code block is indented by four columns more than its text.
                let code = output.trim().replace('\n', "\n      ");
                text.push_str(&format!("- {}\n\n      {code}\n", call_summary(&tool.call)));
            }
            Kind::Note(remark) => {
                let lines =
                    remark.text.split('\n').chain(remark.details.iter().map(String::as_str));
                text.push_str(&format!("*{}*\n", lines.collect::<Vec<_>>().join(", ")));
            }
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use holdpoint_common::{
        AssistantMessage, Block, BlockKind, Body, CallId, Event, Fact, ItemId, Timestamp, ToolCall,
        ToolFact, ToolResult, ToolStatus, TurnFact,
    };

    use super::*;

    #[test]
    fn markdown_in_an_output_or_a_thought_stays_text() {
        let call = ToolCall {
            id: CallId(2),
            provider_id: None,
            name: "shell".to_owned(),
            input: serde_json::json!({ "command": "cat notes" }),
            signature: None,
        };
        let thought = Block {
            item: ItemId(1),
            kind: BlockKind::Thought,
            text: "one\n\ntwo".to_owned(),
            signature: None,
            calls_before: 0,
        };
        let message = AssistantMessage {
            blocks: vec![thought],
            calls: vec![call],
            ..AssistantMessage::default()
        };
        let result = ToolResult::not_run(CallId(2), ToolStatus::Ok, "# no heading\n* no item");
        let mut transcript = Transcript::new(1);
        for (seq, fact) in (1..).zip([
            Fact::Turn(TurnFact::AssistantMessage(message.into())),
            Fact::Tool(ToolFact::Started { call: CallId(2) }),
            Fact::Tool(ToolFact::Finished(result.into())),
        ]) {
            let (at, body) = (Timestamp(0), Body::Fact(fact));
            transcript.add(&Arc::new(Event { seq, at, turn: None, step: None, body }));
        }
        assert_eq!(
            markdown(&transcript),
            "> one\n> \n> two\n\n- shell: cat notes\n\n      # no heading\n      * no item\n\n"
        );
    }
}
