"""JSON schemas of tools' arguments, values that fit them, and values that do not."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from pytest_failgain.errors import UsageError
from pytest_failgain.strategies.texts import JSON_VALUES, LONG_TEXTS, TEXTS

Schema = Mapping[str, Any]

_TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")
_UNDERSTOOD = {
    *("type", "enum", "const", "anyOf", "oneOf", "allOf", "$ref", "$defs", "definitions"),
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    *("minLength", "maxLength", "pattern", "items", "minItems", "maxItems", "uniqueItems"),
    *("properties", "required", "additionalProperties", "nullable"),
}
# They say something about a schema, and ask nothing of a value.
_REMARKS = {
    *("title", "description", "default", "examples", "example", "$schema", "$id", "$comment"),
    *("format", "deprecated", "readOnly", "writeOnly", "strict", "discriminator"),
}
_FORMATS = {
    "date": ("2026-01-31",),
    "time": ("08:30:00Z",),
    "date-time": ("2026-01-31T08:30:00Z",),
    "email": ("ada@example.org",),
    "uri": ("https://example.org/a?b=c",),
    "uuid": ("00000000-0000-4000-8000-000000000000",),
}
_ONE_REPEATED = re.compile(r"\^(?P<what>\[(?:\\.|[^\]\\])+\]|\\[dw]|[A-Za-z0-9.])(?P<times>[+*])\$")
# Numbers of a tool's arguments; far larger ones are no numbers of JSON everywhere.
_LARGEST = 2**53
# What a value may be taken for that is none.
_MISFITS: tuple[Any, ...] = (None, "wrong", "", 0, 1.5, -1, True, [], {}, ["wrong"], {"wrong": 1})


def schemas(max_properties: int = 3) -> st.SearchStrategy[dict[str, Any]]:
    """Schemas of a tool's arguments: objects of simple, listed and nested properties."""
    return _object_schemas(_property_schemas(), max_properties)


def schema_values(schema: Schema | bool) -> st.SearchStrategy[Any]:
    """Values that fit a JSON schema.

    Understood are types, `enum` and `const`, the limits of numbers, texts and lists, patterns,
    properties, required ones and further ones, `items`, `anyOf`, `oneOf`, `allOf`, and `$ref`
    inside the schema.

    Raises:
        UsageError: when the schema asks for something else, saying where; or is no schema.
    """
    return _Fitting(schema).values(schema, "the schema")


def misfits(value: Any, schema: Schema | bool) -> list[Any]:
    """Values like `value`, which fits `schema`, that do not: each with one slip.

    Where the schema is of an object, the slip is in a member: a required one that is missing, one
    too many, or one with a value that does not fit.
    """
    fitting = _Fitting(schema)
    whole = fitting.resolved(schema, "the schema")
    if not isinstance(value, dict) or isinstance(whole, bool):
        return [other for other in _near_misses(whole) if not fitting.fits(other, schema)]
    properties = whole.get("properties", {})
    slips = [{key: value[key] for key in value if key != name} for name in value]
    slips += [{**value, _unknown(properties): 1}]
    for name, inner in properties.items():
        if name in value:
            resolved = fitting.resolved(inner, name)
            slips += [{**value, name: other} for other in _near_misses(resolved)]
    return [slip for slip in slips if not fitting.fits(slip, schema)]


def _unknown(properties: Schema) -> str:
    name = "unexpected"
    while name in properties:
        name += "_"
    return name


def _near_misses(schema: Schema | bool) -> list[Any]:
    found = list(_MISFITS)
    if isinstance(schema, bool):
        return found
    for limit, step in (
        ("minimum", -1),
        ("maximum", 1),
        ("exclusiveMinimum", 0),
        ("exclusiveMaximum", 0),
    ):
        if isinstance(schema.get(limit), int | float):
            found.append(schema[limit] + step)
    if schema.get("maxLength", 1000) < 1000:
        found.append("a" * (schema["maxLength"] + 1))
    return found


