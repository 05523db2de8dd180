//! Settings of this machine in a fleet, and names of machines and places.

use std::collections::BTreeMap;
use std::path::{Component, Path};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Maximum number of places of a machine.
pub const MAX_PLACES: usize = 32;

/// Maximum length of the name of a machine or a place, in bytes. That of a host has this limit, too.
pub const MAX_MACHINE_NAME: usize = 63;

/// The settings of this machine in a fleet.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct FleetSettings {
    /// Folders on file systems that several machines share, by name, for example
    /// `places = { work = "/srv/work" }`. A session that works below such a folder can be opened on
    /// every machine that has a place of this name, in the folder of that machine. At most 32.
    pub places: BTreeMap<String, String>,
}

impl FleetSettings {
    /// Checks the names and the folders of the places, and their number.
    ///
    /// # Errors
    /// A description of the first problem.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.places.len() > MAX_PLACES {
            return Err(format!("[fleet]: there are more than {MAX_PLACES} places"));
        }
        for (name, folder) in &self.places {
            let invalid = |problem: &str| Err(format!("[fleet.places] {name}: {problem}"));
            if !is_machine_name(name) {
                return invalid(&format!(
                    "a place needs a name of 1 to {MAX_MACHINE_NAME} ASCII letters, digits, `-`, `_` \
                     and `.`"
                ));
            }
            let folder = Path::new(folder);
            if !folder.is_absolute() || folder.components().any(|part| part == Component::ParentDir)
            {
                return invalid("its folder needs an absolute path without `..`");
            }
        }
        Ok(())
    }
}

/// Whether a text can be the name of a machine of a fleet, or of a place.
#[must_use]
pub fn is_machine_name(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=MAX_MACHINE_NAME).contains(&name.len()) && name.bytes().all(is_allowed)
}
