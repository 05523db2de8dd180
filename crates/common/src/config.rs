//! The user's configuration: one TOML text.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use thiserror::Error;

use crate::ask::AsksMode;
use crate::limits::{LimitError, Limits};
use crate::model::ModelSettings;
use crate::policy::{PolicyMode, PolicyRules};
use crate::run::HoldAt;
use crate::unknown;
use crate::web::WebSettings;

/// The user's configuration. Every key may be left out.
///
/// It comes from the user alone: nothing in a workspace is ever read as configuration.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Config {
    /// The model of new sessions, as `PROVIDER/NAME` or `PROVIDER`. Without it: the first provider whose key
    /// is set, else `rehearsal`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What tools of new sessions may do unasked: `ask`, `edits`, `all` or `readonly`.
    pub policy: PolicyMode,
    /// What is allowed, asked or denied besides: `allow = ["shell(git status)"]`.
    pub rules: PolicyRules,
    /// Who answers the asks of new sessions: `wait`, `deny` or `approve`. Without it: `wait`; only
    /// `run` without a terminal, where nobody could answer, uses `deny`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asks: Option<AsksMode>,
    /// The most steps (model requests) one turn may take; 0 for no limit.
    pub max_steps: u32,
    /// The most tokens one turn may take, of requests and answers together; 0 for no limit. Looked at before each
    /// request: the one that comes to it is the last.
    pub max_turn_tokens: u64,
    /// Where a hold of a run stands: `iteration`, at the end of the one it is in, or `step`.
    pub hold_at: HoldAt,
    /// What models are told about themselves, instead of what is built in. A workspace's `AGENTS.md` is added to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// What the daemon logs, or a Node.js program that takes a log: levels, such as `debug` or
    /// `warn,holdpoint_session=trace`. `HOLDPOINT_LOG` of whoever starts it goes before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
    /// Providers of models, by name: `openai`, `anthropic`, `gemini`, `ollama`.
    pub providers: BTreeMap<String, Provider>,
    /// What is known of single models, by `PROVIDER/NAME`.
    pub models: BTreeMap<String, ModelSettings>,
    /// How you are told that a session waits for you.
    pub notify: Notify,
    /// Bounds of the runtime and its sessions.
    pub limits: Limits,
    /// The screen.
    pub tui: Screen,
    /// The web tool.
    pub web: WebSettings,
}

/// How the screen looks and what its keys are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Screen {
    /// Whether tool calls, their output and thoughts are shown from the beginning; a key shows and hides them.
    pub show_intermediate_steps: bool,
    /// Whether the terminal rings when something waits for an answer and it is not the one that is looked at.
    pub bell: bool,
    /// Other keys than usual, by what they do: `hold = "ctrl+x h"`. The help has every name.
    pub keys: BTreeMap<String, String>,
}

impl Default for Screen {
    fn default() -> Self {
        Self { show_intermediate_steps: true, bell: true, keys: BTreeMap::new() }
    }
}

/// How the user is told that a session waits.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Notify {
    /// A shell command that the daemon runs once for each ask, at most for a minute. `HOLDPOINT_ASK` is the ask's id,
    /// `HOLDPOINT_SESSION` and `HOLDPOINT_NAME` the session's id and name, `HOLDPOINT_TOOL` the tool, `HOLDPOINT_MESSAGE`
    /// what it wants, in one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

/// How a provider of models is reached. What is not set here is read from the environment.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Provider {
    /// The key. Without it: the provider's own variable, `OPENAI_API_KEY`, `ANTHROPIC_API_KEY` or `GEMINI_API_KEY`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_key: Option<String>,
    /// Where it is, for example `http://localhost:8080/v1` (with `/v1` for `openai` alone). Without it: the provider's
    /// own variable, `OPENAI_BASE_URL`, `ANTHROPIC_BASE_URL`, `GEMINI_BASE_URL` or `OLLAMA_HOST`, else its public
    /// address, for Ollama this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = self.api_key.as_ref().map(|_| "***");
        f.debug_struct("Provider").field("api_key", &key).field("base_url", &self.base_url).finish()
    }
}

