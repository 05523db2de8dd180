//! Chromium itself, with pages that try every way to reach another host.

use std::collections::BTreeSet;
use std::io::Write;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::process::Command;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use holdpoint_tools::testing::patience;
use holdpoint_tools::web::guard::{Guard, RefusalReason, Rules};

use super::names::Names;
use super::server::{Request, Server};
use super::{allow, asked, network};

/// The attempts of the page, by the path that each requests.
const TRIES: &[&str] = &[
    "beacon",
    "eventsource",
    "fetch",
    "font",
    "form?",
    "frame",
    "image",
    "import",
    "object",
    "ping",
    "preload",
    "prefetch",
    "redirected-fetch",
    "redirected-frame",
    "redirected-image",
    "script",
    "style",
    "video",
    "websocket",
    "window",
    "worker-fetch",
    "xhr",
];

/// A page on another host, which requests all of these from `OTHER`, reports when it has, and only
/// then finishes loading.
const PAGE: &str = r#"<!doctype html>
<link rel=stylesheet href=OTHER/style><link rel=preload as=image href=OTHER/preload><link rel=prefetch href=OTHER/prefetch>
<style>@font-face { font-family: other; src: url(OTHER/font) } p { font-family: other }</style>
<p>The page</p><img src=OTHER/image><img src=/redirect/redirected-image><iframe src=OTHER/frame></iframe>
<iframe src=/redirect/redirected-frame></iframe><object data=OTHER/object></object>
<iframe name=form></iframe><form action=OTHER/form target=form></form><a ping=OTHER/ping href=#ping></a>
<script src=OTHER/script></script>
<script type=module>
const over = (target, ...events) => new Promise(done => events.forEach(event => target.addEventListener(event, done)));
const anyway = promise => Promise.resolve(promise).catch(() => {});
const worker = new Worker(URL.createObjectURL(new Blob([
  `fetch("OTHER/worker-fetch", { mode: "no-cors" }).catch(() => {}).then(() => postMessage("over"))`])));
const xhr = new XMLHttpRequest();
xhr.open("GET", "OTHER/xhr");
xhr.send();
const video = document.createElement("video");
video.src = "OTHER/video";
const rtc = new RTCPeerConnection({ iceServers: [
  { urls: "stun:UDP" }, { urls: "turn:UDP", username: "me", credential: "word" },
  { urls: "turn:HOST?transport=tcp", username: "me", credential: "word" }] });
rtc.createDataChannel("other");
const gathered = new Promise(done => rtc.onicegatheringstatechange = () => rtc.iceGatheringState == "complete" && done());
rtc.createOffer().then(offer => rtc.setLocalDescription(offer));
navigator.sendBeacon("OTHER/beacon");
document.forms[0].submit();
document.querySelector("a").click();
window.open("OTHER/window");
const events = new EventSource("OTHER/eventsource");
const transport = new WebTransport("https://UDP/");
await Promise.all([
  fetch("OTHER/fetch", { mode: "no-cors" }).catch(() => {}), fetch("/redirect/redirected-fetch", { mode: "no-cors" }).catch(() => {}),
  import("OTHER/import").catch(() => {}), over(worker, "message"), over(xhr, "loadend"), over(events, "error"),
  over(new WebSocket("ws://HOST/websocket"), "close"), over(video, "error"), document.fonts.ready,
  Promise.race([Promise.all([gathered, anyway(transport.ready), anyway(transport.closed)]), fetch("/datagram")]),
]);
await fetch("/over");
</script>
<img src=/held>"#;

/// A page's own server, another server, and a socket that no proxy serves.
struct Hosts {
    own: Server,
    other: Server,
    /// The requests that the other server received.
    asked: Arc<Mutex<BTreeSet<String>>>,
    datagrams: Datagrams,
}

/// A UDP socket and its received datagrams.
#[derive(Clone)]
struct Datagrams {
    address: SocketAddr,
    came: Arc<(Mutex<Vec<Vec<u8>>>, Condvar)>,
}

