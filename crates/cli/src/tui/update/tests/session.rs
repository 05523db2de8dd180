//! Tests of typing, selecting and reading in a session.

use holdpoint_common::api::SessionNews;
use holdpoint_common::{
    AsksMode, Hold, HoldCause, HoldState, Outcome, SessionSummary, Timestamp, TurnId,
};

use super::{asking, draft};
use crate::tui::layout::Scroll;
use crate::tui::message::{Command, Message};
use crate::tui::scene::{OWN_PID, Scene, standing, user};

#[test]
fn m_d1_a_toggle_carries_what_was_shown() {
    let mut scene = asking();
    let toggle = |shown| vec![Command::ToggleHold { shown }];
    // The hold key works while a prompt is being typed or an ask is open.
    assert_eq!(scene.press("ctrl+x p"), toggle(HoldState::Off));
    scene.hold(Hold::Requested { cause: HoldCause::User { by: user() }, since: Timestamp(0) });
    assert_eq!(scene.press("ctrl+x p"), toggle(HoldState::Requested));
    scene.hold(standing(HoldCause::Restored));
    assert_eq!(scene.press("ctrl+x p"), toggle(HoldState::Standing));
    // Without a session it has no effect.
    assert_eq!(Scene::hub().press("ctrl+x p"), []);
}

#[test]
fn the_help_scrolls_back_at_once_from_its_end() {
    let mut scene = Scene::session();
    scene.press("ctrl+x ?");
    let mut pages = vec![scene.screen(80, 24)];
    for _ in 0..20 {
        scene.press("pgdn");
        pages.push(scene.screen(80, 24));
    }
    assert_eq!(pages[19], pages[20]);
    scene.press("up");
    assert_ne!(scene.screen(80, 24), pages[20]);
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
    scene.send(refused("alpha"));
    assert_eq!(draft(&scene), "do it\nnow");
    assert!(scene.screen(80, 24).contains("queue full"));
    scene.press("esc");
    assert_eq!(scene.press("enter"), []);
    scene.types("next");
    scene.send(refused("alpha"));
    assert_eq!(draft(&scene), "do it\nnow\nnext");
    // A refused prompt of another session goes back into that session's prompt.
    scene.send(refused("beta"));
    assert_eq!(draft(&scene), "do it\nnow\nnext");
    assert!(scene.screen(80, 24).contains("beta: queue full"));
    scene.reports_session(|_| {}, "beta").press("esc esc");
    scene.types("beta");
    let [Command::Open { attachment, .. }] = scene.press("enter")[..] else {
        panic!("no session is opened")
    };
    let (id, snapshot) =
        ("beta".parse().unwrap(), std::sync::Arc::new(crate::tui::scene::snapshot("beta")));
    scene.send(Message::Attached { attachment, id, snapshot });
    assert_eq!(draft(&scene), "do it\nnow");
    assert_eq!(scene.state.drafts, []);
}

#[test]
fn m_c5_returned_prompts_go_back_into_an_empty_input() {
    use holdpoint_common::{Fact, PromptFact, PromptId, Who};
    for typed in ["", "else"] {
        let mut scene = Scene::session();
        scene.turn("Go.");
        for (prompt, pid) in [(50, OWN_PID), (51, 99), (52, OWN_PID)] {
            let by = Who { name: "tui".to_owned(), pid: Some(pid) };
            scene.fact(Fact::Prompt(PromptFact::Accepted {
                prompt: PromptId(prompt),
                text: format!("next {prompt}").into(),
                by,
                typed_bytes: None,
                idempotency_key: None,
            }));
        }
        scene.types(typed);
        for prompt in [50, 51, 52] {
            scene.snapshot.seq += 1;
            scene.fact(Fact::Prompt(PromptFact::Returned {
                prompt: PromptId(prompt),
                text: format!("next {prompt}").into(),
            }));
        }
        let kept = if typed.is_empty() { "next 50\nnext 52" } else { "else" };
        assert_eq!(draft(&scene), kept);
    }
}

