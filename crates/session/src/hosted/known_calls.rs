//! The calls that an agent has reported in its turn.

use std::collections::{BTreeMap, BTreeSet};

use holdpoint_tools::MAX_JOBS;
use serde_json::{Map, Value, json};

use super::permission;
use super::protocol::{CallKind, CallStatus, CallUpdate, Content};

/// The most calls of one agent turn. With another one, the agent is ended.
const MAX_CALLS: usize = 4096;

/// The most bytes of the calls that have not ended. With more, the agent is ended.
const MAX_BYTES: usize = 32 * 1024 * 1024;

/// The most bytes of the input that a call shows and the log keeps. A larger one is left out.
const MAX_INPUT: usize = 64 * 1024;

/// The deepest nesting of such an input. The arguments of a call have a limit, too.
const MAX_INPUT_DEPTH: usize = 32;

/// The most bytes of the id of a call. With a longer one, the agent is ended.
const MAX_ID: usize = 1024;

/// The most bytes of a title, and of a path.
const MAX_LINE: usize = 4 * 1024;

/// The most paths of a call. A request for permission with more is rejected.
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
    /// Whether paths are missing or cut off.
    pub(super) paths_cut: bool,
    pub(super) input: Option<Value>,
    /// The content, as it was last reported.
    pub(super) content: Vec<Content>,
    /// The output, if the agent reports no content.
    pub(super) output: Option<Value>,
    /// The output of commands that was not shown yet, at most twice [`MAX_MORE_OUTPUT`] bytes.
    more_output: String,
    /// How often the content was reported.
    pub(super) version: u64,
    status: Option<CallStatus>,
    /// Whether it was reported to the session as a call.
    begun: bool,
    /// The terminals of the content.
    pub(super) terminals: Vec<String>,
    /// The text that was shown, and the version of the content that it shows, while the call is not
    /// followed although it has begun.
    paused: Option<(String, u64)>,
    /// The approximate size.
    pub(super) bytes: usize,
}

/// The bytes of the output of a call that stay if too many wait to be shown, as of a terminal.
const MAX_MORE_OUTPUT: usize = 256 * 1024;

/// The beginning of output that is not complete.
pub(super) const GAP: &str = "\n[earlier output is no longer kept]\n";

