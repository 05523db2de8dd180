//! Tests of asks in a session: which keys answer them, and from when on.

use holdpoint_common::{
    Answer, AnsweredBy, Ask, AskFact, Fact, PauseKind, PromptId, SessionStatus, Timestamp, Who,
};

use proptest::prelude::*;

use super::{answers, asking, draft};
use crate::tui::message::{Command, Message};
use crate::tui::scene::{Scene, ask, pause};

#[test]
fn m_a10_keys_count_from_300_ms_after_the_ask_was_drawn() {
    let mut scene = asking();
    // An ask that was not drawn is never approved.
    assert_eq!(scene.later(10_000).press("y"), []);
    scene.screen(80, 24);
    assert_eq!(scene.later(299).press("y"), []);
    // Nor is it after an ignored key: the user is typing.
    assert_eq!(scene.later(299).press("y"), []);
    assert_eq!(answers(&scene.later(300).press("y")), [&Answer::Approve { always: false }]);
    // An ask is answered once.
    assert_eq!(scene.press("y n"), []);
}

#[test]
fn m_a10_closing_an_overlay_restarts_the_guard_of_an_ask() {
    let mut scene = asking();
    scene.screen(80, 24);
    scene.later(1000).press("ctrl+x ?");
    scene.screen(80, 24);
    assert_eq!(scene.later(1000).press("esc y"), []);
    scene.screen(80, 24);
    assert_eq!(scene.later(299).press("y"), []);
    assert_eq!(
        answers(&scene.later(300).press("n")),
        [&Answer::Deny { reason: None, always: false }]
    );
}

#[test]
fn m_a10_an_unreadable_ask_is_not_approved() {
    let mut hub = Scene::hub();
    let asked = ask(10, pause(PauseKind::Confirm, "ls"), Timestamp(10));
    hub.reports_session(
        |session| (session.waits_for, session.status) = (Some(asked), SessionStatus::Paused),
        "late",
    );
    hub.press("tab");
    for mut scene in [asking(), hub] {
        for (width, height) in [(9, 24), (80, 3), (80, 4)] {
            scene.screen(width, height);
            assert_eq!(scene.later(1000).press("y"), [], "{width}x{height}");
        }
        scene.screen(80, 24);
        assert_eq!(scene.later(299).press("y"), []);
        // The ask is out of sight again before the key.
        scene.screen(80, 3);
        assert_eq!(scene.later(1000).press("y"), []);
        scene.screen(80, 24);
        assert_eq!(scene.later(299).press("y"), []);
        assert_eq!(answers(&scene.later(300).press("y")), [&Answer::Approve { always: false }]);
    }
}

#[test]
fn m_a10_returning_to_the_screen_restarts_the_guard() {
    for (keys, leaves) in
        [("ctrl+x e", Command::Edit { text: String::new() }), ("ctrl+z", Command::Suspend)]
    {
        let mut scene = asking();
        scene.screen(80, 24);
        assert_eq!(scene.later(1000).press(keys), [leaves]);
        assert_eq!(scene.later(1000).press("y"), []);
        scene.screen(80, 24);
        assert_eq!(scene.later(299).press("y"), []);
        assert_eq!(answers(&scene.later(300).press("y")), [&Answer::Approve { always: false }]);
    }
}

#[test]
fn m_a10_the_next_ask_has_a_guard_of_its_own() {
    let mut scene = asking();
    scene.screen(80, 24);
    scene.snapshot.asks = vec![ask(50, pause(PauseKind::Confirm, "rm -rf /"), Timestamp(0))];
    scene.later(1000).delta(holdpoint_common::Delta::SavedAgain);
    assert_eq!(scene.press("y"), []);
    scene.screen(80, 24);
    assert_eq!(scene.later(200).press("y"), []);
    let commands = scene.later(300).press("Y");
    assert!(
        matches!(&commands[..], [Command::Answer { ask, .. }] if ask.seq == 50),
        "{commands:?}"
    );
}

