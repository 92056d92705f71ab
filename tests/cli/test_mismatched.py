"""Files whose description and tensors disagree: refused with every difference named."""
import json
import shutil
import struct

import pytest

GGUF = "tiny-dense/gguf/tiny-dense-Q4_0.gguf"


@pytest.fixture
def refused(culet, models, tmp_path):
    """Opens a tiny GGUF with some bytes replaced by as many others; returns the refusal."""
    def open_edited(*edits, code=3):
        data = (models / GGUF).read_bytes()
        for old, new in edits:
            assert len(old) == len(new) and old in data
            data = data.replace(old, new, 1)
        (tmp_path / "m.gguf").write_bytes(data)
        r = culet("run", "-m", tmp_path / "m.gguf", "--raw", "-p", "a", "-n", 1)
        assert (r.code, r.out) == (code, b"") and r.err.startswith("culet: "), r.err
        return r.err.splitlines()[0]
    return open_edited


def number(key, old, new):
    head = struct.pack("<Q", len(key)) + key.encode() + struct.pack("<I", 4)
    return head + struct.pack("<I", old), head + struct.pack("<I", new)


def test_each_missing_tensor_by_name(refused):
    text = refused((b"blk.1.ffn_up.weight", b"blk.1.ffn_uq.weight"), (b"blk.2.ffn_up.weight", b"blk.2.ffn_uq.weight"),
                   (b"blk.4.attn_q.weight", b"blk.4.attn_z.weight"), (b"output_norm.weight", b"output_morn.weight"))
    missing, extra = text.split("extra tensors: ")
    for name in ("blk.1.ffn_up.weight", "blk.2.ffn_up.weight", "blk.4.attn_q.weight", "output_norm.weight"):
        assert name in missing
    for name in ("blk.1.ffn_uq.weight", "blk.2.ffn_uq.weight", "blk.4.attn_z.weight", "output_morn.weight"):
        assert name in extra


def test_a_wrong_shape_is_told_once(refused):
    assert refused(number("gemma4.embedding_length", 64, 65)).count("token_embd.weight has shape") == 1


@pytest.mark.parametrize("layers", [6, 7, 1025, 0xFFFFFFFF])
def test_absurd_shared_layers(refused, layers):
    assert str(layers) in refused(number("gemma4.attention.shared_kv_layers", 0, layers))


def test_value_length_names_both(refused):
    text = refused(number("gemma4.attention.value_length", 32, 64))
    assert "gemma4.attention.value_length is 64, expected 32" in text


def test_scaled_positions_are_not_gemma4(refused):
    """The entry takes the place of general.name and general.size_label, which hold as many bytes as it needs."""
    old = b"".join(struct.pack("<Q", len(k)) + k + struct.pack("<IQ", 8, len(v)) + v
                   for k, v in ((b"general.name", b"Tiny Dense"), (b"general.size_label", b"428K")))
    def pair(key, value):
        return struct.pack("<Q", len(key)) + key + struct.pack("<IQ", 8, len(value)) + value
    scaling = pair(b"gemma4.rope.scaling.type", b"yarn")
    filler = pair(b"general.nothing", b"x" * (len(old) - len(scaling) - len(pair(b"general.nothing", b""))))
    assert 'gemma4.rope.scaling.type is "yarn"' in refused((old, scaling + filler), code=6)


def test_weights_that_are_no_numbers(culet, models, tmp_path):
    """One clear line, not <pad> without end."""
    source, name = models / "tiny-dense", "model.language_model.norm.weight"
    for file in ("config.json", "tokenizer.json"):
        shutil.copy(source / file, tmp_path)
    data = bytearray((source / "model.safetensors").read_bytes())
    header = 8 + struct.unpack_from("<Q", data)[0]
    begin, end = json.loads(data[8:header])[name]["data_offsets"]
    data[header + begin:header + end] = struct.pack("<f", float("nan")) * ((end - begin) // 4)
    (tmp_path / "model.safetensors").write_bytes(data)
    for sampling in (["--temp", 0], ["-s", 1], ["-s", 1, "--top-k", 0, "--top-p", 1]):
        r = culet("run", "-m", tmp_path, "--raw", "-p", "a", "-n", 3, *sampling)
        assert (r.code, r.out) == (1, b"") and "logits at position 2 are not numbers" in r.err, r.err


def test_gemma3_form_in_a_vocabulary_without_its_markers(culet, models, tmp_path):
    """The text of section 5.9 needs no ids; with --ids it is refused."""
    for file in ("config.json", "generation_config.json", "tokenizer.json", "model.safetensors"):
        shutil.copy(models / "tiny-gemma3" / file, tmp_path)
    request = {"messages": [{"role": "system", "content": "S"}, {"role": "user", "content": " Hi "}]}
    (tmp_path / "r.json").write_text(json.dumps(request))
    r = culet("render", "-m", tmp_path, tmp_path / "r.json")
    assert r.out == b"<bos><start_of_turn>user\nS\n\nHi<end_of_turn>\n<start_of_turn>model\n", r.err
    r = culet("render", "-m", tmp_path, tmp_path / "r.json", "--ids")
    assert r.code == 6 and "<start_of_turn>" in r.err
