"""The page of `lipcert explore`: its numbers, what it refuses, many visitors, and a real Chromium."""

from __future__ import annotations

import os
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from PIL import Image

from lipcert.data.examples import write_cifar10
from lipcert.errors import InputError
from lipcert.explore import playground
from lipcert.explore.computing import in_turn
from lipcert.explore.exhibit import Exhibit
from lipcert.explore.image_view import Judge, read_upload
from lipcert.explore.images_tab import Chosen, Looking, Visit, example
from lipcert.explore.playground import LOSSES, Wish, numbers_of, train
from lipcert.explore.playground_tab import Watching
from lipcert.explore.run_curves import charts_of, curves_html
from lipcert.explore.server import MAX_UPLOAD, served
from lipcert.recipes import execute, read_recipe
from lipcert.tables.kinds import from_above
from tests.browser import chromium_page, overheard

if TYPE_CHECKING:
    from playwright.sync_api import Page


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small network, trained on noise in the shape of CIFAR-10."""
    root = tmp_path_factory.mktemp("explore")
    images = write_cifar10(root / "data")["root"]
    few = ["train.batch_size=50", f"data.root={images}", "train.validate_every=1", "certify.tightness=null"]
    execute(read_recipe("cifar10-4c3f-cll", "smoke", [*few, "train.epochs=2"]), root / "run")
    return root / "run"


@pytest.fixture(scope="module")
def exhibit(run: Path) -> Exhibit:
    return Exhibit.open(str(run))


@pytest.fixture(scope="module")
def judge(exhibit: Exhibit) -> Judge:
    assert exhibit.judge is not None
    return exhibit.judge


@pytest.fixture(scope="module")
def image(exhibit: Exhibit) -> np.ndarray:
    assert exhibit.examples is not None
    return exhibit.examples.x[0].numpy()


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trainings of thirty steps."""
    monkeypatch.setattr(playground, "_QUICK", (*playground._QUICK, "train.epochs=3"))


