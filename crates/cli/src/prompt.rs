//! Prompts as the command line gives them: text, standard input, files and images.

use std::io::Read;
use std::path::{Path, PathBuf};

use consort_daemon::protocol::{MAX_MESSAGE, NewPrompt};
use consort_model::{Attachment, PromptId};
use uuid::Uuid;

use crate::args::Attach;
use crate::exit::{Exit, Stop};

/// What a prompt with its attachments may weigh; the rest of a message is left for escapes and framing.
const MAX_PROMPT: usize = MAX_MESSAGE / 2;

/// A new prompt with an id of its own.
pub fn prompt(text: &str, attach: &Attach) -> Result<NewPrompt, Stop> {
    let text = if text == "-" { read_stdin()? } else { text.to_owned() };
    if text.trim().is_empty() && attach.files.is_empty() && attach.images.is_empty() {
        return Err(Stop::failed("the prompt is empty; say what the agent should do"));
    }
    let mut attachments = Vec::new();
    for path in &attach.files {
        attachments.push(file(path)?);
    }
    for path in &attach.images {
        attachments.push(image(path)?);
    }
    let weight: usize = attachments
        .iter()
        .map(|attachment| match attachment {
            Attachment::Image(image) => image.data.len(),
            Attachment::File { text, .. } => text.len(),
        })
        .sum();
    if text.len() + weight > MAX_PROMPT {
        let limit = MAX_PROMPT >> 20;
        return Err(Stop::failed(format!(
            "the prompt is larger than {limit} MB; attach less, and name files instead"
        )));
    }
    Ok(NewPrompt { id: PromptId::new(Uuid::now_v7()), text, attachments })
}

/// The working directory that a person means, absolute.
pub fn working_directory(given: Option<&Path>) -> Result<PathBuf, Stop> {
    let given = given.unwrap_or(Path::new("."));
    let folder = given
        .canonicalize()
        .map_err(|error| Stop::new(Exit::Usage, format!("cannot work in {}: {error}", given.display())))?;
    if folder.is_dir() {
        Ok(folder)
    } else {
        Err(Stop::new(Exit::Usage, format!("cannot work in {}: it is not a folder", given.display())))
    }
}

fn read_stdin() -> Result<String, Stop> {
    let mut bytes = Vec::new();
    let limit = MAX_PROMPT as u64 + 1;
    std::io::stdin()
        .take(limit)
        .read_to_end(&mut bytes)
        .map_err(|error| Stop::failed(format!("cannot read the prompt from standard input: {error}")))?;
    String::from_utf8(bytes).map_err(|_| Stop::failed("the prompt on standard input is not UTF-8 text"))
}

fn read(path: &Path) -> Result<Vec<u8>, Stop> {
    let problem = |error: std::io::Error| Stop::failed(format!("cannot attach {}: {error}", path.display()));
    let file = std::fs::File::open(path).map_err(problem)?;
    let mut bytes = Vec::new();
    file.take(MAX_PROMPT as u64 + 1).read_to_end(&mut bytes).map_err(problem)?;
    Ok(bytes)
}

fn file(path: &Path) -> Result<Attachment, Stop> {
    let text = String::from_utf8(read(path)?).map_err(|_| {
        Stop::failed(format!(
            "cannot attach {}: it is not UTF-8 text; use --image for an image",
            path.display()
        ))
    })?;
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    Ok(Attachment::File { path: path.to_string_lossy().into_owned(), text })
}

fn image(path: &Path) -> Result<Attachment, Stop> {
    let bytes = read(path)?;
    Attachment::image(&bytes).ok_or_else(|| {
        Stop::failed(format!("cannot attach {}: it is neither PNG, JPEG, GIF nor WebP", path.display()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attachments_are_read_or_refused_with_a_sentence() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txt");
        std::fs::write(&path, "hello").unwrap();
        let attach = Attach { files: vec![path.clone()], images: vec![] };
        let made = prompt("look", &attach).unwrap();
        assert!(matches!(&made.attachments[..], [Attachment::File { text, .. }] if text == "hello"));
        let wrong = prompt("look", &Attach { files: vec![], images: vec![path] }).unwrap_err();
        assert!(wrong.message.unwrap().contains("neither PNG"));
        assert!(prompt("  ", &Attach::default()).is_err());
    }
}