/// Scrolls up until the older past is fetched. Returns the attachment that replays it.
fn fetch_older(scene: &mut Scene) -> u64 {
    scene.state.session.as_mut().unwrap().older = true;
    scene.screen(80, 24);
    let [Command::Open { attachment, .. }] = scene.press("pgup")[..] else {
        panic!("no older facts are fetched")
    };
    let (id, snapshot) = ("alpha".parse().unwrap(), std::sync::Arc::new(scene.snapshot.clone()));
    scene.send(Message::Attached { attachment, id, snapshot });
    attachment
}

/// The past that is fetched repeats the acceptance and return of an older prompt.
#[test]
fn m_c5_a_prompt_returned_while_the_past_is_fetched_goes_back() {
    use holdpoint_common::{Fact, PromptFact, PromptId, Who};
    let accepted = |prompt| {
        let by = Who { name: "tui".to_owned(), pid: Some(OWN_PID) };
        let text = format!("next {prompt}").into();
        let prompt = PromptId(prompt);
        Fact::Prompt(PromptFact::Accepted {
            prompt,
            text,
            by,
            typed_bytes: None,
            idempotency_key: None,
        })
    };
    let returned = |prompt| {
        let text = format!("next {prompt}").into();
        Fact::Prompt(PromptFact::Returned { prompt: PromptId(prompt), text })
    };
    let mut scene = Scene::session();
    scene.turn("Go.").fact(accepted(50)).fact(accepted(51));
    let attachment = fetch_older(&mut scene);
    scene.replayed(3, accepted(49)).replayed(4, returned(49)).fact(returned(51));
    scene.send(Message::ReplayEnded { attachment });
    assert_eq!(draft(&scene), "next 51");
}

#[test]
fn long_errors_are_shown_in_full() {
    let mut scene = Scene::session();
    let why =
        format!("there is no key for openai; {}at the very end", "set it somewhere ".repeat(8));
    scene.send(Message::Failed(why));
    for (width, height) in [(80, 24), (40, 12)] {
        let screen = scene.screen(width, height);
        assert!(screen.contains("there is no key"), "{screen}");
        assert!(width < 80 || screen.contains("very end"), "{screen}");
        assert!(screen.contains("holdpoint | alpha") || screen.contains("alpha"), "{screen}");
    }
    let mut hub = Scene::hub();
    hub.send(Message::Watching);
    hub.send(Message::Failed("word ".repeat(30) + "end."));
    let screen = hub.screen(80, 24);
    assert!(screen.contains("end.") && !screen.contains("loading sessions"), "{screen}");
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
    assert_eq!(run("/asks deny"), [Command::Asks { asks: AsksMode::Deny }]);
    assert_eq!(run("/asks"), []);
    assert_eq!(run("/asks wait"), [], "the mode is the same");
    assert_eq!(run("/asks never"), []);
    assert_eq!(run("/debug"), [Command::Debug { enabled: true }]);
    assert_eq!(run("/interrupt"), [Command::Interrupt { turn: Some(TurnId(1)) }]);
    assert_eq!(
        run("/usr/bin/true fails"),
        [Command::Prompt { text: "/usr/bin/true fails".to_owned() }]
    );
    let mut idle = Scene::session();
    idle.types("/interrupt");
    assert_eq!(idle.press("enter"), []);
    assert!(idle.screen(80, 24).contains("nothing is running"));
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
    for (typed, becomes) in [
        ("/", "/"),
        ("/h", "/h"),
        ("/ho", "/hold"),
        ("/r", "/re"),
        ("/ren", "/rename "),
        ("/m", "/model "),
    ] {
        assert_eq!(completed(typed), becomes, "{typed}");
    }
    for typed in ["/quit", "/quit now", "/nonsense", "quit", "/usr/b"] {
        assert_eq!(completed(typed).trim_end(), typed, "nothing to complete");
    }
}

