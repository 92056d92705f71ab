"""Pictures and sounds on the command line: where they stand, what is refused, what is kept."""
import json
import shutil
import subprocess

import pytest

GREEDY = ["--temp", "0", "-ctk", "f32", "-ctv", "f32", "--ignore-eos"]


@pytest.fixture(scope="session")
def sounds(models):
    return models.parent / "sounds"


@pytest.fixture(scope="session")
def hearing(models, golden):
    """A model that hears, and its golden case."""
    return models / "tiny-audio", golden("models", "tiny-audio", "golden.json")["media"]["cases"]["chirp"]


def csv(ids):
    return ",".join(map(str, ids))


def test_a_sound_at_its_place(culet, hearing, sounds):
    model, case = hearing
    n = str(len(case["greedy_ids"]))
    clip = ["--audio", sounds / "chirp.wav"]
    by_ids = culet("run", "-m", model, "--ids", csv(case["prompt_ids"]), *clip, "-n", n, *GREEDY, "--json").json()
    assert by_ids["ids"] == case["greedy_ids"]
    assert by_ids["timings"]["vision_ms"] > 0
    by_text = culet("run", "-m", model, *clip, "-p", case["prompt"], "-n", n, *GREEDY, "--json").json()
    assert by_text["ids"] == case["greedy_ids"] and by_text["prompt_ids"] == case["prompt_ids"]


def test_one_placeholder_is_enough(culet, hearing, sounds):
    model, case = hearing
    slot = max(set(case["prompt_ids"]), key=case["prompt_ids"].count)
    first, n = case["prompt_ids"].index(slot), case["prompt_ids"].count(slot)
    short = case["prompt_ids"][:first - 1] + [slot] + case["prompt_ids"][first + n + 1:]
    r = culet("run", "-m", model, "--ids", csv(short), "--audio", sounds / "chirp.wav", "-n", "4", *GREEDY, "--json").json()
    assert r["prompt_ids"] == case["prompt_ids"] and r["ids"] == case["greedy_ids"][:4]


def test_media_stand_where_they_are_given(culet, hearing, sounds):
    model, _ = hearing
    clip = ["--audio", sounds / "short.flac"]

    def prompt(*args):
        return culet("run", "-m", model, *args, "-n", "1", *GREEDY, "--json").json()["prompt_ids"]

    before, after = prompt(*clip, "-p", "one two"), prompt("-p", "one two", *clip)
    between, twice = prompt("-p", "one", *clip, "-p", " two"), prompt(*clip, "-p", "one two", *clip)
    assert len({csv(p) for p in (before, after, between, twice)}) == 4
    assert sorted(before) == sorted(after) and len(twice) > len(before)
    plain = culet("run", "-m", model, "-p", "one two", "-n", "1", *GREEDY, "--json").json()["prompt_ids"]
    slots = set(before) - set(plain)
    assert [i for i in between if i not in slots] != [] and [i for i in after if i not in slots] == plain


def test_a_sound_and_no_text(culet, hearing, sounds):
    model, _ = hearing
    r = culet("run", "-m", model, "--audio", sounds / "short.ogg", "-n", "2", *GREEDY, stdin=b"")
    assert r.code == 0, r.err


def test_wrong_counts_name_both_numbers(culet, hearing, sounds):
    model, case = hearing
    ids = case["prompt_ids"]
    clip = ["--audio", sounds / "chirp.wav"]
    two = culet("run", "-m", model, "--ids", csv(ids), *clip, *clip, "-n", "1")
    assert two.code == 2 and "1 " in two.err and "2 " in two.err
    slot = max(set(ids), key=ids.count)
    less = list(ids)
    less.remove(slot)
    one_less = culet("run", "-m", model, "--ids", csv(less), *clip, "-n", "1")
    n = ids.count(slot)
    assert one_less.code == 2 and str(n) in one_less.err and str(n - 1) in one_less.err
    none = culet("run", "-m", model, "--ids", csv([2, 5, 6]), *clip, "-n", "1")
    assert none.code == 2


