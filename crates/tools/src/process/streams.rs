//! The standard streams of a program, and the pipes that connect them.

use std::io::{self, PipeReader, PipeWriter};

/// How the standard streams of a program are connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Streams {
    /// The input is empty. The two outputs share one pipe, which keeps their order.
    Joined,
    /// Each stream has its own pipe.
    Separate,
}

/// The ends of the pipes that the owner keeps.
pub(super) struct OwnerEnds {
    /// The standard output; both outputs if they are joined.
    pub(super) output: PipeReader,
    /// The standard input and the error output, if the streams are separate.
    pub(super) separate: Option<(PipeWriter, PipeReader)>,
}

/// The ends of the pipes that the program gets.
pub(super) struct ProgramEnds {
    /// `None` for an empty input.
    pub(super) stdin: Option<PipeReader>,
    pub(super) stdout: PipeWriter,
    pub(super) stderr: PipeWriter,
}

impl Streams {
    /// Creates the pipes.
    pub(super) fn open(self) -> io::Result<(OwnerEnds, ProgramEnds)> {
        let (output, stdout) = io::pipe()?;
        match self {
            Self::Joined => {
                let stderr = stdout.try_clone()?;
                let owner = OwnerEnds { output, separate: None };
                Ok((owner, ProgramEnds { stdin: None, stdout, stderr }))
            }
            Self::Separate => {
                let (stdin, input) = io::pipe()?;
                let (errors, stderr) = io::pipe()?;
                let owner = OwnerEnds { output, separate: Some((input, errors)) };
                Ok((owner, ProgramEnds { stdin: Some(stdin), stdout, stderr }))
            }
        }
    }
}