#[test]
fn calls_are_chosen_and_opened_one_by_one() {
    let mut scene = Scene::session();
    scene.turn("Go.");
    for call in 1..=30 {
        let status = holdpoint_common::ToolStatus::Ok;
        scene.called(call, &format!("step {call}")).finished(
            call,
            status,
            &format!("output {call}\nmore {call}\n"),
            "",
        );
    }
    scene.ended(Outcome::Done, None).types("draft");
    scene.screen(80, 24);
    let inside = |scene: &mut Scene, text: &str| scene.screen(80, 24).contains(text);
    scene.press("ctrl+up ctrl+up");
    assert_eq!(scene.press("enter"), [], "Enter opens the call and sends nothing");
    assert!(inside(&mut scene, "│ more 29") && !inside(&mut scene, "│ more 30"));
    scene.press("ctrl+o");
    assert!(!inside(&mut scene, "│ more 29"));
    // Up to the first call, which is always scrolled into view.
    scene.press(&["alt+up"; 40].join(" "));
    scene.press("enter");
    assert!(inside(&mut scene, "│ more 1\n"));
    scene.press("ctrl+down enter");
    assert!(inside(&mut scene, "│ more 2\n"));
    // Typed keys go to the prompt, and Enter sends again.
    scene.types("!");
    assert_eq!(scene.press("enter"), [Command::Prompt { text: "draft!".to_owned() }]);
    // Opening all calls also resets the calls that were opened one by one.
    scene.press("ctrl+o");
    assert!(inside(&mut scene, "│ more 30") && inside(&mut scene, "│ more 29"));
    // Nothing is selected after the last call. Esc first clears the selection, then leaves the
    // session.
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
fn scrolling_stays_put_while_text_arrives() {
    let mut scene = Scene::session();
    scene.turn("Go.");
    for number in 0..100 {
        scene.replies(number, &format!("Message {number}."));
    }
    scene.screen(80, 24);
    scene.press("pgup");
    let before = scene.screen(80, 24);
    for number in 100..120 {
        scene.replies(number, &format!("Message {number}."));
    }
    let now = scene.screen(80, 24);
    assert_eq!(before.lines().next(), now.lines().next());
    scene.press("ctrl+end");
    assert_eq!(scene.state.session.as_ref().unwrap().scroll, Scroll::End);
    assert!(scene.screen(80, 24).contains("Message 119."));
}

#[test]
fn choosing_an_earlier_call_without_any_does_not_scroll() {
    let mut scene = Scene::session();
    scene.turn("Go.");
    for number in 0..100 {
        scene.replies(number, &format!("Message {number}."));
    }
    scene.screen(80, 24);
    scene.press("pgup");
    let before = scene.screen(80, 24);
    scene.press("ctrl+up");
    assert_eq!(scene.screen(80, 24), before);
}

#[test]
fn scrolling_to_the_first_line_fetches_older_facts() {
    let mut scene = Scene::session();
    // As if only the newest facts had arrived.
    scene.state.session.as_mut().unwrap().older = true;
    scene.turn("Go.").replies(1, "The first that came.");
    scene.screen(80, 24);
    let commands = scene.press("pgup");
    let [Command::Open { attachment: 2, limit, .. }] = &commands[..] else {
        panic!("{commands:?}")
    };
    assert!(*limit > crate::tui::session::INITIAL_FACTS);
    // Events of the old attachment are ignored, and the old entries stay until the replay ends.
    scene.replies(9, "of the old stream");
    assert!(!scene.screen(80, 24).contains("of the old stream"));
    assert!(scene.screen(80, 24).contains("The first that came."));
    scene.send(Message::ReplayEnded { attachment: 2 });
    assert!(!scene.screen(80, 24).contains("The first that came."));
}

#[test]
fn commands_that_change_nothing_say_so() {
    let screen_after = |hold: Hold, text: &str| {
        let mut scene = Scene::session();
        scene.turn("Go.").hold(hold).types(text);
        assert_eq!(scene.press("enter"), [], "{text}");
        scene.screen(80, 24)
    };
    let requested =
        || Hold::Requested { cause: HoldCause::User { by: user() }, since: Timestamp(0) };
    let held = || standing(HoldCause::Restored);
    assert!(screen_after(held(), "/hold").contains("the session is already held"));
    assert!(
        screen_after(requested(), "/pause")
            .contains("a hold at the next boundary is already requested")
    );
    assert!(screen_after(Hold::Off, "/release").contains("the session is not held"));
    assert!(screen_after(Hold::Off, "/model rehearsal").contains("the model is already rehearsal"));
    let mut scene = Scene::session();
    scene.turn("Go.").hold(requested()).types("/play");
    assert_eq!(scene.press("enter"), [Command::Release]);
}

#[test]
fn a_hold_that_lets_a_turn_reach_its_boundary_is_noted_once() {
    let restored = || standing(HoldCause::Restored);
    let requested = || Hold::Requested { cause: HoldCause::Restored, since: Timestamp(0) };
    let counts = |scene: &mut Scene| {
        let screen = scene.screen(80, 24);
        ["⏸ PAUSED (restored)", "▶ released"].map(|note| screen.matches(note).count())
    };
    let mut scene = Scene::session();
    scene.turn("Go.").hold(restored()).hold(requested()).hold(restored());
    assert_eq!(counts(&mut scene), [1, 0]);
    // After another entry it is noted again: a run's iteration may take long.
    scene.hold(requested()).replies(1, "So much is done.").hold(restored());
    assert_eq!(counts(&mut scene), [2, 0]);
    // Released before its boundary.
    scene.hold(requested()).hold(Hold::Off);
    assert_eq!(counts(&mut scene), [2, 1]);
    // Held again.
    scene.hold(restored());
    assert_eq!(counts(&mut scene), [3, 1]);
    // A hold that was never in force is not lifted.
    let mut scene = Scene::session();
    scene.turn("Go.").hold(requested()).hold(Hold::Off);
    assert_eq!(counts(&mut scene), [0, 0]);
}

#[test]
fn fetching_older_facts_duplicates_no_history_entry() {
    let mut scene = Scene::session();
    scene.state.session.as_mut().unwrap().limit = 1;
    let run_turns = |scene: &mut Scene, texts: &[&str]| {
        for text in texts {
            scene.turn(text).ended(Outcome::Done, None);
        }
    };
    let recall = |scene: &mut Scene, times: usize| {
        scene.press(&["up"; 9][..times].join(" "));
        let recalled = draft(scene);
        scene.press("esc");
        recalled
    };
    run_turns(&mut scene, &["one", "two"]);
    assert_eq!(
        (recall(&mut scene, 1), recall(&mut scene, 2), recall(&mut scene, 9)),
        ("two".into(), "one".into(), "one".into())
    );
    let attachment = fetch_older(&mut scene);
    run_turns(&mut scene, &["zero", "one", "two"]);
    scene.send(Message::ReplayEnded { attachment });
    let all: Vec<_> = (1..=4).map(|times| recall(&mut scene, times)).collect();
    assert_eq!(all, ["two", "one", "zero", "zero"]);
}

#[test]
fn a_closed_session_can_be_read_and_left_by_commands() {
    let run = |text: &str| {
        let mut scene = Scene::session();
        scene.turn("Go.").ended(Outcome::Done, None);
        scene.send(Message::Closed { attachment: 1 });
        scene.types(text);
        let commands = scene.press("enter");
        (commands, scene)
    };
    assert_eq!(run("/quit").0, [Command::Quit]);
    let (_, mut help) = run("/help");
    assert!(help.screen(80, 24).contains("┌ Help"), "{}", help.screen(80, 24));
    assert!(!run("/steps").1.state.session.unwrap().steps);
}

#[test]
fn m_b4_enter_or_another_client_reopens_a_closed_session() {
    let closed = || {
        let mut scene = Scene::session();
        scene.reports_session(|_| {}, "alpha").turn("say one").ended(Outcome::Done, None);
        scene.send(Message::Closed { attachment: 1 });
        scene.reports_session(|session| session.live = false, "alpha");
        scene
    };
    let opens = |commands: &[Command]| match commands {
        [Command::Detach, Command::Open { id, attachment, .. }] if id.as_str() == "alpha" => {
            *attachment
        }
        other => panic!("{other:?}"),
    };
    let mut scene = closed();
    // Old news, or news of another session, has no effect.
    assert!(scene.screen(80, 24).contains("Enter open again"));
    scene.reports_session(|_| {}, "beta");
    assert_eq!(scene.state.attachments, 1);
    let summary = SessionSummary::from(&scene.snapshot);
    let news = SessionNews::Session(Box::new(SessionSummary { live: true, ..summary }));
    // News alone does not open it: the other client may have closed it again.
    let attachment = match &scene.send(Message::SessionChanged(news.clone()))[..] {
        [Command::Detach, Command::ShowLive { id, attachment, .. }] if id.as_str() == "alpha" => {
            *attachment
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(scene.send(Message::SessionChanged(news)), [], "a second report has no effect");
    scene.send(Message::Closed { attachment });
    assert!(scene.screen(80, 24).contains("Enter open again"), "the session stays closed");
    for typed in ["", "/rename it", "say more"] {
        let mut scene = closed();
        // The older past can't be fetched without opening it.
        scene.state.session.as_mut().unwrap().older = true;
        scene.screen(80, 24);
        assert_eq!(scene.press("pgup ctrl+home"), []);
        scene.types(typed);
        let refused = opens(&scene.press("enter"));
        scene.send(Message::NotOpened { attachment: refused, why: "no room".to_owned() });
        let screen = scene.screen(80, 24);
        assert!(
            screen.contains("no room") && screen.contains("say one") && screen.contains("closed"),
            "{screen}"
        );
        assert_eq!(opens(&scene.press("enter")), attachment + 1);
        let (id, snapshot) =
            (scene.snapshot.settings.id.clone(), std::sync::Arc::new(scene.snapshot.clone()));
        scene.send(Message::Attached { attachment: attachment + 1, id, snapshot });
        scene.turn("say one").ended(Outcome::Done, None);
        scene.send(Message::ReplayEnded { attachment: attachment + 1 });
        let screen = scene.screen(80, 24);
        assert!(!screen.contains("closed") && screen.matches("say one").count() == 1, "{screen}");
        assert_eq!(draft(&scene), typed);
    }
}

#[test]
fn a_long_wrapped_prompt_is_shown_in_full() {
    let mut scene = Scene::session();
    // No two words of 20 letters fit on a row of 38.
    let words: Vec<_> = (1..=6).map(|number| format!("{number}{}", "x".repeat(19))).collect();
    scene.types(&words.join(" "));
    let screen = scene.screen(40, 24);
    assert!(words.iter().all(|word| screen.contains(word)), "{screen}");
}

#[test]
fn m_d6_the_clock_stops_without_a_connection() {
    let mut scene = Scene::session();
    scene.turn("Go.").later(5_000).send(Message::Tick);
    let bar = |scene: &mut Scene| scene.screen(80, 24).lines().nth(22).unwrap().to_owned();
    let before = bar(&mut scene);
    assert!(before.contains("00:00:05"), "{before}");
    scene.send(Message::Lost { attachment: 1 });
    scene.later(3_000).send(Message::Lost { attachment: 1 });
    // Another connection to the daemon may be up already.
    scene.send(Message::Daemon { running: true });
    assert_eq!(bar(scene.later(60_000)), before);
    assert_eq!(scene.state.next_tick(), None, "no animation is left");
    let (id, snapshot) = ("alpha".parse().unwrap(), std::sync::Arc::new(scene.snapshot.clone()));
    scene.send(Message::Attached { attachment: 1, id, snapshot });
    assert!(bar(&mut scene).contains("00:01:08"), "{}", bar(&mut scene));
    assert!(scene.state.next_tick().is_some());
}

#[test]
fn events_do_not_copy_a_long_paste_and_take_linear_time() {
    let mut scene = Scene::session();
    let paste = "x".repeat(10 << 20);
    scene.send(Message::Paste(paste.clone()));
    let session = scene.state.session.as_mut().unwrap();
    for _ in 0..1_000_000 {
        session.add(&[]);
    }
    assert_eq!(draft(&scene), paste);
}
