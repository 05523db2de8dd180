//! The judgement of a host: its name by the rules, then each of its addresses.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::timeout;
use url::Url;

use super::address::{AddressClass, classify};
use super::host::{Host, Target, is_below};
use super::ledger::Ledgers;
use super::own::OwnPorts;
use super::resolve::Resolve;
use super::rules::Rules;
use super::verdict::{Ask, RefusalReason, Verdict};

/// The time limit of a lookup, which is the time that a resolver gives one try.
const LOOKUP_LIMIT: Duration = Duration::from_secs(5);

/// Names of the services that give cloud machines their keys; names below them count too. The
/// services' addresses are refused as well, but a name is refused even if it resolves to another
/// address.
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

/// Judges the hosts that one browser, or one program in a sandbox, wants to reach.
pub(super) struct Judge {
    rules: Rules,
    resolver: Arc<dyn Resolve>,
    own_ports: OwnPorts,
    ledgers: Ledgers,
}

/// The result of a judgement that is not a refusal.
pub(super) enum HostDecision {
    /// The host may be dialled at these addresses.
    Allow(Vec<SocketAddr>),
    /// The user has to approve the host first.
    Ask(Ask),
}

impl Judge {
    pub(super) fn new(rules: Rules, resolver: Arc<dyn Resolve>, own_ports: OwnPorts) -> Self {
        Self { rules, resolver, own_ports, ledgers: Ledgers::default() }
    }

    pub(super) fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Judges whether a page may be opened.
    pub(super) async fn judge_page(&self, url: &str) -> Verdict {
        verdict(match page_target(url) {
            Ok(target) => self.judge_target(&target).await,
            Err(why) => Err(why),
        })
    }

    /// Like [`judge_page`](Self::judge_page), but without a remote lookup: `None` if one is
    /// necessary. May block.
    pub(super) fn judge_locally(&self, url: &str) -> Option<Verdict> {
        let found = page_target(url).and_then(|target| {
            self.judge_name(&target)?;
            let addresses =
                fixed_addresses(&target.host).or_else(|| self.near_addresses(&target.host));
            addresses.map(|addresses| self.judge_addresses(&target, &addresses)).transpose()
        });
        found.transpose().map(verdict)
    }

    /// The addresses at which a host may be dialled.
    pub(super) async fn allowed_addresses(
        &self,
        target: &Target,
    ) -> Result<Vec<SocketAddr>, RefusalReason> {
        match self.judge_target(target).await? {
            HostDecision::Allow(addresses) => Ok(addresses),
            HostDecision::Ask(ask) => Err(ask
                .addresses
                .first()
                .map_or(RefusalReason::NoSuchHost, |&address| RefusalReason::Private { address })),
        }
    }

    async fn judge_target(&self, target: &Target) -> Result<HostDecision, RefusalReason> {
        self.judge_name(target)?;
        let addresses = match fixed_addresses(&target.host) {
            Some(addresses) => addresses,
            None => self.look_up(target.host.to_string()).await?,
        };
        self.judge_addresses(target, &addresses)
    }

    fn judge_name(&self, target: &Target) -> Result<(), RefusalReason> {
        match self.rules.denying_rule(target, None) {
            Some(rule) => Err(RefusalReason::Denied { rule }),
            None if self.rules.excludes(target) => Err(RefusalReason::NotNamed),
            None if is_metadata(&target.host) => Err(RefusalReason::Metadata),
            None => Ok(()),
        }
    }

    fn judge_addresses(
        &self,
        target: &Target,
        addresses: &[IpAddr],
    ) -> Result<HostDecision, RefusalReason> {
        let mut unapproved = Vec::new();
        for &address in addresses {
            if self.judge_address(target, address)? == AddressClass::Private
                && !self.rules.allows(target, address)
            {
                unapproved.push(address);
            }
        }
        // Makes the ask independent of the order in which the resolver lists the addresses.
        unapproved.sort_unstable();
        unapproved.dedup();
        Ok(match unapproved.is_empty() {
            true => HostDecision::Allow(
                addresses.iter().map(|&address| SocketAddr::new(address, target.port)).collect(),
            ),
            false => {
                HostDecision::Ask(Ask { host: target.host.to_string(), addresses: unapproved })
            }
        })
    }

