"""Benchmarks of spinstat, each a program of its own: `python -m benchmarks.<name> [--quick]`.

store     what a call of EpochLogger.store costs beside an empty method, growing lists and other libraries
moments   the speed of the reduction beside plain reading, NumPy and other libraries, by size and type
epoch     the whole life of an epoch, and logging's share of a fast simulation
accuracy  digits of mean and standard deviation that are right
ranks     what the reduction of an epoch over ranks costs
logger    what an epoch's rows cost
imports   what importing costs, and the size of the wheel

`python -m benchmarks`, which `make bench` runs, runs them all and keeps what they print in results/;
`python -m benchmarks.report` makes README's section on speed from it.

Each prints Markdown: a header (commit, machine, flags, versions, sizes), then a line a figure: what was
measured, the floor it has to keep where there is one, and `pass` or `short`. A short figure is printed, not
raised: no exit status depends on a time. Whatever is compared has its answer checked before it is timed.
"""
