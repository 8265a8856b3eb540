"""Records, tables, memory, symbols and errors as Python objects."""

import os
import pickle
import shutil
import threading
from pathlib import Path

import kwab
import pyarrow as pa
import pytest
from conftest import DUMPS, LOGS, ROOT

NULL = ROOT / "testing/dumps/null-dereference.kwab"


def test_fields_are_attributes_with_exact_values() -> None:
    cause = next(kwab.open(NULL).records("cause"))
    assert (cause.type, cause.kind, cause.fault_addr) == ("cause", "exception", 0x18)
    assert cause["kind"] == cause.kind and "kind" in cause.keys() and "kind" in dir(cause)
    assert cause.to_dict()["fault_addr"] == 0x18 and cause.to_dict()["type"] == "cause"
    assert cause.wrong is None and cause.at.startswith("cause[")
    words = [reg["value"] for found in kwab.open(NULL).records("registers") for reg in found.regs]
    assert any(word > 2**63 for word in words)


def test_an_absent_field_is_none_and_an_unknown_one_an_error() -> None:
    task = next(kwab.open(NULL).records("task"))
    absent = set(dir(task)) - set(task.keys()) - {"at", "bytes_of", "keys", "to_dict", "to_json", "type", "wrong"}
    assert absent and all(task[name] is None for name in absent)
    with pytest.raises(AttributeError, match="no field no_such"):
        task.no_such
    with pytest.raises(KeyError):
        task["no_such"]
    assert task.bytes_of("comm") == task.comm.encode()


def test_no_field_of_the_format_is_hidden_by_a_method() -> None:
    """Every column of every table is an attribute of its records."""
    own = {"at", "bytes_of", "keys", "to_dict", "to_json", "type", "wrong"}
    dump = kwab.open(NULL)
    for name in kwab.record_types():
        assert not own & set(dump.table(name).columns), name


@pytest.mark.parametrize("path", DUMPS, ids=lambda path: path.stem)
def test_tables_hold_what_records_hold(path: Path) -> None:
    dump = kwab.open(path)
    for name, count in dump.record_counts().items():
        source = dump.table(name)
        table = pa.table(source)
        table.validate(full=True)
        assert source.lost == [] and table.num_rows == count
        rows = table.to_pylist()
        for row, record in zip(rows, dump.records(name), strict=True):
            assert record.at.endswith(f"[{row['_section']}].{row['_record']}")
            for field in source.columns[2:]:
                assert row[field] == same(record[field], row[field]), (name, field)


def same(value: object, shown: object) -> object:
    """The value of a record as Arrow has it: all fields of an element, a number without a name as text."""
    if isinstance(value, list) and isinstance(shown, list) and len(value) == len(shown):
        return [{key: same(element.get(key), row[key]) for key in row} for element, row in zip(value, shown)]
    return str(value) if isinstance(value, int) and isinstance(shown, str) else value


def test_a_table_has_a_schema_before_it_is_read() -> None:
    schema = pa.schema(kwab.open(NULL).table("registers"))
    assert schema.field("_section").type == pa.uint32()
    assert pa.types.is_list(schema.field("regs").type)
    assert schema.field("regs").type.value_type.field("value").type == pa.uint64()
    with pytest.raises(ValueError, match="no type of records"):
        kwab.open(NULL).table("nothing")


def test_memory_is_read_or_missing_from_an_address_on() -> None:
    dump = kwab.open(NULL)
    pieces = dump.memory.pieces()
    assert pieces
    starts = {piece["address"] for piece in pieces}
    last = next(p for p in pieces if p["size"] >= 16 and p["address"] + p["size"] not in starts)
    address, size = last["address"], last["size"]
    whole = dump.memory.read(address, size)
    assert len(whole) == size
    assert dump.memory.read_int(address) == int.from_bytes(whole[:8], "little")
    assert dump.memory.read_int(address, 2) == int.from_bytes(whole[:2], "little")
    with pytest.raises(kwab.MissingMemoryError) as caught:
        dump.memory.read(address, size + 4096)
    assert caught.value.address >= address + size
    assert caught.value.available[:size] == whole
    with pytest.raises(kwab.MissingMemoryError):
        dump.memory.read(0, 1)
    with pytest.raises(ValueError, match="beyond the last address"):
        dump.memory.read(2**64 - 1, 2)
    with pytest.raises(kwab.AddressSpaceError):
        dump.memory.read(0, 1, pid=4_000_000)


