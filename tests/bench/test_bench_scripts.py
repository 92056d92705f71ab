"""The scripts of bench/: what they plan, parse, compute, draw. Programs that are measured are stand-ins; no time is asserted."""
import csv
import dataclasses
import importlib.machinery
import importlib.util
import json
import math
import pathlib
import struct
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import pytest

BENCH = pathlib.Path(__file__).resolve().parent.parent.parent / "bench"
SVG = "{http://www.w3.org/2000/svg}"


def load(name):
    """A script of bench/ as a module, with or without the suffix of one."""
    sys.path.insert(0, str(BENCH))
    try:
        path = BENCH / name
        loader = importlib.machinery.SourceFileLoader("bench_" + name.split(".")[0], str(path))
        module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
        sys.modules[loader.name] = module
        loader.exec_module(module)
        return module
    finally:
        sys.path.remove(str(BENCH))


@pytest.fixture(scope="module", autouse=True)
def leave_no_bytecode():
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    yield
    sys.dont_write_bytecode = before


@pytest.fixture(scope="module")
def plan():
    return load("plan.py")


@pytest.fixture(scope="module")
def runs():
    return load("runs.py")


def script(name, *args, **options):
    return subprocess.run([sys.executable, "-B", str(BENCH / name), *map(str, args)], capture_output=True, text=True, timeout=120, **options)


# ---- the plan ----

def test_rows_have_names_of_their_own(plan):
    rows = plan.all_rows()
    assert len({row.name for row in rows}) == len(rows) > 40
    bars = {row.name: row.bar for row in rows}
    assert bars["decode-e4b-q4_0"] == 1.6 and bars["prefill512-e4b-bf16"] == 1.6 and bars["decode-e4b-q8_0-t1"] == pytest.approx(1.17)


def test_choice_by_name_and_prefix(plan):
    names = [row.name for row in plan.chosen(plan.all_rows(), ["decode-e4b-q4_0", "rows*"])]
    assert names == ["decode-e4b-q4_0", "rows4-e4b-q4_0", "rows8-e4b-q4_0"]
    with pytest.raises(ValueError, match="decode-e4b$"):
        plan.chosen(plan.all_rows(), ["decode-e4b"])


def test_one_job_serves_the_rows_of_a_model(plan):
    rows = plan.chosen(plan.all_rows(16), ["decode-e4b-q4_0", "prefill128-e4b-q4_0", "prefill512-e4b-q4_0", "decode-26b-a4b"])
    jobs = {job.models[0]: job for job in plan.jobs(rows)}
    assert sorted(jobs) == ["26b-a4b", "e4b-q4_0"] and jobs["26b-a4b"].models == ["26b-a4b", "26b-a4b-short"]
    assert (jobs["e4b-q4_0"].prompts, jobs["e4b-q4_0"].gens, jobs["e4b-q4_0"].ik) == ([128, 512], [16], True)


def test_ratio_is_the_median_of_the_pairs(plan):
    row = plan.chosen(plan.all_rows(), ["prefill512-270m-q4_k_m"])[0]
    result = plan.judge_speed(row, [30, 10, 60], [10, 10, 10], [20, 20, 20])
    assert (result.value, result.low, result.high, result.ik_ratio) == (3, 1, 6, 1.5)
    assert result.verdict == "pass"
    assert plan.judge_speed(row, [30, 30, 30], [10, 10, 10], [25, 25, 25]).verdict == "below"  # ik's bar alone
    assert plan.judge_speed(row, [25, 25, 25], [10, 10, 10], [1, 1, 1]).verdict == "below"
    assert plan.judge_speed(row, [25], []).verdict == "not run"


def test_shares_of_the_limit(plan):
    both, either = plan.chosen(plan.all_rows(), ["decode-e4b-q4_0", "decode-e2b-q4_0"])
    assert plan.judge_speed(both, [8], [4], limit=0.85).verdict == "pass"
    assert plan.judge_speed(both, [8], [4], limit=0.75).verdict == "below"
    assert plan.judge_speed(either, [5], [4], limit=0.91).verdict == "pass"
    assert plan.judge_speed(either, [5], [4], limit=0.89).verdict == "below"


