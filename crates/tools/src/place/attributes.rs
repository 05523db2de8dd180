//! What a file has beside its mode: an access control list, and attributes of the user's own.

use std::fs::File;

/// Gives `new` the access control list and the `user.` attributes of `old`. `false` if it may have another list now.
///
/// Attributes that can't be kept are not: a full disk is no reason not to write.
#[cfg(target_os = "linux")]
pub(super) fn copy(old: &File, new: &File) -> bool {
    use rustix::fs::{XattrFlags, fgetxattr, flistxattr, fremovexattr, fsetxattr};
    use rustix::io::Errno;

    /// Who may do what, beside the mode.
    const LIST: &str = "system.posix_acl_access";

    /// Bytes of a value, and of all names together: no more are possible.
    const MAX_BYTES: usize = 64 * 1024;

    let value = |name: &[u8]| {
        let mut value = vec![0; MAX_BYTES];
        let length = fgetxattr(old, name, &mut value[..])?;
        value.truncate(length);
        Ok(value)
    };
    let copied = match value(LIST.as_bytes()) {
        Ok(list) => fsetxattr(new, LIST, &list, XattrFlags::empty()),
        // What it got from its folder instead goes.
        Err(Errno::NODATA) => match fremovexattr(new, LIST) {
            Err(Errno::NODATA) => Ok(()),
            removed => removed,
        },
        // There are none in this file system.
        Err(Errno::NOTSUP) => Ok(()),
        Err(error) => Err(error),
    };
    let mut names = vec![0; MAX_BYTES];
    let length = flistxattr(old, &mut names[..]).unwrap_or(0);
    for name in names[..length].split(|byte| *byte == 0).filter(|name| name.starts_with(b"user.")) {
        if let Ok(value) = value(name) {
            let _ = fsetxattr(new, name, &value, XattrFlags::empty());
        }
    }
    copied.is_ok()
}

/// Whether the file has capabilities: a program in it runs with rights that its user does not have.
#[cfg(target_os = "linux")]
pub(super) fn has_capabilities(file: &File) -> bool {
    let there = rustix::fs::fgetxattr(file, "security.capability", &mut [0_u8; 64][..]);
    matches!(there, Ok(_) | Err(rustix::io::Errno::RANGE))
}

/// Elsewhere, files have no capabilities.
#[cfg(not(target_os = "linux"))]
pub(super) fn has_capabilities(_: &File) -> bool {
    false
}

/// Elsewhere, they are not kept.
#[cfg(not(target_os = "linux"))]
pub(super) fn copy(_: &File, _: &File) -> bool {
    true
}
