"""Time, memory and needs of each lesson: a minute, 400 MB, no network, and Run All works again."""

import json
import os
import subprocess
import sys
import time

import nbformat

from tests.notebooks.lessons import ROOT, code_cells, each_lesson

LONGEST_S = 60
MOST_MB = 400

# Runs all code cells as a kernel does, without network, and prints the process's peak in MB.
RUN = """
import json, resource, socket, sys
import ipykernel.ipkernel
from IPython.core.interactiveshell import InteractiveShell

def refuse(*args, **options):
    raise OSError("a lesson needs no network")

socket.socket.connect = socket.create_connection = refuse
shell = InteractiveShell.instance()
for source in json.load(sys.stdin):
    shell.run_cell(source, store_history=False).raise_error()
if sys.platform == "linux":  # ru_maxrss counts the process that started this one, too
    lines = open("/proc/self/status").read().splitlines()
    kilobytes = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
else:
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 2**10
print("PEAK", kilobytes // 2**10)
"""


def run_all(path, folder, times=1):
    """Run a lesson's cells in a fresh process; the seconds it took and its peak memory in MB."""
    sources = [cell.source for cell in code_cells(nbformat.read(path, as_version=4))] * times
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "IPYTHONDIR": str(folder / "ipython")}
    start = time.monotonic()
    run = subprocess.run(
        [sys.executable, "-c", RUN],
        input=json.dumps(sources),
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-2000:] + run.stderr[-2000:]
    return time.monotonic() - start, int(run.stdout.rpartition("PEAK ")[2])


@each_lesson
def test_a_lesson_stays_within_a_minute_and_400_mb_without_network(path, tmp_path):
    seconds, megabytes = run_all(path, tmp_path)
    assert seconds < LONGEST_S
    assert 50 < megabytes < MOST_MB


@each_lesson
def test_running_all_cells_a_second_time_works(path, tmp_path):
    run_all(path, tmp_path, times=2)


@each_lesson
def test_a_lesson_writes_nothing_but_its_progress(path, tmp_path):
    run_all(path, tmp_path)
    left = {file.name for file in tmp_path.iterdir()} - {"ipython"}
    assert left <= {"autograd_lab_progress.json"}
