//! Snapshot tests of every view, on a terminal of the usual size and on a small one.

use holdpoint_common::{
    Answer, AnsweredBy, AskFact, AskRequest, AsksMode, Away, BlockKind, CallId, ContextFill,
    CutCause, Delta, EndedProcesses, Fact, Hold, HoldCause, ItemId, Outcome, PauseKind, PromptFact,
    PromptId, Question, QuestionOption, QuestionRequest, QueuedPrompt, Receipt, SessionStatus,
    Timestamp, ToolCall, ToolFact, ToolStatus, TurnFact, Who,
};

mod status_line;

use super::super::scene::{Scene, ask, block, pause, standing, user};
use crate::tone::Tone;

/// Compares the screen with its snapshots, in both sizes.
fn shows(name: &str, scene: &mut Scene) {
    for (width, height) in [(80, 24), (40, 12)] {
        insta::assert_snapshot!(format!("{name}-{width}x{height}"), scene.screen(width, height));
    }
}

const HOSTILE: &str =
    "echo \\u{1b}[2Jsafe\\u{202e}evil\\u{0}\nrm -rf / # second line\n\nin /code/project";

fn worked() -> Scene {
    let mut scene = Scene::session();
    scene.turn("Fix the *parser*,\nand be quick.");
    let thought = "The parser is in src/parse.rs; I look at it first.";
    scene.message(
        vec![block(1, BlockKind::Thought, thought), block(2, BlockKind::Text, MARKDOWN)],
        vec![],
    );
    scene.called(3, "cargo test --workspace").finished(
        3,
        ToolStatus::Ok,
        "running 12 tests\nok\n",
        "[exit code 0]",
    );
    scene.called(4, "rm -rf target").finished(4, ToolStatus::Denied, "", "denied: not on Fridays");
    scene.called(5, "false").finished(5, ToolStatus::Error, "", "exit code 1");
    scene.later(65_000).ended(Outcome::Done, None);
    scene
}

const MARKDOWN: &str = "# What I found\n\nThe **parser** forgets `\\n`:\n\n- one\n- two\n\n```rust\nfn main() {\n    \
                        parse(\"漢字\");\n}\n```\n\n| file | lines |\n|---|---|\n| parse.rs | 120 |\n";

#[test]
fn hub_before_the_list_is_loaded() {
    shows("hub-unknown", &mut Scene::hub());
}

fn hub() -> Scene {
    let mut scene = Scene::hub();
    let title = |title: &str| title.to_owned();
    scene.reports_session(
        |session| {
            session.title = title("Fix the parser");
            session.last_line = Some("All tests pass \u{1b}[2J but one.".to_owned());
            session.status = SessionStatus::Running;
        },
        "parser",
    );
    let since = Timestamp(scene.now().time.0 - 90_000);
    scene.reports_session(
        |session| {
            session.waits_for =
                Some(ask(3, pause(PauseKind::Confirm, "cargo publish\n\nin /work"), since));
            session.status = SessionStatus::Paused;
            session.title = title("Publish it");
        },
        "release",
    );
    scene.reports_session(
        |session| {
            session.live = false;
            session.title = title("漢字 and \u{1b}[31mred");
            session.workspace = "/elsewhere".to_owned();
        },
        "saved",
    );
    scene.reports_session(|session| session.hold = standing(HoldCause::Restored), "held");
    scene
}

#[test]
fn hub_with_sessions() {
    shows("hub", &mut hub());
}

#[test]
fn hub_with_a_session_on_a_machine_that_does_not_respond() {
    let mut scene = Scene::hub();
    let seen = Some(Timestamp(scene.now().time.0 - 40_000));
    scene.reports_session(
        |session| {
            session.status = SessionStatus::Running;
            session.machine = Some("m2".to_owned());
            session.away = Some(Away { seen });
        },
        "far",
    );
    shows("hub-away", &mut scene);
    assert!(scene.screen(80, 24).contains("m2 does not respond, last seen 40s ago"));
}

#[test]
fn hub_filtered_with_and_without_matches() {
    let mut scene = hub();
    scene.types("pars");
    shows("hub-filtered", &mut scene);
    scene.types("zzz");
    shows("hub-nothing", &mut scene);
}

