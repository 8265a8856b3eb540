"""The package answers what the command line answers, on every checked-in dump."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import kwab
import pytest
from conftest import DUMPS, LOGS


def test_there_are_dumps_to_compare() -> None:
    assert len(DUMPS) >= 16 and len(LOGS) >= 4


@pytest.mark.parametrize("path", DUMPS + LOGS, ids=lambda path: path.stem)
def test_triage_and_inspection_are_those_of_the_command(path: Path, cli: Any) -> None:
    for number in range(1, len(kwab.open_all(path)) + 1):
        dump = kwab.open(path, number)
        for command, said in [("triage", dump.triage()), ("inspect", dump.inspect())]:
            assert said == cli(command, path, "--dump", number, "--json"), (command, number)


@pytest.mark.parametrize("path", DUMPS, ids=lambda path: path.stem)
def test_analyses_of_a_dump_are_those_of_the_command(path: Path, cli: Any) -> None:
    dump = kwab.open(path)
    assert dump.audit_vm() == cli("audit-vm", path, "--json")
    assert dump.verify_pages() == cli("verify-pages", path, "--json")
    assert [dump.check()] == cli("check", path, "--json")["dumps"]


@pytest.mark.parametrize("path", DUMPS, ids=lambda path: path.stem)
def test_every_record_is_the_one_that_is_exported(path: Path) -> None:
    words = [os.environ["KWAB_PROGRAM"], "export", str(path), "--to", "jsonl"]
    lines = subprocess.run(words, capture_output=True, check=True, timeout=120).stdout.splitlines()
    theirs = sorted(json.dumps(json.loads(line), sort_keys=True) for line in lines)
    records = kwab.open(path).records()
    ours = sorted(json.dumps(record.to_json(), sort_keys=True) for record in records)
    assert ours == theirs and len(ours) > 10
    assert records.lost == []


def addresses(dump: kwab.Dump) -> list[int]:
    spots = [piece["address"] for piece in dump.memory.pieces()[:4]]
    frames = [frame.ip for trace in dump.backtraces()[:2] for frame in trace.frames[:2]]
    return [0, 0xFFFF_FFFF_FFFF_FFFF, *spots, *frames]


@pytest.mark.parametrize("path", DUMPS, ids=lambda path: path.stem)
def test_addresses_are_explained_as_the_command_explains_them(path: Path, cli: Any) -> None:
    dump = kwab.open(path)
    for address in addresses(dump):
        assert dump.whatis(address) == cli("whatis", path, hex(address), "--json")
        ours, theirs = dump.translate(address), cli("translate", path, hex(address), "--json")
        assert ours["address"] == int(theirs["address"], 16) == address
        physical = theirs["physical"]
        assert ours["physical"] == (None if physical is None else int(physical, 16))
        assert [level["entry"] for level in ours["levels"]] == [
            None if level["entry"] is None else int(level["entry"], 16) for level in theirs["levels"]
        ]
        assert (ours["conclusion"], ours["captured"]) == (theirs["conclusion"], theirs["captured"])


@pytest.mark.parametrize("path", DUMPS, ids=lambda path: path.stem)
def test_stacks_are_those_of_the_inspection(path: Path, cli: Any) -> None:
    told = cli("inspect", path, "--json")
    others = [trace for trace in kwab.open(path).backtraces() if not trace.of_death]
    assert [trace.owners for trace in others] == [stack["owners"] for stack in told["stacks"]]
    for ours, theirs in zip(others, told["stacks"], strict=True):
        assert [frame.ip for frame in ours.frames] == [int(frame["addr"], 16) for frame in theirs["frames"]]
        assert [frame.trust for frame in ours.frames] == [frame["trust"] for frame in theirs["frames"]]


def test_a_search_finds_what_the_command_finds(cli: Any) -> None:
    path = next(path for path in DUMPS if kwab.open(path).memory.pieces())
    dump = kwab.open(path)
    piece = max(dump.memory.pieces(), key=lambda piece: piece["size"])
    content = dump.memory.read(piece["address"], piece["size"])
    at = next(at for at in range(0, len(content), 8) if any(content[at : at + 8]))
    pattern = content[at : at + 8]
    said = dump.search(pattern)
    assert said == cli("search", path, pattern.hex(), "--as", "hex", "--json") and said["hits"]
