"""quantize and imatrix: files of every type, what stays and what changes, budgets, refusals that leave nothing."""
import os
import signal
import time

import numpy as np
import pytest
from gguffile import BLOCKS, GGUF

TYPES = ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q2_K_S", "Q3_K_S", "Q3_K_M", "Q3_K_L", "Q4_K_S", "Q4_K_M", "Q5_K_S",
         "Q5_K_M", "Q6_K", "IQ4_NL", "IQ4_XS", "F16", "BF16", "F32"]


@pytest.fixture(scope="module")
def source(tmp_path_factory, culet, models):
    """A model with rows of 64 and 96 numbers, as float32."""
    path = tmp_path_factory.mktemp("quantize") / "f32.gguf"
    assert culet("convert", "--outtype", "f32", models / "tiny-e2b", path).code == 0
    return path


@pytest.fixture(scope="module")
def importance(tmp_path_factory, culet, source):
    path = tmp_path_factory.mktemp("imatrix") / "im.gguf"
    text = "The quick brown fox jumps over the lazy dog. " * 40
    done = culet("imatrix", "-m", source, "-p", text, "-c", 64, "--sensitivity", "-o", path)
    assert done.code == 0, done.err
    return path


def decoded(culet, model, folder):
    """The matrices of a file as floats, and their types."""
    done = culet("quantize", model, folder / "decoded.gguf", "F32")
    assert done.code == 0, done.err
    kinds = {k: v[0] for k, v in GGUF(model).tensors.items()}
    return {k: np.frombuffer(v[2], "<f4").reshape(-1, v[1][0]).astype(np.float64)
            for k, v in GGUF(folder / "decoded.gguf").tensors.items() if len(v[1]) > 1}, kinds


def loss(culet, base, model, folder, weights=None):
    """What quantising lost: squared errors relative to the squares, summed over matrices; or weighted by an imatrix."""
    want, found, total = decoded(culet, base, folder)[0], decoded(culet, model, folder)[0], 0
    for name, w in want.items():
        squares = (w - found[name]) ** 2
        if weights is None:
            total += squares.sum() / (w ** 2).sum()
        elif name + ".sensitivity" in weights:
            sums, counts, sensitivity = (np.frombuffer(weights[name + end][2], "<f4") for end in (".in_sum2", ".counts", ".sensitivity"))
            total += sensitivity[0] * (squares * (sums / counts[0])).sum()
    return total


@pytest.mark.parametrize("kind", TYPES)
def test_every_type(culet, source, tmp_path, kind):
    out = tmp_path / "q.gguf"
    report = culet("quantize", "--json", source, out, kind).json()
    before, after = GGUF(source), GGUF(out)
    assert list(before.tensors) == list(after.tensors) and report["tensors"] == len(after.tensors)
    assert report["bytes"] == sum(len(t[2]) for t in after.tensors.values())
    for name, (t, dims, data) in after.tensors.items():
        assert dims == before.tensors[name][1] and dims[0] % BLOCKS[t][0] == 0
        if len(dims) == 1 or "norm" in name:
            assert (t, data) == (before.tensors[name][0], before.tensors[name][2])
    changed = {"general.file_type", "general.quantization_version"}
    assert {k: v for k, v in before.metas.items() if k not in changed} == {k: v for k, v in after.metas.items() if k not in changed}
    done = culet("logits", "-m", out, "--ids", "2,5,9", "--out", tmp_path / "l")
    assert done.code == 0 and np.isfinite(np.fromfile(tmp_path / "l", "<f4")).all()


def test_more_bits_lose_less(culet, source, tmp_path):
    losses = []
    for kind in ("Q4_0", "Q5_0", "Q8_0"):
        assert culet("quantize", "--tensor-type", f".={kind}", source, tmp_path / kind, kind).code == 0
        losses.append(loss(culet, source, tmp_path / kind, tmp_path))
    assert losses[0] > 3 * losses[1] > 100 * losses[2] > 0


