"""The environment variables that lead an agent's client to the endpoint, and keep it quiet."""

from __future__ import annotations

from collections.abc import Mapping

# Many clients refuse to start without a key; nobody reads this one.
NO_KEY = "failgain-needs-no-key"

_QUIET = {
    "OPENAI_AGENTS_DISABLE_TRACING": "1",
    "CREWAI_DISABLE_TELEMETRY": "true",
    "CREWAI_DISABLE_TRACKING": "true",
    "AGNO_TELEMETRY": "false",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LANGSMITH_TRACING": "false",
    "LANGCHAIN_TRACING_V2": "false",
}
_LOOPBACK = ("127.0.0.1", "localhost")


def client_environment(
    base_url: str, present: Mapping[str, str], *, with_key: bool = True
) -> dict[str, str]:
    """The variables for clients of `base_url`, beside those that are `present`.

    Hosts that go past a proxy already still do. Without `with_key` the user's own key stays.
    """
    spared = [host for name in ("NO_PROXY", "no_proxy") for host in _hosts(present.get(name, ""))]
    hosts = ",".join(dict.fromkeys([*spared, *_LOOPBACK]))
    return {
        "OPENAI_BASE_URL": base_url,
        "OPENAI_API_BASE": base_url,
        **({"OPENAI_API_KEY": NO_KEY} if with_key else {}),
        "NO_PROXY": hosts,
        "no_proxy": hosts,
        **_QUIET,
    }


def _hosts(value: str) -> list[str]:
    return [host.strip() for host in value.split(",") if host.strip()]
