//! Looking for a text in a page: where it is, with the words around it.

use std::fmt::Write;

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

/// Where the text is in the page as it is now, in words.
pub(super) async fn find(tab: &Tab, text: &str) -> Result<String, WebError> {
    let page: String = look(&tab.page, shown_text(MOST)).await?;
    Ok(report(&page, text))
}

fn report(page: &str, text: &str) -> String {
    let mut places = places(page, text);
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
fn places<'a>(page: &'a str, text: &'a str) -> impl Iterator<Item = (usize, usize)> + 'a {
    let mut from = 0;
    std::iter::from_fn(move || {
        let (start, end) = page[from..].char_indices().find_map(|(at, _)| {
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
        assert_eq!(places(page, "über den wolken").count(), 2);
        assert_eq!(places(page, "STRASSE").count(), 0, "as it is written");
        assert_eq!(places("aaaa", "aa").count(), 2, "none twice");
        assert!(report(page, "wolken").contains("is there 2 times"));
        assert!(report(page, "x").contains("not on the page"));
        assert!(report(&"é ".repeat(1_000), "é").contains("is there 1000 times"));
    }
}
