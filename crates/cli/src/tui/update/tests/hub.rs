//! Keys of the hub.

use holdpoint_common::api::SessionNews;
use holdpoint_common::{
    Answer, AskId, Gap, HoldCause, Outcome, PauseKind, SessionStatus, SessionSummary, Timestamp, TurnId,
};

use super::answers;
use crate::tui::message::{Command, Message};
use crate::tui::scene::{Scene, ask, pause, snapshot, standing};

#[test]
fn m_a3_what_was_chosen_last_is_shown_however_late_the_one_before_comes() {
    let mut scene = Scene::hub();
    scene.hears(|_| {}, "alpha").hears(|_| {}, "beta");
    scene.types("alpha");
    let [Command::Open { attachment: early, .. }] = scene.press("enter")[..] else { panic!("nothing is opened") };
    scene.press("esc");
    scene.types("beta");
    let [Command::Open { attachment: late, .. }] = scene.press("enter")[..] else { panic!("nothing is opened") };
    assert!(!scene.state.awaits(early) && scene.state.awaits(late));
    scene.tell(Message::NotOpened { attachment: early, why: "gone".to_owned() });
    assert!(scene.state.awaits(late), "that is of the one before");
    assert!(!scene.screen(80, 24).contains("gone"));
    let (id, snapshot) = ("beta".parse().unwrap(), std::sync::Arc::new(crate::tui::scene::snapshot("beta")));
    scene.tell(Message::Attached { attachment: late, id, snapshot });
    assert!(!scene.state.awaits(early) && scene.state.awaits(late));
    scene.press("ctrl+x d");
    assert!(!scene.state.awaits(late));
}

#[test]
fn m_e1_resume_is_this_folders_newest_in_which_something_was_said() {
    let mut scene = Scene::hub();
    let last = |outcome| Some(holdpoint_common::LastTurn { turn: TurnId(1), outcome, cause: None, error: None });
    let said = |scene: &mut Scene, name: &str, since, folder: &str, said: bool| {
        let folder = folder.to_owned();
        scene.hears(
            |session| {
                (session.since, session.workspace) = (Timestamp(since), folder);
                session.last_turn = if said { last(Outcome::Done) } else { None };
            },
            name,
        );
    };
    let resumes = |scene: &Scene| scene.state.hub.resumable().map(|session| session.name.clone());
    said(&mut scene, "fresh", 90, "/code/project", false);
    assert_eq!(resumes(&scene), None);
    assert!(!scene.screen(80, 24).contains("Resume"));
    said(&mut scene, "far", 80, "/elsewhere", true);
    assert_eq!(resumes(&scene).as_deref(), Some("far"));
    assert!(scene.screen(80, 24).contains("Resume far in /elsewhere"));
    said(&mut scene, "old", 10, "/code/project", true);
    said(&mut scene, "new", 20, "/code/project", true);
    assert_eq!(resumes(&scene).as_deref(), Some("new"));
}

#[test]
fn the_hubs_first_row_waits_the_longest_and_is_answered_from_there() {
    let mut scene = Scene::hub();
    for (name, since) in [("late", 50), ("early", 10)] {
        let asked = ask(since, pause(PauseKind::Confirm, "ls"), Timestamp(since));
        scene.hears(|session| (session.waits_for, session.status) = (Some(asked), SessionStatus::Paused), name);
    }
    let waiting: Vec<_> = scene.state.hub.waiting().iter().map(|session| session.name.clone()).collect();
    assert_eq!(waiting, ["early", "late"]);
    scene.press("tab");
    scene.screen(80, 24);
    assert_eq!(scene.later(200).press("y"), []);
    let commands = scene.later(300).press("y");
    assert!(matches!(&commands[..], [Command::Answer { ask, .. }] if ask.seq == 10), "{commands:?}");
}

/// The hub, with an ask under its cursor.
fn hub_asking(request: holdpoint_common::AskRequest) -> Scene {
    let mut scene = Scene::hub();
    let asked = ask(10, request, Timestamp(10));
    scene.hears(|session| (session.waits_for, session.status) = (Some(asked), SessionStatus::Paused), "alpha");
    scene.press("tab");
    scene
}

