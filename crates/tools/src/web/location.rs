//! Where a page is, as it is told: a page can give itself an address of any length.

use std::borrow::Cow;

/// Characters of an address that are told.
const LONGEST: usize = 2_000;

/// The address, or its beginning and that it was cut.
pub(super) fn brief(url: &str) -> Cow<'_, str> {
    match url.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}… [cut]", &url[..end]).into(),
        None => url.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m_e7_web_an_address_of_any_length_is_told_in_brief() {
        let fits = format!("http://é{}", "x".repeat(LONGEST - 8));
        assert_eq!(brief(&fits), fits);
        let cut = brief(&format!("{fits}yz")).into_owned();
        assert_eq!(cut, format!("{fits}… [cut]"));
    }
}
