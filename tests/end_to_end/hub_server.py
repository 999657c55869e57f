"""A Hugging Face Hub that misbehaves as told, for tests of `pull` and `-hf`: HTTPS on 127.0.0.1
with a certificate authority made on the spot, and a proxy that tunnels. Standard library and the
openssl program only. What a client asked for is kept in `Server.requests`."""

import hashlib
import http.server
import json
import os
import select
import socket
import socketserver
import ssl
import subprocess
import threading
from dataclasses import dataclass, field

COMMIT = "c0ffee" + "0" * 34


def make_authority(folder):
    """A CA and a certificate for 127.0.0.1 and localhost: paths of ca.pem and server.pem."""

    def path(name):
        return os.path.join(folder, name)

    def openssl(*args):
        done = subprocess.run(["openssl", *args], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(done.stderr)

    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
            "/CN=Test authority", "-keyout", path("ca.key"), "-out", path("ca.pem"))
    openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost",
            "-keyout", path("server.key"), "-out", path("server.csr"))
    with open(path("names"), "w", encoding="ascii") as names:
        names.write("subjectAltName=IP:127.0.0.1,DNS:localhost\n")
    openssl("x509", "-req", "-in", path("server.csr"), "-CA", path("ca.pem"), "-CAkey",
            path("ca.key"), "-CAcreateserial", "-days", "2", "-extfile", path("names"),
            "-out", path("server.crt"))
    with open(path("server.pem"), "w", encoding="ascii") as joined:
        for name in ("server.key", "server.crt"):
            with open(path(name), encoding="ascii") as part:
                joined.write(part.read())
    return path("ca.pem"), path("server.pem")


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def git_blob(content):
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


@dataclass
class Repo:
    """Files of one repository; `plain` ones are stored in Git itself."""
    files: dict
    commit: str = COMMIT
    plain: set = field(default_factory=set)

    def siblings(self):
        for path, content in self.files.items():
            entry = {"rfilename": path, "size": len(content), "blobId": git_blob(content)}
            if path not in self.plain:
                entry["lfs"] = {"sha256": sha256(content), "size": len(content),
                                "pointerSize": 134}
            yield entry

    def listing(self):
        return {"id": "org/name", "sha": self.commit, "siblings": list(self.siblings()),
                "tags": ["gguf"], "cardData": {"deep": {"er": [1, 2, {"x": None}]}}}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # One record per write, and no waiting for more to come.
    wbufsize = -1
    disable_nagle_algorithm = True

    def log_message(self, *args):
        pass

    def reply(self, status, body=b"", headers=()):
        self.send_response(status)
        names = {name.lower() for name, _ in headers}
        for name, value in headers:
            self.send_header(name, str(value))
        if "content-length" not in names and "transfer-encoding" not in names:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def cut(self):
        """The connection ends without a word."""
        self.close_connection = True
        self.wfile.flush()
        try:
            self.connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def first_byte(self):
        wanted = self.headers.get("Range", "")
        return int(wanted.removeprefix("bytes=").rstrip("-")) if wanted else None

    def reply_file(self, content, etag='"v1"', ranges=True, headers=()):
        """As a content network does: ranges, If-Range, 416."""
        first = self.first_byte() if ranges else None
        if first is not None and self.headers.get("If-Range", etag) != etag:
            first = None
        headers = [("ETag", etag), *headers]
        if first is None:
            self.reply(200, content, headers)
        elif first >= len(content):
            self.reply(416, b"", [("Content-Range", f"bytes */{len(content)}")])
        else:
            self.reply(206, content[first:], [
                ("Content-Range", f"bytes {first}-{len(content) - 1}/{len(content)}"), *headers])

    def part(self, content, etag='"v1"', until=None):
        """The headers of the whole answer, but its bytes only up to `until`; then cut off."""
        first = self.first_byte() or 0
        status = 206 if first else 200
        headers = [("ETag", etag), ("Content-Length", len(content) - first)]
        if first:
            headers.append(("Content-Range", f"bytes {first}-{len(content) - 1}/{len(content)}"))
        self.reply(status, content[first:until], headers)
        self.cut()

    def do_HEAD(self):
        """As huggingface_hub asks: who wants to be asked so sets `Server.head`."""
        if self.server.owner.head is None:
            self.send_error(405)
        else:
            self.server.owner.head(self)

    def reply_head(self, headers):
        self.send_response(200)
        for name, value in headers:
            self.send_header(name, str(value))
        self.end_headers()

    def do_GET(self):
        server = self.server.owner
        with server.lock:
            server.requests.append((self.path, dict(self.headers.items())))
        try:
            for prefix, act in server.acts:
                if self.path.startswith(prefix) and act(self):
                    return
            server.serve(self)
        except (BrokenPipeError, ConnectionResetError, ssl.SSLError):
            self.close_connection = True