#[test]
fn hub_answering_in_the_panel() {
    let mut scene = hub();
    scene.press("tab");
    shows("hub-answering", &mut scene);
}

#[test]
fn hub_deleting() {
    let mut scene = hub();
    scene.types("saved");
    scene.press("ctrl+d");
    shows("hub-deleting", &mut scene);
}

#[test]
fn session_untouched() {
    shows("session-untouched", &mut Scene::session());
}

#[test]
fn session_with_asks_denied() {
    let mut scene = Scene::hub();
    std::sync::Arc::make_mut(&mut scene.snapshot.settings).asks = AsksMode::Deny;
    shows("session-asks-deny", scene.attach());
    scene.turn("Fix it.");
    assert!(scene.screen(80, 24).contains("asks: deny"));
}

#[test]
fn session_idle_after_work() {
    let mut scene = worked();
    scene.snapshot.files_modified = std::sync::Arc::new(["a".to_owned(), "b".to_owned()].into());
    scene.snapshot.context = Some(ContextFill { tokens: 34_000, limit: 100_000 });
    // Any event brings the changed snapshot to the screen.
    scene.delta(Delta::SavedAgain);
    shows("session-idle", &mut scene);
    scene.press("ctrl+o");
    shows("session-open", &mut scene);
    scene.press("ctrl+o ctrl+up ctrl+up enter");
    shows("session-chosen", &mut scene);
    scene.press("esc ctrl+v");
    scene.later(10_000).send(super::super::message::Message::Tick);
    shows("session-without-steps", &mut scene);
}

#[test]
fn session_typing_a_command() {
    let mut scene = worked();
    scene.types("/");
    shows("session-commands", &mut scene);
    scene.types("re");
    shows("session-commands-few", &mut scene);
}

#[test]
fn session_running() {
    let mut scene = Scene::session();
    scene.turn("Go on.").called(1, "make").fact(Fact::Tool(ToolFact::Started { call: CallId(1) }));
    scene.delta(Delta::Output { item: ItemId(1), text: "cc a.c\ncc b.c\n".to_owned() });
    scene.delta(Delta::Text { item: ItemId(2), text: "I wait for `make".to_owned() });
    scene.types("a draft");
    shows("session-running", &mut scene);
}

#[test]
fn session_confirming_a_hostile_command() {
    let mut scene = Scene::session();
    scene.turn("Go.").called(1, "echo \u{1b}[2Jsafe").confirms(HOSTILE);
    scene.types("x");
    shows("ask-confirm-hostile", &mut scene);
}

/// Wrapped rows differ from lines of their own, and no space is lost at a break.
#[test]
fn t_c7_wrapped_rows_and_lines_of_a_command_look_different() {
    // Fills a row of 80 columns behind the bar.
    let comment = format!("# Lists what is here {}", "x".repeat(80 - 2 - 21));
    let asked = |details: &str| {
        let mut scene = Scene::session();
        scene.turn("Go.").confirms(details);
        let screen = scene.screen(80, 24);
        screen
            .lines()
            .filter(|row| row.starts_with(['│', '┆']))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        asked(&format!("{comment}\nrm -rf build")),
        [format!("│ {comment}"), "│ rm -rf build".to_owned()]
    );
    assert_eq!(
        asked(&format!("{comment} rm -rf build")),
        [format!("│ {comment}"), "┆  rm -rf build".to_owned()]
    );
    let word = "x".repeat(78);
    assert_eq!(
        asked(&format!("{word}rm -rf build")),
        [format!("│ {word}"), "┆ rm -rf build".to_owned()]
    );
}

#[test]
fn session_confirming_a_long_diff() {
    let mut scene = Scene::session();
    let lines: String = (1..=60).map(|line| format!("-old {line}\n+new {line}\n")).collect();
    scene.turn("Go.").confirms(&format!("--- a.rs\n+++ a.rs\n@@ -1,60 +1,60 @@\n{lines}"));
    shows("ask-confirm-diff", &mut scene);
    scene.press("end");
    shows("ask-confirm-diff-end", &mut scene);
    scene.press("tab");
    shows("ask-confirm-diff-large", &mut scene);
}

