"""Whole files, and what a full disk says. The errors here are the kernel's own."""

import errno
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer
from tokenizers.models import WordLevel

from duologue.disk import DiskFullError, explained_full_disk, explains_full_disk, no_room, whole_file, write_whole
from duologue.errors import DuologueError

BIG = {"a": torch.zeros(300_000)}


def by_text(path: Path) -> None:
    path.write_text("x" * 1_000_000)


def by_safetensors(path: Path) -> None:
    save_file(BIG, path)


def by_tokenizers(path: Path) -> None:
    Tokenizer(WordLevel({f"word {i}": i for i in range(10_000)}, unk_token="word 0")).save(str(path))


def by_torch(path: Path) -> None:
    torch.save(BIG, str(path))


def by_torch_little(path: Path) -> None:
    torch.save({"a": 1}, str(path))


def by_matplotlib(path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure()
    figure.subplots().imshow(torch.rand(200, 200).numpy())
    figure.savefig(path, format="png")


WRITERS = [by_text, by_safetensors, by_tokenizers, by_torch, by_torch_little, by_matplotlib]


@pytest.mark.parametrize("write", WRITERS)
def test_every_writer_is_understood(small_disk: Any, write: Any) -> None:
    room = 0 if small_disk.own else 600  # a file system has whole pages only
    said = r"disk.* could not be written: .* MB are free on its disk\. Free space there, .*\. Then call again\.$"
    explained = explained_full_disk(small_disk.folder / "new" / "place", "call again.")
    with small_disk.full(room), pytest.raises(DiskFullError, match=said) as caught, explained:
        write(small_disk.folder / "file")
    assert isinstance(caught.value, DuologueError)
    assert caught.value.__cause__ is not None
    write(small_disk.folder / "file")
    assert not small_disk.own or "of 8.4 MB are free" in str(caught.value)


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOENT, "No such file or directory"),
        OSError(errno.EIO, "Input/output error"),
        PermissionError(errno.EACCES, "Permission denied"),
        ConnectionResetError("peer"),
        OSError("without a number"),
        RuntimeError("PytorchStreamReader failed reading zip archive"),
        RuntimeError("mat1 and mat2 shapes cannot be multiplied"),
        ValueError("No space (os error 28)"),
        Exception("No such file or directory (os error 2)"),
        DuologueError("No space left on device. Not really."),
    ],
)
def test_other_errors_pass_as_they_are(error: Exception) -> None:
    assert no_room(error) is None
    with pytest.raises(type(error)) as caught, explained_full_disk(".", "never said."):
        raise error
    assert caught.value is error


def test_other_errors_of_safetensors_pass() -> None:
    with pytest.raises(Exception, match="No such file") as caught, explained_full_disk(".", "never said."):
        save_file({"a": torch.zeros(1)}, "/nowhere/at/all")
    assert not isinstance(caught.value, DiskFullError)


def test_a_function_of_a_configuration_can_be_wrapped(tmp_path: Path) -> None:
    @explains_full_disk("try once more.")
    def work(config: Any, number: int, *, name: str = "n") -> str:
        if number == 0:
            raise OSError(errno.EDQUOT, "Disk quota exceeded")
        return f"{name}{number}"

    config = SimpleNamespace(output=str(tmp_path / "out"))
    assert work(config, 3, name="m") == "m3"
    with pytest.raises(DiskFullError, match=r"out' could not be written: Disk quota exceeded\..* Then try once more"):
        work(config, number=0)


def test_what_happens_then_is_asked_when_it_has_happened(tmp_path: Path) -> None:
    said = "not yet."

    def fill() -> None:
        nonlocal said
        said = "now."
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(DiskFullError, match="Then now"), explained_full_disk(tmp_path, lambda: said):
        fill()


def test_a_file_is_whole_or_as_it_was(small_disk: Any) -> None:
    path = small_disk.folder / "note.json"
    write_whole(path, "first")
    with small_disk.full(0), pytest.raises(OSError, match=r"No space|too large"):
        write_whole(path, "second" * 10_000)
    assert [p.name for p in small_disk.folder.iterdir()] == ["note.json"]
    assert path.read_text() == "first"
    write_whole(path, "third\u2028ü")
    assert path.read_text(encoding="utf-8") == "third\u2028ü"


def test_a_file_whose_writer_fails_is_as_it_was(tmp_path: Path) -> None:
    write_whole(tmp_path / "a", "first")

    def half() -> None:
        with whole_file(tmp_path / "a") as file:
            file.write("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        half()
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("a", "first")]
