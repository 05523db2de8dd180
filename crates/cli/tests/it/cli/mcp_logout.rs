//! The end of logins at MCP servers over HTTP, and logins that are not finished.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};

use super::mcp_login::files;
use crate::oauth_server::{Login, OauthServer, log_in};
use crate::world::patience;

#[test]
fn m_h2_all_tokens_are_tried_if_one_can_not_be_revoked() {
    let server = OauthServer::start("refuses-revoke");
    let world = server.world();
    log_in(&world, &["s"]);
    let ran = world.run(&["mcp", "logout", "s"]).code(0);
    assert_eq!(ran.out, format!("logged out of s at {}\n", server.url()));
    for kind in ["refresh_token", "access_token"] {
        assert_eq!(server.count(&format!("revoke {kind}")), 1, "{}", server.log());
        let why = format!("{kind}: the authorization server answered with 503");
        assert!(ran.err.contains(&why), "{ran:#?}");
    }
    assert_eq!(files(&world), Vec::<PathBuf>::new());
}

#[test]
fn m_h2_t_h3_a_draft_of_a_killed_login_is_removed() {
    let server = OauthServer::start("plain");
    let world = server.world();
    log_in(&world, &["s"]);
    let file = files(&world).remove(0);
    let draft = file.with_extension("1.draft");
    fs::copy(&file, &draft).unwrap();
    log_in(&world, &["s"]);
    assert!(!draft.exists(), "the next login removes it");
    fs::copy(&file, &draft).unwrap();
    world.run(&["mcp", "logout", "s"]).code(0);
    assert!(!draft.exists() && !file.exists(), "a logout removes it");
    fs::write(&draft, "").unwrap();
    let ran = world.run(&["mcp", "logout", "s"]).code(1);
    assert!(ran.err.contains("there is no login at s"), "{ran:#?}");
    assert!(!draft.exists(), "also without a login");
}

#[test]
fn m_h2_a_login_is_left_with_an_interrupt_while_it_waits_for_tokens() {
    let server = OauthServer::start("silent-token");
    let world = server.world();
    let mut login = Login::start(&world, &["s"]);
    let redirect = login.agree();
    let mut input = login.input();
    writeln!(input, "{redirect}").unwrap();
    let by = Instant::now() + patience();
    while server.count("token is awaited") == 0 {
        assert!(Instant::now() < by, "{}", server.log());
    }
    let pid = Pid::from_raw(login.id().cast_signed()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    login.end().code(130);
    assert_eq!(files(&world), Vec::<PathBuf>::new());
}

#[test]
fn m_h2_the_login_of_a_server_that_is_removed_is_kept_with_a_hint() {
    let server = OauthServer::start("plain");
    let world = server.world();
    log_in(&world, &["s"]);
    let ran = world.run(&["mcp", "remove", "s"]).code(0);
    assert!(ran.err.contains("hint: `holdpoint mcp logout s` revokes and removes it"), "{ran:#?}");
    assert_eq!(files(&world).len(), 1);
    world.run(&["mcp", "logout", "s"]).code(0);
    assert_eq!(server.count("revoke"), 2, "{}", server.log());
    world.run(&["mcp", "add", "s", &server.url()]).code(0);
    let ran = world.run(&["mcp", "remove", "s"]).code(0);
    assert_eq!(ran.err, "");
}
