"""CSV, JSON lines, trainer_state.json, history.json: which name is the step, which are curves, what is not read."""

from __future__ import annotations

import json
import math
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from inspector.capture import CaptureError, LogView, open_log
from inspector.capture.logs.lines import PIECE

INF = math.inf


def opened(path: Path, text: str) -> LogView:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return open_log(path)


def values(log: LogView, name: str) -> dict[float, float]:
    """Iteration → value."""
    axis = log.channel(name).domain("iteration")
    place = name.partition(":")[0]
    suffix = axis.removeprefix("iteration").removeprefix(f"/{place}")
    return dict(zip(log.array(f"{place}:iteration{suffix}"), log.array(name), strict=True))


def series(log: LogView) -> list[str]:
    return [name for name, channel in log.channels.items() if channel.kind == "series"]


# -- files of several pieces


@pytest.mark.parametrize("name", ["metrics.csv", "metrics.jsonl"])
def test_every_row_of_a_file_of_several_megabytes_is_read_once(tmp_path: Path, name: str) -> None:
    count, filling = 4 * PIECE // 64, "x" * 40
    if name.endswith(".csv"):
        text = "step,loss,words\n" + "".join(f"{n},{n / 4},{filling}\n" for n in range(count))
    else:
        text = "".join(f'{{"step": {n}, "loss": {n / 4}, "words": "{filling}"}}\n' for n in range(count))
    assert len(text) > 3 * PIECE
    log = opened(tmp_path / name, text)
    np.testing.assert_array_equal(log.array("log:iteration"), np.arange(count))
    np.testing.assert_array_equal(log.array("log:loss"), np.arange(count) / 4)
    assert not log.damaged and not log.events


# -- rows that have no place


@pytest.mark.parametrize(
    ("step", "said"),
    [("NaN", "step is NaN"), ('"inf"', "step is inf"), ("1e999", "step is Infinity"), ("null", "step is null"),
     ('"x"', "step is x"), ("[1]", "step is no number"), ("1" + 400 * "0", "step is a number of hundreds of digits")],
)  # fmt: skip
@pytest.mark.parametrize("name", ["metrics.jsonl", "metrics.json"])
def test_a_step_that_is_not_finite_is_told(tmp_path: Path, name: str, step: str, said: str) -> None:
    rows = ['{"step": 1, "loss": 0.5}', f'{{"step": {step}, "loss": 7}}', '{"step": 2, "loss": 0.25}']
    log = opened(tmp_path / name, f"[{','.join(rows)}]" if name.endswith(".json") else "\n".join(rows) + "\n")
    assert values(log, "log:loss") == {1: 0.5, 2: 0.25}
    assert len(log.damaged) == 1 and said in log.damaged[0]


def test_a_first_step_that_is_not_finite_is_no_setting(tmp_path: Path) -> None:
    log = opened(tmp_path / "metrics.jsonl", '{"step": NaN, "loss": 7}\n{"step": 1, "loss": 0.5}\n')
    assert not log.start.meta.get("config") and "step is NaN" in log.damaged[0]


@pytest.mark.parametrize("rows", ["1,1_0,a_1\n2,0.5,b\n", "1,0.5,a_1\n2,1_0,b\n"])
def test_a_cell_that_is_nearly_a_number_is_no_silent_gap(tmp_path: Path, rows: str) -> None:
    log = opened(tmp_path / "metrics.csv", f"step,loss,word\n{rows}")
    assert list(values(log, "log:loss").values()) == [0.5]
    assert len(log.damaged) == 1 and "a cell of loss is '1_0', which is not read as a number" in log.damaged[0]


def test_a_column_of_names_with_low_lines_is_no_damage(tmp_path: Path) -> None:
    assert not opened(tmp_path / "metrics.csv", "step,loss,month\n1,0.5,2024_01\n2,0.25,2024_02\n").damaged


# -- CSV


