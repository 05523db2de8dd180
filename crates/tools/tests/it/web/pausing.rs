//! Tests of pauses on a page, which stays open until the user continues and is read after that.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use holdpoint_common::{PauseKind, PauseResponse, WebSettings};
use holdpoint_tools::AskReply;
use serde_json::json;

use super::devtools::DevTools;
use super::display::Display;
use super::server::{Server, html};
use super::support::{Session, failure, local, output_of, pause, resumed};

fn server() -> Server {
    Server::start(|path| html(&format!("<h1>Report</h1><p id=text>as it was served at {path}</p>")))
}

/// An edit by the user, which replaces the text.
const EDIT: &str = "document.getElementById('text').textContent = 'as a person left it'";

/// The main use of a pause.
#[test]
fn m_a9_the_page_is_read_with_the_users_changes() {
    let (display, server) = (Display::start(), server());
    let mut session = Session::new().seen(&display);
    let calling =
        session.start(json!({"action": "open_page", "url": server.url("/report"), "pause": true}));
    let ask = pause(calling.wait_asked());
    assert_eq!((ask.kind, ask.tool_name.as_str()), (PauseKind::Continue, "web"));
    assert_eq!(ask.message, format!("Page loaded: {}", server.url("/report")));
    let running = session.browsers.running();
    assert_eq!(running.len(), 1);
    assert!(running[0].visible, "a pause implies a window");
    let details = ask.details.unwrap();
    assert!(details.contains(&running[0].debugging), "{details}");
    let mut person = DevTools::of(&details);
    person.evaluate(EDIT);
    assert_eq!(person.evaluate("document.visibilityState"), "visible", "the page is visible");
    calling.answer(resumed());
    let text = output_of(calling.wait());
    assert!(text.contains("as a person left it") && !text.contains("as it was served"), "{text}");
    session.close();
}

/// The status line that a WebSocket request from a page at `origin` to these developer tools gets.
fn knock(details: &str, origin: &str) -> String {
    let (_, socket) = details.split_once("?ws=").unwrap();
    let (host, path) = socket.trim().split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    let fields = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13";
    let key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==";
    write!(
        stream,
        "GET /{path} HTTP/1.1\r\nHost: {host}\r\nOrigin: {origin}\r\n{fields}\r\n{key}\r\n\r\n"
    )
    .unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    line.trim().to_owned()
}

#[test]
fn m_a9_the_developer_tools_accept_only_their_own_pages() {
    let server = server();
    let mut session = Session::with(WebSettings { pause_headless: true, ..local() });
    let calling =
        session.start(json!({"action": "open_page", "url": server.url("/"), "pause": true}));
    let details = pause(calling.wait_asked()).details.unwrap();
    let address = &details[details.find("http://").unwrap()..];
    let own = &address[..address.find("/devtools").unwrap()];
    assert!(knock(address, own).contains(" 101 "), "{address}");
    assert!(knock(address, &server.url("")).contains(" 403 "), "other pages are refused");
    calling.answer(resumed());
    output_of(calling.wait());
    session.close();
}

#[test]
fn m_a9_searches_and_screenshots_also_run_after_the_answer() {
    let server = server();
    let mut session = Session::with(WebSettings { pause_headless: true, ..local() });
    let find = json!({"action": "find_in_page", "url": server.url("/"), "text": "a person left", "pause": true});
    let calling = session.start(find);
    let ask = pause(calling.wait_asked());
    assert_eq!(ask.message, format!("Page loaded, to find \"a person left\": {}", server.url("/")));
    assert!(!session.browsers.running()[0].visible, "with `web.pause_headless` there is no window");
    DevTools::of(&ask.details.unwrap()).evaluate(EDIT);
    calling.answer(resumed());
    let text = output_of(calling.wait());
    assert!(text.contains("was found once"), "{text}");

    let shot = json!({"action": "screenshot", "url": server.url("/"), "pause": true});
    let calling = session.start(shot);
    let ask = pause(calling.wait_asked());
    assert_eq!(ask.message, format!("Page loaded, to take a screenshot: {}", server.url("/")));
    let red = "document.body.style = 'background: rgb(200, 0, 0)'; document.body.textContent = ''";
    DevTools::of(&ask.details.unwrap()).evaluate(red);
    calling.answer(resumed());
    let text = output_of(calling.wait());
    let path = text.split("Screenshot saved to ").nth(1).unwrap().split(" (").next().unwrap();
    let png = std::fs::read(path).unwrap();
    assert!(
        png.starts_with(b"\x89PNG") && png.len() < 20_000,
        "a picture in one colour is small: {} bytes",
        png.len()
    );
    session.close();
}

