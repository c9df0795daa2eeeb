#!/bin/sh
# Lets opencode ($1) delete one conversation ($2).
# At each start opencode installs a package into its configuration, under a lock. This command ends before the
# installation does and leaves the lock, which delays the next start for a minute. So this script moves the
# configuration and the lock to a temporary folder.
umask 077
place=$(mktemp -d "${TMPDIR:-/tmp}/mam-delete.XXXXXX") || exit 1
trap 'rm -rf "$place"' EXIT
unset OPENCODE_CONFIG_DIR
export XDG_STATE_HOME="$place" XDG_CONFIG_HOME="$place" OPENCODE_DISABLE_PROJECT_CONFIG=1
"$1" session delete "$2" --pure
