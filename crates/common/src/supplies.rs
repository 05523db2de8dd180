//! Supplies: the environment and settings that a client brings for the sessions it opens.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::ProviderSettings;
use crate::mcp::McpServers;
use crate::model::ModelSettings;

/// The environment, provider settings, system prompt and MCP servers that a client brings for the
/// sessions it opens. They are kept in memory, also after the session has ended, and never saved.
#[derive(Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Supplies {
    /// Environment for the processes of tools, as pairs of name and value. Only variables on an
    /// allow-list reach the processes.
    pub env: Vec<(String, String)>,
    /// Settings for access to models. Default: those of the engine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub models: Option<ModelSupplies>,
    /// System prompt for models. Default: that of the engine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// MCP servers of the sessions, by name. They start with the first turn. Default: none.
    #[serde(skip_serializing_if = "McpServers::is_empty")]
    pub mcp: McpServers,
}

/// The settings for access to models, from a client's configuration and environment.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ModelSupplies {
    /// Model of sessions that name none, as `PROVIDER/NAME` or `PROVIDER`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Settings of providers, by name.
    pub providers: BTreeMap<String, ProviderSettings>,
    /// Settings of single models, by `PROVIDER/NAME`.
    pub models: BTreeMap<String, ModelSettings>,
    /// Proxies for requests to models.
    pub proxies: Proxies,
    /// Certificate authorities that the servers of models are checked against.
    pub certificates: Certificates,
}

/// The certificate authorities that are trusted instead of the system's, if the client's
/// environment sets any.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Certificates {
    /// Absolute path of a PEM file with certificates, from `SSL_CERT_FILE`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Absolute paths of folders with such files, separated by colons, from `SSL_CERT_DIR`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dir: Option<String>,
}

impl Certificates {
    /// Reads the variables of an environment. An empty value counts as unset.
    pub fn from_env(env: impl Fn(&str) -> Option<String>) -> Self {
        let read = |name| env(name).filter(|value| !value.is_empty());
        Self { file: read("SSL_CERT_FILE"), dir: read("SSL_CERT_DIR") }
    }
}

/// The proxies for requests to models, from the usual environment variables in lower or upper case.
/// An address begins with `http://`, `https://`, `socks5://` or `socks5h://`; without a scheme it
/// is `http`.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Proxies {
    /// Proxy for `http` addresses, from `http_proxy`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http: Option<String>,
    /// Proxy for `https` addresses, from `https_proxy`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub https: Option<String>,
    /// Proxy for both kinds of address if their own is not set, from `all_proxy`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub all: Option<String>,
    /// Hosts that are reached without a proxy, from `no_proxy`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no: Option<String>,
}

impl Proxies {
    /// Reads the variables of an environment. A lower-case variable overrides the upper-case one,
    /// even if it is empty.
    pub fn from_env(env: impl Fn(&str) -> Option<String>) -> Self {
        let non_blank = |value: Option<String>| value.filter(|value| !value.trim().is_empty());
        let read = |name: &str| non_blank(env(name).or_else(|| env(&name.to_ascii_uppercase())));
        // A web server passes the request header `Proxy` to a CGI program as HTTP_PROXY, so any
        // remote client may have set it.
        let is_cgi = env("REQUEST_METHOD").is_some();
        let http = if is_cgi { non_blank(env("http_proxy")) } else { read("http_proxy") };
        Self { http, https: read("https_proxy"), all: read("all_proxy"), no: read("no_proxy") }
    }
}

/// Hides the addresses, because they may contain passwords.
impl fmt::Debug for Proxies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let set_count =
            [&self.http, &self.https, &self.all].iter().filter(|proxy| proxy.is_some()).count();
        f.debug_struct("Proxies").field("set", &set_count).field("no", &self.no).finish()
    }
}

impl Supplies {
    /// Creates supplies with this environment and no settings.
    #[must_use]
    pub fn env(env: Vec<(String, String)>) -> Self {
        Self { env, ..Self::default() }
    }
}

/// Shows only the names of the variables, because their values may be secrets.
impl fmt::Debug for Supplies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.env.iter().map(|(name, _)| name).collect();
        f.debug_struct("Supplies")
            .field("env", &names)
            .field("models", &self.models)
            .field("mcp", &self.mcp)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxies(vars: &[(&str, &str)]) -> Proxies {
        Proxies::from_env(|name| {
            vars.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn m_e2_lower_case_variables_override_upper_case_ones() {
        let both = proxies(&[
            ("https_proxy", "http://a"),
            ("HTTPS_PROXY", "http://b"),
            ("ALL_PROXY", "http://c"),
        ]);
        assert_eq!(
            (both.https.as_deref(), both.all.as_deref()),
            (Some("http://a"), Some("http://c"))
        );
        let off = proxies(&[
            ("https_proxy", " "),
            ("HTTPS_PROXY", "http://b"),
            ("NO_PROXY", "x"),
            ("all_proxy", "c"),
        ]);
        assert_eq!(
            (off.https, off.no.as_deref(), off.all.as_deref()),
            (None, Some("x"), Some("c"))
        );
    }

    #[test]
    fn m_e2_a_cgi_program_takes_no_proxy_from_a_header() {
        let header = [
            ("REQUEST_METHOD", "GET"),
            ("HTTP_PROXY", "http://anybody"),
            ("HTTPS_PROXY", "http://b"),
        ];
        let cgi = proxies(&header);
        assert_eq!((cgi.http, cgi.https.as_deref()), (None, Some("http://b")));
        let lower = proxies(&[("REQUEST_METHOD", "GET"), ("http_proxy", "http://a")]);
        assert_eq!(lower.http.as_deref(), Some("http://a"));
        assert_eq!(proxies(&header[1..]).http.as_deref(), Some("http://anybody"));
    }

    #[test]
    fn m_e2_an_empty_certificate_variable_counts_as_none() {
        let certificates = |value: &str| Certificates::from_env(|_| Some(value.to_owned()));
        assert_eq!(certificates(""), Certificates::default());
        assert_eq!(certificates("/a").dir.as_deref(), Some("/a"));
    }
}
