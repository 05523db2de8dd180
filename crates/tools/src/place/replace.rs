//! Atomic replacement of a file: a reader finds the old or the new text, never a part.

use std::fs::{File, Metadata, Permissions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use rustix::fs::{
    Access, AtFlags, Gid, Mode, OFlags, Uid, accessat, fchown, openat, statat, unlinkat,
};
use rustix::io::Errno;

use super::attributes;
use super::open::OpenParent;

/// The set-user-ID and set-group-ID bits, with which a program runs with the rights of the file's
/// owner or group.
const SET_ID: u32 = 0o6000;

/// The prefix of the names of temporary files; 16 hexadecimal digits follow.
const TEMP_PREFIX: &str = ".holdpoint-";

/// A new file in the folder of the file that it will replace. Removed when dropped, unless it has
/// been renamed.
struct TempFile<'a> {
    parent: &'a OpenParent,
    name: String,
    file: File,
}

impl OpenParent {
    /// Writes a file with this content. `old` is the file that was found here, if there was one.
    ///
    /// The content goes into a new file in the same folder, which then takes the name. The new file
    /// gets the permissions of the old file, and its owner and group where this process may set
    /// them. On Linux it also gets the access control list and the `user.` attributes; if the list
    /// can't be kept, the group gets no more rights than all others. Other names of the old file
    /// (hard links) keep the old content. The new content is on disk before it replaces an old
    /// file.
    ///
    /// A file with the set-user-ID or set-group-ID bit, or with capabilities, is refused: it would
    /// lose them, or the new content would run with rights that its user does not have.
    ///
    /// # Errors
    /// Also fails if the file here is not `old` or may not be written. The file is then unchanged.
    pub(crate) fn replace(&self, old: Option<&Metadata>, content: &[u8]) -> io::Result<File> {
        if let Some(old) = old {
            if old.mode() & SET_ID != 0 {
                let why = "it has the set-user-ID or set-group-ID bit: clear the bit with a command first";
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
            }
            if self.open()?.is_some_and(|(file, _)| attributes::has_capabilities(&file)) {
                let why =
                    "it has capabilities (`getcap` shows them): remove them with `setcap -r` first";
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
            }
            // The rename needs only a writable folder, but the file itself must be writable, too.
            accessat(self.folder(), self.name(), Access::WRITE_OK, AtFlags::EACCESS)?;
        }
        let mut temp = TempFile::create_beside(self, old)?;
        temp.file.write_all(content)?;
        if let Some(old) = old {
            temp.copy_attributes(old)?;
            // Otherwise the rename could reach the disk before the text, and a power failure would
            // lose both the old and the new text.
            match temp.file.sync_data() {
                // Not every file system supports this.
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::Unsupported | io::ErrorKind::InvalidInput
                    ) => {}
                synced => synced?,
            }
        }
        temp.rename_into_place(old)
    }

    /// Whether the file here is still `old`, unchanged.
    fn is_still(&self, old: &Metadata) -> bool {
        // Any user can set the modification time back, but not the change time.
        let times =
            |file: &Metadata| (file.mtime(), file.mtime_nsec(), file.ctime(), file.ctime_nsec());
        let version = |file: &Metadata| (file.dev(), file.ino(), file.size(), times(file));
        self.open().is_ok_and(|now| now.is_some_and(|(_, now)| version(&now) == version(old)))
    }
}

