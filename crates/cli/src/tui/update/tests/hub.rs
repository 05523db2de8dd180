//! Tests of the hub's keys.

use holdpoint_common::api::SessionNews;
use holdpoint_common::{
    Answer, AskId, Gap, HoldCause, Outcome, PauseKind, SessionStatus, SessionSummary, Timestamp,
    TurnId,
};

use super::answers;
use crate::tui::hub::Row;
use crate::tui::message::{Command, Message};
use crate::tui::scene::{Scene, ask, pause, snapshot, standing};

#[test]
fn m_a3_the_last_choice_is_shown_even_if_the_earlier_one_answers_late() {
    let mut scene = Scene::hub();
    scene.reports_session(|_| {}, "alpha").reports_session(|_| {}, "beta");
    scene.types("alpha");
    let [Command::Open { attachment: early, .. }] = scene.press("enter")[..] else {
        panic!("no session is opened")
    };
    scene.press("esc");
    scene.types("beta");
    let [Command::Open { attachment: late, .. }] = scene.press("enter")[..] else {
        panic!("no session is opened")
    };
    assert!(!scene.state.awaits(early) && scene.state.awaits(late));
    scene.send(Message::NotOpened { attachment: early, why: "gone".to_owned() });
    assert!(scene.state.awaits(late), "the error belongs to the earlier attachment");
    assert!(!scene.screen(80, 24).contains("gone"));
    let (id, snapshot) =
        ("beta".parse().unwrap(), std::sync::Arc::new(crate::tui::scene::snapshot("beta")));
    scene.send(Message::Attached { attachment: late, id, snapshot });
    assert!(!scene.state.awaits(early) && scene.state.awaits(late));
    scene.press("ctrl+x d");
    assert!(!scene.state.awaits(late));
}

#[test]
fn m_e1_resume_opens_the_newest_used_session_of_this_folder() {
    let mut scene = Scene::hub();
    let last = |outcome| {
        Some(holdpoint_common::LastTurn { turn: TurnId(1), outcome, cause: None, error: None })
    };
    let reports = |scene: &mut Scene, name: &str, since, folder: &str, used: bool| {
        let folder = folder.to_owned();
        scene.reports_session(
            |session| {
                (session.since, session.workspace) = (Timestamp(since), folder);
                session.last_turn = if used { last(Outcome::Done) } else { None };
            },
            name,
        );
    };
    let resumes = |scene: &Scene| scene.state.hub.resumable().map(|session| session.name.clone());
    reports(&mut scene, "fresh", 90, "/code/project", false);
    assert_eq!(resumes(&scene), None);
    assert!(!scene.screen(80, 24).contains("Resume"));
    reports(&mut scene, "far", 80, "/elsewhere", true);
    assert_eq!(resumes(&scene).as_deref(), Some("far"));
    assert!(scene.screen(80, 24).contains("Resume far in /elsewhere"));
    reports(&mut scene, "old", 10, "/code/project", true);
    reports(&mut scene, "new", 20, "/code/project", true);
    assert_eq!(resumes(&scene).as_deref(), Some("new"));
}

#[test]
fn the_longest_waiting_ask_is_first_and_answered_in_the_hub() {
    let mut scene = Scene::hub();
    for (name, since) in [("late", 50), ("early", 10)] {
        let asked = ask(since, pause(PauseKind::Confirm, "ls"), Timestamp(since));
        scene.reports_session(
            |session| (session.waits_for, session.status) = (Some(asked), SessionStatus::Paused),
            name,
        );
    }
    let waiting: Vec<_> =
        scene.state.hub.waiting().iter().map(|session| session.name.clone()).collect();
    assert_eq!(waiting, ["early", "late"]);
    scene.press("tab");
    scene.screen(80, 24);
    assert_eq!(scene.later(200).press("y"), []);
    let commands = scene.later(300).press("y");
    assert!(
        matches!(&commands[..], [Command::Answer { ask, .. }] if ask.seq == 10),
        "{commands:?}"
    );
}

/// The hub, with an ask in the panel.
fn hub_asking(request: holdpoint_common::AskRequest) -> Scene {
    let mut scene = Scene::hub();
    let asked = ask(10, request, Timestamp(10));
    scene.reports_session(
        |session| (session.waits_for, session.status) = (Some(asked), SessionStatus::Paused),
        "alpha",
    );
    scene.press("tab");
    scene
}

