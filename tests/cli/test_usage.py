"""Exit codes, error lines and help: everything that is decided before a model is evaluated."""
import os
import resource
import subprocess

import pytest


def one_line(result, *words):
    """Errors are one line 'culet: WHAT: WHY' and at most one line of advice; nothing on standard output."""
    lines = result.err.splitlines()
    assert 1 <= len(lines) <= 2, result.err
    assert lines[0].startswith("culet: ") and lines[0].count(": ") >= 2, result.err
    for word in words:
        assert word in result.err
    assert result.out == b""


def test_version(culet):
    for args in (["--version"], ["run", "--version"]):
        r = culet(*args)
        assert (r.code, r.err) == (0, "") and r.out.startswith(b"culet ") and r.out.count(b"\n") == 1


def test_help_lists_commands(culet):
    r = culet("-h")
    assert r.code == 0 and r.err == ""
    assert culet("--help").out == r.out == culet("help").out
    for verb in ("run", "chat", "tokenize", "detokenize", "render", "logits", "score", "show", "ls", "doctor", "bench"):
        assert f"  {verb} ".encode() in r.out
        of_verb = culet(verb, "-h")
        assert of_verb.code == 0 and of_verb.err == "" and of_verb.out.startswith(f"usage: culet {verb}".encode())
        assert culet("help", verb).out == of_verb.out


def test_help_is_never_a_value(culet, chat_model):
    """-h after -p is text."""
    r = culet("run", "-m", chat_model, "-p", "-h", "-n", "1", "--json")
    assert "prompt_ids" in r.json()


@pytest.mark.parametrize("verb", ["serve", "verify", "pull"])
def test_later_commands(culet, verb):
    r = culet(verb)
    assert r.code == 6
    one_line(r, verb)


@pytest.mark.parametrize("args,word", [
    ([], "command"), (["rnu"], "culet run"), (["--frobnicate"], "--frobnicate"),
    (["run", "--tmp", "1", "-p", "x"], "--temp"), (["run", "-p"], "-p"), (["run", "hello"], "hello"),
    (["run", "--raw=1", "-p", "x"], "--raw"), (["tokenize", "--temp", "1"], "--temp"),
    (["run", "-p", "x", "-f", "y"], "--file"), (["run", "-p", "x", "--ids", "1"], "--ids"),
    (["run", "-m", "", "-p", "x"], "-m"), (["run", "-r", "", "-p", "x"], "--reverse-prompt"),
    (["run", "--spec", "mtp", "-p", "x"], "-md"), (["run", "--spec", "fast", "-p", "x"], "--spec"),
    (["run", "--think", "maybe", "-p", "x"], "--think"), (["run", "-ctk", "f17", "-p", "x"], "-ctk"),
    (["run", "--spec-draft-n-max", "33", "-p", "x"], "--spec-draft-n-max"), (["run", "--stats=xml", "-p", "x"], "--stats"),
    (["logits", "--ids", "1"], "--out"), (["detokenize"], "--ids"), (["ls", "extra"], "extra"), (["bench", "-r", "0"], "-r"),
    (["bench", "-p", "1,"], "-p"), (["bench", "-pg", "1,2,3"], "-pg"), (["bench", "-o", "xml"], "-o"),
])
def test_usage_errors(culet, args, word):
    r = culet(*args)
    assert r.code == 2, r.err
    one_line(r, word)


@pytest.mark.parametrize("flag", ["-n", "-c", "-t", "-b", "-ub", "--top-k", "--repeat-last-n", "-s"])
@pytest.mark.parametrize("value", ["", " 5", "5 ", "5x", "0x10", "1e3", "1.5", "nan", "99999999999999999999", "-2"])
def test_integers(culet, flag, value):
    r = culet("run", flag, value, "-p", "x")
    assert r.code == 2, r.err
    one_line(r, flag + ":")


@pytest.mark.parametrize("flag", ["--temp", "--top-p", "--min-p", "--repeat-penalty", "--presence-penalty", "--frequency-penalty"])
@pytest.mark.parametrize("value", ["", "x", "1x", " 1", "1 ", "nan", "inf", "-inf", "1e400", "0x1p3", "1,5"])
def test_reals(culet, flag, value):
    r = culet("run", flag, value, "-p", "x")
    assert r.code == 2, r.err
    one_line(r, flag + ":")


