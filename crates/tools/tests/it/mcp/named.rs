//! Resources and prompts of servers that a prompt of the user names.

use holdpoint_common::McpServer;
use holdpoint_tools::NamedContent;

use super::others::{everything, modern};
use super::session::{Session, bad};

/// The only part that a prompt names.
fn part(session: &mut Session, prompt: &str) -> (String, String) {
    let NamedContent { parts, notices } = session.named(prompt).unwrap();
    assert!(notices.is_empty(), "{notices:?}");
    let [part] = &parts[..] else { panic!("{parts:?}") };
    part.clone()
}

#[test]
fn m_h2_resources_of_a_server_are_read_by_their_names() {
    let mut session = Session::of(McpServer { timeout_s: 1, ..bad("named") });
    session.names();
    let (name, text) = part(&mut session, "Compare @s:page://1, @s:page://1 and me@s:page://1.");
    assert_eq!(name, "@s:page://1");
    assert_eq!(text, "Resource `page://1` of the MCP server `s`:\n\nPage one.");
    let (_, image) = part(&mut session, "@s:page://image");
    assert!(
        image.ends_with("[resource page://image, unknown type, 3 bytes: not shown]"),
        "{image}"
    );
    let (_, large) = part(&mut session, "@s:page://large");
    assert!(large.ends_with("x\n[the remaining 37856 bytes are cut off]"));

    // One that is gone is not replaced by its last text.
    let (_, once) = part(&mut session, "@s:page://once");
    assert!(once.ends_with("\n\nNow."), "{once}");
    let content = session.named("@s:page://once").unwrap();
    assert!(content.parts.is_empty(), "{content:?}");
    assert!(content.notices[0].contains("page://once` can't be read: no such page"), "{content:?}");

    // A resource that can't be read costs only itself.
    let content = session.named("@s:page://none @s:page://slow @s:page://1").unwrap();
    assert_eq!(content.parts.len(), 1);
    let whys =
        ["page://none` can't be read: no such page\\u{1b}[2J", "can't be read: no answer in 1 s"];
    for (notice, why) in content.notices.iter().zip(whys) {
        assert!(notice.starts_with("MCP server `s`: the resource `page://"), "{notice}");
        assert!(notice.ends_with(why), "{notice}");
    }
    assert_eq!(content.notices.len(), 2);
    let many: Vec<_> = (0..17).map(|n| format!("@s:page://{n}")).collect();
    let content = session.named(&many.join(" ")).unwrap();
    let last = content.notices.last().unwrap();
    assert_eq!(last, "further resources are not read: a prompt can name 16");
    // Other servers are words.
    let content = session.named("@other:page://1 /s:review @s @s:").unwrap();
    assert!(content.parts.is_empty() && content.notices.is_empty(), "{content:?}");
    session.end();
}

#[test]
fn m_h2_prompts_of_a_server_are_read_with_their_arguments() {
    let mut session = Session::of(bad("named"));
    session.names();
    let (name, text) = part(&mut session, "/s:review 'a b' style=short");
    assert_eq!(name, "/s:review");
    assert_eq!(
        text,
        "Prompt `review` of the MCP server `s`:\n\nReview {\"file\": \"a b\", \"style\": \"short\"}.\n\n\
         [assistant] Yes."
    );
    for (prompt, why) in [
        ("/s:review", "the prompt `review` can't be used: `file` is missing"),
        ("/s:nothing", "it has no prompt `nothing` (hint: it has other, review)"),
    ] {
        let error = session.named(prompt).unwrap_err();
        assert!(error.starts_with(&format!("MCP server `s`: {why}")), "{error}");
    }
    assert!(session.named("/other:review").unwrap().parts.is_empty());
    session.end();
    // A server without either has no names.
    let mut session = Session::of(bad("none"));
    session.names();
    assert!(session.named("/s:review @s:page://1").unwrap().parts.is_empty());
    session.end();
}

#[test]
fn m_h2_servers_of_both_eras_that_we_did_not_write_have_content() {
    let mut old = Session::of(everything());
    old.names();
    let (_, text) = part(&mut old, "/s:args-prompt Oslo");
    assert!(text.contains("Oslo"), "{text}");
    let (_, text) = part(&mut old, "See @s:demo://resource/dynamic/text/1.");
    assert!(text.contains("Resource 1"), "{text}");
    old.end();
    let mut modern = Session::of(modern());
    modern.names();
    let (_, text) = part(&mut modern, "/s:review x.rs");
    assert!(text.ends_with("\n\nReview the file x.rs."), "{text}");
    let (_, text) = part(&mut modern, "See @s:page://7");
    assert!(text.ends_with("\n\nThis is page 7."), "{text}");
    modern.end();
}
