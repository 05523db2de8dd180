//! Writes all that was said in a session to a file, as Markdown.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::Path;

use holdpoint_session::{AttachFrom, SessionHandle};
use holdpoint_tools::shown::{prose, prose_line};

use super::super::message::Message;
use super::super::transcript::{Kind, ToolState, Transcript};
use crate::said::title;

/// Events that are taken at once.
const BATCH: usize = 1024;

pub(super) async fn export(session: &SessionHandle, path: &Path) -> Message {
    let mut transcript = Transcript::new(std::process::id());
    match session.attach(AttachFrom::start()).await {
        Ok(mut stream) => {
            let mut batch = Vec::new();
            while stream.next_past(&mut batch, BATCH).await > 0 {
                batch.drain(..).for_each(|event| transcript.add(&event));
            }
        }
        Err(error) => return Message::Failed(prose_line(&error.to_string()).into_owned()),
    }
    // What is there already is somebody's.
    let written = File::create_new(path).and_then(|mut file| file.write_all(prose(&markdown(&transcript)).as_bytes()));
    let name = prose_line(&path.to_string_lossy()).into_owned();
    match written {
        Ok(()) => Message::Told(format!("written to {name}")),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            Message::Failed(format!("{name} is there already; /export FILE writes another one"))
        }
        Err(error) => Message::Failed(format!("{name}: {error}")),
    }
}

fn markdown(transcript: &Transcript) -> String {
    let mut text = String::new();
    for entry in transcript.entries() {
        match &entry.kind {
            Kind::Prompt { text: prompt, .. } => {
                text.push_str(&format!("## {}\n", prompt.trim().replace('\n', "\n> ")))
            }
            Kind::Text { text: said, .. } => text.push_str(&format!("{}\n", said.trim_end())),
            Kind::Thought { text: thought, .. } => {
                text.push_str(&format!("> *{}*\n", thought.trim().replace('\n', "\n> ")));
            }
            Kind::Tool(tool) => {
                let result = match &tool.state {
                    ToolState::Ended { result, .. } => result.as_str(),
                    ToolState::Waits | ToolState::Runs => "",
                };
                let said = format!("{}\n{result}", tool.output.to_text());
                let quoted = said.trim().replace('\n', "\n    ");
                text.push_str(&format!("- {}\n\n    {quoted}\n", title(&tool.call)));
            }
            Kind::Note { text: note, .. } => text.push_str(&format!("*{}*\n", note.replace('\n', ", "))),
        }
        text.push('\n');
    }
    text
}
