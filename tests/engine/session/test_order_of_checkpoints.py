"""Which files are checkpoints, what tells their steps, and the order that follows."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from sweeping import sharded

from inspector.engine.errors import InputError
from inspector.engine.session.sweep.candidates import checkpoints_in, nothing_in
from inspector.engine.session.sweep.frames import Known, numbered
from inspector.engine.session.sweep.name_numbers import numbers_in_names
from inspector.engine.session.sweep.ordering import Candidate, in_order, said_of_order
from inspector.records import Frame


@pytest.mark.parametrize(
    ("names", "numbers"),
    [
        (["step-000020.pt", "step-000003.pt"], [20, 3]),
        (["epoch=1-step=100.ckpt", "epoch=2-step=200.ckpt"], [100, 200]),
        (["epoch=09-val_loss=0.32.ckpt", "epoch=10-val_loss=0.30.ckpt"], [9, 10]),
        (["checkpoint-500", "checkpoint-1000"], [500, 1000]),
        (["resnet50_10.pt", "resnet50_20.pt"], [10, 20]),
        (["10_resnet50.pt", "20_resnet50.pt"], [10, 20]),
        (["ckpt_7.safetensors", "ckpt_11.safetensors"], [7, 11]),
        (["model_v1.2_iter300.bin", "model_v1.2_iter40.bin"], [300, 40]),
        (["model-2.safetensors.index.json", "model-10.safetensors.index.json"], [2, 10]),
        (["5.pt"], [5]),
        (["best.pt", "step9.pt"], [None, 9]),
        (["loss0.5.pt", "last.pt"], [None, None]),
    ],
)
def test_the_number_that_counts_training(names: list[str], numbers: list[int | None]) -> None:
    found = numbers_in_names(names)
    assert [found.get(name) for name in names] == numbers


def saved(folder: Path, name: str, **beside: object) -> Path:
    torch.save({"model": {"w": torch.zeros(2)}, **beside}, folder / name)
    return folder / name


def order(folder: Path, by: str = "") -> tuple[list[tuple[str, int | None]], str]:
    found, chosen = in_order(checkpoints_in([str(folder)]), by)
    return [(one.name, one.step) for one in found], chosen


def test_what_all_tell_themselves_goes_before_their_names(tmp_path: Path) -> None:
    saved(tmp_path, "9.pt", step=1)
    saved(tmp_path, "1.pt", global_step=9, epoch=2)
    assert order(tmp_path) == ([("9.pt", 1), ("1.pt", 9)], "file")


def test_an_epoch_does_not_stand_in_for_a_step(tmp_path: Path) -> None:
    for step in (100, 20):
        saved(tmp_path, f"model_{step}.pt", epoch=step // 20)
    assert order(tmp_path) == ([("model_20.pt", 20), ("model_100.pt", 100)], "name")
    saved(tmp_path, "best.pt", epoch=3)
    found, chosen = order(tmp_path)
    assert chosen == "epoch" and found == [("model_20.pt", 1), ("best.pt", 3), ("model_100.pt", 5)]
    assert order(tmp_path, "name")[0] == [("model_20.pt", 20), ("model_100.pt", 100), ("best.pt", None)]


def test_what_tells_nothing_is_in_natural_order_and_last(tmp_path: Path) -> None:
    for name in ("final.pt", "best.pt"):
        saved(tmp_path, name)
    assert order(tmp_path) == ([("best.pt", None), ("final.pt", None)], "")
    paths = checkpoints_in([str(tmp_path)])
    assert said_of_order(*in_order(paths)).endswith(
        "nothing tells a training step, so they are in the order of their names."
    )
    saved(tmp_path, "it30.pt")
    saved(tmp_path, "it4.pt")
    found, chosen = in_order(checkpoints_in([str(tmp_path)]))
    assert [one.name for one in found] == ["it4.pt", "it30.pt", "best.pt", "final.pt"]
    assert said_of_order(found, chosen) == (
        "4 checkpoints in the order of the numbers in their names (it4.pt: 4, the number in its name). Without one, and "
        "last: best.pt, final.pt."
    )


def test_a_damaged_one_has_its_place_by_its_name(tmp_path: Path) -> None:
    for step in (1, 2, 3):
        saved(tmp_path, f"step-{step}.pt", step=step)
    (tmp_path / "step-2.pt").write_bytes(b"PK damaged")
    assert order(tmp_path)[0] == [("step-1.pt", 1), ("step-2.pt", 2), ("step-3.pt", 3)]


def test_patterns_names_shards_and_what_lies_beside(tmp_path: Path) -> None:
    for name in ("a/step-1.pt", "b/step-1.pt", "b/optimizer.pt", "b/.hidden.pt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        saved(tmp_path, name)
    (tmp_path / "b" / "notes.txt").write_text("x")
    found = in_order(checkpoints_in([str(tmp_path / "*" / "*.pt")]))[0]
    assert [one.name for one in found] == ["a/step-1.pt", "b/step-1.pt"]
    assert len(checkpoints_in([str(tmp_path / "a"), str(tmp_path / "a" / "step-1.pt"), str(tmp_path / "b")])) == 2
    index = sharded(tmp_path / "c", {"0": torch.zeros(1), "1": torch.ones(1)})
    (tmp_path / "c" / "checkpoint-5").mkdir()
    sharded(tmp_path / "c" / "checkpoint-5", {"0": torch.zeros(1), "1": torch.ones(1)})
    assert checkpoints_in([str(tmp_path / "c")]) == [tmp_path / "c" / "checkpoint-5", index]
    assert checkpoints_in([str(tmp_path / "c" / "*")]) == [tmp_path / "c" / "checkpoint-5", index]
    assert checkpoints_in([str(tmp_path / "c" / "checkpoint-5")]) == [tmp_path / "c" / "checkpoint-5"]
    assert f"{tmp_path / 'a'} has 1, {tmp_path / 'b'} has 1" in nothing_in([str(tmp_path)])
    with pytest.raises(InputError, match="There is no "):
        checkpoints_in([str(tmp_path / "nothing")])


def test_a_link_to_another_checkpoint_is_no_second_one(tmp_path: Path) -> None:
    path = saved(tmp_path, "step-1.pt")
    (tmp_path / "last.pt").symlink_to(path)
    assert checkpoints_in([str(tmp_path)]) == [path]
    elsewhere = saved(tmp_path, "step-1.pt").rename(tmp_path.with_name(f"{tmp_path.name}-step-2.pt"))
    (tmp_path / "last.pt").unlink()
    (tmp_path / "last.pt").symlink_to(elsewhere)
    assert checkpoints_in([str(tmp_path)]) == [tmp_path / "last.pt"]


def test_links_in_a_circle_are_checkpoints_that_cannot_be_read(tmp_path: Path) -> None:
    path = saved(tmp_path, "step-1.pt")
    circle = tmp_path / "last.pt"
    circle.symlink_to(circle)
    assert set(checkpoints_in([str(tmp_path)])) == {path, circle}


def test_numbers_of_frames_follow_the_order_where_there_is_room() -> None:
    found = [Candidate(Path(str(step)), str(step), step) for step in (0, 10, 20, 30)]
    keys = {one.path: (str(one.path),) for one in found}

    def known(**frames: int) -> Known:
        return Known(finished={(name.lstrip("s"),): Frame(index=index) for name, index in frames.items()})

    def numbers(held: Known) -> list[int]:
        given = numbered(found, keys, held)
        return [given[one.path] for one in found]

    assert numbers(Known()) == [0, 1, 2, 3]
    assert numbers(known(s0=0, s20=2)) == [0, 1, 2, 3], "an earlier sweep was cancelled"
    assert numbers(known(s0=0, s20=1)) == [0, 2, 1, 3]
    assert numbers(known(s30=0)) == [1, 2, 3, 0]
    assert numbers(known(s5=0, s10=1)) == [2, 1, 3, 4], "the checkpoint of frame 0 was removed"
