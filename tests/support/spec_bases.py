"""Specs from which tests of combinations start."""

from __future__ import annotations

RING = """
run = {protocol = "walk.sum", nodes = 6}
graph = {kind = "ring"}
walk = {order = "ring", laps = 1}
noise = {mechanism = "gaussian", sigma = 1}
data = {kind = "uniform", clip = [0, 1]}
"""
WALK = RING.replace('"ring", laps', '"random", hops').replace('"ring"', '"complete"')
COUNTS = """
run = {protocol = "walk.histogram", nodes = 6}
graph = {kind = "complete"}
walk = {order = "random", hops = 9}
noise = {mechanism = "randomized_response", epsilon = 1}
data = {kind = "categories"}
task = {categories = 3}
"""
GOSSIP = """
run = {protocol = "gossip.average", nodes = 6}
graph = {kind = "erdos_renyi"}
gossip = {rounds = "auto"}
noise = {mechanism = "gaussian", sigma = 1}
data = {kind = "normal", clip = [-1, 1]}
"""
PAIRS = GOSSIP.replace(".average", ".randomized").replace('rounds = "auto"', "activations = 9")
GOSSIP_SGD = """
run = {protocol = "gossip.sgd", nodes = 6}
graph = {kind = "complete"}
gossip = {rounds = 3}
noise = {mechanism = "gaussian", sigma = 1}
data = {kind = "csv", path = "x.csv", target = 0}
task = {kind = "logistic_regression", clip = 1, rate = 1, rounds = 2}
"""
WALK_SGD = """
run = {protocol = "walk.sgd", nodes = 6}
graph = {kind = "complete"}
walk = {order = "random", hops = 9}
noise = {mechanism = "gaussian", sigma = 1}
data = {kind = "npy", path = "x.npy", target = 0}
task = {kind = "linear_regression", clip = 1}
"""
SHUFFLE = """
run = {protocol = "shuffle.all", nodes = 6}
graph = {kind = "regular", degree = 3}
shuffle = {rounds = "mixing"}
noise = {mechanism = "privunit", epsilon = 1}
data = {kind = "unit_mixture"}
task = {kind = "mean"}
"""
REALS = SHUFFLE.replace("privunit", "laplace").replace('"unit_mixture"', '"uniform", clip = [0, 1]')
BASES = [RING, WALK, COUNTS, GOSSIP, PAIRS, GOSSIP_SGD, WALK_SGD, SHUFFLE, REALS]
