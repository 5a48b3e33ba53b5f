"""Campaigns: p2pdp against faults, liars and hostile input, small in the suite and large by one command.

    python -m tests.campaigns NAME [--part P] [--seed S] [--count N] [--hours H] [--report FILE]
    python -m tests.campaigns all --hours 2 --report campaigns.json
    python -m tests.campaigns.decoders --count 100000       # lets the kept corpus grow

A case is a part (a protocol, a decoder, ...) and a seed. What fails is printed with the command that runs exactly that
case again: `--seed S` without `--count` and `--hours` is one case. The report has cases, cases a second of CPU, what
failed with seeds, and what is known. The exit code is 1 if anything failed that is not known.

    name       what happens                                                           judged by
    schedules  simulated runs of every protocol, with losses, crashes, disks, liars   oracle.py, judging.py
    liars      one kind of lie (behaviours.py) on a calm network                      the same
    hostile    sealed hostile frames at hosts of users, bootstrap and curator         hostile.py
    decoders   coverage-guided inputs, with a kept corpus                             decoders.py
    folders    finished runs with a changed file, under every command                 folders.py
    live       processes killed, paused, resumed; over TCP, memory, Mosquitto         live.py, support/run_oracle.py
               with PostgreSQL, in containers                                         machines.py
    soak       a long run with limits to growth                                       soak.py

A new lie is a `Behaviour` and a line in `behaviours.KINDS`; what it may lead to is said there. What fails today is in
`known.py` by finding, and a strict expected failure of `test_liars.py`: mend it, and take its lines out. Protocols of
other packages take part where `specs.py` finds a spec for them.

In tests: `python -m pytest tests/campaigns`. They are no part of the fast tier.
"""
