//! Tests of leaving a session, the program, or a stopped daemon.

use holdpoint_common::{Outcome, TurnId};

use super::{asking, draft};
use crate::tui::message::{Command, Message};
use crate::tui::scene::Scene;

#[test]
fn m_a10_ctrl_c_with_nothing_running_clears_and_leaves_the_second_time() {
    let mut scene = Scene::session();
    scene.types("draft");
    assert_eq!(scene.press("ctrl+c"), []);
    assert_eq!(draft(&scene), "");
    // Too late, or with another key between, the count starts again.
    assert_eq!(scene.later(2001).press("ctrl+c"), []);
    scene.types("x");
    assert_eq!(scene.press("ctrl+c"), []);
    let commands = scene.later(1999).press("ctrl+c");
    assert!(commands.contains(&Command::Quit), "{commands:?}");
}

#[test]
fn esc_clears_the_draft_then_goes_back() {
    let mut scene = Scene::session();
    scene.turn("Go.").ended(Outcome::Done, None);
    scene.types("draft");
    assert_eq!(scene.press("esc"), []);
    assert_eq!(draft(&scene), "");
    assert_eq!(scene.press("esc"), [Command::Detach]);
    assert!(scene.state.session.is_none());
}

#[test]
fn leaving_a_running_session_asks_and_detaching_does_not() {
    let mut scene = Scene::session();
    scene.turn("Go.");
    assert_eq!(scene.press("ctrl+x s"), []);
    assert_eq!(scene.press("esc"), []);
    assert_eq!(scene.press("ctrl+x q enter"), [Command::Quit]);
    let mut scene = Scene::session();
    scene.turn("Go.");
    let id = scene.snapshot.settings.id.clone();
    assert_eq!(scene.press("ctrl+x s c"), [Command::Close { id: id.clone() }, Command::Detach]);
    let mut scene = Scene::session();
    scene.turn("Go.");
    assert_eq!(scene.press("ctrl+x q c"), [Command::Close { id }, Command::Quit]);
    assert_eq!(scene.state.detached, None, "a closed session is not named");
    let mut scene = Scene::session();
    scene.turn("Go.");
    assert_eq!(scene.press("ctrl+x d"), [Command::Quit]);
    assert_eq!(scene.state.detached.as_ref(), Some(&scene.snapshot.settings.id));
}

#[test]
fn another_action_closes_an_open_confirmation() {
    for keys in ["ctrl+x d", "ctrl+x i", "ctrl+x n", "ctrl+x p", "ctrl+o"] {
        let mut scene = Scene::session();
        scene.turn("Go.").press("ctrl+x s");
        assert!(scene.state.overlay.is_some());
        scene.press(keys);
        assert_eq!(scene.state.overlay, None, "{keys}");
    }
    let mut hub = Scene::hub();
    hub.reports_session(|_| {}, "alpha").types("alpha");
    hub.press("ctrl+d");
    assert!(hub.state.overlay.is_some());
    hub.press("ctrl+x n");
    assert_eq!(hub.state.overlay, None);
}

#[test]
fn m_e1_only_an_untouched_session_is_deleted_on_leaving() {
    let mut scene = Scene::session();
    let id = scene.snapshot.settings.id.clone();
    assert_eq!(scene.press("esc"), [Command::DiscardUnused { id }, Command::Detach]);
    let mut scene = Scene::session();
    scene.turn("Go.").ended(Outcome::Done, None);
    assert_eq!(scene.press("esc"), [Command::Detach]);
    // Each of these alone is a reason to keep it.
    let last = holdpoint_common::LastTurn {
        turn: TurnId(1),
        outcome: Outcome::Done,
        cause: None,
        error: None,
    };
    let queued =
        holdpoint_common::QueuedPrompt { prompt: holdpoint_common::PromptId(1), text: "x".into() };
    let touches: [&dyn Fn(&mut holdpoint_common::Snapshot); 4] = [
        &|snapshot| snapshot.last_turn = Some(last.clone()),
        &|snapshot| snapshot.queue = vec![queued.clone()],
        &|snapshot| snapshot.clients = 2,
        &|snapshot| snapshot.turn = Some(TurnId(1)),
    ];
    for (at, touch) in touches.iter().enumerate() {
        let mut scene = Scene::session();
        touch(&mut scene.snapshot);
        let snapshot = std::sync::Arc::new(scene.snapshot.clone());
        scene.send(Message::Events { attachment: 1, events: vec![], snapshot });
        let commands = scene.press("ctrl+x d");
        assert!(
            !commands.iter().any(|command| matches!(command, Command::DiscardUnused { .. })),
            "{at}: {commands:?}"
        );
    }
}

