"""Which uploads are suspected, who goes alone, and when one is refused."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from cauce.errors import BadUpload
from cauce.handling import KILLED, NO_DEATH, Death
from cauce.messages import ClientId, Upload, UploadId
from gateway.hazards import CRASHES, Hazards, Turns, judged

RATINGS = Upload(ClientId("ada"), UploadId("ratings"), "ratings", "ratings.csv", 100, offset=10, line=3)
CRASH = Death(frozenset({("ada/ratings", 10)}), ("ada/ratings", 10), "Segmentation fault", is_certain=True)


async def work_on(hazards: Hazards, upload: Upload) -> None:
    async with hazards.working_on(upload):
        pass


def crashed(folder: Path, hazards: Hazards, upload: Upload) -> Hazards:
    """The process dies while it works on the upload. Returns the one after it."""
    hazards._handling.blame("Segmentation fault")  # as faulthandler's file would tell

    async def die() -> bytes:
        async with hazards.working_on(upload):
            return (folder / "in-hand").read_bytes()

    (folder / "in-hand").write_bytes(asyncio.run(die()))  # as it was at that moment
    return Hazards(folder, "g")


def test_an_upload_is_refused_after_a_few_crashes_alone_and_only_where_it_was(tmp_path: Path) -> None:
    hazards = crashed(tmp_path, Hazards(tmp_path, "g"), RATINGS)  # among others, for all anybody knows
    for _ in range(CRASHES):
        asyncio.run(work_on(hazards, RATINGS))
        hazards = crashed(tmp_path, hazards, RATINGS)
    with pytest.raises(BadUpload, match=r"ratings.csv, line 3: .* ended the gateway 3 times, alone"):
        asyncio.run(work_on(hazards, RATINGS))
    asyncio.run(work_on(hazards, replace(RATINGS, client_id=ClientId("bruno"))))


def test_an_upload_that_gets_on_is_acquitted(tmp_path: Path) -> None:
    hazards = Hazards(tmp_path, "g")
    for _ in range(2):
        hazards = crashed(tmp_path, hazards, RATINGS)
    assert hazards._hazards["ada/ratings"].crashes == 1
    hazards.got_on(replace(RATINGS, offset=20))
    assert not Hazards(tmp_path, "g")._hazards


def test_deaths_elsewhere_or_from_outside_count_for_nothing() -> None:
    once = judged({}, CRASH)
    assert once["ada/ratings"].crashes == 1
    assert judged(once, NO_DEATH) == once
    assert judged(once, replace(CRASH, how=KILLED, is_certain=False)) == once
    assert judged(once, replace(CRASH, alone=None)) == once
    assert judged(once, replace(CRASH, alone=("ada/ratings", 20)))["ada/ratings"].crashes == 1


def test_a_folder_that_cannot_be_written_to_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    hazards = Hazards(tmp_path / "file" / "folder", "g")
    asyncio.run(work_on(hazards, RATINGS))
    hazards.got_on(RATINGS)


def test_many_take_turns_at_once_and_one_alone() -> None:
    async def play() -> list[str]:
        turns, seen = Turns(), []
        release = asyncio.Event()

        async def one(name: str, *, alone: bool) -> None:
            async with turns.turn(alone=alone):
                seen.append(name)
                await release.wait()

        tasks = [asyncio.create_task(one("a", alone=False)), asyncio.create_task(one("b", alone=False))]
        await asyncio.sleep(0)
        tasks.append(asyncio.create_task(one("alone", alone=True)))
        await asyncio.sleep(0)
        tasks.append(asyncio.create_task(one("late", alone=False)))
        for _ in range(3):
            await asyncio.sleep(0)
        assert seen == ["a", "b"], "who wants to be alone waits, and nobody goes before it"
        release.set()
        await asyncio.gather(*tasks)
        return seen

    assert asyncio.run(play()) == ["a", "b", "alone", "late"]


def test_who_gives_up_waiting_for_its_turn_holds_nobody_up() -> None:
    async def play() -> None:
        turns = Turns()

        async def one(*, alone: bool) -> None:
            async with turns.turn(alone=alone):
                pass

        async with turns.turn(alone=False):
            waiting = asyncio.create_task(one(alone=True))
            await asyncio.sleep(0)
            behind = asyncio.create_task(one(alone=False))
            await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.wait_for(behind, 10)

    asyncio.run(play())
