//! Tool calls as an editor shows them: kind, title, locations, diffs and output.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use agent_client_protocol_schema::v1::{
    Content, ContentBlock, Diff, ImageContent, Meta, Terminal, ToolCall as ShownCall,
    ToolCallContent, ToolCallLocation, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields,
    ToolKind,
};
use holdpoint_common::{Ask, CallId, HeadAndTail, Image, ToolCall, ToolResult, ToolStatus};
use holdpoint_tools::shown::prose_line;
use serde_json::{Value, json};

use crate::acp::prompt::fence;
use crate::summaries::call_summary;

/// The open calls.
#[derive(Debug, Default)]
pub(super) struct Calls(BTreeMap<CallId, Call>);

/// An open call.
#[derive(Debug)]
pub(super) struct Call {
    call: ToolCall,
    diffs: Vec<Diff>,
    /// Whether the editor shows the output in a terminal.
    in_terminal: bool,
    output: HeadAndTail,
    /// The length of the output when it was last sent as text.
    sent: usize,
    /// The ends of its asks.
    notes: Vec<String>,
}

/// The id of a call for the editor.
pub(in crate::acp) fn call_id(call: CallId) -> String {
    call.to_string()
}

impl Calls {
    /// Adds a call.
    pub(super) fn add(
        &mut self,
        call: &ToolCall,
        workspace: &Path,
        in_terminal: bool,
    ) -> ShownCall {
        let in_terminal = in_terminal && call.name == "shell";
        let diffs = diffs(call, workspace);
        let id = call_id(call.id);
        let added = Call {
            call: call.clone(),
            diffs,
            in_terminal,
            output: HeadAndTail::default(),
            sent: 0,
            notes: Vec::new(),
        };
        let shown = ShownCall::new(id.clone(), call_summary(call))
            .kind(kind(&call.name))
            .status(ToolCallStatus::Pending)
            .raw_input(call.input.clone())
            .content(added.content(None))
            .locations(locations(call, workspace));
        self.0.insert(call.id, added);
        if in_terminal {
            let info = json!({ "terminal_id": id, "cwd": workspace });
            shown.meta(Meta::from_iter([("terminal_info".to_owned(), info)]))
        } else {
            shown
        }
    }

    /// Adds the call of an ask, whose input is not known; `None` if it is open already.
    pub(super) fn announce(&mut self, ask: &Ask) -> Option<ShownCall> {
        if self.0.contains_key(&ask.call) {
            return None;
        }
        let tool = ask.request.tool_name().to_owned();
        let call = ToolCall {
            id: ask.call,
            provider_id: None,
            name: tool,
            input: Value::Null,
            signature: None,
        };
        let mut shown = self.add(&call, Path::new("/"), false).raw_input(None::<Value>);
        shown.title = call_title(ask);
        Some(shown)
    }

    /// The content of a call so far.
    pub(super) fn content(&self, id: CallId) -> Vec<ToolCallContent> {
        self.0.get(&id).map(|call| call.content(None)).unwrap_or_default()
    }

    pub(super) fn started(&self, id: CallId) -> ToolCallUpdate {
        let fields = ToolCallUpdateFields::new().status(ToolCallStatus::InProgress);
        ToolCallUpdate::new(call_id(id), fields)
    }

    /// Adds a piece of output. As text, all of it is sent whenever it has doubled, up to the part
    /// that is kept, so that the text of all updates is at most twice that part.
    pub(super) fn output(&mut self, id: CallId, piece: &str) -> Option<ToolCallUpdate> {
        let call = self.0.get_mut(&id)?;
        if piece.is_empty() {
            return None;
        }
        if call.in_terminal {
            let fields = ToolCallUpdateFields::new();
            return Some(ToolCallUpdate::new(call_id(id), fields).meta(terminal_output(id, piece)));
        }
        call.output.push(piece);
        let length = call.output.head.len();
        if length < 2 * call.sent || length == call.sent {
            return None;
        }
        call.sent = length;
        Some(call.update(call.content(None)))
    }

    /// Notes the end of an ask.
    pub(super) fn note(&mut self, id: CallId, note: String) -> Option<ToolCallUpdate> {
        let call = self.0.get_mut(&id)?;
        call.notes.push(note);
        Some(call.update(call.content(None)))
    }

    /// Ends a call. `rest` is the output that a terminal of the editor lacks.
    pub(super) fn finished(&mut self, result: &ToolResult, rest: &str) -> Vec<ToolCallUpdate> {
        let id = result.call;
        let Some(call) = self.0.remove(&id) else { return Vec::new() };
        let status = match result.status {
            ToolStatus::Ok => ToolCallStatus::Completed,
            ToolStatus::Error
            | ToolStatus::Denied
            | ToolStatus::Interrupted
            | ToolStatus::Panicked => ToolCallStatus::Failed,
        };
        let raw = json!({ "status": result.status, "result": result.result });
        let fields = ToolCallUpdateFields::new()
            .status(status)
            .content(call.content(Some(result)))
            .raw_output(raw);
        let update = ToolCallUpdate::new(call_id(id), fields);
        if !call.in_terminal {
            return vec![update];
        }
        let last = match rest.is_empty() || rest.ends_with('\n') {
            true => format!("{rest}{}\n", result.result),
            false => format!("{rest}\n{}\n", result.result),
        };
        let exit = json!({
            "terminal_id": call_id(id),
            "exit_code": u8::from(result.status != ToolStatus::Ok),
            "signal": null,
        });
        vec![
            ToolCallUpdate::new(call_id(id), ToolCallUpdateFields::new())
                .meta(terminal_output(id, &last)),
            update.meta(Meta::from_iter([("terminal_exit".to_owned(), exit)])),
        ]
    }

