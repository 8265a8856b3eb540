"""Reads Perfetto traces by the descriptors that Perfetto publishes (PyPI `perfetto`) and says what is wrong with them.

For each file one line of JSON: packets, slices, instants, values of counters, flows, and problems. A problem is a field
that the descriptors do not have, a string that was not interned, an event without a track, a slice that ends without
having begun, and a flow that has not exactly one begin and one end, or goes back in time.
"""

import collections
import json
import sys

from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as schema

BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4


def unknown(message, path):
    """Fields of a message, and of those inside it, that the descriptors do not have."""
    for field in UnknownFieldSet(message):
        yield f"{path}: unknown field {field.field_number}"
    for field, value in message.ListFields():
        if field.message_type is not None:
            for one in value if hasattr(value, "append") else [value]:
                yield from unknown(one, f"{path}.{field.name}")


def judge(path):
    trace = schema.Trace()
    with open(path, "rb") as file:
        trace.ParseFromString(file.read())
    problems = list(unknown(trace, "trace"))
    tracks, counters = set(), set()
    names = {"event_names": set(), "event_categories": set(), "debug_annotation_names": set()}
    counts, flows = collections.Counter(), collections.defaultdict(lambda: [[], []])
    ordered = []
    for number, packet in enumerate(trace.packet):
        def problem(text):
            problems.append(f"packet {number}: {text}")

        for kind, known in names.items():
            for entry in getattr(packet.interned_data, kind):
                if entry.iid == 0 or entry.iid in known:
                    problem(f"{kind} {entry.iid} interned again")
                known.add(entry.iid)
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            if track.uuid == 0 or track.uuid in tracks:
                problem(f"track {track.uuid} described again")
            if track.HasField("parent_uuid") and track.parent_uuid not in tracks:
                problem(f"track {track.uuid} stands before its parent")
            tracks.add(track.uuid)
            if track.HasField("counter"):
                counters.add(track.uuid)
            continue
        event = packet.track_event
        ordered.append((packet.timestamp, number, event))
        if event.track_uuid not in tracks:
            problem(f"no track {event.track_uuid}")
        if (event.type == COUNTER) != (event.track_uuid in counters):
            problem("a counter's value that is not on a counter's track, or another event on one")
        if event.HasField("name_iid") and event.name_iid not in names["event_names"]:
            problem(f"name {event.name_iid} is not interned")
        if event.type in (BEGIN, INSTANT) and not (event.HasField("name_iid") or event.HasField("name")):
            problem("an event without a name")
        for iid in event.category_iids:
            if iid not in names["event_categories"]:
                problem(f"category {iid} is not interned")
        for annotation in event.debug_annotations:
            if annotation.name_iid not in names["debug_annotation_names"]:
                problem(f"annotation {annotation.name_iid} is not interned")
        counts[event.type] += 1
        for end, ids in enumerate((event.flow_ids, event.terminating_flow_ids)):
            for flow in ids:
                flows[flow][end].append(packet.timestamp)
    depth = collections.Counter()
    for _, number, event in sorted(ordered, key=lambda entry: entry[:2]):
        depth[event.track_uuid] += {BEGIN: 1, END: -1}.get(event.type, 0)
        if depth[event.track_uuid] < 0:
            problems.append(f"packet {number}: a slice ends that did not begin")
            depth[event.track_uuid] = 0
    for flow, (begins, ends) in flows.items():
        if len(begins) != 1 or len(ends) != 1 or begins[0] > ends[0]:
            problems.append(f"flow {flow} from {begins} to {ends}")
    return {
        "packets": len(trace.packet),
        "tracks": len(tracks),
        "slices": counts[BEGIN],
        "instants": counts[INSTANT],
        "values": counts[COUNTER],
        "flows": len(flows),
        "problems": problems[:20],
    }


for name in sys.argv[1:]:
    print(json.dumps(judge(name)), flush=True)
