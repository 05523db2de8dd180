//! The JSON that clients see. Its names are stable: a change here is a change of the API.

use std::num::NonZeroU64;
use std::sync::Arc;

use holdpoint_common::{
    AgentStart, Answer, AnsweredBy, Ask, AskCloseCause, AskFact, AskId, AskOrigin, AskRequest,
    AsksMode, AssistantMessage, Block, BlockKind, Body, CallId, ContextFill, CutCause, Delta,
    EndedProcesses, Event, Fact, FileMark, Gap, HeadAndTail, HistoryCut, HistoryLimit, Hold,
    HoldAt, HoldCause, HoldState, Image, ImageType, InstructionFile, ItemId, ItemKind, Job, JobEnd,
    JobFact, LastRun, LastTurn, Note, Omission, Omitted, Outcome, PauseKind, PauseRequest,
    PauseResponse, PolicyMode, PolicyRules, PromptFact, PromptId, Question, QuestionOption,
    QuestionReply, QuestionRequest, QuestionResponse, QueuedPrompt, Receipt, RefusedClient,
    RestoreCause, Run, RunEnd, RunFact, RunLimit, RunLimits, RunProgress, RunSettings,
    SandboxSettings, SessionFact, SessionSettings, SessionStatus, SessionSummary, Snapshot,
    StopHow, StoppedTool, Task, TaskFact, TaskId, TaskState, Timestamp, ToolCall, ToolFact,
    ToolResult, ToolStatus, TurnFact, TurnId, Usage, Who,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

const NOW: Timestamp = Timestamp(1_790_000_000_000);

fn who() -> Who {
    Who { name: "tui".into(), pid: Some(7) }
}

fn ask_id() -> AskId {
    "k3v9x2m7qa.41".parse().unwrap()
}

fn pause() -> PauseRequest {
    PauseRequest {
        kind: PauseKind::Confirm,
        tool_name: "shell".into(),
        message: "Run this command?".into(),
        details: Some("make".into()),
    }
}

fn questions() -> QuestionRequest {
    let options = vec![QuestionOption { label: "blue".into(), description: "like the sky".into() }];
    let question =
        Question { id: "c".into(), header: "Colour".into(), question: "Which?".into(), options };
    QuestionRequest { tool_name: "ask_user".into(), questions: vec![question] }
}

fn ask() -> Ask {
    Ask {
        id: ask_id(),
        call: CallId(3),
        origin: AskOrigin::Policy,
        since: NOW,
        request: AskRequest::Pause(pause()),
        always: Some("make".into()),
        may_be_denied: true,
    }
}

fn settings() -> SessionSettings {
    SessionSettings {
        id: "k3v9x2m7qa".parse().unwrap(),
        name: "demo".into(),
        workspace: "/w".into(),
        model: "rehearsal".into(),
        agent: None,
        asks: AsksMode::Wait,
        policy: PolicyMode::Ask,
        rules: PolicyRules::default(),
        sandbox: SandboxSettings::off(),
        max_steps: 0,
        max_turn_tokens: 0,
    }
}

fn job() -> Job {
    Job { id: CallId(3), turn: TurnId(1), command: "npm run dev".into(), since: NOW }
}

fn kept() -> HeadAndTail {
    HeadAndTail { head: "a".into(), dropped: 5, tail: "z".into() }
}

fn run_settings() -> RunSettings {
    let limits = RunLimits { tokens: NonZeroU64::new(1_000_000), iterations: None, time_ms: None };
    RunSettings { goal: "all tests pass".into(), limits, hold_at: HoldAt::Step }
}

fn run() -> Run {
    let progress =
        RunProgress { iteration: 3, tokens: 900, worked_ms: 60_000, working_since: Some(NOW) };
    let settings = Arc::new(run_settings());
    Run {
        limits: settings.limits,
        settings,
        progress,
        failures: 1,
        waits_until: Some(NOW),
        cut: true,
    }
}

fn instructions() -> Vec<InstructionFile> {
    let reason = "ignored because AGENTS.md is there".to_owned();
    vec![
        InstructionFile { path: "AGENTS.md".into(), bytes: 120, reason: None },
        InstructionFile { path: "CLAUDE.md".into(), bytes: 0, reason: Some(reason) },
    ]
}

fn note() -> Note {
    Note { text: "port 80 is taken".into(), task: Some(TaskId(1)), iteration: Some(3) }
}

fn limited(reached: RunLimit) -> Fact {
    Fact::Session(SessionFact::HoldChanged {
        hold: Hold::Standing { cause: HoldCause::Limit { reached }, since: NOW },
    })
}

fn facts() -> Vec<Fact> {
    let message = AssistantMessage {
        blocks: vec![Block {
            item: ItemId(1),
            kind: BlockKind::Thought,
            text: "hm".into(),
            signature: Some("s".into()),
            calls_before: 1,
        }],
        calls: vec![ToolCall {
            id: CallId(3),
            provider_id: Some("toolu_1".into()),
            name: "shell".into(),
            input: serde_json::json!({"command": "make"}),
            signature: None,
        }],
        partial: true,
        model: Some("openai/gpt-5".into()),
        usage: Some(Usage::estimate(250, 25)),
    };
    let mark =
        || FileMark { path: "a.txt".into(), size: 3, modified: 9, hash: Some("6f".repeat(16)) };
    let result = ToolResult {
        call: CallId(3),
        status: ToolStatus::Ok,
        output: kept(),
        result: "exit code 0".into(),
        images: vec![Image { media_type: ImageType::Png, data: "iVBORw0KGgo=".into() }],
        read: vec![mark()],
        wrote: vec![mark()],
    };
    let receipt = Receipt {
        tools: vec![StoppedTool { call: CallId(3), name: "shell".into(), how: StopHow::Returned }],
        processes: EndedProcesses { terminated: 2, killed: 1, not_ended: vec![9] },
        asks: vec![ask_id()],
        prompts: vec![PromptId(2)],
        uncounted: false,
    };
    let usage =
        Usage { input: 10, cached: 4, cache_written: 2, output: 5, cost: None, estimated: true };
    vec![
        Fact::Session(SessionFact::Opened { settings: settings() }),
        Fact::Session(SessionFact::Restored { cause: RestoreCause::Unloaded }),
        Fact::Session(SessionFact::Closed { by: who() }),
        Fact::Session(SessionFact::Renamed { name: "payments".into(), by: who() }),
        Fact::Session(SessionFact::Moved {
            machine: Some("m2".into()),
            workspace: "/srv/work".into(),
            by: who(),
        }),
        Fact::Session(SessionFact::ModelChanged { model: "openai/gpt-5".into(), by: who() }),
        Fact::Session(SessionFact::DebugChanged { enabled: true, by: who() }),
        Fact::Session(SessionFact::AsksChanged { asks: AsksMode::Deny, by: who() }),
        Fact::Session(SessionFact::PolicyChanged { policy: PolicyMode::Edits, by: who() }),
        Fact::Session(SessionFact::ClientRefused(RefusedClient {
            pid: 4711,
            program: "curl".into(),
            request: "POST /v1/asks/a1/answer".into(),
        })),
        Fact::Prompt(PromptFact::Accepted {
            prompt: PromptId(1),
            text: "go".into(),
            by: Who::named("run"),
            typed_bytes: None,
            idempotency_key: None,
        }),
        Fact::Prompt(PromptFact::Returned { prompt: PromptId(2), text: "later".into() }),
        Fact::Prompt(PromptFact::Delivered { prompt: PromptId(2), iteration: 3 }),
        Fact::Run(RunFact::Started { run: run_settings(), by: who() }),
        Fact::Run(RunFact::IterationStarted { turn: TurnId(1), iteration: 1, resumed: false }),
        Fact::Run(RunFact::IterationStarted { turn: TurnId(2), iteration: 1, resumed: true }),
        Fact::Run(RunFact::Waiting { until: NOW }),
        Fact::Run(RunFact::Extended { limits: RunLimits::default() }),
        Fact::Run(RunFact::Finished {
            end: RunEnd::Interrupted,
            progress: RunProgress { working_since: None, ..run().progress },
            by: Some(who()),
        }),
        Fact::Task(TaskFact::Added { task: TaskId(1), title: "write it".into() }),
        Fact::Task(TaskFact::Moved { task: TaskId(1), to: TaskState::Doing }),
        Fact::Task(TaskFact::NoteTaken { note: note() }),
        Fact::Turn(TurnFact::Started { turn: TurnId(1), prompt: PromptId(1) }),
        Fact::Turn(TurnFact::StepStarted),
        Fact::Turn(TurnFact::AssistantMessage(message.into())),
        Fact::Tool(ToolFact::Started { call: CallId(3) }),
        Fact::Tool(ToolFact::Finished(result.into())),
        Fact::Turn(TurnFact::InstructionsRead { files: instructions() }),
        Fact::Turn(TurnFact::ProjectCut {
            reason: "AGENTS.md is left out: it is not a file".into(),
        }),
        Fact::Turn(TurnFact::ContentAdded { name: "wiki:page://1".into(), text: "One.".into() }),
        Fact::Turn(TurnFact::AgentStarted { session: "s-1".into(), how: AgentStart::Loaded }),
        Fact::Turn(TurnFact::ToolsMissing { reason: "MCP server `a`: it has ended".into() }),
        Fact::Turn(TurnFact::HistoryCut(HistoryCut {
            messages: 7,
            results: 1,
            tokens: 90_000,
            limit: 100_000,
            lines: 2_000,
            line_limit: 50_000,
            reached: HistoryLimit::Tokens,
        })),
        Fact::Run(RunFact::FilesChanged { paths: vec!["a b/new".into()] }),
        Fact::Job(JobFact::Started { job: job() }),
        Fact::Job(JobFact::Ended { job: CallId(3), end: JobEnd::Exited { code: 1 } }),
        Fact::Job(JobFact::Ended { job: CallId(3), end: JobEnd::Signalled { signal: 9 } }),
        Fact::Job(JobFact::Ended { job: CallId(3), end: JobEnd::SessionClosed }),
        Fact::Turn(TurnFact::StepFinished {
            usage,
            context: Some(ContextFill { tokens: 15, limit: 100_000 }),
            refused: true,
            omitted: Some(Omission { what: Omitted::Results, reason: "too large".into() }),
        }),
        Fact::Ask(AskFact::Raised { ask: ask() }),
        Fact::Ask(AskFact::Answered {
            ask: ask_id(),
            answer: Answer::Deny { reason: Some("no".into()), always: false },
            by: AnsweredBy::Client(who()),
            while_away: false,
        }),
        Fact::Ask(AskFact::Answered {
            ask: ask_id(),
            answer: Answer::Approve { always: true },
            by: AnsweredBy::Setting { asks: AsksMode::Approve },
            while_away: true,
        }),
        Fact::Ask(AskFact::Closed { ask: ask_id(), cause: AskCloseCause::Interrupted }),
        Fact::Ask(AskFact::Closed { ask: ask_id(), cause: AskCloseCause::CallEnded }),
        Fact::Ask(AskFact::Closed { ask: ask_id(), cause: AskCloseCause::Shutdown }),
        Fact::Session(SessionFact::HoldChanged { hold: Hold::Off }),
        Fact::Session(SessionFact::HoldChanged {
            hold: Hold::Requested { cause: HoldCause::User { by: who() }, since: NOW },
        }),
        Fact::Session(SessionFact::HoldChanged {
            hold: Hold::Standing { cause: HoldCause::User { by: who() }, since: NOW },
        }),
        Fact::Session(SessionFact::HoldChanged {
            hold: Hold::Standing { cause: HoldCause::Restored, since: NOW },
        }),
        limited(RunLimit::Iterations { count: 50 }),
        limited(RunLimit::Tokens { count: 9 }),
        limited(RunLimit::Time { ms: 9 }),
        limited(RunLimit::Failures { count: 3 }),
        Fact::Turn(TurnFact::Cut { cause: CutCause::User { by: who() } }),
        Fact::Turn(TurnFact::Cut { cause: CutCause::Close { by: who() } }),
        Fact::Turn(TurnFact::Cut { cause: CutCause::Shutdown }),
        Fact::Turn(TurnFact::Finished {
            outcome: Outcome::Interrupted,
            error: Some("e".into()),
            cause: Some(CutCause::Restart),
            receipt: Some(receipt),
            usage,
        }),
    ]
}

fn deltas() -> Vec<Delta> {
    vec![
        Delta::Text { item: ItemId(1), text: "t".into() },
        Delta::Thought { item: ItemId(1), text: "t".into() },
        Delta::Output { item: ItemId(3), text: "o".into() },
        Delta::Status { status: SessionStatus::Paused },
        Delta::ItemSoFar { item: ItemId(3), kind: ItemKind::Output, so_far: kept() },
        Delta::Retrying { next: 2, tries: 5, wait_ms: 500, reason: "overloaded".into() },
        Delta::Gap { from: 3, to: 9 },
        Delta::NotSaved { reason: "no space".into() },
        Delta::SavedAgain,
    ]
}

/// Serialises each value to one line, and checks that the line is read back as the same value.
fn lines<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(values: &[T]) -> String {
    let line = |value: &T| {
        let line = serde_json::to_string(value).unwrap();
        assert_eq!(&serde_json::from_str::<T>(&line).unwrap(), value, "{line}");
        line
    };
    values.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn events() {
    let bodies = facts().into_iter().map(Body::Fact).chain(deltas().into_iter().map(Body::Delta));
    let events: Vec<_> = bodies
        .enumerate()
        .map(|(n, body)| Event {
            seq: n as u64 + 1,
            at: NOW,
            turn: Some(TurnId(1)),
            step: Some(2),
            body,
        })
        .collect();
    insta::assert_snapshot!(lines(&events));
}

/// Checks that fields are read in any order, as other writers may send them.
#[test]
fn an_event_is_read_with_its_fields_in_any_order() {
    let bodies = facts().into_iter().map(Body::Fact).chain(deltas().into_iter().map(Body::Delta));
    for body in bodies {
        let fields = serde_json::to_value(&body).unwrap();
        let serde_json::Value::Object(fields) = fields else { panic!("{fields}") };
        let kind_last =
            fields.iter().filter(|(name, _)| *name != "type").chain(fields.get_key_value("type"));
        let text: Vec<_> = kind_last.map(|(name, value)| format!("{name:?}:{value}")).collect();
        assert_eq!(serde_json::from_str::<Body>(&format!("{{{}}}", text.join(","))).unwrap(), body);
    }
    for wrong in [
        r"{}",
        r#"{"text":"a"}"#,
        r#"{"type":"nothing"}"#,
        r#"{"type":1}"#,
        r#"{"type":"gap","from":1}"#,
        "[]",
    ] {
        assert!(serde_json::from_str::<Body>(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn asks_and_answers() {
    insta::assert_snapshot!(
        [
            lines(&[
                ask(),
                Ask { request: AskRequest::Question(questions()), always: None, ..ask() }
            ]),
            lines(&[ask().pause().unwrap()]),
            lines(&[
                Answer::Resume,
                Answer::Approve { always: false },
                Answer::Approve { always: true },
                Answer::Deny { reason: None, always: false },
                Answer::Deny { reason: None, always: true },
                Answer::Reply {
                    answers: vec![QuestionReply { id: "c".into(), answer: Some("blue".into()) }]
                },
                Answer::Cancel,
            ]),
            lines(&[
                PauseResponse::Resumed,
                PauseResponse::Approved,
                PauseResponse::Denied { reason: Some("no".into()) },
                PauseResponse::Interrupted,
            ]),
            lines(&[
                QuestionResponse::Replied {
                    replies: vec![QuestionReply { id: "c".into(), answer: Some("blue".into()) }]
                },
                QuestionResponse::Declined,
                QuestionResponse::Unanswerable,
                QuestionResponse::Interrupted,
            ]),
        ]
        .join("\n")
    );
}

#[test]
fn m_a1_statuses_have_stable_numbers_and_words() {
    let all = SessionStatus::ALL.map(|status| (status as u8, status.to_string()));
    let expected = [(0, "idle"), (1, "running"), (2, "interrupted"), (3, "paused")];
    assert_eq!(all, expected.map(|(number, word)| (number, word.to_owned())));
    for status in SessionStatus::ALL {
        assert_eq!(SessionStatus::try_from(status as u8).unwrap(), status);
        assert_eq!(status.to_string().parse::<SessionStatus>().unwrap(), status);
        assert_eq!(serde_json::to_value(status).unwrap(), status.as_str());
    }
    assert!(SessionStatus::try_from(4).is_err());
    assert!("Paused".parse::<SessionStatus>().is_err());
}

#[test]
fn sessions() {
    let last_turn = LastTurn {
        turn: TurnId(1),
        outcome: Outcome::Failed,
        cause: None,
        error: Some("overloaded".into()),
    };
    let snapshot = Snapshot {
        context: Some(ContextFill { tokens: 15, limit: 100_000 }),
        settings: Arc::new(settings()),
        title: "fix it".into(),
        last_line: Some("It is fixed.".into()),
        seq: 99,
        status: SessionStatus::Paused,
        since: NOW,
        worked_ms: 1_500,
        working_since: None,
        turn: Some(TurnId(2)),
        step: Some(1),
        asks: vec![ask()],
        hold: Hold::Off,
        queue: vec![QueuedPrompt { prompt: PromptId(3), text: "then".into() }],
        jobs: vec![job()],
        last_turn: Some(last_turn),
        run: Some(run()),
        last_run: Some(LastRun {
            end: RunEnd::Interrupted,
            turn: Some(TurnId(3)),
            progress: RunProgress::default(),
        }),
        tasks: Arc::new(vec![Task {
            id: TaskId(1),
            title: "write it".into(),
            state: TaskState::Done,
        }]),
        notes: Arc::new(vec![note()]),
        usage: Usage::estimate(250, 25),
        instructions: Arc::new(instructions()),
        files_modified: Arc::new(["a.txt".to_owned()].into()),
        clients: 2,
        saved: true,
        not_saved: None,
        gaps: [Gap { from: 3, to: 5 }].into_iter().collect(),
        is_debug_enabled: true,
    };
    let summary = SessionSummary::from(&snapshot);
    insta::assert_snapshot!(
        [
            lines(&[snapshot]),
            lines(&[summary]),
            lines(&[HoldState::Off, HoldState::Requested, HoldState::Standing])
        ]
        .join("\n")
    );
}

#[test]
fn config_schema() {
    insta::assert_json_snapshot!(holdpoint_common::Config::schema());
}

/// Receipts of earlier versions have `left` for both.
#[test]
fn the_receipts_of_earlier_versions_can_be_read() {
    let stopped: StoppedTool =
        serde_json::from_str(r#"{"call": 3, "name": "shell", "how": "left"}"#).unwrap();
    assert_eq!(stopped.how, StopHow::Abandoned);
    let ended: EndedProcesses =
        serde_json::from_str(r#"{"terminated": 0, "killed": 0, "left": [9]}"#).unwrap();
    assert_eq!(ended.not_ended, [9]);
}
