"""Holds the Parquet files of `kwab` against what it says as JSON, in DuckDB and in DataFusion, and runs the queries of
`docs/parquet.md` in both.

Usage: judge.py KWAB FLEET FOLDER PAGE [--write]. FLEET is a directory of dumps, FOLDER one for the tables. `--write`
puts what the queries give into the page.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import duckdb
import pyarrow.parquet
from datafusion import SessionContext

TABLES = {"events": None, "calls": "syscall_record", "mappings": "vma", "tasks": "task"}
FINDING = ["rule", "class", "claim", "score", "proven", "function", "about"]
QUERY = re.compile(r"```sql( duckdb)?\n(.*?)```\n\n```text\n(.*?)```", re.DOTALL)


class Tables:
    """The files of a folder as tables of two engines."""

    def __init__(self, kwab: str, folder: Path) -> None:
        self.kwab, self.folder = kwab, folder
        self.duckdb = duckdb.connect()
        self.duckdb.execute("SET TimeZone = 'UTC'")
        self.datafusion = SessionContext().enable_url_table()

    def run(self, *words: str) -> str:
        """What a command prints; 3 says that dumps are damaged."""
        done = subprocess.run([self.kwab, *words], capture_output=True, text=True, cwd=self.folder, check=False)
        assert done.returncode in (0, 3), f"kwab {words}: {done.stderr}"
        return done.stdout

    def lines(self, file: str, *more: str) -> list[dict]:
        """The records of a dump as `kwab export --to jsonl` has them."""
        return [json.loads(line) for line in self.run("export", file, "--to", "jsonl", *more).splitlines()]

    def both(self, query: str) -> tuple[list[dict], list[dict]]:
        """The rows of a query by each engine."""
        one = self.duckdb.execute(query)
        names = [column[0] for column in one.description]
        first = [dict(zip(names, row, strict=True)) for row in one.fetchall()]
        second = [row for batch in self.datafusion.sql(query).collect() for row in batch.to_pylist()]
        return first, second

    def same(self, query: str, wanted: list[dict], what: str) -> None:
        """Both engines must find these rows."""
        for name, found in zip(("DuckDB", "DataFusion"), self.both(query), strict=True):
            assert len(found) == len(wanted), f"{what}: {len(found)} rows in {name}, not {len(wanted)}"
            for row, want in zip(found, wanted, strict=True):
                for key, value in want.items():
                    assert row[key] == value, f"{what}: {name} has {row[key]!r} for {key}, not {value!r}: {want}"
        print(f"{what}: {len(wanted)} rows as kwab says")


def catalogue(tables: Tables) -> None:
    """The catalogue against `kwab list --json`: every field of every dump, and the groups."""
    tables.run("export", "fleet", "--to", "parquet", "-o", "catalogue.parquet", "--force")
    groups = json.loads(tables.run("list", "fleet", "--json"))["groups"]
    dumps = []
    for entry in (dump for group in groups for dump in group["dumps"]):
        finding = entry.pop("finding", {})
        dumps.append(entry | {key: finding.get(key) for key in FINDING})
    dumps.sort(key=lambda dump: (dump["file"], dump["dump"] or 0))
    tables.same("SELECT * FROM 'catalogue.parquet' ORDER BY file, dump", dumps, "catalogue")
    counts = sorted((group["count"], len(group["dumps"])) for group in groups)
    query = """SELECT count(*) FILTER (WHERE counts) AS deaths, count(*) AS dumps
        FROM 'catalogue.parquet' GROUP BY bug ORDER BY 1, 2"""
    tables.same(query, [{"deaths": deaths, "dumps": all_} for deaths, all_ in counts], "groups")
    rows = pyarrow.parquet.read_table(tables.folder / "catalogue.parquet").to_pylist()
    for row in rows:
        clock = row["wall_ns"]
        assert clock is None or int(row["happened"].timestamp()) == clock // 10**9, row
        assert not row["hypotheses"] or row["hypotheses"][0]["rule"] == row["rule"], row


def plain(record: dict) -> dict:
    """An exported record as the table has it: words are hexadecimal texts there, and arguments a list."""
    row = {}
    for name, value in record.items():
        many = {f"arg{index}": one for index, one in enumerate(value)} if name == "args" else {name: value}
        for key, one in many.items():
            is_word = isinstance(one, str) and re.fullmatch("0x[0-9a-f]+", one) and not key.startswith("text")
            row[key] = int(one, 16) if is_word else one
    row.pop("type")
    return row


def same_rows(found: list[dict], wanted: list[dict], what: str) -> None:
    """The same rows in any order."""
    one, other = (sorted(json.dumps(row, sort_keys=True) for row in rows) for rows in (found, wanted))
    assert one == other, f"{what}: {sorted(set(one) ^ set(other))[:4]}"


def records(tables: Tables, files: list[str]) -> None:
    """Records against `kwab export --to jsonl`, tasks and mappings against `kwab inspect --json` too."""
    exported = {file: tables.lines(file) for file in files}
    for table, kind in TABLES.items():
        tables.run("export", "fleet", "--to", "parquet", "--table", table, "-o", f"{table}.parquet", "--force")
        if kind is None:
            continue
        for rows, name in zip(tables.both(f"SELECT * FROM '{table}.parquet'"), ("DuckDB", "DataFusion"), strict=True):
            for file in files:
                own = [row for row in rows if row["_file"] == file]
                found = [{k: v for k, v in row.items() if v is not None and k[0] != "_"} for row in own]
                wanted = [plain(one) for one in exported[file] if one["type"] == kind]
                same_rows(found, wanted, f"{table} of {file} in {name}")
        print(f"{table}: {len(rows)} rows as kwab export --to jsonl has them")
    for file in files:
        report = json.loads(tables.run("inspect", file, "--json"))
        query = f"SELECT pid, ppid, coalesce(comm, '') AS comm FROM 'tasks.parquet' WHERE _file = '{file}'"
        for rows in tables.both(query):
            wanted = [{key: task[key] for key in ("pid", "ppid", "comm")} for task in report["tasks"]]
            same_rows(rows, wanted, f"tasks of {file}")
        for rows in tables.both(f"""SELECT start, "end" FROM 'mappings.parquet' WHERE _file = '{file}'"""):
            found = {(row["start"], row["end"]) for row in rows}
            assert all((int(vma["start"], 16), int(vma["end"], 16)) in found for vma in report["vmas"]), file
    print(f"tasks, mappings: {len(files)} dumps as kwab inspect has them")
    events(tables, files)


def events(tables: Tables, files: list[str]) -> None:
    """Events against `kwab export --to jsonl` of their sections."""
    wanted = {file: tables.lines(file, "--section", "events,flight") for file in files}
    for rows in tables.both("SELECT * FROM 'events.parquet'"):
        for file in files:
            same_rows([json.loads(row["fields"]) for row in rows if row["_file"] == file], wanted[file], file)
        for row in rows:
            fields = json.loads(row["fields"])
            for name in ("seq", "cpu", "ns", "line", "type"):
                assert row[name] == fields.get(name), (name, row)
    print(f"events: {len(rows)} rows as kwab export --to jsonl has them")


def parts(tables: Tables) -> None:
    """Partitioned catalogues have the rows of the whole."""
    query = "SELECT count(*), sum(hash(file, cause, happened)) FROM "
    whole = tables.duckdb.execute(query + "'catalogue.parquet'").fetchall()
    for key in ("signature", "day", "build"):
        subprocess.run(["rm", "-rf", f"by-{key}"], cwd=tables.folder, check=True)
        tables.run("export", "fleet", "--to", "parquet", "--partition", key, "-o", f"by-{key}")
        source = f"read_parquet('by-{key}/*/*.parquet', hive_partitioning = true, hive_types_autocast = false)"
        assert tables.duckdb.execute(query + source).fetchall() == whole, key
    query = """SELECT file, signature, day::VARCHAR FROM
        (SELECT file, signature FROM
            read_parquet('by-signature/*/*.parquet', hive_partitioning = true, hive_types_autocast = false))
        JOIN (SELECT file, day FROM read_parquet('by-day/*/*.parquet', hive_partitioning = true)) USING (file)
        ORDER BY file"""
    whole = "SELECT file, signature, happened::DATE::VARCHAR FROM 'catalogue.parquet' ORDER BY file"
    assert tables.duckdb.execute(query).fetchall() == tables.duckdb.execute(whole).fetchall()
    print("partitions: by signature, day and build as the whole")


def shown(rows: list[dict]) -> str:
    """Rows as the page has them."""
    def cell(value: object) -> str:
        return "" if value is None else str(value)
    lines = [" | ".join(rows[0])] if rows else []
    lines += [" | ".join(cell(value) for value in row.values()) for row in rows]
    return "".join(line + "\n" for line in lines)


def page(tables: Tables, path: Path, write: bool) -> None:
    """Every query of the page gives what is shown below it."""
    text, count = path.read_text(), 0

    def one(match: re.Match[str]) -> str:
        nonlocal count
        count += 1
        only, query, before = match.groups()
        if only:
            found = tables.duckdb.execute(query)
            names = [column[0] for column in found.description]
            rows = [dict(zip(names, row, strict=True)) for row in found.fetchall()]
        else:
            rows, second = tables.both(query)
            assert shown(rows) == shown(second), f"{query}DuckDB:\n{shown(rows)}DataFusion:\n{shown(second)}"
        assert write or shown(rows) == before, f"{query}{shown(rows)}not\n{before}"
        return match.group(0).replace(f"```text\n{before}```", f"```text\n{shown(rows)}```")

    done = QUERY.sub(one, text)
    assert count >= 5, f"{count} queries"
    if write:
        path.write_text(done)
    print(f"{count} queries of {path.name} give what it shows")


def main(kwab: str, fleet: str, folder: str, path: str, *more: str) -> None:
    tables = Tables(kwab, Path(folder).resolve())
    link = tables.folder / "fleet"
    assert link.resolve() == Path(fleet).resolve(), "the directory of dumps is FOLDER/fleet"
    tables.run("index", "fleet")
    files = sorted(f"fleet/{file.name}" for file in link.glob("*.kwab"))
    os.chdir(tables.folder)
    catalogue(tables)
    records(tables, files)
    parts(tables)
    page(tables, Path(path), "--write" in more)


main(*sys.argv[1:])
