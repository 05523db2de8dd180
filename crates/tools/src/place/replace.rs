//! Replacing a file at once: whoever reads it finds the old text or the new, and never a part.

use std::fs::{File, Metadata, Permissions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use rustix::fs::{Access, AtFlags, Gid, Mode, OFlags, Uid, accessat, fchown, openat, statat, unlinkat};
use rustix::io::Errno;

use super::attributes;
use super::open::Spot;

/// The bits by which a program runs with the rights of the file's owner or group.
const SET_ID: u32 = 0o6000;

/// How the names of drafts begin; 16 hexadecimal digits follow.
const DRAFT: &str = ".holdpoint-";

/// A new file beside the one it is to replace; removed unless it does.
struct Draft<'a> {
    spot: &'a Spot,
    name: String,
    file: File,
}

impl Spot {
    /// Puts a file of this content there, in place of `old`: what was found there, if there was a file.
    ///
    /// The content goes into a new file beside it, which then takes the name. It gets the old one's permissions, and its
    /// owner and group where we may give them away. On Linux it also gets its access control list and `user.`
    /// attributes; where the list can't be kept, the group may do no more than all others. Other names of the old file
    /// (hard links) keep the old content. The new content is on the disk before it takes an old one's place.
    ///
    /// A file with the set-user-ID or set-group-ID bit, or with capabilities, is refused: it would lose them, or the new
    /// content would run with rights that its user does not have.
    ///
    /// # Errors
    /// Also if what is there is not `old`, or may not be written. Nothing has changed then.
    pub(crate) fn replace(&self, old: Option<&Metadata>, content: &[u8]) -> io::Result<File> {
        if let Some(old) = old {
            if old.mode() & SET_ID != 0 {
                let why = "it has the set-user-ID or set-group-ID bit: take the bit away with a command first";
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
            }
            if self.open()?.is_some_and(|(old, _)| attributes::has_capabilities(&old)) {
                let why = "it has capabilities (`getcap` shows them): take them away with `setcap -r` first";
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
            }
            // That its folder lets it be replaced does not mean that it may be written.
            accessat(self.folder(), self.name(), Access::WRITE_OK, AtFlags::EACCESS)?;
        }
        let mut draft = Draft::beside(self, old)?;
        draft.file.write_all(content)?;
        if let Some(old) = old {
            draft.resemble(old)?;
            // The name may be on the disk before the text is: after a loss of power there would be neither old nor new.
            match draft.file.sync_data() {
                // Not every file system can.
                Err(error) if matches!(error.kind(), io::ErrorKind::Unsupported | io::ErrorKind::InvalidInput) => {}
                synced => synced?,
            }
        }
        draft.put(old)
    }

    /// Whether what is there is still this file, untouched.
    fn is_still(&self, old: &Metadata) -> bool {
        // Anybody can set the time of the last change of its content back; that of the last change at all, nobody.
        let times = |file: &Metadata| (file.mtime(), file.mtime_nsec(), file.ctime(), file.ctime_nsec());
        let like = |file: &Metadata| (file.dev(), file.ino(), file.size(), times(file));
        self.open().is_ok_and(|now| now.is_some_and(|(_, now)| like(&now) == like(old)))
    }
}

impl<'a> Draft<'a> {
    fn beside(spot: &'a Spot, old: Option<&Metadata>) -> io::Result<Self> {
        // A new file's mode is what the umask leaves; nobody else reads along while a private one is written.
        let mode = Mode::from_raw_mode(if old.is_some() { 0o600 } else { 0o666 });
        loop {
            // The keys of a hasher are random, and so is its result.
            let name = format!("{DRAFT}{:016x}", RandomState::new().build_hasher().finish());
            match create(spot, &name, mode) {
                Ok(file) => return Ok(Self { spot, name, file }),
                Err(Errno::EXIST) => {}
                Err(error @ (Errno::ACCESS | Errno::PERM | Errno::ROFS)) if old.is_some() => {
                    let error = io::Error::from(error);
                    let why = format!("a file is replaced by a new one beside it, and its folder takes none: {error}");
                    return Err(io::Error::new(error.kind(), why));
                }
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
        // What was found there is checked once more before it is replaced.
        let keeps_list = self.spot.open()?.is_some_and(|(old, _)| attributes::copy(&old, &self.file));
        let mut mode = old.mode() & 0o1777;
        if !keeps_list || self.file.metadata()?.gid() != old.gid() {
            // What its group might do is not for another one; and with a list, these bits are not the group's own.
            mode &= 0o1707 | (mode & 0o007) << 3;
        }
        self.file.set_permissions(Permissions::from_mode(mode))
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

/// Makes a file of this name where there is nothing, not even a link.
fn create(spot: &Spot, name: &str, mode: Mode) -> Result<File, Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(spot.folder(), name, flags, mode)?.into())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn t_d7_a_planted_link_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let spot = Spot::of(&root.join("file")).unwrap();
        fs::write(root.join("there"), "text").unwrap();
        for target in ["there", "missing"] {
            symlink(target, root.join("link")).unwrap();
            assert_eq!(create(&spot, "link", Mode::from_raw_mode(0o600)).unwrap_err(), Errno::EXIST);
            fs::remove_file(root.join("link")).unwrap();
        }
        assert!(!root.join("missing").exists());
        assert_eq!(fs::read_to_string(root.join("there")).unwrap(), "text");
    }

    #[test]
    fn t_d10_what_was_changed_while_the_draft_was_written_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap().join("file");
        let spot = Spot::of(&path).unwrap();
        let made = Draft::beside(&spot, None).unwrap();
        fs::write(&path, "somebody's").unwrap();
        assert!(made.put(None).unwrap_err().to_string().contains("made it just now"));
        let (_, old) = spot.open().unwrap().unwrap();
        let draft = Draft::beside(&spot, Some(&old)).unwrap();
        fs::write(&path, "somebody else's").unwrap();
        assert!(draft.put(Some(&old)).unwrap_err().to_string().contains("changed it just now"));
        assert_eq!(fs::read_to_string(&path).unwrap(), "somebody else's");
        // Nor does a time that is set back hide it.
        let (file, old) = spot.open().unwrap().unwrap();
        let draft = Draft::beside(&spot, Some(&old)).unwrap();
        fs::write(&path, "SOMEBODY ELSE'S").unwrap();
        fs::File::options().write(true).open(&path).unwrap().set_modified(old.modified().unwrap()).unwrap();
        let now = file.metadata().unwrap();
        assert_eq!((now.modified().unwrap(), now.len()), (old.modified().unwrap(), old.len()));
        assert!(draft.put(Some(&old)).unwrap_err().to_string().contains("changed it just now"));
        assert_eq!(fs::read_to_string(&path).unwrap(), "SOMEBODY ELSE'S");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "drafts are removed");
    }
}
