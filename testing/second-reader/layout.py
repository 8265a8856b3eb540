"""The two headers of a dump (FORMAT.md, 2.1 and 2.2)."""

import struct
import zlib
from typing import NamedTuple

MAGIC = b"\x89KWAB\r\n\x1a"
SYNC = b"\xf5KWS"
FILE_HEADER = 48
SECTION_HEADER = 40
TRAILER = 4
MAX_PAYLOAD = 16777216
CRITICAL, COMPRESSED, PARTIAL = 1, 2, 4

SECTION_KINDS = {*range(1, 19), 126, 127}
END = 127

_FILE = struct.Struct("<8sHH4xQ16s4xI")
_SECTION = struct.Struct("<4sHBBIIQQII")


class FileHeader(NamedTuple):
    """A file header whose CRC is right."""

    major: int
    minor: int
    dump_id: int
    boot_id: bytes


class SectionHeader(NamedTuple):
    """A section header whose CRC is right and whose length is allowed."""

    kind: int
    version: int
    flags: int
    length: int
    sequence: int
    dump_id: int
    position: int
    records: int

    @property
    def total(self):
        """Bytes of the whole section."""
        return SECTION_HEADER + self.length + TRAILER


def file_header(data):
    """The file header at the front of `data`, or None."""
    if len(data) < FILE_HEADER or not data.startswith(MAGIC):
        return None
    _, major, minor, dump_id, boot_id, crc = _FILE.unpack_from(data)
    if zlib.crc32(data[: FILE_HEADER - 4]) != crc:
        return None
    return FileHeader(major, minor, dump_id, boot_id)


def section_header(data, at):
    """The sound section header at `at`, or None."""
    if at + SECTION_HEADER > len(data):
        return None
    mark, *rest, crc = _SECTION.unpack_from(data, at)
    if mark != SYNC or zlib.crc32(data[at : at + SECTION_HEADER - 4]) != crc:
        return None
    header = SectionHeader(*rest)
    return header if header.length <= MAX_PAYLOAD else None


def payload_crc_is_right(data, at, header):
    """Whether the CRC behind the payload is that of the header's CRC and the payload."""
    end = at + header.total
    covered = memoryview(data)[at + SECTION_HEADER - 4 : end - TRAILER]
    return zlib.crc32(covered) == int.from_bytes(data[end - TRAILER : end], "little")


def find_header(data, start, accept, end=None):
    """The first sound section header at or behind `start` that `accept` takes, as (place, header), or None."""
    at = data.find(SYNC, start, end)
    while at >= 0:
        header = section_header(data if end is None else data[:end], at)
        if header is not None and accept(header):
            return at, header
        at = data.find(SYNC, at + 1, end)
    return None
