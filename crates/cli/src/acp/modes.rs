//! The modes and options of a session: the policy mode and the model.

use agent_client_protocol_schema::v1::{
    Error, ErrorCode, SessionConfigOption, SessionConfigOptionCategory, SessionConfigOptionValue,
    SessionConfigSelectOption, SessionMode, SessionModeState, SetSessionConfigOptionRequest,
};
use holdpoint_common::{PolicyMode, SessionSettings};
use holdpoint_session::model::Catalog;

use super::rpc::failure;

/// Id of the option for the policy mode.
const MODE: &str = "mode";
/// Id of the option for the model.
const MODEL: &str = "model";

/// The policy modes, with the names and descriptions that an editor shows.
const MODES: [(PolicyMode, &str, &str); 5] = [
    (PolicyMode::Ask, "Ask", "Reading in the folder is allowed, everything else asks"),
    (PolicyMode::Edits, "Edits", "Writing in the folder is allowed too, the rest asks"),
    (PolicyMode::Sandboxed, "Sandboxed", "As edits, and commands in the sandbox are allowed"),
    (PolicyMode::All, "All", "Everything is allowed except what a rule denies"),
    (PolicyMode::Readonly, "Read only", "Reading in the folder is allowed, the rest is denied"),
];

/// The models that an editor offers for a session.
#[derive(Debug, Clone)]
pub(super) struct Models(Vec<String>);

impl Models {
    /// The default model of each provider that is set up, and the built-in one.
    pub(super) fn new(catalog: &Catalog) -> Self {
        let names = catalog.providers().into_iter().filter_map(|setup| {
            // A local server needs no key.
            let is_set_up = setup.key_from.is_some() || setup.base_url_from.is_some();
            is_set_up.then_some(setup.default_model)
        });
        let mut names: Vec<_> = names.collect();
        names.push("rehearsal".to_owned());
        Self(names)
    }
}

/// The mode of a session, and all modes.
pub(super) fn state(settings: &SessionSettings) -> SessionModeState {
    let modes = MODES.iter().map(|(mode, name, description)| {
        SessionMode::new(mode.to_string(), *name).description(description.to_string())
    });
    SessionModeState::new(settings.policy.to_string(), modes.collect())
}

/// The options of a session with their values. The mode is among them, because an editor that shows
/// options ignores modes.
pub(super) fn options(settings: &SessionSettings, models: &Models) -> Vec<SessionConfigOption> {
    let modes = MODES.iter().map(|(mode, name, description)| {
        SessionConfigSelectOption::new(mode.to_string(), *name).description(description.to_string())
    });
    let modes: Vec<_> = modes.collect();
    let current = (!models.0.contains(&settings.model)).then_some(&settings.model);
    let models = current.into_iter().chain(&models.0);
    let models: Vec<_> =
        models.map(|model| SessionConfigSelectOption::new(model.clone(), model.clone())).collect();
    vec![
        SessionConfigOption::select(MODE, "Mode", settings.policy.to_string(), modes)
            .description("What tools may do without asking".to_owned())
            .category(SessionConfigOptionCategory::Mode),
        SessionConfigOption::select(MODEL, "Model", settings.model.clone(), models)
            .description("The model from the next turn on".to_owned())
            .category(SessionConfigOptionCategory::Model),
    ]
}

/// The policy mode with this id.
///
/// # Errors
/// An error for the editor that names all modes.
pub(super) fn mode(id: &str) -> Result<PolicyMode, Error> {
    let found = MODES.iter().find(|(mode, ..)| mode.to_string() == id);
    found.map(|(mode, ..)| *mode).ok_or_else(|| {
        let modes: Vec<_> = MODES.iter().map(|(mode, ..)| mode.to_string()).collect();
        let message = format!("there is no mode `{id}`: choose {}", modes.join(", "));
        failure(ErrorCode::InvalidParams, message)
    })
}

/// A change of an option.
#[derive(Debug, PartialEq)]
pub(super) enum Change {
    Policy(PolicyMode),
    /// The model with this name, which is not checked here: any model of a provider can be set.
    Model(String),
}

/// Reads a change of an option.
///
/// # Errors
/// An error for the editor, if there is no such option, or its value has another form.
pub(super) fn change(request: &SetSessionConfigOptionRequest) -> Result<Change, Error> {
    let SessionConfigOptionValue::ValueId { value } = &request.value else {
        return Err(failure(ErrorCode::InvalidParams, "the value of an option must be an id"));
    };
    match &*request.config_id.0 {
        MODE => mode(&value.0).map(Change::Policy),
        MODEL => Ok(Change::Model(value.to_string())),
        other => Err(failure(
            ErrorCode::InvalidParams,
            format!("there is no option `{other}`: choose {MODE} or {MODEL}"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn m_h1_every_policy_mode_is_a_mode_of_the_editor() {
        for (policy, ..) in MODES {
            assert_eq!(mode(&policy.to_string()).unwrap(), policy);
            let json = serde_json::to_value(policy).unwrap();
            assert_eq!(json, json!(policy.to_string()), "the ids are those of the API");
        }
        let error = mode("yolo").unwrap_err();
        assert_eq!(
            error.message,
            "there is no mode `yolo`: choose ask, edits, sandboxed, all, readonly"
        );
    }

    #[test]
    fn m_h1_an_option_changes_the_mode_or_the_model() {
        let read = |id: &str, value| {
            let request = json!({ "sessionId": "s", "configId": id, "value": value });
            change(&serde_json::from_value(request).unwrap()).map_err(|error| error.message)
        };
        assert_eq!(read("mode", "edits"), Ok(Change::Policy(PolicyMode::Edits)));
        assert_eq!(read("model", "openai/x"), Ok(Change::Model("openai/x".to_owned())));
        assert!(read("mode", "yolo").unwrap_err().contains("`yolo`"));
        assert!(read("thought", "high").unwrap_err().contains("`thought`"));
    }
}
