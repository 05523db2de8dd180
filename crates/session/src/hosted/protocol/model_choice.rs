//! The choice of a model, which agents offer as an option of a session or as a list of models.

use agent_client_protocol_schema::v1;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::method;

/// The request that chooses the model of a session.
#[derive(Debug, Clone, PartialEq)]
pub(in super::super) struct ModelChoice {
    pub(in super::super) method: &'static str,
    pub(in super::super) params: Value,
}

/// The request that chooses this model, from the reply that opened a session; `None` if the reply
/// offers no models.
///
/// # Errors
/// The reason why the model can't be chosen.
pub(in super::super) fn model_choice(
    reply: &RawValue,
    session: &str,
    model: &str,
) -> Result<Option<ModelChoice>, String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Opened {
        #[serde(default)]
        config_options: Vec<Value>,
        #[serde(default)]
        models: Option<Models>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Models {
        available_models: Vec<Available>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Available {
        model_id: String,
    }
    // Some agents reply to `session/load` with nothing.
    let Ok(opened) = serde_json::from_str::<Opened>(reply.get()) else { return Ok(None) };
    let options = opened
        .config_options
        .into_iter()
        .filter_map(|option| serde_json::from_value::<v1::SessionConfigOption>(option).ok());
    let of_model = |option: v1::SessionConfigOption| match option.kind {
        v1::SessionConfigKind::Select(select)
            if option.category == Some(v1::SessionConfigOptionCategory::Model) =>
        {
            Some((option.id, values(select.options)))
        }
        _ => None,
    };
    if let Some((option, values)) = options.into_iter().find_map(of_model) {
        check_offered(&values, model)?;
        let params =
            serde_json::json!({ "sessionId": session, "configId": option, "value": model });
        return Ok(Some(ModelChoice { method: method::SET_OPTION, params }));
    }
    let Some(models) = opened.models else { return Ok(None) };
    let ids: Vec<_> = models.available_models.into_iter().map(|model| model.model_id).collect();
    check_offered(&ids, model)?;
    let params = serde_json::json!({ "sessionId": session, "modelId": model });
    Ok(Some(ModelChoice { method: method::SET_MODEL, params }))
}

/// The most models that an error names, and the most bytes of an id there.
const MAX_NAMED: usize = 20;
const MAX_MODEL: usize = 64;

fn check_offered(offered: &[String], model: &str) -> Result<(), String> {
    if offered.iter().any(|offered| offered == model) {
        return Ok(());
    }
    let ids = offered.iter().take(MAX_NAMED);
    let ids: Vec<_> = ids.map(|id| &id[..id.floor_char_boundary(MAX_MODEL)]).collect();
    let more = if offered.len() > MAX_NAMED { " and others" } else { "" };
    Err(format!("it does not offer the model `{model}` (hint: use {}{more})", ids.join(", ")))
}

/// The values of an option.
fn values(options: v1::SessionConfigSelectOptions) -> Vec<String> {
    let value = |option: v1::SessionConfigSelectOption| option.value.0.to_string();
    match options {
        v1::SessionConfigSelectOptions::Ungrouped(options) => {
            options.into_iter().map(value).collect()
        }
        v1::SessionConfigSelectOptions::Grouped(groups) => {
            groups.into_iter().flat_map(|group| group.options).map(value).collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn choice(reply: &Value, model: &str) -> Result<Option<ModelChoice>, String> {
        model_choice(&RawValue::from_string(reply.to_string()).unwrap(), "s", model)
    }

    #[test]
    fn m_h3_a_model_is_chosen_by_the_means_that_an_agent_offers() {
        let select = |values: &Value| {
            json!({ "sessionId": "s", "configOptions": [
                { "id": "mode", "name": "Mode", "category": "mode", "type": "select",
                  "currentValue": "a", "options": [{ "value": "a", "name": "A" }] },
                { "id": "which", "name": "Model", "category": "model", "type": "select",
                  "currentValue": "x", "options": values },
            ] })
        };
        let (x, y) = (json!({ "value": "x", "name": "X" }), json!({ "value": "y", "name": "Y" }));
        let groups = json!([{ "group": "g", "name": "G", "options": [x.clone(), y.clone()] }]);
        for values in [json!([x, y]), groups] {
            let chosen = choice(&select(&values), "y").unwrap().unwrap();
            assert_eq!(chosen.method, "session/set_config_option");
            let params = json!({ "sessionId": "s", "configId": "which", "value": "y" });
            assert_eq!(chosen.params, params);
            let why = choice(&select(&values), "z").unwrap_err();
            assert!(why.contains("`z`") && why.contains("use x, y)"), "{why}");
        }
        let models = json!({ "sessionId": "s", "models": {
            "currentModelId": "x", "availableModels": [{ "modelId": "x", "name": "X" }],
        } });
        let chosen = choice(&models, "x").unwrap().unwrap();
        assert_eq!(chosen.method, "session/set_model");
        assert_eq!(chosen.params, json!({ "sessionId": "s", "modelId": "x" }));
        assert!(choice(&models, "y").is_err());
        for nothing in [json!({ "sessionId": "s" }), json!(null), json!({ "configOptions": [] })] {
            assert_eq!(choice(&nothing, "x"), Ok(None), "{nothing}");
        }
    }

    #[test]
    fn m_h3_the_models_in_an_error_are_bounded() {
        let models: Vec<_> =
            (0..1000).map(|n| json!({ "modelId": format!("{n}{}", "m".repeat(1000)) })).collect();
        let why = choice(&json!({ "models": { "availableModels": models } }), "x").unwrap_err();
        assert!(why.ends_with("and others)") && why.len() < 2000, "{why}");
    }
}
