"""Captions: files, folders that are gone on with, videos, cameras, recordings; the one that is encoded ahead."""
import fcntl
import json
import math
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import time
import wave
import zlib

import pytest

GREEDY = ["--temp", "0", "-n", "4"]
DEVICE = "/dev/no-such-camera"
needs_ffmpeg = pytest.mark.skipif(not shutil.which("ffmpeg"), reason="no ffmpeg")


@pytest.fixture(scope="session")
def seeing(models):
    return models / "tiny-vision"


@pytest.fixture(scope="session")
def pictures(models):
    return models.parent / "media"


def png(path, width, height, pixel):
    """A picture of pixel(x, y) -> (r, g, b)."""
    rows = b"".join(b"\0" + bytes(v for x in range(width) for v in pixel(x, y)) for y in range(height))

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) +
                     chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
    return path


def stripes(path, seed):
    return png(path, 60, 40, lambda x, y: ((x * seed) % 256, (y * 5) % 256, 40 * (seed % 5)))


def lines(result):
    assert result.code == 0, result.err
    return [json.loads(line) for line in result.out.splitlines()]


def one_line(result, *words):
    first, *rest = result.err.strip().splitlines()
    assert first.startswith("culet: ") and len(rest) <= 1, result.err
    for word in words:
        assert str(word) in result.err


# ---- files ----

def test_one_picture_is_what_run_says(culet, seeing, pictures):
    args = ["-m", seeing, "--image", pictures / "square.jpg", "-p", "What is this?", *GREEDY]
    assert culet("caption", *args).out == culet("run", *args).out != b""


def test_the_question_may_come_from_a_file(culet, seeing, pictures, tmp_path):
    question = tmp_path / "q.txt"
    question.write_text("What is this?\n")
    asked = [culet("caption", "-m", seeing, "--image", pictures / "square.jpg", *q, *GREEDY, "--json").json()["prompt_n"]
             for q in (["-p", "What is this?"], ["-f", question], ["-p", "What is this? Tell me."], [])]
    assert asked[0] == asked[1] < asked[2] and asked[3] > asked[0]


def test_several_pictures(culet, seeing, pictures):
    names = [str(pictures / n) for n in ("square.jpg", "tall.png", "wide.png")]
    args = ["-m", seeing, "-p", "What?", *GREEDY]
    told = lines(culet("caption", *args, "--image", *names, "--json"))
    again = lines(culet("caption", *args, *[a for n in names for a in ("--image", n)], "--json"))
    assert [t["file"] for t in told] == names and [t["text"] for t in told] == [t["text"] for t in again]
    assert (told[1]["width"], told[1]["height"]) == (90, 401)
    alone = [culet("caption", *args, "--image", n).out.decode("utf-8", "replace") for n in names]
    assert [t["text"] for t in told] == alone and len(set(alone)) > 1
    text = culet("caption", *args, "--image", *names).out.decode("utf-8", "replace")
    assert text == "".join(f"{n}: {a}\n" for n, a in zip(names, alone))


def test_only_the_picture_and_what_follows_is_read_again(culet, seeing, pictures):
    names = [str(pictures / n) for n in ("square.jpg", "tall.png", "wide.png")]
    for system in ([], ["-sys", "One two three four five six seven eight nine ten."]):
        asked = ["-m", seeing, "-p", "What is there?", *system, *GREEDY]
        told = lines(culet("caption", *asked, "--image", *names, "--json"))
        whole = culet("run", "--image", names[1], *asked, "--json").json()["prompt_ids"]
        slot = max(set(whole), key=whole.count)
        before = whole.index(slot)  # the mark that begins a picture is the same for all
        assert told[0]["cache_n"] == 0
        assert [t["cache_n"] for t in told[1:]] == [before, before]
        assert told[1]["cache_n"] + told[1]["prompt_n"] == len(whole)


def test_times(culet, seeing, pictures):
    told = lines(culet("caption", "-m", seeing, "--image", *[pictures / "square.jpg", pictures / "tall.png"], "--json", *GREEDY))
    for t in told:
        parts = [t[k + "_ms"] for k in ("capture", "encode", "wait", "feed", "generate")]
        assert all(p >= 0 for p in parts) and t["encode_ms"] > 0 and t["feed_ms"] > 0
        assert t["cycle_ms"] >= t["wait_ms"] + t["feed_ms"] + t["generate_ms"] - 0.01


