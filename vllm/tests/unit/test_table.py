# SPDX-License-Identifier: Apache-2.0
"""The table on its own: sizes, widths, silence, rejected drafts, and the scatter against a loop in numpy."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from eldr_vllm import native
from eldr_vllm.scatter import Scatter, TorchScatter
from eldr_vllm.table import CountsTable, Shape
from eldr_vllm.tracker import Copy, Plan

SMALL = Shape(blocks=6, block_size=4, layers=2, experts=5, top_k=2, tokens=16)


def reference(rows: Any, missing: Any, ids: Any, slots: Any, block_size: int) -> tuple[Any, Any]:
    """What a scatter must do, one token at a time."""
    rows, missing = rows.astype(np.int64), missing.copy()
    for token, slot in enumerate(slots):
        block, place = divmod(int(slot), block_size)
        if slot < 0:
            continue
        if place == 0:
            rows[block], missing[block] = 0, 0
        for layer in range(rows.shape[1]):
            for expert in ids[token, layer]:
                if 0 <= expert < rows.shape[2]:
                    rows[block, layer, expert] += 1
    return rows, missing


@pytest.mark.parametrize("row_type", [torch.uint8, torch.int16])
@pytest.mark.parametrize("slot_type", [torch.int32, torch.int64])
def test_scatter_equals_a_loop(scatter: Scatter, slot_type: torch.dtype, row_type: torch.dtype) -> None:
    rng = np.random.default_rng(0)
    for _ in range(60):
        blocks, block_size, layers, experts, top_k = (int(n) for n in rng.integers(1, 9, 5))
        rows = torch.from_numpy(rng.integers(0, 90, (blocks + 1, layers, experts))).to(row_type)
        missing = torch.from_numpy(rng.integers(0, 3, blocks + 1).astype(np.int32))
        slots: list[int] = []
        for block in rng.permutation(blocks)[: int(rng.integers(0, blocks + 1))]:
            first = int(rng.integers(0, block_size))
            last = int(rng.integers(first, block_size))
            slots += [int(block) * block_size + place for place in range(first, last + 1)]
            slots += [-1] * int(rng.integers(0, 2))
        tokens = len(slots)
        ids = torch.from_numpy(rng.integers(-1, experts + 1, (tokens + 3, layers, top_k)).astype(np.int16))
        want, want_missing = reference(rows.numpy(), missing.numpy(), ids.numpy(), slots, block_size)
        padded = torch.tensor([*slots, -1, 0], dtype=slot_type)
        scatter.add(rows, missing, ids, padded, tokens, block_size)
        np.testing.assert_array_equal(rows.numpy()[:blocks], want[:blocks])
        np.testing.assert_array_equal(missing.numpy()[:blocks], want_missing[:blocks])


def one_step(table: CountsTable, slots: list[int], ids: Any, plan: Plan | None = None) -> None:
    table.begin(plan or Plan(tokens=len(slots)))
    for layer in range(table.shape.layers):
        table.capture(layer, torch.tensor(ids)[:, layer])
    table.commit(torch.tensor(slots), len(slots))


def test_a_silent_layer_counts_nothing_instead_of_the_last_step() -> None:
    table = CountsTable(SMALL, "cpu")
    one_step(table, [0, 1], [[[0, 1], [2, 3]]] * 2)
    table.begin(Plan(tokens=2))
    table.capture(0, torch.tensor([[0, 1], [0, 1]]))  # layer 1 reports nothing
    table.commit(torch.tensor([4, 5]), 2)
    total = table.totals([((1,), None)]).host()[0]
    assert total.sum(axis=1).tolist() == [4, 0]


def test_selected_layers_and_several_requests() -> None:
    table = CountsTable(SMALL, "cpu")
    one_step(table, [0, 1, 8], [[[0, 1], [2, 3]], [[0, 2], [3, 4]], [[1, 2], [0, 1]]])
    both, second, first = table.totals([((0, 2), None), ((2,), [1]), ((0,), [1, 0])]).host()
    assert both.tolist() == [[2, 2, 2, 0, 0], [1, 1, 1, 2, 1]]
    assert second.tolist() == [[1, 1, 0, 0, 0]]
    assert first.tolist() == [[0, 0, 1, 2, 1], [2, 1, 1, 0, 0]]


def test_very_long_prompts_are_summed_in_parts() -> None:
    table = CountsTable(Shape(700, 4, 1, 3, 1, 8), "cpu")
    table.rows[:] = 2
    assert table.totals([(range(700), None)]).host()[0].tolist() == [[1400] * 3]


@pytest.mark.parametrize(("block_size", "dtype"), [(16, torch.uint8), (128, torch.uint8), (256, torch.int16)])
def test_rows_are_wide_enough(block_size: int, dtype: torch.dtype) -> None:
    shape = Shape(2, block_size, 1, 3, 1, block_size)
    assert shape.row_dtype == dtype
    table = CountsTable(shape, "cpu")
    one_step(table, list(range(block_size)), [[[1]]] * block_size)
    assert table.totals([((0,), None)]).host()[0].tolist() == [[0, block_size, 0]]


def test_memory_is_what_is_allocated() -> None:
    table = CountsTable(SMALL, "cpu")
    assert SMALL.table_bytes == table.rows.nbytes + table.missing.nbytes
    assert SMALL.ids_bytes == table.ids.nbytes
    qwen3_30b = Shape(10000, 16, 48, 128, 8, 8192)
    assert qwen3_30b.table_bytes // 10001 == 6144 + 4


def test_blocks_with_rejected_drafts_do_not_count() -> None:
    shape = Shape(2, 4, 1, 3, 1, 16, rejected_per_token=3)
    table = CountsTable(shape, "cpu")
    one_step(table, [0, 1, 2], [[[1]]] * 3)
    one_step(table, [2, 3], [[[2]]] * 2)  # place 2 again: its first draft was rejected
    one_step(table, [4, 5, 6, 7], [[[0]]] * 4)
    assert table.totals([((0,), None)]).host()[0].tolist() == [[0, 0, 0]]
    assert table.totals([((0, 1), None)]).host()[0].tolist() == [[4, 0, 0]]


@pytest.mark.parametrize(("tokens", "exact"), [(2, True), (1, False), (3, False)])
def test_copied_part_of_a_block(tokens: int, exact: bool) -> None:
    """Block 0 holds two tokens: a copy of its first two is exact, of its first one is not known."""
    table = CountsTable(SMALL, "cpu")
    one_step(table, [0, 1], [[[0, 1], [2, 3]]] * 2)
    one_step(table, [], np.zeros((0, 2, 2)), Plan(copies=(Copy(0, 3, tokens),)))
    assert bool((table.rows[3] == table.rows[0]).all()) == exact
    assert bool((table.rows[3] == 0).all()) == (not exact)
    # A copy of a copy that was not exact is not exact either, whatever was added since.
    one_step(table, [3 * 4 + tokens], [[[0, 1], [2, 3]]], Plan(tokens=1))
    one_step(table, [], np.zeros((0, 2, 2)), Plan(copies=(Copy(3, 4, tokens + 1),)))
    assert bool((table.rows[4] == 0).all()) == (not exact)


@pytest.mark.parametrize("shape", [Shape(1, 40000, 1, 3, 1, 8), Shape(1, 16, 1, 40000, 1, 8)])
def test_sizes_that_cannot_be_counted_are_refused(shape: Shape) -> None:
    with pytest.raises(ValueError, match="eldr"):
        CountsTable(shape, "cpu")


def test_the_library_is_checked_before_it_is_used(host_scatter: native.NativeScatter) -> None:
    assert native.agrees(host_scatter, torch.device("cpu"))

    class Wrong(TorchScatter):
        def add(self, rows: Any, *rest: Any) -> None:
            super().add(rows, *rest)
            rows[0, 0, 0] += 1

    assert not native.agrees(Wrong(), torch.device("cpu"))


def test_choice_of_the_scatter(tmp_path: Path) -> None:
    cpu = torch.device("cpu")
    assert native.choose_scatter("auto", cpu).name == "torch"
    assert native.choose_scatter("torch", cpu).name == "torch"
    with pytest.raises(ValueError, match="'cuda', but the CUDA kernel cannot be used: the device is cpu"):
        native.choose_scatter("cuda", cpu)
    # Without the library a CUDA device falls back too; nothing of the device is touched before that.
    assert native.choose_scatter("auto", torch.device("cuda"), tmp_path / "none.so").name == "torch"


def test_sizes_the_library_does_not_know(host_scatter: native.NativeScatter) -> None:
    rows = torch.zeros(2, 1, 3, dtype=torch.int32)
    with pytest.raises(RuntimeError, match="status -1"):
        host_scatter.add(
            rows, rows, torch.zeros(1, 1, 1, dtype=torch.int16), torch.zeros(1, dtype=torch.int64), 1, 4
        )


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_the_kernel_on_a_device() -> None:
    device = torch.device("cuda")
    kernel = native.choose_scatter("cuda", device)
    rng = np.random.default_rng(0)
    shape = (2000, 48, 128)
    ids = torch.from_numpy(rng.integers(0, 128, (4096, 48, 8)).astype(np.int16)).to(device)
    slots = torch.from_numpy(rng.permutation(2000)[:256].repeat(16) * 16 + np.tile(np.arange(16), 256)).to(
        device
    )
    results = []
    for one in (kernel, TorchScatter()):
        rows = torch.zeros(*shape, dtype=torch.uint8, device=device)
        one.add(rows, torch.zeros(2000, dtype=torch.int32, device=device), ids, slots, 4096, 16)
        results.append(rows)
    assert torch.equal(results[0][:-1], results[1][:-1])
    # In a CUDA graph: replaying adds what is in the buffers then.
    rows = torch.zeros(*shape, dtype=torch.uint8, device=device)
    missing = torch.zeros(2000, dtype=torch.int32, device=device)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kernel.add(rows, missing, ids, slots, 4096, 16)
    rows.zero_()
    graph.replay()
    assert torch.equal(rows[:-1], results[0][:-1])
