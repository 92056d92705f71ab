"""The rows of the speed table: what is measured on which model, and what it has to reach. Pure: runs nothing, reads nothing.

A *row* has a name, a model's key, and a bar; a *job* is what two programs are run for, and serves all the rows of one model
and thread count, so that a model is loaded once for all of them. `judge` turns samples into numbers and a verdict.
"""
import dataclasses
import statistics

E4B = ["q4_0", "q4_k_m", "q8_0", "bf16"]
DECODE_BARS = {"q4_0": 1.6, "q4_k_m": 1.6, "q8_0": 1.3, "bf16": 1.15}
PREFILL_BARS = {"q4_0": 3.0, "q4_k_m": 3.0, "q8_0": 2.6, "bf16": 1.6}
ONE_THREAD = 0.9         # of the bar at two threads
DEEP = [2048, 8192]


@dataclasses.dataclass(frozen=True)
class Row:
    name: str
    kind: str            # decode prefill depth rows load memory gmacs
    model: str           # key of the model's file
    threads: int
    bar: float           # of the ratio to llama.cpp; kinds other than decode and prefill: see `unit`
    ik_bar: float = 0.0  # of the ratio to ik_llama.cpp where it runs; 0 = none
    limit_and: float = 0.0  # share of the bandwidth's limit that must hold, too
    limit_or: float = 0.0   # … that will do instead of the ratios
    n_prompt: int = 0
    n_gen: int = 0
    depth: int = 0
    rows: int = 0
    other: str = ""      # decode: a model with fewer layers, whose time is taken off; load: the condition
    unit: str = "×"
    needs: str = "peer"  # what has to be there beside the model: peer, or nothing


@dataclasses.dataclass
class Job:
    """One pair of runs, repeated: culet and llama.cpp (and ik) with the same flags, on each of the models in turn."""
    models: list
    threads: int
    prompts: list
    gens: list
    depths: list
    ik: bool


def decode_rows(n_gen, threads, factor, suffix):
    for quant in E4B:
        yield Row(f"decode-e4b-{quant}{suffix}", "decode", f"e4b-{quant}", threads, DECODE_BARS[quant] * factor,
                  limit_and=0.8 if threads > 1 else 0.0, n_gen=n_gen)
    yield Row(f"decode-e2b-q4_0{suffix}", "decode", "e2b-q4_0", threads, 1.45 * factor, limit_or=0.9, n_gen=n_gen)
    yield Row(f"decode-26b-a4b{suffix}", "decode", "26b-a4b", threads, 1.4 * factor, limit_or=0.9, n_gen=n_gen,
              other="26b-a4b-short")
    yield Row(f"decode-270m-q4_k_m{suffix}", "decode", "270m-q4_k_m", threads, 1.7 * factor, 1.25 * factor, limit_or=0.9,
              n_gen=n_gen)


def prefill_rows(threads, factor, suffix):
    for quant in E4B:
        for n in (128, 512):
            yield Row(f"prefill{n}-e4b-{quant}{suffix}", "prefill", f"e4b-{quant}", threads, PREFILL_BARS[quant] * factor,
                      2.0 * factor if quant in ("q4_0", "q4_k_m") else 0.0, n_prompt=n)
    yield Row(f"prefill512-270m-q4_k_m{suffix}", "prefill", "270m-q4_k_m", threads, 2.6 * factor, 1.25 * factor, n_prompt=512)
    yield Row(f"prefill512-270m-bf16{suffix}", "prefill", "270m-bf16", threads, 1.4 * factor, n_prompt=512)


def all_rows(n_gen=32, threads=2):
    """Every row, in the table's order. Rows end in -t1 where one thread is asked for."""
    rows = list(decode_rows(n_gen, threads, 1.0, ""))
    rows += prefill_rows(threads, 1.0, "")
    rows += [Row(f"gmacs-e4b-{q}", "gmacs", f"e4b-{q}", threads, 90.0, n_prompt=512, unit="GMAC/s", needs="") for q in E4B[:3]]
    rows += decode_rows(n_gen, 1, ONE_THREAD, "-t1")
    rows += prefill_rows(1, ONE_THREAD, "-t1")
    for model in ("e4b-q4_0", "270m-q4_k_m"):
        rows += [Row(f"depth{d}-{model}", "depth", model, threads, 0.5, n_gen=n_gen, depth=d, unit="× loss") for d in DEEP]
    rows += [Row(f"rows{n}-e4b-q4_0", "rows", "e4b-q4_0", threads, bar, rows=n, unit="× one row's bytes", needs="")
             for n, bar in ((4, 1.9), (8, 3.0))]
    rows += [Row(f"load-{name}-e4b-q4_0", "load", "e4b-q4_0", threads, bar, other=name, unit=unit, needs="")
             for name, bar, unit in (("warm", 2.5, "s"), ("text", 0.15, "s"), ("cold", 1.15, "× disk"),
                                     ("packed", 0.8, "s"))]  # last: the packed copy stays
    rows.append(Row("memory-e4b-q4_0", "memory", "e4b-q4_0", threads, 3.2, n_prompt=512, n_gen=128, unit="GB", needs=""))
    return rows


