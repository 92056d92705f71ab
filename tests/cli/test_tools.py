"""tokenize, detokenize, render, logits, score, show: what the model sees."""
import json
import os

import numpy
import pytest

TEMPLATES = ["chat_template.jinja", "chat_template_first.jinja", "chat_template_interleaved.jinja"]


def ids_text(ids):
    return ",".join(map(str, ids))


# ---- tokenize, detokenize

@pytest.mark.parametrize("model", ["tiny-dense", "tiny-dense/gguf/tiny-dense-Q4_0.gguf"])
def test_golden_strings(culet, golden, models, tmp_path, model):
    for case in golden("tokenizer", "strings.json")["strings"]:
        data = bytes.fromhex(case["utf8_hex"])
        doc = culet("tokenize", "-m", models / model, "--special", "--no-bos", "--json", stdin=data).json()
        assert doc["ids"] == case["ids"], case["text"]
        assert len(doc["pieces"]) == len(doc["ids"])


def test_pieces(culet, chat_model):
    doc = culet("tokenize", "-m", chat_model, "--no-bos", "-p", "Hello there 😀", "--json").json()
    joined = b"".join(bytes.fromhex(p[3:5]) if p.startswith("<0x") else p.encode() for p in doc["pieces"])
    assert joined == "Hello there 😀".encode()
    assert culet("tokenize", "-m", chat_model, "-p", "", "--json").json() == {"ids": [2], "pieces": ["<bos>"]}
    assert culet("tokenize", "-m", chat_model, "-p", "", "--no-bos", "--json").json() == {"ids": [], "pieces": []}
    raw = culet("tokenize", "-m", chat_model, "--no-bos", "--json", stdin=b"\xff").json()
    assert raw["pieces"] == ["<0xFF>"]


def test_list_feeds_ids(culet, chat_model):
    line = culet("tokenize", "-m", chat_model, "-p", "Hello there").out
    assert line.endswith(b"\n")
    assert culet("detokenize", "-m", chat_model, "--ids", line.decode().strip()).out == b"Hello there"


def test_detokenize_writes_bytes_only(culet, chat_model):
    assert culet("detokenize", "-m", chat_model, "--ids", "2,105,606,508,107", "--special").out == b"<bos><|turn>user\n"
    assert culet("detokenize", "-m", chat_model, "--ids", "2,105,606,508,107").out == b"user\n"
    assert culet("detokenize", "-m", chat_model, "--ids", "").out == b""
    assert culet("detokenize", "-m", chat_model, "--ids", "1280").code == 2


def test_special_id_beyond_the_rows(culet, models, tmp_path):
    """Gemma 3 folders hold <image_soft_token> beyond the rows of the embedding: text knows it, the network refuses it."""
    source = models / "tiny-gemma3"
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).symlink_to(source / name)
    document = json.loads((source / "tokenizer.json").read_text(encoding="utf-8"))
    document["added_tokens"].append({"id": 1280, "content": "<image_soft_token>", "special": True})
    (tmp_path / "tokenizer.json").write_text(json.dumps(document), encoding="utf-8")
    ids = culet("tokenize", "-m", tmp_path, "--special", "--no-bos", "-p", "<image_soft_token>", "--json").json()["ids"]
    assert ids == [1280]
    assert culet("detokenize", "-m", tmp_path, "--special", "--ids", "1280").out == b"<image_soft_token>"
    assert culet("detokenize", "-m", tmp_path, "--ids", "1281").code == 2
    for prompt in (("--ids", "2,1280"), ("--raw", "--special", "-p", "<image_soft_token>")):
        refused = culet("run", "-m", tmp_path, "-n", "1", *prompt)
        assert refused.code == 2 and "1280" in refused.err


# ---- render

@pytest.mark.parametrize("template", TEMPLATES)
def test_golden_conversations(culet, golden, chat_model, tmp_path, template):
    here = os.path.join(os.path.dirname(__file__), "..", "golden", "templates", template)
    rendered = 0
    for case in golden("templates", "conversations.json")["conversations"]:
        want = case["rendered"][template]
        if want is None:
            continue
        request = {"messages": case["messages"], "add_generation_prompt": case["add_generation_prompt"],
                   "chat_template_kwargs": {"enable_thinking": case["enable_thinking"]}}
        if case.get("tools"):
            request["tools"] = case["tools"]
        (tmp_path / "r.json").write_text(json.dumps(request))
        r = culet("render", "-m", chat_model, "--chat-template-file", here, tmp_path / "r.json")
        assert r.code == 0 and r.out.decode() == want, case["name"]
        rendered += 1
    assert rendered >= 15


