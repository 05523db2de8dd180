//! Tests of the hosts that a browser may reach, and of the asks before it does.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Condvar, Mutex};

use holdpoint_common::{AskRequest, PauseKind, PauseRequest, PauseResponse, WebSettings};
use holdpoint_tools::testing::{full, patience};
use holdpoint_tools::web::guard::{Resolve, SystemResolver};
use holdpoint_tools::{AskReply, Intent, Tool, ToolError};
use serde_json::json;

use super::server::{Server, html, status};
use super::support::{
    Session, failure, has, local, output_of, pause, resumed, retry_with_more_time,
};

/// A session without allowed hosts.
fn strange() -> Session {
    Session::with(nothing())
}

fn nothing() -> WebSettings {
    WebSettings { allow: Vec::new(), ..local() }
}

#[test]
fn m_e7_web_a_private_host_is_asked_about_once_per_session() {
    let server = Server::start(|_| html("<p>text</p>"));
    let mut session = strange();
    let calling = session.start(json!({"action": "open_page", "url": server.url("/one")}));
    let ask = pause(calling.wait_asked());
    assert_eq!(
        (ask.kind, ask.message.as_str()),
        (PauseKind::Confirm, "Let the browser reach 127.0.0.1?")
    );
    assert!(ask.details.unwrap().contains(&server.url("/one")));
    assert!(server.asked().is_empty(), "the host is not reached before the approval");
    calling.answer(AskReply::Pause(PauseResponse::Denied { reason: Some("not mine".to_owned()) }));
    let error = calling.wait().result.unwrap_err();
    assert!(
        matches!(&error, ToolError::Denied { reason } if reason.as_deref() == Some("not mine")),
        "{error}"
    );
    assert!(server.asked().is_empty());

    let calling = session.start(json!({"action": "open_page", "url": server.url("/two")}));
    let _ = calling.wait_asked();
    calling.answer(AskReply::Pause(PauseResponse::Approved));
    assert!(output_of(calling.wait()).contains("text"));
    let called = session.call(json!({"action": "open_page", "url": server.url("/three")}));
    assert!(called.asked.is_empty() && called.result.is_ok(), "one approval is enough");
    session.close();

    let mut other = strange();
    let calling = other.start(json!({"action": "open_page", "url": server.url("/four")}));
    let _ = calling.wait_asked();
    calling.cut();
    assert!(
        matches!(calling.wait().result, Err(ToolError::Interrupted)),
        "another session asks again"
    );
    assert!(!server.asked().contains(&"/four".to_owned()));
    other.close();
}

/// A Confirm of the policy also shows that a page is private, so one approval covers both.
#[test]
fn m_e7_web_one_confirm_covers_a_page_and_its_private_host() {
    let server = Server::start(|_| html("<p>text</p>"));
    let confirm = |session: &mut Session, url: &str| {
        let intent = session
            .tool()
            .intent(&json!({"action": "open_page", "url": url}), session.bench.workspace());
        let Intent { message, details, .. } = intent.unwrap();
        AskRequest::Pause(PauseRequest {
            kind: PauseKind::Confirm,
            tool_name: "web".to_owned(),
            message,
            details,
        })
    };
    let shown = |confirm: &AskRequest| pause(confirm.clone()).details.unwrap();
    let mut session = strange();
    let open = json!({"action": "open_page", "url": server.url("/")});
    let both = confirm(&mut session, &server.url("/"));
    assert!(
        shown(&both).contains("127.0.0.1 is on this machine or in a private network"),
        "{both:?}"
    );
    assert!(shown(&confirm(&mut session, "http://localhost:1/")).contains("127.0.0.1, ::1"));
    // Before an approval, this name is not looked up, because the lookup would disclose it.
    assert_eq!(shown(&confirm(&mut session, "http://docs.example/")), "http://docs.example/");

    session.bench = session.bench.approved(confirm(&mut strange(), "http://127.0.0.2/"));
    let calling = session.start(open.clone());
    assert_eq!(
        pause(calling.wait_asked()).message,
        "Let the browser reach 127.0.0.1?",
        "the approval was for another host"
    );
    calling.answer(AskReply::Pause(PauseResponse::Denied { reason: None }));
    assert!(calling.wait().result.is_err());

    session.bench = session.bench.approved(both);
    let called = session.call(open);
    assert!(
        called.asked.is_empty() && called.result.is_ok(),
        "the Confirm was the approval: {:?}",
        called.asked
    );
    assert_eq!(
        shown(&confirm(&mut session, &server.url("/"))),
        server.url("/"),
        "asked only once in a session"
    );
    session.close();
}

