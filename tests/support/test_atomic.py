"""Files are written whole or not at all, private where the target is, and killed writers leave nothing for long."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from anyorder.errors import UserError
from anyorder.support import atomic
from anyorder.support.atomic import WriteError, atomic_path, check_place, check_room_in

from disks import fill_up, mounted, no_file_above

pytestmark = pytest.mark.skipif(os.name != "posix", reason="permissions and locks of Unix")

# Another process begins to write, says so, and waits: to be told to go on, or to be killed.
WRITER = """
import sys
from anyorder.support.atomic import atomic_path
with atomic_path(sys.argv[1]) as beside:
    beside.write_text("theirs")
    print("begun", flush=True)
    sys.stdin.readline()
"""


def begun(target: Path) -> subprocess.Popen[str]:
    child = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(target)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "begun\n"
    return child


def parts(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name.endswith(".part"))


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def write(target: Path, text: str) -> None:
    with atomic_path(target) as beside:
        beside.write_text(text)


def test_the_part_of_a_killed_writer_goes_with_the_next_write_and_one_that_is_written_stays(tmp_path: Path) -> None:
    target, other = tmp_path / "m.anyorder", tmp_path / "m.anyorder.b"
    killed, elsewhere, living = begun(target), begun(other), begun(target)
    for child in (killed, elsewhere):
        child.send_signal(signal.SIGKILL)
        child.communicate()
    assert len(parts(tmp_path)) == 3
    write(target, "ours")
    left = parts(tmp_path)
    assert len(left) == 2  # of the living writer, and of the dead one of another target
    living.communicate("go on\n")
    assert living.returncode == 0
    assert target.read_text() == "theirs"
    assert [name for name in left if name.startswith(".m.anyorder.b.")] == parts(tmp_path)
    write(other, "ours")
    assert parts(tmp_path) == []


def test_a_part_that_was_taken_for_a_dead_one_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the making of a part and its lock, another writer may remove it."""
    lock, taken = atomic._lock, []

    def late(handle: int) -> bool | None:
        if not taken:
            taken.extend(path.unlink() or path for path in tmp_path.glob(".*.part"))
        return lock(handle)

    monkeypatch.setattr(atomic, "_lock", late)
    write(tmp_path / "a", "new")
    assert len(taken) == 1 and (tmp_path / "a").read_text() == "new"


def test_what_only_looks_like_a_part_is_left(tmp_path: Path) -> None:
    names = [".a.part", ".a.0123456789.part", ".a.0123456789AB.part", "a.0123456789ab.part", ".ab.0123456789ab.part"]
    for name in names:
        (tmp_path / name).write_text("mine")
    os.mkfifo(tmp_path / ".a.ba9876543210.part.pipe")
    (tmp_path / ".a.0123456789ab.part").write_text("of a killed run")
    write(tmp_path / "a", "new")
    assert {path.name for path in tmp_path.iterdir()} == {*names, ".a.ba9876543210.part.pipe", "a"}


def test_a_private_file_is_private_while_it_is_written(tmp_path: Path) -> None:
    target = tmp_path / "secret"
    target.touch(0o600)
    before = os.umask(0)
    try:
        with atomic_path(target) as beside:
            assert mode(beside) == 0o600
            beside.write_text("new")
    finally:
        os.umask(before)
    assert mode(target) == 0o600


@pytest.mark.parametrize(("found", "meanwhile"), [(0o664, 0o664), (0o444, 0o644), (0o040, 0o640)])
def test_a_file_keeps_its_permissions(tmp_path: Path, found: int, meanwhile: int) -> None:
    target = tmp_path / "file"
    target.touch()
    target.chmod(found)
    before = os.umask(0o077)
    try:
        with atomic_path(target) as beside:
            assert mode(beside) == meanwhile  # its owner can write it until it is whole
            beside.write_text("new")
    finally:
        os.umask(before)
    assert mode(target) == found


@pytest.mark.parametrize(("umask", "expected"), [(0o022, 0o644), (0o077, 0o600)])
def test_a_new_file_obeys_the_umask(tmp_path: Path, umask: int, expected: int) -> None:
    before = os.umask(umask)
    try:
        with atomic_path(tmp_path / "new") as beside:
            assert mode(beside) == expected
            beside.write_text("new")
    finally:
        os.umask(before)
    assert mode(tmp_path / "new") == expected


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root may give files away")
def test_a_file_keeps_its_owner_and_group(tmp_path: Path) -> None:
    target = tmp_path / "file"
    target.write_text("old")
    os.chown(target, 12345, 23456)
    write(target, "new")
    assert (target.stat().st_uid, target.stat().st_gid) == (12345, 23456)


def test_a_name_as_long_as_names_can_be(tmp_path: Path) -> None:
    for name in ("x" * 255, "ü" * 127, "文" * 85):
        write(tmp_path / name, "new")
        assert (tmp_path / name).read_text() == "new"
    assert parts(tmp_path) == []


def test_a_disk_that_is_full_is_named_and_the_old_file_stays(tmp_path: Path) -> None:
    target = tmp_path / "file"
    target.write_text("old")
    with no_file_above(1000), pytest.raises(WriteError, match=r"cannot write '.*file': File too large"):
        write(target, "new" * 1000)
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["file"]


def test_errors_that_are_not_of_the_disk_stay_what_they_are(tmp_path: Path) -> None:
    def download() -> None:
        with atomic_path(tmp_path / "file"):
            raise ConnectionResetError(104, "reset by peer")

    with pytest.raises(ConnectionResetError):
        download()
    assert os.listdir(tmp_path) == []


def test_a_place_is_tried_by_writing(tmp_path: Path) -> None:
    check_place(tmp_path / "new")
    (tmp_path / "old").write_text("old")
    check_place(tmp_path / "old")
    assert os.listdir(tmp_path) == ["old"] and (tmp_path / "old").read_text() == "old"
    check_place(os.devnull)
    assert not Path(os.devnull).is_file()
    with pytest.raises(UserError, match="it is a folder"):
        check_place(tmp_path)
    with pytest.raises(UserError, match="there is no folder"):
        check_place(tmp_path / "nowhere" / "new")
    with no_file_above(0), pytest.raises(WriteError, match="cannot write"):
        check_place(tmp_path / "new")
    assert os.listdir(tmp_path) == ["old"]


def test_a_disk_that_may_only_be_read_is_found_before_work(tmp_path: Path) -> None:
    with mounted(tmp_path / "disk", "ro") as disk, pytest.raises(WriteError, match="Read-only file system"):
        check_place(disk / "new")


def test_a_full_disk_is_found_before_work(tmp_path: Path) -> None:
    with mounted(tmp_path / "disk", "size=64k") as disk:
        fill_up(disk)
        with pytest.raises(WriteError, match="No space left on device"):
            check_place(disk / "new")
        assert os.listdir(disk) == ["filler"]


def test_the_part_of_a_probe_that_was_killed_goes_with_the_next_probe(tmp_path: Path) -> None:
    (tmp_path / "anyorder").mkdir()
    (tmp_path / "anyorder-probe").mkdir()  # a folder of any name is no hindrance
    left = tmp_path / ".anyorder-probe.0123456789ab.part"
    left.touch()
    check_room_in(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["anyorder", "anyorder-probe"]
