//! Prompts of the editor: turns content blocks into the text of a prompt.

use agent_client_protocol_schema::v1::{
    ContentBlock, EmbeddedResourceResource, Error, ErrorCode, ResourceLink, TextResourceContents,
};
use holdpoint_common::api::PromptRequest;
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

use super::rpc::failure;

/// The prompt in these blocks. A link becomes the path or the address that it leads to, where it is
/// mentioned. The contents of an embedded resource follow at the end, under its path. The user has
/// not written them.
///
/// # Errors
/// An error for the editor, if a block has a kind that was not announced.
pub(super) fn prompt(blocks: &[ContentBlock]) -> Result<PromptRequest, Error> {
    let mut text = String::new();
    let mut contents = String::new();
    for block in blocks {
        match block {
            ContentBlock::Text(block) => text.push_str(&block.text),
            ContentBlock::ResourceLink(ResourceLink { uri, .. }) => text.push_str(&place(uri)),
            ContentBlock::Resource(resource) => match &resource.resource {
                EmbeddedResourceResource::TextResourceContents(resource) => {
                    text.push_str(&place(&resource.uri));
                    contents.push_str(&quoted(resource));
                }
                _ => return Err(unsupported("a resource that is not text")),
            },
            ContentBlock::Image(_) => return Err(unsupported("an image")),
            ContentBlock::Audio(_) => return Err(unsupported("audio")),
            _ => return Err(unsupported("content of an unknown kind")),
        }
    }
    let typed_bytes = (!contents.is_empty()).then_some(text.len());
    Ok(PromptRequest { text: text + &contents, typed_bytes, idempotency_key: None })
}

fn unsupported(content: &str) -> Error {
    let message = format!("the prompt has {content}, which this agent does not accept");
    let hint = "send text, links to files and text resources";
    failure(ErrorCode::InvalidParams, message).data(serde_json::json!({ "hint": hint }))
}

/// The characters that end a word. Characters beyond ASCII are always encoded.
const ENDS_A_WORD: &AsciiSet = &CONTROLS.add(b' ');

/// The path of a `file` address, and any other address as one word. In a prompt, neither is a command
/// or names content of a server.
fn place(uri: &str) -> String {
    let path = match uri.strip_prefix("file://") {
        Some(path) => percent_decode_str(path).decode_utf8().ok(),
        None => Some(uri.into()),
    };
    if let Some(path) = path.filter(|path| is_plain_path(path)) {
        return path.into_owned();
    }
    let word = utf8_percent_encode(uri, ENDS_A_WORD).to_string();
    match word.strip_prefix('@') {
        Some(rest) => format!("%40{rest}"),
        // A path without a scheme.
        None if word.starts_with('/') => format!("file://{word}"),
        None => word,
    }
}

/// Whether the path of a file stays on its line, and can't be taken for a command, such as `/hold`,
/// or for content of a server, such as `/server:prompt` and `@server:page`.
fn is_plain_path(path: &str) -> bool {
    let Some((first, _)) = path.strip_prefix('/').and_then(|path| path.split_once('/')) else {
        return false;
    };
    let has_name = path.contains('@') && path.contains(char::is_whitespace);
    !path.contains(char::is_control) && !first.contains(':') && !has_name
}

/// The contents of a resource in a fence that they can't close.
fn quoted(TextResourceContents { uri, text, .. }: &TextResourceContents) -> String {
    let fence = fence(text);
    let end = if text.ends_with('\n') { "" } else { "\n" };
    format!("\n\nContents of {}:\n{fence}\n{text}{end}{fence}", place(uri))
}

/// A fence of backticks that is longer than any in `text`.
pub(super) fn fence(text: &str) -> String {
    let longest = text.split(|character| character != '`').map(str::len).max().unwrap_or(0);
    "`".repeat(longest.max(2) + 1)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn prompt_of(blocks: Value) -> Result<PromptRequest, String> {
        let blocks: Vec<ContentBlock> = serde_json::from_value(blocks).unwrap();
        prompt(&blocks).map_err(|error| error.message)
    }

    fn text_of(blocks: Value) -> Result<String, String> {
        prompt_of(blocks).map(|prompt| prompt.text)
    }

    #[test]
    fn m_h2_t_h3_what_an_editor_attaches_names_no_content() {
        let text = json!({ "type": "text", "text": "See @s:a in " });
        let resource = json!({ "uri": "file:///w/c.md", "text": "@s:b" });
        let resource = json!({ "type": "resource", "resource": resource });
        assert_eq!(prompt_of(json!([text])).unwrap().typed_bytes, None);
        let PromptRequest { text, typed_bytes, .. } = prompt_of(json!([text, resource])).unwrap();
        assert_eq!(&text[..typed_bytes.unwrap()], "See @s:a in /w/c.md");
        assert!(text.ends_with("\n@s:b\n```"), "{text}");
    }

    #[test]
    fn m_h2_t_h3_a_link_names_no_content_and_is_no_command() {
        for (uri, text) in [
            ("file:///w/a%20@s:b", "file:///w/a%20@s:b"),
            ("file:///w/a @s:b", "file:///w/a%20@s:b"),
            ("https://example.com/a @s:b\u{a0}@s:c", "https://example.com/a%20@s:b%C2%A0@s:c"),
            ("https://example.com/\n/s:review", "https://example.com/%0A/s:review"),
            ("@s:b", "%40s:b"),
            ("/s:review", "file:///s:review"),
            ("file:///s:review", "file:///s:review"),
            ("file:///s:review/x", "file:///s:review/x"),
            ("/release", "file:///release"),
            ("file:///release", "file:///release"),
            ("/w/a b.rs", "/w/a b.rs"),
        ] {
            let link = json!([{ "type": "resource_link", "name": "n", "uri": uri }]);
            assert_eq!(text_of(link).unwrap(), text, "{uri}");
        }
    }

    #[test]
    fn m_h1_a_prompt_names_its_links_and_quotes_its_resources() {
        let link = |uri: &str| json!({ "type": "resource_link", "name": "n", "uri": uri });
        let blocks = json!([
            { "type": "text", "text": "Compare " },
            link("file:///w/a%20b.rs"),
            { "type": "text", "text": ", " },
            link("https://example.com/x%20y"),
            { "type": "text", "text": " and " },
            { "type": "resource", "resource": { "uri": "file:///w/c.md", "text": "```\nx\n```" } },
            { "type": "text", "text": "." },
        ]);
        assert_eq!(
            text_of(blocks).unwrap(),
            "Compare /w/a b.rs, https://example.com/x%20y and /w/c.md.\n\n\
             Contents of /w/c.md:\n````\n```\nx\n```\n````"
        );
        // A path with a line break stays an address, so that it can't look like other text.
        for uri in ["file:///w/a%0aIgnore", "file://host/share", "file:///w/%ff"] {
            assert_eq!(text_of(json!([link(uri)])).unwrap(), uri);
        }
    }

    #[test]
    fn m_h1_content_that_was_not_announced_is_refused() {
        let blob = json!({ "uri": "file:///w/a.bin", "blob": "AAAA" });
        for (block, named) in [
            (json!({ "type": "image", "data": "", "mimeType": "image/png" }), "an image"),
            (json!({ "type": "audio", "data": "", "mimeType": "audio/wav" }), "audio"),
            (json!({ "type": "resource", "resource": blob }), "not text"),
        ] {
            let error = text_of(json!([{ "type": "text", "text": "see" }, block])).unwrap_err();
            assert!(error.contains(named), "{error}");
        }
    }
}
