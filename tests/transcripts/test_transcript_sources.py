"""What a transcript may come in, and what is said of one that can't be read."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from pytest_failgain.errors import TranscriptError, UsageError
from pytest_failgain.transcripts.document import DEEPEST, open_document
from pytest_failgain.transcripts.read import read_transcript

MESSAGES: list[dict[str, Any]] = [
    {"role": "user", "content": "Book a room. 😀"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "book", "arguments": "{}"}}
        ],
    },
    {"role": "tool", "tool_call_id": "a", "content": "Error: no room"},
]
TEXT = json.dumps(MESSAGES, ensure_ascii=False)


class Reply:
    """A message object of a client library."""

    def __init__(self, message: dict[str, Any]) -> None:
        self.message = message

    def model_dump(self) -> dict[str, Any]:
        return self.message


SOURCES: dict[str, Any] = {
    "text": TEXT,
    "bytes": TEXT.encode(),
    "bytearray": bytearray(TEXT.encode()),
    "text with a mark": "\ufeff" + TEXT,
    "byte order mark": b"\xef\xbb\xbf" + TEXT.encode(),
    "UTF-16": TEXT.encode("utf-16"),
    "open text file": io.StringIO(TEXT),
    "open file": io.BytesIO(TEXT.encode()),
    "list": MESSAGES,
    "tuple": tuple(MESSAGES),
    "body": {"messages": MESSAGES},
    "body with a tuple": {"messages": tuple(MESSAGES)},
    "objects": [*map(Reply, MESSAGES)],
    "body with objects": {"messages": [*map(Reply, MESSAGES)]},
    "indented": json.dumps(MESSAGES, indent=2),
    "lines": "\n".join(map(json.dumps, MESSAGES)),
    "lines of Windows": "\r\n\n".join(map(json.dumps, MESSAGES)) + "\n",
    "documents": "\n".join(json.dumps(message, indent=2) for message in MESSAGES),
}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_sources_of_every_type_are_read_alike(source: Any) -> None:
    transcript = read_transcript(source)
    assert [case.failed.observation for case in transcript.failures] == ["Error: no room"]
    assert transcript.failures[0].trajectory.goal == "Book a room. 😀"


def test_generator_is_read_once() -> None:
    assert len(read_transcript(message for message in MESSAGES).failures) == 1


@pytest.mark.parametrize("as_text", [str, Path])
def test_file_gives_the_cases_their_name(as_text: type[str] | type[Path], tmp_path: Path) -> None:
    path = tmp_path / "night run.json"
    path.write_text(TEXT, "utf-8")
    assert read_transcript(as_text(path)).failures[0].case_id == "night run-1"
    with path.open("rb") as opened:
        assert read_transcript(opened).failures[0].case_id == "night run-1"


@pytest.mark.parametrize("source", ["no such.jsonl", Path("no such.jsonl"), "what is this?"])
def test_missing_path_is_named(source: str | Path) -> None:
    with pytest.raises(TranscriptError, match=f"no transcript '{str(source)[:4]}"):
        open_document(source)


def test_folder_is_no_transcript(tmp_path: Path) -> None:
    with pytest.raises(TranscriptError, match=r"can.t read the transcript .*: Is a directory"):
        open_document(tmp_path)


@pytest.mark.parametrize(
    "source",
    ["", " \n ", b"", "\ufeff", [], {}, (), io.StringIO("")],
    ids=lambda source: ascii(source)[:12],
)
def test_empty_transcript_is_said_to_be_empty(source: Any) -> None:
    with pytest.raises(TranscriptError, match="is empty"):
        open_document(source)


@pytest.mark.parametrize("source", [5, None, 1.5])
def test_what_no_transcript_comes_in_is_a_usage_error(source: Any) -> None:
    with pytest.raises(UsageError, match=f"from a {type(source).__name__}; give a path"):
        open_document(source)


def test_file_that_gives_no_text_is_a_usage_error() -> None:
    class Odd:
        def read(self) -> int:
            return 5

    with pytest.raises(UsageError, match=r"read\(\) gave a int"):
        open_document(Odd())  # type: ignore[arg-type]


def test_closed_file_is_a_typed_error() -> None:
    closed = io.StringIO(TEXT)
    closed.close()
    with pytest.raises(TranscriptError, match="can't read the transcript"):
        open_document(closed)


def test_object_whose_dump_fails_is_named() -> None:
    class Broken:
        def model_dump(self) -> None:
            raise RuntimeError("not set up")

    with pytest.raises(TranscriptError, match=r"model_dump\(\) of a Broken .* not set up"):
        open_document([Broken()])


def test_lines_that_are_no_json_are_counted_and_said() -> None:
    lines = [*map(json.dumps, MESSAGES), '{"role": "assis', "Traceback"]
    document = open_document("\n".join(lines))
    assert (len(document.values), document.broken_lines) == (3, 2)
    assert "lines that are no JSON left out (2)" in read_transcript("\n".join(lines)).notes


def test_documents_one_behind_the_other_end_where_the_log_was_cut_off() -> None:
    text = "\n".join(json.dumps(message, indent=2) for message in MESSAGES)
    assert len(open_document(text + '\n{\n  "role": ').values) == 3
    assert open_document(text + "\nand then\n").values == ()


def nested(depth: int, *, objects: bool) -> str:
    begin, end = ('{"a":', "}") if objects else ("[", "]")
    return begin * depth + "1" + end * depth


@pytest.mark.parametrize("objects", [True, False])
def test_nesting_is_read_to_a_depth_and_refused_beyond(*, objects: bool) -> None:
    assert open_document(nested(DEEPEST - 2, objects=objects)).values
    with pytest.raises(TranscriptError, match=f"nested more than {DEEPEST} levels deep"):
        open_document(nested(DEEPEST + 2, objects=objects))


def test_value_that_holds_itself_is_refused() -> None:
    looped: list[Any] = [{"role": "user"}]
    looped[0]["content"] = looped
    with pytest.raises(TranscriptError, match="nested more than"):
        open_document(looped)


def test_value_that_is_held_many_times_is_looked_at_once() -> None:
    shared: Any = "x"
    for _ in range(100):
        shared = [shared, shared]
    assert open_document({"messages": [], "rest": shared}).values


def test_huge_numbers_and_odd_constants_are_no_other_error() -> None:
    huge = "1" * 10_000
    with pytest.raises(TranscriptError):
        read_transcript(f'[{{"role": "user", "content": {huge}}}]')
    assert not read_transcript('[{"role": "user", "content": NaN}]').failures


def test_beginning_of_an_unknown_format_is_shown() -> None:
    with pytest.raises(TranscriptError, match=r"no known format \(it begins 'once upon a time'\)"):
        read_transcript("once upon\na time")
    with pytest.raises(TranscriptError, match=r"no known format \(it begins \{'tale': 1\}\)"):
        read_transcript([{"tale": 1}])


def test_named_format_that_does_not_fit_is_said() -> None:
    with pytest.raises(TranscriptError, match="no conversation in the format 'pi'"):
        read_transcript(MESSAGES, "pi")
    with pytest.raises(UsageError, match="did you mean 'openai-chat'"):
        read_transcript(MESSAGES, "openai-chats")