#[test]
fn m_a10_no_key_reaches_the_draft_during_an_ask() {
    let mut scene = Scene::session();
    scene.turn("Go.").types("a draft");
    scene.confirms("touch made");
    scene.screen(80, 24);
    scene.later(1000);
    assert_eq!(scene.press("x q enter tab backspace ctrl+w ctrl+u"), []);
    scene.send(Message::Paste("y\ny".to_owned()));
    assert_eq!(draft(&scene), "a draft");
    scene.press("n");
    scene.snapshot.asks.clear();
    scene.delta(holdpoint_common::Delta::SavedAgain).later(300).types("!");
    assert_eq!(draft(&scene), "a draft!");
}

/// Keys for an ask that another client closes first are not meant for the prompt.
#[test]
fn m_a10_keys_for_an_ask_closed_elsewhere_are_dropped() {
    let mut scene = Scene::session();
    scene.turn("Go.");
    scene.types("half");
    for begin in ["r x esc", "x"] {
        scene.confirms("rm x").screen(80, 24);
        scene.later(1000);
        scene.press(begin);
        scene.snapshot.asks.clear();
        scene.delta(holdpoint_common::Delta::SavedAgain);
        for letter in " is bad".chars() {
            scene.later(100).types(&letter.to_string());
        }
        assert_eq!(scene.later(299).press("enter"), []);
        assert_eq!(scene.later(299).press("ctrl+w"), []);
        scene.send(Message::Paste("pasted".to_owned()));
        assert_eq!(draft(&scene), "half");
        assert!(matches!(scene.press("ctrl+c")[..], [Command::Interrupt { .. }]));
        scene.later(300);
    }
    scene.types("!");
    assert_eq!(draft(&scene), "half!");
    // However the ask was closed, the next keys may have been meant for it.
    for keys in ["esc", "y"] {
        scene.confirms("rm x").screen(80, 24);
        assert_eq!(scene.later(300).press(keys).len(), 1);
        scene.snapshot.asks.clear();
        scene.delta(holdpoint_common::Delta::SavedAgain).types("?");
        assert_eq!(scene.press("enter"), []);
        scene.send(Message::Other);
        assert_eq!(scene.later(299).press("enter"), []);
        assert_eq!(draft(&scene), "half!");
    }
    // Esc and the hold key always work.
    assert!(matches!(scene.press("esc")[..], [Command::Interrupt { .. }]));
    assert!(matches!(scene.press("ctrl+x p")[..], [Command::ToggleHold { .. }]));
}

/// An answer needs a pause after any input, even if it is not a key.
#[test]
fn m_a10_other_input_delays_the_answer_keys() {
    let inputs: [fn(&mut Scene); 6] = [
        |scene| _ = scene.send(Message::Other),
        |scene| _ = scene.send(Message::Focus(true)),
        |scene| _ = scene.send(Message::Paste("y".to_owned())),
        |scene| _ = scene.press("alt+x"),
        |scene| _ = scene.press("pgup"),
        |scene| _ = scene.press("ctrl+v"),
    ];
    for input in inputs {
        let mut scene = asking();
        scene.screen(80, 24);
        scene.later(1000);
        input(&mut scene);
        scene.screen(80, 24);
        assert_eq!(scene.later(299).press("y"), []);
        assert_eq!(answers(&scene.later(300).press("y")), [&Answer::Approve { always: false }]);
    }
}

/// Another client approves the first ask.
fn approved(scene: &mut Scene) {
    let answered = scene.snapshot.asks.remove(0).id;
    let by = AnsweredBy::Client(Who { name: "approve".to_owned(), pid: Some(9) });
    scene.fact(Fact::Ask(AskFact::Answered {
        ask: answered,
        answer: Answer::Approve { always: false },
        by,
        while_away: false,
    }));
}

#[test]
fn m_a10_words_for_an_ask_closed_elsewhere_are_dropped_with_a_notice() {
    let mut scene = Scene::session();
    scene.turn("Go.").types("half");
    scene.confirms("rm x").confirms("rm y").screen(80, 24);
    scene.later(300).press("r");
    scene.types("hunt");
    approved(&mut scene);
    let screen = scene.screen(80, 24);
    for shown in
        ["│ rm y", "[Y]", "answered from the command line (pid 9); your words were not sent"]
    {
        assert!(screen.contains(shown), "{shown}: {screen}");
    }
    assert!(!screen.contains("> hunt"), "{screen}");
    // The rest of the words, and Enter, go to no other ask and no prompt.
    for key in ["e", "r", "2", "enter", "y"] {
        assert_eq!(scene.later(299).press(key), []);
    }
    assert_eq!(answers(&scene.later(300).press("y")), [&Answer::Approve { always: false }]);
    assert_eq!(draft(&scene), "half");
    // The close is reported even if no words were typed.
    let mut scene = asking();
    scene.screen(80, 24);
    approved(&mut scene);
    let screen = scene.screen(80, 24);
    assert!(
        screen.contains("shell: answered from the command line (pid 9)")
            && !screen.contains("your words"),
        "{screen}"
    );
    // This user's own answer is not reported.
    let mut scene = asking();
    scene.screen(80, 24);
    scene.later(300).press("y");
    approved(&mut scene);
    assert!(scene.state.notice.is_none());
}

