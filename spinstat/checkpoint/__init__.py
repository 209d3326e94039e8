"""The state of a run: vars.pkl, pyt_save/ and tf1_save/, each checkpoint whole or not at all.

    savers        takes the checkpoints of a logger
    lookup        find_checkpoint: the files to read, whatever moment the run ended at; listing, all there are
    generations   checkpoints on the disk; drafts, one being written; record, what it consists of
    retention     which of them may go
    resume        where a run goes on; rows, which row a checkpoint belongs to; random_state, of generators
    pickles       objects as files; graphs, TensorFlow's as folders; swap, one folder in another one's place
    weights       of a module without a pickle, for readers who do not trust the run
"""

from .graphs import check_elements, restore_tf_graph
from .listing import Listed, list_checkpoints, verify_checkpoints
from .lookup import Checkpoint, find_checkpoint, find_weights
from .resume import Point, load_point, open_run, point_files
from .retention import Retention
from .savers import Savers
from .weights import load_weights, make_recipe

__all__ = [
    "Checkpoint",
    "Listed",
    "Point",
    "Retention",
    "Savers",
    "check_elements",
    "find_checkpoint",
    "find_weights",
    "list_checkpoints",
    "load_point",
    "load_weights",
    "make_recipe",
    "open_run",
    "point_files",
    "restore_tf_graph",
    "verify_checkpoints",
]