def test_a_bad_file_does_not_stop_the_others(culet, seeing, pictures, tmp_path):
    bad = tmp_path / "bad.jpg"
    bad.write_bytes(b"no picture")
    r = culet("caption", "-m", seeing, "--image", pictures / "tall.png", bad, tmp_path / "absent.png", pictures / "wide.png",
              "--json", *GREEDY)
    assert r.code == 1 and len(r.out.splitlines()) == 2
    assert "bad.jpg" in r.err and "absent.png" in r.err and "2 of 4" in r.err
    alone = culet("caption", "-m", seeing, "--image", bad, *GREEDY)
    assert alone.code == 1 and alone.out == b""
    one_line(alone, "bad.jpg")


@pytest.mark.parametrize("args,word", [
    ([], "--camera"), (["--image", "a.png", "--dir", "d"], "more than one"), (["--image", "a.png", "--audio", "a.wav"], "more than one"),
    (["--image", ""], "--image"), (["--image", "a.png", "--every", "2"], "--every"), (["--video", "v", "--every", "-1"], "--every"),
    (["--video", "v", "--out", "o"], "--out"), (["--camera", "c", "--frames", "-1"], "--frames"),
])
def test_usage(culet, seeing, args, word):
    r = culet("caption", "-m", seeing, *args)
    assert r.code == 2
    one_line(r, word)


def test_a_model_that_cannot_see(culet, models, pictures):
    r = culet("caption", "-m", models / "tiny-e2b", "--image", pictures / "tall.png", pictures / "wide.png", *GREEDY)
    assert r.code == 6
    one_line(r, "see")


# ---- folders ----

@pytest.fixture
def folder(tmp_path):
    root = tmp_path / "d"
    for i, name in enumerate(["b.png", "a/2.PNG", "a/1.png", "c/d/e.png"]):
        stripes(root / name, i + 3)
    (root / "a" / "notes.txt").write_text("no picture")
    os.symlink(root, root / "c" / "loop")
    return root


def kept(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_folder(culet, seeing, folder):
    told = lines(culet("caption", "-m", seeing, "--dir", folder, "--json", *GREEDY))
    assert [os.path.relpath(t["file"], folder) for t in told] == ["a/1.png", "a/2.PNG", "b.png", "c/d/e.png"]


@pytest.mark.parametrize("make,word", [(lambda p: None, "absent"), (lambda p: p.mkdir(), "no pictures"), (lambda p: p.write_text("x"), "folder")])
def test_folders_that_give_nothing(culet, seeing, tmp_path, make, word):
    path = tmp_path / "absent"
    make(path)
    r = culet("caption", "-m", seeing, "--dir", path)
    assert r.code == 1
    one_line(r, path, word)


def test_going_on(culet, seeing, folder, tmp_path):
    out = tmp_path / "captions.jsonl"
    args = ["caption", "-m", seeing, "--dir", folder, "--out", out, *GREEDY]
    first = culet(*args)
    assert first.code == 0 and first.out == b"" and "4 captions" in first.err
    whole = out.read_bytes()
    assert len({k["sha256"] for k in kept(out)}) == 4
    assert culet(*args).code == 0 and out.read_bytes() == whole  # nothing is done twice
    out.write_bytes(whole[:-30])  # the last line was cut off
    (folder / "b.png").rename(folder / "z.png")  # known by what it holds, not by its name
    stripes(folder / "new.png", 77)
    assert culet(*args).code == 0
    assert len(kept(out)) == 5 and out.read_bytes().startswith(whole[:whole.rindex(b"\n", 0, -1) + 1])
    assert [os.path.relpath(k["file"], folder) for k in kept(out)[3:]] == ["c/d/e.png", "new.png"]
    texts = {k["sha256"]: k["text"] for k in kept(out)}
    assert texts == {k["sha256"]: k["text"] for k in map(json.loads, whole.decode().splitlines())} | {kept(out)[4]["sha256"]: kept(out)[4]["text"]}


@pytest.mark.parametrize("text", ["{}\n", "hello\n", '{"sha256":"12"}\n', '{"sha256":5}\n'])
def test_a_file_of_something_else_is_left_alone(culet, seeing, folder, tmp_path, text):
    out = tmp_path / "other.jsonl"
    out.write_text(text)
    r = culet("caption", "-m", seeing, "--dir", folder, "--out", out)
    assert r.code == 1 and out.read_text() == text
    one_line(r, out, "line 1")


def test_one_writer_at_a_time(culet, seeing, folder, tmp_path):
    out = tmp_path / "captions.jsonl"
    with out.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        r = culet("caption", "-m", seeing, "--dir", folder, "--out", out)
    assert r.code == 1
    one_line(r, out, "another process")


def test_interrupted_and_gone_on_with(culet, spawn, seeing, tmp_path):
    root, out = tmp_path / "many", tmp_path / "captions.jsonl"
    for i in range(40):
        stripes(root / f"{i:02}.png", i + 1)
    args = ["caption", "-m", seeing, "--dir", root, "--out", out, *GREEDY]
    running = spawn(*args)
    until = time.monotonic() + 60
    while not (out.exists() and out.read_bytes().count(b"\n") >= 3) and time.monotonic() < until:
        time.sleep(0.01)
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=60)
    assert running.returncode == 130 and b"interrupted" in err
    assert 3 <= len(kept(out)) < 40
    assert culet(*args).code == 0
    assert sorted(os.path.basename(k["file"]) for k in kept(out)) == [f"{i:02}.png" for i in range(40)]


