"""From a folder with a model in it to a scorer, or to one line that says why not."""

from __future__ import annotations

import json
import os
import shutil
import socket
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoTokenizer, ByT5Tokenizer
from transformers.utils import logging as transformers_logging

from pytest_failgain import Failgain, Measurement, Transcript
from pytest_failgain.errors import ModelError, ScoringError, UsageError
from pytest_failgain.models import ModelFiles
from pytest_failgain.prompt import Prompt
from pytest_failgain.scoring.loading import load_files, load_scorer
from pytest_failgain.scoring.local import LocalScorer
from pytest_failgain.scoring.protocol import Pair, Score
from pytest_failgain.trajectory import Action, FailureCase

bars: Any = transformers_logging
HELLO = Pair(Prompt(messages=({"role": "user", "content": "Hello."},)), Action("go()"))


@pytest.fixture
def folder(tiny_model_folder: Path, tmp_path: Path) -> Path:
    """A copy of the tiny model's folder, to be damaged."""
    return Path(shutil.copytree(tiny_model_folder, tmp_path / "tiny"))


@pytest.fixture(autouse=True)
def _threads_as_before() -> Any:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def loaded(folder: Path, *, threads: int | None = 1, **settings: Any) -> LocalScorer:
    # One thread: two that share a busy core are many times slower.
    cache = folder.parent / "cache"
    return load_scorer(str(folder), cache_dir=cache, threads=threads, **settings)


def score(scorer: LocalScorer) -> Score:
    (scored,) = scorer.score([HELLO])
    assert isinstance(scored, Score)
    return scored


def files(folder: Path) -> ModelFiles:
    return ModelFiles("tiny", folder, "directory", None, "fingerprint")


def test_scorer_of_a_folder_scores_and_tells_what_it_is(folder: Path) -> None:
    scorer = loaded(folder)
    assert scorer.identity.name == str(folder)
    assert (scorer.identity.source, scorer.identity.revision) == ("directory", None)
    assert (scorer.identity.dtype, scorer.identity.device) == ("float32", "cpu")
    assert scorer.plain_reason is None
    assert score(scorer).n_tokens == len("go()")


def test_same_files_give_the_same_fingerprint_and_other_weights_another(folder: Path) -> None:
    first = loaded(folder).identity.fingerprint
    assert (
        loaded(Path(shutil.copytree(folder, folder.parent / "copy"))).identity.fingerprint == first
    )
    change_weights(folder, 1.5)
    assert loaded(folder).identity.fingerprint != first


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_weights_have_the_dtype_that_was_asked_for(folder: Path, dtype: str) -> None:
    scorer = load_files(files(folder), dtype=dtype, threads=1)
    assert scorer.identity.dtype == dtype
    assert {weights.dtype for weights in scorer.model.parameters()} == {getattr(torch, dtype)}
    assert score(scorer).logprob == pytest.approx(score(loaded(folder)).logprob, abs=1.5)


def test_dtype_that_there_is_not_is_refused_with_those_that_there_are(folder: Path) -> None:
    with pytest.raises(ModelError, match="no dtype 'flot32' here; take one of float32, bfloat16, "):
        loaded(folder, dtype="flot32")


@pytest.mark.parametrize("threads", [1, 2])
def test_model_gets_the_threads_that_were_given(folder: Path, threads: int) -> None:
    loaded(folder, threads=threads)
    assert torch.get_num_threads() == threads


def test_model_gets_the_usable_cores_otherwise(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pytest_failgain.scoring.loading.thread_count", lambda: 3)
    loaded(folder, threads=None)
    assert torch.get_num_threads() == 3


def test_system_prompts_are_folded_only_where_that_is_wanted(folder: Path) -> None:
    assert [loaded(folder, fold_system=wanted).fold_system for wanted in (False, True)] == [
        False,
        True,
    ]


@pytest.mark.parametrize("prompt_format", ["template", "plain", "auto"])
def test_messages_are_written_in_the_format_that_was_asked_for(
    folder: Path, prompt_format: str
) -> None:
    rendered = loaded(folder, prompt_format=prompt_format).renderer.render(HELLO.prompt)
    assert rendered.text.startswith("### User\n") == (prompt_format == "plain")


def test_prompt_format_that_there_is_not_is_refused_before_the_model_is_looked_for() -> None:
    with pytest.raises(UsageError, match="no prompt format 'plane'; take one of template, plain"):
        load_scorer("no/such-model", prompt_format="plane", offline=True)


def change_weights(folder: Path, factor: float) -> None:
    path = folder / "model.safetensors"
    weights = load_file(path)
    weights["lm_head.weight"] *= factor
    save_file(weights, path, metadata={"format": "pt"})


def damage_config(folder: Path) -> None:
    (folder / "config.json").write_text('{"model_type": "llama", ')


def take_for_another_architecture(folder: Path) -> None:
    (folder / "config.json").write_text('{"model_type": "no-such-model"}')


def change_sizes(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "hidden_size": 64}))


def cut_weights_short(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1000])


