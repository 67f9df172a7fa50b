"""Models from the hub, against one that runs in this process."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from stand_in_hub import COMMIT, REPO, StandInHub, serve
from tiny_models import RecordingProgress, model_contents

from pytest_failgain.errors import ModelError
from pytest_failgain.models.cache import Cache
from pytest_failgain.models.hub import Hub
from pytest_failgain.models.resolver import Resolver

pytest.importorskip("gguf", reason="needs the local extra")

UNWANTED = {
    "README.md": b"read me",
    "pytorch_model.bin": b"\x80\x02 pickled",
    "modeling_tiny.py": b"raise SystemExit('remote code was run')",
    "consolidated.safetensors": b"the same weights again",
    "onnx/model.safetensors": b"and again",
    "tiny.gguf": b"GGUF",
}
PICKLED = {k: v for k, v in model_contents().items() if k != "model.safetensors"} | {
    "pytorch_model.bin": b"\x80\x02"
}


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Reach the hub on this machine directly, whatever the machine's settings."""
    import huggingface_hub

    monkeypatch.setenv("NO_PROXY", "*")
    huggingface_hub.close_session()
    yield
    huggingface_hub.close_session()


@pytest.fixture
def hub() -> Iterator[StandInHub]:
    with serve({**model_contents(), **UNWANTED}) as stand_in:
        yield stand_in


def resolver(tmp_path: Path, hub: StandInHub) -> Resolver:
    return Resolver(
        Cache(tmp_path), Hub(tmp_path / "hub", hub.endpoint), progress=RecordingProgress()
    )


def test_snapshot_holds_the_model_and_nothing_else(tmp_path: Path, hub: StandInHub) -> None:
    files = resolver(tmp_path, hub).resolve(REPO)
    assert {path.name for path in files.path.iterdir()} == set(model_contents())
    for name, content in model_contents().items():
        assert (files.path / name).read_bytes() == content
    assert files.path.is_relative_to(tmp_path / "hub")
    assert files.revision == COMMIT
    assert files.source == f"model hub, {REPO}, revision {COMMIT}"
    assert files.name == REPO


def test_only_files_of_the_model_are_asked_for(tmp_path: Path, hub: StandInHub) -> None:
    resolver(tmp_path, hub).resolve(REPO)
    assert hub.requested_files == set(model_contents())


@pytest.mark.parametrize("revision", ["main", COMMIT])
def test_revision_is_a_branch_or_a_commit(tmp_path: Path, hub: StandInHub, revision: str) -> None:
    assert resolver(tmp_path, hub).resolve(REPO, revision).revision == COMMIT


def test_second_time_asks_nothing_of_the_hub(tmp_path: Path) -> None:
    with serve(model_contents()) as hub:
        first = resolver(tmp_path, hub).resolve(REPO)
        hub.requests.clear()
        assert resolver(tmp_path, hub).resolve(REPO) == first
        assert replace(resolver(tmp_path, hub), offline=True).resolve(REPO, "main") == first
        assert hub.requests == []
    assert resolver(tmp_path, hub).resolve(REPO, COMMIT) == first


def test_download_reports_its_progress(tmp_path: Path, hub: StandInHub) -> None:
    progress = RecordingProgress()
    replace(resolver(tmp_path, hub), progress=progress).resolve(REPO)
    size = sum(len(content) for content in model_contents().values())
    assert progress.jobs == [(f"downloading {REPO}", size)]
    assert progress.done == size
    assert progress.outcomes == [True]


def test_download_prints_nothing_itself(
    tmp_path: Path, hub: StandInHub, capfd: pytest.CaptureFixture[str]
) -> None:
    resolver(tmp_path, hub).resolve(REPO)
    assert capfd.readouterr() == ("", "")


