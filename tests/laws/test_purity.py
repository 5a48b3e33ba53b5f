"""What only some rooms may touch: clocks, sockets, threads, files, entropy, the terminal; and what none may."""

from __future__ import annotations

import ast
from dataclasses import dataclass

import pytest

from tests.support.sources import Source, sources, within

EDGES = ("transports", "node", "cluster", "bench", "web", "cli", "api")
DISK = (
    "files",
    "node",
    "cluster",
    "bench",
    *(f"transports/mqtt/{name}.py" for name in ("access", "amqtt_broker", "broker")),
)
ENTROPY = ("mechanisms/sampler.py", "crypto", "node")
TERMINAL = ("cli",)
NOWHERE = ()
DECLARED = ("core", "protocols", "services", "peer", "assembly", "sim", "node")


@dataclass(frozen=True)
class Rule:
    """The dotted names, and everything below them, that only some rooms or files may mention."""

    names: str
    places: tuple[str, ...]
    why: str


RULES = (
    Rule(
        "asyncio concurrent.futures threading _thread multiprocessing subprocess signal sched "
        "socket socketserver select selectors ssl http urllib.request xmlrpc ftplib smtplib "
        "aiohttp paho uvloop requests time os.environ os.getenv",
        EDGES,
        "a pure room has no loop, thread, process, socket, clock or environment",
    ),
    Rule(
        "builtins.open io.open codecs.open tempfile shutil gzip bz2 lzma tarfile zipfile mmap fcntl glob fileinput "
        "sqlite3 dbm numpy.load numpy.save numpy.savez numpy.savez_compressed numpy.loadtxt numpy.savetxt "
        "numpy.genfromtxt numpy.fromfile numpy.memmap",
        DISK,
        "only these rooms touch files",
    ),
    Rule("sqlalchemy psycopg", ("index",), "one room talks to databases"),
    Rule(
        "os.urandom os.getrandom secrets uuid nacl.utils nacl.bindings.randombytes nacl.bindings.crypto_box_keypair "
        "nacl.bindings.crypto_sign_keypair nacl.bindings.crypto_box_seal nacl.signing.SigningKey.generate "
        "nacl.public.PrivateKey.generate nacl.public.SealedBox",
        ENTROPY,
        "the operating system's entropy enters here only",
    ),
    Rule(
        "builtins.print builtins.input sys.stdout sys.stdin",
        TERMINAL,
        "only the command line talks to people",
    ),
    Rule(
        "sys.stderr",
        (*TERMINAL, "cluster"),
        "only the command line and a child process that failed complain to people",
    ),
    Rule(
        "random pickle cPickle _pickle dill cloudpickle joblib marshal shelve builtins.eval builtins.exec "
        "builtins.compile os.system os.popen subprocess.getoutput subprocess.getstatusoutput",
        NOWHERE,
        "nobody may: it runs what it reads, or it is not the randomness that was asked for",
    ),
)
# Of `os`, rooms without files may use these; what else it holds works on files or processes.
OS_FREE = frozenset("os.getpid os.cpu_count os.fspath os.PathLike os.sep os.linesep os.register_at_fork".split())
OS_ELSEWHERE = frozenset("os.environ os.getenv os.urandom os.getrandom os.system os.popen".split())
# Only a path has these; names that other things bear too (open, replace, rename) are left to the rules above.
PATH_METHODS = frozenset(
    "read_text write_text read_bytes write_bytes mkdir rmdir touch unlink iterdir rglob symlink_to hardlink_to chmod "
    "exists is_file is_dir is_symlink lstat tofile".split()
)
GENERATORS = frozenset("default_rng SeedSequence Philox PCG64 PCG64DXSM SFC64 MT19937".split())
CLOCKS = frozenset(["now", "utcnow", "today"])


def placed(source: Source, places: tuple[str, ...]) -> bool:
    """Whether a file is one of these places: a room by its name, a file by its path below p2pdp/."""
    return source.room in places or source.path.removeprefix("p2pdp/") in places


