//! The user's domain rules, and the addresses that are opened at all.

use std::sync::Arc;

use holdpoint_tools::web::guard::{Guard, RefusalReason, Rules, Verdict};

use super::client::{by_guard, get, status};
use super::names::Names;
use super::{allow, asked, judge, refused};

fn owned(rules: &[&str]) -> Vec<String> {
    rules.iter().map(|&rule| rule.to_owned()).collect()
}

fn guard(allow: &[&str], deny: &[&str]) -> Guard {
    let names = Names::new(&[
        (Names::ELSE, &[&["1.1.1.1"]]),
        ("quad.example", &[&["9.9.9.9"]]),
        ("wiki.corp.example", &[&["10.0.0.5"]]),
        ("corp.example", &[&["10.0.0.5"]]),
        ("evilcorp.example", &[&["10.0.0.5"]]),
        ("keys.corp.example", &[&["169.254.169.254"]]),
    ]);
    Guard::start_with(Rules::new(&owned(allow), &owned(deny)).unwrap(), Arc::new(names)).unwrap()
}

#[test]
fn t_g4_a_denied_domain_is_denied_in_every_spelling() {
    let deny =
        ["example.com", "bücher.example", "9.9.9.9", "port.example:8080", "[2606:4700::1111]"];
    let guard = guard(&[], &deny);
    for url in [
        "http://example.com/",
        "https://www.example.com/",
        "https://a.b.c.example.com/",
        "http://EXAMPLE.Com/",
        "http://example.com./",
        "http://example.com:8443/",
        "http://user:word@example.com/",
        "http://good.org@example.com/",
        "http://good.org:80@example.com:80/",
        "http://good.org%2f@example.com/",
        "http://ｅｘａｍｐｌｅ.com/",
        "http://example。com/",
        "http://ex%61mple.com/",
        "http:\\\\example.com\\good.org",
        "  http://exa\tmple.com/",
        "http://xn--bcher-kva.example/",
        "http://BÜCHER.example/",
        "http://9.9.9.9/",
        "http://0x09090909/",
        "http://[::ffff:9.9.9.9]/",
        "http://quad.example/",
        "http://port.example:8080/",
        "http://[2606:4700:0::1111]/",
    ] {
        assert!(matches!(refused(&guard, url), RefusalReason::Denied { .. }), "{url}");
    }
    for url in [
        "http://evilexample.com/",
        "http://example.com.evil.org/",
        "http://example.com@good.org/",
        "http://example.com:80@good.org/",
        "http://good.org/?http://example.com/",
        "http://good.org#@example.com/",
        "http://good.org\\@example.com/",
        "http://example.community/",
        "http://xample.com/",
        "http://com/",
        "http://port.example/",
        "http://xn--bcher.example/",
        "http://9.9.9.10/",
    ] {
        assert!(
            !matches!(judge(&guard, url), Verdict::Refused { why: RefusalReason::Denied { .. } }),
            "{url}"
        );
    }
}

#[test]
fn t_g4_deny_rules_take_precedence() {
    let guard = guard(
        &["corp.example", "10.0.0.5", "example.com"],
        &["wiki.corp.example", "example.com:81"],
    );
    assert_eq!(judge(&guard, "http://corp.example/"), Verdict::Allow);
    assert_eq!(
        refused(&guard, "http://wiki.corp.example/"),
        RefusalReason::Denied { rule: "wiki.corp.example".to_owned() }
    );
    assert_eq!(judge(&guard, "http://example.com/"), Verdict::Allow);
    assert_eq!(
        refused(&guard, "http://example.com:81/"),
        RefusalReason::Denied { rule: "example.com:81".to_owned() }
    );
    // The proxy enforces the rule, even if a page was judged before.
    let answer = get(&guard, "http://wiki.corp.example/");
    assert_eq!((status(&answer), by_guard(&answer)), (403, Some("refused")));

    // A denied name is not looked up, because a name can carry data away.
    let names = Names::new(&[]);
    let nowhere =
        Guard::start_with(Rules::new(&[], &owned(&["example"])).unwrap(), Arc::new(names)).unwrap();
    assert_eq!(
        refused(&nowhere, "http://words.example/"),
        RefusalReason::Denied { rule: "example".to_owned() }
    );
    assert_eq!(refused(&nowhere, "http://words.other/"), RefusalReason::NoSuchHost);

    // A rule that denies beats the user's approval.
    let denied = self::guard(&[], &["10.0.0.0", "127.0.0.1:81"]);
    allow(&denied, "http://127.0.0.1/");
    assert_eq!(judge(&denied, "http://127.0.0.1/"), Verdict::Allow);
    assert_eq!(
        refused(&denied, "http://127.0.0.1:81/"),
        RefusalReason::Denied { rule: "127.0.0.1:81".to_owned() }
    );
}

