//! The meaning of a permission request: its effects, for the policy, and its words for the user.
//!
//! An agent says which command or files a call is about. Its words are as good as the agent is: the
//! sandbox, and not the policy, limits an agent that does not tell the truth.

use std::fmt::Write;
use std::path::Path;

use blake3::Hash;
use holdpoint_tools::{Act, Intent, Place, Workspace, shown};
use serde_json::Value;

use super::known_calls::KnownCall;
use super::protocol::{CallKind, Content};
use super::served::command_hash;

/// The most bytes of the details of a Confirm.
const MAX_DETAILS: usize = 1024 * 1024;

/// The effects of the call of a request, and the Confirm for it.
///
/// # Errors
/// The reason for the agent why the user can't be asked.
pub(super) fn intent(
    agent: &str,
    call: &KnownCall,
    workspace: &Workspace,
) -> Result<Intent, String> {
    let too_large = || format!("the call is too large to be shown: more than {MAX_DETAILS} bytes");
    if call.bytes > MAX_DETAILS {
        return Err(too_large());
    }
    if call.paths_cut {
        return Err("the call names too many files, or one with too long a path".to_owned());
    }
    let command = command(call, workspace);
    let acts = match (call.kind, &command) {
        (Some(CallKind::Execute), Some(command)) => {
            // A rule that allows the command does not allow the rest of the input.
            let rest = command.has_more.then_some(Act::Other);
            [Act::Command(command.text.clone())].into_iter().chain(rest).collect()
        }
        (Some(CallKind::Read), _) => places(call, workspace, Act::Read),
        (Some(CallKind::Search), _) => places(call, workspace, Act::Walk),
        (Some(CallKind::Write), _) => places(call, workspace, Act::Write),
        _ => vec![Act::Other],
    };
    let title = shown::prose_line(&call.title).into_owned();
    let message = match call.kind {
        Some(CallKind::Execute) if command.is_some() => format!("{agent}: run this command?"),
        Some(CallKind::Write) => format!("{agent}: change files? {title}"),
        Some(CallKind::Read | CallKind::Search) => format!("{agent}: read files? {title}"),
        _ => format!("{agent}: {title}?"),
    };
    let mut details = details(call, command.as_ref(), workspace);
    // Some agents name the command in the title alone. The message has the title, but may not show it
    // exactly.
    let exact = shown::line(&call.title);
    if command.is_none() && exact != title {
        details = format!("{exact}\n{details}");
    }
    if details.len() > MAX_DETAILS {
        return Err(too_large());
    }
    let details = (!details.is_empty()).then_some(details);
    Ok(Intent { acts, message, details, always: None })
}

/// The command that an approval of the call covers, if the agent then requests a terminal for exactly
/// it. A change of a file is not covered: only the tool that makes it knows the file's text and place.
pub(super) fn covers(call: &KnownCall, workspace: &Workspace) -> Option<Hash> {
    let command = command(call, workspace).filter(|command| !command.has_more);
    let command = command.filter(|_| call.kind == Some(CallKind::Execute));
    command.map(|command| command_hash(&command.text))
}

/// The command of a call.
struct Command {
    text: String,
    /// Whether it runs in the workspace: the agent names no other folder.
    is_in_workspace: bool,
    /// Whether the input has more than the command and its description.
    has_more: bool,
}

/// The command that a call runs, if the agent names it.
fn command(call: &KnownCall, workspace: &Workspace) -> Option<Command> {
    let input = call.input.as_ref()?.as_object()?;
    let text = match input.get("command")? {
        Value::String(command) => command.clone(),
        Value::Array(words) => {
            let words: Option<Vec<_>> = words.iter().map(Value::as_str).collect();
            match words?[..] {
                // The policy reads the script itself.
                [
                    "bash" | "/bin/bash" | "sh" | "/bin/sh" | "zsh" | "/bin/zsh",
                    "-c" | "-lc",
                    script,
                ] => script.to_owned(),
                ref words => line(words),
            }
        }
        _ => return None,
    };
    let is_root =
        |value: &Value| value.as_str().is_some_and(|folder| Path::new(folder) == workspace.root());
    let (mut is_in_workspace, mut has_more) = (true, false);
    for (name, value) in input.iter().filter(|(_, value)| !value.is_null()) {
        match name.as_str() {
            "command" => {}
            "description" if value.is_string() => {}
            "cwd" | "workdir" if is_root(value) => {}
            // Any other field can change the folder.
            _ => (is_in_workspace, has_more) = (false, true),
        }
    }
    Some(Command { text, is_in_workspace, has_more })
}

