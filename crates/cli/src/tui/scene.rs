//! A screen for tests, driven by messages and keys and drawn without a terminal.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use holdpoint_common::api::SessionNews;
use holdpoint_common::{
    Ask, AskFact, AskOrigin, AskRequest, AsksMode, AssistantMessage, Block, BlockKind, Body,
    CallId, Delta, Event, Fact, Gaps, HeadAndTail, Hold, HoldCause, ItemId, Outcome, PauseKind,
    PauseRequest, PolicyMode, PolicyRules, PromptFact, PromptId, SandboxLevel, SandboxSettings,
    ScreenSettings, SessionFact, SessionSettings, SessionStatus, SessionSummary, Snapshot,
    Timestamp, ToolCall, ToolFact, ToolResult, ToolStatus, TurnFact, TurnId, Usage, Who,
};
use holdpoint_session::model::DefaultModel;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::layout::Position;
use unicode_width::UnicodeWidthStr;

use super::keymap::Keymap;
use super::message::{Command, EventTime, Message};
use super::state::{Opening, OwnProcess, State};
use super::update::update;
use super::view;

/// The id of this process in tests.
pub(super) const OWN_PID: u32 = 7;
/// The time at which each test starts.
const BEGIN: u64 = 1_000_000_000;

pub(super) struct Scene {
    pub(super) state: State,
    pub(super) snapshot: Snapshot,
    began: Instant,
    passed: Duration,
    seq: u64,
}

impl Scene {
    /// The hub, before it knows of any session.
    pub(super) fn hub() -> Self {
        let began = Instant::now();
        let model =
            DefaultModel { name: "rehearsal".to_owned(), why: "no model is configured".to_owned() };
        let process = OwnProcess { pid: OWN_PID, folder: "/code/project".to_owned(), model };
        let now = EventTime { instant: began, time: Timestamp(BEGIN) };
        let state = State::new(process, ScreenSettings::default(), Keymap::default(), now);
        Self { state, snapshot: snapshot("alpha"), began, passed: Duration::ZERO, seq: 0 }
    }

    /// A new session with no prompt.
    pub(super) fn session() -> Self {
        let mut scene = Self::hub();
        scene.attach();
        scene
    }

    /// Attaches to the session in its current state.
    pub(super) fn attach(&mut self) -> &mut Self {
        self.state.opening = Some(Opening { attachment: 1, fresh: true, back: None });
        self.state.attachments = 1;
        let (id, snapshot) = (self.snapshot.settings.id.clone(), Arc::new(self.snapshot.clone()));
        self.send(Message::Attached { attachment: 1, id, snapshot });
        self.send(Message::ReplayEnded { attachment: 1 });
        self
    }

    pub(super) fn now(&self) -> EventTime {
        let millis = u64::try_from(self.passed.as_millis()).unwrap();
        EventTime { instant: self.began + self.passed, time: Timestamp(BEGIN + millis) }
    }

    pub(super) fn later(&mut self, millis: u64) -> &mut Self {
        self.passed += Duration::from_millis(millis);
        self
    }

    pub(super) fn send(&mut self, message: Message) -> Vec<Command> {
        let now = self.now();
        update(&mut self.state, message, now)
    }

    /// Sends an event of the session.
    pub(super) fn body(&mut self, body: Body) -> &mut Self {
        self.seq += 1;
        self.snapshot.seq = self.seq;
        self.count_work();
        self.event(self.seq, body)
    }

    /// Adds a fact of the past again.
    pub(super) fn replayed(&mut self, seq: u64, fact: Fact) -> &mut Self {
        self.event(seq, Body::Fact(fact))
    }

    fn event(&mut self, seq: u64, body: Body) -> &mut Self {
        let event = Event { seq, at: self.now().time, turn: self.snapshot.turn, step: None, body };
        let snapshot = Arc::new(self.snapshot.clone());
        let attachment = self.state.session.as_ref().map_or(1, |session| session.attachment);
        self.send(Message::Events { attachment, events: vec![Arc::new(event)], snapshot });
        self
    }

    /// Counts the working time, as a session does.
    fn count_work(&mut self) {
        let is_working =
            matches!(self.snapshot.status, SessionStatus::Running | SessionStatus::Interrupted);
        let now = self.now().time;
        match self.snapshot.working_since {
            None if is_working => self.snapshot.working_since = Some(now),
            Some(since) if !is_working => {
                self.snapshot.worked_ms += now.0 - since.0;
                self.snapshot.working_since = None;
            }
            _ => {}
        }
    }

    pub(super) fn fact(&mut self, fact: Fact) -> &mut Self {
        self.body(Body::Fact(fact))
    }

    pub(super) fn delta(&mut self, delta: Delta) -> &mut Self {
        self.body(Body::Delta(delta))
    }

