//! The search for the browser's program.

use std::path::{Path, PathBuf};

use crate::environment::{is_program, program};
use crate::web::error::WebError;

/// Names of supported browsers, in order of preference.
const NAMES: [&str; 5] =
    ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome"];

/// Install locations outside of `PATH`, on macOS.
#[cfg(target_os = "macos")]
const INSTALL_PATHS: [&str; 2] = [
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
];
#[cfg(not(target_os = "macos"))]
const INSTALL_PATHS: [&str; 0] = [];

/// The configured browser, else the first of [`NAMES`] on the `PATH` outside of the workspace, else
/// the first of [`INSTALL_PATHS`].
///
/// # Errors
/// No usable browser exists; the message says how to install or configure one.
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
                "`{configured}`, the value of web.chromium, is not a program: set it to the full path of Chromium or \
                 Chrome"
            ))),
        };
    }
    let installed = || INSTALL_PATHS.iter().map(PathBuf::from).find(|browser| is_program(browser));
    program(&NAMES, env, workspace).or_else(installed).ok_or_else(|| {
        WebError::failed(
            "no Chromium or Chrome was found on the PATH outside of the workspace. The user can install one (Debian, \
             Ubuntu: `apt install chromium`; Fedora: `dnf install chromium`; macOS: `brew install --cask chromium`), \
             or set web.chromium in the configuration",
        )
    })
}
