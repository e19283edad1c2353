"""What holds for all tests."""

from hypothesis import settings

settings.register_profile("no-clock", deadline=None)  # a busy machine is no failure
settings.load_profile("no-clock")
