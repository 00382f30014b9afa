"""TAP for the test programs in Python, as tests/tap.h is for those in C."""
import sys

_count = _failed = 0


def ok(good, what, detail=""):
    """One check: `what` should hold; `detail` is printed if it does not."""
    global _count, _failed
    _count += 1
    _failed += not good
    print(f"{'' if good else 'not '}ok {_count} - {what}", flush=True)
    if not good:
        print("\n".join("# " + line[:300] for line in str(detail).splitlines()[:30]), flush=True)


def finish():
    """Print the plan and end the program: with 1 if a check failed."""
    print(f"1..{_count}")
    sys.exit(1 if _failed else 0)