@pytest.mark.parametrize("flag,word", [("--audio", "hear"), ("--image", "see")])
def test_a_model_without_towers_refuses(culet, models, sounds, flag, word):
    r = culet("run", "-m", models / "tiny-e2b", flag, sounds / "chirp.wav", "-p", "x", "-n", "1")
    assert r.code == 6 and word in r.err and len(r.err.splitlines()) <= 2


def test_a_missing_file_is_named(culet, hearing):
    r = culet("run", "-m", hearing[0], "--audio", "/nowhere/x.wav", "-p", "x")
    assert r.code == 1 and "/nowhere/x.wav" in r.err
    assert culet("run", "-m", hearing[0], "--audio", "", "-p", "x").code == 2


def test_logits_with_a_sound(culet, hearing, sounds, tmp_path):
    import array
    model, case = hearing
    out = tmp_path / "all.f32"
    args = ["-m", model, "--ids", csv(case["prompt_ids"]), "--audio", sounds / "chirp.wav", "-ctk", "f32", "-ctv", "f32"]
    assert culet("logits", *args, "--all", "--out", out, "--json").json()["rows"] == len(case["prompt_ids"])
    every = array.array("f", out.read_bytes())
    assert culet("logits", *args, "--out", out, "-ub", "5", "-t", "2").code == 0
    last = array.array("f", out.read_bytes())
    assert every[-len(last):] == last
    want = array.array("f", (model / case["last_logits"]["file"]).read_bytes())
    assert max(abs(a - b) for a, b in zip(last, want)) < 2e-3 + 1e-3 * max(map(abs, want))


def talk(culet, model, lines, *args):
    r = culet("chat", "-m", model, *args, stdin="".join(f"{line}\n" for line in lines).encode())
    assert r.code == 0, r.err
    return r


def test_chat_keeps_a_sound(culet, hearing, sounds, tmp_path):
    model, case = hearing
    clip, saved = f"/audio {sounds / 'chirp.wav'}", tmp_path / "talk.session"
    first = ["-n", "8", *GREEDY]
    heard = talk(culet, model, [clip, case["prompt"], "/stats"], *first)
    run = culet("run", "-m", model, "--audio", sounds / "chirp.wav", "-p", case["prompt"], *first)
    assert heard.out == run.out + b"\n" and "28 tokens" in heard.err
    whole = talk(culet, model, [clip, case["prompt"], "Again?", "/regen"], *first)
    assert whole.out.startswith(heard.out)
    talk(culet, model, [clip, case["prompt"], f"/save {saved}"], *first)
    resumed = talk(culet, model, [f"/load {saved}", "Again?", "/regen", "/stats"], *first)
    assert heard.out + resumed.out == whole.out
    cleared = talk(culet, model, [clip, "/clear", case["prompt"]], *first)
    plain = culet("run", "-m", model, "-p", case["prompt"], *first)
    assert cleared.out == plain.out + b"\n"


def test_chat_goes_on_after_a_bad_file(culet, hearing, sounds):
    model, case = hearing
    r = talk(culet, model, ["/audio /nowhere.wav", "/audio", f"/image {sounds / 'chirp.wav'}", case["prompt"]], "-n", "4", *GREEDY)
    assert "/nowhere.wav" in r.err and "needs a file" in r.err
    assert r.out == culet("run", "-m", model, "-p", case["prompt"], "-n", "4", *GREEDY).out + b"\n"


