//! Every error is the same error after its transmission.

use std::collections::BTreeSet;

use holdpoint_common::SessionError;
use holdpoint_common::api::{ErrorBody, RequestError};
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use crate::described::Schemas;

/// Sends an error as a daemon does, and returns the one that a client reads.
fn transmitted(error: &SessionError) -> SessionError {
    let body = serde_json::to_string(&ErrorBody::from(error.clone())).unwrap();
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
        assert!(
            !matches!(error, SessionError::Other { .. }),
            "not read as the error it is: {json}"
        );
        assert_eq!(serde_json::to_value(&error).unwrap(), json);
        assert_eq!(json["code"], error.code());
        assert_eq!(transmitted(&error), error);
        codes.push(error.code());
    }
    // An error with several kinds of details occurs once for each.
    codes.dedup();
    let distinct: BTreeSet<_> = codes.iter().collect();
    assert_eq!(distinct.len(), codes.len(), "two errors have one code: {codes:?}");
    assert!(codes.len() > 40, "{codes:?}");
}

#[test]
fn an_error_of_a_later_daemon_keeps_its_message_and_its_hint() {
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
    assert_eq!(transmitted(&error), error);
    // The error is known here, but a later version gave it other details.
    let changed = json!({ "code": "queueFull", "message": "full", "details": { "prompts": 3 } });
    let changed = SessionError::from(serde_json::from_value::<ErrorBody>(changed).unwrap());
    assert_eq!((changed.code().as_str(), changed.to_string().as_str()), ("queueFull", "full"));
    assert!(serde_json::from_value::<ErrorBody>(Value::Null).is_err());
}

#[test]
fn a_client_of_another_version_names_the_version_of_the_daemon() {
    let refused = json!({
        "code": "otherVersion",
        "message": "this daemon speaks version 9 of the API, not 1",
        "details": { "supported": 9, "requested": "1" },
    });
    let error = SessionError::from(serde_json::from_value::<ErrorBody>(refused).unwrap());
    assert_eq!(error.to_string(), "this daemon speaks version 9 of the API, not 1");
    assert!(matches!(
        error,
        SessionError::Request(RequestError::OtherVersion { supported: 9, .. })
    ));
}
