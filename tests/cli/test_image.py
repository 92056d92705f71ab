"""Files of pictures from the outside: what is taken, and what is refused in one line with exit code 1."""
import os
import struct
import zlib

import pytest


@pytest.fixture(scope="session")
def media(models):
    return models.parent / "media"


@pytest.fixture
def look(culet, models):
    def run(path, *args):
        return culet("caption", "-m", models / "tiny-vision", "--image", path, "-p", "What?", "--temp", "0", "-n", "6", *args)
    return run


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width, height, rows, depth=8, colour=2):
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)) + \
        chunk(b"IDAT", zlib.compress(rows, 1)) + chunk(b"IEND", b"")


def scene(width, height):
    """A circle on a gradient."""
    r = min(width, height) / 3
    rows = bytearray()
    for y in range(height):
        rows.append(0)
        for x in range(width):
            inside = (x - width / 2) ** 2 + (y - height / 2) ** 2 < r * r
            rows += bytes((220, 30, 40)) if inside else bytes((x * 255 // width, y * 255 // height, 128))
    return bytes(rows)


def refused(result, path, *words):
    assert result.code == 1 and result.out == b"", result.err
    first, *rest = result.err.strip().splitlines()
    assert first.startswith("culet: ") and len(rest) <= 1 and os.path.basename(str(path)) in first
    for word in words:
        assert word in result.err, result.err


def test_a_name_says_nothing(look, media, tmp_path):
    """A JPEG is a JPEG under any name."""
    plain = look(media / "square.jpg")
    for name in ("picture.png", "picture", "picture.txt", "-picture", "a b\n.jpg"):
        path = tmp_path / name
        path.write_bytes((media / "square.jpg").read_bytes())
        assert look(path).out == plain.out != b"", name


def test_names_that_are_not_utf8(look, media, tmp_path):
    path = os.fsencode(tmp_path) + b"/\xff\xfe.jpg"
    with open(path, "wb") as f:
        f.write((media / "square.jpg").read_bytes())
    assert look(os.fsdecode(path)).out == look(media / "square.jpg").out
    with open(path, "wb") as f:
        f.write(b"no picture")
    r = look(os.fsdecode(path))
    assert r.code == 1 and len(r.err.splitlines()) == 1


def test_shapes_are_told_apart(look, tmp_path):
    told = set()
    for name, rows in (("scene", scene(96, 64)), ("white", (b"\0" + b"\xff" * 288) * 64), ("black", (b"\0" * 289) * 64)):
        path = tmp_path / f"{name}.png"
        path.write_bytes(png(96, 64, rows))
        told.add(look(path).out)
    assert len(told) == 3


@pytest.mark.parametrize("width,height", [(1, 1), (3, 2), (40, 2000), (2000, 40)])
def test_small_and_narrow(look, tmp_path, width, height):
    path = tmp_path / "p.png"
    path.write_bytes(png(width, height, scene(width, height)))
    r = look(path, "--json").json()
    assert (r["width"], r["height"]) == (width, height) and 1 <= r["tokens"] <= 280


@pytest.mark.parametrize("width,height", [(1, 20000), (20000, 1)])
def test_too_narrow(look, tmp_path, width, height):
    path = tmp_path / "p.png"
    path.write_bytes(png(width, height, b"".join(b"\0" + b"\x55" * (3 * width) for _ in range(height))))
    r = look(path, "--json")
    if r.code:  # too narrow for one patch after scaling: said with its sides
        refused(r, path, str(width), str(height))
    else:
        assert 1 <= r.json()["tokens"] <= 280


def test_a_large_picture(look, tmp_path):
    path = tmp_path / "p.png"
    path.write_bytes(png(3840, 2160, b"".join(b"\0" + bytes((y % 256, 90, 200)) * 3840 for y in range(2160))))
    r = look(path, "--json").json()
    assert (r["width"], r["height"]) == (3840, 2160) and 1 <= r["tokens"] <= 280


@pytest.mark.parametrize("name", ["square.jpg", "tall.png"])
@pytest.mark.parametrize("part", [0, 1, 2, 8, 20, 64, 0.25, 0.5, 0.9, 0.999])
def test_cut_off(look, media, tmp_path, name, part):
    data = (media / name).read_bytes()
    path = tmp_path / name
    path.write_bytes(data[:part if isinstance(part, int) else int(len(data) * part)])
    refused(look(path), path)


@pytest.mark.parametrize("kind,head", [
    ("GIF", b"GIF89a\x01\0\x01\0\0\0\0"), ("BMP", b"BM\x3a\0\0\0\0\0\0\0\x36\0\0\0"), ("HEIC", b"\0\0\0\x18ftypheic\0\0\0\0mif1heic"),
    ("PDF", b"%PDF-1.7\n"), ("HTML", b"<!DOCTYPE html><html>"), ("TIFF", b"II*\0\x08\0\0\0"), ("AVIF", b"\0\0\0\x18ftypavif\0\0\0\0avif"),
])
def test_other_formats_are_named(look, tmp_path, kind, head):
    path = tmp_path / "p.jpg"
    path.write_bytes(head + bytes(200))
    refused(look(path), path, kind, "JPEG, PNG or WebP")


@pytest.mark.parametrize("width,height", [(0, 5), (5, 0), (60000, 60000), (2 ** 31 - 1, 2 ** 31 - 1), (2 ** 32 - 1, 1)])
def test_sizes_that_are_claimed(look, tmp_path, width, height):
    path = tmp_path / "bomb.png"
    path.write_bytes(png(width, height, b"\0" * 1000))
    refused(look(path), path)


def test_a_jpeg_that_claims_much(look, media, tmp_path):
    data = bytearray((media / "square.jpg").read_bytes())
    at = next(i for i in range(len(data)) if data[i] == 0xFF and data[i + 1] in (0xC0, 0xC2))
    data[at + 5:at + 9] = struct.pack(">HH", 65500, 65500)
    path = tmp_path / "bomb.jpg"
    path.write_bytes(data)
    refused(look(path), path, "65500")


def test_what_is_no_file(look, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", tmp_path / "absent.png", "/dev/zero"):
        refused(look(path), path)


def test_a_jpeg_without_a_size(culet, models, tmp_path):
    """Cut off in front of its frame: damaged, not a picture of no pixels."""
    whole = (models.parent / "media" / "square.jpg").read_bytes()
    for n in (3, 100, whole.index(b"\xff\xc0")):
        (tmp_path / "cut.jpg").write_bytes(whole[:n])
        r = culet("run", "-m", models / "tiny-dense", "--image", tmp_path / "cut.jpg", "-p", "x", "-n", "1")
        assert r.code in (1, 6) and ("damaged" in r.err or "built without" in r.err), r.err
