"""What is known of a model without loading it, and when it is loaded after all."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tiny_language_models as tiny
from pytest_failgain.errors import ModelError
from pytest_failgain.prompt import Prompt
from pytest_failgain.replies import CALL_LINES
from pytest_failgain.scoring import loading, model_facts
from pytest_failgain.scoring.loaded_model import LoadedModel
from pytest_failgain.scoring.loading import load_scorer
from pytest_failgain.scoring.local import LocalScorer
from pytest_failgain.scoring.model_facts import FactsFile
from pytest_failgain.scoring.protocol import Pair, ReplyRequest
from pytest_failgain.trajectory import Action, Tool, ToolCall

SYSTEM = {"role": "system", "content": "You book rooms."}
USER = {"role": "user", "content": "Book room 1."}
PAIRS = [
    Pair(Prompt(messages=(SYSTEM, USER), tools=(Tool("book"),)), Action("book(room=1)")),
    Pair(Prompt(messages=(USER,)), Action(calls=(ToolCall("book", '{"room": 1}'),))),
    Pair(Prompt(text="Book room 1: "), Action("book(room=1)")),
    Pair(Prompt(messages=({"role": "user", "content": "x" * 5000},)), Action("too long")),
]
REQUESTS = [ReplyRequest(Prompt(messages=(USER,)), CALL_LINES, 5)]


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The dtypes of the models that are loaded."""
    dtypes: list[str] = []
    load = loading.load_model

    def watched(*args: Any, **settings: Any) -> LoadedModel:
        dtypes.append(settings["dtype"])
        return load(*args, **settings)

    monkeypatch.setattr(loading, "load_model", watched)
    return dtypes


Load = Callable[..., LocalScorer]


@pytest.fixture
def load(tiny_model_folder: Path, cache: Path, told: list[str], loaded: list[str]) -> Load:
    def load(folder: Path = tiny_model_folder, **settings: Any) -> LocalScorer:
        return load_scorer(
            str(folder), **{"cache_dir": cache, "threads": 1, "warn": told.append, **settings}
        )

    return load


def facts_file(cache: Path) -> Path:
    (file,) = (cache / "facts").iterdir()
    return file


def test_second_time_tells_the_same_and_loads_nothing(load: Load, loaded: list[str]) -> None:
    first = load()
    scores, replies = first.score(PAIRS), first.decode(REQUESTS)
    assert loaded == ["float32"]
    second = load()
    assert second.score(PAIRS) == scores
    assert second.decode(REQUESTS) == replies
    for name in ("identity", "context_limit", "n_parameters", "plain_reason"):
        assert getattr(second, name) == getattr(first, name)
    assert second.count_tokens("abc é") == first.count_tokens("abc é")
    prompt = PAIRS[0].prompt
    assert second.count_prompt_tokens(prompt) == first.count_prompt_tokens(prompt)
    assert second.work.pairs == 0
    assert loaded == ["float32"]


def test_model_is_loaded_once_when_something_is_new(load: Load, loaded: list[str]) -> None:
    load().score(PAIRS)
    second = load()
    new = [Pair(PAIRS[0].prompt, Action("book(room=2)"))]
    assert second.score([*PAIRS, *new])[-1] == load(keep_scores=False).score(new)[0]
    second.decode(REQUESTS)
    assert second.model.device.type == "cpu"
    assert second.tokenizer.is_fast
    assert second.work.pairs == 1
    assert loaded == ["float32"] * 3


def test_notes_on_plain_passes_are_the_same_the_second_time(
    tmp_path: Path, load: Load, loaded: list[str]
) -> None:
    folder = tmp_path / "mamba"
    tiny.mamba().save_pretrained(folder)
    tiny.byte_tokenizer().save_pretrained(folder)
    first = load(folder)
    scores, replies = first.score(PAIRS[:1]), first.decode(REQUESTS)
    second = load(folder)
    assert second.score(PAIRS[:1]) == scores
    assert second.decode(REQUESTS) == replies
    assert scores[0].adaptations[-1].startswith("scored by plain passes")  # type: ignore[union-attr]
    assert replies[0].adaptations[-1].startswith("decoded by plain")  # type: ignore[union-attr]
    assert len(loaded) == 1


def test_context_of_a_score_is_the_prompt_as_text(load: Load) -> None:
    for _ in range(2):
        scorer = load()
        score, *_ = scorer.score(PAIRS)
        rendered = scorer.renderer.render(PAIRS[0].prompt)
        assert score.context == rendered.text  # type: ignore[union-attr]
        assert "You book rooms." in rendered.text


