//! File attributes besides the mode: the access control list, `user.` attributes and capabilities.

use std::fs::File;

/// Copies the access control list and the `user.` attributes of `old` to `new`. Returns `false` if
/// the access control list of `new` may differ.
///
/// A `user.` attribute that can't be copied is skipped, so that a full disk does not prevent the
/// write.
#[cfg(target_os = "linux")]
pub(super) fn copy(old: &File, new: &File) -> bool {
    use rustix::fs::{XattrFlags, fgetxattr, flistxattr, fremovexattr, fsetxattr};
    use rustix::io::Errno;

    /// The attribute of the access control list.
    const LIST: &str = "system.posix_acl_access";

    /// The kernel's limit for a value and for all names together, in bytes.
    const MAX_BYTES: usize = 64 * 1024;

    let read = |name: &[u8]| {
        let mut value = vec![0; MAX_BYTES];
        let length = fgetxattr(old, name, &mut value[..])?;
        value.truncate(length);
        Ok(value)
    };
    let copied = match read(LIST.as_bytes()) {
        Ok(list) => fsetxattr(new, LIST, &list, XattrFlags::empty()),
        // Remove the list that the new file got from its folder.
        Err(Errno::NODATA) => match fremovexattr(new, LIST) {
            Err(Errno::NODATA) => Ok(()),
            removed => removed,
        },
        // This file system has no lists.
        Err(Errno::NOTSUP) => Ok(()),
        Err(error) => Err(error),
    };
    let mut names = vec![0; MAX_BYTES];
    let length = flistxattr(old, &mut names[..]).unwrap_or(0);
    for name in names[..length].split(|byte| *byte == 0).filter(|name| name.starts_with(b"user.")) {
        if let Ok(value) = read(name) {
            let _ = fsetxattr(new, name, &value, XattrFlags::empty());
        }
    }
    copied.is_ok()
}

/// Whether the file has capabilities, which give a program rights that its user does not have.
#[cfg(target_os = "linux")]
pub(super) fn has_capabilities(file: &File) -> bool {
    let read = rustix::fs::fgetxattr(file, "security.capability", &mut [0_u8; 64][..]);
    matches!(read, Ok(_) | Err(rustix::io::Errno::RANGE))
}

/// Capabilities exist only on Linux.
#[cfg(not(target_os = "linux"))]
pub(super) fn has_capabilities(_: &File) -> bool {
    false
}

/// Attributes are kept only on Linux.
#[cfg(not(target_os = "linux"))]
pub(super) fn copy(_: &File, _: &File) -> bool {
    true
}
