"""Scale on paper: what a training run needs, each number with its formula."""
