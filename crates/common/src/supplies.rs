//! What a client brings along for the sessions it opens.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::Provider;
use crate::model::ModelSettings;

/// What a client brings along for the sessions it opens: kept in memory for those sessions, never saved.
#[derive(Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Supplies {
    /// The environment that tools' processes are started from; of it, what an allow-list lets through.
    pub env: Vec<(String, String)>,
    /// How models are reached. Without it, as the engine was told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub models: Option<ModelSupplies>,
    /// What models are told about themselves. Without it, what the engine was told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
}

/// How models are reached: what a client's configuration and environment say.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ModelSupplies {
    /// The model of a session that names none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Providers, by name.
    pub providers: BTreeMap<String, Provider>,
    /// What is known of single models, by `PROVIDER/NAME`.
    pub models: BTreeMap<String, ModelSettings>,
    /// What stands between here and them.
    pub proxies: Proxies,
    /// The certificate authorities that their servers are checked by.
    pub certificates: Certificates,
}

/// The certificate authorities that are trusted instead of the system's, where a client's environment names any.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Certificates {
    /// A file of certificates in PEM, by its absolute path: `SSL_CERT_FILE`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Folders of such files, by their absolute paths, with colons between them: `SSL_CERT_DIR`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dir: Option<String>,
}

impl Certificates {
    /// The values of an environment. An empty value counts as unset.
    pub fn of(env: impl Fn(&str) -> Option<String>) -> Self {
        let read = |name| env(name).filter(|value| !value.is_empty());
        Self { file: read("SSL_CERT_FILE"), dir: read("SSL_CERT_DIR") }
    }
}

/// The proxies that requests to models go through: the usual variables of an environment, in lower or upper case.
/// Addresses begin with `http://`, `https://`, `socks5://` or `socks5h://`; without a scheme, it is `http`.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Proxies {
    /// For `http` addresses: `http_proxy`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http: Option<String>,
    /// For `https` addresses: `https_proxy`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub https: Option<String>,
    /// For both: `all_proxy`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub all: Option<String>,
    /// Hosts that are reached without: `no_proxy`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no: Option<String>,
}

impl Proxies {
    /// The values of an environment. A variable in lower case goes before the one in upper case, even if it is empty.
    pub fn of(env: impl Fn(&str) -> Option<String>) -> Self {
        let set = |value: Option<String>| value.filter(|value| !value.trim().is_empty());
        let read = |name: &str| set(env(name).or_else(|| env(&name.to_ascii_uppercase())));
        // A web server passes the header `Proxy` of a request to a CGI program as HTTP_PROXY: anybody may have set it.
        let is_cgi = env("REQUEST_METHOD").is_some();
        let http = if is_cgi { set(env("http_proxy")) } else { read("http_proxy") };
        Self { http, https: read("https_proxy"), all: read("all_proxy"), no: read("no_proxy") }
    }
}

/// They may have a password in them.
impl fmt::Debug for Proxies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let set = [&self.http, &self.https, &self.all].iter().filter(|proxy| proxy.is_some()).count();
        f.debug_struct("Proxies").field("set", &set).field("no", &self.no).finish()
    }
}

impl Supplies {
    /// An environment alone.
    #[must_use]
    pub fn env(env: Vec<(String, String)>) -> Self {
        Self { env, ..Self::default() }
    }
}

/// The environment's values may be secrets: only names are shown.
impl fmt::Debug for Supplies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.env.iter().map(|(name, _)| name).collect();
        f.debug_struct("Supplies").field("env", &names).field("models", &self.models).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxies(vars: &[(&str, &str)]) -> Proxies {
        Proxies::of(|name| vars.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn m_e2_lower_case_goes_before_upper_case() {
        let both = proxies(&[("https_proxy", "http://a"), ("HTTPS_PROXY", "http://b"), ("ALL_PROXY", "http://c")]);
        assert_eq!((both.https.as_deref(), both.all.as_deref()), (Some("http://a"), Some("http://c")));
        let off = proxies(&[("https_proxy", " "), ("HTTPS_PROXY", "http://b"), ("NO_PROXY", "x"), ("all_proxy", "c")]);
        assert_eq!((off.https, off.no.as_deref(), off.all.as_deref()), (None, Some("x"), Some("c")));
    }

    #[test]
    fn m_e2_a_cgi_program_takes_no_proxy_from_a_header() {
        let header = [("REQUEST_METHOD", "GET"), ("HTTP_PROXY", "http://anybody"), ("HTTPS_PROXY", "http://b")];
        let cgi = proxies(&header);
        assert_eq!((cgi.http, cgi.https.as_deref()), (None, Some("http://b")));
        let lower = proxies(&[("REQUEST_METHOD", "GET"), ("http_proxy", "http://a")]);
        assert_eq!(lower.http.as_deref(), Some("http://a"));
        assert_eq!(proxies(&header[1..]).http.as_deref(), Some("http://anybody"));
    }

    #[test]
    fn m_e2_an_empty_certificate_variable_counts_as_none() {
        let of = |value: &str| Certificates::of(|_| Some(value.to_owned()));
        assert_eq!(of(""), Certificates::default());
        assert_eq!(of("/a").dir.as_deref(), Some("/a"));
    }
}
