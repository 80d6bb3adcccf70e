"""The replay with what stands outside of it: other libraries, a browser.

Knows the long conversation.  Everything here belongs to the world tier.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import world_needs
from browser import tab
from replay_story import WINDOW, recording, written

from trimtab.cli import main
from trimtab.errors import MissingExtra
from trimtab_lab.replay.policies import find
from trimtab_lab.replay.policy_run import replay
from trimtab_lab.replay.recording_index import RecordingIndex

pytestmark = pytest.mark.world
POLICIES = Path(__file__).resolve().parents[2] / "bench/peers/policies.py"
PEERS = re.findall(r"^class (\w+)\(_Peer\)", POLICIES.read_text("utf-8"), re.MULTILINE)


@pytest.mark.parametrize("name", PEERS)
def test_a_peer_runs_through_the_same_code_with_its_version(name: str) -> None:
    try:
        policy = find(f"{POLICIES}:{name}")
    except MissingExtra as error:
        world_needs.absent(str(error))
    assert policy.version[0].isdigit()
    done = replay(RecordingIndex(recording()), policy, WINDOW)
    assert len(done.rows) == 25
    assert sum(row.failed for row in done.rows) == 0
    assert all(row.tokens <= row.full for row in done.rows[:3])  # below its trigger nothing is cut


def test_a_peer_that_cannot_be_installed_is_named_and_tried_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TRIMTAB_PEERS", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    for _ in range(2):
        with pytest.raises(MissingExtra, match=r"litellm-trim cannot be installed: .*No matching"):
            find(f"{POLICIES}:LiteLLMTrim")


def test_the_page_is_as_wide_as_a_phone_whatever_it_cost(tmp_path: Path) -> None:
    log, out = written(tmp_path / "logs"), tmp_path / "out"
    main(["replay", log, "--window", str(WINDOW), "--workers", "1", "--out", str(out)])
    cells = "document.querySelectorAll('.plain td[data-head=cost]')"
    with tab() as page:
        page.open((out / "replay.html").as_uri())
        assert page.eval(f"{cells}.length")
        page.eval(f"{cells}.forEach(one => one.textContent = '$12,345.67')")
        page.eval("document.querySelectorAll('details').forEach(one => one.open = true)")
        for width in (320, 390, 900, 1600):
            size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
            page.call("Emulation.setDeviceMetricsOverride", **size)
            root = "document.documentElement"
            assert page.eval(f"{root}.scrollWidth - {root}.clientWidth") == 0, width
            shown = f"[...{cells}].every(one => one.getBoundingClientRect().right <= {width})"
            assert page.eval(shown), width
