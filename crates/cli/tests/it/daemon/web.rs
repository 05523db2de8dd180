//! Web pages through the daemon: paused, shown to every client, and gone with the session or the
//! daemon.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::time::{Duration, Instant};

use holdpoint_common::{
    Answer, AskCloseCause, AskFact, AskRequest, Fact, Outcome, PolicyMode, ToolFact, TurnFact,
};
use holdpoint_session::{AttachFrom, Attachment, SessionHandle};
use rustix::process::{Pid, Signal, kill_process};

use super::harness::{DaemonWorld, until};

/// Starts a server with one page and returns its address.
fn server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(&stream);
            let mut line = String::new();
            while reader.read_line(&mut line).is_ok_and(|bytes| bytes > 2) {
                line.clear();
            }
            let page = "<title>A page</title><p>its text</p>";
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {}\r\n",
                page.len()
            );
            let _ = write!(&stream, "{head}connection: close\r\n\r\n{page}");
        }
    });
    format!("http://{address}/")
}

fn house() -> DaemonWorld {
    let house = DaemonWorld::new();
    house.0.config("[web]\npause_headless = true\nallow = ['127.0.0.1']\n");
    house.start();
    house
}

/// A session that is paused on a page.
async fn paused(house: &DaemonWorld) -> (SessionHandle, Attachment) {
    let session = house.sessions().open(house.session()).await.unwrap();
    let mut events = session.attach(AttachFrom::start()).await.unwrap();
    let script = format!(
        "call web {{\"action\": \"open_page\", \"url\": \"{}\", \"pause\": true}}",
        server()
    );
    session.prompt(script).await.unwrap();
    // A call that fails raises no ask.
    let raised = until(&mut events, |event| {
        let fact = event.fact();
        matches!(fact, Some(Fact::Ask(AskFact::Raised { .. }) | Fact::Tool(ToolFact::Finished(_))))
    })
    .await;
    let Some(Fact::Ask(AskFact::Raised { ask })) = raised.fact() else { panic!("{raised:?}") };
    assert!(ask.request.message().starts_with("Page loaded: http://127.0.0.1:"), "{ask:?}");
    (session, events)
}

/// How many folders of browsers exist.
fn folders(house: &DaemonWorld) -> usize {
    let entries = std::fs::read_dir(house.data().join("web")).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("browser-")).count()
}

