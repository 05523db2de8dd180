//! The web tool: what it can be asked to do, and the user's settings for it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One thing the web tool can be asked to do, and how: as JSON, what the tool is called with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WebRequest {
    /// What to do.
    #[serde(flatten)]
    pub action: WebAction,
    /// Stops when the page is there, until the user goes on. What is returned is read after that.
    #[serde(default)]
    pub pause: bool,
    /// Without a window; `pause` implies one, unless [`WebSettings::pause_headless`] says otherwise.
    #[serde(default = "yes")]
    pub headless: bool,
}

/// What the web tool can do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum WebAction {
    /// Asks the search engine.
    Search {
        /// What for.
        query: String,
    },
    /// Opens a page and reads it.
    OpenPage {
        /// Its address: `http` or `https`.
        url: String,
    },
    /// Opens a page and looks for a text in it.
    FindInPage {
        /// Its address: `http` or `https`.
        url: String,
        /// What to look for, in any case of letters.
        text: String,
    },
    /// Opens a page and keeps a picture of it.
    Screenshot {
        /// Its address: `http` or `https`.
        url: String,
        /// The whole page, not only what a window of it shows.
        #[serde(default)]
        full_page: bool,
    },
}

impl WebRequest {
    /// Whether it needs a visible window.
    #[must_use]
    pub fn is_visible(&self, settings: &WebSettings) -> bool {
        !self.headless || self.pause && !settings.pause_headless
    }
}

/// The web tool: which browser, where it may go, and how much of a page is read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct WebSettings {
    /// The browser: the path of a Chromium or Chrome. Without it, the first of `chromium`, `chromium-browser`,
    /// `google-chrome-stable`, `google-chrome` and `chrome` on the PATH.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chromium: Option<String>,
    /// Whether a page is paused without a window, where there is no display: it is then reached by the address of the
    /// developer tools that the pause shows.
    pub pause_headless: bool,
    /// Whether the browser's own sandbox is on. Without it: on, unless this runs as root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<bool>,
    /// Hosts that go unasked though they are private, each with all below it: `localhost`, `intern.example:8080`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    /// Hosts that are never reached, each with all below it, whatever else is allowed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<String>,
    /// Minutes after which a browser that nobody uses is ended.
    #[schemars(range(min = 1, max = 1440))]
    pub idle_minutes: u32,
    /// Seconds that a page may take to load. After that, what there is of it is read.
    #[schemars(range(min = 1, max = 600))]
    pub load_s: u32,
    /// Bytes of a page's text that are returned. What is cut is told.
    #[schemars(range(min = 1024, max = 1048576))]
    pub max_text_bytes: u32,
    /// The search engine.
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

/// The search engine of the web tool.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct WebSearch {
    /// Where it answers; `{query}` stands for what is looked for: `https://searx.example/search?format=json&q={query}`.
    /// Without it there is no search.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// How results are found in a page of HTML. Without it, the answer is the JSON of SearXNG.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub html: Option<WebSearchHtml>,
}

/// How results are found in a page of HTML: by CSS selectors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WebSearchHtml {
    /// Each result.
    pub result: String,
    /// In a result: the link to the page. Its text is the title.
    pub link: String,
    /// In a result: the words about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

impl WebSettings {
    /// Whether it can be used as it is; if not, what is wrong.
    pub(crate) fn check(&self) -> Result<(), String> {
        let bounds = [
            ("idle_minutes", self.idle_minutes, 1..=1440),
            ("load_s", self.load_s, 1..=600),
            ("max_text_bytes", self.max_text_bytes, 1024..=1024 * 1024),
        ];
        for (key, value, range) in bounds {
            if !range.contains(&value) {
                return Err(format!("web.{key} is {value}; it can be {} to {}", range.start(), range.end()));
            }
        }
        match &self.search.url {
            Some(url) if !url.contains("{query}") => {
                Err("web.search.url has no `{query}` in it: it stands for what is looked for".to_owned())
            }
            Some(url) if !url.starts_with("http://") && !url.starts_with("https://") => {
                Err(format!("web.search.url is `{url}`: it begins with http:// or https://"))
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
        let (with, lifted) = (WebSettings::default(), WebSettings { pause_headless: true, ..WebSettings::default() });
        assert_eq!([&plain, &paused, &visible].map(|request| request.is_visible(&with)), [false, true, true]);
        assert_eq!([&plain, &paused, &visible].map(|request| request.is_visible(&lifted)), [false, false, true]);
    }

    #[test]
    fn a_setting_that_makes_no_sense_is_refused() {
        for (text, what) in [
            ("[web]\nidle_minutes = 0", "idle_minutes"),
            ("[web]\nmax_text_bytes = 5", "max_text_bytes"),
            ("[web.search]\nurl = 'https://x/?q='", "{query}"),
            ("[web.search]\nurl = 'ftp://x/{query}'", "http"),
            ("[web]\nchrome = 'x'", "chromium"),
        ] {
            let error = Config::parse(text).unwrap_err().to_string();
            assert!(error.contains(what), "{error}");
        }
        Config::parse("[web.search]\nurl = 'http://localhost:8888/search?format=json&q={query}'").unwrap();
    }
}
