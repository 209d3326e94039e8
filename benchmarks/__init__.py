"""Benchmarks of spinstat, each a program of its own: `python -m benchmarks.<name> [--quick]`.

store    what a call of EpochLogger.store costs beside an empty method and beside growing lists, and memory
moments  the speed of the reduction beside plain reading, NumPy and other libraries that reduce columns
logger   what an epoch's rows cost, and what `import spinstat` costs

Each prints a header (sources, sizes, versions, machine), then a line a figure: what was measured, the floor
it has to keep where there is one, and `pass` or `short`. A short figure is printed, not raised: no exit
status depends on a time.
"""
