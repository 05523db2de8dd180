//! What is asked in a session: which keys count, and from when.

use holdpoint_common::{Answer, AnsweredBy, Ask, Fact, PauseKind, PromptId, SessionStatus, Timestamp, Who};

use super::{answers, asking, draft};
use crate::tui::message::{Command, Message};
use crate::tui::scene::{Scene, ask, pause};

#[test]
fn m_a10_keys_count_from_300_ms_after_the_ask_was_drawn() {
    let mut scene = asking();
    // Not on the screen: whatever the time, nothing is approved.
    assert_eq!(scene.later(10_000).press("y"), []);
    scene.screen(80, 24);
    assert_eq!(scene.later(299).press("y"), []);
    // Nor from a key that did not count: somebody types.
    assert_eq!(scene.later(299).press("y"), []);
    assert_eq!(answers(&scene.later(300).press("y")), [&Answer::Approve { always: false }]);
    // It is answered once.
    assert_eq!(scene.press("y n"), []);
}

#[test]
fn m_a10_what_lay_over_an_ask_makes_it_appear_anew() {
    let mut scene = asking();
    scene.screen(80, 24);
    scene.later(1000).press("ctrl+x ?");
    scene.screen(80, 24);
    assert_eq!(scene.later(1000).press("esc y"), []);
    scene.screen(80, 24);
    assert_eq!(scene.later(299).press("y"), []);
    assert_eq!(answers(&scene.later(300).press("n")), [&Answer::Deny { reason: None }]);
}

#[test]
fn m_a10_what_there_was_no_room_to_read_is_not_approved() {
    let mut hub = Scene::hub();
    let asked = ask(10, pause(PauseKind::Confirm, "ls"), Timestamp(10));
    hub.hears(|session| (session.waits_for, session.status) = (Some(asked), SessionStatus::Paused), "late");
    hub.press("tab");
    for mut scene in [asking(), hub] {
        for (width, height) in [(9, 24), (80, 3), (80, 4)] {
            scene.screen(width, height);
            assert_eq!(scene.later(1000).press("y"), [], "{width}x{height}");
        }
        scene.screen(80, 24);
        assert_eq!(scene.later(299).press("y"), []);
        // It is gone again before the key.
        scene.screen(80, 3);
        assert_eq!(scene.later(1000).press("y"), []);
        scene.screen(80, 24);
        assert_eq!(scene.later(299).press("y"), []);
        assert_eq!(answers(&scene.later(300).press("y")), [&Answer::Approve { always: false }]);
    }
}

#[test]
fn m_a10_who_comes_back_to_the_screen_has_a_guard_of_their_own() {
    for (keys, leaves) in [("ctrl+x e", Command::Edit { text: String::new() }), ("ctrl+z", Command::Suspend)] {
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
    assert!(matches!(&commands[..], [Command::Answer { ask, .. }] if ask.seq == 50), "{commands:?}");
}

#[test]
fn m_a10_no_key_reaches_the_draft_while_something_is_asked() {
    let mut scene = Scene::session();
    scene.turn("Go.").types("a draft");
    scene.confirms("touch made");
    scene.screen(80, 24);
    scene.later(1000);
    assert_eq!(scene.press("x q enter tab backspace ctrl+w ctrl+u"), []);
    scene.tell(Message::Paste("y\ny".to_owned()));
    assert_eq!(draft(&scene), "a draft");
    scene.press("n");
    scene.snapshot.asks.clear();
    scene.delta(holdpoint_common::Delta::SavedAgain).later(300).types("!");
    assert_eq!(draft(&scene), "a draft!");
}

/// Whoever is about to press a key for it does not mean the prompt when somebody else was faster.
#[test]
fn m_a10_what_was_meant_for_an_ask_that_somebody_else_closes_goes_nowhere() {
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
        assert_eq!(scene.later(299).press("esc"), []);
        scene.tell(Message::Paste("pasted".to_owned()));
        assert_eq!(draft(&scene), "half");
        assert!(matches!(scene.press("ctrl+c")[..], [Command::Interrupt { .. }]));
        scene.later(300);
    }
    scene.types("!");
    assert_eq!(draft(&scene), "half!");
    // Who has ended it knows that it is gone.
    scene.confirms("rm x").screen(80, 24);
    assert!(matches!(scene.press("esc")[..], [Command::Interrupt { .. }]));
    scene.snapshot.asks.clear();
    scene.delta(holdpoint_common::Delta::SavedAgain).types("?");
    assert_eq!(draft(&scene), "half!?");
}

