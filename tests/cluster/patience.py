"""Wait for something to happen, however slow the machine is.

A limit here is no promise about speed (docs/measured.md has those): it is the time after which a test
may say that the event will never happen.
"""

import time

#: No wait gives up sooner, whatever it says.
PATIENCE_S = 120.0


def patient(seconds=0):
    return max(seconds, PATIENCE_S)


def _absent(error):
    return isinstance(error, LookupError) or getattr(error, "status", None) == 404


def until(test, timeout=0, message="", interval=0.05):
    """The first true value of test(); TimeoutError otherwise.  What is not there, or is gone when it is looked
    at a second time, is not true yet."""
    begun, limit = time.monotonic(), patient(timeout)
    while True:
        last = ""
        try:
            if value := test():
                return value
        except Exception as e:
            if not _absent(e):
                raise
            last = f": {e!r}"
        if time.monotonic() - begun > limit:
            raise TimeoutError(f"{message or test} not within {limit:.0f} s{last}")
        time.sleep(interval)