impl<'a> TempFile<'a> {
    fn create_beside(parent: &'a OpenParent, old: Option<&Metadata>) -> io::Result<Self> {
        // A new file gets the mode that the umask leaves. A replacement is private until it is
        // complete.
        let mode = Mode::from_raw_mode(if old.is_some() { 0o600 } else { 0o666 });
        loop {
            // The keys of a hasher are random, and so is its result.
            let name = format!("{TEMP_PREFIX}{:016x}", RandomState::new().build_hasher().finish());
            match create(parent, &name, mode) {
                Ok(file) => return Ok(Self { parent, name, file }),
                Err(Errno::EXIST) => {}
                Err(error @ (Errno::ACCESS | Errno::PERM | Errno::ROFS)) if old.is_some() => {
                    let error = io::Error::from(error);
                    let why = format!(
                        "the file can't be replaced, because no file can be created in its folder: {error}"
                    );
                    return Err(io::Error::new(error.kind(), why));
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn copy_attributes(&self, old: &Metadata) -> io::Result<()> {
        let new = self.file.metadata()?;
        if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
            let (owner, group) = (Uid::from_raw(old.uid()), Gid::from_raw(old.gid()));
            // Only root may change the owner, but a user may set any group that they belong to.
            if fchown(&self.file, Some(owner), Some(group)).is_err() {
                let _ = fchown(&self.file, None, Some(group));
            }
        }
        // The file here may have changed since, but `rename_into_place` checks that once more.
        let keeps_acl =
            self.parent.open()?.is_some_and(|(file, _)| attributes::copy(&file, &self.file));
        let mut mode = old.mode() & 0o1777;
        if !keeps_acl || self.file.metadata()?.gid() != old.gid() {
            // The rights of the old group are not meant for another one, and with an access control
            // list, these bits are not the group's own.
            mode &= 0o1707 | (mode & 0o007) << 3;
        }
        self.file.set_permissions(Permissions::from_mode(mode))
    }

    /// Takes the place of the old file, after one more check that it has not changed meanwhile.
    fn rename_into_place(self, old: Option<&Metadata>) -> io::Result<File> {
        if old.is_some_and(|old| !self.parent.is_still(old)) {
            return Err(io::Error::other("another program has just changed it"));
        }
        let folder = self.parent.folder();
        let renamed = match old {
            Some(_) => rustix::fs::renameat(folder, &self.name, folder, self.parent.name()),
            None => self.rename_if_missing(),
        };
        renamed.map_err(|error| match error {
            Errno::EXIST => io::Error::other("another program has just created it"),
            error => error.into(),
        })?;
        self.file.try_clone()
    }

    fn rename_if_missing(&self) -> Result<(), Errno> {
        let folder = self.parent.folder();
        #[cfg(any(target_os = "linux", target_vendor = "apple"))]
        match rustix::fs::renameat_with(
            folder,
            &self.name,
            folder,
            self.parent.name(),
            rustix::fs::RenameFlags::NOREPLACE,
        ) {
            // Unknown to the kernel or the file system.
            Err(Errno::NOSYS | Errno::INVAL | Errno::NOTSUP) => {}
            renamed => return renamed,
        }
        match statat(folder, self.parent.name(), AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => {
                rustix::fs::renameat(folder, &self.name, folder, self.parent.name())
            }
            Ok(_) => Err(Errno::EXIST),
            Err(error) => Err(error),
        }
    }
}

impl Drop for TempFile<'_> {
    fn drop(&mut self) {
        // After the rename there is no file of this name.
        let _ = unlinkat(self.parent.folder(), &self.name, AtFlags::empty());
    }
}

/// Creates a file. Fails if the name exists, even as a link.
fn create(parent: &OpenParent, name: &str, mode: Mode) -> Result<File, Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(parent.folder(), name, flags, mode)?.into())
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
        let parent = OpenParent::open_existing(&root.join("file")).unwrap();
        fs::write(root.join("there"), "text").unwrap();
        for target in ["there", "missing"] {
            symlink(target, root.join("link")).unwrap();
            assert_eq!(
                create(&parent, "link", Mode::from_raw_mode(0o600)).unwrap_err(),
                Errno::EXIST
            );
            fs::remove_file(root.join("link")).unwrap();
        }
        assert!(!root.join("missing").exists());
        assert_eq!(fs::read_to_string(root.join("there")).unwrap(), "text");
    }

    #[test]
    fn t_d10_a_change_during_the_write_of_the_temporary_file_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap().join("file");
        let parent = OpenParent::open_existing(&path).unwrap();
        let temp = TempFile::create_beside(&parent, None).unwrap();
        fs::write(&path, "somebody's").unwrap();
        assert!(temp.rename_into_place(None).unwrap_err().to_string().contains("just created it"));
        let (_, old) = parent.open().unwrap().unwrap();
        let temp = TempFile::create_beside(&parent, Some(&old)).unwrap();
        fs::write(&path, "somebody else's").unwrap();
        assert!(
            temp.rename_into_place(Some(&old)).unwrap_err().to_string().contains("just changed it")
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), "somebody else's");
        // A modification time that is set back does not hide the change.
        let (file, old) = parent.open().unwrap().unwrap();
        let temp = TempFile::create_beside(&parent, Some(&old)).unwrap();
        fs::write(&path, "SOMEBODY ELSE'S").unwrap();
        fs::File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_modified(old.modified().unwrap())
            .unwrap();
        let now = file.metadata().unwrap();
        assert_eq!((now.modified().unwrap(), now.len()), (old.modified().unwrap(), old.len()));
        assert!(
            temp.rename_into_place(Some(&old)).unwrap_err().to_string().contains("just changed it")
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), "SOMEBODY ELSE'S");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "temporary files are removed");
    }
}
