"""Unpacks an LZ4 block (FORMAT.md, 2.6)."""


def unpack(block, length):
    """The `length` bytes that `block` unpacks to, or None when it is malformed or unpacks to another length."""
    out = bytearray()
    at, size = 0, len(block)
    while at < size:
        token = block[at]
        literals, at = _length(block, at + 1, token >> 4)
        if literals is None or at + literals > size or len(out) + literals > length:
            return None
        out += block[at : at + literals]
        at += literals
        if at == size:
            return bytes(out) if len(out) == length else None
        if at + 2 > size:
            return None
        distance = block[at] | block[at + 1] << 8
        more, at = _length(block, at + 2, token & 15)
        if more is None or not 0 < distance <= len(out) or len(out) + more + 4 > length:
            return None
        _repeat(out, distance, more + 4)
    return None


def _repeat(out, distance, count):
    """Appends `count` bytes that repeat the last `distance` bytes."""
    piece = bytes(out[-distance:])
    times = count // distance + 1
    out += (piece * times)[:count]


def _length(block, at, nibble):
    """A length and where the bytes go on; (None, at) when the block ends within it."""
    length = nibble
    if nibble < 15:
        return length, at
    while at < len(block):
        more = block[at]
        at += 1
        length += more
        if more != 255:
            return length, at
    return None, at
