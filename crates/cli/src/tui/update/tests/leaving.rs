//! Leaving: a session, the program, a daemon that was stopped.

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
    // Too late, or something else between: it begins anew.
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
    assert_eq!(scene.state.left, None, "it does not go on");
    let mut scene = Scene::session();
    scene.turn("Go.");
    assert_eq!(scene.press("ctrl+x d"), [Command::Quit]);
    assert_eq!(scene.state.left.as_ref(), Some(&scene.snapshot.settings.id));
}

#[test]
fn what_is_asked_before_something_ends_does_not_outlast_another_key() {
    for keys in ["ctrl+x d", "ctrl+x i", "ctrl+x n", "ctrl+x p", "ctrl+o"] {
        let mut scene = Scene::session();
        scene.turn("Go.").press("ctrl+x s");
        assert!(scene.state.overlay.is_some());
        scene.press(keys);
        assert_eq!(scene.state.overlay, None, "{keys}");
    }
    let mut hub = Scene::hub();
    hub.hears(|_| {}, "alpha").types("alpha");
    hub.press("ctrl+d");
    assert!(hub.state.overlay.is_some());
    hub.press("ctrl+x n");
    assert_eq!(hub.state.overlay, None);
}

#[test]
fn m_e1_an_untouched_session_is_forgotten_and_a_touched_one_is_not() {
    let mut scene = Scene::session();
    let id = scene.snapshot.settings.id.clone();
    assert_eq!(scene.press("esc"), [Command::Forget { id }, Command::Detach]);
    let mut scene = Scene::session();
    scene.turn("Go.").ended(Outcome::Done, None);
    assert_eq!(scene.press("esc"), [Command::Detach]);
    // Each of these alone is reason enough to keep it.
    let last = holdpoint_common::LastTurn { turn: TurnId(1), outcome: Outcome::Done, cause: None, error: None };
    let queued = holdpoint_common::QueuedPrompt { prompt: holdpoint_common::PromptId(1), text: "x".into() };
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
        scene.tell(Message::Happened { attachment: 1, events: vec![], snapshot });
        let commands = scene.press("ctrl+x d");
        assert!(!commands.iter().any(|command| matches!(command, Command::Forget { .. })), "{at}: {commands:?}");
    }
}

#[test]
fn m_e1_a_session_that_was_just_given_a_prompt_is_not_forgotten() {
    let id = Scene::session().snapshot.settings.id.clone();
    for keys in ["ctrl+x d", "ctrl+x s", "ctrl+x n", "ctrl+x i", "ctrl+c ctrl+c", "esc", "ctrl+d"] {
        let mut scene = Scene::session();
        scene.types("Go.");
        assert_eq!(scene.press("enter"), [Command::Prompt { text: "Go.".to_owned() }]);
        // That it was accepted is not told yet.
        let commands = scene.press(keys);
        assert!(!commands.iter().any(|command| matches!(command, Command::Forget { .. })), "{keys}: {commands:?}");
        assert!(scene.state.session.is_none());
        let goes_on = commands.contains(&Command::Quit).then_some(&id);
        assert_eq!(scene.state.left.as_ref(), goes_on, "{keys}");
    }
    // One that it did not take is none; another one may still be.
    let mut scene = Scene::session();
    scene.types("Go.");
    scene.press("enter");
    scene.types("On.");
    scene.press("enter");
    let refused = |text: &str| Message::PromptRefused { id: id.clone(), text: text.to_owned(), why: "no".to_owned() };
    scene.tell(refused("On."));
    scene.press("esc");
    assert!(!scene.state.session.as_ref().unwrap().is_untouched());
    scene.tell(refused("Go."));
    scene.press("esc");
    assert!(scene.state.session.as_ref().unwrap().is_untouched());
}

