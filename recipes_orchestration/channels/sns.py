"""Alerts to a topic of Amazon SNS.

A subject is at most 100 characters of ASCII without line ends (boto3's SNS `publish`, `Subject`).
"""

from __future__ import annotations

import json
from typing import Any

from ..alert_settings import SnsSettings
from ..errors import ConfigError
from .channel import SECONDS, Notice, NotTold

__all__ = ["Sns"]


class Sns:
    """Tells whoever has subscribed to the topic."""

    name = "sns"

    def __init__(self, settings: SnsSettings) -> None:
        self._settings = settings

    def tell(self, notice: Notice) -> None:
        """Publishes the notice: its words for people, and the same as JSON in an attribute."""
        client, errors = self._client()
        subject = notice.title.encode("ascii", "replace").decode("ascii")
        document = json.dumps(notice.document)
        try:
            client.publish(
                TopicArn=self._settings.topic,
                Subject=subject,
                Message=notice.text,
                MessageAttributes={"alert": {"DataType": "String", "StringValue": document}},
            )
        except errors as error:
            response: Any = getattr(error, "response", {})
            code = response.get("Error", {}).get("Code") if isinstance(response, dict) else None
            raise NotTold(f"sns took no alert: {code or type(error).__name__}.") from None
        finally:
            client.close()

    def _client(self) -> tuple[Any, tuple[type[Exception], ...]]:
        try:
            import boto3.session
            import botocore.config
            from botocore.exceptions import BotoCoreError, ClientError
        except ModuleNotFoundError as error:
            raise ConfigError(
                "alerts.sns needs boto3: pip install 'recipes-orchestration[aws]'."
            ) from error
        # One try within the time: the next one is made by whoever tells.
        config = botocore.config.Config(
            connect_timeout=SECONDS / 2, read_timeout=SECONDS / 2, retries={"total_max_attempts": 1}
        )
        region = self._settings.topic.split(":")[3]
        client = boto3.session.Session().client(
            "sns", region_name=region, endpoint_url=self._settings.endpoint_url, config=config
        )
        return client, (BotoCoreError, ClientError, OSError, ValueError)