/// The most terminals of a call whose output is shown: as many as can run.
const MAX_TERMINALS: usize = MAX_JOBS;

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
        if update.id.len() > MAX_ID {
            return Err(format!("the id of a tool call has more than {MAX_ID} bytes"));
        }
        if self.open.len() + self.ended.len() >= MAX_CALLS && !self.open.contains_key(&update.id) {
            return Err(format!("it made more than {MAX_CALLS} tool calls in one turn"));
        }
        self.ended.remove(&update.id);
        let call = self.open.entry(update.id.clone()).or_default();
        self.bytes -= call.bytes;
        call.take(update);
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

    /// Takes the output of a call that was not shown yet.
    pub(super) fn take_more_output(&mut self, id: &str) -> String {
        let Some(call) = self.open.get_mut(id) else { return String::new() };
        let output = std::mem::take(&mut call.more_output);
        self.bytes -= output.len();
        call.bytes -= output.len();
        output
    }

    /// Notes that a call is no longer followed, although it has not ended, with the text that was
    /// shown of this version of its content.
    pub(super) fn pause(&mut self, id: &str, shown: String, version: u64) {
        if let Some(call) = self.open.get_mut(id) {
            self.bytes += shown.len();
            call.bytes += shown.len();
            call.paused = Some((shown, version));
        }
    }

    /// The text that was shown of a call, and the version of the content that it shows.
    pub(super) fn resume(&mut self, id: &str) -> (String, u64) {
        let Some(call) = self.open.get_mut(id) else { return Default::default() };
        let (shown, version) = call.paused.take().unwrap_or_default();
        self.bytes -= shown.len();
        call.bytes -= shown.len();
        (shown, version)
    }

    pub(super) fn is_paused(&self, id: &str) -> bool {
        self.open.get(id).is_some_and(|call| call.paused.is_some())
    }

    /// Whether a call that is paused has something to show. If not, and it has ended, it is forgotten.
    pub(super) fn is_resumed(&mut self, id: &str) -> bool {
        let Some(call) = self.open.get_mut(id) else { return false };
        if call.paused.is_none() {
            return false;
        }
        match call.end() {
            Some(true) => true,
            None => call.has_news(),
            Some(false) if call.has_news() || call.has_first_output() => true,
            Some(false) => {
                self.end(id);
                false
            }
        }
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
        let CallUpdate { id: _, title, kind, status, paths, input, content, output, more_output } =
            update;
        if let Some(title) = title.filter(|title| !title.is_empty()) {
            self.title = cut(&title);
        }
        self.kind = kind.or(self.kind);
        self.status = status.or(self.status);
        if let Some(paths) = paths.filter(|paths| !paths.is_empty()) {
            self.paths_cut =
                paths.len() > MAX_PATHS || paths.iter().any(|path| path.len() > MAX_LINE);
            self.paths = paths.iter().take(MAX_PATHS).map(|path| cut(path)).collect();
        }
        // Only new and replaced parts are measured, so that the work is linear in the size of all
        // updates.
        if let Some(input) = input.filter(|input| !is_empty(input)) {
            self.bytes += value_size(&input);
            self.bytes -= self.input.replace(input).as_ref().map_or(0, value_size);
        }
        if let Some(output) = output {
            self.bytes += value_size(&output);
            self.bytes -= self.output.replace(output).as_ref().map_or(0, value_size);
        }
        if let Some(more) = more_output {
            self.bytes -= self.more_output.len();
            push_newest(&mut self.more_output, &more);
            self.bytes += self.more_output.len();
        }
        if let Some(content) = content {
            self.version += 1;
            self.bytes += content_size(&content);
            let terminal = |content: &Content| match content {
                Content::Terminal(terminal) => Some(terminal.clone()),
                Content::Text(_) | Content::Diff { .. } => None,
            };
            self.terminals = content.iter().filter_map(terminal).take(MAX_TERMINALS).collect();
            self.bytes -= content_size(&std::mem::replace(&mut self.content, content));
        }
    }

    /// Whether the call, which is paused, has text or output that was not shown. A content that was
    /// repeated is compared once: an agent can send many small updates after a large one.
    fn has_news(&mut self) -> bool {
        if !self.more_output.is_empty() || !self.terminals.is_empty() {
            return true;
        }
        let version = self.version;
        if self.paused.as_ref().is_none_or(|(_, compared)| *compared == version) {
            return false;
        }
        let text = self.content_text();
        match &mut self.paused {
            Some((shown, compared)) if *shown == text => {
                *compared = version;
                false
            }
            _ => true,
        }
    }

    /// Whether the call, which is paused, has output, and no content was shown.
    fn has_first_output(&self) -> bool {
        self.paused.as_ref().is_some_and(|(shown, _)| shown.is_empty())
            && self.output.as_ref().is_some_and(|output| !output.is_null())
    }

    /// The content as text, without the output of terminals.
    pub(super) fn content_text(&self) -> String {
        let mut whole = String::new();
        for content in &self.content {
            match content {
                Content::Text(text) => whole.push_str(text),
                Content::Diff { path, old, new } => {
                    whole.push_str(&permission::diff(path, old.as_deref(), new));
                }
                Content::Terminal(_) => continue,
            }
            if !whole.ends_with('\n') {
                whole.push('\n');
            }
        }
        whole
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
            let fits = value_size(input) <= MAX_INPUT && depth(input) <= MAX_INPUT_DEPTH;
            let input = if fits { input.clone() } else { json!("(left out: it is too large)") };
            arguments.insert("input".to_owned(), input);
        }
        arguments.insert("id".to_owned(), json!(id));
        Value::Object(arguments)
    }
}

/// The size of a content in bytes.
fn content_size(content: &[Content]) -> usize {
    let size = |content: &Content| match content {
        Content::Text(text) | Content::Terminal(text) => text.len(),
        Content::Diff { path, old, new } => {
            path.len() + old.as_ref().map_or(0, String::len) + new.len()
        }
    };
    content.iter().map(|content| size_of::<Content>() + size(content)).sum()
}

/// Adds output. Beyond twice [`MAX_MORE_OUTPUT`] bytes, it is cut to the newest half.
/// A cut with each piece would take quadratic time.
fn push_newest(output: &mut String, more: &str) {
    output.push_str(more);
    if output.len() > 2 * MAX_MORE_OUTPUT {
        let start = output.ceil_char_boundary(output.len() - MAX_MORE_OUTPUT + GAP.len());
        output.replace_range(..start, GAP);
    }
}

/// At most the first [`MAX_LINE`] bytes.
fn cut(text: &str) -> String {
    text[..text.floor_char_boundary(MAX_LINE)].to_owned()
}

fn is_empty(value: &Value) -> bool {
    value.is_null() || value.as_object().is_some_and(Map::is_empty)
}

