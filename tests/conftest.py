"""Shared by the black-box tests: runs the binary (CULET_BIN, else build/culet) and names the tiny models."""
import json
import os
import pathlib
import subprocess

import pytest

TESTS = pathlib.Path(__file__).resolve().parent
MODELS = TESTS / "golden" / "models"
BINARY = os.environ.get("CULET_BIN", str(TESTS.parent / "build" / "culet"))


class Result:
    def __init__(self, done):
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr.decode("utf-8", "replace")

    def json(self):
        """The document on standard output, which must be all there is."""
        assert self.code == 0, self.err
        return json.loads(self.out)


def environment(**extra):
    env = {k: v for k, v in os.environ.items() if not k.startswith("CULET_") or k == "CULET_HOME"}
    env.update(extra)
    return env


def run(*args, stdin=b"", env=None, timeout=120, **options):
    command = [BINARY, *[str(a) for a in args]]
    return Result(subprocess.run(command, input=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 env=environment(**(env or {})), timeout=timeout, **options))


@pytest.fixture(scope="session")
def culet():
    return run


@pytest.fixture(scope="session")
def binary():
    return BINARY


@pytest.fixture(scope="session")
def spawn():
    """Starts the binary and leaves it running; standard input and output are pipes."""
    def start(*args, **options):
        options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        return subprocess.Popen([BINARY, *[str(a) for a in args]], env=environment(), **options)
    return start


@pytest.fixture(scope="session")
def golden():
    def load(*parts):
        return json.loads((TESTS / "golden").joinpath(*parts).read_text())
    return load


@pytest.fixture(scope="session")
def chat_model():
    """A tiny model of the large kind that chats."""
    return MODELS / "tiny-dense"


@pytest.fixture(scope="session")
def models():
    return MODELS


@pytest.fixture(scope="session")
def small_template(tmp_path_factory):
    """The official template without the closed empty thought, as small sizes have it."""
    text = (TESTS / "golden" / "templates" / "chat_template.jinja").read_text()
    lines = [line for line in text.splitlines(True) if "'<|channel>thought\\n<channel|>'" not in line]
    path = tmp_path_factory.mktemp("template") / "small.jinja"
    path.write_text("".join(lines))
    return path


@pytest.fixture(scope="session")
def takes_ulimit(binary):
    """A sanitizer maps more for itself than any ulimit of a test allows."""
    data = pathlib.Path(binary).read_bytes()
    if b"__asan_init" in data or b"__tsan_init" in data:
        pytest.skip("built with a sanitizer")