def test_time_of_the_layers_alone(plan):
    assert plan.without_head([1 / 3.0, 1 / 3.0, 9.0], [1 / 2.0]) == [pytest.approx(1)]
    assert plan.without_head([2.0], [1.0]) == []  # noise: more layers were faster
    assert plan.without_head([], [1.0]) == []


def test_loss_at_depth(plan):
    row = plan.chosen(plan.all_rows(), ["depth2048-e4b-q4_0"])[0]
    result = plan.judge_depth(row, ([10, 10], [9, 9]), ([10, 10], [7, 7]))
    assert result.ours == pytest.approx(0.1) and result.value == pytest.approx(1 / 3) and result.verdict == "pass"
    assert plan.judge_depth(row, ([10], [8]), ([10], [7])).verdict == "below"
    assert plan.judge_depth(row, ([10], [9.9]), ([10], [10.2])).verdict == "below"
    assert plan.judge_depth(row, ([10], [10.1]), ([10], [10.2])).verdict == "pass"  # neither loses anything


def test_at_most_and_at_least(plan):
    memory, macs = plan.chosen(plan.all_rows(), ["memory-e4b-q4_0", "gmacs-e4b-q4_0"])[::-1]
    assert plan.judge_at_most(memory, [3.1, 3.2, 3.3]).verdict == "pass" and plan.judge_at_most(memory, [3.3]).verdict == "below"
    assert plan.judge_at_least(macs, [91]).verdict == "pass" and plan.judge_at_least(macs, [89]).verdict == "below"


# ---- what programs print ----

def grid_rows(prompts=(), gens=(), depths=(0,), speed=10.0):
    return [{"build_commit": "abc", "n_prompt": p, "n_gen": n, "n_depth": d, "n_threads": 2, "avg_ts": speed, "samples_ts": [speed],
             "bandwidth_before_gb_s": 20.0, "bandwidth_after_gb_s": None}
            for d in depths for p, n in [(p, 0) for p in prompts] + [(0, n) for n in gens]]


def test_reading_rows(runs):
    rows = grid_rows([128], [16], [0, 64], 7.5)
    for text in (json.dumps(rows), "\n".join(map(json.dumps, rows))):
        read = runs.rows_of(text)
        assert runs.samples_of(read, 0, 16, 64) == [7.5] and runs.samples_of(read, 0, 17) == [] and runs.bandwidth_of(read) == 20.0
    with pytest.raises(runs.RunError):
        runs.rows_of("[{")


def test_records_of_one_measurement(runs):
    rows = [{"measurement": "load", "condition": "to the first token, page cache warm", "samples": [1.0, 2.0], "reference": None}]
    assert runs.measurement_of(rows, "load", "warm") == [1.0, 2.0]
    assert runs.measurement_of(rows, "load", "disk") is None and runs.measurement_of(rows, "rows", "warm") is None


def test_rate_of_a_profile(runs):
    assert runs.macs_rate_of([{"profile": {"products": {"macs": 3_000_000_000, "ms": 20}}}]) == pytest.approx(150)
    assert runs.macs_rate_of([{"n_prompt": 1}, {"profile": {}}]) == 0


def test_what_culet_prints_is_what_is_read(culet, runs, models):
    """The names of fields and conditions that the table looks for."""
    path = models / "tiny-gemma3"
    def bench(*flags):
        return runs.rows_of(culet("bench", "-m", path, "-t", 1, "-r", 1, "-o", "json", *flags).out)
    grid = bench("-p", "0", "-n", "4", "--bandwidth", "--bandwidth-size", 1)
    assert runs.samples_of(grid, 0, 4) and runs.bandwidth_of(grid) > 0
    assert runs.macs_rate_of(bench("-p", "16", "-n", "0", "--profile")) > 0
    load_rows = bench("--load")
    for condition in load("table").LOADS.values():
        assert condition == "packed" or runs.measurement_of(load_rows, "load", condition) is not None
    passes = bench("--rows", "4,8", "--bandwidth-size", 1)
    for n in (4, 8):
        assert runs.measurement_of(passes, "pass over rows", f"{n} rows") and runs.measurement_of(
            passes, "pass over rows", f"{n} rows", "reference") > 0


