//! Web access for the tool `web`: the browser, the guard of its connections, and page reading.

mod browser;
mod browsers;
mod cdp;
mod error;
mod find;
pub mod guard;
mod location;
mod page;
mod private;
mod profile;
mod read;
mod running;
mod screenshot;
mod search;
mod session_browser;
mod tab;
mod tool;
mod visit;
mod waiting;

pub use browsers::Browsers;
pub use running::RunningBrowser;
pub use tool::Web;