@pytest.mark.parametrize("flag,value", [("--temp", "-0.1"), ("--top-p", "1.01"), ("--top-p", "-1"), ("--top-p", "0"),
                                        ("--min-p", "1.5"), ("--repeat-penalty", "0"), ("-c", "-1"), ("--top-k", "-1")])
def test_ranges(culet, flag, value):
    r = culet("run", flag, value, "-p", "x")
    assert r.code == 2, r.err
    one_line(r, flag + ":")


@pytest.mark.parametrize("value", ["", "5", "+1", "5+", "5+x", "x+1", "5=true", "5*1", "-5+1", "99999999999+1", "5+nan"])
def test_logit_bias_forms(culet, value):
    r = culet("run", "-l", value, "-p", "x")
    assert r.code == 2, r.err
    one_line(r, "-l:")


@pytest.mark.parametrize("flag", [["-md", "x"],
                                  ["-ctk", "q4_0"], ["--reasoning-budget", "5"], ["-md", "x", "--spec", "mtp"], ["--profile"]])
def test_absent_features(culet, flag):
    r = culet("run", *flag, "-p", "x")
    assert r.code == 6, r.err
    one_line(r, flag[0])


def test_usage_wins_over_absent_features(culet):
    r = culet("run", "--verify-spec", "-p", "x", "--nonsense")
    assert r.code == 2


def test_equals_and_underscores(culet, chat_model):
    a = culet("run", f"--model={chat_model}", "--prompt=Hello", "--top_k=1", "--n-predict=4", "--json").json()
    b = culet("run", "-m", chat_model, "-p", "Hello", "--top-k", "1", "-n", "4", "--json").json()
    assert a["ids"] == b["ids"] and len(a["ids"]) == 4


def test_last_of_repeated_flags_wins(culet, chat_model):
    r = culet("run", "-m", chat_model, "-p", "Hello", "-n", "1", "-n", "3", "--ignore-eos", "--json").json()
    assert len(r["ids"]) == 3


def test_missing_model(culet, tmp_path):
    for model in ("no-such-model", tmp_path / "none.gguf"):
        r = culet("run", "-m", model, "-p", "x")
        assert r.code == 3
        one_line(r, str(model))
    r = culet("run", "-p", "x", env={"CULET_HOME": str(tmp_path)})
    assert r.code == 3
    one_line(r)


@pytest.mark.parametrize("content", [b"", b"GGUF", b"<html>no</html>", b"version https://git-lfs.github.com/spec/v1\n", b"\0" * 4096])
def test_files_that_are_no_models(culet, tmp_path, content):
    path = tmp_path / "bad.gguf"
    path.write_bytes(content)
    for args in (["run", "-p", "x"], ["tokenize", "-p", "x"], ["show"]):
        r = culet(*args, "-m", path)
        assert r.code == 3, r.err
        one_line(r, "bad.gguf")


def test_cpu_levels(culet, chat_model):
    run = ["run", "-m", chat_model, "-p", "Hello", "-n", "2", "--temp", "0", "--json"]
    assert culet(*run, env={"CULET_CPU": "pentium"}).code == 2
    foreign = "avx2" if os.uname().machine == "aarch64" else "neon"
    assert culet(*run, env={"CULET_CPU": foreign}).code == 6
    assert culet(*run, env={"CULET_CPU": ""}).code == 0
    assert culet(*run, env={"CULET_CPU": "scalar"}).json()["timings"]["cpu_level"] == "scalar"


@pytest.mark.parametrize("args", [["--version"], ["-h"], ["run", "-h"], ["doctor"], ["ls", "--json"]])
def test_full_disk(culet, spawn, args):
    with open("/dev/full", "wb") as full:
        p = spawn(*args, stdout=full)
        _, err = p.communicate()
    assert p.returncode == 1 and err.startswith(b"culet: standard output: ")


def test_full_disk_while_generating(spawn, chat_model):
    for extra in ([], ["--json"]):
        with open("/dev/full", "wb") as full:
            p = spawn("run", "-m", chat_model, "-p", "Hello", "-n", "8", *extra, stdout=full)
            _, err = p.communicate()
        assert p.returncode == 1 and err.startswith(b"culet: standard output: ")


def test_closed_pipe(spawn, chat_model):
    p = spawn("run", "-m", chat_model, "-p", "Hello", "--ignore-eos", "-n", "200", "-c", "256", stdin=subprocess.DEVNULL)
    p.stdout.close()
    err = p.stderr.read()
    assert p.wait(60) == 1 and err.startswith(b"culet: standard output: ")


