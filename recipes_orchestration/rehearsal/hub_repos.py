"""The hub's repositories over HTTP, as huggingface_hub 2.4 asks for them in `hf_api.py`.

Every file is taken as a regular one (`uploadMode: "regular"`), so that neither LFS nor xet is
needed; revisions are `main` and the ids of commits.
"""

from __future__ import annotations

import itertools
from typing import Any
from urllib.parse import parse_qs

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from .bodies import TooLarge, receive
from .hub_commits import Refused, committed
from .hub_desk import HUB_USER, MAX_BODY_BYTES, Desk
from .hub_errors import error, no_bucket, no_entry, no_repo, no_revision
from .hub_store import Commit, Entry, Repo, Store, entries_below

__all__ = ["ReposDesk"]

MAX_COMMIT_BYTES = 2 * 2**30
_KINDS = ("model", "dataset", "space")


class ReposDesk(Desk):
    """Repositories, their files and who asks for them."""

    def __init__(self) -> None:
        self.store = Store()
        super().__init__()

    def routes(self) -> list[Route]:
        """Its endpoints. The last ones have the shape of many paths: they come last."""
        repo, revision = "/api/{kind}s/{namespace}/{name}", "/{revision}"
        return [
            Route("/api/whoami-v2", self.whoami),
            Route("/api/validate-yaml", self.validate, methods=["POST"]),
            Route("/api/repos/create", self.create_repo, methods=["POST"]),
            Route("/api/repos/delete", self.delete_repo, methods=["DELETE"]),
            Route("/api/buckets/{path:path}", self.bucket, methods=["GET", "POST", "DELETE"]),
            Route(repo, self.info),
            Route(repo + "/revision" + revision, self.info),
            Route(repo + "/tree" + revision, self.tree),
            Route(repo + "/tree" + revision + "/{path:path}", self.tree),
            Route(repo + "/paths-info" + revision, self.paths_info, methods=["POST"]),
            Route(repo + "/preupload" + revision, self.preupload, methods=["POST"]),
            Route(repo + "/commit" + revision, self.commit, methods=["POST"]),
            *(
                Route(f"{prefix}/{{namespace}}/{{name}}/resolve/{{revision}}/{{path:path}}", each)
                for prefix, each in (
                    ("/datasets", self.resolve_dataset),
                    ("/spaces", self.resolve_space),
                    ("", self.resolve_model),
                )
            ),
        ]

    async def validate(self, request: Request) -> Response:  # noqa: ARG002
        """POST /api/validate-yaml: the head of every README.md is good."""
        return JSONResponse({"errors": [], "warnings": []})

    async def bucket(self, request: Request) -> Response:
        """Whatever is asked of a bucket: there is none."""
        return self.unauthorized(request) or no_bucket()

    async def create_repo(self, request: Request) -> Response:
        """POST /api/repos/create."""
        named = await self._named(request)
        if isinstance(named, Response):
            return named
        kind, id, given = named
        if (kind, id) in self.store.repos:
            words = f"You already created this {kind} repo: {id}"
            url = f"{self.endpoint}/{self.store.repos[kind, id].path}"
            return JSONResponse({"error": words, "url": url}, status_code=409)
        self.calls["repos"] += 1
        repo = self.store.create(kind, id, private=given.get("visibility") == "private")
        return JSONResponse({"url": f"{self.endpoint}/{repo.path}", "name": id, "id": "0" * 24})

    async def delete_repo(self, request: Request) -> Response:
        """DELETE /api/repos/delete."""
        named = await self._named(request)
        if isinstance(named, Response):
            return named
        kind, id, _ = named
        if self.store.repos.pop((kind, id), None) is None:
            return no_repo()
        return Response("OK")

    async def _named(self, request: Request) -> tuple[str, str, dict[str, Any]] | Response:
        given = await self.json(request)
        if refused := self.unauthorized(request):
            return refused
        if isinstance(given, Response):
            return given
        namespace = given.get("organization") or HUB_USER
        kind, name = given.get("type") or "model", given.get("name")
        if kind not in _KINDS or not isinstance(name, str) or not name:
            return error(400)
        return self.forbidden(namespace) or (kind, f"{namespace}/{name}", given)

    def _found(self, request: Request, kind: str = "") -> tuple[Repo, Commit] | Response:
        path = request.path_params
        id = f"{path['namespace']}/{path['name']}"
        repo = self.store.repos.get((kind or path["kind"], id))
        if refused := self.unauthorized(request, public=repo is not None and not repo.private):
            return refused
        if repo is None:
            return no_repo()
        revision = path.get("revision", "main")
        return no_revision(revision) if (at := repo.at(revision)) is None else (repo, at)

    def _writable(self, request: Request) -> tuple[Repo, Commit] | Response:
        found = self.unauthorized(request) or self._found(request)
        if isinstance(found, Response):
            return found
        if refused := self.forbidden(request.path_params["namespace"]):
            return refused
        main = request.path_params["revision"] == "main"
        return found if main else error(400, "Only `main` can be written to in a rehearsal")

    async def info(self, request: Request) -> Response:
        """GET /api/datasets/{id}, with /revision/{revision} or not."""
        self.calls["infos"] += 1
        found = self._found(request)
        if isinstance(found, Response):
            return found
        repo, commit = found
        blobs = request.query_params.get("blobs", "").lower() == "true"
        return JSONResponse(
            {
                "_id": "0" * 24,
                "id": repo.id,
                "author": repo.id.split("/")[0],
                "sha": commit.oid,
                "createdAt": _moment(repo.commits[0]),
                "lastModified": _moment(repo.head),
                "private": repo.private,
                "gated": False,
                "disabled": False,
                "tags": [],
                "siblings": [
                    {
                        "rfilename": path,
                        **({"size": each.size, "blobId": each.oid} if blobs else {}),
                    }
                    for path, each in sorted(commit.files.items())
                ],
            }
        )

    async def tree(self, request: Request) -> Response:
        """GET /api/datasets/{id}/tree/{revision}[/{path}]: a page of files and folders."""
        self.calls["trees"] += 1
        found = self._found(request)
        if isinstance(found, Response):
            return found
        repo, commit = found
        query, below = request.query_params, request.path_params.get("path", "")
        recursive = query.get("recursive", "").lower() == "true"
        entries = entries_below(commit, below, recursive=recursive)
        start, size = _number(query.get("cursor")), self.script.tree_page
        shown = list(itertools.islice(entries, start, start + size + 1))
        if below and not shown and not start:
            return no_entry(commit.oid, f"{below} does not exist on {commit.oid[:7]}")
        headers: dict[str, str] = {}
        if len(shown) > size:
            # The next page is of the same commit, whatever has come since.
            path = f"/api/{repo.kind}s/{repo.id}/tree/{commit.oid}" + (f"/{below}" if below else "")
            headers = self.next_page(path, [*query.multi_items()], start + size)
        shown = [_shown(path, entry) for path, entry in shown[:size]]
        return JSONResponse(shown, headers=headers)

    async def paths_info(self, request: Request) -> Response:
        """POST /api/datasets/{id}/paths-info/{revision}: a form with `paths`."""
        self.calls["trees"] += 1
        try:
            body = (await receive(request, MAX_BODY_BYTES)).bytes()
            wanted = parse_qs(body.decode(), max_num_fields=10_000).get("paths", [])
        except (TooLarge, ValueError):
            return error(400)
        found = self._found(request)
        if isinstance(found, Response):
            return found
        _, commit = found
        there = dict(entries_below(commit, "", recursive=True))
        return JSONResponse([_shown(path, there[path]) for path in wanted if path in there])

    async def preupload(self, request: Request) -> Response:
        """POST /api/datasets/{id}/preupload/{revision}: every file goes into the commit."""
        self.calls["preuploads"] += 1
        given = await self.json(request)
        found = self._writable(request)
        if isinstance(found, Response):
            return found
        if isinstance(given, Response):
            return given
        _, commit = found
        paths = [str(each.get("path")) for each in given.get("files", [])]
        if len(paths) > 256:
            return error(400, "Too many files: at most 256")
        files = [
            {
                "path": path,
                "uploadMode": "regular",
                "shouldIgnore": False,
                **({"oid": commit.files[path].oid} if path in commit.files else {}),
            }
            for path in paths
        ]
        return JSONResponse({"files": files, "commitOid": commit.oid})

    async def commit(self, request: Request) -> Response:
        """POST /api/datasets/{id}/commit/{revision}: JSON lines of files and deletions."""
        self.calls["commits"] += 1
        try:
            body = await receive(request, MAX_COMMIT_BYTES)
        except TooLarge:
            return error(413)
        found = self._writable(request)
        if isinstance(found, Response):
            return found
        if refused := self.interrupted(request) or self.refused("commit_status"):
            return refused
        repo, _ = found
        try:
            commit = await run_in_threadpool(committed, self, self.store, repo, body)
        except Refused as refusal:
            return refusal.response
        url = f"{self.endpoint}/{repo.path}/commit/{commit.oid}"
        done = {"success": True, "commitOid": commit.oid, "commitUrl": url, "hookOutput": ""}
        return self.replied(request, JSONResponse(done), "lose_commit_reply")

    def interrupted(self, request: Request) -> Response | None:  # noqa: ARG002
        """What happens in place of a commit."""
        return None

    async def resolve_dataset(self, request: Request) -> Response:
        """GET and HEAD /datasets/{id}/resolve/{revision}/{path}."""
        return self._resolved(request, "dataset")

    async def resolve_space(self, request: Request) -> Response:
        """GET and HEAD /spaces/{id}/resolve/{revision}/{path}."""
        return self._resolved(request, "space")

    async def resolve_model(self, request: Request) -> Response:
        """GET and HEAD /{id}/resolve/{revision}/{path}."""
        return self._resolved(request, "model")

    def _resolved(self, request: Request, kind: str) -> Response:
        self.calls["heads" if request.method == "HEAD" else "downloads"] += 1
        found = self._found(request, kind)
        if isinstance(found, Response):
            return found
        _, commit = found
        if request.method == "GET" and (refused := self.refused("download_status")):
            return refused
        entry = commit.files.get(request.path_params["path"])
        if entry is None:
            return no_entry(commit.oid)
        headers = {"ETag": f'"{entry.oid}"', "X-Repo-Commit": commit.oid}
        media = "application/octet-stream"
        return FileResponse(self.store.file(entry), headers=headers, media_type=media)


def _shown(path: str, entry: Entry) -> dict[str, Any]:
    if entry.size < 0:
        return {"type": "directory", "oid": entry.oid, "size": 0, "path": path}
    return {"type": "file", "oid": entry.oid, "size": entry.size, "path": path}


def _moment(commit: Commit) -> str:
    return commit.at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _number(text: str | None) -> int:
    return int(text) if text is not None and text.isascii() and text.isdigit() else 0
