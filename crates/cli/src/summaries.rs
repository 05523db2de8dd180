//! One-line texts about calls, answers, holds and settings, shared by all terminal clients.

pub(crate) mod clock;
pub(crate) mod runs;
pub(crate) mod session;

use std::fmt::Display;

use holdpoint_common::{
    Answer, AnsweredBy, AskRequest, AsksMode, HistoryCut, HoldCause, Omission, PauseKind,
    PauseRequest, SandboxLevel, SandboxSettings, SessionFact, ToolCall, ToolStatus,
};
use holdpoint_tools::shown::{line, prose_line};
use serde_json::Value;
use unicode_width::UnicodeWidthStr;

use crate::table::fit;

/// The number of characters after which a summary is cut.
const MAX_SUMMARY_CHARS: usize = 120;

/// JSON pointers to the values in a call's input that identify it, in the order in which they are
/// shown.
const IDENTIFYING_POINTERS: [&str; 13] = [
    "/command",
    "/question",
    "/questions/0/question",
    "/action",
    "/pattern",
    "/path",
    "/url",
    "/query",
    "/text",
    "/titles/0",
    "/title",
    "/task",
    "/job",
];

/// Describes a call in one line.
pub(crate) fn call_summary(call: &ToolCall) -> String {
    let value = |pointer: &&str| match call.input.pointer(pointer)? {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    let values: Vec<_> = IDENTIFYING_POINTERS.iter().filter_map(value).collect();
    let input = if values.is_empty() { call.input.to_string() } else { values.join(" ") };
    format!("{}: {}", prose_line(&call.name), shorten(&line(&input)))
}

/// `, not saved`, or nothing if the change is saved.
pub(crate) fn not_saved_suffix(saved: bool) -> &'static str {
    if saved { "" } else { ", not saved" }
}

/// Describes an answer and its origin. Answers of this process (`own_pid`) need no origin.
pub(crate) fn answered(answer: &Answer, by: &AnsweredBy, own_pid: u32) -> String {
    let origin = match by {
        AnsweredBy::Client(who) if who.pid == Some(own_pid) => String::new(),
        AnsweredBy::Client(who) => format!(" {}", prose_line(&who.origin())),
        AnsweredBy::Setting { asks } => format!(" (asks = {asks})"),
    };
    let always = if answer.is_always() { ", always in this session" } else { "" };
    match answer {
        Answer::Resume => format!("continued{origin}"),
        Answer::Approve { .. } => format!("approved{origin}{always}"),
        Answer::Deny { reason: None, .. } => format!("denied{origin}{always}"),
        Answer::Deny { reason: Some(reason), .. } => {
            format!("denied{origin}{always}: {}", prose_line(reason))
        }
        Answer::Reply { answers } => {
            let answers: Vec<_> = answers
                .iter()
                .map(|reply| prose_line(reply.answer.as_deref().unwrap_or("(skipped)")))
                .collect();
            format!("answered{origin}: {}", answers.join(", "))
        }
        Answer::Cancel => format!("declined{origin}"),
    }
}

/// Describes a requested hold and its cause.
pub(crate) fn pausing(cause: &HoldCause) -> String {
    let reason = match cause {
        HoldCause::User { by } => by.origin(),
        HoldCause::Move { .. } | HoldCause::Restored | HoldCause::Limit { .. } => cause.to_string(),
    };
    format!("PAUSING... ({})", prose_line(&reason))
}

/// Describes a hold in force and its cause.
pub(crate) fn paused(cause: &HoldCause) -> String {
    match cause {
        HoldCause::Limit { reached } => format!("⏸ PAUSED: {reached}"),
        HoldCause::User { .. } | HoldCause::Move { .. } | HoldCause::Restored => {
            format!("⏸ PAUSED ({})", prose_line(&cause.to_string()))
        }
    }
}

