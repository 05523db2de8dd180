//! The restrictions of a program, as its supervisor receives them.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// The restrictions of a program.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum Confinement {
    /// None.
    #[default]
    None,
    /// The program is bubblewrap, which confines its own program. Typing into a terminal and
    /// changing keys of the kernel are refused.
    Bwrap {
        /// Whether the supervisor's program runs in front of the program, to hand over a listening
        /// socket to a proxy outside.
        listens: bool,
    },
    /// Landlock and seccomp.
    Landlock {
        /// Readable paths, with everything below them.
        readable: Vec<PathBuf>,
        /// Writable paths, with everything below them.
        writable: Vec<PathBuf>,
        /// Whether the network can be used.
        network: bool,
    },
}

impl Confinement {
    /// Encodes the restrictions as fields, of which none contains a zero byte.
    pub(crate) fn encode(&self) -> Vec<OsString> {
        let Self::Landlock { readable, writable, network } = self else {
            let name = match self {
                Self::Bwrap { listens: true } => "bwrap+listener",
                Self::Bwrap { listens: false } => "bwrap",
                _ => "none",
            };
            return vec![name.into()];
        };
        let name = if *network { "landlock+network" } else { "landlock" };
        let counts = [readable, writable].map(|paths| paths.len().to_string().into());
        let paths = readable.iter().chain(writable).map(|path| path.as_os_str().to_owned());
        [name.into()].into_iter().chain(counts).chain(paths).collect()
    }

    /// Decodes the restrictions from the first of `fields`; `None` if they are invalid.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "supervisors are for Linux"))]
    pub(crate) fn decode<'a>(fields: &mut impl Iterator<Item = &'a [u8]>) -> Option<Self> {
        let network = match fields.next()? {
            b"none" => return Some(Self::None),
            b"bwrap" => return Some(Self::Bwrap { listens: false }),
            b"bwrap+listener" => return Some(Self::Bwrap { listens: true }),
            b"landlock" => false,
            b"landlock+network" => true,
            _ => return None,
        };
        let mut count = || str::from_utf8(fields.next()?).ok()?.parse::<usize>().ok();
        let (readable, writable) = (count()?, count()?);
        let mut paths = |count: usize| {
            let paths: Vec<_> = fields
                .take(count)
                .map(|path| PathBuf::from(OsString::from_vec(path.to_vec())))
                .collect();
            (paths.len() == count).then_some(paths)
        };
        Some(Self::Landlock { readable: paths(readable)?, writable: paths(writable)?, network })
    }
}
