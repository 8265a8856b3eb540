"""A second reader of the kwab dump format, written from FORMAT.md and RECORDS.md; it shares nothing with the first.

    python3 testing/second-reader FILE...      one line of JSON per file
    python3 testing/second-reader --batch FILE one line for each file in FILE, where a file stands behind its length (4
                                               bytes, little-endian)
    python3 testing/second-reader --armour FILE    one line for each dump in the armoured lines of FILE

The line of a file: "stream", where the dumps lie that a stream of these bytes holds, and "dumps", those that the file
holds. A dump: the file header, the sound sections with their records in order of place, the defects sorted by offset,
name, length and sequence number, and what its end section counts wrongly. Bytes are hexadecimal. A dump that a reader
refuses is {"refused": reason}.
"""

import json
import sys

import armour
import lz4
import records
import stream
import totals
from layout import COMPRESSED, MAX_PAYLOAD
from schema import Schema
from walk import Refused, Walk

CACHE_LIMIT = 4000


class Reader:
    """Reads dumps; remembers what payloads hold, since mutated dumps share most of theirs."""

    def __init__(self):
        self.schema = Schema()
        self.cache = {}

    def file(self, data):
        """What there is to say about a file, as one line of JSON."""
        pieces = [[piece.dump_id, piece.start, piece.end] for piece in stream.pieces(data)]
        dumps = [self.line(data[start:end]) for start, end in stream.extents(data)]
        return f'{{"stream":{dump_json(pieces)},"dumps":[{",".join(dumps)}]}}'

    def line(self, data):
        """What there is to say about a dump, as one line of JSON."""
        try:
            walk = Walk(data)
        except Refused as refused:
            return dump_json({"refused": str(refused)})
        sections, defects = [], list(walk.defects)
        for header, place in walk.sections:
            payload = data[place + 40 : place + 40 + header.length]
            body, faults = self.content(header, payload)
            blame = {
                "offset": place, "length": header.total, "first": header.sequence, "last": header.sequence,
            }
            defects.extend({**fault, **blame} for fault in faults)
            head = dump_json({
                "kind": header.kind, "version": header.version, "flags": header.flags,
                "sequence": header.sequence, "offset": place, "payload": header.length,
                "position": header.position, "count": header.records,
            })
            sections.append(f'{{"header":{head},"records":{body}}}')
        wrong = totals.judge(self.schema, data, walk, defects)
        defects.sort(key=lambda d: (d["offset"], d["name"], d["length"], d.get("first", -1), d.get("by", d.get("record", 0))))
        file = None
        if walk.file:
            file = {"minor": walk.file.minor, "dump_id": walk.file.dump_id, "boot_id": walk.file.boot_id.hex()}
        return f'{{"file":{dump_json(file)},"sections":[{",".join(sections)}],"defects":{dump_json(defects)},"totals":{dump_json(wrong)}}}'

    def content(self, header, payload):
        """The records of a sound section as JSON, and the defects within."""
        key = (header.version, header.flags & COMPRESSED, header.records, payload)
        if key not in self.cache:
            if len(self.cache) >= CACHE_LIMIT:
                self.cache.clear()
            self.cache[key] = self.judge(header, payload)
        return self.cache[key]

    def judge(self, header, payload):
        if header.version:
            return "[]", []
        if header.flags & COMPRESSED:
            payload = unpacked(payload)
            if payload is None:
                return "[]", [{"name": "bad-compression"}]
        found, rest = records.cut(payload)
        described = [records.describe(self.schema, kind, body) for kind, body in found]
        faults = [
            {"name": "bad-record", "record": number}
            for number, record in enumerate(described) if "malformed" in record
        ]
        if rest:
            faults.append({"name": "record-tail"})
        if len(found) != header.records:
            faults.append({"name": "record-count", "found": len(found)})
        return dump_json(described), faults


def unpacked(payload):
    """What a compressed payload unpacks to, or None."""
    length = int.from_bytes(payload[:4], "little")
    if len(payload) < 4 or length > MAX_PAYLOAD:
        return None
    return lz4.unpack(payload[4:], length)


def dump_json(value):
    return json.dumps(value, separators=(",", ":"))


def main():
    reader = Reader()
    if sys.argv[1:2] == ["--batch"]:
        with open(sys.argv[2], "rb") as source:
            while length := source.read(4):
                print(reader.file(source.read(int.from_bytes(length, "little"))))
        return
    if sys.argv[1:2] == ["--armour"]:
        with open(sys.argv[2], "rb") as source:
            for dump in armour.dumps(source.read()):
                print(reader.line(dump))
        return
    for name in sys.argv[1:]:
        with open(name, "rb") as file:
            print(reader.file(file.read()))


main()