/// Somebody else answers the first ask.
fn approved(scene: &mut Scene) {
    let answered = scene.snapshot.asks.remove(0).id;
    let by = AnsweredBy::Client(Who { name: "approve".to_owned(), pid: Some(9) });
    scene.fact(Fact::AskAnswered { ask: answered, answer: Answer::Approve { always: false }, by });
}

/// However long they pause: the words that they were typing stay where they are.
#[test]
fn m_a10_words_for_an_ask_that_somebody_else_closes_stay_until_they_are_left() {
    for (leave, told) in [("enter", true), ("esc", false)] {
        let mut scene = Scene::session();
        scene.turn("Go.").types("half");
        scene.confirms("rm x").confirms("rm y").screen(80, 24);
        scene.later(300).press("r");
        scene.types("not ");
        approved(&mut scene);
        let screen = scene.screen(80, 24);
        for shown in ["│ rm x", "> not", "answered by approve (pid 9)", "Esc to leave", "1 more"] {
            assert!(screen.contains(shown), "{shown}: {screen}");
        }
        assert!(!screen.contains("[Y]") && !screen.contains("rm y"), "{screen}");
        for _ in 0..2 {
            assert_eq!(scene.later(1000).press("y tab n ctrl+d backspace up"), []);
            scene.tell(Message::Paste("yes".to_owned()));
        }
        // What is asked next appears when they are left, and has its own while.
        assert_eq!(scene.press(leave), []);
        let screen = scene.screen(80, 24);
        assert!(screen.contains("│ rm y") && screen.contains("[Y]") && !screen.contains("> not"), "{screen}");
        assert_eq!(screen.contains("what you typed is not sent"), told, "{screen}");
        assert_eq!(scene.later(299).press("y"), []);
        assert_eq!(answers(&scene.later(300).press("y")), [&Answer::Approve { always: false }]);
        assert_eq!(draft(&scene), "half");
    }
}

#[test]
fn m_a10_words_that_are_left_send_nothing_and_what_runs_can_be_interrupted() {
    use holdpoint_common::{AskCloseCause, AskRequest, Question, QuestionRequest};
    let question = Question { id: "a".into(), header: "Why".into(), question: "And why?".into(), options: vec![] };
    let asked =
        || AskRequest::Question(QuestionRequest { tool_name: "ask_user".into(), questions: vec![question.clone()] });
    let closed = |typed: &str, runs: bool| {
        let mut scene = Scene::session();
        scene.turn("Go.").asks(asked()).screen(80, 24);
        scene.later(300).types(typed);
        let ask = scene.snapshot.asks.remove(0).id;
        scene.fact(Fact::AskClosed { ask, cause: AskCloseCause::CallEnded });
        if !runs {
            scene.ended(holdpoint_common::Outcome::Done, None);
        }
        scene.later(1000);
        scene
    };
    // Nothing was typed: there is nothing to stay for.
    let mut scene = closed("", true);
    assert!(!scene.screen(80, 24).contains("And why?"));
    scene.types("x");
    assert_eq!(draft(&scene), "x");
    let mut scene = closed("beca", true);
    assert!(scene.screen(80, 24).contains("closed: its call ended"));
    let turn = scene.snapshot.turn;
    assert_eq!(scene.press("ctrl+c"), [Command::Interrupt { turn }]);
    for key in ["ctrl+c", "esc", "enter"] {
        let mut scene = closed("beca", false);
        scene.types("use");
        assert_eq!(scene.press(key), [], "{key}");
        // A second one, and the rest of the words, were meant for it still.
        assert_eq!(scene.press("enter"), []);
        scene.types("x");
        assert_eq!(draft(&scene), "");
        assert!(scene.state.session.is_some());
        scene.later(300).types("x");
        assert_eq!(draft(&scene), "x");
    }
    // The session itself was closed.
    let mut scene = closed("beca", true);
    scene.tell(Message::Closed { attachment: 1 });
    assert_eq!(scene.later(1000).press("u s e enter"), []);
    assert_eq!(draft(&scene), "");
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
            // At once, drawn or not.
            assert_eq!(scene.press(key), [Command::Interrupt { turn }], "{key}");
        }
    }
}