def refusal(tmp_path: Path, hub: StandInHub, revision: str | None = None) -> str:
    with pytest.raises(ModelError) as caught:
        resolver(tmp_path, hub).resolve(REPO, revision)
    message = str(caught.value)
    assert "\n" not in message
    assert REPO in message or hub.endpoint in message
    return message


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (PICKLED, "only pickled weights, which are refused because loading them can run any code"),
        ({"tiny.gguf": b"GGUF"}, "has only GGUF files: download one and give its path"),
        ({"README.md": b""}, "has no weights in safetensors"),
        ({"model.safetensors": b""}, "has no config.json"),
        ({"model.safetensors": b"", "config.json": b""}, "has no tokenizer"),
    ],
)
def test_unusable_repository_is_refused_before_any_download(
    tmp_path: Path, files: dict[str, bytes], message: str
) -> None:
    with serve(files) as hub:
        assert message in refusal(tmp_path, hub)
    assert hub.requested_files == set()


@pytest.mark.parametrize(
    ("status", "code", "message"),
    [
        (404, "RepoNotFound", "neither a directory here nor a model on"),
        (404, "RevisionNotFound", "has no revision 'v9' on"),
        (403, "GatedRepo", "is restricted: ask for it at"),
        (
            503,
            "",
            "answered HTTP 503 when asked for org/tiny: try again later, or check HF_ENDPOINT",
        ),
        (429, "", "answered HTTP 429"),
    ],
)
def test_refusal_of_the_hub_is_explained(
    tmp_path: Path, hub: StandInHub, status: int, code: str, message: str
) -> None:
    hub.api_status, hub.api_error = status, code
    assert message in refusal(tmp_path, hub, "v9")
    # Asked once: a hub that refuses is not pestered, and a test run is not kept waiting.
    assert len(hub.requests) == 1


def test_unreachable_hub_is_named(tmp_path: Path) -> None:
    with serve({}) as hub:
        pass
    assert f"the model hub {hub.endpoint} can't be reached (ConnectError" in refusal(tmp_path, hub)


@pytest.mark.parametrize("limits", [(0.2, 60.0), (60.0, 0.2)])
def test_hub_that_never_answers_is_given_up(
    tmp_path: Path, hub: StandInHub, limits: tuple[float, float]
) -> None:
    hub.silent = True
    impatient = Hub(tmp_path / "hub", hub.endpoint, *limits)
    with pytest.raises(ModelError, match=r"can't be reached .*Time"):
        Resolver(Cache(tmp_path), impatient).resolve(REPO)


@pytest.mark.parametrize("fault", ["cut_bodies", "body_status"])
def test_broken_download_is_not_taken_for_a_model(
    tmp_path: Path, hub: StandInHub, fault: str
) -> None:
    setattr(hub, fault, 500)
    assert "downloading org/tiny failed" in refusal(tmp_path, hub)
    setattr(hub, fault, False if fault == "cut_bodies" else 200)
    offline = replace(resolver(tmp_path, hub), offline=True)
    with pytest.raises(ModelError, match="not on disk"):
        offline.resolve(REPO)
    assert resolver(tmp_path, hub).resolve(REPO).revision == COMMIT


def test_incomplete_snapshot_is_completed(tmp_path: Path, hub: StandInHub) -> None:
    first = resolver(tmp_path, hub).resolve(REPO)
    (first.path / "model.safetensors").unlink()
    hub.requests.clear()
    assert resolver(tmp_path, hub).resolve(REPO) == first
    assert hub.requested_files == {"model.safetensors"}


def test_truncated_weights_on_the_hub_are_refused(tmp_path: Path) -> None:
    cut = model_contents()["model.safetensors"][:-1]
    with (
        serve({**model_contents(), "model.safetensors": cut}) as hub,
        pytest.raises(ModelError, match=r"model\.safetensors is cut short"),
    ):
        resolver(tmp_path, hub).resolve(REPO)


def test_unwritable_cache_names_the_option(tmp_path: Path, hub: StandInHub) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.touch()
    with pytest.raises(ModelError, match=r"can't write to the cache folder .*--failgain-cache-dir"):
        resolver(in_the_way, hub).resolve(REPO)


def test_full_disk_is_noticed_before_the_download(
    tmp_path: Path, hub: StandInHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 17}))
    with pytest.raises(ModelError, match=r"has 0 kB free, and \d+ kB are needed: free some space"):
        resolver(tmp_path, hub).resolve(REPO)
    assert hub.requested_files == set()
