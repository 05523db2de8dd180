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
}

/// The proxies that requests to models go through: what the usual variables of an environment say, in lower or upper
/// case.
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
    /// What an environment says.
    pub fn of(env: impl Fn(&str) -> Option<String>) -> Self {
        let read = |name: &str| env(name).or_else(|| env(&name.to_ascii_uppercase())).filter(|value| !value.is_empty());
        Self { http: read("http_proxy"), https: read("https_proxy"), all: read("all_proxy"), no: read("no_proxy") }
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