def test_symbols_name_addresses_only_when_the_image_fits(tmp_path: Path) -> None:
    dump = kwab.open(NULL)
    symbols = dump.symbols([tmp_path])
    assert symbols.images == [] and symbols.problems
    assert symbols.resolve(0xFFFF_FFFF_8000_0000).name is None
    assert symbols.address_of("main") is None
    with pytest.raises(FileNotFoundError):
        dump.symbols([tmp_path / "absent"])
    image = tmp_path / Path(next(record.path for record in dump.records("image") if record.path)).name
    shutil.copyfile(ROOT / "testing/data/unwind/chain-fp.elf", image)
    assert dump.symbols([image]).images == []
    forced = dump.symbols([image], force=True)
    assert forced.images[0]["name"] == str(image)
    pid = forced.images[0]["pid"]
    start = forced.address_of("innermost", pid=pid)
    assert start is not None and forced.address_of("no_such_function", pid=pid) is None
    found = forced.resolve(start, pid=pid)
    assert (found.symbol, found.offset) == ("innermost", 0)
    assert forced.resolve(start, pid=pid, return_address=True).symbol != "innermost"
    assert dump.triage(forced)["headline"] == dump.triage([])["headline"]


def test_logs_become_dumps_that_can_be_kept(tmp_path: Path) -> None:
    for log in LOGS:
        report, dumps = kwab.import_log(log)
        assert len(dumps) == len(report["dumps"]) == len(kwab.open_all(log.read_bytes(), name=log.name))
        dumps[0].save(tmp_path / "kept.kwab", overwrite=True)
        kept = kwab.open(tmp_path / "kept.kwab")
        assert kept.triage()["headline"] == dumps[0].triage()["headline"]
        assert kept.check()["sound"]
        with pytest.raises(FileExistsError):
            dumps[0].save(tmp_path / "kept.kwab")
    with pytest.raises(kwab.OpenError, match="is a dump, not a log"):
        kwab.import_log(NULL)


def test_a_file_is_found_again_under_another_name_and_from_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "elsewhere").mkdir()
    shutil.copyfile(NULL, tmp_path / "here/a.kwab")
    monkeypatch.chdir(tmp_path / "here")
    named, plain = kwab.open("a.kwab", name="nice"), kwab.open("a.kwab")
    assert (named.name, plain.name) == ("nice", "a.kwab")
    monkeypatch.chdir(tmp_path / "elsewhere")
    for number, dump in enumerate([named, plain]):
        assert dump.triage()["headline"] == kwab.open(NULL).triage()["headline"]
        dump.save(tmp_path / f"{number}.kwab")
        assert (tmp_path / f"{number}.kwab").read_bytes() == NULL.read_bytes()


def test_one_dump_of_several_is_kept_alone_and_only_of_the_file_that_was_opened(tmp_path: Path) -> None:
    contents = [path.read_bytes() for path in DUMPS[:3]]
    several = tmp_path / "several.kwab"
    several.write_bytes(b"".join(contents))
    for source in (several, several.read_bytes()):
        for number, content in enumerate(contents, 1):
            kept = tmp_path / "kept.kwab"
            kwab.open(source, number).save(kept, overwrite=True)
            assert kept.read_bytes() == content
    opened, alone = kwab.open(several, 2), kwab.open(tmp_path / "kept.kwab")
    several.write_bytes(b"something else")
    (tmp_path / "kept.kwab").write_bytes(b"something else")
    for dump in (opened, alone):
        with pytest.raises(OSError, match="changed or replaced"):
            dump.save(tmp_path / "new.kwab")
    assert not (tmp_path / "new.kwab").exists()


