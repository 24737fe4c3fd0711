"""Alerts told over real HTTP, real SMTP and moto's SNS; a channel that fails stops nothing."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import boto3.session
import pytest
from moto.server import ThreadedMotoServer

from recipes_orchestration.alert_settings import (
    AlertSettings,
    EmailSettings,
    SlackSettings,
    SnsSettings,
    WebhookSettings,
)
from recipes_orchestration.channels import channel as channel_module
from recipes_orchestration.channels.channel import Channel, Notice
from recipes_orchestration.channels.opening import channels_of
from recipes_orchestration.engine import alerts as telling
from recipes_orchestration.engine.alerts import (
    configured_channels,
    look_for_alerts,
    tell_alerts,
    tell_within,
)
from recipes_orchestration.ledger.alerts import AlertKind, Cause
from recipes_orchestration.ledger.tables import tellings

from .alert_receivers import Mailbox, Receiver, mail_server, receiver
from .cloud_archive import CloudArchive, make_cloud_archive
from .test_alerts import earlier

NOTICE = Notice(
    project="Archive <of> letters\n",
    kind="hold",
    cause="hold/letters/read/answer",
    words="3 pages are held & wait. ä\u2028<!channel>",
    first_at=datetime(2026, 3, 1, 12, 30, tzinfo=UTC),
)


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    with receiver() as kept:
        monkeypatch.setenv("HOOK", kept.url)
        monkeypatch.setenv("TOKEN", "t0ken")
        yield kept


@pytest.fixture
def mailbox() -> Iterator[Mailbox]:
    with mail_server() as box:
        yield box


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a second in place of ten."""
    for module in (telling, channel_module):
        monkeypatch.setattr(module, "SECONDS", 0.5)


def mail_settings(port: int, **more: Any) -> EmailSettings:
    return EmailSettings(
        host="127.0.0.1",
        port=port,
        security=more.pop("security", "none"),
        sender="recipes@archive.example",
        to=("ada@archive.example", "bob@archive.example"),
        **more,
    )


def only(**settings: Any) -> Channel:
    (channel,) = channels_of(AlertSettings(**settings))
    return channel


def test_a_webhook_gets_the_alert_as_json_with_its_token(hook: Receiver) -> None:
    channel = only(webhook=WebhookSettings(url_env="HOOK", token_env="TOKEN"))
    assert tell_within(channel, NOTICE) is None
    assert hook.posts == [
        {
            "project": "Archive <of> letters\n",
            "kind": "hold",
            "cause": "hold/letters/read/answer",
            "title": "Archive <of> letters : pages wait for a person",
            "text": NOTICE.words,
            "since": "2026-03-01T12:30:00+00:00",
            "ended": None,
        }
    ]
    assert hook.headers[0]["Authorization"] == "Bearer t0ken"


def test_slack_gets_a_message_in_which_nothing_is_a_link_or_a_mention(hook: Receiver) -> None:
    assert tell_within(only(slack=SlackSettings(url_env="HOOK")), NOTICE) is None
    (post,) = hook.posts
    assert post == {
        "text": "*Archive &lt;of&gt; letters : pages wait for a person*\n"
        "3 pages are held &amp; wait. ä\u2028&lt;!channel&gt; (Since 2026-03-01 12:30 UTC.)"
    }