def test_threads_and_levels_do_not_matter(culet, source, tmp_path):
    files = []
    for i, (threads, level) in enumerate(((1, ""), (3, ""), (2, "scalar"))):
        out = tmp_path / str(i)
        assert culet("quantize", "-t", threads, source, out, "Q4_0", env={"CULET_CPU": level}).code == 0
        files.append(out.read_bytes())
    assert files[0] == files[1] == files[2]


def test_overrides(culet, source, tmp_path):
    out = tmp_path / "q.gguf"
    done = culet("quantize", "--tensor-type", r"blk\.[01]\.attn_(q|k)\.weight=q8_0", "--tensor-type", "attn_q=F16", source, out, "Q4_0")
    assert done.code == 0, done.err
    kinds = {k: v[0] for k, v in GGUF(out).tensors.items()}
    assert kinds["blk.0.attn_q.weight"] == kinds["blk.1.attn_k.weight"] == "Q8_0"
    assert kinds["blk.2.attn_q.weight"] == "F16" and kinds["blk.2.attn_k.weight"] == "Q4_0"
    assert kinds["blk.0.attn_q_norm.weight"] == "F32"


def test_a_folder_is_converted_first(culet, models, source, tmp_path):
    for model, out in ((models / "tiny-e2b", "a"), (source, "b")):
        assert culet("quantize", model, tmp_path / out, "Q8_0").code == 0
    a, b = GGUF(tmp_path / "a"), GGUF(tmp_path / "b")
    assert a.tensors.keys() == b.tensors.keys() and a.metas.keys() == b.metas.keys()
    assert all(v == b.tensors[k] for k, v in a.tensors.items() if v[0] == "Q8_0")


def test_an_earlier_quantisation_is_found_again(culet, models, tmp_path):
    """llama.cpp's own Q4_0 file, decoded and quantised again, has the same tensors."""
    theirs = models / "tiny-e2b" / "gguf" / "tiny-e2b-Q4_0.gguf"
    assert culet("quantize", theirs, tmp_path / "f32.gguf", "F32").code == 0
    assert culet("quantize", tmp_path / "f32.gguf", tmp_path / "again.gguf", "Q4_0").code == 0
    a, b = GGUF(theirs).tensors, GGUF(tmp_path / "again.gguf").tensors
    matrices = [n for n in a if a[n][0] == "Q4_0"]
    assert len(matrices) > 20 and sum(a[n][2] == b[n][2] for n in matrices) >= 0.95 * len(matrices)


def test_importance(culet, source, importance, tmp_path):
    entries = GGUF(importance).tensors
    name = "blk.0.attn_q.weight"
    cols = GGUF(source).tensors[name][1][0]
    sums, counts = (np.frombuffer(entries[name + end][2], "<f4") for end in (".in_sum2", ".counts"))
    assert sums.shape == (cols,) and (sums > 0).all() and counts[0] > 300
    assert entries[name + ".sensitivity"][1] == [1]
    assert "token_embd.weight.in_sum2" in entries
    plain, weighted = tmp_path / "plain", tmp_path / "weighted"
    for out, flags in ((plain, []), (weighted, ["--imatrix", importance])):
        assert culet("quantize", *flags, source, out, "Q4_1").code == 0
    a, b = (loss(culet, source, out, tmp_path, entries) for out in (weighted, plain))
    assert a < b
    keys = GGUF(weighted).metas.keys() - GGUF(plain).metas.keys()
    assert "quantize.imatrix.entries_count" in keys


def test_both_formats_of_importance_say_the_same(culet, source, tmp_path):
    for file in ("im.gguf", "im.dat"):
        assert culet("imatrix", "-m", source, "-p", "one two three four five " * 20, "-c", 32, "-o", tmp_path / file).code == 0
        assert culet("quantize", "--imatrix", tmp_path / file, source, tmp_path / (file + ".q"), "Q5_1").code == 0
    a, b = GGUF(tmp_path / "im.gguf.q").tensors, GGUF(tmp_path / "im.dat.q").tensors
    assert sum(a[n][2] == b[n][2] for n in a) > 0.9 * len(a)
    assert (tmp_path / "im.dat").read_bytes()[:4] != b"GGUF"


