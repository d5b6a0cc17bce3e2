//! What a terminal sends: bytes in, keys, mouse events and pastes out.
//!
//! Owns the decoding alone and never reads by itself, so the loop can wait for everything in one place. Understands plain
//! keys as terminals have always sent them, xterm's modifiers, the kitty keyboard protocol, SGR mouse reports, bracketed
//! paste, focus reports and the answers to the questions for the background colour and the terminal's name. What it does
//! not know is swallowed whole, so that no half of a sequence is ever typed into a prompt.

use std::time::Duration;

/// Something that came from the terminal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Input {
    /// A key was pressed.
    Key(Key),
    /// The mouse did something.
    Mouse(Mouse),
    /// Text was pasted.
    Paste(String),
    /// The terminal has the focus, or lost it.
    Focus(bool),
    /// The terminal's background is light, or dark.
    Background {
        /// Which of the two.
        light: bool,
    },
    /// What the terminal calls itself.
    Terminal {
        /// Its name, and mostly its version.
        name: String,
    },
}

/// A key with what was held down.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Key {
    /// The key itself.
    pub code: Code,
    /// What was held down.
    pub held: Held,
}

/// Which key.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Code {
    /// One that writes a character.
    Char(char),
    /// Enter.
    Enter,
    /// Tab.
    Tab,
    /// Escape.
    Escape,
    /// Backspace.
    Backspace,
    /// Delete.
    Delete,
    /// Insert.
    Insert,
    /// Home.
    Home,
    /// End.
    End,
    /// Page up.
    PageUp,
    /// Page down.
    PageDown,
    /// Arrow up.
    Up,
    /// Arrow down.
    Down,
    /// Arrow left.
    Left,
    /// Arrow right.
    Right,
    /// A function key.
    Function(u8),
}

/// The modifiers that are held down.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Held {
    /// Control.
    pub control: bool,
    /// Alt, or Meta.
    pub alt: bool,
    /// Shift; not told for keys that write a character.
    pub shift: bool,
}

impl Key {
    /// A key with nothing held down.
    pub const fn plain(code: Code) -> Self {
        Self { code, held: Held { control: false, alt: false, shift: false } }
    }

    /// With Control.
    pub const fn control(letter: char) -> Self {
        Self { code: Code::Char(letter), held: Held { control: true, alt: false, shift: false } }
    }

    /// With Alt.
    pub const fn alt(code: Code) -> Self {
        Self { code, held: Held { control: false, alt: true, shift: false } }
    }

    /// The character it writes, if it writes one.
    pub fn writes(self) -> Option<char> {
        match self.code {
            Code::Char(letter) if !self.held.control && !self.held.alt => Some(letter),
            _ => None,
        }
    }
}

/// A mouse event; places are counted from 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mouse {
    /// What it did.
    pub act: MouseAct,
    /// The column.
    pub x: u16,
    /// The row.
    pub y: u16,
    /// What was held down.
    pub held: Held,
}

/// What the mouse did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MouseAct {
    /// The left button went down.
    Press,
    /// The middle button went down.
    MiddlePress,
    /// The right button went down.
    RightPress,
    /// It moved with the left button down.
    Drag,
    /// A button went up.
    Release,
    /// The wheel turned up.
    WheelUp,
    /// The wheel turned down.
    WheelDown,
}

/// How long a lone Escape, or one with a letter, may wait for what follows it.
const FOR_A_KEY: Duration = Duration::from_millis(30);

/// How long a sequence that has begun may wait for its end.
const FOR_A_SEQUENCE: Duration = Duration::from_secs(1);

/// The longest sequence that is waited for, in bytes; a longer one is not one.
const MAX_SEQUENCE: usize = 4096;

/// The longest paste, in bytes; the rest of a longer one is left out.
const MAX_PASTE: usize = 8 << 20;

const PASTE_BEGIN: &[u8] = b"\x1b[200~";
const PASTE_END: &[u8] = b"\x1b[201~";

/// Decodes a stream of bytes, however it is cut into pieces.
#[derive(Default)]
pub struct Decoder {
    waiting: Vec<u8>,
    paste: Option<Vec<u8>>,
}

enum Step {
    /// These bytes are done with.
    Took(usize, Option<Input>),
    /// More bytes are needed.
    More,
}