/// Words as a line for a shell.
pub(super) fn line(words: &[impl AsRef<str>]) -> String {
    words.iter().map(|word| quoted(word.as_ref())).collect::<Vec<_>>().join(" ")
}

/// A word as a shell reads it. Exact, unlike [`shown::shell_word`]: the line may run.
pub(super) fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:@%+,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// The effects on the files of a call. Without files, and with one whose path can't be resolved, the
/// effects are unknown.
fn places(call: &KnownCall, workspace: &Workspace, act: fn(Place) -> Act) -> Vec<Act> {
    let diffs = call.content.iter().filter_map(|content| match content {
        Content::Diff { path, .. } => Some(path.as_str()),
        Content::Text(_) | Content::Terminal(_) => None,
    });
    let paths = call.paths.iter().map(String::as_str).chain(diffs);
    let place = |path| Place::resolve(path, workspace.root()).map_or(Act::Other, act);
    let acts: Vec<_> = paths.map(place).collect();
    if acts.is_empty() { vec![Act::Other] } else { acts }
}

/// The exact command, the changes of files, and the input if it has more.
fn details(call: &KnownCall, command: Option<&Command>, workspace: &Workspace) -> String {
    let mut details = String::new();
    if let Some(Command { text, is_in_workspace, .. }) = command {
        details.push_str(&match is_in_workspace {
            true => shown::command(text, workspace.root()),
            false => shown::command_anywhere(text),
        });
        details.push('\n');
    }
    for path in &call.paths {
        let _ = writeln!(details, "file: {}", shown::line(path));
    }
    for content in &call.content {
        let _ = match content {
            Content::Diff { path, old, new } => {
                writeln!(details, "{}", diff(path, old.as_deref(), new))
            }
            Content::Text(text) if command.is_none() => writeln!(details, "{}", shown::text(text)),
            Content::Text(_) | Content::Terminal(_) => Ok(()),
        };
    }
    if command.is_none_or(|command| command.has_more) {
        let input = call.input.as_ref().and_then(|input| serde_json::to_string_pretty(input).ok());
        if let Some(input) = input {
            let heading = if command.is_some() { "\nall of its input" } else { "its input" };
            let _ = write!(details, "{heading}:\n{}", shown::text(&input));
        }
    }
    details
}

/// A change of a file, as a diff.
pub(super) fn diff(path: &str, old: Option<&str>, new: &str) -> String {
    shown::diff(path, old, new).unwrap_or_else(|error| format!("{}: {error}", shown::line(path)))
}

#[cfg(test)]
mod tests {
    use holdpoint_tools::Policy;
    use serde_json::json;

    use super::*;
    use crate::hosted::known_calls::KnownCalls;
    use crate::hosted::protocol::CallUpdate;

    fn confirm(update: CallUpdate) -> (String, Option<String>) {
        let mut calls = KnownCalls::default();
        calls.update(CallUpdate { id: "a".to_owned(), ..update }, true).unwrap();
        let workspace = Workspace::new("/w", Vec::new(), Policy::default());
        let intent = intent("python", calls.get("a").unwrap(), &workspace).unwrap();
        (intent.message, intent.details)
    }

    #[test]
    fn m_h3_the_title_of_a_call_is_shown_once_unless_it_is_not_exact() {
        let titled = |title: &str| CallUpdate { title: Some(title.into()), ..Default::default() };
        assert_eq!(confirm(titled("Look up")), ("python: Look up?".to_owned(), None));
        let input = Some(json!({ "url": "http://x/" }));
        let details = "its input:\n{\n  \"url\": \"http://x/\"\n}";
        let (message, shown) = confirm(CallUpdate { input, ..titled("Look up") });
        assert_eq!((&*message, shown.as_deref()), ("python: Look up?", Some(details)));
        // The letter is a Cyrillic one.
        let (_, shown) = confirm(titled("l\u{455} -l"));
        assert_eq!(shown.as_deref(), Some("l\\u{455} -l\n"));
    }
}
