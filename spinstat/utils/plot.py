"""The names of spinup.utils.plot."""

from __future__ import annotations

from ..datasets import get_all_datasets, get_datasets, plot_data
from ..plot import make_plots

__all__ = ["get_all_datasets", "get_datasets", "make_plots", "plot_data"]