#[test]
fn m_a9_two_sessions_pause_on_two_pages() {
    let server = server();
    let settings = || WebSettings { pause_headless: true, ..local() };
    let mut sessions = [Session::with(settings()), Session::with(settings())];
    let calling: Vec<_> = sessions
        .iter_mut()
        .zip(["/one", "/two"])
        .map(|(session, path)| {
            session.start(json!({"action": "open_page", "url": server.url(path), "pause": true}))
        })
        .collect();
    let asks: Vec<_> = calling.iter().map(|calling| pause(calling.wait_asked())).collect();
    assert_ne!(asks[0].details, asks[1].details);
    DevTools::of(asks[1].details.as_ref().unwrap()).evaluate(EDIT);
    let [one, two] = <[_; 2]>::try_from(calling).ok().unwrap();
    two.answer(resumed());
    let text = output_of(two.wait());
    assert!(text.contains("as a person left it"), "{text}");
    one.answer(resumed());
    let text = output_of(one.wait());
    assert!(text.contains("as it was served at /one"), "{text}");
    sessions.into_iter().for_each(Session::close);
}

#[test]
fn m_a9_the_error_without_a_display_names_the_setting() {
    let server = server();
    let mut session = Session::new();
    for input in [
        json!({"action": "open_page", "url": server.url("/"), "pause": true}),
        json!({"action": "open_page", "url": server.url("/"), "headless": false}),
    ] {
        let why = failure(session.call(input));
        assert!(why.contains("no display") && why.contains("web.pause_headless"), "{why}");
    }
    // A display that does not exist.
    let mut session = Session::new();
    session.bench = session.bench.display(vec![("DISPLAY".to_owned(), ":7654".to_owned())]);
    let why = failure(
        session.call(json!({"action": "open_page", "url": server.url("/"), "pause": true})),
    );
    assert!(why.contains("no display") && why.contains("web.pause_headless"), "{why}");
    assert!(server.asked().is_empty());
    session.close();
}

/// The pause ends because the user can no longer act on the page.
#[test]
fn m_a9_the_end_of_a_page_ends_its_pause() {
    let server = server();
    let mut session = Session::with(WebSettings { pause_headless: true, ..local() });
    for (ends, expected) in
        [("Page.close", "the page was closed"), ("Page.crash", "the page crashed")]
    {
        let calling =
            session.start(json!({"action": "open_page", "url": server.url("/"), "pause": true}));
        let mut person = DevTools::of(&pause(calling.wait_asked()).details.unwrap());
        // The page may end before it answers.
        person.send(ends, &json!({}));
        let why = failure(calling.wait());
        assert!(why.contains(expected), "{why}");
        assert!(
            session.open(&server.url("/next")).contains("as it was served"),
            "the browser still runs"
        );
    }
    session.close();
}

#[test]
fn m_a9_a_page_without_a_pause_raises_no_ask() {
    let server = server();
    let mut session = Session::new();
    let called = session.call(json!({"action": "open_page", "url": server.url("/")}));
    assert!(called.asked.is_empty());
    assert!(!session.browsers.running()[0].visible, "`headless` is the default");
    session.bench = session.bench.answer(AskReply::Pause(PauseResponse::Denied { reason: None }));
    session.close();
}
