"""bench --compare: pairs run in turns with another program, and earlier results; everything that can go wrong with either."""
import json
import os
import signal
import stat
import time

import pytest

TESTS = ["-p", "8", "-n", "4", "-t", 1]


@pytest.fixture(scope="module")
def model(models):
    return models / "tiny-gemma3"


@pytest.fixture
def program(tmp_path):
    """A shell script as the other program; each run appends its arguments to calls.txt."""
    def make(body):
        path = tmp_path / "other"
        path.write_text(f'#!/bin/sh\necho "$*" >> "{tmp_path}/calls.txt"\n{body}\n')
        path.chmod(0o755)
        return path
    return make


def results(*speeds, **more):
    """What a program writes that was asked for TESTS."""
    shapes = [{"n_prompt": 8, "n_gen": 0}, {"n_prompt": 0, "n_gen": 4}]
    return json.dumps([{**shape, "n_depth": 0, "n_threads": 1, "avg_ts": ts, "samples_ts": [ts], **more}
                       for shape, ts in zip(shapes, speeds)])


def test_itself(culet, binary, model):
    rows = culet("bench", "-m", model, *TESTS, "-r", 3, "--compare", binary, "-o", "json").json()
    assert [r["test"] for r in rows] == ["pp8", "tg4"]
    for r in rows:
        assert r["interleaved"] is True and r["n_pairs"] == len(r["ratios"]) == 3
        assert r["ratio"] == sorted(r["ratios"])[1] and r["ratio_min"] <= r["ratio"] <= r["ratio_max"]
        assert r["ratios"] == pytest.approx([a / b for a, b in zip(r["samples_ts"], r["compare_samples_ts"])], rel=1e-4)
    as_command = culet("bench", "-m", model, *TESTS, "-r", 1, "--compare", f"{binary} bench --no-warmup", "-o", "jsonl")
    assert as_command.code == 0 and len(as_command.out.splitlines()) == 2


def test_program(culet, model, program, tmp_path):
    path = program(f"cat <<'E'\n{results(1000, 10, build_commit='abc123')}\nE")
    r = culet("bench", "-m", model, *TESTS, "-r", 2, "--compare", path, "-o", "json")
    rows = r.json()
    assert [(x["compare_median_ts"], x["compare_commit"]) for x in rows] == [(1000, "abc123"), (10, "abc123")]
    calls = (tmp_path / "calls.txt").read_text().splitlines()
    assert calls == [f"-m {model} -p 8 -n 4 -t 1 -r 1 -o json"] * 2
    text = culet("bench", "-m", model, *TESTS, "--compare", path).out.decode()
    assert "In turns" in text and "5 pairs" in text


def test_flags_handed_on(culet, model, program, tmp_path):
    path = program(f"cat <<'E'\n{results(1000, 10)}\nE")
    r = culet("bench", "-m", model, "-pg", "8,4", "-d", 3, "-b", 64, "-ub", 32, "-ctk", "f32", "-ctv", "q8_0", "-t", 2,
              "--no-warmup", "-r", 1, "--compare", path)
    assert r.code == 1 and "no result for pp8+tg4 @ d3 with 2 threads" in r.err
    assert (tmp_path / "calls.txt").read_text() == (
        f"-m {model} -p 0 -n 0 -pg 8,4 -d 3 -b 64 -ub 32 -ctk f32 -ctv q8_0 -t 2 --no-warmup -r 1 -o json\n")


@pytest.mark.parametrize("body,said", [
    ("exit 3", "exit code 3"), ("echo no such flag >&2; exit 1", "no such flag"), ("kill -SEGV $$", "signal 11"),
    ("true", "empty"), ("echo hello", "its output"), ("echo '['", "its output"), ("echo '[]'", "no result for pp8"),
    ("echo '[1]'", "expected an object"), ("echo '[{}]'", "n_prompt"), ("echo '{\"n_prompt\":8,\"n_gen\":0}'", "avg_ts"),
    ("echo '[{\"n_prompt\":8,\"n_gen\":0,\"avg_ts\":-1}]'", "avg_ts"),
    ("echo '[{\"n_prompt\":\"8\",\"n_gen\":0,\"avg_ts\":1}]'", "count"),
    (f"echo '{results(5)}'", "no result for tg4"), (f"echo '{results(5, 6, n_threads=2)}'", "no result for pp8 with 1 thread among"),
    (f"echo '{results(5, 6)[:-9]}'", "its output"), (f"echo '{results(5, 6, samples_ts=[1, None])}'", "samples_ts[1]"),
    (f"echo '{results(5, 6)[:-1]}, {results(7)[1:]}'", "not asked for: pp8"),
    ("yes", "more than results would take"),
])
def test_program_fails(culet, model, program, body, said):
    r = culet("bench", "-m", model, *TESTS, "-r", 1, "--compare", program(body))
    assert r.code == 1, r.err
    first = r.err.splitlines()[0]
    assert first.startswith("culet: bench: --compare ") and said in first


