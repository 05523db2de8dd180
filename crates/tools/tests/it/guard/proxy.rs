//! The proxy: it forwards messages unchanged, and only for allowed hosts and its own user.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Instant;

use holdpoint_tools::testing::{full, patience};
use holdpoint_tools::web::guard::{
    Guard, OwnPorts, Refusal, RefusalReason, Resolve, Rules, SystemResolver, Verdict,
};

use super::client::{by_guard, connect, exchange, get, head, status, tunnel};
use super::server::{Request, Server};
use super::{allow, asked, judge, refused};

/// A guard that allows this server.
fn allowing(server: &Server) -> Guard {
    let guard = Guard::start(Rules::default()).unwrap();
    allow(&guard, &server.url("/"));
    guard
}

/// A server that always gives this answer, and the requests it received.
fn saying(answer: &'static str) -> (Server, mpsc::Receiver<Request>) {
    let (sender, asked) = mpsc::channel();
    let server = Server::answering("127.0.0.1:0", move |request, stream| {
        sender.send(request).unwrap();
        stream.write_all(answer.as_bytes()).unwrap();
    });
    (server, asked)
}

#[test]
fn a_request_is_forwarded_without_hop_by_hop_fields() {
    let (server, asked) = saying(
        "HTTP/1.1 201 Created\r\nX-Kept: 1\r\nHoldpoint-Guard: refused\r\nContent-Length: 5\r\n\r\nhello",
    );
    let guard = allowing(&server);
    let request = format!(
        "POST {} HTTP/1.1\r\nHost: elsewhere.example\r\nCookie: a=b\r\nX-Hop: 1\r\nProxy-Authorization: Basic eA==\r\n\
         Proxy-Connection: keep-alive\r\nConnection: close, X-Hop\r\nUpgrade: h2c\r\nContent-Length: 3\r\n\r\nabc",
        server.url("/path?query=1")
    );
    let answer = exchange(&guard, request.as_bytes());
    assert!(
        answer.starts_with("HTTP/1.1 201 Created\r\n") && answer.ends_with("\r\n\r\nhello"),
        "{answer}"
    );
    assert!(answer.to_lowercase().contains("x-kept: 1"), "{answer}");
    assert_eq!(by_guard(&answer), None, "only the guard sets its own field");
    let request = asked.recv().unwrap();
    let mut fields: Vec<_> = request.head.trim_end().lines().collect();
    assert_eq!(fields.remove(0), "post /path?query=1 http/1.1");
    fields.sort_unstable();
    let host = format!("host: 127.0.0.1:{}", server.port());
    assert_eq!(fields, ["connection: close", "content-length: 3", "cookie: a=b", host.as_str()]);
    assert_eq!(request.body, b"abc");
}

#[test]
fn answers_are_forwarded_complete_and_unchanged() {
    let (more, wait) = mpsc::channel::<()>();
    let wait = Mutex::new(wait);
    let server = Server::answering("127.0.0.1:0", move |_, stream| {
        stream
            .write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n")
            .unwrap();
        wait.lock().unwrap().recv().unwrap();
        let megabyte = vec![b'x'; 1 << 20];
        for _ in 0..8 {
            write!(stream, "{:x}\r\n", megabyte.len()).unwrap();
            stream.write_all(&megabyte).unwrap();
            stream.write_all(b"\r\n").unwrap();
        }
        stream.write_all(b"0\r\n\r\n").unwrap();
    });
    let guard = allowing(&server);
    let mut client = connect(&guard);
    write!(client, "GET {} HTTP/1.0\r\n\r\n", server.url("/")).unwrap();
    assert_eq!(status(&head(&mut client)), 200);
    let mut first = [0; 5];
    client.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"first");
    more.send(()).unwrap();
    let mut rest = Vec::new();
    client.read_to_end(&mut rest).unwrap();
    assert_eq!(rest.len(), 8 << 20);
}