#[test]
fn m_c5_esc_and_ctrl_c_in_the_hub_interrupt_the_turn_that_asks() {
    for key in ["esc", "ctrl+c"] {
        let mut scene = hub_asking(pause(PauseKind::Confirm, "ls"));
        // At once, drawn or not.
        let ask = "alpha.10".parse().unwrap();
        assert_eq!(scene.press(key), [Command::InterruptOther { ask }], "{key}");
        scene.hears(|_| {}, "alpha");
        assert!(scene.state.hub.asking.is_none() && scene.state.notice.is_none());
    }
}

#[test]
fn m_a10_what_is_pasted_in_the_hub_are_words_for_what_is_asked() {
    let mut scene = hub_asking(pause(PauseKind::Confirm, "ls"));
    scene.screen(80, 24);
    scene.later(1000).tell(Message::Paste("y\ny".to_owned()));
    assert_eq!(scene.later(300).press("r"), []);
    scene.screen(80, 24);
    scene.tell(Message::Paste("not\ntoday".to_owned()));
    let commands = scene.later(1000).press("enter");
    assert_eq!(answers(&commands), [&Answer::Deny { reason: Some("not today".to_owned()) }]);
    assert_eq!(scene.state.hub.filter, "", "none of it is a filter");
}

/// Somebody else has closed it: neither the filter nor what stands under the cursor is meant.
#[test]
fn m_a10_what_was_meant_for_an_ask_in_the_hub_that_somebody_else_closes_goes_nowhere() {
    let mut scene = hub_asking(pause(PauseKind::Confirm, "ls"));
    scene.screen(80, 24);
    scene.later(1000).press("x");
    scene.hears(|_| {}, "alpha");
    for letter in " yes, do".chars() {
        scene.later(100).types(&letter.to_string());
    }
    scene.tell(Message::Paste("pasted".to_owned()));
    assert_eq!(scene.later(299).press("enter"), []);
    assert_eq!(scene.state.hub.filter, "");
    scene.later(300).types("al");
    assert_eq!(scene.state.hub.filter, "al");
    assert!(matches!(scene.press("enter")[..], [Command::Open { .. }]));
    // The same after this user's own answer.
    let mut scene = hub_asking(pause(PauseKind::Confirm, "ls"));
    scene.screen(80, 24);
    assert_eq!(answers(&scene.later(300).press("y")), [&Answer::Approve { always: false }]);
    assert_eq!(scene.hears(|_| {}, "alpha").press("y enter"), []);
    assert_eq!(scene.state.hub.filter, "");
    scene.later(300).types("al");
    assert_eq!(scene.state.hub.filter, "al");
}

#[test]
fn m_a10_words_in_the_hub_for_an_ask_that_somebody_else_closes_are_dropped_and_it_is_said() {
    let next = ask(20, pause(PauseKind::Confirm, "rm y"), Timestamp(20));
    for next in [None, Some(&next)] {
        let mut scene = hub_asking(pause(PauseKind::Confirm, "rm x"));
        assert!(scene.screen(80, 24).contains("⏸ alpha: shell"), "the panel names its session");
        scene.later(300).press("r");
        scene.types("not ");
        let mut summary = SessionSummary::from(&snapshot("alpha"));
        summary.waits_for = next.cloned();
        let ask: AskId = "alpha.10".parse().unwrap();
        let commands = scene.tell(Message::News(SessionNews::Session(Box::new(summary))));
        assert_eq!(commands, [Command::ReadAskEnd { ask: ask.clone() }]);
        let screen = scene.screen(80, 24);
        assert!(screen.contains("alpha: shell: answered, or closed, elsewhere; your words were not sent"), "{screen}");
        // Then its session reports how, once.
        let ended = |ask: &str, how: &str| Message::AskEnded { ask: ask.parse().unwrap(), how: how.to_owned() };
        assert_eq!(scene.tell(ended("alpha.9", "of another")), []);
        assert_eq!(scene.tell(ended("alpha.10", "answered from the command line (pid 9)")), []);
        assert_eq!(scene.tell(ended("alpha.10", "again")), []);
        let screen = scene.screen(80, 24);
        let how = "alpha: shell: answered from the command line (pid 9); your words were not sent";
        assert!(screen.contains(how), "{screen}");
        assert!(!screen.contains("> not"), "{screen}");
        assert_eq!(screen.contains("[Y]"), next.is_some(), "{screen}");
        for key in ["y", "n", "enter", "y"] {
            assert_eq!(scene.later(299).press(key), []);
        }
        assert_eq!(scene.state.hub.filter, "");
    }
}

