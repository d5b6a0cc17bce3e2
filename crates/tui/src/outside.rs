//! What the screen needs from the machine around it: files, git, the clipboard, the environment.
//!
//! Everything slow here runs on a thread of its own and is bounded in time or size.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use consort_model::Attachment;
use consort_model::image::base64;

use crate::text::picture::Means;
use crate::text::theme::Theme;

/// Files that are listed at most.
const MAX_FILES: usize = 50_000;

/// The largest image that is attached, in bytes.
const MAX_IMAGE: u64 = 20 << 20;

/// The looks that the environment asks for; dark, where it does not say.
pub fn theme_of_environment() -> Theme {
    let set = |key: &str| std::env::var(key).ok().filter(|value| !value.is_empty());
    if set("NO_COLOR").is_some() || set("TERM").is_some_and(|term| term == "dumb") {
        return Theme::no_colour();
    }
    // Some terminals say `foreground;background` by number.
    let light = set("COLORFGBG")
        .and_then(|it| it.rsplit(';').next().map(str::to_owned))
        .is_some_and(|background| matches!(background.as_str(), "7" | "15"));
    if light { Theme::light() } else { Theme::dark() }
}

/// How a terminal shows pictures, before it says what it is.
pub fn means_of_environment() -> Means {
    let colours = std::env::var("COLORTERM").unwrap_or_default();
    Means::Blocks { true_colour: matches!(colours.as_str(), "truecolor" | "24bit") }
}

/// The files under a folder, as git knows them, or else as they are found.
pub fn list_files(folder: &Path) -> Vec<String> {
    let git = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard", "-z"])
        .current_dir(folder)
        .env("GIT_OPTIONAL_LOCKS", "0")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    if let Ok(output) = git
        && output.status.success()
    {
        let names = output.stdout.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        return names.take(MAX_FILES).map(|name| String::from_utf8_lossy(name).into_owned()).collect();
    }
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&next) else { continue };
        for entry in entries.flatten() {
            let name = entry.file_name();
            if name.as_encoded_bytes().starts_with(b".") {
                continue;
            }
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                Ok(kind) if kind.is_file() => {
                    if let Ok(inside) = entry.path().strip_prefix(folder) {
                        found.push(inside.to_string_lossy().into_owned());
                    }
                }
                _ => {}
            }
            if found.len() >= MAX_FILES {
                return found;
            }
        }
    }
    found.sort();
    found
}

/// The branch of a folder, read from git's own files: no process is started for it.
pub fn branch(folder: &Path) -> Option<String> {
    let mut at = Some(folder);
    let git = loop {
        let here = at?.join(".git");
        if here.is_dir() {
            break here;
        }
        if here.is_file() {
            let text = std::fs::read_to_string(&here).ok()?;
            break at?.join(text.strip_prefix("gitdir:")?.trim());
        }
        at = at?.parent();
    };
    let head = std::fs::read_to_string(git.join("HEAD")).ok()?;
    let head = head.trim();
    Some(match head.strip_prefix("ref: refs/heads/") {
        Some(branch) => branch.to_owned(),
        None => head.get(..8)?.to_owned(),
    })
}

/// Whether a text is the path of an image, as terminals paste files that are dropped on them.
pub fn is_image_path(text: &str) -> bool {
    let path = Path::new(text);
    let image = path.extension().and_then(|extension| extension.to_str()).is_some_and(|extension| {
        ["png", "jpg", "jpeg", "gif", "webp"].contains(&extension.to_ascii_lowercase().as_str())
    });
    image && path.is_absolute() && path.is_file()
}

/// An image from a file.
pub fn read_image(path: &Path) -> Result<Attachment, String> {
    let problem = |error: std::io::Error| format!("cannot attach {}: {error}", path.display());
    let file = std::fs::File::open(path).map_err(problem)?;
    let mut bytes = Vec::new();
    file.take(MAX_IMAGE + 1).read_to_end(&mut bytes).map_err(problem)?;
    attach_image(&bytes)
}

/// The image in the clipboard, by whichever program can tell.
pub fn clipboard_image() -> Result<Attachment, String> {
    let programs: [&[&str]; 3] = [
        &["wl-paste", "--type", "image/png"],
        &["xclip", "-selection", "clipboard", "-target", "image/png", "-out"],
        &["pngpaste", "-"],
    ];
    for program in programs {
        let output =
            Command::new(program[0]).args(&program[1..]).stdin(Stdio::null()).stderr(Stdio::null()).output();
        if let Ok(output) = output
            && output.status.success()
            && !output.stdout.is_empty()
        {
            return attach_image(&output.stdout);
        }
    }
    Err("there is no image in the clipboard, or no wl-paste, xclip or pngpaste to read it; paste an image's path instead"
        .to_owned())
}

