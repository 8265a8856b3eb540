"""Finds the dumps of a stream (FORMAT.md, 5.2) and cuts a file into the dumps that it holds (4.9)."""

from typing import NamedTuple

from layout import END, FILE_HEADER, MAGIC, SECTION_HEADER, SYNC, file_header, section_header


class Piece(NamedTuple):
    """A stretch of a stream that holds one dump."""

    dump_id: int
    start: int
    end: int
    # Whether it begins with a file header.
    whole: bool


def pieces(data):
    """The dumps of a stream in order of place."""
    marks, at = _Marks(data), 0
    while (found := marks.find(at)) is not None:
        start, dump_id, header = found
        at = _end(marks, dump_id, start + (FILE_HEADER if header is None else 0))
        yield Piece(dump_id, start, at, header is None)


def extents(data):
    """Where each dump of a file begins and ends; the first begins at the first byte."""
    found = list(pieces(data))
    again = {piece.dump_id: piece.start for piece in found if not piece.whole}
    starts, current = [], None
    for piece in found:
        if not starts:
            starts.append(0)
        elif piece.whole and again.get(current, 0) <= piece.start:
            starts.append(piece.start)
        else:
            continue
        current = piece.dump_id
    ends = [*starts[1:], len(data)]
    return list(zip(starts, ends)) or [(0, len(data))]


def _end(marks, dump_id, at):
    """Where the dump ends whose next header is looked for from `at` on."""
    size = len(marks.data)
    while (found := marks.find(at)) is not None:
        place, other, header = found
        if header is None or other != dump_id:
            return place
        behind = place + header.total
        follower = marks.at(behind)
        if header.kind == END:
            at = min(behind, size)
            if follower is None or follower[1] is None or follower[0] != dump_id:
                return at
        elif follower is not None:
            at = behind
        else:
            at = place + SECTION_HEADER
    return size


class _Marks:
    """Looks for sound headers of either kind."""

    def __init__(self, data):
        self.data = data

    def at(self, place):
        """The sound header at a place: dump id and section header, or None for the latter at a file header."""
        header = section_header(self.data, place)
        if header is not None:
            return header.dump_id, header
        file = file_header(self.data[place : place + FILE_HEADER])
        return None if file is None else (file.dump_id, None)

    def find(self, start):
        """The first sound header at or behind `start`: place, dump id, section header."""
        section, file = self.data.find(SYNC, start), self.data.find(MAGIC, start)
        while section >= 0 or file >= 0:
            place = min(place for place in (section, file) if place >= 0)
            found = self.at(place)
            if found is not None:
                return place, *found
            if place == section:
                section = self.data.find(SYNC, place + 1)
            else:
                file = self.data.find(MAGIC, place + 1)
        return None
