//! The text of a page: its main part as Markdown, its title and its links.

use std::fmt::Write;

use dom_query::Document;
use dom_smoothie::{Config, Readability, TextMode};
use serde::Deserialize;
use tokio::sync::oneshot;

use super::error::WebError;
use super::location;
use super::page::look;
use super::tab::Tab;

/// How deep elements may lie in one another where a page is turned into Markdown: as deep as a browser's own parser lets
/// them. Only scripts make deeper ones, and what reads HTML needs stack, and time, for each level.
const DEEPEST: usize = 512;

/// How many levels a parser adds to what is written: `html` and `body`.
const IMPLIED: usize = 2;

/// Bytes of the stack for that.
const STACK: usize = 32 * 1024 * 1024;

/// How many times the text that is returned is looked at, to tell the main part of it.
const BEGINNING: usize = 2;

/// How many characters of text are looked at for that at least.
const LEAST: usize = 64 * 1024;

/// Sees what there is of the document, in a copy that loads and runs nothing: of its beginning, as much as has so many
/// characters of text.
const LOOK: &str = include_str!("read/look.js");

/// A page as it is read.
#[derive(Debug, Deserialize)]
pub(super) struct Read {
    /// Where it is now.
    pub(super) url: String,
    pub(super) title: String,
    /// Its HTTP status; 0 if there is none.
    pub(super) status: u16,
    /// Without what is no text.
    html: String,
    /// As it is shown; only where it is no HTML.
    text: Option<String>,
    /// More of it was there.
    cut: bool,
    /// The first that lead elsewhere.
    links: Vec<Link>,
    #[serde(rename = "allLinks")]
    all_links: usize,
}

#[derive(Debug, Deserialize)]
struct Link {
    text: String,
    url: String,
}

impl Read {
    /// Looks at the page of a tab as it is now, for at most so many bytes of its text.
    pub(super) async fn of(tab: &Tab, most: usize) -> Result<Self, WebError> {
        look(tab, format!("({LOOK})({})", LEAST.max(BEGINNING * most))).await
    }

    /// Its text, at most so many bytes of it, and its links.
    pub(super) async fn text(mut self, tab: &Tab, most: usize) -> Result<String, WebError> {
        let text = match self.text.take() {
            Some(text) => text,
            None => match markdown(std::mem::take(&mut self.html), self.url.clone()).await {
                Some(text) => text,
                None => look(tab, shown_text(4 * most)).await?,
            },
        };
        let text = text.trim();
        let (kept, all) = (text.floor_char_boundary(most), text.len());
        let mut said = text[..kept].to_owned();
        if kept < all || self.cut {
            let whole = if self.cut { "a longer page".to_owned() } else { format!("{all} bytes") };
            // Writing to a string does not fail.
            let _ = write!(
                said,
                "\n\n[cut: these are the first {kept} bytes of {whole}; find_in_page looks through all of it]"
            );
        }
        if !self.links.is_empty() {
            said.push_str("\n\nLinks:\n");
            for Link { text, url } in &self.links {
                let _ = writeln!(said, "- {text}: {}", location::brief(url));
            }
            if self.all_links > self.links.len() {
                let _ = writeln!(said, "The page has {} links in all.", self.all_links);
            }
        }
        Ok(said)
    }
}

/// The expression for a page's text as it is shown, at most so many characters of it.
pub(super) fn shown_text(most: usize) -> String {
    format!("((document.body || document.documentElement || {{}}).innerText || '').slice(0, {most})")
}

/// The main part of a page as Markdown; nothing where it can't be told. On a thread of its own: it takes a while, and
/// the call may be over before.
async fn markdown(html: String, url: String) -> Option<String> {
    if levels_written(&html) > DEEPEST {
        return None;
    }
    let (tell, told) = oneshot::channel();
    let convert = move || tell.send(to_markdown(&html, &url));
    let thread = std::thread::Builder::new().name("page text".to_owned()).stack_size(STACK).spawn(convert);
    thread.ok()?;
    // A panic in there is no text.
    told.await.ok()?
}

