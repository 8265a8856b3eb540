"""What the tests share: the checked-in dumps and logs, and the command line to compare with."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
DUMPS = sorted((ROOT / "testing/dumps").glob("*.kwab"))
LOGS = sorted((ROOT / "testing/data/logs").glob("*.log"))


@pytest.fixture(scope="session")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Runs `kwab` where no build tree is found, and reads what it prints as JSON."""
    program = os.environ["KWAB_PROGRAM"]
    folder = tmp_path_factory.mktemp("elsewhere")
    environment = {name: value for name, value in os.environ.items() if name != "CARGO_TARGET_DIR"}

    def run(*arguments: object) -> Any:
        words = [program, *map(str, arguments)]
        done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, timeout=120, check=False)
        assert done.returncode in (0, 1, 3), (words, done.returncode, done.stderr)
        return json.loads(done.stdout)

    return run
