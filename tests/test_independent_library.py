"""Our log-probabilities against double precision, and against CTranslate2's.

CTranslate2 runs the model in code of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest

from pytest_failgain.conditions import BEFORE, FAILED
from pytest_failgain.environments.tool_calls import ToolCallsEnvironment
from pytest_failgain.harness_checks import render
from pytest_failgain.harnesses import VERBATIM
from pytest_failgain.scoring.local import LocalScorer
from pytest_failgain.scoring.protocol import Pair, Score
from pytest_failgain.scoring.tree_engine import score_plainly

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def independent(smollm2: LocalScorer, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The same weights, converted for CTranslate2."""
    ctranslate2 = pytest.importorskip("ctranslate2")
    from ctranslate2.converters import TransformersConverter

    folder = tmp_path_factory.mktemp("ctranslate2") / "model"
    TransformersConverter(smollm2.model.name_or_path).convert(str(folder))
    return ctranslate2.Generator(str(folder), compute_type="float32")


def scored(scorer: LocalScorer, count: int) -> Iterator[tuple[list[int], Score]]:
    """The tokens and the score of real pairs, of `count` cases: each prompt is computed anew."""
    pairs = []
    for case in ToolCallsEnvironment().cases(count):
        for condition in (BEFORE, FAILED):
            trajectory = condition.trajectory(case)
            assert trajectory is not None
            prompt = render(VERBATIM, trajectory, case_id=case.case_id)
            pairs += [Pair(prompt, case.failed.action), Pair(prompt, case.distractors[0])]
    for pair, score in zip(pairs, scorer.score(pairs), strict=True):
        assert isinstance(score, Score)
        rendered = scorer.renderer.render(pair.prompt)
        emitted = scorer.renderer.emit(pair.prompt, rendered, pair.action)
        yield [*rendered.tokens, *emitted.tokens], score


def test_sums_are_those_of_an_independent_library(smollm2: LocalScorer, independent: Any) -> None:
    for tokens, score in scored(smollm2, 3):
        (theirs,) = independent.score_batch([smollm2.tokenizer.convert_ids_to_tokens(tokens)])
        assert sum(theirs.log_probs[-score.n_tokens :]) == pytest.approx(score.logprob, abs=1e-3)


def test_sums_are_those_of_double_precision(smollm2: LocalScorer) -> None:
    exact = deepcopy(smollm2.model).double()
    for tokens, score in scored(smollm2, 2):
        context, action = tokens[: -score.n_tokens], tokens[-score.n_tokens :]
        logprobs, _ = score_plainly(exact, context, action)
        assert logprobs.sum() == pytest.approx(score.logprob, abs=3e-4)
