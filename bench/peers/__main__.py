"""`python -m bench.peers`: write the page and the chart again, from the results of the last run."""

from __future__ import annotations

import json

from bench.peers.comparison import RESULTS, write

if __name__ == "__main__":
    write(json.loads(RESULTS.read_text(encoding="utf-8")))
