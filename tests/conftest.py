"""What holds for all tests, and a disk that is full when a test wants it."""

import os
import resource
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("no-clock", deadline=None)  # a busy machine is no failure
settings.load_profile("no-clock")


class SmallDisk:
    """A folder in which the kernel refuses writes: on a file system of its own, or by a limit on file sizes."""

    def __init__(self, folder: Path, own: bool) -> None:
        self.folder, self.own = folder, own

    @contextmanager
    def full(self, room: int) -> Iterator[None]:
        """Leave so many bytes: for all files together on a file system of its own, else for each file."""
        if not self.own:
            before, most = resource.getrlimit(resource.RLIMIT_FSIZE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (room, most))
            try:
                yield
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, (before, most))
            return
        filler = self.folder / "filler"
        free = os.statvfs(self.folder).f_bavail * os.statvfs(self.folder).f_frsize
        with filler.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, max(1, free - room))
        try:
            yield
        finally:
            filler.unlink()


@pytest.fixture(params=["file system", "limit on files"])
def small_disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SmallDisk]:
    """A disk of 8 MB; a system that lets nobody mount one has only the limit."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if request.param == "limit on files":
        yield SmallDisk(folder, own=False)
        return
    if not shutil.which("mount"):
        pytest.skip("There is no mount here, so no file system of its own.")
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(folder)], capture_output=True, text=True, check=False
    )
    if made.returncode:
        pytest.skip(f"No file system of its own: {made.stderr.strip()}")
    yield SmallDisk(folder, own=True)
    subprocess.run(["umount", "-l", str(folder)], check=True)
