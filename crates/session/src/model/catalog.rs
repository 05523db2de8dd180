//! The models there are: by name, from the user's settings.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use holdpoint_common::{Config, ModelName};

use super::openai::{self, OpenAi};
use super::rehearsal::Rehearsal;
use super::{Model, ModelError};

/// Where new sessions find their model.
pub struct Catalog {
    configured: Option<String>,
    /// The first model of an embedder's own.
    own: Option<String>,
    openai: Reach,
    /// Models by their full name: those of an embedder, and those that were made so far. Held for a look-up only.
    models: Mutex<BTreeMap<String, Arc<dyn Model>>>,
}

impl Default for Catalog {
    /// `rehearsal` alone.
    fn default() -> Self {
        Self::new(&Config::default(), |_| None)
    }
}

/// How a provider is reached.
struct Reach {
    key: Option<String>,
    base_url: Option<String>,
}

/// The model of a session that names none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefaultModel {
    /// Its name, for [`Catalog::get`].
    pub name: String,
    /// Why this one, for the user.
    pub why: String,
}

impl Catalog {
    /// The models that the user's settings give. `env` looks up a variable of the environment; what the
    /// configuration says goes before it, and an empty value counts as none.
    pub fn new(config: &Config, env: impl Fn(&str) -> Option<String>) -> Self {
        let set = |value: Option<String>| value.map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        let configured = config.providers.get("openai").cloned().unwrap_or_default();
        let openai = Reach {
            key: set(configured.api_key).or_else(|| set(env("OPENAI_API_KEY"))),
            base_url: set(configured.base_url).or_else(|| set(env("OPENAI_BASE_URL"))),
        };
        let catalog = Self { configured: set(config.model.clone()), own: None, openai, models: Mutex::default() };
        catalog.keep("rehearsal".into(), Arc::new(Rehearsal));
        catalog
    }

    /// Adds a model of the embedder's own, found by its [`name`](Model::name). It goes before any other of that
    /// name, and the first one added is the default where the configuration names none.
    #[must_use]
    pub fn with(mut self, model: Arc<dyn Model>) -> Self {
        let name = model.name().to_owned();
        self.own.get_or_insert_with(|| name.clone());
        self.keep(name, model);
        self
    }

    /// The model of that name: `PROVIDER/NAME`, or `PROVIDER` for its documented default.
    ///
    /// # Errors
    /// [`ModelError::Setup`] if there is no such provider, or its key is missing.
    pub fn get(&self, name: &str) -> Result<Arc<dyn Model>, ModelError> {
        let name = name.trim();
        if let Some(model) = self.lock().get(name) {
            return Ok(Arc::clone(model));
        }
        let asked: ModelName = name.parse().map_err(|error: holdpoint_common::ConfigError| ModelError::Setup {
            message: error.to_string(),
            hint: HINT.into(),
        })?;
        match asked.provider.as_str() {
            "openai" => {
                let full = format!("openai/{}", asked.name.as_deref().unwrap_or(openai::DEFAULT_MODEL));
                if let Some(model) = self.lock().get(&full) {
                    return Ok(Arc::clone(model));
                }
                let model: Arc<dyn Model> = Arc::new(self.openai(full.trim_start_matches("openai/"))?);
                Ok(self.keep(full, model))
            }
            "rehearsal" => Err(ModelError::Setup {
                message: format!("there is no model `{name}`"),
                hint: "rehearsal has no other name: --model rehearsal".into(),
            }),
            provider => Err(ModelError::Setup {
                message: format!("there is no provider of models called `{provider}`"),
                hint: HINT.into(),
            }),
        }
    }

    /// The model of a session that names none: the configured one, else the embedder's own, else that of the
    /// first provider whose key is set, else `rehearsal`.
    #[must_use]
    pub fn default_name(&self) -> DefaultModel {
        let (name, why) = match (&self.configured, &self.own, &self.openai.key) {
            (Some(name), _, _) => (name.as_str(), "`model` in the configuration"),
            (None, Some(name), _) => (name.as_str(), "it was added by the program"),
            (None, None, Some(_)) => ("openai", "a key for openai is set"),
            (None, None, None) => ("rehearsal", "no model is configured and no provider's key is set"),
        };
        let name = if name == "openai" { format!("openai/{}", openai::DEFAULT_MODEL) } else { name.to_owned() };
        DefaultModel { name, why: why.to_owned() }
    }

