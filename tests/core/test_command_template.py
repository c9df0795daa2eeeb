"""The placeholders of a command: what they become, and which braces are ordinary characters."""

from __future__ import annotations

import pytest

from mam.core import command_template
from mam.core.errors import InvalidPrompt, Usage

VALUES = {"prompt": "do it", "prompt_file": "/p.txt", "workdir": "/w"}


@pytest.mark.parametrize(
    ("argument", "result"),
    [
        ("plain", "plain"),
        ("{prompt_file}", "/p.txt"),
        ("--message={prompt}", "--message=do it"),
        ("{workdir}/x{workdir}", "/w/x/w"),
        ("{{prompt}}", "{prompt}"),
        ("{{{prompt}}}", "{{prompt}}"),
        ("{{word}}", "{word}"),
        ("{}", "{}"),
        ("{{", "{{"),
        ("}}", "}}"),
        ('{"prompt": "{prompt}"}', '{"prompt": "do it"}'),
        ("{a: 1}", "{a: 1}"),
        ("{PROMPT}", "{PROMPT}"),
        ("${HOME}", "${HOME}"),
        ("{{ prompt }}", "{{ prompt }}"),
        ("{1}", "{1}"),
        ("{a-b}", "{a-b}"),
        ("{prompt", "{prompt"),
    ],
)
def test_what_an_argument_becomes(argument, result):
    command_template.check(["program", argument])
    assert command_template.expand(["program", argument], **VALUES) == ["program", result]


def test_what_was_filled_in_is_not_read_again():
    values = {**VALUES, "prompt": "{workdir} {{x}} {unknown}"}
    assert command_template.expand(["p", "{prompt}"], **values)[1] == "{workdir} {{x}} {unknown}"


@pytest.mark.parametrize("argument", ["{promt}", "x{print}y", "{prompt}{x}"])
def test_an_unknown_placeholder_is_refused_with_the_way_out(argument):
    with pytest.raises(Usage, match=r"there is no placeholder \{(promt|print|x)\}") as refused:
        command_template.check(["program", argument])
    assert refused.value.hint.endswith("}}")


def test_who_gets_the_prompt():
    assert command_template.takes_stdin(["p", "{workdir}", "{{prompt}}"])
    assert not command_template.takes_stdin(["p", "--x={prompt}"])
    assert not command_template.takes_stdin(["p", "{prompt_file}"])


def test_a_prompt_that_would_be_an_option_is_refused():
    values = {**VALUES, "prompt": "--yolo"}
    with pytest.raises(InvalidPrompt, match="option"):
        command_template.expand(["p", "{prompt}"], **values)
    assert command_template.expand(["p", "-m{prompt}", " {prompt}"], **values)[1:] == ["-m--yolo", " --yolo"]


def test_a_prompt_that_is_too_long_is_refused():
    longest = "ü" * (command_template.LONGEST_PROMPT // 2)
    assert command_template.expand(["p", "{prompt}"], **{**VALUES, "prompt": longest})[1] == longest
    with pytest.raises(InvalidPrompt, match="100 KB"):
        command_template.expand(["p", "{prompt}"], **{**VALUES, "prompt": longest + "x"})
    assert command_template.expand(["p", "{prompt_file}"], **{**VALUES, "prompt": longest + "x"})
    with pytest.raises(InvalidPrompt, match="too long"):
        command_template.expand(["p", "{prompt}{prompt}"], **{**VALUES, "prompt": longest})
