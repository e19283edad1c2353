"""Published dialogues, imported as logs: one small adapter each."""

from duologue.simulators.logs.importers.sources import FILE_SOURCES, HUB_SOURCES, Imported, import_logs, imported

__all__ = ["FILE_SOURCES", "HUB_SOURCES", "Imported", "import_logs", "imported"]