#[test]
fn m_c5_esc_and_ctrl_c_in_the_hub_interrupt_the_turn_that_asks() {
    for key in ["esc", "ctrl+c"] {
        let mut scene = hub_asking(pause(PauseKind::Confirm, "ls"));
        // Interrupting needs no pause, drawn or not.
        let ask = "alpha.10".parse().unwrap();
        assert_eq!(scene.press(key), [Command::InterruptOther { ask }], "{key}");
        scene.reports_session(|_| {}, "alpha");
        assert!(scene.state.hub.panel_ask.is_none() && scene.state.notice.is_none());
    }
}

#[test]
fn m_a10_a_paste_in_the_hub_goes_into_the_open_answer() {
    let mut scene = hub_asking(pause(PauseKind::Confirm, "ls"));
    scene.screen(80, 24);
    scene.later(1000).send(Message::Paste("y\ny".to_owned()));
    assert_eq!(scene.later(300).press("r"), []);
    scene.screen(80, 24);
    scene.send(Message::Paste("not\ntoday".to_owned()));
    let commands = scene.later(1000).press("enter");
    assert_eq!(
        answers(&commands),
        [&Answer::Deny { reason: Some("not today".to_owned()), always: false }]
    );
    assert_eq!(scene.state.hub.filter, "", "nothing was pasted into the filter");
}

/// After another client closes the ask, keys go neither to the filter nor to the row under the
/// cursor.
#[test]
fn m_a10_keys_for_a_hub_ask_closed_elsewhere_are_dropped() {
    let mut scene = hub_asking(pause(PauseKind::Confirm, "ls"));
    scene.screen(80, 24);
    scene.later(1000).press("x");
    scene.reports_session(|_| {}, "alpha");
    for letter in " yes, do".chars() {
        scene.later(100).types(&letter.to_string());
    }
    scene.send(Message::Paste("pasted".to_owned()));
    assert_eq!(scene.later(299).press("enter"), []);
    assert_eq!(scene.state.hub.filter, "");
    scene.later(300).types("al");
    assert_eq!(scene.state.hub.filter, "al");
    assert!(matches!(scene.press("enter")[..], [Command::Open { .. }]));
    // The same after this user's own answer.
    let mut scene = hub_asking(pause(PauseKind::Confirm, "ls"));
    scene.screen(80, 24);
    assert_eq!(answers(&scene.later(300).press("y")), [&Answer::Approve { always: false }]);
    assert_eq!(scene.reports_session(|_| {}, "alpha").press("y enter"), []);
    assert_eq!(scene.state.hub.filter, "");
    scene.later(300).types("al");
    assert_eq!(scene.state.hub.filter, "al");
}

