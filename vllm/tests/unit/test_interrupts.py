# SPDX-License-Identifier: Apache-2.0
"""Nothing that the tests start outlives them: on Ctrl-C, on SIGTERM, and when they die without a word."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
SERVING = """
import sys, time
from pathlib import Path
from serving import Server, end_with_cleanup_on_sigterm
end_with_cleanup_on_sigterm()
server = Server(sys.argv[1], "model", Path(sys.argv[2]))
try:
    print("started", flush=True)
    time.sleep(60)
finally:
    server.stop()
"""
# `vllm serve` has children too; this one passes SIGTERM on to it as vLLM does.
VLLM = """#!/usr/bin/env bash
sleep 61 &
trap 'kill $!; exit 0' TERM
wait
"""
FORWARDING = """
. "$1/forwarding.sh"
deep() { echo started; sleep 62 | cat; }
forwarding deep
echo "not reached"
"""


def marked(mark: str) -> list[int]:
    """The processes that have `mark` in their environment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            environment = (folder / "environ").read_bytes()
        except OSError:
            continue
        if mark.encode() in environment:
            found.append(int(folder.name))
    return found


def start(command: list[str]) -> tuple[subprocess.Popen[str], str]:
    mark = f"ELDR_TEST_MARK={uuid.uuid4()}"
    name, value = mark.split("=")
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, name: value, "PYTHONPATH": str(TESTS)},
        start_new_session=True,
        # A shell starts what it puts into the background with SIGINT ignored, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    while len(marked(mark)) < 3:  # itself, what it started, and a child of that
        time.sleep(0.05)
    return process, mark


def assert_all_end(process: subprocess.Popen[str], mark: str) -> str:
    rest, _ = process.communicate(timeout=20)
    end = time.monotonic() + 10
    while marked(mark) and time.monotonic() < end:
        time.sleep(0.05)
    left = marked(mark)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert not left
    return rest


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_servers_end_with_the_process_that_started_them(sent: signal.Signals, tmp_path: Path) -> None:
    program = tmp_path / "vllm"
    program.write_text(VLLM)
    program.chmod(0o755)
    script = tmp_path / "script.py"
    script.write_text(SERVING)
    process, mark = start([sys.executable, str(script), str(tmp_path / "python"), str(tmp_path / "log")])
    process.send_signal(sent)
    assert_all_end(process, mark)
    assert process.returncode != 0


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_scripts_hand_signals_on(sent: signal.Signals, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text(FORWARDING)
    process, mark = start(["bash", str(script), str(TESTS)])
    process.send_signal(sent)
    assert assert_all_end(process, mark) == ""
    assert process.returncode == 143


def test_scripts_hand_exit_codes_on(tmp_path: Path) -> None:
    script = f'. "{TESTS}/forwarding.sh"; forwarding false || echo "code $?"; forwarding true && echo fine'
    ran = subprocess.run(["bash", "-euc", script], capture_output=True, text=True, check=True, timeout=20)
    assert ran.stdout == "code 1\nfine\n"