def test_mail_goes_to_everybody_who_is_named(
    mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAIL_PASSWORD", "p4ss")
    settings = mail_settings(mailbox.port, user="recipes", password_env="MAIL_PASSWORD")
    assert tell_within(only(email=settings), NOTICE) is None
    (mail,) = mailbox.mails
    assert mail["Subject"] == "Archive <of> letters : pages wait for a person"
    assert mail["To"] == "ada@archive.example, bob@archive.example"
    assert mail["Auto-Submitted"] == "auto-generated"
    assert "3 pages are held & wait. ä" in mail.get_content()
    assert mailbox.recipients == ["ada@archive.example", "bob@archive.example"]
    assert len(mailbox.logins) == 1


def test_no_password_goes_over_a_line_that_is_not_encrypted(
    mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`starttls` with a server that does not offer it."""
    monkeypatch.setenv("MAIL_PASSWORD", "p4ss")
    settings = mail_settings(
        mailbox.port, user="recipes", password_env="MAIL_PASSWORD", security="starttls"
    )
    words = tell_within(only(email=settings), NOTICE)
    assert words == "email: 127.0.0.1 took no mail: SMTPNotSupportedError."
    assert (mailbox.logins, mailbox.mails) == ([], [])


def test_sns_gets_the_alert_with_a_subject_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        url = f"http://{host}:{port}"
        session = boto3.session.Session()
        sns = session.client("sns", endpoint_url=url, region_name="eu-central-1")
        sqs = session.client("sqs", endpoint_url=url, region_name="eu-central-1")
        topic = sns.create_topic(Name="recipes")["TopicArn"]
        queue = sqs.create_queue(QueueName="told")["QueueUrl"]
        sns.subscribe(
            TopicArn=topic, Protocol="sqs", Endpoint="arn:aws:sqs:eu-central-1:123456789012:told"
        )
        channel = only(sns=SnsSettings(topic=topic, endpoint_url=url))
        assert tell_within(channel, NOTICE) is None
        (message,) = sqs.receive_message(QueueUrl=queue)["Messages"]
        assert "3 pages are held & wait." in message["Body"]
        assert "pages wait for a person" in message["Body"]
        gone = SnsSettings(topic=topic.replace("recipes", "gone"), endpoint_url=url)
        assert tell_within(only(sns=gone), NOTICE) == "sns took no alert: NotFound."
        sns.close()
        sqs.close()
    finally:
        server.stop()


@pytest.mark.parametrize("status", [302, 404, 500])
def test_what_a_channel_answers_is_told_without_its_address(hook: Receiver, status: int) -> None:
    hook.status, hook.location = status, "http://127.0.0.1:9/elsewhere"
    words = tell_within(only(webhook=WebhookSettings(url_env="HOOK")), NOTICE)
    assert words == f"webhook answered {status} to an alert."
    assert hook.asked == 1


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/?s3cret", "http://no such host/?s3cret"])
def test_an_address_that_nobody_answers_at_is_not_told(
    monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv("HOOK", url)
    words = tell_within(only(slack=SlackSettings(url_env="HOOK")), NOTICE)
    assert words is not None
    assert words.startswith("slack could not be told: ")
    assert "s3cret" not in words


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "The environment variable HOOK, with the address of alerts.slack, is not set"),
        ("file:///etc/passwd", "The environment variable HOOK holds no address of alerts.slack"),
    ],
)
def test_a_variable_that_holds_no_address_is_named(
    monkeypatch: pytest.MonkeyPatch, value: str | None, words: str
) -> None:
    monkeypatch.delenv("HOOK", raising=False)
    if value is not None:
        monkeypatch.setenv("HOOK", value)
    told = tell_within(only(slack=SlackSettings(url_env="HOOK")), NOTICE)
    assert told is not None
    assert told.startswith(words)
    assert "passwd" not in told


@pytest.fixture
def archive(tmp_path: Path, hook: Receiver, mailbox: Mailbox, restored_path: None) -> CloudArchive:
    mail = mail_settings(mailbox.port).model_dump(exclude_none=True)
    alerts = {"webhook": {"url_env": "HOOK"}, "email": {**mail, "to": list(mail["to"])}}
    return make_cloud_archive(tmp_path / "project", alerts=alerts)


CAUSES = [Cause(f"paused/{n}", AlertKind.PAUSED, f"{n} is paused") for n in ("a", "b", "c")]


def test_every_channel_is_told_of_every_alert_once(
    archive: CloudArchive, hook: Receiver, mailbox: Mailbox
) -> None:
    for _ in range(2):  # as two ticks of two processes
        with archive.engine() as engine:
            engine.ledger.alerts.keep(CAUSES, AlertKind)
            assert tell_alerts(engine, configured_channels(engine), 20) == []
    assert [post["text"] for post in hook.posts] == ["a is paused", "b is paused", "c is paused"]
    assert len(mailbox.mails) == 3


def test_a_channel_that_is_down_is_told_later_and_the_others_at_once(
    archive: CloudArchive, hook: Receiver, mailbox: Mailbox
) -> None:
    hook.status = 503
    with archive.engine() as engine:
        engine.ledger.alerts.keep(CAUSES, AlertKind)
        troubles = tell_alerts(engine, configured_channels(engine), 20)
        assert troubles == ["webhook answered 503 to an alert."]
        assert (hook.asked, len(mailbox.mails)) == (1, 3)
        hook.status = 200
        tell_alerts(engine, configured_channels(engine), 20)
        earlier(engine.ledger, tellings.c.tried_at, timedelta(minutes=1))
        tell_alerts(engine, configured_channels(engine), 20)
    assert sorted(post["cause"] for post in hook.posts) == [each.cause for each in CAUSES]
    assert len(mailbox.mails) == 3


def test_a_channel_that_does_not_answer_is_left_behind(
    archive: CloudArchive, hook: Receiver, mailbox: Mailbox, quick: None
) -> None:
    hook.delay = 30
    with archive.engine() as engine:
        engine.ledger.alerts.keep(CAUSES, AlertKind)
        began = time.monotonic()
        troubles = tell_alerts(engine, configured_channels(engine), 5)
        assert time.monotonic() - began < 3
    assert len(troubles) == 1
    assert troubles[0].startswith("webhook ")
    assert len(mailbox.mails) == 3


def test_nothing_is_begun_without_the_time_that_a_channel_may_take(
    archive: CloudArchive, hook: Receiver
) -> None:
    with archive.engine() as engine:
        engine.ledger.alerts.keep(CAUSES, AlertKind)
        assert tell_alerts(engine, configured_channels(engine), 9) == []
    assert hook.asked == 0


def test_without_channels_there_is_nobody_to_tell(tmp_path: Path, restored_path: None) -> None:
    with make_cloud_archive(tmp_path / "project").engine() as engine:
        assert configured_channels(engine) == []
        engine.ledger.pauses.pause("anthropic", "no credit")
        assert look_for_alerts(engine) == 1
        assert tell_alerts(engine, [], 20) == []
