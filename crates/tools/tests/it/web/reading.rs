//! Tests of reading pages: text as Markdown, title, links, matches, screenshots and search results.

use holdpoint_common::{WebSearch, WebSearchHtml, WebSettings};
use holdpoint_tools::ToolError;
use serde_json::json;

use super::server::{Answer, Server, html, status, typed};
use super::support::{Session, failure, local, output_of, pause};

const WORDS: &str =
    "The quick brown fox jumps over the lazy dog, and so on, as it does in texts of this kind. ";

fn article() -> Answer {
    let paragraphs: String =
        (1..=12).map(|n| format!("<p>Paragraph {n}. {}</p>", WORDS.repeat(4))).collect();
    html(&format!(
        "<nav><a href='/home'>Home</a></nav><article><h1>On foxes</h1><h2>Their <em>jumps</em></h2>{paragraphs}\
         <ul><li>one</li><li>two</li></ul><pre><code>let fox = 1;</code></pre><a href='more'>Read more</a></article>\
         <script>document.querySelector('h2').append(' measured')</script><footer>imprint</footer>"
    ))
}

#[test]
fn m_e7_web_a_page_is_read_as_markdown_with_its_links() {
    let server = Server::start(|path| match path {
        "/blog/foxes" => article(),
        "/app" => html(
            "<main><form><label>Name <input></label><button>Send</button></form><p>Short. <b>Bold</b></p></main>",
        ),
        "/data.json" => typed("application/json", r#"{"fox": [1, 2]}"#),
        "/gone" => {
            status("404 Not Found", "content-type: text/html\r\n", "<p>No such page here</p>")
        }
        "/there" => status("302 Found", "location: /blog/foxes\r\n", ""),
        _ => html(""),
    });
    let mut session = Session::new();
    let text = session.open(&server.url("/there"));
    assert!(
        text.starts_with(&format!("# A page\n{}\n", server.url("/blog/foxes"))),
        "the address after the redirect: {text}"
    );
    for part in
        ["## Their _jumps_ measured", "Paragraph 12. The quick", "- one\n- two", "let fox = 1;"]
    {
        assert!(text.replace("*jumps*", "_jumps_").contains(part), "{part:?} is missing: {text}");
    }
    assert!(!text.contains("imprint") && !text.contains("document.querySelector"), "{text}");
    assert!(
        text.contains(&format!("- Read more: {}", server.url("/blog/more"))),
        "links are absolute: {text}"
    );
    assert!(text.contains(&format!("- Home: {}", server.url("/home"))));
    let text = session.open(&server.url("/app"));
    assert!(
        text.contains("Send") && text.contains("**Bold**"),
        "a page without an article is read completely: {text}"
    );
    let text = session.open(&server.url("/data.json"));
    assert!(text.contains(r#"{"fox": [1, 2]}"#), "{text}");
    let text = session.open(&server.url("/gone"));
    assert!(
        text.contains("[the server answered with HTTP status 404]")
            && text.contains("No such page"),
        "{text}"
    );
    session.close();
}

/// Neither scripts nor form names that shadow the document's properties change the result.
#[test]
fn m_e7_web_page_scripts_can_not_falsify_the_reading() {
    let names = ["body", "documentElement", "links", "implementation"];
    let forms: String = names.map(|name| format!("<form name={name}>form</form>")).concat();
    let pretends = "Object.defineProperty(document, 'title', { get: () => 'another' }); \
                    String.prototype.trim = Array.prototype.map = () => 'pretended'";
    let fields = ["parentNode", "nodeType", "data", "localName"]
        .map(|name| format!("<input name={name}>"))
        .concat();
    let forms = format!("{forms}<form>{fields}<p>its words</p></form>");
    let page = format!("{forms}<p>the text</p><a href='/next'>Next</a><script>{pretends}</script>");
    let server = Server::start(move |_| html(&page));
    let mut session = Session::new();
    let text = session.open(&server.url("/"));
    assert!(
        text.starts_with("# A page\n") && text.contains("its words") && text.contains("the text"),
        "{text}"
    );
    assert!(text.contains(&format!("- Next: {}", server.url("/next"))), "{text}");
    let find = json!({"action": "find_in_page", "url": server.url("/"), "text": "the text"});
    assert!(output_of(session.call(find)).contains("was found once"));
    session.close();
}

/// Text from scripts may contain lone surrogates. Pictures appear by their alternative text, not
/// their data.
#[test]
fn m_e7_web_lone_surrogates_and_inline_pictures_are_handled() {
    let picture = format!("data:image/gif;base64,{}", "A".repeat(3_000));
    let halves = "document.title = 'half \\ud83d'; p.textContent = 'and half \\ud83d of it'; a.textContent = '\\udc4d'";
    let page = format!(
        "<p id=p>text</p><img src='{picture}' alt='a dot'><img src='/fox.png' alt='a fox'><a id=a href='/next'></a>\
         <nav>menu</nav><p>{}</p><script>{halves}</script>",
        "👍".repeat(40_000)
    );
    let server = Server::start(move |_| html(&page));
    let mut session = Session::with(WebSettings { max_text_bytes: 10_000, ..local() });
    let text = session.open(&server.url("/"));
    assert!(
        text.starts_with("# half \u{fffd}\n") && text.contains("and half \u{fffd} of it"),
        "{text:.200}"
    );
    assert!(
        text.contains("![a fox]") && !text.contains("AAAA") && !text.contains("menu"),
        "{text:.200}"
    );
    let find = json!({"action": "find_in_page", "url": server.url("/"), "text": "and half"});
    assert!(output_of(session.call(find)).contains("was found once"));
    session.close();
}

/// Only the beginning of a large page is read: enough to find its main part.
#[test]
fn m_e7_web_the_beginning_of_a_large_page_is_read() {
    let menu: String =
        (0..300).map(|n| format!("<li><a href='/section/{n}'>Section {n}</a></li>")).collect();
    let text: String =
        (0..12_000).map(|n| format!("<p>Paragraph {n} of it. {WORDS}</p>")).collect();
    let empty = "<div><div></div></div>".repeat(40_000);
    let server = Server::start(move |path| match path {
        "/empty" => html(&format!("<p>text</p>{empty}<p>the end</p>")),
        "/nothing" => html(""),
        _ => html(&format!("<div class=sidebar><ul>{menu}</ul></div><article>{text}</article>")),
    });
    let mut session = Session::new();
    let text = session.open(&server.url("/"));
    let (page, links) = text.split_once("Links:").unwrap();
    assert!(
        page.contains("Paragraph 0 of it") && page.contains("Paragraph 250 of it"),
        "{text:.500}"
    );
    assert!(!page.contains("Section 7"), "the main part has no navigation: {text:.500}");
    assert!(
        page.contains("[cut: these are the first 32768 bytes of a longer page; find_in_page"),
        "{links}"
    );
    assert!(
        links.contains("Section 7") && links.contains("The page has 300 links in all."),
        "{links}"
    );
    let text = session.open(&server.url("/empty"));
    assert!(
        text.contains("text") && !text.contains("the end") && text.contains("of a longer page"),
        "{text}"
    );
    let text = session.open(&server.url("/nothing"));
    assert!(
        text.contains("[the page shows no text: it may be empty, a picture, or a document"),
        "{text}"
    );
    session.close();
}

#[test]
fn m_e7_web_cut_text_is_marked() {
    let page: String = (0..4_000)
        .map(|n| format!("<p>Line {n} of a long page, with some words in it.</p>"))
        .collect();
    let server = Server::start(move |path| match path {
        "/deep" => html(
            "<p id=p>top</p><script>let e = document.body; for (let n = 0; n < 1500; n++) { const d = \
                         document.createElement('div'); e.append(d); e = d; } e.append('bottom')</script>",
        ),
        "/deep-and-long" => html(
            "<p>top</p><script>let e = document.body; for (let n = 0; n < 1500; n++) { const d = \
                         document.createElement('div'); e.append(d); e = d; } e.append('word '.repeat(2000))</script>",
        ),
        "/hidden" => html(
            "<p>top</p><script>let e = document.body; for (let n = 0; n < 1500; n++) { const d = \
                         document.createElement('div'); const x = document.createElement('xmp'); x.append('</a>'); \
                         d.append(x); e.append(d); e = d; } e.append('bottom')</script>",
        ),
        _ => html(&page),
    });
    let mut session = Session::with(WebSettings { max_text_bytes: 2_000, ..local() });
    let text = session.open(&server.url("/"));
    assert!(
        text.contains("Line 5 of")
            && text.contains("[cut: these are the first")
            && text.len() < 3_000,
        "{text}"
    );
    let find = json!({"action": "find_in_page", "url": server.url("/"), "text": "LINE 3999 of"});
    let text = output_of(session.call(find));
    assert!(
        text.contains("was found once") && text.contains("**Line 3999 of** a long page"),
        "{text}"
    );
    let text = session.open(&server.url("/deep"));
    assert!(text.contains("top") && text.contains("bottom"), "deeper than the limit: {text}");
    let text = session.open(&server.url("/deep-and-long"));
    assert!(text.contains("[cut: these are the first 2000 bytes of a longer page;"), "{text}");
    let text = session.open(&server.url("/hidden"));
    assert!(text.contains("top") && text.contains("</a>"), "deeper than the tags show: {text}");
    session.close();
}

#[test]
fn m_e7_web_long_addresses_are_shortened_in_results() {
    let server = Server::start(|_| {
        html(
            "<p>text</p><a href='#'>x</a><script>history.replaceState(0, '', '/' + 'a'.repeat(1e6));\
              document.links[0].href = '/' + 'b'.repeat(1e6)</script>",
        )
    });
    let mut session = Session::with(WebSettings { pause_headless: true, ..local() });
    let text = session.open(&server.url("/"));
    assert!(text.contains("/aaaa") && text.contains("a… [cut]\n"), "{}", text.len());
    assert!(text.contains("/bbbb") && text.contains("b… [cut]\n"), "{}", text.len());
    let calling =
        session.start(json!({"action": "open_page", "url": server.url("/"), "pause": true}));
    let ask = pause(calling.wait_asked());
    assert!(
        ask.message.ends_with("a… [cut]") && ask.message.len() < 3_000,
        "{}",
        ask.message.len()
    );
    calling.cut();
    drop(calling.wait());
    session.close();
}

#[test]
fn m_e7_web_screenshots_are_private_files() {
    use std::os::unix::fs::PermissionsExt;
    let server = Server::start(|_| html("<div style='height: 3000px'>tall</div>"));
    let mut session = Session::new();
    for (full_page, at_least) in [(false, 300), (true, 3_000)] {
        let shot = json!({"action": "screenshot", "url": server.url("/"), "full_page": full_page});
        let text = output_of(session.call(shot));
        let (path, rest) =
            text.split("Screenshot saved to ").nth(1).unwrap().split_once(" (").unwrap();
        assert!(text.starts_with("Screenshot saved to "), "clients show the first line: {text}");
        assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
        let png = std::fs::read(path).unwrap();
        let [width, height] =
            [16, 20].map(|at| u32::from_be_bytes(png[at..at + 4].try_into().unwrap()));
        assert!(rest.starts_with(&format!("{width} × {height} pixels")), "{text}");
        assert!(
            height >= at_least && (full_page || height < 1_000),
            "{height} pixels of {full_page}"
        );
    }
    // The width and the height are capped at the limit of graphics hardware.
    let server = Server::start(|_| html("<div style='width: 20000px; height: 10px'>wide</div>"));
    let text = output_of(
        session.call(json!({"action": "screenshot", "url": server.url("/"), "full_page": true})),
    );
    assert!(text.contains("(16384 × ") && text.contains("; the page is larger)"), "{text}");
    session.close();
}

#[test]
fn m_e7_web_search_uses_the_configured_engine() {
    let server = Server::start(|path| match path.split_once('?').unwrap_or((path, "")) {
        ("/searx", query) => typed(
            "application/json",
            &json!({"query": query, "results": [
                {"title": "Foxes", "url": "http://foxes.example/", "content": "All of\n them"},
                {"title": "More", "url": "http://more.example/", "extra": 1},
            ]})
            .to_string(),
        ),
        ("/html", _) => html(
            "<div class=r><h3><a href='/a'>First</a></h3><p class=s>About a</p></div>\
             <div class=r><a href='http://b.example/'>Second</a></div><div class=r>an advertisement</div>",
        ),
        _ => html("nothing of this kind"),
    });
    let search = |url: String, html| WebSettings {
        // The configured search engine needs no approval.
        allow: Vec::new(),
        search: WebSearch { url: Some(url), html },
        ..local()
    };
    let query = || json!({"action": "search", "query": "foxes & \"jumps\""});
    let mut session = Session::with(search(server.url("/searx?format=json&q={query}"), None));
    let text = output_of(session.call(query()));
    assert!(
        text.contains(
            "1. Foxes\n   http://foxes.example/\n   All of them\n2. More\n   http://more.example/"
        ),
        "{text}"
    );
    assert_eq!(server.asked()[0], "/searx?format=json&q=foxes+%26+%22jumps%22");
    // Other servers on the same host do need one.
    let other = Server::start(|_| html("<p>another server</p>"));
    let calling = session.start(json!({"action": "open_page", "url": other.url("/")}));
    let _ = calling.wait_asked();
    calling.cut();
    assert!(matches!(calling.wait().result, Err(ToolError::Interrupted)));
    assert!(other.asked().is_empty());
    session.close();

    let mapping = WebSearchHtml { result: ".r".into(), link: "a".into(), text: Some(".s".into()) };
    let mut session = Session::with(search(server.url("/html?q={query}"), Some(mapping)));
    let text = output_of(session.call(query()));
    let first =
        format!("1. First\n   {}\n   About a\n2. Second\n   http://b.example/", server.url("/a"));
    assert!(text.contains(&first) && !text.contains("advertisement"), "{text}");
    session.close();

    let mut session = Session::with(search(server.url("/other?q={query}"), None));
    assert!(failure(session.call(query())).contains("not in the format of SearXNG"));
    session.close();
    let mut session = Session::new();
    assert!(failure(session.call(query())).contains("web.search.url"), "no engine is configured");
}
