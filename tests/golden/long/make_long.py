#!/usr/bin/env python3
"""Reference values far into the context: faults of rope and windows show only there.

Runs 20,000 pseudo-random ids through golden models with transformers (float32, one thread, cache, passes of 500) and writes
long.json: for each model the best id of the last 256 positions, their margins, and the 16 best logits of the last position.

    make_long.py MODELS_DIR OUT_DIR        needs torch and transformers
"""
import hashlib
import json
import os
import sys

import torch
from transformers import AutoConfig, AutoModelForCausalLM

N, TAIL, STEP = 20000, 256, 500
MODELS = ["tiny-gemma3", "tiny-e2b", "tiny-dense", "tiny-unified"]


def make_ids(n, vocab):
    x, ids = 12345, [2]
    for _ in range(n - 1):
        x = (x * 1664525 + 1013904223) & 0xFFFFFFFF
        ids.append((x >> 8) % (vocab - 16))  # the last ids stand for pictures and sounds
    return ids


def load(path):
    kind = AutoConfig.from_pretrained(path).model_type
    if kind in ("gemma4", "gemma4_unified"):
        from transformers import AutoModelForImageTextToText as Model
    else:
        Model = AutoModelForCausalLM
    return Model.from_pretrained(path, dtype=torch.float32, attn_implementation="eager").eval()


def run(path):
    model = load(path)
    text = model.config.get_text_config()
    ids = make_ids(N, text.vocab_size)
    cache, rows = None, []
    with torch.no_grad():
        for at in range(0, N, STEP):
            out = model(input_ids=torch.tensor([ids[at:at + STEP]]), past_key_values=cache, use_cache=True)
            cache = out.past_key_values
            if at + STEP > N - TAIL:
                rows.append(out.logits[0])
    logits = torch.cat(rows)[-TAIL:]
    top = logits.topk(2)
    best = logits[-1].topk(16)
    return {"n": N, "ids_sha256": hashlib.sha256(b"".join(i.to_bytes(4, "little") for i in ids)).hexdigest(),
            "best_ids": top.indices[:, 0].tolist(),
            "margins": [round(v, 5) for v in (top.values[:, 0] - top.values[:, 1]).tolist()],
            "last_ids": best.indices.tolist(), "last_logits": [round(v, 6) for v in best.values.tolist()]}


def main():
    torch.set_num_threads(1)
    result = {name: run(os.path.join(sys.argv[1], name)) for name in MODELS}
    with open(os.path.join(sys.argv[2], "long.json"), "w") as f:
        json.dump(result, f, separators=(",", ":"))
        f.write("\n")


main()
