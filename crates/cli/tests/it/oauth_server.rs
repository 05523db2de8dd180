//! An MCP server that needs a login, with its authorization server, and a browser for it.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdin, Command, Stdio};

use crate::world::{Ran, World, patience};

/// The program of the servers.
const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tools/tests/mcp/oauth.py");

/// The servers. They end when this is dropped.
pub(crate) struct OauthServer {
    child: Child,
    port: String,
    log: tempfile::NamedTempFile,
}

/// The answer to a request of the browser.
pub(crate) struct Page {
    pub(crate) status: u16,
    /// The address that the browser is redirected to.
    pub(crate) location: Option<String>,
    pub(crate) text: String,
}

/// A running `holdpoint mcp login` that has printed the address of its page.
pub(crate) struct Login {
    child: Child,
    out: BufReader<std::process::ChildStdout>,
    pub(crate) page: String,
}

impl OauthServer {
    /// Starts servers that behave in this way.
    pub(crate) fn start(kind: &str) -> Self {
        let log = tempfile::NamedTempFile::new().unwrap();
        let mut command = Command::new("python3");
        command.arg(SERVER).arg(kind).arg(log.path());
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut port = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut port).unwrap();
        Self { child, port: port.trim().to_owned(), log }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }

    /// A world with this server, which is called `s`.
    pub(crate) fn world(&self) -> World {
        let world = World::new();
        world.config(&format!("[mcp.s]\nurl = \"{}\"\n", self.url()));
        world
    }

    /// The requests that the servers have seen, one on each line.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.log.path()).unwrap()
    }

    /// The number of requests that begin in this way.
    pub(crate) fn count(&self, begin: &str) -> usize {
        self.log().lines().filter(|line| line.starts_with(begin)).count()
    }
}

impl Drop for OauthServer {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// Requests a page, without following a redirect.
pub(crate) fn get(url: &str) -> Page {
    let (host, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    stream.set_read_timeout(Some(patience())).unwrap();
    write!(stream, "GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
    let mut reader = BufReader::new(stream);
    let (mut head, mut length) = (Vec::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        if let Some(bytes) = line.strip_prefix("Content-Length: ") {
            length = bytes.parse().unwrap();
        }
        head.push(line.to_owned());
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let location = head.iter().find_map(|line| line.strip_prefix("Location: "));
    Page {
        status: head[0].split(' ').nth(1).unwrap().parse().unwrap(),
        location: location.map(str::to_owned),
        text: String::from_utf8(body).unwrap(),
    }
}

impl Login {
    /// Starts a login, and waits for the address of its page.
    pub(crate) fn start(world: &World, args: &[&str]) -> Self {
        Self::start_with(world, args, &[])
    }

    /// Starts a login with these variables.
    pub(crate) fn start_with(world: &World, args: &[&str], env: &[(&str, &str)]) -> Self {
        let mut command = world.command(&[&["mcp", "login"], args].concat());
        command.envs(env.iter().copied());
        command.env("KNOWN_SECRET", "secret-of-known").stdin(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut page = String::new();
        out.read_line(&mut page).unwrap();
        Self { child, out, page: page.trim().to_owned() }
    }

    /// Agrees on the page. Returns the address that the browser is redirected to.
    pub(crate) fn agree(&self) -> String {
        let page = get(&self.page);
        assert_eq!(page.status, 302, "{}", page.text);
        page.location.unwrap()
    }

    pub(crate) fn input(&mut self) -> ChildStdin {
        self.child.stdin.take().unwrap()
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the end of the program.
    pub(crate) fn end(mut self) -> Ran {
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).unwrap();
        let output = self.child.wait_with_output().unwrap();
        Ran {
            code: output.status.code(),
            out: rest,
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// Logs in, with a browser that agrees.
pub(crate) fn log_in(world: &World, args: &[&str]) -> Ran {
    let login = Login::start(world, args);
    let page = get(&login.agree());
    let ran = login.end().code(0);
    assert_eq!(page.status, 200, "{}", page.text);
    assert!(page.text.contains("You are logged in."), "{}", page.text);
    ran
}

/// Logs in with the command in the hint of a session.
pub(crate) fn log_in_as_hinted(world: &World, text: &str) -> Ran {
    let hint = text.split_once("it needs a login (hint: holdpoint mcp login ");
    let (_, hint) = hint.unwrap_or_else(|| panic!("no hint: {text}"));
    let args = shlex::split(hint.split_once(')').unwrap().0).unwrap();
    log_in(world, &args.iter().map(String::as_str).collect::<Vec<_>>())
}
