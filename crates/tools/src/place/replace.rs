//! Replacing a file at once: whoever reads it finds the old text or the new, and never a part.

use std::fs::{File, Metadata};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;

use rustix::fs::{Access, AtFlags, Gid, Mode, OFlags, Uid, accessat, fchmod, fchown, openat, statat, unlinkat};
use rustix::io::Errno;

use super::open::Spot;

/// A new file beside the one it is to replace; removed unless it does.
struct Draft<'a> {
    spot: &'a Spot,
    name: String,
    file: File,
}

impl Spot {
    /// Puts a file of this content there, in place of `old`: what was found there, if there was a file.
    ///
    /// The content goes into a new file beside it, which then takes the name. It gets the old one's permissions, but
    /// for set-user-ID and set-group-ID bits, which a write would drop, too; and its owner and group where we may
    /// give them away. Other names of the old file (hard links) keep the old content.
    ///
    /// # Errors
    /// Also if what is there is not `old`, or may not be written. Nothing has changed then.
    pub(crate) fn replace(&self, old: Option<&Metadata>, content: &[u8]) -> io::Result<File> {
        if old.is_some() {
            // That its folder lets it be replaced does not mean that it may be written.
            accessat(self.folder(), self.name(), Access::WRITE_OK, AtFlags::EACCESS)?;
        }
        let mut draft = Draft::beside(self, old)?;
        draft.file.write_all(content)?;
        if let Some(old) = old {
            draft.resemble(old)?;
        }
        draft.put(old)
    }

    /// Whether what is there is still this file, untouched.
    fn is_still(&self, old: &Metadata) -> bool {
        let like = |file: &Metadata| (file.dev(), file.ino(), file.size(), file.mtime(), file.mtime_nsec());
        self.open().is_ok_and(|now| now.is_some_and(|(_, now)| like(&now) == like(old)))
    }
}

impl<'a> Draft<'a> {
    fn beside(spot: &'a Spot, old: Option<&Metadata>) -> io::Result<Self> {
        // A new file's mode is what the umask leaves; nobody else reads along while a private one is written.
        let mode = Mode::from_raw_mode(if old.is_some() { 0o600 } else { 0o666 });
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        loop {
            // The keys of a hasher are random, and so is its result.
            let name = format!(".holdpoint-{:016x}", RandomState::new().build_hasher().finish());
            match openat(spot.folder(), &name, flags, mode) {
                Ok(file) => return Ok(Self { spot, name, file: file.into() }),
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn resemble(&self, old: &Metadata) -> io::Result<()> {
        let new = self.file.metadata()?;
        if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
            let (owner, group) = (Uid::from_raw(old.uid()), Gid::from_raw(old.gid()));
            // Only root may give a file away; a group one is in may be set by anyone.
            if fchown(&self.file, Some(owner), Some(group)).is_err() {
                let _ = fchown(&self.file, None, Some(group));
            }
        }
        let mut mode = old.mode() & 0o777;
        if self.file.metadata()?.gid() != old.gid() {
            // What its group might do is not for another one.
            mode &= 0o707 | (mode & 0o007) << 3;
        }
        fchmod(&self.file, Mode::from_raw_mode(mode))?;
        Ok(())
    }

    /// Takes the place. Looked at once more before: to write the draft took a while.
    fn put(self, old: Option<&Metadata>) -> io::Result<File> {
        if old.is_some_and(|old| !self.spot.is_still(old)) {
            return Err(io::Error::other("somebody else has changed it just now"));
        }
        let folder = self.spot.folder();
        let renamed = match old {
            Some(_) => rustix::fs::renameat(folder, &self.name, folder, self.spot.name()),
            None => self.rename_to_nothing(),
        };
        renamed.map_err(|error| match error {
            Errno::EXIST => io::Error::other("somebody else has made it just now"),
            error => error.into(),
        })?;
        self.file.try_clone()
    }

    fn rename_to_nothing(&self) -> Result<(), Errno> {
        let folder = self.spot.folder();
        #[cfg(any(target_os = "linux", target_vendor = "apple"))]
        match rustix::fs::renameat_with(
            folder,
            &self.name,
            folder,
            self.spot.name(),
            rustix::fs::RenameFlags::NOREPLACE,
        ) {
            // Not known to the kernel or the file system.
            Err(Errno::NOSYS | Errno::INVAL | Errno::NOTSUP) => {}
            renamed => return renamed,
        }
        match statat(folder, self.spot.name(), AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => rustix::fs::renameat(folder, &self.name, folder, self.spot.name()),
            Ok(_) => Err(Errno::EXIST),
            Err(error) => Err(error),
        }
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        // After it took its place there is nothing of this name.
        let _ = unlinkat(self.spot.folder(), &self.name, AtFlags::empty());
    }
}