def test_render_ids(culet, golden, chat_model, tmp_path):
    case = next(c for c in golden("templates", "conversations.json")["conversations"] if c["name"] == "developer role")
    (tmp_path / "r.json").write_text(json.dumps({"messages": case["messages"]}))
    assert culet("render", "-m", chat_model, tmp_path / "r.json", "--ids").json() == {"ids": case["ids"]}


def test_render_continues_a_reply(culet, chat_model):
    request = {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "According to"}],
               "add_generation_prompt": False, "continue_final_message": True}
    assert culet("render", "-m", chat_model, "-", stdin=json.dumps(request).encode()).out.endswith(b"According to")
    request["add_generation_prompt"] = True
    assert culet("render", "-m", chat_model, "-", stdin=json.dumps(request).encode()).code == 1


@pytest.mark.parametrize("request_text", [b"", b"{", b"[]", b"{}", b'{"messages":{}}', b'{"messages":[{"role":"usr","content":"x"}]}',
                                          b'{"messages":[{"role":"user","content":7}]}', b'{"messages":[],"messages":[]}',
                                          b'{"messages":[{"role":"user","content":"\xff"}]}', b"[" * 5000])
def test_render_refuses(culet, chat_model, request_text):
    r = culet("render", "-m", chat_model, "-", stdin=request_text)
    assert r.code == 1 and r.out == b"" and r.err.startswith("culet: ")


def test_render_of_a_missing_file(culet, chat_model):
    r = culet("render", "-m", chat_model, "no-such-file.json")
    assert r.code == 1 and "no-such-file.json" in r.err


def test_unknown_template_file(culet, chat_model, tmp_path):
    (tmp_path / "t.jinja").write_text("{% for m in messages %}<|im_start|>{{ m.content }}{% endfor %}")
    r = culet("render", "-m", chat_model, "--chat-template-file", tmp_path / "t.jinja", "-", stdin=b'{"messages":[]}')
    assert r.code == 6 and "t.jinja" in r.err


# ---- logits

@pytest.mark.parametrize("model", ["tiny-dense", "tiny-e2b", "tiny-gemma3", "tiny-moe", "tiny-unified"])
def test_golden_logits(culet, golden, models, tmp_path, model):
    case = golden("models", model, "golden.json")["text"]["main"]
    want = numpy.fromfile(models / model / case["logits"]["file"], "<f4").reshape(case["logits"]["shape"])
    args = ["logits", "-m", models / model, "--ids", ids_text(case["prompt_ids"]), "-ctk", "f32", "-ctv", "f32", "--out"]
    assert culet(*args, tmp_path / "all", "--all").out == b""
    got = numpy.fromfile(tmp_path / "all", "<f4").reshape(want.shape)
    assert (abs(got - want) <= 2e-3 + 1e-3 * abs(want)).all(), abs(got - want).max()
    culet(*args, tmp_path / "last")
    assert (tmp_path / "last").read_bytes() == (tmp_path / "all").read_bytes()[-4 * want.shape[1]:]
    culet(*args, tmp_path / "small", "--all", "-ub", 3, "-t", 1)
    assert (tmp_path / "small").read_bytes() == (tmp_path / "all").read_bytes()


def test_logits_to_a_full_disk(culet, chat_model):
    r = culet("logits", "-m", chat_model, "--ids", "2,3", "--out", "/dev/full")
    assert r.code == 1 and "/dev/full" in r.err


def test_logits_leave_no_half_file(culet, chat_model, tmp_path):
    r = culet("logits", "-m", chat_model, "--ids", "2,3,4", "-c", 2, "--out", tmp_path / "l")
    assert r.code == 1 and not (tmp_path / "l").exists()


# ---- score

def log_softmax(rows):
    rows = rows.astype(numpy.float64)
    rows = rows - rows.max(axis=1, keepdims=True)
    return rows - numpy.log(numpy.exp(rows).sum(axis=1, keepdims=True))


TEXT = b"The quick brown fox jumps over the lazy dog, and the dog does not mind at all.\n" * 3


