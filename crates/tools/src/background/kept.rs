//! The kept part of a job's output: its newest bytes.

/// At least this many bytes of a long output are kept, and at most twice as many.
const MIN_KEPT_BYTES: usize = 256 * 1024;

/// The newest part of a job's output, addressed by offsets in the whole output.
#[derive(Debug, Default)]
pub(super) struct KeptOutput {
    text: String,
    /// Bytes before `text` that are no longer kept.
    gone: u64,
}

impl KeptOutput {
    pub(super) fn push(&mut self, text: &str) {
        self.text.push_str(text);
        // Not with every push, because moving the kept text takes time in proportion to its length.
        if self.text.len() > 2 * MIN_KEPT_BYTES {
            let gone = self.text.ceil_char_boundary(self.text.len() - MIN_KEPT_BYTES);
            self.text.drain(..gone);
            self.gone += gone as u64;
        }
    }

    /// Bytes of the whole output.
    pub(super) fn written(&self) -> u64 {
        self.gone + self.text.len() as u64
    }

    /// Reads up to `max_bytes` from offset `from`, or the newest ones. Also returns their offset.
    pub(super) fn read(&self, from: Option<u64>, max_bytes: usize) -> (u64, String) {
        let newest = self.text.len().saturating_sub(max_bytes);
        let begin = from.map_or(newest, |from| {
            usize::try_from(from.saturating_sub(self.gone)).unwrap_or(usize::MAX)
        });
        let begin = self.text.ceil_char_boundary(begin.min(self.text.len()));
        let end =
            self.text.floor_char_boundary(begin.saturating_add(max_bytes).min(self.text.len()));
        (self.gone + begin as u64, self.text[begin..end].to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_bytes_are_kept_and_offsets_stay_valid() {
        let mut output = KeptOutput::default();
        let mut whole = String::new();
        for number in 0..200_000 {
            let line = format!("{number} é\n");
            output.push(&line);
            whole.push_str(&line);
        }
        assert_eq!(output.written(), whole.len() as u64);
        assert!(output.text.len() <= 2 * MIN_KEPT_BYTES && output.text.len() >= MIN_KEPT_BYTES - 4);
        let (mut from, mut read) = (output.gone, String::new());
        assert_eq!(
            output.read(Some(0), 10).0,
            output.gone,
            "reading continues after the dropped output"
        );
        loop {
            let (begin, text) = output.read(Some(from), 1_000);
            assert_eq!(begin, from);
            if text.is_empty() {
                break;
            }
            from += text.len() as u64;
            read.push_str(&text);
        }
        assert!(whole.ends_with(&read) && read.len() == output.text.len());
        assert!(whole.ends_with(&output.read(None, 50).1));
        assert_eq!(output.read(Some(u64::MAX), 10), (output.written(), String::new()));
    }
}
