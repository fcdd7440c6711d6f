#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Expert-parallel placement: active experts on the fullest rank, by formula, by resampling, and against the optimum.

    bench/calibrator/placement.py [--calibrate build/bin/eldr-calibrate] [--trace TRACE]

Half of the requests of a trace are fitted with `eldr-calibrate fit --ep-ranks R --placement-out`. The other half
is held out: each goes to the cluster of its nearest centroid, as a router sends it, and decode batches are drawn
from them: B requests of the cluster, one token each, every layer on its own ranks. Printed are means over
clusters and layers for experts in their own order, balanced by tokens, and as planned:

  formula     the largest expected number of active experts on a rank, in the half that was fitted; `bound`: no
              plan is below
  resampled   the same from batches of that half. The largest of some means leans upwards, the less the more
              batches there are
  held out    the same from batches of the other half
  slowest     held out, mean of each step's fullest rank: what a step waits for

Traces: the recorded one of ELDR_REAL_DATA (or --trace), where experts are known token by token, and one made as
traces.py makes them. The last table has small layers, for which scipy's mixed-integer solver (HiGHS) finds the
optimum independently; a plan more than 1 % above it ends the program with an error.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import project_python  # noqa: E402

project_python.use()

import numpy as np  # noqa: E402
from safetensors import safe_open  # noqa: E402
from safetensors.numpy import save_file  # noqa: E402
from scipy.optimize import Bounds, LinearConstraint, milp  # noqa: E402
from traces import make_trace  # noqa: E402


class Trace:
    """A trace file, or some requests of one."""

    def __init__(self, path: Path):
        with safe_open(str(path), "np") as file:
            self.metadata = file.metadata()
            self.tensors = {name: file.get_tensor(name) for name in file.keys()}

    @property
    def requests(self) -> int:
        return len(self.tensors["prompt_tokens"])

    @property
    def experts(self) -> int:
        return int(self.metadata["experts"])

    @property
    def layers(self) -> list[int]:
        return json.loads(self.metadata["layers"])

    def write(self, path: Path, rows: np.ndarray) -> None:
        """The counts of some requests; experts token by token stay behind, a fit does not read them."""
        names = ("prefill_counts", "decode_counts", "prompt_tokens", "decode_tokens")
        metadata = dict(self.metadata)
        if "labels" in metadata:
            labels = json.loads(metadata["labels"])
            metadata["labels"] = json.dumps([labels[row] for row in rows])
        save_file({name: self.tensors[name][rows] for name in names}, str(path), metadata=metadata)

    def probabilities(self, rows: np.ndarray) -> np.ndarray:
        """[layers, experts]: of a decode token; requests weigh the same."""
        tokens = self.tensors["decode_tokens"][rows]
        rows, tokens = rows[tokens > 0], tokens[tokens > 0]
        return (self.tensors["decode_counts"][rows] / tokens[:, None, None]).mean(axis=0)

    def draw_token(self, rng: np.random.Generator, row: int) -> np.ndarray:
        """[layers, experts] of bool: one decode token, of those recorded or as the request's counts have it."""
        active = np.zeros((len(self.layers), self.experts), bool)
        if "decode_experts" in self.tensors:
            first, end = self.tensors["decode_offsets"][row : row + 2]
            experts = self.tensors["decode_experts"][rng.integers(first, end)]
            active[np.arange(len(self.layers))[:, None], experts] = True
        else:
            share = self.tensors["decode_counts"][row] / self.tensors["decode_tokens"][row]
            active = rng.random(share.shape) < share
        return active


@dataclass
class Fit:
    centroids: np.ndarray  # [K, S * E]
    idf: np.ndarray
    layers: np.ndarray
    assignment: np.ndarray
    plans: np.ndarray  # [K, L, E], rank of each expert

    def nearest(self, trace: Trace, rows: np.ndarray) -> np.ndarray:
        """Cluster of each request, as the router chooses it (transform count)."""
        at = [trace.layers.index(layer) for layer in self.layers]
        signature = (trace.tensors["prefill_counts"][rows][:, at] * self.idf).reshape(len(rows), -1)
        return (signature @ self.centroids.T).argmax(axis=1)


