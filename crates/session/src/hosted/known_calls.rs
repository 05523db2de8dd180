//! The calls of an agent in its turn, as far as it has reported them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::protocol::{CallKind, CallStatus, CallUpdate, Content};

/// The most calls of one agent turn. With another one, the agent is ended.
const MAX_CALLS: usize = 4096;

/// The most bytes of the calls that have not ended. With more, the agent is ended.
const MAX_BYTES: usize = 32 * 1024 * 1024;

/// The most bytes of the input that a call shows and the log keeps. A larger one is left out.
const MAX_INPUT: usize = 64 * 1024;

/// The most bytes of a title, and of a path.
const MAX_LINE: usize = 4 * 1024;

/// The most paths of a call.
const MAX_PATHS: usize = 64;

/// The calls of an agent turn.
#[derive(Debug, Default)]
pub(super) struct KnownCalls {
    open: BTreeMap<String, KnownCall>,
    /// The ids of the calls that were followed to their end.
    ended: BTreeSet<String>,
    /// The size of the open calls.
    bytes: usize,
}

/// An agent call with everything that was reported about it.
#[derive(Debug, Default)]
pub(super) struct KnownCall {
    pub(super) title: String,
    pub(super) kind: Option<CallKind>,
    pub(super) paths: Vec<String>,
    pub(super) input: Option<Value>,
    /// The content, as it was last reported.
    pub(super) content: Vec<Content>,
    /// The output, if the agent reports no content.
    pub(super) output: Option<Value>,
    status: Option<CallStatus>,
    /// Whether it was reported to the session as a call.
    begun: bool,
    bytes: usize,
}

/// The consequence of an update.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// The call begins now: it is no longer announced only.
    Begins,
    /// A call that has begun has news.
    News,
    Nothing,
}

impl KnownCalls {
    /// Takes an update over. `begins` says whether the call begins even if it is only announced,
    /// because its agent asks for permission.
    ///
    /// # Errors
    /// The reason why the agent has to be ended.
    pub(super) fn update(&mut self, update: CallUpdate, begins: bool) -> Result<Change, String> {
        if self.ended.contains(&update.id) && !begins {
            return Ok(Change::Nothing);
        }
        if self.open.len() + self.ended.len() >= MAX_CALLS && !self.open.contains_key(&update.id) {
            return Err(format!("it made more than {MAX_CALLS} tool calls in one turn"));
        }
        let call = self.open.entry(update.id.clone()).or_default();
        call.take(update);
        self.bytes -= call.bytes;
        call.bytes = call.size();
        self.bytes += call.bytes;
        if self.bytes > MAX_BYTES {
            return Err(format!("its open tool calls have more than {MAX_BYTES} bytes"));
        }
        let is_announced = matches!(call.status, None | Some(CallStatus::Pending));
        if call.begun {
            Ok(Change::News)
        } else if begins || !is_announced || !call.content.is_empty() {
            call.begun = true;
            Ok(Change::Begins)
        } else {
            Ok(Change::Nothing)
        }
    }

    pub(super) fn get(&self, id: &str) -> Option<&KnownCall> {
        self.open.get(id)
    }

    /// Forgets a call that was followed to its end.
    pub(super) fn end(&mut self, id: &str) {
        if let Some(call) = self.open.remove(id) {
            self.bytes -= call.bytes;
        }
        self.ended.insert(id.to_owned());
    }

    /// Forgets all calls.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

impl KnownCall {
    fn take(&mut self, update: CallUpdate) {
        let CallUpdate { id: _, title, kind, status, paths, input, content, output } = update;
        if let Some(title) = title.filter(|title| !title.is_empty()) {
            self.title = cut(&title);
        }
        self.kind = kind.or(self.kind);
        self.status = status.or(self.status);
        if let Some(paths) = paths.filter(|paths| !paths.is_empty()) {
            self.paths = paths.iter().take(MAX_PATHS).map(|path| cut(path)).collect();
        }
        if let Some(input) = input.filter(|input| !is_empty(input)) {
            self.input = Some(input);
        }
        self.content = content.unwrap_or_else(|| std::mem::take(&mut self.content));
        self.output = output.or_else(|| self.output.take());
    }

    /// The approximate size in bytes.
    fn size(&self) -> usize {
        let content = self.content.iter().map(|content| match content {
            Content::Text(text) => text.len(),
            Content::Diff { path, old, new } => {
                path.len() + old.as_ref().map_or(0, String::len) + new.len()
            }
        });
        let values = [&self.input, &self.output].into_iter().flatten().map(value_size);
        let paths = self.paths.iter().map(String::len);
        256 + self.title.len() + content.chain(values).chain(paths).sum::<usize>()
    }

    /// Whether the call has ended; `Some(true)` if it has failed.
    pub(super) fn end(&self) -> Option<bool> {
        match self.status {
            Some(CallStatus::Completed) => Some(false),
            Some(CallStatus::Failed) => Some(true),
            _ => None,
        }
    }

    /// The call as the arguments of the tool that follows it.
    pub(super) fn arguments(&self, id: &str) -> Value {
        let mut arguments = Map::new();
        arguments.insert("title".to_owned(), json!(self.title));
        let kind = self.kind.map(|kind| match kind {
            CallKind::Read => "read",
            CallKind::Write => "write",
            CallKind::Search => "search",
            CallKind::Execute => "execute",
            CallKind::Fetch => "fetch",
            CallKind::Other => "other",
        });
        arguments.extend(kind.map(|kind| ("kind".to_owned(), json!(kind))));
        if !self.paths.is_empty() {
            arguments.insert("locations".to_owned(), json!(self.paths));
        }
        if let Some(input) = &self.input {
            let fits = value_size(input) <= MAX_INPUT;
            let input = if fits { input.clone() } else { json!("(left out: it is too large)") };
            arguments.insert("input".to_owned(), input);
        }
        arguments.insert("id".to_owned(), json!(id));
        Value::Object(arguments)
    }
}

/// At most the first [`MAX_LINE`] bytes.
fn cut(text: &str) -> String {
    text[..text.floor_char_boundary(MAX_LINE)].to_owned()
}

fn is_empty(value: &Value) -> bool {
    value.is_null() || value.as_object().is_some_and(Map::is_empty)
}

/// The approximate size of a value in memory, in bytes.
fn value_size(value: &Value) -> usize {
    let inner: usize = match value {
        Value::String(text) => text.len(),
        Value::Array(values) => values.iter().map(value_size).sum(),
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| name.len() + value_size(value)).sum()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    size_of::<Value>() + inner
}