/// Describes a change of the session's settings; `None` for other facts.
pub(crate) fn setting(fact: &SessionFact) -> Option<String> {
    let (change, by) = match fact {
        SessionFact::Renamed { name, by } => (format!("renamed to {}", prose_line(name)), by),
        SessionFact::Moved { machine, workspace, by } => {
            let folder = match machine {
                Some(machine) => format!("{machine}:{workspace}"),
                None => workspace.clone(),
            };
            (format!("moved to {}", prose_line(&folder)), by)
        }
        SessionFact::ModelChanged { model, by } => {
            (format!("model changed to {} for the next turns", prose_line(model)), by)
        }
        SessionFact::DebugChanged { enabled: true, by } => ("logged at debug level".to_owned(), by),
        SessionFact::DebugChanged { enabled: false, by } => {
            ("no longer logged at debug level".to_owned(), by)
        }
        SessionFact::AsksChanged { asks, by } => (asks_mode(*asks).to_owned(), by),
        SessionFact::PolicyChanged { policy, by } => {
            (format!("policy changed to {policy} for the calls that follow"), by)
        }
        _ => return None,
    };
    Some(format!("{change}, {}", prose_line(&by.origin())))
}

/// Describes the answers to asks in this mode.
pub(crate) fn asks_mode(asks: AsksMode) -> &'static str {
    match asks {
        AsksMode::Wait => "asks wait: a person answers",
        AsksMode::Deny => {
            "asks deny: confirmations are denied and questions declined, without asking you"
        }
        AsksMode::Approve => {
            "asks approve: confirmations are approved and questions declined, without asking you"
        }
    }
}

/// Describes a sandbox.
pub(crate) fn sandbox(SandboxSettings { level, network, .. }: &SandboxSettings) -> String {
    let note = match (level, network) {
        (SandboxLevel::Off, _) => " (commands have your permissions)",
        (_, true) => ", with the network",
        (_, false) => "",
    };
    format!("{level}{note}")
}

/// A count with its noun in the singular or the plural: `1 ask`, `2 asks`.
pub(crate) fn counted<N: Display + PartialEq + From<u8>>(count: N, noun: &str) -> String {
    let plural = if count == N::from(1) { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// The size of a text of this many bytes.
pub(crate) fn size_text(bytes: usize) -> String {
    match bytes {
        0..1_048_576 => format!("{} KiB", bytes.div_ceil(1024)),
        _ => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
    }
}

/// Describes how a conversation was cut for a model request.
pub(crate) fn cut(cut: &HistoryCut) -> String {
    let HistoryCut { messages, results, tokens, limit, lines, line_limit, reached } = *cut;
    let counts = [(messages, "message", "left out"), (results, "result", "cut")];
    let part = |(count, thing, how): (u64, &str, &str)| {
        (count > 0).then(|| format!("{} {how}", counted(count, thing)))
    };
    let parts: Vec<_> = counts.into_iter().filter_map(part).collect();
    format!(
        "{} ({reached} reached): the request has {tokens} of at most {limit} tokens and {lines} of at most {line_limit} lines",
        parts.join(", ")
    )
}

/// The subject of an ask, as a prefix for its answer.
pub(crate) fn ask_prefix(request: &AskRequest) -> String {
    let subject = match request {
        AskRequest::Pause(pause) => {
            // The details of a Continue matter only while it is shown.
            let details = first_detail(pause).filter(|_| pause.kind == PauseKind::Confirm);
            details.unwrap_or(&pause.message).to_owned()
        }
        AskRequest::Question(request) => request
            .questions
            .iter()
            .map(|question| question.header.trim())
            .collect::<Vec<_>>()
            .join(", "),
    };
    format!("⏸ {}: {} ", prose_line(request.tool_name()), shorten(&prose_line(&subject)))
}

/// Describes a provider's refusal of a conversation and the part that the next request omits.
pub(crate) fn resend_notice(omission: &Omission) -> String {
    format!("{}; the conversation is sent again {}", prose_line(&omission.reason), omission.what)
}

/// The subject of an ask in one line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct AskSummary {
    line: String,
    /// The number of further lines or questions, in words; empty if there are none.
    more: String,
}

impl AskSummary {
    pub(crate) fn new(request: &AskRequest) -> Self {
        let (line, more) = match request {
            AskRequest::Pause(pause) => {
                let message = lines(&pause.message).next().unwrap_or_default();
                let detail = first_detail(pause);
                let all = lines(&pause.message).count() + detail_lines(pause).count();
                // The header of a diff has two lines, and its file shows both.
                let is_shown = [!message.is_empty(), detail.is_some(), diff_file(pause).is_some()];
                let shown = is_shown.into_iter().filter(|is_shown| *is_shown).count();
                let line = format!("{message} {}", detail.unwrap_or_default());
                (line, more_suffix(all.saturating_sub(shown), "more line"))
            }
            AskRequest::Question(request) => match &request.questions[..] {
                [] => (String::new(), String::new()),
                [question] => {
                    let more = lines(&question.question).count().saturating_sub(1);
                    (
                        lines(&question.question).next().unwrap_or_default().to_owned(),
                        more_suffix(more, "more line"),
                    )
                }
                [question, more @ ..] => (
                    lines(&question.question).next().unwrap_or_default().to_owned(),
                    more_suffix(more.len(), "more question"),
                ),
            },
        };
        Self { line: prose_line(line.trim_end()).into_owned(), more }
    }

    /// Cuts the line so that all fits into this many cells. The number of further lines is kept.
    pub(crate) fn fit(&self, cells: usize) -> String {
        let line_cells = cells.saturating_sub(self.more.width());
        format!("{}{}", fit(&self.line, line_cells), self.more)
    }
}

/// Formats ` (2 more lines)`; empty for 0.
fn more_suffix(more: usize, noun: &str) -> String {
    match more {
        0 => String::new(),
        1 => format!(" (1 {noun})"),
        more => format!(" ({more} {noun}s)"),
    }
}

/// The non-blank lines of a text.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.trim().is_empty())
}

