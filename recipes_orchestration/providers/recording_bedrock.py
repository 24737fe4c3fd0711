"""What an operation of bedrock-runtime asks: the call of a batch, or why none can carry it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .bedrock_calls import CONVERSE, INVOKE
from .provider import Call, Group
from .recording_routes import json_object, step_advice, streaming
from .recording_run import Asked

__all__ = ["asked_of"]

# What of InvokeModel a batch record carries; anything else would travel as a header.
INVOKE_CARRIED = frozenset({"modelId", "body", "contentType", "accept"})


def asked_of(operation: str, parameters: Mapping[str, Any], body: bytes, path: str) -> Asked:
    """What one operation asks. Bedrock's batches take Converse and InvokeModel."""
    model = str(parameters.get("modelId", ""))
    match operation:
        case "Converse":
            call = Call("bedrock", Group(CONVERSE, model), body)
            if "toolConfig" in parameters:
                return Asked(
                    call,
                    "The step's code gives Converse a `toolConfig`, which Bedrock's batches do not "
                    "take. Ask for JSON in the prompt instead, or run the step on the place "
                    "`local` with a client of its own.",
                )
            return Asked(call)
        case "InvokeModel":
            call = Call("bedrock", Group(INVOKE, model), body)
            beside = sorted(parameters.keys() - INVOKE_CARRIED)
            if beside:
                return Asked(
                    call,
                    f"The step's code gives InvokeModel `{beside[0]}`, which Bedrock's batches do "
                    "not carry. Leave it out, or run the step on the place `local` with a client "
                    "of its own.",
                )
            if not json_object(body):
                return Asked(
                    call,
                    "The step's code gives InvokeModel a body that is no JSON object, and "
                    "Bedrock's batches carry nothing else. Give the model's own request as JSON.",
                )
            return Asked(call)
        case "ConverseStream" | "InvokeModelWithResponseStream":
            return Asked(Call("bedrock", Group(operation, model), body), streaming(operation))
        case _:
            return Asked(Call("bedrock", Group(path, ""), body), step_advice(operation))
