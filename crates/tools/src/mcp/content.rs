//! The text and the images of a tool's result.

use holdpoint_common::Image;
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};

use super::image::Images;

/// The most bytes of the reason that a server gives for a failure.
const MAX_REASON: usize = 2 * 1024;

/// The text of a result for the model and the clients, and the images for the model. In the text,
/// structured content is its JSON, and lines name images and other data.
pub(super) fn text_and_images(result: &CallToolResult) -> (String, Vec<Image>) {
    let mut images = Images::default();
    let mut line = |content: &ContentBlock| match content {
        ContentBlock::Image(image) => {
            let note = match images.add(&image.data) {
                Ok(()) => String::new(),
                Err(why) => format!(": not shown, {why}"),
            };
            data_line("image", &image.mime_type, &image.data, &note)
        }
        other => block(other),
    };
    let mut lines: Vec<String> = result.content.iter().map(&mut line).collect();
    // Servers repeat structured content as text, for clients that don't read it.
    if let Some(structured) = &result.structured_content {
        let json = structured.to_string();
        let is_repeated = result.content.iter().any(|block| match block {
            ContentBlock::Text(text) => {
                text.text == json
                    || serde_json::from_str(&text.text)
                        .is_ok_and(|value: serde_json::Value| value == *structured)
            }
            _ => false,
        });
        if !is_repeated {
            lines.push(json);
        }
    }
    if lines.is_empty() {
        lines.push("[the result is empty]".to_owned());
    }
    lines.iter_mut().filter(|line| !line.ends_with('\n')).for_each(|line| line.push('\n'));
    (lines.concat(), images.accepted)
}

/// The text of content without its images.
pub(super) fn block(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => data("image", &image.mime_type, &image.data),
        ContentBlock::Audio(audio) => data("audio", &audio.mime_type, &audio.data),
        ContentBlock::Resource(embedded) => match &embedded.resource {
            ResourceContents::TextResourceContents { uri, text, .. } => {
                format!("[resource {uri}]\n{text}")
            }
            other => resource(other),
        },
        ContentBlock::ResourceLink(link) => {
            let description = link.description.as_deref().or(link.title.as_deref());
            match description {
                Some(description) => format!("[link to {}: {description}]", link.uri),
                None => format!("[link to {}: {}]", link.uri, link.name),
            }
        }
        _ => "[content of an unknown kind]".to_owned(),
    }
}

/// The text of a resource.
pub(super) fn resource(contents: &ResourceContents) -> String {
    match contents {
        ResourceContents::TextResourceContents { text, .. } => text.clone(),
        ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
            let kind = format!("resource {uri}");
            data(&kind, mime_type.as_deref().unwrap_or("unknown type"), blob)
        }
        _ => "[a resource of an unknown kind]".to_owned(),
    }
}

/// A line that names data that is not shown.
fn data(kind: &str, mime_type: &str, base64: &str) -> String {
    data_line(kind, mime_type, base64, ": not shown")
}

fn data_line(kind: &str, mime_type: &str, base64: &str, note: &str) -> String {
    let bytes = base64.trim_end_matches('=').len() * 3 / 4;
    format!("[{kind}, {mime_type}, {bytes} bytes{note}]")
}

/// The beginning of a text of a server that is a reason.
pub(super) fn reason(text: &str) -> &str {
    cut(text, MAX_REASON)
}

/// The longest beginning of a text with at most `max` bytes.
pub(super) fn cut(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}

#[cfg(test)]
mod tests {
    use holdpoint_common::ImageType;
    use serde_json::json;

    use super::*;

    fn text_of(result: serde_json::Value) -> String {
        text_and_images(&serde_json::from_value(result).unwrap()).0
    }

    #[test]
    fn m_h2_every_kind_of_content_becomes_text() {
        let all = json!({"content": [
            {"type": "text", "text": "one"},
            {"type": "image", "data": "QUJDRA==", "mimeType": "image/png"},
            {"type": "audio", "data": "QUJD", "mimeType": "audio/wav"},
            {"type": "resource_link", "uri": "file:///a", "name": "a", "description": "the a"},
            {"type": "resource", "resource": {"uri": "x://t", "text": "inside"}},
            {"type": "resource", "resource": {"uri": "x://b", "blob": "QUJD"}},
        ]});
        assert_eq!(
            text_of(all),
            "one\n\
             [image, image/png, 4 bytes: not shown, it is not a PNG, JPEG or WebP image]\n\
             [audio, audio/wav, 3 bytes: not shown]\n\
             [link to file:///a: the a]\n[resource x://t]\ninside\n\
             [resource x://b, unknown type, 3 bytes: not shown]\n"
        );
        assert_eq!(text_of(json!({"content": []})), "[the result is empty]\n");
    }

    #[test]
    fn m_h2_an_image_is_named_in_the_text_and_returned() {
        let image = json!({"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/jpeg"});
        let result = serde_json::from_value(json!({"content": [image]})).unwrap();
        let (text, images) = text_and_images(&result);
        assert_eq!(text, "[image, image/jpeg, 8 bytes]\n");
        assert_eq!(images, [Image { media_type: ImageType::Png, data: "iVBORw0KGgo=".into() }]);
    }

    #[test]
    fn m_h2_structured_content_is_shown_once() {
        let structured = json!({"a": 1});
        let repeated = json!({
            "content": [{"type": "text", "text": "{ \"a\": 1 }"}],
            "structuredContent": structured,
        });
        assert_eq!(text_of(repeated), "{ \"a\": 1 }\n");
        let alone = json!({"content": [], "structuredContent": structured});
        assert_eq!(text_of(alone), "{\"a\":1}\n");
    }
}
