"""What `project.yaml` may say of the places on the cloud."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from .project_files import PlaceSettings, register_place

__all__ = [
    "CLOUD_PLACES",
    "AnthropicSettings",
    "BedrockSettings",
    "CloudSettings",
    "GeminiSettings",
    "OpenAISettings",
]

CLOUD_PLACES = ("anthropic", "openai", "gemini", "bedrock")


class CloudSettings(PlaceSettings):
    """A provider's batch API, and plain calls where few pages are asked or a person waits.

    Keys come from the environment variables that the provider's own SDK reads, or from the
    variable that `api_key_env` names.
    """

    base_url: str | None = Field(
        default=None, min_length=1, description="Another address of the API, such as a gateway."
    )
    api_key_env: str | None = Field(
        default=None,
        pattern="^[A-Za-z_][A-Za-z0-9_]*$",
        description="The environment variable that holds the key, if not the SDK's own.",
    )
    batch_from: int = Field(
        default=100,
        ge=1,
        le=1_000_000,
        description="Fewer pages of one step in one run go as plain calls, at the full price.",
    )
    max_open: int = Field(
        default=10,
        ge=1,
        le=10_000,
        description="At most so many open batches; more wait for a slot, in order.",
    )
    parallel: int = Field(
        default=8, ge=1, le=256, description="At most so many plain calls at the same time."
    )
    timeout_hours: float = Field(
        default=24.0,
        gt=0,
        le=168,
        description="A batch is cancelled and landed two hours after this time. Hours.",
    )
    on_expired: Literal["batch", "calls", "hold"] = Field(
        default="batch",
        description="How pages go on whose batch expired: as another batch, as plain calls, or "
        "held for a person.",
    )
    settle_seconds: float = Field(
        default=60.0,
        ge=0,
        le=3600,
        description="After a lost reply, how long the provider may take to show what it accepted "
        "before it is asked again. Seconds.",
    )
    max_requests: int | None = Field(
        default=None, ge=1, description="Fewer requests in one batch than the provider allows."
    )
    max_batch_mb: float | None = Field(
        default=None, gt=0, description="A smaller batch than the provider allows. Megabytes."
    )
    live_calls: int = Field(
        default=100,
        ge=0,
        le=1_000_000,
        description="A Python step may make so many more calls in one batch of pages when its "
        "answers land.",
    )


class AnthropicSettings(CloudSettings):
    """Anthropic's Message Batches; the key is ANTHROPIC_API_KEY."""


class OpenAISettings(CloudSettings):
    """OpenAI's Batch API; the key is OPENAI_API_KEY."""


class GeminiSettings(CloudSettings):
    """Google's Gemini batch mode; the key is GEMINI_API_KEY."""


class BedrockSettings(CloudSettings):
    """Amazon Bedrock's batch inference; credentials as boto3 finds them."""

    bucket: str | None = Field(
        default=None, min_length=3, description="S3 bucket for requests and answers."
    )
    prefix: str = Field(default="recipes", description="Folder in the bucket.")
    role_arn: str | None = Field(
        default=None, min_length=1, description="Role that Bedrock takes to read and write there."
    )
    region: str | None = Field(default=None, min_length=1, description="AWS region.")
    min_requests: int = Field(
        default=100, ge=1, description="Fewest records of a batch in your account's quota."
    )
    runtime_url: str | None = Field(
        default=None, min_length=1, description="Another address of the runtime API."
    )
    s3_url: str | None = Field(default=None, min_length=1, description="Another address of S3.")


register_place("anthropic", AnthropicSettings)
register_place("openai", OpenAISettings)
register_place("gemini", GeminiSettings)
register_place("bedrock", BedrockSettings)
