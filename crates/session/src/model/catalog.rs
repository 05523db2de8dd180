//! The catalog, which finds models by name in the user's settings.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holdpoint_common::{Certificates, Config, ModelName, ModelSettings, ModelSupplies, Proxies};
use holdpoint_tools::HttpClients;

use self::provider_settings::ProviderSettings;
use super::provider::HINT;
use super::rehearsal::Rehearsal;
use super::{Access, Model, ModelError, Provider};
use crate::http_clients::http_clients;

mod provider_settings;

/// The table in which new sessions find their model.
pub struct Catalog {
    /// The default model in the configuration.
    configured: Option<String>,
    /// The name of the first model that an embedder added.
    first_added: Option<String>,
    providers: BTreeMap<Provider, ProviderSettings>,
    settings: BTreeMap<String, ModelSettings>,
    proxies: Proxies,
    certificates: Certificates,
    /// The models that exist from the start, by full name: `rehearsal`, and those of an embedder.
    models: BTreeMap<String, Arc<dyn Model>>,
    /// The models that were made from settings, the last used at the end. Locked for a look-up
    /// only.
    built: Mutex<Vec<(String, Arc<dyn Model>)>>,
}

/// How many models are kept for reuse, with their connections. One more drops the least recently
/// used one from the catalog; its sessions keep it.
const MAX_BUILT_MODELS: usize = 16;

impl Default for Catalog {
    /// A catalog with `rehearsal` alone.
    fn default() -> Self {
        Self::new(&Config::default(), |_| None)
    }
}

/// The model of a session that does not name one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefaultModel {
    /// The name of the model, for [`Catalog::get`].
    pub name: String,
    /// The reason for this choice, to be shown to the user.
    pub why: String,
}

/// The settings in effect for a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderSetup {
    /// The provider that the settings are for.
    pub provider: Provider,
    /// The model that is used if only the provider is named, as `PROVIDER/NAME`.
    pub default_model: String,
    /// The base URL of the provider.
    pub base_url: String,
    /// The source of the base URL; `None` if it is the provider's own.
    pub base_url_from: Option<String>,
    /// The source of the key, if a key is set.
    pub key_from: Option<String>,
}

impl Catalog {
    /// Creates a catalog from the user's settings. `env` looks up an environment variable; the
    /// configuration takes precedence over it, and an empty value counts as unset.
    pub fn new(config: &Config, env: impl Fn(&str) -> Option<String>) -> Self {
        let Config { model, providers, models, .. } = config.clone();
        let proxies = Proxies::from_env(&env);
        let certificates = with_absolute_paths(Certificates::from_env(&env));
        Self::from_supplies(ModelSupplies { model, providers, models, proxies, certificates }, &env)
    }

    /// The proxies and the certificate authorities for requests.
    pub(crate) fn routes(&self) -> (Proxies, Certificates) {
        (self.proxies.clone(), self.certificates.clone())
    }

    /// Creates the HTTP clients for MCP servers, with the proxies and the certificate authorities of
    /// this catalog.
    #[must_use]
    pub fn http_clients(&self) -> HttpClients {
        let (proxies, certificates) = self.routes();
        http_clients(Arc::default(), proxies, certificates)
    }

    /// Creates a catalog from the supplies of a client.
    #[must_use]
    pub fn supplied(supplies: ModelSupplies) -> Self {
        Self::from_supplies(supplies, &|_: &str| None)
    }

    fn from_supplies(supplies: ModelSupplies, env: &impl Fn(&str) -> Option<String>) -> Self {
        let ModelSupplies { model, mut providers, models, proxies, certificates } = supplies;
        let find_settings = |provider| {
            let configured = providers.remove(Provider::name(provider)).unwrap_or_default();
            (provider, ProviderSettings::find(provider, configured, env))
        };
        let rehearsal: Arc<dyn Model> = Arc::new(Rehearsal);
        Self {
            configured: model.and_then(provider_settings::non_empty),
            first_added: None,
            providers: Provider::ALL.into_iter().map(find_settings).collect(),
            settings: models,
            proxies,
            certificates,
            models: BTreeMap::from([("rehearsal".to_owned(), rehearsal)]),
            built: Mutex::default(),
        }
    }