def test_only_a_regular_file_is_replaced_and_never_the_input(tmp_path: Path) -> None:
    """A socket, a FIFO and a device were replaced by the dump, and a link instead of the file behind it."""
    content, null = NULL.read_bytes(), kwab.open(NULL)
    fifo, link, linked = tmp_path / "fifo", tmp_path / "link.kwab", tmp_path / "linked.kwab"
    os.mkfifo(fifo)
    linked.write_bytes(b"old")
    link.symlink_to(linked)
    before = os.lstat(fifo)
    for refused, why in [(fifo, "never replaced"), (tmp_path, "directory"), (tmp_path / "no/where", "No such file")]:
        with pytest.raises(OSError, match=why):
            null.save(refused, overwrite=True)
    assert os.lstat(fifo) == before
    null.save(link, overwrite=True)
    assert link.is_symlink() and linked.read_bytes() == content
    opened = kwab.open(linked)
    with pytest.raises(OSError, match="is an input"):
        opened.save(link, overwrite=True)
    assert opened.triage()["headline"] == null.triage()["headline"]


def test_the_bytes_of_a_field_that_no_record_has_are_an_error() -> None:
    cause = next(kwab.open(NULL).records("cause"))
    assert cause.bytes_of("message") is not None and cause.bytes_of("fault_addr") is None
    with pytest.raises(KeyError, match="no field messages"):
        cause.bytes_of("messages")


def test_what_cannot_be_opened_says_why(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as absent:
        kwab.open(tmp_path / "absent")
    assert absent.value.filename == str(tmp_path / "absent")
    for source, why in [(b"", "is empty"), (b"all is well\n", "without a crash"), (b"\x7fELF" + bytes(60), "ELF")]:
        with pytest.raises(kwab.OpenError, match=why):
            kwab.open(source)
    with pytest.raises(kwab.OpenError, match="there is no dump 2"):
        kwab.open(NULL, 2)
    with pytest.raises(kwab.OpenError, match="not a regular file"):
        kwab.open("/dev/zero")
    with pytest.raises(TypeError):
        kwab.open(5)  # type: ignore[arg-type]
    assert issubclass(kwab.OpenError, kwab.Error)


def test_a_file_that_was_replaced_is_not_taken_for_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "dump.kwab"
    path.write_bytes(NULL.read_bytes())
    dump = kwab.open(path)
    path.write_bytes((ROOT / "testing/dumps/leak.kwab").read_bytes())
    with pytest.raises(OSError, match="not the one that was opened"):
        dump.triage()


def test_damage_is_listed_and_the_rest_is_read() -> None:
    damaged = bytearray(NULL.read_bytes())
    damaged[2000] ^= 1
    dump = kwab.open(damaged)
    [defect] = dump.defects
    assert defect.text and defect.offset <= 2000 <= defect.offset + defect.length
    assert len(dump.sections) == len(kwab.open(NULL).sections) - 1
    assert not dump.check()["sound"]
    assert len(list(dump.records())) == sum(dump.record_counts().values())
    cut = kwab.open(NULL.read_bytes()[:-100])
    assert not cut.ended and cut.defects


def test_threads_share_a_dump() -> None:
    dump = kwab.open(NULL)
    said: list[str] = []

    def ask() -> None:
        said.append(dump.triage()["headline"])
        said.append(str(sum(1 for _ in dump.records())))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(said) == 16 and len(set(said)) == 2


def test_objects_show_no_control_characters() -> None:
    dump = kwab.open(NULL.read_bytes(), name="\x1b[2Jname")
    shown = [repr(dump), repr(dump.sections[0]), repr(next(dump.records())), repr(dump.table("task"))]
    shown += [repr(trace) for trace in dump.backtraces()]
    assert all(text.isprintable() for text in shown), shown
    with pytest.raises(TypeError):
        pickle.dumps(dump)