#[test]
fn m_e1_a_session_with_a_prompt_in_flight_is_not_deleted() {
    let id = Scene::session().snapshot.settings.id.clone();
    for keys in ["ctrl+x d", "ctrl+x s", "ctrl+x n", "ctrl+x i", "ctrl+c ctrl+c", "esc", "ctrl+d"] {
        let mut scene = Scene::session();
        scene.types("Go.");
        assert_eq!(scene.press("enter"), [Command::Prompt { text: "Go.".to_owned() }]);
        // The prompt's acceptance has not been reported yet.
        let commands = scene.press(keys);
        assert!(
            !commands.iter().any(|command| matches!(command, Command::DiscardUnused { .. })),
            "{keys}: {commands:?}"
        );
        assert!(scene.state.session.is_none());
        let detached = commands.contains(&Command::Quit).then_some(&id);
        assert_eq!(scene.state.detached.as_ref(), detached, "{keys}");
    }
    // A refused prompt does not count, but another one may.
    let mut scene = Scene::session();
    scene.types("Go.");
    scene.press("enter");
    scene.types("On.");
    scene.press("enter");
    let refused = |text: &str| Message::PromptRefused {
        id: id.clone(),
        text: text.to_owned(),
        why: "no".to_owned(),
    };
    scene.send(refused("On."));
    scene.press("esc");
    assert!(!scene.state.session.as_ref().unwrap().is_untouched());
    scene.send(refused("Go."));
    scene.press("esc");
    assert!(scene.state.session.as_ref().unwrap().is_untouched());
}

#[test]
fn m_b2_a_refused_prompt_is_kept_until_it_is_resent_or_cleared() {
    let left = |keys: &str| {
        let mut scene = Scene::session();
        scene.types("Go.");
        scene.press("enter");
        let id = scene.snapshot.settings.id.clone();
        scene.send(Message::PromptRefused { id, text: "Go.".to_owned(), why: "no".to_owned() });
        scene.press(keys);
        scene.press("ctrl+x d");
        scene
            .state
            .refused_prompts()
            .map(|refused| format!("{}: {}", refused.text, refused.why))
            .collect::<Vec<_>>()
    };
    assert_eq!(left("x"), ["Go.: no"]);
    assert_eq!(left("esc"), [""; 0]);
    assert_eq!(left("enter"), [""; 0]);
    // The session was left before the refusal was reported.
    let mut scene = Scene::session();
    let id = scene.snapshot.settings.id.clone();
    // The hub has not received the list of sessions yet.
    scene.state.hub.remove(&id);
    scene.types("Go.");
    scene.press("enter ctrl+x d");
    scene.send(Message::PromptRefused {
        id: id.clone(),
        text: "Go.".to_owned(),
        why: "no".to_owned(),
    });
    assert!(scene.state.has_refused(&id, "Go."));
    assert_eq!(scene.state.refused_prompts().count(), 1);
    let known = scene.state.hub.get(&id).map(|session| &session.name);
    assert_eq!(known, Some(&scene.snapshot.settings.name), "the hub must know its name");
}

#[test]
fn m_b8_resending_a_prompt_forgets_its_refusal() {
    let mut scene = Scene::session();
    let id = scene.snapshot.settings.id.clone();
    scene.types("Go.");
    scene.press("enter");
    scene.send(Message::PromptRefused {
        id: id.clone(),
        text: "Go.".to_owned(),
        why: "no".to_owned(),
    });
    assert!(scene.state.has_refused(&id, "Go."));
    assert_eq!(scene.press("enter"), [Command::Prompt { text: "Go.".to_owned() }]);
    assert!(!scene.state.has_refused(&id, "Go."), "the second prompt has no reply yet");
}

#[test]
fn a_stopped_daemon_is_shown_and_started_only_by_a_key() {
    let mut scene = asking();
    scene.types("y");
    scene.send(Message::Stopped);
    assert!(scene.screen(80, 24).contains("The daemon was stopped"));
    // Other keys have no effect, even those that otherwise always work.
    for keys in ["y", "ctrl+x p", "ctrl+x ?", "n", "tab"] {
        assert_eq!(scene.later(1000).press(keys), [], "{keys}");
        assert!(scene.screen(80, 24).contains("The daemon was stopped"), "{keys}");
    }
    assert_eq!(scene.press("enter"), [], "too soon after a key");
    assert_eq!(scene.later(300).press("enter"), [Command::StartDaemon]);
    assert!(scene.screen(80, 24).contains("restarting it"));
    scene.send(Message::Daemon { running: true });
    // The ask below the panel has a new guard.
    assert_eq!(scene.press("y"), []);
    scene.send(Message::Stopped);
    // A letter typed as the panel appears does not leave.
    scene.types("be quick about it");
    assert!(scene.screen(80, 24).contains("The daemon was stopped"));
    assert!(scene.later(300).press("q").contains(&Command::Quit));
    assert!(scene.state.detached.is_none(), "no session to return to");
}

