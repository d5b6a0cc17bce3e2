//! The recorded conversations as data.

use std::path::Path;

/// The lines of every conversation whose file's name begins like this, with its name.
pub fn all(prefix: &str) -> Vec<(String, Vec<String>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/recorded");
    let mut found: Vec<(String, Vec<String>)> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
        .map(|path| {
            let text = std::fs::read_to_string(&path).unwrap();
            (
                path.file_stem().unwrap().to_string_lossy().into_owned(),
                text.lines().map(str::to_owned).collect(),
            )
        })
        .filter(|(name, _): &(String, _)| name.starts_with(prefix))
        .collect();
    found.sort();
    found
}

/// Every frame that a CLI wrote in them.
#[allow(dead_code, reason = "the conversations themselves are replayed line by line")]
pub fn written(prefix: &str) -> Vec<String> {
    let lines = all(prefix).into_iter().flat_map(|(_, lines)| lines);
    let lines = lines.map(|line| serde_json::from_str::<serde_json::Value>(&line).unwrap());
    let frames =
        lines.filter(|line| line["dir"] == "in").map(|line| line["frame"].as_str().unwrap().to_owned());
    let frames: Vec<String> = frames.collect();
    assert!(!frames.is_empty(), "nothing is recorded for {prefix}");
    frames
}