def test_a_damaged_saved_sound_is_refused(culet, hearing, sounds, tmp_path):
    model, case = hearing
    saved = tmp_path / "talk.session"
    talk(culet, model, [f"/audio {sounds / 'chirp.wav'}", case["prompt"], f"/save {saved}"], "-n", "4", *GREEDY)
    whole = saved.read_bytes()
    saved.write_bytes(whole[:len(whole) // 2] + bytes([whole[len(whole) // 2] ^ 1]) + whole[len(whole) // 2 + 1:])
    r = culet("chat", "-m", model, "-n", "4", *GREEDY, stdin=f"/load {saved}\nHello\n".encode())
    assert "damaged" in r.err and r.code == 0


def test_the_document_says_what_was_asked(culet, hearing, sounds):
    model, case = hearing
    r = culet("run", "-m", model, "--audio", sounds / "chirp.wav", "-p", case["prompt"], "-n", "2", *GREEDY, "--stats=json")
    assert json.loads(r.err.splitlines()[-1])["vision_ms"] > 0


# ---- pictures ----

CASES = [("tiny-vision", "wide"), ("tiny-vision", "square"), ("tiny-vision", "two_images"), ("tiny-dense", "two_images"),
         ("tiny-unified", "tall"), ("tiny-unified", "image_and_sound")]


def golden_case(golden, models, model, name):
    """Prompt, files and reply of a case; the files are those that the reference read."""
    media = golden("models", model, "golden.json")["media"]
    case, flags = media["cases"][name], []
    for part in case["parts"]:
        picture = part["kind"] == "image"
        file = (media["images"] if picture else media["sounds"])[part["name"]]["file"].split("/")[-1]
        flags += ["--" + part["kind"], models.parent / ("media" if picture else "sounds") / file]
    return case, flags


@pytest.mark.parametrize("model,name", CASES)
def test_golden_replies(culet, models, golden, model, name):
    """Decoding, resizing, tower, mask and text together: every id, from both ways to give the prompt, from passes of any size."""
    case, flags = golden_case(golden, models, model, name)
    n = str(len(case["greedy_ids"]))
    ids = ["--ids", csv(case["prompt_ids"])]
    for args in ([*ids, *flags], [*ids, *flags, "-ub", "7", "-t", "1"], [*flags, "-p", case["prompt"]]):
        r = culet("run", "-m", models / model, *args, "-n", n, *GREEDY, "--json").json()
        assert r["ids"] == case["greedy_ids"] and r["prompt_ids"] == case["prompt_ids"], args


def test_both_forms_of_file(culet, models, golden):
    case, flags = golden_case(golden, models, "tiny-dense", "two_images")
    folder = models / "tiny-dense"
    base = ["--ids", csv(case["prompt_ids"]), *flags, "-n", "8", *GREEDY, "--json"]
    named = culet("run", "-m", folder, "--mmproj", folder / "gguf" / "tiny-dense-mmproj-f32.gguf", "--image-tokens", "70", *base)
    assert named.json()["ids"] == case["greedy_ids"][:8]
    assert culet("run", "-m", folder, "--mmproj", "", *base).code == 6


def test_budgets(culet, models):
    picture = models.parent / "media" / "square.jpg"
    sizes = []
    for tokens in ("70", "140", "280", "560", "1120"):
        r = culet("run", "-m", models / "tiny-dense", "--image", picture, "--image-tokens", tokens, "-p", "x", "-n", "1", *GREEDY, "--json")
        sizes.append(r.json()["prompt_ids"].count(1275))
    assert sizes == [64, 121, 256, 529, 1089]
    r = culet("run", "-m", models / "tiny-dense", "--image", picture, "--image-tokens", "100", "-p", "x")
    assert r.code == 2 and "70, 140, 280, 560" in r.err


@pytest.fixture
def folder(models, tmp_path):
    """Two models and what is put beside them."""
    for model in ("tiny-dense", "tiny-unified"):
        name = f"{model}-Q4_0.gguf"
        (tmp_path / name).symlink_to(models / model / "gguf" / name)
    return tmp_path


def seen(culet, model):
    shown = culet("show", "-m", model, "--json").json()
    return shown["vision"] and shown["vision"]["path"]


def test_a_vision_file_beside_the_model(culet, models, folder):
    dense, unified = folder / "tiny-dense-Q4_0.gguf", folder / "tiny-unified-Q4_0.gguf"
    mmproj = models / "tiny-dense" / "gguf" / "tiny-dense-mmproj-f32.gguf"
    assert seen(culet, dense) is None
    beside = folder / "mmproj-tiny-dense-F16.gguf"
    beside.symlink_to(mmproj)
    assert seen(culet, dense) == str(beside) and seen(culet, unified) is None
    unified.unlink()
    nameless = folder / "mmproj-BF16.gguf"
    nameless.symlink_to(mmproj)
    assert seen(culet, dense) == str(beside)
    beside.unlink()
    assert seen(culet, dense) == str(nameless) and seen(culet, folder) == str(nameless)
    picture = models.parent / "media" / "wide.png"
    assert culet("run", "-m", folder, "--image", picture, "-p", "x", "-n", "2", *GREEDY).code == 0
    nameless.unlink()
    r = culet("run", "-m", folder, "--image", picture, "-p", "x", "-n", "2", *GREEDY)
    assert r.code == 6 and "mmproj" in r.err


def test_a_damaged_vision_file_beside_the_model(culet, models, folder):
    (folder / "mmproj-tiny-dense.gguf").write_bytes(b"GGUF\3\0\0\0nonsense")
    model = folder / "tiny-dense-Q4_0.gguf"
    r = culet("run", "-m", model, "-p", "x", "-n", "2", *GREEDY)
    assert r.code == 0 and "going on without" in r.err
    r = culet("run", "-m", model, "--image", models.parent / "media" / "wide.png", "-p", "x", "-n", "2", *GREEDY)
    assert r.code == 6 and "mmproj-tiny-dense.gguf" in r.err
    assert culet("run", "-m", model, "--mmproj", folder / "mmproj-tiny-dense.gguf", "-p", "x", "-n", "2").code == 3


def test_chat_sees_and_remembers(culet, models, tmp_path):
    media, saved = models.parent / "media", tmp_path / "talk.session"
    lines = [f"/image {media / 'wide.png'}", f"/image {media / 'square.jpg'}", "What are these?"]
    args = ["-n", "6", *GREEDY]
    whole = talk(culet, models / "tiny-dense", [*lines, "And now?", "/stats"], *args)
    talk(culet, models / "tiny-dense", [*lines, f"/save {saved}"], *args)
    resumed = talk(culet, models / "tiny-dense", [f"/load {saved}", "And now?", "/stats"], *args)
    assert whole.out.endswith(resumed.out) and len(resumed.out) > 1
    reused = [line for line in whole.err.splitlines() if "reused" in line][-1]
    assert int(reused.split()[1]) > 120, reused


@pytest.mark.skipif(not shutil.which("ffmpeg"), reason="no ffmpeg")
def test_a_video_in_a_prompt(culet, models, tmp_path):
    """32 frames of at most 70 tokens, each behind its time; from a test picture, one frame a second."""
    clip = tmp_path / "clip.mkv"
    subprocess.run(["ffmpeg", "-loglevel", "error", "-f", "lavfi", "-i", "testsrc=duration=70:size=320x240:rate=1", clip], check=True)
    args = ["run", "-m", models / "tiny-dense", "--video", clip, "-p", "What happens?", "-n", "3", *GREEDY, "--json"]
    r = culet(*args).json()
    slots = r["prompt_ids"].count(1279)
    assert r["prompt_ids"].count(1273) == r["prompt_ids"].count(1277) == 32 and slots == 32 * 63
    text = culet("detokenize", "-m", models / "tiny-dense", "--ids", csv(r["prompt_ids"])).out.decode()
    assert text.count("00:") + text.count("01:") == 32 and "00:00" in text and "01:07" in text
    assert culet(*args, "-ub", "50").json()["ids"] == r["ids"]
    assert culet("run", "-m", models / "tiny-e2b", "--video", clip, "-p", "x").code == 6
    assert culet("run", "-m", models / "tiny-dense", "--video", "/nowhere.mp4", "-p", "x").code == 1