@pytest.fixture(scope="module")
def photo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Neither of the size nor of the mode that the model takes."""
    path = tmp_path_factory.mktemp("photo") / "photo.png"
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (50, 70, 4), dtype=np.uint8)).save(path)
    return path


def value(html: str, name: str) -> str:
    """A number of the page."""
    found = re.search(rf'data-number="{name}">([^<]*)<', html)
    assert found is not None, html[:300]
    return found[1]


# The playground


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.usefixtures("quick")
def test_every_frame_of_a_training_is_proved(loss: str) -> None:
    frames = list(train(Wish(loss, eps=0.1, depth=2)))
    assert frames[0].step == 0
    assert [frame.step for frame in frames] == sorted({frame.step for frame in frames})
    last = frames[-1]
    assert last.step == last.steps == 30
    prover, data = last.picture.prover, last.picture.data
    assert len([layer for layer in prover.proved.bound.layers if layer.kind == "Linear"]) == 2
    certificate = prover(data.x)
    right = certificate.prediction == data.y
    assert value(numbers_of(last), "CRA") == f"{100 * (right & certificate.at(0.1)).double().mean():.1f} %"
    assert value(numbers_of(last), "clean") == f"{100 * right.double().mean():.1f} %"
    assert value(numbers_of(last), "K_f") == from_above(prover.k_f)
    # Earlier frames keep their own weights, whatever the training does to the network afterwards.
    first = frames[0].picture
    assert torch.equal(first.prover(data.x).radius, first.certificate.radius)


@pytest.mark.parametrize(
    "wrong",
    [{"loss": "hope"}, {"eps": 0.0}, {"eps": float("nan")}, {"slack": 0.5}, {"depth": 1000}, {"depth": None}],
)
def test_a_wish_that_cannot_be_granted_is_named(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        Wish(**wrong)


def request(visitor: str) -> Any:
    return SimpleNamespace(session_hash=visitor)


@pytest.mark.usefixtures("quick")
def test_a_new_training_replaces_the_old_and_stop_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(playground, "_EVERY", 0.0)
    watching = Watching()
    wish = ("CLL", 0.15, 0.05, 2)
    old, other = watching.watch(*wish, request("one")), watching.watch(*wish, request("two"))
    next(old)
    next(other)
    new = watching.watch(*wish, request("one"))
    next(new)
    assert list(old) == []
    assert next(new)
    watching.stop(request("one"))
    assert list(new) == []
    monkeypatch.setattr(playground, "_EVERY", 10.0)
    numbers, pictures = list(other)[-1]  # somebody else's goes on to its end
    assert value(numbers, "step") == "30 / 30"
    assert pictures.count("data:image/png;base64,") == 2
    assert "hope" in next(watching.watch("hope", 0.15, 0.05, 2, request("one")))[0]


# Images


def test_radii_against_rivals_agree_with_the_certificate(judge: Judge, exhibit: Exhibit) -> None:
    assert exhibit.examples is not None
    x = exhibit.examples.floats(slice(None))
    radii, certificate = judge.prover.rival_radii(x), judge.prover(x)
    assert torch.equal(radii.amin(1), certificate.radius)
    assert torch.equal(radii.argmin(1)[certificate.radius > 0], certificate.rival[certificate.radius > 0])
    assert torch.equal(radii.argmax(1), certificate.prediction)


def test_what_is_said_of_an_image(judge: Judge, image: np.ndarray) -> None:
    verdict = judge(image)
    certificate = judge.prover(torch.from_numpy(image[None]).float() / 255)
    assert verdict.label == judge.names[int(certificate.prediction)]
    assert verdict.radius == float(certificate.radius) == verdict.rivals[0][1]
    assert sorted([verdict.label, *(name for name, _ in verdict.rivals)]) == sorted(judge.names)
    assert 0.1 <= verdict.probability <= 1


def test_no_attack_succeeds_where_it_is_certified(judge: Judge, image: np.ndarray) -> None:
    radius = judge(image).radius
    assert radius > 0
    inside = judge.attack(image, 0.99 * radius)
    assert inside.certified
    assert not inside.changed
    assert not inside.broken
    assert 0 < inside.distance <= 0.99 * radius * (1 + 1e-9)
    far = judge.attack(image, 20.0)
    assert far.changed
    assert not far.certified
    assert far.label != judge(image).label
    assert judge.attack(image, 0.0).distance == 0


def test_the_page_says_whether_it_is_certified(judge: Judge, image: np.ndarray) -> None:
    looking, radius = Looking(judge, None), judge(image).radius
    first, last = looking.look(Visit(), Chosen(image), radius / 2)
    assert "Attacking" in first[1]
    assert "no attack can succeed" in last[1]
    assert value(last[2], "class") == judge(image).label
    assert float(value(last[2], "radius")) <= radius
    assert last[2].count("<tr") == 9
    assert "the class is" in list(looking.look(Visit(), Chosen(image), 20.0))[-1][1]
    assert list(looking.look(Visit(), None, 0.5)) == []


def test_the_true_label_stands_beside_an_image_whose_label_is_known(judge: Judge, exhibit: Exhibit) -> None:
    assert exhibit.examples is not None
    looking = Looking(judge, exhibit.examples)
    for index in (0, 3):
        chosen = example(exhibit.examples, index)
        label, predicted = judge.names[int(exhibit.examples.y[index])], judge(chosen.image).label
        picked: Any = SimpleNamespace(index=index)
        kept, attempt, verdict = list(looking.pick(Visit(), 0.0, picked))[-1]
        assert kept is not None
        assert kept.label == chosen.label == label
        assert f"original; true label {label}<" in attempt
        assert value(verdict, "true label") == label
        assert ("as predicted" in verdict) == (predicted == label)
        assert ("the prediction is wrong" in verdict) == (predicted != label)
        # The label stays when only ε changes; an upload has none.
        assert f"true label {label}<" in list(looking.look(Visit(), kept, 0.1))[-1][1]
    _, attempt, verdict = list(looking.look(Visit(), Chosen(chosen.image), 0.0))[-1]
    assert "true label" not in attempt + verdict


def test_a_slow_answer_never_replaces_a_later_one(judge: Judge, image: np.ndarray) -> None:
    looking, visit, other = Looking(judge, None), Visit(), Visit()
    chosen = Chosen(image)
    slow, neighbour = looking.look(visit, chosen, 0.1), looking.look(other, chosen, 0.1)
    next(slow)
    next(neighbour)
    assert len(list(looking.look(visit, Chosen(image[:, ::-1]), 0.1))) == 2
    assert list(slow) == []
    assert len(list(neighbour)) == 1


def spoiled(folder: Path, photo: Path) -> dict[str, str]:
    """Files that are no images, and what is said of them."""
    (folder / "text.png").write_text("I am a poem.")
    (folder / "cut.png").write_bytes(photo.read_bytes()[:3000])
    (folder / "empty.png").write_bytes(b"")
    (folder / "<b>bold.png").write_bytes(b"x")
    # Pillow looks at the content: this one makes its decoder of another format raise an IndexError.
    (folder / "qoi.png").write_bytes(b"qoif" + struct.pack(">II", 8, 8) + b"\x03\x00\xc0")
    Image.new("1", (8000, 8000)).save(folder / "bomb.png")
    Image.fromarray(np.zeros((9, 9), dtype=np.uint16)).save(folder / "deep.png")
    return {
        **dict.fromkeys(
            ["text.png", "cut.png", "empty.png", "<b>bold.png", "qoi.png"], "not a readable image"
        ),
        "bomb.png": "8000×8000 pixels",
        "deep.png": "more than 8 bits",
    }


def test_uploads_that_are_no_images_get_a_sentence(judge: Judge, photo: Path, tmp_path: Path) -> None:
    for name, complaint in spoiled(tmp_path, photo).items():
        ((image, said, verdict),) = Looking(judge, None).receive(Visit(), str(tmp_path / name), 0.5)
        assert image is None
        assert complaint in said
        assert name.replace("<b>", "&lt;b&gt;") in said
        assert str(tmp_path) not in said
        assert "<b>" not in said
        assert verdict == ""
    ((_, said, _),) = Looking(judge, None).receive(Visit(), None, 0.5)
    assert "expected an image, got nothing" in said
    assert read_upload(photo, judge.form).shape == (3, 32, 32)


# What there is to show


def test_a_run_shows_its_images_and_curves(exhibit: Exhibit) -> None:
    assert exhibit.examples is not None
    assert len(exhibit.examples) == 16
    assert exhibit.run is not None
    names = [chart.name for chart in charts_of(exhibit.run)]
    assert names == ["radius", "training-loss", "training-clean", "training-cra", "training-constant"]
    assert curves_html(exhibit.run).count("<img") == 5


def test_what_is_missing_is_said(run: Path) -> None:
    alone = Exhibit.open(str(run / "model.safetensors"))
    assert alone.judge is not None
    assert alone.examples is None
    assert "names no data" in alone.remark
    assert "no curves" in curves_html(alone.run)
    moons = Exhibit.open("moons-cll")
    assert moons.judge is None
    assert "not grey or RGB images" in moons.remark
    assert "no curves of training" in curves_html(moons.run)
    assert curves_html(moons.run).count("<img") == 1


def test_a_run_whose_data_is_gone_still_takes_uploads(run: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "moved"
    elsewhere.mkdir()
    for name in ("model.safetensors", "certificate.json"):
        (elsewhere / name).write_bytes((run / name).read_bytes())
    recipe = (run / "recipe.yaml").read_text()
    (elsewhere / "recipe.yaml").write_text(re.sub(r"root: .*", f"root: {tmp_path / 'gone'}", recipe))
    found = Exhibit.open(str(elsewhere))
    assert found.judge is not None
    assert found.examples is None
    assert "upload some" in found.remark


# The server


@pytest.fixture(scope="module")
def address(exhibit: Exhibit) -> Iterator[str]:
    with served(exhibit) as address:
        yield address


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
def test_ten_visitors_at_once(address: str, photo: Path) -> None:
    from gradio_client import Client, handle_file

    def visit(number: int) -> tuple[str, str, str]:
        client = Client(address, verbose=False)
        attempt, verdict = client.predict(handle_file(photo), 0.1, api_name="/upload")
        numbers, _ = client.predict("CLL", 0.05 + 0.01 * number, 0.05, 1, api_name="/train")
        return attempt, value(verdict, "class"), numbers

    with ThreadPoolExecutor(10) as pool:
        found = list(pool.map(visit, range(10)))
    assert len({label for _, label, _ in found}) == 1
    for number, (attempt, _, numbers) in enumerate(found):
        assert attempt.count("<img") == 3
        assert value(numbers, "step") == "30 / 30"
        assert f"ε = {0.05 + 0.01 * number:g}" in numbers


def test_the_server_limits_uploads_and_survives_them(
    address: str, judge: Judge, photo: Path, tmp_path: Path
) -> None:
    import requests
    from gradio_client import Client, handle_file

    large = tmp_path / "large.png"
    large.write_bytes(bytes(MAX_UPLOAD + 1))
    sent = requests.post(f"{address}gradio_api/upload", files={"files": large.open("rb")}, timeout=30)
    assert sent.status_code == 413
    client = Client(address, verbose=False)
    for name, complaint in spoiled(tmp_path, photo).items():
        if "<" not in name:  # which no browser would send as it is
            assert complaint in client.predict(handle_file(tmp_path / name), 0.5, api_name="/upload")[0]
    stolen = {"path": "/etc/hostname", "meta": {"_type": "gradio.FileData"}}
    with pytest.raises(Exception):  # noqa: B017  whatever Gradio calls it
        client.predict(stolen, 0.5, api_name="/upload")
    with pytest.raises(Exception):  # noqa: B017
        client.predict("CLL", 0.15, 0.05, 10**6, api_name="/train")
    verdict = client.predict(handle_file(photo), 0.1, api_name="/upload")[1]
    assert value(verdict, "class") == judge(read_upload(photo, judge.form)).label


def test_only_this_machine_is_served(address: str) -> None:
    assert address.startswith("http://127.0.0.1:")
    port = int(address.rstrip("/").rpartition(":")[2])
    with socket.socket() as elsewhere:  # another address of this machine, as the network would use
        assert elsewhere.connect_ex(("127.0.0.2", port)) != 0


def test_wrong_input_is_one_line_and_status_2(cli: Any, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*arguments: str) -> str:
        status, out, err = cli("explore", *arguments, "--no-browser")
        assert status == 2
        assert out == ""
        assert len(err.strip().splitlines()) == 1
        return str(err)

    assert "no such run directory" in refused("nowhere")
    assert "is the run finished?" in refused(str(run.parent))
    assert "--port" in refused("moons-cll", "--port", "70000")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert f"--port: {port} is taken" in refused("moons-cll", "--port", str(port))
    monkeypatch.setitem(sys.modules, "gradio", None)
    assert "pip install 'lipcert[explore]'" in refused()


@pytest.mark.parametrize("ending", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_ctrl_c_and_sigterm_end_it_cleanly(ending: signal.Signals, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-m", "lipcert.cli", "explore", "moons-cll", "--no-browser", "--port", str(port)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert process.stdout is not None
    hung = threading.Timer(120, process.kill)
    hung.start()
    try:
        first = process.stdout.readline()  # once it is served
        assert first == f"lipcert explore: http://127.0.0.1:{port}/ (Ctrl-C stops)\n"
        assert socket.socket().connect_ex(("127.0.0.1", port)) == 0
        process.send_signal(ending)
        out, err = process.communicate()
    finally:
        hung.cancel()
        process.kill()
    assert process.returncode == 0
    assert out.strip() == "stopped"
    assert err == ""
    assert socket.socket().connect_ex(("127.0.0.1", port)) != 0
    assert list(tmp_path.iterdir()) == []  # uploads would be there


# The page in a browser


@pytest.fixture(scope="module")
def browser_page() -> Iterator[Page]:
    with chromium_page() as page:
        yield page


def shown(page: Page, where: str, name: str) -> str:
    return page.locator(f"{where} [data-number='{name}']").inner_text()


def wait_for_text(page: Page, selector: str, text: str) -> None:
    page.locator(selector, has_text=text).first.wait_for(timeout=90_000)


@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.usefixtures("quick")
def test_the_page_works_in_a_browser(
    width: int, browser_page: Page, address: str, judge: Judge, photo: Path, tmp_path: Path
) -> None:
    page = browser_page
    complaints, asked = overheard(page)
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(address)
    page.wait_for_selector("#moons-numbers dd")
    assert shown(page, "#moons-numbers", "step").startswith("0 /")

    slider = page.locator("#eps input[type=range]")
    slider.focus()
    for _ in range(5):
        slider.press("ArrowRight")
    page.locator("#train").click()
    wait_for_text(page, "#moons-numbers", "30 / 30")
    wait_for_text(page, "#moons-numbers", "certified at ε = 0.2")
    frame = list(in_turn(train(Wish(eps=0.2))))[-1]
    for name in ("CRA", "clean", "K_f", "K_hf"):
        assert shown(page, "#moons-numbers", name) == value(numbers_of(frame), name)
    assert page.locator("#moons-pictures img").count() == 2
    check_width(page, width)

    page.get_by_role("tab", name="Images").click()
    wait_for_text(page, "#attempt", "original")
    page.locator("#gallery button img").nth(3).click()
    label = page.locator("#gallery .caption-label").nth(3).inner_text()
    wait_for_text(page, "#attempt", f"original; true label {label}")
    assert shown(page, "#verdict", "true label") == label
    send(page, photo)
    verdict = judge(read_upload(photo, judge.form))
    wait_for_text(page, "#verdict", f"{np.floor(1e4 * verdict.radius) / 1e4:.4f}")
    wait_for_text(page, "#attempt", "original")
    assert shown(page, "#verdict", "class") == verdict.label
    page.locator("#attack-eps input[type=range]").focus()
    page.keyboard.press("Home")
    wait_for_text(page, "#attempt", "no attack can succeed within ε = 0")
    assert page.locator("#verdict table tr").count() == 9
    check_width(page, width)

    (tmp_path / "text.png").write_text("I am a poem.")
    send(page, tmp_path / "text.png")
    wait_for_text(page, "#attempt", "text.png: not a readable image")

    page.get_by_role("tab", name="Curves").click()
    page.locator("#curves img").first.wait_for()
    assert page.locator("#curves img").count() == 5
    check_width(page, width)
    assert not complaints
    assert [url for url in asked if not url.startswith((address, "data:", "blob:"))] == []


def send(page: Page, path: Path) -> None:
    with page.expect_file_chooser() as chooser:
        page.locator("#upload").click()
    chooser.value.set_files(path)


def check_width(page: Page, width: int) -> None:
    """No part of the page is wider than the window."""
    assert page.evaluate("document.documentElement.scrollWidth") <= width
