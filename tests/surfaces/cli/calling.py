"""Call the command line in the process of the tests."""

from __future__ import annotations

import json

from mam.surfaces.cli.main import main


class Answer:
    """The exit code and the output of a command."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code = code
        self.out = out
        self.err = err

    def __repr__(self) -> str:
        return f"exit {self.code}\n{self.out}\n{self.err}"

    @property
    def json(self):
        """The JSON document on stdout; stdout must hold nothing else, and stderr nothing at all."""
        assert not self.err
        return json.loads(self.out)

    @property
    def error(self):
        """The error in an error document; its fields are always the same."""
        error = self.json["error"]
        assert set(error) == {"code", "message", "hint", "retryable"}
        assert self.code != 0
        return error


def call(capsys, arguments) -> Answer:
    """Run one command in this process, and return its answer."""
    capsys.readouterr()
    code = main(list(arguments))
    output = capsys.readouterr()
    return Answer(code, output.out, output.err)