    /// Accepts a prompt and starts its turn.
    pub(super) fn turn(&mut self, text: &str) -> &mut Self {
        let turn = TurnId(self.seq + 1);
        let prompt = PromptId(turn.0);
        (self.snapshot.turn, self.snapshot.status) = (Some(turn), SessionStatus::Running);
        let by = Who { name: "tui".to_owned(), pid: Some(OWN_PID) };
        let (text, typed_bytes) = (text.into(), None);
        self.fact(Fact::Prompt(PromptFact::Accepted {
            prompt,
            text,
            by,
            typed_bytes,
            idempotency_key: None,
        }));
        self.fact(Fact::Turn(TurnFact::Started { turn, prompt }))
            .fact(Fact::Turn(TurnFact::StepStarted))
    }

    pub(super) fn replies(&mut self, item: u64, text: &str) -> &mut Self {
        self.message(vec![block(item, BlockKind::Text, text)], vec![])
    }

    pub(super) fn message(&mut self, blocks: Vec<Block>, calls: Vec<ToolCall>) -> &mut Self {
        self.fact(Fact::Turn(TurnFact::AssistantMessage(
            AssistantMessage { blocks, calls, ..AssistantMessage::default() }.into(),
        )))
    }

    /// Adds a call of the tool `shell`.
    pub(super) fn called(&mut self, call: u64, command: &str) -> &mut Self {
        let input = serde_json::json!({ "command": command });
        let call = ToolCall {
            id: CallId(call),
            provider_id: None,
            name: "shell".to_owned(),
            input,
            signature: None,
        };
        self.message(vec![], vec![call])
    }

    pub(super) fn finished(
        &mut self,
        call: u64,
        status: ToolStatus,
        output: &str,
        result: &str,
    ) -> &mut Self {
        let mut kept = HeadAndTail::default();
        kept.push(output);
        let mut result = ToolResult::not_run(CallId(call), status, result);
        result.output = kept.finish();
        self.fact(Fact::Tool(ToolFact::Started { call: CallId(call) }))
            .fact(Fact::Tool(ToolFact::Finished(result.into())))
    }

    pub(super) fn ended(&mut self, outcome: Outcome, error: Option<&str>) -> &mut Self {
        (self.snapshot.turn, self.snapshot.status) = (None, SessionStatus::Idle);
        self.snapshot.asks.clear();
        let usage = Usage { input: 1200, output: 34, ..Usage::default() };
        self.snapshot.usage += usage;
        let error = error.map(str::to_owned);
        self.fact(Fact::Turn(TurnFact::Finished {
            outcome,
            error,
            cause: None,
            receipt: None,
            usage,
        }))
    }

    /// Raises an ask.
    pub(super) fn asks(&mut self, request: AskRequest) -> &mut Self {
        let ask = ask(self.seq + 1, request, self.now().time);
        self.snapshot.status = SessionStatus::Paused;
        self.snapshot.asks.push(ask.clone());
        self.fact(Fact::Ask(AskFact::Raised { ask }))
    }

    pub(super) fn confirms(&mut self, details: &str) -> &mut Self {
        self.asks(pause(PauseKind::Confirm, details))
    }

    pub(super) fn hold(&mut self, hold: Hold) -> &mut Self {
        if hold.shown() == holdpoint_common::HoldState::Standing {
            self.snapshot.status = SessionStatus::Paused;
        }
        self.snapshot.hold = hold.clone();
        self.fact(Fact::Session(SessionFact::HoldChanged { hold }))
    }

    /// Presses keys, written as in `ctrl+x p`. Returns the commands that follow.
    pub(super) fn press(&mut self, keys: &str) -> Vec<Command> {
        keys.split(' ').flat_map(|key| self.send(Message::Key(key_of(key)))).collect()
    }

    pub(super) fn types(&mut self, text: &str) {
        for character in text.chars() {
            self.send(Message::Key(KeyEvent::new(KeyCode::Char(character), KeyModifiers::NONE)));
        }
    }

    /// The text before the cursor in its line, or `None` while the cursor is hidden.
    pub(super) fn before_cursor(&mut self, width: u16, height: u16) -> Option<String> {
        let mut terminal = self.draw(width, height);
        let Position { x, y } = terminal.get_cursor_position().unwrap();
        let cells = (0..x).map(|x| terminal.backend().buffer()[(x, y)].symbol());
        terminal.backend().cursor_visible().then(|| cells.collect())
    }

