"""convert: folders become the files that llama.cpp's converter makes of them, byte by byte where it matters."""
import json
import os
import shutil

import pytest
from gguffile import GGUF, digest, digests

# Guessed from the folder's name by rules that know many models' names; nothing reads them.
GUESSED = {"general.finetune", "general.basename"}


@pytest.fixture(scope="session")
def expected(golden):
    """Digests of llama.cpp's files."""
    return golden("convert.json")


def folder_of(models, tmp_path, name):
    """A model's folder; the drafter's tokenizer is that of every tiny model and stands only once in the repository."""
    if (models / name / "tokenizer.json").exists():
        return models / name
    folder = tmp_path / name
    shutil.copytree(models / name, folder)
    for file in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        shutil.copy(models / "tiny-e2b" / file, folder)
    return folder


def outputs():
    names = ["tiny-e2b", "tiny-dense", "tiny-moe", "tiny-unified", "tiny-vision", "tiny-audio", "tiny-gemma3",
             "tiny-assistant-ordered"]
    return [f"{n}-bf16.gguf" for n in names] + ["tiny-dense-f32.gguf"] + [
        f"{n}-mmproj-f32.gguf" for n in ("tiny-vision", "tiny-audio", "tiny-unified", "tiny-dense")]


@pytest.mark.parametrize("name", outputs())
def test_the_converters_files(culet, models, tmp_path, expected, name):
    want = expected[name]
    out = tmp_path / name
    done = culet("convert", *want["flags"], folder_of(models, tmp_path, want["model"]), out)
    assert done.code == 0 and done.out == b"", done.err
    found = digests(GGUF(out))
    assert {k: v for k, v in found["tensors"].items() if k in want["globals"]} == want["globals"]
    assert len(found["tensors"]) == want["count"]
    assert digest(json.dumps(sorted(found["tensors"].items())).encode()) == want["tensors"]
    assert found["metas"] == {k: v for k, v in want["metas"].items() if k not in GUESSED}


def test_a_converted_model_computes_the_same(culet, models, tmp_path):
    out = tmp_path / "m.gguf"
    assert culet("convert", models / "tiny-moe", out).code == 0
    for model, file in ((models / "tiny-moe", "a"), (out, "b")):
        assert culet("logits", "-m", model, "--ids", "2,5,9,700", "--out", tmp_path / file).code == 0
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_other_types(culet, models, tmp_path):
    out = tmp_path / "m.gguf"
    report = culet("convert", "--json", "--outtype", "q8_0", models / "tiny-e2b", out).json()
    tensors = GGUF(out).tensors
    assert report["tensors"] == len(tensors) and report["path"] == str(out)
    assert tensors["blk.0.attn_q.weight"][0] == "Q8_0" and tensors["blk.0.attn_norm.weight"][0] == "F32"
    assert report["bytes"] == sum(len(t[2]) for t in tensors.values())
    assert culet("convert", "--outtype", "f16", models / "tiny-e2b", out).code == 0  # in place of the file that is there
    assert GGUF(out).tensors["token_embd.weight"][0] == "F16"


def test_refusals_leave_nothing(culet, models, tmp_path):
    out = tmp_path / "m.gguf"
    broken = tmp_path / "broken"
    shutil.copytree(models / "tiny-e2b", broken)
    os.truncate(broken / "model.safetensors", 5000)
    lacking = tmp_path / "lacking"
    shutil.copytree(models / "tiny-gemma3", lacking)
    (lacking / "tokenizer.model").unlink()
    for args, code in (((models / "tiny-e2b",), 2), ((models / "tiny-e2b", out, "more"), 2), ((tmp_path / "none", out), 3),
                       ((models / "tiny-e2b" / "gguf" / "tiny-e2b-Q4_0.gguf", out), 2), ((broken, out), 3), ((lacking, out), 3),
                       (("--outtype", "q4_0", models / "tiny-e2b", out), 2), (("--mmproj", models / "tiny-gemma3", out), 6),
                       ((models / "tiny-e2b", tmp_path / "none" / "m.gguf"), 1), ((models / "tiny-e2b", tmp_path), 2)):
        done = culet("convert", *args)
        assert done.code == code, (args, done.err)
        assert done.err.startswith("culet: ") and done.out == b""
    assert sorted(os.listdir(tmp_path)) == ["broken", "lacking"]