def out_of_place(source: Source) -> list[str]:
    """Each mention that a rule forbids where it stands."""
    said = {
        source.say(node, f"{name}: {rule.why}")
        for rule in RULES
        if not placed(source, rule.places)
        for node, name in source.mentions
        if any(within(name, forbidden) for forbidden in rule.names.split())
    }
    if not placed(source, DISK):
        said |= {
            source.say(node, f"{name}: only {', '.join(DISK)} touch files")
            for node, name in source.mentions
            if name.startswith("os.") and not any(within(name, free) for free in OS_FREE | OS_ELSEWHERE)
        }
    return sorted(said)


def touched_paths(source: Source) -> list[str]:
    if placed(source, DISK):
        return []
    with_paths = any(within(name, "pathlib") for _, name in source.mentions)
    methods = PATH_METHODS | {"open", "stat", "glob", "rename"} if with_paths else PATH_METHODS
    return [
        source.say(node, f".{node.func.attr}(): only {', '.join(DISK)} touch files")
        for node in source.nodes
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in methods
        if not within(source.origin(node.func), "p2pdp")
    ]


def read_clocks(source: Source) -> list[str]:
    """`datetime` may describe a date anywhere, but only an edge may ask it what time it is."""
    if placed(source, EDGES) or not any(within(name, "datetime") for _, name in source.mentions):
        return []
    return [
        source.say(node, f".{node.attr} reads the clock")
        for node in source.nodes
        if isinstance(node, ast.Attribute) and node.attr in CLOCKS
    ]


def unseeded(source: Source) -> list[str]:
    """Generators without a seed, and functions that draw from a hidden global one."""
    said = []
    for node, name in source.mentions:
        last = name.rsplit(".", 1)[-1]
        if within(name, "numpy.random") and last.islower() and last not in {"random", "default_rng", "bit_generator"}:
            said.append(source.say(node, f"{name} draws from a global generator"))
    for call in source.nodes:
        if not isinstance(call, ast.Call):
            continue
        name = source.origin(call.func)
        last = name.rsplit(".", 1)[-1]
        seed = [*call.args, *(word.value for word in call.keywords if word.arg in {"seed", "key", "entropy", None})]
        empty = not seed or (isinstance(seed[0], ast.Constant) and seed[0].value is None)
        if within(name, "numpy.random") and last in GENERATORS and empty and not placed(source, ENTROPY):
            said.append(source.say(call, f"{name} without a seed takes the operating system's entropy"))
        drawn = within(name, "networkx") and any(word in last for word in ("random", "gnp", "erdos", "geometric"))
        if drawn and "seed" not in {word.arg for word in call.keywords}:
            said.append(source.say(call, f"{name} needs seed=..., or it draws from a global generator"))
    return said


def unsafe_calls(source: Source) -> list[str]:
    """`shell=` and `allow_pickle=`, unless they are plainly False."""
    return [
        source.say(node, f"{word.arg}= must be False")
        for node in source.nodes
        if isinstance(node, ast.Call)
        for word in node.keywords
        if word.arg in {"shell", "allow_pickle"}
        and not (isinstance(word.value, ast.Constant) and word.value.value is False)
    ]


def coroutines(source: Source) -> list[str]:
    if placed(source, EDGES):
        return []
    return [source.say(node, "async def") for node in source.nodes if isinstance(node, ast.AsyncFunctionDef)]


def probes(source: Source) -> list[str]:
    """What a machine can do is declared by its protocol and installed by assembly, never probed."""
    if not source.path.startswith(tuple(f"p2pdp/{room}/" for room in DECLARED)):
        return []
    said = [
        source.say(node, "hasattr: a capability is declared, not probed")
        for node in source.nodes
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "hasattr"
    ]
    said += [
        source.say(node, "type(...) is: a subclass declares what it can do")
        for node in source.nodes
        if isinstance(node, ast.Compare) and ast.unparse(node.left) == "type(self)"
    ]
    return said


CHECKERS = (out_of_place, touched_paths, read_clocks, unseeded, unsafe_calls, coroutines, probes)


def violations(source: Source) -> list[str]:
    return [text for checker in CHECKERS for text in checker(source)]


def test_every_room_is_as_pure_as_it_promises() -> None:
    assert [text for source in sources("p2pdp") for text in violations(source)] == []


