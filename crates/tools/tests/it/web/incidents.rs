//! Tests of unrequested actions of pages, and of misbehaving servers.

use std::net::TcpListener;
use std::time::Duration;

use holdpoint_common::WebSettings;
use holdpoint_tools::testing::rounds;
use serde_json::json;

use super::devtools::DevTools;
use super::server::{Answer, Server, html, status, typed};
use super::support::{
    Session, has, local, output_of, pages, pause, resumed, retry_with_more_time, wait_until,
};

#[test]
fn m_e7_web_downloads_are_refused_and_reported() {
    let server = Server::start(|path| {
        match path {
        "/file" => status(
            "200 OK",
            "content-type: application/zip\r\ncontent-disposition: attachment; filename=\"a.zip\"\r\n",
            "PK",
        ),
        // Endless until the browser stops reading.
        "/endless" => Answer::Endless(
            "HTTP/1.1 200 OK\r\ncontent-type: application/zip\r\ncontent-disposition: attachment\r\n\r\n".to_owned(),
        ),
        "/auto" => html("<p>text</p><a id=a href='/file'>get</a><script>document.getElementById('a').click()</script>"),
        _ => html("<p>text</p>"),
    }
    });
    let mut session = Session::new();
    let why = session.open_fails(&server.url("/file"));
    assert!(why.contains("is a download (`a.zip`)"), "{why}");
    let why = session.call(json!({"action": "open_page", "url": server.url("/auto")}));
    let why = format!("{:?}", why.result);
    assert!(why.contains("a.zip"), "{why}");
    assert!(session.open_fails(&server.url("/endless")).contains("is a download"));
    server.wait_left();
    let left: Vec<_> = walk(&session.place()).filter(|path| path.contains("a.zip")).collect();
    assert!(left.is_empty(), "{left:?}");
    session.close();
}

/// A download that the page generates itself involves no server, so a check of responses would miss
/// it.
#[test]
fn t_g5_downloads_created_by_a_script_are_refused() {
    let name = format!("holdpoint-made-{}.txt", std::process::id());
    let link = |script: &str| {
        html(&format!("<a id=a download='{name}'>get</a><script>{script}; a.click()</script>"))
    };
    let (data, blob) = (
        link("a.href = 'data:text/plain,made'"),
        link("a.href = URL.createObjectURL(new Blob(['made']))"),
    );
    let server = Server::start(move |path| match path {
        "/data" => data.clone(),
        "/blob" => blob.clone(),
        _ => html("<p>text</p>"),
    });
    let mut session = Session::new();
    for path in ["/data", "/blob"] {
        // Reported in the error or in a note beside the page, depending on timing.
        let called = session.call(json!({"action": "open_page", "url": server.url(path)}));
        let result = format!("{:?}", called.result);
        assert!(result.contains(&name) && result.contains("refused"), "{path}: {result}");
    }
    let home = std::env::home_dir().unwrap();
    let places = [session.place(), session.bench.root().to_owned(), home.join("Downloads")];
    let left: Vec<_> = places
        .iter()
        .flat_map(|place| walk(place))
        .filter(|path| path.contains("-made-"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
    // These folders are too large to search recursively.
    for folder in [home, std::env::current_dir().unwrap(), std::env::temp_dir()] {
        assert!(!folder.join(&name).exists(), "{}", folder.display());
    }
    session.close();
}

fn walk(folder: &std::path::Path) -> Box<dyn Iterator<Item = String>> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    Box::new(entries.flat_map(|entry| {
        let below: Box<dyn Iterator<Item = String>> =
            match entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                true => walk(&entry.path()),
                false => Box::new(std::iter::empty()),
            };
        std::iter::once(entry.path().display().to_string()).chain(below)
    }))
}

#[test]
fn m_e7_web_dialogs_are_dismissed_and_reported() {
    let server = Server::start(|path| match path {
        "/dialogs" => html(
            "<p id=p></p><script>alert('look here'); p.textContent = 'sure: ' + confirm('sure?') + ', ' + prompt('name?')</script>",
        ),
        _ => html("<p>text</p>"),
    });
    let mut session = Session::new();
    let text = session.open(&server.url("/dialogs"));
    assert!(text.contains("sure: false, null"), "all dialogs were dismissed: {text}");
    for what in ["(alert), which was dismissed: \"look here\"", "(confirm)", "(prompt)"] {
        assert!(text.contains(what), "{what} is missing: {text}");
    }
    session.close();
}

/// Shows a confirm dialog and reports the answer to the server.
const ASK: &str =
    "setTimeout(() => { p.textContent = 'said ' + confirm('yours?'); fetch('/said') }, 0)";