impl Datagrams {
    /// Answers each datagram as `answer` changes it.
    fn start(address: &str, answer: fn(&mut [u8])) -> Self {
        let socket = UdpSocket::bind(address).unwrap();
        let (address, came) =
            (socket.local_addr().unwrap(), Arc::new((Mutex::new(Vec::new()), Condvar::new())));
        let coming = came.clone();
        thread::spawn(move || {
            let mut datagram = [0; 2000];
            while let Ok((length, from)) = socket.recv_from(&mut datagram) {
                coming.0.lock().unwrap().push(datagram[..length].to_vec());
                coming.1.notify_all();
                answer(&mut datagram[..length]);
                socket.send_to(&datagram[..length], from).unwrap();
            }
        });
        Self { address, came }
    }

    /// Waits for the first datagram.
    fn wait(&self) {
        drop(self.came.1.wait_while(self.came.0.lock().unwrap(), |came| came.is_empty()).unwrap());
    }

    /// The number of datagrams before one that this method sends.
    fn count(&self) -> usize {
        let ours = UdpSocket::bind("127.0.0.1:0").unwrap();
        ours.send_to(b"ours", ("127.0.0.2", self.address.port())).unwrap();
        let ours = |came: &mut Vec<Vec<u8>>| came.last().is_none_or(|last| last != b"ours");
        self.came.1.wait_while(self.came.0.lock().unwrap(), ours).unwrap().len() - 1
    }
}

fn hosts() -> Hosts {
    let asked = Arc::new(Mutex::new(BTreeSet::new()));
    let asking = asked.clone();
    let other = Server::answering("127.0.0.2:0", move |request, stream| {
        asking.lock().unwrap().insert(path(&request).trim_start_matches('/').to_owned());
        say(stream, "204 No Content", "", "");
    });
    let datagrams = Datagrams::start("127.0.0.2:0", |_| {});
    let host = format!("127.0.0.2:{}", other.port());
    let page = PAGE.replace("OTHER", &format!("http://{host}")).replace("HOST", &host);
    let page = page.replace("UDP", &datagrams.address.to_string());
    let coming = datagrams.clone();
    let (over, changed) = (Mutex::new(false), Condvar::new());
    let own = Server::answering("127.0.0.1:0", move |request, stream| {
        let path = path(&request);
        if let Some(to) = path.strip_prefix("/redirect/") {
            return say(stream, "302 Found", &format!("Location: http://{host}/{to}\r\n"), "");
        }
        match path.as_str() {
            "/" => say(stream, "200 OK", "Content-Type: text/html\r\n", &page),
            "/over" => {
                *over.lock().unwrap() = true;
                changed.notify_all();
                say(stream, "204 No Content", "", "");
            }
            "/datagram" => {
                coming.wait();
                say(stream, "204 No Content", "", "");
            }
            "/held" => {
                let _over = changed.wait_while(over.lock().unwrap(), |over| !*over).unwrap();
                say(stream, "204 No Content", "", "");
            }
            _ => say(stream, "404 Not Found", "", ""),
        }
    });
    Hosts { own, other, asked, datagrams }
}

fn path(request: &Request) -> String {
    request.head.split(' ').nth(1).unwrap().to_owned()
}

