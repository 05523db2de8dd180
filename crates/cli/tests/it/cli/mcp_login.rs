//! Logins at MCP servers over HTTP.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::http_server::HttpServer;
use crate::oauth_server::{Login, OauthServer, get, log_in, log_in_as_hinted};
use crate::world::{Ran, World};

const CALL: &str = "call mcp__s__work {}\n---\nsay Done.";
const RUN: [&str; 4] = ["run", "--policy", "all", CALL];
const NEEDS: &str = "MCP server `s`: it needs a login (hint: holdpoint mcp login s)";

fn worked(ran: &Ran) -> bool {
    ran.err.contains("  │ worked")
}

/// The files of the logins.
pub(super) fn files(world: &World) -> Vec<PathBuf> {
    let folder = fs::read_dir(world.path("data/holdpoint/logins"));
    let files = folder.into_iter().flatten().map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|kind| kind == "json")).collect()
}

#[test]
fn m_h2_a_login_is_used_by_sessions_until_the_logout() {
    let server = OauthServer::start("plain");
    let world = server.world();
    let ran = world.run(&RUN).code(0);
    assert!(ran.err.contains(NEEDS) && !worked(&ran), "{ran:#?}");
    assert_eq!(server.count("authorize"), 0, "{}", server.log());
    let ran = log_in(&world, &["s"]);
    assert_eq!(ran.out, "logged in to s\n");
    assert!(ran.err.contains("open this page in a browser"), "{ran:#?}");
    let log = server.log();
    assert!(
        log.contains("register Holdpoint none\nauthorize registered read\ntoken auth"),
        "{log}"
    );
    let ran = world.run(&["mcp", "list"]).code(0);
    assert_eq!(ran.out, format!("s  {}  (logged in)\n", server.url()));
    assert!(world.run(&["mcp", "list", "--json"]).code(0).out.contains("\"login\":\"logged in\""));
    assert!(worked(&world.run(&RUN).code(0)), "{}", server.log());
    assert!(server.log().contains("mcp tools/call Bearer secret-access-1"), "{}", server.log());
    let ran = world.run(&["mcp", "logout", "s"]).code(0);
    assert_eq!(ran.out, format!("logged out of s at {}\n", server.url()));
    let log = server.log();
    assert!(log.ends_with("revoke refresh_token\nrevoke access_token\n"), "{log}");
    assert_eq!(files(&world), Vec::<PathBuf>::new());
    assert!(world.run(&RUN).code(0).err.contains(NEEDS));
    let ran = world.run(&["mcp", "logout", "s"]).code(1);
    assert!(ran.err.contains("there is no login at s"), "{ran:#?}");
}

#[test]
fn m_h2_a_login_that_can_not_be_read_blocks_only_its_own_logout() {
    let (server, other) = (OauthServer::start("plain"), OauthServer::start("plain"));
    let world = server.world();
    log_in(&world, &["s"]);
    log_in(&world, &["t", "--url", &other.url()]);
    let of_t = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with("t.");
    let broken = files(&world).into_iter().find(of_t).unwrap();
    fs::write(&broken, "{").unwrap();
    let ran = world.run(&["mcp", "logout", "s"]).code(0);
    assert_eq!(ran.out, format!("logged out of s at {}\n", server.url()));
    let is_kept = |ran: &Ran| {
        let why = format!("a login at t is kept: {}: EOF", broken.display());
        ran.err.contains(&why) && ran.err.contains("hint: remove the file")
    };
    let ran = world.run(&["mcp", "logout", "t"]).code(1);
    assert!(is_kept(&ran) && ran.out.is_empty(), "{ran:#?}");
    // Another login of the name ends.
    log_in(&world, &["t", "--url", &server.url()]);
    let ran = world.run(&["mcp", "logout", "t"]).code(1);
    assert_eq!(ran.out, format!("logged out of t at {}\n", server.url()));
    assert!(is_kept(&ran), "{ran:#?}");
    assert_eq!(files(&world), [broken]);
}

