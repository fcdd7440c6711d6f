# SPDX-License-Identifier: Apache-2.0
"""The fit of eldr-calibrate written with numpy and scipy, as a reader of the method would write it.

Independent of the C++ code: numpy's matrix products, scipy.stats.rankdata for average ranks, scipy.optimize.linear_sum_assignment for
the balanced assignment. k-means starts from the seeds that it is given, so that only its work is compared, not its luck.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from safetensors import safe_open
from scipy.optimize import linear_sum_assignment
from scipy.stats import rankdata


@dataclass
class Fit:
    layers: list[int] = field(default_factory=list)
    rho: float = 0.0
    rho_all_layers: float = 0.0
    held_out_rho: float = 0.0
    objective: float = 0.0
    seconds: dict[str, float] = field(default_factory=dict)


class Stopwatch:
    def __init__(self, seconds: dict[str, float], stage: str) -> None:
        self.seconds, self.stage = seconds, stage

    def __enter__(self) -> None:
        self.start = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self.seconds[self.stage] = time.perf_counter() - self.start


def idf(prefill: np.ndarray) -> np.ndarray:
    return np.log((len(prefill) + 1) / ((prefill > 0).sum(axis=0) + 1))


def unit_ranks(gram: np.ndarray) -> np.ndarray:
    """Average ranks of the cosines of all pairs, centred and of length 1: a product of two of these is Spearman's rho."""
    lengths = np.sqrt(np.diag(gram))
    cosines = gram / np.where(lengths > 0, lengths, 1)[:, None] / np.where(lengths > 0, lengths, 1)[None, :]
    # Cosines that are equal on paper must tie: nine decimals, as the C++ code's grid of 2^-31.
    ranks = rankdata(np.round(cosines[np.triu_indices(len(gram), 1)], 9))
    ranks -= ranks.mean()
    length = np.linalg.norm(ranks)
    return ranks / length if length > 0 else ranks


def layer_grams(features: np.ndarray) -> np.ndarray:
    wide = np.ascontiguousarray(features.transpose(1, 0, 2), dtype=np.float64)
    return wide @ wide.transpose(0, 2, 1)


def greedy(prefill: np.ndarray, decode: np.ndarray) -> tuple[list[int], list[float]]:
    target = unit_ranks(layer_grams(decode).sum(axis=0))
    grams = layer_grams(prefill)
    total = np.zeros_like(grams[0])
    order: list[int] = []
    rhos: list[float] = []
    left = list(range(len(grams)))
    while left:
        scores = [float(unit_ranks(total + grams[layer]) @ target) for layer in left]
        best = int(np.argmax(scores))
        rhos.append(scores[best])
        order.append(left.pop(best))
        total += grams[order[-1]]
    return order, rhos


def held_out(prefill: np.ndarray, decode: np.ndarray, rng: np.random.Generator) -> float:
    """Layers chosen on one half and judged on the other, both ways."""
    shuffled = rng.permutation(len(prefill))
    halves = np.array_split(shuffled, 2)
    found = []
    for train, test in (halves, halves[::-1]):
        weights = idf(prefill[train])
        order, rhos = greedy(prefill[train] * weights, decode[train])
        kept = order[: int(np.argmax(rhos)) + 1]
        signature_gram = layer_grams(prefill[test][:, kept] * weights[kept]).sum(axis=0)
        found.append(float(unit_ranks(signature_gram) @ unit_ranks(layer_grams(decode[test]).sum(axis=0))))
    return float(np.mean(found))


def seeds_of(similarity: np.ndarray, clusters: int, rng: np.random.Generator) -> np.ndarray:
    """k-means++."""
    seeds = [int(rng.integers(len(similarity)))]
    for _ in range(1, clusters):
        distance = np.maximum(0, 1 - similarity[seeds].max(axis=0))
        distance[seeds] = 0
        seeds.append(int(rng.choice(len(similarity), p=distance / distance.sum())))
    return np.array(seeds)


def balanced_kmeans(signatures: np.ndarray, clusters: int, restarts: int, rng: np.random.Generator) -> float:
    requests = len(signatures)
    capacity = -(-requests // clusters)
    similarity = signatures @ signatures.T
    best = np.inf
    for _ in range(restarts):
        centroids = signatures[seeds_of(similarity, clusters, rng)]
        last = np.inf
        for _ in range(100):
            distance = 1 - signatures @ centroids.T
            _, column = linear_sum_assignment(np.repeat(distance, capacity, axis=1))
            assignment = column // capacity
            sums = np.zeros_like(centroids)
            np.add.at(sums, assignment, signatures)
            lengths = np.linalg.norm(sums, axis=1, keepdims=True)
            centroids = np.where(lengths > 0, sums / np.maximum(lengths, 1e-300), centroids)
            objective = float((1 - (signatures * centroids[assignment]).sum(axis=1)).sum())
            if objective >= last - 1e-10:
                break
            last = objective
        best = min(best, last)
    return best


def fit(path: Path, clusters: int, restarts: int = 8, seed: int = 0, measure_held_out: bool = True) -> Fit:
    result = Fit()
    rng = np.random.default_rng(seed)
    with safe_open(path, "np") as file:
        layer_numbers = json.loads(file.metadata()["layers"])
        prefill = file.get_tensor("prefill_counts").astype(np.float64)
        decode = file.get_tensor("decode_counts").astype(np.float64)
    if measure_held_out:
        with Stopwatch(result.seconds, "held-out"):
            result.held_out_rho = held_out(prefill, decode, rng)
    with Stopwatch(result.seconds, "layer selection"):
        weighted = prefill * idf(prefill)
        order, rhos = greedy(weighted, decode)
    keep = int(np.argmax(rhos)) + 1
    result.layers = [layer_numbers[layer] for layer in order[:keep]]
    result.rho, result.rho_all_layers = rhos[keep - 1], rhos[-1]
    with Stopwatch(result.seconds, "clustering"):
        signatures = weighted[:, order[:keep]].reshape(len(weighted), -1)
        lengths = np.linalg.norm(signatures, axis=1, keepdims=True)
        signatures = signatures / np.where(lengths > 0, lengths, 1)
        result.objective = balanced_kmeans(signatures, clusters, restarts, rng)
    return result