/// During a pause, dialogs are left to the user; one that is still open afterwards is dismissed.
#[test]
fn m_e7_web_the_user_controls_dialogs_during_a_pause() {
    let server = Server::start(|_| html("<p id=p>text</p>"));
    let mut session = Session::with(WebSettings { pause_headless: true, ..local() });
    for answers in [true, false] {
        let calling =
            session.start(json!({"action": "open_page", "url": server.url("/"), "pause": true}));
        let details = pause(calling.wait_asked()).details.unwrap();
        let mut person = DevTools::of(&details);
        person.call("Page.enable", &json!({}));
        person.evaluate(ASK);
        assert_eq!(person.event("Page.javascriptDialogOpening")["message"], "yours?");
        if answers {
            person.call("Page.handleJavaScriptDialog", &json!({"accept": true}));
        }
        if answers {
            server.wait_asked("/said");
        }
        calling.answer(resumed());
        let text = output_of(calling.wait());
        assert!(text.contains(&format!("said {answers}")), "{text}");
    }
    session.close();
}

#[test]
fn m_e7_web_further_windows_are_closed_and_reported() {
    let (click, clicked) = std::sync::mpsc::channel();
    let clicked = std::sync::Mutex::new(clicked);
    let server = Server::start(move |path| match path {
        "/windows" => html("<p>text</p><script src='/late'></script>"),
        // Keeps the page loading until the windows are open.
        "/late" => {
            clicked.lock().unwrap().recv().unwrap();
            typed("text/javascript", "document.body.append('the end')")
        }
        _ => html("<p>other</p>"),
    });
    let mut session = Session::new();
    let calling = session.start(json!({"action": "open_page", "url": server.url("/windows")}));
    server.wait_asked("/late");
    let address = session.browsers.running()[0].debugging.clone();
    // Simulates a click: without one, Chromium does not let a page open a window.
    let open = json!({"expression": "open('/other') !== null", "userGesture": true});
    let mut person = DevTools::at(&tab(&address));
    for _ in 0..7 {
        assert_eq!(person.call("Runtime.evaluate", &open)["result"]["value"], true);
    }
    wait_until("all but the first are closed", || {
        pages(&address).matches("\"type\": \"page\"").count() == 1
    });
    click.send(()).unwrap();
    let text = output_of(calling.wait());
    assert!(text.contains("the end"), "{text}");
    assert_eq!(
        text.matches("page action: opened another window, which was closed").count(),
        5,
        "{text}"
    );
    assert!(text.contains("page action: 2 more actions are not listed"), "{text}");
    wait_until("all are closed", || !pages(&address).contains("\"type\": \"page\""));
    session.close();
}

/// The address of the browser's only tab.
fn tab(address: &str) -> String {
    let listed: serde_json::Value = serde_json::from_str(&pages(address)).unwrap();
    let id = listed.as_array().unwrap().iter().find(|tab| tab["type"] == "page").unwrap()["id"]
        .as_str()
        .unwrap();
    format!("{address}/devtools/page/{id}")
}

#[test]
fn m_e7_web_a_page_can_not_prevent_leaving() {
    let server = Server::start(|_| {
        html(
            "<p>stay</p><script>onbeforeunload = event => { event.preventDefault(); return 'stay' }</script>",
        )
    });
    let mut session = Session::new();
    assert!(session.open(&server.url("/")).contains("stay"));
    let address = session.browsers.running()[0].debugging.clone();
    wait_until("the tab is closed", || !pages(&address).contains("\"type\": \"page\""));
    session.close();
}

#[test]
fn m_e7_web_an_endless_page_is_read_up_to_the_time_limit() {
    let server = Server::start(|path| {
        match path {
        "/silent" => Answer::Silence,
        _ => Answer::Endless(
            "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\r\n<title>T</title><p>the beginning</p>".to_owned(),
        ),
    }
    });
    retry_with_more_time(|session, load_s| {
        let called = session.call(json!({"action": "open_page", "url": server.url("/endless")}));
        let text = called.result.map_err(|error| error.to_string())?.output;
        has(&text, "the beginning")?;
        has(&text, &format!("still loading after {load_s} s"))?;
        has(&session.open_fails(&server.url("/silent")), &format!("took more than {load_s} s"))
    });
}

#[test]
fn m_e7_web_the_load_limit_is_configurable() {
    let late = Duration::from_secs(rounds(1, 35));
    let server = Server::start(move |path| match path {
        "/late" => {
            std::thread::sleep(late);
            typed("text/javascript", "document.body.append('the end')")
        }
        _ => html("<p>the beginning</p><script src='/late'></script>"),
    });
    let mut session = Session::with(WebSettings { load_s: 60, ..local() });
    let text = session.open(&server.url("/"));
    assert!(text.contains("the end") && !text.contains("still loading"), "{text}");
    session.close();
}

#[test]
fn m_e7_web_an_unreachable_server_is_reported() {
    let dead = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut session = Session::new();
    let why = session.open_fails(&format!("http://{dead}/"));
    assert!(why.contains(&dead.to_string()), "{why}");
    let closing = Server::start(|_| Answer::Whole(String::new()));
    let why = session.open_fails(&closing.url("/"));
    assert!(why.contains(&closing.url("/")), "{why}");
    session.close();
}

#[test]
fn m_e7_web_a_page_with_an_endless_script_is_an_error() {
    let server = Server::start(|_| html("<p>text</p><script>for (;;);</script>"));
    retry_with_more_time(|session, _| {
        has(&session.open_fails(&server.url("/")), "its scripts never stop running")
    });
}
