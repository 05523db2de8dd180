//! Detection of unknown fields in given data, because they are most likely misspelt.

use std::fmt::{self, Display};

use serde::{Deserialize, Deserializer};
use serde_ignored::Path;

/// The path of a field, from the outermost name inwards. It is shown as `tasks[0].title`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldPath(pub Vec<Step>);

/// A step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// The name of a field or key, which may contain dots.
    Field(String),
    /// An index.
    Item(usize),
}

impl Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, step) in self.0.iter().enumerate() {
            match step {
                Step::Field(name) if position == 0 => f.write_str(name)?,
                Step::Field(name) => write!(f, ".{name}")?,
                Step::Item(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

impl From<&Path<'_>> for FieldPath {
    fn from(path: &Path<'_>) -> Self {
        let (parent, step) = match path {
            Path::Root => return Self::default(),
            Path::Seq { parent, index } => (parent, Some(Step::Item(*index))),
            Path::Map { parent, key } => (parent, Some(Step::Field(key.clone()))),
            Path::Some { parent }
            | Path::NewtypeStruct { parent }
            | Path::NewtypeVariant { parent } => (parent, None),
        };
        let mut path = Self::from(*parent);
        path.0.extend(step);
        path
    }
}

/// Deserialises a value. Also returns the path of the first field that the type does not have, if
/// there is one.
///
/// # Errors
/// The error of `deserializer` if the value can't be deserialised.
pub fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<(T, Option<FieldPath>), D::Error> {
    let mut unknown = None;
    let value = serde_ignored::deserialize(deserializer, |path| {
        unknown.get_or_insert_with(|| FieldPath::from(&path));
    })?;
    Ok((value, unknown))
}