def test_flags_are_llama_benchs(runs):
    assert runs.grid_flags("m", 2, [128, 512], [], [0], 1) == ["-m", "m", "-t", 2, "-p", "128,512", "-n", 0, "-r", 1, "-o", "json"]
    assert "0,2048" in runs.grid_flags("m", 2, [], [16], [0, 2048], 3)


STAND_IN = """#!/usr/bin/env python3
import json, sys
a = sys.argv[1:]
def of(flag):
    return [int(v) for v in a[a.index(flag) + 1].split(",") if int(v)] if flag in a else []
if "crash" in __file__:
    sys.exit("it broke")
if a[0] == "bench":
    a = a[1:]
speed = SPEED
print(json.dumps([{"build_commit": "abc", "n_prompt": p, "n_gen": n, "n_depth": 0, "samples_ts": [speed + p + n]}
                  for p, n in [(p, 0) for p in of("-p")] + [(0, n) for n in of("-n")]]))
"""


def stand_in(folder, name, speed):
    path = folder / name
    path.write_text(STAND_IN.replace("SPEED", str(speed)))
    path.chmod(0o755)
    return path


def test_the_table_from_end_to_end(tmp_path, models):
    tiny = models / "tiny-gemma3" / "gguf" / "tiny-gemma3-Q4_0.gguf"
    out = tmp_path / "results" / "here.csv"
    common = ["--culet", stand_in(tmp_path, "culet", 968), "--model", f"270m-q4_k_m={tiny}", "--pairs", 2, "-n", 32, "--csv", out]
    env = {"PATH": "/usr/bin:/bin", "CULET_HOME": str(tmp_path / "none")}
    done = script("table", *common, "--peer", stand_in(tmp_path, "llama-bench", 468), "--ik", stand_in(tmp_path, "ik", 568), "--only",
                  "decode-270m-q4_k_m,prefill512-270m-q4_k_m,decode-e2b-q4_0,decode-26b-a4b",
                  "--model", f"26b-a4b={tiny}", "--model", f"26b-a4b-short={tiny}", env=env)
    assert done.returncode == 0, done.stderr
    cells = {line.split("|")[1].strip(): [c.strip() for c in line.split("|")[2:-1]] for line in done.stdout.splitlines()}
    assert cells["decode-270m-q4_k_m"][:6] == ["≥ 1.7 ×", "2.00", "", "1000", "500", "1.67"] and cells["decode-270m-q4_k_m"][7] == "pass"
    assert cells["prefill512-270m-q4_k_m"][1] == "1.51" and cells["prefill512-270m-q4_k_m"][7].startswith("below: × 1.51 < 2.60")
    assert cells["decode-26b-a4b"][7] == "not run: the longer model was not slower: too much noise"
    assert cells["decode-e2b-q4_0"][7] == "not run: no file e2b-q4_0.gguf"
    rows = list(csv.DictReader(out.open()))
    assert [(r["row"], r["verdict"], r["culet_commit"]) for r in rows] == [
        ("prefill512-270m-q4_k_m", "below", "abc"), ("decode-270m-q4_k_m", "pass", "abc")][::-1]

    again = script("table", *common, "--peer", stand_in(tmp_path, "crash-bench", 1), "--no-ik", "--only", "decode-270m-q4_k_m", env=env)
    assert again.returncode == 0 and "it broke" in again.stderr and "not run: no llama.cpp" in again.stdout
    assert len(list(csv.DictReader(out.open()))) == 2  # what was not run now replaces nothing


