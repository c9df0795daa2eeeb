"""What a damaged database still holds comes back, and the newest copy fills the gaps."""

from __future__ import annotations

import collections
import os
import shutil
import sqlite3
import struct
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.adapters.store.filled_database import ROOT_ID, FilledDatabase, fresh, rows_of

from mam.adapters.store import database, salvage, sqlite_pages
from mam.app.roots.restore_summary import summary_of
from mam.core.errors import MamError, RegistryCorrupt

SIZE = 4096
ADD_TASK = (
    "INSERT INTO tasks(seq, role, text, status, created_by, created_at)"
    " VALUES(?, 'dev', 'x', 'pending', 'user', 1.0)"
)


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    return FilledDatabase(tmp_path_factory.mktemp("filled"))


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A database for tests that salvage it some hundred times."""
    return FilledDatabase(tmp_path_factory.mktemp("small"), 20)


@pytest.fixture
def salvaged(tmp_path, filled):
    """Salvage a damaged content; return the report and the rows."""
    numbers = iter(range(1_000_000))
    template = tmp_path / "template.db"
    fresh(template).close()

    def run(content, *, copy=True, wal=None, source=filled):
        damaged, path = tmp_path / "damaged.db", tmp_path / f"target{next(numbers)}.db"
        damaged.write_bytes(content)
        if wal is not None:
            (tmp_path / "damaged.db-wal").write_bytes(wal)
        shutil.copyfile(template, path)
        target = sqlite3.connect(path, isolation_level=None)
        target.execute("PRAGMA synchronous=OFF")
        try:
            report = salvage.salvage(str(damaged), str(source.copy) if copy else None, target)
            assert not target.in_transaction
            assert report.as_json()["pages"] == report.pages
            meta = dict(target.execute("SELECT key, value FROM meta"))
            return report, rows_of(target), meta
        finally:
            target.close()
            path.unlink()

    return run


def owners(filled) -> dict[int, str]:
    """Return for each page by SQLite's own account which table or index it belongs to."""
    try:
        connection = sqlite3.connect(filled.path)
        rows = connection.execute("SELECT pageno, name FROM dbstat").fetchall()
        connection.close()
    except sqlite3.OperationalError:
        pytest.skip("this SQLite has no dbstat")
    return dict(rows)


def keys_on_page(filled) -> dict[int, dict[str, set]]:
    """Return for each page the keys of the rows that have a part on it, by table."""
    report = salvage.SalvageReport()
    target = sqlite3.connect(":memory:", isolation_level=None)
    filled_schema = sqlite3.connect(filled.path)
    for (sql,) in filled_schema.execute("SELECT sql FROM sqlite_master WHERE type='table' AND sql NOT NULL"):
        if "sqlite_sequence" not in sql:
            target.execute(sql)
    filled_schema.close()
    found: dict[int, dict[str, set]] = collections.defaultdict(lambda: collections.defaultdict(set))
    with salvage._PageFile(str(filled.path)) as file:
        work = salvage._Salvage(file, target, report)
        for name, (root, is_index) in work._read_schema().items():
            work._walk(name, root, is_index=is_index)
        for table in work.tables.values():
            for number, _low, _high in table.leaves:
                page = work._page(number)
                assert page is not None
                for cell in page.cells:
                    before = set(work.claimed)
                    row = table.row(sqlite_pages.decode_record(work._payload(cell, table.name)), cell.rowid)
                    for part in {number, *(set(work.claimed) - before)}:
                        found[part][table.name].add(table.key_of(row))
    target.close()
    return found


def flipped(content: bytes, at: int) -> bytes:
    changed = bytearray(content)
    changed[at] ^= 0x5A
    return bytes(changed)


def places_on(content: bytes, number: int) -> list[int]:
    """Return places on a page: its kind, its first pointer to a cell, and the middle of its last cells."""
    start, head = (number - 1) * SIZE, (number - 1) * SIZE + (100 if number == 1 else 0)
    inner = 8 if content[head] in (0x0A, 0x0D) else 12
    return [head, head + inner + 1, start + SIZE - 300, start + SIZE - 60]


