"""The channels that a project's settings name."""

from __future__ import annotations

from ..alert_settings import AlertSettings
from .channel import Channel
from .email import Email
from .sns import Sns
from .webhook import Slack, Webhook

__all__ = ["channels_of"]


def channels_of(settings: AlertSettings) -> list[Channel]:
    """One for each that is set up, in the order of the settings."""
    channels: list[Channel] = []
    if settings.webhook is not None:
        channels.append(Webhook(settings.webhook))
    if settings.slack is not None:
        channels.append(Slack(settings.slack))
    if settings.email is not None:
        channels.append(Email(settings.email))
    if settings.sns is not None:
        channels.append(Sns(settings.sns))
    return channels