#[test]
fn session_confirming_with_always_and_others_behind() {
    let mut scene = Scene::session();
    scene.turn("Go.").confirms("cargo test\n\nin /code/project");
    scene.snapshot.asks[0].always = Some("shell in /code/project: cargo test".to_owned());
    let behind = ask(90, pause(PauseKind::Confirm, "ls"), Timestamp(0));
    scene.snapshot.asks.push(behind);
    // The screen keeps the form of a known ask, so it must forget this one to show the change.
    scene.state.session.as_mut().unwrap().open_ask = None;
    scene.delta(Delta::SavedAgain);
    shows("ask-confirm-always", &mut scene);
    // Keys answer an ask only after 300 ms.
    scene.later(400).press("r");
    scene.types("not on Fridays");
    shows("ask-confirm-reason", &mut scene);
}

#[test]
fn session_continuing() {
    let mut scene = Scene::session();
    scene.turn("Go.").asks(pause(PauseKind::Continue, ""));
    shows("ask-continue", &mut scene);
}

#[test]
fn session_asked_a_question() {
    let option = |label: &str, description: &str| QuestionOption {
        label: label.into(),
        description: description.into(),
    };
    let question = |id: &str, header: &str, text: &str, options| Question {
        id: id.into(),
        header: header.into(),
        question: text.into(),
        options,
    };
    let options = vec![option("red", "seen from afar"), option("灰色", "")];
    let request = AskRequest::Question(QuestionRequest {
        tool_name: "ask_user".to_owned(),
        questions: vec![
            question("a", "Colour", "Which colour?\nIt matters.", options),
            question("b", "Reason", "And why?", vec![]),
        ],
    });
    let mut scene = Scene::session();
    scene.turn("Go.").asks(request);
    shows("ask-options", &mut scene);
    scene.later(400).press("1");
    shows("ask-words", &mut scene);
    scene.later(400).types("so it is");
    shows("ask-words-typed", &mut scene);
}

#[test]
fn session_pausing_and_paused() {
    let mut scene = Scene::session();
    scene
        .turn("Go.")
        .later(3_000)
        .hold(Hold::Requested { cause: HoldCause::User { by: user() }, since: Timestamp(0) });
    shows("hold-pausing", &mut scene);
    scene.hold(standing(HoldCause::User { by: user() }));
    shows("hold-paused", &mut scene);
    scene.press("ctrl+x");
    shows("hold-prefix", &mut scene);
}

#[test]
fn session_restored_with_queued_prompts() {
    let mut scene = worked();
    let queued = |number| QueuedPrompt {
        prompt: PromptId(number),
        text: format!("and then number {number}\nwith more").into(),
    };
    scene.snapshot.queue = (1..=5).map(queued).collect();
    scene.hold(standing(HoldCause::Restored));
    shows("hold-restored", &mut scene);
}

#[test]
fn session_interrupted() {
    let mut scene = Scene::session();
    scene.turn("Go.").replies(1, "I begin");
    scene.snapshot.status = SessionStatus::Interrupted;
    scene.fact(Fact::Turn(TurnFact::Cut { cause: CutCause::User { by: user() } }));
    shows("interrupting", &mut scene);
    (scene.snapshot.turn, scene.snapshot.status) = (None, SessionStatus::Idle);
    let processes = EndedProcesses { terminated: 2, killed: 1, not_ended: vec![] };
    let receipt = Some(Receipt { processes, ..Receipt::default() });
    let cause = Some(CutCause::User { by: Who { name: "attach".to_owned(), pid: Some(99) } });
    let usage = Default::default();
    scene.fact(Fact::Turn(TurnFact::Finished {
        outcome: Outcome::Interrupted,
        error: None,
        cause,
        receipt,
        usage,
    }));
    shows("interrupted", &mut scene);
}