def test_lightnings_sparse_columns(tmp_path: Path) -> None:
    text = "epoch,step,train_loss,val_loss\n0,49,0.5,\n0,99,0.4,\n0,99,,0.9\n1,149,NaN,\n1,199,,0.8\n"
    (tmp_path / "hparams.yaml").write_text(
        "lr: 0.1\nname: tiny\nlayers:\n- 1\nflag: true\nobject: !!python/object:os.system x\n"
    )
    log = opened(tmp_path / "metrics.csv", text)
    np.testing.assert_equal(values(log, "log:train_loss"), {49: 0.5, 99: 0.4, 149: math.nan})
    assert values(log, "log:val_loss") == {99: 0.9, 199: 0.8}
    assert log.start.meta["config"] == {"lr": 0.1, "name": "tiny", "flag": True}
    assert list(log.array("log:epoch")) == [0, 0, 0, 1, 1] and not log.damage


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_delimiters_and_literals(tmp_path: Path, delimiter: str) -> None:
    rows = (
        ["iteration", "loss"],
        ["0", "NaN"],
        ["1", "Infinity"],
        ["2", "-inf"],
        ["3", ""],
        ["4", "None"],
        ["5", "1e-3"],
        ["6", "1_0"],
    )
    log = opened(tmp_path / "x.csv", "\n".join(delimiter.join(row) for row in rows) + "\n")
    np.testing.assert_equal(values(log, "log:loss"), {0: math.nan, 1: INF, 2: -INF, 5: 0.001})


def test_decimal_commas_between_semicolons(tmp_path: Path) -> None:
    rows = "step;loss;lr;note\n0;0,5;1e-3;a,5\n10;-1,25;2,5e-4;\n20;1.234,5;0.001;\n30;NaN;,5;1,2,3\n"
    log = opened(tmp_path / "x.csv", rows)
    np.testing.assert_array_equal(log.array("log:loss"), [0.5, -1.25, 1234.5, np.nan])
    assert log.array("log:lr").tolist() == [1e-3, 2.5e-4, 1e-3, 0.5] and "log:note" not in log.channels
    many = opened(tmp_path / "z.csv", "step;loss\n999;0,5\n1.000;0,25\n12.345.678;1,5\n")
    assert values(many, "log:loss") == {999: 0.5, 1000: 0.25, 12_345_678: 1.5}, "a point between thousands"
    whole = opened(tmp_path / "w.csv", "step;loss\n999;0,5\n1.000;3\n1.001;0.125\n")
    assert values(whole, "log:loss") == {999: 0.5, 1000: 3, 1001: 0.125}, "also in rows without a decimal comma"
    tabs = opened(tmp_path / "y.csv", "step\tloss\n0\t1,234\n1\t0.5\n")
    assert tabs.array("log:loss").tolist() == [0.5], "may be a thousand or a decimal comma"


def test_quoted_cells_a_mark_of_the_encoding_and_windows_lines(tmp_path: Path) -> None:
    log = opened(tmp_path / "x.csv", '\ufeffstep,note,"loss, mean"\r\n0,"two\nlines, 5",1\r\n1,plain,"2"\r\n')
    assert values(log, "log:loss, mean") == {0: 1, 1: 2} and series(log) == ["log:loss, mean"]


