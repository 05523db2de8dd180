//! What keys and messages do, one by one.

use holdpoint_common::{
    Answer, Ask, Hold, HoldCause, HoldShown, Outcome, PauseKind, PromptId, SessionStatus, Timestamp, TurnId,
};

use super::super::layout::Scroll;
use super::super::message::{Command, Message};
use super::super::scene::{Scene, ask, pause, standing, user};

fn draft(scene: &Scene) -> String {
    scene.state.session.as_ref().unwrap().prompt.text()
}

fn asking() -> Scene {
    let mut scene = Scene::session();
    scene.turn("Go.").confirms("touch made");
    scene
}

fn answers(commands: &[Command]) -> Vec<&Answer> {
    commands
        .iter()
        .filter_map(|command| match command {
            Command::Answer { answer, .. } => Some(answer),
            _ => None,
        })
        .collect()
}

#[test]
fn m_a10_keys_count_from_300_ms_after_the_ask_was_drawn() {
    let mut scene = asking();
    // Not on the screen: whatever the time, nothing is approved.
    assert_eq!(scene.later(10_000).press("y"), []);
    scene.screen(80, 24);
    assert_eq!(scene.later(299).press("y"), []);
    assert_eq!(answers(&scene.later(1).press("y")), [&Answer::Approve { always: false }]);
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
    assert_eq!(answers(&scene.later(2).press("n")), [&Answer::Deny { reason: None }]);
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
        assert_eq!(answers(&scene.later(1).press("y")), [&Answer::Approve { always: false }]);
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
        assert_eq!(answers(&scene.later(1).press("y")), [&Answer::Approve { always: false }]);
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
    let commands = scene.later(100).press("Y");
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
    scene.delta(holdpoint_common::Delta::SavedAgain).types("!");
    assert_eq!(draft(&scene), "a draft!");
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
fn m_d1_a_toggle_carries_what_was_shown() {
    let mut scene = asking();
    let toggle = |shown| vec![Command::ToggleHold { shown }];
    // Above any prompt.
    assert_eq!(scene.press("ctrl+x p"), toggle(HoldShown::Off));
    scene.hold(Hold::Requested { by: user(), since: Timestamp(0) });
    assert_eq!(scene.press("ctrl+x p"), toggle(HoldShown::Requested));
    scene.hold(standing(HoldCause::Restored));
    assert_eq!(scene.press("ctrl+x p"), toggle(HoldShown::Standing));
    // Without a session it does nothing.
    assert_eq!(Scene::hub().press("ctrl+x p"), []);
}

#[test]
fn m_d7_esc_and_unknown_keys_leave_the_prefix() {
    for key in ["esc", "z", "ctrl+x"] {
        let mut scene = Scene::session();
        scene.turn("Go.");
        assert_eq!(scene.press("ctrl+x"), []);
        assert!(scene.screen(80, 24).contains("ctrl+x p pause"));
        assert_eq!(scene.press(key), [], "{key}");
        assert!(scene.state.prefix.is_none());
    }
}

#[test]
fn prompts_are_sent_and_come_back_if_they_are_refused() {
    let mut scene = Scene::session();
    scene.types("do it");
    scene.press("alt+enter");
    scene.types("now");
    assert_eq!(scene.press("enter"), [Command::Prompt { text: "do it\nnow".to_owned() }]);
    assert_eq!(draft(&scene), "");
    let refused = |name: &str| Message::PromptRefused {
        id: name.parse().unwrap(),
        text: "do it\nnow".to_owned(),
        why: "queue full".to_owned(),
    };
    scene.tell(refused("alpha"));
    assert_eq!(draft(&scene), "do it\nnow");
    assert!(scene.screen(80, 24).contains("queue full"));
    scene.press("esc");
    assert_eq!(scene.press("enter"), []);
    scene.types("next");
    scene.tell(refused("alpha"));
    assert_eq!(draft(&scene), "do it\nnow\nnext");
    // Of another session, it is typed again there.
    scene.tell(refused("beta"));
    assert_eq!(draft(&scene), "do it\nnow\nnext");
    assert!(scene.screen(80, 24).contains("beta: queue full"));
    scene.hears(|_| {}, "beta").press("esc esc");
    scene.types("beta");
    let [Command::Open { attachment, .. }] = scene.press("enter")[..] else { panic!("nothing is opened") };
    let (id, snapshot) = ("beta".parse().unwrap(), std::sync::Arc::new(super::super::scene::snapshot("beta")));
    scene.tell(Message::Attached { attachment, id, snapshot });
    assert_eq!(draft(&scene), "do it\nnow");
    assert_eq!(scene.state.refused, []);
}

#[test]
fn m_c5_what_is_handed_back_is_typed_again_unless_something_else_is() {
    use holdpoint_common::{Fact, PromptId, Who};
    for typed in ["", "else"] {
        let mut scene = Scene::session();
        scene.turn("Go.");
        for (prompt, pid) in [(50, super::super::scene::OWN), (51, 99), (52, super::super::scene::OWN)] {
            let by = Who { name: "tui".to_owned(), pid: Some(pid) };
            scene.fact(Fact::PromptAccepted { prompt: PromptId(prompt), text: format!("next {prompt}"), by });
        }
        scene.types(typed);
        for prompt in [50, 51, 52] {
            scene.snapshot.seq += 1;
            scene.fact(Fact::PromptReturned { prompt: PromptId(prompt), text: format!("next {prompt}") });
        }
        let kept = if typed.is_empty() { "next 50\nnext 52" } else { "else" };
        assert_eq!(draft(&scene), kept);
    }
}

#[test]
fn what_went_wrong_is_told_whole() {
    let mut scene = Scene::session();
    let why = format!("there is no key for openai; {}at the very end", "set it somewhere ".repeat(8));
    scene.tell(Message::Failed(why));
    for (width, height) in [(80, 24), (40, 12)] {
        let screen = scene.screen(width, height);
        assert!(screen.contains("there is no key"), "{screen}");
        assert!(width < 80 || screen.contains("very end"), "{screen}");
        assert!(screen.contains("holdpoint | alpha") || screen.contains("alpha"), "{screen}");
    }
    let mut hub = Scene::hub();
    hub.tell(Message::Watching);
    hub.tell(Message::Failed("word ".repeat(30) + "end."));
    let screen = hub.screen(80, 24);
    assert!(screen.contains("end.") && !screen.contains("looking for"), "{screen}");
}

#[test]
fn commands_are_typed_and_paths_are_prompts() {
    let run = |text: &str| {
        let mut scene = Scene::session();
        scene.turn("Go.").types(text);
        scene.press("enter")
    };
    assert_eq!(run("/hold"), [Command::Hold]);
    assert_eq!(run("/rename new name"), [Command::Rename { name: "new name".to_owned() }]);
    assert_eq!(run("/model openai/gpt-5"), [Command::Model { name: "openai/gpt-5".to_owned() }]);
    assert_eq!(run("/model"), []);
    assert_eq!(run("/debug"), [Command::Debug { enabled: true }]);
    assert_eq!(run("/interrupt"), [Command::Interrupt { turn: Some(TurnId(1)) }]);
    assert_eq!(run("/usr/bin/true fails"), [Command::Prompt { text: "/usr/bin/true fails".to_owned() }]);
    let mut idle = Scene::session();
    idle.types("/interrupt");
    assert_eq!(idle.press("enter"), []);
    assert!(idle.screen(80, 24).contains("nothing runs"));
    assert_eq!(run("/nonsense"), []);
    assert_eq!(run("/quit"), []);
}

#[test]
fn tab_completes_commands_as_far_as_they_agree() {
    let completed = |text: &str| {
        let mut scene = Scene::session();
        scene.types(text);
        assert_eq!(scene.press("tab"), []);
        scene.state.session.as_ref().unwrap().prompt.text()
    };
    for (typed, becomes) in
        [("/", "/"), ("/h", "/h"), ("/ho", "/hold"), ("/r", "/re"), ("/ren", "/rename "), ("/m", "/model ")]
    {
        assert_eq!(completed(typed), becomes, "{typed}");
    }
    for typed in ["/quit", "/quit now", "/nonsense", "quit", "/usr/b"] {
        assert_eq!(completed(typed).trim_end(), typed, "nothing to complete");
    }
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
    assert_eq!(scene.state.left_behind(), None, "it does not go on");
    let mut scene = Scene::session();
    scene.turn("Go.");
    assert_eq!(scene.press("ctrl+x d"), [Command::Quit]);
    assert_eq!(scene.state.left_behind().as_deref(), Some("alpha"));
}

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
    let (id, snapshot) = ("beta".parse().unwrap(), std::sync::Arc::new(super::super::scene::snapshot("beta")));
    scene.tell(Message::Attached { attachment: late, id, snapshot });
    assert!(!scene.state.awaits(early) && scene.state.awaits(late));
    scene.press("ctrl+x d");
    assert!(!scene.state.awaits(late));
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
    let queued = holdpoint_common::QueuedPrompt { prompt: holdpoint_common::PromptId(1), text: "x".to_owned() };
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
    let commands = scene.later(100).press("y");
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
        assert!(scene.state.hub.asking.is_none());
    }
}