/// How deep a value is nested.
fn depth(value: &Value) -> usize {
    match value {
        Value::Array(values) => 1 + values.iter().map(depth).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn update(id: &str, text: &str) -> CallUpdate {
        let content = Some(vec![Content::Text(text.to_owned())]);
        CallUpdate { id: id.to_owned(), content, ..CallUpdate::default() }
    }

    #[test]
    fn m_h3_a_call_begins_when_it_is_no_longer_announced_only() {
        let mut calls = KnownCalls::default();
        let status = |status| CallUpdate {
            id: "a".to_owned(),
            status: Some(status),
            ..CallUpdate::default()
        };
        assert_eq!(calls.update(status(CallStatus::Pending), false), Ok(Change::Nothing));
        assert_eq!(calls.update(status(CallStatus::Running), false), Ok(Change::Begins));
        assert_eq!(calls.update(status(CallStatus::Completed), false), Ok(Change::News));
        assert_eq!(calls.get("a").unwrap().end(), Some(false));
        calls.end("a");
        assert_eq!(calls.update(status(CallStatus::Running), false), Ok(Change::Nothing));
        // Its agent may still ask about it.
        assert_eq!(calls.update(status(CallStatus::Pending), true), Ok(Change::Begins));
        assert_eq!(calls.update(status(CallStatus::Completed), false), Ok(Change::News));
        assert_eq!(calls.get("a").unwrap().end(), Some(false));
        assert_eq!(calls.update(update("b", "text"), false), Ok(Change::Begins));
    }

    /// A call does not run if its arguments are refused, and its agent would get no reply.
    #[test]
    fn m_h3_an_input_that_is_too_large_or_too_deep_is_left_out_of_the_arguments() {
        let nested = |levels| (0..levels).fold(json!("x"), |inner, _| json!([inner]));
        for (input, fits) in [
            (nested(MAX_INPUT_DEPTH), true),
            (nested(MAX_INPUT_DEPTH + 1), false),
            (json!({ "a": nested(MAX_INPUT_DEPTH) }), false),
            (json!("x".repeat(MAX_INPUT)), false),
        ] {
            let mut calls = KnownCalls::default();
            let input = Some(input);
            let call =
                CallUpdate { id: "a".to_owned(), input: input.clone(), ..CallUpdate::default() };
            calls.update(call, true).unwrap();
            let arguments = calls.get("a").unwrap().arguments("a");
            assert_eq!(Some(&arguments["input"]) == input.as_ref(), fits, "{arguments}");
        }
    }

    #[test]
    fn m_h3_a_content_that_is_repeated_while_its_call_is_paused_is_compared_once() {
        let mut calls = KnownCalls::default();
        assert!(calls.update(update("a", "text"), false).is_ok());
        calls.pause("a", "text\n".to_owned(), 1);
        assert!(calls.update(update("a", "text"), false).is_ok());
        assert!(!calls.is_resumed("a"));
        assert_eq!(calls.open["a"].paused, Some(("text\n".to_owned(), 2)));
        assert!(calls.update(update("a", "another"), false).is_ok());
        assert!(calls.is_resumed("a"));
    }

    #[test]
    fn m_h3_the_output_of_a_call_that_waits_to_be_shown_is_bounded() {
        let mut calls = KnownCalls::default();
        let more = |text: &str| CallUpdate {
            id: "a".to_owned(),
            more_output: Some(text.to_owned()),
            ..CallUpdate::default()
        };
        for text in ["one\n", "t", "wo\n"] {
            assert!(calls.update(more(text), false).is_ok());
        }
        assert_eq!(calls.take_more_output("a"), "one\ntwo\n");
        assert_eq!(calls.take_more_output("a"), "");
        let empty = calls.bytes;
        for _ in 0..5 {
            assert!(calls.update(more(&"é".repeat(MAX_MORE_OUTPUT / 4 + 1)), false).is_ok());
        }
        assert!(calls.update(more("end"), false).is_ok());
        let output = calls.take_more_output("a");
        assert!((MAX_MORE_OUTPUT..2 * MAX_MORE_OUTPUT).contains(&output.len()));
        assert!(output.starts_with(GAP) && output.ends_with("éend"));
        assert_eq!(output.matches(GAP).count(), 1);
        assert_eq!(calls.bytes, empty);
    }

    #[test]
    fn m_h3_the_calls_of_an_agent_are_bounded() {
        let mut calls = KnownCalls::default();
        let large = "x".repeat(MAX_BYTES / 3);
        for _ in 0..10 {
            assert!(calls.update(update("a", &large), false).is_ok(), "content is replaced");
        }
        assert!(calls.update(update("b", &large), false).is_ok());
        calls.end("a");
        assert!(calls.update(update("c", &large), false).is_ok());
        assert!(calls.update(update("d", &large), false).is_err());
        calls.clear();
        assert_eq!(calls.bytes, 0);
        for n in 0..MAX_CALLS {
            let id = n.to_string();
            assert!(calls.update(update(&id, ""), false).is_ok());
            calls.end(&id);
        }
        assert!(calls.update(update("one more", ""), false).is_err());
        assert!(calls.update(update(&"x".repeat(MAX_ID + 1), ""), false).is_err());
    }
}
