"""Tests on the real Gemma 3 270M. Without the file they are skipped; with CULET_REQUIRE_REAL=1 its absence is a failure."""
import os
import pathlib

import pytest

NAME = "gemma-3-270m-q4_k_m.gguf"


@pytest.fixture(scope="session")
def real_model():
    home = pathlib.Path(os.environ.get("CULET_HOME") or pathlib.Path.home() / ".cache" / "culet")
    path = home / "models" / NAME
    if not path.exists():
        (pytest.fail if os.environ.get("CULET_REQUIRE_REAL") == "1" else pytest.skip)(f"{path} is not there: ./quickstart fetches it")
    return path
