//! The requests to the tool `web`, and its settings.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A request to the tool `web`; its JSON form is the arguments of the tool call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WebRequest {
    /// Action to carry out.
    #[serde(flatten)]
    pub action: WebAction,
    /// Whether to pause when the page has loaded, until the user continues. The result is read
    /// after the pause. Default: `false`.
    #[serde(default)]
    pub pause: bool,
    /// Whether the browser runs without a window. `pause` implies a window, unless the setting
    /// `web.pause_headless` is on. Default: `true`.
    #[serde(default = "yes")]
    pub headless: bool,
}

/// The actions of the tool `web`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum WebAction {
    /// Asks the search engine.
    Search {
        /// Text to search for.
        query: String,
    },
    /// Opens a page and reads it.
    OpenPage {
        /// Address of the page, `http` or `https`.
        url: String,
    },
    /// Opens a page and finds a text in it.
    FindInPage {
        /// Address of the page, `http` or `https`.
        url: String,
        /// Text to find, regardless of case.
        text: String,
    },
    /// Opens a page and saves a screenshot of it.
    Screenshot {
        /// Address of the page, `http` or `https`.
        url: String,
        /// Whether to capture the whole page instead of the visible part. Default: `false`.
        #[serde(default)]
        full_page: bool,
    },
}

impl WebRequest {
    /// Whether the request needs a browser with a window.
    #[must_use]
    pub fn is_visible(&self, settings: &WebSettings) -> bool {
        !self.headless || self.pause && !settings.pause_headless
    }
}

/// The settings of the tool `web`: its browser, its hosts and the amount of text it returns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct WebSettings {
    /// Path of a Chromium or Chrome. Default: the first of `chromium`, `chromium-browser`,
    /// `google-chrome-stable`, `google-chrome` and `chrome` on the PATH.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chromium: Option<String>,
    /// Whether a page is paused without a window, for machines without a display. The ask then
    /// shows the address of the developer tools, where you can reach the page. Default: `false`.
    pub pause_headless: bool,
    /// Whether the browser's own sandbox is on. Default: on, unless Holdpoint runs as root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<bool>,
    /// Private hosts that need no approval, each with all its subdomains, for example `localhost`
    /// or `intern.example:8080`. Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    /// Hosts that are never reached, each with all its subdomains. This overrides everything that
    /// allows them. Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<String>,
    /// Minutes without use after which a browser is ended, from 1 to 1,440. Default: 10.
    #[schemars(range(min = 1, max = 1440))]
    pub idle_minutes: u32,
    /// Seconds that a page may take to load, from 1 to 600. After that, the part that has loaded is
    /// read. Default: 30.
    #[schemars(range(min = 1, max = 600))]
    pub load_s: u32,
    /// Maximum size of a page's text in a result, from 1 KiB to 1 MiB, in bytes. The result says if
    /// text was cut. Default: 32 KiB.
    #[schemars(range(min = 1024, max = 1048576))]
    pub max_text_bytes: u32,
    /// Settings of the search engine.
    pub search: WebSearch,
}

impl Default for WebSettings {
    fn default() -> Self {
        Self {
            chromium: None,
            pause_headless: false,
            sandbox: None,
            allow: Vec::new(),
            deny: Vec::new(),
            idle_minutes: 10,
            load_s: 30,
            max_text_bytes: 32 * 1024,
            search: WebSearch::default(),
        }
    }
}

/// The search engine of the tool `web`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct WebSearch {
    /// Address of a search, with `{query}` in place of the query, for example
    /// `https://searx.example/search?format=json&q={query}`. Default: none, so that there is no
    /// search.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// CSS selectors of the results, for an engine that answers with HTML. Default: the answer is
    /// JSON in the format of SearXNG.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub html: Option<WebSearchHtml>,
}

/// The CSS selectors that find results in an HTML page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WebSearchHtml {
    /// Selector of each result.
    pub result: String,
    /// Selector of the link in a result. The text of the link is the title.
    pub link: String,
    /// Selector of the description in a result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

impl WebSettings {
    /// Checks that the settings can be used, and returns a description of the first fault.
    pub(crate) fn check(&self) -> Result<(), String> {
        let bounds = [
            ("idle_minutes", self.idle_minutes, 1..=1440),
            ("load_s", self.load_s, 1..=600),
            ("max_text_bytes", self.max_text_bytes, 1024..=1024 * 1024),
        ];
        for (key, value, range) in bounds {
            if !range.contains(&value) {
                return Err(format!(
                    "web.{key} is {value}; it must be from {} to {}",
                    range.start(),
                    range.end()
                ));
            }
        }
        match &self.search.url {
            Some(url) if !url.contains("{query}") => {
                Err("web.search.url must contain `{query}`, which is replaced by the search text"
                    .to_owned())
            }
            Some(url) if !url.starts_with("http://") && !url.starts_with("https://") => {
                Err(format!("web.search.url is `{url}`; it must begin with http:// or https://"))
            }
            _ => Ok(()),
        }
    }
}

fn yes() -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    #[test]
    fn m_a9_a_pause_implies_a_window_unless_lifted() {
        let request = |json: &str| serde_json::from_str::<WebRequest>(json).unwrap();
        let plain = request(r#"{"action": "open_page", "url": "http://x/"}"#);
        assert!(!plain.pause && plain.headless, "the defaults");
        let paused = request(r#"{"action": "open_page", "url": "http://x/", "pause": true}"#);
        let visible = request(r#"{"action": "open_page", "url": "http://x/", "headless": false}"#);
        let default = WebSettings::default();
        let pauses_headless = WebSettings { pause_headless: true, ..WebSettings::default() };
        assert_eq!(
            [&plain, &paused, &visible].map(|request| request.is_visible(&default)),
            [false, true, true]
        );
        assert_eq!(
            [&plain, &paused, &visible].map(|request| request.is_visible(&pauses_headless)),
            [false, false, true]
        );
    }

    #[test]
    fn an_invalid_setting_is_refused() {
        for (text, expected) in [
            ("[web]\nidle_minutes = 0", "idle_minutes"),
            ("[web]\nmax_text_bytes = 5", "max_text_bytes"),
            ("[web.search]\nurl = 'https://x/?q='", "{query}"),
            ("[web.search]\nurl = 'ftp://x/{query}'", "http"),
            ("[web]\nchrome = 'x'", "chromium"),
        ] {
            let error = Config::parse(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        Config::parse("[web.search]\nurl = 'http://localhost:8888/search?format=json&q={query}'")
            .unwrap();
    }
}
