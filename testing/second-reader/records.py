"""Cuts a payload into records (FORMAT.md, 2.3) and decodes their fields (2.4)."""

INT_WIDTH = (0, 1, 2, 4, 6, 8)


class Malformed(Exception):
    """The body breaks a rule of 2.4, so its record gives nothing."""


def cut(payload):
    """The records of a payload as (kind, body), and the number of bytes behind the last whole one."""
    records, at = [], 0
    while at + 4 <= len(payload):
        length = int.from_bytes(payload[at + 1 : at + 4], "little")
        end = at + 4 + length
        if end > len(payload):
            break
        records.append((payload[at], payload[at + 4 : end]))
        at = end
    return records, len(payload) - at


def describe(schema, kind, body):
    """A record as the JSON form of this reader."""
    table = schema.kinds.get(kind)
    if table is None:
        return {"kind": kind, "unknown": body.hex()}
    try:
        return {"kind": kind, "name": schema.names[kind], "fields": decode(table, body)}
    except Malformed:
        return {"kind": kind, "name": schema.names[kind], "malformed": body.hex()}


def decode(table, body):
    """The known fields of a body by name."""
    fields, at = {}, 0
    while at < len(body):
        number, value, at = _field(body, at)
        if number in table:
            name, shape = table[number]
            fields[name] = _value(shape, value)
    return fields


def _field(body, at):
    """One field: its number, an int or bytes, and where the next one begins."""
    key = body[at]
    number, code = key >> 3, key & 7
    at += 1
    if number == 31:
        if at >= len(body):
            raise Malformed
        number = body[at]
        at += 1
    if code == 7:
        raise Malformed
    if code == 6:
        value, at = _prefixed(body, at)
        return number, value, at
    end = at + INT_WIDTH[code]
    if end > len(body):
        raise Malformed
    return number, int.from_bytes(body[at:end], "little"), end


def _prefixed(body, at):
    """A length and that many bytes; the bytes and where they end."""
    if at >= len(body):
        raise Malformed
    length = body[at]
    at += 1
    if length >= 254:
        width = 2 if length == 254 else 4
        if at + width > len(body):
            raise Malformed
        length = int.from_bytes(body[at : at + width], "little")
        at += width
    if at + length > len(body):
        raise Malformed
    return body[at : at + length], at + length


def _value(shape, value):
    """What a value means as `shape`."""
    wants_bytes = shape[0] in ("bytes", "list")
    if wants_bytes != isinstance(value, bytes):
        raise Malformed
    match shape[0]:
        case "bytes":
            return value.hex()
        case "list":
            return _elements(shape[1], value)
        case "i64":
            return -(value + 1 >> 1) if value & 1 else value >> 1
        case "bool":
            if value > 1:
                raise Malformed
            return value == 1
        case _:
            if value >> shape[1]:
                raise Malformed
            return value


def _elements(table, value):
    elements, at = [], 0
    while at < len(value):
        body, at = _prefixed(value, at)
        elements.append(decode(table, body))
    return elements
