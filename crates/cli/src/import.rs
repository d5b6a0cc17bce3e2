//! `consort import`: the settings of other programs.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use consort_daemon::client::ClientError;
use consort_daemon::protocol::{Call, ImportSource, ImportedProfiles, MAX_IMPORT};

use crate::args::Import;
use crate::exit::{Exit, Stop};
use crate::link::{Link, refusal};
use crate::output::{Output, one_line, print_json};

/// `consort import`.
pub fn import(command: &Import) -> Result<(), Stop> {
    let Import::CcInsights { file, json } = command;
    let text = read(file)?;
    // Asking again is harmless: what is there already is left alone.
    let call = Call::ImportProfiles { from: ImportSource::CcInsights, text };
    let imported: ImportedProfiles = Link::new()?.call(&call).map_err(|error| about(file, error))?;
    if *json {
        return print_json(&imported);
    }
    let mut output = Output::human();
    for line in report(&imported) {
        output.line(&one_line(&line))?;
    }
    output.flush()
}

/// The text of a file that is small enough to be settings. Never more than that is read, whatever the file is.
fn read(file: &Path) -> Result<String, Stop> {
    let shown = file.display();
    let failed = |error| Stop::failed(format!("{shown} cannot be read: {error}"));
    let mut bytes = Vec::new();
    File::open(file).map_err(failed)?.take(MAX_IMPORT as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() > MAX_IMPORT {
        let limit = MAX_IMPORT >> 20;
        return Err(Stop::failed(format!("{shown} has more than {limit} MiB, which no settings have")));
    }
    String::from_utf8(bytes)
        .map_err(|_| Stop::failed(format!("{shown} is not a text in UTF-8; nothing was imported")))
}

/// Says which file a refusal is about.
fn about(file: &Path, error: ClientError) -> Stop {
    match refusal(&error) {
        Some(refusal) => Stop::new(Exit::Refused, format!("{}: {refusal}", file.display())),
        None => error.into(),
    }
}

fn report(imported: &ImportedProfiles) -> Vec<String> {
    let mut lines = Vec::new();
    match &imported.added[..] {
        [] => lines.push("nothing new: every profile is there already".to_owned()),
        added => lines.push(format!("added: {}", added.join(", "))),
    }
    if !imported.added.is_empty() && !imported.present.is_empty() {
        lines.push(format!("there already: {}", imported.present.join(", ")));
    }
    lines.extend(imported.default.iter().map(|id| format!("default: {id}")));
    lines.extend(imported.notes.iter().map(|note| format!("note: {note}")));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_settings_file_is_said_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.json");
        let said = || read(&path).unwrap_err().message.unwrap();
        assert!(said().contains("config.json cannot be read: "));
        std::fs::write(&path, vec![b' '; MAX_IMPORT + 1]).unwrap();
        assert!(said().contains("config.json has more than 4 MiB"));
        std::fs::write(&path, [0xff, 0xfe]).unwrap();
        assert!(said().contains("is not a text in UTF-8"));
        assert!(read(Path::new("/dev/zero")).unwrap_err().message.unwrap().contains("more than 4 MiB"));
        assert!(read(dir.path()).unwrap_err().message.unwrap().contains("cannot be read"));
    }

    #[test]
    fn the_report_says_what_happened() {
        let mut imported = ImportedProfiles {
            added: vec!["gemini".into(), "claude-2".into()],
            present: vec!["claude".into()],
            default: Some("gemini".into()),
            notes: vec!["odd".into()],
        };
        let expected = ["added: gemini, claude-2", "there already: claude", "default: gemini", "note: odd"];
        assert_eq!(report(&imported), expected);
        imported.added.clear();
        assert_eq!(report(&imported)[0], "nothing new: every profile is there already");
    }
}
