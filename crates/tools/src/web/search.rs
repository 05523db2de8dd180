//! Web search: the address of a query at the user's search engine, and the results on its page.

use std::fmt::Write;

use holdpoint_common::{WebSearch, WebSearchHtml};
use serde::Deserialize;
use url::form_urlencoded::byte_serialize;

use super::error::WebError;
use super::location;
use super::page::evaluate;
use super::tab::Tab;

/// How many results are returned.
const MAX_RESULTS: usize = 20;

/// How many characters of a result's title or text are returned.
const MAX_FIELD_CHARS: usize = 500;

#[derive(Debug, Deserialize)]
struct SearchResult {
    #[serde(default)]
    title: String,
    #[serde(default)]
    url: String,
    /// SearXNG names this field `content`.
    #[serde(default, alias = "content")]
    text: Option<String>,
}

/// The fields of SearXNG's answer that are used.
#[derive(Debug, Deserialize)]
struct SearchResponse {
    results: Vec<SearchResult>,
}

/// The address of the engine's results for this query.
///
/// # Errors
/// No engine is configured.
pub(super) fn address(search: &WebSearch, query: &str) -> Result<String, WebError> {
    let Some(url) = &search.url else {
        return Err(WebError::failed(
            "no search engine is configured: the user can set web.search.url in the configuration. Without it, open \
             pages by their URL",
        ));
    };
    let query: String = byte_serialize(query.as_bytes()).collect();
    Ok(url.replace("{query}", &query))
}

/// Reads the results from the engine's page and describes them for the model.
pub(super) async fn results(tab: &Tab, search: &WebSearch) -> Result<String, WebError> {
    let found = match &search.html {
        Some(mapping) => evaluate(tab, results_expression(mapping)).await?,
        None => {
            let text: String = evaluate(tab, "document.body.innerText").await?;
            let answer: Result<SearchResponse, _> = serde_json::from_str(&text);
            answer
                .map_err(|error| {
                    WebError::failed(format!(
                        "the answer of the search engine is not in the format of SearXNG: {error}"
                    ))
                })?
                .results
        }
    };
    Ok(report(&found))
}

/// The expression that extracts the results from a page.
fn results_expression(WebSearchHtml { result, link, text }: &WebSearchHtml) -> String {
    let [result, link, text] =
        [Some(result), Some(link), text.as_ref()].map(|selector| serde_json::json!(selector));
    format!(
        "[...document.querySelectorAll({result})].slice(0, {MAX_RESULTS}).map(result => {{
            const link = result.matches({link}) ? result : result.querySelector({link});
            const about = {text} && result.querySelector({text});
            return link && {{ title: link.innerText, url: link.href, text: about && about.innerText }};
        }}).filter(found => found)"
    )
}

fn report(found: &[SearchResult]) -> String {
    if found.is_empty() {
        return "no results".to_owned();
    }
    let mut output = String::new();
    for (number, SearchResult { title, url, text }) in found.iter().take(MAX_RESULTS).enumerate() {
        let [title, text] = [title.as_str(), text.as_deref().unwrap_or_default()].map(one_line);
        // Writing to a string does not fail.
        let _ = writeln!(output, "{}. {title}\n   {}", number + 1, location::brief(url));
        if !text.is_empty() {
            let _ = writeln!(output, "   {text}");
        }
    }
    output
}

fn one_line(text: &str) -> String {
    let words: Vec<_> = text.split_whitespace().collect();
    words.join(" ").chars().take(MAX_FIELD_CHARS).collect()
}
