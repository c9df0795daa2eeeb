"""How the tests call the command line in their own process."""

from __future__ import annotations

import json

from mam.surfaces.cli.main import main


class Said:
    """What a command answered."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code = code
        self.out = out
        self.err = err

    def __repr__(self) -> str:
        return f"exit {self.code}\n{self.out}\n{self.err}"

    @property
    def json(self):
        """The one document on stdout; nothing else may stand there, nor anything on stderr."""
        assert not self.err
        return json.loads(self.out)

    @property
    def error(self):
        """The error of an error document, whose form is always the same."""
        error = self.json["error"]
        assert set(error) == {"code", "message", "hint", "retryable"}
        assert self.code != 0
        return error


def call(capsys, words) -> Said:
    """Run one command and collect what it said."""
    capsys.readouterr()
    code = main(list(words))
    said = capsys.readouterr()
    return Said(code, said.out, said.err)