def garble_weights(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(struct.pack("<Q", 40) + b"x" * 1000)


def pickle_weights(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def damage_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").write_text('{"version": "1.0", "model": ')


def lose_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()


def lose_config(folder: Path) -> None:
    (folder / "config.json").unlink()


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (damage_config, "config.json is not valid JSON"),
        (lose_config, "has no config.json"),
        (take_for_another_architecture, "no-such-model"),
        (change_sizes, "can't be loaded: RuntimeError: "),
        (cut_weights_short, "model.safetensors is cut short or is no safetensors file"),
        (garble_weights, "model.safetensors is cut short or is no safetensors file"),
        (pickle_weights, "only pickled weights (pytorch_model.bin), which are refused"),
        (damage_tokenizer, "can't be loaded: "),
        (lose_tokenizer, "has no tokenizer"),
    ],
)
def test_damaged_model_is_an_error_of_one_line_that_names_the_folder(
    folder: Path, damage: Any, told: str
) -> None:
    damage(folder)
    with pytest.raises(ModelError) as caught:
        loaded(folder)
    message = str(caught.value)
    assert told in message
    assert str(folder) in message
    assert "\n" not in message
    assert len(message) < 600


def test_device_that_there_is_not_is_an_error_of_one_line(folder: Path) -> None:
    with pytest.raises(ModelError, match=r"device 'cudo:7' can't be used") as caught:
        loaded(folder, device="cudo:7")
    assert "\n" not in str(caught.value)


def test_slow_tokenizer_is_refused_with_what_to_do(folder: Path) -> None:
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        (folder / name).unlink()
    tokenizer: Any = ByT5Tokenizer
    tokenizer().save_pretrained(folder)
    automatic: Any = AutoTokenizer
    assert not automatic.from_pretrained(folder).is_fast
    with pytest.raises(ModelError, match=r"no fast tokenizer \(tokenizer\.json\).* convert"):
        load_files(files(folder), threads=1)


def test_missing_extra_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ModelError, match=r"needs the 'local' extra .*pytest-failgain\[local\]"):
        load_files(files(folder), threads=1)


def test_model_that_gives_no_numbers_records_nothing(folder: Path) -> None:
    change_weights(folder, float("nan"))
    recorded: list[Measurement] = []
    cache = folder.parent / "cache"
    failgain = Failgain(str(folder), cache_dir=cache, threads=1, on_measured=recorded.append)
    cases = [failure_case()]
    for _ in range(2):
        with pytest.raises(ScoringError, match=r"impossible log-probability nan .* recorded"):
            failgain.measure(failgain.remedy("verbatim"), cases)
    assert recorded == []


def failure_case() -> FailureCase:
    return Transcript("a").user("Go.").failing_step("go(1)", "no").correct("go(2)").case()


def test_measuring_uses_no_network(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **kwargs: object) -> NoReturn:
        raise AssertionError("the network was asked")

    for name in ("connect", "connect_ex", "sendto"):
        monkeypatch.setattr(socket.socket, name, refuse)
    for name in ("getaddrinfo", "gethostbyname", "create_connection"):
        monkeypatch.setattr(socket, name, refuse)
    failgain = Failgain(str(folder), cache_dir=folder.parent / "cache", threads=1)
    measured = failgain.measure(failgain.remedy("verbatim"), [failure_case()])
    assert measured.values.case_ids == ("a",)


@pytest.mark.parametrize("shown", [True, False])
def test_loading_shows_nothing_and_leaves_the_bars_of_transformers_as_they_were(
    folder: Path, capfd: pytest.CaptureFixture[str], shown: bool
) -> None:
    before = bars.is_progress_bar_enabled()
    switch = bars.enable_progress_bar if shown else bars.disable_progress_bar
    switch()
    try:
        loaded(folder)
        assert bars.is_progress_bar_enabled() is shown
        change_sizes(folder)
        with pytest.raises(ModelError):
            load_files(files(folder), threads=1)
        assert bars.is_progress_bar_enabled() is shown
    finally:
        (bars.enable_progress_bar if before else bars.disable_progress_bar)()
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
def test_threads_are_told_to_sleep_only_while_torch_is_imported(
    folder: Path, tmp_path: Path
) -> None:
    program = f"""
import os, sys
from pathlib import Path
from pytest_failgain.scoring.loading import load_scorer
seen = []
class Watch:
    def find_spec(self, name, *_):
        if name == "torch":
            seen.append(os.environ.get("OMP_WAIT_POLICY"))
sys.meta_path.insert(0, Watch())
load_scorer({str(folder)!r}, cache_dir=Path({str(tmp_path)!r}))
print(seen[0], os.environ.get("OMP_WAIT_POLICY"))
"""
    environment = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["PASSIVE", "None"]


def test_scores_are_kept_in_the_cache_folder_unless_told_otherwise(
    folder: Path, tmp_path: Path
) -> None:
    load_scorer(str(folder), cache_dir=tmp_path, keep_scores=False).score([HELLO])
    assert list(tmp_path.glob("scores*")) == []
    load_scorer(str(folder), cache_dir=tmp_path).score([HELLO])
    assert [path.name for path in tmp_path.glob("*.sqlite3")] == ["scores-1.sqlite3"]


def test_scores_can_be_kept_in_another_folder_than_the_models(folder: Path, tmp_path: Path) -> None:
    cache, kept = tmp_path / "cache", tmp_path / "kept"
    load_scorer(str(folder), cache_dir=cache, scores_in=kept).score([HELLO])
    assert [path.name for path in kept.iterdir()] == ["scores-1.sqlite3"]
    assert list(cache.glob("scores*")) == []
    load_scorer(str(folder), cache_dir=cache, scores_in=tmp_path / "no", keep_scores=False)
    assert not (tmp_path / "no").exists()
