"""Images above a limit are made smaller, in every format, before any is left out.

Judged by Pillow and by the parts' own keys; the strict provider has its own limits.
"""

from __future__ import annotations

import base64
import builtins
import io
import json
from typing import Any

import pytest
from drawn_images import MIME, album, data_in, images_in, in_result, part, picture, sizes_in
from flow_driver import drive, played
from PIL import Image
from shapes import KEYS, MODELS, SIX, said, user

import trimtab
from trimtab.formats.engine import payloads
from trimtab.reducers import smaller_images
from trimtab.retry.flow import Accepted, Refused, flow
from trimtab.retry.learned_limits import LearnedLimits
from trimtab.settings import Settings
from trimtab_lab.testing import StrictProvider

WIDE = 10**9
SMALL = Settings(image_pixels=300)


def keys_of(value: Any) -> Any:
    """The shape of a part without its leaves."""
    return {key: keys_of(inner) for key, inner in value.items()} if isinstance(value, dict) else 0


def first_part(format: str, body: Any) -> Any:
    return body[KEYS[format]][0]["parts" if format == "gemini" else "content"][0]


@pytest.mark.parametrize("kind", MIME)
@pytest.mark.parametrize("format", SIX)
def test_an_image_above_the_limit_is_made_smaller_and_its_part_keeps_all_else(
    format: str, kind: str
) -> None:
    body = album(format, part(format, picture(640, 400, kind), kind))
    session = trimtab.Session(recall=True)
    done = session.fit(body, window=WIDE, settings=SMALL)
    assert sizes_in(done.request) == [(300, 188)]
    (image,) = images_in(done.request)
    now, was = first_part(format, done.request), first_part(format, body)
    assert keys_of(now) == keys_of(was)
    if kind == "GIF":  # a PNG of its first frame
        assert image.format == "PNG"
        assert "gif" not in json.dumps(now)
    else:
        assert image.format == kind
    (edit,) = done.report.edits
    assert "640 × 400 → 300 × 188" in edit.why
    assert "640 × 400 → 300 × 188" in str(done.report)
    assert json.loads(session.recall(edit.handle)) == was
    assert session.shown(edit.handle) == "image 640 × 400 → 300 × 188"
    assert trimtab.check(done.request) == ()


