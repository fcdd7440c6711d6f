#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files of lib/signature against Python's safetensors, numpy and scipy, in both directions.

Usage: interop_test.py SIGNATURE_TOOL
Exits 77 (skipped) without numpy, scipy and safetensors. ELDR_REAL_DATA adds the recorded trace.
"""

import json
import os
import subprocess
import sys
import tempfile
import traceback

try:
    import numpy as np
    from safetensors import safe_open
    from safetensors.numpy import load_file, save_file
    from scipy.optimize import linear_sum_assignment
except ImportError as missing:
    print(f"SKIPPED: {missing}; scripts/setup makes an environment that has it")
    print("0 passed, 0 failed, 1 skipped")
    sys.exit(77)

TOOL = ""
DIRECTORY = ""


class Skip(Exception):
    """Raised by a test that cannot run here."""


def tool(*arguments):
    """Runs the tool; its JSON, or None where it prints nothing."""
    done = subprocess.run(
        [TOOL, *map(str, arguments)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, f"signature_tool {arguments}: exit {done.returncode}: {done.stderr}"
    return json.loads(done.stdout) if done.stdout else None


def refusal(*arguments):
    """Runs the tool on input that it must refuse; its message."""
    done = subprocess.run(
        [TOOL, *map(str, arguments)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 65, f"signature_tool {arguments}: exit {done.returncode}, not 65: {done.stderr}"
    return done.stderr


def path(name):
    return os.path.join(DIRECTORY, name)


def metadata_of(file):
    with safe_open(file, framework="np") as opened:
        return opened.metadata()


def unit_rows(matrix):
    return matrix / np.linalg.norm(matrix, axis=1, keepdims=True)


def random_trace(seed, requests=30, layers=4, experts=32, top_k=3):
    """Tensors and metadata of a trace whose numbers agree with each other."""
    random = np.random.default_rng(seed)
    prompt = random.integers(3, 50, requests).astype(np.uint32)
    decode = random.integers(0, 12, requests).astype(np.uint32)
    offsets = np.concatenate([[0], np.cumsum(decode)]).astype(np.uint64)

    def picks(tokens):
        ranked = np.argsort(random.random((tokens, layers, experts)) * random.random(experts), axis=2)
        return ranked[:, :, :top_k]

    def counts(chosen):
        out = np.zeros((layers, experts), np.uint32)
        for layer in range(layers):
            out[layer] = np.bincount(chosen[:, layer].ravel(), minlength=experts)
        return out

    tokens = picks(int(offsets[-1]))
    tensors = {
        "prefill_counts": np.stack([counts(picks(int(n))) for n in prompt]),
        "decode_counts": np.stack([counts(tokens[int(a) : int(b)]) for a, b in zip(offsets, offsets[1:])]),
        "prompt_tokens": prompt,
        "decode_tokens": decode,
        "decode_experts": np.ascontiguousarray(tokens.astype(np.uint8)),
        "decode_offsets": offsets,
    }
    metadata = {
        "format": "eldr-trace/1",
        "model": "py/modèle",
        "layers": json.dumps([2, 3, 5, 8]),
        "experts": str(experts),
        "top_k": str(top_k),
        "labels": json.dumps([f"t{i % 3}é" for i in range(requests)]),
    }
    return tensors, metadata


def centroid_tensors(seed, dtype, clusters=5, layers=3, experts=32, requests=17):
    """Tensors and metadata of a centroid file, and the rows before they were narrowed."""
    random = np.random.default_rng(seed)
    rows = unit_rows(random.random((clusters, layers * experts)) ** 3).astype(np.float32)
    tensors = {
        "layers": np.array([8, 2, 3], np.int32),
        "idf": random.random((layers, experts)).astype(np.float32),
        "assignment": random.integers(0, clusters, requests).astype(np.uint32),
        "placement": random.integers(0, 4, (clusters, layers, experts)).astype(np.int16),
    }
    if dtype == "I8":
        scale = np.abs(rows).max(axis=1) / 127
        tensors["centroids"] = np.round(rows / scale[:, None]).astype(np.int8)
        tensors["centroid_scale"] = scale.astype(np.float32)
    else:
        tensors["centroids"] = rows.astype(np.float16 if dtype == "F16" else np.float32)
    metadata = {
        "format": "eldr-centroids/1",
        "model": "py/model",
        "experts": str(experts),
        "top_k": "3",
        "transform": "count-idf",
        "spread": repr(1 / 3),
        "rho": repr(0.1 + 0.2),
        "rho_all_layers": "-1e-05",
        "clusters": str(clusters),
        "requests": str(requests),
        "tau": "0.1",
        "fit_hash": "",
        "seed": "18446744073709551615",
        "best_similarity_p01": repr(2 / 3),
        "note": "kept",
    }
    return tensors, metadata, rows


def test_python_reads_a_trace_of_cpp():
    tool("sample-trace", path("t"), 7)
    dump = tool("dump-trace", path("t"))
    tensors, metadata = load_file(path("t")), metadata_of(path("t"))
    n, layers, experts, top_k = (
        len(dump["prompt_tokens"]),
        len(dump["layers"]),
        dump["experts"],
        dump["top_k"],
    )
    shapes = {
        "prefill_counts": (n, layers, experts),
        "decode_counts": (n, layers, experts),
        "prompt_tokens": (n,),
        "decode_tokens": (n,),
        "decode_experts": (dump["decode_offsets"][-1], layers, top_k),
        "decode_offsets": (n + 1,),
    }
    assert set(tensors) == set(shapes), set(tensors)
    for name, shape in shapes.items():
        assert tensors[name].shape == shape, (name, tensors[name].shape)
        assert tensors[name].ravel().tolist() == dump[name], name
    assert tensors["prefill_counts"].dtype == np.uint32 and tensors["decode_experts"].dtype == np.uint8
    assert metadata == {
        "format": "eldr-trace/1",
        "model": dump["model"],
        "layers": metadata["layers"],
        "experts": str(experts),
        "top_k": str(top_k),
        "labels": metadata["labels"],
    }
    assert (
        json.loads(metadata["layers"]) == dump["layers"] and json.loads(metadata["labels"]) == dump["labels"]
    )


def test_cpp_reads_a_trace_of_python():
    for seed in range(5):
        tensors, metadata = random_trace(seed)
        if seed == 1:  # both optional tensors and the labels away
            del tensors["decode_experts"], tensors["decode_offsets"], metadata["labels"]
        if seed == 2:
            tensors["decode_experts"] = tensors["decode_experts"].astype(np.uint16)
        save_file(tensors, path("t"), metadata=metadata)
        dump = tool("dump-trace", path("t"))
        for name, tensor in tensors.items():
            assert dump[name] == tensor.ravel().tolist(), (seed, name)
        assert dump["model"] == metadata["model"] and dump["layers"] == [2, 3, 5, 8]
        assert dump["labels"] == json.loads(metadata.get("labels", "[]"))


def test_cpp_refuses_a_trace_of_python_that_is_wrong():
    tensors, metadata = random_trace(1)
    save_file(
        {**tensors, "prompt_tokens": tensors["prompt_tokens"].astype(np.int64)}, path("t"), metadata=metadata
    )
    assert "prompt_tokens" in refusal("dump-trace", path("t"))
    save_file({**tensors, "prefill_counts": tensors["prefill_counts"] * 1000}, path("t"), metadata=metadata)
    assert "prefill_counts" in refusal("dump-trace", path("t"))
    save_file(tensors, path("t"))
    assert "format" in refusal("dump-trace", path("t"))


def test_python_reads_centroids_of_cpp():
    for dtype, name in (("I8", "int8"), ("F16", "float16"), ("F32", "float32")):
        for placed in ("placed", "plain"):
            tool("sample-centroids", path("c"), dtype, 3, placed)
            dump = tool("dump-centroids", path("c"))
            tensors, metadata = load_file(path("c")), metadata_of(path("c"))
            assert tensors["centroids"].dtype == name
            rows = tensors["centroids"].astype(np.float64)
            if dtype == "I8":
                rows *= tensors["centroid_scale"].astype(np.float64)[:, None]
            assert np.abs(unit_rows(rows) - np.array(dump["centroids"])).max() < 1e-6
            assert tensors["idf"].tolist() == np.array(dump["idf"], np.float32).tolist()
            assert tensors["layers"].dtype == np.int32 and tensors["layers"].tolist() == dump["layers"]
            assert (
                tensors["assignment"].dtype == np.uint32
                and tensors["assignment"].tolist() == dump["assignment"]
            )
            assert ("placement" in tensors) == (placed == "placed")
            if placed == "placed":
                assert (
                    tensors["placement"].dtype == np.int16
                    and tensors["placement"].ravel().tolist() == dump["placement"]
                )
                assert tensors["placement"].shape == (4, 3, 16)
            for key in ("spread", "rho", "rho_all_layers", "tau"):
                assert float(metadata[key]) == dump[key], key
            assert metadata["format"] == "eldr-centroids/1" and metadata["transform"] == dump["transform"]
            assert (int(metadata["clusters"]), int(metadata["requests"]), int(metadata["seed"])) == (
                4,
                20,
                2**64 - 1,
            )
            for quantile, value in dump["best_similarity_quantiles"].items():
                assert float(metadata["best_similarity_" + quantile]) == value
            assert metadata["note"] == dump["extra"]["note"]


def test_cpp_reads_centroids_of_python():
    for dtype in ("I8", "F16", "F32"):
        for seed in range(3):
            tensors, metadata, rows = centroid_tensors(seed, dtype)
            save_file(tensors, path("c"), metadata=metadata)
            dump = tool("dump-centroids", path("c"))
            got = np.array(dump["centroids"])
            assert np.abs(np.linalg.norm(got, axis=1) - 1).max() < 1e-6
            assert (got * unit_rows(rows.astype(np.float64))).sum(axis=1).min() > 0.999, dtype
            if dtype == "F16":  # every half reads as numpy reads it
                assert np.abs(got - unit_rows(tensors["centroids"].astype(np.float64))).max() < 1e-7
            assert dump["rho"] == 0.1 + 0.2 and dump["spread"] == 1 / 3 and dump["rho_all_layers"] == -1e-05
            assert dump["best_similarity_quantiles"] == {"p01": 2 / 3} and dump["extra"] == {"note": "kept"}
            assert dump["placement"] == tensors["placement"].ravel().tolist() and dump["layers"] == [8, 2, 3]
            assert dump["seed"] == 2**64 - 1 and dump["assignment"] == tensors["assignment"].tolist()


def test_cpp_refuses_centroids_of_python_that_are_wrong():
    tensors, metadata, rows = centroid_tensors(1, "F32")
    bad = rows.copy()
    bad[2, 5] = np.nan
    save_file({**tensors, "centroids": bad}, path("c"), metadata=metadata)
    assert "centroids" in refusal("dump-centroids", path("c"))
    save_file({**tensors, "centroids": rows.astype(np.float64)}, path("c"), metadata=metadata)
    assert "F64" in refusal("dump-centroids", path("c"))
    save_file(tensors, path("c"), metadata={**metadata, "rho": "nan"})
    assert "rho" in refusal("dump-centroids", path("c"))


def test_signatures_are_what_numpy_computes():
    trace, trace_metadata = random_trace(5)
    save_file(trace, path("t"), metadata=trace_metadata)
    transforms = {
        "count-idf": lambda c, idf: c * idf,
        "count": lambda c, idf: c,
        "sqrt-count": lambda c, idf: np.sqrt(c),
        "binary": lambda c, idf: (c > 0) * 1.0,
    }
    for transform, apply in transforms.items():
        tensors, metadata, rows = centroid_tensors(5, "F32")
        if transform != "count-idf":
            tensors["idf"] = np.ones_like(tensors["idf"])
        save_file(tensors, path("c"), metadata={**metadata, "transform": transform})
        got = tool("signatures", path("c"), path("t"))
        places = [[2, 3, 5, 8].index(layer) for layer in tensors["layers"]]
        for request, counts in enumerate(trace["prefill_counts"].astype(np.float64)):
            x = apply(counts[places], tensors["idf"].astype(np.float64)).ravel()
            s = x / np.linalg.norm(x)
            assert np.abs(s - got[request]["signature"]).max() < 1e-6, transform
            assert np.abs(rows.astype(np.float64) @ s - got[request]["similarities"]).max() < 1e-5, transform


def test_assignments_cost_what_scipy_finds():
    random = np.random.default_rng(6)
    for instance in range(40):
        points, clusters = int(random.integers(1, 120)), int(random.integers(1, 9))
        capacity = -(-points // clusters) + int(random.integers(0, 2))
        cost = (
            random.integers(0, 4, (points, clusters)).astype(float)
            if instance % 2
            else random.random((points, clusters))
        )
        with open(path("a.json"), "w", encoding="utf-8") as file:
            json.dump({"cost": cost.tolist(), "capacity": capacity}, file)
        choice = np.array(tool("assign", path("a.json")))
        assert np.bincount(choice, minlength=clusters).max() <= capacity
        best = np.repeat(cost, capacity, axis=1)
        expected = best[linear_sum_assignment(best)].sum()
        assert abs(cost[np.arange(points), choice].sum() - expected) < 1e-9, (points, clusters, capacity)
        general = random.random((points, points + 3))
        with open(path("a.json"), "w", encoding="utf-8") as file:
            json.dump({"cost": general.tolist(), "capacity": 0}, file)
        choice = np.array(tool("assign", path("a.json")))
        assert len(set(choice.tolist())) == points
        expected = general[linear_sum_assignment(general)].sum()
        assert abs(general[np.arange(points), choice].sum() - expected) < 1e-9


def test_the_recorded_trace_reads_the_same_in_both():
    folder = os.environ.get("ELDR_REAL_DATA")
    if not folder:
        raise Skip("ELDR_REAL_DATA is not set")
    file = os.path.join(folder, "esft-dsv2lite", "esft.safetensors")
    dump, tensors = tool("dump-trace", file), load_file(file)
    for name, tensor in tensors.items():
        assert dump[name] == tensor.ravel().tolist(), name
    assert sum(dump["prompt_tokens"]) == 21085 and sum(dump["decode_tokens"]) == 7508


def main():
    global TOOL, DIRECTORY  # set once, read by every test
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 64
    TOOL = sys.argv[1]
    passed = failed = skipped = 0
    for name, test in [(n, t) for n, t in globals().items() if n.startswith("test_")]:
        with tempfile.TemporaryDirectory(prefix="eldr-interop-") as DIRECTORY:
            try:
                test()
                passed += 1
                print(f"ok       {name}")
            except Skip as reason:
                skipped += 1
                print(f"SKIPPED  {name}: {reason}")
            except Exception:  # pylint: disable=broad-except
                failed += 1
                print(f"FAILED   {name}\n{traceback.format_exc()}")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