def test_the_table_refuses_what_it_does_not_know(tmp_path):
    assert script("table", "--only", "nothing").returncode == 2
    assert "no model is called x" in script("table", "--model", "x=y").stderr
    assert script("table", "--culet", tmp_path / "none").returncode == 2


# ---- files ----

def test_bytes_of_a_token(culet, models):
    reader = load("ggufread.py")
    path = models / "tiny-e2b" / "gguf" / "tiny-e2b-Q4_0.gguf"
    keys, tensors = reader.read(path)
    shown = culet("show", "-m", path, "--json").json()["tensors"]
    assert {t["name"]: t["bytes"] for t in shown} == {name: size for name, (_, _, size) in tensors.items()}
    layers, shared = keys["gemma4.block_count"], keys["gemma4.attention.shared_kv_layers"]
    assert shared > 0
    unused = [f"blk.{i}.{part}.weight" for i in range(layers - shared, layers) for part in ("attn_k", "attn_v", "attn_k_norm")]
    expected = sum(size for name, (_, _, size) in tensors.items() if name not in unused)
    expected -= tensors["per_layer_token_embd.weight"][2] + tensors.get("rope_freqs.weight", (0, 0, 0))[2]
    for name in ("token_embd.weight", "per_layer_token_embd.weight"):  # a row of each; the head is counted once above
        expected += tensors[name][2] // tensors[name][1][-1]
    assert reader.token_bytes(keys, tensors) == expected


def test_experts_count_by_their_use(models):
    reader = load("ggufread.py")
    keys, tensors = reader.read(models / "tiny-moe" / "gguf" / "tiny-moe-Q4_0.gguf")
    arch = keys["general.architecture"]
    used, count = keys[f"{arch}.expert_used_count"], keys[f"{arch}.expert_count"]
    experts = sum(size for name, (_, _, size) in tensors.items() if "_exps." in name)
    assert experts and used < count
    all_used = reader.token_bytes({**keys, f"{arch}.expert_used_count": count}, tensors)
    assert all_used - reader.token_bytes(keys, tensors) == pytest.approx(experts * (count - used) / count, abs=len(tensors))


@pytest.mark.parametrize("keep", [0, 3, 11, 40, 700])
def test_a_damaged_head_is_refused(tmp_path, models, keep):
    reader = load("ggufread.py")
    path = tmp_path / "short.gguf"
    path.write_bytes((models / "tiny-gemma3" / "gguf" / "tiny-gemma3-Q4_0.gguf").read_bytes()[:keep])
    with pytest.raises(reader.FormatError, match="short.gguf"):
        reader.read(path)


@pytest.fixture
def small(monkeypatch):
    """make_model with few tokens and a small pool."""
    module = load("make_model.py")
    for name, value in (("VOCABULARY", 600), ("MERGES", 400), ("POOL_BYTES", 1 << 18)):
        monkeypatch.setattr(module, name, value)
    return module


@pytest.mark.parametrize("kind", ["q4_0", "q4_k_m", "q8_0", "bf16"])
@pytest.mark.parametrize("shape", ["e2b", "e4b", "12b", "26b-a4b", "270m"])
def test_a_model_of_random_weights_runs(culet, small, models, tmp_path, shape, kind):
    s = small.SHAPES[shape]
    s = dataclasses.replace(s, layers=s.period * 2, width=256, ffn=288, shared_ffn=s.shared_ffn and 512, shared=s.shared and s.period,
                            expert_ffn=s.experts and 32, experts=min(s.experts, 8), used=min(s.used, 2), per_layer=s.per_layer and 32)
    path = tmp_path / "model.gguf"
    tokenizer = models / "tiny-gemma3" / "gguf" / "tiny-gemma3-Q4_0.gguf" if shape == "270m" else None
    if tokenizer:
        small.VOCABULARY = load("ggufread.py").read(tokenizer)[0]["tokenizer.ggml.tokens"]
    small.write(s, kind, path, tokenizer, 1)
    done = culet("logits", "-m", path, "--ids", "2,5,9", "--out", tmp_path / "out.f32")
    assert done.code == 0, done.err
    logits = struct.unpack(f"<{small.VOCABULARY}f", (tmp_path / "out.f32").read_bytes())
    assert all(map(math.isfinite, logits)) and len(set(logits)) > small.VOCABULARY // 2 and max(map(abs, logits)) < 29


