"""What a worker of xdist found, as a text that travels to the controller."""

from __future__ import annotations

import base64
import pickle
from dataclasses import replace

from pytest_failgain.stash import Findings


def packed(findings: Findings) -> str:
    """`findings` as a text."""
    # The link to the baseline leads back to this process.
    measurements = [replace(one, baseline=None) for one in findings.measurements]
    return base64.b85encode(pickle.dumps(findings._replace(measurements=measurements))).decode()


def unpacked(text: str) -> Findings:
    """The findings that `packed` made a text of, in a process of this same run."""
    findings: Findings = pickle.loads(base64.b85decode(text))
    return findings
