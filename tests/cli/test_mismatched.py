"""Files whose description and tensors disagree: refused with every difference named."""
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