#[test]
fn a_connection_serves_one_request_after_the_other() {
    let server = Server::start("127.0.0.1:0");
    let guard = allowing(&server);
    let mut client = connect(&guard);
    for _ in 0..3 {
        write!(client, "GET {} HTTP/1.1\r\nHost: x\r\n\r\n", server.url("/")).unwrap();
        assert_eq!(status(&head(&mut client)), 200);
        let mut body = [0; 2];
        client.read_exact(&mut body).unwrap();
        assert_eq!(&body, b"hi");
        write!(client, "GET http://169.254.1.1/ HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let refusal = head(&mut client);
        assert_eq!(by_guard(&refusal), Some("refused"));
        let length =
            refusal.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
        client.read_exact(&mut vec![0; length.parse().unwrap()]).unwrap();
    }
}

#[test]
fn a_tunnel_passes_bytes_both_ways_until_it_ends() {
    let server = Server::accepting("127.0.0.1:0", |mut stream| {
        std::thread::spawn(move || {
            let mut received = Vec::new();
            stream.read_to_end(&mut received).unwrap();
            received.reverse();
            stream.write_all(&received).unwrap();
        });
    });
    let guard = allowing(&server);
    let (answer, mut stream) = tunnel(&guard, &format!("127.0.0.1:{}", server.port()));
    assert_eq!(status(&answer), 200);
    stream.write_all(b"\x16\x03\0abc").unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut back = Vec::new();
    stream.read_to_end(&mut back).unwrap();
    assert_eq!(back, b"cba\0\x03\x16");
}

#[test]
fn a_refused_host_is_listed_once_and_further_ones_are_counted() {
    let guard = Guard::start(Rules::default()).unwrap();
    let ledger = guard.ledger();
    for _ in 0..3 {
        get(&guard, "http://me:word@127.0.0.1:81/secret?token=1");
    }
    tunnel(&guard, "[fe80::1]:443");
    let refused = ledger.refused();
    let private = RefusalReason::Private { address: "127.0.0.1".parse().unwrap() };
    assert_eq!(
        refused.hosts[0],
        Refusal { host: "127.0.0.1:81".to_owned(), why: private, times: 3 }
    );
    assert_eq!(
        (refused.hosts[1].host.as_str(), refused.hosts.len(), refused.more),
        ("[fe80::1]:443", 2, 0)
    );
    let ledger = guard.ledger();
    assert_eq!(ledger.refused(), Default::default(), "earlier refusals are left out");
    // Of many refused hosts, the ledger keeps the first ones.
    for port in 1..=40 {
        get(&guard, &format!("http://127.0.0.1:{port}/"));
    }
    let refused = ledger.refused();
    assert_eq!((refused.hosts.len(), refused.more), (32, 8));
}

#[test]
fn an_unreachable_server_differs_from_a_refused_one() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let guard = Guard::start(Rules::default()).unwrap();
    let ledger = guard.ledger();
    allow(&guard, &format!("http://{free}/"));
    let answer = get(&guard, &format!("http://{free}/"));
    assert_eq!((status(&answer), by_guard(&answer)), (502, Some("unreachable")), "{answer}");
    let (answer, _) = tunnel(&guard, &free.to_string());
    assert_eq!((status(&answer), by_guard(&answer)), (502, Some("unreachable")), "{answer}");
    let refused = ledger.refused();
    assert!(
        matches!(refused.hosts[0].why, RefusalReason::Unreachable { .. })
            && refused.hosts[0].times == 2,
        "{refused:?}"
    );
    // A server that closes the connection, and one that does not answer in HTTP.
    for response in ["", "HTTP/9.9 what\r\n\r\n"] {
        let (server, _asked) = saying(response);
        let answer = get(&allowing(&server), &server.url("/"));
        assert_eq!((status(&answer), by_guard(&answer)), (502, Some("unreachable")), "{answer}");
    }
    let answer = get(&guard, "http://no-such-host.invalid/");
    assert_eq!((status(&answer), by_guard(&answer)), (502, Some("unreachable")), "{answer}");
}

/// The text in the guard's own page is never markup.
#[test]
fn the_error_page_escapes_its_values() {
    let guard = Guard::start(Rules::default()).unwrap();
    let answer = get(&guard, "http://&lt;script&gt;.invalid/");
    assert_eq!(status(&answer), 502);
    assert!(answer.contains("&amp;lt;script&amp;gt;.invalid"), "{answer}");
    assert!(answer.contains("content-security-policy: default-src 'none'; sandbox"), "{answer}");
}

