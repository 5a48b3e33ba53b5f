"""The commands; the only place that prints.

Linear algebra keeps to one thread: on two cores the threads of its libraries wait for each other most of the time,
and an audit of gossip took ten times as long. They read this when they are loaded, which is after this module.
"""

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
