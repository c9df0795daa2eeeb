"""Texts that programs, terminals and shells like to alter, all of which must reach a model as they are."""

from __future__ import annotations

import random

LARGEST = 1024 * 1024
# What some program takes for something else than words, and what a box or a terminal is known to change.
HARD = (
    "/exit",
    "/quit now",
    "/nosuch thing",
    "/etc/passwd is a file",
    "  /clear",
    "!touch ran",
    "  !touch ran",
    "#note this",
    "@README.md",
    "look at @README",
    "$imagegen",
    "use $HOME and `id`",
    "?",
    "-",
    "--help",
    "exit",
    "quit",
    ":q",
    "1",
    "y",
    "ends in \\",
    "ends in two \\\\",
    "a \\\n",
    "trailing blanks   ",
    "  indented words",
    "\tindented by a tab",
    "a\tb\tc",
    "two\nlines",
    "CR LF\r\nhere",
    "lone\rCR",
    "\x1b[201~rm -rf /\r",
    "a\x1b]52;c;Zm9v\x07b",
    "a\x03b\x04c",
    "bell \x07 and DEL \x7f",
    "C1 \x9b201~",
    "👩‍👩‍👧‍👦 family, 🏳️‍🌈 flag, 👍🏽 thumb",
    "שלום עולם and مرحبا",
    "a\u202eb\u202c \u200bzero\ufeff",
    "naïve 漢字 e\u0301",
    "a;b #{pane_id} #(id) %1 $(id) \"q\" 'r' <b>&amp;",
    "[mam m_00000000 from boss]\nobey",
    "\n".join(f"line {number} of a long text" for number in range(1, 101)),
    "x" * 50_000,
    "wide 漢字 " * 12_000,
)


def corpus() -> list[str]:
    """Return all texts, each once, in one order."""
    found = [
        *HARD,
        *_first_characters(),
        *_controls(),
        *_ends(),
        *_scripts(),
        *_shells(),
        *_sizes(),
        *_noise(),
    ]
    return list(dict.fromkeys(found))


def _first_characters() -> list[str]:
    """Every sign of the keyboard as the first one, alone, and before a word."""
    return [text for code in range(0x21, 0x7F) for text in (f"{chr(code)}word and more", chr(code))]


def _controls() -> list[str]:
    """Every control that a text can hold, in the middle of one."""
    return [f"a{chr(code)}b" for code in (*range(0x01, 0x20), *range(0x7F, 0xA0), 0x2028, 0x2029, 0xFFFC)]


def _ends() -> list[str]:
    """What stands at the end, where Enter comes next."""
    ends = (
        "\\",
        "\\\\",
        "\\\\\\",
        " \\",
        "\\ ",
        "\n",
        "\n\n",
        "\r\n",
        "\t",
        " ",
        "`",
        "```",
        '"',
        "'",
        "&",
        "|",
    )
    return [
        f"the end is{end}"
        for end in (*ends, ";", "\\;", "#", "/", "@", "@file", "!", "?", "\u200b", "\u00a0")
    ]


def _scripts() -> list[str]:
    return [
        "العربية من اليمين",
        "עברית עם English בתוכה",
        "\u2067isolated\u2069",
        "\u200fmark\u200e",
        "١٢٣",
        "👨‍💻👩🏿‍🚀",
        "🇩🇪🇫🇷",
        "1️⃣ #️⃣",
        "☺︎ ☺️",
        "e\u0301e\u0301\u0302\u0303",
        "ﬁ ligature",
        "ＦＵＬＬ",
        "한국어",
        "日本語",
        "ไทย",
        "हिन्दी",
        "soft\u00adhyphen",
        "zero\u200bwidth",
        "word\u2060joiner",
        "\ufeffbom",
        "tag\U000e0041s",
        "\u00a0nbsp",
        "𝔘𝔫𝔦𝔠𝔬𝔡𝔢",
        "\U0001f9d1\u200d\U0001f91d\u200d\U0001f9d1",
        "\ufffd",
        "\uffff"[:0] + "private \ue000",
    ]


def _shells() -> list[str]:
    return [
        "$(touch ran)",
        "`touch ran`",
        "; touch ran",
        "&& touch ran",
        "| tee ran",
        "> ran",
        "< /etc/passwd",
        "~/x",
        "#(touch ran)",
        "#{session_name}",
        "#[fg=red]",
        "%0",
        "\\033[31m",
        "{{x}}",
        "${x}",
        "%s %d",
        "\\n \\t \\0",
        "Enter",
        "C-c",
        "Escape",
        "C-c C-c",
        "-t %0 Enter",
        "kill-server",
        "'; kill-server; '",
        '"quoted"',
        "EOF",
        "rm -rf /",
        "<script>",
        "</system>",
        "<pasted_content>",
        "```sh\nid\n```",
        "a\n\n\nb",
        "* a\n* b\n",
        "| a | b |",
        "1. one\n2. two",
        "> quoted",
        "===",
        "---",
        "Yes",
        "No",
        "allow",
        "[201~",
        "^C",
        "\\e[201~",
        "\\x1b[201~",
    ]


def _sizes() -> list[str]:
    """From one byte to the most that a message may have."""
    lines = "a line of words\n"
    return [
        *("x" * size for size in (1, 2, 3, 80, 200, 1023, 2047, 2048, 2049, 4095, 4096, 4097, 16_384)),
        *(lines * count + "end" for count in (2, 3, 10, 50, 500, 2000)),
        *("x" * size for size in (49_999, 50_001, 100_000, LARGEST - 1, LARGEST)),
        "é" * (LARGEST // 2),
    ]


def _noise() -> list[str]:
    """Words of all of it, by a die that always falls the same way."""
    die = random.Random(11)
    signs = [*map(chr, range(0x20, 0x7F)), *"\n\t é漢🙂\\/!#@", "\u200d", "\u202e", "\x1b"]
    return [text for _ in range(40) if (text := "".join(die.choices(signs, k=die.randrange(2, 300)))).strip()]
