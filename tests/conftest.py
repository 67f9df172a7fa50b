from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pytest_failgain.scoring.local import LocalScorer

pytest_plugins = ["pytester"]

SHARED = Path(__file__).parents[2] / "shared"
ORACLE = SHARED / "oracle"
MBPP = SHARED / "data" / "sanitized-mbpp.json"


@pytest.fixture(scope="session")
def oracle() -> Path:
    """The folder with the published items and their scores; skips the test where it is missing."""
    if not ORACLE.is_dir():
        pytest.skip(f"the published items and scores are not in {ORACLE}")
    return ORACLE


@pytest.fixture(scope="session")
def mbpp() -> Path:
    """The real file of MBPP's sanitized problems; skips the test where it is missing."""
    if not MBPP.is_file():
        pytest.skip(f"the real MBPP problems are not in {MBPP}")
    return MBPP


@pytest.fixture(scope="session")
def smollm2() -> LocalScorer:
    """The embedded model."""
    from pytest_failgain.scoring.loading import load_scorer

    return load_scorer("smollm2-135m", keep_scores=False)


@pytest.fixture(scope="session")
def smollm2_tokenizer(smollm2: LocalScorer) -> Any:
    """The tokenizer of the embedded model, as transformers gives it."""
    return smollm2.tokenizer


@pytest.fixture(scope="session")
def tiny_model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random Llama of a few thousand weights and a byte tokenizer, as `save_pretrained` leaves.

    The office's prompts fit into its context. It has been loaded once, so that all of torch is
    imported before pytester takes note; see `_imported`.
    """
    import tiny_language_models as tiny
    from pytest_failgain.scoring.loading import load_scorer

    folder = tmp_path_factory.mktemp("models") / "tiny"
    model = tiny.llama()
    model.config.max_position_embeddings = 4096
    model.save_pretrained(folder)
    tiny.byte_tokenizer().save_pretrained(folder)
    load_scorer(str(folder), cache_dir=folder.parent / "cache", threads=1)
    return folder


@pytest.fixture(scope="session")
def _imported() -> None:
    """pytester forgets what its tests import first, and numpy can't be imported twice."""
    import pytest_failgain.failgain  # noqa: F401


@pytest.fixture
def project(
    _imported: None, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> pytest.Pytester:
    """An empty project to run pytest in, which the settings of the run outside do not reach."""
    for name in [*os.environ]:
        if name.startswith(("FAILGAIN_", "PYTEST_XDIST_")) or name in ("CI", "GITHUB_STEP_SUMMARY"):
            monkeypatch.delenv(name)
    # At the end of every run the one would load Hypothesis anew, the other collect all garbage.
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p no:hypothesispytest -p no:unraisableexception")
    return pytester
