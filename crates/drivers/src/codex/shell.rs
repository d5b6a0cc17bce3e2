//! Commands as people wrote them: without the shell that the app server puts around each.

/// The script in `/bin/bash -lc 'script'`; the whole command where it has another form.
pub fn script(command: &str) -> String {
    inner(command).unwrap_or_else(|| command.to_owned())
}

fn inner(command: &str) -> Option<String> {
    let (program, rest) = command.split_once(' ')?;
    let shell = program.rsplit('/').next()?;
    if !matches!(shell, "sh" | "bash" | "zsh" | "dash" | "ash" | "fish") {
        return None;
    }
    let word = rest.strip_prefix("-lc ").or_else(|| rest.strip_prefix("-c "))?;
    unquote(word)
}

/// One shell word without its quotes; none if there is more than one word, or anything that a shell would expand.
fn unquote(word: &str) -> Option<String> {
    let mut plain = String::new();
    let mut chars = word.chars();
    while let Some(c) = chars.next() {
        match c {
            '\'' => loop {
                match chars.next()? {
                    '\'' => break,
                    c => plain.push(c),
                }
            },
            '"' => loop {
                match chars.next()? {
                    '"' => break,
                    '\\' => match chars.next()? {
                        c @ ('"' | '\\' | '$' | '`') => plain.push(c),
                        c => {
                            plain.push('\\');
                            plain.push(c);
                        }
                    },
                    '$' | '`' => return None,
                    c => plain.push(c),
                }
            },
            '\\' => plain.push(chars.next()?),
            c if c.is_whitespace() || "$`|&;<>()*?[]{}~#!".contains(c) => return None,
            c => plain.push(c),
        }
    }
    (!plain.trim().is_empty()).then_some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shell_around_a_command_is_taken_off_only_where_nothing_is_lost() {
        let table = [
            ("/bin/bash -lc 'echo a > b && cat b'", "echo a > b && cat b"),
            ("bash -lc ls", "ls"),
            ("/bin/zsh -c 'it'\\''s'", "it's"),
            (r#"/bin/sh -c "say \"x\" \$HOME \n""#, r#"say "x" $HOME \n"#),
            ("/bin/bash -lc 'a' b", "/bin/bash -lc 'a' b"),
            ("/bin/bash -lc \"$HOME\"", "/bin/bash -lc \"$HOME\""),
            ("/bin/bash -lc 'open", "/bin/bash -lc 'open"),
            ("/bin/bash -lc ''", "/bin/bash -lc ''"),
            ("git status", "git status"),
            ("", ""),
        ];
        for (command, expected) in table {
            assert_eq!(script(command), expected, "{command}");
        }
    }
}
