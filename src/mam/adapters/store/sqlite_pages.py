"""Reads the pages of an SQLite file without SQLite: b-tree pages, records, and the frames of a log.

Everything here takes bytes and returns values. The bytes may be damaged or hostile: each number is checked
before it is used, and the only error is Malformed. The format is https://www.sqlite.org/fileformat2.html.
"""

from __future__ import annotations

import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    # Where a cell begins and ends, where its payload begins, the payload's size, the rowid and the child.
    _Extent = tuple[int, int, int, int, int | None, int | None]
    Value = None | int | float | str | bytes

TABLE_LEAF, TABLE_INTERIOR, INDEX_LEAF, INDEX_INTERIOR = 0x0D, 0x05, 0x0A, 0x02
LEAVES = (TABLE_LEAF, INDEX_LEAF)
KINDS = {
    TABLE_LEAF: "table leaf",
    TABLE_INTERIOR: "table interior",
    INDEX_LEAF: "index leaf",
    INDEX_INTERIOR: "index interior",
}
MAGIC = b"SQLite format 3\0"
PAGE_SIZES = (4096, 1024, 512, 2048, 8192, 16384, 32768, 65536)
_FILE_HEADER = 100
_SMALLEST_CELL = _SMALLEST_BLOCK = 4
_MOST_COLUMNS = 200
_WAL_MAGIC, _WAL_HEADER, _FRAME_HEADER = 0x377F0682, 32, 24


class Malformed(Exception):
    """Bytes that SQLite could not have written."""


class Cell:
    """One cell of a b-tree page: a row with its payload, or a child page with the key beside it."""

    __slots__ = ("child", "local", "overflow", "rowid", "size")

    def __init__(self, rowid: int | None, child: int | None, size: int, local: bytes, overflow: int) -> None:
        """`size` is that of the whole payload, of which `local` lies on this page."""
        self.rowid = rowid
        self.child = child
        self.size = size
        self.local = local
        # The first page with the rest of the payload, or 0.
        self.overflow = overflow


