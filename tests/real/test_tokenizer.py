"""The real Gemma 4 vocabulary, which is too big for this repository: CULET_GEMMA4_VOCAB names a GGUF file that has it."""
import os
import pathlib

import pytest

NEWLINE = 107  # first of 31 runs
LONG = 1_000_000


@pytest.fixture(scope="module")
def vocab():
    path = os.environ.get("CULET_GEMMA4_VOCAB")
    if not path:
        pytest.skip("CULET_GEMMA4_VOCAB is not set")
    assert pathlib.Path(path).exists(), path
    return path


def ids_of(culet, vocab, data, *flags):
    return culet("tokenize", "-m", vocab, "--no-bos", "--json", *flags, stdin=data, timeout=20).json()["ids"]


def test_strings(culet, golden, vocab):
    for case in golden("real", "gemma4_vocab.json")["strings"]:
        assert ids_of(culet, vocab, bytes.fromhex(case["utf8_hex"]), "--special") == case["ids"], case["text"]


def test_newlines(culet, vocab):
    for n in range(1, 41):
        expected = [NEWLINE + n - 1] if n <= 31 else [NEWLINE + 30, NEWLINE + n - 32]
        assert ids_of(culet, vocab, b"\n" * n) == expected


def test_text_of_specials_stays_text(culet, golden, vocab):
    """Also where merges could make a special piece."""
    for case in golden("real", "gemma4_vocab.json")["strings"]:
        if "<" not in (case["text"] or ""):
            continue
        ids = ids_of(culet, vocab, bytes.fromhex(case["utf8_hex"]))
        assert not any(i <= 4 or 46 <= i <= 52 or i in (98, 100, 101, 105, 106) or i in (255999, 256000) or 258880 <= i <= 258884
                       for i in ids), case["text"]


@pytest.mark.parametrize("unit", [b" ", b"a", b"\n", b"\t", b"<", b"word ", b"ab"])
def test_long_text_without_a_cut(culet, vocab, unit):
    data = unit * (LONG // len(unit))
    ids = ids_of(culet, vocab, data)
    assert 30_000 < len(ids) <= len(data)


def test_detokenize_gives_the_text_back(culet, golden, vocab):
    for case in golden("real", "gemma4_vocab.json")["strings"]:
        if case["ids"] and "▁" not in case["text"]:
            args = ("detokenize", "-m", vocab, "--special", "--ids", ",".join(map(str, case["ids"])))
            assert culet(*args).out == bytes.fromhex(case["utf8_hex"])
