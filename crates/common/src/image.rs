//! Images in the results of tools.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An image that a tool returned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Image {
    /// Format of the data.
    pub media_type: ImageType,
    /// The image file, in base64 with padding.
    pub data: Arc<str>,
}

/// The format of an image. All providers accept these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ImageType {
    /// The media type `image/png`.
    #[serde(rename = "image/png")]
    Png,
    /// The media type `image/jpeg`.
    #[serde(rename = "image/jpeg")]
    Jpeg,
    /// The media type `image/webp`.
    #[serde(rename = "image/webp")]
    Webp,
}

impl ImageType {
    /// Returns the media type, such as `image/png`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Webp => "image/webp",
        }
    }
}
