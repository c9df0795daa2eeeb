"""mam skills: teach agents to use mam."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser

DESCRIPTION = """\
Install skills that teach agents the verbs of mam: create, resume, stop, monitor, delegate-job,
status and team. They are written below the workspace, where the agent looks for skills. A file
that a person has changed is neither overwritten nor removed."""
EXAMPLES = """
  mam skills install --for claude        into .claude/skills
  mam skills install                     into .agents/skills, which Codex and others read
  mam skills list --for claude
  mam skills uninstall --dir .agents/skills"""
_FOR = ("claude", "codex", "gemini", "agents")


def add_options(parser: Parser) -> None:
    """What to do."""
    from mam.surfaces.cli.parser import add_words

    add_words(
        parser,
        {
            "install": ("write the skills of this version", _where),
            "list": ("list them, and how they are installed", _where),
            "uninstall": ("remove what mam has installed", _where),
        },
        EXAMPLES,
    )


def run(call: Invocation) -> int:
    """Do it, and say what became of each."""
    from mam.surfaces.cli.render_sessions import clean

    options = call.options
    verbs = {
        "install": call.fleet.skills.install,
        "list": call.fleet.skills.list,
        "uninstall": call.fleet.skills.uninstall,
    }
    done = verbs[options.word](folder=options.dir, agent=options.agent)
    wide = max(len(one["name"]) for one in done["skills"])
    lines = [f"{clean(one['name']):<{wide}}  {one.get('did') or one['state']}" for one in done["skills"]]
    kept = [one for one in done["skills"] if one.get("did") == "kept"]
    if kept:
        lines.append("kept is what a person has changed: move it away to get the file of this version")
    return call.say(done, clean(done["directory"], 500), *lines)


def _where(parser: Parser) -> None:
    place = parser.add_mutually_exclusive_group()
    place.add_argument("--dir", metavar="DIR", help="the folder that holds the skills")
    place.add_argument(
        "--for", dest="agent", choices=_FOR, help="where this agent looks for them (agents: .agents/skills)"
    )
