"""An agent that answers stock questions and places orders in a parts warehouse."""

from __future__ import annotations
