"""Models go up to a server of the hub's kind, which runs in a process of its own, and come down again.

All commands run in two processes, because each takes seconds to start: one that reaches the server, and one
of the same user without it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pytest

from lipcert.atomic import write_json
from lipcert.models.manifest import FILES, MANIFEST
from lipcert.models.model_names import model_place
from lipcert.publishing import publish

HERE = Path(__file__).parent
NOBODY = "http://127.0.0.1:1"
TOKEN = "hf_test"  # the server's
PUSH = ["publish", "moons-cll"]
NAMES = ["hf://", "hf://me", "hf://me/x/README.md", "hf://datasets/me/x", "hf://me/mo ons", "hf://../x"]


def look(*names: str, fault: str = "") -> list[list[str]]:
    return [[TOKEN, fault, "inspect", name] for name in names]


# Commands by what they show. Their order matters where they use one model.
STEPS = {
    "up": [[TOKEN, "", *PUSH, "out", "--push", "me/moons", "--license", "mit"]],
    "down": [
        [TOKEN, "", "verify", "hf://me/moons"],
        [TOKEN, "", "verify", "hf://me/moons@main", "--bounds-only"],
        [TOKEN, "", "certify", "hf://me/moons", "--split", "val"],
        [TOKEN, "", "verify", "certificate.json", "hf://me/moons"],
        [TOKEN, "500", "inspect", "hf://me/moons"],  # what is in the cache needs no server
    ],
    "start": [
        [
            TOKEN,
            "",
            "train",
            "moons-cll",
            "--budget=smoke",
            "--set=train.epochs=1",
            "--set=start=hf://me/moons",
        ]
    ],
    "revisions": look("hf://me/two", "hf://me/two@v1", "hf://me/two@v2"),
    "names": look(*NAMES),
    "unknown": look("hf://me/none"),
    "500": look("hf://me/late", fault="500"),
    "gone": look("hf://me/late", fault="gone"),
    "cut": look("hf://me/late", fault="cut"),
    "outside": look("hf://me/escape", fault="outside"),
    "late": look("hf://me/late"),
    "refused": look("hf://bad/plain", "hf://bad/short", "hf://bad/outside", "hf://bad/flipped"),
    "not pushed": [
        [TOKEN, "", *PUSH, "failed", "--push", "moons"],
        [TOKEN, "", *PUSH, "failed", "--push", "me/moons@v1"],
        [TOKEN, "", *PUSH, "failed", "--private"],
        ["", "", *PUSH, "failed", "--push", "me/failed"],
    ],
    "push": [
        ["hf_other", "", *PUSH, "failed", "--push", "me/failed"],
        [TOKEN, "500", *PUSH, "failed", "--push", "me/failed", "--overwrite"],
        [TOKEN, "", *PUSH, "failed", "--push", "me/failed", "--overwrite"],
    ],
}
OFFLINE = {
    "cached": look("hf://me/moons"),
    "damaged": look("hf://me/late"),
    "never": look("hf://me/never"),
}


class Outcome(NamedTuple):
    """The exit status of a command and what it printed."""

    status: int
    out: str
    err: str

    @property
    def line(self) -> str:
        """The only line of a command that failed."""
        assert self.status > 0
        assert self.out == ""
        assert self.err.count("\n") == 1
        return self.err


Outcomes = dict[str, list[Outcome]]


@dataclass(frozen=True)
class Hub:
    """A server, and the home of a user who works in `desk`."""

    root: Path
    url: str
    home: Path
    desk: Path

    def run(self, steps: dict[str, list[list[str]]], url: str) -> Outcomes:
        """Run commands in one process, which prints nothing but their lines."""
        done = subprocess.run(
            [sys.executable, str(HERE / "hub_client.py"), str(self.root)],
            input=json.dumps([step for group in steps.values() for step in group]),
            cwd=self.desk,
            env={**os.environ, "HF_ENDPOINT": url, "HF_HOME": str(self.home)},
            capture_output=True,
            encoding="utf-8",
        )
        assert (done.returncode, done.stderr) == (0, "")
        found = iter(json.loads(done.stdout))
        return {name: [Outcome(*next(found)) for _ in group] for name, group in steps.items()}

    def cache(self, name: str) -> Path:
        return self.home / "hub" / f"models--{name.replace('/', '--')}"


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    root, home, desk = (tmp_path_factory.mktemp(name) for name in ("hub", "home", "desk"))
    command = [sys.executable, str(HERE / "hub_server.py"), str(root)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, encoding="utf-8") as server:
        assert server.stdout is not None
        yield Hub(root, f"http://127.0.0.1:{server.stdout.readline().strip()}", home, desk)
        server.terminate()


@pytest.fixture(scope="module")
def online(hub: Hub, tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    model = tmp_path_factory.mktemp("published") / "model"
    publish("moons-cll", model, "hf://me/moons")

    def offer(name: str, revision: str = "main") -> Path:
        return Path(shutil.copytree(model, hub.root / name / revision))

    offer("me/late")
    offer("me/escape")
    offer("me/two")
    (offer("me/two", "v1") / "recipe.yaml").write_text("changed: 1\n", encoding="utf-8")
    (offer("bad/plain") / MANIFEST).unlink()
    (offer("bad/short") / "certificate.json").unlink()
    tree = json.loads((model / MANIFEST).read_text(encoding="utf-8"))
    tree["files"]["../../../../evil.py"] = tree["files"]["README.md"]
    write_json(offer("bad/outside") / MANIFEST, tree)
    weights = bytearray((model / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (offer("bad/flipped") / "model.safetensors").write_bytes(weights)
    return hub.run(STEPS, hub.url)


@pytest.fixture(scope="module")
def offline(hub: Hub, online: Outcomes) -> Outcomes:
    (file,) = hub.cache("me/late").glob("snapshots/*/model.safetensors")
    file.resolve().write_bytes(b"x" * file.stat().st_size)
    return hub.run(OFFLINE, NOBODY)


def test_a_model_goes_up(hub: Hub, online: Outcomes) -> None:
    (up,) = online["up"]
    assert (up.status, up.err) == (0, "")
    assert f"uploaded {hub.url}/me/moons/commit/" in up.out
    assert up.out.splitlines()[-1] == "next: lipcert verify hf://me/moons"
    there = hub.root / "me" / "moons" / "main"
    assert {p.name for p in there.iterdir()} == {*FILES, MANIFEST}
    assert all((there / name).read_bytes() == (hub.desk / "out" / name).read_bytes() for name in FILES)
    bundled = model_place("moons-cll") / "certificate.json"
    assert (there / "certificate.json").read_bytes() == bundled.read_bytes()


def test_a_model_comes_down_to_every_command(hub: Hub, online: Outcomes) -> None:
    assert [(one.status, one.err) for one in online["down"]] == [(0, "")] * len(STEPS["down"])
    assert "20000 of 20000" in online["down"][0].out
    (snapshot,) = hub.cache("me/moons").glob("snapshots/*")
    assert {p.name for p in snapshot.iterdir()} == {*FILES, MANIFEST}  # no certificate of ours
    assert (hub.desk / "certificate.json").is_file()


def test_a_training_starts_from_a_model_of_the_hub(hub: Hub, online: Outcomes) -> None:
    assert online["start"][0].status == 0
    recipe = (hub.desk / "runs" / "moons-cll" / "recipe.yaml").read_text(encoding="utf-8")
    assert "start: hf://me/moons\n" in recipe


def test_a_revision_is_another_model(online: Outcomes) -> None:
    newest, v1, v2 = online["revisions"]
    assert newest.status == 0
    assert "hf://me/two@v1: recipe.yaml is not as it was published" in v1.line
    assert v2.line == "lipcert: hf://me/two@v2: the model has no revision v2\n"


def test_a_wrong_name_is_one_line(hub: Hub, online: Outcomes) -> None:
    for name, found in zip(NAMES, online["names"], strict=True):
        assert f"{name}: expected hf://OWNER/NAME or hf://OWNER/NAME@REVISION" in found.line
    (unknown,) = online["unknown"]
    assert f"hf://me/none: no such model at {hub.url}, or you may not read it" in unknown.line
    assert {one.status for one in (unknown, *online["names"])} == {2}


@pytest.mark.parametrize(
    ("fault", "name", "said"),
    [
        ("500", "late", "500 Internal Server Error"),
        ("gone", "late", "404 Not Found"),
        ("cut", "late", "without sending complete message body|Server disconnected"),
        ("outside", "escape", r"cannot contain a '\.\.' path segment"),
    ],
)
def test_a_server_that_fails_is_one_line(
    fault: str, name: str, said: str, hub: Hub, online: Outcomes
) -> None:
    (found,) = online[fault]
    assert found.status == 1
    assert f"hf://me/{name}: cannot be downloaded from {hub.url} (" in found.line
    assert re.search(said, found.line)
    assert not list(hub.root.parent.rglob("escaped.py"))


def test_the_next_attempt_works(online: Outcomes) -> None:
    assert online["late"][0].status == 0


def test_models_that_are_not_as_published_are_refused(hub: Hub, online: Outcomes) -> None:
    plain, short, outside, flipped = (one.line for one in online["refused"])
    assert f"hf://bad/plain: expected a model of `lipcert publish`, found no {MANIFEST} in it" in plain
    assert "hf://bad/short: certificate.json cannot be read (No such file or directory)" in short
    assert "got '../../../../evil.py'" in outside
    assert "hf://bad/flipped: model.safetensors is not as it was published: its SHA-256" in flipped
    assert f"remove {hub.cache('bad/flipped')} to download it again" in flipped


def test_an_upload_that_cannot_work_writes_nothing(hub: Hub, online: Outcomes) -> None:
    name, revision, private, token = (one.line for one in online["not pushed"])
    assert "hf://moons: expected hf://OWNER/NAME" in name
    assert "--push: expected OWNER/NAME without a revision" in revision
    assert "--private: is about an upload" in private
    assert "--push: expected a token of the hub; log in with `hf auth login`" in token


def test_an_upload_that_fails_can_be_tried_again(hub: Hub, online: Outcomes) -> None:
    foreign, broken, done = online["push"]
    assert (foreign.status, broken.status, done.status) == (1, 1, 0)
    for found, said in ((foreign, "401 Unauthorized"), (broken, "500 Internal Server Error")):
        assert found.err.count("\n") == 1
        assert "failed is complete, but cannot be uploaded" in found.err
        assert said in found.err
    assert {p.name for p in (hub.root / "me" / "failed" / "main").iterdir()} == {*FILES, MANIFEST}


def test_what_was_downloaded_needs_no_server(offline: Outcomes) -> None:
    assert (offline["cached"][0].status, offline["cached"][0].err) == (0, "")
    (never,) = offline["never"]
    assert f"cannot be downloaded from {NOBODY} (ConnectError" in never.line


def test_damage_in_the_cache_is_refused(hub: Hub, offline: Outcomes) -> None:
    (damaged,) = offline["damaged"]
    assert "hf://me/late: model.safetensors is not as it was published" in damaged.line
    assert f"remove {hub.cache('me/late')} to download it again" in damaged.line