@pytest.mark.parametrize("kind", ["f16", "bf16", "q8_0"])
def test_a_sound_tower_of_random_weights_hears(culet, models, monkeypatch, tmp_path, kind):
    tower, path = load("make_tower.py"), tmp_path / "tower.gguf"
    for name, value in (("WIDTH", 64), ("FFN", 128), ("LAYERS", 2), ("HEADS", 4), ("OUT", 96), ("CHANNELS", (128, 8))):
        monkeypatch.setattr(tower, name, value)
    assert tower.main([kind, str(path), "--width", "64"]) == 0
    sound = models.parent / "sounds" / "chirp.wav"
    done = culet("run", "-m", models / "tiny-audio", "--mmproj", path, "--audio", sound, "-p", "x", "-n", 4, "--temp", "0", "--json")
    if done.code == 6 and "built without" in done.err:
        pytest.skip("built without libsndfile")
    assert done.code == 0, done.err
    assert json.loads(done.out)["prompt_ids"].count(1276) == 28


def tower_of_pictures(monkeypatch, path, kind, shape, width):
    tower = load("make_tower.py")
    monkeypatch.setattr(tower, "PICTURE", {"small": (64, 96, 2, 4, True, False), "large": (96, 128, 2, 4, False, True)})
    monkeypatch.setattr(tower, "UNIFIED_WIDTH", 96)
    monkeypatch.setattr(tower, "POSITIONS", {"small": 128, "large": 128, "unified": 128})
    assert tower.main([kind, str(path), "--tower", shape, "--width", str(width)]) == 0


@pytest.mark.parametrize("kind,shape", [("f32", "small"), ("q8_0", "small"), ("bf16", "large"), ("f16", "unified")])
def test_a_picture_tower_of_random_weights_sees(culet, models, monkeypatch, tmp_path, kind, shape):
    tower_of_pictures(monkeypatch, tmp_path / "tower.gguf", kind, shape, 64)
    picture = models.parent / "media" / "wide.png"
    args = ["run", "-m", models / "tiny-dense", "--mmproj", tmp_path / "tower.gguf", "--image", picture, "-p", "x", "-n", 4, "--temp", "0"]
    done = culet(*args, "--image-tokens", 70, "--json")
    if done.code == 6 and "built without" in done.err:
        pytest.skip("built without libpng")
    assert done.code == 0, done.err
    assert json.loads(done.out)["prompt_ids"].count(1275) == 60


def test_a_vision_file_of_another_width_is_refused(culet, models, monkeypatch, tmp_path):
    tower_of_pictures(monkeypatch, tmp_path / "tower.gguf", "f32", "small", 96)
    done = culet("run", "-m", models / "tiny-dense", "--mmproj", tmp_path / "tower.gguf", "-p", "x", "-n", 1)
    assert done.code == 3
    for word in ("tower.gguf", "tiny-dense", "96", "64"):
        assert word in done.err


def test_random_weights_are_the_same_again(small, tmp_path):
    s = dataclasses.replace(small.SHAPES["12b"], layers=1, width=256, ffn=256)
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        small.write(s, "q4_0", tmp_path / name, None, seed)
    a, b, c = ((tmp_path / name).read_bytes() for name in "abc")
    assert a == b != c and len(a) == len(c)


