"""No dump, however it is damaged, makes the package panic; what it raises is its own."""

import random
from pathlib import Path

import kwab
import pyarrow as pa
import pytest
from conftest import DUMPS, LOGS

#: Damaged copies of each input.
ROUNDS = 6


def damaged(content: bytes, seed: int) -> bytes:
    dice = random.Random(seed)
    bytes_ = bytearray(content)
    for _ in range(dice.choice([1, 4, 64])):
        at = dice.randrange(len(bytes_))
        match dice.randrange(4):
            case 0:
                bytes_[at] ^= 1 << dice.randrange(8)
            case 1:
                bytes_[at : at + 8] = dice.choice([bytes(8), b"\xff" * 8])
            case 2:
                del bytes_[at : at + dice.randrange(1, 4096)]
            case _:
                bytes_[at:at] = bytes_[: dice.randrange(1, 4096)]
        if not bytes_:
            return b"\0"
    return bytes(bytes_)


def use(dump: kwab.Dump) -> None:
    """Everything that can be asked; `MissingMemoryError` and the like are answers."""
    dump.triage(), dump.inspect(), dump.summary(), dump.check(), dump.audit_vm(), dump.verify_pages()
    for record in dump.records():
        record.to_dict(), record.to_json(), repr(record)
    for name in dump.record_counts():
        pa.table(dump.table(name)).validate(full=True)
    for trace in dump.backtraces():
        for frame in trace.frames[:2]:
            for ask in (dump.whatis, dump.translate, dump.memory.read_int):
                try:
                    ask(frame.ip)
                except (kwab.Error, ValueError):
                    pass
    for section in dump.sections:
        section.payload()


@pytest.mark.parametrize("path", DUMPS + LOGS, ids=lambda path: path.stem)
def test_damaged_inputs_are_answered_or_refused(path: Path) -> None:
    content = path.read_bytes()
    opened = 0
    for seed in range(ROUNDS):
        try:
            dump = kwab.open(damaged(content, seed))
        except kwab.Error:
            continue
        opened += 1
        use(dump)
    assert opened > 0
