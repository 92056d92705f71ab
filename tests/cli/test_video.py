"""Videos through ffmpeg: one that is missing, dies, or says something else; files that are no videos, or reach for others."""
import os
import pathlib
import shutil
import signal
import subprocess
import time

import pytest

QUICK = ["-p", "What happens?", "-n", "2", "--temp", "0"]
needs_ffmpeg = pytest.mark.skipif(not shutil.which("ffmpeg"), reason="no ffmpeg")

# Stands for ffmpeg. Counts 5 frames when asked to; otherwise runs the rest of the script.
FAKE = """#!/bin/sh
case " $* " in *" framecrc "*) printf '#tb 0: 1/25\\n0, 0, 0, 1, 9, 0x1\\n0, 1, 1, 1, 9, 0x1\\n0, 2, 2, 1, 9, 0x1\\n'; exit 0;; esac
frame() {{ # SECONDS
    echo "[Parsed_showinfo_0 @ 0x1] [info] n: 0 pts: 0 pts_time:$1 s:64x48" >&2
    printf 'P6\\n64 48\\n255\\n'
    head -c 9216 /dev/zero
}}
{script}
"""


@pytest.fixture
def clip(tmp_path):
    path = tmp_path / "clip.mp4"
    path.write_bytes(b"not looked at by a stand-in")
    return path


@pytest.fixture
def watch(culet, models, clip, tmp_path):
    """Runs culet with a stand-in for ffmpeg; None: there is none at all."""
    def run(script):
        folder = tmp_path / "bin"
        folder.mkdir(exist_ok=True)
        if script is None:
            return culet("run", "-m", models / "tiny-dense", "--video", clip, *QUICK, env={"PATH": str(folder)})
        fake = folder / "ffmpeg"
        fake.write_text(FAKE.format(script=script))
        fake.chmod(0o755)
        return culet("run", "-m", models / "tiny-dense", "--video", clip, *QUICK, "--json",
                     env={"PATH": f"{folder}:{os.environ['PATH']}"})
    return run


def is_running(process):
    try:
        return pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def one_line(r, code, *words):
    assert r.code == code, r.err
    assert r.out == b"" and all(w in r.err for w in words), r.err
    assert len(r.err.strip().splitlines()) <= 2 and r.err.startswith("culet: ")


def test_frames_and_their_times(watch, culet, models):
    ids = watch("frame 1.5; frame 62.0; frame 125.25").json()["prompt_ids"]
    text = culet("detokenize", "-m", models / "tiny-dense", "--ids", ",".join(map(str, ids))).out.decode()
    assert "00:00" in text and "01:00" in text and "02:03" in text  # behind the first frame


def test_no_ffmpeg(watch):
    one_line(watch(None), 6, "clip.mp4", "ffmpeg, which is not in PATH", "apt install ffmpeg")


@pytest.mark.parametrize("script, words", [
    ("frame 0; echo '[mov @ 0x1] [error] the disk is gone' >&2; exit 1", ["ffmpeg: the disk is gone"]),
    ("frame 0; echo '[error] first' >&2; echo '[info] later' >&2; exit 1", ["ffmpeg: first"]),
    ("frame 0; kill -9 $$", ["ended by signal 9 after 1 frames"]),
    ("exit 0", ["found no frame"]),
    ("exit 3", ["ended without a word"]),
    ("printf 'P6\\n64 48\\n255\\n'; head -c 100 /dev/zero; exit 0", ["its last frame is cut off"]),
    ("printf 'P6\\n60000 60000\\n255\\n'; head -c 100 /dev/zero", ["60000 x 60000 pixels"]),
    ("printf 'P6\\n0 48\\n255\\n'", ["0 x 48 pixels"]),
    ("printf 'P6\\n-5 48\\n255\\n'", ["-5 x 48 pixels"]),
    ("printf 'P6\\n64 48\\n999\\n'", ["no frame"]),
    ("printf 'P6\\n4 4\\n255x\\n'; head -c 48 /dev/zero", ["no frame"]),
    ("head -c 100000 /dev/zero", ["no frame"]),
    ("echo hello; echo; echo there", ["no frame"]),
])
def test_ffmpeg_fails(watch, script, words):
    one_line(watch(script), 1, "clip.mp4: ", *words)


