//! The server of a known agent, if a variable of its user has the address.

use holdpoint_tools::Domains;
use reqwest::Url;

use crate::hosted::known::KnownAgent;

/// A server that is not one of the agent's vendor.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Server {
    /// The variable that has the address.
    pub(super) variable: &'static str,
    /// The host of the address, in the form of a URL.
    pub(super) host: String,
}

impl Server {
    /// Reads the address in the variables of an agent; `None` if it is not set, or empty.
    ///
    /// # Errors
    /// The value is not an address. The error does not contain it, because it may contain a key.
    pub(super) fn of(
        known: &KnownAgent,
        variables: &[(String, String)],
    ) -> Result<Option<Self>, String> {
        let Some(variable) = known.server_variable else { return Ok(None) };
        // A program gets the last one.
        let value = variables.iter().rev().find(|(name, _)| name == variable);
        let Some(value) = value.map(|(_, value)| value).filter(|value| !value.is_empty()) else {
            return Ok(None);
        };
        let url = Url::parse(value).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let host = url.as_ref().and_then(Url::host_str).ok_or_else(|| {
            format!(
                "the value of {variable} is not an address (hint: write it in full, as in \
                 https://example.com)"
            )
        })?;
        Ok(Some(Self { variable, host: host.to_owned() }))
    }

    /// The host as a domain.
    ///
    /// # Errors
    /// The host can't be allowed alone, because it is not a name.
    pub(super) fn domain(&self) -> Result<String, String> {
        let Self { variable, host } = self;
        let parsed = Domains::parse(std::slice::from_ref(host));
        parsed.map(|_| host.clone()).map_err(|why| {
            format!(
                "the sandbox can't allow the host of {variable}: {why} (hint: write the name of \
                 the host, or set `network = true` in `[sandbox]`)"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m_h3_the_server_of_an_agent_is_the_host_of_its_variable() {
        let claude = KnownAgent::named("claude").unwrap();
        let of = |values: &[&str]| {
            let name = "ANTHROPIC_BASE_URL".to_owned();
            let variables: Vec<_> =
                values.iter().map(|value| (name.clone(), (*value).to_owned())).collect();
            Server::of(claude, &variables)
        };
        assert_eq!(of(&[]), Ok(None));
        assert_eq!(of(&["https://gw.corp", ""]), Ok(None));
        for (value, host) in [
            ("https://GW.corp:8443/key/v1", "gw.corp"),
            ("http://user:secret@localhost", "localhost"),
            ("https://b\u{fc}ro.example", "xn--bro-hoa.example"),
        ] {
            let server = of(&[value]).unwrap().unwrap();
            assert_eq!((&*server.host, server.domain().as_deref()), (host, Ok(host)));
        }
        for value in ["gw.corp", "gw.corp:8443", "unix:/socket", "https://", "key"] {
            let why = of(&[value]).unwrap_err();
            assert!(why.contains("ANTHROPIC_BASE_URL is not an address"), "{value}: {why}");
        }
        for address in ["http://127.0.0.1:1", "http://[::1]"] {
            let why = of(&[address]).unwrap().unwrap().domain().unwrap_err();
            assert!(why.contains("hint: write the name of the host"), "{why}");
        }
        let opencode = KnownAgent::named("opencode").unwrap();
        assert_eq!(Server::of(opencode, &[("ANTHROPIC_BASE_URL".into(), "x".into())]), Ok(None));
    }
}
