"""Finding and fetching public data: against a web server of our own."""

from __future__ import annotations

import hashlib
import http.server
import io
import re
import sys
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from anyorder.data import density_sets, images, text
from anyorder.data.origin import Origin, cache_folder, data_folders, extract, fetch, find
from anyorder.errors import UserError

CONTENT = bytes(range(256)) * 9000  # more than two chunks


class Handler(http.server.BaseHTTPRequestHandler):
    asked = 0

    def do_GET(self) -> None:
        type(self).asked += 1
        if self.path == "/missing":
            self.send_error(404)
            return
        self.send_response(200)
        if self.path == "/packed" and "gzip" in self.headers.get("Accept-Encoding", ""):
            self.send_header("Content-Encoding", "gzip")  # what a client unpacks on the way is not what was published
        if self.path != "/endless":
            self.send_header("Content-Length", str(len(CONTENT)))
        self.end_headers()
        self.wfile.write(CONTENT[:1000] if self.path == "/short" else CONTENT)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as made:
        thread = threading.Thread(target=made.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{made.server_address[1]}"
        made.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANYORDER_DATA", raising=False)
    monkeypatch.setattr("pooch.os_cache", lambda project: tmp_path / "cache" / project)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


SUM = f"sha256:{hashlib.sha256(CONTENT).hexdigest()}"


def test_fetches_once_checks_and_keeps(server: str, capsys: pytest.CaptureFixture[str]) -> None:
    origin = Origin(f"{server}/set", "sub/set.bin", SUM)
    before = Handler.asked
    path = fetch(origin)
    assert path == cache_folder() / "sub" / "set.bin" and path.read_bytes() == CONTENT
    assert fetch(origin, show=False) == path and Handler.asked == before + 1
    assert [file.name for file in path.parent.iterdir()] == ["set.bin"]
    assert capsys.readouterr().out == ""  # the bar stands on standard error


@pytest.mark.parametrize("checksum", ["", f"md5:{hashlib.md5(CONTENT).hexdigest()}"])
def test_nothing_is_fetched_without_a_sha256(server: str, checksum: str) -> None:
    before = Handler.asked
    with pytest.raises(UserError, match=r"no SHA-256 is known.*by hand.*ANYORDER_DATA"):
        fetch(Origin(f"{server}/set", "set.bin", checksum), show=False)
    assert Handler.asked == before


def test_every_public_set_that_is_fetched_has_a_sha256() -> None:
    origins = [value for module in (images, text, density_sets) for value in vars(module).values()]
    sums = {origin.file: origin.checksum for origin in origins if isinstance(origin, Origin)}
    for files in images.CHECKSUMS.values():
        sums |= files
    by_hand = {density_sets.MAF.file, density_sets.UCI_GAS.file}  # fetch refuses them
    assert len(sums) > 10
    for file, checksum in sums.items():
        assert re.fullmatch(r"sha256:[0-9a-f]{64}", checksum) or file in by_hand, file


def test_a_wrong_checksum_leaves_nothing(server: str) -> None:
    with pytest.raises(UserError, match=r"has the checksum sha256:.* not sha256:00"):
        fetch(Origin(f"{server}/set", "set.bin", "sha256:00"), show=False)
    assert list(cache_folder().iterdir()) == []


def test_a_file_put_there_by_hand_is_checked_too(server: str) -> None:
    cache_folder().mkdir(parents=True)
    (cache_folder() / "set.bin").write_bytes(b"other")
    with pytest.raises(UserError, match="delete it to fetch it again"):
        fetch(Origin(f"{server}/set", "set.bin", "md5:00"), show=False)
    assert fetch(Origin(f"{server}/set", "set.bin"), show=False).read_bytes() == b"other"


@pytest.mark.parametrize("path", ["/packed", "/endless"])
def test_files_come_as_they_lie_on_the_server(server: str, path: str) -> None:
    origin = Origin(server + path, "set.gz", SUM)
    assert fetch(origin).read_bytes() == CONTENT


@pytest.mark.skipif(sys.platform != "linux", reason="the place of the cache is the system's")
def test_the_cache_is_where_the_system_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "anyorder" / "data"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path.home() / ".cache" / "anyorder" / "data"


@pytest.mark.parametrize(("path", "reason"), [("/missing", "404"), ("/short", r"1000 bytes read, \d+ more expected")])
def test_a_failed_fetch_says_what_to_do_and_leaves_nothing(server: str, path: str, reason: str) -> None:
    with pytest.raises(UserError, match=rf"{reason}.*by hand.*ANYORDER_DATA"):
        fetch(Origin(server + path, "set.bin", SUM), show=False)
    assert list(cache_folder().iterdir()) == []


def test_nobody_answers() -> None:
    with pytest.raises(UserError, match=r"from http://127\.0\.0\.1:9/x \(\[Errno \d+\] [^;]*\); fetch"):
        fetch(Origin("http://127.0.0.1:9/x", "x", SUM), show=False)


def test_other_addresses_and_sums_are_refused() -> None:
    with pytest.raises(UserError, match="http"):
        Origin("file:///etc/passwd", "x")
    with pytest.raises(UserError, match="checksum"):
        Origin("https://example.org/x", "x", "crc:1")


def test_the_users_folders_come_before_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = tmp_path / "one", tmp_path / "two"
    for folder in (first, second, cache_folder()):
        folder.mkdir(parents=True)
        (folder / "a").write_text("a")
    (second / "b").write_text("b")
    monkeypatch.setenv("ANYORDER_DATA", f"{first}:{second}")
    assert data_folders() == [first, second, cache_folder()]
    assert find("a") == first and find("a", "b") == second and find("c") is None
    assert find("a", folders=[second]) == second
    assert fetch(Origin("http://127.0.0.1:9/x", "b"), show=False) == second / "b"


def _tar(path: Path, files: dict[str, bytes]) -> None:
    with tarfile.open(path, "w:gz") as packed:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            packed.addfile(entry, io.BytesIO(content))


def test_members_are_found_by_how_they_end(tmp_path: Path) -> None:
    archive = tmp_path / "a.tar.gz"
    _tar(archive, {"data/one/x.npy": b"1", "data/two/x.npy": b"2", "data/two/y.txt": b"y", "../../evil/z": b"z"})
    extract(archive, ["two/x.npy", "deep/y.txt", "z"], tmp_path / "out")
    assert (tmp_path / "out" / "two" / "x.npy").read_bytes() == b"2"
    assert (tmp_path / "out" / "deep" / "y.txt").read_bytes() == b"y"
    assert (tmp_path / "out" / "z").read_bytes() == b"z"  # under our name, inside our folder
    with pytest.raises(UserError, match="holds no file"):
        extract(archive, ["three/x.npy"], tmp_path / "out")  # two files are called x.npy: no guess


def test_zip_archives_too(tmp_path: Path) -> None:
    archive = tmp_path / "a.zip"
    with zipfile.ZipFile(archive, "w") as zipped:
        zipped.writestr("x.txt", "text")
    extract(archive, ["sub/x.txt"], tmp_path)
    assert (tmp_path / "sub" / "x.txt").read_text() == "text"


def test_pickles_stay_and_damage_is_named(tmp_path: Path) -> None:
    archive = tmp_path / "a.tar.gz"
    _tar(archive, {"gas/x.pickle": b""})
    with pytest.raises(UserError, match="may run code"):
        extract(archive, ["gas/x.pickle"], tmp_path)
    archive.write_bytes(archive.read_bytes()[:20])
    with pytest.raises(UserError, match="cannot be read"):
        extract(archive, ["x"], tmp_path)
