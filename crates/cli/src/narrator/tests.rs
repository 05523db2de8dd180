//! Tests that every terminal view shows the same words.

use std::io::{Read, Seek};

use holdpoint_common::{
    Answer, AnsweredBy, Ask, AskCloseCause, AskOrigin, AssistantMessage, Block, BlockKind, EndedProcesses, Job, JobEnd,
    Kept, Omission, Omitted, PauseRequest, Question, QuestionReply, QuestionRequest, StopHow, StoppedTool, ToolCall,
    ToolResult, ToolStatus, TurnId,
};

use super::*;
use crate::follow::View;
use crate::tui::lines_of_transcript;
use crate::ui::Ui;

/// Another client.
fn other() -> Who {
    Who { name: "approve".to_owned(), pid: Some(1) }
}

/// The events of a session with one of each kind of note.
fn story() -> Vec<Event> {
    let own = Who { name: "tui".to_owned(), pid: Some(std::process::id()) };
    let prompt =
        |n: u64, text: &str, by: &Who| Fact::PromptAccepted { prompt: PromptId(n), text: text.into(), by: by.clone() };
    let begin = |n: u64| Fact::TurnStarted { turn: TurnId(n), prompt: PromptId(n) };
    let block = |item: u64, kind: BlockKind, text: &str| {
        let text = text.to_owned();
        Block { item: ItemId(item), kind, text, signature: None, calls_before: 0 }
    };
    let call = |id: u64, command: &str| {
        let (name, input) = ("shell".to_owned(), serde_json::json!({ "command": command }));
        ToolCall { id: CallId(id), provider_id: None, name, input, signature: None }
    };
    let answer =
        |blocks, calls| Fact::AssistantMessage(AssistantMessage { blocks, calls, ..AssistantMessage::default() });
    let confirm = |n: u64, call: u64, command: &str| {
        let (message, details) = ("Run this command?".to_owned(), Some(command.to_owned()));
        let request = AskRequest::Pause(PauseRequest {
            kind: PauseKind::Confirm,
            tool_name: "shell".to_owned(),
            message,
            details,
        });
        raised(n, call, request)
    };
    let result = |id: u64, status, output: &str, text: &str| {
        let mut kept = Kept::default();
        kept.push(output);
        Fact::ToolFinished(ToolResult { output: kept.finish(), ..ToolResult::not_run(CallId(id), status, text) })
    };
    let standing = |cause| Fact::HoldChanged { hold: Hold::Standing { cause, since: Timestamp(0) } };
    let requested = |cause| Fact::HoldChanged { hold: Hold::Requested { cause, since: Timestamp(0) } };
    let off = || Fact::HoldChanged { hold: Hold::Off };
    let usage = Usage { input: 1200, output: 34, estimated: true, cost: Some(12_300), ..Usage::default() };
    let end = |outcome, error: Option<&str>, cause, receipt| Fact::TurnFinished {
        outcome,
        error: error.map(str::to_owned),
        cause,
        receipt,
        usage,
    };
    let by_user = || HoldCause::User { by: other() };
    let receipt = Receipt {
        tools: vec![StoppedTool { call: CallId(20), name: "shell".to_owned(), how: StopHow::Returned }],
        processes: EndedProcesses::default(),
        asks: vec![],
        prompts: vec![PromptId(4)],
        uncounted: false,
    };
    let (id, header, question) = ("1".to_owned(), "Port".to_owned(), "Which?".to_owned());
    let question = Question { id, header, question, options: vec![] };
    let asked = AskRequest::Question(QuestionRequest { tool_name: "ask_user".to_owned(), questions: vec![question] });
    let reply = QuestionReply { id: "1".to_owned(), answer: Some("80".to_owned()) };
    let bodies = [
        vec![
            // A prompt of our own, with calls that ask, and one that waits behind it.
            Body::Fact(prompt(1, "first\nwith two lines", &own)),
            Body::Fact(begin(1)),
            Body::Fact(Fact::StepStarted),
            Body::Delta(Delta::Thought { item: ItemId(1), text: "hm".into() }),
            Body::Delta(Delta::Text { item: ItemId(2), text: "Let me see.\n".into() }),
            Body::Fact(prompt(2, "second\u{9b}", &other())),
            Body::Delta(Delta::Retrying { next: 2, tries: 4, wait_ms: 1500, reason: "overloaded\nnow".to_owned() }),
            Body::Delta(Delta::NotSaved { reason: "disk full".to_owned() }),
            Body::Delta(Delta::SavedAgain),
            Body::Delta(Delta::Gap { from: 3, to: 5 }),
            Body::Fact(answer(
                vec![block(1, BlockKind::Thought, "hm"), block(2, BlockKind::Text, "Let me see.\n")],
                vec![call(10, "ls"), call(11, "rm x"), call(12, "ask")],
            )),
            Body::Fact(confirm(1, 10, "ls")),
            Body::Fact(confirm(2, 11, "rm x")),
            Body::Fact(raised(3, 12, asked)),
            Body::Fact(answered_by(1, Answer::Approve { always: true }, &other())),
            Body::Fact(answered_by(2, Answer::Deny { reason: Some("no".to_owned()) }, &own)),
            Body::Fact(answered_by(3, Answer::Reply { answers: vec![reply] }, &other())),
            Body::Fact(Fact::ToolStarted { call: CallId(10) }),
            Body::Delta(Delta::Output { item: ItemId(10), text: "a\nb\n".into() }),
            Body::Fact(result(10, ToolStatus::Ok, "a\nb\n", "[exit code 0]")),
            Body::Fact(result(11, ToolStatus::Denied, "", "denied: no")),
            Body::Fact(Fact::ToolStarted { call: CallId(12) }),
            Body::Fact(result(12, ToolStatus::Error, "", "no such port")),
        ],
        vec![
            Body::Fact(requested(by_user())),
            Body::Fact(standing(by_user())),
            Body::Fact(off()),
            Body::Fact(Fact::ProjectCut { reason: "AGENTS.md is too large".to_owned() }),
            Body::Fact(Fact::StepFinished {
                refused: false,
                usage,
                context: None,
                omitted: Some(Omission { what: Omitted::Thoughts, reason: "bad thoughts".to_owned() }),
            }),
            Body::Fact(Fact::JobStarted {
                job: Job { id: CallId(7), turn: TurnId(1), command: "serve".to_owned(), since: Timestamp(0) },
            }),
            Body::Fact(Fact::JobEnded { job: CallId(7), end: JobEnd::Exited { code: 0 } }),
            Body::Fact(end(Outcome::Done, None, None, None)),
            Body::Fact(begin(2)),
            Body::Fact(end(Outcome::Failed, Some("the model\nis gone"), None, None)),
        ],
        vec![
            // A turn that is cut, with a prompt that is handed back.
            Body::Fact(prompt(3, "third", &other())),
            Body::Fact(begin(3)),
            Body::Fact(prompt(4, "fourth", &other())),
            Body::Fact(Fact::StepStarted),
            Body::Fact(answer(vec![], vec![call(20, "sleep 9")])),
            Body::Fact(Fact::ToolStarted { call: CallId(20) }),
            Body::Fact(confirm(9, 20, "sleep 9")),
            Body::Fact(Fact::TurnCut { cause: CutCause::User { by: other() } }),
            Body::Fact(Fact::AskClosed { ask: ask_id(9), cause: AskCloseCause::Interrupted }),
            Body::Fact(Fact::AssistantMessage(AssistantMessage {
                blocks: vec![block(21, BlockKind::Text, "half")],
                partial: true,
                ..AssistantMessage::default()
            })),
            Body::Fact(result(20, ToolStatus::Interrupted, "", "interrupted")),
            Body::Fact(Fact::PromptReturned { prompt: PromptId(4), text: "fourth".into() }),
            Body::Fact(end(Outcome::Interrupted, None, Some(CutCause::User { by: other() }), Some(receipt))),
            Body::Fact(Fact::SessionRenamed { name: "new".to_owned(), by: other() }),
            Body::Fact(Fact::SessionRestored { cause: RestoreCause::Panic }),
            Body::Fact(Fact::SessionRestored { cause: RestoreCause::Restart }),
            Body::Fact(standing(HoldCause::Restored)),
            Body::Fact(requested(HoldCause::Restored)),
            Body::Fact(standing(HoldCause::Restored)),
            Body::Fact(off()),
            Body::Fact(Fact::SessionClosed { by: other() }),
        ],
    ];
    let numbered = (1..).zip(bodies.into_iter().flatten());
    numbered.map(|(seq, body)| Event { seq, at: Timestamp(seq * 1000), turn: None, step: None, body }).collect()
}