def test_an_intact_database_comes_back_whole(filled, salvaged) -> None:
    report, rows, meta = salvaged(filled.content, copy=True)
    assert rows == filled.rows
    assert report.left_out == report.pages == []
    assert all(source["leaf"] == source["copy"] == 0 for source in report.sources.values())
    assert meta["root_id"] == f'"{ROOT_ID}"'
    # The number of additions is that of the new database, whatever the file says.
    from_file = meta.keys() - {database.ADDITIONS}
    assert sum(report.taken.values()) == sum(len(table) for table in rows.values()) + len(from_file)


@pytest.mark.promise("P8")
@pytest.mark.slow
def test_e5_a_damaged_byte_on_each_page_costs_at_most_what_that_page_held(small, salvaged, capsys) -> None:
    """For each page the list says what it was, and where its rows came from."""
    owner, on_page = owners(small), keys_on_page(small)
    lines, total = [], collections.Counter()
    pages = len(small.content) // SIZE
    for number in range(1, pages + 1):
        for at in places_on(small.content, number):
            report, rows, _meta = salvaged(flipped(small.content, at), source=small)
            lost = changed = 0
            left_out = collections.Counter(left["table"] for left in report.left_out)
            for table, expected in small.rows.items():
                here, old = on_page[number][table], small.copied_rows[table]
                strange = rows[table].keys() - expected.keys() - old.keys()
                for key, row in expected.items():
                    if rows[table].get(key) == row:
                        continue
                    if key not in rows[table]:
                        lost += 1
                        assert key in here or number == 1, (number, at, table, key, report.pages)
                        # A damaged key can look like a key, and then nobody can tell that a row is missing.
                        assert key not in old or left_out[table] or strange, (number, at, table, key)
                    else:
                        changed += 1
                        is_old = rows[table][key] == old.get(key)
                        assert key in here or (number == 1 and is_old), (number, at, table, key)
                assert len(strange) <= 1, (number, at, table, strange)
                assert here or not strange, (number, at, table, strange)
            source = collections.Counter()
            for counts in report.sources.values():
                source.update(counts)
            total.update(source)
            total.update(lost=lost, changed=changed, pages=bool(report.pages), runs=1)
            lines.append(
                f"page {number:4} at {at % SIZE:4} {owner.get(number, 'free'):24} {dict(source)}"
                f" lost {lost} changed {changed}"
                f" damaged {[(page['page'], page['what'], page['from_copy']) for page in report.pages]}"
            )
    with capsys.disabled():
        print("\n" + "\n".join(lines) if "-v" in sys.argv else f"\n{dict(total)}")
    assert len(lines) == 4 * pages
    assert total["leaf"] > 100, "inner pages were lost, and leaves read directly"
    assert total["copy"] > 100, "the copy filled gaps"
    assert total["lost"] < total["copy"] / 4


def test_page_one_destroyed(filled, salvaged) -> None:
    for content in (bytes(SIZE) + filled.content[SIZE:], os.urandom(SIZE) + filled.content[SIZE:]):
        report, rows, meta = salvaged(content)
        for table, expected in filled.rows.items():
            assert expected.items() <= rows[table].items(), table
        assert sum(source["leaf"] for source in report.sources.values()) > 500
        assert report.pages[0]["page"] == 1
        assert meta["root_id"] == f'"{ROOT_ID}"'


def test_page_one_destroyed_without_a_copy(filled, salvaged) -> None:
    report, rows, meta = salvaged(b"\xff" * SIZE + filled.content[SIZE:], copy=False)
    assert rows == filled.rows, "and no deleted row came back"
    assert report.copy is None
    assert meta["root_id"] == f'"{ROOT_ID}"'