#[test]
fn m_a10_what_is_asked_can_be_answered_however_long_it_is_and_whatever_is_typed() {
    use holdpoint_common::{AskRequest, Question, QuestionReply, QuestionRequest};
    // What is remembered is as long as the command.
    let line = format!("{}finis", "word ".repeat(360));
    let script = format!("{}finis", "one more line\n".repeat(40));
    for details in [line, script] {
        for (width, height) in [(80, 24), (40, 12), (80, 16)] {
            let mut scene = Scene::session();
            let always = Some(format!("shell in /code/project: {details}"));
            scene.turn("Go.");
            scene.snapshot.asks = vec![Ask { always, ..ask(9, pause(PauseKind::Confirm, &details), Timestamp(0)) }];
            // It has the room that the rest would take.
            let queued = |number| holdpoint_common::QueuedPrompt { prompt: PromptId(number), text: "x".into() };
            scene.snapshot.queue = (1..=5).map(queued).collect();
            scene.delta(holdpoint_common::Delta::SavedAgain);
            scene.tell(Message::Failed("word ".repeat(100)));
            for size in ["usual", "large"] {
                let screen = scene.screen(width, height);
                assert!(screen.contains("Run this command?"), "{size}: {screen}");
                assert!(screen.contains("[Y] Approve [N] Deny (Esc to interrupt)"), "{size}: {screen}");
                assert!(screen.contains("lines 1-"), "{size}: {screen}");
                scene.press("end");
                let screen = scene.screen(width, height);
                assert!(screen.contains("finis"), "{size}: {screen}");
                assert!(screen.contains("Run this command?"), "{size}: {screen}");
                // Whatever its size, one is where one was.
                scene.press("up up tab");
                assert!(!scene.screen(width, height).contains("lines 1-"), "{size}");
                scene.press("home");
            }
            assert_eq!(answers(&scene.later(300).press("y")), [&Answer::Approve { always: false }]);
        }
    }
    let question = Question { id: "a".into(), header: "Why".into(), question: "And why?".into(), options: vec![] };
    let request = QuestionRequest { tool_name: "ask_user".to_owned(), questions: vec![question] };
    let mut scene = Scene::session();
    scene.turn("Go.").asks(AskRequest::Question(request));
    scene.screen(40, 12);
    scene.later(300).types(&format!("{}so it is", "word ".repeat(100)));
    let screen = scene.screen(40, 12);
    assert!(screen.contains("And why?") && screen.contains("so it is") && screen.contains("then Enter"), "{screen}");
    let commands = scene.later(300).press("enter");
    let [Answer::Reply { answers }] = &answers(&commands)[..] else { panic!("{commands:?}") };
    assert!(matches!(&answers[..], [QuestionReply { answer, .. }] if answer.ends_with("so it is")));
}

#[test]
fn m_a10_the_guard_counts_from_when_the_ask_or_its_keys_appeared_and_from_nothing_later() {
    let mut scene = asking();
    scene.screen(80, 24);
    scene.later(300).press("r");
    scene.screen(80, 24);
    scene.types("x");
    assert_eq!(scene.press("esc"), []);
    scene.screen(80, 24);
    assert_eq!(scene.press("n"), [], "typed on, it was meant for the words");
    scene.later(300);
    scene.screen(80, 24);
    assert_eq!(answers(&scene.press("n")), [&Answer::Deny { reason: None }]);
}

#[test]
fn words_for_an_ask_are_there_as_long_as_it_is_open() {
    let mut scene = asking();
    scene.screen(80, 24);
    scene.later(300).press("r");
    scene.types("not today");
    assert!(scene.screen(80, 24).contains("> not today"));
    scene.press("esc");
    assert!(!scene.screen(80, 24).contains("not today"));
    scene.later(300).press("r");
    assert!(scene.screen(80, 24).contains("> not today"));
    // Left for the hub, and come back to.
    let asked = scene.snapshot.asks[0].clone();
    scene.press("ctrl+x s d");
    assert!(scene.state.session.is_none());
    scene.hears(|session| (session.waits_for, session.status) = (Some(asked), SessionStatus::Paused), "alpha");
    let come_back = |scene: &mut Scene| {
        scene.press("esc");
        scene.types("alpha");
        let [Command::Open { attachment, .. }] = scene.press("enter")[..] else { panic!("nothing is opened") };
        let (id, snapshot) = ("alpha".parse().unwrap(), std::sync::Arc::new(scene.snapshot.clone()));
        scene.tell(Message::Attached { attachment, id, snapshot });
        scene.screen(80, 24);
        // A second Enter sends nothing.
        assert_eq!(scene.press("enter"), []);
        scene.later(300).press("r");
        scene.screen(80, 24)
    };
    assert!(come_back(&mut scene).contains("> not today"));
    // Somebody else has answered it, and something else is asked.
    scene.press("ctrl+x s d");
    scene.hears(|_| {}, "alpha");
    scene.snapshot.asks = vec![ask(90, pause(PauseKind::Confirm, "ls"), Timestamp(0))];
    assert!(!come_back(&mut scene).contains("not today"));
}