def test_closed_standard_output(binary):
    r = subprocess.run(["sh", "-c", 'exec "$0" --version >&-', binary], stderr=subprocess.PIPE)
    assert r.returncode == 1


def test_doctor(culet, tmp_path):
    r = culet("doctor", "--json", env={"CULET_HOME": str(tmp_path)}).json()
    assert r["cpu_levels"][0] == "scalar" and r["cpu_level"] in r["cpu_levels"] and r["cores"] >= 1
    assert r["model_folder"] == f"{tmp_path}/models" and r["default_model"] is None and r["advice"]
    assert set(r["features"]) == {"jansson", "yajl", "openssl", "zstd", "libedit", "utf8proc",
                                  "turbojpeg", "png", "webp", "sndfile", "soxr"}
    text = culet("doctor", env={"CULET_CPU": "pentium"})
    assert text.code == 2 and b"advice" in text.out


def test_doctor_explains_the_level(culet):
    r = culet("doctor", "--json").json()
    by_name = {level["name"]: level for level in r["levels"]}
    assert [n for n, level in by_name.items() if level["present"]] == r["cpu_levels"]
    for name, level in by_name.items():
        assert level["present"] == (level["built"] and not level["lacks"])
        assert ("in use" in level["why"]) == (name == r["cpu_level"] or level["why"] == "present, a better one is in use")
        assert level["lacks"] in level["why"] or not level["built"]
    masked = culet("doctor", "--json", env={"CULET_CPU": "scalar"}).json()
    whys = {level["name"]: level["why"] for level in masked["levels"]}
    assert whys["scalar"] == "in use, because CULET_CPU says so"
    for name in r["cpu_levels"][1:]:
        assert whys[name] == "present, masked by CULET_CPU"
    text = culet("doctor", env={"CULET_CPU": "scalar"}).out.decode()
    assert "in use   scalar\n" in text and "CULET_CPU sets the level" in text


def test_doctor_counts_processors(culet):
    r = culet("doctor", "--json").json()
    assert 1 <= r["threads_default"] <= r["fast_cores"] <= r["cores"] <= r["allowed_cpus"] <= r["logical_cpus"]
    assert r["allowed_cpus"] == len(os.sched_getaffinity(0)) and r["threads_reason"]
    cpu = min(os.sched_getaffinity(0))
    one = culet("doctor", "--json", preexec_fn=lambda: os.sched_setaffinity(0, {cpu})).json()
    assert one["threads_default"] == one["cores"] == one["allowed_cpus"] == 1


def test_doctor_names_the_limit_of_memory(culet, tmp_path, takes_ulimit):
    def narrow():
        resource.setrlimit(resource.RLIMIT_DATA, (64 << 20, 64 << 20))
    r = culet("doctor", "--json", preexec_fn=narrow).json()
    assert r["memory_available_bytes"] < 64 << 20 and r["memory_limited_by"] == "ulimit -d 64.0 MiB"
    assert any("memory is available" in line for line in r["advice"])
    assert b"a model may take 0.1 GiB (ulimit -d 64.0 MiB)" in culet("doctor", preexec_fn=narrow).out
    assert r["huge_pages"] in ("unknown", "never", "madvise", "always")
    (tmp_path / "packed").mkdir()
    (tmp_path / "packed" / "one").write_bytes(b"x")
    r = culet("doctor", "--json", env={"CULET_HOME": str(tmp_path)}).json()
    assert r["packed_folder"] == f"{tmp_path}/packed" and r["packed_files"] == 1


def test_ls(culet, models, tmp_path):
    home = {"CULET_HOME": str(tmp_path)}
    assert culet("ls", "--json", env=home).json() == []
    (tmp_path / "models").mkdir()
    source = next((models / "tiny-gemma3" / "gguf").glob("*.gguf"))
    (tmp_path / "models" / source.name).write_bytes(source.read_bytes())
    (entry,) = culet("ls", "--json", env=home).json()
    assert entry["bytes"] == source.stat().st_size and entry["path"].endswith(source.name) and entry["format"] == "GGUF"
    assert entry["name"].encode() in culet("ls", env=home).out
    by_name = culet("tokenize", "-m", entry["name"], "-p", "Hello", "--json", env=home).json()
    assert by_name == culet("tokenize", "-m", source, "-p", "Hello", "--json").json()
