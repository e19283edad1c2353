from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def shared() -> Path:
    """Real data beside the repository."""
    folder = Path(__file__).resolve().parents[2].parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"no real data at {folder}")
    return folder
