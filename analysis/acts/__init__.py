"""What user turns do, told by fixed rules: ``label_acts``."""

from duologue.analysis.acts.labels import label_acts, lets_pass

__all__ = ["label_acts", "lets_pass"]