/// A resolver that maps every name to this machine and records the lookups.
#[derive(Debug, Default)]
struct PrivateNames {
    looked_up: Mutex<Vec<String>>,
    news: Condvar,
}

impl PrivateNames {
    fn looked_up(&self) -> usize {
        self.looked_up.lock().unwrap().len()
    }

    /// Waits until `times` names have been looked up.
    fn wait(&self, times: usize) {
        let looked_up = self.looked_up.lock().unwrap();
        let waited =
            self.news.wait_timeout_while(looked_up, patience(), |names| names.len() < times);
        assert!(!waited.unwrap().1.timed_out(), "fewer than {times} names were looked up");
    }
}

impl Resolve for PrivateNames {
    fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        self.looked_up.lock().unwrap().push(name.to_owned());
        self.news.notify_all();
        Ok(vec![Ipv4Addr::LOCALHOST.into()])
    }
}

/// A name that only this network can assign is looked up for the Confirm, whose approval is enough.
/// Any other name would be disclosed by the lookup.
#[test]
fn m_e7_web_one_confirm_covers_a_local_name() {
    let server = Server::start(|_| html("<p>text</p>"));
    let names = Arc::new(PrivateNames::default());
    let mut session = Session::with_names(nothing(), Arc::clone(&names) as _);
    let open = |host: &str| json!({"action": "open_page", "url": format!("http://{host}:{}/", server.port)});
    let confirm = |session: &mut Session, host: &str| {
        let Intent { message, details, .. } =
            session.tool().intent(&open(host), session.bench.workspace()).unwrap();
        PauseRequest { kind: PauseKind::Confirm, tool_name: "web".to_owned(), message, details }
    };
    let far = confirm(&mut session, "app.example");
    assert_eq!(names.looked_up(), 0, "{far:?}");
    let near = confirm(&mut session, "app.test");
    assert!(
        near.details
            .as_ref()
            .unwrap()
            .contains("app.test is on this machine or in a private network: 127.0.0.1")
    );

    session.bench = session.bench.approved(AskRequest::Pause(near));
    let called = session.call(open("app.test"));
    assert!(called.asked.is_empty() && called.result.is_ok(), "{:?}", called.asked);
    session.bench = session.bench.approved(AskRequest::Pause(far));
    let calling = session.start(open("app.example"));
    assert_eq!(
        pause(calling.wait_asked()).message,
        "Let the browser reach app.example?",
        "the address was unknown before"
    );
    calling.answer(AskReply::Pause(PauseResponse::Approved));
    assert!(output_of(calling.wait()).contains("text"));
    session.close();
}

/// With two calls for one host at the same time, the second waits for the answer to the first.
#[test]
fn m_e7_web_two_calls_ask_once_about_one_host() {
    let server = Server::start(|_| html("<p>text</p>"));
    let names = Arc::new(PrivateNames::default());
    let mut session = Session::with_names(nothing(), Arc::clone(&names) as _);
    let mut both = || {
        let mut start = || {
            session.start(
                json!({"action": "open_page", "url": format!("http://app.test:{}/", server.port)}),
            )
        };
        let first = start();
        let _ = first.wait_asked();
        let so_far = names.looked_up();
        let second = start();
        names.wait(so_far + 1);
        (first, second)
    };
    let (first, second) = both();
    first.answer(AskReply::Pause(PauseResponse::Denied { reason: None }));
    assert!(first.wait().result.is_err());
    let _ = second.wait_asked();
    second.cut();
    assert!(
        matches!(second.wait().result, Err(ToolError::Interrupted)),
        "a denial covers one page"
    );

    let (first, second) = both();
    first.answer(AskReply::Pause(PauseResponse::Approved));
    assert!(output_of(first.wait()).contains("text"));
    // Ends an ask of the second call, in case it wrongly asks.
    second.answer(AskReply::Pause(PauseResponse::Denied { reason: None }));
    let second = second.wait();
    assert!(
        second.asked.is_empty() && second.result.is_ok(),
        "an approval covers both: {:?}",
        second.asked
    );
    session.close();
}