class QuietServer(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass  # clients that leave are what the tests are about


class Server:
    """Serves repositories. `acts` are (path prefix, function of the handler) in order: the first
    that returns true has answered; otherwise the Hub answers as it should."""

    def __init__(self, certificate=None):
        self.repos, self.acts, self.requests = {}, [], []
        self.head = None
        self.lock = threading.Lock()
        self.server = QuietServer(("127.0.0.1", 0), Handler)
        self.server.owner = self
        self.scheme = "http"
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            # The handshake belongs to the connection's thread, not to the one that accepts.
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True,
                                                     do_handshake_on_connect=False)
            self.scheme = "https"
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def url(self, host="127.0.0.1"):
        return f"{self.scheme}://{host}:{self.port}"

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def reset(self, repos):
        self.repos, self.acts = repos, []
        with self.lock:
            self.requests = []

    def act(self, prefix, function, times=None):
        """Does `function` for paths that begin so, `times` times or always."""
        left = [times]

        def limited(handler):
            if left[0] is not None:
                if left[0] == 0:
                    return False
                left[0] -= 1
            function(handler)
            return True

        self.acts.append((prefix, limited))

    def asked(self, prefix):
        with self.lock:
            return [headers for path, headers in self.requests if path.startswith(prefix)]

    def serve(self, handler):
        path = handler.path.partition("?")[0]
        for name, repo in self.repos.items():
            if path == f"/api/models/{name}/revision/main":
                body = json.dumps(repo.listing()).encode()
                return handler.reply(200, body, [("Content-Type", "application/json")])
            for revision in (repo.commit, "main"):
                prefix = f"/{name}/resolve/{revision}/"
                file = path.removeprefix(prefix)
                if path.startswith(prefix) and file in repo.files:
                    return handler.reply_file(repo.files[file])
        return handler.reply(404, b"{}", [("X-Error-Code", "RepoNotFound")])


class Proxy:
    """Tunnels CONNECT requests and counts them."""

    def __init__(self):
        self.tunnels = tunnels = []

        class Tunnel(socketserver.StreamRequestHandler):
            def handle(self):
                line = self.rfile.readline().decode()
                while self.rfile.readline() not in (b"\r\n", b"\n", b""):
                    pass
                method, target, _ = line.split()
                if method != "CONNECT":
                    self.wfile.write(b"HTTP/1.1 405 Only CONNECT\r\n\r\n")
                    return
                tunnels.append(target)
                host, port = target.rsplit(":", 1)
                with socket.create_connection((host, int(port))) as there:
                    self.wfile.write(b"HTTP/1.1 200 Connected\r\nETag: proxy\r\n\r\n")
                    ends = {self.connection: there, there: self.connection}
                    while True:
                        for end in select.select(list(ends), [], [], 10)[0]:
                            data = end.recv(65536)
                            if not data:
                                return
                            ends[end].sendall(data)

        class QuietTunnels(socketserver.ThreadingTCPServer):
            daemon_threads = True
            allow_reuse_address = True

            def handle_error(self, request, client_address):
                pass

        self.server = QuietTunnels(("127.0.0.1", 0), Tunnel)
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def close(self):
        self.server.shutdown()
        self.server.server_close()