#[tokio::test]
async fn m_a9_a_page_is_paused_in_the_daemon_and_its_debugging_port_is_shown() {
    let house = house();
    let (session, mut events) = paused(&house).await;
    let shown = house.run(&["status"]).code(0).out;
    let browser = shown.lines().find(|line| line.starts_with("browser")).expect("it is shown");
    assert!(browser.contains(session.id().as_str()) && browser.contains("127.0.0.1:"), "{browser}");
    assert_eq!(
        browser.contains("sandbox is off"),
        rustix::process::geteuid().is_root(),
        "t-G7: {browser}"
    );
    let address = house.status()["browsers"][0]["debugging"].as_str().unwrap().to_owned();
    assert!(browser.contains(&address));
    assert_eq!(folders(&house), 1);
    events.answer(Answer::Resume).await.unwrap();
    let finished =
        until(&mut events, |event| matches!(event.fact(), Some(Fact::Tool(ToolFact::Finished(_)))))
            .await;
    assert!(format!("{finished:?}").contains("its text"), "{finished:?}");
    session.close().await.unwrap();
    let by = Instant::now() + crate::world::patience();
    while folders(&house) > 0 || !house.status()["browsers"].is_null() {
        assert!(Instant::now() < by, "the browser ends with its session");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// When a browser dies, its ask closes, and the clients and the model are notified.
#[tokio::test]
async fn m_a9_a_browser_that_dies_in_a_pause_closes_the_ask() {
    let house = house();
    let (session, mut events) = paused(&house).await;
    let browser = house.status()["browsers"][0]["pid"].as_i64().unwrap();
    kill_process(Pid::from_raw(browser.try_into().unwrap()).unwrap(), Signal::KILL).unwrap();
    let closed =
        until(&mut events, |event| matches!(event.fact(), Some(Fact::Ask(AskFact::Closed { .. }))))
            .await;
    let Some(Fact::Ask(AskFact::Closed { ask, cause })) = closed.fact() else {
        panic!("{closed:?}")
    };
    assert_eq!(*cause, AskCloseCause::CallEnded);
    let finished =
        until(&mut events, |event| matches!(event.fact(), Some(Fact::Tool(ToolFact::Finished(_)))))
            .await;
    assert!(format!("{finished:?}").contains("the browser has ended"), "{finished:?}");
    let late = session.answer(ask, Answer::Resume).await.unwrap_err();
    assert!(late.to_string().contains("is closed: its call ended"), "{late}");
    let over = until(&mut events, |event| {
        matches!(event.fact(), Some(Fact::Turn(TurnFact::Finished { .. })))
    })
    .await;
    assert!(
        matches!(over.fact(), Some(Fact::Turn(TurnFact::Finished { outcome: Outcome::Done, .. }))),
        "the turn goes on: {over:?}"
    );
    session.close().await.unwrap();
}

/// The policy's Confirm also says that the page is private, so one approval covers both.
#[tokio::test]
async fn m_e7_web_a_private_page_is_confirmed_once() {
    let house = DaemonWorld::new();
    house.start();
    let open = house.session().policy(PolicyMode::Ask);
    let session = house.sessions().open(open).await.unwrap();
    let mut events = session.attach(AttachFrom::start()).await.unwrap();
    let url = server();
    session
        .prompt(format!("call web {{\"action\": \"open_page\", \"url\": \"{url}\"}}"))
        .await
        .unwrap();
    let raised =
        until(&mut events, |event| matches!(event.fact(), Some(Fact::Ask(AskFact::Raised { .. }))))
            .await;
    let Some(Fact::Ask(AskFact::Raised { ask })) = raised.fact() else { panic!("{raised:?}") };
    let AskRequest::Pause(pause) = &ask.request else { panic!("{ask:?}") };
    let details = pause.details.as_deref().unwrap();
    assert!(
        details.starts_with(&url) && details.contains("127.0.0.1 is on this machine"),
        "{details}"
    );
    events.answer(Answer::Approve { always: false }).await.unwrap();
    let next = until(&mut events, |event| {
        matches!(
            event.fact(),
            Some(Fact::Ask(AskFact::Raised { .. }) | Fact::Tool(ToolFact::Finished(_)))
        )
    })
    .await;
    assert!(format!("{next:?}").contains("its text"), "it is not asked again: {next:?}");
    session.close().await.unwrap();
}

#[test]
fn m_e7_web_a_screenshot_is_reported_by_its_path() {
    let house = house();
    let script = format!("call web {{\"action\": \"screenshot\", \"url\": \"{}\"}}", server());
    let ran = house.0.play(&["--policy", "all"], &script).code(0);
    let rest = ran.err.split("└ Screenshot saved to ").nth(1).unwrap_or_else(|| panic!("{ran:#?}"));
    assert!(std::path::Path::new(rest.split(" (").next().unwrap()).is_file(), "{rest}");
}

#[tokio::test]
async fn m_e7_web_a_killed_daemons_browser_ends_and_its_folder_is_removed() {
    let house = house();
    let (_session, _events) = paused(&house).await;
    house.signal(Signal::KILL);
    house.wait_gone();
    house.0.census.wait_none();
    assert_eq!(folders(&house), 1, "nobody was there to remove it");
    house.start();
    assert_eq!(folders(&house), 0);
}

#[tokio::test]
async fn m_e7_web_a_daemon_that_stops_leaves_nothing_of_its_browsers() {
    let house = house();
    let (_session, _events) = paused(&house).await;
    house.run(&["daemon", "stop"]).code(0);
    house.0.census.wait_none();
    assert_eq!(folders(&house), 0);
}