    fn draw(&mut self, width: u16, height: u16) -> Terminal<TestBackend> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        self.state.now = self.now();
        terminal.draw(|frame| view::draw(frame, &mut self.state)).unwrap();
        self.state.after_frame(self.now().instant);
        terminal
    }

    /// The text of a screen of this size.
    pub(super) fn screen(&mut self, width: u16, height: u16) -> String {
        let terminal = self.draw(width, height);
        let buffer = terminal.backend().buffer();
        let line = |y| {
            let (mut line, mut x) = (String::new(), 0);
            while x < width {
                let symbol = buffer[(x, y)].symbol();
                line.push_str(symbol);
                // Skips the further cells of a wide character.
                x += u16::try_from(symbol.width()).unwrap().max(1);
            }
            line.trim_end().to_owned()
        };
        (0..height).map(line).collect::<Vec<_>>().join("\n")
    }

    /// Reports a session to the hub.
    pub(super) fn reports_session(
        &mut self,
        change: impl FnOnce(&mut SessionSummary),
        name: &str,
    ) -> &mut Self {
        self.send(Message::Watching);
        let mut summary = SessionSummary::from(&snapshot(name));
        change(&mut summary);
        self.send(Message::SessionChanged(SessionNews::Session(Box::new(summary))));
        self
    }
}

/// The snapshot of a session with no prompt.
pub(super) fn snapshot(name: &str) -> Snapshot {
    let settings = SessionSettings {
        id: name.parse().unwrap(),
        name: name.to_owned(),
        workspace: "/code/project".to_owned(),
        model: "rehearsal".to_owned(),
        agent: None,
        asks: AsksMode::Wait,
        policy: PolicyMode::Ask,
        rules: PolicyRules::default(),
        sandbox: SandboxSettings { level: SandboxLevel::Bwrap, ..SandboxSettings::default() },
        max_steps: 0,
        max_turn_tokens: 0,
    };
    Snapshot {
        settings: Arc::new(settings),
        title: name.to_owned(),
        last_line: None,
        seq: 0,
        status: SessionStatus::Idle,
        since: Timestamp(BEGIN),
        worked_ms: 0,
        working_since: None,
        turn: None,
        step: None,
        asks: vec![],
        hold: Hold::Off,
        queue: vec![],
        jobs: vec![],
        last_turn: None,
        run: None,
        last_run: None,
        tasks: Arc::default(),
        notes: Arc::default(),
        usage: Usage::default(),
        context: None,
        instructions: Arc::default(),
        files_modified: Arc::default(),
        clients: 1,
        saved: true,
        not_saved: None,
        gaps: Gaps::default(),
        is_debug_enabled: false,
    }
}

pub(super) fn block(item: u64, kind: BlockKind, text: &str) -> Block {
    Block { item: ItemId(item), kind, text: text.to_owned(), signature: None, calls_before: 0 }
}

pub(super) fn pause(kind: PauseKind, details: &str) -> AskRequest {
    let message =
        if kind == PauseKind::Confirm { "Run this command?" } else { "The page is open." };
    let details = (!details.is_empty()).then(|| details.to_owned());
    AskRequest::Pause(PauseRequest {
        kind,
        tool_name: "shell".to_owned(),
        message: message.to_owned(),
        details,
    })
}

pub(super) fn ask(seq: u64, request: AskRequest, since: Timestamp) -> Ask {
    let id = format!("alpha.{seq}").parse().unwrap();
    Ask {
        id,
        call: CallId(1),
        origin: AskOrigin::Policy,
        since,
        request,
        always: None,
        may_be_denied: false,
    }
}

pub(super) fn standing(cause: HoldCause) -> Hold {
    Hold::Standing { cause, since: Timestamp(BEGIN) }
}

pub(super) fn user() -> Who {
    Who { name: "tui".to_owned(), pid: Some(OWN_PID) }
}

fn key_of(name: &str) -> KeyEvent {
    let (modifiers, name) = match name.split_once('+').filter(|(_, key)| !key.is_empty()) {
        Some(("ctrl", key)) => (KeyModifiers::CONTROL, key),
        Some(("alt", key)) => (KeyModifiers::ALT, key),
        _ => (KeyModifiers::NONE, name),
    };
    let code = match name {
        "enter" => KeyCode::Enter,
        "esc" => KeyCode::Esc,
        "tab" => KeyCode::Tab,
        "backtab" => return KeyEvent::new(KeyCode::BackTab, KeyModifiers::SHIFT),
        "left" => KeyCode::Left,
        "right" => KeyCode::Right,
        "up" => KeyCode::Up,
        "down" => KeyCode::Down,
        "pgup" => KeyCode::PageUp,
        "pgdn" => KeyCode::PageDown,
        "home" => KeyCode::Home,
        "end" => KeyCode::End,
        "backspace" => KeyCode::Backspace,
        name => KeyCode::Char(name.chars().next().unwrap()),
    };
    KeyEvent::new(code, modifiers)
}