#[test]
fn m_a10_what_is_pasted_in_the_hub_are_words_for_what_is_asked() {
    let mut scene = hub_asking(pause(PauseKind::Confirm, "ls"));
    scene.screen(80, 24);
    scene.later(1000).tell(Message::Paste("y\ny".to_owned()));
    assert_eq!(scene.press("r"), []);
    scene.screen(80, 24);
    scene.tell(Message::Paste("not\ntoday".to_owned()));
    let commands = scene.later(1000).press("enter");
    assert_eq!(answers(&commands), [&Answer::Deny { reason: Some("not today".to_owned()) }]);
    assert_eq!(scene.state.hub.filter, "", "none of it is a filter");
}

#[test]
fn calls_are_chosen_and_opened_one_by_one() {
    let mut scene = Scene::session();
    scene.turn("Go.");
    for call in 1..=30 {
        let came = holdpoint_common::ToolStatus::Ok;
        scene.called(call, &format!("step {call}")).came(call, came, &format!("output {call}\nmore {call}\n"), "");
    }
    scene.ended(Outcome::Done, None).types("draft");
    scene.screen(80, 24);
    let inside = |scene: &mut Scene, text: &str| scene.screen(80, 24).contains(text);
    scene.press("ctrl+up ctrl+up");
    assert_eq!(scene.press("enter"), [], "it opens the call, and sends nothing");
    assert!(inside(&mut scene, "│ more 29") && !inside(&mut scene, "│ more 30"));
    scene.press("ctrl+o");
    assert!(!inside(&mut scene, "│ more 29"));
    // As far up as there are calls, and always in sight.
    scene.press(&["alt+up"; 40].join(" "));
    scene.press("enter");
    assert!(inside(&mut scene, "│ more 1\n"));
    scene.press("ctrl+down enter");
    assert!(inside(&mut scene, "│ more 2\n"));
    // What is typed goes to the prompt, and Enter sends again.
    scene.types("!");
    assert_eq!(scene.press("enter"), [Command::Prompt { text: "draft!".to_owned() }]);
    // All of them, but what was opened before is as all are.
    scene.press("ctrl+o");
    assert!(inside(&mut scene, "│ more 30") && inside(&mut scene, "│ more 29"));
    // Behind the last one none is chosen; and Esc first leaves the choice, then the session.
    scene.press("ctrl+up ctrl+down");
    assert!(!inside(&mut scene, "choose"));
    scene.press("ctrl+up");
    assert!(inside(&mut scene, "choose"));
    assert_eq!(scene.press("esc"), []);
    assert_eq!(scene.press("esc"), [Command::Detach]);
}