def inner_pages(filled, kind):
    return [
        number
        for number in range(2, len(filled.content) // SIZE + 1)
        if filled.content[(number - 1) * SIZE] == kind
    ]


@pytest.mark.parametrize("kind", [sqlite_pages.TABLE_INTERIOR, sqlite_pages.INDEX_INTERIOR])
def test_inner_pages_destroyed(filled, salvaged, kind) -> None:
    owner, on_page = owners(filled), keys_on_page(filled)
    pages = inner_pages(filled, kind)
    assert pages
    for number in pages:
        at = (number - 1) * SIZE
        report, rows, _ = salvaged(
            filled.content[:at] + bytes(SIZE) + filled.content[at + SIZE :], copy=False
        )
        name = owner[number]
        for table, expected in filled.rows.items():
            lacking = expected.keys() - rows[table].keys()
            assert lacking == (on_page[number][table] if table == name else set())
            assert all(rows[table][key] == expected[key] for key in rows[table]), "no deleted row came back"
        assert [(page["page"], page["table"]) for page in report.pages] == [(number, name)]
        if name in filled.rows:
            assert report.sources[name]["leaf"] > 0


@pytest.mark.parametrize("byte", [0x99, 0])
def test_an_unreadable_page_that_nothing_leads_to_is_noted(filled, salvaged, byte) -> None:
    """The pages of the schema are lost, so nothing tells that the page had messages."""
    place = owners(filled)
    schema = [number for number, name in place.items() if name == "sqlite_schema" and number != 1]
    page = next(number for number, name in sorted(place.items(), reverse=True) if name == "messages")
    content = bytearray(filled.content)
    for number in (*(schema or [1]), page):
        content[(number - 1) * SIZE : number * SIZE] = bytes([byte]) * SIZE
    report, _rows, _meta = salvaged(bytes(content), copy=False)
    summary = summary_of(report)
    assert page in [entry["page"] for entry in report.pages]
    assert page in summary["pages_with_rows"]
    assert summary["unreadable_pages"] >= 1


def test_pages_that_are_free_or_rest_of_a_row_are_not_noted(filled, salvaged) -> None:
    content = bytearray(filled.content)
    content[100:SIZE] = bytes(SIZE - 100)
    report, _rows, _meta = salvaged(bytes(content), copy=False)
    assert [entry["page"] for entry in report.pages if entry["what"] == "unknown"] == [1]


def test_a_file_that_is_cut_off(filled, salvaged) -> None:
    half = len(filled.content) // 2 + 100
    report, rows, _ = salvaged(filled.content[:half])
    assert report.pages
    for table, expected in filled.rows.items():
        for key in expected.keys() & filled.copied_rows[table].keys():
            assert key in rows[table], (table, key)


def test_a_damaged_list_of_freed_pages_costs_nothing(filled, salvaged) -> None:
    """A damaged list of freed pages brings no deleted row back."""
    trunk = int.from_bytes(filled.content[32:36], "big")
    assert trunk, "the test needs freed pages"
    for at in (34, 38, (trunk - 1) * SIZE + 5, (trunk - 1) * SIZE + 9):
        _, rows, _ = salvaged(flipped(filled.content, at))
        assert rows == filled.rows


def test_rows_of_freed_pages_stay_deleted_if_nothing_leads_to_any_page(tmp_path, salvaged) -> None:
    path = tmp_path / "emptied.db"
    connection = fresh(path)
    connection.execute("PRAGMA secure_delete=OFF")
    for number in range(300):
        connection.execute(ADD_TASK, (number + 1,))
    connection.execute("DELETE FROM tasks")
    connection.execute("INSERT INTO board_links VALUES('t_00000001', 't_00000002')")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    content = path.read_bytes()
    assert int.from_bytes(content[36:40], "big") > 2
    _, rows, _ = salvaged(b"\xff" * SIZE + content[SIZE:], copy=False)
    assert rows["tasks"] == {}
    assert len(rows["board_links"]) == 1


@pytest.mark.parametrize("content", [b"", b"not a database " * 1000, bytes(8 * SIZE), os.urandom(8 * SIZE)])
def test_what_is_no_database_is_refused(salvaged, content) -> None:
    with pytest.raises(RegistryCorrupt) as refused:
        salvaged(content)
    assert refused.value.hint


def test_a_missing_file_and_a_fifo_are_errors_of_mam(tmp_path) -> None:
    target = fresh(tmp_path / "target.db")
    os.mkfifo(tmp_path / "fifo")
    for name in ("fifo", "missing"):
        with pytest.raises(MamError):
            salvage.salvage(str(tmp_path / name), None, target)
    assert not target.in_transaction
    target.close()


def test_a_damaged_copy_is_noted_and_the_rest_comes_back(filled, tmp_path) -> None:
    copy = tmp_path / "copy.db"
    copy.write_bytes(b"no copy" * 1000)
    target = fresh(tmp_path / "target.db")
    report = salvage.salvage(str(filled.path), str(copy), target)
    assert report.copy_problem
    assert rows_of(target) == filled.rows
    target.close()


@pytest.mark.parametrize("value", ["1" * 5000, "[" * 100_000, "{"], ids=["digits", "deep", "cut"])
def test_a_copy_with_an_id_that_is_not_readable_still_fills_the_gaps(filled, tmp_path, value) -> None:
    copy = tmp_path / "copy.db"
    shutil.copyfile(filled.copy, copy)
    connection = sqlite3.connect(copy)
    connection.execute("UPDATE meta SET value=? WHERE key='root_id'", (value,))
    connection.commit()
    connection.close()
    target = fresh(tmp_path / "target.db")
    report = salvage.salvage(str(filled.path), str(copy), target)
    assert report.copy_problem is None
    assert rows_of(target) == filled.rows
    target.close()


def test_the_copy_replaces_a_session_only_if_it_is_newer(filled, salvaged) -> None:
    """The page of some sessions is lost: those that changed since the copy come back as they were."""
    on_page = keys_on_page(filled)
    number = next(number for number, tables in on_page.items() if ("s_00000001",) in tables["sessions"])
    at = (number - 1) * SIZE
    report, rows, _ = salvaged(filled.content[:at] + bytes(SIZE) + filled.content[at + SIZE :])
    assert rows["sessions"].keys() == filled.rows["sessions"].keys()
    old = [key for key, row in rows["sessions"].items() if row != filled.rows["sessions"][key]]
    assert old
    assert all(rows["sessions"][key] == filled.copied_rows["sessions"][key] for key in old)
    (page,) = report.pages
    assert (page["page"], page["table"], page["tree"]) == (number, "sessions", 0)
    assert page["from_copy"] == report.sources["sessions"]["copy"] == len(on_page[number]["sessions"])


def test_the_next_number_of_a_table_is_kept(filled, tmp_path) -> None:
    target = fresh(tmp_path / "target.db")
    salvage.salvage(str(filled.path), None, target)
    source = sqlite3.connect(filled.path)
    query = "SELECT name, seq FROM sqlite_sequence ORDER BY name"
    assert target.execute(query).fetchall() == source.execute(query).fetchall()
    source.close()
    target.close()


def test_another_page_size_is_found(tmp_path) -> None:
    path = tmp_path / "small.db"
    connection = fresh(path)
    for number in range(300):
        connection.execute(ADD_TASK, (number + 1,))
    expected = rows_of(connection)["tasks"]
    connection.execute("PRAGMA journal_mode=DELETE")
    connection.execute("PRAGMA page_size=1024")
    connection.execute("VACUUM")
    connection.close()
    content = path.read_bytes()
    path.write_bytes(bytes(100) + content[100:])
    target = fresh(tmp_path / "target.db")
    report = salvage.salvage(str(path), None, target)
    assert report.page_size == 1024
    assert rows_of(target)["tasks"] == expected
    target.close()


def log_and_file(tmp_path):
    """Return a file, its log with three commits, and the rows after each of them."""
    path = tmp_path / "logged.db"
    connection = fresh(path)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.execute("PRAGMA wal_autocheckpoint=0")
    sizes, states = [], []
    for number in range(3):
        connection.execute(ADD_TASK, (number + 1,))
        sizes.append((tmp_path / "logged.db-wal").stat().st_size)
        states.append(rows_of(connection)["tasks"])
    contents = path.read_bytes(), (tmp_path / "logged.db-wal").read_bytes()
    connection.close()
    return *contents, sizes, states


def test_committed_frames_of_the_log_count(tmp_path, salvaged) -> None:
    file, wal, sizes, states = log_and_file(tmp_path)
    report, rows, _ = salvaged(file, wal=wal, copy=False)
    assert rows["tasks"] == states[2]
    assert report.wal["problem"] is None
    for number in (1, 2):
        report, rows, _ = salvaged(file, wal=flipped(wal, sizes[number] - 2000), copy=False)
        assert rows["tasks"] == states[number - 1]
        assert "damaged" in report.wal["problem"]
        _, rows, _ = salvaged(file, wal=wal[: sizes[number] - 8], copy=False)
        assert rows["tasks"] == states[number - 1]
    report, rows, _ = salvaged(file, wal=flipped(wal, 17), copy=False)
    assert rows["tasks"] == {}
    assert report.wal["problem"]


def test_a_cell_that_names_itself_and_pages_in_a_circle_end(filled, salvaged) -> None:
    """Each child of an inner page is that page, and each rest of a long row is that row's own page."""
    content = bytearray(filled.content)
    for number in inner_pages(filled, sqlite_pages.TABLE_INTERIOR):
        at = (number - 1) * SIZE
        page = sqlite_pages.parse_page(bytes(content[at : at + SIZE]), number, SIZE)
        struct.pack_into(">I", content, at + 8, number)
        for cell in page.cells:
            place = content.find(struct.pack(">I", cell.child), at + 12)
            struct.pack_into(">I", content, place, number)
    for number in range(2, len(content) // SIZE + 1):
        at = (number - 1) * SIZE
        if content[at] == 0 and any(content[at + 4 : at + 40]):
            struct.pack_into(">I", content, at, number)
    report, rows, _ = salvaged(bytes(content))
    assert report.pages
    assert rows["sessions"].keys() == filled.rows["sessions"].keys()


def test_a_whole_page_of_cells_in_one_place_is_left_out() -> None:
    page = bytearray(65536)
    count = 30_000
    struct.pack_into(">BHHHB", page, 0, 0x0D, 0, count, 61_000, 0)
    for number in range(count):
        struct.pack_into(">H", page, 8 + 2 * number, 61_000)
    parsed = sqlite_pages.parse_page(bytes(page), 2, 65536)
    assert parsed.cells == []
    assert parsed.problems


def test_numbers_without_an_end_are_refused() -> None:
    assert sqlite_pages.read_varint(b"\xff" * 9, 0) == (2**64 - 1, 9)
    for content in (b"", b"\xff" * 8, b"\xff" * 40, b"\x02\xff", b"\x03\x00\x0a", b"\x02\x0f\xff"):
        with pytest.raises(sqlite_pages.Malformed):
            sqlite_pages.decode_record(content)


@given(
    st.binary(max_size=600),
    st.sampled_from([0x0D, 0x05, 0x0A, 0x02, None]),
    st.integers(0, 40),
    st.integers(1, 2),
)
@settings(max_examples=300, deadline=None)
def test_any_bytes_are_a_page_or_malformed(content, kind, count, number) -> None:
    data = bytearray(content.ljust(512, b"\0"))
    struct.pack_into(">H", data, 103 if number == 1 else 3, count)
    try:
        page = sqlite_pages.parse_page(bytes(data), number, 512, kind)
        for cell in page.cells:
            sqlite_pages.decode_record(sqlite_pages.read_payload(cell, 512, 1 << 20, lambda _number: None))
    except sqlite_pages.Malformed:
        return


@given(st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(1, 255)), min_size=1, max_size=200))
@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_many_damaged_bytes_raise_nothing_but_errors_of_mam(filled, salvaged, changes) -> None:
    content = bytearray(filled.content)
    for place, value in changes:
        content[int(place * len(content))] ^= value
    try:
        _, rows, _ = salvaged(bytes(content))
    except MamError:
        return
    for table, found in rows.items():
        assert len(found) <= 2 * len(filled.rows[table]) + len(filled.copied_rows[table]) + 5
