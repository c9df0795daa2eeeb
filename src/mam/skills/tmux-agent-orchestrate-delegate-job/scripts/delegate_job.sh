#!/bin/sh
command -v mam >/dev/null || { echo "delegate_job.sh: mam is not on PATH; install mam, or add its folder to PATH" >&2; exit 127; }; exec mam job "$@"
