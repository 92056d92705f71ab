#!/usr/bin/env python3
"""Writes a vision file (mmproj) with the sound tower of E2B and E4B and random weights, so that its speed can be measured.

    bench/make_tower.py TYPE FILE.gguf [--width N] [--seed N]

TYPE: f16, bf16, q8_0: of the matrices; all else stays float32. --width: of the text model that the soft tokens are for, 2560 unless
given (64 for the tiny models of the tests, through which `culet run --audio` measures it). What such a tower hears is noise.
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


def all_tensors(text_width):
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


def entries(text_width):
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


def floats(rnd, shape, value):
    n = math.prod(shape)
    fan = math.prod(shape[:3]) if len(shape) == 4 else shape[0]
    spread = {"norm": (0.9, 1.1), "random": (-1.7 / math.sqrt(fan), 1.7 / math.sqrt(fan))}.get(value, (value, value))
    return array.array("f", (rnd.uniform(*spread) for _ in range(n))).tobytes()


def half_floats(rnd, shape):
    std = 1 / math.sqrt(shape[0])
    pool = struct.pack("<65536e", *(rnd.uniform(-1.7 * std, 1.7 * std) for _ in range(65536)))
    size = 2 * math.prod(shape)
    return b"".join(pool[(k := 2 * rnd.randrange(32768)):k + 65536] for _ in range(size // 65536 + 1))[:size]


def contents(weights, kind, shape, value):
    if value is not None:
        return "F32", floats(weights.rnd, shape, value)
    if kind == "F16":
        return kind, half_floats(weights.rnd, shape)
    out = Bytes()
    weights.write(out, kind, shape, math.prod(shape) // TYPE_IDS[kind][1] * TYPE_IDS[kind][2])
    return kind, b"".join(out)


class Bytes(list):
    """What Weights writes to."""
    write = list.append


def write(kind, path, text_width, seed):
    weights, rows, offset = make_model.Weights(seed), [], 0
    for name, shape, value in all_tensors(text_width):
        type_, data = contents(weights, kind, shape, value)
        rows.append((name, shape, type_, data, offset))
        offset += -(-len(data) // ALIGN) * ALIGN
    head = list(entries(text_width))
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
    parser.add_argument("type", choices=("f16", "bf16", "q8_0"))
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("--width", type=int, default=2560)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args(argv)
    part = args.file.with_name(args.file.name + ".part")
    write(args.type.upper(), part, args.width, args.seed)
    os.replace(part, args.file)
    print(f"{args.file}: {args.file.stat().st_size / 1e6:.0f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
