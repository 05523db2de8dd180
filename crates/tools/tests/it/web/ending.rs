//! Tests of how a browser ends: with its session, with its process, or when idle; and of the state
//! that an interrupt or a killed browser leaves.

use holdpoint_common::WebSettings;
use holdpoint_tools::ToolError;
use holdpoint_tools::testing::{Calling, Census};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::devtools::DevTools;
use super::server::{Answer, Server, html};
use super::support::{Session, failure, local, pages, pause, resumed, wait_until};

/// The work that a call is doing.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Phase {
    Starting,
    Asking,
    Loading,
    Paused,
    Reading,
}

/// A server whose pages can keep a call in any phase.
fn server() -> Server {
    Server::start(|path| match path {
        "/loading" => Answer::Silence,
        _ => html("<p>text</p>"),
    })
}

/// Starts a call and waits until it is in `phase`.
fn call_in(phase: Phase, session: &mut Session, server: &Server) -> Calling {
    let path = if phase == Phase::Loading { "/loading" } else { "/" };
    // Without an approval, this host makes the call ask.
    let host = if phase == Phase::Asking { "127.0.0.2" } else { "127.0.0.1" };
    let url = server.url(path).replace("127.0.0.1", host);
    let pauses = matches!(phase, Phase::Paused | Phase::Reading);
    let calling = session.start(json!({"action": "open_page", "url": url, "pause": pauses}));
    match phase {
        Phase::Starting => session.census.wait_living(2),
        Phase::Asking => drop(calling.wait_asked()),
        Phase::Loading => server.wait_asked("/loading"),
        Phase::Paused => drop(calling.wait_asked()),
        // A page with a busy script can't be read.
        Phase::Reading => {
            let details = pause(calling.wait_asked()).details.unwrap();
            // The request blocks the page's only thread until it is answered, and the loop blocks
            // it after that.
            let busy = "setTimeout(() => { \
                const asks = new XMLHttpRequest(); asks.open('GET', '/is-busy', false); asks.send(); \
                for (;;); }, 50)";
            DevTools::of(&details).evaluate(busy);
            server.wait_asked("/is-busy");
            calling.answer(resumed());
        }
    }
    calling
}

/// `Starting` is first because the session has no browser yet. The later phases share the browser
/// that the next call starts.
const PHASES: [Phase; 5] =
    [Phase::Starting, Phase::Asking, Phase::Loading, Phase::Paused, Phase::Reading];

fn session() -> Session {
    Session::with(WebSettings { pause_headless: true, ..local() })
}

#[test]
fn m_a9_an_interrupt_ends_a_call_in_every_phase() {
    let mut session = session();
    for phase in PHASES {
        let server = server();
        let calling = call_in(phase, &mut session, &server);
        calling.cut();
        let called = calling.wait();
        assert!(
            matches!(called.result, Err(ToolError::Interrupted)),
            "{phase:?}: {:?}",
            called.result
        );
        if phase == Phase::Starting {
            // The browser ends because no call has a lease on it.
            session.census.wait_none();
        } else {
            let address = session.browsers.running()[0].debugging.clone();
            wait_until("the tab is closed", || !pages(&address).contains("\"type\": \"page\""));
        }
        assert!(
            session.open(&server.url("/after")).contains("text"),
            "{phase:?}: the next call works"
        );
    }
    session.close();
}

/// The pid of the browser below its supervisor, not of a command that its start script runs first.
fn just_started(census: &Census) -> u32 {
    let living: Vec<u32> = census.living().into_iter().map(|(pid, _)| pid).collect();
    let below = |pid: &u32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let parent =
            status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()?;
        living.contains(&parent).then_some((*pid, parent))
    };
    let pairs: Vec<(u32, u32)> = living.iter().filter_map(below).collect();
    let is_child = |pid: u32| pairs.iter().any(|(child, _)| *child == pid);
    pairs.iter().find(|(_, parent)| !is_child(*parent)).expect("a supervisor has started it").0
}

#[test]
fn m_a9_a_killed_browser_is_reported_in_every_phase() {
    let mut session = session();
    for phase in PHASES {
        let server = server();
        let calling = call_in(phase, &mut session, &server);
        let browser = match session.browsers.running().first() {
            Some(running) => running.pid,
            None => just_started(&session.census),
        };
        kill_process(Pid::from_raw(browser.cast_signed()).unwrap(), Signal::KILL).unwrap();
        // The call ends although its ask has no answer.
        let why = failure(calling.wait());
        let before_it_answered = phase == Phase::Starting && why.contains("did not start");
        assert!(why.contains("browser has ended") || before_it_answered, "{phase:?}: {why}");
        assert!(
            session.open(&server.url("/after")).contains("text"),
            "{phase:?}: the next call starts a new one"
        );
    }
    session.close();
}

#[test]
fn m_e7_web_a_session_has_its_own_browser_which_ends_with_it() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let server = Server::start(|_| {
        html("<script>document.cookie = 'seen=1; max-age=1000'</script><p>text</p>")
    });
    let mut session = Session::new();
    session.open(&server.url("/"));
    let folders = session.folders();
    let about = std::fs::metadata(&folders[0]).unwrap();
    assert_eq!(about.permissions().mode() & 0o777, 0o700, "t-G6: only for this user");
    assert_eq!(about.uid(), rustix::process::geteuid().as_raw());
    let name = folders[0].file_name().unwrap().to_string_lossy().into_owned();
    assert!(name.len() >= "browser-".len() + 6, "the name can't be guessed: {name}");
    session.close();
}

#[test]
fn m_e7_web_only_folders_of_killed_processes_are_removed() {
    let server = Server::start(|_| html("<p>text</p>"));
    let mut session = Session::new();
    let place = session.place();
    std::fs::create_dir_all(place.join("browser-left")).unwrap();
    std::fs::write(place.join("browser-left/Cookies"), "secret").unwrap();
    std::fs::create_dir_all(place.join("screenshots")).unwrap();
    std::fs::write(place.join("screenshots/1.png"), "picture").unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    std::fs::write(elsewhere.path().join("mine"), "precious").unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), place.join("browser-link")).unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), place.join("browser-left/link")).unwrap();
    // A folder that another process uses.
    std::fs::create_dir_all(place.join("browser-used")).unwrap();
    let lock = std::fs::File::create(place.join("browser-used/lock")).unwrap();
    lock.lock().unwrap();
    session.open(&server.url("/"));
    assert!(!place.join("browser-left").exists() && place.join("browser-used").exists());
    assert!(elsewhere.path().join("mine").exists() && place.join("screenshots/1.png").exists());
    std::fs::remove_dir_all(place.join("browser-used")).unwrap();
    std::fs::remove_file(place.join("browser-link")).unwrap();
    session.close();
}

#[test]
fn m_e7_web_a_visible_browser_replaces_a_headless_one() {
    let server = Server::start(|_| html("<p>text</p>"));
    let display = super::display::Display::start();
    let mut session = Session::new().seen(&display);
    session.open(&server.url("/"));
    let calling =
        session.start(json!({"action": "open_page", "url": server.url("/seen"), "pause": true}));
    let _ = pause(calling.wait_asked());
    wait_until("the first one has ended", || session.browsers.running().len() == 1);
    assert!(session.browsers.running()[0].visible);
    session.open(&server.url("/beside"));
    assert_eq!(session.browsers.running().len(), 1, "one browser serves all calls");
    calling.answer(resumed());
    assert!(calling.wait().result.is_ok());
    session.close();
}
