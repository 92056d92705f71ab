"""bench: the grid, its output forms, single measurements, profile, the published tables. Nothing here asserts a time."""
import csv
import io
import json
import os
import signal
import sqlite3
import time

import pytest

GRID = ["-p", "8,16", "-n", "4", "-pg", "8,2", "-d", "0,5", "-r", 3, "-t", 1, "-ctk", "f32,f16"]
SMALL = ["-p", "8", "-n", "4", "-r", 2, "-t", 1]
QUICK = ["-r", 1, "-t", 1, "--bandwidth-size", 32]


@pytest.fixture(scope="module")
def model(models):
    return models / "tiny-gemma3"


# ---- the grid

def test_grid(culet, model):
    rows = culet("bench", "-m", model, *GRID, "-o", "json").json()
    assert [(r["n_prompt"], r["n_gen"], r["n_depth"], r["type_k"]) for r in rows] == [
        (p, n, d, k) for d in (0, 5) for k in ("f32", "f16") for p, n in ((8, 0), (16, 0), (0, 4), (8, 2))]
    for r in rows:
        assert len(r["samples_ts"]) == len(r["samples_ns"]) == 3 and r["n_threads"] == 1
        assert min(r["samples_ts"]) <= r["avg_ts"] <= max(r["samples_ts"]) and r["stddev_ts"] >= 0
        for ns, ts in zip(r["samples_ns"], r["samples_ts"]):
            assert ts == pytest.approx((r["n_prompt"] + r["n_gen"]) / ns * 1e9, rel=1e-3)


def test_defaults(culet, model):
    rows = culet("bench", "-m", model, "-r", 1, "-o", "json").json()
    assert [(r["n_prompt"], r["n_gen"]) for r in rows] == [(512, 0), (0, 128)]
    rows = culet("bench", "-m", model, "-r", 1, "-pg", "8,4", "-o", "json").json()
    assert [(r["n_prompt"], r["n_gen"]) for r in rows] == [(8, 4)]


@pytest.mark.parametrize("given,values", [
    (["4-8"], [4, 5, 6, 7, 8]), (["4-9+2"], [4, 6, 8]), (["1-8*2"], [1, 2, 4, 8]), (["3-3"], [3]), (["3-20*3,5"], [3, 9, 5]),
    (["2", "6-7"], [2, 6, 7]), (["4-4*536870911"], [4]),
])
def test_ranges(culet, model, given, values):
    flags = [word for value in given for word in ("-p", value)]
    rows = culet("bench", "-m", model, *flags, "-n", 0, "-r", 1, "-t", 1, "-o", "jsonl").out.splitlines()
    assert [json.loads(r)["n_prompt"] for r in rows] == values


@pytest.mark.parametrize("value", ["8-4", "1-8*1", "0-8*2", "1-8+0", "1-", "-4", "1-8/2", "1-8+", "1-8-2", "1--8", "1-99999999999",
                                   "0-5000", "a-b", "1 - 8", "1-8+2x", "536870911-536870912"])
def test_ranges_refused(culet, model, value):
    r = culet("bench", "-m", model, "-p", value)
    assert r.code == 2 and r.err.startswith("culet: -p: ") and r.out == b""


def test_several_models(culet, models):
    rows = culet("bench", "-m", models / "tiny-gemma3", "-m", models / "tiny-dense", *SMALL, "-o", "json").json()
    assert [os.path.basename(r["model_filename"]) for r in rows] == ["tiny-gemma3"] * 2 + ["tiny-dense"] * 2
    assert rows[0]["model_digest"] != rows[2]["model_digest"]


# ---- output

def test_forms_agree(culet, model):
    first = culet("bench", "-m", model, *SMALL, "-o", "json").json()[0]
    listed = {"samples_ns", "samples_ts"}
    rows = list(csv.DictReader(io.StringIO(culet("bench", "-m", model, *SMALL, "-o", "csv").out.decode())))
    assert [r["test"] for r in rows] == ["pp8", "tg4"] and set(rows[0]) == set(first) - listed
    database = sqlite3.connect(":memory:")
    database.executescript(culet("bench", "-m", model, *SMALL, "-o", "sql").out.decode())
    found = database.execute("SELECT n_prompt, n_gen, avg_ts > 0, typeof(avg_ts), typeof(test) FROM culet_bench").fetchall()
    assert found == [(8, 0, 1, "real", "text"), (0, 4, 1, "real", "text")]
    table = culet("bench", "-m", model, *SMALL).out.decode()
    lines = [line for line in table.splitlines() if line.startswith("|")]
    assert len(lines) == 4 and "pp8" in lines[2] and "tg4" in lines[3] and len({line.count("|") for line in lines}) == 1
    both = culet("bench", "-m", model, *SMALL, "-o", "jsonl", "-oe", "csv")
    assert len(both.out.splitlines()) == 2 and both.err.splitlines()[0].startswith("build_commit,")


