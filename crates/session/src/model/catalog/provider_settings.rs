//! The keys and addresses of providers, from the configuration or else the environment.

use std::net::Ipv6Addr;

use holdpoint_common::{ApiKey, Certificates, ProviderSettings as Configured, Proxies};

use crate::model::{Access, Provider};

/// The settings by which a provider is reached.
pub(super) struct ProviderSettings {
    pub(super) key: Option<Setting<ApiKey>>,
    pub(super) base_url: Option<Setting<String>>,
}

/// A value and its source.
pub(super) struct Setting<T> {
    pub(super) value: T,
    pub(super) from: String,
}

impl<T> Setting<T> {
    fn new(value: Option<T>, from: impl Into<String>) -> Option<Self> {
        value.map(|value| Self { value, from: from.into() })
    }
}

impl ProviderSettings {
    /// Finds the settings of `provider`. The configuration takes precedence over the environment.
    pub(super) fn find(
        provider: Provider,
        configured: Configured,
        env: &impl Fn(&str) -> Option<String>,
    ) -> Self {
        let non_empty_key = |key: ApiKey| Some(key).filter(|key| !key.is_empty());
        let key_in_env = |name| non_empty_key(env(name)?.into());
        let key = configured.api_key.and_then(non_empty_key);
        let base_url = configured.base_url.and_then(non_empty);
        let in_config = |setting| format!("[providers.{provider}] {setting}");
        Self {
            key: Setting::new(key, in_config("api_key")).or_else(|| {
                provider.key_variable().and_then(|name| Setting::new(key_in_env(name), name))
            }),
            base_url: Setting::new(base_url, in_config("base_url")).or_else(|| {
                let name = provider.url_variable();
                Setting::new(env(name).and_then(non_empty), name)
            }),
        }
    }

    /// The access to the provider; `None` if a key is missing.
    pub(super) fn access(
        &self,
        provider: Provider,
        proxies: &Proxies,
        certificates: &Certificates,
    ) -> Option<Access> {
        // The user's own server may need no key.
        let needs_key = provider.key_variable().is_some() && self.base_url.is_none();
        let key = self.key.as_ref().map(|setting| setting.value.clone());
        (key.is_some() || !needs_key).then(|| Access {
            key: key.unwrap_or_default(),
            base_url: self.base_url(provider),
            proxies: proxies.clone(),
            certificates: certificates.clone(),
        })
    }

    /// The configured base URL, or else the provider's public one.
    pub(super) fn base_url(&self, provider: Provider) -> String {
        let Some(Setting { value, .. }) = &self.base_url else {
            return provider.public_url().to_owned();
        };
        if provider == Provider::Ollama { ollama_url(value) } else { value.clone() }
    }
}

/// The trimmed value; `None` if it is empty.
pub(super) fn non_empty(value: String) -> Option<String> {
    Some(value.trim().to_owned()).filter(|value| !value.is_empty())
}

/// The URL for a value of `OLLAMA_HOST`, which may be a host, `:PORT`, or both. A server
/// that listens on all addresses is reached on this machine.
fn ollama_url(host: &str) -> String {
    let (scheme, rest) = host.split_once("://").unwrap_or(("http", host));
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let bare_ipv6 = authority.parse::<Ipv6Addr>().ok().map(|address| format!("[{address}]"));
    let authority = bare_ipv6.as_deref().unwrap_or(authority);
    let has_port = |(_, port): &(_, &str)| port.parse::<u16>().is_ok();
    let (name, port) = match authority.rsplit_once(':').filter(has_port) {
        Some((name, port)) => (name, format!(":{port}")),
        None if host.contains("://") => (authority, String::new()),
        None => (authority, ":11434".to_owned()),
    };
    let name = match name {
        "" | "0.0.0.0" => "127.0.0.1",
        "[::]" => "[::1]",
        name => name,
    };
    format!("{scheme}://{name}{port}{path}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_ollama() {
        for (host, url) in [
            ("localhost", "http://localhost:11434"),
            ("10.0.0.7:80", "http://10.0.0.7:80"),
            ("0.0.0.0", "http://127.0.0.1:11434"),
            ("http://0.0.0.0:80/x", "http://127.0.0.1:80/x"),
            ("10.0.0.0:80", "http://10.0.0.0:80"),
            ("0.0.0.0.example", "http://0.0.0.0.example:11434"),
            ("https://ollama.example/x", "https://ollama.example/x"),
            (":8080", "http://127.0.0.1:8080"),
            ("http://[::1]:11434", "http://[::1]:11434"),
            ("::1", "http://[::1]:11434"),
            ("::", "http://[::1]:11434"),
            ("[::]:80", "http://[::1]:80"),
        ] {
            assert_eq!(ollama_url(host), url);
        }
    }
}