def test_sizes_of_published_models(small, monkeypatch):
    monkeypatch.undo()
    def token_bytes(shape, kind):
        s = small.SHAPES[shape]
        keys = {"general.architecture": s.arch, f"{s.arch}.block_count": s.layers, f"{s.arch}.attention.shared_kv_layers": s.shared,
                f"{s.arch}.expert_count": s.experts, f"{s.arch}.expert_used_count": s.used}
        tensors = {name: (type_, dims, size) for name, dims, _, type_, size, _ in small.plan(s, kind)[0]}
        return round(load("ggufread.py").token_bytes(keys, tensors) / 1e6)
    assert [token_bytes("e4b", kind) for kind in ("q4_0", "q4_k_m", "q8_0", "bf16")] == [2827, 2973, 4962, 9290]
    assert token_bytes("e2b", "q4_0") == 1407


# ---- the other programs ----

def test_features_of_a_level():
    peer = load("build_peer")
    words = {"sse4_2", "avx", "avx2", "fma", "f16c", "bmi2", "avx_vnni", "avx512f", "avx512cd", "avx512vl", "avx512dq", "avx512bw",
             "avx512vbmi", "avx512_vnni", "amx_tile", "amx_int8"}
    every = dict(o[2:].split("=") for o in peer.feature_options("noamx", words))
    assert every["GGML_NATIVE"] == "OFF" and every["GGML_AVX512_VNNI"] == "ON" and every["GGML_AVX512_BF16"] == "OFF"
    assert {every[name] for name in peer.AMX} == {"OFF"}
    plain = dict(o[2:].split("=") for o in peer.feature_options("avx2", words))
    assert {name for name, value in plain.items() if value == "ON"} == {
        "GGML_SSE42", "GGML_AVX", "GGML_AVX2", "GGML_FMA", "GGML_F16C", "GGML_BMI2"}
    fewer = dict(o[2:].split("=") for o in peer.feature_options("noamx", words - {"avx512bw"}))
    assert fewer["GGML_AVX512"] == "OFF"


def test_the_peer_is_built_outside():
    done = script("build_peer", "--dir", BENCH)
    assert done.returncode == 2 and "inside the checkout" in done.stderr
    assert "unknown llama-x" in script("build_peer", "--tools", "llama-x").stderr


def test_a_build_that_dies_is_noticed(tmp_path, models):
    peer = load("build_peer")
    bench = tmp_path / "llama-bench"
    bench.write_text("#!/bin/sh\nkill -SEGV $$\n")
    bench.chmod(0o755)
    assert peer.crash_of(bench).startswith("SIGSEGV on tiny-")
    bench.write_text("#!/bin/sh\nexit 0\n")
    assert peer.crash_of(bench) is None


STAND_IN_CMAKE = """#!/bin/sh
while [ $# -gt 0 ]; do
    case "$1" in
        -B) folder=$2 ;;
        -DGGML_NATIVE=ON) native=1 ;;
        --build) mkdir -p "$2/bin" && mv "$2/bench" "$2/bin/llama-bench"; exit ;;
    esac
    shift
done
printf '#!/bin/sh\\n%s\\n' "${native:+kill -SEGV \\$\\$}" >"$folder/bench" && chmod +x "$folder/bench"
"""


def test_a_native_build_that_dies_is_built_again_without_amx(tmp_path, monkeypatch, capsys):
    peer = load("build_peer")
    cmake = tmp_path / "cmake"
    cmake.write_text(STAND_IN_CMAKE)
    cmake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    args = peer.arguments(["--dir", str(tmp_path / "peer")])
    bench = peer.build_checked(tmp_path, args.dir, "native", args)
    assert bench == args.dir / "build-noamx" / "bin" / "llama-bench"
    assert "the native build crashes (SIGSEGV on tiny-" in capsys.readouterr().err
    (args.dir / "build-noamx" / "bench").write_text("")
    peer.build_checked(tmp_path, args.dir, "native", args)  # it is not built again only to crash
    told = capsys.readouterr().err
    assert "using build-noamx" in told and "configure build-native" not in told