def test_score(culet, chat_model, tmp_path):
    """Recomputed from the saved logits: windows begin with BOS, and every token of the text counts once."""
    (tmp_path / "t").write_bytes(TEXT)
    doc = culet("score", "-m", chat_model, "-f", tmp_path / "t", "-c", 32, "--save-logits", tmp_path / "l", "--json").json()
    ids = numpy.fromfile(f"{tmp_path}/l.ids", "<i4")
    rows = log_softmax(numpy.fromfile(tmp_path / "l", "<f4").reshape(len(ids), -1))
    text = culet("tokenize", "-m", chat_model, "-f", tmp_path / "t", "--no-bos", "--json").json()["ids"]
    assert [i for i in ids if i != 2] == text and ids[0] == 2
    assert doc["tokens"] == doc["scored"] == len(text) and doc["windows"] == -(-len(text) // 31) and doc["rows"] == len(ids)
    nll = -sum(rows[i, ids[i + 1]] for i in range(len(ids) - 1) if ids[i + 1] != 2)
    assert abs(doc["nll"] - nll) < 1e-6 * nll
    assert abs(doc["perplexity"] - numpy.exp(nll / len(text))) < 1e-6 * doc["perplexity"]
    bare = culet("score", "-m", chat_model, "-f", tmp_path / "t", "-c", 32, "--no-bos", "--json").json()
    assert bare["scored"] == len(text) - bare["windows"]
    assert b"perplexity" in culet("score", "-m", chat_model, "-f", tmp_path / "t").out


def test_kl(culet, models, tmp_path):
    (tmp_path / "t").write_bytes(TEXT)
    base, other = models / "tiny-dense", models / "tiny-dense" / "gguf" / "tiny-dense-Q4_0.gguf"
    args = ["-f", tmp_path / "t", "-c", 40, "--json"]
    culet("score", "-m", base, *args, "--save-logits", tmp_path / "b")
    same = culet("score", "-m", base, *args, "--kl-base", tmp_path / "b").json()["kl"]
    assert same["mean"] == 0 and same["top1_agreement"] == 1 and same["first_divergence"] is None
    kl = culet("score", "-m", other, *args, "--kl-base", tmp_path / "b", "--save-logits", tmp_path / "o").json()["kl"]
    shape = (kl["rows"], -1)
    raw_p, raw_q = (numpy.fromfile(tmp_path / f, "<f4").reshape(shape) for f in "bo")
    p, q = log_softmax(raw_p), log_softmax(raw_q)
    each = (numpy.exp(p) * (p - q)).sum(axis=1)
    best_p, best_q = raw_p.argmax(axis=1), raw_q.argmax(axis=1)
    assert abs(kl["mean"] - each.mean()) < 1e-6 and abs(kl["max"] - each.max()) < 1e-6
    assert abs(kl["top1_agreement"] - (best_p == best_q).mean()) < 1e-9
    row = int((best_p != best_q).argmax())
    top = numpy.sort(raw_p[row])[-2:]
    assert kl["first_divergence"]["row"] == row and kl["first_divergence"]["base_id"] == best_p[row]
    assert kl["first_divergence"]["model_id"] == best_q[row]
    assert abs(kl["first_divergence"]["base_margin"] - (top[1] - top[0])) < 1e-5


def test_kl_base_must_fit(culet, chat_model, tmp_path):
    (tmp_path / "t").write_bytes(TEXT)
    args = ["score", "-m", chat_model, "-f", tmp_path / "t", "-c", 40]
    culet(*args, "--save-logits", tmp_path / "b")
    whole = (tmp_path / "b").read_bytes()
    for data in (whole[:-4], whole[:-1280 * 4], whole + bytes(1280 * 4), b""):
        (tmp_path / "b").write_bytes(data)
        r = culet(*args, "--kl-base", tmp_path / "b")
        assert r.code == 3 and r.out == b"", len(data)
    (tmp_path / "b").write_bytes(whole)
    assert culet(*args[:-1], 39, "--kl-base", tmp_path / "b").code == 3
    assert culet(*args, "--kl-base", tmp_path / "none").code == 3


def test_score_needs_text(culet, chat_model):
    assert culet("score", "-m", chat_model).code == 2
    assert culet("score", "-m", chat_model, "-p", "x", "-c", "1").code == 2


# ---- show

@pytest.mark.parametrize("model", ["tiny-moe", "tiny-e/gguf/tiny-e-Q4_K_M.gguf"])
def test_show(culet, models, model):
    doc = culet("show", "-m", models / model, "--json").json()
    assert {"config", "tensors"} <= set(doc)
    for tensor in doc["tensors"]:
        assert {"name", "type", "shape", "offset", "bytes"} <= set(tensor)
    text = culet("show", models / model)
    assert text.code == 0 and doc["tensors"][0]["name"].encode() in text.out and text.err == ""