#[test]
fn m_b9_how_a_turn_ended_is_said_whole_however_narrow_the_hub_is() {
    for (live, width, said) in [
        (true, 80, "idle (interrupted)"),
        (true, 40, " interrupted "),
        (false, 80, "saved, idle (interrupted)"),
        (false, 40, " saved "),
    ] {
        let mut scene = Scene::hub();
        let outcome = Outcome::Interrupted;
        let ended = holdpoint_common::LastTurn { turn: TurnId(1), outcome, cause: None, error: None };
        scene.hears(|session| (session.live, session.last_turn) = (live, Some(ended)), "alpha");
        let screen = scene.screen(width, 12);
        assert!(screen.contains(said) && !screen.contains("inter…") && !screen.contains("interrupt…"), "{screen}");
    }
}

#[test]
fn m_b9_a_long_ask_is_read_and_answered_in_the_hub() {
    for (width, height) in [(80, 24), (40, 12)] {
        let mut scene = hub_asking(pause(PauseKind::Confirm, &format!("{}finis", "one more line\n".repeat(40))));
        let screen = scene.screen(width, height);
        assert!(screen.contains("[Y] Approve [N] Deny") && screen.contains("Run this command?"), "{screen}");
        assert!(screen.contains("of 42: ↑ ↓ ─"), "Tab is the way back here: {screen}");
        scene.press("end");
        assert!(scene.screen(width, height).contains("│ finis"));
        assert_eq!(answers(&scene.later(300).press("y")), [&Answer::Approve { always: false }]);
    }
}

#[test]
fn m_b9_several_asks_of_one_session_are_counted_and_answered_one_after_the_other() {
    let mut scene = Scene::hub();
    let asked = |seq, asks| {
        move |session: &mut holdpoint_common::SessionSummary| {
            session.asks = asks;
            session.waits_for = Some(ask(seq, pause(PauseKind::Confirm, &format!("touch {seq}")), Timestamp(10)));
            session.status = SessionStatus::Paused;
        }
    };
    scene.hears(asked(10, 1), "alpha");
    assert!(scene.screen(80, 24).contains("| 1 waits for you"));
    scene.hears(asked(10, 2), "alpha");
    let screen = scene.screen(80, 24);
    assert!(screen.contains("| 2 wait for you") && screen.contains("touch 10 (1 more)"), "{screen}");
    assert_eq!(scene.state.title(), "(2) holdpoint");
    assert_eq!(scene.press("tab"), []);
    assert!(scene.screen(80, 24).contains("⏸ alpha: shell, 1 more waits"));
    let answered = scene.later(300).press("y");
    assert!(matches!(&answered[..], [Command::Answer { ask, .. }] if ask.seq == 10), "{answered:?}");
    scene.hears(asked(11, 1), "alpha");
    // The next one has a guard of its own, and no key of it is for the list.
    assert_eq!(scene.press("y"), []);
    let screen = scene.screen(80, 24);
    assert!(screen.contains("│ touch 11") && screen.contains("| 1 waits for you"), "{screen}");
    assert_eq!(scene.later(299).press("y"), []);
    let answered = scene.later(300).press("y");
    assert!(matches!(&answered[..], [Command::Answer { ask, .. }] if ask.seq == 11), "{answered:?}");
    scene.hears(|_| {}, "alpha");
    assert!(scene.state.hub.asking.is_none());
    assert_eq!(scene.state.hub.filter, "");
    assert_eq!(scene.state.title(), "holdpoint");
}

/// The hub, with a session that was answered from it and works on.
fn hub_working() -> Scene {
    let mut scene = hub_asking(pause(PauseKind::Confirm, "ls"));
    scene.screen(80, 24);
    assert_eq!(answers(&scene.later(300).press("y")), [&Answer::Approve { always: false }]);
    scene.hears(|session| session.status = SessionStatus::Running, "alpha");
    scene
}

/// The session asks again.
fn asks_again(scene: &mut Scene) {
    let asked = ask(11, pause(PauseKind::Confirm, "touch made"), Timestamp(20));
    scene.hears(|session| (session.waits_for, session.status) = (Some(asked), SessionStatus::Paused), "alpha");
}

