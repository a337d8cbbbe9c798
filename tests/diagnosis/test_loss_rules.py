"""Rules that read the loss and Adam's moments: on both sides of each border."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.support.training_series import NOISE, N, falling, judged, of, one, ones


def test_a_loss_that_rises_for_good_has_diverged(tmp_path: Path) -> None:
    rising = falling()
    rising[200:] += np.linspace(0, 3, N - 200)
    found = one(judged(tmp_path / "a.inspect", rising), "diverged")
    assert found.severity == "error" and 150 <= found.iterations[0] <= 260
    slight = falling()
    slight[200:] += np.linspace(0, 0.1, N - 200)
    assert not of(judged(tmp_path / "b.inspect", slight), "diverged")
    for rise, told in ((0.01, 0), (0.04, 1)):  # of the loss, in perfect order, where nothing was gained
        guessing = 1.386 * (1 + rise * np.linspace(0, 1, N)) + 0.001 * NOISE
        assert len(of(judged(tmp_path / f"{rise}.inspect", guessing), "diverged")) == told


def test_noise_and_a_spike_have_not_diverged(tmp_path: Path) -> None:
    loss = falling()
    loss[300:305] = 9.0
    found = judged(tmp_path / "a.inspect", loss)
    assert not of(found, "diverged") and one(found, "loss-spike").severity == "info"
    for seed in range(20):
        noise = np.random.default_rng(seed).normal(1.0, 0.3, N)
        assert not of(judged(tmp_path / f"{seed}.inspect", noise), "diverged"), seed


def test_a_loss_that_stays_is_a_plateau_and_one_that_falls_slowly_is_none(tmp_path: Path) -> None:
    flat = 2.08 + 0.01 * NOISE
    found = one(judged(tmp_path / "a.inspect", flat), "plateau")
    assert "2.076 at the beginning" in found.message and "next to nothing" not in found.message
    tiny = {"parameters:update/ratio": ones(1e-8, 1e-8, 1e-8)}
    found = one(judged(tmp_path / "b.inspect", flat, tiny), "plateau")
    assert "1e-08" in found.message and found.evidence == ("training:loss", "parameters:update/ratio")
    one_large = {"parameters:update/ratio": ones(0.0, 0.38, 0.0)}  # the others get no gradient
    assert "next to nothing" not in one(judged(tmp_path / "e.inspect", flat, one_large), "plateau").message
    slow = flat - np.linspace(0, 0.2, N)
    assert not of(judged(tmp_path / "c.inspect", slow), "plateau")
    assert not of(judged(tmp_path / "d.inspect", falling()), "plateau")


def test_a_loss_that_rises_and_comes_back_to_where_it_began_has_gained_nothing(tmp_path: Path) -> None:
    after = np.maximum(np.arange(N) - 20, 0)
    hump = 3.32 + 0.02 * NOISE + 180 * np.exp(-after / 40)
    hump[:20] = 3.3
    found = one(judged(tmp_path / "a.inspect", hump), "plateau")
    assert "between them it rose to 1" in found.message and "too large a learning rate" in found.message
    hump[200:] -= 1.0
    assert not of(judged(tmp_path / "b.inspect", hump), "plateau")


def test_a_loss_that_ends_far_above_its_first_point_has_diverged(tmp_path: Path) -> None:
    """It exploded within the first block, so that no block is low; half as much again is the border."""
    for end, told in ((19.0, 1), (2.9, 1), (2.6, 0)):
        loss = end + 0.01 * NOISE
        loss[0] = 1.8
        found = of(judged(tmp_path / f"{end}.inspect", loss), "diverged")
        assert len(found) == told and all(f"ends at {end:.2g}" in one.message for one in found)
    noise = 1.8 + 1.5 * NOISE  # a first batch that is far below the others by chance
    noise[0] = 0.5
    assert not of(judged(tmp_path / "noise.inspect", noise), "diverged")


def test_a_loss_that_begins_at_0_and_goes_below_is_a_surrogate(tmp_path: Path) -> None:
    """A policy gradient's, which dips and comes back, or stays; not one that begins above 0 and then diverges."""
    at = np.arange(N) / N
    dips = -0.24 * np.exp(-2 * at) * (at > 0.02) + 0.03 * NOISE
    dips[0] = 0.0
    assert one(judged(tmp_path / "a.inspect", dips), "diverged").severity == "info"
    stays = 0.03 * NOISE
    assert {found.severity for found in of(judged(tmp_path / "b.inspect", stays), "plateau")} <= {"info"}
    ends = np.where(at < 0.05, 0.02 * NOISE - 0.01, 0.0)  # of a policy that has one choice left
    ends[0] = -0.01
    assert {found.severity for found in of(judged(tmp_path / "d.inspect", ends), "diverged")} <= {"info"}
    learns = -0.01 - 0.3 * np.exp(-(((at - 0.08) / 0.03) ** 2)) * (at < 0.2) + 0.01 * (at > 0.2)  # to the last choice
    assert {found.severity for found in of(judged(tmp_path / "f.inspect", learns), "diverged")} == {"info"}
    learns[-60:] = 0.1  # above 0 for good
    assert one(judged(tmp_path / "g.inspect", learns), "diverged").severity == "error"
    ends = np.where(at < 0.05, -0.01 - 0.002 * np.abs(NOISE), 0.0)  # no noise about 0: it rose
    assert one(judged(tmp_path / "e.inspect", ends), "diverged").severity == "error"
    density = 1.4 - 3.4 * np.exp(-((at - 0.3) ** 2) / 0.05) + 0.03 * NOISE
    assert one(judged(tmp_path / "c.inspect", density), "diverged").severity == "error"