impl Decoder {
    /// Takes in bytes.
    pub fn feed(&mut self, bytes: &[u8], out: &mut Vec<Input>) {
        self.waiting.extend_from_slice(bytes);
        let mut at = 0;
        loop {
            let rest = self.waiting.get(at..).unwrap_or_default();
            if let Some(mut paste) = self.paste.take() {
                let end = rest.windows(PASTE_END.len()).position(|window| window == PASTE_END);
                // What may be the begin of the paste's end stays for the next bytes.
                let upto = end.unwrap_or(rest.len().saturating_sub(PASTE_END.len() - 1));
                keep_pasted(&mut paste, &rest[..upto]);
                at += upto;
                if end.is_none() {
                    self.paste = Some(paste);
                    break;
                }
                at += PASTE_END.len();
                out.push(Input::Paste(String::from_utf8_lossy(&paste).into_owned()));
                continue;
            }
            if rest.is_empty() {
                break;
            }
            if rest.starts_with(PASTE_BEGIN) {
                at += PASTE_BEGIN.len();
                self.paste = Some(Vec::new());
                continue;
            }
            match step(rest) {
                Step::Took(count, input) => {
                    at += count.max(1);
                    out.extend(input);
                }
                Step::More if rest.len() > MAX_SEQUENCE => at += rest.len(),
                Step::More => break,
            }
        }
        self.waiting.drain(..at.min(self.waiting.len()));
    }

    /// How long to wait for the rest of what came; none if nothing waits. What may be a key by itself waits for a moment, a
    /// sequence that has begun as long as a slow line takes to bring the rest, which would be typed otherwise.
    pub fn patience(&self) -> Option<Duration> {
        match self.waiting.as_slice() {
            [] => None,
            _ if self.paste.is_some() => None,
            [0x1b] | [0x1b, _] => Some(FOR_A_KEY),
            _ => Some(FOR_A_SEQUENCE),
        }
    }

    /// Nothing followed: what waits is what it is.
    pub fn settle(&mut self, out: &mut Vec<Input>) {
        if self.paste.is_some() {
            return;
        }
        let waiting = std::mem::take(&mut self.waiting);
        match waiting.as_slice() {
            [0x1b] => out.push(Input::Key(Key::plain(Code::Escape))),
            [0x1b, 0x1b] => out.extend([Code::Escape; 2].map(|code| Input::Key(Key::plain(code)))),
            [0x1b, b'['] => out.push(Input::Key(Key::alt(Code::Char('[')))),
            // The letters that begin a sequence after Escape are keys with Alt where nothing follows.
            [0x1b, letter @ (b'O' | b'P' | b'X' | b']' | b'^' | b'_')] => {
                out.push(Input::Key(Key::alt(Code::Char(char::from(*letter)))));
            }
            _ => {}
        }
    }
}

fn keep_pasted(paste: &mut Vec<u8>, bytes: &[u8]) {
    let room = MAX_PASTE.saturating_sub(paste.len());
    paste.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
}

fn step(bytes: &[u8]) -> Step {
    match bytes {
        [] => Step::More,
        [0x1b] => Step::More,
        [0x1b, b'[', rest @ ..] => csi(rest),
        [0x1b, b'O', rest @ ..] => match rest {
            [] => Step::More,
            [letter, ..] => Step::Took(3, ss3(*letter).map(|code| Input::Key(Key::plain(code)))),
        },
        [0x1b, b']', rest @ ..] => osc(rest),
        [0x1b, b'P' | b'_' | b'^' | b'X', rest @ ..] => match string_end(rest) {
            Some((text, end)) => Step::Took(2 + end, named(&rest[..text])),
            None => Step::More,
        },
        [0x1b, 0x1b] => Step::More,
        [0x1b, 0x1b, b'[' | b'O', ..] => match step(&bytes[1..]) {
            Step::Took(count, Some(Input::Key(key))) => {
                Step::Took(count + 1, Some(Input::Key(Key { held: Held { alt: true, ..key.held }, ..key })))
            }
            Step::Took(count, other) => Step::Took(count + 1, other),
            Step::More => Step::More,
        },
        [0x1b, 0x1b, ..] => Step::Took(1, Some(Input::Key(Key::plain(Code::Escape)))),
        [0x1b, ..] => match step(&bytes[1..]) {
            Step::Took(count, Some(Input::Key(key))) => {
                Step::Took(count + 1, Some(Input::Key(Key { held: Held { alt: true, ..key.held }, ..key })))
            }
            Step::Took(count, other) => Step::Took(count + 1, other),
            Step::More => Step::More,
        },
        [byte, ..] => plain(*byte, bytes),
    }
}

