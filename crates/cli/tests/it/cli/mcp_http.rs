//! MCP servers over HTTP in sessions.

use std::fs;
use std::io::ErrorKind;
use std::net::TcpListener;

use crate::http_server::HttpServer;
use crate::world::{Ran, World};

const CALL: &str = "call mcp__s__work {}\n---\nsay Done.";

/// A world with the server `s`, which gets the key in the variable `WIKI_KEY`.
fn configured(server: &HttpServer) -> World {
    let world = World::new();
    world.config(&format!(
        "[mcp.s]\nurl = \"{}\"\nheaders = {{ Authorization = \"Bearer ${{WIKI_KEY}}\" }}\n",
        server.url()
    ));
    world
}

/// Runs a command with the key in its environment.
fn with_key(world: &World, args: &[&str]) -> Ran {
    let mut command = world.command(args);
    command.env("WIKI_KEY", "right-key");
    Ran::of(command)
}

#[test]
fn m_h2_a_tool_over_http_is_called_with_a_key_of_the_client() {
    let server = HttpServer::start(&["needs-key"]);
    let world = configured(&server);
    let run = ["run", "--asks", "approve", CALL];
    let ran = with_key(&world, &run).code(0);
    assert!(ran.err.contains("Call the tool `work` of the MCP server `s`?"), "{ran:#?}");
    assert!(ran.err.contains("  │ worked"), "{ran:#?}");
    let ran = world.run(&run).code(0);
    let why = "the variable WIKI_KEY is not set in the environment of the client";
    assert!(ran.err.contains(why), "{ran:#?}");
    // The daemon has no such variable, but the client of the session.
    let new = ["new", "--name", "one", "--policy", "all", CALL];
    with_key(&world, &new).code(0);
    world.run(&["wait", "one"]).code(0);
    let log = world.run(&["logs", "one"]).code(0).out;
    assert!(log.contains("worked"), "{log}");
}

#[test]
fn m_h2_t_h3_keys_of_servers_over_http_are_neither_shown_nor_saved() {
    let server = HttpServer::start(&["error-400"]);
    let world = configured(&server);
    with_key(&world, &["new", "--name", "one", "--policy", "all", CALL]).code(0);
    world.run(&["wait", "one"]).code(0);
    let log = with_key(&world, &["logs", "one"]).code(0);
    assert!(log.out.contains("it answered with HTTP 400 Bad Request: no luck with ***"), "{log:?}");
    for command in [
        &["show", "one"][..],
        &["show", "one", "--json"],
        &["logs", "one"],
        &["logs", "one", "--json"],
        &["mcp", "list"],
        &["mcp", "list", "--json"],
        &["mcp", "test", "s"],
        &["config", "show"],
    ] {
        let ran = with_key(&world, command).code(0);
        assert!(!ran.out.contains("right-key") && !ran.err.contains("right-key"), "{ran:#?}");
    }
    world.run(&["daemon", "stop"]).code(0);
    let mut folders = vec![world.path("data")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            match entry.file_type().unwrap().is_dir() {
                true => folders.push(entry.path()),
                false => {
                    let bytes = fs::read(entry.path()).unwrap_or_default();
                    let found = String::from_utf8_lossy(&bytes).contains("right-key");
                    assert!(!found, "{}", entry.path().display());
                }
            }
        }
    }
}

#[test]
fn m_h2_a_redirect_within_the_origin_is_followed_and_no_other() {
    let server = HttpServer::start(&["moved"]);
    let ran = with_key(&configured(&server), &["run", "--policy", "all", CALL]).code(0);
    assert!(ran.err.contains("worked"), "{ran:#?}");
    let canary = TcpListener::bind("127.0.0.1:0").unwrap();
    canary.set_nonblocking(true).unwrap();
    let away = format!("http://{}/mcp", canary.local_addr().unwrap());
    for kind in ["redirect-away", "redirect-get", "redirect-loop", "start-loop"] {
        let server = HttpServer::start(&[kind, "/dev/null", &away]);
        let ran = with_key(&configured(&server), &["run", "--policy", "all", CALL]).code(0);
        assert!(ran.err.contains("it redirects to another address (HTTP 30"), "{kind}: {ran:#?}");
        assert!(!ran.err.contains("worked"), "{kind}: {ran:#?}");
    }
    let reached = canary.accept();
    assert!(matches!(&reached, Err(error) if error.kind() == ErrorKind::WouldBlock), "{reached:?}");
}

#[test]
fn m_h2_a_server_over_http_is_added_listed_and_tested() {
    let server = HttpServer::start(&["needs-key"]);
    let world = World::new();
    let file = world.config("# mine\n");
    let url = server.url();
    let header = "Authorization: Bearer ${WIKI_KEY}";
    world.run(&["mcp", "add", "s", &url, "--header", header, "--tools", "work"]).code(0);
    let added = format!(
        "[mcp.s]\nurl = \"{url}\"\nheaders = {{ Authorization = \"Bearer ${{WIKI_KEY}}\" }}\n\
         tools = [\"work\"]\n"
    );
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.starts_with("# mine\n") && text.ends_with(&added), "{text}");
    let ran = world.run(&["mcp", "list"]).code(0);
    assert_eq!(ran.out, format!("s  {url}  (headers: Authorization)\n"));
    let ran = with_key(&world, &["mcp", "test", "s"]).code(0);
    assert_eq!(ran.out, "1 tool\n  mcp__s__work  \n");
    let ran = world.run(&["mcp", "test", "s"]).code(1);
    assert!(ran.err.contains("the variable WIKI_KEY"), "{ran:#?}");
    for (wrong, why) in [
        (&["example.com"][..], "`url` must begin with http:// or https://"),
        (&["https://me:pw@example.com"], "`url` has a user or password"),
        (&["https://example.com", "--header", "x"], "write 'NAME: VALUE'"),
        (&["https://example.com", "--header", "Host: x"], "is set by the connection"),
        (&["https://example.com", "--network"], "`network` is for a program"),
        (&["https://example.com", "--", "npx"], "cannot be used with"),
    ] {
        let ran = world.run(&[&["mcp", "add", "a"], wrong].concat()).code(2);
        assert!(ran.err.contains(why), "{ran:#?}");
    }
}
