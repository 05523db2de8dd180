//! Descriptions of errors in JSON texts.

/// Describes an error without its line and column, for texts that are one line of a file or that
/// the user has never seen in this form.
#[must_use]
pub fn describe(error: &serde_json::Error) -> String {
    let position = format!(" at line {} column {}", error.line(), error.column());
    let text = error.to_string();
    text.strip_suffix(&position).map(str::to_owned).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_has_no_position() {
        for (text, description) in [
            ("{\"a\":", "EOF while parsing a value"),
            ("{\"a\": x}", "expected value"),
            ("[]", "invalid type: sequence, expected a map"),
        ] {
            assert_eq!(
                describe(
                    &serde_json::from_str::<std::collections::BTreeMap<String, u64>>(text)
                        .unwrap_err()
                ),
                description
            );
        }
        // An error that is not about a text has no position.
        let error = serde_json::from_value::<u64>(serde_json::Value::Null).unwrap_err();
        assert_eq!(describe(&error), error.to_string());
    }
}
