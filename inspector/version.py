"""The version of the installed distribution."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("sequence-inspector")
except PackageNotFoundError:  # running from a source tree that was not installed
    __version__ = "0"
