"""Alerts by mail, over SMTP."""

from __future__ import annotations

import smtplib
import ssl
from email.message import EmailMessage
from email.utils import formatdate, make_msgid

from ..alert_settings import EmailSettings
from .channel import SECONDS, Notice, NotTold, secret_of

__all__ = ["Email"]


class Email:
    """Tells those who are named by one mail."""

    name = "email"

    def __init__(self, settings: EmailSettings) -> None:
        self._settings = settings

    def tell(self, notice: Notice) -> None:
        """Hands the mail to the server."""
        settings = self._settings
        message = _message(settings, notice)
        password = None
        if settings.password_env is not None:
            password = secret_of(settings.password_env, "with the password of alerts.email")
        try:
            with _connected(settings) as server:
                if settings.user is not None:
                    server.login(settings.user, password or "")
                server.send_message(message, settings.sender, list(settings.to))
        except smtplib.SMTPResponseException as error:
            raise NotTold(f"email: {settings.host} answered {error.smtp_code}.") from None
        except (OSError, smtplib.SMTPException) as error:
            what = type(error).__name__
            raise NotTold(f"email: {settings.host} took no mail: {what}.") from None


def _connected(settings: EmailSettings) -> smtplib.SMTP:
    if settings.security == "tls":
        context = ssl.create_default_context()
        return smtplib.SMTP_SSL(settings.host, settings.port, timeout=SECONDS, context=context)
    server = smtplib.SMTP(settings.host, settings.port, timeout=SECONDS)
    if settings.security == "starttls":
        try:
            # Raises when the server does not offer it: the password never goes in the clear.
            server.starttls(context=ssl.create_default_context())
        except BaseException:
            server.close()
            raise
    return server


def _message(settings: EmailSettings, notice: Notice) -> EmailMessage:
    message = EmailMessage()
    message["Subject"] = notice.title
    message["From"] = settings.sender
    message["To"] = ", ".join(settings.to)
    message["Date"] = formatdate()
    message["Message-ID"] = make_msgid(domain=settings.sender.rpartition("@")[2])
    # So that no mail system answers it with a note of absence (RFC 3834).
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(notice.text.encode("utf-8", "replace").decode("utf-8"))
    return message
