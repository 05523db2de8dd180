//! The user's configuration, written in TOML.

use std::collections::BTreeMap;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use thiserror::Error;

use crate::api_key::ApiKey;
use crate::ask::AsksMode;
use crate::fleet::FleetSettings;
use crate::limits::{LimitError, Limits};
use crate::mcp::{McpServers, check_mcp_servers};
use crate::model::ModelSettings;
use crate::policy::{PolicyMode, PolicyRules};
use crate::run::HoldAt;
use crate::sandbox::SandboxSettings;
use crate::unknown::{self, FieldPath, Step};
use crate::web::WebSettings;

/// The configuration of Holdpoint. Every key is optional.
///
/// Only the user's own file is read. Files in a workspace never count as configuration.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Config {
    /// Model of new sessions, as `PROVIDER/NAME` or `PROVIDER`. Default: the first provider whose
    /// key is set, else `rehearsal`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Policy mode of new sessions: `ask`, `edits`, `sandboxed`, `all` or `readonly`.
    /// Default: `ask`.
    pub policy: PolicyMode,
    /// Policy rules of new sessions, in addition to the mode, for example
    /// `allow = ["shell(git status)"]`.
    pub rules: PolicyRules,
    /// Asks mode of new sessions: `wait`, `deny` or `approve`. Default: `wait`, but `deny` for the
    /// command `run` without a terminal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asks: Option<AsksMode>,
    /// Maximum number of steps (model requests) in one turn; 0 means no limit. Default: 0.
    pub max_steps: u32,
    /// Maximum number of tokens that one turn may use, requests and answers together; 0 means no
    /// limit. The limit is checked before each request, so the last request may exceed it.
    /// Default: 0.
    pub max_turn_tokens: u64,
    /// Boundary at which a run is held: `iteration` for the end of the current iteration, or `step`
    /// for the end of the current step. Default: `iteration`.
    pub hold_at: HoldAt,
    /// System prompt for models, instead of the built-in one. Instruction files are added to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// Log levels of the daemon, and of a Node.js program that takes the log, for example `debug`
    /// or `warn,holdpoint_session=trace`. The environment variable `HOLDPOINT_LOG` overrides it.
    /// Default: `warn,holdpoint=info`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
    /// Settings of model providers, by name: `openai`, `anthropic`, `gemini` or `ollama`.
    pub providers: BTreeMap<String, ProviderSettings>,
    /// Settings of single models, by `PROVIDER/NAME`.
    pub models: BTreeMap<String, ModelSettings>,
    /// Settings of notifications about asks.
    pub notify: NotifySettings,
    /// Limits of the runtime and its sessions.
    pub limits: Limits,
    /// Settings of the screen.
    pub tui: ScreenSettings,
    /// Settings of the sandbox of tool processes in new sessions.
    pub sandbox: SandboxSettings,
    /// Settings of the tool `web`.
    pub web: WebSettings,
    /// Settings of this machine in a fleet.
    pub fleet: FleetSettings,
    /// MCP servers of sessions, by name, for example `[mcp.files]`. They start with the first turn
    /// of a session, and their tools are added to those of the session.
    pub mcp: McpServers,
}

/// The settings of the screen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ScreenSettings {
    /// Whether the screen initially shows tool calls, their output and thoughts. A key toggles
    /// this. Default: `true`.
    pub show_intermediate_steps: bool,
    /// Whether the screen alerts you when a session asks while the terminal does not have the
    /// focus. Default: `true`.
    pub bell: bool,
    /// Keys that replace the default ones, by action, for example `hold = "ctrl+x h"`. The help of
    /// the screen lists the names of all actions.
    pub keys: BTreeMap<String, String>,
}

impl Default for ScreenSettings {
    fn default() -> Self {
        Self { show_intermediate_steps: true, bell: true, keys: BTreeMap::new() }
    }
}

/// The settings of notifications about asks.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct NotifySettings {
    /// Shell command that the daemon runs once per ask, for at most one minute. The command gets
    /// these environment variables: `HOLDPOINT_ASK` (id of the ask), `HOLDPOINT_SESSION` and
    /// `HOLDPOINT_NAME` (id and name of the session), `HOLDPOINT_TOOL` (name of the tool) and
    /// `HOLDPOINT_MESSAGE` (first line of the message).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

/// The access to a provider of models. Settings that are missing here are read from the
/// environment.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ProviderSettings {
    /// API key. Default: the provider's environment variable, `OPENAI_API_KEY`, `ANTHROPIC_API_KEY`
    /// or `GEMINI_API_KEY`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_key: Option<ApiKey>,
    /// Base URL, for example `http://localhost:8080/v1`; only that of `openai` includes `/v1`.
    /// Default: the provider's environment variable, `OPENAI_BASE_URL`, `ANTHROPIC_BASE_URL`,
    /// `GEMINI_BASE_URL` or `OLLAMA_HOST`, else the provider's public address or, for `ollama`,
    /// this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
}

