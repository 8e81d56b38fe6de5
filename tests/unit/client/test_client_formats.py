"""What lies in the folder: packed files are taken, files of another kind are named before a byte of them is sent."""

import bz2
import gzip
import hashlib
import io
import lzma
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from producer_client import Client, WrongUsage
from producer_client.fingerprints import Fingerprint
from producer_client.folder import Choice, FileKind, Source, find, source
from producer_client.gateways import Timing
from tests.unit.client.fake_gateway import FakeCluster, Gateway

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

RATINGS = FileKind("ratings", "ratings.csv", columns=("userId", "rating"), separator=",")
AIRPORTS = FileKind("airports", "airports.csv", columns=("code", "name"), separator=";")
USERS = FileKind("users", "users.csv", is_folder=True)
TEXT = b"userId,rating\n1,2.5\n"


def never_stop() -> None:
    pass


def content_of(one: Source) -> bytes:
    """All of a source, as one request after the other would take it."""
    taken = b""
    while len(taken) != one.length:
        one.prepare(len(taken), never_stop)
        most = 1 << 20 if one.length is None else one.length - len(taken)
        taken += b"".join(one.read(len(taken), most))
    one.close()
    return taken


def zipped(*names: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in names:
            archive.writestr(name, TEXT)
    return buffer.getvalue()


def parquet() -> bytes:
    buffer = io.BytesIO()
    pd.DataFrame({"userId": [1], "rating": [2.5]}).to_parquet(buffer)
    return buffer.getvalue()


def feather() -> bytes:
    buffer = io.BytesIO()
    pd.DataFrame({"userId": [1], "rating": [2.5]}).to_feather(buffer)
    return buffer.getvalue()


OTHERS: dict[str, tuple[Callable[[], bytes], str]] = {
    "zip": (lambda: zipped("ratings.csv"), "a zip archive, .* unpack it"),
    "xlsx": (lambda: zipped("[Content_Types].xml", "xl/workbook.xml"), "an Excel workbook, .* save it as CSV UTF-8"),
    "xls": (lambda: b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600, "an old Excel workbook"),
    "parquet": (parquet, r"Parquet, .* pandas\.read_parquet"),
    "feather": (feather, r"an Arrow file, .* pandas\.read_feather"),
    "utf-16": (lambda: TEXT.decode().encode("utf-16"), "text in UTF-16, .* iconv -f UTF-16 -t UTF-8"),
    "utf-16-le": (lambda: TEXT.decode().encode("utf-16-le"), "text in UTF-16, .* iconv -f UTF-16LE -t UTF-8"),
    "utf-16-be": (lambda: TEXT.decode().encode("utf-16-be"), "text in UTF-16, .* iconv -f UTF-16BE -t UTF-8"),
    "utf-32": (lambda: TEXT.decode().encode("utf-32"), "text in UTF-32"),
    "bzip2": (lambda: bz2.compress(TEXT), "packed with bzip2, .* bunzip2"),
    "xz": (lambda: lzma.compress(TEXT), "packed with xz, .* unxz"),
    "html": (lambda: b"\n<!DOCTYPE html><html>log in</html>", "a web page, .* login"),
    "packed parquet": (lambda: gzip.compress(parquet()), "Parquet"),
    "cut gzip": (lambda: gzip.compress(TEXT)[:-12], "cannot be unpacked"),
    "cut zstd": (lambda: zstd.compress(TEXT)[:-3], "cannot be unpacked"),
    "empty zstd": (lambda: zstd.compress(b""), "is empty"),
}


@pytest.mark.parametrize("other", OTHERS)
def test_a_file_of_another_kind_is_named_with_what_to_do(other: str, tmp_path: Path) -> None:
    content, sentence = OTHERS[other]
    path = tmp_path / "ratings.csv"
    path.write_bytes(content())
    with pytest.raises(WrongUsage, match=rf"ratings\.csv.*{sentence}"):
        source(RATINGS, path)


def test_no_byte_of_a_workbook_is_sent(pair: list[Gateway], cluster: FakeCluster, movies: Path, quick: Timing) -> None:
    (movies / "ratings.csv").write_bytes(zipped("[Content_Types].xml"))
    with Client(pair[0].url, timing=quick) as client, client.open("movies") as session:
        with pytest.raises(WrongUsage, match="Excel"):
            session.upload(movies)
        assert cluster.count("POST", "/uploads") == 0


def test_a_header_with_another_separator_is_told_the_one_that_fits(tmp_path: Path) -> None:
    path = tmp_path / "ratings.csv"
    for sign, written in [(";", "';'"), ("\t", "tab"), ("|", "'|'")]:
        path.write_text(f"userId{sign}rating\n1{sign}2.5\n")
        with pytest.raises(
            WrongUsage, match=rf"separated by .*, and ',' is expected; give --separator ratings={written}"
        ):
            source(RATINGS, path)
        assert source(RATINGS, path, sign).separator == sign
    path.write_bytes(b"\xef\xbb\xbfsep=;\r\nuserId;rating\r\n1;2.5\r\n")
    with pytest.raises(
        WrongUsage, match="'sep=;', a line that only Excel reads; remove it and give --separator ratings=';'"
    ):
        source(RATINGS, path)
    path.write_text("userId,rating\n1,2.5\n")
    with pytest.raises(WrongUsage, match="',', and ';' is expected; give --separator ratings=','"):
        source(RATINGS, path, ";")
    with pytest.raises(WrongUsage, match="':' is no separator"):
        source(RATINGS, path, ":")


def test_a_header_that_no_separator_mends_is_left_to_the_gateway(tmp_path: Path) -> None:
    path = tmp_path / "ratings.csv"
    path.write_text("user;rate\n1;2.5\n")
    assert content_of(source(RATINGS, path)) == path.read_bytes()
    path.write_text("code;name\nFRA;Frankfurt\n")
    assert source(AIRPORTS, path).separator is None  # as the dataset has it
    assert source(FileKind("ratings", "ratings.csv", columns=("code", "name")), path)  # a gateway that does not say


PACKINGS: list[tuple[str, Callable[[bytes], bytes]]] = [(".gz", gzip.compress), (".zst", zstd.compress)]


@pytest.mark.parametrize(("suffix", "pack"), PACKINGS)
def test_packed_files_are_unpacked_all_members_of_them(
    suffix: str, pack: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    text = TEXT + b"".join(b"%d,%d\n" % (number, number * 7919) for number in range(400_000))
    (tmp_path / f"ratings.csv{suffix}").write_bytes(
        pack(text[:100]) + pack(text[100:3_000_000]) + pack(text[3_000_000:])
    )
    (tmp_path / "users").mkdir()
    (tmp_path / "users" / "1.csv").write_bytes(TEXT)
    (tmp_path / "users" / f"1.csv{suffix}").write_bytes(b"a copy, and not sent")
    (tmp_path / "users" / f"2.csv{suffix}").write_bytes(pack(TEXT))
    ratings, *users = find(tmp_path, [RATINGS, USERS])
    known_at_first = ratings.length
    assert content_of(ratings) == text
    assert (known_at_first, ratings.length) == (None, len(text))
    assert [(one.name, content_of(one)) for one in users] == [("users/1.csv", TEXT), (f"users/2.csv{suffix}", TEXT)]


def test_the_first_bytes_tell_whether_a_file_is_packed_and_not_its_name(tmp_path: Path) -> None:
    path = tmp_path / "ratings.csv.gz"
    path.write_bytes(TEXT)  # a browser unpacked it, and left the name
    assert content_of(source(RATINGS, path)) == TEXT
    path = tmp_path / "ratings.csv"
    path.write_bytes(gzip.compress(TEXT))
    assert content_of(source(RATINGS, path)) == TEXT


@pytest.mark.parametrize("name", ["Ratings.CSV", "ratings (1).csv", "ratings.csv.bz2", "rating.csv"])
def test_what_lies_there_under_a_similar_name_is_mentioned(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(TEXT)
    (tmp_path / "credits.csv").write_bytes(TEXT)
    with pytest.raises(WrongUsage) as caught:
        find(tmp_path, [RATINGS, FileKind("credits", "credits.csv")])
    assert f"; {name} is there: if that is it, rename it to ratings.csv or give --file " in str(caught.value)


def test_files_elsewhere_are_chosen_by_kind(tmp_path: Path) -> None:
    other = tmp_path / "votes of all.csv"
    other.write_bytes(TEXT)
    [one] = find(tmp_path / "empty", [RATINGS], Choice({"ratings": [other]}))
    assert (one.name, content_of(one)) == ("ratings.csv", TEXT)
    for paths, sentence in [
        ({"rating": [other]}, "no file of the kind 'rating' is wanted; wanted are ratings"),
        ({"ratings": [other, other]}, "ratings is one file, and 2 were given"),
        ({"ratings": [tmp_path / "none.csv"]}, r"none\.csv: No such file"),
    ]:
        with pytest.raises(WrongUsage, match=sentence):
            find(tmp_path, [RATINGS], Choice(paths))


@pytest.mark.parametrize("size", [1, 65_536, 131_072, 131_073, 300_001])
def test_a_fingerprint_is_of_the_head_and_the_tail(size: int, tmp_path: Path) -> None:
    path, content = tmp_path / "ratings.csv", bytes(number * 31 % 251 for number in range(size))
    path.write_bytes(content)
    read = content if size <= 128 * 1024 else content[: 64 * 1024] + content[-64 * 1024 :]
    seen = Fingerprint.of(path)
    assert seen.fingerprint == hashlib.sha256(read).hexdigest()
    assert (seen.size, seen.mtime) == (size, path.stat().st_mtime_ns // 1_000_000)


def test_a_gateway_is_told_what_tells_the_file_from_another(
    pair: list[Gateway], cluster: FakeCluster, movies: Path, quick: Timing
) -> None:
    path = movies / "ratings.csv"
    path.write_bytes(path.read_bytes().replace(b"userId,rating", b"userId;rating", 1))
    with Client(pair[0].url, timing=quick) as client, client.open("movies") as session:
        session.upload_file(path, separator=";")
        [upload] = cluster.sessions[session.client_id].uploads.values()
    seen = Fingerprint.of(path)
    assert upload.metadata == {
        "filename": "ratings.csv",
        "kind": "ratings",
        "size": str(seen.size),
        "mtime": str(seen.mtime),
        "fingerprint": seen.fingerprint,
        "separator": ";",
    }
