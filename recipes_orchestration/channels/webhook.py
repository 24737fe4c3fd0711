"""Alerts to an address over HTTP: JSON of ours, or the shape that Slack's incoming webhooks take.

Slack: a POST of `{"text": ...}`, in which `&`, `<` and `>` are written as HTML entities
(https://api.slack.com/messaging/webhooks and .../reference/surfaces/formatting, 2025-11).
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from http.client import HTTPException
from typing import Any
from urllib.parse import urlsplit

from ..alert_settings import SlackSettings, WebhookSettings
from ..errors import ConfigError
from .channel import SECONDS, Notice, NotTold, secret_of

__all__ = ["Slack", "Webhook"]


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """An alert and its token go to the address that was given and to no other."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


class Webhook:
    """Tells an address of one's own."""

    name = "webhook"

    def __init__(self, settings: WebhookSettings) -> None:
        self._settings = settings

    def tell(self, notice: Notice) -> None:
        """Posts the notice as JSON."""
        headers = {}
        if (variable := self._settings.token_env) is not None:
            token = secret_of(variable, "with the token of alerts.webhook")
            headers["Authorization"] = f"Bearer {token}"
        _post(self.name, self._settings.url_env, notice.document, headers)


class Slack:
    """Tells a Slack channel."""

    name = "slack"

    def __init__(self, settings: SlackSettings) -> None:
        self._settings = settings

    def tell(self, notice: Notice) -> None:
        """Posts the notice as a message."""
        text = f"*{_escaped(notice.title)}*\n{_escaped(notice.text)}"
        _post(self.name, self._settings.url_env, {"text": text}, {})


def _escaped(text: str) -> str:
    """Without what would make a link or mention somebody: page names come from outside."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _post(
    name: str, variable: str, document: Mapping[str, Any], headers: Mapping[str, str]
) -> None:
    url = secret_of(variable, f"with the address of alerts.{name}")
    if urlsplit(url).scheme not in ("http", "https"):
        raise ConfigError(
            f"The environment variable {variable} holds no address of alerts.{name}: one begins "
            "with https:// or http://."
        )
    opener = urllib.request.build_opener(_NoRedirect)
    try:
        request = urllib.request.Request(  # noqa: S310 - the scheme was looked at
            url,
            data=json.dumps(document).encode(),
            headers={"Content-Type": "application/json; charset=utf-8", **headers},
            method="POST",
        )
        with opener.open(request, timeout=SECONDS):
            pass
    # Its words, and those of a cause, may hold the address, which is a secret.
    except urllib.error.HTTPError as error:
        error.close()
        raise NotTold(f"{name} answered {error.code} to an alert.") from None
    except (OSError, HTTPException, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise NotTold(f"{name} could not be told: {type(reason).__name__}.") from None
