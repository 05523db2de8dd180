//! The cost of a page, and how soon a call that loads one ends after an interrupt.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use holdpoint_common::{PauseResponse, WebSettings};
use holdpoint_tools::AskReply;
use holdpoint_tools::testing::Bench;
use holdpoint_tools::web::Browsers;
use holdpoint_tools::web::guard::{Guard, Rules};
use serde_json::json;
use tempfile::TempDir;

use crate::floors::Floor;
use crate::table::{Amount, Samples, Table};

/// The browsers that are started, and the pages opened in each.
const BROWSERS: usize = 5;
const PAGES: usize = 20;
const LARGE_PAGES: usize = 5;

/// How long a large page is drawn.
const DRAWN: Duration = Duration::from_millis(500);

/// The requests sent through the proxy, and the bytes of a large one.
const REQUESTS: usize = 1_000;
const BYTES: u64 = 64 * 1024 * 1024;

pub(crate) fn measure(table: &Table) {
    pages(table);
    let [request, bytes] =
        ["web: a request, more through the proxy", "web: 64 MiB, more through the proxy"];
    if table.wants("proxy", &[request, bytes]) {
        proxy(table, request, bytes);
    }
}

fn pages(table: &Table) {
    let [first, next, large, markup, cut] = [
        "web: first page of a session",
        "web: the next page",
        "web: the text of a page of 1 MB",
        "web: the same, mostly markup",
        "web: cut while loading → tool ended",
    ];
    if !table.wants("web", &[first, next, large, markup, cut]) {
        return;
    }
    let asked = Arc::new(AtomicBool::new(false));
    let server = serve(Arc::clone(&asked));
    let [mut firsts, mut nexts, mut larges, mut markups, mut cuts] = [const { Vec::new() }; 5];
    for _ in 0..BROWSERS {
        let folder = TempDir::new().unwrap();
        let allow = vec!["127.0.0.1".to_owned()];
        let settings = WebSettings { allow, pause_headless: true, ..WebSettings::default() };
        let browsers = Browsers::new(settings, folder.path().join("web")).unwrap();
        let mut make = browsers.of_session("figures".parse().unwrap());
        let bench = Bench::new();
        let mut open = |path: &str| {
            let since = Instant::now();
            let called = bench
                .call(make(), json!({"action": "open_page", "url": format!("{server}{path}")}));
            assert!(called.result.unwrap().output.contains("words"));
            since.elapsed()
        };
        firsts.push(open("/page"));
        nexts.extend((0..PAGES).map(|_| open("/page")));
        // The time to read a page that is loaded: from the answer to its pause to the result.
        let mut read = |path: &str| {
            let input =
                json!({"action": "open_page", "url": format!("{server}{path}"), "pause": true});
            let calling = bench.start(make(), input);
            let _ = calling.wait_asked();
            // A user looks at the page for longer than the browser draws it.
            std::thread::sleep(DRAWN);
            let since = Instant::now();
            calling.answer(AskReply::Pause(PauseResponse::Resumed));
            let called = calling.wait();
            let took = since.elapsed();
            assert!(called.result.unwrap().output.contains("words"));
            took
        };
        for _ in 0..LARGE_PAGES {
            larges.push(read("/large"));
            markups.push(read("/markup"));
        }
        for _ in 0..PAGES {
            asked.store(false, Ordering::SeqCst);
            let calling = bench
                .start(make(), json!({"action": "open_page", "url": format!("{server}/silent")}));
            while !asked.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
            let since = Instant::now();
            calling.cut();
            assert!(calling.wait().result.is_err());
            cuts.push(since.elapsed());
        }
    }
    table.figure_beside(Floor::Spawn, first, Samples::new(firsts).median(), Amount::ms(1_500));
    table.figure(next, Samples::new(nexts).median(), Amount::ms(300));
    table.figure(large, Samples::new(larges).median(), Amount::ms(50));
    table.figure(markup, Samples::new(markups).median(), Amount::ms(50));
    table.figure(cut, Samples::new(cuts).median(), Amount::ms(50));
}