#[test]
fn m_b2_a_prompt_that_was_refused_is_unsent_until_it_is_sent_again_or_cleared() {
    let left = |keys: &str| {
        let mut scene = Scene::session();
        scene.types("Go.");
        scene.press("enter");
        let id = scene.snapshot.settings.id.clone();
        scene.tell(Message::PromptRefused { id, text: "Go.".to_owned(), why: "no".to_owned() });
        scene.press(keys);
        scene.press("ctrl+x d");
        scene.state.unsent().map(|refused| format!("{}: {}", refused.text, refused.why)).collect::<Vec<_>>()
    };
    assert_eq!(left("x"), ["Go.: no"]);
    assert_eq!(left("esc"), [""; 0]);
    assert_eq!(left("enter"), [""; 0]);
    // The session was left before that was told.
    let mut scene = Scene::session();
    let id = scene.snapshot.settings.id.clone();
    // And before anything was told of all sessions.
    scene.state.hub.remove(&id);
    scene.types("Go.");
    scene.press("enter ctrl+x d");
    scene.tell(Message::PromptRefused { id: id.clone(), text: "Go.".to_owned(), why: "no".to_owned() });
    assert!(scene.state.has_refused(&id, "Go."));
    assert_eq!(scene.state.unsent().count(), 1);
    let known = scene.state.hub.get(&id).map(|session| &session.name);
    assert_eq!(known, Some(&scene.snapshot.settings.name), "it is told by its name");
}

#[test]
fn m_b8_a_prompt_that_is_sent_again_is_not_the_one_that_was_refused() {
    let mut scene = Scene::session();
    let id = scene.snapshot.settings.id.clone();
    scene.types("Go.");
    scene.press("enter");
    scene.tell(Message::PromptRefused { id: id.clone(), text: "Go.".to_owned(), why: "no".to_owned() });
    assert!(scene.state.has_refused(&id, "Go."));
    assert_eq!(scene.press("enter"), [Command::Prompt { text: "Go.".to_owned() }]);
    assert!(!scene.state.has_refused(&id, "Go."), "its answer is not there yet");
}

#[test]
fn a_stopped_daemon_is_told_and_started_by_a_key_alone() {
    let mut scene = asking();
    scene.types("y");
    scene.tell(Message::Stopped);
    assert!(scene.screen(80, 24).contains("The daemon was stopped"));
    // No other key does anything, not even one that means something everywhere.
    for keys in ["y", "ctrl+x p", "ctrl+x ?", "n", "tab"] {
        assert_eq!(scene.later(1000).press(keys), [], "{keys}");
        assert!(scene.screen(80, 24).contains("The daemon was stopped"), "{keys}");
    }
    assert_eq!(scene.press("enter"), [], "typed on");
    assert_eq!(scene.later(300).press("enter"), [Command::Start]);
    assert!(scene.screen(80, 24).contains("is started again"));
    scene.tell(Message::Daemon { here: true });
    // What lay under it has a guard anew.
    assert_eq!(scene.press("y"), []);
    scene.tell(Message::Stopped);
    // Whoever was typing does not leave with a letter of it.
    scene.types("be quick about it");
    assert!(scene.screen(80, 24).contains("The daemon was stopped"));
    assert!(scene.later(300).press("q").contains(&Command::Quit));
    assert!(scene.state.left.is_none(), "nothing goes on");
}

#[test]
fn a_stopped_daemon_that_somebody_else_starts_is_back() {
    let mut scene = asking();
    scene.tell(Message::Stopped);
    scene.tell(Message::Daemon { here: true });
    let screen = scene.screen(80, 24);
    assert!(screen.contains("the daemon is back") && !screen.contains("was stopped"), "{screen}");
}

#[test]
fn m_b8_that_the_daemon_is_gone_again_is_told_at_once() {
    let mut scene = Scene::session();
    for here in [false, true, false] {
        scene.tell(Message::Daemon { here });
    }
    let screen = scene.screen(80, 24);
    assert!(screen.contains("the daemon is gone") && !screen.contains("is back"), "{screen}");
}

