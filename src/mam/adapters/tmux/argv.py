"""Builds tmux command lists from ids, numbers and mam's own words; they never hold text of a caller.

tmux interprets its arguments: `#(…)` runs a shell, a final `;` ends the command, a bare name matches by
prefix, `-` starts an option. So this file checks every value against a closed form. Targets are ids,
directories are hex, and prompts go over stdin.
"""

from __future__ import annotations

from mam.adapters.tmux.parse import encode_root
from mam.core.errors import InvalidName, PaneGone, Usage

_LOWER = "abcdefghijklmnopqrstuvwxyz"
_DIGITS = "0123456789"
_NAME = _LOWER + _LOWER.upper() + _DIGITS + "-_"
_SERVER = _NAME + "._"

# First numbers and ids, which tmux makes, then texts, which any program may set. parse.Pane has this order.
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
# These fields tell whether sessions are alive. Each further field costs tmux 2 ms for 1,000 panes.
BRIEF_NUMBERS = ("pane_id", "pane_pid", "pane_dead")
FULL_NUMBERS = ("pane_width", "pane_height", "cursor_x", "cursor_y")
FULL_TEXTS = ("pane_title", "pane_current_path", "pane_current_command")

_FACTS = "#{cursor_x},#{cursor_y},#{window_activity}"

# Options that keep a program in a pane from reaching the clipboard, the terminal or the window's name.
SAFE_OPTIONS = (
    ("-s", "set-clipboard", "external"),
    ("-g", "allow-passthrough", "off"),
    ("-g", "allow-rename", "off"),
)
_MAKE_SAFE = "; ".join(f"set-option -q {scope} {name} {value}" for scope, name, value in SAFE_OPTIONS)
_MAKE_SAFE += "; set-option -s @mam_server 1"


def is_name(text: str) -> bool:
    """Tell whether text may be the name of a tmux session that mam starts."""
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
    """Return a pane id that may stand in a command; raise PaneGone for any other text."""
    if not is_id(pane_id, "%"):
        raise PaneGone(f"not a pane id: {pane_id}")
    return pane_id


def session_target(session_id: str) -> str:
    """Return a tmux session id that may stand in a command."""
    if not is_id(session_id, "$"):
        raise PaneGone(f"not a tmux session id: {session_id}")
    return session_id


def checked_mark(mark: str) -> str:
    """Return a session id of mam that may stand in a format."""
    if not is_mark(mark):
        raise Usage(f"not a session id: {mark}")
    return mark


def checked_name(name: str) -> str:
    """Return a name that may stand in a command."""
    if not is_name(name):
        raise InvalidName(f"not a session name: {name}")
    return name


def row_format(nonce: str, full: bool = False) -> str:
    """Return the format of one pane that parse.rows can read."""
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
    """List every pane of the server with few fields: whether it lives, and which session it belongs to."""
    head = ",".join(f"#{{{name}}}" for name in BRIEF_NUMBERS)
    return ["list-panes", "-a", "-F", f"{nonce}{head}{nonce}#{{@mam_session}}{nonce}"]


def show_pane(pane_id: str, nonce: str) -> list[str]:
    """Show one pane with all fields."""
    return ["display-message", "-p", "-t", pane_target(pane_id), row_format(nonce, True)]


def look(pane_id: str, nonce: str) -> list[str]:
    """Show one pane with all fields, and then its screen with the sequences of its styles."""
    capture = ["capture-pane", "-e", "-p", "-t", pane_id]
    return in_turn(show_pane(pane_id, nonce), capture, ["display-message", "-p", nonce + "end"])


def show_keys(nonce: str) -> list[str]:
    """Show for each pane, in each session that has it, when a client was attached and pressed a key last."""
    fields = "#{pane_id} #{session_activity} #{session_last_attached}"
    return ["list-panes", "-a", "-F", f"{nonce} {fields}"]


def capture_script(pane_ids: list[str], nonce: str, scrollback: int = 0, *, styled: bool = False) -> bytes:
    """Return a script for `source-file -` that prints each pane's screen and then a line with the nonce.

    That line has the number of the pane, the position of its cursor, and when a program last wrote into its
    window. With `styled` the screens have the sequences of their styles.

    tmux refuses more than 16 KB of arguments, but not of a script. In a script, a line that fails does not
    stop the others.
    """
    options = (" -e" if styled else "") + (f" -S -{int(scrollback)}" if scrollback > 0 else "")
    return "".join(
        f"capture-pane -p -t {pane_target(pane_id)}{options} ; "
        f"display-message -p -t {pane_id} '{nonce}{pane_id[1:]},{_FACTS}'\n"
        for pane_id in pane_ids
    ).encode()


