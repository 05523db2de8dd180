//! What is kept of a job's output: the newest.

/// Bytes that are kept of one job's output.
const KEPT: usize = 256 * 1024;

/// The newest of a job's output, by its place in the whole.
#[derive(Debug, Default)]
pub(super) struct KeptOutput {
    text: String,
    /// Bytes before `text` that are no longer kept.
    gone: u64,
}

impl KeptOutput {
    pub(super) fn push(&mut self, text: &str) {
        self.text.push_str(text);
        // Not with every push: moving what is kept costs as much as it is long.
        if self.text.len() > 2 * KEPT {
            let gone = self.text.ceil_char_boundary(self.text.len() - KEPT);
            self.text.drain(..gone);
            self.gone += gone as u64;
        }
    }

    /// All that was ever written, in bytes.
    pub(super) fn written(&self) -> u64 {
        self.gone + self.text.len() as u64
    }

    /// At most so many bytes from a place on, or the newest; and where they begin.
    pub(super) fn read(&self, from: Option<u64>, most: usize) -> (u64, String) {
        let newest = self.text.len().saturating_sub(most);
        let begin = from.map_or(newest, |from| usize::try_from(from.saturating_sub(self.gone)).unwrap_or(usize::MAX));
        let begin = self.text.ceil_char_boundary(begin.min(self.text.len()));
        let end = self.text.floor_char_boundary(begin.saturating_add(most).min(self.text.len()));
        (self.gone + begin as u64, self.text[begin..end].to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_is_kept_and_places_stay() {
        let mut output = KeptOutput::default();
        let mut whole = String::new();
        for number in 0..200_000 {
            let line = format!("{number} é\n");
            output.push(&line);
            whole.push_str(&line);
        }
        assert_eq!(output.written(), whole.len() as u64);
        assert!(output.text.len() <= 2 * KEPT && output.text.len() >= KEPT - 4);
        let (mut from, mut read) = (output.gone, String::new());
        assert_eq!(output.read(Some(0), 10).0, output.gone, "what is gone is not what was asked for");
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
