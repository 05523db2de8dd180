//! The supplies of a session: its environment and provider settings.

use std::collections::HashMap;
use std::ffi::OsString;

use holdpoint_common::{Config, Supplies, session_mcp_servers};
use holdpoint_session::model::Catalog;

/// An environment. Tools get the variables on an allow-list, and keys of models are read from it.
pub(super) struct Environment(HashMap<String, String>);

impl Environment {
    /// Returns the given environment, or that of this process. Must be called on the JavaScript
    /// thread, which can't change the environment meanwhile.
    pub(super) fn or_current(given: Option<HashMap<String, String>>) -> Self {
        let text = |(name, value): (OsString, OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Self(given.unwrap_or_else(|| std::env::vars_os().filter_map(text).collect()))
    }

    /// Returns the supplies that follow from this environment and the configuration.
    pub(super) fn supplies(self, config: &Config) -> Supplies {
        let Self(env) = self;
        let models = Catalog::new(config, |name| env.get(name).cloned()).supplies();
        let mcp = session_mcp_servers(config.mcp.clone(), |name| env.get(name).cloned());
        Supplies {
            env: env.into_iter().collect(),
            models: Some(models),
            system_prompt: config.system_prompt.clone(),
            mcp,
        }
    }
}