def test_auto_keeps_to_its_budget_and_beats_the_mix_of_that_size(culet, source, importance, tmp_path):
    mix, own = tmp_path / "mix", tmp_path / "own"
    assert culet("quantize", "--imatrix", importance, source, mix, "Q4_K_M").code == 0
    size = mix.stat().st_size
    done = culet("quantize", "--imatrix", importance, source, own, f"auto:{size}")
    assert done.code == 0, done.err
    assert 0.97 * size < own.stat().st_size <= size
    weights = GGUF(importance).tensors
    assert loss(culet, source, own, tmp_path, weights) < loss(culet, source, mix, tmp_path, weights)
    refused = culet("quantize", source, tmp_path / "small", "auto:1k")
    assert refused.code == 2 and "at least" in refused.err and not (tmp_path / "small").exists()


def test_refusals_leave_nothing(culet, source, models, tmp_path):
    out = tmp_path / "q.gguf"
    damaged = tmp_path / "damaged.gguf"
    damaged.write_bytes(source.read_bytes()[:-1000])
    other = tmp_path / "other.gguf"
    assert culet("imatrix", "-m", models / "tiny-moe", "-p", "x y z", "-o", other).code == 0
    for args, code in (((source, out), 2), ((source, out, "Q7_0"), 2), ((source, out, "auto:x"), 2), ((source, source, "Q8_0"), 2),
                       ((tmp_path / "none", out, "Q8_0"), 3), ((damaged, out, "Q8_0"), 3),
                       (("--imatrix", source, source, out, "Q8_0"), 3), (("--imatrix", tmp_path / "none", source, out, "Q8_0"), 3),
                       (("--imatrix", other, source, out, "Q8_0"), 3),
                       (("--tensor-type", "attn", source, out, "Q8_0"), 2), (("--tensor-type", "(=Q8_0", source, out, "Q8_0"), 2),
                       (("--tensor-type", "a=Q9", source, out, "Q8_0"), 2), ((source, tmp_path / "no" / "q", "Q8_0"), 1)):
        done = culet("quantize", *args)
        assert done.code == code, (args, done.err)
        assert done.err.startswith("culet: ") and done.out == b""
    before = source.read_bytes()
    assert culet("imatrix", "-m", source, "-p", "x").code == 2
    assert culet("imatrix", "-m", source, "-p", "", "-o", out).code != 0
    assert sorted(os.listdir(tmp_path)) == ["damaged.gguf", "other.gguf"] and source.read_bytes() == before


def test_numbers_that_are_none_are_refused(culet, source, tmp_path):
    data = bytearray(source.read_bytes())
    middle = len(data) // 2
    data[middle:middle + 65536] = b"\xff" * 65536  # far more than lies between two matrices
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(data)
    done = culet("quantize", broken, tmp_path / "q.gguf", "Q8_0")
    assert done.code == 3 and "not finite" in done.err
    assert os.listdir(tmp_path) == ["broken.gguf"]


@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_run_leaves_all_or_nothing(culet, spawn, source, tmp_path, sig):
    """The signal may also come when the work is done: then the file is whole."""
    whole, out = tmp_path / "whole.gguf", tmp_path / "q.gguf"
    assert culet("quantize", source, whole, "IQ4_XS").code == 0
    for pause in (0.0, 0.005, 0.01, 0.03):
        process = spawn("quantize", "-t", 1, source, out, "IQ4_XS")
        time.sleep(pause)
        process.send_signal(sig)
        process.communicate()
        if out.exists():
            assert out.read_bytes() == whole.read_bytes()
            out.unlink()
        assert os.listdir(tmp_path) == ["whole.gguf"]
