"""A small Hub in memory, over real HTTP: the routes that `huggingface_hub` and `datasets` call."""

import base64
import hashlib
import json
import threading
from contextlib import contextmanager
from itertools import count

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

LARGE = (".parquet", ".safetensors")


class Hub:
    """Repositories with their files; `refuse` makes routes fail, `log` tells what was asked for."""

    def __init__(self):
        self.repos: dict[str, dict] = {}
        self.large: dict[str, bytes] = {}
        self.log: list[str] = []
        self.commits: list[tuple[str, list[str]]] = []
        self.token = "hf_good"
        self.commits_left = 1_000_000
        self.url = ""
        self._numbers = count(1)

    def files(self, name: str) -> dict[str, bytes]:
        return self.repos[name]["files"]

    def _revision(self) -> str:
        return hashlib.sha1(str(next(self._numbers)).encode()).hexdigest()

    async def answer(self, request: Request) -> Response:
        path, method = request.url.path, request.method
        self.log.append(f"{method} {path}")
        if path.startswith("/large/"):
            return await self._store(request, path.removeprefix("/large/"))
        if request.headers.get("authorization") != f"Bearer {self.token}":
            return JSONResponse({"error": "Invalid credentials"}, 401)
        if path == "/api/repos/create":
            return await self._create(request)
        if path == "/api/whoami-v2":
            return JSONResponse({"type": "user", "name": "me", "fullname": "Me", "orgs": []})
        if path == "/api/validate-yaml":
            return JSONResponse({"errors": [], "warnings": []})
        if path.startswith("/api/"):
            _, _, kind, owner, name, *rest = path.split("/")
            return await self._api(request, f"{kind}/{owner}/{name}", rest)
        parts = path.strip("/").split("/")
        kind, parts = (parts[0], parts[1:]) if parts[0] in ("datasets", "spaces") else ("models", parts)
        if parts[1].endswith(".git"):
            return await self._batch(request)
        repo = self.repos.get(f"{kind}/{parts[0]}/{parts[1]}")
        return self._resolve(request, repo, "/".join(parts[4:])) if repo else missing("RepoNotFound")

    async def _create(self, request: Request) -> Response:
        body = await request.json()
        kind, name = body.get("type", "model") + "s", f"{body['organization']}/{body['name']}"
        if body["organization"] != "me":
            return JSONResponse({"error": "no rights in this namespace"}, 403)
        url = f"{self.url}/{'' if kind == 'models' else kind + '/'}{name}"
        if f"{kind}/{name}" in self.repos:
            return JSONResponse({"error": "exists", "url": url}, 409)
        private = body.get("private", body.get("visibility") == "private")
        self.repos[f"{kind}/{name}"] = {"files": {}, "sha": self._revision(), "private": private}
        return JSONResponse({"url": url, "name": name, "id": name})

    async def _api(self, request: Request, key: str, rest: list[str]) -> Response:
        repo = self.repos.get(key)
        if repo is None:
            return missing("RepoNotFound")
        action = rest[0] if rest else "revision"
        if action == "preupload":
            files = (await request.json())["files"]
            modes = [(one["path"], "lfs" if one["path"].endswith(LARGE) else "regular") for one in files]
            return JSONResponse({"files": [
                {"path": path, "uploadMode": mode, "shouldIgnore": False, "oid": None} for path, mode in modes
            ]})  # fmt: skip
        if action == "commit":
            return self._commit(key, repo, await request.body())
        if action == "tree":
            found = listing(
                repo["files"], "/".join(rest[2:]), request.query_params.get("recursive") in ("True", "true")
            )
            return JSONResponse(found) if found or not rest[2:] else missing("EntryNotFound")
        if action == "paths-info":
            body = await request.json() if "json" in request.headers["content-type"] else await request.form()
            paths = body["paths"] if isinstance(body, dict) else body.getlist("paths")
            return JSONResponse([entry(path, repo["files"][path]) for path in paths if path in repo["files"]])
        return JSONResponse({
            "_id": "1", "id": key.partition("/")[2], "sha": repo["sha"], "private": repo["private"], "gated": False,
            "disabled": False, "tags": [], "downloads": 0, "likes": 0,
            "siblings": [{"rfilename": path} for path in sorted(repo["files"])],
        })  # fmt: skip

    def _commit(self, key: str, repo: dict, body: bytes) -> Response:
        if not self.commits_left:
            return JSONResponse({"error": "gateway"}, 502)
        self.commits_left -= 1
        changed = []
        for line in body.splitlines():
            entry = json.loads(line)
            kind, value = entry["key"], entry["value"]
            if kind == "file":
                repo["files"][value["path"]] = base64.b64decode(value["content"])
            elif kind == "lfsFile":
                repo["files"][value["path"]] = self.large[value["oid"]]
            elif kind == "deletedFile":
                del repo["files"][value["path"]]
            changed += [value["path"]] if kind != "header" else []
        repo["sha"] = self._revision()
        self.commits.append((key, changed))
        url = f"{self.url}/{key.removeprefix('models/')}/commit/{repo['sha']}"
        return JSONResponse({"success": True, "commitOid": repo["sha"], "commitUrl": url, "hookOutput": ""})

    async def _batch(self, request: Request) -> Response:
        objects = []
        for wanted in (await request.json())["objects"]:
            found = {"oid": wanted["oid"], "size": wanted["size"], "authenticated": True}
            if wanted["oid"] not in self.large:
                found["actions"] = {"upload": {"href": f"{self.url}/large/{wanted['oid']}", "header": {}}}
            objects.append(found)
        return JSONResponse({"transfer": "basic", "objects": objects}, media_type="application/vnd.git-lfs+json")

    async def _store(self, request: Request, oid: str) -> Response:
        data = await request.body()
        if hashlib.sha256(data).hexdigest() != oid:
            return Response(status_code=400)
        self.large[oid] = data
        return Response(headers={"ETag": f'"{oid}"'})

    def _resolve(self, request: Request, repo: dict, path: str) -> Response:
        data = repo["files"].get(path)
        if data is None:
            return missing("EntryNotFound", {"X-Repo-Commit": repo["sha"]})
        headers = {
            "X-Repo-Commit": repo["sha"],
            "ETag": f'"{hashlib.sha1(data).hexdigest()}"',
            "Accept-Ranges": "bytes",
        }
        if request.method == "HEAD":
            return Response(headers={**headers, "Content-Length": str(len(data))})
        if wanted := request.headers.get("range"):
            first, _, last = wanted.removeprefix("bytes=").partition("-")
            part = data[int(first) : int(last) + 1 if last else len(data)]
            span = f"bytes {first}-{int(first) + len(part) - 1}/{len(data)}"
            return Response(part, 206, {**headers, "Content-Range": span})
        return Response(data, headers=headers)


