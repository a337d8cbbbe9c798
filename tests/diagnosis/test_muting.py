"""Mutes that are written into a project's file and taken out again: by the command, beside what stands there."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from commands import call

from inspector.diagnosis import Settings, SettingsError, read_settings
from inspector.diagnosis.muting import change_mutes, entry, exactly
from inspector.diagnosis.settings import Mute
from inspector.records import Finding

NEW = Mute("IN402", "layers.0", 'it is "meant" so\\')
FILES = {
    "none": None,
    "empty": "",
    "another table": "[tool.x]\na = 1\n",
    "limits only": '[diagnosis.limits]\n"updates-lost.share" = 0.3\n',
    "empty list": "[diagnosis]\nmute = []\n",
    "one": '[diagnosis] # ours\nmute = ["IN403"] # on purpose\n[diagnosis.limits]\n"updates-lost.share" = 0.3\n',
    "comma": '[diagnosis]\nmute = ["IN403",]\n',
    "lines": (
        "# head\n[diagnosis]\nmute = [\n    # because ] it\n    'IN403',\n"
        '    { rule = "no-gradient", place = "a[0], b", reason = "x # y" }, # tail\n]\n\n[other]\nb = [["c"]]\n'
    ),
    "no mute": "[diagnosis]\n\n[other]\nmute = [1]\n",
}


@pytest.mark.parametrize("name", FILES)
def test_an_entry_more_and_one_less_leave_all_else_as_it_is(tmp_path: Path, name: str) -> None:
    path, text = tmp_path / "inspector.toml", FILES[name]
    if text is not None:
        path.write_text(text)
    before = read_settings(path) if text is not None else Settings()
    assert change_mutes(NEW, tmp_path) == path
    changed = path.read_text()
    assert read_settings(path).muted == (*before.muted, NEW) and read_settings(path).limits == before.limits
    assert all(
        line in changed for line in (text or "").splitlines() if line.lstrip().startswith("#") or "other" in line
    )
    assert changed.endswith("\n")
    change_mutes(NEW, tmp_path)  # a second time nothing
    assert path.read_text() == changed
    change_mutes(NEW, tmp_path, on=False)
    assert read_settings(path).muted == before.muted and read_settings(path).limits == before.limits
    assert "# because ] it" in path.read_text() or name != "lines"
    assert not list(tmp_path.glob(".*")), "nothing is left beside it"


def test_each_entry_of_a_list_is_taken_out_by_itself(tmp_path: Path) -> None:
    path = tmp_path / "inspector.toml"
    for gone in range(2):
        path.write_text(FILES["lines"] or "")
        had = read_settings(path).muted
        change_mutes(had[gone], tmp_path, on=False)
        assert read_settings(path).muted == (had[1 - gone],)
        assert tomllib.loads(path.read_text())["other"] == {"b": [["c"]]}


OTHER_FORMS = (
    "diagnosis = { mute = ['IN403'] }\n",
    "diagnosis.mute = ['IN403']\n",
    "[diagnosis]\n'mute' = ['IN403']\n",
    "[diagnosis]\r\nmute = [\r\n  'IN403',\r\n]\r\n",
    "[diagnosis]\nmute = [\n  'IN403' # last\n]\n[other]\na = 1\n[diagnosis.limits]\n\"updates-lost.share\" = 0.3\n",
)


@pytest.mark.parametrize("text", OTHER_FORMS)
def test_other_ways_of_writing_the_same_are_changed_too(tmp_path: Path, text: str) -> None:
    path = tmp_path / "inspector.toml"
    path.write_bytes(text.encode())
    with pytest.raises(SettingsError, match=r"does not mute IN402 at layers\.0; nothing has changed"):
        change_mutes(NEW, tmp_path, on=False)
    assert path.read_bytes() == text.encode()
    change_mutes(NEW, tmp_path)
    assert read_settings(path).muted == (Mute("IN403"), NEW)
    change_mutes(Mute("IN403"), tmp_path, on=False)
    assert read_settings(path).muted == (NEW,)
    after, before = tomllib.loads(path.read_text()), tomllib.loads(text)
    assert after.pop("other", None) == before.pop("other", None)
    assert after["diagnosis"].get("limits") == before["diagnosis"].get("limits")
    assert ("\r\n" in path.read_bytes().decode()) == ("\r\n" in text)


def test_what_tomlkit_does_not_read_stays_and_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "inspector.toml"
    path.write_text("[diagnosis]\nmute = ['IN403']\n")
    monkeypatch.setattr("tomlkit.parse", lambda text: 1 / 0)
    for mute, on, said in ((NEW, True, r"add \{ rule"), (Mute("IN403"), False, "take IN403 out of")):
        with pytest.raises(SettingsError, match=f"{said}.* by hand"):
            change_mutes(mute, tmp_path, on=on)
    assert path.read_text() == "[diagnosis]\nmute = ['IN403']\n"


def test_texts_of_an_entry_are_read_back_as_they_are() -> None:
    for words in ('"', "\\", "a\nb", "\x7f\x01", "é“", "'", "]"):
        mute = Mute("IN402", words, words)
        (said,) = tomllib.loads(f"mute = [{entry(mute)}]")["mute"]
        assert Mute(**said) == mute
    assert entry(Mute("IN402")) == '"IN402"'
    assert Mute("IN402", exactly("a[*]?")).at("a[*]?") and not Mute("IN402", exactly("a[*]?")).at("ab")


def finding(*places: str) -> Finding:
    return Finding(
        rule="uniform-attention", id="IN412", severity="info", place="" if len(places) > 1 else places[0],
        places=places if len(places) > 1 else (), message="even", remedy="",
    )  # fmt: skip


def test_one_layer_that_is_muted_leaves_the_others() -> None:
    settings = Settings((Mute("IN412", "layers.0"), Mute("uniform-attention", "layers.2"), Mute("IN413", "*")))
    left, muted = settings.parted(finding("layers.0", "layers.1", "layers.2"))
    assert muted is None and left is not None and left.places == ("layers.1",)
    assert left.message == "even (muted at layers.0, layers.2)"
    assert settings.parted(finding("layers.0", "layers.2")) == (None, finding("layers.0", "layers.2"))
    assert settings.parted(finding("layers.0")) == (None, finding("layers.0"))
    assert settings.parted(finding("layers.1")) == (finding("layers.1"), None)


def test_the_command_mutes_lists_and_takes_back(tmp_path: Path) -> None:
    assert "There is no inspector.toml" in call("mute", cwd=tmp_path).stderr
    done = call("mute", "saturated-gates", "--place", "rnn.l0", "--reason", "meant", cwd=tmp_path)
    assert done.stdout.endswith("inspector.toml: IN402 at rnn.l0 is muted.\n")
    call("mute", "IN403", cwd=tmp_path)
    assert call("mute", cwd=tmp_path).stdout.splitlines() == [
        "IN402 saturated-gates at rnn.l0: meant", "IN403 clipping-always",
    ]  # fmt: skip
    told = json.loads(call("mute", "--json", cwd=tmp_path).stdout)
    assert told["schema"] == "inspector-mutes-1" and told["muted"][1] == {"rule": "IN403", "place": "*", "reason": ""}
    assert "is no longer muted" in call("mute", "clipping-always", "--off", cwd=tmp_path).stdout
    assert "does not mute" in call("mute", "IN403", "--off", cwd=tmp_path, expect=2).stderr
    assert "There is no rule 'IN999'" in call("mute", "IN999", cwd=tmp_path, expect=2).stderr
    assert "about a RULE" in call("mute", "--off", cwd=tmp_path, expect=2).stderr
    (tmp_path / "inspector.toml").write_text('[diagnosis]\nmute = ["clipping-always"]\n')
    call("mute", "IN403", "--off", cwd=tmp_path)
    assert not read_settings(tmp_path / "inspector.toml").muted
    (tmp_path / "inspector.toml").write_text("[diagnosis")
    assert "is not TOML" in call("mute", "IN403", cwd=tmp_path, expect=2).stderr