#[test]
fn m_a10_words_for_a_hub_ask_closed_elsewhere_are_dropped_with_a_notice() {
    let next = ask(20, pause(PauseKind::Confirm, "rm y"), Timestamp(20));
    for next in [None, Some(&next)] {
        let mut scene = hub_asking(pause(PauseKind::Confirm, "rm x"));
        assert!(scene.screen(80, 24).contains("⏸ alpha: shell"), "the panel names its session");
        scene.later(300).press("r");
        scene.types("not ");
        let mut summary = SessionSummary::from(&snapshot("alpha"));
        summary.waits_for = next.cloned();
        let ask: AskId = "alpha.10".parse().unwrap();
        let commands = scene.send(Message::SessionChanged(SessionNews::Session(Box::new(summary))));
        assert_eq!(commands, [Command::ReadAskEnd { ask: ask.clone() }]);
        let screen = scene.screen(80, 24);
        assert!(
            screen.contains("alpha: shell: answered or closed elsewhere; your words were not sent"),
            "{screen}"
        );
        // Then the session reports once how the ask was closed.
        let ended = |ask: &str, how: &str| Message::AskEnded {
            ask: ask.parse().unwrap(),
            how: how.to_owned(),
        };
        assert_eq!(scene.send(ended("alpha.9", "of another")), []);
        assert_eq!(scene.send(ended("alpha.10", "answered from the command line (pid 9)")), []);
        assert_eq!(scene.send(ended("alpha.10", "again")), []);
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
fn m_b9_a_narrow_hub_never_cuts_an_outcome() {
    for (live, width, expected) in [
        (true, 80, "idle (interrupted)"),
        (true, 40, " interrupted "),
        (false, 80, "saved, idle (interrupted)"),
        (false, 40, " saved "),
    ] {
        let mut scene = Scene::hub();
        let outcome = Outcome::Interrupted;
        let ended =
            holdpoint_common::LastTurn { turn: TurnId(1), outcome, cause: None, error: None };
        scene.reports_session(
            |session| (session.live, session.last_turn) = (live, Some(ended)),
            "alpha",
        );
        let screen = scene.screen(width, 12);
        assert!(
            screen.contains(expected)
                && !screen.contains("inter…")
                && !screen.contains("interrupt…"),
            "{screen}"
        );
    }
}

#[test]
fn m_b9_a_long_ask_is_read_and_answered_in_the_hub() {
    for (width, height) in [(80, 24), (40, 12)] {
        let mut scene = hub_asking(pause(
            PauseKind::Confirm,
            &format!("{}finis", "one more line\n".repeat(40)),
        ));
        let screen = scene.screen(width, height);
        assert!(
            screen.contains("[Y] Approve [N] Deny") && screen.contains("Run this command?"),
            "{screen}"
        );
        assert!(screen.contains("of 42: ↑ ↓ ─"), "Tab must not be offered for scrolling: {screen}");
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
            session.waits_for =
                Some(ask(seq, pause(PauseKind::Confirm, &format!("touch {seq}")), Timestamp(10)));
            session.status = SessionStatus::Paused;
        }
    };
    scene.reports_session(asked(10, 1), "alpha");
    assert!(scene.screen(80, 24).contains("| 1 ask needs you"));
    scene.reports_session(asked(10, 2), "alpha");
    let screen = scene.screen(80, 24);
    assert!(
        screen.contains("| 2 asks need you") && screen.contains("touch 10 (1 more)"),
        "{screen}"
    );
    assert_eq!(scene.state.title(), "(2) holdpoint");
    assert_eq!(scene.press("tab"), []);
    assert!(scene.screen(80, 24).contains("⏸ alpha: shell, 1 more waiting"));
    let answered = scene.later(300).press("y");
    assert!(
        matches!(&answered[..], [Command::Answer { ask, .. }] if ask.seq == 10),
        "{answered:?}"
    );
    scene.reports_session(asked(11, 1), "alpha");
    // The next ask has its own guard, and no key for it reaches the list.
    assert_eq!(scene.press("y"), []);
    let screen = scene.screen(80, 24);
    assert!(screen.contains("│ touch 11") && screen.contains("| 1 ask needs you"), "{screen}");
    assert_eq!(scene.later(299).press("y"), []);
    let answered = scene.later(300).press("y");
    assert!(
        matches!(&answered[..], [Command::Answer { ask, .. }] if ask.seq == 11),
        "{answered:?}"
    );
    scene.reports_session(|_| {}, "alpha");
    assert!(scene.state.hub.panel_ask.is_none());
    assert_eq!(scene.state.hub.filter, "");
    assert_eq!(scene.state.title(), "holdpoint");
}

/// The hub, with a running session whose ask was answered in the panel.
fn hub_working() -> Scene {
    let mut scene = hub_asking(pause(PauseKind::Confirm, "ls"));
    scene.screen(80, 24);
    assert_eq!(answers(&scene.later(300).press("y")), [&Answer::Approve { always: false }]);
    scene.reports_session(|session| session.status = SessionStatus::Running, "alpha");
    scene
}

/// The session raises another ask.
fn asks_again(scene: &mut Scene) {
    let asked = ask(11, pause(PauseKind::Confirm, "touch made"), Timestamp(20));
    scene.reports_session(
        |session| (session.waits_for, session.status) = (Some(asked), SessionStatus::Paused),
        "alpha",
    );
}

#[test]
fn m_b9_the_panel_stays_on_a_running_session_until_its_next_ask() {
    let mut scene = hub_working();
    let screen = scene.screen(80, 24);
    assert!(
        screen.contains("alpha: running") && screen.contains("Tab back to the list"),
        "{screen}"
    );
    // However late, no key or paste is a filter or opens anything.
    scene.later(1000).send(Message::Paste("y".to_owned()));
    assert_eq!(scene.press("y enter n up ctrl+d"), []);
    assert_eq!((&*scene.state.hub.filter, &scene.state.overlay), ("", &None));
    scene.reports_session(
        |session| (session.status, session.asks) = (SessionStatus::Running, 0),
        "alpha",
    );
    asks_again(&mut scene);
    assert!(scene.screen(80, 24).contains("│ touch made"));
    assert_eq!(scene.later(299).press("y"), []);
    let answered = scene.later(300).press("y");
    assert!(
        matches!(&answered[..], [Command::Answer { ask, .. }] if ask.seq == 11),
        "{answered:?}"
    );
    scene.reports_session(|session| session.status = SessionStatus::Running, "alpha");
    assert!(scene.screen(80, 24).contains("alpha: running"));
    // The turn ends: the list is back, and keys that were meant for the panel have no effect.
    scene.later(1000).reports_session(|_| {}, "alpha");
    let screen = scene.screen(80, 24);
    assert!(!screen.contains("Tab back") && screen.contains("Enter open"), "{screen}");
    assert_eq!(scene.later(299).press("y enter"), []);
    assert_eq!(scene.state.hub.filter, "");
    scene.later(300).types("al");
    assert_eq!(scene.state.hub.filter, "al");
}

#[test]
fn m_b9_esc_and_tab_leave_the_panel_of_a_running_session() {
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
        assert!(scene.state.hub.panel_ask.is_none(), "{key}");
    }
    // The panel does not follow a session that was held, interrupted or deleted.
    for change in [
        |session: &mut SessionSummary| {
            (session.hold, session.status) = (standing(HoldCause::Restored), SessionStatus::Paused);
        },
        |session: &mut SessionSummary| session.status = SessionStatus::Interrupted,
    ] {
        let mut scene = hub_working();
        scene.reports_session(change, "alpha");
        assert!(!scene.screen(80, 24).contains("Tab back"));
    }
    let mut scene = hub_working();
    scene.send(Message::SessionChanged(SessionNews::Deleted("alpha".parse().unwrap())));
    assert!(!scene.screen(80, 24).contains("Tab back"));
}

