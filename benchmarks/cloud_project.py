"""The projects that `cloud_batches.py` works on: their pages, their recipe, what has landed."""

from __future__ import annotations

import hashlib
import io
import json
import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cloud_bare import BUCKET, MAX_TOKENS, MODELS, PICTURE_PROMPT, PROMPT, ROLE

__all__ = ["make_project"]

KILOBYTES = 300
WORDS = "Received of the bearer the sum of four pounds two shillings, being the rent of the mill. "

STEPS = '''
import base64

PROMPT = {prompt!r}
PICTURE_PROMPT = {picture_prompt!r}


def text(page, context):
    raise AssertionError("its results are in the library")


def question(page, context):
    """The words and the picture, in base64."""
    if "text" in context.needs:
        return PROMPT.format(text=context.needs["text"]["text"]), None
    return PICTURE_PROMPT, base64.b64encode(page.data).decode()


def ask_openai(page, context):
    words, picture = question(page, context)
    content = [{{"type": "text", "text": words}}]
    if picture:
        url = f"data:image/jpeg;base64,{{picture}}"
        content.insert(0, {{"type": "image_url", "image_url": {{"url": url}}}})
    answer = context.client.chat.completions.create(
        model=context.model,
        max_completion_tokens={tokens},
        messages=[{{"role": "user", "content": content}}],
    )
    return {{"text": answer.choices[0].message.content}}


def ask_anthropic(page, context):
    words, picture = question(page, context)
    content = [{{"type": "text", "text": words}}]
    if picture:
        source = {{"type": "base64", "media_type": "image/jpeg", "data": picture}}
        content.insert(0, {{"type": "image", "source": source}})
    answer = context.client.messages.create(
        model=context.model,
        max_tokens={tokens},
        messages=[{{"role": "user", "content": content}}],
    )
    return {{"text": answer.content[0].text}}


def ask_gemini(page, context):
    words, picture = question(page, context)
    parts = [{{"text": words}}]
    if picture:
        parts.insert(0, {{"inlineData": {{"mimeType": "image/jpeg", "data": picture}}}})
    answer = context.client.models.generate_content(
        model=context.model,
        contents=[{{"role": "user", "parts": parts}}],
        config={{"maxOutputTokens": {tokens}}},
    )
    return {{"text": answer.text}}


def ask_bedrock(page, context):
    words, picture = question(page, context)
    content = [{{"text": words}}]
    if picture:
        content.insert(0, {{"image": {{"format": "jpeg", "source": {{"bytes": page.data}}}}}})
    answer = context.client.converse(
        modelId=context.model,
        inferenceConfig={{"maxTokens": {tokens}}},
        messages=[{{"role": "user", "content": content}}],
    )
    return {{"text": answer["output"]["message"]["content"][0]["text"]}}
'''


def make_project(folder: Path, pages: int, *, images: bool, batch_size: int) -> None:
    """A project with so many pages, a step of each kind at each provider, and nothing sent."""
    write_project(folder, batch_size, images)
    if images:
        write_images(folder, pages)
    else:
        write_texts(folder, pages)


def write_project(folder: Path, batch_size: int, images: bool) -> None:
    for name in ("recipes", "prompts", "pages/box"):
        (folder / name).mkdir(parents=True)
    source = {"root": "pages", "batch_size": batch_size}
    places = {"bedrock": {"bucket": BUCKET, "role_arn": ROLE}}
    project: dict[str, Any] = {"name": "bench", "sources": {"pages": source}, "places": places}
    project["pages_may_leave"] = True
    (folder / "project.yaml").write_text(json.dumps(project))
    (folder / "prompts" / "read.md").write_text(PICTURE_PROMPT if images else PROMPT)
    code = STEPS.format(prompt=PROMPT, picture_prompt=PICTURE_PROMPT, tokens=MAX_TOKENS)
    (folder / "bench_steps.py").write_text(code)
    needs = [] if images else ["text"]
    steps: list[dict[str, Any]] = [{"name": "text", "run": "bench_steps:text"}]
    for provider, model in MODELS.items():
        place = {"place": provider, "model": model, "needs": needs}
        declared = {"run": "prompt", "prompt": "prompts/read.md", "max_tokens": MAX_TOKENS}
        steps.append({"name": f"declared_{provider}", **declared, **place})
        steps.append(
            {"name": f"captured_{provider}", "run": f"bench_steps:ask_{provider}", **place}
        )
    recipe = {"recipe": "bench", "source": "pages", "consent": "pages_may_leave", "steps": steps}
    (folder / "recipes" / "bench.yaml").write_text(json.dumps(recipe))


def write_texts(folder: Path, requests: int) -> None:
    """A page's results of the needed step in the library, as if they had been computed."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from recipes_orchestration.engine.engine import open_engine
    from recipes_orchestration.ledger.pages import FoundPage
    from recipes_orchestration.library import Result
    from recipes_orchestration.project import load_project
    from recipes_orchestration.recipe import page_key

    names = [f"box/scan-{number:06d}.jpg" for number in range(requests)]
    texts = [f"Page {number}. {WORDS * 17}" for number in range(requests)]
    shas = [hashlib.sha256(name.encode()).hexdigest() for name in names]
    pq.write_table(pa.table({"page_id": names, "text": texts}), folder / "texts.parquet")
    with open_engine(load_project(folder)) as engine:
        size = engine.project.source("pages").batch_size
        fingerprint = engine.project.recipe("bench").fingerprint("text")
        found = [
            FoundPage(name, name, None, sha, 812_345, f"812345:17617{number:014d}")
            for number, (name, sha) in enumerate(zip(names, shas, strict=True))
        ]
        starts = range(0, requests, size)
        engine.ledger.pages.record(
            "pages",
            "box",
            upsert=found,
            gone=(),
            new_batches=[(n, names[start : start + size]) for n, start in enumerate(starts, 1)],
        )
        for number, start in enumerate(starts, 1):
            rows = [
                Result(
                    page_id=names[at],
                    key=page_key(fingerprint, shas[at]),
                    value={"text": texts[at]},
                    seconds=1.25,
                    task="written-by-script",
                    landed_at=datetime.now(UTC),
                )
                for at in range(start, min(start + size, requests))
            ]
            engine.library.land("bench", "text", f"box/{number:04d}", "t", None, rows)


def write_images(folder: Path, images: int) -> None:
    """JPEG files of 300 KB that all differ in a comment."""
    from PIL import Image

    from recipes_orchestration.engine.discover import discover
    from recipes_orchestration.engine.engine import open_engine
    from recipes_orchestration.project import load_project

    chance = random.Random(1)
    image = Image.frombytes("L", (500, 700), chance.randbytes(350_000)).resize((1000, 1400))
    data = b""
    for quality in range(30, 96):
        stream = io.BytesIO()
        image.save(stream, "JPEG", quality=quality)
        if len(stream.getvalue()) > KILOBYTES * 1000 - 20:
            break
        data = stream.getvalue()
    for number in range(images):
        note = b"%06d" % number
        note += bytes(KILOBYTES * 1000 - len(data) - 4 - len(note))
        comment = b"\xff\xfe" + (len(note) + 2).to_bytes(2, "big") + note
        path = folder / "pages" / "box" / f"scan-{number:06d}.jpg"
        path.write_bytes(data[:2] + comment + data[2:])
    with open_engine(load_project(folder)) as engine:
        size = engine.project.source("pages").batch_size
        discover(engine.source("pages"), engine.ledger, batch_size=size)
