"""A warm process that runs each verb in a child of its own, with a fault armed. Run with the shim preloaded.

Starting Python and importing mam costs more than the verb; a fork costs a millisecond. Requests come as
lines of JSON on stdin, answers go as lines of JSON to stdout.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import json
import mmap
import os
import pkgutil
import sys
import traceback

from tests.settling import settle

import mam
from mam.adapters.tmux.client import Tmux
from mam.core.errors import MamError

# The mode of the shim in which power is lost, at the latest when the verb is over.
LOSE_POWER = 6
ARGS = ["--speed", "0"]
VERBS = {
    "create": lambda fleet: fleet.sessions.create("practice", name="one", args=ARGS, wait=False),
    "create-anew": lambda fleet: fleet.sessions.create(name="one", wait=False),
    "create-default": lambda fleet: fleet.sessions.create("practice", args=ARGS, wait=False),
    "stop": lambda fleet: fleet.sessions.stop("one"),
    "stop-force": lambda fleet: fleet.sessions.stop("one", force=True, reason="enough"),
    "stop-reason": lambda fleet: fleet.sessions.stop("one", reason="enough"),
    "interrupt": lambda fleet: fleet.messages.interrupt("one"),
    "create-slow": lambda fleet: fleet.sessions.create(
        "practice", name="one", args=["--speed", "60"], timeout=20
    ),
    "purge": lambda fleet: fleet.sessions.stop("one", force=True, purge_conversation=True),
    "resume": lambda fleet: fleet.sessions.resume("one", wait=False),
    "rename": lambda fleet: fleet.sessions.rename("one", "two"),
    "rename-other": lambda fleet: fleet.sessions.rename("one", "other"),
    "fork": lambda fleet: fleet.sessions.fork("one", name="two", wait=False),
    "drill": lambda fleet: fleet.sessions.drill(["one"], run=True),
    "archive": lambda fleet: fleet.sessions.archive("one"),
    "forget": lambda fleet: fleet.sessions.forget("one"),
    "adopt": lambda fleet: fleet.sessions.adopt("foreign", agent="cat", name="one"),
    "take-in": lambda fleet: fleet.sessions.archive("other"),
    "send": lambda fleet: fleet.messages.send("one", "the one message", message_id="m_00000001", timeout=10),
    "spawn": lambda fleet: fleet.teams.spawn("dev", agent="practice", task="work", args=ARGS),
    "report": lambda fleet: fleet.teams.report(session="dev", result="well"),
    "close": lambda fleet: fleet.teams.close("dev", force=True),
    "job-event": lambda fleet: fleet.jobs.event("1f00ab42", "completed", detail="done"),
    "job-submit": lambda fleet: fleet.jobs.submit(
        "the one task", agent="practice", agent_session="tmux:one", args=ARGS, idle_timeout=20
    ),
    "task-claim": lambda fleet: fleet.tasks.claim("TASK-002"),
    "team-up": lambda fleet: fleet.teams.up(f"{fleet.root}/../two.yaml", agent="practice", args=ARGS),
    "backup": lambda fleet: fleet.monitor.backup(),
    "backup-file": lambda fleet: fleet.monitor.backup_to(f"{fleet.root}/copy.db"),
    "backup-over-file": lambda fleet: fleet.monitor.backup_to(f"{fleet.root}/copy.db", force=True),
    "restore": lambda fleet: fleet.restore(),
    "settle": settle,
}


def load_everything() -> None:
    """Import all that a verb may import, so that no child has to."""
    for module in pkgutil.walk_packages(mam.__path__, "mam."):
        if (
            not module.name.startswith(("mam.practice", "mam.surfaces", "mam.__main__"))
            and "darwin" not in module.name
        ):
            importlib.import_module(module.name)


def library():
    """Return the shim, which the loader put into this process."""
    shim = ctypes.CDLL(None)
    shim.fault_arm.argtypes = [ctypes.c_char_p, ctypes.c_long, ctypes.c_int, ctypes.c_int]
    shim.fault_count.restype = ctypes.c_long
    shim.fault_name.restype = ctypes.c_char_p
    shim.fault_name.argtypes = [ctypes.c_long]
    shim.fault_tell.argtypes = [ctypes.c_void_p]
    return shim


def run(request: dict, shim, tell) -> None:
    """Run one verb with its fault; tell how it ended, and at the end which calls were counted.

    What was told is acknowledged, as what a command has printed. The fault may come after that: closing
    the databases writes as well.
    """
    fleet = mam.open(request["root"])
    shim.fault_keep(request["aside"].encode())
    shim.fault_arm("\n".join(request["folders"]).encode(), request["n"], request["mode"], request["number"])
    tell({"error": _error_of(VERBS[request["verb"]], fleet), "calls_of_verb": shim.fault_count()})
    if request.get("again"):
        # A long-lived process goes on after a fault with the connections that it has.
        shim.fault_disarm()
        tell({"again": _error_of(VERBS[request["again"]], fleet)})
    tell({"closing": _error_of(mam.Fleet.close, fleet)})
    shim.fault_disarm()
    count = shim.fault_count()
    tell({"calls": count, "paths": [shim.fault_name(n).decode() for n in range(1, count + 1)]})
    if request["mode"] == LOSE_POWER:
        shim.fault_lose_power()


def _error_of(verb, fleet) -> dict | None:
    try:
        verb(fleet)
    except MamError as error:
        facts = {"code": error.code, "message": str(error), "hint": error.hint}
        return {**facts, "recorded": error.recorded}
    except Exception:
        return {"code": "traceback", "message": traceback.format_exc(), "recorded": False}
    return None


def _tell(pipe: int, part: dict) -> None:
    os.write(pipe, json.dumps(part).encode() + b"\n")


def short(call: str) -> str:
    """Return the name of a call and the last part of its path."""
    name, _, path = call.partition(" ")
    return f"{name} {path.rpartition('/')[2]}"


def serve() -> None:
    """Answer requests until the input ends."""
    load_everything()
    Tmux("any").require_version()
    shim = library()
    broken = mmap.mmap(-1, mmap.PAGESIZE)
    shim.fault_tell(ctypes.addressof(ctypes.c_char.from_buffer(broken)))
    for line in sys.stdin:
        request = json.loads(line)
        broken[:] = bytes(len(broken))
        read, write = os.pipe()
        child = os.fork()  # noqa: TID251  (one child for each case is the point)
        if child == 0:
            os.close(read)
            run(request, shim, functools.partial(_tell, write))
            os._exit(0)
        os.close(write)
        with os.fdopen(read, "rb") as answer:
            told = answer.read().splitlines()
        _, status = os.waitpid(child, 0)
        document: dict = {}
        for part in told:
            document |= json.loads(part)
        document["killed"] = os.WIFSIGNALED(status) and os.WTERMSIG(status) == 9
        document["acknowledged"] = "error" in document and document["error"] is None
        document["broken"] = short(broken[:].rstrip(b"\0").decode())
        document["names"] = [short(call) for call in document.get("paths", [])]
        if "calls" not in document and not document["killed"]:
            document["error"] = {"code": "died", "message": f"status {status}", "recorded": False}
        print(json.dumps(document), flush=True)


if __name__ == "__main__":
    serve()
