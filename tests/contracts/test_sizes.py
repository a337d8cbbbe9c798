"""No function is longer than 40 lines and no file than 400, but for those that are listed here until they are split."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("inspector", "sample_models", "tests", "docs/examples")
FUNCTION, FILE = 40, 400
LONG_FILES = frozenset({
    "tests/engine/latent/test_distributions.py",
    "tests/engine/probes/test_attention.py",
    "tests/engine/quantities/test_attention_quantities.py",
    "tests/engine/quantities/test_influence.py",
    "tests/engine/recurrent/traced/test_handwritten.py",
    "tests/engine/recurrent/traced/test_handwritten_twins.py",
    "tests/engine/recurrent/traced/test_loop_styles.py",
    "tests/engine/session/test_sweep.py",
    "tests/engine/structure/test_trial_steps.py",
    "tests/engine/test_cures.py",
    "tests/engine/watch/test_what_is_recorded.py",
    "tests/faults/closed_windows.py",
    "tests/gui/test_background.py",
    "tests/gui/test_overview.py",
    "tests/gui/test_pointing.py",
    "tests/oracles/test_hugging_face_folders.py",
    "tests/support/driven_window.py",
    "tests/support/written_scans.py",
    "tests/tools/mutants.py",
})  # fmt: skip
LONG_FUNCTIONS = frozenset({
    "tests/bench/bench_bptt.py rows",
    "tests/bench/bench_capture.py rows",
    "tests/bench/bench_drawing.py _live",
    "tests/bench/bench_dynamics.py rows",
    "tests/bench/bench_jacobians.py rows",
    "tests/bench/bench_recurrent.py rows",
    "tests/bench/bench_training.py _measure",
    "tests/capture/test_writer_texts.py test_any_text_in_any_record_is_read_again",
    "tests/engine/probes/test_fused.py test_gradients_are_checked_piece_by_piece",
    "tests/engine/quantities/test_influence.py test_both_curves_equal_plain_loops",
    "tests/engine/scans/test_linear_attention_in_loops.py read",
    "tests/engine/watch/test_carried_states.py judged",
    "tests/engine/watch/test_what_is_recorded.py test_dead_units_states_gates_and_heads",
    "tests/foreign/test_resemblyzer.py test_the_speaker_encoder_opens_runs_and_every_panel_shows_it",
    "tests/gui/attention/test_other_and_large_maps.py test_other_maps_are_drawn_beside_that_of_the_head",
    "tests/gui/test_saving.py test_what_is_damaged_is_saved_only_when_that_is_agreed",
    "tests/gui/test_sessions.py test_a_session_brings_back_run_cursor_layout_choices_and_notes",
    "tests/support/equations.py compare",
    "tests/support/onnx_graphs.py graph",
    "tests/support/processes.py _train",
    "tests/test_cli.py test_diagnose_tells_findings_with_evidence_and_remedy",
})  # fmt: skip


def too_long(text: str, path: str) -> tuple[set[str], set[str]]:
    """(files, functions) of a file's text that are too long, functions as "path name"."""
    functions = {
        f"{path} {node.name}"
        for node in ast.walk(ast.parse(text))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and (node.end_lineno or 0) - node.lineno + 1 > FUNCTION
    }
    return ({path} if len(text.splitlines()) > FILE else set()), functions


def sources() -> Iterator[tuple[str, str]]:
    """(text, path) of every file of ours."""
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield path.read_text(encoding="utf-8"), path.relative_to(ROOT).as_posix()


def test_files_and_functions_are_short() -> None:
    files: set[str] = set()
    functions: set[str] = set()
    for text, path in sources():
        long_files, long_functions = too_long(text, path)
        files |= long_files
        functions |= long_functions
    assert not files - LONG_FILES, f"longer than {FILE} lines; split these by subject"
    assert not functions - LONG_FUNCTIONS, f"longer than {FUNCTION} lines; take these apart"
    assert not (LONG_FILES - files) | (LONG_FUNCTIONS - functions), "short by now; take these off the lists above"


def test_what_is_too_long_is_seen() -> None:
    body = "    x = 0\n"
    short, long = f"def short():\n{body * 39}", f"class A:\n    async def long(self):\n{('    ' + body) * 40}"
    assert too_long(short, "a.py") == (set(), set())
    assert too_long(long, "a.py") == (set(), {"a.py long"})
    assert too_long("x = 0\n" * 400, "a.py") == (set(), set())
    assert too_long("x = 0\n" * 401, "a.py") == ({"a.py"}, set())