/// The lines of a pause's details, without the paragraph in which the shell names a command's
/// folder.
fn detail_lines(pause: &PauseRequest) -> impl Iterator<Item = &str> {
    let details = pause.details.as_deref().unwrap_or_default();
    lines(match details.rsplit_once("\n\n") {
        Some((command, folder)) if pause.tool_name == "shell" && folder.starts_with("in ") => {
            command
        }
        _ => details,
    })
}

/// The file of a diff, else the first line of the details.
fn first_detail(pause: &PauseRequest) -> Option<&str> {
    diff_file(pause).or_else(|| detail_lines(pause).next())
}

/// The file that a diff changes, from its `+++` line: the `---` line of a new file has `/dev/null`.
/// A shell command is never read as a diff.
fn diff_file(pause: &PauseRequest) -> Option<&str> {
    let mut lines = detail_lines(pause).filter(|_| pause.tool_name != "shell");
    lines.next()?.strip_prefix("--- ")?;
    lines.next()?.strip_prefix("+++ ")
}

/// The first line of a text, and the number of further lines.
pub(crate) fn first_line_summary(text: &str) -> String {
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default().trim_start().replace('\t', " ");
    let first = shorten(&prose_line(&first));
    match lines.count() {
        0 => first,
        1 => format!("{first} (1 more line)"),
        more => format!("{first} ({more} more lines)"),
    }
}

/// The text for the result of a call, from its status and a summary of its text.
pub(crate) fn result_text(status: ToolStatus, summary: &str) -> String {
    let word = match status {
        ToolStatus::Ok => return summary.to_owned(),
        ToolStatus::Error => "failed",
        ToolStatus::Denied => "denied",
        ToolStatus::Interrupted => "interrupted",
        ToolStatus::Panicked => "panicked",
    };
    // Some results already begin with this word.
    if summary.starts_with(word) { summary.to_owned() } else { format!("{word}: {summary}") }
}

