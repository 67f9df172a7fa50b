"""What some options may be, for those who read options and those who act on them alike."""

from __future__ import annotations

DTYPES = ("float32", "bfloat16", "float16")
PROMPT_FORMATS = ("template", "plain", "auto")
