//! Opening a session.

use std::collections::HashMap;

use holdpoint_common::{Config, PolicyRules, Rule, Supplies};
use holdpoint_session::OpenSession;
use holdpoint_session::model::Catalog;
use napi::Env;
use napi::bindgen_prelude::{PromiseRaw, Unknown};
use napi_derive::napi;

use super::Sessions;
use crate::crossing::{caught, promise, word};
use crate::failure::Failure;

/// What a session is opened with. What is left out is as the configuration says, else as usual.
#[napi(object, object_to_js = false)]
#[derive(Default)]
pub struct OpenOptions {
    /// The folder it works in; without it, that of this process.
    pub cwd: Option<String>,
    /// What it is called; without it, as the folder is, with a number where that is taken.
    pub name: Option<String>,
    /// The model, as `PROVIDER/NAME` or `PROVIDER`. Without it: the configuration's, else the first provider whose key
    /// is set, else `rehearsal`.
    pub model: Option<String>,
    /// What its tools may do unasked: `ask`.
    #[napi(ts_type = "PolicyMode")]
    pub policy: Option<String>,
    /// What is allowed, asked or denied besides.
    pub rules: Option<OpenRules>,
    /// Who answers its asks: `wait`.
    #[napi(ts_type = "AsksMode")]
    pub asks: Option<String>,
    /// The most steps (requests to the model) one turn may take; 0, as usual, for no limit.
    pub max_steps: Option<u32>,
    /// The most tokens one turn may take; 0, as usual, for no limit.
    pub max_turn_tokens: Option<i64>,
    /// The environment, of which an allow-list goes to its tools, and where keys of models are found; without it, that of
    /// this process.
    pub env: Option<HashMap<String, String>>,
}

/// Rules that say more than the policy: `TOOL` or `TOOL(PATTERN)`, for example `shell(git status)`. Deny beats ask beats
/// allow.
#[napi(object, object_to_js = false)]
pub struct OpenRules {
    /// What is allowed unasked.
    pub allow: Option<Vec<String>>,
    /// What is asked, even where it would be allowed.
    pub ask: Option<Vec<String>>,
    /// What is denied, unasked.
    pub deny: Option<Vec<String>>,
}

#[napi]
impl Sessions {
    /// Opens a fresh session, and gives its id.
    ///
    /// Rejects with `workspace`, `modelSetup`, `policy`, `nameTaken`, `badName` or `tooManySessions`.
    #[napi(ts_return_type = "Promise<SessionId>")]
    pub fn session_open<'env>(
        &self,
        env: &'env Env,
        options: Option<OpenOptions>,
    ) -> napi::Result<PromiseRaw<'env, Unknown<'env>>> {
        let place = self.place();
        // The environment is read here, where JavaScript can't change it meanwhile.
        let opened = caught(|| {
            let (sessions, config) = place.sessions()?;
            let mut options = options.unwrap_or_default();
            let supplies = supplies(&config, options.env.take());
            Ok((sessions.with_supplies(supplies), open(&config, options)?))
        });
        promise(env, async move {
            let (sessions, open) = opened?;
            let session = place.know(sessions.open(open).await?);
            Ok(session.id().clone())
        })
    }
}

/// What a session of this process brings along.
fn supplies(config: &Config, env: Option<HashMap<String, String>>) -> Supplies {
    let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    let env = env.unwrap_or_else(|| std::env::vars_os().filter_map(text).collect());
    let models = Catalog::new(config, |name| env.get(name).cloned()).supplies();
    Supplies { env: env.into_iter().collect(), models: Some(models), system_prompt: config.system_prompt.clone() }
}

fn open(config: &Config, options: OpenOptions) -> Result<OpenSession, Failure> {
    let OpenOptions { cwd, name, model, policy, rules, asks, max_steps, max_turn_tokens, env: _ } = options;
    let cwd = match cwd {
        Some(cwd) => cwd.into(),
        None => std::env::current_dir().map_err(|error| Failure::new("workspace", error))?,
    };
    let open = OpenSession::in_folder(cwd)
        .policy(word("policy", policy)?.unwrap_or(config.policy))
        .rules(merged(&config.rules, rules)?)
        .asks(word("asks", asks)?.or(config.asks).unwrap_or_default())
        .max_steps(max_steps.unwrap_or(config.max_steps))
        .max_turn_tokens(max_turn_tokens.map_or(config.max_turn_tokens, i64::unsigned_abs));
    let open = name.into_iter().fold(open, OpenSession::name);
    Ok(model.into_iter().fold(open, OpenSession::model))
}

/// The configuration's rules and these: a rule is never lost.
fn merged(configured: &PolicyRules, rules: Option<OpenRules>) -> Result<PolicyRules, Failure> {
    let mut merged = configured.clone();
    let Some(OpenRules { allow, ask, deny }) = rules else { return Ok(merged) };
    for (rules, given) in [(&mut merged.allow, allow), (&mut merged.ask, ask), (&mut merged.deny, deny)] {
        for rule in given.unwrap_or_default() {
            rules.push(rule.parse::<Rule>().map_err(|error| Failure::new("policy", error))?);
        }
    }
    Ok(merged)
}
