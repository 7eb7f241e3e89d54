"""What a person wants to know of a table first: what can be predicted from what, what is odd, and what to ask next.

Every number here is about rows that those who are judged have never learned from.
"""

from __future__ import annotations

from anyorder.tasks.summary.making import summarise
from anyorder.tasks.summary.page import Summary

__all__ = ["Summary", "summarise"]
