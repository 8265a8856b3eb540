"""Puts dumps together from armoured lines in a text (FORMAT.md, 5.3)."""

import base64
import binascii
import re
import zlib

LINE = re.compile(rb"KW1:(([0-9a-f]{8}):([0-9a-f]{8}):([A-Za-z0-9+/]{2,64})):([0-9a-f]{8});")


def dumps(text):
    """The dumps in a text by short id, in order of their first line; bytes that no line brings are zeros."""
    found = {}
    at = text.find(b"KW1:")
    while at >= 0:
        line = LINE.match(text, at)
        piece = line and _piece(line)
        if piece:
            position = int(line[3], 16)
            whole = found.setdefault(line[2], bytearray())
            whole.extend(bytes(max(0, position + len(piece) - len(whole))))
            whole[position : position + len(piece)] = piece
        at = text.find(b"KW1:", line.end() if piece else at + 1)
    return [bytes(whole) for whole in found.values()]


def _piece(line):
    """The bytes of a line whose CRC is right and whose base64 is canonical, or None."""
    if zlib.crc32(line[1]) != int(line[5], 16):
        return None
    digits = line[4]
    try:
        piece = base64.b64decode(digits + b"=" * (-len(digits) % 4), validate=True)
    except binascii.Error:
        return None
    return piece if base64.b64encode(piece).rstrip(b"=") == digits else None
