"""Reads a partitioned catalogue in Spark's local mode and holds its groups against `kwab list --json`.

Usage: spark.py KWAB FOLDER, where FOLDER has `fleet` and its catalogue in `by-signature`, as judge.py leaves them.
"""

import json
import os
import shlex
import subprocess
import sys
import zipfile
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

QUERY = """
SELECT signature, count_if(counts) AS deaths, count(*) AS dumps, date(max(happened)) AS last
FROM catalogue WHERE kind NOT IN ('recording', 'lost', 'unreadable')
GROUP BY signature ORDER BY deaths DESC, signature
"""



def snappy(folder: Path) -> str:
    """Options by which Java finds the Snappy of glibc: its own search takes a machine that has musl too for one that
    has nothing else."""
    jar = next(Path(pyspark.__file__).parent.glob("jars/snappy-java-*.jar"))
    member = "org/xerial/snappy/native/Linux/x86_64/libsnappyjava.so"
    (folder / "libsnappyjava.so").write_bytes(zipfile.ZipFile(jar).read(member))
    return f"-Dorg.xerial.snappy.lib.path={folder} -Dorg.xerial.snappy.lib.name=libsnappyjava.so"


def main(kwab: str, folder: str) -> None:
    options = snappy(Path(folder).resolve())
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"--driver-java-options {shlex.quote(options)} pyspark-shell"
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        # A signature of digits only is a text too.
        .config("spark.sql.sources.partitionColumnTypeInference.enabled", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    spark.read.parquet(f"{folder}/by-signature").createOrReplaceTempView("catalogue")
    table = spark.sql(QUERY)
    table.show(3)
    listed = subprocess.run([kwab, "list", "fleet", "--json"], capture_output=True, text=True, cwd=folder, check=False)
    dumps = [dump for group in json.loads(listed.stdout)["groups"] for dump in group["dumps"]]
    wanted: dict[str, int] = {}
    for dump in dumps:
        if dump["kind"] not in ("recording", "lost", "unreadable"):
            wanted[dump["signature"]] = wanted.get(dump["signature"], 0) + 1
    found = {row["signature"]: row["dumps"] for row in table.collect()}
    assert found == wanted, (found, wanted)
    names = {field.name: field.dataType.simpleString() for field in spark.table("catalogue").schema.fields}
    assert names["signature"] == "string" and names["bytes"] == "decimal(20,0)", names
    clocks = [row["mono_ns"] for row in spark.sql("SELECT mono_ns FROM catalogue ORDER BY file").collect()]
    known = sorted(dumps, key=lambda dump: dump["file"])
    assert [None if one is None else int(one) for one in clocks] == [dump["mono_ns"] for dump in known]
    print(f"Spark {spark.version}: {len(found)} signatures, {len(dumps)} dumps as kwab says")
    spark.stop()


main(*sys.argv[1:])
