//! The user's notify command, which runs when a session waits for an answer.

use std::time::Instant;

use holdpoint_common::api::SessionNews;
use holdpoint_common::{Answer, PolicyMode};
use rustix::process::Signal;

use super::harness::DaemonWorld;
use crate::world::{Ran, patience};

/// Waits until the command has written at least `lines` lines and returns them.
fn notifications(house: &DaemonWorld, lines: usize) -> Vec<String> {
    let by = Instant::now() + patience();
    loop {
        let output = std::fs::read_to_string(house.0.path("home/told")).unwrap_or_default();
        if output.lines().count() >= lines && output.ends_with('\n') {
            return output.lines().map(str::to_owned).collect();
        }
        assert!(Instant::now() < by, "{output}");
        std::thread::yield_now();
    }
}

/// An ask that is answered while the command runs for other asks causes no notification.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ask_answered_before_its_notification_is_not_notified() {
    let house = DaemonWorld::new();
    // The command ends when this world is gone, at the latest.
    let waits = "until test -e ~/go || ! test -d ~; do sleep 0.01; done";
    house.0.config(&format!("[notify]\ncommand = 'echo $HOLDPOINT_NAME >> ~/told; {waits}'\n"));
    house.start();
    let asks = async |name: &str| {
        let session = house
            .sessions()
            .open(house.session().policy(PolicyMode::Ask).name(name))
            .await
            .unwrap();
        session.prompt("shell: touch a").await.unwrap();
        session
    };
    // The command runs for this many asks at once.
    for name in ["a", "b", "c", "d"] {
        asks(name).await;
    }
    notifications(&house, 4);
    let mut news = house.sessions().watch().await.unwrap();
    let late = asks("late").await;
    let id = late.id().clone();
    let mut shown = async |open: bool| loop {
        match news.next().await.unwrap() {
            SessionNews::Session(now) if now.id == id && now.waits_for.is_some() == open => {
                return now.waits_for;
            }
            _ => {}
        }
    };
    let ask = shown(true).await.unwrap();
    late.answer(&ask.id, Answer::Deny { reason: None, always: false }).await.unwrap();
    shown(false).await;
    asks("last").await;
    std::fs::write(house.0.path("home/go"), "").unwrap();
    let lines = notifications(&house, 5);
    assert_eq!(lines[4..], ["last"], "{lines:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_ask_is_notified_once() {
    let house = DaemonWorld::new();
    let line =
        "$HOLDPOINT_ASK $HOLDPOINT_SESSION $HOLDPOINT_NAME $HOLDPOINT_TOOL $HOLDPOINT_MESSAGE";
    house.0.config(&format!("[notify]\ncommand = 'echo \"{line}\" >> ~/told'\n"));
    house.start();
    let open = house.session().policy(PolicyMode::Ask).name("one");
    let session = house.sessions().open(open).await.unwrap();
    session.prompt("shell: touch a\nshell: touch b\nshell: touch c").await.unwrap();
    let first = notifications(&house, 1)[0].clone();
    let ask = house.sessions().inbox().await.unwrap()[0].ask.id.clone();
    assert_eq!(
        first,
        format!("{ask} {} one shell Run this command without a sandbox?", session.id())
    );
    // The command runs for the next ask when that becomes the one to answer.
    session.answer(&ask, Answer::Deny { reason: None, always: false }).await.unwrap();
    let second = notifications(&house, 2)[1].clone();
    assert!(second != first && second.contains(session.id().as_str()), "{second}");
    // After a restart the ask is open again, and the command does not run for it again, but for
    // another session's.
    house.signal(Signal::KILL);
    house.wait_gone();
    house.start();
    let session = house.sessions().get(session.id().as_str()).await.unwrap();
    let other =
        house.sessions().open(house.session().policy(PolicyMode::Ask).name("two")).await.unwrap();
    other.prompt("shell: touch d").await.unwrap();
    let lines = notifications(&house, 3);
    assert!(lines.len() == 3 && lines[2].contains(" two shell "), "{lines:?}");
    // The next ask of "one" was raised before the restart, but is shown only now.
    let shown = session.snapshot().asks[0].id.clone();
    assert!(lines[1].starts_with(&format!("{shown} ")), "{lines:?}");
    session.answer(&shown, Answer::Deny { reason: None, always: false }).await.unwrap();
    let lines = notifications(&house, 4);
    assert!(lines.len() == 4 && lines[3].contains(" one shell "), "{lines:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_notify_command_and_its_processes_end_with_the_daemon() {
    let house = DaemonWorld::new();
    house.0.config("[notify]\ncommand = 'sleep 1000 & echo $! >> ~/told; wait'\n");
    house.start();
    let session = house.sessions().open(house.session().policy(PolicyMode::Ask)).await.unwrap();
    session.prompt("shell: touch a").await.unwrap();
    let stat = format!("/proc/{}/stat", notifications(&house, 1)[0]);
    house.run(&["daemon", "stop"]).code(0);
    // Gone, or a zombie that its new parent has not reaped.
    let by = Instant::now() + patience();
    while std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z ")) {
        assert!(Instant::now() < by, "the process is still alive");
        std::thread::yield_now();
    }
}

