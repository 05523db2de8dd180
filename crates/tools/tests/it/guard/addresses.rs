//! Addresses: which ones are dialled, as seen at the socket, and how each may be written.

use std::net::IpAddr;
use std::sync::Arc;

use holdpoint_tools::web::guard::{Guard, RefusalReason, Rules, Verdict};

use super::client::{by_guard, get, status, tunnel};
use super::names::Names;
use super::server::Server;
use super::{allow, asked, judge, network, refused};

/// Never dialled, even if the user allows it.
const NEVER: &[&str] = &[
    "169.254.169.254",
    "169.254.169.254.",
    "2852039166",
    "0xa9fea9fe",
    "0xA9.0xFE.0xA9.0xFE",
    "0251.0376.0251.0376",
    "025177524776",
    "0xa9.254.0251.0xfe",
    "169.254.43518",
    "169.16689662",
    "%31%36%39.254.169.254",
    "[::ffff:169.254.169.254]",
    "[::ffff:a9fe:a9fe]",
    "[0:0:0:0:0:ffff:a9fe:a9fe]",
    "[::ffff:0:a9fe:a9fe]",
    "[64:ff9b::a9fe:a9fe]",
    "[2002:a9fe:a9fe::1]",
    "[::a9fe:a9fe]",
    "[2001:0:a9fe:a9fe::1]",
    "[fd00:ec2::254]",
    "[FD00:0EC2:0:0:0:0:0:254]",
    "[fd20:ce::254]",
    "[fe80::a9fe:a9fe]",
    "100.100.100.200",
    "168.63.129.16",
    "metadata.google.internal",
    "METADATA.google.internal.",
    "metadata.goog",
    "instance-data.ec2.internal",
    "metadata",
    "link-local.example",
    "mixed.example",
    "0.0.0.0",
    "0",
    "0x0",
    "0.1",
    "[::]",
    "224.0.0.1",
    "255.255.255.255",
    "240.0.0.1",
    "192.0.2.1",
    "[ff02::1]",
    "[2001:db8::1]",
    "[100::1]",
];

/// Dialled once the user has allowed it.
const PRIVATE: &[&str] = &[
    "127.0.0.1",
    "127.0.0.1.",
    "127.1",
    "2130706433",
    "0x7f.1",
    "017700000001",
    "0177.0.0.01",
    "127.255.255.254",
    "localhost",
    "LOCALHOST.",
    "app.localhost",
    "[::1]",
    "[::ffff:127.0.0.1]",
    "[2002:7f00:1::]",
    "10.0.0.1",
    "0xa000001",
    "[::ffff:a00:1]",
    "[64:ff9b::a00:1]",
    "172.16.0.1",
    "172.31.255.254",
    "192.168.1.1",
    "3232235777",
    "100.64.0.1",
    "198.18.0.1",
    "198.19.255.254",
    "[fc00::1]",
    "[fd12:3456::1]",
    "[fec0::1]",
    "private.example",
];

/// Public addresses.
const PUBLIC: &[&str] = &[
    "1.1.1.1",
    "16843009",
    "172.32.0.1",
    "198.20.0.1",
    "100.128.0.1",
    "[2606:4700:4700::1111]",
    "[::ffff:1.1.1.1]",
    "[64:ff9b::101:101]",
    "public.example",
];

fn guard() -> Guard {
    let names = Names::new(&[
        ("public.example", &[&["1.1.1.1", "2606:4700:4700::1111"]]),
        ("private.example", &[&["10.0.0.9"]]),
        ("link-local.example", &[&["169.254.169.254"]]),
        // One bad address among good ones makes the name bad.
        ("mixed.example", &[&["1.1.1.1", "169.254.169.254"]]),
    ]);
    Guard::start_with(Rules::default(), Arc::new(names)).unwrap()
}

#[test]
fn t_g1_nothing_private_or_never_dialled_is_reached() {
    if !network::enter() {
        return;
    }
    let (everywhere, guard) = (Server::start("[::]:80"), guard());
    for host in NEVER.iter().chain(PRIVATE) {
        let (url, authority) = (format!("http://{host}/"), format!("{host}:80"));
        for answer in [get(&guard, &url), tunnel(&guard, &authority).0] {
            if host.contains('%') {
                // No browser sends a host in this form, and it is invalid in a URI.
                assert_eq!(status(&answer), 400, "{host}: {answer}");
            } else {
                assert_eq!(
                    (status(&answer), by_guard(&answer)),
                    (403, Some("refused")),
                    "{host}: {answer}"
                );
            }
        }
    }
    assert_eq!(everywhere.came(), Vec::<IpAddr>::new());

    // The network does show every connection.
    for host in PUBLIC {
        let answer = get(&guard, &format!("http://{host}/"));
        assert!(
            answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with("hi"),
            "{host}: {answer}"
        );
        let (answer, _) = tunnel(&guard, &format!("{host}:80"));
        assert_eq!(status(&answer), 200, "{host}");
    }
    assert_eq!(everywhere.came().len(), PUBLIC.len() * 2);
}

