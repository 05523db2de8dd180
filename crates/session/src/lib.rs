//! Sessions of coding agents as actors: many at once, each of which can at any moment be watched, held, asked,
//! answered, interrupted, left and come back to.

mod actor;
mod attachment;
mod engine;
mod error;
mod handle;
pub mod history;
mod lane;
mod manager;
pub mod model;
mod open;
mod outfit;
mod sessions;
pub mod state;
pub mod store;
#[cfg(feature = "test-support")]
pub mod testing;
mod turn;

// Setting up.
pub use engine::{Engine, EngineBuilder, StartError, builtin_tools};

// Sessions, and one session.
pub use actor::ClientEnd;
pub use attachment::{AttachFrom, Attachment};
pub use handle::{Answered, InterruptedTurn, Interruption, Prompted, SessionHandle, TurnEnd};
pub use open::OpenSession;
pub use sessions::Sessions;

pub use error::SessionError;
