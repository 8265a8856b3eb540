"""Compares what an end section counts with what is there (FORMAT.md, 2.7 and 4.1)."""

from layout import END
from records import Malformed, cut, decode

KIND_TOTAL, LAST = "KindTotal", "End"


def judge(schema, data, walk, defects):
    """What the last end section of a dump counts wrongly, in the order of its records."""
    ends = [found for found in walk.sections if found[0].kind == END]
    if not ends or any("first" in defect for defect in defects):
        return []
    header, place = ends[-1]
    others = [other for other, _ in walk.sections if other.kind != END]
    payload = data[place + 40 : place + 40 + header.length]
    wrong, last = [], []
    for kind, body in cut(payload)[0]:
        name = schema.names.get(kind)
        if name not in (KIND_TOTAL, LAST):
            continue
        try:
            fields = decode(schema.kinds[kind], body)
        except Malformed:
            continue
        if name == LAST:
            last = _compare(fields, others, None, place)
        elif fields.get("kind"):
            counted = fields["kind"]
            of_kind = [other for other in others if other.kind == counted]
            wrong += _compare(fields, of_kind, counted, sum(other.length for other in of_kind))
    return wrong + last


def _compare(fields, sections, kind, length):
    there = {
        "sections": len(sections), "records": sum(other.records for other in sections), "bytes": length,
    }
    return [
        {"what": what, "kind": kind, "claimed": fields[what], "found": found}
        for what, found in there.items() if what in fields and fields[what] != found
    ]