def test_what_falls_within_the_first_block_is_no_plateau_of_which_to_warn(tmp_path: Path) -> None:
    """Learned at once, or a bad beginning unlearned: 20 % of the first point are the border."""
    for began, severity in ((2.08, "info"), (1.1, "warning")):
        loss = 0.9 + 0.01 * NOISE
        loss[0] = began
        found = one(judged(tmp_path / f"{began}.inspect", loss), "plateau")
        assert found.severity == severity and ("fell from 2.08 to 0.89" in found.message) == (severity == "info")


def test_a_spike_that_lasts_is_a_warning(tmp_path: Path) -> None:
    loss = falling()
    loss[250:300] += 2.0
    found = one(judged(tmp_path / "a.inspect", loss), "loss-spike")
    assert found.severity == "warning" and found.iterations == (250,) and "50 points later" in found.message
    restless = falling(noise=0.005)
    restless[340:390] += 0.12  # less than a tenth of what was gained
    assert one(judged(tmp_path / "c.inspect", restless), "loss-spike").severity == "info"
    late = falling()
    late[395:] += 2.0
    found = one(judged(tmp_path / "d.inspect", late), "loss-spike")
    assert found.severity == "info" and "it was not back in the 4 points since" in found.message
    steady = falling(noise=0.0)
    assert not of(judged(tmp_path / "b.inspect", steady), "loss-spike")


def test_how_far_a_loss_jumped_is_a_number_that_can_be_read(tmp_path: Path) -> None:
    loss = falling()
    loss[250:300] = 1e30
    assert "e+" in one(judged(tmp_path / "a.inspect", loss), "loss-spike").message.partition("(")[2].partition(" ")[0]


def test_a_stale_second_moment(tmp_path: Path) -> None:
    rms = ones(1.0, 1.0, 1.0)
    rms[:20, 0] = 9.0  # young
    rms[[100, 200], 1] = 5.0  # rare
    tables = {"parameters:adam/rms": rms}
    assert not of(judged(tmp_path / "a.inspect", tables=tables), "stale-second-moment")
    rms[100:290, 1] = 2.4  # in half of the 380, and no jump
    assert not of(judged(tmp_path / "b.inspect", tables=tables), "stale-second-moment")
    rms[290, 1] = 2.4
    found = one(judged(tmp_path / "c.inspect", tables=tables), "stale-second-moment")
    assert found.place == "b.weight" and found.iterations[:3] == (100, 101, 102) and found.severity == "info"
    assert found.message == "gradients are more than 2.3 times Adam's estimate in 191 of 380 recorded iterations; " \
        "no jump of the loss within 8 iterations after several"  # fmt: skip


def test_a_stale_second_moment_is_a_warning_only_where_the_loss_jumps_soon_after(tmp_path: Path) -> None:
    rms, loss = ones(1.0, 1.0, 1.0), falling()
    for first in (96, 196, 296):
        rms[first : first + 4, 1] = 5.0
    loss[[95, 199, 308]] += 3.0  # before them, at the last of them (after three of eight), too late
    tables = {"parameters:adam/rms": rms}
    assert not of(judged(tmp_path / "a.inspect", loss, tables), "stale-second-moment")
    loss[204] += 3.0  # a hard batch: the loss after it is as before
    found = one(judged(tmp_path / "one.inspect", loss, tables), "stale-second-moment")
    assert found.severity == "info" and "jumped a little" in found.message
    loss[205:210] += 3.0
    found = one(judged(tmp_path / "b.inspect", loss, tables), "stale-second-moment")
    assert found.severity == "warning" and "jumped within 8 iterations after several, at iteration 204" in found.message
    rms[196:199, 1] = 1.0  # one rare batch
    assert not of(judged(tmp_path / "c.inspect", loss, tables), "stale-second-moment")


def test_a_stale_second_moment_is_no_warning_where_the_loss_jumped_by_little_of_what_was_gained(tmp_path: Path) -> None:
    rms, loss = ones(1.0, 1.0, 1.0), falling(0.001)
    rms[300:310, 1] = 5.0
    tables = {"parameters:adam/rms": rms}
    for height, severity in ((0.1, "info"), (0.3, "warning")):
        loss[310:318] = loss[309] + height
        found = one(judged(tmp_path / f"{severity}.inspect", loss, tables), "stale-second-moment")
        assert found.severity == severity and ("jumped a little" in found.message) == (severity == "info")


def test_a_loss_that_only_unlearns_a_random_beginning_does_not_fall(tmp_path: Path) -> None:
    """A first block that is 3 % above guessing, and one that is 10 % above it, which may be all that can be gained."""
    for above, told in ((1.03, 1), (1.1, 0)):
        loss = 2.08 + 0.002 * NOISE
        loss[: N // 20] *= above
        assert len(of(judged(tmp_path / f"{above}.inspect", loss), "plateau")) == told
    loss = 2.08 * np.exp(-0.04 * np.arange(N) / N) + 0.0005 * NOISE  # 4 % in all, but it falls to the end
    assert not of(judged(tmp_path / "slow.inspect", loss), "plateau")


def test_a_small_fall_counts_only_where_it_goes_on(tmp_path: Path) -> None:
    """Half a per cent in perfect order, down to guessing in the first half; and as little, steadily to the end."""
    at = np.arange(N) / N
    guessing = 2.08 + 0.012 * np.exp(-12 * at) + 0.001 * NOISE
    assert one(judged(tmp_path / "a.inspect", guessing), "plateau").severity == "warning"
    steady = 2.08 - 0.012 * at + 0.001 * NOISE
    assert not of(judged(tmp_path / "b.inspect", steady), "plateau")
