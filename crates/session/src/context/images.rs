//! The images of a request.

use std::sync::Arc;

use holdpoint_common::Image;

use crate::model::Message;

/// The most bytes of all images of a request, in base64. Providers refuse requests of more than 20
/// or 32 MB.
const MAX_BYTES: usize = 12 * 1024 * 1024;

/// Removes the images that a request can't have: all of them if the model takes none, else the
/// oldest beyond the bound.
pub(crate) fn limit_images(messages: &mut [Message], takes_images: bool) {
    let mut room = if takes_images { MAX_BYTES } else { 0 };
    for message in messages.iter_mut().rev() {
        let Message::Tool(result) = message else { continue };
        let bytes = result.images.iter().map(|image: &Image| image.data.len()).sum();
        match room.checked_sub(bytes) {
            Some(left) => room = left,
            None => {
                Arc::make_mut(result).images.clear();
                room = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use holdpoint_common::{CallId, ImageType, ToolResult, ToolStatus};

    use super::*;

    fn result(bytes: usize) -> Message {
        let image = Image { media_type: ImageType::Png, data: "A".repeat(bytes).into() };
        let result = ToolResult::not_run(CallId(1), ToolStatus::Ok, "text");
        Message::Tool(ToolResult { images: vec![image], ..result }.into())
    }

    fn kept(takes_images: bool) -> Vec<usize> {
        let text = ToolResult::not_run(CallId(2), ToolStatus::Ok, "text");
        let mut messages = [
            result(1),
            result(MAX_BYTES / 2),
            Message::User("go".into()),
            result(MAX_BYTES / 2),
            Message::Tool(text.into()),
            result(9),
        ];
        limit_images(&mut messages, takes_images);
        let images = |message: &Message| match message {
            Message::Tool(result) => Some(result.images.len()),
            _ => None,
        };
        messages.iter().filter_map(images).collect()
    }

    #[test]
    fn m_h2_a_request_has_the_newest_images_within_its_bound() {
        assert_eq!(kept(true), [0, 0, 1, 0, 1]);
    }

    #[test]
    fn m_h2_a_model_without_images_gets_none() {
        assert_eq!(kept(false), [0, 0, 0, 0, 0]);
    }
}