    /// Refuses addresses that no approval can allow. One refused address refuses the whole name,
    /// because an honest name has no such address.
    fn judge_address(
        &self,
        target: &Target,
        address: IpAddr,
    ) -> Result<AddressClass, RefusalReason> {
        if let Some(rule) = self.rules.denying_rule(target, Some(address)) {
            return Err(RefusalReason::Denied { rule });
        }
        if address.is_loopback() && self.own_ports.contains(target.port) {
            return Err(RefusalReason::Own { port: target.port });
        }
        match classify(address) {
            AddressClass::Never(what) => Err(RefusalReason::Never { address, what }),
            class => Ok(class),
        }
    }

    /// The addresses of a name that can be looked up nearby; `None` if there are none.
    fn near_addresses(&self, host: &Host) -> Option<Vec<IpAddr>> {
        let (sender, receiver) = mpsc::channel();
        let (resolver, name) = (self.resolver.clone(), host.to_string());
        let look_up = move || sender.send(resolver.is_near(&name).then(|| resolver.resolve(&name)));
        // A lookup that exceeds the limit is left to its thread.
        thread::Builder::new().name("near name".to_owned()).spawn(look_up).ok()?;
        let found = receiver.recv_timeout(LOOKUP_LIMIT).ok()??.ok()?;
        (!found.is_empty())
            .then(|| found.into_iter().map(|address| address.to_canonical()).collect())
    }

    /// Looks up the addresses of a name; at least one on success.
    async fn look_up(&self, name: String) -> Result<Vec<IpAddr>, RefusalReason> {
        let resolver = self.resolver.clone();
        let found = timeout(LOOKUP_LIMIT, spawn_blocking(move || resolver.resolve(&name))).await;
        let found = found.map_err(|_| RefusalReason::Lookup {
            error: "nothing answered within 5 s".to_owned(),
        })?;
        let addresses = match found.map_err(io::Error::other).and_then(|found| found) {
            Ok(addresses) => addresses.into_iter().map(|address| address.to_canonical()).collect(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(RefusalReason::Lookup { error: error.to_string() }),
        };
        if addresses.is_empty() { Err(RefusalReason::NoSuchHost) } else { Ok(addresses) }
    }

    pub(super) fn ledgers(&self) -> &Ledgers {
        &self.ledgers
    }
}

/// The target of a page, which must have an http or https URL.
fn page_target(url: &str) -> Result<Target, RefusalReason> {
    let not_an_address = || RefusalReason::NotAnAddress { url: url.chars().take(100).collect() };
    let url = Url::parse(url).map_err(|_| not_an_address())?;
    match url.scheme() {
        "http" | "https" => Target::from_url(&url).ok_or_else(not_an_address),
        scheme => Err(RefusalReason::Scheme { scheme: scheme.to_owned() }),
    }
}

/// The addresses of a host that needs no lookup.
fn fixed_addresses(host: &Host) -> Option<Vec<IpAddr>> {
    match host {
        Host::Address(address) => Some(vec![*address]),
        // Always loopback (RFC 6761). Not every resolver knows this for names below `localhost`.
        Host::Name(name) if is_below(name, "localhost") => {
            Some(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()])
        }
        Host::Name(_) => None,
    }
}

fn verdict(found: Result<HostDecision, RefusalReason>) -> Verdict {
    match found {
        Ok(HostDecision::Allow(_)) => Verdict::Allow,
        Ok(HostDecision::Ask(ask)) => Verdict::Ask(ask),
        Err(why) => Verdict::Refused { why },
    }
}

fn is_metadata(host: &Host) -> bool {
    match host {
        Host::Name(name) => METADATA_NAMES.iter().any(|metadata| is_below(name, metadata)),
        Host::Address(_) => false,
    }
}
