"""The package as a whole: its types are right, its documentation is there, and the guide prints what it shows."""

import contextlib
import inspect
import io
import re
import subprocess
import sys
from pathlib import Path

import kwab
import pytest
from conftest import ROOT

#: The interpreter finds fields by `__getattr__` without showing it among the attributes of the class.
ALLOWED = Path(__file__).with_name("stubtest-allowed.txt")
GUIDE = ROOT / "docs/python.md"


def test_the_stubs_describe_the_module(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "mypy.stubtest", "kwab", "--ignore-disjoint-bases", "--allowlist", str(ALLOWED)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_tests_are_typed_strictly(tmp_path: Path) -> None:
    files = sorted(str(path) for path in Path(__file__).parent.glob("*.py"))
    words = [sys.executable, "-m", "mypy", "--strict", "--ignore-missing-imports", *files]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_everything_public_is_documented() -> None:
    bare = []
    for name in kwab.__all__:
        thing = getattr(kwab, name)
        members = [thing]
        if inspect.isclass(thing) and not issubclass(thing, Exception):
            members += [member for key, member in vars(thing).items() if not key.startswith("_")]
        bare += [f"{name}: {member}" for member in members if not inspect.getdoc(member)]
    assert bare == []


def blocks() -> list[tuple[str, str]]:
    """Each example of the guide with the output shown below it."""
    found = re.findall(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```)?", GUIDE.read_text(), re.DOTALL)
    assert len(found) >= 6
    return found


def test_the_guide_prints_what_it_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    names: dict[str, object] = {}
    for code, shown in blocks():
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(code, str(GUIDE), "exec"), names)
        assert out.getvalue() == shown, code
