"""The exceptions of the package: whose mistake it was decides the class, and the class decides the exit code.

The command line prints the text of these errors as it stands, so each is one sentence
that names the place and, where one is known, the remedy. A peer's mistake is never an
exception: it is a `core.step.Fault`.
"""


class P2pdpError(Exception):
    """The root of all errors that p2pdp raises on purpose."""

    exit_code = 1


class UsageError(P2pdpError):
    """A spec, an argument or an input file is wrong; the caller can mend it."""

    exit_code = 2


class RunFailed(P2pdpError):
    """The run could not go on; its folder can be resumed when the cause is gone."""

    exit_code = 3


class VerificationFailed(P2pdpError):
    """Ledgers are altered, cut, foreign, missing or were never closed."""

    exit_code = 4


class Refused(P2pdpError):
    """A budget does not allow it, or the assumptions of no claim hold."""

    exit_code = 5


class NotReady(P2pdpError):
    """Something outside p2pdp is missing: a broker, a port, space on a disk."""

    exit_code = 6