#[test]
fn m_e7_web_pages_that_are_always_refused_raise_no_ask() {
    let settings = WebSettings { deny: vec!["evil.example".to_owned()], ..local() };
    let mut session = Session::with(settings);
    for (url, why) in [
        ("http://169.254.169.254/latest", "never dialled"),
        ("http://metadata.google.internal/", "credentials of its machines"),
        ("https://www.evil.example/", "`evil.example` of `web.deny`"),
    ] {
        let intent = session
            .tool()
            .intent(&json!({"action": "open_page", "url": url}), session.bench.workspace());
        let refused = intent.unwrap_err().to_string();
        assert!(refused.contains(url) && refused.contains(why), "{refused}");
        assert!(session.open_fails(url).contains(why));
    }
    session.close();
}

/// Two pages of one browser are open at the same time.
#[test]
fn m_e7_web_each_page_lists_its_own_refusals() {
    let server = Server::start(|path| {
        let other = path.trim_start_matches('/');
        html(&format!("<p>text</p><img src='http://{other}:81/'>"))
    });
    let mut session = Session::with(WebSettings { pause_headless: true, ..local() });
    let hosts = ["127.0.0.2", "127.0.0.3"];
    let pages = hosts.map(|host| {
        let url = server.url(&format!("/{host}"));
        let calling = session.start(json!({"action": "open_page", "url": url, "pause": true}));
        let _ = calling.wait_asked();
        calling
    });
    for (page, own) in pages.into_iter().zip(hosts) {
        page.answer(resumed());
        let text = output_of(page.wait());
        let refused: Vec<_> =
            text.lines().filter(|line| line.contains("no connection to")).collect();
        let [refused] = refused[..] else {
            panic!("the browser itself contacts no host: {refused:?}")
        };
        assert!(refused.starts_with(&format!("[no connection to {own}:81")), "{text}");
    }
    session.close();
}

#[test]
fn t_g5_only_pages_of_http_are_opened() {
    let mut session = Session::new();
    for url in [
        "file:///etc/passwd",
        "chrome://settings",
        "view-source:http://127.0.0.1/",
        "data:text/html,hello",
        "blob:http://127.0.0.1/1",
        "javascript:alert(1)",
        "ftp://127.0.0.1/",
        "about:blank",
        "chrome-extension://x/",
        "FILE:///etc",
        "/etc/passwd",
        "localhost",
        "filesystem:http://x/",
        "ws://127.0.0.1/",
        "devtools://devtools/",
    ] {
        let input = json!({"action": "open_page", "url": url});
        let why = failure(session.call(input));
        assert!(why.contains("can't be opened"), "{url}: {why}");
    }
    assert!(session.browsers.running().is_empty(), "no browser was started");
}

/// Requests of the page itself are stopped by Chromium or by the guard.
#[test]
fn t_g5_a_page_can_not_open_other_schemes() {
    let other = Server::start(|_| html("<p>inside</p>"));
    let inside = other.url("/inside").replace("127.0.0.1", "127.0.0.2");
    let server = Server::start(move |path| match path {
        "/redirect" => status("302 Found", &format!("location: {inside}\r\n"), ""),
        "/file" => status("302 Found", "location: file:///etc/passwd\r\n", ""),
        "/frames" => html(&format!(
            "<p>text</p><iframe src='file:///etc/passwd'></iframe><iframe src='{inside}'></iframe><img src='{inside}'>\
             <script>fetch('{inside}').catch(() => 0); location = 'file:///etc/passwd'</script>"
        )),
        _ => html("<p>text</p>"),
    });
    // A page that navigates to a forbidden address never finishes loading.
    retry_with_more_time(|session, _| {
        let why = session.open_fails(&server.url("/redirect"));
        has(&why, "127.0.0.2")?;
        has(&why, "the user has not approved")?;
        let called = session.call(json!({"action": "open_page", "url": server.url("/file")}));
        assert!(!format!("{:?}", called.result).contains("root:"), "{:?}", called.result);
        let called = session.call(json!({"action": "open_page", "url": server.url("/frames")}));
        let text = called.result.map_err(|error| error.to_string())?.output;
        assert!(!text.contains("root:"), "{text}");
        has(&text, "text")?;
        has(&text, "no connection to 127.0.0.2")
    });
    assert!(other.asked().is_empty(), "each dialled address is judged");
}

