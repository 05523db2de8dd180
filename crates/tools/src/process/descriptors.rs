//! Passes open files from a process to its supervisor, in front of the order, and from the program
//! in front of a sandboxed one to the proxy.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

/// The most files that one message passes.
const MAX_PASSED: usize = 2;

/// Sends one byte, the number of the files, together with the files: at most two.
pub(super) fn send(to: impl AsFd, files: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_PASSED))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !files.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(files)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let count = [u8::try_from(files.len()).unwrap_or(u8::MAX)];
    loop {
        match sendmsg(&to, &[IoSlice::new(&count)], &mut ancillary, SendFlags::NOSIGNAL) {
            Ok(_) => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Receives the byte and the files of [`send`]. No program inherits the files.
///
/// # Errors
/// The system's error. Also fails if the sender is gone, or a file is missing, because this process
/// may open no more.
pub(super) fn receive(from: impl AsFd) -> io::Result<Vec<OwnedFd>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_PASSED))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut count = [0];
    let received = loop {
        let buffers = &mut [IoSliceMut::new(&mut count)];
        match recvmsg(&from, buffers, &mut ancillary, RecvFlags::CMSG_CLOEXEC) {
            Err(rustix::io::Errno::INTR) => {}
            received => break received?.bytes,
        }
    };
    let files: Vec<_> = ancillary
        .drain()
        .filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(files) => Some(files),
            _ => None,
        })
        .flatten()
        .collect();
    if received == 0 || files.len() != usize::from(count[0]) {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn files_arrive_in_order_and_before_the_bytes_that_follow() {
        let (mut ours, mut theirs) = UnixStream::pair().unwrap();
        let pipes = [io::pipe().unwrap(), io::pipe().unwrap()];
        send(&ours, &[pipes[0].1.as_fd(), pipes[1].1.as_fd()]).unwrap();
        ours.write_all(b"order").unwrap();
        let received = receive(&theirs).unwrap();
        assert_eq!(received.len(), 2);
        let mut order = [0; 5];
        theirs.read_exact(&mut order).unwrap();
        assert_eq!(&order, b"order");
        for (file, letter) in received.into_iter().zip([b"a", b"b"]) {
            io::PipeWriter::from(file).write_all(letter).unwrap();
        }
        for ((mut reader, writer), letter) in pipes.into_iter().zip(["a", "b"]) {
            drop(writer);
            let mut text = String::new();
            reader.read_to_string(&mut text).unwrap();
            assert_eq!(text, letter);
        }
        send(&ours, &[]).unwrap();
        assert!(receive(&theirs).unwrap().is_empty());
        drop(ours);
        assert!(receive(&theirs).is_err());
    }
}