def fit(calibrate: str, trace: Path, clusters: int, ranks: int, batch: int) -> Fit:
    with tempfile.TemporaryDirectory() as folder:
        centroids, plan = Path(folder) / "c.safetensors", Path(folder) / "plan.json"
        command = [
            calibrate,
            "fit",
            "--trace",
            trace,
            "--out",
            centroids,
            "--clusters",
            clusters,
            "--ep-ranks",
            ranks,
        ]
        command += [
            "--ep-batch",
            batch,
            "--placement-out",
            plan,
            "--transform",
            "count",
            "--no-held-out",
            "--log-level",
            "error",
        ]
        subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL)
        with safe_open(str(centroids), "np") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}
        placement = json.loads(plan.read_text())
    rows = tensors["centroids"].astype(np.float32)
    if "centroid_scale" in tensors:
        rows *= tensors["centroid_scale"][:, None]
    slots = np.array([cluster["physicalToLogical"] for cluster in placement["clusters"]])
    plans = np.empty_like(slots)
    np.put_along_axis(
        plans, slots, np.arange(slots.shape[-1]) // placement["slotsPerRank"] + 0 * slots, axis=-1
    )
    return Fit(rows, tensors["idf"], tensors["layers"], tensors["assignment"], plans)


def greedy(weights: np.ndarray, ranks: int) -> np.ndarray:
    """Rank of each expert: the heaviest first, each to the lightest rank with a free slot."""
    plan, sums, free = np.empty(len(weights), int), np.zeros(ranks), np.full(ranks, len(weights) // ranks)
    for expert in np.argsort(-weights, kind="stable"):
        rank = np.where(free > 0, sums, np.inf).argmin()
        plan[expert], sums[rank], free[rank] = rank, sums[rank] + weights[expert], free[rank] - 1
    return plan


def fullest(active: np.ndarray, plans: np.ndarray, ranks: int) -> np.ndarray:
    """[..., layers] of the largest sum on a rank, of [..., layers, experts] placed by [layers, experts]."""
    return on_ranks(active, plans, ranks).max(axis=-1)


def on_ranks(active: np.ndarray, plans: np.ndarray, ranks: int) -> np.ndarray:
    members = plans[:, :, None] == np.arange(ranks)
    return np.einsum("...le,ler->...lr", active.astype(float), members)


def bound(activity: np.ndarray, ranks: int) -> float:
    """No plan of one layer is below: an even share, and pigeonholes for the k * ranks + 1 most active."""
    order = np.sort(activity)[::-1]
    slots = len(order) // ranks
    return max(
        [order.sum() / ranks]
        + [
            order[k * (ranks - 1) : k * ranks + 1].sum() + order[len(order) - (slots - k - 1) :].sum()
            for k in range(slots)
        ]
    )


def compare(
    title: str, calibrate: str, path: Path, clusters: int, ranks: int, batch: int, batches: int, seed: int = 0
) -> None:
    trace = Trace(path)
    rng = np.random.default_rng(seed)
    order = rng.permutation(np.flatnonzero(trace.tensors["decode_tokens"] > 0))
    fitted, held_out = np.sort(order[: len(order) // 2]), np.sort(order[len(order) // 2 :])
    with tempfile.TemporaryDirectory() as folder:
        half = Path(folder) / "half.safetensors"
        trace.write(half, fitted)
        result = fit(calibrate, half, clusters, ranks, batch)
    nearest = result.nearest(trace, held_out)
    names = ("own order", "by tokens", "planned")
    table = {name: [[] for _ in range(4)] for name in names}
    bounds = []
    for cluster in range(clusters):
        own = fitted[result.assignment == cluster]
        probability = trace.probabilities(own)
        activity = 1 - (1 - probability) ** batch
        bounds.append(np.mean([bound(layer, ranks) for layer in activity]))
        plans = {
            "own order": np.broadcast_to(np.arange(trace.experts) * ranks // trace.experts, activity.shape),
            "by tokens": np.array([greedy(layer, ranks) for layer in probability]),
            "planned": result.plans[cluster],
        }
        drawn = [sample(trace, rng, rows, batch, batches) for rows in (own, held_out[nearest == cluster])]
        for name, plan in plans.items():
            columns = table[name]
            columns[0].append(fullest(activity, plan, ranks).mean())
            columns[1].append(on_ranks(drawn[0].mean(axis=0), plan, ranks).max(axis=-1).mean())
            if drawn[1] is not None:
                columns[2].append(on_ranks(drawn[1].mean(axis=0), plan, ranks).max(axis=-1).mean())
                columns[3].append(fullest(drawn[1], plan, ranks).mean())
    print(
        f"\n{title}: {clusters} clusters, {ranks} ranks of {trace.experts // ranks} experts, {batch} tokens a step"
    )
    print(
        f"  {'active experts on the fullest rank':36}{'formula':>10}{'resampled':>11}{'held out':>10}{'slowest':>10}"
    )
    for name in names:
        values = [np.mean(column) for column in table[name]]
        print(
            f"  {name:36}" + "".join(f"{value:{width}.3f}" for value, width in zip(values, (10, 11, 10, 10)))
        )
    print(f"  {'bound':36}{np.mean(bounds):10.3f}")


def sample(
    trace: Trace, rng: np.random.Generator, rows: np.ndarray, batch: int, batches: int
) -> np.ndarray | None:
    """[batches, layers, experts] of bool: active in steps of `batch` requests that give one token each."""
    if len(rows) == 0:
        return None
    steps = np.zeros((batches, len(trace.layers), trace.experts), bool)
    for step in steps:
        for row in rng.choice(rows, batch):
            step |= trace.draw_token(rng, row)
    return steps


def optimum(activity: np.ndarray, ranks: int) -> float:
    """Smallest largest sum of a rank. Variables of the program: expert e on rank r; the largest sum."""
    experts = len(activity)
    cells = experts * ranks
    cost = np.append(np.zeros(cells), 1.0)
    rows, low, high = [], [], []
    for expert in range(experts):
        row = np.zeros(cells + 1)
        row[expert * ranks : (expert + 1) * ranks] = 1
        rows, low, high = [*rows, row], [*low, 1], [*high, 1]
    for rank in range(ranks):
        slots, load = np.zeros(cells + 1), np.zeros(cells + 1)
        slots[rank:cells:ranks] = 1
        load[rank:cells:ranks], load[-1] = activity, -1
        rows, low, high = (
            [*rows, slots, load],
            [*low, experts // ranks, -np.inf],
            [*high, experts // ranks, 0],
        )
    result = milp(
        cost,
        integrality=np.append(np.ones(cells), 0),
        bounds=Bounds(np.zeros(cells + 1), np.append(np.ones(cells), np.inf)),
        constraints=LinearConstraint(np.array(rows), np.array(low, float), np.array(high, float)),
        options={"mip_rel_gap": 1e-6, "time_limit": 60},
    )
    return result.fun if result.status == 0 else np.nan


def against_the_optimum(calibrate: str, experts: int, ranks: int, batch: int) -> None:
    """Every cluster and layer of a generated trace."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.safetensors"
        make_trace(path, requests=120, layers=6, experts=experts, top_k=2, domains=4, seed=experts + ranks)
        result = fit(calibrate, path, 4, ranks, batch)
        trace = Trace(path)
    gaps = {"own order": [], "by tokens": [], "planned": []}
    for cluster in range(4):
        probability = trace.probabilities(np.flatnonzero(result.assignment == cluster))
        activity = 1 - (1 - probability) ** batch
        for layer in range(len(activity)):
            best = optimum(activity[layer], ranks)
            plans = {
                "own order": np.arange(experts) * ranks // experts,
                "by tokens": greedy(probability[layer], ranks),
                "planned": result.plans[cluster, layer],
            }
            for name, plan in plans.items():
                gaps[name].append(fullest(activity[layer][None], plan[None], ranks)[0] / best - 1)
    cells = [f"{100 * np.nanmean(gap):9.3f} %{100 * np.nanmax(gap):9.3f} %" for gap in gaps.values()]
    solved = np.isfinite(gaps["planned"]).sum()
    print(f"  {experts:3} experts, {ranks} ranks, {solved} layers solved " + " ".join(cells))
    if np.nanmax(gaps["planned"]) > 0.01:
        sys.exit("placement: a plan is more than 1 % above the optimum")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--calibrate", default="build/bin/eldr-calibrate")
    parser.add_argument(
        "--trace", type=Path, help="default: the recorded one of ELDR_REAL_DATA, where it is set"
    )
    parser.add_argument("--clusters", type=int, default=4)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--batches", type=int, default=400, help="batches drawn for each cluster")
    arguments = parser.parse_args()
    recorded = arguments.trace
    if recorded is None and os.environ.get("ELDR_REAL_DATA"):
        recorded = Path(os.environ["ELDR_REAL_DATA"]) / "esft-dsv2lite" / "esft.safetensors"
    size = (arguments.clusters, arguments.ranks)
    if recorded:
        for batch in (8, 32):
            compare(
                f"recorded, {recorded.name}", arguments.calibrate, recorded, *size, batch, arguments.batches
            )
    else:
        print("no recorded trace: set ELDR_REAL_DATA or give --trace")
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "made.safetensors"
        make_trace(made, requests=240, layers=12, experts=128, domains=4, seed=3)
        for batch in (8, 32):
            compare("generated", arguments.calibrate, made, *size, batch, arguments.batches)
    print("\nabove the optimum (mean and worst)          own order             by tokens             planned")
    for experts, ranks in ((8, 2), (8, 4), (12, 3), (12, 4), (16, 2), (16, 4)):
        against_the_optimum(arguments.calibrate, experts, ranks, batch=8)


if __name__ == "__main__":
    main()