#[test]
fn m_a10_esc_interrupts_whatever_is_chosen() {
    let mut scene = Scene::session();
    scene.turn("Go.").called(1, "sleep 9").press("ctrl+up");
    let turn = scene.snapshot.turn;
    assert_eq!(scene.press("esc"), [Command::Interrupt { turn }]);
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
    assert_eq!(scene.press("enter"), [Command::Start]);
    assert!(scene.screen(80, 24).contains("is started again"));
    scene.tell(Message::Daemon { here: true });
    // What lay under it has a guard anew.
    assert_eq!(scene.press("y"), []);
    scene.tell(Message::Stopped);
    assert!(scene.press("q").contains(&Command::Quit));
}

#[test]
fn scrolling_stays_put_while_text_arrives() {
    let mut scene = Scene::session();
    scene.turn("Go.");
    for number in 0..100 {
        scene.said(number, &format!("Message {number}."));
    }
    scene.screen(80, 24);
    scene.press("pgup");
    let before = scene.screen(80, 24);
    for number in 100..120 {
        scene.said(number, &format!("Message {number}."));
    }
    let now = scene.screen(80, 24);
    assert_eq!(before.lines().next(), now.lines().next());
    scene.press("ctrl+end");
    assert_eq!(scene.state.session.as_ref().unwrap().scroll, Scroll::End);
    assert!(scene.screen(80, 24).contains("Message 119."));
}

