//! The instruction files that a turn reads, as quotations in the system prompt: the user's own, and
//! those of the project.

mod files;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use holdpoint_common::InstructionFile;

use crate::session_env::SessionEnv;
use files::{Found, project_files, user_file};

/// The text before the quotation of the user's file.
const USER_INTRODUCTION: &str = include_str!("../prompts/user.md");

/// The text before the quotations of the project's files.
const PROJECT_INTRODUCTION: &str = include_str!("../prompts/project.md");

/// The user's own instruction file, which need not exist.
#[derive(Clone)]
pub(crate) struct UserFile {
    pub(crate) path: PathBuf,
    /// Opens the file, and refuses one that another user can change.
    pub(crate) open: fn(&Path) -> io::Result<File>,
}

/// The system prompt of a turn, and the files that it quotes.
pub(crate) struct Instructions {
    pub(crate) system: Arc<str>,
    /// All files that were found, the user's first and the nearest one last.
    pub(crate) files: Vec<InstructionFile>,
    /// A message for the user if a file, or a part of one, is left out because of a fault.
    pub(crate) notice: Option<String>,
}

/// Reads the instruction files for a turn of this session.
pub(crate) async fn read(env: &SessionEnv) -> Instructions {
    let workspace = env.workspace().root().to_owned();
    let user = env.user_instructions.clone();
    let find = move || (user.and_then(|user| user_file(&user)), project_files(&workspace));
    let (user, project) = match tokio::task::spawn_blocking(find).await {
        Ok(found) => found,
        Err(error) => {
            let notice = format!("the instruction files are left out: {error}");
            return Instructions {
                system: Arc::clone(&env.system),
                files: Vec::new(),
                notice: Some(notice),
            };
        }
    };
    let system = with_quotations(&env.system, user.as_ref(), &project);
    let all: Vec<_> = user.into_iter().chain(project).collect();
    let notices: Vec<_> = all.iter().filter_map(Found::notice).collect();
    let notice = (!notices.is_empty()).then(|| notices.join("; "));
    if let Some(notice) = &notice {
        tracing::warn!("{notice}");
    }
    Instructions { system, files: all.into_iter().map(InstructionFile::from).collect(), notice }
}

/// Adds the texts of the files to the system prompt.
fn with_quotations(system: &Arc<str>, user: Option<&Found>, project: &[Found]) -> Arc<str> {
    let user = user.and_then(|found| found.text.as_deref());
    let project: Vec<_> =
        project.iter().filter_map(|found| Some((&found.path, found.text.as_deref()?))).collect();
    if user.is_none() && project.is_empty() {
        return Arc::clone(system);
    }
    let mut prompt = format!("{}\n", system.trim_end());
    if let Some(text) = user {
        prompt.extend(["\n", USER_INTRODUCTION.trim_end(), "\n\n"]);
        quote(&mut prompt, text);
    }
    if !project.is_empty() {
        prompt.extend(["\n", PROJECT_INTRODUCTION.trim_end(), "\n"]);
    }
    for (path, text) in project {
        prompt.extend(["\n", path, ":\n\n"]);
        quote(&mut prompt, text);
    }
    prompt.into()
}

/// Quotes each line of the text, so that no line can end the quotation.
fn quote(prompt: &mut String, text: &str) {
    // A character that might end a line for a model ends one here.
    let text = text
        .replace("\r\n", "\n")
        .replace(['\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}'], "\n");
    for line in text.trim_end().lines() {
        prompt.push_str(if line.is_empty() { ">" } else { "> " });
        prompt.extend(
            line.chars()
                .map(|char| if char.is_control() && char != '\t' { '\u{fffd}' } else { char }),
        );
        prompt.push('\n');
    }
}
