//! The built-in tools, one per file. `edit_file` and `write_file` share `failed_intent`.

mod ask_user;
mod edit_file;
mod failed_intent;
mod glob;
mod grep;
mod jobs;
mod list_dir;
mod read_file;
mod shell;
mod tasks;
mod write_file;

pub use ask_user::AskUser;
pub use edit_file::EditFile;
pub use glob::Glob;
pub use grep::Grep;
pub use jobs::Jobs;
pub use list_dir::ListDir;
pub use read_file::ReadFile;
pub use shell::Shell;
pub use tasks::Tasks;
pub use write_file::WriteFile;
