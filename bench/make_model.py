#!/usr/bin/env python3
"""Writes a GGUF file of a published Gemma's shape and random weights, so that its speed can be measured without the real file.

    bench/make_model.py SHAPE TYPE FILE.gguf [--layers N] [--tokenizer FILE.gguf] [--seed N]

SHAPE: e2b, e4b, 12b, 26b-a4b, 270m. TYPE: q4_0, q4_k_m, q8_0, bf16. --layers keeps only the first N layers, for machines with less
memory (not of shapes whose last layers share keys). The vocabulary has the published size and number of merges and no sense;
--tokenizer takes another file's as it stands (270m needs it: the default model's will do). What such a model says is noise.

Weights are cut at random places from a pool of valid random blocks: nothing in it compresses into speed, and scales are such that
sums stay near one. A file that is there is replaced only when the new one is whole. Python's library alone; about 200 MB/s.
"""
import argparse
import array
import dataclasses
import itertools
import math
import os
import pathlib
import random
import struct
import sys

import ggufread

ALIGN = 32
POOL_BYTES = 8 << 20
VOCABULARY, MERGES = 262144, 514906
TYPE_IDS = {name: (number, values, size) for number, (name, values, size) in ggufread.TYPES.items()}
FILE_TYPES = {"q4_0": 2, "q4_k_m": 15, "q8_0": 7, "bf16": 32}
LETTERS = "▁etaoinshrdlcumwfgypbvkjxqz'.,-0"


@dataclasses.dataclass(frozen=True)
class Shape:
    """A published model; MODEL.md has the table."""
    name: str
    arch: str
    layers: int
    width: int
    ffn: int
    heads: int
    kv_sliding: int
    kv_full: int
    head_sliding: int
    head_full: int
    window: int
    period: int                 # every period-th layer is a full one
    shared: int = 0             # last layers, which share keys and values
    shared_ffn: int = 0         # their feed-forward width, if another
    per_layer: int = 0          # width of the per-layer embeddings
    raw_values: bool = False    # full layers have no value matrix
    experts: int = 0
    used: int = 0
    expert_ffn: int = 0

    def is_full(self, layer):
        return layer % self.period == self.period - 1

    def ffn_of(self, layer):
        return self.shared_ffn if self.shared_ffn and layer >= self.layers - self.shared else self.ffn


SHAPES = {
    "e2b": Shape("Gemma 4 E2B", "gemma4", 35, 1536, 6144, 8, 1, 1, 256, 512, 512, 5, 20, 12288, 256),
    "e4b": Shape("Gemma 4 E4B", "gemma4", 42, 2560, 10240, 8, 2, 2, 256, 512, 512, 6, 18, 0, 256),
    "12b": Shape("Gemma 4 12B", "gemma4", 48, 3840, 15360, 16, 8, 1, 256, 512, 1024, 6, raw_values=True),
    "26b-a4b": Shape("Gemma 4 26B-A4B", "gemma4", 30, 2816, 2112, 16, 8, 2, 256, 512, 1024, 6, raw_values=True, experts=128, used=8,
                     expert_ffn=704),
    "270m": Shape("Gemma 3 270M", "gemma3", 18, 640, 2048, 4, 1, 1, 256, 256, 512, 6),
}


# ---- which tensors ----

def layer_tensors(s, i):
    """(name, shape, role) of one layer. Roles: norm and router stay float32, the others have the file's type."""
    b, full = f"blk.{i}.", s.is_full(i)
    head, kv = (s.head_full, s.kv_full) if full else (s.head_sliding, s.kv_sliding)
    q, ffn = s.heads * head, s.ffn_of(i)
    yield b + "attn_norm.weight", [s.width], "norm"
    yield b + "attn_q.weight", [s.width, q], "matrix"
    yield b + "attn_q_norm.weight", [head], "norm"
    yield b + "attn_k.weight", [s.width, kv * head], "matrix"
    yield b + "attn_k_norm.weight", [head], "norm"
    if not (full and s.raw_values):
        yield b + "attn_v.weight", [s.width, kv * head], "value"
    yield b + "attn_output.weight", [q, s.width], "matrix"
    yield b + "post_attention_norm.weight", [s.width], "norm"
    yield b + "ffn_norm.weight", [s.width], "norm"
    yield b + "ffn_gate.weight", [s.width, ffn], "matrix"
    yield b + "ffn_up.weight", [s.width, ffn], "matrix"
    yield b + "ffn_down.weight", [ffn, s.width], "down"
    yield b + "post_ffw_norm.weight", [s.width], "norm"
    if s.experts:
        yield b + "ffn_gate_inp.weight", [s.width, s.experts], "router"
        yield b + "ffn_gate_inp.scale", [s.width], "norm"
        yield b + "ffn_gate_up_exps.weight", [s.width, 2 * s.expert_ffn, s.experts], "matrix"
        yield b + "ffn_down_exps.weight", [s.expert_ffn, s.width, s.experts], "down"
        yield b + "ffn_down_exps.scale", [s.experts], "norm"
        for name in ("post_ffw_norm_1", "post_ffw_norm_2", "pre_ffw_norm_2"):
            yield f"{b}{name}.weight", [s.width], "norm"
    if s.per_layer:
        yield b + "inp_gate.weight", [s.width, s.per_layer], "matrix"
        yield b + "proj.weight", [s.per_layer, s.width], "matrix"
        yield b + "post_norm.weight", [s.width], "norm"
    if s.arch == "gemma4":
        yield b + "layer_output_scale.weight", [1], "norm"