/// What is wrong with a configuration.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// It is no TOML, or a value is of the wrong kind.
    #[error("{message}")]
    Invalid {
        /// What and where, over several lines.
        message: String,
    },
    /// It has a key that means nothing.
    #[error("unknown key `{key}`{}", nearest.as_ref().map(|near| format!(": did you mean `{near}`?")).unwrap_or_default())]
    UnknownKey {
        /// The key with its tables: `limits.grace`.
        key: String,
        /// The key that was probably meant.
        nearest: Option<String>,
    },
    /// A bound makes no sense.
    #[error(transparent)]
    Limit(#[from] LimitError),
    /// A model's name is not of the form `PROVIDER/NAME`.
    #[error("`{text}` names no model (PROVIDER/NAME, for example openai/gpt-5 or rehearsal)")]
    Model {
        /// What was given.
        text: String,
    },
}

impl Config {
    /// Reads a configuration from TOML.
    ///
    /// # Errors
    /// [`ConfigError`] if the text is no TOML, a value is of the wrong kind or out of its range, or a key means nothing.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let invalid =
            |error: toml::de::Error| ConfigError::Invalid { message: error.to_string().trim_end().to_owned() };
        let given = toml::Deserializer::parse(text).map_err(invalid)?;
        let (config, unknown): (Self, _) = unknown::read(given).map_err(invalid)?;
        match unknown {
            Some(key) => Err(ConfigError::UnknownKey { nearest: nearest_key(&key), key }),
            None => config.check().map(|()| config),
        }
    }

    /// Whether all of it can be used as it is.
    fn check(&self) -> Result<(), ConfigError> {
        self.limits.check()?;
        self.web.check().map_err(|message| ConfigError::Invalid { message })?;
        let known = |table: &str, name: &str, key: &str| match PROVIDERS.contains(&name) {
            true => Ok(()),
            false => {
                let nearest = nearest(PROVIDERS, name).map(|near| key.replacen(name, near, 1));
                let key = format!("{table}.{key}");
                Err(ConfigError::UnknownKey { key, nearest: nearest.map(|near| format!("{table}.{near}")) })
            }
        };
        for name in self.providers.keys() {
            known("providers", name, name)?;
        }
        for (name, settings) in &self.models {
            let wrong = |what: &str| ConfigError::Invalid { message: format!("[models.\"{name}\"]: {what}") };
            let Some((provider, _)) = name.split_once('/').filter(|(_, model)| !model.trim().is_empty()) else {
                return Err(wrong("settings are those of a model, by its whole name: PROVIDER/NAME"));
            };
            known("models", provider, name)?;
            settings.check().map_err(wrong)?;
        }
        Ok(())
    }

    /// What of it the daemon goes by, from its start to its end, by key. All else is read by each command.
    #[must_use]
    pub fn of_daemon(&self) -> BTreeMap<String, serde_json::Value> {
        let Self { limits, log, notify, web, .. } = self;
        let keys = [("limits", json!(limits)), ("log", json!(log)), ("notify", json!(notify)), ("web", json!(web))];
        keys.map(|(key, value)| (key.to_owned(), value)).into()
    }

    /// The JSON Schema of the configuration, every key documented.
    #[must_use]
    pub fn schema() -> serde_json::Value {
        schemars::schema_for!(Self).to_value()
    }
}

/// The providers that can be configured.
const PROVIDERS: [&str; 4] = ["openai", "anthropic", "gemini", "ollama"];

/// The known key most like `key`, in the same table.
fn nearest_key(key: &str) -> Option<String> {
    let schema = Config::schema();
    let mut table = &schema;
    let (tables, last) =
        key.rsplit_once('.').map_or((vec![], key), |(tables, last)| (tables.split('.').collect(), last));
    for name in &tables {
        let property = table["properties"].get(*name).unwrap_or(&table["additionalProperties"]);
        let target = property["$ref"].as_str().and_then(|path| schema.pointer(path.trim_start_matches('#')));
        table = target.unwrap_or(property);
    }
    let known = table["properties"].as_object()?;
    let near = nearest(known.keys().map(String::as_str), last)?;
    Some(tables.into_iter().chain([near]).collect::<Vec<_>>().join("."))
}