/// Cuts a line after `MAX_SUMMARY_CHARS` characters.
pub(crate) fn shorten(line: &str) -> String {
    match line.char_indices().nth(MAX_SUMMARY_CHARS) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use holdpoint_common::{AsksMode, CallId, HistoryLimit, Who};
    use serde_json::json;

    use super::*;

    #[test]
    fn a_cut_says_what_was_left_out_and_what_was_cut() {
        let rest = " (the model's window reached): the request has 90 of at most 100 tokens and 7 of at most 8 lines";
        let summary = |messages, results| {
            cut(&HistoryCut {
                messages,
                results,
                tokens: 90,
                limit: 100,
                lines: 7,
                line_limit: 8,
                reached: HistoryLimit::Window,
            })
        };
        assert_eq!(summary(3, 0), format!("3 messages left out{rest}"));
        assert_eq!(summary(1, 1), format!("1 message left out, 1 result cut{rest}"));
        assert_eq!(summary(0, 2), format!("2 results cut{rest}"));
        assert_eq!(summary(3, 2), format!("3 messages left out, 2 results cut{rest}"));
    }

    #[test]
    fn an_answer_names_its_origin_unless_it_is_ours() {
        let by = |name: &str, pid| AnsweredBy::Client(Who { name: name.to_owned(), pid });
        let denied = Answer::Deny { reason: Some("no\u{9b}".to_owned()), always: false };
        assert_eq!(answered(&denied, &by("tui", Some(7)), 7), "denied: no\\u{9b}");
        assert_eq!(
            answered(&denied, &by("tui", Some(8)), 7),
            "denied from the screen (pid 8): no\\u{9b}"
        );
        assert_eq!(answered(&Answer::Resume, &by("x\u{9b}", None), 7), "continued by x\\u{9b}");
        let always = Answer::Deny { reason: Some("no".to_owned()), always: true };
        assert_eq!(
            answered(&always, &by("deny", Some(8)), 7),
            "denied from the command line (pid 8), always in this session: no"
        );
        let setting = AnsweredBy::Setting { asks: AsksMode::Deny };
        assert_eq!(
            answered(&Answer::Deny { reason: None, always: false }, &setting, 7),
            "denied (asks = deny)"
        );
    }

    #[test]
    fn the_summary_of_an_ask_names_the_file_of_a_diff() {
        let of_tool = |tool: &str, details: &str| {
            AskRequest::Pause(PauseRequest {
                kind: PauseKind::Confirm,
                tool_name: tool.to_owned(),
                message: "Do it?".to_owned(),
                details: Some(details.to_owned()),
            })
        };
        let pause = |details: &str| of_tool("shell", details);
        let summary = |details: &str, cells| AskSummary::new(&pause(details)).fit(cells);
        assert_eq!(summary("ls\u{9b}\n\nin /w", 80), "Do it? ls\\u{9b}");
        assert_eq!(summary("echo a\nrm -rf important\n\nin /w", 80), "Do it? echo a (1 more line)");
        assert_eq!(
            summary("echo a\n\nin /tmp; rm -rf x\n\nin /w", 80),
            "Do it? echo a (1 more line)"
        );
        assert_eq!(summary("echo a\nb\nc\n\nin /w", 25), "Do it? ec… (2 more lines)");
        assert_eq!(summary("\nrm -rf important\n\nin /w", 80), "Do it? rm -rf important");
        assert_eq!(summary("\n \na\nb\n\nin /w", 80), "Do it? a (1 more line)");
        let diff = of_tool("edit_file", "--- a.rs\n+++ a.rs\n@@ -1 +1 @@\n-a\n+b\n");
        assert_eq!(AskSummary::new(&diff).fit(80), "Do it? a.rs (3 more lines)");
        assert_eq!(ask_prefix(&diff), "⏸ edit_file: a.rs ");
        let made = of_tool("write_file", "--- /dev/null\n+++ w\u{9b}.txt\n@@ -0,0 +1 @@\n+a\n");
        assert_eq!(AskSummary::new(&made).fit(80), "Do it? w\\u{9b}.txt (2 more lines)");
        // A command that looks like a diff is shown from its beginning.
        assert_eq!(summary("--- a\n+++ b\nrm c\n\nin /w", 80), "Do it? --- a (2 more lines)");
    }

    #[test]
    fn the_summary_of_a_call_has_its_distinguishing_argument() {
        let title = |name: &str, input| {
            let (id, name, signature) = (CallId(1), name.to_owned(), None);
            call_summary(&ToolCall { id, provider_id: None, name, input, signature })
        };
        assert_eq!(
            title("shell", json!({"command": "ls\n-l", "timeout_ms": 5})),
            "shell: ls\\u{a}-l"
        );
        assert_eq!(title("grep", json!({"path": "src", "pattern": "^fn"})), "grep: ^fn src");
        assert_eq!(
            title("edit_file", json!({"path": "a.rs", "old_string": "x"})),
            "edit_file: a.rs"
        );
        let open = json!({"action": "open_page", "url": "http://localhost/", "pause": true});
        assert_eq!(title("web", open), "web: open_page http://localhost/");
        assert_eq!(title("tasks", json!({"action": "finish", "task": 3})), "tasks: finish 3");
        assert_eq!(title("other", json!({"size": [1, 2]})), "other: {\"size\":[1,2]}");
    }
}
