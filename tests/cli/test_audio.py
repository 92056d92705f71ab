"""culet run and logits with --audio: the reference's ids from every form of tower and file, and one clear line otherwise."""
import pathlib
import struct

import numpy
import pytest

GREEDY = ["--temp", "0", "--ignore-eos", "-n", 32, "-ctk", "f32", "-ctv", "f32", "--json"]
SOUNDS = pathlib.Path(__file__).resolve().parent.parent / "golden" / "sounds"
CHIRP = SOUNDS / "chirp.wav"
TOWERS = {"conformer": "tiny-audio", "unified": "tiny-unified"}


@pytest.fixture(scope="module", autouse=True)
def hears(culet, models):
    r = culet("run", "-m", models / "tiny-audio", "--audio", CHIRP, "-p", "x", "-n", 1)
    if r.code == 6 and "built without" in r.err:
        pytest.skip("built without libsndfile")


def case(golden, model):
    return golden("models", model, "golden.json")["media"]["cases"]["chirp"]


def ids_of(ids):
    return ",".join(map(str, ids))


def mmproj(models, model):
    return models / model / "gguf" / f"{model}-mmproj-f32.gguf"


def wav(path, samples, rate=16000, channels=1):
    data = numpy.clip(numpy.asarray(samples) * 32767, -32768, 32767).astype("<i2").tobytes()
    head = struct.pack("<4sI4s4sIHHIIHH4sI", b"RIFF", 36 + len(data), b"WAVE", b"fmt ", 16, 1, channels, rate,
                       rate * channels * 2, channels * 2, 16, b"data", len(data))
    path.write_bytes(head + data)
    return path


def tone(seconds, rate=16000):
    return 0.3 * numpy.sin(numpy.arange(int(seconds * rate)) * 2 * numpy.pi * 440 / rate)


@pytest.mark.parametrize("tower", ["folder", "mmproj"])
@pytest.mark.parametrize("model", TOWERS.values())
def test_goldens(culet, golden, models, model, tower):
    want = case(golden, model)
    extra = ["--mmproj", mmproj(models, model)] if tower == "mmproj" else []
    r = culet("run", "-m", models / model, "--ids", ids_of(want["prompt_ids"]), "--audio", CHIRP, *extra, *GREEDY).json()
    assert r["ids"] == want["greedy_ids"] and r["prompt_ids"] == want["prompt_ids"]


@pytest.mark.parametrize("model", TOWERS.values())
def test_logits(culet, golden, models, model, tmp_path):
    want = case(golden, model)
    reference = numpy.fromfile(models / model / "case.chirp.last_logits.f32", "<f4")
    r = culet("logits", "-m", models / model, "--ids", ids_of(want["prompt_ids"]), "--audio", CHIRP, "-ctk", "f32", "-ctv",
              "f32", "--out", tmp_path / "l")
    assert r.code == 0, r.err
    got = numpy.fromfile(tmp_path / "l", "<f4")
    assert numpy.all(numpy.abs(got - reference) <= 2e-3 + 1e-3 * numpy.abs(reference))


@pytest.mark.parametrize("model", TOWERS.values())
def test_bytes_do_not_depend_on_how(culet, golden, models, model, tmp_path):
    ids, bytes_seen = ids_of(case(golden, model)["prompt_ids"]), set()
    for threads, batch, level in ((1, 512, "scalar"), (2, 7, ""), (3, 32, "avx2"), (4, 1, "")):
        r = culet("logits", "-m", models / model, "--ids", ids, "--audio", CHIRP, "-t", threads, "-ub", batch, "--out",
                  tmp_path / "l", env={"CULET_CPU": level})
        if r.code == 6 and level:
            continue
        assert r.code == 0, r.err
        bytes_seen.add((tmp_path / "l").read_bytes())
    assert len(bytes_seen) == 1


@pytest.mark.parametrize("name", ["short.flac", "short.ogg", "opus.ogg", "short.mp3"])
@pytest.mark.parametrize("model", TOWERS.values())
def test_formats(culet, models, model, name):
    r = culet("run", "-m", models / model, "--audio", SOUNDS / name, "-p", "What is it?", "-n", 4, "--temp", "0", "--json")
    slot = 1276  # the tiny vocabulary's id of a soft token of sound
    assert r.json()["prompt_ids"].count(slot) == 13  # 0.5 s: 49 frames, or 12.5 times 640 samples