def test_a_quoted_cell_without_an_end_is_told(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text('step,note,loss\n0,a,3\n1,"b,2\n2,c,1\n')
    assert not open_log(path).damaged, "the rest may follow"
    os.utime(path, (1, 1))
    log = open_log(path)
    assert values(log, "log:loss") == {0: 3}
    assert [str(one) for one in log.damaged] == [
        "x.csv, byte 21: a quoted cell has no end, so nothing behind it is read."
    ]
    with path.open("a") as file:
        file.write('",2\n3,d,0\n')
    log.refresh()
    assert values(log, "log:loss")[3] == 0


def test_an_export_of_wandb_has_a_run_for_each_column(tmp_path: Path) -> None:
    header = '"Step","calm - train/loss","calm - train/loss__MIN","calm - train/loss__MAX","wild - train/loss"'
    log = opened(tmp_path / "wandb_export.csv", f'{header}\n"0","1","0.5","1.5",""\n"10","2","2","2","4"\n')
    assert log.runs == ("calm", "wild")
    assert values(log, "calm:train/loss") == {0: 1, 10: 2} and values(log, "wild:train/loss") == {10: 4}
    assert values(log, "calm:train/loss/max") == {0: 1.5, 10: 2}


def test_columns_of_runs_phases_and_times(tmp_path: Path) -> None:
    log = opened(
        tmp_path / "x.csv",
        "run,phase,_step,_timestamp,loss\na,train,0,100,1\na,val,0,101,2\nb,train,0,200,3\nb,train,1,205,4\n",
    )
    assert (
        log.runs == ("a", "b") and values(log, "a:val/loss") == {0: 2} and values(log, "b:train/loss") == {0: 3, 1: 4}
    )
    assert list(log.one("b").array("log:time")) == [0, 5]


def test_an_epoch_stands_in_for_the_step(tmp_path: Path) -> None:
    log = opened(tmp_path / "x.csv", "epoch,loss\n1,2\n2,1\n")
    assert values(log, "log:loss") == {1: 2, 2: 1} and log.axis("iteration").title == "epoch"


NO_STEP = {
    "a,b\n1,2\n": "has no column of steps (step, iteration, epoch, …); it has a, b.",
    "step\n1\n": "it has step.",
    ",".join(f"c{n}" for n in range(30)) + "\n": "c11 and 18 more.",
    "step," + ",".join(f"c{n}" for n in range(10_001)) + "\n": "has 10,002 columns; at most 10,000 are read.",
    "\ufffe": "", "": "",
}  # fmt: skip


@pytest.mark.parametrize("text", NO_STEP, ids=range(len(NO_STEP)))
def test_a_table_without_steps_says_what_it_has(tmp_path: Path, text: str) -> None:
    with pytest.raises(CaptureError) as caught:
        opened(tmp_path / "x.csv", text)
    assert NO_STEP[text] in str(caught.value) and "\n" not in str(caught.value)


def test_rows_without_a_step_and_rows_that_are_too_long_are_told_once(tmp_path: Path) -> None:
    log = opened(tmp_path / "x.csv", "step,loss\nx,1\n,2\n3,4\n4,5,6\n5,6,7\n")
    assert values(log, "log:loss") == {3: 4, 4: 5, 5: 6}
    assert len(log.damaged) == 2 and "byte 10: a row has no step: step is 'x'" in log.damaged[0]
    assert "a row has 3 cells, the header 2" in log.damaged[1]


# -- JSON lines


def test_json_lines_with_numbers_inside_objects(tmp_path: Path) -> None:
    rows: list[Any] = [
        {"step": 0, "loss": 1.5, "train": {"acc": 0.5, "by": {"head": 1}}, "name": "x", "list": [1], "ok": True},
        {"step": 1, "loss": math.nan, "lr": "Infinity"}, {"step": 2, "loss": -INF},
    ]  # fmt: skip
    log = opened(tmp_path / "x.jsonl", "\n".join(map(json.dumps, rows)))
    np.testing.assert_equal(values(log, "log:loss"), {0: 1.5, 1: math.nan, 2: -INF})
    assert set(series(log)) == {"log:loss", "log:train/acc", "log:train/by/head", "log:lr"} and not log.damage


def test_settings_in_the_first_line_and_lines_that_are_no_rows(tmp_path: Path) -> None:
    log = opened(
        tmp_path / "x.jsonl", '{"seed": 3}\n\n{"step": 1, "loss": 2}\n{"step": \n[1]\n{"step": 2, "loss": 1}\n'
    )
    assert log.start.meta["config"] == {"seed": 3} and values(log, "log:loss") == {1: 2, 2: 1}
    assert "byte 36" in log.damaged[0] and "it is not JSON" in log.damaged[0] and "no JSON object" in log.damaged[1]


def test_a_list_of_objects_is_one_document(tmp_path: Path) -> None:
    log = opened(tmp_path / "x.json", json.dumps([{"iter": n, "loss": n} for n in range(3)], indent=1))
    assert values(log, "log:loss") == {0: 0, 1: 1, 2: 2}
    with pytest.raises(CaptureError, match=r"y.json is no log: .*; it has name, size."):
        opened(tmp_path / "y.json", '{"name": 1, "size": 2}')


def test_json_that_is_nested_without_end_or_has_endless_digits(tmp_path: Path) -> None:
    log = opened(
        tmp_path / "x.jsonl",
        '{"step": 0, "a": 1}\n' + '{"a":' * 5000 + "\n" + '{"step": 1, "a": ' + "9" * 5000 + '}\n{"step": 2, "a": 3}\n',
    )
    assert values(log, "log:a") == {0: 1, 2: 3} and len(log.damaged) == 2


# -- Hugging Face


def state(path: Path, steps: int, closing: bool = False) -> None:
    rows: list[dict[str, Any]] = [
        {"epoch": n / 2, "step": 10 * n, "loss": 1 / (n + 1), "learning_rate": 0.1} for n in range(steps)
    ]
    rows += [{"epoch": 1.0, "step": 10 * steps - 10, "eval_loss": 0.7, "eval_runtime": 2}]
    rows += [{"epoch": 1.0, "step": 10 * steps, "train_runtime": 3.5, "train_loss": 0.4}] if closing else []
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"log_history": rows, "max_steps": 99, "global_step": steps}))


