//! Which program is the browser.

use std::env::split_paths;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::web::error::WebError;

/// What browsers that can be used are called, the first one first.
const NAMES: [&str; 5] = ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome"];

/// Where macOS has them.
#[cfg(target_os = "macos")]
const PLACES: [&str; 2] = [
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
];
#[cfg(not(target_os = "macos"))]
const PLACES: [&str; 0] = [];

/// The configured browser, or the first that is found on this PATH.
///
/// # Errors
/// There is none: how to get one.
pub(in crate::web) fn find_program(configured: Option<&str>, path: Option<&str>) -> Result<PathBuf, WebError> {
    if let Some(configured) = configured {
        let program = PathBuf::from(configured);
        return match program.is_absolute() && is_program(&program) {
            true => Ok(program),
            false => Err(WebError::failed(format!(
                "`{configured}`, which web.chromium names, is no program: the setting is the whole path of a Chromium or \
                 Chrome"
            ))),
        };
    }
    let folders: Vec<_> = split_paths(path.unwrap_or_default()).filter(|folder| folder.is_absolute()).collect();
    let on_path = NAMES.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    on_path.chain(PLACES.map(PathBuf::from)).find(|program| is_program(program)).ok_or_else(|| {
        WebError::failed(
            "there is no Chromium or Chrome on the PATH. The user can install one (Debian, Ubuntu: `apt install chromium`; \
             Fedora: `dnf install chromium`; macOS: `brew install --cask chromium`), or name one by web.chromium in the \
             configuration",
        )
    })
}

fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
}