fn say(stream: &mut TcpStream, status: &str, fields: &str, body: &str) {
    let length = body.len();
    // The browser may have closed the connection.
    let _ = write!(
        stream,
        "HTTP/1.1 {status}\r\n{fields}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
}

/// Opens a page in a new browser and returns its content once it is loaded.
fn open(arguments: &[String], url: &str) -> String {
    let profile = tempfile::tempdir().unwrap();
    // `timeout` ends a browser that hangs, because it is the parent of this browser alone.
    let mut chromium = Command::new("timeout");
    chromium.args(["--kill-after=5", &patience().as_secs().to_string()]).args([
        "chromium",
        "--headless",
        "--no-first-run",
        "--disable-background-networking",
    ]);
    chromium.args([
        "--disable-component-update",
        "--disable-sync",
        "--disable-popup-blocking",
        "--dump-dom",
    ]);
    chromium.arg(format!("--user-data-dir={}", profile.path().display())).args(arguments);
    if std::os::unix::fs::MetadataExt::uid(&std::fs::metadata("/proc/self").unwrap()) == 0 {
        chromium.arg("--no-sandbox");
    }
    let output = chromium.arg(url).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn t_g1_a_page_has_no_way_to_a_host_that_is_not_allowed() {
    let hosts = hosts();
    let guard = Guard::start(Rules::default()).unwrap();
    let ledger = guard.ledger();
    allow(&guard, &hosts.own.url("/"));
    let page = open(&guard.arguments(), &hosts.own.url("/"));
    assert!(page.contains("The page"), "{page}");
    assert_eq!(*hosts.asked.lock().unwrap(), BTreeSet::new());
    assert!(hosts.other.came().is_empty());
    assert_eq!(hosts.datagrams.count(), 0, "nothing bypasses the proxy");
    let refused = ledger.refused();
    // The browser contacts no other host either, such as its maker's.
    let [other] = &refused.hosts[..] else { panic!("{refused:?}") };
    assert_eq!(other.host, format!("127.0.0.2:{}", hosts.other.port()));
    assert_eq!(other.why, RefusalReason::Private { address: "127.0.0.2".parse().unwrap() });
    assert!(other.times >= TRIES.len() as u64, "{refused:?}");
}

/// The page's attempts are real: without a guard, all of them arrive.
#[test]
fn t_g1_without_a_guard_every_tested_way_reaches_the_host() {
    let hosts = hosts();
    open(&[], &hosts.own.url("/"));
    let tries: BTreeSet<_> = TRIES.iter().map(|&tried| tried.to_owned()).collect();
    assert_eq!(*hosts.asked.lock().unwrap(), tries);
    assert!(hosts.datagrams.count() > 0);
}

#[test]
fn t_g1_a_redirect_to_a_private_host_is_not_followed() {
    let hosts = hosts();
    let names =
        Names::new(&[("own.example", &[&["127.0.0.1"]]), ("other.example", &[&["127.0.0.2"]])]);
    let guard = Guard::start_with(Rules::default(), Arc::new(names)).unwrap();
    let url = format!("http://own.example:{}/redirect/top", hosts.own.port());
    assert_eq!(asked(&guard, &url).addresses, ["127.0.0.1".parse::<std::net::IpAddr>().unwrap()]);
    allow(&guard, &url);
    let page = open(&guard.arguments(), &url);
    assert!(page.contains("Blocked by Holdpoint"), "{page}");
    assert!(page.contains("127.0.0.2") && page.contains("the user has not approved"), "{page}");
    assert!(hosts.other.came().is_empty());
}

/// A name can carry data: only the guard looks up `secret.example.com`.
#[test]
fn t_g1_chromium_looks_up_nothing_itself() {
    if !network::enter() {
        return;
    }
    // Answers that no name exists.
    let lookups = Datagrams::start("[::]:53", |query| {
        if let [_, _, flags, code, ..] = query {
            (*flags, *code) = (*flags | 0x80, *code | 3);
        }
    });
    let own = Server::answering("127.0.0.1:0", |_, stream| {
        let page = "<p>The page</p><link rel=dns-prefetch href=//one.example><link rel=preconnect href=https://two.example>\
                    <img src=http://three.example/>";
        say(stream, "200 OK", "Content-Type: text/html\r\n", page);
    });
    let names = Names::new(&[("own.example", &[&["127.0.0.1"]])]);
    let guard = Guard::start_with(Rules::default(), Arc::new(names)).unwrap();
    let url = format!("http://own.example:{}/", own.port());
    allow(&guard, &url);
    let page = open(&guard.arguments(), &url);
    assert!(page.contains("The page"), "{page}");
    assert_eq!(lookups.count(), 0);
    // Without a guard, the look-ups arrive here.
    open(&[], &own.url("/"));
    assert!(lookups.count() > 1);
}