#[test]
fn m_h2_a_login_takes_effect_with_the_next_turn_of_an_open_session() {
    let server = OauthServer::start("plain");
    let world = server.world();
    world.run(&["new", "--name", "one", "--policy", "all", CALL]).code(0);
    world.run(&["wait", "one"]).code(0);
    let log = world.run(&["logs", "one"]).code(0).out;
    assert!(log.contains(NEEDS) && !log.contains("worked"), "{log}");
    log_in(&world, &["s"]);
    world.run(&["prompt", "one", CALL]).code(0);
    world.run(&["wait", "one"]).code(0);
    let log = world.run(&["logs", "one"]).code(0).out;
    assert!(log.contains("worked"), "{log}");
    // A logout does, too: the connection of the session has no token any more.
    world.run(&["mcp", "logout", "s"]).code(0);
    world.run(&["prompt", "one", CALL]).code(0);
    world.run(&["wait", "one"]).code(0);
    let log = world.run(&["logs", "one"]).code(0).out;
    assert_eq!(log.matches("it needs a login").count(), 2, "{log}");
}

#[test]
fn m_h2_a_login_that_does_not_help_is_reported_again() {
    let server = OauthServer::start("useless");
    let world = server.world();
    world.run(&["new", "--name", "one", "--policy", "all", CALL]).code(0);
    world.run(&["wait", "one"]).code(0);
    log_in(&world, &["s"]);
    for _ in 0..2 {
        world.run(&["prompt", "one", CALL]).code(0);
        world.run(&["wait", "one"]).code(0);
    }
    let log = world.run(&["logs", "one"]).code(0).out;
    assert_eq!(log.matches(NEEDS).count(), 2, "{log}");
}

