#!/usr/bin/env python3
"""Writes a vision file (mmproj) with a tower of full size and random weights, so that its speed can be measured.

    bench/make_tower.py TYPE FILE.gguf [--tower sound|small|large|unified] [--width N] [--seed N]

TYPE: f32, f16, bf16, q8_0: of the matrices; all else stays float32. --tower: the sound tower of E2B and E4B, the picture tower of
E2B and E4B, of the 26B and 31B, or of the 12B. --width: of the text model that the soft tokens are for, 2560 unless given (64 for
the tiny models of the tests, through which `culet run` measures it). What such a tower hears and sees is noise.
"""
import argparse
import array
import math
import os
import pathlib
import struct
import sys

import make_model
from make_model import ALIGN, TYPE_IDS, entry, packed_string

WIDTH, FFN, LAYERS, HEADS, OUT, CHANNELS, KERNEL = 1024, 4096, 12, 8, 1536, (128, 32), 5
BOUNDS = {"input_min": -8.0, "input_max": 8.0, "output_min": -16.0, "output_max": 16.0}


def clipped(name, cols, rows):
    yield f"{name}.weight", [cols, rows], None
    for which, value in BOUNDS.items():
        yield f"{name}.{which}", [1], value


def layer_tensors(i):
    """(name, shape, value): a number is the value of all, "norm" one near 1, None a matrix of the file's type."""
    b = f"a.blk.{i}."
    for end in ("", "_1"):
        yield f"{b}ffn_norm{end}.weight", [WIDTH], "norm"
        yield f"{b}ffn_post_norm{end}.weight", [WIDTH], "norm"
        yield from clipped(f"{b}ffn_up{end}", WIDTH, FFN)
        yield from clipped(f"{b}ffn_down{end}", FFN, WIDTH)
    for name in ("attn_pre_norm", "attn_post_norm", "ln2", "conv_norm", "norm_conv"):
        yield f"{b}{name}.weight", [WIDTH], "norm"
    for name in ("attn_q", "attn_k", "attn_v", "attn_out", "conv_pw2"):
        yield from clipped(b + name, WIDTH, WIDTH)
    yield from clipped(b + "conv_pw1", WIDTH, 2 * WIDTH)
    yield f"{b}attn_k_rel.weight", [WIDTH, WIDTH], None
    yield f"{b}per_dim_scale.weight", [WIDTH // HEADS], "norm"
    yield f"{b}conv_dw.weight", [KERNEL, WIDTH], "random"


def sound_tensors(text_width):
    inside = 1
    for i, channels in enumerate(CHANNELS):
        yield f"a.conv1d.{i}.weight", [3, 3, inside, channels], "random"
        yield f"a.conv1d.{i}.norm.weight", [channels], "norm"
        inside = channels
    yield "a.input_projection.weight", [32 * CHANNELS[1], WIDTH], None
    for i in range(LAYERS):
        yield from layer_tensors(i)
    yield "a.pre_encode.out.weight", [WIDTH, OUT], None
    yield "a.pre_encode.out.bias", [OUT], 0.0
    yield "mm.a.input_projection.weight", [OUT, text_width], None


# Picture towers: width, feed-forward width, layers, heads, bounds of matrices, standardisation.
PICTURE = {"small": (768, 3072, 16, 12, True, False), "large": (1152, 4304, 27, 16, False, True)}
MERGED, UNIFIED_WIDTH, POSITIONS = 48, 3840, {"small": 10240, "large": 10240, "unified": 1120}


def picture_tensors(tower, text_width):
    width, ffn, layers, heads, bounded, standardised = PICTURE[tower]
    matrix = clipped if bounded else lambda name, cols, rows: [(f"{name}.weight", [cols, rows], None)]
    yield "v.patch_embd.weight", [16, 16, 3, width], "random"
    yield "v.position_embd.weight", [width, POSITIONS[tower], 2], "table"
    for i in range(layers):
        b = f"v.blk.{i}."
        for name in ("ln1", "attn_post_norm", "ln2", "ffn_post_norm"):
            yield f"{b}{name}.weight", [width], "norm"
        for name in ("attn_q_norm", "attn_k_norm"):
            yield f"{b}{name}.weight", [width // heads], "norm"
        for name in ("attn_q", "attn_k", "attn_v", "attn_out"):
            yield from matrix(b + name, width, width)
        yield from matrix(b + "ffn_gate", width, ffn)
        yield from matrix(b + "ffn_up", width, ffn)
        yield from matrix(b + "ffn_down", ffn, width)
    if standardised:
        yield "v.std_bias", [width], "random"
        yield "v.std_scale", [width], "norm"
    yield "mm.input_projection.weight", [width, text_width], None


def unified_tensors(text_width):
    pixels = MERGED * MERGED * 3
    yield "v.patch_embd.weight", [pixels, UNIFIED_WIDTH], None
    yield "v.patch_embd.bias", [UNIFIED_WIDTH], 0.0
    yield "v.position_embd.weight", [UNIFIED_WIDTH, POSITIONS["unified"], 2], "table"
    for i, n in enumerate((pixels, UNIFIED_WIDTH, UNIFIED_WIDTH)):
        yield f"v.patch_norm.{i + 1}.weight", [n], "norm"
        yield f"v.patch_norm.{i + 1}.bias", [n], 0.0
    yield "mm.input_projection.weight", [UNIFIED_WIDTH, text_width], None


def picture_entries(tower, text_width):
    width, ffn, layers, heads, *_ = PICTURE.get(tower, (UNIFIED_WIDTH, 0, 0, 0))
    yield entry("general.architecture", "str", "clip")
    yield entry("general.type", "str", "mmproj")
    yield entry("general.name", "str", "Gemma 4 picture tower shape, random weights")
    yield entry("clip.has_vision_encoder", "bool", True)
    yield entry("clip.has_audio_encoder", "bool", False)
    yield entry("clip.vision.projector_type", "str", "gemma4uv" if tower == "unified" else "gemma4v")
    for name, value in {"projection_dim": text_width, "image_size": 224, "patch_size": 16, "embedding_length": width,
                        "feed_forward_length": ffn, "block_count": layers, "attention.head_count": heads}.items():
        yield entry("clip.vision." + name, "u32", value)
    yield entry("clip.vision.attention.layer_norm_epsilon", "f32", 1e-6)
    for name, value in (("image_mean", 0.0), ("image_std", 1.0)):
        yield packed_string("clip.vision." + name) + struct.pack("<IIQ3f", 9, 6, 3, value, value, value)


def sound_entries(text_width):
    yield entry("general.architecture", "str", "clip")
    yield entry("general.type", "str", "mmproj")
    yield entry("general.name", "str", "Gemma 4 sound tower shape, random weights")
    yield entry("clip.has_vision_encoder", "bool", False)
    yield entry("clip.has_audio_encoder", "bool", True)
    yield entry("clip.audio.projector_type", "str", "gemma4a")
    for name, value in {"projection_dim": text_width, "embedding_length": WIDTH, "feed_forward_length": FFN, "block_count": LAYERS,
                        "attention.head_count": HEADS, "num_mel_bins": 128}.items():
        yield entry("clip.audio." + name, "u32", value)
    yield entry("clip.audio.attention.layer_norm_epsilon", "f32", 1e-6)


def parts(tower, text_width):
    """Metadata and tensors of a vision file."""
    if tower == "sound":
        return sound_entries(text_width), sound_tensors(text_width)
    tensors = unified_tensors(text_width) if tower == "unified" else picture_tensors(tower, text_width)
    return picture_entries(tower, text_width), tensors


def repeated(rnd, form, shape, spread):
    """Numbers from a pool: quick for large tensors."""
    item, pool = struct.calcsize("<" + form), 65536
    numbers = struct.pack(f"<{pool}{form}", *(rnd.uniform(-spread, spread) for _ in range(pool)))
    size, half = item * math.prod(shape), pool // 2
    return b"".join(numbers[(k := item * rnd.randrange(half)):k + item * half] for _ in range(size // (item * half) + 1))[:size]


def floats(rnd, shape, value):
    if value == "table":
        return repeated(rnd, "f", shape, 0.5)
    n = math.prod(shape)
    fan = math.prod(shape[:3]) if len(shape) == 4 else shape[0]
    spread = {"norm": (0.9, 1.1), "random": (-1.7 / math.sqrt(fan), 1.7 / math.sqrt(fan))}.get(value, (value, value))
    return array.array("f", (rnd.uniform(*spread) for _ in range(n))).tobytes()


def contents(weights, kind, shape, value):
    if value is not None:
        return "F32", floats(weights.rnd, shape, value)
    if kind in ("F16", "F32"):
        return kind, repeated(weights.rnd, "e" if kind == "F16" else "f", shape, 1.7 / math.sqrt(shape[0]))
    out = Bytes()
    weights.write(out, kind, shape, math.prod(shape) // TYPE_IDS[kind][1] * TYPE_IDS[kind][2])
    return kind, b"".join(out)


class Bytes(list):
    """What Weights writes to."""
    write = list.append


def write(kind, path, tower, text_width, seed):
    weights, rows, offset = make_model.Weights(seed), [], 0
    metadata, tensors = parts(tower, text_width)
    for name, shape, value in tensors:
        type_, data = contents(weights, kind, shape, value)
        rows.append((name, shape, type_, data, offset))
        offset += -(-len(data) // ALIGN) * ALIGN
    head = list(metadata)
    with open(path, "wb") as out:
        out.write(b"GGUF" + struct.pack("<IQQ", 3, len(rows), len(head)))
        out.writelines(head)
        for name, shape, type_, _, at in rows:
            out.write(packed_string(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, TYPE_IDS[type_][0], at))
        out.write(bytes(-out.tell() % ALIGN))
        for *_, data, _ in rows:
            out.write(data + bytes(-len(data) % ALIGN))


def main(argv):
    parser = argparse.ArgumentParser(prog="make_tower.py", description=__doc__.splitlines()[0])
    parser.add_argument("type", choices=("f32", "f16", "bf16", "q8_0"))
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("--tower", choices=("sound", "small", "large", "unified"), default="sound")
    parser.add_argument("--width", type=int, default=2560)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args(argv)
    part = args.file.with_name(args.file.name + ".part")
    write(args.type.upper(), part, args.tower, args.width, args.seed)
    os.replace(part, args.file)
    print(f"{args.file}: {args.file.stat().st_size / 1e6:.0f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
