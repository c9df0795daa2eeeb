#!/bin/sh
# The hook of an agent: writes a payload ($2, or else standard input) into the spool ($1).
# The file is named <session>.<pid of the agent>.<pid>.json: $PPID is the agent, as the command uses exec.
# A failure must not disturb the agent: no output, exit 0.
exec 2>/dev/null
umask 077
[ -n "$MAM_SESSION" ] || exit 0
n=
while :; do
  f=$MAM_SESSION.$PPID.$$$n
  [ -e "$1/$f.json" ] || break
  n=${n:-x}x
done
if [ $# -gt 1 ]; then printf %s "$2"; else cat; fi >"$1/.$f.tmp" && mv -f "$1/.$f.tmp" "$1/$f.json"
exit 0
