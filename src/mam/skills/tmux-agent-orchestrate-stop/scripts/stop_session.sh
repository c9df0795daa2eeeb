#!/bin/sh
command -v mam >/dev/null || { echo "stop_session.sh: mam is not on PATH; install mam, or add its folder to PATH" >&2; exit 127; }; exec mam stop "$@"
