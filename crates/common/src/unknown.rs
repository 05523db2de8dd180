//! What is given to us and nobody knows: a field whose name is wrong, most likely.

use serde::{Deserialize, Deserializer};

/// A value, and the path of the first field in it that means nothing, if there is one.
///
/// # Errors
/// It can't be read.
pub fn read<'de, T: Deserialize<'de>, D: Deserializer<'de>>(given: D) -> Result<(T, Option<String>), D::Error> {
    let mut unknown = None;
    let value = serde_ignored::deserialize(given, |path| unknown = unknown.take().or(Some(path.to_string())))?;
    Ok((value, unknown))
}
