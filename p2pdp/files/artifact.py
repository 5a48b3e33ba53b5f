"""Artifacts: what `p2pdp artifact` packs of a run or a sweep, as a folder or as a ZIP file.

    artifact.json   what it is made of, with versions, seeds and digests of what a repetition must give
    README.md       the appendix for evaluators
    REPEAT.sh       one command that checks and repeats it
    SHA256SUMS      digests of all other files, for `sha256sum -c`; the digest of this file names the artifact
    expected/       what a repetition shows
    spec.toml, or sweep.toml and base.toml; inputs/ (public files that these name); run.p2pdp (skeletons)

Guarantee: equal contents make equal bytes; names are sorted, and times and modes fixed. `read_artifact` returns nothing
that differs from its digests, opens nothing outside of the folder, and unpacks no more than a limit. What may stand in
an artifact is decided in `runs/artifact.py`.
"""

from __future__ import annotations

import hashlib
import io
import re
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from p2pdp.core.errors import UsageError, VerificationFailed
from p2pdp.files.folder import RESULT_FILE, ROSTER_FILE, check_new_file, disk_error, make_folder, write_bytes
from p2pdp.files.reading import UNPACKED_BYTES_MAX, inside, read_plain

FACTS_FILE: Final = "artifact.json"
SUMS_FILE: Final = "SHA256SUMS"
REPEAT_FILE: Final = "REPEAT.sh"
_PACKED: Final = ".zip"
_FILES_MAX: Final = 100
_METHODS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # others have errors of their own
_NAME: Final = re.compile(r"(?:[a-z]+/)?[A-Za-z0-9][A-Za-z0-9_.-]*")
_LINE: Final = re.compile(r"^([0-9a-f]{64})  (\S+)$", re.MULTILINE)
_FIRST_MOMENT: Final = (1980, 1, 1, 0, 0, 0)  # the first that a ZIP file can name

Files = dict[str, bytes]


def is_sweep(place: Path) -> bool:
    return (place / "rows").is_dir()


def has_ledgers(place: Path) -> bool:
    """Return whether the folder is that of a run that left ledgers, finished or not."""
    return (place / ROSTER_FILE).is_file()


def is_finished_run(place: Path) -> bool:
    return (place / RESULT_FILE).is_file()


def digest_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def digests_in(folder: Path) -> dict[str, str]:
    """Return the digest of each file below a folder, by its path there."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): digest_of(read_plain(inside(folder, path))) for path in paths}


def check_out(out: Path) -> None:
    """Refuse before any work what `write_artifact` could not write."""
    if out.suffix == _PACKED:
        check_new_file(out, "--out")
        if out.exists():
            raise UsageError(f"--out {out}: exists already; name another")
    elif out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"--out {out}: is no empty folder; name another, or a file that ends in {_PACKED}")


def write_artifact(out: Path, files: Mapping[str, bytes], *, secret: bool) -> str:
    """Write an artifact with the digests of its files, and return the digest that names it.

    It is a ZIP file if the name says so. A `secret` one is for its owner only.
    """
    whole = {**files, SUMS_FILE: _sums(files)}
    if out.suffix == _PACKED:
        check_out(out)
        write_bytes(out, _zipped(whole), secret=secret)
    else:
        make_folder(out)
        unpack(whole, out, secret=secret)
    return digest_of(whole[SUMS_FILE])


def _sums(files: Mapping[str, bytes]) -> bytes:
    return "".join(f"{digest_of(data)}  {name}\n" for name, data in sorted(files.items())).encode()


def unpack(files: Mapping[str, bytes], folder: Path, *, secret: bool) -> None:
    """Write these files below a folder that is there."""
    for name, data in sorted(files.items()):
        path = folder / name
        try:
            path.parent.mkdir(exist_ok=True)
            write_bytes(path, data, secret=secret)
            if name == REPEAT_FILE:
                path.chmod(0o700 if secret else 0o755)
        except OSError as error:
            raise disk_error(path, error) from None


def _zipped(files: Mapping[str, bytes]) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for name, data in sorted(files.items()):
            entry = zipfile.ZipInfo(name, _FIRST_MOMENT)
            entry.create_system = 3  # whose modes the next line means
            entry.external_attr = (0o755 if name == REPEAT_FILE else 0o644) << 16
            archive.writestr(entry, data, zipfile.ZIP_DEFLATED, 6)
    return target.getvalue()


def read_artifact(place: Path) -> tuple[Files, str]:
    """Return the files of an artifact, each as its digest says, and the digest that names it."""
    files = _from_folder(place) if place.is_dir() else _from_zip(place)
    sums = files.pop(SUMS_FILE, None)
    if sums is None or FACTS_FILE not in files:
        raise VerificationFailed(f"{place}: lacks {SUMS_FILE if sums is None else FACTS_FILE}")
    told = {match[2]: match[1] for match in _LINE.finditer(sums.decode("utf-8", "replace"))}
    for name in sorted(told.keys() | files.keys()):
        if name not in files:
            raise VerificationFailed(f"{place}: {name} is missing")
        if told.get(name) != digest_of(files[name]):
            raise VerificationFailed(f"{place}: {name} was altered or added; {SUMS_FILE} says otherwise")
    if sums != _sums(files):
        raise VerificationFailed(f"{place}: {SUMS_FILE} is damaged")
    return files, digest_of(sums)


def _from_folder(place: Path) -> Files:
    files: Files = {}
    for path in sorted(place.rglob("*")):
        name = path.relative_to(place).as_posix()
        if path.is_file() or path.is_symlink():
            _check_name(place, name, len(files))
            files[name] = read_plain(inside(place, path))
    return files


def _from_zip(place: Path) -> Files:
    files: Files = {}
    left = UNPACKED_BYTES_MAX
    try:
        with zipfile.ZipFile(io.BytesIO(read_plain(place))) as archive:
            for entry in archive.infolist():
                _check_name(place, entry.filename, len(files))
                if entry.filename in files:
                    raise VerificationFailed(f"{place}: holds {entry.filename} twice")
                if entry.compress_type not in _METHODS:
                    raise VerificationFailed(f"{place}: {entry.filename} is packed in a way that no artifact is")
                with archive.open(entry) as packed:
                    files[entry.filename] = packed.read(left + 1)
                left -= len(files[entry.filename])
                if left < 0:
                    raise VerificationFailed(f"{place}: unpacks to more than {UNPACKED_BYTES_MAX >> 20} MiB")
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        raise VerificationFailed(f"{place}: is a damaged ZIP file ({type(error).__name__})") from None
    return files


def _check_name(place: Path, name: str, count: int) -> None:
    if _NAME.fullmatch(name) is None or count >= _FILES_MAX:
        raise VerificationFailed(f"{place}: holds a file that no artifact has")
