"""Fitting the machine: memory that does not suffice is refused before loading; threads, placement and priority."""
import ctypes
import os
import re
import resource
import time

import pytest

MIB = 1 << 20


def limited(data_bytes):
    """For preexec_fn: what the process may map for itself, as ulimit -d sets it."""
    def set_limit():
        resource.setrlimit(resource.RLIMIT_DATA, (data_bytes, data_bytes))
    return set_limit


@pytest.fixture
def model(models, takes_ulimit):
    return models / "tiny-gemma3"


def run_in(culet, model, mib, *args):
    """Long passes make the working memory of this tiny model large enough to be told from the rest."""
    return culet("run", "-m", model, "--raw", "-p", "Hello", "-n", 1, "-t", 1, "-b", 8192, "-ub", 8192, *args,
                 preexec_fn=limited(mib * MIB))


def test_refusal_and_its_hint(culet, model):
    assert run_in(culet, model, 1000, "-c", 16384).code == 0
    r = run_in(culet, model, 20, "-c", 16384)
    assert r.code == 4 and r.out == b""
    first, hint = r.err.splitlines()
    assert "16384 tokens" in first and "ulimit -d 20.0 MiB" in first and str(model) in first
    best = int(re.fullmatch(r"the largest context that fits is -c (\d+)", hint)[1])
    assert 64 <= best < 16384
    assert run_in(culet, model, 20, "-c", best).code == 0
    assert run_in(culet, model, 20, "-c", best + 256).code == 4


def test_the_usual_context_is_refused_too(culet, model):
    r = run_in(culet, model, 20)
    assert r.code == 4 and "8192 tokens" in r.err and "-c " in r.err


def test_no_context_fits(culet, model):
    r = run_in(culet, model, 5, "-c", 64)
    assert r.code == 4 and "no context fits" in r.err
    assert "no context fits" not in run_in(culet, model, 5, "-c", 64, "--memory-check", "off").err


@pytest.mark.parametrize("verb", [("bench", "-p", "9000", "-n", 0), ("logits", "--ids", "2,3", "--out", "/dev/null"),
                                  ("score", "-p", "some text"), ("chat",)])
def test_every_command_that_evaluates(culet, model, verb):
    r = culet(verb[0], "-m", model, *verb[1:], "-t", 1, "-b", 8192, "-ub", 8192, preexec_fn=limited(20 * MIB))
    assert r.code == 4 and "the model with a context" in r.err, r.err


@pytest.mark.parametrize("flags", [("-C", "xyz"), ("-C", ""), ("-Cr", "3"), ("-Cr", "5-2"), ("-Cr", "0-4096"), ("--prio", "4"),
                                   ("--prio", "-2"), ("--poll", "101"), ("--poll", "-1"), ("--cpu-strict", "2"), ("-tb", "x"),
                                   ("--memory-check", "maybe"), ("-Cr", "1023-1023")])
def test_wrong_values(culet, models, flags):
    if flags[1] == "1023-1023" and 1023 in os.sched_getaffinity(0):
        pytest.skip("this machine has that processor")
    r = culet("run", "-m", models / "tiny-gemma3", "--raw", "-p", "x", "-n", 1, *flags)
    assert r.code == 2 and r.out == b"", r.err


def test_placement_changes_no_text(culet, models):
    args = ["run", "-m", models / "tiny-gemma3", "--raw", "-p", "Once upon a time", "-n", 12, "--temp", 0]
    want = culet(*args, "-t", 1).out
    cpus = sorted(os.sched_getaffinity(0))
    for flags in (["-t", 3, "-tb", 2], ["-C", f"{sum(1 << c for c in cpus):x}"], ["-Cr", f"{cpus[0]}-{cpus[-1]}", "--cpu-strict", 1],
                  ["--poll", 0, "-t", 2], ["--poll", 100], ["--prio", -1]):
        r = culet(*args, *flags)
        assert r.code == 0 and r.out == want, (flags, r.err)


def test_threads_follow_the_mask(culet, models):
    cpu = min(os.sched_getaffinity(0))
    stats = culet("run", "-m", models / "tiny-gemma3", "--raw", "-p", "x", "-n", 1, "--stats=json", "-Cr", f"{cpu}-{cpu}").err
    assert '"threads":1' in stats.replace(" ", "")


def test_refused_priority_is_a_warning(culet, models):
    def no_rights():
        """Root loses the right to raise priorities; others never had it."""
        resource.setrlimit(resource.RLIMIT_NICE, (0, 0))
        pr_capbset_drop, cap_sys_nice = 24, 23
        ctypes.CDLL(None).prctl(pr_capbset_drop, cap_sys_nice, 0, 0, 0)
    args = ["run", "-m", models / "tiny-gemma3", "--raw", "-p", "x", "-n", 1, "--temp", 0]
    r = culet(*args, "--prio", 2, preexec_fn=no_rights)
    assert r.code == 0 and "nice -10" in r.err and r.err.startswith("culet: warning: ") and r.err.count("\n") == 1
    assert r.out == culet(*args).out


def test_idle_chat_takes_no_time(spawn, chat_model):
    """Between two turns the processor belongs to others: the threads of the pool sleep."""
    p = spawn("chat", "-m", chat_model, "-t", 4, "-n", 4, "--temp", 0)
    p.stdin.write(b"hello\n")
    p.stdin.flush()
    def used():
        with open(f"/proc/{p.pid}/stat") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    assert p.stdout.read(1)
    time.sleep(0.5)
    before = used()
    time.sleep(1)
    spent = used() - before
    p.stdin.close()
    p.wait(60)
    assert spent <= 0.1
