"""What may stand under `alerts` in `project.yaml`: whom to tell, and where secrets are found."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from .recipe_files import Settings
from .yaml_files import quoted

__all__ = ["AlertSettings", "EmailSettings", "SlackSettings", "SnsSettings", "WebhookSettings"]


def _variable(value: str) -> str:
    # What was found is not shown: it may be the secret itself.
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,199}", value):
        raise ValueError(
            "found no name of an environment variable; put the secret into the environment, and "
            "write the variable's name here, without ${}"
        )
    return value


def _address(value: str) -> str:
    if not re.fullmatch(r"[^\s@<>,;:\\\"]+@[^\s@<>,;:\\\"]+", value) or len(value) > 254:
        raise ValueError(f"found {quoted(value)}; allowed: a mail address such as me@example.org")
    return value


def _topic(value: str) -> str:
    if not re.fullmatch(r"arn:aws[a-z-]*:sns:[a-z0-9-]+:\d{12}:[A-Za-z0-9_-]{1,256}", value):
        raise ValueError(
            f"found {quoted(value)}; allowed: the ARN of a topic, such as "
            "arn:aws:sns:eu-central-1:123456789012:recipes"
        )
    return value


Variable = Annotated[str, AfterValidator(_variable)]
Address = Annotated[str, AfterValidator(_address)]


class WebhookSettings(Settings):
    """An address of your own that takes an alert as JSON."""

    url_env: Variable = Field(
        description="The environment variable that holds the address, https:// or http://."
    )
    token_env: Variable | None = Field(
        default=None,
        description="The environment variable that holds a token, sent as a bearer's.",
    )


class SlackSettings(Settings):
    """A channel of Slack, or of what takes the same: an incoming webhook."""

    url_env: Variable = Field(
        description="The environment variable that holds the incoming webhook's address."
    )


class EmailSettings(Settings):
    """A mail server that takes mail for sending."""

    host: str = Field(min_length=1, max_length=253, description="The mail server.")
    port: int = Field(default=587, ge=1, le=65_535, description="The mail server's port.")
    security: Literal["starttls", "tls", "none"] = Field(
        default="starttls",
        description="`starttls`, `tls` from the first byte, or `none` inside one's own network.",
    )
    user: str | None = Field(
        default=None, min_length=1, max_length=254, description="Who logs in, if anybody must."
    )
    password_env: Variable | None = Field(
        default=None, description="The environment variable that holds the password."
    )
    sender: Address = Field(description="From whom the mail is.")
    to: Annotated[tuple[Address, ...], Field(strict=False)] = Field(
        min_length=1, max_length=50, description="Who gets the mail."
    )


class SnsSettings(Settings):
    """A topic of Amazon SNS, told with the AWS credentials of the environment."""

    topic: Annotated[str, AfterValidator(_topic)] = Field(
        description="The topic's ARN; its region is in it."
    )
    endpoint_url: str | None = Field(
        default=None, min_length=1, description="Another address of the API."
    )


class AlertSettings(Settings):
    """Whom to tell what a person should know; the Dagster log is told in any case."""

    webhook: WebhookSettings | None = Field(
        default=None, description="An address of your own that takes JSON."
    )
    slack: SlackSettings | None = Field(default=None, description="An incoming webhook of Slack.")
    email: EmailSettings | None = Field(default=None, description="Mail over SMTP.")
    sns: SnsSettings | None = Field(default=None, description="A topic of Amazon SNS.")

    @property
    def any(self) -> bool:
        """Whether anybody is to be told."""
        return any((self.webhook, self.slack, self.email, self.sns))