#[test]
fn the_browsers_own_ports_are_never_reachable() {
    let debugging = Server::start("127.0.0.1:0");
    let guard = allowing(&debugging);
    assert_eq!(status(&get(&guard, &debugging.url("/"))), 200);
    debugging.came();
    guard.forbid_port(debugging.port());
    for port in [debugging.port(), guard.address().port()] {
        for host in ["127.0.0.1", "127.9.9.9", "localhost", "[::1]"] {
            assert_eq!(
                refused(&guard, &format!("http://{host}:{port}/json")),
                RefusalReason::Own { port }
            );
            assert_eq!(status(&get(&guard, &format!("http://{host}:{port}/json"))), 403);
            assert_eq!(status(&tunnel(&guard, &format!("{host}:{port}")).0), 403);
        }
    }
    assert!(debugging.came().is_empty());
}

#[test]
fn t_g6_the_ports_of_other_running_browsers_are_unreachable() {
    let debugging = Server::start("127.0.0.1:0");
    let own = OwnPorts::default();
    let among =
        || Guard::start_among(Rules::default(), Arc::new(SystemResolver), own.clone()).unwrap();
    let (one, other) = (among(), among());
    other.forbid_port(debugging.port());
    let ports = [debugging.port(), other.address().port()];
    for port in ports {
        assert_eq!(
            refused(&one, &format!("http://127.0.0.1:{port}/json")),
            RefusalReason::Own { port }
        );
    }
    drop(other);
    for port in ports {
        asked(&one, &format!("http://127.0.0.1:{port}/json"));
    }
    let port = one.address().port();
    assert_eq!(
        refused(&one, &format!("http://127.0.0.1:{port}/")),
        RefusalReason::Own { port },
        "the guard's own port"
    );
}