def test_the_closing_row_is_no_point_and_an_evaluation_is_one(tmp_path: Path) -> None:
    state(tmp_path / "trainer_state.json", 3, closing=True)
    log = open_log(tmp_path)
    assert values(log, "log:loss") == {0: 1, 10: 1 / 2, 20: 1 / 3} and values(log, "log:eval_loss") == {20: 0.7}
    assert "log:train_loss" not in log.channels and log.start.meta["summary"]["train_loss"] == 0.4
    assert log.start.meta["config"]["max_steps"] == 99


def test_of_the_checkpoints_of_a_training_the_newest_is_read(tmp_path: Path) -> None:
    for name, steps in (("checkpoint-9", 1), ("checkpoint-100", 3), ("checkpoint-20", 2)):
        state(tmp_path / "out" / name / "trainer_state.json", steps)
    state(tmp_path / "other" / "trainer_state.json", 2)
    log = open_log(tmp_path)
    assert log.runs == ("other", "out") and len(values(log, "out:loss")) == 3
    state(tmp_path / "out" / "checkpoint-200" / "trainer_state.json", 5)
    log.source._searched = -INF
    log.refresh()
    assert len(values(log, "out:loss")) == 5 and not log.events


@pytest.mark.parametrize("text", ["[]", "{", "{}", '{"log_history": 3}'])
def test_another_document_of_that_name(tmp_path: Path, text: str) -> None:
    with pytest.raises(
        CaptureError, match=r"trainer_state.json (has no list 'log_history'|cannot be read: it is not JSON)"
    ):
        opened(tmp_path / "trainer_state.json", text)


# -- columns in JSON


def test_columns_with_their_own_table_inside(tmp_path: Path) -> None:
    table = {
        "clip": 1.0,
        "step": [0, 2, 4],
        "loss": [3, None, math.nan],
        "measured": {"step": [0, 4], "norm: a": [5, 6]},
    }
    log = opened(tmp_path / "history.json", json.dumps(table))
    np.testing.assert_equal(values(log, "log:loss"), {0: 3, 4: math.nan})
    assert values(log, "log:measured/norm. a") == {0: 5, 4: 6}, "a colon would divide place and signal"
    assert log.channel("log:measured/norm. a").title == "measured/norm: a" and log.start.meta["config"] == {"clip": 1.0}


def test_columns_of_keras_and_columns_that_are_too_short(tmp_path: Path) -> None:
    log = opened(tmp_path / "history.json", '{"loss": [3, 2], "val_loss": [4, 5]}')
    assert values(log, "log:val_loss") == {0: 4, 1: 5} and log.axis("iteration").title == "epoch"
    log = opened(tmp_path / "history.json", '{"step": [0, 1, 2], "loss": [3, 2]}')
    assert "loss has 2 values for 3 steps" in log.damaged[0]


