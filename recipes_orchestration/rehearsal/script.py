"""How a rehearsed provider behaves: one model, read from JSON, set at start or at any time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["CancelLines", "Refusal", "Script"]

Refusal = Literal["", "credit", "enqueued_tokens", "model", "key", "rate"]
Share = Field(default=0.0, ge=0, le=1)


class CancelLines(BaseModel):
    """How many lines a cancelled batch has in its output and among its errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    output: int = 0
    error: int = 0


class Script(BaseModel):
    """What a provider does. With nothing said it answers every batch at its first status read.

    Shares are of 0 to 1 and go by the hash of the request, so that the same request always has
    the same outcome. A script for all batches holds for plain calls too; one for the next
    `batches` batches does not. Sequences of statuses and `lose_reply` are used up by whichever
    request comes next.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    batches: int | None = Field(default=None, ge=1, description="Only for the next N batches.")

    # Until a batch is done.
    delay_seconds: float = 0.0
    polls: int = Field(
        default=0, description="So many status reads, get or list, say it is running."
    )
    never_ends: bool = False

    # What becomes of its requests.
    error_share: float = Share
    refusal_share: float = Share
    truncation_share: float = Share
    filtered_share: float = Share
    thinking_only: float = Share
    empty_share: float = Share
    wrong_shape_share: float = Share
    error_lines: int = Field(default=0, description="The first N requests of a batch fail.")
    status_400_lines: int = Field(
        default=0,
        description="OpenAI: so many lines, after those that fail, have error null, status 400.",
    )
    error_message: str = Field(
        default="", description="The words of an error, else the provider's."
    )
    account_error: str = Field(default="", description="Every line fails with these words.")

    # What is wrong with the result lines.
    missing: int = Field(default=0, description="The last N lines are left out.")
    duplicate_lines: int = Field(default=0, description="The first N lines come again at the end.")
    foreign_lines: int = Field(default=0, description="N lines with ids that were never sent.")
    malformed: bool = Field(
        default=False, description="The 1st line is cut off, the 2nd invalid UTF-8, the 3rd null."
    )
    permute: bool = False
    unicode_separators: bool = Field(
        default=False, description="Answers hold U+2028, U+2029, U+0085 and CRLF."
    )

    # How a batch ends.
    expire_after: int | None = Field(
        default=None, ge=0, description="It expires with the first K requests answered."
    )
    fail_validation: bool = Field(default=False, description="Accepted, then failed without files.")
    fail_message: str = Field(
        default="", description="The words of that failure, else the provider's."
    )
    output_null: bool = Field(
        default=False, description="OpenAI: all in the error file, no output file."
    )
    cancel_seconds: float = 0.0
    answered_before_cancel: int = 0
    cancel_lines: CancelLines | None = None

    # What the server does to requests.
    refuse_create: Refusal = ""
    create_status: Sequence[int] = Field(default=(), description="Of creates, before acceptance.")
    lose_reply: int = Field(default=0, description="N creates are accepted and get no answer.")
    lose_upload_reply: int = Field(default=0, description="N uploads are taken and get no answer.")
    hang_reply_seconds: float = Field(default=0.0, description="Accepted, answered after so long.")
    plain_status: Sequence[int] = Field(default=(), description="Of plain calls; 200 is an answer.")
    plain_seconds: float = Field(default=0.0, description="How long a plain call takes.")
    status_status: Sequence[int] = Field(default=(), description="Of status reads, get or list.")
    results_status: Sequence[int] = Field(default=(), description="Of fetches of results.")
    slow_results: float = Field(default=0.0, description="Seconds between two chunks of results.")
    cut_results: int = Field(
        default=0, description="N fetches of results break off in the middle of the first chunk."
    )
    forget: Sequence[str] = Field(default=(), description='Batch ids that answer 404; "*" is all.')
    min_records: int = Field(default=100, description="Bedrock: fewer records make a job fail.")
