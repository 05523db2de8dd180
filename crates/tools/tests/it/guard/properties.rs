//! Properties of any address in any spelling, and of any domain.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use holdpoint_tools::web::guard::{Guard, RefusalReason, Rules, Verdict};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::judge;
use super::names::Names;

/// The order of verdicts by strictness.
fn strictness(verdict: &Verdict) -> u8 {
    match verdict {
        Verdict::Allow => 0,
        Verdict::Ask(_) => 1,
        Verdict::Refused { .. } => 2,
    }
}

/// Equivalent spellings of one IPv4 address.
fn forms(address: Ipv4Addr) -> Vec<String> {
    let (bits, [a, b, c, d]) = (address.to_bits(), address.octets());
    vec![
        format!("{bits}"),
        format!("{bits:#x}"),
        format!("0{bits:o}"),
        format!("{a}.{}", bits & 0xff_ffff),
        format!("{a:#X}.{b}.{:#o}", bits & 0xffff).replace("0o", "0"),
        format!("{a:#x}.0{b:o}.{c}.{d:#x}."),
        format!("%3{}{}", a.to_string().split_at(1).0, &address.to_string()[1..]),
        format!("[::ffff:{address}]"),
        format!("[::ffff:{:x}:{:x}]", bits >> 16, bits & 0xffff),
    ]
}

/// IPv6 addresses that lead to an IPv4 address.
fn carriers(address: Ipv4Addr) -> [String; 3] {
    let (high, low) = (address.to_bits() >> 16, address.to_bits() & 0xffff);
    [
        format!("[64:ff9b::{high:x}:{low:x}]"),
        format!("[2002:{high:x}:{low:x}:1::2]"),
        format!("[::ffff:0:{high:x}:{low:x}]"),
    ]
}

/// IPv4 addresses, biased towards the special ranges.
fn v4() -> impl Strategy<Value = Ipv4Addr> {
    let first = select(vec![0_u8, 10, 100, 127, 169, 172, 192, 198, 203, 224, 255]);
    let second = select(vec![0_u8, 16, 31, 64, 127, 168, 18, 254]);
    prop_oneof![
        any::<Ipv4Addr>(),
        (first, prop_oneof![any::<u8>(), second], any::<u8>(), any::<u8>())
            .prop_map(|(a, b, c, d)| Ipv4Addr::new(a, b, c, d)),
    ]
}

proptest! {
    #[test]
    fn t_g1_an_address_is_judged_alike_in_every_form(address in v4()) {
        let guard = Guard::start(Rules::default()).unwrap();
        let plain = judge(&guard, &format!("http://{address}/"));
        for form in forms(address) {
            prop_assert_eq!(&judge(&guard, &format!("http://{form}/")), &plain, "{}", form);
        }
        for carrier in carriers(address) {
            prop_assert_eq!(strictness(&judge(&guard, &format!("http://{carrier}/"))), strictness(&plain), "{}", carrier);
        }
        // The standard library's view of the address.
        let never = address.is_link_local() || address.is_multicast() || address.is_broadcast()
            || address.is_unspecified() || address.is_documentation();
        prop_assert!(!never || matches!(plain, Verdict::Refused { .. }), "{} {:?}", address, plain);
        let asks = address.is_private() || address.is_loopback();
        prop_assert!(!asks || matches!(plain, Verdict::Ask(_)), "{} {:?}", address, plain);
    }

    #[test]
    fn t_g1_only_global_unicast_ipv6_addresses_are_public(first in any::<u16>(), rest in any::<[u16; 7]>()) {
        let [b, c, d, e, f, g, h] = rest;
        let address = Ipv6Addr::new(first, b, c, d, e, f, g, h);
        let guard = Guard::start(Rules::default()).unwrap();
        let verdict = judge(&guard, &format!("http://[{address}]/"));
        prop_assert!(verdict != Verdict::Allow || first & 0xe000 == 0x2000, "{}", address);
        let never = address.is_unicast_link_local() || address.is_multicast();
        prop_assert!(!never || matches!(verdict, Verdict::Refused { .. }), "{} {:?}", address, verdict);
        prop_assert!(!address.is_unique_local() || verdict != Verdict::Allow, "{} {:?}", address, verdict);
    }

    #[test]
    fn t_g4_a_domain_rule_covers_the_domain_and_its_subdomains(
        rule in vec("[a-c]{1,2}", 1..4),
        host in vec("[a-c]{1,2}", 1..5),
        upper in any::<bool>(),
        dot in any::<bool>(),
    ) {
        let names = Names::new(&[(Names::ELSE, &[&["1.1.1.1"]])]);
        let rules = Rules::new(&[], &[rule.join(".")]).unwrap();
        let guard = Guard::start_with(rules, Arc::new(names)).unwrap();
        let mut name = host.join(".");
        if upper {
            name = name.to_ascii_uppercase();
        }
        if dot {
            name.push('.');
        }
        let denied = matches!(judge(&guard, &format!("http://{name}/")), Verdict::Refused { why: RefusalReason::Denied { .. } });
        prop_assert_eq!(denied, host.ends_with(&rule), "{:?} {}", rule, name);
    }

    /// Any text is judged: only http URLs pass, an ask names a host, and a refusal gives a reason.
    #[test]
    fn t_g5_any_text_is_judged(url in "(https?:|ht\ntp:)?[/\\\\]{0,3}[ -~é。\u{ad}]{0,20}") {
        let names = Names::new(&[(Names::ELSE, &[&["10.0.0.1"]])]);
        let guard = Guard::start_with(Rules::default(), Arc::new(names)).unwrap();
        match judge(&guard, &url) {
            Verdict::Allow => prop_assert!(url.trim().to_ascii_lowercase().replace('\n', "").starts_with("http")),
            Verdict::Ask(ask) => prop_assert!(!ask.host.is_empty() && !ask.addresses.is_empty()),
            Verdict::Refused { why } => prop_assert!(!why.to_string().is_empty()),
        }
    }
}

#[test]
fn t_g1_an_ask_shows_the_exact_address() {
    let guard = Guard::start(Rules::default()).unwrap();
    let Verdict::Ask(ask) = judge(&guard, "http://[64:ff9b::a00:1]/") else { panic!("not asked") };
    assert_eq!(ask.host, "[64:ff9b::a00:1]");
    assert_eq!(ask.addresses, ["64:ff9b::a00:1".parse::<IpAddr>().unwrap()]);
}