    /// Adds an embedder's model, found by its [`name`](Model::name). It takes precedence over any
    /// other model of that name, and the first one added is the default unless the configuration
    /// names one.
    #[must_use]
    pub fn with(mut self, model: Arc<dyn Model>) -> Self {
        let name = model.name().to_owned();
        self.first_added.get_or_insert_with(|| name.clone());
        self.models.insert(name, model);
        self
    }

    /// Finds the model of that name: `PROVIDER/NAME`, or `PROVIDER` for its documented default.
    ///
    /// # Errors
    /// [`ModelError::Setup`] if the provider is unknown or its key is missing.
    pub fn get(&self, name: &str) -> Result<Arc<dyn Model>, ModelError> {
        let name = name.trim();
        if let Some(model) = self.existing(name) {
            return Ok(model);
        }
        let parsed: ModelName = name.parse().map_err(|error: holdpoint_common::ConfigError| {
            ModelError::Setup { message: error.to_string(), hint: HINT.into() }
        })?;
        if parsed.provider == "rehearsal" {
            return Err(ModelError::Setup {
                message: format!("there is no model `{name}`"),
                hint: "use --model rehearsal, without a name after it".into(),
            });
        }
        let provider: Provider = parsed.provider.parse()?;
        let name = parsed.name.as_deref().unwrap_or(provider.default_model());
        let full_name = format!("{provider}/{name}");
        if let Some(model) = self.existing(&full_name) {
            return Ok(model);
        }
        let settings = self.settings.get(&full_name).cloned().unwrap_or_default();
        let model = provider.model(name, &self.access(provider)?, &settings)?;
        Ok(self.keep(full_name, model))
    }

    /// The model of a session that does not name one: the configured one, else the embedder's own,
    /// else that of the first provider with a key, else `rehearsal`.
    #[must_use]
    pub fn default_name(&self) -> DefaultModel {
        let first_with_key = || self.providers.iter().find(|(_, settings)| settings.key.is_some());
        let (name, why) = if let Some(name) = &self.configured {
            (name.clone(), "`model` in the configuration".to_owned())
        } else if let Some(name) = &self.first_added {
            (name.clone(), "it was added by the program".to_owned())
        } else if let Some((provider, _)) = first_with_key() {
            (provider.name().to_owned(), format!("a key for {provider} is set"))
        } else {
            (
                "rehearsal".to_owned(),
                "no model is configured and no provider's key is set".to_owned(),
            )
        };
        let name = name.parse::<Provider>().map_or(name, default_full_name);
        DefaultModel { name, why }
    }

    /// The settings in effect for every provider.
    #[must_use]
    pub fn providers(&self) -> Vec<ProviderSetup> {
        let setup = |(provider, settings): (&Provider, &ProviderSettings)| ProviderSetup {
            provider: *provider,
            default_model: default_full_name(*provider),
            base_url: settings.base_url(*provider),
            base_url_from: settings.base_url.as_ref().map(|setting| setting.from.clone()),
            key_from: settings.key.as_ref().map(|setting| setting.from.clone()),
        };
        self.providers.iter().map(setup).collect()
    }

    /// The supplies that a client needs to find the same models elsewhere, including the keys.
    #[must_use]
    pub fn supplies(&self) -> ModelSupplies {
        let supplied = |(provider, settings): (&Provider, &ProviderSettings)| {
            let api_key = settings.key.as_ref().map(|setting| setting.value.clone());
            let base_url = settings.base_url.as_ref().map(|setting| setting.value.clone());
            (provider.name().to_owned(), holdpoint_common::ProviderSettings { api_key, base_url })
        };
        ModelSupplies {
            model: self.configured.clone(),
            providers: self.providers.iter().map(supplied).collect(),
            models: self.settings.clone(),
            proxies: self.proxies.clone(),
            certificates: self.certificates.clone(),
        }
    }

