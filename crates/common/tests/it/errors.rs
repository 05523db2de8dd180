//! Every error is the same error after its transmission.

use holdpoint_common::SessionError;
use holdpoint_common::api::ErrorBody;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use crate::described::Schemas;

/// Sends an error as a daemon does, and returns the one that a client reads.
fn transmitted(error: &SessionError, hint: Option<&str>) -> SessionError {
    let body =
        serde_json::to_string(&ErrorBody::new(error.clone(), hint.map(str::to_owned))).unwrap();
    serde_json::from_str::<ErrorBody>(&body).unwrap().into()
}

#[test]
fn every_error_is_the_same_after_its_transmission() {
    let root = SchemaSettings::draft2020_12()
        .into_generator()
        .into_root_schema_for::<SessionError>()
        .to_value();
    let mut codes = Vec::new();
    for json in (Schemas { root: &root }).instances(&root) {
        let error: SessionError =
            serde_json::from_value(json.clone()).unwrap_or_else(|error| panic!("{error}: {json}"));
        if matches!(error, SessionError::Other { .. }) {
            assert_eq!(json.get("details"), None, "a known error with details is known: {json}");
            continue;
        }
        assert_eq!(serde_json::to_value(&error).unwrap(), json);
        assert_eq!(json["code"], error.code());
        assert_eq!(transmitted(&error, None), error);
        codes.push(error.code());
    }
    codes.dedup();
    let count = codes.len();
    codes.sort();
    codes.dedup();
    assert_eq!(
        (count, codes.len()),
        (codes.len(), 47),
        "each error has a code of its own: {codes:?}"
    );
}

#[test]
fn an_error_of_a_later_daemon_keeps_its_words() {
    let later = json!({ "code": "tooTired", "message": "try tomorrow", "hint": "sleep", "details": { "hours": 8 } });
    let error = SessionError::from(serde_json::from_value::<ErrorBody>(later).unwrap());
    let expected = SessionError::Other {
        code: "tooTired".to_owned(),
        message: "try tomorrow".to_owned(),
        hint: Some("sleep".to_owned()),
    };
    assert_eq!(
        (&error, error.code().as_str(), error.to_string().as_str()),
        (&expected, "tooTired", "try tomorrow")
    );
    assert_eq!(transmitted(&error, Some("sleep")), error);
    // The error is known here, but a later version gave it other details.
    let changed = json!({ "code": "queueFull", "message": "full", "details": { "prompts": 3 } });
    let changed = SessionError::from(serde_json::from_value::<ErrorBody>(changed).unwrap());
    assert_eq!((changed.code().as_str(), changed.to_string().as_str()), ("queueFull", "full"));
    assert!(serde_json::from_value::<ErrorBody>(Value::Null).is_err());
}