# ---- videos ----

@pytest.fixture(scope="session")
def film(tmp_path_factory):
    path = tmp_path_factory.mktemp("film") / "v.mkv"
    subprocess.run(["ffmpeg", "-v", "error", "-f", "lavfi", "-i", "testsrc=size=160x120:rate=10:duration=7", "-c:v", "ffv1", path],
                   check=True)
    return path


@needs_ffmpeg
def test_a_video(culet, seeing, film):
    told = lines(culet("caption", "-m", seeing, "--video", film, "--every", "2", "--json", *GREEDY))
    assert [round(t["seconds"], 3) for t in told] == [0, 2, 4, 6] and [t["frame"] for t in told] == [0, 1, 2, 3]
    assert {(t["width"], t["height"]) for t in told} == {(160, 120)}
    assert [t["seconds"] for t in lines(culet("caption", "-m", seeing, "--video", film, "--json", *GREEDY))] == [0, 5]
    two = culet("caption", "-m", seeing, "--video", film, "--every", "2", "--frames", "2", *GREEDY)
    assert two.code == 0 and two.out.startswith(b"[00:00] ") and b"\n[00:02] " in two.out and b"[00:04]" not in two.out


@needs_ffmpeg
def test_a_frame_is_what_the_picture_would_be(culet, seeing, film, tmp_path):
    frame = tmp_path / "f.png"
    subprocess.run(["ffmpeg", "-v", "error", "-ss", "4", "-i", film, "-frames:v", "1", frame], check=True)
    asked = ["-m", seeing, "-p", "What?", "--temp", "0", "-n", "8", "--json"]
    picture = culet("caption", *asked, "--image", frame).json()["text"]
    assert lines(culet("caption", *asked, "--video", film, "--every", "4"))[1]["text"] == picture


def test_no_ffmpeg(culet, seeing, pictures, tmp_path):
    r = culet("caption", "-m", seeing, "--video", pictures / "wide.png", env={"PATH": str(tmp_path)})
    assert r.code == 6
    one_line(r, "ffmpeg")


# ---- cameras ----

@pytest.fixture(scope="session")
def fake(tmp_path_factory, binary, pictures):
    """Runs culet with a camera that is none."""
    if b"__asan_init" in pathlib.Path(binary).read_bytes() or b"__tsan_init" in pathlib.Path(binary).read_bytes():
        pytest.skip("a sanitizer wants to be loaded first")
    folder = tmp_path_factory.mktemp("camera")
    source = pathlib.Path(__file__).with_name("fake_camera.c")
    subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-O1", "-o", folder / "fake.so", source, "-ldl"], check=True)
    shutil.copy(pictures / "square.jpg", folder / "p0.jpg")

    def environment(kind, **more):
        return {"LD_PRELOAD": str(folder / "fake.so"), "FAKE_CAMERA": DEVICE, "FAKE_CAMERA_KIND": kind,
                "FAKE_CAMERA_JPEGS": str(folder / "p"), **{f"FAKE_CAMERA_{k}": str(v) for k, v in more.items()}}
    return environment