@dataclass(frozen=True, slots=True)
class _Fitting:
    """Values that fit parts of the schema `root`, which references are resolved in."""

    root: Schema | bool

    def values(self, schema: Schema | bool, at: str) -> st.SearchStrategy[Any]:
        schema = self.resolved(schema, at)
        if isinstance(schema, bool):
            return JSON_VALUES if schema else st.nothing()
        if "const" in schema:
            return st.just(schema["const"])
        if "enum" in schema:
            chosen = [value for value in schema["enum"] if self.fits(value, schema)]
            if not chosen:
                raise UsageError(f"{at}: no value of the enum {schema['enum']!r} fits the rest")
            return st.sampled_from(chosen)
        for key in ("anyOf", "oneOf"):
            if key in schema:
                return self._of_one(schema, key, at)
        return st.one_of([self._of_type(kind, schema, at) for kind in _types(schema, at)])

    def resolved(self, schema: Schema | bool, at: str) -> Schema | bool:
        """`schema` with its reference followed and the parts of `allOf` put together."""
        if isinstance(schema, bool):
            return schema
        if not isinstance(schema, Mapping):
            raise UsageError(f"{at}: {schema!r} is no JSON schema; give a dict, or true or false")
        unknown = schema.keys() - _UNDERSTOOD - _REMARKS
        unknown = {key for key in unknown if not key.startswith("x-")}
        if unknown:
            raise UsageError(
                f"{at}: values for {', '.join(map(repr, sorted(unknown)))} can't be made; give a "
                "simpler schema, or a strategy of your own for the arguments"
            )
        if "$ref" in schema:
            rest = {key: value for key, value in schema.items() if key != "$ref"}
            return self.resolved(_joined([self._referred(schema["$ref"], at), rest], at), at)
        if "allOf" in schema:
            rest = {key: value for key, value in schema.items() if key != "allOf"}
            parts = [self.resolved(part, at) for part in schema["allOf"]]
            return self.resolved(_joined([*parts, rest], at), at)
        return schema

    def _referred(self, reference: object, at: str) -> Schema | bool:
        found: Any = self.root
        if not isinstance(reference, str) or not reference.startswith("#"):
            raise UsageError(f"{at}: the reference {reference!r} leads out of the schema")
        for step in filter(None, reference.removeprefix("#").split("/")):
            name = step.replace("~1", "/").replace("~0", "~")
            if not isinstance(found, Mapping) or name not in found:
                raise UsageError(f"{at}: the reference {reference!r} leads nowhere in the schema")
            found = found[name]
        return found  # type: ignore[no-any-return]

    def _of_one(self, schema: Schema, key: str, at: str) -> st.SearchStrategy[Any]:
        rest = {name: value for name, value in schema.items() if name != key}
        branches = []
        for index, branch in enumerate(schema[key]):
            place = f"{at}, {key}[{index}]"
            joined = _joined([self.resolved(branch, place), rest], place)
            # Behind a function, since a branch may refer to what it is a part of.
            branches.append(st.deferred(_later(self, joined, place)))
        found = st.one_of(branches)
        return found.filter(lambda value: self.fits(value, schema)) if key == "oneOf" else found

    def _of_type(self, kind: str, schema: Schema, at: str) -> st.SearchStrategy[Any]:
        if kind == "null":
            return st.none()
        if kind == "boolean":
            return st.booleans()
        if kind in ("integer", "number"):
            return _numbers(kind, schema, at)
        if kind == "string":
            return _strings(schema)
        return self._lists(schema, at) if kind == "array" else self._objects(schema, at)

    def _lists(self, schema: Schema, at: str) -> st.SearchStrategy[list[Any]]:
        least = schema.get("minItems", 0)
        most = schema.get("maxItems", least + 3)
        place = f"{at}, items"
        items = st.deferred(_later(self, schema.get("items", True), place))
        if schema.get("uniqueItems"):
            return st.lists(items, min_size=least, max_size=min(most, least + 3), unique_by=_key)
        return st.lists(items, min_size=least, max_size=min(most, least + 3))

    def _objects(self, schema: Schema, at: str) -> st.SearchStrategy[dict[str, Any]]:
        properties = schema.get("properties", {})
        required = [*schema.get("required", ())]
        further = schema.get("additionalProperties", True)
        members = {
            name: st.deferred(_later(self, properties.get(name, further), f"{at}, {name}"))
            for name in dict.fromkeys([*required, *properties])
        }
        for name in members:
            # Now and not when values are drawn, so that a schema is refused where it is given.
            if "$ref" not in str(properties.get(name, "")):
                self.values(properties.get(name, further), f"{at}, {name}")
        needed = {name: members[name] for name in members if name in required}
        optional = {
            name: members[name]
            for name in members
            if name not in required and properties[name] is not False
        }
        found: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(needed, optional=optional)
        told_of = "properties" in schema and "additionalProperties" not in schema
        if further is not False and not told_of:
            inner = st.deferred(_later(self, further, f"{at}, additionalProperties"))
            names = st.sampled_from(("more", "other", "日本"))
            extra = st.dictionaries(names, inner, max_size=2)
            found = st.builds(lambda own, more: {**more, **own}, found, extra)
        return found

    def fits(self, value: Any, schema: Schema | bool) -> bool:
        """Whether `value` fits `schema`, a part of the root."""
        schema = self.resolved(schema, "the schema")
        if isinstance(schema, bool):
            return schema
        return (
            ("type" not in schema or any(_is_of(kind, value) for kind in _types(schema, "type")))
            and ("const" not in schema or _key(value) == _key(schema["const"]))
            and ("enum" not in schema or _key(value) in map(_key, schema["enum"]))
            and ("anyOf" not in schema or any(self.fits(value, one) for one in schema["anyOf"]))
            and ("oneOf" not in schema or sum(self.fits(value, o) for o in schema["oneOf"]) == 1)
            and self._fits_by_kind(value, schema)
        )

    def _fits_by_kind(self, value: Any, schema: Schema) -> bool:
        if isinstance(value, str):
            pattern = schema.get("pattern")
            return _is_within(len(value), schema, "Length") and (
                pattern is None or re.search(pattern, value) is not None
            )
        if isinstance(value, list):
            items = schema.get("items", True)
            keys = [_key(entry) for entry in value]
            unique = not schema.get("uniqueItems") or len(set(keys)) == len(keys)
            inside = all(self.fits(entry, items) for entry in value)
            return _is_within(len(value), schema, "Items") and unique and inside
        if isinstance(value, dict):
            properties, further = (
                schema.get("properties", {}),
                schema.get("additionalProperties", True),
            )
            return all(name in value for name in schema.get("required", ())) and all(
                self.fits(entry, properties.get(name, further)) for name, entry in value.items()
            )
        if isinstance(value, int | float) and not isinstance(value, bool):
            return _fits_limits(value, schema)
        return True