fn plain(byte: u8, bytes: &[u8]) -> Step {
    let key = |key: Key| Step::Took(1, Some(Input::Key(key)));
    match byte {
        b'\r' => key(Key::plain(Code::Enter)),
        b'\t' => key(Key::plain(Code::Tab)),
        0x7f => key(Key::plain(Code::Backspace)),
        0 => key(Key::control(' ')),
        1..=26 => key(Key::control(char::from(byte - 1 + b'a'))),
        0x1c..=0x1f => key(Key::control(char::from(byte - 0x1c + b'4'))),
        0x20..=0x7e => key(Key::plain(Code::Char(char::from(byte)))),
        _ => character(bytes),
    }
}

/// A character of several bytes.
fn character(bytes: &[u8]) -> Step {
    let length = match bytes.first() {
        Some(0xc2..=0xdf) => 2,
        Some(0xe0..=0xef) => 3,
        Some(0xf0..=0xf4) => 4,
        _ => return Step::Took(1, None),
    };
    let there = bytes.get(..length.min(bytes.len())).unwrap_or_default();
    match std::str::from_utf8(there) {
        Ok(text) => {
            let key = text.chars().next().map(|letter| Input::Key(Key::plain(Code::Char(letter))));
            Step::Took(length, key)
        }
        Err(error) if error.error_len().is_none() => Step::More,
        Err(_) => Step::Took(1, None),
    }
}

fn ss3(letter: u8) -> Option<Code> {
    Some(match letter {
        b'A' => Code::Up,
        b'B' => Code::Down,
        b'C' => Code::Right,
        b'D' => Code::Left,
        b'H' => Code::Home,
        b'F' => Code::End,
        b'M' => Code::Enter,
        b'P'..=b'S' => Code::Function(letter - b'P' + 1),
        _ => return None,
    })
}

/// A sequence after `ESC [`.
fn csi(rest: &[u8]) -> Step {
    let Some(end) = rest.iter().position(|byte| (0x40..=0x7e).contains(byte)) else {
        // A byte that cannot stand in a sequence ends the attempt.
        return match rest.iter().position(|byte| !(0x20..=0x7e).contains(byte)) {
            Some(at) => Step::Took(2 + at, None),
            None => Step::More,
        };
    };
    let (body, last) = (&rest[..end], rest[end]);
    // Linux's console sends `ESC [ [ A` for F1.
    if last == b'[' {
        return match rest.get(end + 1) {
            Some(_) => Step::Took(2 + end + 2, None),
            None => Step::More,
        };
    }
    let took = 2 + end + 1;
    let text = String::from_utf8_lossy(body);
    if let Some(report) = text.strip_prefix('<') {
        return Step::Took(took, mouse(report, last));
    }
    if text.starts_with(['?', '>', '=']) {
        return Step::Took(took, None);
    }
    let parameters: Vec<Vec<u32>> = text
        .split(';')
        .map(|parameter| parameter.split(':').map(|number| number.parse().unwrap_or(0)).collect())
        .collect();
    let number = |at: usize| parameters.get(at).and_then(|numbers| numbers.first()).copied().unwrap_or(0);
    let held = held(number(1));
    let released = parameters.get(1).and_then(|numbers| numbers.get(1)) == Some(&3);
    let key = |code: Code| (!released).then_some(Input::Key(Key { code, held }));
    let input = match last {
        b'A'..=b'D' | b'H' | b'F' | b'P' | b'Q' | b'S' => ss3(last).and_then(key),
        b'Z' => Some(Input::Key(Key { code: Code::Tab, held: Held { shift: true, ..held } })),
        b'I' if body.is_empty() => Some(Input::Focus(true)),
        b'O' if body.is_empty() => Some(Input::Focus(false)),
        b'~' => tilde(number(0), number(2)).and_then(key),
        b'u' => coded(number(0)).and_then(|code| match code {
            // Shift is in the character already.
            Code::Char(letter) => {
                let letter = if held.shift { shifted(letter) } else { letter };
                let held = Held { shift: false, ..held };
                (!released).then_some(Input::Key(Key { code: Code::Char(letter), held }))
            }
            code => key(code),
        }),
        _ => None,
    };
    Step::Took(took, input)
}

fn shifted(letter: char) -> char {
    let mut upper = letter.to_uppercase();
    match (upper.next(), upper.next()) {
        (Some(one), None) => one,
        _ => letter,
    }
}

