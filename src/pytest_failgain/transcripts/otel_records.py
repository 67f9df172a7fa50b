"""Spans, events and log records of OpenTelemetry, whatever exporter wrote them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytest_failgain.transcripts.members import as_dict, as_dicts, as_text

_PREFIX = "gen_ai."
_NAMES = ("name", "eventName", "event_name", "span_name", "operationName")
_TRACES = ("traceId", "trace_id", "traceID")
_SPANS = ("spanId", "span_id", "spanID")
# The members in which exporters nest what they export, outermost first.
_NESTED = (
    ("resourceSpans", "resource_spans", "resourceLogs", "resource_logs"),
    ("scopeSpans", "scope_spans", "instrumentationLibrarySpans", "scopeLogs", "scope_logs"),
    ("spans", "logRecords", "log_records", "data"),
    ("spans",),
)
_SCALARS = ("stringValue", "boolValue", "intValue", "doubleValue", "bytesValue", "string_value")
_ERRORS = (2, "2", "STATUS_CODE_ERROR", "StatusCode.ERROR", "ERROR", "Error", "error")


@dataclass(frozen=True, slots=True)
class Record:
    """A span, or a log record, which is an event of the span that it names.

    `trace` and `span` are ids, empty where there are none. `status` is the message of a status that
    is an error, None where it is none. `events` are the events within a span.
    """

    name: str
    trace: str = ""
    span: str = ""
    attributes: Mapping[str, Any] = field(default_factory=dict)
    body: Any = None
    status: str | None = None
    events: tuple[Record, ...] = ()


def raw_records(entries: Sequence[Any]) -> Iterator[Mapping[str, Any]]:
    """The spans and log records in a source, as they stand there."""
    for entry in entries:
        if isinstance(entry, list):
            yield from as_dicts(entry)
        elif isinstance(entry, dict):
            yield from _unnested(entry)


def _unnested(entry: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    level: Sequence[Mapping[str, Any]] = [entry]
    for keys in _NESTED:
        level = [
            inner
            for outer in level
            for inner in (
                [one for key in keys if key in outer for one in as_dicts(outer[key])]
                if any(isinstance(outer.get(key), list) for key in keys)
                else [outer]
            )
        ]
    return level


def is_gen_ai(raw: Mapping[str, Any]) -> bool:
    """Whether a span or log record is of the GenAI conventions, by the names in it alone."""
    events = [event for key in ("events", "otel_events") for event in as_dicts(raw.get(key))]
    return any(
        any(name.startswith(_PREFIX) for name in _names_in(one)) for one in (raw, *events[:50])
    )


def _names_in(raw: Mapping[str, Any]) -> Iterator[str]:
    for key in _NAMES:
        name = raw.get(key)
        if isinstance(name, str):
            yield name
    for holder in (raw.get("attributes"), raw.get("tags"), raw):
        keys = holder if isinstance(holder, dict) else (one.get("key") for one in as_dicts(holder))
        yield from (key for key in keys if isinstance(key, str))


def record_of(raw: Mapping[str, Any]) -> Record:
    """A span or log record, its attributes as plain values."""
    context = as_dict(raw.get("context", raw.get("span_context")))
    attributes = _attributes(raw.get("attributes", raw.get("tags")))
    if not attributes:
        attributes = {key: raw[key] for key in raw if str(key).startswith((_PREFIX, "error."))}
    name = next((raw[key] for key in _NAMES if isinstance(raw.get(key), str)), "")
    told = as_text(attributes.get("event.name"))
    return Record(
        told or name,
        _first(_TRACES, raw, context),
        _first(_SPANS, raw, context),
        attributes,
        _plain(raw.get("body")),
        _status(raw, attributes),
        tuple(
            record_of(event)
            for key in ("events", "otel_events")
            for event in as_dicts(raw.get(key))
        ),
    )


def _first(keys: Sequence[str], *holders: Mapping[str, Any]) -> str:
    found = (holder.get(key) for holder in holders for key in keys)
    return next((one for one in found if isinstance(one, str)), "")


def _status(raw: Mapping[str, Any], attributes: Mapping[str, Any]) -> str | None:
    status = raw.get("status")
    held = status if isinstance(status, dict) else {}
    codes = (
        held.get("code", held.get("status_code", status)),
        raw.get("otel_status_code"),
        attributes.get("otel.status_code"),
    )
    if not any(code in _ERRORS for code in codes if isinstance(code, int | str)):
        return None
    told = held.get("message", held.get("description", raw.get("otel_status_message")))
    return as_text(told) or ""


def _attributes(value: Any) -> dict[str, Any]:
    if isinstance(value, dict):
        return {key: one for key, one in value.items() if isinstance(key, str)}
    return {
        one["key"]: _plain(one.get("value"))
        for one in as_dicts(value)
        if isinstance(one.get("key"), str)
    }


def _plain(value: Any) -> Any:
    """A value that OTLP wraps in the name of its type; others as they are."""
    if not isinstance(value, dict) or len(value) != 1:
        return value
    ((kind, inner),) = value.items()
    if kind in _SCALARS:
        return inner
    if kind in ("arrayValue", "array_value"):
        listed = as_dict(inner).get("values")
        return [_plain(one) for one in listed] if isinstance(listed, list) else []
    if kind in ("kvlistValue", "kvlist_value"):
        return _attributes(as_dict(inner).get("values"))
    return value


def parsed(value: Any) -> Any:
    """What an attribute holds, which is JSON in a text where attributes can't nest."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("[", "{"):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value
