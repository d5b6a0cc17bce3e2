//! Programs that run other programs: what a `*` in a command pattern does not stand for.
//!
//! A net, not a wall: whoever allows `python *` allows what Python can do. It catches the usual ways in which a harmless
//! looking program becomes another one.

use super::shell::Word;

/// Programs whose arguments are, or end with, a command.
const WRAPPERS: &[&str] = &[
    ".",
    "alias",
    "arch",
    "aws-vault",
    "bpftrace",
    "builtin",
    "busybox",
    "bwrap",
    "caffeinate",
    "chroot",
    "chrt",
    "command",
    "coproc",
    "dbus-run-session",
    "direnv",
    "doas",
    "entr",
    "env",
    "eval",
    "exec",
    "expect",
    "fakeroot",
    "firejail",
    "flock",
    "gdb",
    "hyperfine",
    "ionice",
    "lldb",
    "ltrace",
    "nice",
    "nohup",
    "nsenter",
    "numactl",
    "op",
    "parallel",
    "perf",
    "pkexec",
    "proxychains",
    "proxychains4",
    "rlwrap",
    "runuser",
    "screen",
    "script",
    "setarch",
    "setpriv",
    "setsid",
    "source",
    "start-stop-daemon",
    "stdbuf",
    "strace",
    "su",
    "sudo",
    "systemd-run",
    "taskset",
    "time",
    "timeout",
    "tmux",
    "torsocks",
    "toybox",
    "trap",
    "unbuffer",
    "unshare",
    "valgrind",
    "watch",
    "watchexec",
    "xargs",
    "xvfb-run",
];

/// Shells: what they run is a script, in a file or in an argument.
const SHELLS: &[&str] =
    &["ash", "bash", "csh", "dash", "fish", "ksh", "mksh", "nu", "pwsh", "rbash", "sh", "tcsh", "zsh"];

/// Options and sub-commands with which a program runs another one, or writes where it should only read.
const GUARDS: &[(&str, &[&str])] = &[
    ("cargo", &["--config"]),
    ("fd", &["-x", "-X", "--exec", "--exec-batch"]),
    ("fdfind", &["-x", "-X", "--exec", "--exec-batch"]),
    ("find", &["-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fprint0", "-fprintf", "-fls"]),
    (
        "git",
        &[
            "-c",
            "-C",
            "-O",
            "-x",
            "--config-env",
            "--exec-path",
            "--git-dir",
            "--work-tree",
            "--upload-pack",
            "--receive-pack",
            "--exec",
            "--ext-diff",
            "--textconv",
            "--open-files-in-pager",
            "--paginate",
            "--output",
            "--extcmd",
            "--tool",
            "--template",
            "--config",
            "config",
            "foreach",
            "run",
            "filter-branch",
            "difftool",
            "mergetool",
            "remote-ext",
            "daemon",
            "instaweb",
        ],
    ),
    ("go", &["-exec", "-toolexec", "-vettool"]),
    ("make", &["--eval", "-f", "--file", "--makefile", "-C", "--directory"]),
    ("man", &["-P", "--pager", "-H", "--html"]),
    ("rg", &["--pre", "--hostname-bin"]),
    ("rsync", &["-e", "--rsh", "--rsync-path"]),
    ("scp", &["-o", "-S", "-F"]),
    ("sed", &["-i", "--in-place"]),
    ("sort", &["-o", "--output", "--compress-program"]),
    ("ssh", &["-o", "-F", "-E"]),
    (
        "tar",
        &[
            "-I",
            "-F",
            "--to-command",
            "--checkpoint-action",
            "--use-compress-program",
            "--info-script",
            "--rsh-command",
        ],
    ),
    ("vim", &["-c", "--cmd", "-S", "-u"]),
];

/// The name of a program without its folder.
pub fn base_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

fn known_as<'a>(program: &'a str, names: &[&str]) -> Option<&'a str> {
    let name = base_name(program);
    names.iter().any(|known| known.eq_ignore_ascii_case(name)).then_some(name)
}

/// Whether a program is a shell.
pub fn is_shell(program: &str) -> bool {
    known_as(program, SHELLS).is_some() || matches!(base_name(program), "eval" | "source" | ".")
}

/// Whether a program is a shell like those that [`shell`](super::shell) reads, where systems keep it.
pub fn is_usual_shell(program: &str) -> bool {
    let name = base_name(program);
    let folder = &program[..program.len() - name.len()];
    matches!(name, "sh" | "bash" | "dash" | "zsh" | "ksh")
        && matches!(folder, "" | "/bin/" | "/usr/bin/" | "/usr/local/bin/" | "/opt/homebrew/bin/")
}

/// How many words of a command a pattern must spell out, because they say which program runs in the end.
pub fn spelled(command: &[Word]) -> usize {
    let mut at = 0;
    loop {
        let Some(program) = command.get(at) else { return command.len() };
        let shell = is_shell(&program.text);
        if !shell && known_as(&program.text, WRAPPERS).is_none() {
            return if at == 0 { 0 } else { at + 1 };
        }
        at += if base_name(&program.text) == "timeout" { 2 } else { 1 };
        // Behind options it takes the program's own grammar to find what it runs.
        let option =
            |word: &Word| word.text.starts_with(['-', '+']) || word.text.contains('=') || !word.known;
        if command.get(at).is_none_or(option) || command.get(at - 1).is_some_and(option) {
            return command.len();
        }
        if shell {
            return at + 1;
        }
    }
}

/// Whether a command may run another one that stands in its words.
pub fn runs_others(command: &[Word]) -> bool {
    let Some(program) = command.first() else { return false };
    let guard = guard(&program.text);
    spelled(command) > 0 || command[1..].iter().any(|word| guard.forbids(word))
}

/// What the gaps of a pattern for a program do not stand for.
pub fn guard(program: &str) -> Guard {
    let name = base_name(program);
    let found = GUARDS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
    Guard(found.map(|(_, words)| *words))
}

/// Words that a pattern must spell out.
#[derive(Clone, Copy)]
pub struct Guard(Option<&'static [&'static str]>);

impl Guard {
    /// Whether a word is, or may become, one of them.
    pub fn forbids(self, word: &Word) -> bool {
        let Some(guarded) = self.0 else { return false };
        let text = word.text.as_str();
        // A glob at its beginning may find a file that is named like an option.
        (!word.known && text.starts_with(['*', '?', '[']))
            || guarded.iter().any(|guarded| is_option(guarded, text))
    }
}

/// Whether a word is this option, also with its value, shortened, or among other letters.
fn is_option(guarded: &str, word: &str) -> bool {
    if let Some(long) = guarded.strip_prefix("--") {
        let Some(name) = word.strip_prefix("--") else { return false };
        let name = name.split_once('=').map_or(name, |(name, _)| name);
        return !name.is_empty() && long.starts_with(name);
    }
    match guarded.strip_prefix('-') {
        Some(letter) if letter.len() == 1 => {
            word.starts_with('-') && !word.starts_with("--") && word[1..].contains(letter)
        }
        Some(name) => word.trim_start_matches('-').split('=').next() == Some(name) && word.starts_with('-'),
        None => word == guarded,
    }
}