fn ask_id(n: u64) -> AskId {
    format!("alpha.{n}").parse().unwrap()
}

fn raised(n: u64, call: u64, request: AskRequest) -> Fact {
    let (origin, since, id) = (AskOrigin::Policy, Timestamp(0), ask_id(n));
    let ask = Ask { id, call: CallId(call), origin, since, request, always: None, may_be_denied: false };
    Fact::AskRaised { ask }
}

fn answered_by(n: u64, answer: Answer, by: &Who) -> Fact {
    Fact::AskAnswered { ask: ask_id(n), answer, by: AnsweredBy::Client(by.clone()) }
}

/// The lines that the plain terminal prints.
fn plain(events: &[Event]) -> Vec<String> {
    let mut file = tempfile::tempfile().unwrap();
    let mut ui = Ui::to_file(&file).unwrap();
    ui.lines_to_stdout();
    let mut view = View::transcript(false, true);
    events.iter().for_each(|event| view.show(&Arc::new(event.clone()), &mut ui).unwrap());
    ui.end_line().unwrap();
    ui.flush().unwrap();
    let mut text = String::new();
    file.rewind().unwrap();
    file.read_to_string(&mut text).unwrap();
    text.lines().map(str::to_owned).collect()
}

/// The words of a line, without the marks in which the views differ. Of an ask's end, the subject
/// is left out: the views show it where it is not visible above.
fn words(line: &str) -> String {
    let line = line.replace("handed back, prompt 4:", "handed back:");
    let line = line.split_once("→ ").map_or(&*line, |(_, end)| end);
    let line = line.trim_start_matches(|mark: char| " >›●✓✗○│└".contains(mark));
    let line = if line.starts_with('[') { line.split_once("] ").map_or(line, |(_, line)| line) } else { line };
    line.trim().to_owned()
}