def test_times_that_are_none(watch):
    """Frames without a time, or of times that run backwards, are shown nevertheless."""
    assert watch("frame NOPTS; frame nan; frame -7").code == 0


def test_much_to_read_on_standard_error(watch):
    """Neither pipe may fill up while the other is waited for."""
    noise = "i=0; while [ $i -lt 3000 ]; do echo \"[info] $i xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\" >&2; i=$((i+1)); done"
    assert watch(f"{noise}; frame 0; {noise}; frame 1").code == 0
    one_line(watch(f"head -c 300000 /dev/zero | tr '\\0' x >&2; {noise}; exit 1"), 1, "ffmpeg: 2999 x")


@pytest.mark.parametrize("name, why", [("missing.mp4", "No such file"), (".", "is a folder"), ("/dev/zero", "no regular file")])
def test_no_video_file(culet, models, tmp_path, name, why):
    r = culet("run", "-m", models / "tiny-dense", "--video", tmp_path / name, *QUICK)
    one_line(r, 6 if "not in PATH" in r.err else 1, "")
    assert why in r.err


@needs_ffmpeg
def test_a_file_that_is_no_video(culet, models, tmp_path):
    (tmp_path / "x.mp4").write_bytes(b"\0" * 5000)
    one_line(culet("run", "-m", models / "tiny-dense", "--video", tmp_path / "x.mp4", *QUICK), 1, "x.mp4: ffmpeg: ")


@needs_ffmpeg
def test_a_name_is_a_file_and_nothing_else(culet, models, tmp_path):
    """Neither a flag of ffmpeg, nor a protocol, nor a pattern."""
    make = ["ffmpeg", "-loglevel", "error", "-f", "lavfi", "-i", "testsrc=duration=1:size=64x48:rate=3"]
    subprocess.run([*make, str(tmp_path / "clip.mkv")], check=True)
    for name in ["-version", "concat:a|b", "pipe:0", "http:x.mkv", "a%02d.mkv", "$(touch owned).mkv", "two\nlines.mkv"]:
        shutil.copy(tmp_path / "clip.mkv", tmp_path / name)
        r = culet("run", "-m", models / "tiny-dense", "--video", name, *QUICK, cwd=tmp_path)
        assert r.code == 0, (name, r.err)
    assert not (tmp_path / "owned").exists()


@needs_ffmpeg
def test_a_playlist_reaches_no_network(culet, models, tmp_path):
    (tmp_path / "list.m3u8").write_text("#EXTM3U\n#EXT-X-TARGETDURATION:5\n#EXTINF:5,\nhttp://127.0.0.1:9/a.ts\n#EXT-X-ENDLIST\n")
    r = culet("run", "-m", models / "tiny-dense", "--video", tmp_path / "list.m3u8", *QUICK)
    assert r.code == 1 and "list.m3u8: ffmpeg: " in r.err


@pytest.mark.parametrize("verb, model", [("run", "tiny-dense"), ("caption", "tiny-vision")])
@pytest.mark.parametrize("before", ["", "frame 0;", "printf 'P6\\n64 48\\n255\\n';"])
def test_an_interrupt_ends_ffmpeg(spawn, models, clip, tmp_path, monkeypatch, verb, model, before):
    """Also one that hangs, before its first frame or within one."""
    fake = tmp_path / "ffmpeg"
    fake.write_text(FAKE.format(script=f"echo $$ > {tmp_path}/id; {before} exec sleep 100"))
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    p = spawn(verb, "-m", models / model, "--video", clip, *QUICK)
    until = time.monotonic() + 60
    while not (tmp_path / "id").exists() or not (tmp_path / "id").read_text():
        assert time.monotonic() < until and p.poll() is None
        time.sleep(0.05)
    time.sleep(0.3)
    p.send_signal(signal.SIGINT)
    assert p.wait(20) == 130
    p.communicate()
    child = int((tmp_path / "id").read_text())
    while is_running(child):
        assert time.monotonic() < until, "ffmpeg still runs"
        time.sleep(0.05)
