//! The content of a page: its main text as Markdown, its title and its links.

use std::fmt::Write;

use dom_query::Document;
use dom_smoothie::{Config, Readability, TextMode};
use serde::Deserialize;
use tokio::sync::oneshot;

use super::error::WebError;
use super::find::MAX_SEARCHED_UNITS;
use super::location;
use super::page::evaluate;
use super::tab::Tab;

/// The deepest nesting of elements that is converted to Markdown, which is the limit of a browser's
/// own parser. Only scripts make deeper documents, and converting costs stack and time for each
/// level.
const MAX_LEVELS: usize = 512;

/// How many levels a parser adds to a fragment: `html` and `body`.
const IMPLIED_LEVELS: usize = 2;

/// The stack size in bytes of the thread that converts HTML.
const STACK_BYTES: usize = 32 * 1024 * 1024;

/// How much text is read from a page to find its main part, as a multiple of the text to return.
const READ_FACTOR: usize = 2;

/// The least number of characters of text that are read to find the main part.
const MIN_READ_CHARS: usize = 64 * 1024;

/// A script that copies the beginning of the document, up to a number of characters of text. The
/// copy loads and runs nothing.
const READ_SCRIPT: &str = include_str!("read/look.js");

/// The content of a page, as [`READ_SCRIPT`] returns it.
#[derive(Debug, Deserialize)]
pub(super) struct PageContent {
    /// The page's current address.
    pub(super) url: String,
    pub(super) title: String,
    /// The HTTP status, or 0 if unknown.
    pub(super) status: u16,
    /// The HTML of the beginning, without navigation, footers and elements that hold no text.
    html: String,
    /// The text as shown, for documents that are not HTML.
    text: Option<String>,
    /// Whether the page has more content.
    cut: bool,
    /// The first links to other pages.
    links: Vec<Link>,
    #[serde(rename = "allLinks")]
    all_links: usize,
}

#[derive(Debug, Deserialize)]
struct Link {
    text: String,
    url: String,
}

impl PageContent {
    /// Reads the page of a tab, enough for `max_bytes` of its text.
    pub(super) async fn from_tab(tab: &Tab, max_bytes: usize) -> Result<Self, WebError> {
        evaluate(tab, format!("({READ_SCRIPT})({})", MIN_READ_CHARS.max(READ_FACTOR * max_bytes)))
            .await
    }

    /// The page's text, up to `max_bytes`, followed by its links.
    pub(super) async fn text(mut self, tab: &Tab, max_bytes: usize) -> Result<String, WebError> {
        let text = match self.text.take() {
            Some(text) => text,
            None => match markdown(std::mem::take(&mut self.html), self.url.clone()).await {
                Some(text) => text,
                None => {
                    // One character more than fits shows whether the page has more.
                    let text: String = evaluate(tab, shown_text(max_bytes + 1)).await?;
                    self.cut = text.encode_utf16().count() > max_bytes;
                    text
                }
            },
        };
        let text = text.trim();
        let end = text.floor_char_boundary(max_bytes);
        let total = text.len();
        let mut output = text[..end].to_owned();
        if end < total || self.cut {
            let whole =
                if self.cut { "a longer page".to_owned() } else { format!("{total} bytes") };
            // Writing to a string does not fail.
            let _ = write!(
                output,
                "\n\n[cut: these are the first {end} bytes of {whole}; find_in_page searches up to \
                 {MAX_SEARCHED_UNITS} characters]"
            );
        }
        if !self.links.is_empty() {
            output.push_str("\n\nLinks:\n");
            for Link { text, url } in &self.links {
                let _ = writeln!(output, "- {text}: {}", location::brief(url));
            }
            if self.all_links > self.links.len() {
                let _ = writeln!(output, "The page has {} links in all.", self.all_links);
            }
        }
        Ok(output)
    }
}

/// The expression for the text that a page shows, up to `max_chars` UTF-16 code units.
pub(super) fn shown_text(max_chars: usize) -> String {
    format!(
        "((document.body || document.documentElement || {{}}).innerText || '').slice(0, {max_chars})"
    )
}

/// The main part of a page as Markdown, or `None` if it can't be found. The conversion runs on its
/// own thread, because the call may end before it does.
async fn markdown(html: String, url: String) -> Option<String> {
    if levels_written(&html) > MAX_LEVELS {
        return None;
    }
    let (sender, receiver) = oneshot::channel();
    let convert = move || sender.send(to_markdown(&html, &url));
    let thread = std::thread::Builder::new()
        .name("page text".to_owned())
        .stack_size(STACK_BYTES)
        .spawn(convert);
    thread.ok()?;
    // After a panic in the thread there is no text.
    receiver.await.ok()?
}

fn to_markdown(html: &str, url: &str) -> Option<String> {
    let config = Config { text_mode: TextMode::Markdown, ..Config::default() };
    let page = Document::from(html);
    if levels(&page) > MAX_LEVELS + IMPLIED_LEVELS {
        return None;
    }
    let mut page = Readability::with_document(page, Some(url), Some(config)).ok()?;
    // An index, a form or an application has no main part, so all of it is returned.
    if !page.is_probably_readable() {
        return Some(whole_markdown(&page.doc));
    }
    match page.parse() {
        Ok(article) => Some(article.text_content.to_string()),
        // The failed attempt has removed parts of the document.
        Err(_) => Some(whole_markdown(&Document::from(html))),
    }
}