def test_every_sample_has_a_log(tmp_path: Path) -> None:
    import sample_models

    log = open_log(Path(sample_models.__file__).parent / "checkpoints")
    assert len(log.runs) > 30 and not log.damage
    assert all("log:loss" in log.one(run).channels for run in log.runs)


def test_a_line_without_an_end_is_whole_once_nothing_is_written(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("step,loss\n0,1.25\n1,1.5")
    log = open_log(path)
    assert values(log, "log:loss") == {0: 1.25}
    os.utime(path, (1, 1))
    log.refresh()
    assert values(log, "log:loss") == {0: 1.25, 1: 1.5}
    with path.open("a") as file:
        file.write("75\n2,2\n")
    log.refresh()
    assert values(log, "log:loss") == {0: 1.25, 1: 1.575, 2: 2}


@pytest.mark.parametrize("cell", ['"0,25"', '"1.000,5"', '"1,234"', '"-12,345.5"'])
def test_a_comma_that_stands_for_a_point_or_for_thousands_is_no_silent_gap(tmp_path: Path, cell: str) -> None:
    log = opened(tmp_path / "metrics.csv", f"step,loss\n1,0.5\n2,{cell}\n")
    assert values(log, "log:loss") == {1: 0.5}
    assert (
        len(log.damaged) == 1 and f"a cell of loss is '{cell[1:-1]}', which is not read as a number" in log.damaged[0]
    )


@pytest.mark.parametrize("rows", ["step\tloss\n1\t0,5\n2\t0,25\n", 'step,loss\n1,"0,5"\n2,"0,25"\n'])
def test_a_table_without_any_curve_says_why(tmp_path: Path, rows: str) -> None:
    log = opened(tmp_path / "metrics.csv", rows)
    (why,) = log.damaged
    assert why == "metrics.csv, byte 10: a cell of loss is '0,5', which is not read as a number."


def test_lists_of_ids_beside_numbers_are_no_numbers(tmp_path: Path) -> None:
    log = opened(tmp_path / "metrics.csv", 'step,loss,shape\n1,0.5,"3,4"\n2,0.25,"3,4,5"\n')
    assert values(log, "log:loss") == {1: 0.5, 2: 0.25} and not log.damaged


def test_lines_that_end_by_carriage_returns_alone_are_told(tmp_path: Path) -> None:
    (tmp_path / "metrics.csv").write_bytes(b"step,loss\r1,0.5\r2,0.25\r")
    os.utime(tmp_path / "metrics.csv", (0, 0))  # nobody writes it any more
    with pytest.raises(CaptureError, match="ends its lines by carriage returns alone"):
        open_log(tmp_path / "metrics.csv")


def test_a_line_with_two_values_of_one_name_is_damaged(tmp_path: Path) -> None:
    """Of two numbers nobody knows the right one; another reader may take the first."""
    log = opened(tmp_path / "metrics.jsonl", '{"step": 1, "loss": 1, "loss": 2}\n{"step": 2, "loss": 0.25}\n')
    assert values(log, "log:loss") == {2: 0.25}
    assert len(log.damaged) == 1 and "it has two entries named 'loss'" in log.damaged[0]


def test_a_number_of_thousands_of_digits_is_told_in_plain_words(tmp_path: Path) -> None:
    log = opened(tmp_path / "metrics.jsonl", f'{{"step": 1, "loss": {"9" * 5000}}}\n{{"step": 2, "loss": 0.25}}\n')
    assert values(log, "log:loss") == {2: 0.25}
    assert len(log.damaged) == 1 and "a whole number has more than 4,300 digits" in log.damaged[0]


def test_the_last_row_of_a_file_from_the_future_is_read(tmp_path: Path) -> None:
    """Its time lies beyond any wait: the clock of the machine that wrote it was ahead."""
    (tmp_path / "metrics.csv").write_text("step,loss\n1,0.5\n2,0.25")
    ahead = time.time() + 7200
    os.utime(tmp_path / "metrics.csv", (ahead, ahead))
    assert values(open_log(tmp_path / "metrics.csv"), "log:loss") == {1: 0.5, 2: 0.25}
