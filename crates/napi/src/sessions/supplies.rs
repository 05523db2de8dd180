//! What a session brings along: the environment of its tools, and how models are reached.

use std::collections::HashMap;
use std::ffi::OsString;

use holdpoint_common::{Config, Supplies};
use holdpoint_session::model::Catalog;

/// An environment, of which an allow-list goes to tools, and in which keys of models are found.
pub(super) struct Environment(HashMap<String, String>);

impl Environment {
    /// This one; without it, that of this process, as it is now. To be called where JavaScript runs, which can't change
    /// it meanwhile.
    pub(super) fn or_ours(given: Option<HashMap<String, String>>) -> Self {
        let text = |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
        Self(given.unwrap_or_else(|| std::env::vars_os().filter_map(text).collect()))
    }

    /// What it comes to with this configuration.
    pub(super) fn supplies(self, config: &Config) -> Supplies {
        let Self(env) = self;
        let models = Catalog::new(config, |name| env.get(name).cloned()).supplies();
        Supplies { env: env.into_iter().collect(), models: Some(models), system_prompt: config.system_prompt.clone() }
    }
}
