"""``make serve-demo``: the server starts on the demo's table, and what it prints works."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import dither as dp

SCRIPT = Path(__file__).parents[1] / "scripts" / "serve_demo.py"


@pytest.mark.slow
def test_the_demo_is_served(tmp_path):
    command = [sys.executable, str(SCRIPT), "--folder", str(tmp_path / "demo"), "--port", "0", "--rows", "5000"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        printed = ""
        while "Ctrl-C" not in printed:
            line = process.stdout.readline()
            assert line, printed
            printed += line
        url = re.search(r"http://127\.0\.0\.1:\d+/", printed)[0]
        token = re.search(r"DITHER_TOKEN=(\S+)", printed)[1]
        for name, role in {
            "sam": "steward",
            "sue": "steward",
            "ann": "analyst",
            "aud": "auditor",
            "rea": "reader",
        }.items():
            assert re.search(rf"^  {name}   [0-9a-f-]{{14}}   {role}", printed, re.MULTILINE)
        with dp.connect(url, token=token) as table:
            answer = table.group_by("region").agg(n=dp.count()).release(epsilon=1)
            assert len(answer) == 8
            assert table.left == dp.ApproxDP(19, 1e-6)
    finally:
        process.send_signal(signal.SIGTERM)
        process.stdout.close()
        assert process.wait(600) in (0, -signal.SIGTERM)


@pytest.mark.slow
def test_a_folder_with_other_things_is_left_alone(tmp_path):
    (tmp_path / "visits.toml").write_text("precious", encoding="utf-8")
    command = [sys.executable, str(SCRIPT), "--folder", str(tmp_path), "--port", "0"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert "--folder" in result.stderr
    assert (tmp_path / "visits.toml").read_text(encoding="utf-8") == "precious"