#[test]
fn t_g6_the_browser_listens_on_loopback_only_and_pages_can_not_reach_its_ports() {
    let server = Server::start(|_| html("<p>text</p>"));
    let mut session = Session::new();
    session.open(&server.url("/"));
    let listening = listening();
    let ours = session.census.living();
    assert!(!ours.is_empty());
    for (pid, inode, address) in &listening {
        if ours.iter().any(|(ours, _)| ours == pid) {
            assert!(address.starts_with("0100007F:"), "{pid} listens on {address} ({inode})");
        }
    }
    let debugging = session.browsers.running()[0].debugging.clone();
    let why = session.open_fails(&format!("http://{debugging}/json/list"));
    assert!(why.contains("the browser's own"), "{why}");

    // Another session can't reach the port either.
    let mut other = session.browsers.of_session("s2".parse().unwrap());
    let visit = json!({"action": "open_page", "url": format!("http://{debugging}/json/list")});
    let why = failure(session.bench.call(other(), visit));
    assert!(why.contains("the browser's own"), "{why}");
    drop(other);
    session.close();
}

/// Listening sockets, as pid, socket and local address.
fn listening() -> Vec<(u32, String, String)> {
    let mut sockets = Vec::new();
    for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
        for line in std::fs::read_to_string(table).unwrap_or_default().lines().skip(1) {
            let fields: Vec<_> = line.split_whitespace().collect();
            if fields[3] == "0A" {
                sockets.push((format!("socket:[{}]", fields[9]), fields[1].to_owned()));
            }
        }
    }
    let folders = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = folders.filter_map(|folder| folder.file_name().to_str()?.parse::<u32>().ok());
    let mut found = Vec::new();
    for pid in pids {
        for fd in std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten() {
            let Ok(link) = std::fs::read_link(fd.path()) else { continue };
            let link = link.to_string_lossy().into_owned();
            found.extend(
                sockets
                    .iter()
                    .filter(|(socket, _)| *socket == link)
                    .map(|(socket, address)| (pid, socket.clone(), address.clone())),
            );
        }
    }
    found
}

#[test]
fn t_g7_the_sandbox_is_on_except_as_root_or_by_setting() {
    let server = Server::start(|_| html("<p>text</p>"));
    let is_root = rustix::process::geteuid().is_root();
    if is_root {
        println!("skipped: the browser sandbox does not work as root");
    }
    for (setting, is_on) in [(None, !is_root), (Some(false), false)] {
        let mut session = Session::with(WebSettings { sandbox: setting, ..local() });
        session.open(&server.url("/"));
        let running = session.browsers.running();
        assert_eq!(running[0].sandbox, is_on, "the state of the sandbox is shown");
        let arguments =
            std::fs::read_to_string(format!("/proc/{}/cmdline", running[0].pid)).unwrap();
        assert_eq!(!arguments.contains("--no-sandbox"), is_on);
        session.close();
    }
    // The explicit setting is never overridden: as root, the browser fails to start and says why.
    let mut session = Session::with(WebSettings { sandbox: Some(true), ..local() });
    let called = session.call(json!({"action": "open_page", "url": server.url("/")}));
    match called.result {
        Ok(_) => assert!(session.browsers.running()[0].sandbox && !is_root),
        Err(error) => assert!(error.to_string().contains("web.sandbox = false"), "{error}"),
    }
    session.close();
}