#[test]
fn t_g4_an_allowed_domain_needs_no_ask_for_its_private_addresses() {
    let guard = guard(&["corp.example:80", "127.0.0.1:3000", "::1"], &[]);
    for url in [
        "http://corp.example/",
        "http://wiki.corp.example:80/",
        "http://localhost.:3000",
        "http://[::1]:9/",
    ] {
        // `localhost` resolves to both, and both are listed.
        assert_eq!(judge(&guard, url), Verdict::Allow, "{url}");
    }
    for url in [
        "http://corp.example:81/",
        "http://evilcorp.example/",
        "http://127.0.0.1/",
        "http://localhost:3001/",
    ] {
        asked(&guard, url);
    }
    assert!(matches!(refused(&guard, "http://keys.corp.example/"), RefusalReason::Never { .. }));
}

#[test]
fn t_g4_an_invalid_rule_is_an_error() {
    for rule in [
        "*.example.com",
        ".example.com",
        "https://example.com",
        "example.com/path",
        "me@example.com",
        "example.com:99999",
        "example.com:",
        "exa mple.com",
        "",
        ":80",
        "10.0.0.0/8",
        "[::1",
        "1.2.3.4.5",
    ] {
        let error = Rules::new(&[], &owned(&[rule])).unwrap_err();
        assert_eq!(error.rule, rule);
        Rules::new(&owned(&[rule]), &[]).unwrap_err();
    }
    Rules::new(
        &owned(&["localhost", "localhost:3000", "[::1]:3000", "::1", "127.0.0.1", "example.com."]),
        &[],
    )
    .unwrap();
}

#[test]
fn t_g5_only_http_and_https_are_opened() {
    let guard = guard(&[], &[]);
    for (url, scheme) in [
        ("file:///etc/passwd", "file"),
        ("FILE:/etc/passwd", "file"),
        (" \tfi\nle:///etc/passwd", "file"),
        ("chrome://version", "chrome"),
        ("chrome-extension://abc/x.html", "chrome-extension"),
        ("devtools://devtools/bundled/inspector.html", "devtools"),
        ("view-source:http://example.com/", "view-source"),
        ("view-source:file:///etc/passwd", "view-source"),
        ("data:application/octet-stream;base64,AAAA", "data"),
        ("data:text/html,<a download>", "data"),
        ("blob:http://example.com/0-0", "blob"),
        ("filesystem:http://example.com/temporary/x", "filesystem"),
        ("javascript:alert(1)", "javascript"),
        ("about:blank", "about"),
        ("ftp://example.com/", "ftp"),
        ("ws://example.com/", "ws"),
        ("wss://example.com/", "wss"),
        ("jar:http://example.com/x!/y", "jar"),
    ] {
        assert_eq!(
            refused(&guard, url),
            RefusalReason::Scheme { scheme: scheme.to_owned() },
            "{url}"
        );
    }
    for url in [
        "",
        "example.com",
        "//example.com/",
        "/etc/passwd",
        "http://",
        "http:///",
        "http://exa mple.com/",
        "http://./",
    ] {
        assert!(matches!(refused(&guard, url), RefusalReason::NotAnAddress { .. }), "{url}");
    }
    // The proxy does not request anything else instead.
    for url in
        ["file:///etc/passwd", "ftp://example.com/", "https://example.com/", "ws://example.com/"]
    {
        assert!((400..=403).contains(&status(&get(&guard, url))), "{url}");
    }
}
