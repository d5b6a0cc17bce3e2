//! Images in the two forms in which agents write them as a block of content.

use consort_model::Image;
use serde_json::Value;

/// The image of a block; none if it is none, or lies elsewhere.
pub fn image_of(block: &Value) -> Option<Image> {
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    if text(block, "type")? != "image" {
        return None;
    }
    match block.get("source") {
        // As the Messages API has it.
        Some(source) => Some(Image { mime_type: text(source, "media_type")?, data: text(source, "data")? }),
        // As MCP and ACP have it.
        None => Some(Image { mime_type: text(block, "mimeType")?, data: text(block, "data")? }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn both_forms_are_read_and_what_lies_elsewhere_is_not() {
        let image = Some(Image { mime_type: "image/png".into(), data: "AA==".into() });
        let source = json!({"type": "base64", "media_type": "image/png", "data": "AA=="});
        assert_eq!(image_of(&json!({"type": "image", "source": source})), image);
        assert_eq!(image_of(&json!({"type": "image", "mimeType": "image/png", "data": "AA=="})), image);
        let url = json!({"type": "url", "url": "https://x"});
        assert_eq!(image_of(&json!({"type": "image", "source": url})), None);
        assert_eq!(image_of(&json!({"type": "text", "text": "image"})), None);
    }
}