/// Esc leaves the panel of a running session, but interrupts one with an ask. Pressed just as an
/// ask appears, it was meant to leave.
#[test]
fn m_a10_esc_that_was_meant_to_leave_the_panel_interrupts_nothing() {
    for key in ["esc", "ctrl+c"] {
        let mut scene = hub_working();
        asks_again(&mut scene);
        assert_eq!(scene.later(1000).press(key), [], "not drawn: {key}");
        assert!(scene.state.hub.panel_ask.is_none());
        let mut scene = hub_working();
        asks_again(&mut scene);
        scene.screen(80, 24);
        assert_eq!(scene.later(299).press(key), [], "not read: {key}");
        assert!(scene.state.hub.panel_ask.is_none());
        let mut scene = hub_working();
        asks_again(&mut scene);
        scene.screen(80, 24);
        let ask = "alpha.11".parse().unwrap();
        assert_eq!(scene.later(300).press(key), [Command::InterruptOther { ask }], "{key}");
    }
}

#[test]
fn the_bell_rings_only_without_focus() {
    let mut scene = Scene::session();
    scene.turn("Go.");
    let ask = ask(9, pause(PauseKind::Confirm, "ls"), Timestamp(0));
    scene.snapshot.asks.push(ask.clone());
    let happened = |scene: &Scene| Message::Events {
        attachment: 1,
        events: vec![],
        snapshot: std::sync::Arc::new(scene.snapshot.clone()),
    };
    scene.send(Message::Focus(false));
    let message = happened(&scene);
    let commands = scene.send(message);
    assert!(
        matches!(&commands[..], [Command::Notify { text }] if text == "alpha needs you: shell"),
        "{commands:?}"
    );
    // One ask alerts once.
    let message = happened(&scene);
    assert_eq!(scene.send(message), []);
    scene.send(Message::Focus(true));
    scene.snapshot.asks[0].id.seq = 10;
    let message = happened(&scene);
    assert_eq!(scene.send(message), []);
}