#[test]
fn t_g1_only_the_approved_host_is_reached() {
    if !network::enter() {
        return;
    }
    let everywhere = Server::start("[::]:80");
    for host in PRIVATE {
        let (guard, url) = (guard(), format!("http://{host}/"));
        allow(&guard, &url);
        assert_eq!(judge(&guard, &url), Verdict::Allow, "{host}");
        assert_eq!(status(&get(&guard, &url)), 200, "{host}");
        for never in &NEVER[..3] {
            assert_eq!(status(&get(&guard, &format!("http://{never}/"))), 403, "{never}");
        }
        assert_eq!(status(&get(&guard, "http://10.9.9.9/")), 403);
    }
    let came = everywhere.came();
    assert_eq!(came.len(), PRIVATE.len());
    assert!(
        !came.contains(&"169.254.169.254".parse().unwrap())
            && !came.contains(&"10.9.9.9".parse().unwrap())
    );
}

/// Every spelling of an address is judged in the same way: the user is asked about the address that
/// is dialled.
#[test]
fn t_g1_a_page_is_judged_by_its_dialled_addresses() {
    let guard = guard();
    for host in NEVER {
        let why = refused(&guard, &format!("http://{host}:8080/path"));
        assert!(
            matches!(why, RefusalReason::Never { .. } | RefusalReason::Metadata),
            "{host}: {why}"
        );
    }
    for host in PRIVATE {
        asked(&guard, &format!("https://{host}/"));
    }
    for host in PUBLIC {
        assert_eq!(judge(&guard, &format!("https://{host}/")), Verdict::Allow, "{host}");
    }
    for form in ["127.1", "0x7f.1", "2130706433", "１２７.0.0.1", "127。0。0。1", "[::ffff:7f00:1]"]
    {
        let ask = asked(&guard, &format!("http://{form}/"));
        assert_eq!(
            (ask.host.as_str(), ask.addresses),
            ("127.0.0.1", vec!["127.0.0.1".parse().unwrap()]),
            "{form}"
        );
    }
    let ask = asked(&guard, "http://LocalHost:3000/");
    assert_eq!(ask.host, "localhost");
    assert_eq!(ask.addresses, ["127.0.0.1".parse::<IpAddr>().unwrap(), "::1".parse().unwrap()]);
}

#[test]
fn t_g1_a_name_is_dialled_where_it_was_judged() {
    if !network::enter() {
        return;
    }
    let everywhere = Server::start("[::]:80");
    let rebinding: Vec<&[&str]> =
        [["1.1.1.1"].as_slice(), &["169.254.169.254"], &["127.0.0.1"]].repeat(20);
    let names = Names::new(&[
        ("rebinding.example", &rebinding),
        (
            "dev.example",
            &[&["10.0.0.1"], &["10.0.0.1"], &["10.0.0.2"], &["127.0.0.1"], &["10.0.0.1"]],
        ),
    ]);
    let guard = Guard::start_with(Rules::default(), Arc::new(names)).unwrap();
    let statuses: Vec<_> =
        (0..60).map(|_| status(&get(&guard, "http://rebinding.example/"))).collect();
    assert_eq!(statuses, [200, 403, 403].repeat(20));
    assert_eq!(everywhere.came(), ["1.1.1.1".parse::<IpAddr>().unwrap(); 20]);

    // A name is allowed at one address; at another one, it is a different place.
    allow(&guard, "http://dev.example/");
    let statuses: Vec<_> = (0..4).map(|_| status(&get(&guard, "http://dev.example/"))).collect();
    assert_eq!(statuses, [200, 403, 403, 200]);
    assert_eq!(everywhere.came(), ["10.0.0.1".parse::<IpAddr>().unwrap(); 2]);
}

#[test]
fn t_g1_an_approval_outlives_the_browser_but_not_its_session() {
    let rules = Rules::default();
    let first = Guard::start(rules.clone()).unwrap();
    allow(&first, "http://127.0.0.1:1/");
    drop(first);
    let next = Guard::start(rules).unwrap();
    assert_eq!(judge(&next, "http://127.0.0.1:2/"), Verdict::Allow);
    let other = Guard::start(Rules::default()).unwrap();
    asked(&other, "http://127.0.0.1:2/");
    other.allow_port(&asked(&other, "http://127.0.0.1:1/"), 1);
    assert_eq!(judge(&other, "http://127.0.0.1:1/"), Verdict::Allow);
    asked(&other, "http://127.0.0.1:2/");
}