fn whole_markdown(page: &Document) -> String {
    page.md(Some(&["head"])).to_string()
}

/// The nesting depth of HTML as a browser serializes it: every element has an end tag, and `<`
/// outside of quotes only starts a tag. For other HTML only the parsed tree gives the depth, at the
/// cost of parsing.
fn levels_written(html: &str) -> usize {
    const VOID_ELEMENTS: [&str; 14] = [
        "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param",
        "source", "track", "wbr",
    ];
    let mut level = 0_usize;
    let mut deepest = 0;
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        match rest.as_bytes().first() {
            Some(b'/') => level = level.saturating_sub(1),
            Some(first) if first.is_ascii_alphabetic() => {
                let ends_name =
                    |letter: char| letter.is_ascii_whitespace() || matches!(letter, '/' | '>');
                let name = rest.find(ends_name).unwrap_or(rest.len());
                if !VOID_ELEMENTS.contains(&&rest[..name]) {
                    level += 1;
                    deepest = deepest.max(level);
                }
                rest = after_tag(&rest[name..]);
            }
            _ => {}
        }
    }
    deepest
}

/// The text after the tag whose attributes begin here.
fn after_tag(attributes: &str) -> &str {
    let mut rest = attributes;
    while let Some(at) = rest.find(['>', '"', '\'']) {
        let delimiter = rest.as_bytes()[at];
        rest = &rest[at + 1..];
        if delimiter == b'>' {
            return rest;
        }
        let Some(end) = rest.find(char::from(delimiter)) else { return "" };
        rest = &rest[end + 1..];
    }
    ""
}

/// The nesting depth of the elements. Uses a loop, because recursion could overflow the stack.
fn levels(page: &Document) -> usize {
    let mut deepest = 0;
    let mut waiting = vec![(page.root(), 0)];
    while let Some((node, level)) = waiting.pop() {
        if node.is_element() {
            deepest = deepest.max(level);
        }
        waiting.extend(node.children_it(false).map(|child| (child, level + 1)));
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nesting_levels_are_counted() {
        let both = |html: &str| (levels_written(html), levels(&Document::from(html)));
        assert_eq!(both("text"), (0, IMPLIED_LEVELS));
        assert_eq!(both("<p>a<br>b<img src='x'></p><p><b>c</b></p>"), (2, IMPLIED_LEVELS + 2));
        assert_eq!(
            both(&format!("{}{}", "<div>".repeat(700), "</div>".repeat(700))),
            (700, IMPLIED_LEVELS + 700)
        );
        assert_eq!(levels_written(&"<b>".repeat(100_000)), 100_000);
        for name in ["input-group", "br.x", "img\"x"] {
            let page = format!("<{name}>").repeat(3) + &format!("</{name}>").repeat(3);
            assert_eq!(both(&page), (3, IMPLIED_LEVELS + 3), "{name}");
        }
    }

    /// HTML with end tags hidden in attributes or raw text, as a script can produce it.
    #[tokio::test]
    async fn m_e7_web_markup_can_not_hide_nesting_levels() {
        const HIDDEN: usize = 2_000;
        let page = |hides| {
            format!(
                "<p>begin {}deep{}",
                format!("<div>{hides}").repeat(HIDDEN),
                "</div>".repeat(HIDDEN)
            )
        };
        for hides in ["<i title='</a></a>'></i>", "<i title=\"</a>'</a>\"></i>"] {
            assert_eq!(levels_written(&page(hides)), HIDDEN + 2, "{hides}");
        }
        for hides in ["<xmp></a></xmp>", "<!--</a>-->"] {
            assert!(levels_written(&page(hides)) < MAX_LEVELS, "{hides}");
            assert_eq!(markdown(page(hides), "http://x/".to_owned()).await, None, "{hides}");
        }
    }

    #[tokio::test]
    async fn m_e7_web_too_deep_documents_are_not_converted() {
        let page = |deep| {
            format!("<p>begin {}deep{}</p>", "<div>".repeat(deep - 1), "</div>".repeat(deep - 1))
        };
        let text = |deep| markdown(page(deep), "http://x/".to_owned());
        assert!(text(MAX_LEVELS).await.is_some_and(|text| text.contains("deep")));
        assert_eq!(text(MAX_LEVELS + 1).await, None);
    }

    /// Parsing, walking and serializing HTML are recursive: on a thread with a small stack, this
    /// would abort the process.
    #[test]
    fn a_document_at_the_depth_limit_is_converted() {
        let text = |page: String| {
            std::thread::Builder::new()
                .stack_size(STACK_BYTES)
                .spawn(move || to_markdown(&page, "http://x/"))
        };
        for element in ["div", "b", "table", "li", "blockquote"] {
            let page = format!(
                "<p>begin {}deep{}</p>",
                format!("<{element}>").repeat(510),
                format!("</{element}>").repeat(510)
            );
            assert!(text(page).unwrap().join().unwrap().unwrap().contains("deep"), "{element}");
        }
    }
}