def test_program_missing(culet, model, tmp_path):
    for other in (tmp_path / "none", "no-such-program-anywhere"):
        r = culet("bench", "-m", model, *TESTS, "--compare", other)
        assert r.code == 1 and str(other) in r.err and r.err.count("\n") == 1
    script = tmp_path / "broken"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    r = culet("bench", "-m", model, *TESTS, "-r", 1, "--compare", script)
    assert r.code == 1 and "cannot be started" in r.err
    script.chmod(stat.S_IRUSR)
    r = culet("bench", "-m", model, *TESTS, "-r", 1, "--compare", script)
    assert r.code == 1 and "broken" in r.err


def alive(pid):
    """False also for what has ended but was not waited for."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
            return f.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_for(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


def test_program_hangs(culet, model, program, tmp_path):
    pids = tmp_path / "pids"
    path = program(f'sleep 300 & echo $! > "{pids}"; wait')
    start = time.monotonic()
    r = culet("bench", "-m", model, *TESTS, "-r", 1, "--compare", path, "--timeout", 1)
    assert r.code == 1 and "within 1 s" in r.err and time.monotonic() - start < 60
    assert wait_for(lambda: not alive(int(pids.read_text())))


@pytest.mark.parametrize("sent,code", [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_signals_end_the_program_too(spawn, model, program, tmp_path, sent, code):
    pids = tmp_path / "pids"
    path = program(f'echo $$ > "{pids}.new"; mv "{pids}.new" "{pids}"; exec sleep 300')
    p = spawn("bench", "-m", model, *TESTS, "-r", 1, "--compare", path)
    assert wait_for(pids.exists)
    os.kill(p.pid, sent)
    assert p.wait(30) == code
    assert wait_for(lambda: not alive(int(pids.read_text())))


def test_earlier_results(culet, model, tmp_path):
    path = tmp_path / "before.json"
    path.write_bytes(culet("bench", "-m", model, "-p", "8,16", "-n", 4, "-t", 1, "-r", 3, "-o", "json").out)
    rows = culet("bench", "-m", model, *TESTS, "-r", 3, "--compare", path, "-o", "json").json()
    assert [r["test"] for r in rows] == ["pp8", "tg4"]
    earlier = {r["test"]: r for r in json.loads(path.read_text())}
    for r in rows:
        assert r["interleaved"] is False and r["ratio_min"] <= r["ratio"] <= r["ratio_max"]
        assert r["compare_median_ts"] == sorted(earlier[r["test"]]["samples_ts"])[1]
    lines = tmp_path / "before.jsonl"
    lines.write_bytes(culet("bench", "-m", model, *TESTS, "-r", 1, "-o", "jsonl").out + b"\n")
    text = culet("bench", "-m", model, *TESTS, "-r", 1, "--compare", lines).out.decode()
    assert "Not interleaved" in text and "pp8" in text
    lines.chmod(0o755)
    assert b"Not interleaved" in culet("bench", "-m", model, *TESTS, "-r", 1, "--compare", lines).out


@pytest.mark.parametrize("content,said", [
    (b"", "empty"), (b"[]", "no result for pp8"), (b"\x00\xff", "before.json"), (b"[{", "before.json"),
    (b'{"n_prompt":8}\n', "n_gen"), (b"[" * 3000, "before.json"), (results(5).encode(), "no result for tg4"),
])
def test_bad_files(culet, model, tmp_path, content, said):
    path = tmp_path / "before.json"
    path.write_bytes(content)
    r = culet("bench", "-m", model, *TESTS, "-r", 1, "--compare", path)
    assert r.code == 1 and said in r.err.splitlines()[0] and r.out == b""
