//! Screenshots of pages, saved as files.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use holdpoint_common::Timestamp;

use super::cdp::protocol::{CaptureScreenshot, GetLayoutMetrics, Viewport};
use super::error::WebError;
use super::tab::Tab;

/// The largest width and height of a picture in pixels, which is the limit of graphics hardware.
const MAX_SIDE_PIXELS: f64 = 16_384.0;

/// How many pictures are kept; the oldest are removed first.
const MAX_SCREENSHOTS: usize = 200;

/// A saved picture.
pub(super) struct Picture {
    pub(super) path: PathBuf,
    pub(super) width: u32,
    pub(super) height: u32,
    /// Whether a picture of the full page lacks a part of it, because of [`MAX_SIDE_PIXELS`].
    pub(super) cut: bool,
}

/// Takes a picture of the page as it is now, and saves it in `folder`.
pub(super) async fn take(tab: &Tab, full_page: bool, folder: &Path) -> Result<Picture, WebError> {
    let whole = tab.page.execute(GetLayoutMetrics {}).await?.css_content_size;
    let (width, height) = (whole.width.min(MAX_SIDE_PIXELS), whole.height.min(MAX_SIDE_PIXELS));
    let clip = full_page.then_some(Viewport { x: 0.0, y: 0.0, width, height, scale: 1.0 });
    let taken = tab
        .page
        .execute(CaptureScreenshot { format: "png", capture_beyond_viewport: full_page, clip })
        .await?;
    let png = STANDARD.decode(&taken.data).map_err(|error| WebError::failed(error.to_string()))?;
    let path = save_png(folder, &png).map_err(|error| {
        WebError::failed(format!(
            "the screenshot can't be written to {}: {error}",
            folder.display()
        ))
    })?;
    // The header of a PNG holds its width and height at these offsets.
    let [width, height] = [16, 20].map(|at| {
        png.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_be_bytes)
    });
    Ok(Picture {
        path,
        width,
        height,
        cut: full_page && whole.width.max(whole.height) > MAX_SIDE_PIXELS,
    })
}

fn save_png(folder: &Path, png: &[u8]) -> io::Result<PathBuf> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let mut saved: Vec<_> = fs::read_dir(folder)?.flatten().map(|entry| entry.path()).collect();
    saved.retain(|path| path.extension().is_some_and(|kind| kind == "png"));
    let taken = Timestamp::from(SystemTime::now());
    let mut file = tempfile::Builder::new()
        .prefix(&format!("{}-", taken.0))
        .suffix(".png")
        .make_in(folder, |path| {
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
        })?;
    // If this fails, dropping the file removes it.
    file.write_all(png)?;
    // File names begin with a timestamp.
    saved.sort();
    for path in saved.iter().take(saved.len().saturating_sub(MAX_SCREENSHOTS - 1)) {
        match fs::remove_file(path) {
            // Another session has removed it first.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            removed => removed?,
        }
    }
    let (_, path) = file.keep().map_err(|error| error.error)?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};

    use super::*;
    use crate::testing::in_own_process;

    #[test]
    fn a_screenshot_that_cannot_be_written_replaces_none() {
        if !in_own_process() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        for n in 0..MAX_SCREENSHOTS {
            fs::write(folder.path().join(format!("0-{n:03}.png")), "").unwrap();
        }
        // As on a full disk, files can be made but not written.
        signal_hook::flag::register(Signal::XFSZ.as_raw(), Arc::default()).unwrap();
        let limit = getrlimit(Resource::Fsize);
        setrlimit(Resource::Fsize, Rlimit { current: Some(0), ..limit }).unwrap();
        save_png(folder.path(), b"png").unwrap_err();
        setrlimit(Resource::Fsize, limit).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), MAX_SCREENSHOTS);
        assert!(folder.path().join("0-000.png").exists());
    }

    #[test]
    fn m_e7_web_concurrent_sessions_remove_old_screenshots() {
        let folder = tempfile::tempdir().unwrap();
        for _ in 0..20 {
            for n in 0..2 * MAX_SCREENSHOTS {
                fs::write(folder.path().join(format!("0-{n:03}.png")), "").unwrap();
            }
            std::thread::scope(|scope| {
                let keep = || save_png(folder.path(), b"png").unwrap();
                let threads = [scope.spawn(keep), scope.spawn(keep)];
                threads.into_iter().for_each(|thread| drop(thread.join().unwrap()));
            });
        }
    }
}
