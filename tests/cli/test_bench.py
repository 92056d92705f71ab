"""bench: the grid, its output forms, comparisons, probes, profile, suite. Nothing here asserts a time."""
import json

import pytest


@pytest.fixture(scope="module")
def model(models):
    return models / "tiny-gemma3"


GRID = ["-p", "8,16", "-n", "4", "-pg", "8,2", "-d", "0,5", "-r", 3, "-t", 1, "-ctk", "f32,f16"]


def test_grid(culet, model):
    rows = culet("bench", "-m", model, *GRID, "-o", "json").json()
    assert [(r["n_prompt"], r["n_gen"], r["n_depth"], r["type_k"]) for r in rows] == [
        (p, n, d, k) for d in (0, 5) for k in ("f32", "f16") for p, n in ((8, 0), (16, 0), (0, 4), (8, 2))]
    for r in rows:
        assert len(r["samples_ts"]) == len(r["samples_ns"]) == 3 and r["n_threads"] == 1
        assert min(r["samples_ts"]) <= r["avg_ts"] <= max(r["samples_ts"]) and r["stddev_ts"] >= 0


def test_defaults(culet, model):
    rows = culet("bench", "-m", model, "-r", 1, "-o", "json").json()
    assert [(r["n_prompt"], r["n_gen"]) for r in rows] == [(512, 0), (0, 128)]
