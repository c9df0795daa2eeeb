#!/bin/sh
# Has opencode ($1) delete one conversation ($2).
# At each start it installs a package into its configuration, under a lock. A command as short as this ends
# before that does and leaves the lock, which holds up the next start for a minute: so both lie elsewhere.
umask 077
place=$(mktemp -d "${TMPDIR:-/tmp}/mam-delete.XXXXXX") || exit 1
trap 'rm -rf "$place"' EXIT
unset OPENCODE_CONFIG_DIR
export XDG_STATE_HOME="$place" XDG_CONFIG_HOME="$place" OPENCODE_DISABLE_PROJECT_CONFIG=1
"$1" session delete "$2" --pure