    fn openai(&self, name: &str) -> Result<OpenAi, ModelError> {
        match (&self.openai.key, &self.openai.base_url) {
            (None, None) => Err(ModelError::Setup {
                message: "there is no key for openai".into(),
                hint: "set OPENAI_API_KEY, or `api_key` under [providers.openai] in the configuration; for a server \
                       that needs none, set OPENAI_BASE_URL"
                    .into(),
            }),
            (key, url) => {
                let url = url.as_deref().unwrap_or(openai::PUBLIC_URL);
                OpenAi::new(name, key.as_deref().unwrap_or_default(), url)
            }
        }
    }

    /// Keeps a model under `name`.
    fn keep(&self, name: String, model: Arc<dyn Model>) -> Arc<dyn Model> {
        self.lock().insert(name, Arc::clone(&model));
        model
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Arc<dyn Model>>> {
        self.models.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const HINT: &str = "use openai/NAME, openai or rehearsal";

impl fmt::Debug for Catalog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let models: Vec<_> = self.lock().keys().cloned().collect();
        f.debug_struct("Catalog").field("configured", &self.configured).field("models", &models).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "sk-very-secret";

    fn catalog(config: &str, env: &[(&str, &str)]) -> Catalog {
        let env: BTreeMap<_, _> = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Catalog::new(&Config::parse(config).unwrap(), |name| env.get(name).cloned())
    }

    fn refusal(catalog: &Catalog, name: &str) -> String {
        match catalog.get(name) {
            Err(ModelError::Setup { message, hint }) => format!("{message} ({hint})"),
            Err(error) => panic!("{error}"),
            Ok(model) => panic!("{} was found", model.name()),
        }
    }

    #[test]
    fn the_default_follows_the_settings() {
        let name = |config: &str, env: &[(&str, &str)]| catalog(config, env).default_name().name;
        assert_eq!(name("", &[]), "rehearsal");
        assert_eq!(name("", &[("OPENAI_API_KEY", " ")]), "rehearsal");
        assert_eq!(name("", &[("OPENAI_API_KEY", KEY)]), "openai/gpt-5");
        assert_eq!(name("[providers.openai]\napi_key = 'x'", &[]), "openai/gpt-5");
        assert_eq!(name("model = 'openai/o'", &[]), "openai/o");
    }

    #[test]
    fn models_are_found_once_and_kept() {
        let catalog = catalog("", &[("OPENAI_API_KEY", KEY)]);
        assert_eq!(catalog.get("rehearsal").unwrap().name(), "rehearsal");
        assert_eq!(catalog.get("openai/meta/llama-3").unwrap().name(), "openai/meta/llama-3");
        let model = catalog.get("openai").unwrap();
        assert_eq!(model.name(), "openai/gpt-5");
        assert!(Arc::ptr_eq(&model, &catalog.get("openai/gpt-5").unwrap()));
        assert!(!format!("{catalog:?}").contains(KEY));
    }

    #[test]
    fn what_is_missing_is_said() {
        let empty = catalog("", &[]);
        assert!(refusal(&empty, "openai/x").contains("OPENAI_API_KEY"));
        assert!(refusal(&empty, "opnai/x").contains("no provider of models called `opnai`"));
        assert!(refusal(&empty, "openai/").contains("names no model"));
        assert!(refusal(&empty, "rehearsal/x").contains("no other name"));
        let local = catalog("", &[("OPENAI_BASE_URL", "http://localhost:1/v1")]);
        assert!(local.get("openai/x").is_ok(), "a local server needs no key");
        let wrong = catalog("", &[("OPENAI_BASE_URL", "localhost"), ("OPENAI_API_KEY", KEY)]);
        assert!(!refusal(&wrong, "openai/x").contains(KEY));
    }

    #[test]
    fn an_embedders_model_goes_first() {
        struct Own;
        impl Model for Own {
            fn name(&self) -> &'static str {
                "openai/gpt-5"
            }
            fn stream(&self, _: crate::model::ModelRequest) -> crate::model::ModelStream {
                Box::pin(futures_util::stream::empty())
            }
        }
        let own: Arc<dyn Model> = Arc::new(Own);
        let catalog = catalog("", &[]).with(Arc::clone(&own));
        assert!(Arc::ptr_eq(&own, &catalog.get("openai/gpt-5").unwrap()));
        assert!(Arc::ptr_eq(&own, &catalog.get("openai").unwrap()));
        assert_eq!(catalog.default_name().name, "openai/gpt-5");
    }
}