/// An error in a configuration.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The text is not TOML, or a value has the wrong type or is out of its range.
    #[error("{message}")]
    Invalid {
        /// Description of the error and its position, over several lines.
        message: String,
    },
    /// The configuration has an unknown key.
    #[error("unknown key `{key}`{}", nearest.as_ref().map(|near| format!(": did you mean `{near}`?")).unwrap_or_default())]
    UnknownKey {
        /// The key with its tables, for example `limits.grace`.
        key: String,
        /// The most similar known key.
        nearest: Option<String>,
    },
    /// A limit is out of its range.
    #[error(transparent)]
    Limit(#[from] LimitError),
    /// The name of a model does not have the form `PROVIDER/NAME`.
    #[error("`{text}` is not a model name (PROVIDER/NAME, for example openai/gpt-5 or rehearsal)")]
    Model {
        /// The text that was given.
        text: String,
    },
}

impl Config {
    /// Parses a configuration from TOML.
    ///
    /// # Errors
    /// [`ConfigError`] if the text is not TOML, a value has the wrong type or is out of its range,
    /// or a key is unknown.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let invalid = |error: toml::de::Error| ConfigError::Invalid {
            message: error.to_string().trim_end().to_owned(),
        };
        let document = toml::Deserializer::parse(text).map_err(invalid)?;
        let (config, unknown): (Self, _) = unknown::deserialize(document).map_err(invalid)?;
        match unknown {
            Some(path) => Err(ConfigError::UnknownKey {
                key: path.to_string(),
                nearest: nearest_key(path).map(|near| near.to_string()),
            }),
            None => config.check().map(|()| config),
        }
    }

    /// Checks the rules that the types do not express: ranges, and names of providers and models.
    fn check(&self) -> Result<(), ConfigError> {
        self.limits.check()?;
        let invalid = |message| ConfigError::Invalid { message };
        self.web.check().map_err(invalid)?;
        self.sandbox.check().map_err(invalid)?;
        self.fleet.check().map_err(invalid)?;
        check_mcp_servers(&self.mcp)
            .map_err(|error| invalid(format!("[mcp.{}]: {}", error.name, error.problem)))?;
        let check_provider = |table: &str, provider: &str, key: &str| {
            if PROVIDERS.contains(&provider) {
                return Ok(());
            }
            let nearest = nearest(PROVIDERS, provider).map(|near| key.replacen(provider, near, 1));
            Err(ConfigError::UnknownKey {
                key: format!("{table}.{key}"),
                nearest: nearest.map(|near| format!("{table}.{near}")),
            })
        };
        for name in self.providers.keys() {
            check_provider("providers", name, name)?;
        }
        for (name, settings) in &self.models {
            let invalid = |problem: &str| ConfigError::Invalid {
                message: format!("[models.\"{name}\"]: {problem}"),
            };
            let Some((provider, _)) =
                name.split_once('/').filter(|(_, model)| !model.trim().is_empty())
            else {
                return Err(invalid("the key must be the full name of a model, PROVIDER/NAME"));
            };
            check_provider("models", provider, name)?;
            settings.check().map_err(invalid)?;
        }
        Ok(())
    }

    /// Returns the parts that the daemon reads once, when it starts, by key. Every command reads
    /// the other parts itself.
    #[must_use]
    pub fn daemon_parts(&self) -> BTreeMap<String, serde_json::Value> {
        let Self { fleet, limits, log, notify, sandbox, web, .. } = self;
        let keys = [
            ("fleet", json!(fleet)),
            ("limits", json!(limits)),
            ("log", json!(log)),
            ("notify", json!(notify)),
            ("sandbox", json!(sandbox)),
            ("web", json!(web)),
        ];
        keys.map(|(key, value)| (key.to_owned(), value)).into()
    }

    /// Returns the JSON Schema of the configuration, with every key documented.
    #[must_use]
    pub fn schema() -> serde_json::Value {
        schemars::schema_for!(Self).to_value()
    }
}

const PROVIDERS: [&str; 4] = ["openai", "anthropic", "gemini", "ollama"];

/// Finds the known key most similar to the one at `path` in the same table.
fn nearest_key(mut path: FieldPath) -> Option<FieldPath> {
    let schema = Config::schema();
    let mut table = &schema;
    let Some(Step::Field(last)) = path.0.pop() else { return None };
    for step in &path.0 {
        let Step::Field(name) = step else { return None };
        let property = table["properties"].get(name).unwrap_or(&table["additionalProperties"]);
        // An optional table is its type or null.
        let of_type = property.get("anyOf").map_or(property, |types| &types[0]);
        let target =
            of_type["$ref"].as_str().and_then(|path| schema.pointer(path.trim_start_matches('#')));
        table = target.unwrap_or(of_type);
    }
    let known = table["properties"].as_object()?;
    let near = nearest(known.keys().map(String::as_str), &last)?;
    path.0.push(Step::Field(near.to_owned()));
    Some(path)
}

