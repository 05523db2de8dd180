//! Looking for a text in a page: where it is, with the words around it.

use std::fmt::Write;

use tokio::sync::oneshot;

use super::error::WebError;
use super::page::look;
use super::read::shown_text;
use super::tab::Tab;

/// Matches that are shown.
const SHOWN: usize = 20;

/// Characters that are shown on each side of a match.
const AROUND: usize = 160;

/// Characters of a page that are looked through.
const MOST: usize = 8 * 1024 * 1024;

/// Where the text is in the page as it is now, in words. It is looked for on a thread of its own: that takes a while, and
/// the call may be over before.
pub(super) async fn find(tab: &Tab, text: &str) -> Result<String, WebError> {
    let page: String = look(tab, shown_text(MOST)).await?;
    let text = text.to_owned();
    let (tell, told) = oneshot::channel();
    let search = move || {
        let report = report(&page, &text, || !tell.is_closed());
        tell.send(report)
    };
    let thread = std::thread::Builder::new().name("page search".to_owned()).spawn(search);
    thread.map_err(|error| WebError::failed(format!("no thread to look for it: {error}")))?;
    told.await.map_err(|_| WebError::failed("the page could not be looked through"))
}

/// What is found as long as `goes_on`: then nobody wants to know.
fn report(page: &str, text: &str, goes_on: impl Fn() -> bool) -> String {
    let mut places = places(page, text, goes_on);
    let matches: Vec<_> = places.by_ref().take(SHOWN).collect();
    let all = matches.len() + places.count();
    let mut said = match all {
        0 => format!("{text:?} is not on the page, which shows {} characters", page.chars().count()),
        1 => format!("{text:?} is there once:"),
        many => format!("{text:?} is there {many} times:"),
    };
    for (number, &(start, end)) in matches.iter().enumerate() {
        let before = page[..start].char_indices().rev().take(AROUND).last().map_or(start, |(at, _)| at);
        let after = page[end..].char_indices().nth(AROUND).map_or(page.len(), |(at, _)| end + at);
        let [before, found, after] = [&page[before..start], &page[start..end], &page[end..after]].map(one_line);
        // Writing to a string does not fail.
        let _ = write!(said, "\n{}. …{before}**{found}**{after}…", number + 1);
    }
    if all > SHOWN {
        let _ = write!(said, "\nThese are the first {SHOWN}.");
    }
    said
}

/// Where a text is in a page, in any case of letters, from where to where.
fn places<'a>(
    page: &'a str,
    text: &'a str,
    goes_on: impl Fn() -> bool + 'a,
) -> impl Iterator<Item = (usize, usize)> + 'a {
    let mut from = 0;
    std::iter::from_fn(move || {
        let (start, end) = page[from..].char_indices().take_while(|_| goes_on()).find_map(|(at, _)| {
            let start = from + at;
            Some((start, start + begins(&page[start..], text)?))
        })?;
        from = end;
        Some((start, end))
    })
}

/// Whether a page begins with this text, and how many bytes of it that is. A space stands for any white space.
fn begins(page: &str, text: &str) -> Option<usize> {
    let mut rest = page;
    for wanted in text.split_whitespace().enumerate().flat_map(|(n, word)| {
        let space = (n > 0).then_some(' ');
        space.into_iter().chain(word.chars())
    }) {
        let there = rest.chars().next()?;
        if wanted == ' ' {
            let behind = rest.trim_start();
            if behind.len() == rest.len() {
                return None;
            }
            rest = behind;
        } else if there == wanted || there.to_lowercase().eq(wanted.to_lowercase()) {
            rest = &rest[there.len_utf8()..];
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
    fn it_is_found_in_any_case_and_over_lines() {
        let page = "Straße\nÜber den\n  Wolken. über DEN wolken!";
        let (count, report) =
            (|page, text| places(page, text, || true).count(), |page, text| report(page, text, || true));
        assert_eq!(count(page, "über den wolken"), 2);
        assert_eq!(count(page, "STRASSE"), 0, "as it is written");
        assert_eq!(count("aaaa", "aa"), 2, "none twice");
        assert!(report(page, "wolken").contains("is there 2 times"));
        assert!(report(page, "x").contains("not on the page"));
        assert!(report(&"é ".repeat(1_000), "é").contains("is there 1000 times"));
    }

    #[test]
    fn what_nobody_waits_for_is_not_looked_for() {
        let looked_at = std::cell::Cell::new(0);
        let goes_on = || {
            looked_at.set(looked_at.get() + 1);
            looked_at.get() < 10
        };
        assert!(report(&"a".repeat(1_000), "b", goes_on).contains("not on the page"));
        assert!(looked_at.get() < 20, "{} places", looked_at.get());
    }
}
