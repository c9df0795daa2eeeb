"""Names: which are refused before they reach tmux, and how default names are made."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mam.core import names
from mam.core.errors import InvalidName

BAD = [
    "",
    "-a",
    "A",
    "a b",
    "a_b",
    "a.b",
    "a:b",
    "a;b",
    "#(touch x)",
    "a#{pane_id}",
    "../a",
    "a/b",
    "a\nb",
    "a\n",
    "a\0b",
    "a\u202eb",
    "é",
    "a" * 101,
    "a" * 1_000_000,
    "=a",
    "$1",
    "%7",
]


@pytest.mark.parametrize("text", BAD, ids=lambda text: repr(text[:12]))
def test_a_bad_name_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(InvalidName) as caught:
        names.parse_name(text)
    assert caught.value.exit_code == 64
    assert len(str(caught.value)) < 200
    assert str(caught.value).isprintable()


@given(st.from_regex(r"[a-z0-9][a-z0-9-]{0,99}", fullmatch=True))
def test_what_fits_is_taken_as_it_is(text: str) -> None:
    assert names.parse_name(text) == text


@pytest.mark.parametrize(
    ("workspace", "kind", "number", "expected"),
    [
        ("/x/landing_page/refer_landing_page", "claude", 1, "landing-page-refer-landing-page-creator-claude"),
        ("/abs/demo/app", "claude", 2, "demo-app-2-creator-claude"),
        ("/", "vim", 1, "root-creator-vim"),
        ("/one", "claude", 1, "one-creator-claude"),
        ("/a/…/b", "x", 1, "b-creator-x"),
    ],
)
def test_the_default_name(workspace: str, kind: str, number: int, expected: str) -> None:
    assert names.default_name(workspace, kind, number) == expected


@given(st.text(max_size=300), st.text(min_size=1, max_size=64), st.integers(1, 99))
def test_a_default_name_is_always_a_name(path: str, kind: str, number: int) -> None:
    name = names.default_name("/" + path, names.parse_kind("claude"), number)
    assert names.parse_name(name) == name
    assert names.kind_of_name(name) == "claude"


@pytest.mark.parametrize(
    "text", ["a b", "#(x)", "-L", "a;b", "", "relative/path", "/tmp/\x1b[0m", "/" + "x" * 200]
)
def test_a_bad_server_is_refused(text: str) -> None:
    with pytest.raises(InvalidName):
        names.parse_server(text)


@pytest.mark.parametrize("item", ["NOEQUALS", "=x", "1A=x", "A B=x", "MAM_SESSION=s", "TMUX=x", "TERM=x"])
def test_variables_that_are_not_ours_to_give(item: str) -> None:
    with pytest.raises(InvalidName):
        names.parse_environment([item])


def test_variables_keep_their_value_as_it_is() -> None:
    assert names.parse_environment(["A=b=c;$(x)\n"]) == {"A": "b=c;$(x)\n"}


@pytest.mark.parametrize(
    ("text", "is_id"),
    [
        ("s_0123abcd", True),
        ("s_0123abcD", False),
        ("s_0123abcg", False),
        ("s_012-abcd", False),
        ("s_0123abc", False),
        ("s_0123abcde", False),
        ("s_0123abc\n", False),
        ("t_0123abcd", False),
        ("", False),
    ],
)
def test_the_form_of_a_session_id(text, is_id) -> None:
    assert names.is_session_id(text) is is_id