    /// Forgets all calls, because their turn is over.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

impl Call {
    fn update(&self, content: Vec<ToolCallContent>) -> ToolCallUpdate {
        let fields = ToolCallUpdateFields::new().content(content);
        ToolCallUpdate::new(call_id(self.call.id), fields)
    }

    /// The diffs, the output or its terminal, and the ends of asks. With `result`, all of the
    /// output.
    fn content(&self, result: Option<&ToolResult>) -> Vec<ToolCallContent> {
        let mut content: Vec<ToolCallContent> =
            self.diffs.iter().cloned().map(ToolCallContent::from).collect();
        let text = match result {
            // The diff shows the effect of an edit.
            Some(result) if self.diffs.is_empty() || result.status != ToolStatus::Ok => {
                result.to_text()
            }
            Some(_) => String::new(),
            None => self.output.to_text(),
        };
        if self.in_terminal {
            content.push(ToolCallContent::Terminal(Terminal::new(call_id(self.call.id))));
        } else if !text.is_empty() {
            content.push(quoted(&text));
        }
        content.extend(result.into_iter().flat_map(|result| &result.images).map(image));
        content.extend(self.notes.iter().map(|note| plain(note.clone())));
        content
    }
}

/// The title of a call of which only the ask is known.
fn call_title(ask: &Ask) -> String {
    let message = prose_line(ask.request.message());
    format!("{}: {message}", prose_line(ask.request.tool_name()))
}

fn image(image: &Image) -> ToolCallContent {
    let content = ImageContent::new(&*image.data, image.media_type.as_str());
    ToolCallContent::Content(Content::new(ContentBlock::Image(content)))
}

/// A paragraph of text.
pub(in crate::acp) fn plain(text: String) -> ToolCallContent {
    ToolCallContent::Content(Content::new(text))
}

/// A text that is shown as it is, in a fence that it can't close.
pub(in crate::acp) fn quoted(text: &str) -> ToolCallContent {
    let fence = fence(text);
    let end = if text.ends_with('\n') { "" } else { "\n" };
    plain(format!("{fence}\n{text}{end}{fence}"))
}

fn terminal_output(id: CallId, data: &str) -> Meta {
    let output = json!({ "terminal_id": call_id(id), "data": data });
    Meta::from_iter([("terminal_output".to_owned(), output)])
}

/// The kind of a tool, by its name.
pub(in crate::acp) fn kind(tool: &str) -> ToolKind {
    match tool {
        "read_file" | "list_dir" => ToolKind::Read,
        "glob" | "grep" => ToolKind::Search,
        "edit_file" | "write_file" => ToolKind::Edit,
        "shell" | "jobs" => ToolKind::Execute,
        "web" => ToolKind::Fetch,
        "tasks" => ToolKind::Think,
        _ => ToolKind::Other,
    }
}

fn text<'a>(input: &'a Value, name: &str) -> Option<&'a str> {
    input.get(name)?.as_str()
}

/// The file or folder that a call is about.
fn locations(call: &ToolCall, workspace: &Path) -> Vec<ToolCallLocation> {
    let is_about_path =
        matches!(kind(&call.name), ToolKind::Read | ToolKind::Search | ToolKind::Edit);
    let path = text(&call.input, "path").filter(|_| is_about_path);
    let line = call.input.get("offset").and_then(Value::as_u64).and_then(|n| u32::try_from(n).ok());
    let location = |path| ToolCallLocation::new(absolute(path, workspace)).line(line);
    path.map(location).into_iter().collect()
}

fn absolute(path: &str, workspace: &Path) -> PathBuf {
    workspace.join(path)
}

/// The changes that a call makes to a file, as its input has them. The old text of a file that is
/// written as a whole is left out: the call may not be allowed to read it. Its Confirm has the
/// diff.
fn diffs(call: &ToolCall, workspace: &Path) -> Vec<Diff> {
    let input = &call.input;
    let Some(path) = text(input, "path").map(|path| absolute(path, workspace)) else {
        return Vec::new();
    };
    let edit = |edit: &Value| {
        let (old, new) = (text(edit, "old_string")?, text(edit, "new_string")?);
        Some(Diff::new(&path, new).old_text(old.to_owned()))
    };
    match call.name.as_str() {
        "edit_file" => {
            let several = input.get("edits").and_then(Value::as_array);
            std::iter::once(input).chain(several.into_iter().flatten()).filter_map(edit).collect()
        }
        "write_file" => {
            let Some(new) = text(input, "content") else { return Vec::new() };
            vec![Diff::new(&path, new)]
        }
        _ => Vec::new(),
    }
}
