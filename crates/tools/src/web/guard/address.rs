//! The classification of IP addresses: public, private, or never dialled.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether a browser may reach an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AddressClass {
    /// An address on the public internet.
    Public,
    /// This machine or a network near it: needs the user's approval.
    Private,
    /// An address that is never dialled, with the reason.
    Never(&'static str),
}

use AddressClass::{Never, Private, Public};

const DOCUMENTATION: AddressClass = Never("an address for documentation");
const LINK_LOCAL: AddressClass =
    Never("link-local, where clouds serve the credentials of their machines");
const METADATA: AddressClass = Never("where a cloud serves the credentials of its machines");
const MULTICAST: AddressClass = Never("multicast");
const RESERVED: AddressClass = Never("reserved");
const UNSPECIFIED: AddressClass = Never("unspecified, which means this machine");

/// Networks by prefix, more specific ones first: IANA's registry of IPv4 special-purpose addresses,
/// and addresses that single clouds use. An address in no network is public.
const V4: &[(Ipv4Addr, u32, AddressClass)] = &[
    (Ipv4Addr::new(100, 100, 100, 200), 32, METADATA),
    (Ipv4Addr::new(168, 63, 129, 16), 32, METADATA),
    (Ipv4Addr::new(0, 0, 0, 0), 32, UNSPECIFIED),
    (Ipv4Addr::new(0, 0, 0, 0), 8, RESERVED),
    (Ipv4Addr::new(10, 0, 0, 0), 8, Private),
    // Carrier-grade NAT (RFC 6598), and overlay networks.
    (Ipv4Addr::new(100, 64, 0, 0), 10, Private),
    (Ipv4Addr::new(127, 0, 0, 0), 8, Private),
    (Ipv4Addr::new(169, 254, 0, 0), 16, LINK_LOCAL),
    (Ipv4Addr::new(172, 16, 0, 0), 12, Private),
    (Ipv4Addr::new(192, 0, 0, 0), 24, RESERVED),
    (Ipv4Addr::new(192, 0, 2, 0), 24, DOCUMENTATION),
    (Ipv4Addr::new(192, 88, 99, 0), 24, RESERVED),
    (Ipv4Addr::new(192, 168, 0, 0), 16, Private),
    // Network benchmarks (RFC 2544), and the addresses that some proxies return for names.
    (Ipv4Addr::new(198, 18, 0, 0), 15, Private),
    (Ipv4Addr::new(198, 51, 100, 0), 24, DOCUMENTATION),
    (Ipv4Addr::new(203, 0, 113, 0), 24, DOCUMENTATION),
    (Ipv4Addr::new(224, 0, 0, 0), 4, MULTICAST),
    (Ipv4Addr::new(255, 255, 255, 255), 32, Never("broadcast")),
    (Ipv4Addr::new(240, 0, 0, 0), 4, RESERVED),
];

/// Networks of IPv6 by prefix, more specific ones first. Only 2000::/3 is public.
const V6: &[(Ipv6Addr, u32, AddressClass)] = &[
    (Ipv6Addr::UNSPECIFIED, 128, UNSPECIFIED),
    (Ipv6Addr::LOCALHOST, 128, Private),
    (Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0), 32, METADATA),
    (Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254), 128, METADATA),
    (Ipv6Addr::new(0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42), 128, METADATA),
    (Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7, Private),
    (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10, LINK_LOCAL),
    // Site-local, the predecessor of unique local addresses until 2004.
    (Ipv6Addr::new(0xfec0, 0, 0, 0, 0, 0, 0, 0), 10, Private),
    (Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0), 8, MULTICAST),
    // IETF protocol assignments, among them Teredo, which embeds an IPv4 address.
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23, RESERVED),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32, DOCUMENTATION),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20, DOCUMENTATION),
    (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3, Public),
    (Ipv6Addr::UNSPECIFIED, 0, RESERVED),
];

/// Classifies an address. An IPv6 address that embeds an IPv4 address has the class of the latter.
pub(super) fn classify(address: IpAddr) -> AddressClass {
    match address {
        IpAddr::V4(address) => classify_v4(address),
        IpAddr::V6(address) => {
            embedded_v4(address).map_or_else(|| classify_v6(address), classify_v4)
        }
    }
}

fn classify_v4(address: Ipv4Addr) -> AddressClass {
    let within =
        |network: Ipv4Addr, bits| (address.to_bits() ^ network.to_bits()).leading_zeros() >= bits;
    V4.iter()
        .find(|(network, bits, _)| within(*network, *bits))
        .map_or(Public, |(_, _, class)| *class)
}

fn classify_v6(address: Ipv6Addr) -> AddressClass {
    let within =
        |network: Ipv6Addr, bits| (address.to_bits() ^ network.to_bits()).leading_zeros() >= bits;
    V6.iter()
        .find(|(network, bits, _)| within(*network, *bits))
        .map_or(RESERVED, |(_, _, class)| *class)
}

/// The IPv4 address at which packets to this address arrive, through this machine or a translator.
fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let v4 = |high: u16, low: u16| Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low));
    match address.segments() {
        // IPv4-mapped, and IPv4-translated (RFC 7915).
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0, 0, 0, 0, 0xffff, 0, high, low] => {
            Some(v4(high, low))
        }
        // NAT64 (RFC 6052).
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => Some(v4(high, low)),
        // 6to4 (RFC 3056).
        [0x2002, high, low, ..] => Some(v4(high, low)),
        _ => None,
    }
}
