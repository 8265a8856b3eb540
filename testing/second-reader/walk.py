"""Finds the sections and the defects of one dump (FORMAT.md, 4)."""

from gaps import Gaps
from layout import CRITICAL, END, FILE_HEADER, MAGIC, SECTION_HEADER, SECTION_KINDS
from layout import file_header, find_header, payload_crc_is_right, section_header


class Refused(Exception):
    """The bytes are not a dump, or not of this major version."""


class Walk:
    """One walk over the bytes of a dump; `sections` are (header, place), `defects` are dicts."""

    def __init__(self, data):
        self.data = data
        self.size = len(data)
        self.sections, self.defects = [], []
        self.file = file_header(data)
        self.gaps = Gaps()
        self.expected = 0
        self.displaced = 0
        self.late = None
        self.ended = False
        self.budget = 4 * len(data)
        self.at = self._begin()
        while self.at < self.size:
            self._step()
        if not self.ended:
            self._defect("no-end", self.size, 0)
        for first, last, place in self.gaps.missing():
            self._defect("missing", place, 0, (first, last))

    def _begin(self):
        """Where the walk begins (4.3); judges the file header."""
        if not self.data:
            raise Refused("empty")
        if self.file is not None:
            if self.file.major > 1:
                raise Refused("version")
            self.dump_id = self.file.dump_id
            return FILE_HEADER
        first = find_header(self.data, 0, lambda _: True)
        if first is None:
            self.dump_id = None
            if self.data[:8] != MAGIC[: self.size]:
                raise Refused("not-a-dump")
            if self.size < FILE_HEADER:
                self._defect("cut", 0, self.size)
                return self.size
            self._defect("bad-file-header", 0, FILE_HEADER)
            return FILE_HEADER
        place, header = first
        self.dump_id = header.dump_id
        start = min(place, FILE_HEADER)
        self._defect("bad-file-header", 0, start)
        return start

    def _step(self):
        header = section_header(self.data, self.at)
        if header is None:
            if self.ended and not any(self.data[self.at :]):
                self.at = self.size
                return
            cut = self.size - self.at < SECTION_HEADER
            self._resume("cut" if cut else "bad-section-header")
        elif self._acceptable(header):
            self._order(header)
            self._section(header)
        else:
            self._skip(header)

    def _acceptable(self, header):
        """Whether a header may bring a section of this dump that has not been read (4.4)."""
        ours = header.dump_id == self.dump_id
        return ours and (header.sequence >= self.expected or self.gaps.hold(header.sequence))

    def _order(self, header):
        """Judges the sequence number and the position of an acceptable header (4.5)."""
        number = header.sequence
        if number < self.expected:
            self.gaps.fill(number)
            if self.late is None or self.late + 1 != number:
                self._defect("out-of-order", self.at, 0)
            self.late = number
            self.displaced = _signed(self.displaced + header.total)
            return
        if number > self.expected:
            self.gaps.open(self.expected, number - 1, self.at)
        self.late = None
        self.expected = number + 1
        moved = _signed(self.at - header.position)
        if moved != self.displaced:
            self._defect("displaced", self.at, 0, by=_signed(moved - self.displaced))
            self.displaced = moved

    def _section(self, header):
        """Judges the payload of an acceptable header and goes on behind it (4.6)."""
        start, number = self.at, header.sequence
        end = start + header.total
        if end > self.size:
            self.gaps.open(number, number, None)
            self._find_or_end(start + SECTION_HEADER)
            self._defect("cut", start, self.at - start, (number, number))
            return
        self.at = end
        if not payload_crc_is_right(self.data, start, header):
            self.gaps.open(number, number, None)
            self._search_within(start, end)
            self._defect("bad-payload", start, self.at - start, (number, number))
            return
        self.sections.append((header, start))
        if header.kind == END:
            self.ended = True
            self._behind_end()
        elif (header.version or header.kind not in SECTION_KINDS) and header.flags & CRITICAL:
            self._defect("critical-unknown", start, header.total, (number, number))

    def _skip(self, header):
        """A section that is not wanted: skipped, but searched when it is not sound (4.6)."""
        start, end = self.at, self.at + header.total
        if end > self.size:
            self._find_or_end(start + SECTION_HEADER)
        else:
            self.at = end
            if self.budget >= header.total:
                self.budget -= header.total
                if not payload_crc_is_right(self.data, start, header):
                    self._search_within(start, end)
        name = "repeated" if header.dump_id == self.dump_id else "foreign"
        self._defect(name, start, self.at - start)

    def _find_or_end(self, start):
        found = find_header(self.data, start, self._acceptable)
        self.at = found[0] if found else self.size

    def _search_within(self, start, end):
        """Bytes of a section with a wrong CRC may be lost: looks for a header within its claim."""
        behind = section_header(self.data, end)
        if end == self.size or (behind is not None and self._acceptable(behind)) or self.budget < end - start:
            return
        self.budget -= end - start
        found = find_header(self.data, start + SECTION_HEADER, self._acceptable, end + SECTION_HEADER)
        if found:
            self.at = found[0]

    def _behind_end(self):
        """Decides what follows an end section (4.7)."""
        behind = section_header(self.data, self.at)
        if behind is not None and self._acceptable(behind):
            return
        start = self.at
        if not any(self.data[start:]):
            self.at = self.size
            return
        self._find_or_end(start)
        self._defect("trailing", start, self.at - start)

    def _resume(self, name):
        """No sound header stands here: goes on at the next acceptable one."""
        start = self.at
        found = find_header(self.data, start + 1, self._acceptable)
        if found is None:
            self.at = self.size
            self._defect(name, start, self.size - start, (self.expected, self.expected))
            return
        self.at, header = found
        lost = None
        if header.sequence > self.expected:
            lost = (self.expected, header.sequence - 1)
            self.gaps.open(*lost, None)
            self.expected = header.sequence
        self._defect(name, start, self.at - start, lost)

    def _defect(self, name, offset, length, lost=None, **more):
        defect = {"name": name, "offset": offset, "length": length, **more}
        if lost is not None:
            defect["first"], defect["last"] = (min(number, 0xFFFFFFFF) for number in lost)
        self.defects.append(defect)


def _signed(value):
    """Differences of positions are signed numbers of 64 bits, modulo 2 to the 64th."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)