#[test]
fn m_b8_why_a_daemon_can_not_be_started_is_told_while_it_is_tried_again() {
    let mut scene = Scene::session();
    scene.tell(Message::Daemon { here: false });
    scene.tell(Message::Failed("the sessions can't be opened; look at it".to_owned()));
    scene.tell(Message::Daemon { here: false });
    let screen = scene.screen(80, 24);
    assert!(screen.contains("can't be opened; look at it"), "{screen}");
    scene.tell(Message::Daemon { here: true });
    assert!(scene.screen(80, 24).contains("the daemon is back"));
}

#[test]
fn who_leaves_for_a_session_that_is_not_opened_comes_back_to_their_draft() {
    let mut scene = Scene::session();
    scene.turn("Go.").ended(Outcome::Done, None);
    scene.types("half a thought");
    let [Command::New { attachment, .. }] = scene.press("ctrl+x n")[..] else { panic!("nothing is opened") };
    let why = "no more than 64 sessions".to_owned();
    let back = scene.tell(Message::NotOpened { attachment, why: why.clone() });
    let [Command::Open { id, attachment, .. }] = &back[..] else { panic!("{back:?}") };
    assert_eq!(*id, scene.snapshot.settings.id);
    let snapshot = std::sync::Arc::new(scene.snapshot.clone());
    scene.tell(Message::Attached { attachment: *attachment, id: id.clone(), snapshot });
    assert_eq!(draft(&scene), "half a thought");
    assert!(scene.screen(80, 24).contains(&why));
    // One that can't be come back to is not tried again and again.
    scene.press("ctrl+x s");
    let [Command::New { attachment, .. }] = scene.press("ctrl+x n")[..] else { panic!("nothing is opened") };
    assert_eq!(scene.tell(Message::NotOpened { attachment, why }), []);
}

#[test]
fn what_was_closed_before_it_is_shown_is_not_waited_for() {
    let mut hub = Scene::hub();
    hub.hears(|_| {}, "alpha").types("alpha");
    let [Command::Open { attachment, .. }] = hub.press("enter")[..] else { panic!("nothing is opened") };
    assert!(hub.screen(80, 24).contains("opening"));
    hub.tell(Message::Closed { attachment });
    let screen = hub.screen(80, 24);
    assert!(screen.contains("the session is closed") && !screen.contains("opening"), "{screen}");
}

#[test]
fn a_session_that_can_not_be_attached_again_is_left_for_the_hub() {
    let mut scene = Scene::session();
    scene.turn("Go.").ended(Outcome::Done, None);
    scene.types("draft");
    let why = "1 clients are attached".to_owned();
    assert_eq!(scene.tell(Message::NotOpened { attachment: 1, why: why.clone() }), [Command::Detach]);
    let screen = scene.screen(80, 24);
    assert!(scene.state.session.is_none() && screen.contains(&why), "{screen}");
    assert_eq!(scene.state.drafts.len(), 1);
}

#[test]
fn what_ctrl_c_does_next_is_told_as_long_as_it_does() {
    const TOLD: &str = "Ctrl+C again leaves";
    for begin in [Scene::session, Scene::hub] {
        let mut scene = begin();
        scene.press("ctrl+c");
        scene.later(1999).tell(Message::Tick);
        assert!(scene.screen(80, 24).contains(TOLD));
        scene.later(2).tell(Message::Tick);
        assert!(!scene.screen(80, 24).contains(TOLD));
        // Something else is wanted: then it does not leave.
        scene.press("ctrl+c x");
        assert!(!scene.screen(80, 24).contains(TOLD));
        assert_eq!(scene.press("ctrl+c"), []);
        scene.tell(Message::Paste("x".to_owned()));
        assert!(!scene.screen(80, 24).contains(TOLD));
        assert_eq!(scene.press("ctrl+c"), []);
    }
}

#[test]
fn what_is_cleared_can_be_brought_back() {
    for key in ["esc", "ctrl+c"] {
        let mut scene = Scene::session();
        scene.types("draft");
        scene.press(key);
        assert_eq!(draft(&scene), "");
        scene.press("up");
        assert_eq!(draft(&scene), "draft");
    }
}
