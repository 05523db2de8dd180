//! The status line: the bar, and the model, folder and usage at its right.

use holdpoint_common::{
    ContextFill, Delta, Hold, HoldAt, HoldCause, Outcome, Run, RunLimits, RunProgress, RunSettings, Task, TaskId,
    TaskState, Timestamp, Usage,
};

use super::shows;
use crate::tui::message::Message;
use crate::tui::scene::{Scene, standing, user};

/// In the third iteration of a run: as the status bar is written down.
fn iterating() -> Scene {
    let mut scene = Scene::session();
    let progress = RunProgress { iteration: 3, worked_ms: 754_000, ..RunProgress::default() };
    let settings =
        RunSettings { goal: "Be done.".to_owned(), limits: RunLimits::default(), hold_at: HoldAt::Iteration };
    scene.snapshot.run = Some(Run { progress, ..Run::begun(settings) });
    let states =
        [TaskState::Done, TaskState::Doing, TaskState::Done, TaskState::Todo, TaskState::Todo, TaskState::Todo];
    let task = |(id, state)| Task { id: TaskId(id), title: format!("task {id}"), state };
    scene.snapshot.tasks = std::sync::Arc::new((1..).zip(states).map(task).collect());
    let files = (1..=5).map(|file| format!("{file}.rs")).collect();
    scene.snapshot.files_modified = std::sync::Arc::new(files);
    scene.turn("Go.");
    scene
}

/// The status line at this width.
fn status_line(scene: &mut Scene, width: u16) -> String {
    scene.screen(width, 24).lines().nth(22).unwrap().to_owned()
}

/// The status bar at this width, without what the session works with at its right.
fn bar(scene: &mut Scene, width: u16) -> String {
    let line = status_line(scene, width);
    line.split("  model ").next().unwrap_or_default().trim_end().to_owned()
}

#[test]
fn the_right_of_the_status_line_says_what_the_session_works_with_and_has_used() {
    let mut scene = Scene::session();
    scene.snapshot.usage = Usage { input: 4_100, output: 733, cost: Some(12_300), ..Usage::default() };
    scene.snapshot.context = Some(ContextFill { tokens: 12_000, limit: 100_000 });
    scene.delta(Delta::SavedAgain);
    let attachment = scene.state.session.as_ref().unwrap().attachment;
    scene.tell(Message::Branch { attachment, branch: Some("main".to_owned()) });
    let all = "model rehearsal  folder project  branch main  context 12% of 100k  4.8k tokens  cost 0.0123";
    assert!(status_line(&mut scene, 180).ends_with(&format!(" {all}")), "{}", status_line(&mut scene, 180));
    // Narrower and narrower: segments go, none is cut, and how full the context is stays the longest.
    let whole: Vec<_> = all.split("  ").chain(["context 12%"]).collect();
    for width in (12..=120).rev() {
        let line = status_line(&mut scene, width);
        let right = line.trim_start_matches("holdpoint | alpha").trim_start_matches("alpha").trim_start();
        assert!(right.is_empty() || right.split("  ").all(|segment| whole.contains(&segment)), "{width}: {line}");
        assert_eq!(right.is_empty(), width < 30, "{width}: {line}");
    }
    let other = Message::Branch { attachment: attachment + 1, branch: None };
    scene.tell(other);
    assert!(status_line(&mut scene, 180).contains("branch main"), "that was of another attachment");
}

#[test]
fn m_d6_the_status_bar_is_whole_segments_then_what_it_does() {
    let mut scene = iterating();
    let all = "holdpoint | alpha | 00:12:34 | Iteration #3 | ✓2 ●1 ○3 | 5 files modified";
    assert_eq!(bar(&mut scene, 80), format!("{all} ◐"));
    shows("run", &mut scene);
    scene.hold(Hold::Requested { cause: HoldCause::User { by: user() }, since: Timestamp(0) });
    assert_eq!(bar(&mut scene, 90), format!("{all} ◐ PAUSING..."));
    scene.confirms("ls");
    let asks = "◐ PAUSING..., asks you";
    assert!(scene.screen(100, 24).contains(&format!("{all} {asks}")), "{}", scene.screen(100, 24));
    scene.snapshot.asks.clear();
    scene.delta(Delta::SavedAgain);
    scene.state.notice = None;
    scene.hold(standing(HoldCause::User { by: user() }));
    assert_eq!(bar(&mut scene, 90), format!("{all} ⏸ PAUSED"));
    // Narrower and narrower: segments go or are written shorter, none is cut, and the label always stays.
    let whole = ["holdpoint", "alpha", "00:12:34", "Iteration #3", "#3", "✓2 ●1 ○3", "5 files modified", "5 files"];
    for width in (12..=90).rev() {
        let bar = bar(&mut scene, width);
        let said = bar.strip_suffix("⏸ PAUSED").unwrap_or_else(|| panic!("{width}: {bar}")).trim_end();
        assert!(said.is_empty() || said.split(" | ").all(|segment| whole.contains(&segment)), "{width}: {bar}");
    }
    // What counts tasks stays where it is while they change.
    let place = |bar: &str| bar.find("5 files").unwrap();
    let before = place(&bar(&mut scene, 90));
    scene.snapshot.tasks = std::sync::Arc::new(
        scene.snapshot.tasks.iter().cloned().map(|task| Task { state: TaskState::Done, ..task }).collect(),
    );
    scene.delta(Delta::SavedAgain);
    assert_eq!(place(&bar(&mut scene, 90)), before);
}

#[test]
fn m_d6_segments_with_nothing_to_say_are_left_out() {
    let mut scene = Scene::session();
    assert_eq!(bar(&mut scene, 80), "holdpoint | alpha");
    scene.snapshot.worked_ms = 61_000;
    scene.turn("Go.").ended(Outcome::Done, None);
    assert_eq!(bar(&mut scene, 80), "holdpoint | alpha | 00:01:01");
    // And it counts on while it works.
    scene.turn("Go on.").later(9_000);
    assert_eq!(bar(&mut scene, 80), "holdpoint | alpha | 00:01:10 ◐");
}
