"""pack, rm, --pack-cache, ls: packed copies from outside."""
import os
import shutil

import pytest


@pytest.fixture
def world(models, tmp_path):
    """A model of our own, and an empty folder of culet's."""
    model = tmp_path / "m.gguf"
    shutil.copy(models / "tiny-e2b" / "gguf" / "tiny-e2b-Q4_0.gguf", model)
    return model, {"CULET_HOME": str(tmp_path / "home")}, tmp_path / "home" / "packed"


def logits(culet, model, out, env, *flags):
    done = culet("logits", "-m", model, "--ids", "2,5,9", "--out", out, *flags, env=env)
    assert done.code == 0, done.err
    return out.read_bytes(), done.err


def test_pack_use_list_remove(culet, world, tmp_path):
    model, env, folder = world
    plain, said = logits(culet, model, tmp_path / "a", env)
    assert "packed" not in said and not folder.exists()
    done = culet("pack", "-m", model, env=env)
    assert (done.code, done.out) == (0, b"") and "packed copy written" in done.err
    [copy] = os.listdir(folder)
    assert copy.endswith(".packed")
    again = culet("pack", "-m", model, "--json", env=env).json()
    assert again["written"] is False and again["path"] == str(folder / copy)
    used, said = logits(culet, model, tmp_path / "b", env)
    assert used == plain and f"packed copy {folder / copy}" in said
    quiet, said = logits(culet, model, tmp_path / "b", env, "-q")
    assert quiet == plain and said == ""
    [entry] = culet("ls", "--json", env=env).json()
    assert entry == {"name": copy, "path": str(folder / copy), "bytes": (folder / copy).stat().st_size, "format": "packed",
                     "model": str(model)}
    table = culet("ls", env=env).out.decode()
    assert copy in table and f"packed copy of {model}" in table
    assert culet("rm", copy, env=env).code == 0
    assert os.listdir(folder) == [] and culet("ls", "--json", env=env).json() == []


def test_rm_says_what_it_does_not_do(culet, world):
    model, env, folder = world
    assert culet("rm", env=env).code == 2
    assert culet("rm", "no.packed", env=env).code == 3
    assert culet("rm", "--packed", model, env=env).code == 3
    assert culet("pack", "-m", model, env=env).code == 0
    refused = culet("rm", model, env=env)
    assert refused.code == 6 and model.exists() and len(os.listdir(folder)) == 1
    assert culet("rm", "--packed", model, env=env).code == 0
    assert os.listdir(folder) == [] and model.exists()
    assert culet("pack", model, env=env).code == 0
    assert culet("rm", "--packed", env=env).code == 0
    assert os.listdir(folder) == []


def test_pack_cache(culet, world, tmp_path):
    model, env, folder = world
    plain, said = logits(culet, model, tmp_path / "a", env, "--pack-cache")
    assert "packed copy written" in said and len(os.listdir(folder)) == 1
    os.utime(model, (1, 1))
    stale, said = logits(culet, model, tmp_path / "b", env)
    assert stale == plain and "earlier state" in said
    damaged = folder / os.listdir(folder)[0]
    data = bytearray(damaged.read_bytes())
    data[-1] ^= 1
    os.utime(model, (1, 1))
    assert culet("pack", "-m", model, env=env).code == 0
    data = bytearray(damaged.read_bytes())
    data[-1] ^= 1
    damaged.write_bytes(data)
    got, said = logits(culet, model, tmp_path / "b", env)
    assert got == plain and "checksum" in said


def test_no_room(culet, world, tmp_path):
    model, env, _ = world
    env = {"CULET_HOME": "/proc/nowhere"}
    plain, said = logits(culet, model, tmp_path / "a", env, "--pack-cache")
    assert "no packed copy" in said and plain
    failed = culet("pack", "-m", model, env=env)
    assert failed.code == 1 and "culet: /proc/nowhere" in failed.err
