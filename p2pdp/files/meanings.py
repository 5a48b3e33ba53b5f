"""The meaning of each key of a spec and of a node's configuration, a sentence each, for the guide's reference.

Types, defaults, and which keys go together are not repeated here: `files.reference` takes them from the schema.
"""

from __future__ import annotations

from typing import Final

SECTION_MEANINGS: Final = {
    "run": "Which protocol runs, with how many users, and how long the parties wait for each other.",
    "transport": (
        'The MQTT broker of a run with `transport = "mqtt"`; in a node\'s configuration, as whom the node logs in.'
    ),
    "graph": "Who can talk to whom.",
    "noise": "How each contribution is protected.",
    "data": "Where the users' values come from.",
    "task": "What is computed.",
    "privacy": "What claims are stated for.",
    "audit": "Who may read the ledgers without values that nodes hand in.",
    "node": "Configuration of a node: who it is, and how it is reached.",
    "accept": (
        "Configuration of a node: what a run must be like. All keys are optional, and what is not given "
        'is not checked, except that a run without noise is refused unless `mechanisms` names `"none"`.'
    ),
    "budget": "Configuration of a node: what its data set may lose in all runs together.",
}

MEANINGS: Final = {
    "run.protocol": "The protocol.",
    "run.nodes": "Number of users. For graph kind `file` it may be left out: it is the size of the largest component.",
    "run.seed": (
        "Seed of synthetic data, of random graphs and of the simulator. Noise and routes of a live run "
        "never come from a seed."
    ),
    "run.transport": '`"memory"` runs all users in one process without sockets.',
    "run.durability": 'What a ledger survives: `"process"` a killed process, `"power"` also a power cut (slower).',
    "run.patience_s": (
        "Seconds. A user that was not heard for half as long is asked for a sign of life; one that stays silent for "
        "twice as long is excluded."
    ),
    "run.min_nodes": "After `enrol_timeout_s` the run begins if so many users have enrolled.",
    "run.min_live": (
        "The run is stopped, with exit code 3 and without a result, once fewer users are left: claims in advance "
        "count on them."
    ),
    "run.enrol_timeout_s": "Seconds to wait for users to enrol.",
    "run.expires": (
        "When a run that is not over ends for good: everybody stops with exit code 3 and run keys are deleted."
    ),
    "run.audit": "Whether the run ends with an audit.",
    "run.purpose": (
        "What the run is for. Owners are shown it before they join, bootstrap signs it with the spec, and reports show "
        "it."
    ),
    "transport.host": "Host of the broker. Without it, a local run starts a broker of its own.",
    "transport.port": "Port of the broker; by default 8883 with TLS and 1883 without.",
    "transport.user": "User name at the broker.",
    "transport.password_file": "File that holds the password.",
    "transport.ca": "Certificates of the authorities that may sign the broker's certificate; turns TLS on.",
    "transport.certificate": "Client certificate; goes together with `key`.",
    "transport.key": "Private key of the client certificate.",
    "graph.kind": "Kind of graph; `file` reads an edge list.",
    "graph.degree": "Number of neighbours of each user.",
    "graph.probability": "Probability of each edge; by default 2 ln(n)/n.",
    "graph.radius": (
        "Users at uniform points of the unit square are neighbours up to this distance; by default √(2 ln(n)/n)."
    ),
    "graph.rows": "Rows of the grid; rows times columns must be the number of users.",
    "graph.columns": "Columns of the grid.",
    "graph.path": (
        "Edge list: `.csv` or `.txt`, optionally `.gz`, with any labels. Loops are dropped and the "
        "largest component is used."
    ),
    "graph.weights": 'How far neighbours move towards each other; used by gossip only, by default `"metropolis"`.',
    "graph.changing": "Whether each round of gossip has a new graph.",
    "graph.public": "Whether everybody may know the graph; by default true for `complete`, `ring` and `file`.",
    "noise.mechanism": 'The mechanism; `"none"` protects nothing.',
    "noise.sigma": "Standard deviation of one draw, in data units (also for Laplace noise, whose scale is sigma/√2).",
    "noise.epsilon": "Epsilon of one contribution by itself, from which the noise follows.",
    "noise.delta": "Delta that goes with that epsilon.",
    "noise.closing": (
        "Whether the last holder adds a draw before the total leaves it. Without it some users see "
        "others' sums without noise."
    ),
    "noise.share": (
        "Whether every user adds a share of each draw instead of one user adding all of it ([CB20, Remark 1])."
    ),
    "noise.encoding": (
        "How a report encodes its category; by default as k-ary randomized response. Used by shuffling only."
    ),
    "noise.sampler": '`"exact"`: integer arithmetic; `"fast"`: rounded floating-point noise, of which claims say so.',
    "noise.pair_sigma": (
        "Standard deviation of the noise that two neighbours share, in data units: one adds it and the other subtracts "
        "it, so that it hides single values and cancels in sums."
    ),
    "data.kind": (
        "`uniform`, `normal`, `unit_mixture` and `categories` are synthetic; `csv`, `npy` and `parquet` (which "
        "needs the extra `tables`) are read from a file; "
        "`own` stands for data that a caller in Python hands in (`p2pdp guide python`)."
    ),
    "data.clip": "Bounds of every single number; what lies outside is moved to the nearer bound.",
    "data.path": "The file.",
    "data.columns": "Which columns are used; by default all but `target` and the one that rows are divided by.",
    "data.header": "Whether the first line names the columns; by default found out.",
    "data.separator": "What separates columns; by default a comma.",
    "data.target": "The column that is to be predicted.",
    "data.rule": "Makes two classes of a numeric target: 1 where the comparison holds, -1 elsewhere.",
    "data.target_range": "Public range of a numeric target; it is mapped to -1 and 1.",
    "data.standardize": (
        "Public ranges of the columns, which are mapped to -1 and 1; or privately made estimates of means "
        "and deviations, whose cost is added to every claim."
    ),
    "data.unit_norm": "Whether each row is scaled to length 1.",
    "data.split_by": "All rows with the same value in this column belong to one user.",
    "data.partition": (
        "How the rows of one table become those of users: `even`, the default, in their order; `by`, as `split_by` "
        "does, by `column`; `dirichlet`, each class of the target in shares that are drawn from a Dirichlet "
        "distribution, on the run's seed (0 without one). Across machines each owner has a file of its own, and "
        "nothing is divided."
    ),
    "data.alpha": "Parameter of that distribution: small ones leave most users with few classes.",
    "data.column": "The column that says whose a row is.",
    "task.kind": (
        'The task; `"torch"` is a torch module that is installed where users learn, `"own"` an objective given from '
        "Python. Installed packages may add others (`p2pdp guide learning`)."
    ),
    "task.model": (
        "A callable without arguments that returns a torch module, by the module that holds it. It gets rows of "
        "features."
    ),
    "task.loss": (
        "What compares outputs with targets; by default `cross_entropy`, of whole numbers from 0. `bce` takes logits. "
        "One of your own gets outputs and targets, as tensors."
    ),
    "task.start": "Seed of the model's first values, the same for every user; by default 0.",
    "data.public": (
        "A file of rows that are public, with the columns of the data: models are scored on it, also while they are "
        "learned, and nobody learns from it. A node's configuration may name its own."
    ),
    "task.categories": "Number of categories; values are whole numbers from 0.",
    "task.clip": "Bound of each example's gradient norm; a replaced user moves a step by twice as much.",
    "task.rate": "Rate of the first step; by default 1/smoothness.",
    "task.rounds": "Number of gradients each user takes.",
    "task.regularization": "Weight of the squared norm of the model, which is not noised since it depends on no data.",
    "task.batch": (
        "Examples a gradient is taken over, in turn; by default all of a user's. With a record as unit their "
        "expected number: each row enters with the same chance, drawn by its node."
    ),
    "task.test": "Share of each user's rows that is kept out of learning.",
    "task.radius": "Models are projected into the ball of this radius.",
    "task.schedule": "How the rate falls with the steps.",
    "task.averaging": "Which models a result averages: the last only, all alike, or later ones more.",
    "task.intercept": "Whether a model has a constant term.",
    "privacy.delta": "Delta at which epsilons are stated.",
    "privacy.unit": "Protects all that one user holds, or each single row: a `record`. Row counts are public.",
    "privacy.colluders": "Users who are assumed to pool what they see, in claims about a coalition.",
    "privacy.colluders_max": (
        "Number of users that may collude with the curator: noise for a target, and how many neighbours together can "
        "take off a user's own mask, follow from it, or from the number of `colluders` where that is larger."
    ),
    "privacy.budget": "Epsilon that the run may cost at most. Across machines it only lowers what a node allows.",
    "audit.key": (
        "The auditor's public key: 64 hexadecimal digits, or the file `auditor.pub`. Skeletons are sealed to it."
    ),
    "node.identity": "The file that `p2pdp keygen` made.",
    "node.token": "The file that bootstrap wrote, or the token itself.",
    "node.listen": "Where the node listens; not given where the token names a broker, required otherwise.",
    "node.address": "What other machines are told, where that differs from `listen`.",
    "accept.protocols": "Protocols that are accepted.",
    "accept.mechanisms": "Mechanisms that are accepted; by default any that adds noise.",
    "accept.sigma_min": (
        "Least standard deviation of any draw of noise for contributions, in data units. Noise on "
        "messages of gossip does not count; mechanisms without a standard deviation are refused."
    ),
    "accept.sampler": '`"exact"` refuses noise of the fast sampler.',
    "accept.clip": "The run's bounds have to lie within these.",
    "accept.hops": "Most hops of a walk.",
    "accept.laps": "Most laps of a ring.",
    "accept.tokens": "Most tokens of a walk.",
    "accept.rounds": "Most rounds of gossip or shuffling; with `gossip.sgd`, most gradients.",
    "accept.epsilon": "Most that randomized response, PrivUnit or Laplace noise may cost for one contribution.",
    "accept.min_live": (
        "Fewest users that have to be left to the end: a run that promises fewer (`[run] min_live`) is refused, and "
        "the node leaves one once it knows of fewer."
    ),
    "accept.epsilon_max": "Most that the run may cost, at the spec's delta, against `observer`.",
    "accept.unit": 'What `epsilon_max` is about: all rows of this node, or with `"record"` each row by itself.',
    "accept.observer": (
        'Against whom `epsilon_max` counts: `"node"` is another user, the curator and the public, '
        '`"coalition"` the colluders that the spec names (everybody if it names none), `"network"` an '
        "observer of all messages."
    ),
    "accept.delta": "Most that the spec's delta may be; 0.001 where only `epsilon_max` is given.",
    "accept.model": (
        "Digest of the code of a model that the run may load here. Without it such a run is refused, and the digest of "
        "what is installed is shown."
    ),
    "accept.peers": "Identities that neighbours must have, in hexadecimal, or a file with one a line.",
    "budget.epsilon": "Epsilon that all runs together may cost.",
    "budget.delta": "Delta that goes with it.",
    "budget.observer": "Against whom, as in `[accept]`.",
    "budget.unit": "What the budget is of. Runs of the other unit are refused; a record says nothing of a user.",
    "budget.ledger": "The file that remembers what was spent.",
}
