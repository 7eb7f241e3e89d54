"""Memory: what the machine has, or its container if that has less."""

from __future__ import annotations

from pathlib import Path

import pytest

from anyorder.errors import UserError
from anyorder.support import memory


def group(folder: Path, name: str, limit: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(limit + "\n")


def test_the_limits_of_control_groups_are_found(tmp_path: Path) -> None:
    groups, root = tmp_path / "cgroup", tmp_path / "root"
    groups.write_text("5:cpu,memory:/outside/of:us\n4:cpuset:/\n0::/group/mine\n")
    group(root / "memory", "memory.limit_in_bytes", "9223372036854771712")
    group(root / "memory" / "outside" / "of:us", "memory.limit_in_bytes", "3000")
    group(root / "group", "memory.max", "2000")
    group(root / "group" / "mine", "memory.max", "max")
    assert sorted(memory._group_limits(groups, root)) == [2000, 3000, 9223372036854771712]
    groups.write_text("0::/unknown/here\n")
    assert list(memory._group_limits(groups, root)) == []
    assert list(memory._group_limits(tmp_path / "none", root)) == []


def test_a_container_with_less_than_the_machine_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_group_limits", lambda: iter([10**6, 10**9]))
    assert memory.machine_memory() == 10**6
    with pytest.raises(UserError, match="draws=1000"):
        memory.check_room("draws", 1000, 1000)
