//! Detection of unknown fields in given data, because they are most likely misspelt.

use serde::{Deserialize, Deserializer};

/// Deserialises a value. Also returns the path of the first field that the type does not have, if
/// there is one.
///
/// # Errors
/// The error of `deserializer` if the value can't be deserialised.
pub fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<(T, Option<String>), D::Error> {
    let mut unknown = None;
    let value = serde_ignored::deserialize(deserializer, |path| {
        unknown = unknown.take().or(Some(path.to_string()))
    })?;
    Ok((value, unknown))
}
