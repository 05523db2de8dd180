//! What answers, calls and results say in one line, for every client of a terminal.

use holdpoint_common::{Answer, AskRequest, Fact, ToolCall};
use holdpoint_tools::shown::{line, prose_line};

/// Characters of a line that sums something up.
const SHORT: usize = 120;

/// What a call does, in one line.
pub(crate) fn title(call: &ToolCall) -> String {
    let field = |name: &str| call.input.pointer(name).and_then(|value| value.as_str());
    let what = ["/command", "/path", "/question", "/questions/0/question"].into_iter().find_map(field);
    let what = what.map_or_else(|| call.input.to_string(), str::to_owned);
    format!("{}: {}", prose_line(&call.name), shorten(&line(&what)))
}

/// An answer as a past participle.
pub(crate) fn said(answer: &Answer) -> String {
    match answer {
        Answer::Resume => "goes on".to_owned(),
        Answer::Approve { always: false } => "approved".to_owned(),
        Answer::Approve { always: true } => "approved, always in this session".to_owned(),
        Answer::Deny { reason: None } => "denied".to_owned(),
        Answer::Deny { reason: Some(reason) } => format!("denied: {}", prose_line(reason)),
        Answer::Reply { answers } => {
            let answers: Vec<_> = answers.iter().map(|reply| prose_line(&reply.answer)).collect();
            format!("answered: {}", answers.join(", "))
        }
        Answer::Cancel => "declined".to_owned(),
    }
}

/// What a change of the session's settings comes to.
pub(crate) fn setting(fact: &Fact) -> Option<String> {
    let (what, by) = match fact {
        Fact::SessionRenamed { name, by } => (format!("renamed to {}", prose_line(name)), by),
        Fact::ModelChanged { model, by } => (format!("from the next turn on its model is {}", prose_line(model)), by),
        Fact::DebugChanged { enabled: true, by } => ("logged at debug level".to_owned(), by),
        Fact::DebugChanged { enabled: false, by } => ("no longer logged at debug level".to_owned(), by),
        _ => return None,
    };
    Some(format!("{what} ({})", prose_line(&by.to_string())))
}

/// What an ask was about, to stand before its answer.
pub(crate) fn about(request: &AskRequest) -> String {
    let what = match request {
        AskRequest::Pause(pause) => {
            let details = pause.details.as_deref().and_then(|details| details.lines().next());
            let is_diff = details.is_some_and(|line| line.starts_with("--- "));
            details.filter(|_| !is_diff).unwrap_or(&pause.message).to_owned()
        }
        AskRequest::Question(request) => {
            request.questions.iter().map(|question| question.header.trim()).collect::<Vec<_>>().join(", ")
        }
    };
    format!("⏸ {}: {} ", prose_line(request.tool_name()), shorten(&prose_line(&what)))
}

/// The first line of a text, and how many more there are.
pub(crate) fn sum_up(text: &str) -> String {
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default().trim_start().replace('\t', " ");
    let first = shorten(&prose_line(&first));
    match lines.count() {
        0 => first,
        1 => format!("{first} (1 more line)"),
        more => format!("{first} ({more} more lines)"),
    }
}

/// The beginning of a line.
pub(crate) fn shorten(line: &str) -> String {
    match line.char_indices().nth(SHORT) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line.to_owned(),
    }
}