    fn access(&self, provider: Provider) -> Result<Access, ModelError> {
        let settings = self.providers.get(&provider);
        let access = settings
            .and_then(|settings| settings.access(provider, &self.proxies, &self.certificates));
        access.ok_or_else(|| ModelError::Setup {
            message: format!("there is no key for {provider}"),
            hint: format!(
                "set {}, or `api_key` under [providers.{provider}] in the configuration; for a server that needs \
                 no key, set {}",
                provider.key_variable().unwrap_or_default(),
                provider.url_variable()
            ),
        })
    }

    /// The model with this full name, if it exists already.
    fn existing(&self, name: &str) -> Option<Arc<dyn Model>> {
        if let Some(model) = self.models.get(name) {
            return Some(Arc::clone(model));
        }
        let mut built = self.built();
        let index = built.iter().position(|(known, _)| known == name)?;
        // The last used model moves to the end.
        built[index..].rotate_left(1);
        built.last().map(|(_, model)| Arc::clone(model))
    }

    /// Keeps a new model under `name`, for reuse.
    fn keep(&self, name: String, model: Arc<dyn Model>) -> Arc<dyn Model> {
        let mut built = self.built();
        built.retain(|(known, _)| *known != name);
        if built.len() == MAX_BUILT_MODELS {
            built.remove(0);
        }
        built.push((name, Arc::clone(&model)));
        model
    }

    fn built(&self) -> MutexGuard<'_, Vec<(String, Arc<dyn Model>)>> {
        self.built.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes the paths absolute: a relative path starts at this process's folder, and a daemon has
/// another one.
fn with_absolute_paths(certificates: Certificates) -> Certificates {
    let absolute = |path: &str| match std::path::absolute(path) {
        Ok(absolute) => absolute.to_string_lossy().into_owned(),
        // There is no current folder, or the path is an empty entry of a list.
        Err(_) => path.to_owned(),
    };
    let Certificates { file, dir } = certificates;
    let dirs = |dirs: String| dirs.split(':').map(absolute).collect::<Vec<_>>().join(":");
    Certificates { file: file.as_deref().map(absolute), dir: dir.map(dirs) }
}

/// The full name of a provider's default model.
fn default_full_name(provider: Provider) -> String {
    format!("{provider}/{}", provider.default_model())
}

impl fmt::Debug for Catalog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let built: Vec<_> = self.built().iter().map(|(name, _)| name.clone()).collect();
        let models: Vec<_> = self.models.keys().cloned().chain(built).collect();
        f.debug_struct("Catalog")
            .field("configured", &self.configured)
            .field("models", &models)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "sk-very-secret";