BAD = {
    "import asyncio": "sim",
    "import threading as t": "peer",
    "from time import monotonic": "sim",
    "import time": "core",
    "def f():\n    import socket": "protocols",
    "import urllib.request": "files",
    "from concurrent.futures import ProcessPoolExecutor": "audit",
    "import datetime\nx = datetime.datetime.now()": "files",
    "from datetime import date\nx = date.today()": "report",
    "import os\nx = os.environ['A']": "core",
    "async def f(): pass": "peer",
    "class A:\n    async def f(self): pass": "services",
    "x = open('a')": "cli",
    "f = open": "api",
    "import io\nx = io.open('a')": "report",
    "import gzip": "topology",
    "from tempfile import mkdtemp": "api",
    "import os\nos.remove('a')": "ledger",
    "from os import path": "ledger",
    "from os.path import exists": "ledger",
    "def f(path): return path.read_bytes()": "audit",
    "from pathlib import Path\nx = Path('a').open()": "cli",
    "from pathlib import Path\nx = Path('a').mkdir()": "api",
    "import numpy as np\nx = np.load('a.npy')": "replay",
    "import os\nx = os.urandom(3)": "peer",
    "from os import urandom as bytes_of": "sim",
    "import secrets": "protocols",
    "import secrets as s": "mechanisms",
    "import nacl.utils\nx = nacl.utils.random(3)": "peer",
    "from nacl.utils import random": "wire",
    "import numpy as np\nx = np.random.default_rng()": "sim",
    "from numpy.random import default_rng\nx = default_rng(None)": "topology",
    "import numpy as np\nx = np.random.Generator(np.random.Philox())": "sim",
    "import numpy as np\nx = np.random.default_rng(seed=None)": "sim",
    "import numpy as np\nx = np.random.normal(3)": "sim",
    "from numpy.random import rand": "mechanisms",
    "def f():\n    import networkx as nx\n    return nx.random_regular_graph(3, 4)": "topology",
    "import random": "node",
    "from random import choice": "sim",
    "import pickle": "files",
    "from marshal import loads": "node",
    "import shelve": "node",
    "x = eval('1')": "node",
    "exec('a = 1')": "cli",
    "import os\nos.system('ls')": "node",
    "def f(run): run('ls', shell=True)": "cluster",
    "def f(run, a): run('ls', shell=a)": "cluster",
    "import numpy as np\nx = np.load('a', allow_pickle=True)": "files",
    "print('a')": "node",
    "say = print": "api",
    "import sys\nsys.stderr.write('a')": "report",
    "x = hasattr(machine, 'hop')": "peer",
    "class A:\n    def f(self): return type(self) is A": "protocols",
}


@pytest.mark.parametrize("text", BAD)
def test_what_is_out_of_place_is_seen(text: str) -> None:
    assert violations(Source(f"p2pdp/{BAD[text]}/x.py", text)) != []


GOOD = {
    "import asyncio\nimport time\nasync def f(): await asyncio.sleep(time.monotonic())": "transports/x.py",
    "from pathlib import Path\nx = Path('a').read_bytes()\ny = open('a')\nimport os\nos.fsync(3)": "files/x.py",
    "import secrets\nimport os\nimport numpy as np\nx = np.random.default_rng(), os.getpid()": "mechanisms/sampler.py",
    "import os\nx = os.urandom(3)": "crypto/x.py",
    "import numpy as np\nx = np.random.Generator(np.random.Philox(key=3))\ny = np.random.default_rng(3)": "sim/x.py",
    "def f(channel, body): return channel.open(body), 'a'.replace('a', 'b')": "peer/x.py",
    "from datetime import datetime\nx = datetime.fromisoformat('2024-01-01')": "files/x.py",
    "from pathlib import Path\ndef f(p: Path) -> Path: return p / 'a'": "api.py",
    "def f():\n    import networkx as nx\n    return nx.gnp_random_graph(3, 0.5, seed=4)": "topology/x.py",
    "print('a')": "cli/x.py",
    "import re\nx = re.compile('a')\nimport urllib.parse": "crypto/x.py",
    "class A:\n    def open(self): ...\n    def wake(self, now_s): return now_s": "crypto/x.py",
}


@pytest.mark.parametrize("text", GOOD)
def test_what_is_in_place_is_not_accused(text: str) -> None:
    assert violations(Source(f"p2pdp/{GOOD[text]}", text)) == []
