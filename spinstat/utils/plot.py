"""The names of spinup.utils.plot; as a program, the command plot of spinstat.run."""

from __future__ import annotations

from ..datasets import get_all_datasets, get_datasets, plot_data
from ..plot import make_plots

__all__ = ["get_all_datasets", "get_datasets", "make_plots", "plot_data"]


if __name__ == "__main__":
    import sys

    from ..run import main

    sys.exit(main(["plot", *sys.argv[1:]]))