    fn catalog(config: &str, env: &[(&str, &str)]) -> Catalog {
        let env: BTreeMap<_, _> =
            env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
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
        assert_eq!(name("model = 'gemini'", &[]), "gemini/gemini-3.8-flash");
        assert_eq!(name("", &[("ANTHROPIC_API_KEY", KEY)]), "anthropic/claude-sonnet-5-5");
        assert_eq!(name("", &[("GEMINI_API_KEY", KEY)]), "gemini/gemini-3.8-flash");
        assert_eq!(name("", &[("GEMINI_API_KEY", KEY), ("OPENAI_API_KEY", KEY)]), "openai/gpt-5");
        assert_eq!(name("", &[("OLLAMA_HOST", "localhost")]), "rehearsal");
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

    /// A client may ask for any number of names.
    #[test]
    fn the_least_recently_used_models_are_dropped() {
        let catalog = catalog("", &[("OLLAMA_HOST", "localhost")]);
        let used = catalog.get("ollama/used").unwrap();
        for n in 0..3 * MAX_BUILT_MODELS {
            catalog.get(&format!("ollama/{n}")).unwrap();
            assert!(Arc::ptr_eq(&used, &catalog.get("ollama/used").unwrap()), "{n}");
        }
        let kept = format!("{catalog:?}").matches("ollama/").count();
        assert_eq!(kept, MAX_BUILT_MODELS);
    }

    #[test]
    fn errors_name_the_missing_setting() {
        let empty = catalog("", &[]);
        assert!(refusal(&empty, "openai/x").contains("OPENAI_API_KEY"));
        assert!(refusal(&empty, "opnai/x").contains("there is no model provider `opnai`"));
        assert!(refusal(&empty, "openai/").contains("is not a model name"));
        assert!(refusal(&empty, "rehearsal/x").contains("without a name"));
        let local = catalog("", &[("OPENAI_BASE_URL", "http://localhost:1/v1")]);
        assert!(local.get("openai/x").is_ok(), "a local server needs no key");
        let wrong = catalog("", &[("OPENAI_BASE_URL", "localhost"), ("OPENAI_API_KEY", KEY)]);
        assert!(!refusal(&wrong, "openai/x").contains(KEY));
    }

    #[test]
    fn m_e6_every_provider_is_reached_as_it_is_set() {
        let config =
            "[providers.anthropic]\nbase_url = 'http://a'\n[providers.gemini]\napi_key = 'k'";
        let env =
            [("ANTHROPIC_API_KEY", KEY), ("GEMINI_API_KEY", KEY), ("OLLAMA_HOST", "0.0.0.0:4000")];
        let catalog = catalog(config, &env);
        let setups = catalog.providers();
        let setup_of = |provider| setups.iter().find(|setup| setup.provider == provider).unwrap();
        let anthropic = setup_of(Provider::Anthropic);
        assert_eq!(anthropic.base_url, "http://a");
        assert_eq!(anthropic.base_url_from.as_deref(), Some("[providers.anthropic] base_url"));
        assert_eq!(anthropic.key_from.as_deref(), Some("ANTHROPIC_API_KEY"));
        assert_eq!(
            setup_of(Provider::Gemini).key_from.as_deref(),
            Some("[providers.gemini] api_key")
        );
        assert_eq!(setup_of(Provider::Ollama).base_url, "http://127.0.0.1:4000");
        assert_eq!(setup_of(Provider::OpenAi).key_from, None);
        for name in ["anthropic", "anthropic/x", "gemini", "ollama/llama:7b", "ollama"] {
            let model = catalog.get(name).unwrap();
            assert!(model.name().starts_with(name), "{}", model.name());
        }
        assert!(!format!("{setups:?}{catalog:?}").contains(KEY));
    }

    #[test]
    fn m_e2_paths_of_certificates_start_at_the_clients_folder() {
        let here = std::env::current_dir().unwrap();
        let env = [("SSL_CERT_FILE", "ca.pem"), ("SSL_CERT_DIR", "/etc/a:b::")];
        let Certificates { file, dir } = catalog("", &env).supplies().certificates;
        assert_eq!(file.as_deref(), here.join("ca.pem").to_str());
        assert_eq!(dir, Some(format!("/etc/a:{}::", here.join("b").display())));
    }

    #[test]
    fn the_supplies_of_a_client_find_the_same_models() {
        let here =
            catalog("[providers.anthropic]\napi_key = 'k'", &[("OLLAMA_HOST", "0.0.0.0:4000")]);
        let there = Catalog::supplied(here.supplies());
        assert_eq!(there.default_name().name, here.default_name().name);
        for (here, there) in here.providers().iter().zip(there.providers()) {
            assert_eq!(
                (&here.base_url, here.key_from.is_some()),
                (&there.base_url, there.key_from.is_some())
            );
        }
    }

    #[test]
    fn an_embedders_model_takes_precedence() {
        struct Own;
        impl Model for Own {
            fn name(&self) -> &'static str {
                "openai/gpt-5"
            }
            fn stream(&self, _: &crate::model::ModelRequest) -> crate::model::ModelStream {
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