/// A question may contain anything: characters that a variable can't hold are escaped, and long
/// text is cut.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_with_any_characters_is_notified() {
    let house = DaemonWorld::new();
    house
        .0
        .config("[notify]\ncommand = 'echo \"$HOLDPOINT_NAME: $HOLDPOINT_MESSAGE\" >> ~/told'\n");
    house.start();
    let asks = async |name: &str, question: &str| {
        let input = serde_json::json!({ "questions": [{ "id": "a", "header": "A", "question": question }] });
        let session = house.sessions().open(house.session().name(name)).await.unwrap();
        session.prompt(format!("call ask_user {input}")).await.unwrap();
    };
    asks("nul", "How\0ever?").await;
    assert_eq!(notifications(&house, 1), ["nul: How\\u{0}ever?"]);
    asks("long", &"漢".repeat(2_000)).await;
    let long = &notifications(&house, 2)[1];
    assert!(
        long.starts_with("long: 漢") && long.ends_with("漢…") && long.len() < 5000,
        "{} bytes",
        long.len()
    );
}

/// The command runs on the user's current desktop, and not where the daemon was started.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_command_has_the_desktop_of_the_client_that_connected_last() {
    let house = DaemonWorld::new();
    let line = "$DISPLAY $WAYLAND_DISPLAY $XAUTHORITY $DBUS_SESSION_BUS_ADDRESS $LANG";
    let echo = format!("echo \"$HOLDPOINT_NAME: {line} ${{XDG_RUNTIME_DIR##*/}}\"");
    house.0.config(&format!("[notify]\ncommand = '{echo} >> ~/told'\n"));
    let run = |args: &[&str], env: &[(&str, &str)]| {
        let mut command = house.0.command(args);
        command.envs(env.iter().copied());
        Ran::of(command).code(0);
    };
    let mut asked = 0;
    let mut next = async || {
        asked += 1;
        let open = house.session().policy(PolicyMode::Ask).name(asked.to_string());
        house.sessions().open(open).await.unwrap().prompt("shell: touch a").await.unwrap();
        notifications(&house, asked).pop().unwrap()
    };
    let (bus, key) =
        (("DBUS_SESSION_BUS_ADDRESS", "unix:path=/a,guid=1"), ("XAUTHORITY", "/home/me/a key"));
    run(&["daemon", "start"], &[("DISPLAY", ":start"), key]);
    assert_eq!(next().await, "1: :start  /home/me/a key   run");
    // A client without a desktop changes nothing.
    run(&["list"], &[]);
    run(&["list"], &[("DISPLAY", ":1"), bus]);
    assert_eq!(next().await, "2: :1   unix:path=/a,guid=1  run");
    run(&["new", "--model", "rehearsal"], &[("WAYLAND_DISPLAY", "wayland-2")]);
    assert_eq!(next().await, "3:  wayland-2    run");
    // A client that has logged in from elsewhere has a bus and no display.
    run(&["list"], &[bus]);
    assert_eq!(next().await, "4:  wayland-2    run");
    run(&["inbox"], &[("DISPLAY", ":4"), key]);
    assert_eq!(next().await, "5: :4  /home/me/a key   run");
}
