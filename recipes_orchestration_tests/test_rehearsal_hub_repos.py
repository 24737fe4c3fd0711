"""Repositories of the rehearsed hub, through the real huggingface_hub client over HTTP."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi
from huggingface_hub.errors import (
    BadRequestError,
    BucketNotFoundError,
    HfHubHTTPError,
    RemoteEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.hf_api import RepoFile, RepoFolder

from recipes_orchestration.rehearsal import (
    HUB_ORGANIZATION,
    HUB_TOKEN,
    HUB_USER,
    HubScript,
    Rehearsal,
)

from .hub_fixtures import REPO, add


def paths(api: HfApi, revision: str | None = None) -> list[str]:
    found = api.list_repo_files(REPO, repo_type="dataset", revision=revision)
    return sorted(set(found) - {".gitattributes"})


def content(api: HfApi, path: str, folder: Path, revision: str | None = None) -> bytes:
    file = api.hf_hub_download(REPO, path, repo_type="dataset", revision=revision, local_dir=folder)
    return Path(file).read_bytes()


def test_the_token_says_who_it_is(hub_api: HfApi):
    told = hub_api.whoami()
    assert told["name"] == HUB_USER
    assert [each["name"] for each in told["orgs"]] == [HUB_ORGANIZATION]


@pytest.mark.parametrize("token", ["hf_other", False])
def test_without_the_token_nothing_is_shown(hub_api: HfApi, hub: Rehearsal, token: str | bool):
    stranger = HfApi(endpoint=hub.url, token=token)
    with pytest.raises(HfHubHTTPError) as caught:
        stranger.repo_info(REPO, repo_type="dataset")
    assert caught.value.response.status_code == 401


def test_a_public_repository_is_read_without_a_token(hub_api: HfApi, hub: Rehearsal):
    hub_api.create_repo(f"{HUB_USER}/open", repo_type="dataset")
    stranger = HfApi(endpoint=hub.url, token=False)
    assert stranger.repo_info(f"{HUB_USER}/open", repo_type="dataset").private is False
    with pytest.raises(HfHubHTTPError, match="401"):
        stranger.delete_repo(f"{HUB_USER}/open", repo_type="dataset")


def test_nothing_is_made_in_the_namespace_of_others(hub_api: HfApi):
    hub_api.create_repo(f"{HUB_ORGANIZATION}/mine", repo_type="dataset")
    with pytest.raises(HfHubHTTPError, match="403"):
        hub_api.create_repo("others/mine", repo_type="dataset")


def test_a_repository_is_made_once(hub_api: HfApi):
    with pytest.raises(HfHubHTTPError, match="409"):
        hub_api.create_repo(REPO, repo_type="dataset")
    again = hub_api.create_repo(REPO, repo_type="dataset", exist_ok=True)
    assert (again.repo_id, again.repo_type) == (REPO, "dataset")


def test_kinds_of_repositories_are_apart(hub_api: HfApi):
    assert hub_api.repo_exists(REPO, repo_type="dataset")
    assert not hub_api.repo_exists(REPO)


def test_a_deleted_repository_is_gone(hub_api: HfApi):
    hub_api.delete_repo(REPO, repo_type="dataset")
    with pytest.raises(RepositoryNotFoundError):
        hub_api.repo_info(REPO, repo_type="dataset")


def test_files_come_back_as_they_were_sent(hub_api: HfApi, tmp_path: Path):
    sent = {"a/page 1#ü.png": bytes(range(256)) * 400, "empty": b"", "b.jsonl": b"1\n2\n"}
    add(hub_api, sent)
    assert paths(hub_api) == sorted(sent)
    assert {path: content(hub_api, path, tmp_path) for path in sent} == sent


def test_a_folder_is_sent_and_fetched_as_a_whole(hub_api: HfApi, hub: Rehearsal, tmp_path: Path):
    (tmp_path / "up").mkdir()
    for number in range(300):  # more than the client asks for at once
        (tmp_path / "up" / f"{number}.txt").write_text(str(number))
    hub_api.upload_folder(
        repo_id=REPO, repo_type="dataset", folder_path=tmp_path / "up", path_in_repo="in"
    )
    assert len(hub.hub.files(REPO)) == 300
    hub_api.snapshot_download(
        REPO, repo_type="dataset", local_dir=tmp_path / "down", allow_patterns="in/1?.txt"
    )
    found = {file.name: file.read_text() for file in (tmp_path / "down/in").iterdir()}
    assert found == {f"{number}.txt": str(number) for number in range(10, 20)}


def test_the_id_of_a_file_is_the_one_of_git(hub_api: HfApi):
    add(hub_api, {"x/y": b"words"})
    info = hub_api.get_paths_info(REPO, ["x/y", "x", "nothing"], repo_type="dataset")
    files = [each for each in info if isinstance(each, RepoFile)]
    assert [(each.path, each.size) for each in files] == [("x/y", 5)]
    assert files[0].blob_id == hashlib.sha1(b"blob 5\0words").hexdigest()
    assert [each.path for each in info if isinstance(each, RepoFolder)] == ["x"]


def test_the_same_file_is_not_committed_again(hub_api: HfApi, hub: Rehearsal):
    first = add(hub_api, {"a": b"1"})
    assert add(hub_api, {"a": b"1"}) == first
    assert hub.counts("hub")["commits"] == 1
    assert add(hub_api, {"a": b"2"}) != first


def test_a_tree_is_listed_by_pages_and_by_folders(hub_api: HfApi, hub: Rehearsal):
    hub.script("hub", HubScript(tree_page=3))
    add(hub_api, {f"d/{number}/page": b"x" for number in range(5)})
    tree = list(hub_api.list_repo_tree(REPO, "d", repo_type="dataset"))
    assert [each.path for each in tree] == [f"d/{number}" for number in range(5)]
    assert paths(hub_api) == [f"d/{number}/page" for number in range(5)]
    assert hub.counts("hub")["trees"] > 2


def test_what_is_not_there_has_an_error_of_its_own(hub_api: HfApi, tmp_path: Path):
    with pytest.raises(RemoteEntryNotFoundError):
        content(hub_api, "nothing", tmp_path)
    with pytest.raises(RemoteEntryNotFoundError):
        list(hub_api.list_repo_tree(REPO, "nothing", repo_type="dataset"))
    with pytest.raises(RevisionNotFoundError):
        paths(hub_api, "0" * 40)
    assert not hub_api.file_exists(REPO, "nothing", repo_type="dataset")


def test_an_old_commit_keeps_its_files(hub_api: HfApi, tmp_path: Path):
    old = add(hub_api, {"a": b"1", "b": b"1"})
    hub_api.delete_file("b", REPO, repo_type="dataset")
    add(hub_api, {"a": b"2"})
    assert paths(hub_api) == ["a"]
    assert paths(hub_api, old) == ["a", "b"]
    assert content(hub_api, "a", tmp_path, old) == b"1"


def test_folders_and_patterns_are_deleted(hub_api: HfApi):
    add(hub_api, {"x/1": b"1", "x/2": b"2", "y/1.txt": b"3", "z": b"4"})
    hub_api.delete_folder("x", REPO, repo_type="dataset")
    hub_api.delete_files(REPO, ["y/*.txt"], repo_type="dataset")
    assert paths(hub_api) == ["z"]


def test_a_deletion_of_nothing_keeps_the_whole_commit_out(hub_api: HfApi):
    operations = [CommitOperationAdd("new", b"1"), CommitOperationDelete("nothing")]
    with pytest.raises(RemoteEntryNotFoundError):
        hub_api.create_commit(REPO, operations, commit_message="x", repo_type="dataset")
    assert paths(hub_api) == []


def test_a_commit_on_an_old_parent_is_refused(hub_api: HfApi):
    old = add(hub_api, {"a": b"1"})
    add(hub_api, {"a": b"2"})
    with pytest.raises(HfHubHTTPError, match="412"):
        hub_api.create_commit(
            repo_id=REPO,
            operations=[CommitOperationAdd("a", b"3")],
            commit_message="x",
            repo_type="dataset",
            parent_commit=old,
        )


def test_another_revision_than_main_is_not_written_to(hub_api: HfApi):
    old = add(hub_api, {"a": b"1"})
    with pytest.raises(BadRequestError):
        hub_api.upload_file(
            path_or_fileobj=b"2", path_in_repo="a", repo_id=REPO, repo_type="dataset", revision=old
        )


def test_a_file_is_lost_or_cut_without_a_word(hub_api: HfApi, hub: Rehearsal):
    hub.script("hub", HubScript(lose_files=["*/lost"], cut_files=["*/cut"]))
    add(hub_api, {"a/lost": b"1234", "a/cut": b"1234", "b/lost": b"1234"})
    assert hub.hub.files(REPO) == {"a/cut": 2, "b/lost": 4}
    assert hub.counts("hub")["spoiled"] == 2


def test_a_commit_is_kept_though_its_reply_is_lost(hub_api: HfApi, hub: Rehearsal):
    hub.script("hub", HubScript(lose_commit_reply=1))
    with pytest.raises(Exception, match="disconnected"):
        add(hub_api, {"a": b"1"})
    assert hub.hub.files(REPO) == {"a": 1}


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_commit_may_be_refused(hub_api: HfApi, hub: Rehearsal, status: int):
    hub.script("hub", HubScript(commit_status=[status]))
    with pytest.raises(HfHubHTTPError, match=str(status)):
        add(hub_api, {"a": b"1"})
    add(hub_api, {"a": b"1"})
    assert hub.hub.files(REPO) == {"a": 1}


def test_a_file_may_have_a_path_that_no_client_sends(hub_api: HfApi, hub: Rehearsal):
    hub.hub.put(REPO, "../outside", b"1")
    assert paths(hub_api) == ["../outside"]
    assert hub.hub.read(REPO, "../outside") == b"1"


def test_there_are_no_buckets(hub_api: HfApi):
    with pytest.raises(BucketNotFoundError):
        hub_api.bucket_info(f"{HUB_USER}/bucket")


def test_what_is_sent_is_counted(hub_api: HfApi, hub: Rehearsal, tmp_path: Path):
    add(hub_api, {"a": b"1", "b": b"2"})
    content(hub_api, "a", tmp_path)
    counts = hub.counts("hub")
    wanted = {"preuploads": 1, "commits": 1, "files": 2, "heads": 1, "downloads": 1, "repos": 1}
    assert {key: counts[key] for key in wanted} == wanted
    assert HUB_TOKEN not in str(counts)
