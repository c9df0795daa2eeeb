"""tmux command lists, built from ids, numbers and words of ours; no text of a caller ever stands in one.

tmux reads its own arguments: `#(…)` runs a shell, a final `;` ends the command, a bare name matches by
prefix, `-` starts an option. So every value that enters a list is checked here against a closed form,
targets are ids, directories are hex, and prompts go over stdin.
"""

from __future__ import annotations

from mam.adapters.tmux.keys import tmux_keys
from mam.adapters.tmux.parse import encode_root
from mam.core.errors import InvalidName, PaneGone, Usage

_LOWER = "abcdefghijklmnopqrstuvwxyz"
_DIGITS = "0123456789"
_NAME = _LOWER + _LOWER.upper() + _DIGITS + "-"
_SERVER = _NAME + "._"

# Numbers and ids, which tmux makes itself, then texts, which anybody may set. parse.Pane has the same order.
NUMBERS = (
    "pane_id",
    "session_id",
    "window_id",
    "pane_pid",
    "pane_dead",
    "pane_dead_status",
    "pane_dead_signal",
    "pane_in_mode",
    "pid",
)
TEXTS = ("session_name", "@mam_session", "@mam_root", "pane_tty", "session_attached_list")
# Enough to know whether sessions are alive: each field more costs tmux 2 ms for 1,000 panes.
BRIEF_NUMBERS = ("pane_id", "pane_pid", "pane_dead")
FULL_NUMBERS = ("pane_width", "pane_height", "cursor_x", "cursor_y")
FULL_TEXTS = ("pane_title", "pane_current_path", "pane_current_command")

# Options that keep a program in a pane from reaching the clipboard, the terminal or the window's name.
SAFE_OPTIONS = (
    ("-s", "set-clipboard", "external"),
    ("-g", "allow-passthrough", "off"),
    ("-g", "allow-rename", "off"),
)
_CLAIM = "; ".join(f"set-option -q {scope} {name} {value}" for scope, name, value in SAFE_OPTIONS)
_CLAIM += "; set-option -s @mam_server 1"


def is_name(text: str) -> bool:
    """Tell whether text may be the name of a tmux session of ours."""
    return 0 < len(text) <= 100 and text[0] != "-" and not text.strip(_NAME)


def is_mark(text: str) -> bool:
    """Tell whether text has the form of a session id, `s_` and 8 hex digits."""
    return len(text) == 10 and text.startswith("s_") and not text[2:].strip(_DIGITS + "abcdef")


def is_id(text: str, sign: str) -> bool:
    """Tell whether text is a tmux id with that sign: % for panes, $ for sessions, @ for windows."""
    return 1 < len(text) <= 20 and text[0] == sign and not text[1:].strip(_DIGITS)


def server_arguments(server: str) -> list[str]:
    """Return the options that select a server: `-S` for a full path, `-L` for a name."""
    if server.startswith("/") and "\0" not in server:
        return ["-S", server]
    if 0 < len(server) <= 64 and server[0] not in "-._" and not server.strip(_SERVER):
        return ["-L", server]
    hint = "a name of letters, digits, '.', '_' and '-', or the full path of a socket"
    raise InvalidName(f"not a tmux server: {server}", hint=hint)


def pane_target(pane_id: str) -> str:
    """Return a pane id that may stand in a command; anything else is a pane that cannot be there."""
    if not is_id(pane_id, "%"):
        raise PaneGone(f"not a pane id: {pane_id}")
    return pane_id


def session_target(session_id: str) -> str:
    """Return a session id that may stand in a command."""
    if not is_id(session_id, "$"):
        raise PaneGone(f"not a tmux session id: {session_id}")
    return session_id


def checked_mark(mark: str) -> str:
    """Return a session id of ours that may stand in a format."""
    if not is_mark(mark):
        raise Usage(f"not a session id: {mark}")
    return mark


def checked_name(name: str) -> str:
    """Return a name that may stand in a command."""
    if not is_name(name):
        raise InvalidName(f"not a session name: {name}")
    return name


def row_format(nonce: str, full: bool = False) -> str:
    """Return the format of one pane, in the shape that parse.rows reads."""
    numbers = (*NUMBERS, *FULL_NUMBERS) if full else NUMBERS
    texts = (*TEXTS, *FULL_TEXTS) if full else TEXTS
    return _format(nonce, numbers, texts)


def _format(nonce: str, numbers: tuple[str, ...], texts: tuple[str, ...]) -> str:
    head = ",".join(f"#{{{name}}}" for name in (*numbers, *(f"n:{text}" for text in texts)))
    return f"{nonce}{head}{nonce}" + "".join(f"#{{{text}}}{nonce}" for text in texts)


def list_panes(nonce: str, full: bool = False) -> list[str]:
    """List every pane of the server."""
    return ["list-panes", "-a", "-F", row_format(nonce, full)]


def list_briefly(nonce: str) -> list[str]:
    """List every pane of the server, with what tells whether it lives and whose it is."""
    head = ",".join(f"#{{{name}}}" for name in BRIEF_NUMBERS)
    return ["list-panes", "-a", "-F", f"{nonce}{head}{nonce}#{{@mam_session}}{nonce}"]