#[test]
fn older_facts_are_fetched_at_the_first_line_and_take_its_place() {
    let mut scene = Scene::session();
    // As if only the newest had come.
    scene.state.session.as_mut().unwrap().older = true;
    scene.turn("Go.").said(1, "The first that came.");
    scene.screen(80, 24);
    let commands = scene.press("pgup");
    let [Command::Open { attachment: 2, limit, .. }] = &commands[..] else { panic!("{commands:?}") };
    assert!(*limit > super::super::session::PAST);
    // What comes of the one before is no longer of interest, and what is there stays until all has come.
    scene.said(9, "of the old stream");
    assert!(!scene.screen(80, 24).contains("of the old stream"));
    assert!(scene.screen(80, 24).contains("The first that came."));
    scene.tell(Message::Live { attachment: 2 });
    assert!(!scene.screen(80, 24).contains("The first that came."));
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
            let queued = |number| holdpoint_common::QueuedPrompt { prompt: PromptId(number), text: "x".to_owned() };
            scene.snapshot.queue = (1..=5).map(queued).collect();
            scene.delta(holdpoint_common::Delta::SavedAgain);
            scene.tell(Message::Failed("word ".repeat(100)));
            for size in ["usual", "large"] {
                let screen = scene.screen(width, height);
                assert!(screen.contains("Run this command?"), "{size}: {screen}");
                assert!(screen.contains("[Y] Approve [N] Deny (Esc to interrupt)"), "{size}: {screen}");
                assert!(screen.contains("lines 1-"), "{size}: {screen}");
                scene.press("end");
                assert!(scene.screen(width, height).contains("finis"), "{size}");
                scene.press("tab");
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
fn commands_that_change_nothing_say_so() {
    let told = |hold: Hold, text: &str| {
        let mut scene = Scene::session();
        scene.turn("Go.").hold(hold).types(text);
        assert_eq!(scene.press("enter"), [], "{text}");
        scene.screen(80, 24)
    };
    let requested = || Hold::Requested { by: user(), since: Timestamp(0) };
    let held = || standing(HoldCause::Restored);
    assert!(told(held(), "/hold").contains("it is held already"));
    assert!(told(requested(), "/pause").contains("it pauses at the next boundary already"));
    assert!(told(Hold::Off, "/release").contains("it is not held"));
    assert!(told(Hold::Off, "/model rehearsal").contains("rehearsal is its model"));
    let mut scene = Scene::session();
    scene.turn("Go.").hold(requested()).types("/play");
    assert_eq!(scene.press("enter"), [Command::Release]);
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
    assert!(scene.screen(80, 24).contains("⏸ shell, 1 more waits"));
    let answered = scene.later(300).press("y");
    assert!(matches!(&answered[..], [Command::Answer { ask, .. }] if ask.seq == 10), "{answered:?}");
    scene.hears(asked(11, 1), "alpha");
    // The next one has a guard of its own, and no key of it is for the list.
    assert_eq!(scene.press("y"), []);
    let screen = scene.screen(80, 24);
    assert!(screen.contains("│ touch 11") && screen.contains("| 1 waits for you"), "{screen}");
    assert_eq!(scene.later(299).press("y"), []);
    let answered = scene.later(1).press("y");
    assert!(matches!(&answered[..], [Command::Answer { ask, .. }] if ask.seq == 11), "{answered:?}");
    scene.hears(|_| {}, "alpha");
    assert!(scene.state.hub.asking.is_none());
    assert_eq!(scene.state.hub.filter, "");
    assert_eq!(scene.state.title(), "holdpoint");
}