def listing(files: dict[str, bytes], folder: str, recursive: bool) -> list[dict]:
    """Files and folders below a folder, or only directly in it."""
    start = f"{folder}/" if folder else ""
    found: dict[str, dict] = {}
    for path, data in sorted(files.items()):
        if not path.startswith(start):
            continue
        parts = path.removeprefix(start).split("/")
        for depth in range(1, len(parts) if recursive else min(len(parts), 2)):
            name = start + "/".join(parts[:depth])
            found[name] = {"type": "directory", "path": name, "oid": "0" * 40, "size": 0}
        if recursive or len(parts) == 1:
            found[path] = entry(path, data)
    return list(found.values())


def entry(path: str, data: bytes) -> dict:
    git = hashlib.sha1(b"blob %d\x00" % len(data) + data).hexdigest()
    found = {"type": "file", "path": path, "oid": git, "size": len(data)}
    if path.endswith(LARGE):
        found["lfs"] = {"oid": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 130}
    return found


def missing(code: str, headers: dict | None = None) -> Response:
    return JSONResponse({"error": code}, 404, {"X-Error-Code": code, **(headers or {})})


@contextmanager
def serve():
    """The Hub on a free port of this machine."""
    hub = Hub()
    app = Starlette(routes=[Route("/{path:path}", hub.answer, methods=["GET", "HEAD", "POST", "PUT"])])
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="critical"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        thread.join(0.01)
    hub.url = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    try:
        yield hub
    finally:
        server.should_exit = True
        thread.join(10)