def _later(fitting: _Fitting, schema: Schema | bool, at: str) -> Any:
    return lambda: fitting.values(schema, at)


def _types(schema: Schema, at: str) -> Sequence[str]:
    given = schema.get("type")
    if given is None:
        given = next(
            (
                kind
                for kind, keys in (
                    ("object", ("properties", "required", "additionalProperties")),
                    ("array", ("items", "minItems", "maxItems")),
                    ("string", ("pattern", "minLength", "maxLength")),
                )
                if any(key in schema for key in keys)
            ),
            None,
        )
    kinds = list(_TYPES) if given is None else [given] if isinstance(given, str) else list(given)
    if unknown := [kind for kind in kinds if kind not in _TYPES]:
        raise UsageError(f"{at}: there is no type {unknown[0]!r}; there are: {', '.join(_TYPES)}")
    return [*kinds, "null"] if schema.get("nullable") and "null" not in kinds else kinds


def _is_of(kind: str, value: Any) -> bool:
    if kind == "integer":
        return not isinstance(value, bool) and isinstance(value, int | float) and value % 1 == 0
    if kind == "number":
        return not isinstance(value, bool) and isinstance(value, int | float)
    known: dict[str, type | tuple[type, ...]] = {
        "null": type(None),
        "boolean": bool,
        "string": str,
        "array": list,
        "object": dict,
    }
    return isinstance(value, known[kind])


def _numbers(kind: str, schema: Schema, at: str) -> st.SearchStrategy[Any]:
    first: Any
    last: Any
    low, high = schema.get("minimum", -_LARGEST), schema.get("maximum", _LARGEST)
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    step = schema.get("multipleOf", 1 if kind == "integer" else None)
    if step is None:
        first = low if above is None else math.nextafter(max(low, above), math.inf)
        last = high if below is None else math.nextafter(min(high, below), -math.inf)
    else:
        first, last = math.ceil(low / step), math.floor(high / step)
        first = first if above is None else max(first, math.floor(above / step) + 1)
        last = last if below is None else min(last, math.ceil(below / step) - 1)
    if first > last:
        raise UsageError(f"{at}: there is no number between its limits")
    if step is None:
        return st.floats(first, last)
    return st.integers(first, last).map(lambda times: times * step)


def _strings(schema: Schema) -> st.SearchStrategy[str]:
    least, most = schema.get("minLength", 0), schema.get("maxLength", math.inf)
    pattern: str | None = schema.get("pattern")
    if pattern is not None:
        return _matching(pattern, least, most)
    if least or most < math.inf:
        return st.text(min_size=least, max_size=int(min(most, least + 12)))
    known = _FORMATS.get(schema.get("format", ""))
    return TEXTS | LONG_TEXTS if known is None else st.sampled_from(known)


