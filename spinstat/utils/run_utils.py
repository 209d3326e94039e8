"""The names of spinup.utils.run_utils."""

from __future__ import annotations

from ..folders import setup_logger_kwargs

__all__ = ["setup_logger_kwargs"]
