"""Texts that are easily damaged on the way through tmux and a terminal; each has a word of its own."""

from __future__ import annotations

_KILOBYTES = 10


def hard_texts() -> dict[str, str]:
    """Return the texts by a name that says what is hard about each."""
    line = "The quick brown fox jumps over the lazy dog, number {}.\n"
    return {
        "two lines": "first line text01\nsecond line",
        "an empty line between": "above text02\n\nbelow",
        "single quotes": "it's 'quoted' text03",
        "double quotes": 'say "hello" to text04',
        "a dollar and backquotes": "$HOME `id` $(id) text05",
        "backslashes": "C:\\temp\\new \\n \\\\ text06",
        "a leading slash": "/tmp is the folder of text07",
        "a leading exclamation mark": "!important is text08",
        "a leading hash": "# heading text09",
        "a leading at sign": "@nobody look at text10",
        "a semicolon at the end": "run text11;",
        "a semicolon and a space at the end of a line": "run text12; \nthen stop;",
        "an emoji": "ship it 🚀 text13",
        "letters beyond ASCII": "Grüße, żółć, 日本語 text14",
        "words that are names of keys": "Enter Escape C-c Space text15",
        "formats of tmux and of Python": "#{pane_id} #S {0} %s %% text16",
        "indented code": "def f():\n    if True:\n        return 'text17'",
        "a list in brackets": "[1, 2, 'three'] text18",
        "30 lines": "text19\n" + "".join(line.format(number) for number in range(29)).rstrip(),
        "10 KB in one line": "text20 " + "0123456789abcdef" * (_KILOBYTES * 64),
    }


def word_of(text: str) -> str:
    """Return the word by which a text is recognised, whatever happened to the rest."""
    return "text" + text.partition("text")[2][:2]