def all_tensors(s):
    yield "token_embd.weight", [s.width, VOCABULARY], "head"
    yield "output_norm.weight", [s.width], "norm"
    if s.arch == "gemma4" and any(map(s.is_full, range(s.layers))):  # what no layer uses, llama.cpp refuses
        yield "rope_freqs.weight", [s.head_full // 2], "rope"
    if s.per_layer:
        yield "per_layer_token_embd.weight", [s.per_layer * s.layers, VOCABULARY], "head"
        yield "per_layer_model_proj.weight", [s.width, s.per_layer * s.layers], "bf16"
        yield "per_layer_proj_norm.weight", [s.per_layer], "norm"
    for i in range(s.layers):
        yield from layer_tensors(s, i)


def more_bits(i, layers):
    """The layers whose value and down matrices a Q4_K_M file keeps in Q6_K."""
    return i < layers // 8 or i >= 7 * layers // 8 or (i - layers // 8) % 3 == 2


def type_of(s, kind, name, shape, role):
    """Type of one tensor in a file of this kind. Rows that no block of 256 divides get the types that llama.cpp gives them."""
    if role in ("norm", "router", "rope"):
        return "F32"
    if role == "bf16" or kind == "bf16":
        return "BF16"
    if kind == "q8_0":
        return "Q8_0"
    better = role == "head"
    if kind == "q4_k_m" and role in ("value", "down"):
        better = more_bits(int(name.split(".")[1]), s.layers)
    if kind == "q4_0" and not better:
        return "Q4_0"
    if shape[0] % 256:
        return "Q8_0" if better else "Q5_0"
    return "Q6_K" if better else "Q4_K"


# ---- weights ----

def half(value):
    return struct.pack("<e", value)


def block(name, rnd, std):
    """One random block of the type whose values spread by about `std`."""
    if name == "Q4_0":
        return half(std / 4.6) + rnd.randbytes(16)
    if name == "Q5_0":
        return half(std / 9.2) + rnd.randbytes(20)
    if name == "Q8_0":
        return half(std / 74) + rnd.randbytes(32)
    if name == "Q4_K":  # values d·sc·q − m·mn: the second takes the mean of the first off
        return half(std / 210) + half(std / 28) + rnd.randbytes(140)
    if name == "Q6_K":
        return rnd.randbytes(208) + half(std / 1370)
    raise ValueError(name)


def pool_of(name, row, rnd):
    """Valid blocks, one after the other, for rows of this length."""
    std = 1 / math.sqrt(row)
    if name == "BF16":
        values = array.array("f", (rnd.uniform(-1.7 * std, 1.7 * std) for _ in range(POOL_BYTES // 8)))
        raw = array.array("H", values.tobytes())
        return raw[1::2].tobytes()
    size = TYPE_IDS[name][2]
    return b"".join(block(name, rnd, std) for _ in range(POOL_BYTES // size))


class Weights:
    """Writes tensors; keeps a pool for each type and row length."""

    def __init__(self, seed):
        self.rnd, self.pools = random.Random(seed), {}

    def small(self, shape, role, s):
        """Float32 values: norms near one, the router's as those of a matrix, and no turn of the last three quarters of a head."""
        n = math.prod(shape)
        if role == "rope":
            return struct.pack(f"<{n}f", *[1.0] * (n // 4), *[1e30] * (n - n // 4))
        spread = (0.9, 1.1) if role == "norm" else (-1.7 / math.sqrt(s.width), 1.7 / math.sqrt(s.width))
        return struct.pack(f"<{n}f", *(self.rnd.uniform(*spread) for _ in range(n)))

    def write(self, out, name, shape, size):
        key = name, shape[0]
        if key not in self.pools:
            self.pools[key] = pool_of(name, shape[0], self.rnd)
        pool, unit = self.pools[key], TYPE_IDS[name][2]
        while size:
            start = self.rnd.randrange(len(pool) // unit) * unit
            piece = pool[start:start + size]
            out.write(piece)
            size -= len(piece)


# ---- the file's head ----

def packed_string(text):
    data = text.encode("utf-8")
    return struct.pack("<Q", len(data)) + data


def entry(name, kind, value):
    """One entry of the metadata; kind: u32, f32, bool, str, or a list of one of these: u32s, f32s, i32s, bools, strs."""
    codes = {"u32": (4, "I"), "i32": (5, "i"), "f32": (6, "f"), "bool": (7, "?")}
    head = packed_string(name)
    if kind == "str":
        return head + struct.pack("<I", ggufread.STRING) + packed_string(value)
    if kind == "strs":
        return head + struct.pack("<IIQ", ggufread.ARRAY, ggufread.STRING, len(value)) + b"".join(map(packed_string, value))
    if kind in codes:
        return head + struct.pack("<I" + codes[kind][1], codes[kind][0], value)
    code, form = codes[kind[:-1]]
    return head + struct.pack("<IIQ", ggufread.ARRAY, code, len(value)) + struct.pack(f"<{len(value)}{form}", *value)


def model_entries(s, kind):
    a = s.arch
    yield entry("general.architecture", "str", a)
    yield entry("general.name", "str", f"{s.name} shape, random weights")
    yield entry("general.file_type", "u32", FILE_TYPES[kind])
    yield entry("general.quantization_version", "u32", 2)
    per_layer = {f"{a}.block_count": s.layers, f"{a}.context_length": 131072 if s.per_layer or a == "gemma3" else 262144,
                 f"{a}.embedding_length": s.width, f"{a}.attention.head_count": s.heads, f"{a}.attention.key_length": s.head_full,
                 f"{a}.attention.value_length": s.head_full, f"{a}.attention.sliding_window": s.window}
    if a == "gemma4":
        per_layer |= {f"{a}.attention.key_length_swa": s.head_sliding, f"{a}.attention.value_length_swa": s.head_sliding,
                      f"{a}.rope.dimension_count": s.head_full, f"{a}.rope.dimension_count_swa": s.head_sliding,
                      f"{a}.attention.shared_kv_layers": s.shared, f"{a}.embedding_length_per_layer_input": s.per_layer}
    if s.experts:
        per_layer |= {f"{a}.expert_count": s.experts, f"{a}.expert_used_count": s.used, f"{a}.expert_feed_forward_length": s.expert_ffn}
    for name, value in per_layer.items():
        yield entry(name, "u32", value)
    yield entry(f"{a}.attention.layer_norm_rms_epsilon", "f32", 1e-6)
    yield entry(f"{a}.rope.freq_base", "f32", 1e6)
    if s.kv_sliding == s.kv_full:
        yield entry(f"{a}.attention.head_count_kv", "u32", s.kv_full)
    else:
        yield entry(f"{a}.attention.head_count_kv", "i32s", [s.kv_full if s.is_full(i) else s.kv_sliding for i in range(s.layers)])
    if s.shared_ffn:
        yield entry(f"{a}.feed_forward_length", "i32s", [s.ffn_of(i) for i in range(s.layers)])
    else:
        yield entry(f"{a}.feed_forward_length", "u32", s.ffn)
    if a == "gemma4":
        yield entry(f"{a}.rope.freq_base_swa", "f32", 1e4)
        yield entry(f"{a}.final_logit_softcapping", "f32", 30.0)
        yield entry(f"{a}.attention.sliding_window_pattern", "bools", [not s.is_full(i) for i in range(s.layers)])


def words():
    """Every word of one to four letters, shorter ones first."""
    for length in (1, 2, 3, 4):
        for letters in itertools.product(LETTERS, repeat=length):
            yield "".join(letters)


MEDIA = ["<|image>", "<|image|>", "<image|>", "<|audio>", "<|audio|>", "<audio|>", "<|video|>"]


def tokenizer_entries():
    """A vocabulary of the published size: five specials, two marks of a turn, the bytes, words, marks of media; merges of the words."""
    tokens = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>", "<|turn>", "<turn|>"] + [f"<0x{i:02X}>" for i in range(256)]
    kinds = [3] * 7 + [6] * 256
    tokens += itertools.islice(words(), VOCABULARY - len(tokens) - len(MEDIA))
    kinds += [1] * (VOCABULARY - len(kinds) - len(MEDIA)) + [3] * len(MEDIA)
    merges = (f"{t[:cut]} {t[cut:]}" for t in tokens[263:] for cut in range(1, len(t)))
    yield entry("tokenizer.ggml.model", "str", "gemma4")
    yield entry("tokenizer.ggml.tokens", "strs", tokens + MEDIA)
    yield entry("tokenizer.ggml.scores", "f32s", [-1000.0] * VOCABULARY)
    yield entry("tokenizer.ggml.token_type", "i32s", kinds)
    yield entry("tokenizer.ggml.merges", "strs", list(itertools.islice(merges, MERGES)))
    for name, value in (("bos", 2), ("eos", 1), ("unknown", 3), ("padding", 0), ("mask", 4)):
        yield entry(f"tokenizer.ggml.{name}_token_id", "u32", value)
    yield entry("tokenizer.ggml.add_space_prefix", "bool", False)
    yield entry("tokenizer.ggml.add_bos_token", "bool", True)


# ---- the file ----

def plan(s, kind):
    """[(name, shape, role, type, bytes, offset)], and the length of all of them."""
    rows, offset = [], 0
    for name, shape, role in all_tensors(s):
        type_ = type_of(s, kind, name, shape, role)
        _, values, size = TYPE_IDS[type_]
        bytes_ = math.prod(shape) // values * size
        rows.append((name, shape, role, type_, bytes_, offset))
        offset += -(-bytes_ // ALIGN) * ALIGN
    return rows, offset


def write(s, kind, path, tokenizer, seed):
    rows, total = plan(s, kind)
    entries = list(model_entries(s, kind)) + list(ggufread.raw_keys(tokenizer, "tokenizer.") if tokenizer else tokenizer_entries())
    weights = Weights(seed)
    with open(path, "wb") as out:
        out.write(b"GGUF" + struct.pack("<IQQ", 3, len(rows), len(entries)))
        out.writelines(entries)
        for name, shape, _, type_, _, offset in rows:
            out.write(packed_string(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, TYPE_IDS[type_][0], offset))
        out.write(bytes(-out.tell() % ALIGN))
        start = out.tell()
        for name, shape, role, type_, bytes_, offset in rows:
            out.write(bytes(start + offset - out.tell()))
            if type_ == "F32":
                out.write(weights.small(shape, role, s))
            else:
                weights.write(out, type_, shape, bytes_)
        out.write(bytes(start + total - out.tell()))


def main(argv):
    parser = argparse.ArgumentParser(prog="make_model.py", description=__doc__.splitlines()[0])
    parser.add_argument("shape", choices=sorted(SHAPES))
    parser.add_argument("type", choices=sorted(FILE_TYPES))
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("--layers", type=int, default=0)
    parser.add_argument("--tokenizer", metavar="FILE.gguf")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args(argv)
    s = SHAPES[args.shape]
    if args.layers:
        if s.shared or not 0 < args.layers <= s.layers:
            parser.error(f"--layers {args.layers}: {args.shape} takes " + ("all of its layers" if s.shared else f"1 to {s.layers}"))
        s = dataclasses.replace(s, layers=args.layers)
    if s.arch == "gemma3" and not args.tokenizer:
        parser.error(f"{args.shape} needs --tokenizer: the default model's file will do")
    work = args.file.with_name(args.file.name + ".new")
    try:
        write(s, args.type, work, args.tokenizer, args.seed)
        os.replace(work, args.file)
    except (OSError, ggufread.FormatError) as e:
        print(f"make_model: {e}", file=sys.stderr)
        work.unlink(missing_ok=True)
        return 1
    except KeyboardInterrupt:
        work.unlink(missing_ok=True)
        return 130
    print(f"{args.file}: {args.file.stat().st_size / 1e9:.2f} GB, {ggufread.token_bytes_of(args.file) / 1e6:.0f} MB per generated token")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
