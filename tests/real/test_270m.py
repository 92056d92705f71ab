"""The real 270M base model (Q4_K_M): ids, text and speed-independent promises."""
import json

import numpy
import pytest

# Rounded activations move the difference of two logits by a few hundredths, seldom by 0.2: below this margin of the float32
# reference either token may win.
CLEAR = 0.25


@pytest.fixture(scope="session")
def reference(golden):
    return golden("real", "gemma3_270m.json")


def complete(culet, model, prompt, *args):
    return culet("run", "-m", model, "-p", prompt, "--temp", 0, "--ignore-eos", "--json", *args).json()


def test_tokenizer(culet, golden, real_model):
    for case in golden("real", "gemma3_vocab.json")["strings"]:
        data = bytes.fromhex(case["utf8_hex"])
        got = culet("tokenize", "-m", real_model, "--special", "--no-bos", "--json", stdin=data).json()
        assert got["ids"] == case["ids"], case["text"]


def test_greedy_ids_while_the_margin_is_clear(culet, reference, real_model):
    """Every case as far as the reference is sure; after a close call the histories may differ."""
    compared = 0
    for case in reference["cases"]:
        got = complete(culet, real_model, case["prompt"], "-n", 48)
        assert got["prompt_ids"] == case["prompt_ids"]
        sure = next((i for i, margin in enumerate(case["margins"]) if margin < CLEAR), len(case["margins"]))
        assert got["ids"][:sure] == case["greedy_ids"][:sure], case["prompt"]
        compared += sure
    assert compared >= 60


def test_every_clear_step_after_the_reference_s_own_history(culet, reference, real_model, tmp_path):
    """Given the reference's ids so far, the best token is the reference's wherever the margin is clear: no history is excused."""
    for case in reference["cases"]:
        ids = case["prompt_ids"] + case["greedy_ids"][:-1]
        culet("logits", "-m", real_model, "--ids", ",".join(map(str, ids)), "--all", "--out", tmp_path / "l")
        rows = numpy.fromfile(tmp_path / "l", "<f4").reshape(len(ids), -1)[len(case["prompt_ids"]) - 1:]
        best = rows.argmax(axis=1).tolist()
        wrong = [i for i, margin in enumerate(case["margins"]) if margin >= CLEAR and best[i] != case["greedy_ids"][i]]
        assert not wrong, (case["prompt"], wrong)


def test_same_bytes_however_it_runs(culet, real_model):
    prompt = "Once upon a time, in a small village by the sea, " * 8
    want = complete(culet, real_model, prompt, "-n", 24)
    for how in (["-t", 1], ["-ub", 1], ["-ub", 32], ["-b", 7], ["-c", 600]):
        assert complete(culet, real_model, prompt, "-n", 24, *how)["ids"] == want["ids"], how
    for kv in ("f32", "q8_0"):
        a = complete(culet, real_model, prompt, "-n", 24, "-ctk", kv, "-ctv", kv)
        assert a["ids"] == complete(culet, real_model, prompt, "-n", 24, "-ctk", kv, "-ctv", kv, "-ub", 5, "-t", 1)["ids"], kv


def test_levels_agree(culet, real_model):
    levels = json.loads(culet("doctor", "--json").out)["cpu_levels"]
    args = ["run", "-m", real_model, "-p", "The capital of France is", "-n", 8, "-s", 3, "--json"]
    ids = {level: culet(*args, env={"CULET_CPU": level}).json()["ids"] for level in levels}
    assert len({tuple(v) for v in ids.values()}) == 1, ids


def test_base_model(culet, real_model):
    doc = culet("run", "-m", real_model, "-p", "The capital of France is", "-n", 1, "--json").json()
    assert doc["prompt_ids"] == [2, 818, 5279, 529, 7001, 563]
    assert culet("chat", "-m", real_model).code == 6
    assert culet("run", "-m", real_model, "-sys", "x", "-p", "y").code == 2


def test_end_of_text_stops(culet, real_model):
    doc = culet("run", "-m", real_model, "-p", "x", "-n", 4, "-l", "1+1000", "--json").json()
    assert doc["ids"] == [] and doc["finish_reason"] == "stop"


def test_perplexity_of_plain_english(culet, real_model, tmp_path):
    (tmp_path / "t").write_text("The sun rises in the east and sets in the west. Water freezes at zero degrees Celsius. "
                                "In the morning, people drink coffee or tea and read the news before they go to work.")
    doc = culet("score", "-m", real_model, "-f", tmp_path / "t", "--json").json()
    assert 2 < doc["perplexity"] < 40
