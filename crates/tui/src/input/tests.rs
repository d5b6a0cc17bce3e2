use proptest::prelude::*;

use super::*;

fn decode(bytes: &[u8]) -> Vec<Input> {
    let mut decoder = Decoder::default();
    let mut out = Vec::new();
    decoder.feed(bytes, &mut out);
    decoder.settle(&mut out);
    out
}

fn key(code: Code, control: bool, alt: bool, shift: bool) -> Input {
    Input::Key(Key { code, held: Held { control, alt, shift } })
}

#[test]
fn keys_are_known_in_every_form_that_terminals_send() {
    let cases: &[(&[u8], Input)] = &[
        (b"a", key(Code::Char('a'), false, false, false)),
        ("ü".as_bytes(), key(Code::Char('ü'), false, false, false)),
        ("漢".as_bytes(), key(Code::Char('漢'), false, false, false)),
        (b"\r", key(Code::Enter, false, false, false)),
        (b"\n", key(Code::Char('j'), true, false, false)),
        (b"\x10", key(Code::Char('p'), true, false, false)),
        (b"\x1b", key(Code::Escape, false, false, false)),
        (b"\x1bx", key(Code::Char('x'), false, true, false)),
        (b"\x1b\r", key(Code::Enter, false, true, false)),
        (b"\x1b[A", key(Code::Up, false, false, false)),
        (b"\x1bOA", key(Code::Up, false, false, false)),
        (b"\x1b[1;3A", key(Code::Up, false, true, false)),
        (b"\x1b\x1b[A", key(Code::Up, false, true, false)),
        (b"\x1b[1;5D", key(Code::Left, true, false, false)),
        (b"\x1b[Z", key(Code::Tab, false, false, true)),
        (b"\x1b[5~", key(Code::PageUp, false, false, false)),
        (b"\x1b[15~", key(Code::Function(5), false, false, false)),
        (b"\x1b[13;2u", key(Code::Enter, false, false, true)),
        (b"\x1b[112;5u", key(Code::Char('p'), true, false, false)),
        (b"\x1b[97;2u", key(Code::Char('A'), false, false, false)),
        (b"\x1b[27;2;13~", key(Code::Enter, false, false, true)),
        (b"\x1b[I", Input::Focus(true)),
        (b"\x1b[O", Input::Focus(false)),
        (b"\x1b]11;rgb:ffff/ffff/eeee\x1b\\", Input::Background { light: true }),
        (b"\x1b]11;rgb:1e/1e/2e\x07", Input::Background { light: false }),
        (b"\x1bP>|kitty(0.42.1)\x1b\\", Input::Terminal { name: "kitty(0.42.1)".into() }),
    ];
    for (bytes, wanted) in cases {
        assert_eq!(decode(bytes), std::slice::from_ref(wanted), "{:?}", String::from_utf8_lossy(bytes));
    }
}

#[test]
fn a_sequence_that_comes_slowly_is_waited_for_and_a_lone_key_is_not() {
    let mut decoder = Decoder::default();
    let mut out = Vec::new();
    assert_eq!(decoder.patience(), None);
    decoder.feed(b"\x1bP>|xte", &mut out);
    assert_eq!(decoder.patience(), Some(FOR_A_SEQUENCE));
    decoder.feed(b"rm(390)\x1b\\", &mut out);
    assert_eq!(out, [Input::Terminal { name: "xterm(390)".into() }]);
    assert_eq!(decode(b"\x1b\x1b"), [Code::Escape; 2].map(|code| key(code, false, false, false)));
    decoder.feed(&"ü".as_bytes()[..1], &mut out);
    assert_eq!(decoder.patience(), Some(FOR_A_SEQUENCE), "half a character");
    for letter in ['P', ']', '_', '^', 'X', 'O', '['] {
        let mut decoder = Decoder::default();
        let mut out = Vec::new();
        decoder.feed(format!("\x1b{letter}").as_bytes(), &mut out);
        assert_eq!(decoder.patience(), Some(FOR_A_KEY), "{letter}");
        decoder.settle(&mut out);
        assert_eq!(out, [key(Code::Char(letter), false, true, false)]);
        assert_eq!(decoder.patience(), None);
    }
}

#[test]
fn answers_and_unknown_sequences_type_nothing() {
    let cases: &[&[u8]] =
        &[b"\x1b[?1;2c", b"\x1b[?0u", b"\x1bP1$r0m\x1b\\", b"\x1b[12;40R", b"\x1b[99;99z", b"\x1b[97;1:3u"];
    for bytes in cases {
        assert_eq!(decode(bytes), [], "{:?}", String::from_utf8_lossy(bytes));
    }
}

#[test]
fn the_mouse_is_told_with_its_place() {
    let wheel = decode(b"\x1b[<64;10;5M");
    assert_eq!(wheel, [Input::Mouse(Mouse { act: MouseAct::WheelUp, x: 9, y: 4, held: Held::default() })]);
    assert!(matches!(&decode(b"\x1b[<0;1;1m")[..], [Input::Mouse(Mouse { act: MouseAct::Release, .. })]));
}

#[test]
fn a_paste_is_one_thing_whatever_is_in_it() {
    let text = "line one\n\x1b[A line two \x1b[201 ü";
    let bytes = [PASTE_BEGIN, text.as_bytes(), PASTE_END, b"x"].concat();
    let wanted = vec![Input::Paste(text.to_owned()), key(Code::Char('x'), false, false, false)];
    assert_eq!(decode(&bytes), wanted);
    let mut decoder = Decoder::default();
    let mut out = Vec::new();
    for byte in &bytes {
        decoder.feed(&[*byte], &mut out);
    }
    assert_eq!(out, wanted);
}

proptest! {
    #[test]
    fn however_the_bytes_are_cut_the_same_comes_out(
        pieces in proptest::collection::vec(prop_oneof![
            Just(b"\x1b[A".to_vec()), Just(b"\x1b[200~hi\x1b[201~".to_vec()), Just("ü漢".as_bytes().to_vec()),
            Just(b"\x1b[<0;3;4M".to_vec()), Just(b"q".to_vec()), Just(b"\x1b]11;rgb:0/0/0\x07".to_vec()),
        ], 1..8),
        cut in 1usize..7,
    ) {
        let bytes = pieces.concat();
        let mut decoder = Decoder::default();
        let mut out = Vec::new();
        for piece in bytes.chunks(cut) {
            decoder.feed(piece, &mut out);
        }
        decoder.settle(&mut out);
        prop_assert_eq!(out, decode(&bytes));
    }

    #[test]
    fn garbage_is_survived(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        decode(&bytes);
    }
}