#[test]
fn m_a10_two_questions_are_answered_back_and_forth() {
    use holdpoint_common::{AskRequest, Question, QuestionOption, QuestionReply, QuestionRequest};
    let option =
        |label: &str| QuestionOption { label: label.to_owned(), description: String::new() };
    let question = |id: &str, options| Question {
        id: id.into(),
        header: id.into(),
        question: "So?".into(),
        options,
    };
    let questions =
        vec![question("one", vec![option("red"), option("blue")]), question("two", vec![])];
    let mut scene = Scene::session();
    scene
        .turn("Go.")
        .asks(AskRequest::Question(QuestionRequest { tool_name: "ask_user".into(), questions }));
    let screen = scene.screen(80, 24);
    assert!(
        screen.contains("one: So? (1 of 2)") && screen.contains("Tab: next, Esc to interrupt"),
        "{screen}"
    );
    scene.later(300).press("2");
    let screen = scene.screen(80, 24);
    assert!(screen.contains("two: So? (2 of 2)") && screen.contains("Shift+Tab: back"), "{screen}");
    scene.later(300).types("because");
    scene.press("backtab");
    assert!(scene.screen(80, 24).contains("2. blue ✓"), "{}", scene.screen(80, 24));
    scene.later(300).press("right");
    assert!(scene.screen(80, 24).contains("> because"));
    // Esc clears the words first.
    assert_eq!(scene.later(300).press("esc"), []);
    scene.press("backtab");
    scene.screen(80, 24);
    // A skipped question can still be answered.
    scene.later(300).press("s");
    scene.screen(80, 24);
    scene.later(300).press("backtab");
    assert!(scene.screen(80, 24).contains("(1 of 2, skipped)"));
    scene.later(300).press("right");
    scene.screen(80, 24);
    scene.later(300).types("so");
    let commands = scene.press("enter");
    let reply = |id: &str, answer: Option<&str>| QuestionReply {
        id: id.into(),
        answer: answer.map(str::to_owned),
    };
    let answers_given = vec![reply("one", None), reply("two", Some("so"))];
    assert_eq!(answers(&commands), [&Answer::Reply { answers: answers_given }]);
}

#[test]
fn m_a10_always_is_pressed_twice() {
    let approval = Answer::Approve { always: true };
    let denial = Answer::Deny { reason: None, always: true };
    for (key, does, answer) in
        [("a", "A again to approve", approval), ("d", "D again to deny", denial)]
    {
        let mut scene = Scene::session();
        scene.turn("Go.").confirms("ls");
        scene.snapshot.asks[0].always = Some("shell: ls".into());
        let asks = std::mem::take(&mut scene.snapshot.asks);
        scene.delta(holdpoint_common::Delta::SavedAgain);
        scene.snapshot.asks = asks;
        scene.later(1000).delta(holdpoint_common::Delta::SavedAgain);
        let offer = "[A] Approve [D] Deny always in this session: shell: ls";
        assert!(scene.screen(80, 24).contains(offer));
        assert_eq!(scene.later(300).press(key), []);
        let again = format!("Press {does} always in this session: shell: ls");
        assert!(scene.screen(80, 24).contains(&again), "{again}");
        assert_eq!(scene.press(key), []);
        assert_eq!(answers(&scene.later(700).press(key)), [&answer]);
    }
}

/// Keys that are typed around an ask: all but those that always work.
fn typed() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "y",
        "n",
        "a",
        "r",
        "w",
        "s",
        "1",
        "enter",
        "tab",
        "backspace",
        "up",
        "down",
        "home",
        "left",
        "alt+x",
        "ctrl+w",
        "ctrl+u",
        "ctrl+j",
        "other",
        "paste",
    ])
}

