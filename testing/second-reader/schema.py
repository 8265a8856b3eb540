"""The field tables of RECORDS.md, read from the document itself (and the stamp's table from FORMAT.md, 2.4).

A table is a dict from field number to (name, shape); a shape is ("u", bits), ("i64",), ("bool",), ("bytes",) or
("list", table of the element).
"""

import pathlib
import re

DOCUMENTS = pathlib.Path(__file__).resolve().parents[2] / "kwab-format"

HEADING = re.compile(r"^#{3,4} (?:(\d+) (\w+)|Element (\w+))$")
ROW = re.compile(r"^\| (\d+) \| `(\w+)` \| ([^|]+?) \|")


class Schema:
    """Tables of all kinds of records."""

    def __init__(self):
        records = (DOCUMENTS / "RECORDS.md").read_text(encoding="utf-8")
        document = (DOCUMENTS / "FORMAT.md").read_text(encoding="utf-8")
        rows, names, elements = _tables(records)
        self.stamp = {number: (name, _shape(shape, {})) for number, name, shape in _stamp_rows(document)}
        element_tables = {}
        for element, own in elements.items():
            element_tables[element] = {number: (name, _shape(shape, {})) for number, name, shape in own}
        self.names = names
        self.kinds = {}
        for kind, own in rows.items():
            table = {number: (name, _shape(shape, element_tables)) for number, name, shape in own}
            self.kinds[kind] = {**self.stamp, **table}


def _tables(text):
    """Rows by kind of record, names by kind, rows by name of element."""
    rows, names, elements = {}, {}, {}
    current = None
    for line in text.splitlines():
        if line.startswith("#"):
            heading = HEADING.match(line)
            current = None
            if heading and heading[1]:
                names[int(heading[1])] = heading[2]
                current = rows.setdefault(int(heading[1]), [])
            elif heading:
                current = elements.setdefault(heading[3], [])
        elif current is not None and (row := ROW.match(line)):
            current.append((int(row[1]), row[2], row[3]))
    return rows, names, elements


def _stamp_rows(text):
    """The rows of the only table of fields in FORMAT.md."""
    found = (ROW.match(line) for line in text.splitlines())
    return [(int(row[1]), row[2], row[3]) for row in found if row]


def _shape(text, elements):
    if text.startswith("list of "):
        return ("list", elements[text.removeprefix("list of ")])
    word = text.split(" ")[0]
    if word[0] == "u":
        return ("u", int(word[1:]))
    if word in ("i64", "bool", "bytes"):
        return (word,)
    raise ValueError(f"a shape that FORMAT.md does not know: {text}")
