//! The conversion of errors of models and stores to those of sessions.

use holdpoint_common::SessionError;

use crate::model::ModelError;
use crate::store::StoreError;

impl From<StoreError> for SessionError {
    fn from(error: StoreError) -> Self {
        match error {
            // The session was deleted in the meantime.
            StoreError::Unknown { session } => Self::UnknownSession { given: session.to_string() },
            StoreError::Owned { session, by } | StoreError::Fenced { session, by } => {
                Self::NotOwner { session, owner: by }
            }
            error => Self::Store { message: error.to_string() },
        }
    }
}

impl From<ModelError> for SessionError {
    fn from(error: ModelError) -> Self {
        match error {
            ModelError::Setup { message, hint } => Self::ModelSetup { message, hint },
            error => Self::Model { message: error.to_string() },
        }
    }
}