#[test]
fn m_e1_a_typed_name_is_found_before_other_matches() {
    let mut scene = Scene::hub();
    let titled = |since, title: &'static str| {
        move |session: &mut holdpoint_common::SessionSummary| {
            (session.since, session.title) = (Timestamp(since), title.to_owned());
        }
    };
    let asked = ask(10, pause(PauseKind::Confirm, "ls"), Timestamp(10));
    scene
        .reports_session(titled(1, "the first"), "api")
        .reports_session(titled(2, "another"), "api-tests")
        .reports_session(titled(3, "mends the api"), "zeta")
        .reports_session(titled(4, "the newest"), "old-api")
        .reports_session(
            |session| {
                (session.title, session.waits_for) = ("asks of the api".to_owned(), Some(asked))
            },
            "waits",
        );
    let names = |scene: &Scene| {
        let rows = scene.state.hub.rows();
        rows.iter().filter_map(|row| row.session()).map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(names(&scene)[0], "waits", "without a filter, the most urgent row is first");
    scene.types("API");
    assert_eq!(names(&scene)[..3], ["api", "api-tests", "waits"]);
    let opened = scene.press("enter");
    assert!(
        matches!(&opened[..], [Command::Open { id, .. }] if id.as_str() == "api"),
        "{opened:?}"
    );
}

#[test]
fn an_open_error_is_shown_until_the_next_key() {
    let mut scene = Scene::hub();
    scene.reports_session(|_| {}, "alpha");
    let why = || "too many live sessions: the limit is 10".to_owned();
    let refused = |scene: &mut Scene| {
        let [Command::New { attachment, .. }] = scene.press("ctrl+x n")[..] else {
            panic!("no session is opened")
        };
        scene.send(Message::NotOpened { attachment, why: why() });
        assert!(scene.screen(80, 24).contains(&why()));
    };
    refused(&mut scene);
    scene.press("down");
    let screen = scene.screen(80, 24);
    assert!(!screen.contains(&why()) && screen.contains("Enter open"), "{screen}");
    // A key that tries again also removes it.
    refused(&mut scene);
    scene.press("ctrl+x n");
    assert!(!scene.screen(80, 24).contains(&why()));
}

#[test]
fn words_for_a_hub_ask_are_kept_while_it_is_left() {
    let mut scene = hub_asking(pause(PauseKind::Confirm, "ls"));
    scene.screen(80, 24);
    scene.later(300).press("r");
    scene.types("not tod");
    scene.press("tab tab");
    let screen = scene.screen(80, 24);
    assert!(screen.contains("[R] Deny and say why"), "{screen}");
    // The ask appears again, with a new guard.
    assert_eq!(scene.later(299).press("r y"), []);
    scene.later(300).press("r");
    scene.types("ay");
    let commands = scene.press("enter");
    assert_eq!(
        answers(&commands),
        [&Answer::Deny { reason: Some("not today".to_owned()), always: false }]
    );
}

#[test]
fn t_u5_the_list_marks_a_damaged_session() {
    let mut scene = Scene::hub();
    scene.reports_session(|_| {}, "whole");
    scene.reports_session(
        |session| session.gaps = [Gap { from: 3, to: 5 }].into_iter().collect(),
        "torn",
    );
    let screen = scene.screen(80, 24);
    assert_eq!(screen.matches("damaged, idle").count(), 1, "{screen}");
    scene.types("torn");
    let screen = scene.screen(80, 24);
    assert!(screen.contains("events 3 to 5 can't be read"), "{screen}");
}

#[test]
fn the_cursor_stays_on_its_row_while_sessions_arrive() {
    let mut scene = Scene::hub();
    scene.reports_session(|session| session.since = Timestamp(1), "first");
    scene.press("down");
    let chosen = |scene: &Scene| scene.state.hub.row().unwrap().session().unwrap().to_string();
    assert_eq!(chosen(&scene), "first");
    for number in 0..30 {
        scene.reports_session(
            |session| session.since = Timestamp(2 + number),
            &format!("session-{number}"),
        );
    }
    scene.press("down");
    assert_eq!(scene.state.hub.row(), Some(Row::Quit));
    scene.reports_session(|session| session.since = Timestamp(20_000), "newest");
    scene.screen(80, 24);
    assert_eq!(scene.state.hub.row(), Some(Row::Quit));
    // A paste goes to the first row, and stays there.
    scene.reports_session(|session| session.since = Timestamp(30_000), "session-newer");
    scene.send(Message::Paste("session-5".to_owned()));
    scene.screen(80, 24);
    assert_eq!(chosen(&scene), "session-5");
}
