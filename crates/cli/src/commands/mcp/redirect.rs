//! Waits for the browser's redirect at the end of a login, on a port of this machine.

use std::future::pending;
use std::io::{self, BufRead, Read};
use std::net::Ipv4Addr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// The path of the redirect.
const PATH: &str = "/callback";

/// The most bytes of a request's head, and of a line that the user pastes.
const MAX_HEAD: usize = 16 * 1024;

/// How many connections may be open. Browsers open some that they do not use.
const MAX_CONNECTIONS: usize = 32;

/// How long a connection may take to send its request, or to read our answer.
const LIMIT: Duration = Duration::from_secs(10);

/// Waits for the redirect of a browser, or for an address that the user pastes.
pub(super) struct Redirects {
    listener: TcpListener,
    reading: JoinSet<Option<Given>>,
    pasted: mpsc::Receiver<String>,
}

/// An address that the browser was redirected to, or its path and query.
pub(super) struct Given {
    pub(super) address: String,
    /// The browser, which waits for a page. `None` if the user has pasted the address.
    browser: Option<TcpStream>,
}

impl Redirects {
    /// Listens on a port of this machine; on any free one if it is 0.
    ///
    /// # Errors
    /// The port can't be used.
    pub(super) async fn listen(port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let (sender, pasted) = mpsc::channel(1);
        // Ends with the program: a read of standard input can't be cancelled.
        std::thread::Builder::new().name("paste".to_owned()).spawn(move || paste(&sender))?;
        Ok(Self { listener, reading: JoinSet::new(), pasted })
    }

    /// The address of the redirect.
    pub(super) fn address(&self) -> io::Result<String> {
        Ok(format!("http://{}{PATH}", self.listener.local_addr()?))
    }

    /// The next address.
    pub(super) async fn next(&mut self) -> Given {
        loop {
            let pasted = async {
                match self.pasted.recv().await {
                    Some(line) => line,
                    // The end of standard input: only a browser can follow.
                    None => pending().await,
                }
            };
            tokio::select! {
                line = pasted => return Given { address: line, browser: None },
                accepted = self.listener.accept(), if self.reading.len() < MAX_CONNECTIONS => {
                    match accepted {
                        Ok((stream, _)) => drop(self.reading.spawn(read(stream))),
                        // Too many open files, for example.
                        Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
                    }
                }
                Some(read) = self.reading.join_next() => {
                    if let Ok(Some(given)) = read {
                        return given;
                    }
                }
            }
        }
    }
}

/// Reads lines from standard input. Returns at its end.
fn paste(sender: &mpsc::Sender<String>) {
    let mut input = io::stdin().lock();
    loop {
        let mut line = Vec::new();
        let read = (&mut input).take(MAX_HEAD as u64).read_until(b'\n', &mut line);
        if !matches!(read, Ok(1..)) {
            return;
        }
        let line = String::from_utf8_lossy(line.trim_ascii()).into_owned();
        if !line.is_empty() && sender.blocking_send(line).is_err() {
            return;
        }
    }
}

/// Reads a request. `None` if it is not a redirect.
async fn read(mut stream: TcpStream) -> Option<Given> {
    let mut head = Vec::new();
    let reading = async {
        while !head.windows(4).rev().take(1024).any(|end| end == b"\r\n\r\n") {
            let mut chunk = [0; 1024];
            match stream.read(&mut chunk).await {
                Ok(count @ 1..) if head.len() + count <= MAX_HEAD => {
                    head.extend_from_slice(&chunk[..count]);
                }
                _ => return false,
            }
        }
        true
    };
    if !tokio::time::timeout(LIMIT, reading).await.unwrap_or(false) {
        return None;
    }
    let head = String::from_utf8_lossy(&head);
    let mut words = head.lines().next().unwrap_or_default().split(' ');
    let target = match (words.next(), words.next()) {
        (Some("GET"), Some(target)) if target.starts_with(PATH) => target.to_owned(),
        _ => {
            answer(stream, "404 Not Found", "There is nothing here.").await;
            return None;
        }
    };
    Some(Given { address: target, browser: Some(stream) })
}

impl Given {
    /// Shows a text in the browser, which must have no special characters of HTML.
    pub(super) async fn show(self, is_good: bool, text: &str) {
        if let Some(stream) = self.browser {
            answer(stream, if is_good { "200 OK" } else { "400 Bad Request" }, text).await;
        }
    }
}

/// Answers a request. A failure is ignored: the browser's page is not important.
async fn answer(mut stream: TcpStream, status: &str, text: &str) {
    let page =
        format!("<!doctype html><meta charset=\"utf-8\"><title>Holdpoint</title><p>{text}</p>\n");
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\
         Connection: close\r\nCache-Control: no-store\r\nReferrer-Policy: no-referrer\r\n\
         X-Content-Type-Options: nosniff\r\nContent-Security-Policy: default-src 'none'\r\n\r\n\
         {page}",
        page.len()
    );
    let answering = async {
        stream.write_all(answer.as_bytes()).await?;
        stream.shutdown().await
    };
    let _ = tokio::time::timeout(LIMIT, answering).await;
}