/// The words that a view shows, sorted: the screen shows the end of an ask beside its call.
fn sorted(lines: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut words: Vec<_> = lines.into_iter().map(|line| words(&line)).filter(|line| !line.is_empty()).collect();
    words.sort();
    words
}

/// From any event on, a replay shows the same words on the plain terminal and on the screen, except
/// for states that the screen shows elsewhere, and hints to the commands of a shell.
#[test]
fn the_plain_terminal_and_the_screen_show_the_same_words() {
    let story = story();
    for from in 0..story.len() {
        let events = &story[from..];
        let mut narrator = Narrator::new(std::process::id());
        let narrations = events.iter().flat_map(|event| narrator.narrate(event));
        let mut states: Vec<_> = narrations
            .filter_map(|narration| if let Narration::State(note) = narration { Some(note.text) } else { None })
            .collect();
        let printed = plain(events).into_iter().filter(|line| {
            let state = states.iter().position(|state| state == line);
            state.inspect(|at| _ = states.swap_remove(*at)).is_none() && !line.starts_with("  `holdpoint ")
        });
        // The plain terminal names a call that did not run beside its result.
        let not_run = |line: String| match line.split_once(": denied: ") {
            Some((title, reason)) => vec![title.to_owned(), format!("denied: {reason}")],
            None => vec![line],
        };
        let printed = sorted(printed.flat_map(not_run));
        assert_eq!(sorted(lines_of_transcript(events)), printed, "from event {}", from + 1);
        assert!(states.is_empty(), "not shown by the plain terminal: {states:?}");
    }
}