/// Returns the name most similar to `name`, or `None` if no name is similar enough.
fn nearest<'a>(names: impl IntoIterator<Item = &'a str>, name: &str) -> Option<&'a str> {
    let scored = names.into_iter().map(|known| (strsim::jaro_winkler(known, name), known));
    let similar = scored.filter(|(score, _)| *score > 0.7);
    similar.max_by(|left, right| left.0.total_cmp(&right.0)).map(|(_, known)| known)
}

/// The name of a model, as `PROVIDER/NAME`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ModelName {
    /// Name of the provider.
    pub provider: String,
    /// Name of the provider's model, or `None` for the provider's documented default.
    pub name: Option<String>,
}

impl FromStr for ModelName {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let (provider, name) =
            text.split_once('/').map_or((text, None), |(provider, name)| (provider, Some(name)));
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
    fn m_e6_settings_without_effect_are_refused() {
        let error = |text: &str| Config::parse(text).unwrap_err().to_string();
        let typo = error("[providers.openia]\napi_key = 'x'");
        assert_eq!(typo, "unknown key `providers.openia`: did you mean `providers.openai`?");
        let typo = error("[models.'anthropc/x']\nwindow = 1");
        assert_eq!(typo, "unknown key `models.anthropc/x`: did you mean `models.anthropic/x`?");
        assert!(error("[models.openai]\nwindow = 1").contains("PROVIDER/NAME"));
        for price in [
            "{ input = -2, output = 1 }",
            "{ input = 1, output = nan }",
            "{ input = 1, cached = inf, output = 1 }",
        ] {
            assert!(
                error(&format!("[models.'openai/x']\nprice = {price}")).contains("price"),
                "{price}"
            );
        }
        for bounds in ["window = 8\nmax_output = 8", "window = 8\nthinking = 9"] {
            assert!(
                error(&format!("[models.'openai/x']\n{bounds}")).contains("window"),
                "{bounds}"
            );
        }
        Config::parse(
            "[models.'ollama/x:7b']\nwindow = 9\nmax_output = 8\nprice = { input = 0, output = 0 }",
        )
        .unwrap();
    }

    #[test]
    fn unknown_key_names_the_nearest() {
        let near = |text: &str| match Config::parse(text) {
            Err(ConfigError::UnknownKey { key, nearest }) => (key, nearest.unwrap_or_default()),
            other => panic!("{other:?}"),
        };
        assert_eq!(near("modle = 'x'"), ("modle".into(), "model".into()));
        assert_eq!(
            near("[limits]\ngrace_msec = 1"),
            ("limits.grace_msec".into(), "limits.grace_ms".into())
        );
        assert_eq!(
            near("[providers.openai]\napi_kee = 'x'\n"),
            ("providers.openai.api_kee".into(), "providers.openai.api_key".into())
        );
        assert_eq!(near("zzzz = 1"), ("zzzz".into(), String::new()));
        for model in ["openai/gpt-5", "openai/gpt-4.1", "ollama/a.b.c:7b"] {
            assert_eq!(
                near(&format!("[models.'{model}']\nwindw = 1")),
                (format!("models.{model}.windw"), format!("models.{model}.window"))
            );
            assert_eq!(
                near(&format!("[models.'{model}'.price]\ninput = 1\noutput = 1\ncache_writen = 1")),
                (
                    format!("models.{model}.price.cache_writen"),
                    format!("models.{model}.price.cache_written")
                )
            );
        }
    }

    #[test]
    fn m_h2_servers_in_a_configuration_are_checked() {
        let text = "[mcp.files]\ncommand = 'npx'\nargs = ['-y']\ndomains = ['example.com']";
        let config = Config::parse(text).unwrap();
        assert_eq!(config.mcp["files"].args, ["-y"]);
        let error = |text: &str| Config::parse(text).unwrap_err().to_string();
        let typo = error("[mcp.a]\ncommand = 'x'\ntimeout = 5");
        assert_eq!(typo, "unknown key `mcp.a.timeout`: did you mean `mcp.a.timeout_s`?");
        assert!(error("[mcp.A]\ncommand = 'x'").contains("[mcp.A]: the name must"));
        assert!(error("[mcp.a]\nargs = []").contains("`command` or `url` is missing"));
    }

    #[test]
    fn a_wrong_value_is_reported_with_its_place() {
        let error = Config::parse("max_steps = 'many'").unwrap_err().to_string();
        assert!(error.contains("line 1") && error.contains("max_steps"), "{error}");
    }

    #[test]
    fn a_limit_out_of_its_range_is_refused() {
        for (key, value) in [
            ("buffered_events", "9223372036854775807"),
            ("max_clients", "0"),
            ("grace_ms", "99999999"),
        ] {
            let error =
                Config::parse(&format!("[limits]\n{key} = {value}")).unwrap_err().to_string();
            assert!(
                error.contains(key) && error.contains(value) && error.contains(" to "),
                "{error}"
            );
        }
        Limits::default().check().unwrap();
    }

    #[test]
    fn an_api_key_is_never_printed() {
        let config = Config::parse("[providers.openai]\napi_key = 'sk-secret'").unwrap();
        assert!(!format!("{config:?}").contains("sk-secret"));
    }
}