def show_pane(pane_id: str, nonce: str) -> list[str]:
    """Show one pane, in full."""
    return ["display-message", "-p", "-t", pane_target(pane_id), row_format(nonce, True)]


def look(pane_id: str, nonce: str) -> list[str]:
    """Show one pane, in full, and then its screen."""
    capture = ["capture-pane", "-p", "-t", pane_id]
    return in_turn(show_pane(pane_id, nonce), capture, ["display-message", "-p", nonce + "end"])


def capture_script(pane_ids: list[str], nonce: str, scrollback: int = 0) -> bytes:
    """Return a script for `source-file -` that prints each pane's screen and then a line with the nonce.

    A script and not arguments: tmux refuses more than 16 KB of those, and a failing line ends only itself.
    """
    back = f" -S -{int(scrollback)}" if scrollback > 0 else ""
    return "".join(
        f"capture-pane -p -t {pane_target(pane_id)}{back} ; display-message -p {nonce}{pane_id[1:]}\n"
        for pane_id in pane_ids
    ).encode()


def in_turn(*commands: list[str]) -> list[str]:
    """Return several commands as one list, done one after the other; one that is empty is left out."""
    found: list[str] = []
    for command in commands:
        if command:
            found += [";", *command] if found else command
    return found


def start(
    name: str, launch: list[str], *, session_id: str, root: str, width: int, height: int, nonce: str
) -> list[str]:
    """Start a session of one pane, mark it and show it. A server without any session is made safe first."""
    there = f"={checked_name(name)}:"
    return in_turn(
        ["start-server"],
        ["if-shell", "-F", "#{?#{S:1},0,1}", _CLAIM],
        ["new-session", "-d", "-s", name, "-x", str(int(width)), "-y", str(int(height)), "--", *launch],
        own(there, session_id, root),
        ["set-option", "-t", there, "destroy-unattached", "off"],
        # tmux shows the errors of the user's file in the first pane, as a mode that would take our keys.
        ["copy-mode", "-q", "-t", there],
        ["display-message", "-p", "-t", there, row_format(nonce)],
        ["display-message", "-p", "-t", there, f"{nonce}alone#{{window_panes}},#{{session_windows}}"],
    )


def runs(word: str) -> str:
    """Return a format that is 1 for a pane that was started with a word of ours."""
    if word.strip(_LOWER + _DIGITS):
        raise Usage("not a word that may stand in a format")
    return f"#{{m:*{word}*,#{{pane_start_command}}}}"


def which_runs(where: str, word: str) -> list[str]:
    """Show the panes of a session, each with whether it was started with a word of ours."""
    target = where if is_id(where, "@") else f"={checked_name(where)}:"
    return ["list-panes", "-s", "-t", target, "-F", f"#{{pane_id}} {runs(word)}"]


def move_mark(wrong: str, right: str, session_id: str, root: str, nonce: str) -> list[str]:
    """Take our options off one pane, put them on another, and show that one."""
    options = ("@mam_session", "@mam_root", "remain-on-exit", "allow-rename", "allow-passthrough")
    taken = [["set-option", "-q", "-p", "-u", "-t", pane_target(wrong), option] for option in options]
    shown = ["display-message", "-p", "-t", pane_target(right), row_format(nonce)]
    return in_turn(*taken, own(right, session_id, root), shown)


def own(target: str, session_id: str, root: str) -> list[str]:
    """Make a pane ours: its options, and whose it is."""
    options = {
        "remain-on-exit": "on",
        "allow-rename": "off",
        "allow-passthrough": "off",
        "@mam_session": checked_mark(session_id),
        "@mam_root": encode_root(root),
    }
    return in_turn(
        *(["set-option", "-q", "-p", "-t", target, option, value] for option, value in options.items())
    )


def mark(pane_id: str, session_id: str, root: str) -> list[str]:
    """Write our mark on a pane that somebody else started; its other options stay as they are."""
    target = pane_target(pane_id)
    return in_turn(
        ["set-option", "-p", "-t", target, "@mam_session", checked_mark(session_id)],
        ["set-option", "-p", "-t", target, "@mam_root", encode_root(root)],
    )


def claim(pane_id: str, session_id: str, root: str, nonce: str) -> list[str]:
    """Mark a pane if nobody has, decided inside the server: of two who try, one succeeds."""
    target = pane_target(pane_id)
    script = " ; ".join(
        (
            f"set-option -p -t {target} @mam_session {checked_mark(session_id)}",
            f"set-option -p -t {target} @mam_root {encode_root(root)}",
            f"display-message -p {nonce}yes",
        )
    )
    return ["if-shell", "-F", "-t", target, "#{@mam_session}", f"display-message -p {nonce}no", script]


def unmark(pane_id: str, session_id: str, nonce: str) -> list[str]:
    """Take our mark of this session off a pane."""
    target = pane_target(pane_id)
    then = ["set-option", "-p", "-u", "-t", target, "@mam_session", ";"]
    then += ["set-option", "-p", "-u", "-t", target, "@mam_root"]
    return guarded(pane_id, guard(pane_id, session_id, typing=False), then, nonce)


