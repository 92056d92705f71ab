"""Starts the programs that are measured and reads what they print. Decides nothing about bars; knows no table.

Every measurement is a process of its own: it loads the model, warms up, times each test once (or `repetitions` times), and
ends. What a program says on standard error is shown only when it fails.
"""
import json
import math
import os
import shlex
import subprocess
import time


class RunError(Exception):
    pass


class Program:
    """A command with llama-bench's flags, perhaps behind a wrapper, perhaps at a CPU level."""

    def __init__(self, name, command, wrap=(), env=None, timeout_s=1800, grid_flags=()):
        self.name, self.command, self.wrap, self.timeout_s = name, list(command), list(wrap), timeout_s
        self.env = {**os.environ, **(env or {})}
        self.grid_flags = list(grid_flags)  # what this program alone takes beside llama-bench's flags
        self.seconds = 0.0  # of the last run

    def words(self, *args):
        return [*self.wrap, *self.command, *[str(a) for a in args]]

    def run(self, *args):
        """Standard output of one run."""
        words = self.words(*args)
        began = time.monotonic()
        try:
            done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.env,
                                  timeout=self.timeout_s)
        except OSError as e:
            raise RunError(f"{self.name}: {words[0]}: {e.strerror}") from e
        except subprocess.TimeoutExpired as e:
            raise RunError(f"{self.name}: no end within {self.timeout_s} s") from e
        self.seconds = time.monotonic() - began
        if done.returncode:
            lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
            how = f"signal {-done.returncode}" if done.returncode < 0 else f"exit {done.returncode}"
            raise RunError(f"{self.name}: {how}" + (f": {lines[-1]}" if lines else "") + f"\n  {shlex.join(words)}")
        return done.stdout

    def peak_gb(self, *args):
        """Highest resident memory of one run, GB. The wrapper would be what is measured, so there is none."""
        with subprocess.Popen([*self.command, *[str(a) for a in args]], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, env=self.env) as child:
            text = child.stderr.read()
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            lines = text.decode("utf-8", "replace").strip().splitlines()
            raise RunError(f"{self.name}: exit {child.returncode}: {lines[-1] if lines else ''}")
        return usage.ru_maxrss * 1024 / 1e9


# ---- what they print ----

def rows_of(text, name="the program"):
    """The rows of `-o json` (one array) or `-o jsonl` (a row a line)."""
    text = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    text = text.strip()
    try:
        if text.startswith("["):
            return json.loads(text)
        return [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    except json.JSONDecodeError as e:
        raise RunError(f"{name}: what it printed is not JSON: {e}") from e


def samples_of(rows, n_prompt, n_gen, n_depth=0):
    """Tokens per second of one test; empty if it is not among the rows."""
    for r in rows:
        if (r.get("n_prompt", 0), r.get("n_gen", 0), r.get("n_depth", 0)) == (n_prompt, n_gen, n_depth) and "samples_ts" in r:
            return [float(v) for v in r["samples_ts"]]
    return []


def bandwidth_of(rows):
    """The larger bandwidth that culet measured before and after a test, GB/s; 0 if it measured none."""
    best = 0.0
    for r in rows:
        for key in ("bandwidth_before_gb_s", "bandwidth_after_gb_s"):
            value = r.get(key)
            if isinstance(value, (int, float)) and math.isfinite(value):
                best = max(best, float(value))
    return best


def measurement_of(rows, name, condition, field="samples"):
    """A field of culet's record of one measurement, whose condition contains these words; None if there is none."""
    for r in rows:
        if r.get("measurement") == name and condition in r.get("condition", ""):
            return r.get(field)
    return None


def macs_rate_of(rows):
    """Thousand million multiplications per second over the time of all products with weights in a profile; 0 if it has none."""
    for r in rows:
        products = (r.get("profile") or {}).get("products", {})
        if products.get("macs") and products.get("ms"):
            return float(products["macs"]) / float(products["ms"]) / 1e6
    return 0.0


# ---- runs ----

def grid_flags(model, threads, prompts, gens, depths, repetitions):
    """llama-bench's flags; depth 0 is left out, as not every program knows the flag."""
    flags = ["-m", model, "-t", threads, "-p", ",".join(map(str, prompts)) or 0, "-n", ",".join(map(str, gens)) or 0]
    if list(depths) != [0]:
        flags += ["-d", ",".join(map(str, depths))]
    return [*flags, "-r", repetitions, "-o", "json"]


def grid(program, model, threads, prompts, gens, depths=(0,), repetitions=1):
    return rows_of(program.run(*grid_flags(model, threads, prompts, gens, depths, repetitions), *program.grid_flags), program.name)


class Samples:
    """Samples of tests, gathered over runs: {(prompt, gen, depth): [tokens per second]}."""

    def __init__(self):
        self.by_test, self.bandwidth, self.commit = {}, [], ""

    def add(self, rows, tests):
        for test in tests:
            found = samples_of(rows, *test)
            if not found:
                raise RunError("no samples of p%d n%d d%d in what was printed" % test)
            self.by_test.setdefault(test, []).extend(found)
        self.commit = str(rows[0].get("build_commit", ""))
        gb_s = bandwidth_of(rows)
        if gb_s:
            self.bandwidth.append(gb_s)

    def of(self, n_prompt, n_gen, depth=0):
        return self.by_test.get((n_prompt, n_gen, depth), [])


def tests_of(job):
    return [(p, 0, d) for d in job.depths for p in job.prompts] + [(0, n, d) for d in job.depths for n in job.gens]


def one_turn(programs, model, job, found, dropped, say):
    """Runs each program once and adds to found[program]; one that fails goes into `dropped` with the reason, and is run no more."""
    for program in programs:
        if program in dropped:
            continue
        try:
            found[program].add(grid(program, model, job.threads, job.prompts, job.gens, job.depths), tests_of(job))
            speeds = ", ".join(f"{test_name(t)} {found[program].by_test[t][-1]:.2f}" for t in tests_of(job))
            say(f"  {program.name}: {speeds} tok/s ({program.seconds:.0f} s)")
        except RunError as e:
            dropped[program] = str(e)
            say(f"  {e}")


def test_name(test):
    n_prompt, n_gen, depth = test
    return (f"pp{n_prompt}" if n_prompt else f"tg{n_gen}") + (f"@d{depth}" if depth else "")
