"""What a salvage means for a person: which damaged pages matter, and how many rows came back or did not."""

from __future__ import annotations

from mam.adapters.store.checked_copy import TABLES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.adapters.store.salvage import SalvageReport

    Document = dict[str, Any]

# Its values are found out anew, so nobody misses one.
_META = "meta"
_SCHEMA = "sqlite_schema"
_LEAVES = ("table leaf", "index leaf")
# Nothing tells what the page was.
_UNKNOWN = "unknown"


def summary_of(report: SalvageReport) -> Document:
    """Return the summary of a salvage.

    `lost` counts the rows that mam saw and could take neither from the database nor from the copy, `tables`
    the same for each table that needed the copy or lost rows. `pages_with_rows` are the damaged pages that
    held rows or led to them. Of `unreadable_pages` of these nobody can tell how many rows they held.
    """
    known = {*TABLES, *report.sources}
    pages = [page for page in report.pages if _matters(page, known)]
    left_out: dict[str, int] = {}
    for page in pages:
        left_out[page["table"]] = left_out.get(page["table"], 0) + page["left_out"]
    tables = {}
    for table in dict.fromkeys((*report.sources, *left_out)):
        sources = report.sources.get(table, {"tree": 0, "leaf": 0, "copy": 0})
        lost = max(0, left_out.get(table, 0) - sources["copy"])
        if table != _META and (sources["copy"] or lost):
            of_database = sources["tree"] + sources["leaf"]
            tables[table] = {"database": of_database, "copy": sources["copy"], "lost": lost}
    return {
        "lost": sum(counts["lost"] for counts in tables.values()),
        "from_copy": sum(counts["copy"] for counts in tables.values()),
        "tables": tables,
        "pages_with_rows": [page["page"] for page in pages],
        "unreadable_pages": sum(map(_is_unreadable, pages)),
    }


def _matters(page: Document, known: set[str]) -> bool:
    if page["table"] is None:
        return page["what"] in (*_LEAVES, _UNKNOWN)
    return page["table"] in known or page["table"] == _SCHEMA


def _is_unreadable(page: Document) -> bool:
    is_inner = page["what"] == "table interior" or page["table"] == _SCHEMA
    return not is_inner and not (page["tree"] + page["leaf"] + page["left_out"])