#[test]
fn a_cut_answer_is_marked_where_it_was_cut() {
    use holdpoint_common::AssistantMessage;
    let cut = |texts: &[&str], live: bool| {
        let mut scene = Scene::session();
        scene.turn("Go.");
        let text_block = |(item, text): (u64, &&str)| block(item, BlockKind::Text, text);
        let blocks: Vec<_> = (1..).zip(texts).map(text_block).collect();
        for block in blocks.iter().filter(|_| live) {
            scene.delta(Delta::Text { item: block.item, text: block.text.clone() });
        }
        let cause = CutCause::User { by: user() };
        scene.fact(Fact::Turn(TurnFact::Cut { cause: cause.clone() }));
        scene.fact(Fact::Turn(TurnFact::AssistantMessage(
            AssistantMessage { blocks, partial: true, ..AssistantMessage::default() }.into(),
        )));
        let receipt =
            Some(Receipt { asks: vec!["alpha.3".parse().unwrap()], ..Receipt::default() });
        let (outcome, usage) = (Outcome::Interrupted, Default::default());
        scene.fact(Fact::Turn(TurnFact::Finished {
            outcome,
            error: None,
            cause: Some(cause),
            receipt,
            usage,
        }));
        scene.screen(80, 24).lines().map(str::trim).collect::<Vec<_>>().join("\n")
    };
    // Live, and when read later from the log.
    for live in [true, false] {
        let screen = cut(&["First I", "And then"], live);
        let order = "First I\n\nAnd then\n(cut here)\nAgent interrupted\ninterrupted from the screen (pid 7)\n1 ask released\n";
        assert!(screen.contains(order), "{live}: {screen}");
        // There was no text to cut.
        let screen = cut(&[""], live);
        assert!(
            !screen.contains("cut here") && screen.contains("Agent interrupted"),
            "{live}: {screen}"
        );
    }
    // A receipt without counts is not shown.
    let mut scene = Scene::session();
    let receipt = Some(Receipt::default());
    let (outcome, usage) = (Outcome::Interrupted, Default::default());
    scene.turn("Go.").fact(Fact::Turn(TurnFact::Finished {
        outcome,
        error: None,
        cause: None,
        receipt,
        usage,
    }));
    assert!(!scene.screen(80, 24).contains("0 tools"));
}

#[test]
fn a_returned_prompt_is_summed_up_in_one_line() {
    let mut scene = Scene::session();
    let (prompt, text) = (PromptId(9), "First this.\nThen that.".into());
    scene.turn("Go.").fact(Fact::Prompt(PromptFact::Returned { prompt, text }));
    let screen = scene.screen(80, 24);
    assert!(screen.contains("handed back: First this. (1 more line)"), "{screen}");
}

#[test]
fn hub_never_cuts_the_resume_folder_or_the_activity() {
    let mut scene = Scene::hub();
    let last_turn = holdpoint_common::LastTurn {
        turn: holdpoint_common::TurnId(1),
        outcome: Outcome::Interrupted,
        cause: None,
        error: None,
    };
    let change = |session: &mut holdpoint_common::SessionSummary| {
        session.title = "a long title ".repeat(20);
        session.workspace = "/elsewhere".to_owned();
        (session.live, session.last_turn) = (false, Some(last_turn));
    };
    scene.reports_session(change, "far");
    for width in [40, 80, 120] {
        let screen = scene.screen(width, 24);
        let resume = screen.lines().find(|line| line.contains("Resume a long")).unwrap();
        assert!(resume.ends_with("… in /elsewhere"), "{resume}");
        assert!(width < 80 || screen.contains("saved, idle (interrupted) "), "{screen}");
    }
    shows("hub-resume", &mut scene);
}

#[test]
fn after_a_prefix_only_its_second_keys_are_shown() {
    let keys = std::collections::BTreeMap::from([("hold".to_owned(), "f8".to_owned())]);
    let mut scene = Scene::session();
    scene.state.keymap = super::super::keymap::Keymap::with_overrides(&keys).unwrap();
    scene.turn("Go.").press("ctrl+x");
    let screen = scene.screen(80, 24);
    assert!(screen.contains("ctrl+x d detach  s sessions") && !screen.contains("f8"), "{screen}");
}

#[test]
fn session_failed_with_notes() {
    let mut scene = Scene::session();
    scene.turn("Go.").confirms("ls");
    let (ask, by) =
        (scene.snapshot.asks[0].id.clone(), Who { name: "approve".to_owned(), pid: Some(99) });
    let answer = holdpoint_common::Answer::Approve { always: false };
    scene.snapshot.asks.clear();
    scene.fact(Fact::Ask(AskFact::Answered {
        ask,
        answer,
        by: AnsweredBy::Client(by),
        while_away: false,
    }));
    scene.delta(Delta::NotSaved { reason: "disk full\u{1b}[2J".to_owned() });
    scene.delta(Delta::Retrying {
        next: 2,
        tries: 4,
        wait_ms: 1500,
        reason: "overloaded".to_owned(),
    });
    scene.ended(Outcome::Failed, Some("the model\n\u{9b}31m is gone"));
    shows("failed", &mut scene);
}

