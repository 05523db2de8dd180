//! What is wrong with a JSON text, in words.

/// What is wrong, without the line and column that are told with it: for texts that are a line of a file or that nobody
/// has seen as they are.
#[must_use]
pub fn fault(error: &serde_json::Error) -> String {
    let place = format!(" at line {} column {}", error.line(), error.column());
    let text = error.to_string();
    text.strip_suffix(&place).map(str::to_owned).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_it_is_is_not_told() {
        for (text, told) in [
            ("{\"a\":", "EOF while parsing a value"),
            ("{\"a\": x}", "expected value"),
            ("[]", "invalid type: sequence, expected a map"),
        ] {
            assert_eq!(
                fault(&serde_json::from_str::<std::collections::BTreeMap<String, u64>>(text).unwrap_err()),
                told
            );
        }
        // One that is of no text has no place.
        let error = serde_json::from_value::<u64>(serde_json::Value::Null).unwrap_err();
        assert_eq!(fault(&error), error.to_string());
    }
}
