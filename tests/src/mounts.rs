//! File systems that a test mounts. Only root can mount one.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a part of tests: what goes wrong here ends the test"
)]

use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::time::Instant;

use holdpoint_session::testing::patience;
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, mount, mount_bind, mount_remount, unmount};

/// A mounted file system, which is unmounted when this is dropped.
pub struct Mounted(PathBuf);

impl Mounted {
    /// Mounts a small file system in memory on `folder`. `None` without the right to mount.
    #[must_use]
    pub fn disk(folder: &Path, mib: u32) -> Option<Self> {
        let options = CString::new(format!("size={mib}m,mode=700")).unwrap();
        let mounted = mount("tmpfs", folder, "tmpfs", MountFlags::empty(), options.as_c_str());
        Self::unless_refused(folder, mounted)
    }

    /// Makes `folder` and everything below it read-only. `None` without the right to mount.
    #[must_use]
    pub fn read_only(folder: &Path) -> Option<Self> {
        let mounted = Self::unless_refused(folder, mount_bind(folder, folder))?;
        mounted.remount(MountFlags::BIND | MountFlags::RDONLY);
        Some(mounted)
    }

    /// Makes a mounted disk read-only, or writable again.
    pub fn set_read_only(&self, read_only: bool) {
        self.remount(if read_only { MountFlags::RDONLY } else { MountFlags::empty() });
    }

    /// Waits while the file system is busy: a store that was dropped closes its files a little
    /// later, when its threads end.
    fn remount(&self, flags: MountFlags) {
        let by = Instant::now() + patience();
        loop {
            match mount_remount(&self.0, flags, "") {
                Err(Errno::BUSY) if Instant::now() < by => std::thread::yield_now(),
                remounted => return remounted.unwrap(),
            }
        }
    }

    fn unless_refused(folder: &Path, mounted: rustix::io::Result<()>) -> Option<Self> {
        if let Err(error) = mounted {
            println!("skipped: no file system can be mounted: {error}");
        }
        mounted.is_ok().then(|| Self(folder.to_owned()))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = unmount(&self.0, UnmountFlags::DETACH);
    }
}
