#!/usr/bin/env python3
"""Speed of ik_llama.cpp through its Python binding, with llama-bench's flags and output, so that `culet bench --compare` and
bench/table can call it.

    bench/ik_bench.py -m FILE.gguf [-p 512] [-n 128] [-d 0] [-t N] [-r 5] [-o json|jsonl|md] [--repack 0,1] [--flash-attn 1,0]

What comes out: one row per test, with every sample in tokens per second. Each combination of settings runs in a process of its
own, as some fail on some models; for each test the setting with the best median counts, and the row names it. One warm-up run
per test is not counted (--no-warmup). Needs the package ik-llama-cpp-python, which `bench/build_peer --ik` puts into a folder
of its own; that Python is used by itself when this one lacks the package. Measures nothing but these tests, and no quality.
"""
import argparse
import ctypes
import json
import os
import pathlib
import random
import re
import statistics
import subprocess
import sys
import time

BATCH, UBATCH = 2048, 512  # llama-bench's


class Failure(Exception):
    pass


def numbers(text):
    return [int(part) for part in text.split(",")]


def arguments(argv):
    parser = argparse.ArgumentParser(prog="ik_bench.py", description=__doc__.splitlines()[0])
    parser.add_argument("-m", "--model", required=True, metavar="FILE")
    parser.add_argument("-p", "--n-prompt", type=numbers, default=[512], metavar="N,…")
    parser.add_argument("-n", "--n-gen", type=numbers, default=[128], metavar="N,…")
    parser.add_argument("-d", "--n-depth", type=numbers, default=[0], metavar="N,…")
    parser.add_argument("-t", "--threads", type=numbers, default=[os.cpu_count() or 1], metavar="N,…")
    parser.add_argument("-r", "--repetitions", type=int, default=5)
    parser.add_argument("-o", "--output", choices=["json", "jsonl", "md"], default="md")
    parser.add_argument("--repack", type=numbers, default=[0, 1], metavar="0,1", help="settings to try; the best counts")
    parser.add_argument("--flash-attn", type=numbers, default=[1, 0], metavar="0,1", help="settings to try; the best counts")
    parser.add_argument("--no-warmup", action="store_true")
    parser.add_argument("--one-setting", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if not os.path.isfile(args.model):
        raise Failure(f"{args.model}: no such file")
    return args


def tests(args):
    """(threads, depth, prompt, generated) in llama-bench's order."""
    for threads in args.threads:
        for depth in args.n_depth:
            yield from ((threads, depth, p, 0) for p in args.n_prompt if p)
            yield from ((threads, depth, 0, n) for n in args.n_gen if n)


# ---- one setting, in this process ----

class Timeline:
    """A context of the binding: tokens at the end of one sequence."""

    def __init__(self, api, model, n_vocab, threads, tokens, flash_attn):
        params = api.llama_context_default_params()
        params.n_ctx, params.n_batch, params.n_ubatch = tokens, BATCH, UBATCH
        params.n_threads = params.n_threads_batch = threads
        params.flash_attn = bool(flash_attn)
        self.api, self.n_vocab, self.position = api, n_vocab, 0
        self.context = api.llama_init_from_model(model, params)
        if not self.context:
            raise Failure("the binding makes no context")
        self.batch = api.llama_batch_init(BATCH, 0, 1)

    def clear(self):
        self.api.llama_kv_cache_clear(self.context)
        self.position = 0

    def decode(self, count):
        """`count` random tokens, of which the last one's logits are wanted."""
        b = self.batch
        b.n_tokens = count
        for i in range(count):
            b.token[i] = random.randrange(self.n_vocab)
            b.pos[i] = self.position + i
            b.n_seq_id[i] = 1
            b.seq_id[i][0] = 0
            b.logits[i] = i == count - 1
        code = self.api.llama_decode(self.context, b)
        if code:
            raise Failure(f"the binding's decode returns {code}")
        self.api.llama_get_logits_ith(self.context, count - 1)
        self.position += count

    def prompt(self, count):
        while count:
            now = min(count, BATCH)
            self.decode(now)
            count -= now

    def close(self):
        self.api.llama_batch_free(self.batch)
        self.api.llama_free(self.context)


def run_test(line, depth, n_prompt, n_gen):
    """Nanoseconds of the test, without those of the tokens before it."""
    line.clear()
    line.prompt(depth)
    start = time.perf_counter_ns()
    line.prompt(n_prompt)
    for _ in range(n_gen):
        line.decode(1)
    return time.perf_counter_ns() - start


def one_setting(args):
    """Rows of every test with the first of the given settings."""
    from ik_llama_cpp import _ctypes_api as api
    api.llama_backend_init()
    params = api.llama_model_default_params()
    params.repack_tensors = bool(args.repack[0])
    params.use_mmap = not params.repack_tensors
    params.n_gpu_layers = 0
    model = api.llama_model_load_from_file(os.fsencode(args.model), params)
    if not model:
        raise Failure(f"{args.model}: the binding cannot load it")
    n_vocab = api.llama_vocab_n_tokens(api.llama_model_get_vocab(model))
    name = ctypes.create_string_buffer(256)
    api.llama_model_desc(model, name, 256)
    rows = []
    for threads, depth, n_prompt, n_gen in tests(args):
        line = Timeline(api, model, n_vocab, threads, depth + n_prompt + n_gen + 1, args.flash_attn[0])
        if not args.no_warmup:
            run_test(line, 0, n_prompt, min(n_gen, 1))
        ns = [run_test(line, depth, n_prompt, n_gen) for _ in range(args.repetitions)]
        line.close()
        rows.append(row(args, name.value.decode("utf-8", "replace"), (threads, depth, n_prompt, n_gen), ns))
    return rows


def row(args, model_type, test, ns):
    threads, depth, n_prompt, n_gen = test
    ts = [(n_prompt + n_gen) * 1e9 / n for n in ns]
    return {
        "backends": "ik_llama.cpp", "model_filename": args.model, "model_type": model_type, "n_batch": BATCH, "n_ubatch": UBATCH,
        "n_threads": threads, "n_prompt": n_prompt, "n_gen": n_gen, "n_depth": depth, "repack": args.repack[0],
        "flash_attn": args.flash_attn[0], "avg_ns": round(statistics.fmean(ns)), "avg_ts": statistics.fmean(ts),
        "stddev_ts": statistics.stdev(ts) if len(ts) > 1 else 0.0, "samples_ns": ns, "samples_ts": ts,
    }


# ---- all settings ----

def best_rows(settings):
    """Of the same test measured with several settings, the row with the highest median; in the order of the first setting."""
    best = {}
    for rows in settings:
        for r in rows:
            key = (r["n_threads"], r["n_depth"], r["n_prompt"], r["n_gen"])
            if key not in best or statistics.median(r["samples_ts"]) > statistics.median(best[key]["samples_ts"]):
                best[key] = r
    return list(best.values())


def run_setting(argv, repack, flash_attn):
    """Rows of one setting, measured in a process of its own; None and the reason if it failed."""
    command = [sys.executable, os.path.abspath(__file__), *argv, "--one-setting", "--repack", str(repack),
               "--flash-attn", str(flash_attn)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode == 0:
        return json.loads(done.stdout.splitlines()[-1]), ""
    return None, f"it ended with {done.returncode}" + told(done.stderr.decode("utf-8", "replace").strip().splitlines())


def told(lines):
    """The line that says why: an assertion or error of the library, which a whole trace may follow."""
    reasons = [line for line in lines if re.search(r"ASSERT|ik_bench:|error:", line)]
    return f": {(reasons or lines)[-1].strip()}" if lines else ""


def all_settings(args, argv):
    found = []
    for repack in args.repack:
        for flash_attn in args.flash_attn:
            rows, why = run_setting(argv, repack, flash_attn)
            if rows is None:
                print(f"ik_bench: repack {repack}, flash attention {flash_attn}: not counted: {why}", file=sys.stderr)
            else:
                found.append(rows)
    if not found:
        raise Failure(f"{args.model}: no setting works")
    return best_rows(found)


def write(rows, form):
    if form == "json":
        print("[\n" + ",\n".join("  " + json.dumps(r) for r in rows) + "\n]")
    elif form == "jsonl":
        print("\n".join(json.dumps(r) for r in rows))
    else:
        print("| model | threads | repack | test | t/s |\n|---|---:|---:|---|---:|")
        for r in rows:
            name = f"pp{r['n_prompt']}" if r["n_prompt"] else f"tg{r['n_gen']}"
            name += f" @ d{r['n_depth']}" if r["n_depth"] else ""
            print(f"| {r['model_type']} | {r['n_threads']} | {r['repack']} | {name} | {r['avg_ts']:.2f} ± {r['stddev_ts']:.2f} |")


def use_own_python():
    """Goes on in the Python that has the package, if this one has not."""
    try:
        import ik_llama_cpp  # noqa: F401
        return
    except ImportError:
        pass
    home = os.environ.get("CULET_HOME") or pathlib.Path.home() / ".cache" / "culet"
    python = pathlib.Path(home) / "peer" / "ik-venv" / "bin" / "python"
    if not python.exists() or os.environ.get("CULET_IK_PYTHON"):
        raise Failure("the package ik-llama-cpp-python is missing: bench/build_peer --ik installs it")
    os.environ["CULET_IK_PYTHON"] = "1"
    os.execv(python, [str(python), os.path.abspath(__file__), *sys.argv[1:]])


def main(argv):
    try:
        args = arguments(argv)
        use_own_python()
        if args.one_setting:
            rows = one_setting(args)
            sys.stdout.flush()
            print("\n" + json.dumps(rows))
        else:
            write(all_settings(args, argv), args.output)
    except Failure as e:
        print(f"ik_bench: {e}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