#[test]
fn m_e7_web_an_ask_shows_the_complete_address() {
    let session = &mut Session::new();
    let web = session.tool();
    let intent = |input| web.intent(&input, session.bench.workspace()).unwrap();
    let open = intent(
        json!({"action": "open_page", "url": "https://docs.example/a?b=\u{202e}c", "pause": true}),
    );
    assert_eq!(open.message, "Open this page?");
    let details = open.details.unwrap();
    assert!(details.starts_with("https://docs.example/a?b=%E2%80%AEc\n"), "{details}");
    assert_eq!(open.always.unwrap(), "web: pages of docs.example");
    let search = intent(json!({"action": "search", "query": "foxes"}));
    assert_eq!(
        (search.message.as_str(), search.details.as_deref()),
        ("Search the web?", Some("foxes"))
    );
    for wrong in [
        json!({"action": "open_page"}),
        json!({"action": "find_in_page", "url": "http://x/"}),
        json!({"action": "search", "query": "  "}),
        json!({"action": "read"}),
        json!({"action": "search", "query": "x".repeat(10_000)}),
        json!({"action": "find_in_page", "url": "http://x/", "text": "x".repeat(257)}),
    ] {
        assert!(web.intent(&wrong, session.bench.workspace()).is_err(), "{wrong}");
    }
}

#[test]
fn m_e7_web_the_error_for_a_missing_browser_has_a_hint() {
    let mut session =
        Session::with(WebSettings { chromium: Some("/nowhere/chromium".to_owned()), ..local() });
    assert!(session.open_fails("http://127.0.0.1:1/").contains("web.chromium"));
    let mut session = Session::new();
    session.bench = session.bench.env("PATH", "/nowhere");
    let why = session.open_fails("http://127.0.0.1:1/");
    assert!(why.contains("apt install chromium") && why.contains("web.chromium"), "{why}");
}

/// Only full runs wait for the limit of a start.
#[test]
fn m_e7_web_a_start_without_an_answer_is_reported_with_the_output_of_the_browser() {
    if !full() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("browser");
    fs::write(&program, "#!/bin/sh\necho the profile is locked\nexec sleep 600\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let chromium = Some(program.to_str().unwrap().to_owned());
    let mut session = Session::with(WebSettings { chromium, ..local() });
    let why = session.open_fails("http://127.0.0.1:1/");
    assert!(why.contains("the profile is locked\nno answer within 20 s"), "{why}");
    session.close();
}

/// This also covers the programs that the browser runs: Debian's `chromium` is a script.
#[test]
fn t_h2_the_browser_is_never_taken_from_the_workspace() {
    let server = Server::start(|_| html("<p>text</p>"));
    let mut session = Session::new();
    let bin = session.bench.root().join("node_modules/.bin");
    std::fs::create_dir_all(&bin).unwrap();
    for program in ["chromium", "uname", "grep", "dirname", "sed", "mkdir"] {
        let script = format!("#!/bin/sh\necho $0 >> '{}/sprung'\n", session.bench.root().display());
        std::fs::write(bin.join(program), script).unwrap();
        std::fs::set_permissions(bin.join(program), std::fs::Permissions::from_mode(0o755))
            .unwrap();
    }
    session.bench =
        session.bench.env("PATH", format!("{}:{}", bin.display(), std::env::var("PATH").unwrap()));
    assert!(session.open(&server.url("/")).contains("text"));
    let sprung = std::fs::read_to_string(session.bench.root().join("sprung"));
    assert!(sprung.is_err(), "{sprung:?}");
    session.close();
}

/// The browser makes a socket in its temporary folder, and the path of a socket has at most 107
/// bytes.
#[test]
fn m_e7_web_the_path_to_the_state_folder_may_be_long() {
    let folder = tempfile::Builder::new().prefix(&"long".repeat(50)).tempdir().unwrap();
    let mut session = Session::within(folder, local(), Arc::new(SystemResolver));
    let server = Server::start(|_| html("<p>text</p>"));
    assert!(session.open(&server.url("/")).contains("text"));
    session.close();
}