def test_rates_and_channels(culet, models, tmp_path):
    plain = wav(tmp_path / "a.wav", tone(1))
    wide = wav(tmp_path / "b.wav", numpy.repeat(tone(1, 48000), 8), 48000, 8)
    args = ["run", "-m", models / "tiny-audio", "-p", "x", "--temp", "0", "-n", 8, "--json", "--audio"]
    a, b = culet(*args, plain).json(), culet(*args, wide).json()
    assert a["prompt_ids"] == b["prompt_ids"] and a["prompt_ids"].count(1276) == 25


def refused(r, *words):
    """One line that says why, and perhaps one that says what to do; nothing on standard output."""
    lines = r.err.splitlines()
    assert r.code in (1, 2, 6) and r.out == b"", (r.code, r.out)
    assert lines[0].startswith("culet: ") and len(lines) <= 2
    for word in words:
        assert word in lines[0], lines[0]


def test_longer_than_the_model_takes(culet, models, tmp_path):
    path = wav(tmp_path / "long.wav", tone(31.5))
    refused(culet("run", "-m", models / "tiny-audio", "--audio", path, "-p", "x"), "long.wav", "31.50 s", "30.00 s")
    assert culet("run", "-m", models / "tiny-unified", "--audio", path, "-p", "x", "-n", 1, "-c", 2048).code == 0


def test_too_short(culet, models, tmp_path):
    path = wav(tmp_path / "short.wav", tone(0.01))
    refused(culet("run", "-m", models / "tiny-audio", "--audio", path, "-p", "x"), "short.wav", "10 ms", "too short")
    assert culet("run", "-m", models / "tiny-unified", "--audio", path, "-p", "x", "-n", 1).code == 0


@pytest.mark.parametrize("data, words", [
    (b"", ["is empty"]), (b"<html></html>", ["no sound"]), (CHIRP.read_bytes()[:20000], ["cut off", "19956 of 36160"]),
    (CHIRP.read_bytes()[:44], ["cut off"]), ((SOUNDS / "short.flac").read_bytes()[:-500], ["damaged or cut off"]),
    ((SOUNDS / "short.ogg").read_bytes()[:-100], ["cut off"]), ((SOUNDS / "short.mp3").read_bytes()[:-100], ["cut off"]),
    (b"\0\0\0\x20ftypM4A \0\0\0\0", ["MP4 or M4A"])])
def test_files_that_are_no_sound(culet, models, tmp_path, data, words):
    path = tmp_path / "odd.wav"
    path.write_bytes(data)
    for model in TOWERS.values():
        refused(culet("run", "-m", models / model, "--audio", path, "-p", "x"), "odd.wav", *words)


def test_remarks(culet, models, tmp_path):
    """Sound that is probably not what was meant is taken, with one line."""
    args = ["run", "-m", models / "tiny-audio", "-p", "x", "-n", 1, "--audio"]
    for samples, channels, word in ((tone(1) * 9, 1, "clipped"), (tone(1) * 0, 1, "silent"),
                                    (numpy.repeat(tone(1), 8), 8, "8 channels")):
        path = wav(tmp_path / "odd.wav", samples, 16000, channels)
        r = culet(*args, path)
        assert r.code == 0 and len(r.err.splitlines()) == 1 and "odd.wav: " in r.err and word in r.err, r.err
        assert culet(*args, path, "-q").err == ""
    assert culet(*args, CHIRP).err == ""


def test_missing_file(culet, models, tmp_path):
    refused(culet("run", "-m", models / "tiny-audio", "--audio", tmp_path / "none.wav", "-p", "x"), "none.wav", "No such file")


def test_a_model_that_does_not_hear(culet, models):
    r = culet("run", "-m", models / "tiny-dense", "--audio", CHIRP, "-p", "x")
    assert r.code == 6 and r.out == b"" and "cannot hear" in r.err


def test_a_vision_file_of_another_model(culet, models):
    text = models / "tiny-e" / "gguf" / "tiny-e-Q4_K_M.gguf"
    r = culet("run", "-m", text, "--mmproj", mmproj(models, "tiny-audio"), "--audio", CHIRP, "-p", "x")
    assert r.code == 3 and "width" in r.err and "mmproj" in r.err, r.err


def test_counts_that_differ(culet, golden, models, tmp_path):
    """The k-th span of the prompt takes the k-th sound; a wrong number of them or of their tokens names both."""
    ids = case(golden, "tiny-audio")["prompt_ids"]
    args = ["run", "-m", models / "tiny-audio", "--ids", ids_of(ids), "-n", 1]
    r = culet(*args, "--audio", CHIRP, "--audio", CHIRP)
    assert r.code == 2 and "1" in r.err and "2" in r.err, r.err
    r = culet(*args, "--audio", wav(tmp_path / "a.wav", tone(1)))
    assert r.code == 2 and "28" in r.err and "25" in r.err, r.err