def test_header(culet, model):
    row = culet("bench", "-m", model, *SMALL, "-o", "json").json()[0]
    for key in ("build_commit", "build_version", "cpu_info", "cpu_level", "kernel", "model_digest", "model_type", "test_time"):
        assert row[key], key
    assert row["n_batch"] == 2048 and row["n_ubatch"] == 512 and row["model_size"] > 0 and row["model_n_params"] > 0
    assert len(row["model_digest"]) == 64
    text = culet("bench", "-m", model, *SMALL).out.decode()
    assert row["cpu_info"] in text and row["kernel"] in text and row["model_digest"] in text and row["build_commit"] in text


def test_whole_digest(culet, model, tmp_path):
    import hashlib
    source = next((model / "gguf").glob("*.gguf"))
    row = culet("bench", "-m", source, *SMALL, "--sha256", "-o", "json").json()[0]
    assert row["model_digest"] == hashlib.sha256(source.read_bytes()).hexdigest() and row["model_digest_kind"] == "sha256"


def test_progress_and_delay(culet, model):
    r = culet("bench", "-m", model, *SMALL, "--progress", "--no-warmup", "--delay", 1)
    assert r.code == 0 and "test 1 of 2: pp8" in r.err and "test 2 of 2: tg4" in r.err


def test_bandwidth(culet, model):
    prompt, generation = culet("bench", "-m", model, *SMALL, "--bandwidth", "--bandwidth-size", 32, "-o", "json").json()
    assert prompt["bandwidth_before_gb_s"] is None
    assert generation["bandwidth_before_gb_s"] > 0 and generation["bandwidth_after_gb_s"] > 0


def test_profile(culet, models):
    file = next((models / "tiny-e" / "gguf").glob("*.gguf"))
    prompt, generation = culet("bench", "-m", file, "-p", 40, "-n", 6, "-r", 1, "-t", 2, "--profile", "-o", "json").json()
    for row, passes in ((prompt, 1), (generation, 6)):
        profile = row["profile"]
        stages = {(s["stage"], s["type"]): s for s in profile["stages"]}
        assert profile["threads"] == 2 and profile["wall_ms"] > 0
        assert sum(s["ms"] for s in stages.values()) == pytest.approx(profile["all"]["ms"], rel=1e-6)
        assert profile["all"]["ms"] <= profile["wall_ms"] * 1.001
        assert sum(s["percent"] for s in stages.values()) == pytest.approx(100, abs=0.01)
        assert profile["products"]["macs"] == sum(s["macs"] for s in stages.values()) > 0
        assert all(s["waiting_ms"] >= 0 and s["ms"] >= 0 and s["calls"] > 0 for s in stages.values())
        assert any(name == "attention" for name, _ in stages)
        assert sum(s["calls"] for (name, _), s in stages.items() if name == "lm_head") == passes
    names = {s["stage"] for s in generation["profile"]["stages"]}
    assert "sampling" in names and "sampling" not in {s["stage"] for s in prompt["profile"]["stages"]}
    text = culet("bench", "-m", file, "-p", 40, "-n", 6, "-r", 1, "-t", 1, "--profile").out.decode()
    assert text.count("pp40") == text.count("tg6") == 2 and "GMAC/s" in text


# ---- measurements of their own

def test_load(culet, model):
    rows = culet("bench", "-m", model, "--load", "-r", 2, "-t", 1, "-o", "json").json()
    assert [r["measurement"] for r in rows] == ["load"] * 3
    warm, text, cold = rows
    assert len(warm["samples"]) == 2 and warm["p50"] >= warm["min"] > 0 and text["p50"] > 0
    assert (cold["p50"] or 0) > 0 or "page cache" in cold["note"]


def test_first_token(culet, models):
    rows = culet("bench", "-m", models / "tiny-dense", "--ttft", "-r", 1, "-t", 1, "-o", "json").json()
    assert [(r["prompt_tokens"], r["reused_tokens"]) for r in rows] == [(28, 0), (512, 0), (53, 35), (608, 576)]
    assert all(0 < r["min"] <= r["p50"] <= r["p95"] <= r["max"] for r in rows)
    assert rows[1]["note"] == "a chat"


def test_memory(culet, model):
    (row,) = culet("bench", "-m", model, "--memory", "-t", 1, "-o", "json").json()
    assert row["unit"] == "GB" and 0.001 < row["p50"] < 1


def test_rows(culet, model):
    rows = culet("bench", "-m", model, "--rows", "1,4-8*2", *QUICK, "-o", "json").json()
    assert [r["prompt_tokens"] for r in rows] == [1, 4, 8]
    for r in rows:
        assert r["p50"] > 0 and r["reference"] > 0 and r["ratio"] == pytest.approx(r["p50"] / r["reference"], rel=0.02)


