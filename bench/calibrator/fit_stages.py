#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times a fit of eldr-calibrate stage by stage and against the same fit in numpy and scipy, on one machine in one run.

    bench/calibrator/fit_stages.py                                  1000 requests, 48 layers x 128 experts, 16 clusters
    bench/calibrator/fit_stages.py --requests 4000 --no-numpy       larger, without the slow half
    bench/calibrator/fit_stages.py --trace trace.safetensors        a recorded trace

Prints each stage's seconds and share, the largest memory use, and the ratio to numpy. Both must choose the same layers and the same rho:
it ends with 1 when they do not. Needs `make build`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(Path(__file__).resolve().parent))
import project_python  # noqa: E402


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trace", type=Path, help="a trace file instead of a generated one")
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--layers", type=int, default=48)
    parser.add_argument("--experts", type=int, default=128)
    parser.add_argument("--clusters", type=int, default=16)
    parser.add_argument("--max-layers", type=int, default=0, help="0: as many as help")
    parser.add_argument("--threads", type=int, default=0, help="0: all CPUs")
    parser.add_argument("--backend", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--no-numpy", action="store_true", help="time eldr-calibrate alone")
    parser.add_argument("--bin", type=Path, default=ROOT / "build/bin", help="folder of eldr-calibrate")
    return parser.parse_args()


def run_eldr(arguments: argparse.Namespace, trace: Path, out: Path) -> tuple[dict, float, int]:
    """The report of a fit, its wall time and its largest resident set in KiB."""
    command = [arguments.bin / "eldr-calibrate", "fit", "--trace", trace, "--out", out, "--json"]
    command += [
        "--clusters",
        arguments.clusters,
        "--threads",
        arguments.threads,
        "--backend",
        arguments.backend,
    ]
    command += ["--max-layers", arguments.max_layers, "--log-level", "error"]
    read, write = os.pipe()
    timed = "import os,resource,subprocess,sys,time\nt=time.perf_counter()\ncode=subprocess.run(sys.argv[2:]).returncode\n"
    timed += "peak=resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss\n"
    timed += "os.write(int(sys.argv[1]),f'{time.perf_counter()-t} {peak}'.encode())\nsys.exit(code)"
    wrapped = [sys.executable, "-c", timed, str(write), *map(str, command)]
    done = subprocess.run(wrapped, stdout=subprocess.PIPE, pass_fds=[write], check=False)
    os.close(write)
    if done.returncode:
        sys.exit(f"fit_stages: eldr-calibrate ended with {done.returncode}")
    wall, peak = os.read(read, 100).decode().split()
    return json.loads(done.stdout), float(wall), int(peak)


# In the order in which they run; JSON objects have none.
STAGES = [
    "held-out",
    "layer similarities",
    "layer selection",
    "request similarities",
    "clustering",
    "placement",
]


def print_stages(title: str, seconds: dict[str, float], wall: float) -> None:
    print(f"\n{title}: {wall:.2f} s")
    for stage, spent in sorted(seconds.items(), key=lambda item: STAGES.index(item[0])):
        print(f"  {stage:<22} {spent:8.2f} s  {100 * spent / wall:5.1f} %")
    rest = wall - sum(seconds.values())
    print(f"  {'reading, writing, rest':<22} {rest:8.2f} s  {100 * rest / wall:5.1f} %")


def compare(report: dict, wall: float, trace: Path, clusters: int) -> bool:
    from numpy_fit import fit

    print("\nthe same in numpy and scipy (some minutes at 1000 requests) …", flush=True)
    other = fit(trace, clusters)
    other_wall = sum(other.seconds.values())
    print_stages("numpy and scipy", other.seconds, other_wall)
    print(f"\nratio numpy / eldr-calibrate: {other_wall / wall:.1f}")
    print(f"rho                           {report['rho']:.6f} / {other.rho:.6f}")
    print(f"rho with all layers           {report['rhoAllLayers']:.6f} / {other.rho_all_layers:.6f}")
    print(
        f"held-out rho                  {report['heldOutRho']:.6f} / {other.held_out_rho:.6f} (other halves)"
    )
    mean_distance = other.objective / report["requests"]
    print(f"mean distance from centroid   {report['meanDistance']:.6f} / {mean_distance:.6f} (other starts)")
    same = report["layers"] == other.layers and abs(report["rho"] - other.rho) < 1e-5
    print("layers and rho are the same" if same else f"DIFFERENT: {report['layers']} / {other.layers}")
    return same


def main() -> int:
    arguments = parse_arguments()
    if arguments.max_layers and not arguments.no_numpy:
        sys.exit("fit_stages: --max-layers goes with --no-numpy")
    with tempfile.TemporaryDirectory(prefix="eldr-bench-") as folder:
        trace = arguments.trace
        if trace is None:
            from traces import make_trace

            trace = Path(folder) / "trace.safetensors"
            shape = f"{arguments.requests} requests, {arguments.layers} layers x {arguments.experts} experts"
            print(f"generating {shape}", flush=True)
            make_trace(trace, arguments.requests, arguments.layers, arguments.experts)
        report, wall, peak = run_eldr(arguments, trace, Path(folder) / "centroids.safetensors")
        threads = arguments.threads or "all"
        title = f"eldr-calibrate fit ({arguments.backend}, {threads} threads, {peak / 1024:.0f} MiB)"
        print_stages(title, report["seconds"], wall)
        if arguments.no_numpy:
            return 0
        return 0 if compare(report, wall, trace, arguments.clusters) else 1


if __name__ == "__main__":
    project_python.use()
    sys.exit(main())
