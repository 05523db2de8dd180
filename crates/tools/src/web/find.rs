//! Text search in a page, which reports each match with the text around it.

use std::fmt::Write;

use tokio::sync::oneshot;

use super::error::WebError;
use super::page::evaluate;
use super::read::shown_text;
use super::tab::Tab;

/// How many matches are shown.
const MAX_MATCHES: usize = 20;

/// How many characters are shown on each side of a match.
const CONTEXT_CHARS: usize = 160;

/// How many UTF-16 code units of a page are searched. One more is read, which shows whether the page
/// is longer.
pub(super) const MAX_SEARCHED_UNITS: usize = 8 * 1024 * 1024;

/// Searches the page's current text and describes the matches. The search runs on its own thread
/// and stops when the call ends.
pub(super) async fn find(tab: &Tab, text: &str) -> Result<String, WebError> {
    let page: String = evaluate(tab, shown_text(MAX_SEARCHED_UNITS + 1)).await?;
    let text = text.to_owned();
    let (sender, receiver) = oneshot::channel();
    let search = move || {
        let report = report(&page, &text, || !sender.is_closed());
        sender.send(report)
    };
    let thread = std::thread::Builder::new().name("page search".to_owned()).spawn(search);
    thread.map_err(|error| {
        WebError::failed(format!("can't start a thread for the search: {error}"))
    })?;
    receiver.await.map_err(|_| WebError::failed("the search of the page failed"))
}

/// Describes the matches. Once `is_needed` returns false, the search stops, since the report is no
/// longer needed.
fn report(page: &str, text: &str, is_needed: impl Fn() -> bool) -> String {
    let mut matches = matches(page, text, is_needed);
    let shown: Vec<_> = matches.by_ref().take(MAX_MATCHES).collect();
    let total = shown.len() + matches.count();
    let chars = page.chars().count();
    let is_cut = page.encode_utf16().count() > MAX_SEARCHED_UNITS;
    let part = if is_cut {
        format!(" in the first {chars} characters of the page")
    } else {
        String::new()
    };
    let mut output = match total {
        0 if is_cut => format!("{text:?} was not found{part}"),
        0 => format!("{text:?} was not found on the page, which has {chars} characters"),
        1 => format!("{text:?} was found once{part}:"),
        many => format!("{text:?} was found {many} times{part}:"),
    };
    for (number, &(start, end)) in shown.iter().enumerate() {
        let before = page[..start]
            .char_indices()
            .rev()
            .take(CONTEXT_CHARS)
            .last()
            .map_or(start, |(at, _)| at);
        let after =
            page[end..].char_indices().nth(CONTEXT_CHARS).map_or(page.len(), |(at, _)| end + at);
        let [before, found, after] =
            [&page[before..start], &page[start..end], &page[end..after]].map(one_line);
        // Writing to a string does not fail.
        let _ = write!(output, "\n{}. …{before}**{found}**{after}…", number + 1);
    }
    if total > MAX_MATCHES {
        let _ = write!(output, "\nOnly the first {MAX_MATCHES} are shown.");
    }
    output
}

/// The byte ranges of all matches, ignoring case and without overlaps.
fn matches<'a>(
    page: &'a str,
    text: &'a str,
    is_needed: impl Fn() -> bool + 'a,
) -> impl Iterator<Item = (usize, usize)> + 'a {
    let mut from = 0;
    std::iter::from_fn(move || {
        let (start, end) =
            page[from..].char_indices().take_while(|_| is_needed()).find_map(|(at, _)| {
                let start = from + at;
                Some((start, start + match_length(&page[start..], text)?))
            })?;
        from = end;
        Some((start, end))
    })
    .fuse()
}

/// The length in bytes of `text` at the start of `page`, ignoring case, or `None` if it is not
/// there. White space in `text` matches any white space.
fn match_length(page: &str, text: &str) -> Option<usize> {
    let mut rest = page;
    for wanted in text.split_whitespace().enumerate().flat_map(|(n, word)| {
        let space = (n > 0).then_some(' ');
        space.into_iter().chain(word.chars())
    }) {
        let next = rest.chars().next()?;
        if wanted == ' ' {
            let after_space = rest.trim_start();
            if after_space.len() == rest.len() {
                return None;
            }
            rest = after_space;
        } else if next == wanted || next.to_lowercase().eq(wanted.to_lowercase()) {
            rest = &rest[next.len_utf8()..];
        } else {
            return None;
        }
    }
    Some(page.len() - rest.len()).filter(|bytes| *bytes > 0)
}

fn one_line(text: &str) -> String {
    text.replace(char::is_whitespace, " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_ignore_case_and_span_lines() {
        let page = "Straße\nÜber den\n  Wolken. über DEN wolken!";
        let (count, report) = (
            |page, text| matches(page, text, || true).count(),
            |page, text| report(page, text, || true),
        );
        assert_eq!(count(page, "über den wolken"), 2);
        assert_eq!(count(page, "STRASSE"), 0, "no match for another spelling");
        assert_eq!(count("aaaa", "aa"), 2, "matches do not overlap");
        assert!(report(page, "wolken").contains("was found 2 times"));
        assert!(report(page, "x").contains("was not found on the page"));
        assert!(report(&"é ".repeat(1_000), "é").contains("was found 1000 times"));
    }

    #[test]
    fn only_the_beginning_of_a_huge_page_is_said_to_be_searched() {
        let mut page = format!("b{}", "a".repeat(MAX_SEARCHED_UNITS - 1));
        assert!(report(&page, "c", || false).contains("was not found on the page, which has"));
        page.push('a');
        let part = format!("in the first {} characters of the page", MAX_SEARCHED_UNITS + 1);
        assert_eq!(report(&page, "c", || false), format!("\"c\" was not found {part}"));
        let looked_at = std::cell::Cell::new(0);
        let is_needed = || looked_at.replace(looked_at.get() + 1) < 10;
        assert!(report(&page, "b", is_needed).contains(&format!("was found once {part}:")));
    }

    #[test]
    fn each_place_is_compared_once() {
        let looked_at = std::cell::Cell::new(0);
        let is_needed = || {
            looked_at.set(looked_at.get() + 1);
            true
        };
        assert!(report(&"a".repeat(1_000), "b", is_needed).contains("was not found on the page"));
        assert_eq!(looked_at.get(), 1_000);
    }

    #[test]
    fn an_abandoned_search_stops() {
        let looked_at = std::cell::Cell::new(0);
        let is_needed = || {
            looked_at.set(looked_at.get() + 1);
            looked_at.get() < 10
        };
        assert!(report(&"a".repeat(1_000), "b", is_needed).contains("was not found on the page"));
        assert!(looked_at.get() < 20, "{} places", looked_at.get());
    }
}