fn to_markdown(html: &str, url: &str) -> Option<String> {
    let config = Config { text_mode: TextMode::Markdown, ..Config::default() };
    let page = Document::from(html);
    if levels(&page) > DEEPEST + IMPLIED {
        return None;
    }
    let mut page = Readability::with_document(page, Some(url), Some(config)).ok()?;
    // An index, a form, an application: all of it counts.
    if !page.is_probably_readable() {
        return Some(whole(&page.doc));
    }
    match page.parse() {
        Ok(article) => Some(article.text_content.to_string()),
        // The attempt has taken parts away.
        Err(_) => Some(whole(&Document::from(html))),
    }
}

fn whole(page: &Document) -> String {
    page.md(Some(&["head"])).to_string()
}

/// How deep elements lie in one another, as a browser writes them: each with its end, and `<` for nothing else outside of
/// quotes. Of what is written otherwise, only the tree says it for certain; but that takes time to parse.
fn levels_written(html: &str) -> usize {
    const EMPTY: [&str; 14] =
        ["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr"];
    let (mut now, mut most) = (0_usize, 0_usize);
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        match rest.as_bytes().first() {
            Some(b'/') => now = now.saturating_sub(1),
            Some(first) if first.is_ascii_alphabetic() => {
                let name = rest.find(|letter: char| !letter.is_ascii_alphanumeric()).unwrap_or(rest.len());
                if !EMPTY.contains(&&rest[..name]) {
                    now += 1;
                    most = most.max(now);
                }
                rest = after_tag(&rest[name..]);
            }
            _ => {}
        }
    }
    most
}

/// What comes after the tag whose attributes these are.
fn after_tag(attributes: &str) -> &str {
    let mut rest = attributes;
    while let Some(at) = rest.find(['>', '"', '\'']) {
        let quote = rest.as_bytes()[at];
        rest = &rest[at + 1..];
        if quote == b'>' {
            return rest;
        }
        let Some(end) = rest.find(char::from(quote)) else { return "" };
        rest = &rest[end + 1..];
    }
    ""
}

/// How deep elements lie in one another. Calls itself for none of them.
fn levels(page: &Document) -> usize {
    let mut most = 0;
    let mut waiting = vec![(page.root(), 0)];
    while let Some((node, level)) = waiting.pop() {
        if node.is_element() {
            most = most.max(level);
        }
        waiting.extend(node.children_it(false).map(|child| (child, level + 1)));
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_counted_as_elements_lie() {
        let both = |html: &str| (levels_written(html), levels(&Document::from(html)));
        assert_eq!(both("text"), (0, IMPLIED));
        assert_eq!(both("<p>a<br>b<img src='x'></p><p><b>c</b></p>"), (2, IMPLIED + 2));
        assert_eq!(both(&format!("{}{}", "<div>".repeat(700), "</div>".repeat(700))), (700, IMPLIED + 700));
        assert_eq!(levels_written(&"<b>".repeat(100_000)), 100_000);
    }

    /// As a page may have it written that has made its elements by script.
    #[tokio::test]
    async fn m_e7_web_levels_can_not_be_hidden_from_whoever_walks_them() {
        const HIDDEN: usize = 2_000;
        let page =
            |hides| format!("<p>begin {}deep{}", format!("<div>{hides}").repeat(HIDDEN), "</div>".repeat(HIDDEN));
        for hides in ["<i title='</a></a>'></i>", "<i title=\"</a>'</a>\"></i>"] {
            assert_eq!(levels_written(&page(hides)), HIDDEN + 2, "{hides}");
        }
        for hides in ["<xmp></a></xmp>", "<!--</a>-->"] {
            assert!(levels_written(&page(hides)) < DEEPEST, "{hides}");
            assert_eq!(markdown(page(hides), "http://x/".to_owned()).await, None, "{hides}");
        }
    }

    #[tokio::test]
    async fn m_e7_web_what_lies_deeper_than_any_parser_takes_it_is_not_walked() {
        let page = |deep| format!("<p>begin {}deep{}</p>", "<div>".repeat(deep - 1), "</div>".repeat(deep - 1));
        let text = |deep| markdown(page(deep), "http://x/".to_owned());
        assert!(text(DEEPEST).await.is_some_and(|text| text.contains("deep")));
        assert_eq!(text(DEEPEST + 1).await, None);
    }

    /// What parses, walks and writes HTML calls itself for each level: in a thread that is not made for that, this
    /// ends the whole program.
    #[test]
    fn as_deep_as_it_may_be_it_is_read() {
        let text =
            |page: String| std::thread::Builder::new().stack_size(STACK).spawn(move || to_markdown(&page, "http://x/"));
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
