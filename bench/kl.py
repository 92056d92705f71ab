#!/usr/bin/env python3
"""How far does a quantised model drift from the float32 run of its own weights, here and in llama.cpp?

Both programs read the same file and the same text. Each is compared with its own run of the same weights written out as
float32: mean KL divergence of the next-token distributions over the second half of every chunk of 512 tokens (the rows that
`llama-perplexity --kl-divergence` takes).

    bench/kl.py --model FILE.gguf --text FILE --culet build/culet --peer DIR/llama-perplexity [--chunks 8] [--work DIR]

Needs numpy and gguf. Prints one JSON line: {"culet": KL, "llama.cpp": KL, "ratio": …}. The work folder needs about 3 GB.
"""
import argparse
import json
import os
import re
import subprocess
import tempfile

import gguf
import numpy as np
from gguf.quants import dequantize

CHUNK = 512


def write_f32(model, path):
    """The same file with every tensor as float32."""
    reader = gguf.GGUFReader(model)
    arch = reader.fields["general.architecture"].contents()
    writer = gguf.GGUFWriter(path, arch)
    for key, field in reader.fields.items():
        if key.startswith("GGUF.") or key in ("general.architecture", "general.file_type"):
            continue
        sub = field.types[1] if len(field.types) > 1 else None
        writer.add_key_value(key, field.contents(), field.types[0], sub)
    for t in reader.tensors:
        writer.add_tensor(t.name, dequantize(t.data, t.tensor_type).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def peer_kl(args, f32, base):
    common = [args.peer, "-t", "2", "-c", str(CHUNK), "-f", args.text, "--chunks", str(args.chunks), "--kl-divergence-base", base]
    subprocess.run(common + ["-m", f32], check=True, capture_output=True)
    run = subprocess.run(common + ["-m", args.model, "--kl-divergence"], check=True, capture_output=True, text=True)
    return float(re.search(r"Mean\s+KLD:\s+([0-9.eE+-]+)", run.stdout + run.stderr).group(1))


def log_probabilities(args, model, ids, out, extra):
    cmd = [args.culet, "logits", "-m", model, "-t", "2", "--ids", ",".join(map(str, ids)), "--all", "--out", out] + extra
    subprocess.run(cmd, check=True, capture_output=True)
    logits = np.memmap(out, dtype="<f4", mode="r").reshape(len(ids), -1)[CHUNK // 2:CHUNK - 1].astype(np.float64)
    logits -= logits.max(axis=1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))


def culet_kl(args, f32, work):
    run = subprocess.run([args.culet, "tokenize", "-m", args.model, "-f", args.text, "--json"], check=True, capture_output=True)
    ids = json.loads(run.stdout)["ids"]
    bos, sums = ids[0], []
    for c in range(args.chunks):
        chunk = [bos] + ids[c * CHUNK + 1:(c + 1) * CHUNK]
        want = log_probabilities(args, f32, chunk, os.path.join(work, "base.f32"), ["-ctk", "f32", "-ctv", "f32"])
        got = log_probabilities(args, args.model, chunk, os.path.join(work, "model.f32"), [])
        sums.append((np.exp(want) * (want - got)).sum(axis=1).mean())
    return float(np.mean(sums))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("model", "text", "culet", "peer"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--chunks", type=int, default=8)
    parser.add_argument("--work")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.work) as work:
        f32 = os.path.join(work, "f32.gguf")
        write_f32(args.model, f32)
        ours, theirs = culet_kl(args, f32, work), peer_kl(args, f32, os.path.join(work, "base.kld"))
    print(json.dumps({"culet": ours, "llama.cpp": theirs, "ratio": ours / theirs, "chunks": args.chunks}))


main()