/// A head over the limit is refused, and one that never ends blocks no other connection.
#[test]
fn heads_and_connections_are_bounded() {
    let server = Server::start("127.0.0.1:0");
    let guard = allowing(&server);
    let mut client = connect(&guard);
    write!(client, "GET {} HTTP/1.1\r\nHost: x\r\n", server.url("/")).unwrap();
    let field = format!("X-Long: {}\r\n", "x".repeat(60_000));
    // The answer may arrive before everything is sent.
    let sent = (0..10).all(|_| client.write_all(field.as_bytes()).is_ok());
    let mut answer = Vec::new();
    match client.read_to_end(&mut answer) {
        Ok(_) => assert_eq!(status(&String::from_utf8_lossy(&answer)), 431),
        Err(error) => assert!(error.kind() == ErrorKind::ConnectionReset || !sent, "{error}"),
    }
    assert!(server.came().is_empty());

    // The most connections that are served at once, and one more, which waits for one to end while
    // others are served.
    let request = format!("GET {} HTTP/1.1\r\nHost: x\r\n\r\n", server.url("/"));
    let mut served: Vec<TcpStream> = (0..320).map(|_| connect(&guard)).collect();
    let mut waiting = connect(&guard);
    waiting.write_all(request.as_bytes()).unwrap();
    for stream in &mut served[..5] {
        stream.write_all(request.as_bytes()).unwrap();
        assert_eq!(status(&head(stream)), 200);
    }
    assert_eq!(server.came().len(), 5);
    waiting.set_nonblocking(true).unwrap();
    assert_eq!(waiting.read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
    waiting.set_nonblocking(false).unwrap();
    drop(served);
    assert_eq!(status(&head(&mut waiting)), 200);
}

#[test]
fn dropping_the_guard_ends_its_connections() {
    let server = Server::accepting("127.0.0.1:0", |stream| {
        // Never answers: the other side closes the connection.
        std::thread::spawn(move || (&stream).read_to_end(&mut Vec::new()));
    });
    let guard = allowing(&server);
    let (answer, mut stream) = tunnel(&guard, &format!("127.0.0.1:{}", server.port()));
    assert_eq!(status(&answer), 200);
    let mut asking = connect(&guard);
    write!(asking, "GET {} HTTP/1.1\r\nHost: x\r\n\r\n", server.url("/")).unwrap();
    let address = guard.address();
    let judging = guard.judge("http://127.0.0.1/");
    drop(guard);
    for stream in [&mut stream, &mut asking] {
        assert!(matches!(stream.read(&mut [0]), Ok(0) | Err(_)));
    }
    assert_eq!(TcpStream::connect(address).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let verdict = runtime.block_on(judging);
    assert!(
        matches!(verdict, Verdict::Allow | Verdict::Refused { why: RefusalReason::Ended }),
        "{verdict:?}"
    );
}

/// A look-up without an answer is given up after the resolver's five seconds, which only full runs
/// wait for.
#[test]
fn a_hanging_lookup_delays_no_other_request() {
    let ((hold, held), (begun, begins)) = (mpsc::channel(), mpsc::channel());
    let guard =
        Guard::start_with(Rules::default(), Arc::new(Hanging { begun, held: Mutex::new(held) }))
            .unwrap();
    if full() {
        assert!(matches!(refused(&guard, "http://hanging.example/"), RefusalReason::Lookup { .. }));
    }
    let mut asking = connect(&guard);
    write!(asking, "GET http://hanging.example/ HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    begins.recv().unwrap();
    assert!(matches!(judge(&guard, "http://127.0.0.1/"), Verdict::Ask(_)));
    // This returns while the resolver still hangs.
    drop(guard);
    assert!(matches!(asking.read(&mut [0]), Ok(0) | Err(_)));
    drop(hold);
}

/// A resolver that answers only when it is released, without any address.
#[derive(Debug)]
struct Hanging {
    begun: mpsc::Sender<()>,
    held: Mutex<mpsc::Receiver<()>>,
}

impl Resolve for Hanging {
    fn resolve(&self, _: &str) -> io::Result<Vec<IpAddr>> {
        self.begun.send(()).unwrap();
        let _ = self.held.lock().unwrap().recv();
        Ok(Vec::new())
    }
}

/// Another user of this machine gets no answer. Only root can act as two users, so other users skip
/// this test.
#[cfg(target_os = "linux")]
#[test]
fn another_user_is_not_served() {
    let server = Server::start("127.0.0.1:0");
    let guard = allowing(&server);
    let request =
        format!("GET {} HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n", server.url("/"));
    let Some(served) = say_as("0", &guard, &request) else { return };
    assert!(served.starts_with("HTTP/1.1 200"), "{served}");
    assert_eq!(server.came().len(), 1);
    assert_eq!(say_as("65534", &guard, &request).unwrap(), "");
    assert!(server.came().is_empty());
}

/// A user that has already hung up is not served either: an orphaned connection looks like root's.
/// The body is long, so that the request is checked before the body's end.
#[cfg(target_os = "linux")]
#[test]
fn a_closed_connection_of_another_user_is_not_served() {
    let server = Server::start("127.0.0.1:0");
    let guard = allowing(&server);
    let ledger = guard.ledger();
    // While every place is taken, no further connection is checked.
    let served: Vec<TcpStream> = (0..320).map(|_| connect(&guard)).collect();
    let request =
        "POST http://10.9.9.9/ HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: 40000\\r\\n\\r\\n";
    let body = "head -c 40000 /dev/zero";
    let script = format!("{{ printf '{request}' && {body}; }} > {} && echo sent", device(&guard));
    let Some(sent) = run_as("65534", &script) else { return };
    assert_eq!(sent, "sent\n");
    // Until the system has released it: closed (05), and without a user.
    let by = Instant::now() + patience();
    let orphan = format!(":{:04X} 05 ", guard.address().port());
    while !std::fs::read_to_string("/proc/self/net/tcp").unwrap().contains(&orphan) {
        assert!(Instant::now() < by, "the system still holds the socket");
        std::thread::yield_now();
    }
    let mut next = connect(&guard);
    drop(served);
    write!(next, "GET {} HTTP/1.1\r\nHost: x\r\n\r\n", server.url("/")).unwrap();
    assert_eq!(status(&head(&mut next)), 200);
    assert_eq!(ledger.refused(), Default::default(), "the request was judged");
}

/// The guard's answer to this user. None if the test does not run as root.
#[cfg(target_os = "linux")]
fn say_as(user: &str, guard: &Guard, request: &str) -> Option<String> {
    run_as(user, &format!("exec 3<>{} && printf '{request}' >&3 && cat <&3", device(guard)))
}

/// The path by which bash opens a connection.
#[cfg(target_os = "linux")]
fn device(guard: &Guard) -> String {
    format!("/dev/tcp/{}/{}", guard.address().ip(), guard.address().port())
}

#[cfg(target_os = "linux")]
fn run_as(user: &str, script: &str) -> Option<String> {
    if std::os::unix::fs::MetadataExt::uid(&std::fs::metadata("/proc/self").unwrap()) != 0 {
        println!("skipped: only root can be another user");
        return None;
    }
    let mut command = Command::new("setpriv");
    let ran =
        command.args(["--reuid", user, "--clear-groups", "bash", "-c", script]).output().unwrap();
    Some(String::from_utf8(ran.stdout).unwrap())
}