#[test]
fn m_b9_the_panel_stays_on_a_session_that_works_and_shows_its_next_ask() {
    let mut scene = hub_working();
    let screen = scene.screen(80, 24);
    assert!(screen.contains("alpha: running") && screen.contains("Tab back to the list"), "{screen}");
    // However late, no key or paste is a filter or opens anything.
    scene.later(1000).tell(Message::Paste("y".to_owned()));
    assert_eq!(scene.press("y enter n up ctrl+d"), []);
    assert_eq!((&*scene.state.hub.filter, &scene.state.overlay), ("", &None));
    scene.hears(|session| (session.status, session.asks) = (SessionStatus::Running, 0), "alpha");
    asks_again(&mut scene);
    assert!(scene.screen(80, 24).contains("│ touch made"));
    assert_eq!(scene.later(299).press("y"), []);
    let answered = scene.later(300).press("y");
    assert!(matches!(&answered[..], [Command::Answer { ask, .. }] if ask.seq == 11), "{answered:?}");
    scene.hears(|session| session.status = SessionStatus::Running, "alpha");
    assert!(scene.screen(80, 24).contains("alpha: running"));
    // The turn ends: the list is back, and keys that were meant for the panel go nowhere.
    scene.later(1000).hears(|_| {}, "alpha");
    let screen = scene.screen(80, 24);
    assert!(!screen.contains("Tab back") && screen.contains("Enter open"), "{screen}");
    assert_eq!(scene.later(299).press("y enter"), []);
    assert_eq!(scene.state.hub.filter, "");
    scene.later(300).types("al");
    assert_eq!(scene.state.hub.filter, "al");
}

#[test]
fn m_b9_the_panel_of_a_session_that_works_is_left_by_keys_of_its_own() {
    for key in ["esc", "tab", "ctrl+c", "ctrl+x s", "ctrl+x i"] {
        let mut scene = hub_working();
        scene.later(1000);
        let commands = scene.press(key);
        assert!(matches!(commands[..], [] | [Command::Detach]), "{key}: {commands:?}");
        assert!(!scene.screen(80, 24).contains("alpha: running"), "{key}");
        assert!(scene.state.notice.is_none(), "{key}");
        scene.types("al");
        assert_eq!(scene.state.hub.filter, "al", "{key}");
        // The panel is closed: the next ask waits in the list.
        asks_again(&mut scene);
        assert!(scene.state.hub.asking.is_none(), "{key}");
    }
    // Held, interrupted or gone, nothing follows by itself.
    for change in [
        |session: &mut SessionSummary| {
            (session.hold, session.status) = (standing(HoldCause::Restored), SessionStatus::Paused);
        },
        |session: &mut SessionSummary| session.status = SessionStatus::Interrupted,
    ] {
        let mut scene = hub_working();
        scene.hears(change, "alpha");
        assert!(!scene.screen(80, 24).contains("Tab back"));
    }
    let mut scene = hub_working();
    scene.tell(Message::News(SessionNews::Deleted("alpha".parse().unwrap())));
    assert!(!scene.screen(80, 24).contains("Tab back"));
}

/// Esc leaves a session that works, and interrupts one that asks: pressed as the ask appears, it was meant for the first.
#[test]
fn m_a10_esc_that_was_meant_to_leave_the_panel_interrupts_nothing() {
    for key in ["esc", "ctrl+c"] {
        let mut scene = hub_working();
        asks_again(&mut scene);
        assert_eq!(scene.later(1000).press(key), [], "not drawn: {key}");
        assert!(scene.state.hub.asking.is_none());
        let mut scene = hub_working();
        asks_again(&mut scene);
        scene.screen(80, 24);
        assert_eq!(scene.later(299).press(key), [], "not read: {key}");
        assert!(scene.state.hub.asking.is_none());
        let mut scene = hub_working();
        asks_again(&mut scene);
        scene.screen(80, 24);
        let ask = "alpha.11".parse().unwrap();
        assert_eq!(scene.later(300).press(key), [Command::InterruptOther { ask }], "{key}");
    }
}

