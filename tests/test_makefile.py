"""The Makefile: data are looked for beside the repository only where there are any."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

MAKEFILE = Path(__file__).parents[1] / "Makefile"


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
def test_the_folder_of_data_is_the_one_that_is_there(tmp_path: Path) -> None:
    here = tmp_path / "clone"
    here.mkdir()
    shutil.copy(MAKEFILE, here)
    (here / "more.mk").write_text("include Makefile\nshown:\n\t@echo $${DOXA_DATA-unset}\n")

    def shown(**more: str) -> str:
        clean_environment = {k: v for k, v in os.environ.items() if k != "DOXA_DATA" and not k.startswith("MAKE")}
        command = ["make", "-s", "-f", "more.mk", "shown"]
        return subprocess.run(
            command, cwd=here, env={**clean_environment, **more}, capture_output=True, text=True
        ).stdout.strip()

    assert shown() == "unset"
    assert shown(DOXA_DATA="/mine") == "/mine"
    (tmp_path / "shared" / "data").mkdir(parents=True)
    assert shown() == "../shared/data"
    assert shown(DOXA_DATA="/mine") == "/mine"