class Page:
    """A b-tree page as far as it can be read; `problems` says in which way it contradicts itself."""

    __slots__ = ("cells", "kind", "problems", "right")

    def __init__(self, kind: int, right: int | None) -> None:
        self.kind = kind
        self.right = right
        self.cells: list[Cell] = []
        self.problems: list[str] = []

    @property
    def children(self) -> list[int]:
        """Return the child pages from left to right."""
        found = [cell.child for cell in self.cells if cell.child is not None]
        return found if self.right is None else [*found, self.right]


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a number of up to nine bytes as SQLite stores it, unsigned, and the place after it."""
    value = 0
    for count in range(9):
        if at + count >= len(data):
            raise Malformed("a number reaches over the end")
        byte = data[at + count]
        if count == 8:
            return (value << 8) | byte, at + 9
        value = (value << 7) | (byte & 0x7F)
        if byte < 0x80:
            return value, at + count + 1
    raise AssertionError


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


def parse_page(data: bytes, number: int, usable: int, kind: int | None = None) -> Page:
    """Return a b-tree page; raise Malformed if it is none. With `kind`, the page's own kind does not count.

    A cell that overlaps with another one, or lies outside of the page, is left out.
    """
    start = _FILE_HEADER if number == 1 else 0
    if len(data) < usable or usable < 480:
        raise Malformed("the page is cut off")
    kind = data[start] if kind is None else kind
    if kind not in KINDS:
        raise Malformed("it is no page of a table or an index")
    first_free, count, content, fragments = struct.unpack_from(">HHHB", data, start + 1)
    content = content or 65536
    head = start + (8 if kind in LEAVES else 12)
    pointers_end = head + 2 * count
    if pointers_end > content or content > usable:
        raise Malformed("its header is damaged")
    page = Page(kind, None if kind in LEAVES else int.from_bytes(data[head - 4 : head], "big"))
    extents = []
    for place in struct.unpack_from(f">{count}H", data, head):
        try:
            if not content <= place <= usable - _SMALLEST_CELL:
                raise Malformed("a cell lies outside of the page")
            extents.append(_cell_extent(data, place, usable, kind))
        except Malformed as error:
            page.problems.append(str(error))
    overlapping = _overlapping(extents)
    page.cells = [
        _cell(data, extents[index], usable, kind) for index in range(len(extents)) if index not in overlapping
    ]
    if overlapping:
        page.problems.append("cells overlap")
    taken = content + fragments + sum(extent[1] - extent[0] for extent in extents)
    if not page.problems and not _adds_up(data, first_free, usable, content, taken):
        page.problems.append("its parts do not add up")
    return page


def _cell(data: bytes, extent: _Extent, usable: int, kind: int) -> Cell:
    _start, _end, body, size, rowid, child = extent
    local = _local_size(size, usable, kind)
    overflow = int.from_bytes(data[body + local : body + local + 4], "big") if local < size else 0
    return Cell(rowid, child, size, bytes(data[body : body + local]), overflow)


def _cell_extent(data: bytes, place: int, usable: int, kind: int) -> _Extent:
    """Return where a cell begins and ends, the place of its payload and its size, its rowid and its child."""
    at, rowid, child, size = place, None, None, 0
    if kind in (TABLE_INTERIOR, INDEX_INTERIOR):
        child, at = int.from_bytes(data[at : at + 4], "big"), at + 4
    if kind != TABLE_INTERIOR:
        size, at = read_varint(data, at)
    if kind in (TABLE_LEAF, TABLE_INTERIOR):
        value, at = read_varint(data, at)
        rowid = _signed(value)
    end = at
    if kind != TABLE_INTERIOR:
        local = _local_size(size, usable, kind)
        end = at + size if local >= size else at + local + 4
    if end > usable:
        raise Malformed("a cell reaches over the end of the page")
    return place, max(end, place + _SMALLEST_CELL), at, size, rowid, child


def _local_size(size: int, usable: int, kind: int) -> int:
    """Return how much of a payload lies on the page itself."""
    largest = usable - 35 if kind == TABLE_LEAF else (usable - 12) * 64 // 255 - 23
    if size <= largest:
        return size
    smallest = (usable - 12) * 32 // 255 - 23
    wanted = smallest + (size - smallest) % (usable - 4)
    return wanted if wanted <= largest else smallest


def _overlapping(extents: Sequence[_Extent]) -> set[int]:
    """Return the places in the list of those that share a byte with another."""
    found: set[int] = set()
    furthest, owner = -1, -1
    for index in sorted(range(len(extents)), key=lambda index: extents[index][:2]):
        start, end = extents[index][:2]
        if start < furthest:
            found |= {index, owner}
        if end > furthest:
            furthest, owner = end, index
    return found


def _adds_up(data: bytes, block: int, usable: int, content: int, taken: int) -> bool:
    """Tell whether cells, free blocks, fragments and what lies before them fill the page exactly."""
    last = content - 1
    while block:
        if block <= last or block > usable - _SMALLEST_BLOCK:
            return False
        following, size = struct.unpack_from(">HH", data, block)
        if size < _SMALLEST_BLOCK or block + size > usable:
            return False
        taken += size
        last, block = block + size - 1, following
    return taken == usable


def out_of_order(rowids: Sequence[int], low: int | None, high: int | None) -> set[int]:
    """Return the places in the list of rowids that do not ascend, or lie outside of (low, high]."""
    found: set[int] = set()
    last = low
    for index, rowid in enumerate(rowids):
        following = rowids[index + 1] if index + 1 < len(rowids) else None
        is_low = last is not None and rowid <= last
        is_high = high is not None and rowid > high
        # A number that is too large is the odd one if the one after it follows the one before it.
        jumps = following is not None and rowid >= following and (last is None or last < following)
        if is_low or is_high or jumps:
            found.add(index)
        else:
            last = rowid
    return found


def decode_record(payload: bytes) -> list[Value]:
    """Return the values of a record; raise Malformed unless it has exactly the size that it says."""
    header, at = read_varint(payload, 0)
    if not at <= header <= len(payload):
        raise Malformed("the head of a record is damaged")
    kinds = []
    while at < header:
        kind, at = read_varint(payload, at)
        kinds.append(kind)
        if len(kinds) > _MOST_COLUMNS:
            raise Malformed("a record has too many values")
    if at != header:
        raise Malformed("the head of a record is damaged")
    if header + sum(_value_size(kind) for kind in kinds) != len(payload):
        raise Malformed("a record has another size than it says")
    values: list[Value] = []
    for kind in kinds:
        size = _value_size(kind)
        values.append(_value(kind, payload[at : at + size]))
        at += size
    return values


_SIZES = (0, 1, 2, 3, 4, 6, 8, 8, 0, 0)


def _value_size(kind: int) -> int:
    if kind < len(_SIZES):
        return _SIZES[kind]
    if kind < 12:
        raise Malformed("a record holds a value of no known kind")
    return (kind - 12) // 2


def _value(kind: int, content: bytes) -> Value:
    if kind == 0:
        return None
    if kind == 7:
        number: float = struct.unpack(">d", content)[0]
        return number if number == number else None  # noqa: PLR0124  (not a number: SQLite shows NULL)
    if kind in (8, 9):
        return kind - 8
    if kind < 7:
        return int.from_bytes(content, "big", signed=True)
    if kind % 2 == 0:
        return content
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise Malformed("a text is not Unicode") from None


def read_payload(cell: Cell, usable: int, longest: int, take: Callable[[int], bytes | None]) -> bytes:
    """Return the whole payload of a cell. `take` gives an overflow page, and None where it cannot be one."""
    if cell.size > longest:
        raise Malformed("a row is too long")
    parts, missing, number = [cell.local], cell.size - len(cell.local), cell.overflow
    while missing > 0:
        data = take(number)
        if data is None:
            raise Malformed(f"the rest of a row is missing: page {number}")
        number = int.from_bytes(data[:4], "big")
        parts.append(data[4 : min(usable, 4 + missing)])
        missing -= usable - 4
    if number and cell.overflow:
        raise Malformed(f"the pages of a long row do not end: page {number}")
    return b"".join(parts)


def trunk_leaves(data: bytes, usable: int, page_count: int) -> tuple[int, list[int]] | None:
    """Return the next trunk and the free pages that a trunk page of the list of free pages names."""
    following, count = struct.unpack_from(">II", data)
    if following > page_count or count > usable // 4 - 2:
        return None
    numbers = list(struct.unpack_from(f">{count}I", data, 8))
    is_sound = all(1 < number <= page_count for number in numbers) and len(set(numbers)) == count
    return (following, numbers) if is_sound else None


class WalFrame:
    """A frame of a write-ahead log that its checksum proves."""

    __slots__ = ("data", "number", "size_after")

    def __init__(self, number: int, size_after: int, data: bytes) -> None:
        """`size_after` is the size of the database in pages after a commit, and 0 inside a transaction."""
        self.number = number
        self.size_after = size_after
        self.data = data


def wal_page_size(head: bytes) -> int | None:
    """Return the page size of a log, or None if its head is damaged."""
    if len(head) < _WAL_HEADER:
        return None
    magic, version, size = struct.unpack_from(">III", head)
    order = ">" if magic & 1 else "<"
    if magic & ~1 != _WAL_MAGIC or version != 3007000 or size not in PAGE_SIZES:
        return None
    return size if _sum(order, head[:24], (0, 0)) == struct.unpack_from(">II", head, 24) else None


def wal_frames(head: bytes, read: Callable[[int], bytes]) -> Iterator[WalFrame]:
    """Yield the sound frames of a log in order, committed or not; the first damaged one ends them.

    Each checksum covers all frames before it. `read` returns so many of the next bytes of the log.
    """
    size = wal_page_size(head)
    if size is None:
        return
    order = ">" if head[3] & 1 else "<"
    salts, sums = head[16:24], struct.unpack_from(">II", head, 24)
    while len(frame := read(_FRAME_HEADER + size)) == _FRAME_HEADER + size:
        number, size_after = struct.unpack_from(">II", frame)
        sums = _sum(order, frame[_FRAME_HEADER:], _sum(order, frame[:8], sums))
        if frame[8:16] != salts or sums != struct.unpack_from(">II", frame, 16) or not number:
            return
        yield WalFrame(number, size_after, frame[_FRAME_HEADER:])


def _sum(order: str, data: bytes, sums: tuple[int, int]) -> tuple[int, int]:
    first, second = sums
    words = struct.unpack(f"{order}{len(data) // 4}I", data)
    for index in range(0, len(words), 2):
        first = (first + words[index] + second) & 0xFFFFFFFF
        second = (second + words[index + 1] + first) & 0xFFFFFFFF
    return first, second