/// The one of these names that is most like `name`, if any is.
fn nearest<'a>(names: impl IntoIterator<Item = &'a str>, name: &str) -> Option<&'a str> {
    let likeness = names.into_iter().map(|known| (strsim::jaro_winkler(known, name), known));
    let like = likeness.filter(|(likeness, _)| *likeness > 0.7);
    like.max_by(|left, right| left.0.total_cmp(&right.0)).map(|(_, known)| known)
}

/// A model, as `PROVIDER/NAME`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ModelName {
    /// Who serves it.
    pub provider: String,
    /// Which of theirs; without it, the provider's documented default.
    pub name: Option<String>,
}

impl FromStr for ModelName {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let (provider, name) = text.split_once('/').map_or((text, None), |(provider, name)| (provider, Some(name)));
        if provider.trim().is_empty() || name.is_some_and(|name| name.trim().is_empty()) {
            return Err(ConfigError::Model { text: text.to_owned() });
        }
        Ok(Self { provider: provider.to_owned(), name: name.map(str::to_owned) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m_e6_what_would_never_be_used_is_refused() {
        let error = |text: &str| Config::parse(text).unwrap_err().to_string();
        let typo = error("[providers.openia]\napi_key = 'x'");
        assert_eq!(typo, "unknown key `providers.openia`: did you mean `providers.openai`?");
        let typo = error("[models.'anthropc/x']\nwindow = 1");
        assert_eq!(typo, "unknown key `models.anthropc/x`: did you mean `models.anthropic/x`?");
        assert!(error("[models.openai]\nwindow = 1").contains("PROVIDER/NAME"));
        for price in
            ["{ input = -2, output = 1 }", "{ input = 1, output = nan }", "{ input = 1, cached = inf, output = 1 }"]
        {
            assert!(error(&format!("[models.'openai/x']\nprice = {price}")).contains("price"), "{price}");
        }
        for bounds in ["window = 8\nmax_output = 8", "window = 8\nthinking = 9"] {
            assert!(error(&format!("[models.'openai/x']\n{bounds}")).contains("window"), "{bounds}");
        }
        Config::parse("[models.'ollama/x:7b']\nwindow = 9\nmax_output = 8\nprice = { input = 0, output = 0 }").unwrap();
    }

    #[test]
    fn unknown_key_names_the_nearest() {
        let near = |text: &str| match Config::parse(text) {
            Err(ConfigError::UnknownKey { key, nearest }) => (key, nearest.unwrap_or_default()),
            other => panic!("{other:?}"),
        };
        assert_eq!(near("modle = 'x'"), ("modle".into(), "model".into()));
        assert_eq!(near("[limits]\ngrace_msec = 1"), ("limits.grace_msec".into(), "limits.grace_ms".into()));
        assert_eq!(
            near("[providers.openai]\napi_kee = 'x'\n"),
            ("providers.openai.api_kee".into(), "providers.openai.api_key".into())
        );
        assert_eq!(near("zzzz = 1"), ("zzzz".into(), String::new()));
    }

    #[test]
    fn a_wrong_value_says_where() {
        let error = Config::parse("max_steps = 'many'").unwrap_err().to_string();
        assert!(error.contains("line 1") && error.contains("max_steps"), "{error}");
    }

    #[test]
    fn a_bound_that_makes_no_sense_is_refused() {
        for (key, value) in [("buffered_events", "9223372036854775807"), ("max_clients", "0"), ("grace_ms", "99999999")]
        {
            let error = Config::parse(&format!("[limits]\n{key} = {value}")).unwrap_err().to_string();
            assert!(error.contains(key) && error.contains(value) && error.contains(" to "), "{error}");
        }
        Limits::default().check().unwrap();
    }

    #[test]
    fn a_key_is_never_shown() {
        let config = Config::parse("[providers.openai]\napi_key = 'sk-secret'").unwrap();
        assert!(!format!("{config:?}").contains("sk-secret"));
    }
}
