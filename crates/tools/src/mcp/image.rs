//! The images of a result, checked and within bounds.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use holdpoint_common::{Image, ImageType};

/// The most images of one result.
pub(super) const MAX_IMAGES: usize = 8;

/// The most bytes of the images of one result, in base64.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// The images of one result.
#[derive(Default)]
pub(super) struct Images {
    pub(super) accepted: Vec<Image>,
    bytes: usize,
}

impl Images {
    /// Adds an image, given in base64. Providers refuse requests with a wrong media type, so it is
    /// taken from the data.
    ///
    /// # Errors
    /// The reason why the image is not used.
    pub(super) fn add(&mut self, base64: &str) -> Result<(), String> {
        if self.accepted.len() == MAX_IMAGES {
            return Err(format!("a result may have {MAX_IMAGES} images"));
        }
        if self.bytes + base64.len() > MAX_BYTES {
            return Err(format!("the images of a result may have {MAX_BYTES} bytes in base64"));
        }
        // Some encoders break lines.
        let base64: String = base64.split_ascii_whitespace().collect();
        let media_type = STANDARD.decode(&base64).ok().and_then(|bytes| media_type(&bytes));
        let media_type = media_type.ok_or("it is not a PNG, JPEG or WebP image")?;
        self.bytes += base64.len();
        self.accepted.push(Image { media_type, data: base64.into() });
        Ok(())
    }
}

/// The format of an image, by the first bytes of its file.
fn media_type(file: &[u8]) -> Option<ImageType> {
    match file {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some(ImageType::Png),
        [0xff, 0xd8, 0xff, ..] => Some(ImageType::Jpeg),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some(ImageType::Webp),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(begin: &[u8], bytes: usize) -> String {
        STANDARD.encode([begin, &vec![0; bytes]].concat())
    }

    #[test]
    fn m_h2_the_format_of_an_image_is_that_of_its_data() {
        let mut images = Images::default();
        images.add(&file(b"\x89PNG\r\n\x1a\n", 9)).unwrap();
        images.add(&file(b"\xff\xd8\xff\xe0", 9)).unwrap();
        images.add(&file(b"RIFF\x00\x00\x00\x00WEBP", 9)).unwrap();
        let types: Vec<_> = images.accepted.iter().map(|image| image.media_type).collect();
        assert_eq!(types, [ImageType::Png, ImageType::Jpeg, ImageType::Webp]);
        for bad in [file(b"GIF89a", 9), "iVBORw0KGgo".to_owned(), "no base64".to_owned()] {
            let why = images.add(&bad).unwrap_err();
            assert_eq!(why, "it is not a PNG, JPEG or WebP image", "{bad}");
        }
        assert_eq!(images.accepted.len(), 3);
    }

    #[test]
    fn m_h2_line_breaks_in_an_image_are_removed() {
        let mut images = Images::default();
        let whole = file(b"\xff\xd8\xff", 60);
        let (first, second) = whole.split_at(40);
        images.add(&format!("{first}\r\n{second}\n")).unwrap();
        assert_eq!(&*images.accepted[0].data, whole);
    }

    #[test]
    fn m_h2_the_images_of_a_result_are_bounded() {
        let mut images = Images::default();
        images.add(&file(b"\xff\xd8\xff", MAX_BYTES / 2)).unwrap();
        let why = images.add(&file(b"\xff\xd8\xff", MAX_BYTES / 2)).unwrap_err();
        assert_eq!(why, "the images of a result may have 4194304 bytes in base64");
        let small = file(b"\xff\xd8\xff", 9);
        (1..MAX_IMAGES).for_each(|_| images.add(&small).unwrap());
        assert_eq!(images.add(&small).unwrap_err(), "a result may have 8 images");
    }
}