def test_nothing_is_kept_or_read_unless_scores_are(
    load: Load, loaded: list[str], cache: Path
) -> None:
    load(keep_scores=False).score(PAIRS)
    assert not (cache / "facts").exists()
    load().score(PAIRS)
    load(keep_scores=False)
    assert len(loaded) == 3


@pytest.mark.parametrize(
    "other", [{"dtype": "bfloat16"}, {"changed": "weights"}], ids=["dtype", "weights"]
)
def test_other_model_is_another(
    tiny_model_folder: Path, tmp_path: Path, load: Load, loaded: list[str], other: dict[str, str]
) -> None:
    load()
    folder = Path(shutil.copytree(tiny_model_folder, tmp_path / "copy"))
    load(folder)
    assert len(loaded) == 1
    if other.pop("changed", None):
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps({**config, "rms_norm_eps": 0.1}))
    load(folder, **other)
    assert len(loaded) == 2


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-100])


def change(file: Path) -> None:
    content = file.read_bytes()
    file.write_bytes(content.replace(b"4096", b"4095", 1))
    assert file.read_bytes() != content


def empty(file: Path) -> None:
    file.write_bytes(b"")


def of_another_model(file: Path) -> None:
    FactsFile(file.parent, "another", print).path.rename(file)


def a_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


@pytest.mark.parametrize("damage", [cut, change, empty, of_another_model])
def test_file_that_is_not_what_was_written_is_made_anew(
    load: Load, loaded: list[str], cache: Path, told: list[str], damage: Callable[[Path], None]
) -> None:
    first = load()
    file = facts_file(cache)
    content = file.read_bytes()
    FactsFile(file.parent, "another", print).write(first.facts)
    damage(file)
    load()
    assert file.read_bytes() == content
    load()
    assert len(loaded) == 2
    assert told == []


def test_other_versions_of_the_libraries_load_the_model_anew(
    load: Load, loaded: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    load()
    for name in ("transformers", "tokenizers", "torch"):
        monkeypatch.setattr(model_facts, "_version", lambda other, name=name: f"{other} {name}")
        load()
        load()
    assert len(loaded) == 4


@pytest.mark.parametrize("hindrance", ["a file", "a folder of its name"])
def test_folder_that_can_not_be_written_costs_a_note(
    load: Load, loaded: list[str], cache: Path, told: list[str], hindrance: str
) -> None:
    load()
    file = facts_file(cache)
    if hindrance == "a file":
        shutil.rmtree(cache / "facts")
        (cache / "facts").touch()
    else:
        a_folder(file)
    load().score(PAIRS)
    assert len(told) == 1
    assert told[0].startswith(f"what is known of the model can't be kept at {file} (")
    assert "make the folder writable" in told[0]
    assert len(loaded) == 2


def test_device_that_is_not_there_shows_when_it_is_needed(load: Load) -> None:
    with pytest.raises(ModelError, match="the device 'cudo:7' can't be used"):
        load(device="cudo:7")
    load().score(PAIRS)
    # The same kind of device, of which there is no tenth.
    scorer = load(device="cpu:no")
    assert scorer.score(PAIRS[:2]) == load().score(PAIRS[:2])
    with pytest.raises(ModelError, match="the device 'cpu:no' can't be used"):
        scorer.score([Pair(PAIRS[0].prompt, Action("book(room=2)"))])


def test_chat_template_is_part_of_the_identity(load: Load) -> None:
    template = load().identity.template
    assert len(template) == 16
    assert load(prompt_format="auto").identity.template == template
    assert load(prompt_format="plain").identity.template not in ("", template)
    assert tiny.tiny_scorer(template=None).identity.template == ""
    plain = tiny.tiny_scorer(template=None, prompt_format="auto").identity.template
    assert plain == load(prompt_format="plain").identity.template
    broken = tiny.tiny_scorer(template="{% if %}", prompt_format="auto").identity.template
    assert len({broken, plain, template, ""}) == 4


def test_of_many_models_the_facts_of_the_newest_are_kept(
    load: Load, cache: Path, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_facts, "_MOST_FILES", 3)
    facts = load().facts
    folder = cache / "many"
    files = [FactsFile(folder, f"model {number}", told.append) for number in range(5)]
    for number, file in enumerate(files):
        file.write(facts)
        os.utime(file.path, (number, number))
    assert [file.read() is not None for file in files] == [False, False, True, True, True]
    assert told == []