#[test]
fn session_closed() {
    let mut scene = worked();
    scene.send(super::super::message::Message::Closed { attachment: 1 });
    shows("closed", &mut scene);
}

/// A long notice is cut in the middle, because its end is the hint.
#[test]
fn session_long_notice() {
    let mut scene = worked();
    let path = "a-folder-with-a-long-name/".repeat(30);
    scene.state.show_notice(
        Tone::Fault,
        format!("the store failed: {path} is damaged; look at its data with `holdpoint status`"),
    );
    shows("notice-long", &mut scene);
}

#[test]
fn session_of_long_and_hostile_texts() {
    let mut scene = Scene::session();
    scene
        .turn("\u{1b}]0;title\u{7}")
        .replies(1, "漢字👩‍👩‍👧 \u{1b}[31mred \u{202e}evil <script>x</script>")
        .replies(2, &"word ".repeat(300));
    scene.called(3, &"x".repeat(500)).finished(
        3,
        ToolStatus::Ok,
        "\u{1b}]52;c;aGk=\u{7}\u{9b}1m\r",
        "",
    );
    shows("hostile", &mut scene);
}

#[test]
fn session_of_ten_thousand_messages() {
    let mut scene = Scene::session();
    scene.turn("Go.");
    for number in 0..10_000 {
        scene.replies(number, &format!("Message *number* {number}."));
    }
    shows("ten-thousand", &mut scene);
    for (width, height) in [(80, 24), (40, 12)] {
        scene.press("ctrl+end");
        scene.screen(width, height);
        scene.press("pgup pgup");
        let before = scene.screen(width, height);
        insta::assert_snapshot!(format!("ten-thousand-scrolled-{width}x{height}"), before);
        scene.replies(20_000, "One more.");
        assert_eq!(scene.screen(width, height), before);
    }
    scene.press("ctrl+home");
    shows("ten-thousand-first", &mut scene);
}

#[test]
fn overlays() {
    let mut scene = Scene::session();
    scene.turn("Go.").press("ctrl+x ?");
    shows("help", &mut scene);
    let screen = scene.screen(80, 80);
    for key in ["Y / N", "A A / D D", "1-9, W, S", "Tab", "Ctrl+D", "Ctrl+J"] {
        assert!(screen.contains(key), "{key}: {screen}");
    }
    scene.press("esc ctrl+x s");
    shows("leave", &mut scene);
    scene.send(super::super::message::Message::Stopped);
    shows("stopped", &mut scene);
}

#[test]
fn without_colours_removes_every_colour() {
    use ratatui::{Terminal, backend::TestBackend, style::Color};
    let mut scene = worked();
    let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
    let colours = |buffer: &ratatui::buffer::Buffer| {
        buffer
            .content
            .iter()
            .filter(|cell| (cell.fg, cell.bg) != (Color::Reset, Color::Reset))
            .count()
    };
    terminal.draw(|frame| super::draw(frame, &mut scene.state)).unwrap();
    assert!(colours(terminal.backend().buffer()) > 0);
    // All colours are among the terminal's sixteen.
    let strange = |color: Color| matches!(color, Color::Rgb(..) | Color::Indexed(_));
    assert!(
        !terminal
            .backend()
            .buffer()
            .content
            .iter()
            .any(|cell| strange(cell.fg) || strange(cell.bg))
    );
    terminal
        .draw(|frame| {
            super::draw(frame, &mut scene.state);
            super::super::style::without_colours(frame.buffer_mut());
        })
        .unwrap();
    assert_eq!(colours(terminal.backend().buffer()), 0);
}