def in_turn(*commands: list[str]) -> list[str]:
    """Return several commands as one list that tmux runs in order; leave out empty commands."""
    joined: list[str] = []
    for command in commands:
        if command:
            joined += [";", *command] if joined else command
    return joined


def start(
    name: str, launch: list[str], *, session_id: str, root: str, width: int, height: int, nonce: str
) -> list[str]:
    """Start a session of one pane, mark it and show it. A server without sessions gets safe options first."""
    target = f"={checked_name(name)}:"
    return in_turn(
        ["start-server"],
        ["if-shell", "-F", "#{?#{S:1},0,1}", _MAKE_SAFE],
        ["new-session", "-d", "-s", name, "-x", str(int(width)), "-y", str(int(height)), "--", *launch],
        set_pane_options(target, session_id, root),
        ["set-option", "-t", target, "destroy-unattached", "off"],
        # tmux shows errors of the user's tmux.conf in the first pane, in a mode that would take mam's keys.
        ["copy-mode", "-q", "-t", target],
        ["display-message", "-p", "-t", target, row_format(nonce)],
        ["display-message", "-p", "-t", target, f"{nonce}alone#{{window_panes}},#{{session_windows}}"],
    )


def was_started_with(word: str) -> str:
    """Return a format that is 1 for a pane whose start command holds a word of mam."""
    if word.strip(_LOWER + _DIGITS):
        raise Usage("not a word that may stand in a format")
    return f"#{{m:*{word}*,#{{pane_start_command}}}}"


def list_started_with(name_or_window: str, word: str) -> list[str]:
    """Show the panes of a session, each with whether its start command holds a word of mam."""
    target = name_or_window if is_id(name_or_window, "@") else f"={checked_name(name_or_window)}:"
    return ["list-panes", "-s", "-t", target, "-F", f"#{{pane_id}} {was_started_with(word)}"]


def move_mark(wrong: str, right: str, session_id: str, root: str, nonce: str) -> list[str]:
    """Remove mam's options from one pane, set them on another, and show that one."""
    options = ("@mam_session", "@mam_root", "remain-on-exit", "allow-rename", "allow-passthrough")
    removals = [["set-option", "-q", "-p", "-u", "-t", pane_target(wrong), option] for option in options]
    show = ["display-message", "-p", "-t", pane_target(right), row_format(nonce)]
    return in_turn(*removals, set_pane_options(right, session_id, root), show)


def set_pane_options(target: str, session_id: str, root: str) -> list[str]:
    """Set the options of a pane that mam starts, and mark it with its session and root."""
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
    """Mark a pane that mam did not start; its other options stay as they are."""
    target = pane_target(pane_id)
    return in_turn(
        ["set-option", "-p", "-t", target, "@mam_session", checked_mark(session_id)],
        ["set-option", "-p", "-t", target, "@mam_root", encode_root(root)],
    )


def claim(pane_id: str, session_id: str, root: str, nonce: str) -> list[str]:
    """Mark a pane that has no mark. The server decides, so only one of two processes succeeds."""
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
    """Remove the mark of this session from a pane."""
    target = pane_target(pane_id)
    then = ["set-option", "-p", "-u", "-t", target, "@mam_session", ";"]
    then += ["set-option", "-p", "-u", "-t", target, "@mam_root"]
    return guarded(pane_id, guard(pane_id, session_id, typing=False), then, nonce)


def guard(pane_id: str, mark: str | None, *, typing: bool, at: tuple[int, int] | None = None) -> str:
    """Return a format that is true while the pane has this id and mark; for typing, alive and in no mode.

    With `at` its cursor must stand there as well, because a program that draws something else moves it.
    """
    conditions = [f"#{{==:#{{pane_id}},{pane_target(pane_id)}}}"]
    if mark is not None:
        conditions.append(f"#{{==:#{{@mam_session}},{checked_mark(mark)}}}")
    if typing:
        conditions += ["#{?pane_dead,0,1}", "#{?pane_in_mode,0,1}"]
    if at is not None:
        conditions += [f"#{{==:#{{cursor_x}},{int(at[0])}}}", f"#{{==:#{{cursor_y}},{int(at[1])}}}"]
    combined = conditions.pop()
    while conditions:
        combined = f"#{{&&:{conditions.pop()},{combined}}}"
    return combined


