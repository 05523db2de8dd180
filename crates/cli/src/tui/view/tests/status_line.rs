//! Tests of the status line: the bar, and the model, folder and usage at its right end.

use holdpoint_common::{
    ContextFill, Delta, Hold, HoldAt, HoldCause, Outcome, Run, RunLimits, RunProgress, RunSettings,
    Task, TaskId, TaskState, Timestamp, Usage,
};

use super::shows;
use crate::tui::message::Message;
use crate::tui::scene::{Scene, standing, user};

/// The third iteration of a run.
fn iterating() -> Scene {
    let mut scene = Scene::session();
    let progress = RunProgress { iteration: 3, worked_ms: 754_000, ..RunProgress::default() };
    let settings = RunSettings {
        goal: "Be done.".to_owned(),
        limits: RunLimits::default(),
        hold_at: HoldAt::Iteration,
    };
    scene.snapshot.run = Some(Run { progress, ..Run::new(settings) });
    let states = [
        TaskState::Done,
        TaskState::Doing,
        TaskState::Done,
        TaskState::Todo,
        TaskState::Todo,
        TaskState::Todo,
    ];
    let task = |(id, state)| Task { id: TaskId(id), title: format!("task {id}"), state };
    scene.snapshot.tasks = std::sync::Arc::new((1..).zip(states).map(task).collect());
    let files = (1..=5).map(|file| format!("{file}.rs")).collect();
    scene.snapshot.files_modified = std::sync::Arc::new(files);
    scene.turn("Go.");
    scene
}

fn status_line(scene: &mut Scene, width: u16) -> String {
    scene.screen(width, 24).lines().nth(22).unwrap().to_owned()
}

/// The status bar at this width, without the right end of the line.
fn bar(scene: &mut Scene, width: u16) -> String {
    let line = status_line(scene, width);
    line.split("  model ").next().unwrap_or_default().trim_end().to_owned()
}

#[test]
fn the_status_line_ends_with_model_folder_and_usage() {
    let mut scene = Scene::session();
    scene.snapshot.usage =
        Usage { input: 4_100, output: 733, cost: Some(12_300), ..Usage::default() };
    scene.snapshot.context = Some(ContextFill { tokens: 12_000, limit: 100_000 });
    // Any event brings the changed snapshot to the screen.
    scene.delta(Delta::SavedAgain);
    let attachment = scene.state.session.as_ref().unwrap().attachment;
    scene.send(Message::Branch { attachment, branch: Some("main".to_owned()) });
    let all = "model rehearsal  folder project  branch main  context 12% of 100k  4.8k tokens  cost 0.0123";
    assert!(
        status_line(&mut scene, 180).ends_with(&format!(" {all}")),
        "{}",
        status_line(&mut scene, 180)
    );
    // On narrower screens, segments are left out but none is cut; the fill of the context stays
    // longest.
    let whole: Vec<_> = all.split("  ").chain(["context 12%"]).collect();
    for width in (12..=120).rev() {
        let line = status_line(&mut scene, width);
        let right =
            line.trim_start_matches("holdpoint | alpha").trim_start_matches("alpha").trim_start();
        assert!(
            right.is_empty() || right.split("  ").all(|segment| whole.contains(&segment)),
            "{width}: {line}"
        );
        // 30 columns: the bar, two spaces and `context 12%`.
        assert_eq!(right.is_empty(), width < 30, "{width}: {line}");
    }
    let other = Message::Branch { attachment: attachment + 1, branch: None };
    scene.send(other);
    assert!(
        status_line(&mut scene, 180).contains("branch main"),
        "the message belongs to another attachment"
    );
}

#[test]
fn m_d6_the_status_bar_shows_whole_segments_then_the_label() {
    let mut scene = iterating();
    let all = "holdpoint | alpha | 00:12:34 | Iteration #3 | ✓2 ●1 ○3 | 5 files modified";
    assert_eq!(bar(&mut scene, 80), format!("{all} ◐"));
    shows("run", &mut scene);
    scene.hold(Hold::Requested { cause: HoldCause::User { by: user() }, since: Timestamp(0) });
    assert_eq!(bar(&mut scene, 90), format!("{all} ◐ PAUSING..."));
    scene.confirms("ls");
    let asks = "◐ PAUSING..., waiting for approval";
    assert!(scene.screen(110, 24).contains(&format!("{all} {asks}")), "{}", scene.screen(110, 24));
    scene.snapshot.asks.clear();
    scene.delta(Delta::SavedAgain);
    scene.state.notice = None;
    scene.hold(standing(HoldCause::User { by: user() }));
    assert_eq!(bar(&mut scene, 90), format!("{all} ⏸ PAUSED"));
    // On narrower screens, segments are left out or shortened but none is cut; the label always
    // stays.
    let whole = [
        "holdpoint",
        "alpha",
        "00:12:34",
        "Iteration #3",
        "#3",
        "✓2 ●1 ○3",
        "5 files modified",
        "5 files",
    ];
    for width in (12..=90).rev() {
        let bar = bar(&mut scene, width);
        let segments =
            bar.strip_suffix("⏸ PAUSED").unwrap_or_else(|| panic!("{width}: {bar}")).trim_end();
        assert!(
            segments.is_empty() || segments.split(" | ").all(|segment| whole.contains(&segment)),
            "{width}: {bar}"
        );
    }
    // The task counts keep their width while tasks change.
    let place = |bar: &str| bar.find("5 files").unwrap();
    let before = place(&bar(&mut scene, 90));
    scene.snapshot.tasks = std::sync::Arc::new(
        scene
            .snapshot
            .tasks
            .iter()
            .cloned()
            .map(|task| Task { state: TaskState::Done, ..task })
            .collect(),
    );
    scene.delta(Delta::SavedAgain);
    assert_eq!(place(&bar(&mut scene, 90)), before);
}

#[test]
fn m_d6_empty_segments_are_left_out() {
    let mut scene = Scene::session();
    assert_eq!(bar(&mut scene, 80), "holdpoint | alpha");
    scene.snapshot.worked_ms = 61_000;
    scene.turn("Go.").ended(Outcome::Done, None);
    assert_eq!(bar(&mut scene, 80), "holdpoint | alpha | 00:01:01");
    // The time keeps counting during a turn.
    scene.turn("Go on.").later(9_000);
    assert_eq!(bar(&mut scene, 80), "holdpoint | alpha | 00:01:10 ◐");
}
