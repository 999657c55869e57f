"""The cache shared with huggingface_hub: each finds what the other fetched, and asks for nothing.

usage: hub_cache.py GODWIT   (in the environment of scripts/venv; against a Hub on this machine)
"""
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "end_to_end"))
from hub_server import Repo, Server  # noqa: E402

FILES = {"a-Q4_K_M.gguf": b"one" * 1000, "sub/b-Q8_0.gguf": b"two" * 1000, "README.md": b"three"}


def check(condition, what):
    if not condition:
        sys.exit(f"hub_cache: FAILED: {what}")
    print(f"hub_cache: {what}")


def godwit(program, cache, *args):
    done = subprocess.run([program, "pull", "-hf", "org/name", *args], capture_output=True,
                          text=True, env={**os.environ, "HF_HUB_CACHE": cache}, check=False)
    if done.returncode != 0:
        sys.exit(f"hub_cache: FAILED: godwit pull {' '.join(args)}: {done.stderr}")
    return done.stdout.strip()


def main():
    program = os.path.abspath(sys.argv[1])
    server = Server()
    server.repos = {"org/name": Repo(FILES, plain={"README.md"})}
    # Before the import: huggingface_hub reads its environment once.
    for name in ("HF_TOKEN", "HF_HUB_OFFLINE", "LLAMA_CACHE", "MODEL_ENDPOINT"):
        os.environ.pop(name, None)
    os.environ.update(HF_ENDPOINT=server.url(), HF_HUB_DISABLE_TELEMETRY="1",
                      HF_HUB_DISABLE_PROGRESS_BARS="1", HF_HOME=tempfile.mkdtemp(),
                      HF_HUB_DISABLE_UPDATE_CHECK="1")
    import huggingface_hub

    # What huggingface_hub asks before it fetches; the Hub answers with the file's identity.
    def head(handler):
        name = handler.path.rsplit("/resolve/", 1)[1].split("/", 1)[1]
        entry = next(e for e in server.repos["org/name"].siblings() if e["rfilename"] == name)
        etag = entry["lfs"]["sha256"] if "lfs" in entry else entry["blobId"]
        handler.reply_head([("ETag", f'"{etag}"'), ("X-Repo-Commit", "c0ffee" + "0" * 34),
                            ("Content-Length", entry["size"]), ("Accept-Ranges", "bytes")])
    server.head = head

    with tempfile.TemporaryDirectory() as cache:
        for name, content in FILES.items():
            path = godwit(program, cache, "-hff", name)
            found = huggingface_hub.hf_hub_download("org/name", name, cache_dir=cache,
                                                    local_files_only=True)
            check(found == path, f"huggingface_hub finds {name} where godwit put it")
            check(pathlib.Path(found).read_bytes() == content, f"{name} has its content")
        infos = huggingface_hub.scan_cache_dir(cache)
        check(not infos.warnings and infos.size_on_disk == sum(map(len, FILES.values())),
              "huggingface_hub's scan of the cache has nothing to complain about")
        n = len(server.asked("/org/name/resolve"))
        huggingface_hub.hf_hub_download("org/name", "a-Q4_K_M.gguf", cache_dir=cache)
        check(len(server.asked("/org/name/resolve")) == n, "and fetches nothing again online")

    with tempfile.TemporaryDirectory() as cache:
        for name in FILES:
            path = huggingface_hub.hf_hub_download("org/name", name, cache_dir=cache)
            n = len(server.asked("/"))
            check(godwit(program, cache, "-hff", name, "--offline") == path,
                  f"godwit finds {name} where huggingface_hub put it")
            check(len(server.asked("/")) == n, "without a request")
            fetched = len(server.asked("/org/name/resolve"))
            check(godwit(program, cache, "-hff", name) == path, "and with the Hub's listing")
            check(len(server.asked("/org/name/resolve")) == fetched, "without fetching it again")
    server.close()
    print("hub_cache: PASS")


if __name__ == "__main__":
    main()