fn attach_image(bytes: &[u8]) -> Result<Attachment, String> {
    if bytes.len() as u64 > MAX_IMAGE {
        return Err(format!("the image is larger than {} MB", MAX_IMAGE >> 20));
    }
    Attachment::image(bytes).ok_or_else(|| "that is neither a PNG, JPEG, GIF nor WebP image".to_owned())
}

/// The sequence that puts a text into the terminal's clipboard, through tmux too.
pub fn copy_sequence(text: &str) -> String {
    let sequence = format!("\x1b]52;c;{}\x07", base64(text.as_bytes()));
    wrapped_for_tmux(&sequence)
}

/// The sequences by which terminals show a notification, and the bell.
pub fn notify_sequence(text: &str) -> String {
    let text: String = text.chars().filter(|letter| !letter.is_control()).take(200).collect();
    let plain = text.replace(';', ",");
    let sequence = format!("\x1b]9;{text}\x07\x1b]777;notify;Consort;{plain}\x07");
    format!("{}\x07", wrapped_for_tmux(&sequence))
}

/// Has the desktop show a notification, by whichever program can.
pub fn notify_desktop(text: &str) -> Result<(), String> {
    let text: String = text.chars().filter(|letter| !letter.is_control()).take(200).collect();
    // The text is an argument in both and never part of a script.
    let script = "on run {text}\ndisplay notification text with title \"Consort\"\nend run";
    let programs: [&[&str]; 2] =
        [&["notify-send", "--app-name=Consort", "--", "Consort", &text], &["osascript", "-e", script, &text]];
    for program in programs {
        let mut command = Command::new(program[0]);
        command.args(&program[1..]).stdin(Stdio::null()).stdout(Stdio::null());
        match command.stderr(Stdio::piped()).output() {
            Ok(output) if output.status.success() => return Ok(()),
            Ok(output) => {
                let said = String::from_utf8_lossy(&output.stderr);
                let said = said.lines().next().unwrap_or("it failed");
                return Err(format!("the desktop shows no notification: {}: {said}", program[0]));
            }
            Err(_) => {}
        }
    }
    Err("the desktop shows no notification: there is no notify-send; install it, or have the terminal notify alone"
        .to_owned())
}

fn wrapped_for_tmux(sequence: &str) -> String {
    if std::env::var_os("TMUX").is_none() {
        return sequence.to_owned();
    }
    // tmux reads OSC 52 itself and passes the rest through where it is allowed to.
    format!("{sequence}\x1bPtmux;{}\x1b\\", sequence.replace('\x1b', "\x1b\x1b"))
}

/// Plays the demo in the terminal, which is lent meanwhile.
pub fn play_demo(program: &Path) -> Result<(), String> {
    println!("the stage for the demo is being set…");
    match Command::new(program).arg("demo").status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("the demo ended with {status}; `consort demo` in a shell says why")),
        Err(error) => Err(format!("the demo cannot be started: {error}")),
    }
}

/// Opens a text in the person's editor; what it is afterwards. The terminal is lent meanwhile.
pub fn edit(text: Option<&str>, file: Option<PathBuf>) -> Result<String, String> {
    let editor =
        ["VISUAL", "EDITOR"].iter().find_map(|key| std::env::var(key).ok().filter(|it| !it.is_empty()));
    let editor = editor.unwrap_or_else(|| "vi".to_owned());
    let scratch = file.is_none();
    let path = file
        .unwrap_or_else(|| std::env::temp_dir().join(format!("consort-prompt-{}.md", uuid::Uuid::now_v7())));
    let problem = |error: std::io::Error| format!("cannot edit {}: {error}", path.display());
    if let Some(text) = text {
        use std::io::Write;
        use std::os::unix::fs::OpenOptionsExt;
        let mut options = std::fs::OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(0o600).open(&path).map_err(problem)?;
        file.write_all(text.as_bytes()).map_err(problem)?;
    }
    // The variable may hold arguments, so the shell reads it.
    let status = Command::new("sh").arg("-c").arg(format!("{editor} \"$1\"")).arg("sh").arg(&path).status();
    let outcome = match status {
        Ok(status) if status.success() => std::fs::read_to_string(&path).map_err(problem),
        Ok(status) => Err(format!("`{editor}` ended with {status}; nothing was changed")),
        Err(error) => Err(format!("cannot start `{editor}`: {error}; set EDITOR to your editor")),
    };
    if scratch {
        // It is in the folder for temporary files either way.
        drop(std::fs::remove_file(&path));
    }
    outcome
}
