"""``python -m anyorder`` is the command line."""

from __future__ import annotations

from anyorder.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