def _matching(pattern: str, least: int, most: float) -> st.SearchStrategy[str]:
    repeated = _ONE_REPEATED.fullmatch(pattern)
    if repeated:
        # So that no length has to be waited for.
        fewest = max(least, 1 if repeated["times"] == "+" else 0)
        times = f"{{{fewest},{min(most, fewest + 12)}}}"
        return st.from_regex(re.compile(f"{repeated['what']}{times}"), fullmatch=True)
    found: st.SearchStrategy[str] = st.from_regex(re.compile(pattern))
    if least or most < math.inf:
        return found.filter(lambda text: least <= len(text) <= most)
    return found


def _is_within(size: int, schema: Schema, what: str) -> bool:
    return bool(schema.get(f"min{what}", 0) <= size <= schema.get(f"max{what}", math.inf))


def _fits_limits(value: float, schema: Schema) -> bool:
    step = schema.get("multipleOf")
    return bool(
        schema.get("minimum", -math.inf) <= value <= schema.get("maximum", math.inf)
        and schema.get("exclusiveMinimum", -math.inf) < value
        and value < schema.get("exclusiveMaximum", math.inf)
        and (step is None or value % step == 0)
    )


def _key(value: Any) -> object:
    """Equal for values that are equal in JSON, where true is not 1 but 1.0 is."""
    if isinstance(value, dict):
        return "object", frozenset((name, _key(entry)) for name, entry in value.items())
    if isinstance(value, list):
        return "array", tuple(map(_key, value))
    return isinstance(value, bool), value


def _joined(schemas: Sequence[Schema | bool], at: str) -> Schema | bool:
    """One schema that asks for what all of `schemas` ask for."""
    if any(schema is False for schema in schemas):
        return False
    found = [schema for schema in schemas if not isinstance(schema, bool)]
    joined: dict[str, Any] = {}
    for schema in found:
        joined = _both(joined, schema, at)
    return joined


def _both(one: Schema, other: Schema, at: str) -> dict[str, Any]:
    joined = {**one, **other}
    for key in one.keys() & other.keys() - _REMARKS:
        if key == "properties":
            joined[key] = {**one[key], **other[key]}
            for name in one[key].keys() & other[key].keys():
                joined[key][name] = {"allOf": [one[key][name], other[key][name]]}
        elif key == "required":
            joined[key] = [*dict.fromkeys([*one[key], *other[key]])]
        elif key in ("$defs", "definitions"):
            joined[key] = {**one[key], **other[key]}
        elif key == "type" and (kinds := _kinds_of_both(one[key], other[key])):
            joined[key] = kinds
        elif one[key] != other[key]:
            raise UsageError(
                f"{at}: two parts of it ask for another {key!r}: {one[key]!r} and {other[key]!r}; "
                "give a schema with one"
            )
    return joined


def _kinds_of_both(one: str | Sequence[str], other: str | Sequence[str]) -> list[str]:
    kinds = [[given] if isinstance(given, str) else [*given] for given in (one, other)]
    # Whole numbers are numbers.
    wider = [{*given, *(["integer"] if "number" in given else [])} for given in kinds]
    return [kind for kind in dict.fromkeys(kinds[0] + kinds[1]) if kind in wider[0] & wider[1]]


def _property_schemas() -> st.SearchStrategy[dict[str, Any]]:
    simple: st.SearchStrategy[dict[str, Any]] = st.one_of(
        st.sampled_from(({"type": "integer"}, {"type": "string"}, {"type": "boolean"})),
        st.sampled_from(
            (
                {"type": "number", "minimum": 0, "maximum": 100},
                {"type": "integer", "minimum": 1},
                {"type": "string", "enum": ["low", "high"]},
                {"type": "string", "pattern": "^[A-Z]+$", "maxLength": 8},
                {"type": "string", "format": "date"},
                {"type": ["string", "null"]},
                {"anyOf": [{"type": "integer"}, {"type": "string"}]},
            )
        ),
    )
    return st.recursive(
        simple,
        lambda inner: (
            st.builds(
                lambda items, most: {"type": "array", "items": items, "maxItems": most},
                inner,
                st.integers(1, 3),
            )
            | _object_schemas(inner, 2)
        ),
        max_leaves=3,
    )


@st.composite
def _object_schemas(
    draw: st.DrawFn, inner: st.SearchStrategy[dict[str, Any]], max_properties: int
) -> dict[str, Any]:
    names = st.sampled_from(("id", "name", "order_id", "note", "größe", "items"))
    properties = draw(st.dictionaries(names, inner, max_size=max_properties))
    required = [name for name in properties if draw(st.booleans())]
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    if draw(st.booleans()):
        schema["additionalProperties"] = False
    return schema