#[test]
fn t_y5_no_size_is_too_small_or_too_large() {
    let sizes =
        [(1, 1), (0, 0), (10, 4), (11, 5), (20, 6), (40, 9), (1000, 1000), (3, 200), (200, 3)];
    for (width, height, expected) in
        [(9, 24, "too small\n"), (5, 2, "too\nsmall"), (80, 1, "too small"), (4, 24, "\n")]
    {
        assert!(
            hub().screen(width, height).starts_with(expected),
            "{width}x{height}: {}",
            hub().screen(width, height)
        );
    }
    let mut session = worked();
    session.confirms(HOSTILE);
    let mut answering = hub();
    answering.press("tab");
    for (mut scene, asks) in [(session, true), (answering, true), (hub(), false)] {
        for (width, height) in sizes {
            scene.screen(width, height);
            // A million cells take a second to draw, so that screen gets few keys.
            let keys: &[&str] = match u32::from(width) * u32::from(height) {
                1_000_000.. => &["ctrl+x ?"],
                _ => &["ctrl+x ?", "esc", "pgup", "up", "end", "tab", "tab"],
            };
            for keys in keys {
                scene.press(keys);
                scene.screen(width, height);
            }
        }
        assert_eq!(scene.screen(80, 24).contains("[Y] Approve"), asks);
    }
}

/// Input methods show their text at the cursor.
#[test]
fn the_cursor_of_the_terminal_is_where_text_is_typed() {
    let mut scene = Scene::session();
    scene.types("hello");
    assert_eq!(scene.before_cursor(80, 24).as_deref(), Some("› hello"));
    scene.press("left left");
    assert_eq!(scene.before_cursor(80, 24).as_deref(), Some("› hel"));
    // A new line, and one that wraps to the next row.
    scene.press("end ctrl+j");
    scene.types("漢");
    assert_eq!(scene.before_cursor(80, 24).unwrap().trim_end(), "  漢");
    scene.types(&" word".repeat(10));
    assert_eq!(scene.before_cursor(20, 24).as_deref(), Some("  word"));
    // A choice of keys has no cursor.
    scene.turn("Go.").confirms("ls");
    assert_eq!(scene.before_cursor(80, 24), None);
    scene.later(300).press("r");
    scene.types("not today");
    scene.press("left left");
    assert_eq!(scene.before_cursor(80, 24).as_deref(), Some("> not tod"));
    assert_eq!(scene.before_cursor(12, 24).as_deref(), Some("> not tod"));
    scene.press("ctrl+x ?");
    assert_eq!(scene.before_cursor(80, 24), None, "the help takes the keys");
    let mut scene = Scene::hub();
    assert_eq!(scene.before_cursor(80, 24), None);
    scene.types("al");
    assert_eq!(scene.before_cursor(80, 24).as_deref(), Some("filter: al"));
}

#[test]
fn a_call_its_ask_and_its_result_are_together_in_this_order() {
    let mut scene = Scene::session();
    let call = |id, command: &str| {
        let input = serde_json::json!({ "command": command });
        ToolCall {
            id: CallId(id),
            provider_id: None,
            name: "shell".to_owned(),
            input,
            signature: None,
        }
    };
    scene
        .turn("Go.")
        .message(vec![], vec![call(1, "rm one"), call(2, "rm two")])
        .confirms("rm one");
    let (ask, by) =
        (scene.snapshot.asks.remove(0).id, Who { name: "approve".to_owned(), pid: Some(99) });
    scene.fact(Fact::Ask(AskFact::Answered {
        ask,
        answer: Answer::Approve { always: false },
        by: AnsweredBy::Client(by),
        while_away: false,
    }));
    scene.finished(2, ToolStatus::Ok, "second", "").finished(1, ToolStatus::Ok, "first", "");
    let order = |scene: &mut Scene| {
        let screen = scene.screen(80, 24);
        let shown = [
            "shell: rm one",
            "→ approved from the command line (pid 99)",
            "first",
            "shell: rm two",
            "second",
        ];
        let places: Vec<_> =
            shown.iter().map(|shown| screen.find(shown).unwrap_or(usize::MAX)).collect();
        assert!(places.is_sorted() && !places.contains(&usize::MAX), "{places:?}\n{screen}");
    };
    order(&mut scene);
    // An opened call keeps this order.
    scene.press("ctrl+up");
    scene.press("ctrl+up");
    scene.press("enter");
    order(&mut scene);
}
