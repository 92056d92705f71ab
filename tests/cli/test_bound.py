"""Replies held to a grammar or a JSON Schema: what comes out, with thoughts or without, and errors before a model is opened."""
import json
import re

import pytest

from conftest import MODELS

MODEL = MODELS / "tiny-dense"
PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 6},
        "n": {"type": "integer", "minimum": 3, "maximum": 50},
        "tags": {"type": "array", "items": {"enum": ["a", "b\n\"c\""]}, "maxItems": 2},
    },
    "required": ["name", "n", "tags"],
    "additionalProperties": False,
}


def check_person(text):
    value = json.loads(text)
    assert list(value) == ["name", "n", "tags"]
    assert len(value["name"]) <= 6 and 3 <= value["n"] <= 50
    assert len(value["tags"]) <= 2 and all(t in ("a", "b\n\"c\"") for t in value["tags"])


@pytest.mark.parametrize("options", [[], ["--temp", "0"], ["--top-k", "0", "--temp", "1.5"], ["--raw"], ["--ignore-eos"]])
def test_schema(culet, options):
    for seed in range(3):
        done = culet("run", "-m", MODEL, "-p", "hello", "-s", seed, "-j", json.dumps(PERSON), *options)
        assert done.code == 0, done.err
        check_person(done.out)


def test_schema_file_and_document(culet, tmp_path):
    path = tmp_path / "person.json"
    path.write_text(json.dumps(PERSON))
    flag = culet("run", "-m", MODEL, "-p", "hello", "-s", 5, "--json-schema", json.dumps(PERSON), "--json").json()
    file = culet("run", "-m", MODEL, "-p", "hello", "-s", 5, "-jf", path, "--json").json()
    check_person(flag["text"])
    assert flag["ids"] == file["ids"] and flag["finish_reason"] == "stop"


def test_any_json(culet):
    done = culet("run", "-m", MODEL, "-p", "x", "-s", 1, "-n", 40, "-j", '{"type":"array","maxItems":0}')
    assert re.fullmatch(rb"\[\s*\]", done.out)


def test_grammar(culet, tmp_path):
    path = tmp_path / "g.gbnf"
    path.write_text('root ::= ("yes" | "no") " " [0-9]{3}\n')
    for seed in range(3):
        done = culet("run", "-m", MODEL, "-p", "x", "-s", seed, "--grammar-file", path)
        assert re.fullmatch(rb"(yes|no) [0-9]{3}", done.out)


def test_cut_reply_is_a_beginning(culet):
    reply = culet("run", "-m", MODEL, "-p", "x", "-n", 3, "--grammar", 'root ::= "a"{100}', "--json").json()
    assert set(reply["text"]) == {"a"} and reply["finish_reason"] == "length" and len(reply["ids"]) == 3


def test_what_is_allowed_anyway_is_not_changed(culet):
    """Greedy: a grammar that allows just what the model would say changes no id."""
    free = culet("run", "-m", MODEL, "-p", "hello", "--temp", 0, "-n", 12, "--raw", "--json").json()
    literal = json.dumps(free["text"], ensure_ascii=True)
    literal = re.sub(r"\\b", r"\\x08", re.sub(r"\\f", r"\\x0c", literal))
    assert "\ufffd" not in free["text"]
    bound = culet("run", "-m", MODEL, "-p", "hello", "--temp", 0, "-n", 12, "--raw", "--json",
                  "--grammar", f"root ::= {literal} .*").json()
    assert bound["ids"] == free["ids"]


def test_thought_stays_free(culet):
    """Whatever the thought is, what stands behind it is JSON; without thinking no thought comes."""
    for seed in range(4):
        done = culet("run", "-m", MODEL, "-p", "hello", "-s", seed, "--think", "on", "-j", json.dumps(PERSON), "-n", 200, "--json")
        reply = done.json()
        if reply["finish_reason"] == "stop":
            check_person(reply["text"])
        else:
            assert reply["text"] == "" or reply["text"].startswith("{")
        assert culet("run", "-m", MODEL, "-p", "hello", "-s", seed, "-j", "{}", "-n", 20, "--json").json()["reasoning"] == ""


@pytest.mark.parametrize("sampling", [["--temp", "0"], ["-s", "7"]])
def test_drafts_change_nothing(culet, sampling, tmp_path):
    """Drafts come from the prompt or a file, good ones and bad ones; the reply stays the same."""
    prompt = 'Give me {"name":"abc","n":12,"tags":["a","a"]} and {"name":"abc","n":12,"tags":[]}'
    common = ["run", "-m", MODEL, "-p", prompt, "-j", json.dumps(PERSON), "--json", *sampling]
    off = culet(*common, "--spec", "off").json()
    check_person(off["text"])
    assert culet(*common, "--spec", "lookup").json()["ids"] == off["ids"]
    assert culet(*common, "--spec", "auto").json()["ids"] == off["ids"]
    for name, text in [("same", off["text"]), ("other", '{"name":"zzz", "n": 1, "tags": [1]} and more')]:
        (tmp_path / name).write_text(text)
        assert culet(*common, "--spec", "lookup", "--predict-file", tmp_path / name).json()["ids"] == off["ids"]


@pytest.mark.parametrize("flags, words", [
    (["-j", '{"not":{}}'], "json_schema: #: not: this key cannot be honoured"),
    (["-j", '{"type":"object","properties":{"a":{"pattern":"(?=x)"}}}'], "#/properties/a: pattern"),
    (["-j", "{"], "json_schema: not valid JSON"),
    (["--grammar", 'root ::= "a'], "grammar: line 1: a text without its closing quote"),
    (["--grammar", "root ::= root | \"a\""], "left recursion"),
    (["--grammar", 'root ::= "a"', "-j", "{}"], "does not go together"),
    (["--grammar-file", "/nonexistent/g"], "/nonexistent/g"),
    (["-jf", "/nonexistent/s"], "/nonexistent/s"),
])
def test_errors_come_before_the_model(culet, flags, words):
    done = culet("run", "-m", "/nonexistent/model.gguf", "-p", "x", *flags)
    assert words in done.err and done.err.count("\n") <= 2 and done.out == b""
    assert done.code == (1 if "nonexistent/g" in words or "nonexistent/s" in words else 2)


def test_chat(culet):
    done = culet("chat", "-m", MODEL, "-s", 3, "-j", json.dumps(PERSON), stdin=b"hello\nonce more\n")
    assert done.code == 0, done.err
    decoder, text = json.JSONDecoder(), done.out.decode()
    first, end = decoder.raw_decode(text)
    second, _ = decoder.raw_decode(text[end:].lstrip())
    check_person(json.dumps(first))
    check_person(json.dumps(second))
