"""What a user of both packages may write: a loop over seeds, and worlds in which a user crashes. Prints one document.

python drive.py SPEC
"""

import dataclasses
import json
import sys

import p2pdp
from p2pdp.sim.faults import Crash
from tests.support.runs import run_of

spec = p2pdp.load_spec(sys.argv[1])
seeds = [dataclasses.replace(spec, run=dataclasses.replace(spec.run, seed=seed)) for seed in range(1, 13)]
results = [p2pdp.simulate(one) for one in seeds]
found = {"off": [result.error / result.standard_error for result in results]}
for name, down_s in (("back", 1.0), ("gone", None)):
    audits = [run_of(spec, Crash(2, at_record=record, down_s=down_s)).audit() for record in range(2, 8)]
    found[name] = [
        {f"{claim.observer} {claim.method}": claim.mu_max for claim in audit.claims if claim.bound} for audit in audits
    ]
print(json.dumps(found))