def watch(culet, seeing, env, *args, every="0"):
    return culet("caption", "-m", seeing, "--camera", DEVICE, "-p", "What?", "--every", every, *GREEDY, "--json", *args, env=env)


def test_a_camera_of_jpegs(culet, seeing, fake, pictures):
    told = lines(watch(culet, seeing, fake("mjpeg"), "--frames", "3"))
    still = culet("caption", "-m", seeing, "--image", pictures / "square.jpg", "-p", "What?", *GREEDY).out.decode("utf-8", "replace")
    assert [t["text"] for t in told] == [still] * 3 and {t["camera"] for t in told} == {DEVICE}


def from_yuv(y, u, v):
    """BT.601, studio range."""
    c, d, e = 298 * (y - 16) + 128, u - 128, v - 128
    return tuple(max(0, min(255, s >> 8)) for s in (c + 409 * e, c - 100 * d - 208 * e, c + 516 * d))


@pytest.mark.parametrize("kind", ["yuyv", "colours"])
def test_a_camera_of_yuyv(culet, seeing, fake, tmp_path, kind):
    told = lines(watch(culet, seeing, fake(kind), "--frames", "2", "-n", "12"))[1]
    if kind == "yuyv":
        grey = from_yuv(16 + told["frame"] % 200, 128, 128)
        made = png(tmp_path / "p.png", 64, 48, lambda x, y: grey)
    else:
        made = png(tmp_path / "p.png", 64, 48, lambda x, y: from_yuv(60 + x * 2 + y, 16 + x // 2 * 7, 240 - x // 2 * 5))
    asked = ["-m", seeing, "-p", "What?", *GREEDY, "-n", "12"]
    assert told["text"] == culet("caption", *asked, "--image", made).out.decode("utf-8", "replace")
    swapped = png(tmp_path / "s.png", 64, 48, lambda x, y: from_yuv(60 + x * 2 + y, 240 - x // 2 * 5, 16 + x // 2 * 7))
    assert kind == "yuyv" or told["text"] != culet("caption", *asked, "--image", swapped).out.decode("utf-8", "replace")


def test_the_newest_frame_is_next(culet, seeing, fake):
    """The driver fills its four buffers long before the first of them is fetched: each caption is far longer than four frames."""
    long = ["--frames", "4", "-n", "600", "--ignore-eos", "--spec", "off"]
    frames = [t["frame"] for t in lines(watch(culet, seeing, fake("yuyv", MS=1), *long))]
    assert all(b - a > 4 for a, b in zip(frames, frames[1:]))
    paced = [t["seconds"] for t in lines(watch(culet, seeing, fake("yuyv", MS=10), "--frames", "3", every="0.7"))]
    assert all(b - a >= 0.65 for a, b in zip(paced, paced[1:]))


def test_a_newer_frame_takes_the_place_of_one_that_waits(culet, seeing, fake):
    """The picture never changes, so that encoding it costs nothing: what is told is never much older than --every."""
    long = ["--frames", "3", "-n", "1500", "--ignore-eos", "-t", "1", "--spec", "off"]
    told = lines(watch(culet, seeing, fake("colours", MS=2), *long, every="0.005"))[1:]
    assert sum(t["age_ms"] for t in told) < sum(t["generate_ms"] for t in told) / 2
    still = lines(watch(culet, seeing, fake("colours", MS=2), *long, every="0"))[1:]
    assert sum(t["age_ms"] for t in still) > sum(t["generate_ms"] for t in still) / 2


def test_a_closed_output_ends_it(binary, seeing, fake):
    env = {**os.environ, **fake("mjpeg")}
    args = [binary, "caption", "-m", seeing, "--camera", DEVICE, "--every", "0", "--json", *GREEDY]
    running = subprocess.Popen([str(a) for a in args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env)
    assert running.stdout.readline()
    running.stdout.close()
    assert running.wait(timeout=60) == 1 and b"standard output" in running.stderr.read()


def test_cut_frames_are_passed_over(culet, seeing, fake):
    r = watch(culet, seeing, fake("cut", MS=7), "--frames", "5")
    told = lines(r)
    assert len(told) == 5 and all(t["frame"] % 2 for t in told)
    assert all("warning: a frame is left out" in line for line in r.err.splitlines())
    hopeless = watch(culet, seeing, fake("cut", MS=7, EVERY=1), "--frames", "1")
    assert hopeless.code == 1 and hopeless.out == b"" and hopeless.err.splitlines()[-1].startswith("culet: ")


@pytest.mark.parametrize("kind,code,words", [
    ("busy", 1, ["in use"]), ("nocapture", 1, ["captures no video"]), ("nodevice", 1, ["not a camera"]), ("other", 6, ["MJPEG", "YUYV"]),
    ("huge", 1, ["1073741824"]), ("index", 1, ["buffer 77"]), ("long", 1, ["damaged"]), ("refused", 1, ["Permission denied"]),
])
def test_cameras_that_give_nothing(culet, seeing, fake, kind, code, words):
    r = watch(culet, seeing, fake(kind, MS=2), "--frames", "1")
    assert r.code == code and r.out == b""
    one_line(r, DEVICE, *words)


def test_a_device_that_is_not_there(culet, seeing):
    for path in (DEVICE, "/dev/null"):
        r = culet("caption", "-m", seeing, "--camera", path)
        assert r.code == 1
        one_line(r, path)


def test_an_unplugged_camera(culet, seeing, fake):
    r = watch(culet, seeing, fake("unplug", FRAMES=60, MS=10))
    assert r.code == 1 and len(r.out.splitlines()) >= 1
    one_line(r, DEVICE, "gone")


def test_a_silent_camera_is_left(spawn, seeing, fake):
    os.environ.update(fake("silent"))
    try:
        running = spawn("caption", "-m", seeing, "--camera", DEVICE)
    finally:
        for name in fake("silent"):
            del os.environ[name]
    time.sleep(1)
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=4)
    assert running.returncode == 130, err


# ---- sounds ----

def tone(path, seconds, silent_from, silent_to):
    rate = 16000
    values = [0 if silent_from <= i / rate < silent_to else int(9000 * math.sin(i * 0.3)) for i in range(int(seconds * rate))]
    with wave.open(str(path), "wb") as w:
        w.setnchannels(1), w.setsampwidth(2), w.setframerate(rate)
        w.writeframes(struct.pack(f"<{len(values)}h", *values))
    return path


def test_a_sound(culet, models):
    model, clip = models / "tiny-audio", models.parent / "sounds" / "chirp.wav"
    args = ["-m", model, "--audio", clip, "-p", "Write it down.", *GREEDY]
    told = culet("caption", *args, "--json").json()
    assert told["start"] == 0 and told["end"] == pytest.approx(wave.open(str(clip)).getnframes() / wave.open(str(clip)).getframerate(), abs=1e-3)
    assert told["text"] == culet("run", *args).out.decode("utf-8", "replace")
    assert culet("caption", *args).out.startswith(b"[00:00 - 00:0")


def test_a_long_sound_is_cut_where_it_is_silent(culet, models, tmp_path):
    long = tone(tmp_path / "long.wav", 70, 27.0, 27.4)
    told = lines(culet("caption", "-m", models / "tiny-audio", "--audio", long, "--json", *GREEDY))
    limit = 30
    assert told[0]["start"] == 0 and told[-1]["end"] == 70
    assert all(a["end"] == b["start"] for a, b in zip(told, told[1:]))
    assert all(0 < t["end"] - t["start"] <= limit for t in told) and len(told) >= 3
    assert 27.0 <= told[0]["end"] <= 27.4
    assert [t["clip"] for t in told] == list(range(len(told)))


def test_sounds_that_are_none(culet, models, tmp_path):
    bad = tmp_path / "bad.wav"
    bad.write_bytes(b"RIFF")
    r = culet("caption", "-m", models / "tiny-audio", "--audio", bad, *GREEDY)
    assert r.code == 1
    one_line(r, bad)
    both = culet("caption", "-m", models / "tiny-audio", "--audio", bad, models.parent / "sounds" / "chirp.wav", *GREEDY)
    assert both.code == 1 and b"chirp.wav [00:00" in both.out and "1 of 2" in both.err