#[test]
fn m_h2_t_h3_tokens_are_private_and_never_shown() {
    let server = OauthServer::start("echoes");
    let world = World::new();
    world.config(&format!("log = \"trace\"\n[mcp.s]\nurl = \"{}\"\n", server.url()));
    let login = Login::start(&world, &["s"]);
    get(&login.agree());
    let mut shown = vec![login.end().code(0)];
    let folder = world.path("data/holdpoint/logins");
    assert_eq!(folder.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    let saved = files(&world);
    assert_eq!(saved.len(), 1);
    assert_eq!(saved[0].metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert!(fs::read_to_string(&saved[0]).unwrap().contains("secret-access-1"));
    world.run(&["new", "--name", "one", "--policy", "all", CALL]).code(0);
    world.run(&["wait", "one"]).code(0);
    let log = world.run(&["logs", "one"]).code(0);
    assert!(log.out.contains("it answered with HTTP 400 Bad Request"), "{log:#?}");
    assert_eq!(server.count("token refresh_token"), 1, "{}", server.log());
    shown.push(log);
    for command in [
        &["logs", "one", "--json"][..],
        &["show", "one", "--json"],
        &["export", "one"],
        &["mcp", "list", "--json"],
        &["mcp", "test", "s"],
        &["config", "show"],
    ] {
        let mut command = world.command(command);
        command.env("HOLDPOINT_LOG", "trace");
        shown.push(Ran::of(command).code(0));
    }
    for ran in shown {
        assert!(!ran.out.contains("secret-") && !ran.err.contains("secret-"), "{ran:#?}");
    }
    world.run(&["daemon", "stop"]).code(0);
    let mut folders = vec![world.path("data")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path != saved[0] {
                let bytes = fs::read(&path).unwrap_or_default();
                let found = String::from_utf8_lossy(&bytes).contains("secret-");
                assert!(!found, "{}", path.display());
            }
        }
    }
}

#[test]
fn m_h2_t_h3_codes_and_tokens_are_not_logged_by_a_login() {
    let server = OauthServer::start("plain");
    let world = server.world();
    let login = Login::start_with(&world, &["s"], &[("HOLDPOINT_LOG", "trace")]);
    get(&login.agree());
    let ran = login.end().code(0);
    assert!(!ran.err.contains("secret-"), "{ran:#?}");
}

#[test]
fn m_h2_t_h3_only_the_redirect_of_a_login_ends_it() {
    let server = OauthServer::start("plain");
    let world = server.world();
    let login = Login::start(&world, &["s"]);
    let redirect = login.agree();
    let (address, _) = redirect.split_once('?').unwrap();
    let state = redirect.split(['?', '&']).find(|part| part.starts_with("state=")).unwrap();
    for (wrong, status) in [
        (redirect.replace(state, "state=another"), 400),
        (redirect.replace(state, "x=y"), 400),
        (format!("{address}?error=access_denied"), 400),
        (format!("{address}?{state}"), 400),
        (address.to_owned(), 400),
        (address.replace("/callback", "/"), 404),
        (address.replace("/callback", "/favicon.ico"), 404),
    ] {
        assert_eq!(get(&wrong).status, status, "{wrong}");
    }
    assert_eq!(server.count("token"), 0, "{}", server.log());
    assert_eq!(get(&redirect).status, 200);
    let ran = login.end().code(0);
    assert!(ran.err.contains("an address was ignored: it is not of this login"), "{ran:#?}");
}

#[test]
fn m_h2_a_login_that_is_refused_fails() {
    for (kind, why) in [
        ("denies", "can't log in to s: it was refused: access_denied: the user"),
        ("other-issuer", "but answered as https://example.com"),
    ] {
        let server = OauthServer::start(kind);
        let world = server.world();
        let login = Login::start(&world, &["s"]);
        assert_eq!(get(&login.agree()).status, 400);
        let ran = login.end().code(1);
        assert!(ran.err.contains(why) && ran.out.is_empty(), "{ran:#?}");
        assert_eq!(server.count("token"), 0, "{}", server.log());
        assert_eq!(files(&world), Vec::<PathBuf>::new());
    }
}

#[test]
fn m_h2_t_h3_a_server_without_a_safe_login_is_refused() {
    for (kind, why) in [
        ("plain-token", "the address http://example.com/token is not https"),
        ("no-pkce", "does not protect codes by PKCE"),
        ("endless", "sent an answer of more than 262144 bytes"),
        ("other-resource", "can't be used"),
        ("no-registration", "register Holdpoint there, and set `client_id`"),
    ] {
        let server = OauthServer::start(kind);
        let ran = server.world().run(&["mcp", "login", "s"]).code(1);
        assert!(ran.err.contains(why), "{kind}: {ran:#?}");
        assert_eq!(server.count("authorize"), 0);
    }
    let world = World::new();
    world.config(
        "[mcp.far]\nurl = 'http://example.com/mcp'\n[mcp.key]\nurl = 'https://example.com/mcp'\n\
         headers = { authorization = 'x' }\n[mcp.program]\ncommand = 'x'\n",
    );
    for (name, code, why) in [
        ("far", 1, "is not https, which a login needs"),
        ("key", 1, "which is used instead of a login"),
        ("program", 2, "is a program, which needs no login"),
        ("none", 2, "there is no MCP server `none`"),
    ] {
        let ran = world.run(&["mcp", "login", name]).code(code);
        assert!(ran.err.contains(why), "{name}: {ran:#?}");
    }
    let open = HttpServer::start(&["plain"]);
    world.config(&format!("[mcp.s]\nurl = '{}'", open.url()));
    let ran = world.run(&["mcp", "login", "s"]).code(1);
    assert!(ran.err.contains("it does not ask for a login"), "{ran:#?}");
}

#[test]
fn m_h2_the_address_of_a_redirect_can_be_pasted() {
    let server = OauthServer::start("plain");
    let world = server.world();
    let mut login = Login::start(&world, &["s"]);
    let redirect = login.agree();
    let mut input = login.input();
    let lines = format!("\nhello\n{}\n  {redirect}  \n", "x".repeat(20_000));
    std::io::Write::write_all(&mut input, lines.as_bytes()).unwrap();
    let ran = login.end().code(0);
    assert_eq!(ran.out, "logged in to s\n");
    assert!(ran.err.contains("an address was ignored"), "{ran:#?}");
    assert!(worked(&world.run(&RUN).code(0)));
}

#[test]
fn m_h2_a_login_is_left_with_an_interrupt() {
    let server = OauthServer::start("plain");
    let world = server.world();
    let login = Login::start(&world, &["s"]);
    let sent = Command::new("kill").args(["-s", "INT", &login.id().to_string()]).status().unwrap();
    assert!(sent.success());
    login.end().code(130);
    assert_eq!(files(&world), Vec::<PathBuf>::new());
}

#[test]
fn m_h2_an_expired_token_is_refreshed_by_one_process() {
    let server = OauthServer::start("expired");
    let world = server.world();
    log_in(&world, &["s"]);
    assert_eq!(world.run(&["mcp", "list"]).code(0).out.matches("(logged in)").count(), 1);
    let run = ["run", "--in-process", "--policy", "all", CALL];
    let both: Vec<_> = (0..3).map(|_| world.command(&run).spawn().unwrap()).collect();
    for child in both {
        let output = child.wait_with_output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success() && err.contains("  │ worked"), "{err}");
    }
    assert_eq!(server.count("token refresh_token"), 1, "{}", server.log());
    assert!(!server.log().contains("Bearer secret-access-1"), "{}", server.log());
    assert!(fs::read_to_string(&files(&world)[0]).unwrap().contains("secret-refresh-2"));
    assert_eq!(files(&world)[0].metadata().unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn m_h2_a_token_that_the_server_refuses_is_refreshed_once() {
    let server = OauthServer::start("revoked");
    let world = server.world();
    log_in(&world, &["s"]);
    let ran = world.run(&RUN).code(0);
    assert!(worked(&ran), "{ran:#?}");
    assert_eq!(server.count("token refresh_token"), 1, "{}", server.log());
    assert!(server.log().contains("mcp tools/call Bearer secret-access-2"), "{}", server.log());
}

#[test]
fn m_h2_a_refresh_that_is_refused_needs_a_login() {
    let server = OauthServer::start("refuses-refresh");
    let world = server.world();
    log_in(&world, &["s"]);
    let ran = world.run(&RUN).code(0);
    assert!(ran.err.contains(NEEDS) && !worked(&ran), "{ran:#?}");
    world.run(&RUN).code(0);
    assert_eq!(server.count("token refresh_token"), 1, "{}", server.log());
    let ran = world.run(&["mcp", "list"]).code(0);
    assert!(ran.out.ends_with("(needs a login)\n"), "{ran:#?}");
    // The refresh token stays if the authorization server only has a problem.
    let server = OauthServer::start("breaks-refresh");
    let world = server.world();
    log_in(&world, &["s"]);
    let ran = world.run(&RUN).code(0);
    assert!(ran.err.contains("its login can't be refreshed"), "{ran:#?}");
    assert!(fs::read_to_string(&files(&world)[0]).unwrap().contains("secret-refresh-1"));
}

#[test]
fn m_h2_t_h3_a_refresh_token_is_sent_to_the_endpoint_that_issued_it_only() {
    let server = OauthServer::start("expired");
    let world = server.world();
    log_in(&world, &["s"]);
    let file = &files(&world)[0];
    let mut login: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    let issued_by = login["tokenEndpoint"].take();
    login["tokenEndpoint"] = "http://127.0.0.1:9/token".into();
    fs::write(file, login.to_string()).unwrap();
    let ran = world.run(&RUN).code(0);
    assert!(ran.err.contains("its authorization server has changed"), "{ran:#?}");
    assert_eq!(server.count("token refresh_token"), 0, "{}", server.log());
    // The login is kept: the metadata may be right again.
    login["tokenEndpoint"] = issued_by;
    fs::write(file, login.to_string()).unwrap();
    assert!(worked(&world.run(&RUN).code(0)), "{}", server.log());
    assert_eq!(server.count("token refresh_token"), 1, "{}", server.log());
}

#[test]
fn m_h2_t_h3_the_login_of_a_folders_server_gets_no_key_of_the_user() {
    let world = World::new();
    let servers = r#"{"mcpServers": {"s": {"url": "http://127.0.0.1:9/${USER_KEY}"}}}"#;
    let log_in = |name: &str| {
        let file = world.work(name);
        fs::write(&file, servers).unwrap();
        let mut command = world.command(&["mcp", "login", "s", "--mcp", file.to_str().unwrap()]);
        command.env("USER_KEY", "the-key");
        Ran::of(command)
    };
    let ran = log_in(".mcp.json").code(2);
    assert!(ran.err.contains("the variable USER_KEY is not set"), "{ran:#?}");
    // The control: a file that the user has written.
    let ran = log_in("servers.json");
    assert!(!ran.err.contains("USER_KEY"), "{ran:#?}");
}

#[test]
fn m_h2_t_h3_a_token_is_sent_to_its_own_name_and_address_only() {
    let (server, other) = (OauthServer::start("plain"), OauthServer::start("plain"));
    let world = server.world();
    log_in(&world, &["s"]);
    world.config(&format!("[mcp.s]\nurl = \"{}\"\n", other.url()));
    let ran = world.run(&RUN).code(0);
    assert!(ran.err.contains(NEEDS), "{ran:#?}");
    assert!(
        other.log().contains("no token") && !other.log().contains("secret-"),
        "{}",
        other.log()
    );
    let before = server.log();
    world.config(&format!("[mcp.t]\nurl = \"{}\"\n", server.url()));
    world.run(&RUN).code(0);
    let after = server.log();
    let after = after.strip_prefix(&before).unwrap();
    assert!(after.contains("no token") && !after.contains("secret-"), "{after}");
}

#[test]
fn m_h2_missing_scopes_are_reported_with_the_command_for_them() {
    let server = OauthServer::start("needs-scope");
    let world = server.world();
    log_in(&world, &["s"]);
    let ran = world.run(&RUN).code(0);
    let hint = "it needs a login with more scopes (hint: holdpoint mcp login s --scope write)";
    assert!(ran.err.contains(hint), "{ran:#?}");
    log_in(&world, &["s", "--scope", "write"]);
    assert_eq!(server.count("authorize registered read write"), 1, "{}", server.log());
    assert!(worked(&world.run(&RUN).code(0)));
}

#[test]
fn m_h2_a_configured_client_is_used_with_its_secret() {
    let server = OauthServer::start("no-registration");
    let world = World::new();
    let (url, secret) = (server.url(), "${KNOWN_SECRET}");
    let add = ["mcp", "add", "s", &url, "--client-id", "known", "--client-secret", secret];
    world.run(&add).code(0);
    let ran = world.run(&["mcp", "list"]).code(0);
    assert!(ran.out.ends_with("(needs a login)\n"), "{ran:#?}");
    let ran = world.run(&["mcp", "login", "s"]).code(2);
    assert!(ran.err.contains("the variable KNOWN_SECRET is not set"), "{ran:#?}");
    log_in(&world, &["s"]);
    assert_eq!(server.count("authorize known read"), 1, "{}", server.log());
    assert!(worked(&world.run(&RUN).code(0)));
    let ran = world.run(&["mcp", "logout", "s"]).code(0);
    assert_eq!(server.count("revoke"), 2, "{ran:#?}");
}

#[test]
fn m_h2_a_server_of_a_file_and_one_with_sse_use_a_login() {
    for (kind, path) in [("plain", "/mcp"), ("sse", "/mcp")] {
        let server = OauthServer::start(kind);
        let world = World::new();
        let url = server.url().replace("/mcp", path);
        let kind = if kind == "sse" { "sse" } else { "http" };
        let text =
            format!("{{\"mcpServers\": {{\"s\": {{\"type\": \"{kind}\", \"url\": \"{url}\"}}}}}}");
        let file = world.work("servers.json");
        fs::write(&file, text).unwrap();
        let file = file.to_str().unwrap();
        let run = ["run", "--policy", "all", "--mcp", file, CALL];
        let ran = world.run(&["mcp", "login", "s"]).code(2);
        assert!(ran.err.contains("`--mcp FILE` logs in to a server of a file"), "{ran:#?}");
        let ran = world.run(&run).code(0);
        assert!(ran.err.contains(&format!("mcp login s --mcp {file})")), "{ran:#?}");
        log_in_as_hinted(&world, &ran.err);
        assert!(worked(&world.run(&run).code(0)), "{}", server.log());
        world.run(&["mcp", "logout", "s"]).code(0);
        if kind == "http" {
            log_in(&world, &["s", "--url", &url]);
            assert!(worked(&world.run(&run).code(0)), "{}", server.log());
        }
    }
}