def is_named(row, pattern):
    return row.name == pattern or (pattern.endswith("*") and row.name.startswith(pattern[:-1]))


def chosen(rows, only):
    """The rows whose name is one of `only`, or begins with one of them that ends in *; all of them without `only`."""
    unknown = [o for o in only if not any(is_named(row, o) for row in rows)]
    if unknown:
        raise ValueError(f"no row is named {', '.join(unknown)}")
    return [row for row in rows if not only or any(is_named(row, o) for o in only)]


def jobs(rows):
    """The pairs of runs that decode and prefill rows need, one model after the other."""
    found = {}
    for row in rows:
        if row.kind not in ("decode", "prefill"):
            continue
        job = found.setdefault((row.model, row.threads), Job([row.model], row.threads, [], [], [0], False))
        if row.other and row.other not in job.models:
            job.models.append(row.other)
        job.ik = job.ik or row.ik_bar > 0
        if row.n_prompt and row.n_prompt not in job.prompts:
            job.prompts.append(row.n_prompt)
        if row.n_gen and row.n_gen not in job.gens:
            job.gens.append(row.n_gen)
    return list(found.values())


# ---- numbers ----

@dataclasses.dataclass
class Result:
    row: Row
    verdict: str = "not run"     # pass, below, not run
    why: str = ""                # of "not run", or what is missing of "below"
    value: float = 0.0           # the number that the bar is about
    low: float = 0.0
    high: float = 0.0
    ours: float = 0.0            # medians, tokens per second (or seconds, GB)
    theirs: float = 0.0
    ik_ratio: float = 0.0
    limit: float = 0.0           # share of the bandwidth's limit, 0 = unknown
    command: str = ""


def ratios(ours, theirs):
    """Of pairs: the k-th of one over the k-th of the other."""
    return [a / b for a, b in zip(ours, theirs)]


def without_head(long_ts, short_ts):
    """Speed of the layers that the longer model has more: what both spend on the head and the rest drops out. One number, of the
    medians: single differences are mostly noise. Empty if the longer model was the faster one."""
    if not long_ts or not short_ts:
        return []
    seconds = 1 / statistics.median(long_ts) - 1 / statistics.median(short_ts)
    return [1 / seconds] if seconds > 0 else []


def judge_speed(row, ours, theirs, ik=(), limit=0.0):
    """Verdict of a decode or prefill row from paired samples in tokens per second."""
    r = Result(row, ours=statistics.median(ours), limit=limit)
    missing = []
    if theirs:
        pairs = ratios(ours, theirs)
        r.theirs, r.value, r.low, r.high = statistics.median(theirs), statistics.median(pairs), min(pairs), max(pairs)
        if r.value < row.bar:
            missing.append(f"× {r.value:.2f} < {row.bar:.2f}")
    if ik:
        r.ik_ratio = r.ours / statistics.median(ik)
        if row.ik_bar and r.ik_ratio < row.ik_bar:
            missing.append(f"ik × {r.ik_ratio:.2f} < {row.ik_bar:.2f}")
    if row.limit_or and limit >= row.limit_or:
        missing = []
    if row.limit_and and limit and limit < row.limit_and:
        missing.append(f"{limit:.0%} of the limit < {row.limit_and:.0%}")
    r.verdict, r.why = ("below", "; ".join(missing)) if missing else ("pass", "")
    if not theirs:
        r.verdict, r.why = "not run", "no llama.cpp to compare with"
    return r


def loss(shallow_ts, deep_ts):
    """Share of the speed that is lost at depth; what is faster there lost nothing."""
    return max(0.0, 1 - statistics.median(deep_ts) / statistics.median(shallow_ts))


def judge_depth(row, ours, theirs):
    """`ours` and `theirs`: (samples at depth 0, samples at the row's depth)."""
    r = Result(row, ours=loss(*ours), theirs=loss(*theirs))
    r.value = r.ours / r.theirs if r.theirs else float("inf") if r.ours else 0.0
    r.low = r.high = r.value
    good = r.ours <= row.bar * r.theirs
    r.verdict = "pass" if good else "below"
    r.why = "" if good else f"loses {r.ours:.1%}, llama.cpp {r.theirs:.1%}"
    return r


def judge_at_most(row, samples):
    """Rows whose number may not exceed the bar: seconds, GB, multiples of a time."""
    r = Result(row, value=statistics.median(samples), low=min(samples), high=max(samples))
    r.ours = r.value
    r.verdict = "pass" if r.value <= row.bar else "below"
    return r


def judge_at_least(row, samples):
    r = judge_at_most(row, samples)
    r.verdict = "pass" if r.value >= row.bar else "below"
    return r


def not_run(row, why):
    return Result(row, why=why)