def guard(pane_id: str, mark: str | None, *, typing: bool, at: tuple[int, int] | None = None) -> str:
    """Return a format that is true while the pane is the one meant; for typing, alive and in no mode.

    With `at` its cursor must stand there as well: a program that drew anything else has moved it.
    """
    conditions = [f"#{{==:#{{pane_id}},{pane_target(pane_id)}}}"]
    if mark is not None:
        conditions.append(f"#{{==:#{{@mam_session}},{checked_mark(mark)}}}")
    if typing:
        conditions += ["#{?pane_dead,0,1}", "#{?pane_in_mode,0,1}"]
    if at is not None:
        conditions += [f"#{{==:#{{cursor_x}},{int(at[0])}}}", f"#{{==:#{{cursor_y}},{int(at[1])}}}"]
    whole = conditions.pop()
    while conditions:
        whole = f"#{{&&:{conditions.pop()},{whole}}}"
    return whole


def guarded(
    pane_id: str, condition: str, then: list[str], nonce: str, otherwise: list[str] | None = None
) -> list[str]:
    """Do a command only while the condition holds, decided and done in one step of the server.

    The answer is the nonce and `yes` or `no`, after everything before it succeeded.
    """
    yes = in_turn(then, ["display-message", "-p", nonce + "yes"])
    no = in_turn(otherwise or [], ["display-message", "-p", nonce + "no"])
    return ["if-shell", "-F", "-t", pane_target(pane_id), condition, quoted(yes), quoted(no)]


def paste(
    pane_id: str, mark: str, *, buffer: str, enter: bool, nonce: str, at: tuple[int, int] | None = None
) -> list[str]:
    """Paste what stdin holds, as one bracketed paste where the program wants it, and press Enter after it."""
    then = ["paste-buffer", "-p", "-r", "-d", "-b", buffer, "-t", pane_target(pane_id)]
    if enter:
        then += [";", "send-keys", "-t", pane_id, "Enter"]
    drop = ["delete-buffer", "-b", buffer]
    condition = guard(pane_id, mark, typing=True, at=at)
    return ["load-buffer", "-b", buffer, "-", ";", *guarded(pane_id, condition, then, nonce, drop)]


def press(
    pane_id: str, keys: list[str], mark: str, nonce: str, at: tuple[int, int] | None = None
) -> list[str]:
    """Press keys of the closed list."""
    then = ["send-keys", "-t", pane_target(pane_id), *tmux_keys(keys)]
    return guarded(pane_id, guard(pane_id, mark, typing=True, at=at), then, nonce)


def kill_pane(pane_id: str, mark: str | None, nonce: str) -> list[str]:
    """Kill one pane; its tmux session ends with its last one."""
    # The answer comes first: with the last pane the server may be gone before it could say so.
    condition = guard(pane_id, mark, typing=False)
    yes = ["display-message", "-p", nonce + "yes", ";", "kill-pane", "-t", pane_target(pane_id)]
    no = ["display-message", "-p", nonce + "no"]
    return ["if-shell", "-F", "-t", pane_id, condition, quoted(yes), quoted(no)]


def respawn(pane_id: str, launch: list[str], mark: str, root: str, nonce: str) -> list[str]:
    """Start a command in a dead pane of ours and show it; tmux itself refuses a live one."""
    condition = guard(pane_id, mark, typing=False)
    then = in_turn(own(pane_target(pane_id), mark, root), ["respawn-pane", "-t", pane_id, "--", *launch])
    return in_turn(guarded(pane_id, condition, then, nonce), show_pane(pane_id, nonce))


def capture(pane_id: str, scrollback: int = 0) -> list[str]:
    """Print one pane's screen."""
    back = ["-S", f"-{int(scrollback)}"] if scrollback > 0 else []
    return ["capture-pane", "-p", "-t", pane_target(pane_id), *back]


def quoted(words: list[str]) -> str:
    """Return words as one tmux command string; `;` alone stays a separator."""
    return " ".join(";" if word == ";" else "'" + word.replace("'", "'\\''") + "'" for word in words)


def rename_session(session_id: str, name: str) -> list[str]:
    """Give a session another name."""
    return ["rename-session", "-t", session_target(session_id), checked_name(name)]


def attach(session_id: str) -> list[str]:
    """Attach the terminal to a session."""
    return ["attach-session", "-t", session_target(session_id)]


def switch_client(session_id: str) -> list[str]:
    """Show a session in the client that the caller sits in."""
    return ["switch-client", "-t", session_target(session_id)]


def server_options() -> list[str]:
    """Show the options that decide what a program in a pane can reach, and whose server it is."""
    command: list[str] = []
    for scope, name, _ in (*SAFE_OPTIONS, ("-s", "@mam_server", ""), ("-s", "exit-empty", "")):
        command += ["show-options", "-q", scope, name, ";"]
    return [*command, "display-message", "-p", "version #{version}"]
