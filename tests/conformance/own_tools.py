"""A model that asks for the tools that a program calls by names of its own."""

from __future__ import annotations

from tests.conformance.model_server import ModelServer
from tests.conformance.program import Program
from tests.conformance.replies import Call, Question, Reply, Shell


class ModelWithOwnTools(ModelServer):
    """Replies in the words of one program."""

    def __init__(self, program: Program) -> None:
        super().__init__()
        self._tools = program.tools

    def answer(self, *replies: Reply) -> None:
        super().answer(*map(self._translated, replies))

    def _translated(self, reply: Reply) -> Reply:
        if isinstance(reply, Shell) and (tool := self._tools.get("shell")):
            command = tool.asking.replace("{command}", reply.command) if reply.asks else reply.command
            return Call(tool.name, {tool.command: command})
        if isinstance(reply, Question) and (tool := self._tools.get("question")):
            return Call(tool.name, {tool.text: reply.text, tool.options: list(reply.options)})
        return reply