#[test]
fn the_terminal_calls_only_where_it_is_not_looked_at() {
    let mut scene = Scene::session();
    scene.turn("Go.");
    let ask = ask(9, pause(PauseKind::Confirm, "ls"), Timestamp(0));
    scene.snapshot.asks.push(ask.clone());
    let happened = |scene: &Scene| Message::Happened {
        attachment: 1,
        events: vec![],
        snapshot: std::sync::Arc::new(scene.snapshot.clone()),
    };
    scene.tell(Message::Focus(false));
    let message = happened(&scene);
    let commands = scene.tell(message);
    assert!(matches!(&commands[..], [Command::Notify { text }] if text == "alpha: shell asks"), "{commands:?}");
    // Once.
    let message = happened(&scene);
    assert_eq!(scene.tell(message), []);
    scene.tell(Message::Focus(true));
    scene.snapshot.asks[0].id.seq = 10;
    let message = happened(&scene);
    assert_eq!(scene.tell(message), []);
}

#[test]
fn m_e1_whoever_types_a_name_finds_it_before_what_else_is_like_that() {
    let mut scene = Scene::hub();
    let said = |since, title: &'static str| {
        move |session: &mut holdpoint_common::SessionSummary| {
            (session.since, session.title) = (Timestamp(since), title.to_owned());
        }
    };
    let asked = ask(10, pause(PauseKind::Confirm, "ls"), Timestamp(10));
    scene
        .hears(said(1, "the first"), "api")
        .hears(said(2, "another"), "api-tests")
        .hears(said(3, "mends the api"), "zeta")
        .hears(said(4, "the newest"), "old-api")
        .hears(|session| (session.title, session.waits_for) = ("asks of the api".to_owned(), Some(asked)), "waits");
    let names = |scene: &Scene| {
        let rows = scene.state.hub.rows();
        rows.iter().filter_map(|row| row.session()).map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(names(&scene)[0], "waits", "what is urgent comes first, where nothing is typed");
    scene.types("API");
    assert_eq!(names(&scene)[..3], ["api", "api-tests", "waits"]);
    let opened = scene.press("enter");
    assert!(matches!(&opened[..], [Command::Open { id, .. }] if id.as_str() == "api"), "{opened:?}");
}

#[test]
fn why_nothing_was_opened_is_told_until_the_next_key() {
    let mut scene = Scene::hub();
    scene.hears(|_| {}, "alpha");
    let why = || "10 sessions are live, the limit".to_owned();
    let refused = |scene: &mut Scene| {
        let [Command::New { attachment, .. }] = scene.press("ctrl+x n")[..] else { panic!("nothing is opened") };
        scene.tell(Message::NotOpened { attachment, why: why() });
        assert!(scene.screen(80, 24).contains(&why()));
    };
    refused(&mut scene);
    scene.press("down");
    let screen = scene.screen(80, 24);
    assert!(!screen.contains(&why()) && screen.contains("Enter open"), "{screen}");
    // Nor does a key that tries again leave it standing.
    refused(&mut scene);
    scene.press("ctrl+x n");
    assert!(!scene.screen(80, 24).contains(&why()));
}

#[test]
fn words_for_what_is_answered_in_the_hub_are_there_when_it_is_come_back_to() {
    let mut scene = hub_asking(pause(PauseKind::Confirm, "ls"));
    scene.screen(80, 24);
    scene.later(300).press("r");
    scene.types("not tod");
    scene.press("tab tab");
    let screen = scene.screen(80, 24);
    assert!(screen.contains("[R] Deny and say why"), "{screen}");
    // It appears anew, with the guard of what does.
    assert_eq!(scene.later(299).press("r y"), []);
    scene.later(300).press("r");
    scene.types("ay");
    let commands = scene.press("enter");
    assert_eq!(answers(&commands), [&Answer::Deny { reason: Some("not today".to_owned()) }]);
}

#[test]
fn t_u5_a_session_with_a_damaged_row_says_so_in_the_list() {
    let mut scene = Scene::hub();
    scene.hears(|_| {}, "whole");
    scene.hears(|session| session.gaps = [Gap { from: 3, to: 5 }].into_iter().collect(), "torn");
    let screen = scene.screen(80, 24);
    assert_eq!(screen.matches("damaged, idle").count(), 1, "{screen}");
    scene.types("torn");
    let screen = scene.screen(80, 24);
    assert!(screen.contains("events 3 to 5 can't be read"), "{screen}");
}