proptest! {
    /// However an ask appears and closes amid typing, no key is sent as a prompt, changes the draft
    /// or answers the ask.
    #[test]
    fn m_a10_no_key_around_a_close_is_a_prompt_a_draft_or_an_answer(
        before in prop::collection::vec((typed(), 0..300_u64), 0..12),
        after in prop::collection::vec((typed(), 0..300_u64), 0..12),
        closes in prop::bool::ANY,
    ) {
        let mut scene = Scene::session();
        scene.turn("Go.").types("half");
        scene.confirms("rm x").screen(80, 24);
        for (at, (key, gap)) in before.iter().chain(&after).enumerate() {
            if at == before.len() {
                scene.screen(80, 24);
                if closes {
                    scene.snapshot.asks.clear();
                    scene.delta(holdpoint_common::Delta::SavedAgain);
                } else {
                    approved(&mut scene);
                }
                scene.screen(80, 24);
            }
            scene.later(*gap);
            let commands = match *key {
                "other" => scene.send(Message::Other),
                "paste" => scene.send(Message::Paste("y\n".to_owned())),
                key => scene.press(key),
            };
            prop_assert_eq!(commands, []);
            prop_assert_eq!(draft(&scene), "half");
        }
    }

    /// An answering key is repeated, as if it were held down.
    #[test]
    fn m_a10_a_key_that_is_pressed_twice_answers_once_and_sends_nothing(gaps in prop::collection::vec(0..300_u64, 1..6)) {
        use holdpoint_common::{AskRequest, Question, QuestionRequest};
        let question = Question { id: "a".into(), header: "a".into(), question: "Why?".into(), options: vec![] };
        let request = QuestionRequest { tool_name: "ask_user".into(), questions: vec![question] };
        for (key, request) in [
            ("enter", AskRequest::Question(request)),
            ("enter", pause(PauseKind::Continue, "")),
            ("y", pause(PauseKind::Confirm, "ls")),
        ] {
            let mut scene = Scene::session();
            scene.turn("Go.").types("half");
            let is_question = matches!(request, AskRequest::Question(_));
            scene.asks(request).screen(80, 24);
            scene.later(300);
            if is_question {
                scene.types("so");
            }
            prop_assert_eq!(answers(&scene.press(key)).len(), 1);
            for (at, gap) in gaps.iter().enumerate() {
                if at == gaps.len() / 2 {
                    scene.snapshot.asks.clear();
                    scene.delta(holdpoint_common::Delta::SavedAgain);
                }
                prop_assert_eq!(scene.later(*gap).press(key), []);
            }
            prop_assert_eq!(draft(&scene), "half");
        }
    }
}

#[test]
fn m_a10_esc_and_ctrl_c_interrupt_the_turn_that_is_shown() {
    for key in ["esc", "ctrl+c"] {
        for mut scene in [asking(), {
            let mut scene = Scene::session();
            scene.turn("Go.");
            scene
        }] {
            let turn = scene.snapshot.turn;
            assert!(turn.is_some());
            // Interrupting needs no pause, drawn or not.
            assert_eq!(scene.press(key), [Command::Interrupt { turn }], "{key}");
        }
    }
}

