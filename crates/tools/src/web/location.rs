//! Page addresses, shortened for display: a script can give its page an address of any length.

use std::borrow::Cow;

/// How many characters of an address are shown.
const MAX_SHOWN_CHARS: usize = 2_000;

/// The address, or its beginning with a mark that it was cut.
pub(super) fn brief(url: &str) -> Cow<'_, str> {
    match url.char_indices().nth(MAX_SHOWN_CHARS) {
        Some((end, _)) => format!("{}… [cut]", &url[..end]).into(),
        None => url.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m_e7_web_long_addresses_are_shortened() {
        let fits = format!("http://é{}", "x".repeat(MAX_SHOWN_CHARS - 8));
        assert_eq!(brief(&fits), fits);
        let cut = brief(&format!("{fits}yz")).into_owned();
        assert_eq!(cut, format!("{fits}… [cut]"));
    }
}
