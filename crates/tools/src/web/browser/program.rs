//! Which program is the browser.

use std::path::{Path, PathBuf};

use crate::environment::{is_program, program};
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

/// The configured browser, or the first that is found on the PATH, outside of the workspace.
///
/// # Errors
/// There is none: how to get one.
pub(in crate::web) fn find_program(
    configured: Option<&str>,
    env: &[(String, String)],
    workspace: &Path,
) -> Result<PathBuf, WebError> {
    if let Some(configured) = configured {
        let browser = PathBuf::from(configured);
        return match browser.is_absolute() && is_program(&browser) {
            true => Ok(browser),
            false => Err(WebError::failed(format!(
                "`{configured}`, which web.chromium names, is no program: the setting is the whole path of a Chromium or \
                 Chrome"
            ))),
        };
    }
    let usual = || PLACES.iter().map(PathBuf::from).find(|browser| is_program(browser));
    program(&NAMES, env, workspace).or_else(usual).ok_or_else(|| {
        WebError::failed(
            "there is no Chromium or Chrome on the PATH, outside of the workspace. The user can install one (Debian, \
             Ubuntu: `apt install chromium`; Fedora: `dnf install chromium`; macOS: `brew install --cask chromium`), or name \
             one by web.chromium in the configuration",
        )
    })
}