def test_bytes_of_a_token(culet, models):
    """Against a count by hand over the tensors that one step multiplies with."""
    used_by = {}
    for name in ("tiny-dense", "tiny-moe", "tiny-e"):
        file = next(f for f in (models / name / "gguf").glob("*.gguf") if "mmproj" not in f.name)
        shown = culet("show", "-m", file, "--json").json()
        config, total = shown["config"], 0
        for t in shown["tensors"]:
            part = t["name"].split(".")
            layer = config["layer"][int(part[1])] if part[0] == "blk" else None
            if part[0] == "per_layer_token_embd" or (layer and not layer["own_kv"] and part[2] in ("attn_k", "attn_v")):
                continue
            total += t["bytes"] * (config["experts_used"] / config["experts"] if "exps" in t["name"] else 1)
        row = culet("bench", "-m", file, "-p", 0, "-n", 2, *QUICK, "--bandwidth", "-o", "json").json()[0]
        assert row["gb_per_token"] == pytest.approx(total * 1e-9, abs=1e-6)
        assert row["limit_ts"] == pytest.approx(max(row["bandwidth_before_gb_s"], row["bandwidth_after_gb_s"])
                                                / row["gb_per_token"], rel=0.01)
        used_by[name] = total / sum(t["bytes"] for t in shown["tensors"])
    assert used_by["tiny-dense"] == 1 and used_by["tiny-moe"] < 0.9 and used_by["tiny-e"] < 0.9


def test_measurements_beside_a_grid(culet, model):
    rows = culet("bench", "-m", model, *SMALL, "--memory", "-o", "json").json()
    assert [r.get("test") or r["measurement"] for r in rows] == ["pp8", "tg4", "peak resident memory"]
    table = culet("bench", "-m", model, *SMALL, "--memory").out.decode()
    assert sum(line.startswith("| ---") for line in table.splitlines()) == 2


def test_published(culet, model):
    rows = culet("bench", "-m", model, "--suite", "published", *QUICK, "-o", "json").json()
    speeds = [r for r in rows if r["measurement"] == "published A"]
    lines = {r["item"]: r for r in rows if r["measurement"] == "published B"}
    assert [r["published_generation_ts"] for r in speeds[:5]] == ["8.70", "20.99", "26.77", "21.52", "41–44"]
    assert [r["status"] for r in speeds[6:]] == ["measured", "not in this version"]
    assert speeds[6]["prefill_ts"] > 0 and speeds[6]["generation_ts"] > 0
    assert lines["generation"]["value"] > 0 and lines["resident memory"]["value"] > 0
    assert lines["warm camera cycle"]["status"] == "not in this version" and lines["warm camera cycle"]["value"] is None
    text = culet("bench", "-m", model, "--suite", "published", *QUICK).out.decode()
    assert "What differs" in text and "2.98e-4" in text and "nan" not in text


# ---- flags and signals

@pytest.mark.parametrize("flags,word", [
    (["--suite", "other"], "--suite"), (["--suite", "published", "--compare", "x"], "--suite"),
    (["--suite", "published", "-o", "csv"], "--output"), (["--compare", "x", "--memory"], "--memory"),
    (["--compare", "/"], "--compare"), (["--timeout", "5"], "--timeout"), (["--rows", "0"], "--rows"),
    (["--rows", "65"], "--rows"), (["--delay", "-1"], "--delay"), (["-o", "xml"], "-o"), (["-oe", "xml"], "-oe"),
    (["-m", ""], "-m"), (["--memory", "-b", "1,2"], "-b"), (["--suite", "published", "-t", "1,2"], "-t"),
    (["--profile", "-o", "csv"], "--output"), (["--compare", ""], "--compare"), (["--compare"], "--compare"),
])
def test_usage(culet, model, flags, word):
    r = culet("bench", *([] if "-m" in flags else ["-m", model]), *flags)
    assert r.code == 2, r.err
    assert r.err.startswith("culet: ") and word in r.err.splitlines()[0] and r.out == b""


def test_missing_model(culet, tmp_path):
    for flags in ([], ["--memory"], ["--suite", "published"], ["--compare", "true"]):
        r = culet("bench", "-m", tmp_path / "none.gguf", *flags)
        assert r.code == 3 and "none.gguf" in r.err


def test_limits_of_the_model(culet, model):
    r = culet("bench", "-m", model, "-p", 40000, "-n", 0, "-r", 1)
    assert r.code in (1, 2) and "40000" in r.err


def test_interrupt(spawn, model):
    p = spawn("bench", "-m", model, "-p", 512, "-n", 0, "-r", 100000)
    time.sleep(0.7)
    p.send_signal(signal.SIGINT)
    _, err = p.communicate(timeout=30)
    assert p.returncode == 130 and b"interrupted" in err


def test_a_picture(culet, models):
    picture = models.parent / "media" / "wide.png"
    args = ["bench", "-m", models / "tiny-dense", "--image", picture, "-r", "3", "-t", "1"]
    rows = culet(*args, "-o", "json").json()
    by_name = {r["measurement"]: r for r in rows}
    assert list(by_name) == ["picture decoded", "picture encoded", "time to first token", "picture fed", "caption cycle"]
    assert all(len(r["samples"]) == 3 and min(r["samples"]) > 0 for r in rows)  # a picture known already would take no time
    assert by_name["time to first token"]["min"] > by_name["picture encoded"]["min"]
    assert by_name["picture fed"]["ratio"] > 0 and "576 x 240, 60 tokens" in by_name["picture encoded"]["condition"]
    assert culet("bench", "-m", models / "tiny-e2b", "--image", picture).code == 6
    assert culet(*args, "--image", picture).code == 2 and culet(*args, "--suite", "published").code == 2
