"""Brings back what a damaged database still holds, and fills the gaps from a copy.

`salvage(damaged_path, copy_path, target)` is the whole interface. mam reads the pages of the file and of its
write-ahead log by itself, so a damaged page costs its own rows and no others:

1. From page 1 it walks the b-tree of each table. What is reached this way came from the `tree`.
2. If an inner page or page 1 is lost, the pages below it are still there. mam reads each page that belongs to
   nothing else, and tells by the form of its rows which table they are of. These rows came from a `leaf`.
   Pages that SQLite has freed hold deleted rows and are not read.
3. A table that lacks something is filled up from the copy, by primary key. A table that is whole is not: the
   copy has rows that were deleted since.

A damaged byte can also change a value, so each row passes the checks of `checked_copy`. Rows that say what
some process is doing now are dropped, as there. The file and its log are only read.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
import stat
from contextlib import contextmanager

from mam.adapters.store import checked_copy, database
from mam.adapters.store import sqlite_pages as pages
from mam.adapters.store.checked_copy import CopyReport, Unfit
from mam.adapters.store.sqlite_pages import Malformed
from mam.core.errors import InvalidName, MamError
from mam.core.names import parse_server

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from mam.adapters.store.sqlite_pages import Page, Value

    # A page with rows, and the rowids between which its rows lie.
    _Leaf = tuple[int, int | None, int | None]

_MOMENTARY = ("intents", "outbox", "evidence", "drifts", "notices", "forgotten")
_TABLE_KINDS = pages.TABLE_LEAF, pages.TABLE_INTERIOR
_INDEX_KINDS = pages.INDEX_LEAF, pages.INDEX_INTERIOR
_META, _SEQUENCE = "meta", "sqlite_sequence"
# The column that grows with each change of a row.
_AGES = {"sessions": "version", "messages": "changed_at", "jobs": "updated_at"}
_LONGEST_ROW = 64 << 20
_MOST_SAMPLES, _MOST_PROBLEMS = 64, 1000
_NO_PAGE = "it is no page of a table or an index, and nothing tells what it was"
# More numbers than this are not given out between two rows that are left.
_LARGEST_JUMP = 1_000_000
_HEX = re.compile(r"[0-9a-f]{8,64}\Z")
_CARD = re.compile(r"t_[0-9a-f]{4,32}\Z")
# What only the form of a page's rows can be asked, because two tables have columns of the same types.
_FORMS: dict[str, Callable[[dict[str, Any]], object]] = {
    "board_links": lambda row: _CARD.match(row["parent_id"]) and _CARD.match(row["child_id"]),
    "board_comments": lambda row: _CARD.match(row["task_id"]),
    "board_events": lambda row: _CARD.match(row["task_id"]),
    "board_runs": lambda row: _CARD.match(row["task_id"]),
    "board_tasks": lambda row: _CARD.match(row["id"]),
    _META: lambda row: row["key"] in _META_CHECKS,
}


class SalvageReport(CopyReport):
    """What came from where. `taken` has all rows of a table, `sources` the rows by where they came from.

    `pages` has one entry for each damaged page: its number, what it was, its table, what is wrong with it,
    how many of its rows were read (`tree` or `leaf`) and left out, and how many came from the copy: None
    where several pages of the table are damaged and nothing tells from which of them a row was lost.
    """

    __slots__ = ("copy", "copy_problem", "page_count", "page_size", "pages", "sources", "wal")

    def __init__(self) -> None:
        super().__init__()
        self.sources: dict[str, dict[str, int]] = {}
        self.pages: list[dict[str, Any]] = []
        self.page_size = self.page_count = 0
        # How many frames of the log count, and whether the rest of it is unreadable.
        self.wal: dict[str, Any] = {"frames": 0, "problem": None}
        self.copy: str | None = None
        self.copy_problem: str | None = None

    def count(self, table: str, source: str) -> None:
        """Count a row that was brought back from `tree`, `leaf` or `copy`."""
        self.taken[table] = self.taken.get(table, 0) + 1
        self.sources.setdefault(table, {"tree": 0, "leaf": 0, "copy": 0})[source] += 1

    def as_json(self) -> dict[str, Any]:
        """Return the report as the document that every surface shows."""
        names = ("taken", "sources", "left_out", "left_out_count", "dropped", "pages", "page_size")
        more = ("page_count", "wal", "copy", "copy_problem")
        return {name: getattr(self, name) for name in (*names, *more)}


def salvage(damaged_path: str, copy_path: str | None, target: sqlite3.Connection) -> SalvageReport:
    """Fill an empty database of today's schema with what a damaged one and a copy hold, in one transaction.

    `damaged_path` names the damaged file, with its log `-wal` beside it; nobody may write it meanwhile.
    `copy_path` names a sound database of mam in a private folder, or is None. `target` is open, without a
    transaction. Raises RegistryCorrupt if nothing of the file can be read; a copy that cannot be read is
    noted in the report.
    `root_id` is the copy's if there is one, because a damaged id looks like an id.
    """
    with database.errors(damaged_path), _PageFile(damaged_path) as file:
        report = SalvageReport()
        report.page_size, report.page_count, report.wal = file.size, file.count, file.wal
        target.execute("BEGIN IMMEDIATE")
        try:
            work = _Salvage(file, target, report)
            work.read_file()
            if copy_path is not None:
                work.fill_from(copy_path)
            work.finish()
            target.execute("COMMIT")
        except BaseException:
            if target.in_transaction:
                target.execute("ROLLBACK")
            raise
        return report


class _PageFile:
    """The pages of a database file, each in its newest committed state."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.wal: dict[str, Any] = {"frames": 0, "problem": None}
        self._handles: list[int] = []
        # For each page the place of its newest frame in the log.
        self._frames: dict[int, int] = {}
        self.size, self.usable, self.count = 4096, 4096, 0

    def __enter__(self) -> _PageFile:
        try:
            self._open()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for handle in self._handles:
            os.close(handle)
        self._handles = []

    def _open(self) -> None:
        self._handles.append(_open_regular(self.path))
        length = os.fstat(self._handles[0]).st_size
        wal_size = size_after = None
        try:
            self._handles.append(_open_regular(f"{self.path}-wal"))
        except FileNotFoundError:
            pass
        else:
            wal_size, size_after = self._read_wal(self._handles[1])
        self._find_page_size(length, wal_size)
        # A last page that is cut off is not a page.
        self.count = max(length // self.size, size_after or 0)

    def _read_wal(self, handle: int) -> tuple[int | None, int | None]:
        head = os.pread(handle, 32, 0)
        if not head:
            return None, None
        size = pages.wal_page_size(head)
        if size is None:
            self.wal["problem"] = "its head is damaged"
            return None, None
        place, size_after, length = 32, None, os.fstat(handle).st_size
        pending: dict[int, int] = {}

        def read(count: int) -> bytes:
            return os.pread(handle, count, place)

        for frame in pages.wal_frames(head, read):
            pending[frame.number] = place + 24
            place += 24 + size
            if frame.size_after:
                self._frames |= pending
                self.wal["frames"] += len(pending)
                pending, size_after = {}, frame.size_after
        if size_after is not None:
            self._frames = {number: at for number, at in self._frames.items() if number <= size_after}
        # After the last sound frame SQLite leaves frames of former rounds, which have other salts.
        salts = os.pread(handle, 8, place + 8)
        if place + 24 + size <= length and salts == head[16:24]:
            self.wal["problem"] = "a frame is damaged, and it and all after it do not count"
        return size, size_after

    def _find_page_size(self, length: int, wal_size: int | None) -> None:
        """Choose the page size by which most pages can be read: the head of the file may be damaged."""
        head = os.pread(self._handles[0], 100, 0).ljust(100, b"\0")
        named = int.from_bytes(head[16:18], "big")
        named = 65536 if named == 1 else named
        sizes = sorted(pages.PAGE_SIZES, key=lambda size: (size != wal_size, size != named))
        best = (0, 0, 0)
        for size in sizes:
            for reserved in dict.fromkeys((0, min(head[20], 32), 12)):
                score = self._score(size, size - reserved, length)
                if score > best[0]:
                    best = (score, size, size - reserved)
        if not best[0]:
            raise database.damaged(self.path, "no page of it can be read")
        self.size, self.usable = best[1:]

    def _score(self, size: int, usable: int, length: int) -> int:
        self.size, score = size, 0
        count = max(length // size, max(self._frames, default=0))
        step = max(1, count // _MOST_SAMPLES)
        for number in (1, *range(2, count + 1, step)):
            data = self.read(number)
            try:
                page = pages.parse_page(data or b"", number, usable)
            except Malformed:
                continue
            score += bool(page.cells) and not page.problems
        return score

    def read(self, number: int) -> bytes | None:
        """Return a page, or None where the file has none."""
        place = self._frames.get(number)
        if place is not None:
            data = os.pread(self._handles[1], self.size, place)
        else:
            data = os.pread(self._handles[0], self.size, (number - 1) * self.size) if number > 0 else b""
        return data if len(data) == self.size else None


def _open_regular(path: str) -> int:
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise database.damaged(path, "it is not a regular file")
    return handle


class _Table:
    """What is known of a table: its columns, and how much of its b-tree was found."""

    def __init__(self, name: str, connection: sqlite3.Connection) -> None:
        self.name = name
        self.expected = checked_copy.columns(connection, name)
        facts = connection.execute("SELECT name, pk FROM pragma_table_info(?)", (name,)).fetchall()
        keys = sorted((pk, column) for column, pk in facts if pk)
        self.key = [column for _, column in keys]
        (sql,) = connection.execute("SELECT sql FROM sqlite_master WHERE name=?", (name,)).fetchone()
        self.sql = sql
        self.is_index = bool(re.search(r"WITHOUT\s+ROWID\s*\Z", sql or "", re.IGNORECASE))
        self.rowid = None
        if len(self.key) == 1 and self.expected[self.key[0]][0] == "INTEGER" and not self.is_index:
            self.rowid = self.key[0]
        self.set_order(list(self.expected))
        # The pages of its tree that hold rows, each with the rowids that may be on it.
        self.leaves: list[_Leaf] = []
        self.has_gaps = False
        # True if pages with rows may be left that nothing leads to any more.
        self.has_lost_pages = False

    def set_order(self, names: list[str]) -> None:
        """Set the columns in the order of the file; a table without rowids stores its key first."""
        rest = [name for name in names if name not in self.key]
        self.order = [*self.key, *rest] if self.is_index else names

    def set_order_of(self, sql: object) -> None:
        """Set the columns in the order of a definition, unless it is damaged or names others."""
        order = _column_order(sql) if isinstance(sql, str) else []
        if order and set(order) <= self.expected.keys() and set(self.key) <= set(order):
            self.set_order(order)

    def row(self, values: Sequence[Value], rowid: int | None) -> dict[str, Any]:
        """Return the values by column; raise Unfit if they cannot be a row of this table."""
        if not len(self.key) <= len(values) <= len(self.order) or (rowid is None) != self.is_index:
            raise Unfit("it has another form")
        row = dict(zip(self.order, values, strict=False))
        if self.rowid is not None:
            if row.get(self.rowid) is not None:
                raise Unfit("it has another form")
            row[self.rowid] = rowid
        return row

    def checked(self, row: dict[str, Any]) -> dict[str, Any]:
        """Return the columns of a row that are taken over; raise Unfit if mam could not have written it."""
        skipped = checked_copy.SKIPPED.get(self.name, ())
        kept = {name: row[name] for name in self.expected if name in row and name not in skipped}
        if self.name == _META:
            _check_meta(kept)
        checked_copy.check_row(self.name, kept, self.expected)
        return kept

    def key_of(self, row: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(row.get(name) for name in self.key)


class _Salvage:
    def __init__(self, file: _PageFile, target: sqlite3.Connection, report: SalvageReport) -> None:
        self.file, self.target, self.report = file, target, report
        names = [
            name
            for (name,) in target.execute("SELECT name FROM sqlite_master WHERE type='table'")
            if not name.startswith("sqlite_")
        ]
        order = {name: place for place, name in enumerate(checked_copy.TABLES)}
        names.sort(key=lambda name: order.get(name, len(order)))
        self.tables = {name: _Table(name, target) for name in names}
        # What each page is known to be.
        self.claimed: dict[int, str] = {}
        self.damaged: dict[int, dict[str, Any]] = {}
        self.bounds: dict[int, tuple[int | None, int | None]] = {}
        self.sequences: dict[str, int] = {}
        self.releases = 2 * file.count
        self.copy_root_id: str | None = None

    def read_file(self) -> None:
        roots = self._read_schema()
        for name, (root, is_index) in roots.items():
            self._walk(name, root, is_index=is_index)
        self._claim_free_pages()
        for table in self.tables.values():
            if table.name in _MOMENTARY:
                self.report.dropped[table.name] = sum(
                    len(page.cells) for number, *_ in table.leaves if (page := self._page(number)) is not None
                )
                continue
            for number, low, high in table.leaves:
                self._read_leaf(table, number, low, high)
        self._read_lost_pages()

    def _read_schema(self) -> dict[str, tuple[int, bool]]:
        """Return the first page of each table and index, as page 1 and the pages below it name them."""
        found: dict[str, tuple[int, bool, object]] = {}
        leaves, holes = self._walk_tree("sqlite_schema", 1, is_index=False)
        for number, _low, _high in leaves:
            page = self._page(number)
            for cell in page.cells if page is not None else []:
                try:
                    found |= self._schema_entry(cell)
                except (Malformed, ValueError) as error:
                    self._damage(number, "schema", None, str(error))
        first = [root for root, *_ in found.values()]
        if len(set(first)) != len(first):
            self._damage(1, "schema", None, "two tables begin on one page")
            found = {name: entry for name, entry in found.items() if first.count(entry[0]) == 1}
        for name, table in self.tables.items():
            if name not in found:
                # An older schema lacks tables too.
                table.has_gaps = table.has_lost_pages = bool(holes or self.damaged)
            elif found[name][2] != table.sql:
                table.set_order_of(found[name][2])
        return {name: (root, is_index) for name, (root, is_index, _) in found.items()}

    def _schema_entry(self, cell: pages.Cell) -> dict[str, tuple[int, bool, object]]:
        """Return the first page of a table or index, whether its rows lie in an index, and its definition."""
        kind, name, _, root, sql = pages.decode_record(self._payload(cell, "sqlite_schema"))
        if kind not in ("table", "index") or not isinstance(name, str):
            return {}
        if not isinstance(root, int) or not 1 < root <= self.file.count:
            raise Malformed("the first page of a table is damaged")
        return {name: (root, kind == "index" or _is_index_table(self.tables.get(name), sql), sql)}

    def _walk(self, name: str, root: int, *, is_index: bool) -> None:
        leaves, holes = self._walk_tree(name, root, is_index=is_index)
        table = self.tables.get(name)
        if table is None:
            if name == _SEQUENCE:
                self._read_sequences(leaves)
            return
        table.leaves = leaves
        if holes:
            table.has_gaps = True
            table.has_lost_pages = any(may_be_inner for _, may_be_inner in holes)

    def _walk_tree(
        self, name: str, root: int, *, is_index: bool
    ) -> tuple[list[_Leaf], list[tuple[int, bool]]]:
        """Return the pages with rows of a tree, and the pages that cannot be read.

        All leaves have the same depth, so a page that is missing there is a leaf, and hides no other page.
        """
        kinds = _INDEX_KINDS if is_index else _TABLE_KINDS
        leaves: list[_Leaf] = []
        holes: list[tuple[int, int]] = []
        leaf_depth = None
        todo: list[tuple[int, int, int | None, int | None]] = [(root, 0, None, None)]
        while todo:
            number, depth, low, high = todo.pop()
            page = self._tree_page(name, number, kinds)
            if number in self.damaged:
                self.bounds.setdefault(number, (low, high))
            if page is None or (page.problems and page.kind not in pages.LEAVES):
                holes.append((number, depth))
            if page is None:
                continue
            if page.kind in pages.LEAVES:
                leaf_depth = depth
            else:
                todo.extend(reversed(_children(page, depth + 1, low, high)))
            if page.kind != pages.TABLE_INTERIOR:
                leaves.append((number, low, high))
        for number, depth in holes:
            entry = self.damaged.get(number)
            if entry is not None and entry["what"] == "unknown" and depth == leaf_depth:
                entry["what"] = pages.KINDS[kinds[0]]
        return leaves, [(number, depth != leaf_depth) for number, depth in holes]

    def _tree_page(self, name: str, number: int, kinds: tuple[int, int]) -> Page | None:
        """Return a page that a tree names, and mark it as a part of the tree; note what is wrong with it."""
        owner = self.claimed.get(number)
        if owner is not None or not 1 <= number <= self.file.count:
            self._damage(
                number, "missing", name, f"it is also of {owner}" if owner else "the file does not have it"
            )
            if owner in self.tables:
                # One of the two is wrong.
                self.tables[owner].has_gaps = self.tables[owner].has_lost_pages = True
            return None
        page, problem = self._page_of(number, kinds)
        self.claimed[number] = name
        if page is None:
            self._damage(number, "unknown", name, problem)
        elif page.problems:
            self._damage(number, pages.KINDS[page.kind], name, page.problems[0])
        return page

    def _page_of(self, number: int, kinds: tuple[int, int]) -> tuple[Page | None, str]:
        """Return a page of a tree. A page whose kind is damaged counts if all else of it adds up."""
        data = self.file.read(number)
        if data is None:
            return None, "the file does not have this page"
        try:
            page = pages.parse_page(data, number, self.file.usable)
            if page.kind in kinds:
                return page, ""
            problem = "it is a page of another kind"
        except Malformed as error:
            problem = str(error)
        for kind in kinds:
            try:
                page = pages.parse_page(data, number, self.file.usable, kind)
            except Malformed:
                continue
            fits = not page.problems and page.cells
            if fits and all(1 < child <= self.file.count for child in page.children):
                page.problems.append(problem)
                return page, problem
        return None, problem

    def _page(self, number: int) -> Page | None:
        """Return a page that was found before, or one that belongs to nothing else."""
        name = self.claimed.get(number)
        table = self.tables.get(name) if name is not None else None
        is_index = table.is_index if table is not None else False
        return self._page_of(number, _INDEX_KINDS if is_index else _TABLE_KINDS)[0]

    def _damage(self, number: int, what: str, table: str | None, problem: str) -> None:
        """Note a damaged page; what was found out first counts."""
        if len(self.damaged) < _MOST_PROBLEMS or number in self.damaged:
            is_rows = table in self.tables
            self.damaged.setdefault(
                number,
                {
                    "page": number,
                    "what": what,
                    "table": table,
                    "problem": problem,
                    "tree": 0,
                    "leaf": 0,
                    "left_out": 0,
                    "from_copy": 0 if is_rows else None,
                },
            )

    def _payload(self, cell: pages.Cell, name: str) -> bytes:
        taken: list[int] = []

        def take(number: int) -> bytes | None:
            if number in self.claimed or not 1 < number <= self.file.count:
                return None
            self.claimed[number] = f"overflow of {name}"
            taken.append(number)
            return self.file.read(number)

        try:
            return pages.read_payload(cell, self.file.usable, _LONGEST_ROW, take)
        except Malformed:
            # They may be the pages of another row. A hostile file could have them read again and again.
            if self.releases >= len(taken):
                self.releases -= len(taken)
                for number in taken:
                    del self.claimed[number]
            raise

    def _claim_free_pages(self) -> None:
        """Mark the pages that SQLite has freed; if their list is damaged, what looks like a part of it."""
        head = self.file.read(1) or b""
        trunk, count = (int.from_bytes(head[at : at + 4], "big") for at in (32, 36))
        found = 0
        while 1 < trunk <= self.file.count and trunk not in self.claimed:
            found += self._claim_trunk(trunk)
            following = pages.trunk_leaves(
                self.file.read(trunk) or bytes(8), self.file.usable, self.file.count
            )
            trunk = following[0] if following is not None else 0
        if found == count and not trunk:
            return
        if 1 not in self.damaged:
            self._damage(1, "file header", None, "the list of free pages is damaged")
        for number in range(2, self.file.count + 1):
            data = self.file.read(number)
            if data is not None and data[0] == 0 and number not in self.claimed:
                self._claim_trunk(number)

    def _claim_trunk(self, number: int) -> int:
        data = self.file.read(number)
        known = pages.trunk_leaves(data, self.file.usable, self.file.count) if data is not None else None
        if known is None:
            return 0
        self.claimed[number] = "free"
        free = [leaf for leaf in known[1] if leaf not in self.claimed]
        self.claimed |= dict.fromkeys(free, "free")
        return 1 + len(free)

    def _read_leaf(self, table: _Table, number: int, low: int | None, high: int | None) -> None:
        page = self._page(number)
        if page is None:
            return
        if page.problems:
            table.has_gaps = True
        odd: set[int] = set()
        if page.kind == pages.TABLE_LEAF:
            odd = pages.out_of_order([cell.rowid or 0 for cell in page.cells], low, high)
        fit = 0
        for place, cell in enumerate(page.cells):
            row: dict[str, Any] = {}
            try:
                if place in odd:
                    raise Unfit("its number is out of order")
                row = table.row(pages.decode_record(self._payload(cell, table.name)), cell.rowid)
                row = table.checked(row)
                checked_copy.insert(self.target, table.name, row)
            except (Malformed, Unfit, sqlite3.IntegrityError) as error:
                self._leave_out(table, number, page, row, error)
                self.bounds.setdefault(number, (low, high))
                continue
            fit += 1
            self.report.count(table.name, "tree")
        if number in self.damaged:
            self.damaged[number]["tree"] += fit
        if not fit and page.cells and table.name != _META:
            # The way to it may be damaged rather than the page, and it is one of another table.
            del self.claimed[number]
            table.has_gaps = table.has_lost_pages = True

    def _leave_out(
        self, table: _Table, number: int, page: Page, row: dict[str, Any], error: Exception
    ) -> None:
        if table.name == _META and isinstance(error, _Momentary):
            return
        table.has_gaps = True
        reason = "it contradicts another row" if isinstance(error, sqlite3.IntegrityError) else str(error)
        self._damage(number, pages.KINDS[page.kind], table.name, f"a row was left out: {reason}")
        entry = self.damaged.get(number)
        if entry is not None:
            entry["left_out"] += 1
        key = next(iter(row.values()), "")
        self.report.leave_out(table.name, key, f"page {number}: {reason}")

    def _read_lost_pages(self) -> None:
        """Read each page that nothing leads to, if a table has lost the way to some of its pages."""
        lost = {name: table for name, table in self.tables.items() if table.has_lost_pages}
        if not lost:
            return
        for number in range(2, self.file.count + 1):
            data = None if number in self.claimed else self.file.read(number)
            if data is None or data[0] not in pages.KINDS or data[0] == pages.TABLE_INTERIOR:
                continue
            try:
                page = pages.parse_page(data, number, self.file.usable)
            except Malformed as error:
                self._damage(number, pages.KINDS[data[0]], None, str(error))
                continue
            self._read_lost_page(number, page, lost)
        if not lost.keys() <= set(_MOMENTARY):
            self._note_unknown_pages()

    def _note_unknown_pages(self) -> None:
        """Note each page that nothing leads to and that cannot be read: it may have had any rows.

        What begins with a zero and is not empty is the rest of a long row, which tells nothing by itself.
        """
        for number in range(2, self.file.count + 1):
            data = None if number in self.claimed else self.file.read(number)
            if data is not None and data[0] not in pages.KINDS and (data[0] or not any(data)):
                self._damage(number, "unknown", None, _NO_PAGE)

    def _read_lost_page(self, number: int, page: Page, lost: dict[str, _Table]) -> None:
        records = []
        for cell in page.cells:
            try:
                records.append((pages.decode_record(self._payload(cell, f"page {number}")), cell.rowid))
            except Malformed as error:
                self._damage(number, pages.KINDS[page.kind], None, str(error))
        fitting = {name: _fitting(table, records) for name, table in lost.items() if name not in _MOMENTARY}
        most = max((len(rows) for rows in fitting.values()), default=0)
        names = [name for name, rows in fitting.items() if most and len(rows) == most]
        if len(names) != 1:
            if names:
                self._damage(number, pages.KINDS[page.kind], None, f"its rows may be of {' or '.join(names)}")
            return
        table = lost[names[0]]
        self.claimed[number] = table.name
        if page.problems or (most < len(page.cells) and table.name != _META):
            problem = page.problems[0] if page.problems else "a row was left out"
            self._damage(number, pages.KINDS[page.kind], table.name, problem)
            self.damaged.get(number, {})["table"] = table.name
        for row in fitting[table.name]:
            if self._find(table, row) is not None:
                continue
            try:
                checked_copy.insert(self.target, table.name, row)
            except sqlite3.IntegrityError as error:
                self._leave_out(table, number, page, row, error)
                continue
            self.report.count(table.name, "leaf")
            if number in self.damaged:
                self.damaged[number]["leaf"] += 1

    def _find(self, table: _Table, row: dict[str, Any]) -> tuple[Any, ...] | None:
        """Return what the target has for the primary key of a row: the age of the row there."""
        where = " AND ".join(f'"{name}"=?' for name in table.key)
        age = _AGES.get(table.name, "1")
        query = f"SELECT {age} FROM {table.name} WHERE {where}"  # noqa: S608  (our names)
        found: tuple[Any, ...] | None = self.target.execute(query, table.key_of(row)).fetchone()
        return found

    def _read_sequences(self, leaves: list[_Leaf]) -> None:
        for number, _low, _high in leaves:
            page = self._page(number)
            for cell in page.cells if page is not None else []:
                try:
                    name, value = pages.decode_record(self._payload(cell, _SEQUENCE))
                except (Malformed, ValueError):
                    continue
                self._note_sequence(name, value)

    def _note_sequence(self, name: object, value: object) -> None:
        if name in self.tables and isinstance(value, int) and not isinstance(value, bool):
            self.sequences[str(name)] = max(value, self.sequences.get(str(name), 0))

    def fill_from(self, path: str) -> None:
        """Fill the tables that lack something from a copy."""
        self.report.copy = path
        try:
            with _copy(path) as source:
                for table in self.tables.values():
                    # Values of the whole registry are never deleted.
                    if (table.has_gaps or table.name == _META) and table.name not in _MOMENTARY:
                        self._fill(source, table)
                for name, value in source.execute(f"SELECT name, seq FROM {_SEQUENCE}"):  # noqa: S608
                    self._note_sequence(name, value)
                self.copy_root_id = _root_id_of(source)
        except MamError as error:
            self.report.copy_problem = str(error)
        except sqlite3.DatabaseError as error:
            self.report.copy_problem = str(database.translate(error, path))

    def _fill(self, source: sqlite3.Connection, table: _Table) -> None:
        present = checked_copy.columns(source, table.name)
        names = [name for name in table.expected if name in present]
        for values in checked_copy.rows_of(source, table.name, names, self.report):
            row = dict(zip(names, values, strict=True))
            try:
                row = table.checked(row)
                found = self._find(table, row)
                if found is not None:
                    age = _AGES.get(table.name)
                    if age is None or row[age] <= found[0]:
                        continue
                    self._replace(table, row)
                else:
                    checked_copy.insert(self.target, table.name, row)
            except _Momentary:
                continue
            except (Unfit, sqlite3.IntegrityError) as error:
                is_unfit = isinstance(error, Unfit)
                reason = str(error) if is_unfit else "it contradicts another row"
                self.report.leave_out(table.name, next(iter(row.values()), ""), f"copy: {reason}")
                continue
            self.report.count(table.name, "copy")
            self._credit(table, row)

    def _replace(self, table: _Table, row: dict[str, Any]) -> None:
        """Put the copy's row in the place of one that cannot be newer than it: its age is damaged."""
        where = " AND ".join(f'"{name}"=?' for name in table.key)
        fields = ", ".join(f'"{name}"=?' for name in row)
        self.target.execute(
            f"UPDATE {table.name} SET {fields} WHERE {where}",  # noqa: S608  (our names)
            (*row.values(), *table.key_of(row)),
        )
        sources = self.report.sources[table.name]
        sources["tree" if sources["tree"] else "leaf"] -= 1
        self.report.taken[table.name] -= 1

    def _credit(self, table: _Table, row: dict[str, Any]) -> None:
        """Note for the damaged page that had a row that it came from the copy, if that can be told."""
        entries = [entry for entry in self.damaged.values() if entry["table"] == table.name]
        if len(entries) > 1 and table.rowid is not None:
            rowid = row[table.rowid]
            entries = [entry for entry in entries if self._may_hold(entry["page"], rowid)]
        if len(entries) == 1:
            entries[0]["from_copy"] = (entries[0]["from_copy"] or 0) + 1
        else:
            for entry in entries:
                entry["from_copy"] = None

    def _may_hold(self, number: int, rowid: int) -> bool:
        low, high = self.bounds.get(number, (None, None))
        return (low is None or low < rowid) and (high is None or rowid <= high)

    def finish(self) -> None:
        """Set the numbers that the next rows get, and complete the report."""
        for name, value in self.sequences.items():
            table = self.tables[name]
            if table.rowid is None:
                continue
            query = f"SELECT coalesce(max({table.rowid}), 0) FROM {name}"  # noqa: S608  (our names)
            (last,) = self.target.execute(query).fetchone()
            if last < value <= last + _LARGEST_JUMP:
                self.target.execute(f"DELETE FROM {_SEQUENCE} WHERE name=?", (name,))  # noqa: S608
                self.target.execute(f"INSERT INTO {_SEQUENCE} VALUES(?, ?)", (name, value))
        if self.copy_root_id is not None:
            self.target.execute(
                "INSERT OR REPLACE INTO meta VALUES('root_id', ?)", (json.dumps(self.copy_root_id),)
            )
        self.report.pages = [self.damaged[number] for number in sorted(self.damaged)]


def _children(
    page: Page, depth: int, low: int | None, high: int | None
) -> list[tuple[int, int, int | None, int | None]]:
    """Return the children of an inner page with their depth, and the rowids that may be below them."""
    found = []
    is_table = page.kind == pages.TABLE_INTERIOR
    odd = pages.out_of_order([cell.rowid or 0 for cell in page.cells], low, high) if is_table else set()
    for place, cell in enumerate(page.cells):
        upper = cell.rowid if is_table and place not in odd else None
        found.append((cell.child or 0, depth, low, upper if upper is not None else high))
        low = upper if upper is not None else (None if place in odd else low)
    if page.right is not None:
        found.append((page.right, depth, low, high))
    return found


def _is_index_table(table: _Table | None, sql: object) -> bool:
    if table is not None:
        return table.is_index
    return isinstance(sql, str) and bool(re.search(r"WITHOUT\s+ROWID\s*\Z", sql, re.IGNORECASE))


def _column_order(sql: str) -> list[str]:
    """Return the columns of a table as its definition in the file names them; nothing if it is damaged."""
    if not re.match(r"CREATE TABLE \w+\s*\(", sql):
        return []
    connection = sqlite3.connect(":memory:")
    try:
        connection.execute("PRAGMA trusted_schema=OFF")
        connection.set_progress_handler(lambda: 1, 100_000)
        connection.execute(sql)
        ((name,),) = connection.execute("SELECT name FROM sqlite_master WHERE type='table'").fetchall()
        return list(checked_copy.columns(connection, name))
    except (sqlite3.Error, ValueError):
        return []
    finally:
        connection.close()


def _fitting(table: _Table, records: list[tuple[list[Value], int | None]]) -> list[dict[str, Any]]:
    """Return the records that are rows of a table, by their form alone."""
    fitting = []
    form = _FORMS.get(table.name)
    for values, rowid in records:
        try:
            row = table.checked(table.row(values, rowid))
        except (Unfit, _Momentary):
            continue
        if form is None or form(row):
            fitting.append(row)
    return fitting


class _Momentary(Unfit):
    """A value of the whole registry that is found out anew."""


def _check_meta(row: dict[str, Any]) -> None:
    key, text = row.get("key"), row.get("value")
    if not isinstance(key, str) or not isinstance(text, str):
        raise Unfit("it is not a text")
    check = _META_CHECKS.get(key)
    if check is None:
        raise _Momentary(key)
    try:
        is_fit = check(json.loads(text))
    except (ValueError, RecursionError):
        is_fit = False
    if not is_fit:
        raise Unfit(f"{key} is not readable")


def _is_server(name: object) -> bool:
    try:
        return isinstance(name, str) and bool(parse_server(name))
    except InvalidName:
        return False


# All else is found out anew: it describes the file that mam wrote last, or a process.
_META_CHECKS: dict[str, Callable[[Any], object]] = {
    "root_id": lambda value: isinstance(value, str) and _HEX.match(value),
    "incarnation": lambda value: isinstance(value, str) and _HEX.match(value),
    "identities": lambda value: isinstance(value, dict) and checked_copy.are_identities(value),
    "extra": lambda value: isinstance(value, dict),
    "places": lambda value: isinstance(value, list) and all(isinstance(place, str) for place in value),
    "place_inodes": lambda value: isinstance(value, dict),
    "servers": lambda value: isinstance(value, list) and all(_is_server(name) for name in value),
}


@contextmanager
def _copy(path: str) -> Iterator[sqlite3.Connection]:
    source = database.connect_to_private_copy(path)
    try:
        source.text_factory = checked_copy.text_or_flaw
        yield source
    finally:
        source.close()


def _root_id_of(source: sqlite3.Connection) -> str | None:
    row = source.execute("SELECT value FROM meta WHERE key='root_id'").fetchone()
    try:
        value = json.loads(row[0]) if row and isinstance(row[0], str) else None
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, str) and _HEX.match(value) else None