#[test]
fn m_a10_a_long_ask_can_be_read_and_answered() {
    use holdpoint_common::{AskRequest, Question, QuestionReply, QuestionRequest};
    // The "always" rule is as long as the command.
    let line = format!("{}finis", "word ".repeat(360));
    let script = format!("{}finis", "one more line\n".repeat(40));
    for details in [line, script] {
        for (width, height) in [(80, 24), (40, 12), (80, 16)] {
            let mut scene = Scene::session();
            let always = Some(format!("shell in /code/project: {details}"));
            scene.turn("Go.");
            scene.snapshot.asks =
                vec![Ask { always, ..ask(9, pause(PauseKind::Confirm, &details), Timestamp(0)) }];
            // Other parts of the screen leave their rows to the ask.
            let queued = |number| holdpoint_common::QueuedPrompt {
                prompt: PromptId(number),
                text: "x".into(),
            };
            scene.snapshot.queue = (1..=5).map(queued).collect();
            scene.delta(holdpoint_common::Delta::SavedAgain);
            scene.send(Message::Failed("word ".repeat(100)));
            for size in ["usual", "large"] {
                let screen = scene.screen(width, height);
                assert!(screen.contains("Run this command?"), "{size}: {screen}");
                assert!(
                    screen.contains("[Y] Approve [N] Deny (Esc to interrupt)"),
                    "{size}: {screen}"
                );
                assert!(screen.contains("lines 1-"), "{size}: {screen}");
                scene.press("end");
                let screen = scene.screen(width, height);
                assert!(screen.contains("finis"), "{size}: {screen}");
                assert!(screen.contains("Run this command?"), "{size}: {screen}");
                // Changing the size keeps the scroll position.
                scene.press("up up tab");
                assert!(!scene.screen(width, height).contains("lines 1-"), "{size}");
                scene.press("home");
            }
            assert_eq!(answers(&scene.later(300).press("y")), [&Answer::Approve { always: false }]);
        }
    }
    let question = Question {
        id: "a".into(),
        header: "Why".into(),
        question: "And why?".into(),
        options: vec![],
    };
    let request = QuestionRequest { tool_name: "ask_user".to_owned(), questions: vec![question] };
    let mut scene = Scene::session();
    scene.turn("Go.").asks(AskRequest::Question(request));
    scene.screen(40, 12);
    scene.later(300).types(&format!("{}so it is", "word ".repeat(100)));
    let screen = scene.screen(40, 12);
    assert!(
        screen.contains("And why?") && screen.contains("so it is") && screen.contains("then Enter"),
        "{screen}"
    );
    let commands = scene.later(300).press("enter");
    let [Answer::Reply { answers }] = &answers(&commands)[..] else { panic!("{commands:?}") };
    assert!(
        matches!(&answers[..], [QuestionReply { answer, .. }] if answer.as_deref().is_some_and(|answer| answer.ends_with("so it is")))
    );
}

#[test]
fn m_a10_the_guard_starts_when_the_ask_or_its_keys_appear() {
    let mut scene = asking();
    scene.screen(80, 24);
    scene.later(300).press("r");
    scene.screen(80, 24);
    scene.types("x");
    assert_eq!(scene.press("esc"), []);
    scene.screen(80, 24);
    assert_eq!(scene.press("n"), [], "too soon, it was meant for the reason");
    scene.later(300);
    scene.screen(80, 24);
    assert_eq!(answers(&scene.press("n")), [&Answer::Deny { reason: None, always: false }]);
}

#[test]
fn words_for_an_ask_are_kept_while_it_is_open() {
    let mut scene = asking();
    scene.screen(80, 24);
    scene.later(300).press("r");
    scene.types("not today");
    assert!(scene.screen(80, 24).contains("> not today"));
    scene.press("esc");
    assert!(!scene.screen(80, 24).contains("not today"));
    scene.later(300).press("r");
    assert!(scene.screen(80, 24).contains("> not today"));
    // The session is left for the hub and opened again.
    let asked = scene.snapshot.asks[0].clone();
    scene.press("ctrl+x s d");
    assert!(scene.state.session.is_none());
    scene.reports_session(
        |session| (session.waits_for, session.status) = (Some(asked), SessionStatus::Paused),
        "alpha",
    );
    let come_back = |scene: &mut Scene| {
        scene.press("esc");
        scene.types("alpha");
        let [Command::Open { attachment, .. }] = scene.press("enter")[..] else {
            panic!("no session is opened")
        };
        let (id, snapshot) =
            ("alpha".parse().unwrap(), std::sync::Arc::new(scene.snapshot.clone()));
        scene.send(Message::Attached { attachment, id, snapshot });
        scene.screen(80, 24);
        // A second Enter sends nothing.
        assert_eq!(scene.press("enter"), []);
        scene.later(300).press("r");
        scene.screen(80, 24)
    };
    assert!(come_back(&mut scene).contains("> not today"));
    // Another client has answered the ask, and a new one is open.
    scene.press("ctrl+x s d");
    scene.reports_session(|_| {}, "alpha");
    scene.snapshot.asks = vec![ask(90, pause(PauseKind::Confirm, "ls"), Timestamp(0))];
    assert!(!come_back(&mut scene).contains("not today"));
}
