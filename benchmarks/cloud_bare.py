"""What `cloud_batches.py` compares with: the shortest script on each provider's own SDK.

Each script reads its pages, makes the requests, sends them as a batch, polls, fetches the answers,
parses them and writes one Parquet file. It keeps no raw answers, no prices and no state, retries
nothing and would send everything twice after a lost reply.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["BARE", "BUCKET", "MAX_TOKENS", "MODELS", "PICTURE_PROMPT", "PROMPT", "ROLE"]

PROMPT = "Correct the words of this page and change nothing else.\n\n{text}"
PICTURE_PROMPT = "Read this page as it is written."
MAX_TOKENS = 400
MODELS = {
    "anthropic": "claude-sonnet-4-5",
    "openai": "gpt-4.1-mini",
    "gemini": "gemini-2.5-flash",
    "bedrock": "anthropic.claude-3-haiku-20240307-v1:0",
}
# A rehearsed Bedrock has this bucket.
BUCKET = "rehearsal"
ROLE = "arn:aws:iam::123456789012:role/batches"
# A file of OpenAI's batches has at most so many bytes.
CAP = 200_000_000

Pages = Iterator[tuple[str, str, bytes | None]]


def pages_of(folder: Path, images: bool) -> Pages:
    """Page id, prompt and picture."""
    if images:
        for path in sorted((folder / "pages" / "box").iterdir()):
            yield path.name, PICTURE_PROMPT, path.read_bytes()
        return
    table = pq.read_table(folder / "texts.parquet")
    ids, texts = table.column("page_id").to_pylist(), table.column("text").to_pylist()
    for page_id, text in zip(ids, texts, strict=True):
        yield page_id, PROMPT.format(text=text), None


def write(folder: Path, rows: list[dict[str, Any]]) -> int:
    pq.write_table(pa.Table.from_pylist(rows), folder / "bare.parquet", compression="zstd")
    return len(rows)


def openai_body(prompt: str, picture: bytes | None) -> dict[str, Any]:
    content: Any = [{"type": "text", "text": prompt}]
    if picture is not None:
        url = f"data:image/jpeg;base64,{base64.b64encode(picture).decode()}"
        content.insert(0, {"type": "image_url", "image_url": {"url": url}})
    return {
        "model": MODELS["openai"],
        "max_completion_tokens": MAX_TOKENS,
        "messages": [{"role": "user", "content": content}],
    }


def openai_files(folder: Path, pages: Pages, names: dict[str, str]) -> Iterator[Path]:
    """Files of requests, a further one where the cap on bytes is met."""
    size, number = 0, 0
    file = folder / "requests-0.jsonl"
    stream = file.open("wb")
    for page_id, prompt, picture in pages:
        id = f"request-{len(names)}"
        names[id] = page_id
        line = {
            "custom_id": id,
            "method": "POST",
            "url": "/v1/chat/completions",
            "body": openai_body(prompt, picture),
        }
        data = json.dumps(line).encode() + b"\n"
        if size + len(data) > CAP:
            stream.close()
            yield file
            size, number = 0, number + 1
            file = folder / f"requests-{number}.jsonl"
            stream = file.open("wb")
        stream.write(data)
        size += len(data)
    stream.close()
    yield file


def bare_openai(folder: Path, images: bool) -> int:
    import openai

    rows: list[dict[str, Any]] = []
    with openai.OpenAI() as client:
        names: dict[str, str] = {}
        for path in openai_files(folder, pages_of(folder, images), names):
            with path.open("rb") as stream:
                file = client.files.create(file=stream, purpose="batch")
            batch = client.batches.create(
                input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h"
            )
            while (batch := client.batches.retrieve(batch.id)).status != "completed":
                time.sleep(0.5)
            assert batch.output_file_id is not None
            content = client.files.content(batch.output_file_id)
            for line in content.text.split("\n"):
                if line:
                    answer = json.loads(line)
                    body = answer["response"]["body"]
                    rows.append(
                        {
                            "page_id": names[answer["custom_id"]],
                            "text": body["choices"][0]["message"]["content"],
                            "model": body["model"],
                            "tokens_in": body["usage"]["prompt_tokens"],
                            "tokens_out": body["usage"]["completion_tokens"],
                        }
                    )
    return write(folder, rows)


def anthropic_params(prompt: str, picture: bytes | None) -> dict[str, Any]:
    content: Any = [{"type": "text", "text": prompt}]
    if picture is not None:
        data = base64.b64encode(picture).decode()
        source = {"type": "base64", "media_type": "image/jpeg", "data": data}
        content.insert(0, {"type": "image", "source": source})
    return {
        "model": MODELS["anthropic"],
        "max_tokens": MAX_TOKENS,
        "messages": [{"role": "user", "content": content}],
    }


def bare_anthropic(folder: Path, images: bool) -> int:
    import anthropic

    names: dict[str, str] = {}
    requests: list[Any] = []
    for page_id, prompt, picture in pages_of(folder, images):
        id = f"request-{len(names)}"
        names[id] = page_id
        requests.append({"custom_id": id, "params": anthropic_params(prompt, picture)})
    rows: list[dict[str, Any]] = []
    with anthropic.Anthropic() as client:
        batch = client.messages.batches.create(requests=requests)
        while (batch := client.messages.batches.retrieve(batch.id)).processing_status != "ended":
            time.sleep(0.5)
        for line in client.messages.batches.results(batch.id):
            assert line.result.type == "succeeded"
            message = line.result.message
            assert message.content[0].type == "text"
            rows.append(
                {
                    "page_id": names[line.custom_id],
                    "text": message.content[0].text,
                    "model": message.model,
                    "tokens_in": message.usage.input_tokens,
                    "tokens_out": message.usage.output_tokens,
                }
            )
    return write(folder, rows)


def bare_gemini(folder: Path, images: bool) -> int:
    from google import genai

    names: dict[str, str] = {}
    path = folder / "requests-0.jsonl"
    with path.open("wb") as stream:
        for page_id, prompt, picture in pages_of(folder, images):
            id = f"request-{len(names)}"
            names[id] = page_id
            parts: list[Any] = [{"text": prompt}]
            if picture is not None:
                data = base64.b64encode(picture).decode()
                parts.insert(0, {"inlineData": {"mimeType": "image/jpeg", "data": data}})
            request = {
                "contents": [{"role": "user", "parts": parts}],
                "generationConfig": {"maxOutputTokens": MAX_TOKENS},
            }
            stream.write(json.dumps({"key": id, "request": request}).encode() + b"\n")
    rows: list[dict[str, Any]] = []
    with genai.Client() as client:
        file = client.files.upload(file=str(path), config={"mime_type": "application/jsonl"})
        job = client.batches.create(model=MODELS["gemini"], src=str(file.name))
        while (job := client.batches.get(name=str(job.name))).state != "JOB_STATE_SUCCEEDED":
            time.sleep(0.5)
        assert job.dest is not None
        content = client.files.download(file=str(job.dest.file_name))
        for line in content.split(b"\n"):
            if line:
                answer = json.loads(line)
                response = answer["response"]
                rows.append(
                    {
                        "page_id": names[answer["key"]],
                        "text": response["candidates"][0]["content"]["parts"][0]["text"],
                        "model": response.get("modelVersion"),
                        "tokens_in": response["usageMetadata"]["promptTokenCount"],
                        "tokens_out": response["usageMetadata"]["candidatesTokenCount"],
                    }
                )
    return write(folder, rows)


def bare_bedrock(folder: Path, images: bool) -> int:
    import boto3

    names: dict[str, str] = {}
    path = folder / "requests-0.jsonl"
    with path.open("wb") as stream:
        for page_id, prompt, picture in pages_of(folder, images):
            id = f"request-{len(names):08d}"
            names[id] = page_id
            content: list[Any] = [{"text": prompt}]
            if picture is not None:
                data = base64.b64encode(picture).decode()
                content.insert(0, {"image": {"format": "jpeg", "source": {"bytes": data}}})
            record = {
                "messages": [{"role": "user", "content": content}],
                "inferenceConfig": {"maxTokens": MAX_TOKENS},
            }
            line = json.dumps({"recordId": id, "modelInput": record})
            stream.write(line.encode() + b"\n")
    s3: Any = boto3.client("s3")
    bedrock: Any = boto3.client("bedrock")
    s3.upload_file(str(path), BUCKET, "bare/requests.jsonl")
    source = {"s3InputFormat": "JSONL", "s3Uri": f"s3://{BUCKET}/bare/requests.jsonl"}
    arn = bedrock.create_model_invocation_job(
        jobName=f"bare-{time.time_ns()}",
        roleArn=ROLE,
        modelId=MODELS["bedrock"],
        modelInvocationType="Converse",
        inputDataConfig={"s3InputDataConfig": source},
        outputDataConfig={"s3OutputDataConfig": {"s3Uri": f"s3://{BUCKET}/bare-out/"}},
    )["jobArn"]
    while bedrock.get_model_invocation_job(jobIdentifier=arn)["status"] != "Completed":
        time.sleep(0.5)
    rows: list[dict[str, Any]] = []
    answers = f"bare-out/{arn.rpartition('/')[2]}/"
    for item in s3.list_objects_v2(Bucket=BUCKET, Prefix=answers)["Contents"]:
        if not item["Key"].endswith(".jsonl.out"):
            continue
        data = s3.get_object(Bucket=BUCKET, Key=item["Key"])["Body"].read()
        for line in data.split(b"\n"):
            if line:
                answer = json.loads(line)
                output = answer["modelOutput"]
                rows.append(
                    {
                        "page_id": names[answer["recordId"]],
                        "text": output["output"]["message"]["content"][0]["text"],
                        "model": MODELS["bedrock"],
                        "tokens_in": output["usage"]["inputTokens"],
                        "tokens_out": output["usage"]["outputTokens"],
                    }
                )
    for client in (s3, bedrock):
        client.close()
    return write(folder, rows)


BARE = {
    "openai": bare_openai,
    "anthropic": bare_anthropic,
    "gemini": bare_gemini,
    "bedrock": bare_bedrock,
}
