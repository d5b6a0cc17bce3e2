//! What the tests of this module share: lines as readable text, and text of the worst kind.

use proptest::prelude::*;
use ratatui::style::Style;
use ratatui::text::Line;

use super::theme::Theme;

/// The lines without their styles.
pub fn plain(lines: &[Line<'_>]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// The lines with every style that is not plain text's as `⟨name:text⟩`; several names are joined by `+`.
pub fn marked(lines: &[Line<'_>], theme: &Theme) -> String {
    let mut out = String::new();
    for line in lines {
        for span in &line.spans {
            let style = line.style.patch(span.style);
            if style == theme.text || style == Style::default() {
                out.push_str(&span.content);
            } else {
                out.push_str(&format!("⟨{}:{}⟩", name(style, theme), span.content));
            }
        }
        out.push('\n');
    }
    out
}

fn name(style: Style, theme: &Theme) -> String {
    let styles = theme.styles();
    if let Some((name, _)) = styles.iter().rfind(|(_, named)| *named == style) {
        return (*name).to_owned();
    }
    for (first, under) in &styles {
        for (second, over) in &styles {
            if under.patch(*over) == style {
                return format!("{first}+{second}");
            }
        }
    }
    format!("{style:?}")
}

/// Text of letters, marks, emoji, control characters, escape sequences and everything between.
pub fn wild_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[a-z ]{0,12}",
        2 => prop::sample::select(vec![
            "\n", "\t", "\r\n", "\r", "\x1b[31m", "\x1b]0;title\x07", "\x1b]8;;http://x\x1b\\", "\x1b", "\x1b[", "\x1bP",
            "\u{9b}1m", "\u{202e}", "\u{2066}", "\u{200b}", "\u{200d}", "\u{200c}", "\u{feff}", "\u{ad}", "\u{301}",
            "\u{20e3}", "\u{fe0f}", "\u{fe0e}", "\u{1f3fd}", "🇩", "🇪", "👩‍👩‍👧", "👍🏽", "❤️", "1️⃣", "🏴\u{e0067}\u{e007f}",
            "日本", "、", "「", "한", "\u{1112}", "\u{1161}", "\u{1160}", "\u{115f}", "\u{3164}", "क्ष", "नि", "שלום", "لا",
            "ﾞ", "\u{600}", "\u{fffe}", "\u{2028}", "\u{0}", "\u{7f}", "\u{85}", "\u{a0}", "\u{3000}", "…", "🚀",
        ]).prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..16).prop_map(|pieces| pieces.concat())
}
