#!/usr/bin/env python3
"""Writes the fixtures of tests/quant next to itself. Needs numpy and gguf (PyPI), whose conversions are the reference.

decode_<TYPE>.bin: the bytes of 2048 numbers in random blocks, then the 2048 float32 they stand for.
encode_<TYPE>.bin: 2048 float32, then the bytes they become."""
import pathlib

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType as Type
from gguf.quants import dequantize, quantize

HERE = pathlib.Path(__file__).parent
COUNT = 2048
# Where the half floats of a block are; everything else in a block may hold any bits.
HALVES = {"Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q2_K": [80, 82], "Q3_K": [108],
          "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208], "IQ4_NL": [0], "IQ4_XS": [0]}


def random_blocks(rng, name):
    length, size = GGML_QUANT_SIZES[Type[name]]
    blocks = rng.integers(0, 256, (COUNT // length, size), dtype=np.uint8)
    for place in HALVES.get(name, []):
        half = (rng.standard_normal(len(blocks)) * 0.02).astype(np.float16)
        half[0] = -6e-8  # subnormal
        if len(half) > 8:
            half[8] = 0
        blocks[:, place:place + 2] = half.view(np.uint8).reshape(-1, 2)
    if name in ("F16", "BF16"):
        blocks = (rng.standard_normal(COUNT) * 2).astype(np.float16 if name == "F16" else np.float32)
        blocks = blocks.view(np.uint8) if name == "F16" else quantize(blocks, Type.BF16)
    return blocks.reshape(1, -1)


def random_floats(rng):
    x = (rng.standard_normal(COUNT) * np.exp(rng.uniform(-20, 8, COUNT))).astype(np.float32)
    x[:32] = 0
    x[32:64] = np.arange(32, dtype=np.float32) - 16
    x[64:96] = 0.5 * (np.arange(32, dtype=np.float32) - 8)
    return x


def main():
    rng = np.random.default_rng(4)
    for name in list(HALVES) + ["F16", "BF16"]:
        blocks = random_blocks(rng, name)
        numbers = dequantize(blocks, Type[name]).astype(np.float32)
        assert numbers.size == COUNT
        (HERE / f"decode_{name}.bin").write_bytes(blocks.tobytes() + numbers.tobytes())
    for name in ("F16", "BF16", "Q4_0", "Q8_0"):
        x = random_floats(rng)
        if name in ("F16", "BF16"):  # every exponent, and the ends of the range; blocks of 32 have no use for them
            x[96:1024] = rng.integers(0, 2**32, 928, dtype=np.uint32).view(np.float32)
            x[np.isnan(x)] = np.inf
            x[1024:1030] = [65504, 65519.99, 65520, -6e-8, 2.9802322e-8, 2.9802326e-8]
        with np.errstate(over="ignore"):
            data = quantize(x.reshape(1, -1), Type[name])
        (HERE / f"encode_{name}.bin").write_bytes(x.tobytes() + data.tobytes())


main()