def test_without_a_compiler_it_says_so(tmp_path):
    done = script("build_peer", "--dir", tmp_path / "peer", env={"PATH": str(tmp_path)})
    assert done.returncode == 1 and "cmake: not found" in done.stderr and "apt-get install" in done.stderr


def test_the_best_setting_counts():
    ik = load("ik_bench.py")
    def rows(repack, *speeds):
        return [{"n_threads": 2, "n_depth": 0, "n_prompt": p, "n_gen": n, "repack": repack, "samples_ts": [s]}
                for (p, n), s in zip([(128, 0), (0, 16)], speeds)]
    best = ik.best_rows([rows(0, 10.0, 5.0), rows(1, 20.0, 4.0)])
    assert [(r["n_prompt"], r["repack"]) for r in best] == [(128, 1), (0, 0)]


def test_the_reason_of_a_failure_stands_before_the_trace():
    ik = load("ik_bench.py")
    assert ik.told(["loading", "a.cpp:1: GGML_ASSERT(S > 0) failed", "#0 in main"]) == ": a.cpp:1: GGML_ASSERT(S > 0) failed"
    assert ik.told(["killed"]) == ": killed" and ik.told([]) == ""


def test_the_binding_gets_a_file_that_is_there(tmp_path):
    done = script("ik_bench.py", "-m", tmp_path / "none.gguf")
    assert done.returncode == 1 and "none.gguf: no such file" in done.stderr


# ---- the plot ----

def draw(tmp_path, over, *named):
    files = []
    for name, rows in named:
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(rows))
        files.append(f"{name}={path}")
    done = script("plot", "--over", over, "--title", "A < B & C", *files)
    assert done.returncode == 0, done.stderr
    return ElementTree.fromstring(done.stdout)


def test_a_plot_over_depth(tmp_path):
    ours = grid_rows([512], [64], [0, 2048, 8192], 40.0)
    theirs = grid_rows([512], [64], [0, 2048], 20.0)
    svg = draw(tmp_path, "depth", ("culet", ours), ("llama.cpp", theirs))
    assert len(svg.findall(f"{SVG}circle")) == 10 and len(svg.findall(f"{SVG}polyline")) == 4
    texts = [t.text for t in svg.findall(f"{SVG}text")]
    assert texts[0] == "A < B & C" and texts.count("tokens per second") == 2 and texts.count("tokens before (depth)") == 2
    assert "culet, pp512" in texts and "llama.cpp, tg64" in texts and "8,000" in texts
    # Twice the speed stands twice as high above the axis.
    heights = {c.find(f"{SVG}title").text: float(c.get("cy")) for c in svg.findall(f"{SVG}circle")}
    axis = max(float(line.get("y1")) for line in svg.findall(f"{SVG}line") if line.get("stroke") == "#dddddd")
    assert axis - heights["0: 40.00 tok/s"] == pytest.approx(2 * (axis - heights["0: 20.00 tok/s"]), abs=0.3)


def test_a_plot_over_threads(tmp_path):
    rows = [{**row, "n_threads": t} for t in (1, 2) for row in grid_rows([128], [], [0], 10.0 * t)]
    svg = draw(tmp_path, "threads", ("culet", rows))
    assert len(svg.findall(f"{SVG}circle")) == 2
    texts = [t.text for t in svg.findall(f"{SVG}text")]
    assert "threads" in texts and "generation" not in texts


def test_nothing_to_draw(tmp_path):
    path = tmp_path / "empty.json"
    path.write_text("[]")
    assert script("plot", "--over", "depth", path).returncode == 1


@pytest.mark.parametrize("largest", [0.3, 1, 7, 99, 1234.5])
def test_ticks_reach_the_largest_value(largest):
    found = load("plot").ticks(largest)
    assert found[0] == 0 and found[-2] < largest <= found[-1] * (1 + 1e-9) and 2 <= len(found) <= 8
    assert all(math.isclose(b - a, found[1]) for a, b in zip(found, found[1:]))
