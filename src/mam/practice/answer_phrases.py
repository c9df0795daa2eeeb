"""The phrases that answers are composed of."""

from __future__ import annotations

TOPICS: dict[str, frozenset[str]] = {
    "fault": frozenset(
        {"bug", "bugs", "error", "errors", "fix", "fails", "failing", "broken", "crash", "wrong"}
    ),
    "question": frozenset({"why", "how", "what", "explain", "where", "when", "which", "who", "does", "is"}),
    "review": frozenset({"review", "check", "audit", "look", "compare", "verify"}),
    "change": frozenset({"refactor", "rename", "move", "clean", "simplify", "split", "rewrite", "change"}),
    "prose": frozenset(
        {"readme", "docs", "document", "write", "describe", "summary", "summarise", "summarize"}
    ),
    "greeting": frozenset({"hello", "hi", "hey", "thanks", "morning"}),
}

OPENINGS = (
    "I read “{quote}” and went through the files it touches.",
    "On “{quote}”: here is what I found.",
    "Taking “{quote}” as the goal, I started from the entry point and followed the calls.",
    "You asked for “{quote}”.",
    "Understood: “{quote}”. I kept the scope to exactly that.",
    "“{quote}” comes down to one decision.",
)

SENTENCES: dict[str, tuple[str, ...]] = {
    "fault": (
        "The failure begins earlier than the line in the trace: a value is read before the loop has set it.",
        "The same input passes in one piece and fails when it is cut in two, so the buffer is at fault.",
        "A retry hides it most of the time, which is why it only shows under load.",
        "I would rather mend the parser than add another guard around its caller.",
        "There is one more place with the same pattern, and it deserves the same change.",
    ),
    "question": (
        "The short answer is that the order matters: first the record is written, then everybody is told.",
        "Nothing reads that value at the start; it is computed when the first caller asks, and then kept.",
        "It was built for a single writer, and the lock was added later, which explains the odd shape.",
        "You can see it best by following one request from the command line down to the file it changes.",
        "The two names mean the same thing; the older one survives in the configuration.",
    ),
    "review": (
        "The structure is sound: each module has one reason to change, and the imports point one way.",
        "Two functions do their own quoting where a shared one exists, and they disagree about newlines.",
        "The tests cover the happy path well, but nobody checks what happens when the disk is full.",
        "I see no security problem, though the temporary file should be created with tighter permissions.",
        "Names are consistent except in the oldest module, where abbreviations remain.",
    ),
    "change": (
        "The change splits in three steps, and each of them leaves the program working.",
        "I moved the decision out of the loop, so that it can be checked without a terminal.",
        "Callers keep the same signature, which means that nothing outside this folder has to follow.",
        "Half of the old branches could never be reached, and they are gone.",
        "What remains is shorter by a third, and reads from top to bottom.",
    ),
    "prose": (
        "It opens with what the program does for its reader, and only then explains how.",
        "I kept the sentences short and replaced the adjectives by numbers where I had them.",
        "Every command in it can be copied as it stands.",
        "The section about installation now comes first, since that is where people arrive.",
        "One paragraph described a flag that no longer exists, so I left it out.",
    ),
    "greeting": (
        "Good to hear from you; the folder is readable and I am ready to work in it.",
        "Tell me which part you care about most, and I will begin there.",
        "If you have a failing case, paste it here and I will start from that.",
        "I can look around first and report what I see before I touch anything.",
    ),
    "work": (
        "The smallest useful step is to make the current behaviour visible before anything is altered.",
        "Most of the work sits in one module, and the rest only passes its result along.",
        "I looked for an existing helper first and found one that does nearly what we need.",
        "The risky part is the hand-over between the two processes, so that is where I added a check.",
        "It stays compatible with what is already on disk, and an older version can still read it.",
    ),
}

LISTS = (
    "the input is checked once, where it enters",
    "errors carry the name of the thing that failed",
    "no state is kept between two calls",
    "the slow path is only taken on the first start",
    "a second run finds its work done and changes nothing",
    "the log line says what happened, not what was planned",
    "a time limit ends every wait",
)

CODE = (
    "```python\ndef settle(items):\n    return sorted(set(items), key=str.lower)\n```",
    "```python\nwith open(path, encoding='utf-8') as lines:\n    return sum(1 for line in lines)\n```",
    "```sh\ngit diff --stat\ngit log --oneline -5\n```",
    "```python\nif deadline <= now:\n    raise TimeoutError(name)\n```",
)

CLOSINGS = (
    "Tell me if you want me to go on with it.",
    "I can apply this to the other places as well, one at a time.",
    "I would look at the test for it next.",
    "Nothing else in the folder depends on it, so it is safe to try.",
    "If that matches what you had in mind, I will carry on from here.",
)