#[test]
fn a_daemon_started_by_another_client_closes_the_panel() {
    let mut scene = asking();
    scene.send(Message::Stopped);
    scene.send(Message::Daemon { running: true });
    let screen = scene.screen(80, 24);
    assert!(screen.contains("the daemon is back") && !screen.contains("was stopped"), "{screen}");
}

#[test]
fn m_b8_a_second_loss_of_the_daemon_is_shown_at_once() {
    let mut scene = Scene::session();
    for running in [false, true, false] {
        scene.send(Message::Daemon { running });
    }
    let screen = scene.screen(80, 24);
    assert!(screen.contains("the daemon is gone") && !screen.contains("is back"), "{screen}");
}

#[test]
fn m_b8_the_start_error_of_the_daemon_stays_during_retries() {
    let mut scene = Scene::session();
    scene.send(Message::Daemon { running: false });
    scene.send(Message::Failed("the sessions can't be opened; look at it".to_owned()));
    scene.send(Message::Daemon { running: false });
    let screen = scene.screen(80, 24);
    assert!(screen.contains("can't be opened; look at it"), "{screen}");
    scene.send(Message::Daemon { running: true });
    assert!(scene.screen(80, 24).contains("the daemon is back"));
}

#[test]
fn a_failed_open_returns_to_the_previous_session_and_its_draft() {
    let mut scene = Scene::session();
    scene.turn("Go.").ended(Outcome::Done, None);
    scene.types("half a thought");
    let [Command::New { attachment, .. }] = scene.press("ctrl+x n")[..] else {
        panic!("no session is opened")
    };
    let why = "no more than 64 sessions".to_owned();
    let back = scene.send(Message::NotOpened { attachment, why: why.clone() });
    let [Command::Open { id, attachment, .. }] = &back[..] else { panic!("{back:?}") };
    assert_eq!(*id, scene.snapshot.settings.id);
    let snapshot = std::sync::Arc::new(scene.snapshot.clone());
    scene.send(Message::Attached { attachment: *attachment, id: id.clone(), snapshot });
    assert_eq!(draft(&scene), "half a thought");
    assert!(scene.screen(80, 24).contains(&why));
    // A session that the user can't return to is not tried again.
    scene.press("ctrl+x s");
    let [Command::New { attachment, .. }] = scene.press("ctrl+x n")[..] else {
        panic!("no session is opened")
    };
    assert_eq!(scene.send(Message::NotOpened { attachment, why }), []);
}

#[test]
fn a_session_closed_while_opening_is_not_awaited() {
    let mut hub = Scene::hub();
    hub.reports_session(|_| {}, "alpha").types("alpha");
    let [Command::Open { attachment, .. }] = hub.press("enter")[..] else {
        panic!("no session is opened")
    };
    assert!(hub.screen(80, 24).contains("opening"));
    hub.send(Message::Closed { attachment });
    let screen = hub.screen(80, 24);
    assert!(screen.contains("the session is closed") && !screen.contains("opening"), "{screen}");
}

#[test]
fn a_failed_reattach_returns_to_the_hub() {
    let mut scene = Scene::session();
    scene.turn("Go.").ended(Outcome::Done, None);
    scene.types("draft");
    let why = "1 clients are attached".to_owned();
    assert_eq!(
        scene.send(Message::NotOpened { attachment: 1, why: why.clone() }),
        [Command::Detach]
    );
    let screen = scene.screen(80, 24);
    assert!(scene.state.session.is_none() && screen.contains(&why), "{screen}");
    assert_eq!(scene.state.drafts.len(), 1);
}

#[test]
fn the_ctrl_c_hint_is_shown_as_long_as_it_applies() {
    const HINT: &str = "Ctrl+C again to leave";
    for begin in [Scene::session, Scene::hub] {
        let mut scene = begin();
        scene.press("ctrl+c");
        scene.later(1999).send(Message::Tick);
        assert!(scene.screen(80, 24).contains(HINT));
        scene.later(2).send(Message::Tick);
        assert!(!scene.screen(80, 24).contains(HINT));
        // Other input cancels it.
        scene.press("ctrl+c x");
        assert!(!scene.screen(80, 24).contains(HINT));
        assert_eq!(scene.press("ctrl+c"), []);
        scene.send(Message::Paste("x".to_owned()));
        assert!(!scene.screen(80, 24).contains(HINT));
        assert_eq!(scene.press("ctrl+c"), []);
    }
}

#[test]
fn cleared_input_can_be_recalled() {
    for key in ["esc", "ctrl+c"] {
        let mut scene = Scene::session();
        scene.types("draft");
        scene.press(key);
        assert_eq!(draft(&scene), "");
        scene.press("up");
        assert_eq!(draft(&scene), "draft");
    }
}
