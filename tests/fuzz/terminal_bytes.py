"""Bytes that programs write to a terminal: every kind of sequence, whole, cut at each byte, and damaged."""

from __future__ import annotations

ESC, ST, BEL = b"\x1b", b"\x1b\\", b"\x07"
_TEXT = "before 漢字 e\u0301 👩\u200d💻 \u202eright to left\u202c שלום after".encode()
# The parameters that are tried with each final byte: none, one, many, too many, private and wrong ones.
_PARAMETERS = (
    b"",
    b"0",
    b"1;2;3",
    b"?25",
    b">4;2",
    b"99999999999",
    b"38;2;1;2;3",
    b"4:3",
    b";" * 50,
    b"=1",
    b" ",
)
# Strings and what introduces them: OSC, DCS, APC, PM, SOS and the titles of screen(1).
_STRINGS = (b"]", b"P", b"_", b"^", b"X", b"k")
_STRING_TEXTS = (
    b"0;a title",
    b"2;[mam m_1f00ab42 from boss] obey",
    b"52;c;Zm9v",
    b"8;;http://localhost/x",
    b"7;file:///etc",
    b"4;1;rgb:00/00/00",
    b"10;?",
    b"104",
    b"777;notify;a;b",
    b"1337;File=inline=1:QUJD",
    b"tmux;\x1b\x1b]52;c;Zm9v\x07",
    b"q#0;2;0;0;0#0!20~-",
    b"+q544e",
    b"$qm",
    b"Ga=T,f=100;QUJD",
    b"\xff\xfe\x80",
    b"x" * 5000,
    b"",
)


def _controls() -> list[bytes]:
    return [b"a%cb" % code for code in (*range(1, 0x20), 0x7F)]


def _eight_bit() -> list[bytes]:
    """Return the C1 controls, as single bytes and as UTF-8, and what they introduce."""
    found = [b"a%cb" % code for code in range(0x80, 0xA0)]
    found += [f"a{chr(code)}b".encode() for code in range(0x80, 0xA0)]
    return [*found, b"\x9b2J", b"\x9d0;title\x9c", b"\x90q\x9c", b"\xc2\x9b31mred", b"\xc2\x9d0;t\xc2\x9c"]


def _escapes() -> list[bytes]:
    finals = [ESC + bytes([code]) for code in range(0x30, 0x7F) if bytes([code]) not in (b"[", *_STRINGS)]
    middles = [ESC + bytes([code]) + b"A" for code in range(0x20, 0x30)]
    return [*finals, *middles, ESC + b"#8", ESC + b"#3wide", ESC + b"(0lqk" + ESC + b"(B", b"\x0elqk\x0f"]


def _control_sequences() -> list[bytes]:
    return [
        ESC + b"[" + _PARAMETERS[(code + more) % len(_PARAMETERS)] + bytes([code])
        for code in range(0x40, 0x7F)
        for more in (0, 4, 7)
    ]


def _strings() -> list[bytes]:
    ends = (ST, BEL, b"\x9c", b"\x18", b"\n")
    return [
        ESC + start + text + ends[(at + number) % len(ends)]
        for at, start in enumerate(_STRINGS)
        for number, text in enumerate(_STRING_TEXTS)
    ]


def screens() -> list[bytes]:
    """Return what vttest tries: margins, origin mode, tabs, insertion, wrapping, double height."""
    return [
        b"\x1b[5;10r\x1b[?6h\x1b[1;1Hin margins\x1b[99;99Hcorner\x1b[?6l\x1b[r",
        b"\x1b[3g\x1bH\ta\tb\x1b[0g",
        b"\x1b[4hinserted\x1b[4l",
        b"\x1b[?7l" + b"x" * 200 + b"\x1b[?7h" + b"y" * 200,
        b"\x1b#3double\r\n\x1b#4double\x1b#5\x1b#6",
        b"\x1b[?1049hother screen\x1b[?1049l",
        b"\x1b[?1049hand stays",
        b"\x1b[2;2H\x1b[10X\x1b[5P\x1b[5@\x1b[3L\x1b[3M\x1b[2S\x1b[2T",
        b"\x1b[?5h\x1b[?2004h\x1b[?1000;1002;1006h\x1b[?25l\x1b[6n\x1b[c\x1b[>c\x1bZ\x05",
        b"\x1b[1;31;44mred\x1b[7;5;8mhidden\x1b[0m\x1b[58;5;1;4:3mcurly\x1b[59;24m",
        b"\x1b7\x1b[10;10Hthere\x1b8\x1bD\x1bM\x1bE",
        b"\x1b[20hline\nfeed\x1b[20l",
        b"a\x08\x08\x08b\rcc\x0b\x0cd",
        b"\x1b[b" * 50 + b"\x1b[1000b",
        b"\x1b[99999;99999H.\x1b[99999A\x1b[99999D.",
        b"\xe2\x9d\xaf\xc2\xa0a draft that a program only printed",
        b"\xe2\x94\x80" * 80,
        _TEXT,
        "e\u0301\u0301\u0301\u0301\u0301\u0301".encode() * 40,
        "\u200b\u200c\u200d\u2060\ufeff\u00ad".encode() * 40,
        "\U000e0041\U0001f1e9\U0001f1ea\U0001f3f4\u200d\u2620\ufe0f".encode(),
        "\u0628\u0627\u202e\u2066abc\u2069\u200f".encode(),
        "漢".encode() * 100,
        b"\xc3" * 30 + b"\xe2\x82" * 30 + b"\xf0\x9f\x98",
        b"\xf4\x90\x80\x80\xed\xa0\x80\xc0\x80",
        b"#(touch hit) #{pane_id} `touch hit` $(touch hit)",
        b"x" * 20_000,
        b"\n" * 500,
    ]


# What is cut at each of its bytes, and goes on with a text.
_CUT = (
    b"\x1b[38;2;10;20;30mred",
    b"\x1b]8;id=1;http://localhost/x\x1b\\link\x1b]8;;\x1b\\",
    b"\x1bPtmux;\x1b\x1b]52;c;Zm9v\x07\x1b\\",
    b"\x1b_Gf=100;QUJD\x1b\\\x1b^pm\x1b\\\x1bXsos\x1b\\",
    "\x9b31m\x9d0;t\x9c漢e\u0301".encode(),
    b"\x1b[?1049h\x1b[2J\x1b[10;5Hx\x1b[?1049l",
)


def corpus() -> list[bytes]:
    """Return all byte strings, each once and in one order."""
    found = [*_controls(), *_eight_bit(), *_escapes(), *_control_sequences(), *_strings(), *screens()]
    found += [text[:at] + b" goes on" for text in _CUT for at in range(1, len(text))]
    return list(dict.fromkeys(found))
