//! What an address is: anyone's, this machine's and its networks', or nothing a browser should ever dial.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Who can be reached at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// Whom everybody reaches.
    Public,
    /// This machine, or what is near it: a person has to allow it.
    Private,
    /// Nobody whom a browser has to reach, for this reason.
    Never(&'static str),
}

use Reach::{Never, Private, Public};

const DOCUMENTATION: Reach = Never("an address of examples");
const LINK_LOCAL: Reach = Never("link-local, where clouds keep the keys of their machines");
const METADATA: Reach = Never("where a cloud keeps the keys of its machines");
const MULTICAST: Reach = Never("multicast");
const RESERVED: Reach = Never("reserved");
const UNSPECIFIED: Reach = Never("unspecified: it stands for this machine");

/// Networks by their first bits, the special ones before those that they are part of: IANA's registry of IPv4
/// special-purpose addresses, and addresses that single clouds have taken. What is in none is public.
const V4: &[(Ipv4Addr, u32, Reach)] = &[
    (Ipv4Addr::new(100, 100, 100, 200), 32, METADATA),
    (Ipv4Addr::new(168, 63, 129, 16), 32, METADATA),
    (Ipv4Addr::new(0, 0, 0, 0), 32, UNSPECIFIED),
    (Ipv4Addr::new(0, 0, 0, 0), 8, RESERVED),
    (Ipv4Addr::new(10, 0, 0, 0), 8, Private),
    // What providers put between themselves and their customers (RFC 6598), and overlay networks.
    (Ipv4Addr::new(100, 64, 0, 0), 10, Private),
    (Ipv4Addr::new(127, 0, 0, 0), 8, Private),
    (Ipv4Addr::new(169, 254, 0, 0), 16, LINK_LOCAL),
    (Ipv4Addr::new(172, 16, 0, 0), 12, Private),
    (Ipv4Addr::new(192, 0, 0, 0), 24, RESERVED),
    (Ipv4Addr::new(192, 0, 2, 0), 24, DOCUMENTATION),
    (Ipv4Addr::new(192, 88, 99, 0), 24, RESERVED),
    (Ipv4Addr::new(192, 168, 0, 0), 16, Private),
    // Benchmarks of networks (RFC 2544), and what some proxies give out for names.
    (Ipv4Addr::new(198, 18, 0, 0), 15, Private),
    (Ipv4Addr::new(198, 51, 100, 0), 24, DOCUMENTATION),
    (Ipv4Addr::new(203, 0, 113, 0), 24, DOCUMENTATION),
    (Ipv4Addr::new(224, 0, 0, 0), 4, MULTICAST),
    (Ipv4Addr::new(255, 255, 255, 255), 32, Never("broadcast")),
    (Ipv4Addr::new(240, 0, 0, 0), 4, RESERVED),
];

/// The same for IPv6, where nothing is public but 2000::/3.
const V6: &[(Ipv6Addr, u32, Reach)] = &[
    (Ipv6Addr::UNSPECIFIED, 128, UNSPECIFIED),
    (Ipv6Addr::LOCALHOST, 128, Private),
    (Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0), 32, METADATA),
    (Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254), 128, METADATA),
    (Ipv6Addr::new(0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42), 128, METADATA),
    (Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7, Private),
    (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10, LINK_LOCAL),
    // Site-local: what unique local addresses were before 2004.
    (Ipv6Addr::new(0xfec0, 0, 0, 0, 0, 0, 0, 0), 10, Private),
    (Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0), 8, MULTICAST),
    // Teredo, which carries an IPv4 address in disguise, among others of the IETF's.
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23, RESERVED),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32, DOCUMENTATION),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20, DOCUMENTATION),
    (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3, Public),
    (Ipv6Addr::UNSPECIFIED, 0, RESERVED),
];

/// Who can be reached at this address; where it carries an IPv4 address, at that.
pub(super) fn reach(address: IpAddr) -> Reach {
    match address {
        IpAddr::V4(address) => reach_v4(address),
        IpAddr::V6(address) => carried(address).map_or_else(|| reach_v6(address), reach_v4),
    }
}

fn reach_v4(address: Ipv4Addr) -> Reach {
    let within = |network: Ipv4Addr, bits| (address.to_bits() ^ network.to_bits()).leading_zeros() >= bits;
    V4.iter().find(|(network, bits, _)| within(*network, *bits)).map_or(Public, |(_, _, reach)| *reach)
}

fn reach_v6(address: Ipv6Addr) -> Reach {
    let within = |network: Ipv6Addr, bits| (address.to_bits() ^ network.to_bits()).leading_zeros() >= bits;
    V6.iter().find(|(network, bits, _)| within(*network, *bits)).map_or(RESERVED, |(_, _, reach)| *reach)
}

/// The IPv4 address that what is sent here arrives at, by way of this machine or of a translator.
fn carried(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let v4 = |high: u16, low: u16| Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low));
    match address.segments() {
        // Mapped, and translated (RFC 7915).
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0, 0, 0, 0, 0xffff, 0, high, low] => Some(v4(high, low)),
        // NAT64 (RFC 6052).
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => Some(v4(high, low)),
        // 6to4 (RFC 3056).
        [0x2002, high, low, ..] => Some(v4(high, low)),
        _ => None,
    }
}