/// Serves a small page, two large ones, and one that never arrives. Returns the address.
fn serve(silent: Arc<AtomicBool>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let line = "<p>A paragraph of a page, with a few words in it, <a href='/other'>a link</a>, and some more words.</p>\n";
    let page = |lines: usize| {
        format!("<!doctype html><title>A page</title><article>{}</article>", line.repeat(lines))
    };
    let (small, large, markup) = (page(10), page(1_000_000 / line.len()), markup());
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        for stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(&stream);
            let (mut line, mut path) = (String::new(), String::new());
            while reader.read_line(&mut line).is_ok_and(|bytes| bytes > 2) {
                if path.is_empty() {
                    path = line.split(' ').nth(1).unwrap_or_default().to_owned();
                }
                line.clear();
            }
            let page = match path.as_str() {
                "/silent" => {
                    silent.store(true, Ordering::SeqCst);
                    kept.push(stream);
                    continue;
                }
                "/large" => &large,
                "/markup" => &markup,
                _ => &small,
            };
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {}\r\n",
                page.len()
            );
            let _ = write!(&stream, "{head}connection: close\r\n\r\n{page}");
        }
    });
    format!("http://{address}")
}

/// A page of 1 MB like those of real sites, with more markup and scripts than words, in front of
/// the text and around it.
fn markup() -> String {
    let head: String = (0..200)
        .map(|n| format!("<script>let a{n} = {{b: '{}'}}</script>\n", "c".repeat(400)))
        .collect();
    let item = |n| {
        format!(
            "<li class='menu__item menu__item--{n}'><div class='menu__inner' data-id='{n}'><a class='menu__link' \
             href='/section/{n}'><svg width='8'><path d='M0 0L8 8'/></svg><span>Section {n}</span></a></div></li>\n"
        )
    };
    let menu: String = (0..500).map(item).collect();
    let part = |n| {
        format!(
            "<section class='part part--{n}' id='part-{n}'><h2 class='part__title'>Part {n}</h2>\n<div class='part__body'>\
             <p>A paragraph with a few <b>words</b> in it, <a href='/to/{n}'>a link</a>, and some more, as there are on \
             pages that somebody has written to be read, this one not least.</p>\n<ul><li>one</li><li>two</li></ul>\
             <pre><code class='language-rust'>let part = {n};</code></pre>\n<table><tr><td>a</td><td>b</td></tr></table>\
             </div></section>\n"
        )
    };
    let mut page = format!(
        "<!doctype html><head><title>A site</title>{head}</head><header>{menu}</header><main>"
    );
    for n in 0.. {
        if page.len() > 1_000_000 {
            break;
        }
        page.push_str(&part(n));
    }
    page + "</main><footer>imprint</footer>"
}

/// The time that the proxy adds, measured in turn with direct requests.
fn proxy(table: &Table, request: &str, bytes: &str) {
    let server = serve_by_length();
    let guard = Guard::start(Rules::new(&["127.0.0.1".to_owned()], &[]).unwrap()).unwrap();
    let mut direct = ProxyClient::of(server, server);
    let mut through = ProxyClient::of(guard.address(), server);
    let mut more = |length| through.ask(length).saturating_sub(direct.ask(length));
    let requests = Samples::of(REQUESTS, || more(1_000));
    table.note(request, requests.median());
    table.note("   … p99", requests.p99());
    table.note(bytes, Samples::of(5, || more(BYTES)).median());
}

/// A connection that is reused.
struct ProxyClient {
    stream: BufReader<TcpStream>,
    server: SocketAddr,
}

impl ProxyClient {
    fn of(connect: SocketAddr, server: SocketAddr) -> Self {
        let stream = TcpStream::connect(connect).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream: BufReader::new(stream), server }
    }

    /// The time of a request for this many bytes.
    fn ask(&mut self, length: u64) -> Duration {
        let since = Instant::now();
        let server = self.server;
        write!(
            self.stream.get_mut(),
            "GET http://{server}/{length} HTTP/1.1\r\nhost: {server}\r\n\r\n"
        )
        .unwrap();
        let mut line = String::new();
        while self.stream.read_line(&mut line).unwrap() > 2 {
            line.clear();
        }
        let taken =
            std::io::copy(&mut self.stream.by_ref().take(length), &mut std::io::sink()).unwrap();
        assert_eq!(taken, length);
        since.elapsed()
    }
}

/// A server that answers with as many bytes as the path says, one request after the other on each
/// connection.
fn serve_by_length() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                stream.set_nodelay(true).unwrap();
                let mut reader = BufReader::new(&stream);
                let mut head = String::new();
                while reader.read_line(&mut head).is_ok_and(|bytes| bytes > 0) {
                    if !head.ends_with("\r\n\r\n") {
                        continue;
                    }
                    let path =
                        head.split(' ').nth(1).and_then(|url| url.rsplit('/').next()).unwrap();
                    let length: usize = path.parse().unwrap();
                    let response = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n");
                    let response = [response.into_bytes(), vec![b'x'; length]].concat();
                    if (&stream).write_all(&response).is_err() {
                        return;
                    }
                    head.clear();
                }
            });
        }
    });
    address
}
