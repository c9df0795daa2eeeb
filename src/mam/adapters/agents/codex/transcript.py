"""Reading a rollout of Codex: the last turns, the model, and how full the context is."""

from __future__ import annotations

from mam.adapters.agents.codex.files import message
from mam.adapters.agents.jsonl import count, parse, recorded, tail
from mam.adapters.agents.kind import Transcript, add_turn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.adapters.agents.kind import Turn
    from mam.core.token_count import TokenCount

_LARGEST = 8 * 1024 * 1024
_READ, _WRITTEN = "cached_input_tokens", "cache_write_input_tokens"
_COUNTED = ("input_tokens", _READ, _WRITTEN, "output_tokens")
# A turn that names another tier, such as `priority` or `flex`, has other prices.
_LIST_PRICE_TIERS = (None, "auto", "default", "standard")


def read(path: str, most: int) -> Transcript | None:
    """Return the last turns and the figures from the end of a rollout; None if it cannot be read."""
    try:
        lines, is_whole = tail(path, _LARGEST)
    except OSError:
        return None
    turns: list[Turn] = []
    figures: dict[str, Any] = {}
    requests = _Requests()
    for line in lines:
        if b'"item_completed"' in line:
            _add_turn(turns, parse(line))
        elif b'"token_count"' in line or b'"turn_context"' in line or b'"task_started"' in line:
            entry = parse(line)
            figures.update(_figures(entry))
            requests.add(entry)
    return Transcript(
        turns[-most:] if most else [], token_counts=requests.counts if is_whole else None, **figures
    )


class _Requests:
    """The requests of a rollout, from its totals and from the model that each turn names.

    `counts` becomes None where a part of the totals cannot be told to be of one model. A fork begins with the
    totals of the conversation that it continues.
    """

    def __init__(self) -> None:
        self.counts: list[TokenCount] | None = []
        self._model: str | None = None
        self._totals = dict.fromkeys(_COUNTED, 0)
        # The models of the turns since the last totals.
        self._models: set[str | None] = set()

    def add(self, entry: dict[str, Any]) -> None:
        """Take in a line with a model or with totals."""
        payload = entry.get("payload")
        if not isinstance(payload, dict):
            self.counts = None
        elif entry.get("type") == "turn_context":
            model = payload.get("model")
            is_known = isinstance(model, str) and payload.get("service_tier") in _LIST_PRICE_TIERS
            self._model = model if is_known else None
            self._models.add(self._model)
        elif payload.get("type") == "token_count" and isinstance(payload.get("info"), dict):
            self._add_totals(payload["info"])

    def _add_totals(self, info: dict[str, Any]) -> None:
        total, last = info.get("total_token_usage"), info.get("last_token_usage")
        try:
            totals = {name: recorded(total if isinstance(total, dict) else {}, name) for name in _COUNTED}
            request = {name: recorded(last if isinstance(last, dict) else {}, name) for name in _COUNTED}
            self._add_request({name: totals[name] - self._totals[name] for name in _COUNTED}, request)
        except ValueError:
            self.counts = None
            return
        self._totals = totals

    def _add_request(self, used: dict[str, int], request: dict[str, int]) -> None:
        from mam.core.token_count import TokenCount

        if not any(used.values()):
            # Codex repeats its totals beside the limits.
            return
        is_one = used == request
        if not is_one and (self.counts == [] or len(self._models) > 1):
            raise ValueError("the model of a part of the tokens is unknown")
        count = TokenCount(
            self._model,
            input=used["input_tokens"] - used[_READ] - used[_WRITTEN],
            output=used["output_tokens"],
            cache_read=used[_READ],
            cache_write=used[_WRITTEN],
            is_one_request=is_one,
        )
        self._models = {self._model}
        if self.counts is not None:
            self.counts.append(count)


def _add_turn(turns: list[Turn], entry: dict[str, Any]) -> None:
    role_and_text = message(entry)
    if role_and_text is None or not role_and_text[1].strip():
        return
    add_turn(turns, *role_and_text, entry.get("timestamp"))


def _figures(entry: dict[str, Any]) -> dict[str, Any]:
    payload = entry.get("payload")
    if not isinstance(payload, dict):
        return {}
    if entry.get("type") == "turn_context":
        return {"model": payload["model"]} if isinstance(payload.get("model"), str) else {}
    info = payload.get("info") if payload.get("type") == "token_count" else payload
    if not isinstance(info, dict):
        return {}
    total, last = info.get("total_token_usage"), info.get("last_token_usage")
    figures = {
        "tokens_in": _number(total, "input_tokens"),
        "tokens_out": _number(total, "output_tokens"),
        "tokens_cache_read": _number(total, _READ),
        "tokens_cache_write": _number(total, _WRITTEN),
        "context": _number(last, "input_tokens"),
        "window": _number(info, "model_context_window"),
    }
    return {name: value for name, value in figures.items() if value is not None}


def _number(figures: object, name: str) -> int | None:
    return count(figures.get(name)) if isinstance(figures, dict) else None
