"""Command lists hold only values of a closed form."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mam.adapters.tmux import argv
from mam.core.errors import InvalidName, MamError

NONCE = "0011223344556677"
MARK = "s_00000001"


@pytest.mark.parametrize("server", ["default", "a", "A.b_c-9", "mam-test-1", "x" * 64])
def test_a_name_selects_a_socket_of_that_name(server):
    assert argv.server_arguments(server) == ["-L", server]


def test_a_full_path_selects_that_socket():
    assert argv.server_arguments("/run/x y;") == ["-S", "/run/x y;"]


@pytest.mark.parametrize(
    "server", ["", "-x", ".x", "../x", "a/b", "a b", "a\n", "x" * 65, "#(x)", "ä", "/a\0b"]
)
def test_anything_else_is_no_server(server):
    with pytest.raises(InvalidName):
        argv.server_arguments(server)


@pytest.mark.promise("P32")
@given(st.text(), st.text(), st.text(), st.text())
def test_no_text_of_a_caller_stands_in_a_command(pane_id, mark, name, root):
    """For any text, the function refuses it or returns a list with allowed values only."""
    builders = [
        lambda: argv.start(
            name, ["/bin/cat", "-"], session_id=mark, root=root, width=80, height=24, nonce=NONCE
        ),
        lambda: argv.kill_pane(pane_id, mark, NONCE),
        lambda: argv.mark(pane_id, mark, root),
        lambda: argv.rename_session(pane_id, name),
        lambda: argv.press(pane_id, [name], mark, NONCE),
        lambda: argv.paste(pane_id, mark, buffer="b", enter=True, nonce=NONCE),
        lambda: argv.look(pane_id, NONCE),
        lambda: [argv.capture_script([pane_id], NONCE).decode()],
    ]
    for build in builders:
        try:
            arguments = build()
        except MamError:
            continue
        assert all(
            argument.isascii() and argument.isprintable() for argument in arguments if "\n" not in argument
        )
        assert not any(argument.endswith(";") for argument in arguments if argument != ";")


def test_a_root_with_everything_in_it_is_hex_in_the_command():
    arguments = argv.start(
        "n", ["/bin/cat"], session_id=MARK, root="#(x);\n'", width=1, height=1, nonce=NONCE
    )
    assert b"#(x);\n'".hex() in arguments
    assert not any("#(x)" in argument for argument in arguments)


def test_the_guard_is_one_condition_of_all():
    assert argv.guard("%7", None, typing=False) == "#{==:#{pane_id},%7}"
    both = argv.guard("%7", MARK, typing=False)
    assert both == "#{&&:#{==:#{pane_id},%7},#{==:#{@mam_session},s_00000001}}"
    assert argv.guard("%7", MARK, typing=True).count("&&") == 3


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=1), min_size=1))
def test_quoted_words_hold_no_open_quote(arguments):
    text = argv.quoted(arguments)
    bare = text.replace("'\\''", "")
    assert bare.count("'") % 2 == 0


def test_scrollback_is_a_number():
    assert b"-S -50 " in argv.capture_script(["%1"], NONCE, 50)
    assert b"-S" not in argv.capture_script(["%1"], NONCE)
