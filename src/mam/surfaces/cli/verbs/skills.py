"""mam skills: teach agents to use mam."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser

    Document = dict[str, Any]

DESCRIPTION = """\
Install skills that teach agents the verbs of mam: create, resume, stop, monitor, delegate-job,
status and team. mam writes them below the workspace, where the agent looks for skills. It neither
overwrites nor removes a file that a person has changed.

Three of them come with the scripts of the original system, which run mam with the same options:
stop_session.sh (mam stop), reconcile.sh (mam monitor) and delegate_job.sh (mam job)."""
EXAMPLES = """
  mam skills install --for claude        into .claude/skills
  mam skills install                     into .agents/skills, which Codex and others read
  mam skills list --for claude
  mam skills uninstall --dir .agents/skills"""
_TO_GET_OURS = "move it away to get the file of this version"
_FOR = ("claude", "codex", "gemini", "agents")


def add_options(parser: Parser) -> None:
    """Add the subcommands."""
    from mam.surfaces.cli.parser import add_subcommands

    add_subcommands(
        parser,
        {
            "install": ("write the skills of this version", _where),
            "list": ("list the skills and their states", _where),
            "uninstall": ("remove the skills that mam has installed", _where),
        },
        EXAMPLES,
    )


def run(call: Invocation) -> int:
    """Run the subcommand, and print the state of each skill."""
    from mam.surfaces.cli.render_sessions import clean

    options = call.options
    verbs = {
        "install": call.fleet.skills.install,
        "list": call.fleet.skills.list,
        "uninstall": call.fleet.skills.uninstall,
    }
    document = verbs[options.subcommand](folder=options.dir, agent=options.agent)
    width = max(len(skill["name"]) for skill in document["skills"])
    lines = [
        f"{clean(skill['name']):<{width}}  {_state(skill):<9}  {', '.join(_scripts(skill))}".rstrip()
        for skill in document["skills"]
    ]
    if any(skill.get("did") == "kept" for skill in document["skills"]):
        way = "mam did not remove it" if options.subcommand == "uninstall" else _TO_GET_OURS
        lines.append(f"kept: a person has changed a file; {way}")
        lines += [f"  {clean(path, 500)}" for skill in document["skills"] for path in _changed(skill)]
    return call.say(document, clean(document["directory"], 500), *lines)


def _state(skill: Document) -> str:
    return str(skill.get("did") or skill["state"])


def _scripts(skill: Document) -> list[str]:
    names = [file["path"].rpartition("/")[2] for file in skill["files"]]
    return [name for name in names if name != "SKILL.md"]


def _changed(skill: Document) -> list[str]:
    return [file["path"] for file in skill["files"] if file["state"] == "changed"]


def _where(parser: Parser) -> None:
    place = parser.add_mutually_exclusive_group()
    place.add_argument("--dir", metavar="DIR", help="the folder of the skills")
    place.add_argument(
        "--for", dest="agent", choices=_FOR, help="the folder of this agent (agents: .agents/skills)"
    )