@pytest.mark.parametrize("format", SIX)
def test_later_turns_and_other_machines_send_the_same_bytes_whatever_their_pillow(
    format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = album(format, part(format, picture(640, 400)))
    session = trimtab.Session()
    sent = session.fit(body, window=WIDE, settings=SMALL).request
    longer = {**body, KEYS[format]: [*body[KEYS[format]], *said(format, "."), *user(format, "Go.")]}
    monkeypatch.setattr(Image, "open", lambda *given, **more: pytest.fail("made again"))
    for other in (session, trimtab.Session(journal=json.loads(json.dumps(session.journal)))):
        again = other.fit(longer, window=WIDE, settings=SMALL)
        assert again.request[KEYS[format]][: len(sent[KEYS[format]])] == sent[KEYS[format]]
        assert not [edit for edit in again.report.edits if edit.new]


@pytest.mark.parametrize("format", SIX)
def test_a_smaller_image_is_not_changed_again_and_undo_brings_back_the_original(
    format: str,
) -> None:
    body = album(format, part(format, picture(640, 400)))
    session = trimtab.Session()
    done = session.fit(body, window=WIDE, settings=SMALL)
    assert trimtab.fit(done.request, window=WIDE, settings=SMALL).request is done.request
    session.undo(done.report.edits[0].handle)
    assert session.fit(body, window=WIDE).request == body


@pytest.mark.parametrize("format", SIX)
def test_bytes_are_changed_in_the_data_of_the_image_alone(format: str) -> None:
    body = json.dumps(album(format, part(format, picture(640, 400)))).encode()
    done = trimtab.fit(body, window=WIDE, settings=SMALL)
    (old,), (new,) = data_in(json.loads(body)), data_in(json.loads(done.request))
    assert done.request == body.replace(base64.b64encode(old), base64.b64encode(new))


def test_bytes_that_an_sdk_takes_stay_bytes() -> None:
    body = album("bedrock", {"image": {"format": "png", "source": {"bytes": picture(640, 400)}}})
    done = trimtab.fit(body, window=WIDE, settings=SMALL, format="bedrock")
    assert sizes_in(done.request) == [(300, 188)]
    assert isinstance(first_part("bedrock", done.request)["image"]["source"]["bytes"], bytes)


@pytest.mark.parametrize("format", SIX)
def test_images_in_tool_results_are_made_smaller_too(format: str) -> None:
    image = part(format, picture(640, 400))
    body = in_result(format, [image])
    done = trimtab.fit(body, window=WIDE, settings=SMALL, format=format)
    assert sizes_in(done.request) == [(300, 188)]
    assert trimtab.check(done.request, format=format) == ()


def screenshot(data: bytes) -> list[dict[str, Any]]:
    """A call of the computer tool of OpenAI, and what it saw."""
    shown = {
        "type": "computer_screenshot",
        "image_url": part("openai-responses", data)["image_url"],
    }
    call = {"type": "computer_call", "id": "cu_1", "call_id": "c1", "status": "completed",
            "action": {"type": "screenshot"}, "pending_safety_checks": []}  # fmt: skip
    return [call, {"type": "computer_call_output", "call_id": "c1", "output": shown}]


def generated(data: bytes, **more: Any) -> list[dict[str, Any]]:
    """An image that OpenAI's tool made."""
    result = base64.b64encode(data).decode()
    item = {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": result}
    return [{**item, **more}]


def interactions_input(data: bytes) -> dict[str, Any]:
    """An input that is one image."""
    return {"model": MODELS["gemini-interactions"], "input": part("gemini-interactions", data)}


def beside(*items: Any) -> dict[str, Any]:
    """A request of OpenAI Responses with these items in its history."""
    history = [*user("openai-responses", "Look."), *items, *user("openai-responses", "And now?")]
    return {"model": MODELS["openai-responses"], "input": history}


SEALED = {
    "a screenshot": lambda data: beside(*screenshot(data)),
    "an image that was made": lambda data: beside(*generated(data)),
    "an image that was made, with its format": lambda data: beside(
        *generated(data, output_format="png")
    ),
    "an input that is an image": interactions_input,
}


@pytest.mark.parametrize("what", SEALED)
def test_images_in_items_that_no_text_can_replace_are_made_smaller(what: str) -> None:
    data = picture(2_400, 1_500)
    body = SEALED[what](data)
    session = trimtab.Session()
    done = session.fit(body, window=WIDE, settings=SMALL)
    assert sizes_in(done.request) == [(300, 188)]
    assert trimtab.check(done.request) == ()
    (edit,) = done.report.edits
    assert base64.b64encode(data).decode() in session.recall(edit.handle)
    most = len(json.dumps(body)) * 9 // 10
    small = trimtab.fit(body, window=WIDE, settings=Settings(request_bytes=most)).request
    assert sizes_in(small) == [(1_568, 980)]
    assert len(json.dumps(small)) <= most


def test_an_image_of_openai_that_becomes_a_jpeg_says_so_where_it_has_a_format() -> None:
    photo = picture(900, 900, noise=True)
    for stated in ({"output_format": "png"}, {}):
        body = beside(*generated(photo, **stated))
        settings = Settings(image_bytes=len(photo) // 3)
        (image,) = images_in(made := trimtab.fit(body, window=WIDE, settings=settings).request)
        assert image.format == "JPEG"
        (item,) = (one for one in made["input"] if one.get("type") == "image_generation_call")
        assert item.keys() == generated(photo, **stated)[0].keys()
        assert item.get("output_format", "jpeg") == "jpeg"


def test_one_screenshot_in_place_of_another_is_not_shown_as_the_first() -> None:
    session = trimtab.Session()
    bodies = [beside(*screenshot(picture(640, 400, seed=seed))) for seed in range(2)]
    sent = [session.fit(body, window=WIDE, settings=SMALL).request for body in bodies]
    assert list(data_in(sent[0])) != list(data_in(sent[1]))


def test_a_signed_image_of_gemini_is_not_changed() -> None:
    image = {**part("gemini", picture(640, 400)), "thoughtSignature": "c2lnbmVk"}
    items = [*user("gemini", "Draw."), {"role": "model", "parts": [image]}, *user("gemini", "Go.")]
    body = {"contents": items}
    assert trimtab.fit(body, window=WIDE, settings=SMALL).request is body


def test_data_urls_are_read_in_any_case() -> None:
    url = part("openai-chat", picture(640, 400))["image_url"]["url"]
    loud = url.replace("data:image/png;base64", "DATA:IMAGE/PNG;BASE64")
    body = album("openai-chat", {"type": "image_url", "image_url": {"url": loud}})
    assert sizes_in(trimtab.fit(body, window=WIDE, settings=SMALL).request) == [(300, 188)]
    converted = trimtab.convert(body, to="anthropic").request
    assert sizes_in(converted) == [(640, 400)]


@pytest.mark.parametrize("format", SIX)
@pytest.mark.parametrize(
    "data", [b"\x89PNG\r\n\x1a\nno more", picture(640, 400)[:200], b"", b"GIF89a\xff\xff\xff\xff"]
)
def test_what_cannot_be_decoded_stays_as_it_is_unless_the_limit_was_given(
    format: str, data: bytes
) -> None:
    body = album(format, part(format, data), model="claude-sonnet-4-5")
    assert trimtab.fit(body, window=WIDE, format=format).request is body


def damaged(width: int = 8_001) -> bytes:
    """An image that says how large it is, and ends there."""
    return picture(width, 60)[:60]


def test_a_report_says_why_an_image_is_not_made_smaller() -> None:
    body = album("anthropic", part("anthropic", damaged()))
    done = trimtab.fit(body)
    assert done.request is body
    (warning,) = done.report.warnings
    assert "8,001 × 60" in warning
    assert "decoded" in warning
    left_out = trimtab.fit(body, settings=SMALL)
    assert "[image left out to fit]" in json.dumps(left_out.request)
    (warning,) = left_out.report.warnings
    assert "decoded" in warning


@pytest.mark.parametrize("format", ["anthropic", "bedrock"])
def test_a_budget_of_bytes_leaves_out_no_image_for_its_pixels(format: str) -> None:
    body = album(format, part(format, damaged()))
    assert trimtab.fit(body, settings=Settings(image_bytes=1_000_000)).request is body
    both = trimtab.fit(body, settings=Settings(image_bytes=50))
    assert "[image left out to fit]" in json.dumps(both.request)


def test_a_limit_of_pixels_that_was_set_does_not_lift_that_of_many_images() -> None:
    body = album("anthropic", *[part("anthropic", picture(2_100, 300))] * 21)
    done = trimtab.fit(body, settings=Settings(image_pixels=8_000))
    assert sizes_in(done.request) == [(2_000, 286)] * 21


# --- how much work it is ---------------------------------------------------------------------


@pytest.fixture
def saved(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kinds of files that Pillow wrote, in order."""
    kinds, save = list[str](), Image.Image.save

    def counted(image: Image.Image, file: Any, kind: str, **options: Any) -> None:
        kinds.append(kind)
        save(image, file, kind, **options)

    monkeypatch.setattr(Image.Image, "save", counted)
    return kinds


@pytest.mark.parametrize("format", SIX)
def test_equal_images_are_made_smaller_once(format: str, saved: list[str]) -> None:
    image = part(format, picture(640, 400))
    trimtab.fit(album(format, *[image] * 5), window=WIDE, settings=SMALL)
    assert len(saved) == 1


def test_a_limit_of_pixels_takes_one_file_for_each_image(saved: list[str]) -> None:
    images = [picture(2_100, 300, seed=seed) for seed in range(21)]
    saved.clear()
    done = trimtab.fit(album("anthropic", *(part("anthropic", data) for data in images)))
    assert sizes_in(done.request) == [(2_000, 286)] * 21
    assert len(saved) == 21


@pytest.mark.parametrize("share", [2, 5, 20])
@pytest.mark.parametrize("noise", [False, True])
def test_a_limit_of_bytes_takes_few_files_and_most_of_the_room(
    saved: list[str], noise: bool, share: int
) -> None:
    data = picture(1_600, 1_000, noise=noise)
    most = len(base64.b64encode(data)) // share
    saved.clear()
    body = album("openai-chat", part("openai-chat", data))
    made = trimtab.fit(body, window=WIDE, settings=Settings(image_bytes=most)).request
    assert 0.3 * most < len(base64.b64encode(next(data_in(made)))) <= most
    assert len(saved) <= 6


def test_the_work_of_one_request_is_bounded_and_the_report_names_what_stays_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(smaller_images, "MAX_WORK", 800_000)
    images = [part("anthropic", picture(8_001, 60, seed=seed)) for seed in range(2)]
    session, body = trimtab.Session(), album("anthropic", *images)
    done = session.fit(body)
    assert [size[0] for size in sizes_in(done.request)] == [8_000, 8_001]
    (warning,) = done.report.warnings
    assert "800,000 pixels" in warning
    again = session.fit(body)
    assert [size[0] for size in sizes_in(again.request)] == [8_000, 8_000]
    assert not again.report.warnings


# --- fewer pixels may be more bytes ----------------------------------------------------------


def drawing(width: int, height: int) -> bytes:
    """A drawing of few colours on a transparent ground: a small file."""
    image = Image.new("P", (width, height), 0)
    image.putpalette([0, 0, 0, 200, 30, 30, 30, 30, 200])
    for x in range(0, width - 20, 40):
        image.paste(1 + x // 40 % 2, (x, 10, x + 20, height - 10))
    file = io.BytesIO()
    image.save(file, "PNG", transparency=0)
    return file.getvalue()


def test_an_image_with_too_many_pixels_alone_keeps_all_that_are_allowed() -> None:
    data = drawing(840, 600)
    body = album("anthropic", part("anthropic", data))
    done = trimtab.fit(body, window=WIDE, settings=Settings(image_pixels=800))
    (image,) = images_in(done.request)
    assert image.size == (800, 571)
    assert image.convert("RGBA").getpixel((0, 0))[3] == 0  # type: ignore[index]
    (made,) = data_in(done.request)
    assert len(made) > len(data)


def test_bytes_that_fewer_pixels_cost_are_counted_for_the_body() -> None:
    images = [part("anthropic", drawing(840 + n, 600)) for n in range(6)]
    body = album("anthropic", *images)
    assert 6 * len(json.dumps(body)) < 48_000
    grown = trimtab.fit(body, window=WIDE, settings=Settings(image_pixels=800)).request
    assert len(json.dumps(grown)) > 48_000
    limits = Settings(image_pixels=800, request_bytes=48_000)
    done = trimtab.fit(body, window=WIDE, settings=limits)
    assert len(json.dumps(done.request)) <= 48_000


# --- limits that providers document: at the entrance, and nothing that they take -----------------


@pytest.mark.parametrize(
    ("format", "model"),
    [("anthropic", MODELS["anthropic"]), ("bedrock", MODELS["bedrock"])],
)
def test_more_than_8000_pixels_go_to_claude_as_2000_and_8000_as_they_are(
    format: str, model: str
) -> None:
    fits = album(format, part(format, picture(8_000, 20)), model=model)
    assert trimtab.fit(fits).request is fits
    wide = album(format, part(format, picture(8_001, 600)), model=model)
    assert max(sizes_in(trimtab.fit(wide).request)[0]) <= 8_000
    other = album(format, part(format, picture(8_001, 600)), model="amazon.nova-pro-v1:0")
    assert trimtab.fit(other, window=WIDE, format=format).request is other


def test_more_than_20_images_have_at_most_2000_pixels_and_20_keep_theirs() -> None:
    large, small = part("anthropic", picture(2_100, 300)), part("anthropic", picture(90, 50))
    some = album("anthropic", large, *[small] * 19)
    assert trimtab.fit(some).request is some
    many = album("anthropic", large, *[small] * 20)
    assert sizes_in(trimtab.fit(many).request) == [(2_000, 286), *[(90, 50)] * 20]


def test_claude_on_bedrock_gets_at_most_5_mb_of_base64_and_at_anthropic_more() -> None:
    noisy = picture(2_000, 2_000, noise=True)
    assert len(base64.b64encode(noisy)) > 5_242_880
    done = trimtab.fit(album("bedrock", part("bedrock", noisy)))
    (data,) = data_in(done.request)
    assert len(base64.b64encode(data)) <= 5_242_880
    (edit,) = done.report.edits
    assert "5,242,880 bytes" in edit.why
    at_anthropic = album("anthropic", part("anthropic", noisy))
    assert trimtab.fit(at_anthropic).request is at_anthropic


def test_without_pillow_a_request_stays_as_it_is_and_the_report_names_the_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = builtins.__import__

    def no_pillow(name: str, *given: Any, **more: Any) -> Any:
        if name.split(".")[0] == "PIL":
            raise ImportError(name)
        return real(name, *given, **more)

    wide = album("anthropic", part("anthropic", picture(8_001, 60)))
    monkeypatch.setattr(builtins, "__import__", no_pillow)
    done = trimtab.fit(wide)
    assert done.request is wide
    (warning,) = done.report.warnings
    assert "trimtab[images]" in warning


def test_images_become_smaller_before_any_is_left_out_of_a_body_with_too_many_bytes() -> None:
    images = [part("anthropic", picture(2_000, 1_500, seed=seed)) for seed in range(4)]
    body = album("anthropic", *images)
    limit = len(json.dumps(body)) * 9 // 10
    done = trimtab.fit(body, window=WIDE, settings=Settings(request_bytes=limit))
    assert len(json.dumps(done.request)) <= limit
    assert sizes_in(done.request) == [(1_568, 1_176)] * 4


# --- limits that a refusal names ------------------------------------------------------------------


@pytest.mark.parametrize("limit", [{"image_pixels": 500}, {"image_bytes": 9_000}])
@pytest.mark.parametrize("format", SIX)
def test_a_refusal_that_names_an_image_makes_it_smaller_and_later_ones_at_once(
    format: str, limit: dict[str, int]
) -> None:
    provider, session = StrictProvider(window=100_000, **limit), trimtab.Session()
    small, large = picture(90, 50), picture(1_200, 800)
    body = album(format, part(format, small), part(format, large))
    body.pop("stream", None)
    learned = LearnedLimits()
    for attempts, parts in ((2, [large]), (1, [large, picture(1_200, 800, seed=1)])):
        body = album(format, *(part(format, data) for data in (small, *parts)))
        done = drive(provider, format, body, session.fit, learned=learned, key="host/model")
        assert done.status == 200, done.body
        assert done.done.attempts == attempts
        sizes = sizes_in(json.loads(done.sent[-1]))
        assert sizes[0] == (90, 50)
        assert len(sizes) == 1 + len(parts)


@pytest.mark.parametrize("format", SIX)
def test_a_refusal_for_pixels_is_answered_by_fewer_pixels_though_they_are_more_bytes(
    format: str,
) -> None:
    data, provider = drawing(840, 600), StrictProvider(window=100_000, image_pixels=800)
    done = drive(provider, format, album(format, part(format, data)), trimtab.Session().fit)
    assert done.status == 200
    assert sizes_in(json.loads(done.sent[-1])) == [(800, 571)]
    assert len(done.sent[-1]) > len(done.sent[0])


def test_many_images_refused_by_a_gateway_are_made_smaller() -> None:
    words = (
        "messages.19.content.27.image.source.base64.data: At least one of the image dimensions "
        "exceed max allowed size for many-image requests: 2000 pixels"
    )
    refused = {"error": {"message": words, "type": "invalid_request_error"}}
    body = album("openai-chat", *[part("openai-chat", picture(2_100, 300))] * 21)
    sent = list(_played(body, refused))
    assert sizes_in(sent[-1]) == [(2_000, 286)] * 21


def test_an_image_by_url_that_is_refused_is_left_out_as_it_cannot_be_made_smaller() -> None:
    words = "image exceeds 5 MB maximum: 7167852 bytes > 5242880 bytes"
    url = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
    sent = list(_played(album("openai-chat", url), {"error": {"message": words}}))
    assert len(sent) == 2
    assert "[image left out to fit]" in json.dumps(sent[-1])


def _played(body: Any, refused: Any) -> list[Any]:
    session, answers = trimtab.Session(), iter([Refused(400, refused)])
    run = flow(body, lambda request, **more: session.fit(request, **{"window": WIDE, **more}))
    return played(run, lambda request: next(answers, Accepted()))[1]


# --- how large an image is, read from its head ---------------------------------------------------


@pytest.mark.parametrize("size", [(1, 1), (640, 400), (3, 9_000)])
@pytest.mark.parametrize("kind", MIME)
def test_the_size_of_an_image_is_read_from_its_head(kind: str, size: tuple[int, int]) -> None:
    data = picture(*size, kind)
    found = payloads.picture(part("gemini", data, kind))
    assert found == (*size, len(base64.b64encode(data)))


@pytest.mark.parametrize(
    "options",
    [{"lossless": True}, {"exif": b"Exif\0\0" + b"x" * 60_000}, {"progressive": True}],
)
def test_odd_files_too(options: dict[str, Any]) -> None:
    kind, file = "WEBP" if "lossless" in options else "JPEG", io.BytesIO()
    Image.new("RGB", (321, 123)).save(file, kind, **options)
    found = payloads.picture(part("anthropic", file.getvalue(), kind))
    assert found is not None
    assert found[:2] == (321, 123)
    clear = io.BytesIO()
    Image.new("RGBA", (321, 123), (0, 0, 0, 0)).save(clear, "WEBP")
    found = payloads.picture(part("anthropic", clear.getvalue(), "WEBP"))
    assert found is not None
    assert found[:2] == (321, 123)


@pytest.mark.parametrize(
    ("model", "many", "left"),
    [
        ("claude-haiku-4-5", 120, 100),
        ("claude-opus-4-8", 120, 120),
        ("claude-opus-4-8", 601, 600),
        ("claude-unheard-of-9", 120, 120),
    ],
)
def test_a_model_with_a_large_window_takes_600_images(model: str, many: int, left: int) -> None:
    source = {"type": "url", "url": "https://example.com/a.png"}
    content = [{"type": "image", "source": source}] * many + [{"type": "text", "text": "Which?"}]
    body = {"model": model, "max_tokens": 9, "messages": [{"role": "user", "content": content}]}
    sent = trimtab.fit(body, window=2_000_000).request
    assert sum(one["type"] == "image" for one in sent["messages"][0]["content"]) == left