def guarded(
    pane_id: str, condition: str, then: list[str], nonce: str, otherwise: list[str] | None = None
) -> list[str]:
    """Run a command only if the condition holds; the server checks and runs it in one step.

    The answer is the nonce and `yes` or `no`; tmux prints it only after the command succeeded.
    """
    yes = in_turn(then, ["display-message", "-p", nonce + "yes"])
    no = in_turn(otherwise or [], ["display-message", "-p", nonce + "no"])
    return ["if-shell", "-F", "-t", pane_target(pane_id), condition, quoted(yes), quoted(no)]


def paste(
    pane_id: str, mark: str, *, buffer: str, enter: bool, nonce: str, at: tuple[int, int] | None = None
) -> list[str]:
    """Paste the text of stdin, bracketed if the program asked for that, and with `enter` press Enter."""
    then = ["paste-buffer", "-p", "-r", "-d", "-b", buffer, "-t", pane_target(pane_id)]
    if enter:
        then += [";", "send-keys", "-t", pane_id, "Enter"]
    discard = ["delete-buffer", "-b", buffer]
    condition = guard(pane_id, mark, typing=True, at=at)
    return ["load-buffer", "-b", buffer, "-", ";", *guarded(pane_id, condition, then, nonce, discard)]


def press(
    pane_id: str, keys: list[str], mark: str, nonce: str, at: tuple[int, int] | None = None
) -> list[str]:
    """Press keys of the closed list."""
    from mam.adapters.tmux.key_names import tmux_keys

    then = ["send-keys", "-t", pane_target(pane_id), *tmux_keys(keys)]
    return guarded(pane_id, guard(pane_id, mark, typing=True, at=at), then, nonce)


def kill_pane(pane_id: str, mark: str | None, nonce: str, pid: int | None = None) -> list[str]:
    """Kill one pane, with `pid` only that of this process; with its last pane, the tmux session ends too."""
    # tmux answers first, because the server may end with its last pane before it can answer.
    condition = guard(pane_id, mark, typing=False)
    if pid is not None:
        condition = f"#{{&&:#{{==:#{{pane_pid}},{int(pid)}}},{condition}}}"
    yes = ["display-message", "-p", nonce + "yes", ";", "kill-pane", "-t", pane_target(pane_id)]
    no = ["display-message", "-p", nonce + "no"]
    return ["if-shell", "-F", "-t", pane_id, condition, quoted(yes), quoted(no)]


def respawn(pane_id: str, launch: list[str], mark: str, root: str, nonce: str) -> list[str]:
    """Start a command in a dead pane of mam and show it; tmux itself refuses a live pane."""
    condition = guard(pane_id, mark, typing=False)
    then = in_turn(
        set_pane_options(pane_target(pane_id), mark, root), ["respawn-pane", "-t", pane_id, "--", *launch]
    )
    return in_turn(guarded(pane_id, condition, then, nonce), show_pane(pane_id, nonce))


def capture(pane_id: str, scrollback: int = 0) -> list[str]:
    """Print one pane's screen."""
    back = ["-S", f"-{int(scrollback)}"] if scrollback > 0 else []
    return ["capture-pane", "-p", "-t", pane_target(pane_id), *back]


def quoted(arguments: list[str]) -> str:
    """Return arguments as one tmux command string; a lone `;` stays a separator."""
    return " ".join(
        ";" if argument == ";" else "'" + argument.replace("'", "'\\''") + "'" for argument in arguments
    )


def rename_session(session_id: str, name: str) -> list[str]:
    """Give a session another name."""
    return ["rename-session", "-t", session_target(session_id), checked_name(name)]


def attach(session_id: str) -> list[str]:
    """Attach the terminal to a session."""
    return ["attach-session", "-t", session_target(session_id)]


def switch_client(session_id: str) -> list[str]:
    """Show a session in the tmux client of the caller."""
    return ["switch-client", "-t", session_target(session_id)]


def server_options() -> list[str]:
    """Show the options that limit the programs in panes, and whether mam started the server."""
    command: list[str] = []
    for scope, name, _ in (*SAFE_OPTIONS, ("-s", "@mam_server", ""), ("-s", "exit-empty", "")):
        command += ["show-options", "-q", scope, name, ";"]
    return [*command, "display-message", "-p", "version #{version}"]