/// Xterm's modifiers: one more than their bits.
fn held(parameter: u32) -> Held {
    let bits = parameter.saturating_sub(1);
    Held { shift: bits & 1 != 0, alt: bits & (2 | 32) != 0, control: bits & 4 != 0 }
}

fn tilde(number: u32, coded_as: u32) -> Option<Code> {
    Some(match number {
        1 | 7 => Code::Home,
        2 => Code::Insert,
        3 => Code::Delete,
        4 | 8 => Code::End,
        5 => Code::PageUp,
        6 => Code::PageDown,
        11..=15 => Code::Function(number as u8 - 10),
        17..=21 => Code::Function(number as u8 - 11),
        23 | 24 => Code::Function(number as u8 - 12),
        27 => return coded(coded_as),
        _ => return None,
    })
}

/// A key by its code point, as kitty's protocol and xterm's `modifyOtherKeys` say it.
fn coded(point: u32) -> Option<Code> {
    Some(match point {
        9 => Code::Tab,
        13 | 57414 => Code::Enter,
        27 => Code::Escape,
        8 | 127 => Code::Backspace,
        // The keypad.
        57399..=57408 => Code::Char(char::from_digit(point - 57399, 10)?),
        57417 => Code::Left,
        57418 => Code::Right,
        57419 => Code::Up,
        57420 => Code::Down,
        57421 => Code::PageUp,
        57422 => Code::PageDown,
        57423 => Code::Home,
        57424 => Code::End,
        57426 => Code::Delete,
        57344..=63743 => return None,
        point => Code::Char(char::from_u32(point).filter(|letter| !letter.is_control())?),
    })
}

fn mouse(report: &str, last: u8) -> Option<Input> {
    let mut numbers = report.split(';').map(|number| number.parse::<u16>());
    let (Some(Ok(button)), Some(Ok(x)), Some(Ok(y))) = (numbers.next(), numbers.next(), numbers.next())
    else {
        return None;
    };
    let act = match (button & !(4 | 8 | 16), last) {
        (64, _) => MouseAct::WheelUp,
        (65, _) => MouseAct::WheelDown,
        (0..=2, b'm') => MouseAct::Release,
        (0, _) => MouseAct::Press,
        (1, _) => MouseAct::MiddlePress,
        (2, _) => MouseAct::RightPress,
        (32, _) => MouseAct::Drag,
        _ => return None,
    };
    let held = Held { shift: button & 4 != 0, alt: button & 8 != 0, control: button & 16 != 0 };
    Some(Input::Mouse(Mouse { act, x: x.saturating_sub(1), y: y.saturating_sub(1), held }))
}

/// Where a string that ends with BEL or `ESC \` ends: without and with its end.
fn string_end(rest: &[u8]) -> Option<(usize, usize)> {
    let end = rest.iter().position(|byte| matches!(byte, 0x07 | 0x1b))?;
    match rest[end] {
        0x07 => Some((end, end + 1)),
        _ => rest.get(end + 1).map(|_| (end, end + 2)),
    }
}

/// The answer to the question what the terminal is.
fn named(text: &[u8]) -> Option<Input> {
    let name = text.strip_prefix(b">|")?;
    Some(Input::Terminal { name: String::from_utf8_lossy(name).into_owned() })
}

fn osc(rest: &[u8]) -> Step {
    let Some((end, with_end)) = string_end(rest) else { return Step::More };
    let text = String::from_utf8_lossy(&rest[..end]);
    let input = text
        .strip_prefix("11;")
        .and_then(|answer| answer.trim_start_matches("rgba:").trim_start_matches("rgb:").parse_colour())
        .map(|light| Input::Background { light });
    Step::Took(2 + with_end, input)
}

trait ParseColour {
    fn parse_colour(&self) -> Option<bool>;
}

impl ParseColour for str {
    /// Whether `rrrr/gggg/bbbb` is light.
    fn parse_colour(&self) -> Option<bool> {
        let mut parts = self.split('/').map(|part| {
            let value = u32::from_str_radix(part, 16).ok()?;
            let most = 16u32.checked_pow(part.len() as u32)?.checked_sub(1).filter(|most| *most > 0)?;
            Some(value as f32 / most as f32)
        });
        let (red, green, blue) = (parts.next()??, parts.next()??, parts.next()??);
        Some(0.299 * red + 0.587 * green + 0.114 * blue > 0.5)
    }
}

#[cfg(test)]
mod tests;
