//! Searching the web: the user's search engine, opened like any page, and its results.

use std::fmt::Write;

use holdpoint_common::{WebSearch, WebSearchHtml};
use serde::Deserialize;
use url::form_urlencoded::byte_serialize;

use super::error::WebError;
use super::location;
use super::page::look;
use super::tab::Tab;

/// Results that are returned.
const MOST: usize = 20;

/// Characters of what is said about one.
const ABOUT: usize = 500;

/// One result.
#[derive(Debug, Deserialize)]
struct Found {
    #[serde(default)]
    title: String,
    #[serde(default)]
    url: String,
    /// SearXNG calls it so.
    #[serde(default, alias = "content")]
    text: Option<String>,
}

/// What SearXNG answers, as far as it is used.
#[derive(Debug, Deserialize)]
struct Answer {
    results: Vec<Found>,
}

/// Where the engine answers this query.
///
/// # Errors
/// No engine is configured.
pub(super) fn address(search: &WebSearch, query: &str) -> Result<String, WebError> {
    let Some(url) = &search.url else {
        return Err(WebError::failed(
            "no search engine is configured: web.search.url in the configuration names one. Without it, open pages by their \
             address",
        ));
    };
    let query: String = byte_serialize(query.as_bytes()).collect();
    Ok(url.replace("{query}", &query))
}

/// The results on the engine's page as it is now, in words.
pub(super) async fn results(tab: &Tab, search: &WebSearch) -> Result<String, WebError> {
    let found = match &search.html {
        Some(mapping) => look(tab, picked(mapping)).await?,
        None => {
            let text: String = look(tab, "document.body.innerText").await?;
            let answer: Result<Answer, _> = serde_json::from_str(&text);
            answer
                .map_err(|error| WebError::failed(format!("the search engine does not answer as SearXNG: {error}")))?
                .results
        }
    };
    Ok(report(&found))
}

/// The expression that picks results out of a page.
fn picked(WebSearchHtml { result, link, text }: &WebSearchHtml) -> String {
    let [result, link, text] = [Some(result), Some(link), text.as_ref()].map(|selector| serde_json::json!(selector));
    format!(
        "[...document.querySelectorAll({result})].slice(0, {MOST}).map(result => {{
            const link = result.matches({link}) ? result : result.querySelector({link});
            const about = {text} && result.querySelector({text});
            return link && {{ title: link.innerText, url: link.href, text: about && about.innerText }};
        }}).filter(found => found)"
    )
}

fn report(found: &[Found]) -> String {
    if found.is_empty() {
        return "nothing was found".to_owned();
    }
    let mut said = String::new();
    for (number, Found { title, url, text }) in found.iter().take(MOST).enumerate() {
        let [title, text] = [title.as_str(), text.as_deref().unwrap_or_default()].map(one_line);
        // Writing to a string does not fail.
        let _ = writeln!(said, "{}. {title}\n   {}", number + 1, location::brief(url));
        if !text.is_empty() {
            let _ = writeln!(said, "   {text}");
        }
    }
    said
}

fn one_line(text: &str) -> String {
    let words: Vec<_> = text.split_whitespace().collect();
    words.join(" ").chars().take(ABOUT).collect()
}
