"""Rows of local data files. They live in ``duologue.simulators.rows``, because logged dialogues are read so too."""

from duologue.simulators.rows import Row, existing, read_rows

__all__ = ["Row", "existing", "read_rows"]
