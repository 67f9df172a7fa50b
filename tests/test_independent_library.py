"""Our log-probabilities against those of CTranslate2, which runs the model in code of its own."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_failgain.conditions import BEFORE, FAILED
from pytest_failgain.environments.tool_calls import ToolCallsEnvironment
from pytest_failgain.harness_checks import render
from pytest_failgain.harnesses import VERBATIM
from pytest_failgain.scoring.local import LocalScorer
from pytest_failgain.scoring.protocol import Pair, Score

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def independent(smollm2: LocalScorer, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The same weights, converted for CTranslate2."""
    ctranslate2 = pytest.importorskip("ctranslate2")
    from ctranslate2.converters import TransformersConverter

    folder = tmp_path_factory.mktemp("ctranslate2") / "model"
    TransformersConverter(smollm2.model.name_or_path).convert(str(folder))
    return ctranslate2.Generator(str(folder), compute_type="float32")


def test_sums_are_those_of_an_independent_library(smollm2: LocalScorer, independent: Any) -> None:
    pairs = []
    # Few, since the other library computes every prompt anew.
    for case in ToolCallsEnvironment().cases(3):
        for condition in (BEFORE, FAILED):
            trajectory = condition.trajectory(case)
            assert trajectory is not None
            prompt = render(VERBATIM, trajectory, case_id=case.case_id)
            pairs += [Pair(prompt, case.failed.action), Pair(prompt, case.distractors[0])]
    for pair, score in zip(pairs, smollm2.score(pairs), strict=True):
        assert isinstance(score, Score)
        rendered = smollm2.renderer.render(pair.prompt)
        emitted = smollm2.renderer.emit(pair.prompt, rendered, pair.action)
        tokens = smollm2.tokenizer.convert_ids_to_tokens([*rendered.tokens, *emitted.tokens])
        (theirs,) = independent.score_batch([tokens])
        assert sum(theirs.log_probs[-score.n_tokens :]) == pytest.approx(score.logprob, abs=1e-3)
