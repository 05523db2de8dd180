//! The judgement about one host: its name by the rules, then every address that the name has.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::timeout;
use url::Url;

use super::address::{Reach, reach};
use super::host::{Host, Target, is_below};
use super::ledger::Ledgers;
use super::own::OwnPorts;
use super::resolve::Resolve;
use super::rules::Rules;
use super::verdict::{Ask, Verdict, Why};

/// How long the addresses of a name may take to be found: what a resolver takes for one try.
const LOOKUP_LIMIT: Duration = Duration::from_secs(5);

/// Names by which clouds give their machines keys, and everything below them. Their addresses are refused as well;
/// by name they are refused even where someone has given them another one.
const METADATA_NAMES: &[&str] = &[
    "instance-data",
    "instance-data.ec2.internal",
    "metadata",
    "metadata.aliyun.internal",
    "metadata.azure.internal",
    "metadata.goog",
    "metadata.google.internal",
    "metadata.oraclecloud.com",
    "metadata.packet.net",
    "metadata.platformequinix.com",
    "metadata.tencentyun.com",
];

/// Judges for one browser.
pub(super) struct Judge {
    rules: Rules,
    resolver: Arc<dyn Resolve>,
    own: OwnPorts,
    /// Where is written what was not let through.
    ledgers: Ledgers,
}

/// What was found of a host.
pub(super) enum Found {
    /// It may be dialled, at these addresses.
    Go(Vec<SocketAddr>),
    /// A person has to allow it.
    Ask(Ask),
}

impl Judge {
    pub(super) fn new(rules: Rules, resolver: Arc<dyn Resolve>, own: OwnPorts) -> Self {
        Self { rules, resolver, own, ledgers: Ledgers::default() }
    }

    pub(super) fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Whether a page may be opened.
    pub(super) async fn page(&self, url: &str) -> Verdict {
        verdict(match page_target(url) {
            Ok(target) => self.find(&target).await,
            Err(why) => Err(why),
        })
    }

    /// The same as far as it can be told with nobody far away asked; none where it can't. May block.
    pub(super) fn at_sight(&self, url: &str) -> Option<Verdict> {
        let found = page_target(url).and_then(|target| {
            self.judge_name(&target)?;
            let addresses = own_addresses(&target.host).or_else(|| self.near_addresses(&target.host));
            addresses.map(|addresses| self.judge_addresses(&target, &addresses)).transpose()
        });
        found.transpose().map(verdict)
    }

    /// Where a host may be dialled.
    pub(super) async fn way(&self, target: &Target) -> Result<Vec<SocketAddr>, Why> {
        match self.find(target).await? {
            Found::Go(addresses) => Ok(addresses),
            Found::Ask(ask) => Err(ask.addresses.first().map_or(Why::NoSuchHost, |&address| Why::Private { address })),
        }
    }

    async fn find(&self, target: &Target) -> Result<Found, Why> {
        self.judge_name(target)?;
        let addresses = match own_addresses(&target.host) {
            Some(addresses) => addresses,
            None => self.look_up(target.host.to_string()).await?,
        };
        self.judge_addresses(target, &addresses)
    }

    fn judge_name(&self, target: &Target) -> Result<(), Why> {
        match self.rules.denies(target, None) {
            Some(rule) => Err(Why::Denied { rule }),
            None if is_metadata(&target.host) => Err(Why::Metadata),
            None => Ok(()),
        }
    }

    fn judge_addresses(&self, target: &Target, addresses: &[IpAddr]) -> Result<Found, Why> {
        let mut unasked = Vec::new();
        for &address in addresses {
            if self.judge_address(target, address)? == Reach::Private && !self.rules.allows(target, address) {
                unasked.push(address);
            }
        }
        // However they come, the question is the same.
        unasked.sort_unstable();
        unasked.dedup();
        Ok(match unasked.is_empty() {
            true => Found::Go(addresses.iter().map(|&address| SocketAddr::new(address, target.port)).collect()),
            false => Found::Ask(Ask { host: target.host.to_string(), addresses: unasked }),
        })
    }

    /// Refuses what is not to be dialled whoever allows it. A name is refused with any one of its addresses: an honest
    /// one leads to no such place.
    fn judge_address(&self, target: &Target, address: IpAddr) -> Result<Reach, Why> {
        if let Some(rule) = self.rules.denies(target, Some(address)) {
            return Err(Why::Denied { rule });
        }
        if address.is_loopback() && self.own.contains(target.port) {
            return Err(Why::Own { port: target.port });
        }
        match reach(address) {
            Reach::Never(what) => Err(Why::Never { address, what }),
            reach => Ok(reach),
        }
    }

    /// The addresses of a name that is looked up near here; none if none is found.
    fn near_addresses(&self, host: &Host) -> Option<Vec<IpAddr>> {
        let (tell, told) = mpsc::channel();
        let (resolver, name) = (self.resolver.clone(), host.to_string());
        let look_up = move || tell.send(resolver.is_near(&name).then(|| resolver.resolve(&name)));
        // One that does not come back in time is not waited for.
        thread::Builder::new().name("near name".to_owned()).spawn(look_up).ok()?;
        let found = told.recv_timeout(LOOKUP_LIMIT).ok()??.ok()?;
        (!found.is_empty()).then(|| found.into_iter().map(|address| address.to_canonical()).collect())
    }

    /// The addresses of a name, at least one.
    async fn look_up(&self, name: String) -> Result<Vec<IpAddr>, Why> {
        let resolver = self.resolver.clone();
        let found = timeout(LOOKUP_LIMIT, spawn_blocking(move || resolver.resolve(&name))).await;
        let found = found.map_err(|_| Why::Lookup { error: "nothing answered within 5 s".to_owned() })?;
        let addresses = match found.map_err(io::Error::other).and_then(|found| found) {
            Ok(addresses) => addresses.into_iter().map(|address| address.to_canonical()).collect(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(Why::Lookup { error: error.to_string() }),
        };
        if addresses.is_empty() { Err(Why::NoSuchHost) } else { Ok(addresses) }
    }

    pub(super) fn ledgers(&self) -> &Ledgers {
        &self.ledgers
    }
}

/// Where a page is: of http or https, and nothing else that a browser opens.
fn page_target(url: &str) -> Result<Target, Why> {
    let not_an_address = || Why::NotAnAddress { url: url.chars().take(100).collect() };
    let url = Url::parse(url).map_err(|_| not_an_address())?;
    match url.scheme() {
        "http" | "https" => Target::of(&url).ok_or_else(not_an_address),
        scheme => Err(Why::Scheme { scheme: scheme.to_owned() }),
    }
}

/// The addresses of a host that are known without looking it up.
fn own_addresses(host: &Host) -> Option<Vec<IpAddr>> {
    match host {
        Host::Address(address) => Some(vec![*address]),
        // Never anything else (RFC 6761), which not every resolver knows of those below `localhost`.
        Host::Name(name) if is_below(name, "localhost") => {
            Some(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()])
        }
        Host::Name(_) => None,
    }
}

fn verdict(found: Result<Found, Why>) -> Verdict {
    match found {
        Ok(Found::Go(_)) => Verdict::Go,
        Ok(Found::Ask(ask)) => Verdict::Ask(ask),
        Err(why) => Verdict::Refused { why },
    }
}

fn is_metadata(host: &Host) -> bool {
    match host {
        Host::Name(name) => METADATA_NAMES.iter().any(|metadata| is_below(name, metadata)),
        Host::Address(_) => false,
    }
}
