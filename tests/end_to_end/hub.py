"""`pull` and `-hf` against a Hub on this machine that misbehaves (hub_server.py): no internet,
system's python3 and openssl only."""

import hashlib
import json
import os
import resource
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from email.utils import formatdate

from godwit_program import GodwitTest, clean_environment, main
from hub_server import COMMIT, Proxy, Repo, Server, git_blob, make_authority, sha256

NAME = "org/name"
FILE = "name-Q4_K_M.gguf"
API = f"/api/models/{NAME}/revision/main"
CONTENT = bytes(range(256)) * 4096  # 1 MiB
HALF = len(CONTENT) // 2
TOKEN = "hf_" + "t" * 34
# Of whoever runs the tests.
FOREIGN = ("HF_TOKEN", "HF_HOME", "HF_HUB_CACHE", "LLAMA_CACHE", "XDG_CACHE_HOME", "https_proxy",
           "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY", "SSL_CERT_FILE",
           "CURL_CA_BUNDLE", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "MODEL_ENDPOINT")


class Hub(GodwitTest):
    @classmethod
    def setUpClass(cls):
        cls.certificates = tempfile.mkdtemp(prefix="godwit-ca-")
        cls.ca, certificate = make_authority(cls.certificates)
        cls.server = Server(certificate)
        cls.other = Server(certificate)
        cls.plain = Server()
        cls.url = f"/{NAME}/resolve/{COMMIT}/{FILE}"

    @classmethod
    def tearDownClass(cls):
        for server in (cls.server, cls.other, cls.plain):
            server.close()
        shutil.rmtree(cls.certificates)

    def setUp(self):
        self.home = tempfile.mkdtemp(prefix="home-", dir=self.folder)
        self.repo = Repo({FILE: CONTENT, "README.md": b"hello"}, plain={"README.md"})
        for server in (self.server, self.other, self.plain):
            server.reset({NAME: self.repo})

    def environment(self, **extra):
        env = dict.fromkeys(FOREIGN, "")
        env.update(HOME=self.home, HF_ENDPOINT=self.server.url(), CURL_CA_BUNDLE=self.ca)
        env.update(extra)
        return env

    def pull(self, *args, env=None, name=NAME):
        return self.godwit.run("pull", "-hf", name, *args, env=self.environment(**(env or {})))

    def cache(self, *parts, name=NAME):
        return os.path.join(self.home, ".cache/huggingface/hub",
                            "models--" + name.replace("/", "--"), *parts)

    def incomplete(self, content=CONTENT):
        return self.cache("blobs", sha256(content) + ".incomplete")

    def leave_incomplete(self, content):
        os.makedirs(self.cache("blobs"), exist_ok=True)
        with open(self.incomplete(), "wb") as file:
            file.write(content)

    def assert_pulled(self, done, content=CONTENT, file=FILE):
        self.assertEqual(done.code, 0, done.err)
        path = done.text.removesuffix("\n")
        self.assertEqual(path, self.cache("snapshots", self.repo.commit, file))
        with open(path, "rb") as got:
            self.assertEqual(got.read(), content)
        self.assertEqual([n for n in os.listdir(self.cache("blobs")) if "." in n], [])

    def assert_failed(self, done, *words, code=1):
        self.assertEqual(done.code, code, done.err)
        self.assertEqual(done.out, b"")
        self.assertTrue(done.err.endswith("\n"), done.err)
        last = done.err.splitlines()[-1]
        self.assertTrue(last.startswith("error: "), done.err)
        for word in words:
            self.assertIn(word, last)
        self.assertFalse(os.path.lexists(self.cache("snapshots", COMMIT, FILE)))
        self.assertNotIn(TOKEN, done.err)

    def ranges(self):
        return [headers.get("Range") for headers in self.server.asked(self.url)]


class Fetching(Hub):
    def test_layout_is_that_of_huggingface_hub(self):
        self.assert_pulled(self.pull())
        with open(self.cache("refs/main"), encoding="ascii") as ref:
            self.assertEqual(ref.read(), COMMIT)
        link = os.readlink(self.cache("snapshots", COMMIT, FILE))
        self.assertEqual(link, "../../blobs/" + sha256(CONTENT))
        self.assertTrue(os.path.exists(os.path.join(
            self.home, ".cache/huggingface/hub/.locks/models--org--name",
            sha256(CONTENT) + ".lock")))

    def test_what_is_here_is_not_fetched_again(self):
        self.assert_pulled(self.pull())
        self.assert_pulled(self.pull())
        self.assertEqual(self.ranges(), [None])

    def test_json(self):
        done = self.pull("--json")
        facts = json.loads(done.out)
        self.assertEqual((facts["bytes"], facts["sha256"]), (len(CONTENT), sha256(CONTENT)))
        self.assertEqual((facts["repo"], facts["commit"]), (NAME, COMMIT))
        self.assertTrue(os.path.exists(facts["path"]))
        self.assertEqual(len(facts["files"]), 1)
        small = json.loads(self.pull("--json", "-hff", "README.md").out)
        self.assertEqual(small["sha256"], hashlib.sha256(b"hello").hexdigest())
        self.assertTrue(os.path.exists(self.cache("blobs", git_blob(b"hello"))))

    def test_positional_repository(self):
        done = self.godwit.run("pull", NAME + ":q4_k_m", env=self.environment())
        self.assert_pulled(done)

    def test_quantisations(self):
        self.repo.files = {"a-Q8_0.gguf": b"8", "a-Q4_K_M.gguf": b"4", "a-BF16.gguf": b"b",
                           "mmproj-a-Q4_K_M.gguf": b"m", "notes.txt": b"n"}
        for name, file, content in ((NAME, "a-Q4_K_M.gguf", b"4"),
                                    (NAME + ":q8_0", "a-Q8_0.gguf", b"8"),
                                    (NAME + ":f16", "a-BF16.gguf", b"b")):
            with self.subTest(name=name):
                self.assert_pulled(self.pull(name=name), content, file)
        self.assert_failed(self.pull(name=NAME + ":Q2_K"), "Q2_K", "a-BF16.gguf, ")
        self.assert_failed(self.pull("-hff", "b.gguf"), "b.gguf", "a-BF16.gguf")

    def test_no_model(self):
        self.repo.files = {"model.safetensors": b"s"}
        self.assert_failed(self.pull(), "no GGUF model")

    def test_split_model(self):
        shards = {f"Q8_0/m-Q8_0-0000{i}-of-00003.gguf": b"%d" % i * 1000 for i in (1, 2, 3)}
        self.repo.files = {**shards, FILE: CONTENT}
        done = self.pull(name=NAME + ":Q8_0")
        self.assert_pulled(done, b"1" * 1000, "Q8_0/m-Q8_0-00001-of-00003.gguf")
        for file, content in shards.items():
            with open(self.cache("snapshots", COMMIT, file), "rb") as got:
                self.assertEqual(got.read(), content)
        del self.repo.files["Q8_0/m-Q8_0-00002-of-00003.gguf"]
        self.assert_failed(self.pull(name=NAME + ":Q8_0"), "-00002-of-00003.gguf' is missing")

    def test_a_new_commit_links_what_is_unchanged(self):
        self.assert_pulled(self.pull())
        self.repo.commit = "ab" * 20
        self.assert_pulled(self.pull())
        self.assertEqual(len(self.server.asked(f"/{NAME}/resolve")), 1)

    def test_names_with_blanks_and_signs(self):
        file = "a folder/m #1%20-Q4_0+\u00e9.gguf"
        self.repo.files = {file: CONTENT}
        self.server.act(f"/{NAME}/resolve/{COMMIT}/a%20folder/m%20%231%2520-Q4_0%2B%C3%A9.gguf",
                        lambda h: h.reply_file(CONTENT))
        self.assert_pulled(self.pull(), CONTENT, file)

    def test_every_command_takes_it(self):
        with open(self.tiny, "rb") as file:
            self.repo.files = {FILE: file.read()}
        env = self.environment()
        direct = self.succeed("tokenize", "-m", self.tiny, "-p", "hello", "--ids").out
        done = self.succeed("tokenize", "-hf", NAME, "-p", "hello", "--ids", env=env)
        self.assertEqual(done.out, direct)
        for name, *args in (("info", "--json"), ("run", "-p", "x", "-n", 1, "--no-stats"),
                            ("chat", "-n", 1), ("bench", "-p", 4, "-n", 0, "-r", 1), ("check",)):
            with self.subTest(command=name):
                self.succeed(name, "-hf", NAME, *args, env=env)
        twin = {**env, "LLAMA_ARG_HF_REPO": NAME}
        self.succeed("tokenize", "-p", "x", env=twin)
        # A flag beats the twin of what it excludes.
        self.succeed("tokenize", "-p", "x", "-m", self.tiny, env={**twin, "HF_ENDPOINT": "none"})

    def test_plain_lines_of_progress(self):
        def slow(handler):
            handler.send_response(200)
            handler.send_header("Content-Length", str(len(CONTENT)))
            handler.end_headers()
            for i in range(0, len(CONTENT), HALF // 4):
                handler.wfile.write(CONTENT[i:i + HALF // 4])
                handler.wfile.flush()
                time.sleep(0.15)
        self.server.act(self.url, slow)
        done = self.pull()
        self.assert_pulled(done)
        self.assertRegex(done.err, rf"{FILE} \d0 %  \d+ MiB/s")
        self.assertNotIn("\r", done.err)


class Interruptions(Hub):
    def test_a_cut_connection_is_continued(self):
        self.server.act(self.url, lambda h: h.part(CONTENT, until=HALF), times=1)
        done = self.pull()
        self.assert_pulled(done)
        self.assertEqual(self.ranges(), [None, f"bytes={HALF}-"])
        self.assertEqual(self.server.asked(self.url)[1]["If-Range"], '"v1"')
        self.assertIn("trying again", done.err)

    def test_what_an_earlier_pull_left_is_continued(self):
        self.leave_incomplete(CONTENT[:HALF])
        self.assert_pulled(self.pull())
        self.assertEqual(self.ranges(), [f"bytes={HALF}-"])

    def test_what_is_complete_but_unverified_is_only_verified(self):
        self.leave_incomplete(CONTENT)
        self.assert_pulled(self.pull())
        self.assertEqual(self.ranges(), [])

    def test_what_an_earlier_pull_left_may_be_damaged(self):
        for left in (b"?" * HALF, CONTENT + b"more", b"?" * len(CONTENT)):
            with self.subTest(bytes=len(left)):
                shutil.rmtree(self.cache(), ignore_errors=True)
                self.leave_incomplete(left)
                self.assert_pulled(self.pull())

    def test_range_ignored(self):
        self.server.act(self.url, lambda h: h.part(CONTENT, until=HALF), times=1)
        self.server.act(self.url, lambda h: h.reply_file(CONTENT, ranges=False))
        self.assert_pulled(self.pull())
        self.assertEqual(len(self.ranges()), 2)

    def test_range_ignored_and_cut_for_ever(self):
        def ignores(handler):
            handler.reply(200, CONTENT[:HALF], [("Content-Length", len(CONTENT))])
            handler.cut()
        self.server.act(self.url, ignores)
        done = self.pull("--retries", 1)
        self.assert_failed(done, "after 2 attempts")
        self.assertEqual(len(self.ranges()), 2)

    def test_the_file_changes_between_parts(self):
        # By the rules: If-Range does not hold, and the whole file comes.
        self.server.act(self.url, lambda h: h.part(b"?" * len(CONTENT), '"v0"', HALF), times=1)
        self.assert_pulled(self.pull())
        self.assertEqual(len(self.ranges()), 2)

    def test_the_file_changes_between_parts_and_the_server_does_not_mind(self):
        self.server.act(self.url, lambda h: h.part(b"?" * len(CONTENT), '"v0"', HALF), times=1)
        self.server.act(self.url, lambda h: h.part(CONTENT, '"v1"'), times=1)
        self.assert_pulled(self.pull())
        self.assertEqual(self.ranges(), [None, f"bytes={HALF}-", None])

    def test_another_range_than_asked_for(self):
        self.leave_incomplete(CONTENT[:HALF])
        self.server.act(self.url, lambda h: h.reply(
            206, CONTENT[5:], [("Content-Range", f"bytes 5-{len(CONTENT) - 1}/{len(CONTENT)}")]))
        self.assert_failed(self.pull(), f"bytes from {HALF} on")

    def test_range_not_satisfiable(self):
        self.leave_incomplete(CONTENT[:HALF])
        self.server.act(self.url, lambda h: h.reply(416), times=1)
        self.assert_pulled(self.pull())
        self.assertEqual(self.ranges(), [f"bytes={HALF}-", None])

    def test_ctrl_c_keeps_what_has_arrived(self):
        arrived = threading.Event()

        def stall(handler):
            handler.reply(200, CONTENT[:HALF], [("Content-Length", len(CONTENT))])
            arrived.set()
            time.sleep(10)
        self.server.act(self.url, stall, times=1)
        process = self.godwit.start(("pull", "-hf", NAME), env=self.environment())
        self.assertTrue(arrived.wait(20))
        self.wait_for(lambda: os.path.exists(self.incomplete()) and
                      os.path.getsize(self.incomplete()) == HALF)
        process.send_signal(signal.SIGINT)
        started = time.monotonic()
        done = self.godwit.finish(process)
        self.assertEqual((done.code, done.out), (130, b""), done.err)
        self.assertLess(time.monotonic() - started, 5)
        self.assertIn("kept", done.err)
        self.assert_pulled(self.pull())
        self.assertEqual(self.ranges()[1:], [f"bytes={HALF}-"])

    def wait_for(self, condition):
        deadline = time.monotonic() + 20
        while not condition():
            self.assertLess(time.monotonic(), deadline, "waited in vain")
            time.sleep(0.01)

    def test_two_pulls_at_once(self):
        started, go_on = threading.Event(), threading.Event()

        def hold(handler):
            started.set()
            go_on.wait(20)
            handler.reply_file(CONTENT)
        self.server.act(self.url, hold)
        env = self.environment()
        first = self.godwit.start(("pull", "-hf", NAME), env=env)
        self.assertTrue(started.wait(20))
        second = self.godwit.start(("pull", "-hf", NAME), env=env)
        self.wait_for(lambda: len(self.server.asked(API)) == 2)
        time.sleep(0.3)
        go_on.set()
        self.assert_pulled(self.godwit.finish(first))
        done = self.godwit.finish(second)
        self.assert_pulled(done)
        self.assertIn("waiting", done.err)
        self.assertEqual(len(self.ranges()), 1)

    def test_full_disk(self):
        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (HALF, HALF))
        done = subprocess.run([self.godwit.path, "pull", "-hf", NAME], capture_output=True,
                              env=clean_environment(self.environment()), preexec_fn=limit,
                              check=False, timeout=60)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(b"cannot write", done.stderr)
        self.assertIn(b"File too large", done.stderr)
        self.assert_pulled(self.pull())
        self.assertEqual(self.ranges()[-1], f"bytes={HALF}-")

    def test_space_is_checked_before(self):
        listing = self.repo.listing()
        for bytes_, words in ((1 << 60, "MB are free"), (1 << 63, "bytes")):
            listing["siblings"][0]["lfs"]["size"] = bytes_
            with self.subTest(bytes=bytes_):
                self.server.acts = []
                self.server.act(API, lambda h: h.reply(200, json.dumps(listing).encode()))
                self.assert_failed(self.pull(), words)
        self.assertEqual(self.ranges(), [])


class Answers(Hub):
    """What servers say, and what it comes to."""

    def test_busy_servers_are_asked_again(self):
        for status in (429, 500, 502, 503, 504):
            with self.subTest(status=status):
                shutil.rmtree(self.cache(), ignore_errors=True)
                self.server.reset({NAME: self.repo})
                self.server.act(API, lambda h, s=status: h.reply(s), times=1)
                self.assert_pulled(self.pull())
                self.assertEqual(len(self.server.asked(API)), 2)

    def test_retry_after(self):
        for text, least, most in (("2", 2, 10), ("date", 2, 10), ("nonsense", 0, 2), ("-5", 0, 2)):
            with self.subTest(retry_after=text):
                shutil.rmtree(self.cache(), ignore_errors=True)
                self.server.reset({NAME: self.repo})
                # A date counts in whole seconds: up to one of the four is lost at each end.
                self.server.act(self.url, lambda h, t=text: h.reply(429, b"", [
                    ("Retry-After", formatdate(time.time() + 4, usegmt=True)
                     if t == "date" else t)]), times=1)
                started = time.monotonic()
                self.assert_pulled(self.pull())
                self.assertGreaterEqual(time.monotonic() - started, least)
                self.assertLess(time.monotonic() - started, most)

    def test_retry_after_beyond_patience(self):
        self.server.act(self.url, lambda h: h.reply(503, b"", [("Retry-After", "99999999999999")]))
        self.assert_failed(self.pull(), "503", "come back in")
        self.assertEqual(len(self.ranges()), 1)

    def test_retries_end(self):
        self.server.act(self.url, lambda h: h.reply(503, b"x" * 5000))
        self.assert_failed(self.pull("--retries", 1), "503 Service Unavailable", "2 attempts")
        self.assertEqual(len(self.ranges()), 2)

    def test_gated(self):
        gated = [("X-Error-Code", "GatedRepo")]
        self.server.act(self.url, lambda h: h.reply(
            403 if "Authorization" in h.headers else 401, b"{}", gated))
        done = self.pull()
        self.assert_failed(done, "needs a token", f"{self.server.url()}/{NAME}", "HF_TOKEN")
        done = self.pull(env={"HF_TOKEN": TOKEN})
        self.assert_failed(done, "no access", "accept the licence")
        self.assertEqual(len(self.ranges()), 2)  # no use in asking again

    def test_unknown_and_private(self):
        self.server.repos = {}
        self.assert_failed(self.pull(), "no such repository", "404")
        self.server.act(API, lambda h: h.reply(401, b"{}"))
        self.assert_failed(self.pull(), "HF_TOKEN", "401")
        self.assert_failed(self.pull(env={"HF_TOKEN": TOKEN}), "does not accept the token")

    def test_wrong_checksum(self):
        self.server.act(self.url, lambda h: h.reply_file(b"?" * len(CONTENT)))
        self.assert_failed(self.pull(), "checksum", sha256(CONTENT))
        self.assertFalse(os.path.exists(self.incomplete()))
        self.repo.files = {"README.md": b"hello"}
        self.server.act(f"/{NAME}/resolve/{COMMIT}/README.md", lambda h: h.reply_file(b"hellO"))
        self.assert_failed(self.pull("-hff", "README.md"), "checksum", git_blob(b"hello"))

    def test_wrong_lengths(self):
        def chunked(handler, content):
            handler.reply(200, b"%x\r\n%s\r\n0\r\n\r\n" % (len(content), content),
                          [("Transfer-Encoding", "chunked")])
        for act, words in (
                (lambda h: h.reply(200, CONTENT[:99], [("Content-Type", "text/html")]),
                 "offers 99 of type 'text/html'"),
                (lambda h: h.reply(200, CONTENT + b"x"), f"offers {len(CONTENT) + 1}"),
                (lambda h: chunked(h, CONTENT + b"x"), "sends more"),
                (lambda h: chunked(h, b"?"), "ended early"),
                (lambda h: h.reply(204), "204")):
            with self.subTest(words=words):
                shutil.rmtree(self.cache(), ignore_errors=True)
                self.server.reset({NAME: self.repo})
                self.server.act(self.url, act)
                self.assert_failed(self.pull("--retries", 0), words)
        self.server.reset({NAME: self.repo})
        self.server.act(self.url, lambda h: chunked(h, CONTENT))
        self.assert_pulled(self.pull())

    def test_listings_that_are_none(self):
        good = json.dumps(self.repo.listing()).encode()
        for body, *words in ((good[:-9], "JSON"), (b"<html>", "<html>"), (b"[]", "JSON object"),
                             (b"", "JSON"), (b"{}", "'sha'"), (b"[" * 100000, "JSON"),
                             (b'{"sha":"%s"}' % COMMIT.encode(), "siblings"),
                             (b" " * (9 << 20), "longer than"),
                             (good.replace(FILE.encode(), b"../../../../x.gguf"), "../x.gguf"),
                             (good.replace(FILE.encode(), b"/etc/x.gguf"), "/etc/x.gguf"),
                             (good.replace(FILE.encode(), b"a\\u0000b.gguf"), "file name"),
                             (good.replace(sha256(CONTENT).encode(), b"../../x"), "checksum"),
                             (good.replace(COMMIT.encode(), b"../../x"), "commit")):
            with self.subTest(body=body[:40], words=words):
                self.server.reset({NAME: self.repo})
                self.server.act(API, lambda h, b=body: h.reply(200, b))
                self.assert_failed(self.pull("--retries", 0), *words)
                self.assertEqual(self.ranges(), [])
        self.assertFalse(os.path.exists(self.cache("blobs")))

    def test_truncated_listing_is_asked_for_again(self):
        def cut(handler):
            handler.reply(200, b'{"sha"', [("Content-Length", 1000)])
            handler.cut()
        self.server.act(API, cut, times=1)
        self.assert_pulled(self.pull())

    def test_stalled_server(self):
        def stall(handler):
            handler.reply(200, CONTENT[:HALF], [("Content-Length", len(CONTENT))])
            time.sleep(20)
        self.server.act(self.url, stall, times=1)
        started = time.monotonic()
        self.assert_pulled(self.pull(env={"HF_HUB_DOWNLOAD_TIMEOUT": "2"}))
        self.assertLess(time.monotonic() - started, 16)  # libcurl looks at means of 5 s
        self.assertEqual(self.ranges(), [None, f"bytes={HALF}-"])


class Redirects(Hub):
    def redirect(self, target):
        self.server.act(self.url, lambda h: h.reply(302, b"elsewhere", [("Location", target)]))

    def test_to_another_host_without_the_token(self):
        self.other.act("/blob", lambda h: h.reply_file(CONTENT, etag='"cdn"'))
        self.redirect(self.other.url("localhost") + "/blob?sig=1")
        self.assert_pulled(self.pull(env={"HF_TOKEN": TOKEN}))
        self.assertEqual(self.server.asked(self.url)[0]["Authorization"], "Bearer " + TOKEN)
        self.assertEqual(self.server.asked(API)[0]["Authorization"], "Bearer " + TOKEN)
        self.assertEqual(len(self.other.requests), 1)
        self.assertNotIn(TOKEN, repr(self.other.requests))

    def test_to_another_port_without_the_token(self):
        self.other.act("/blob", lambda h: h.reply_file(CONTENT))
        self.redirect(self.other.url() + "/blob")
        self.assert_pulled(self.pull("--hf-token", TOKEN))
        self.assertNotIn(TOKEN, repr(self.other.requests))

    def test_on_the_same_host_with_the_token(self):
        self.server.act("/moved", lambda h: h.reply_file(CONTENT))
        self.redirect("/moved")
        self.assert_pulled(self.pull(env={"HF_TOKEN": TOKEN}))
        self.assertEqual(self.server.asked("/moved")[0]["Authorization"], "Bearer " + TOKEN)

    def test_ranges_follow(self):
        self.other.act("/blob", lambda h: h.part(CONTENT, '"cdn"', HALF), times=1)
        self.other.act("/blob", lambda h: h.reply_file(CONTENT, '"cdn"'))
        self.redirect(self.other.url() + "/blob")
        self.assert_pulled(self.pull())
        again = self.other.asked("/blob")[1]
        self.assertEqual((again["Range"], again["If-Range"]), (f"bytes={HALF}-", '"cdn"'))

    def test_in_circles(self):
        self.redirect(self.url)
        self.assert_failed(self.pull(), "redirect")
        self.assertLess(len(self.ranges()), 20)

    def test_never_to_what_is_not_encrypted(self):
        self.plain.act("/blob", lambda h: h.reply_file(CONTENT))
        for target in (self.plain.url() + "/blob", "file:///etc/passwd", "ftp://127.0.0.1/x"):
            with self.subTest(target=target):
                self.server.reset({NAME: self.repo})
                self.redirect(target)
                self.assert_failed(self.pull())
        self.assertEqual(self.plain.requests, [])


class Network(Hub):
    def test_unknown_authority(self):
        done = self.pull(env={"CURL_CA_BUNDLE": "", "SSL_CERT_FILE": "/etc/ssl/certs/"
                              "ca-certificates.crt"})
        self.assert_failed(done, "certificate")
        self.assertEqual(self.server.requests, [])
        self.assert_pulled(self.pull("--cacert", self.ca, env={"CURL_CA_BUNDLE": ""}))

    def test_missing_bundle(self):
        self.assert_failed(self.pull("--cacert", "/no/such.pem"), "/no/such.pem")

    def test_certificate_of_another_name(self):
        url = self.server.url("127.0.0.2")
        self.assert_failed(self.pull(env={"HF_ENDPOINT": url}), "127.0.0.2")

    def test_proxy(self):
        proxy = Proxy()
        try:
            self.assert_pulled(self.pull(env={"https_proxy": proxy.url}))
            self.assertIn(f"127.0.0.1:{self.server.port}", proxy.tunnels)
            n = len(proxy.tunnels)
            shutil.rmtree(self.cache())
            self.assert_pulled(self.pull(env={"https_proxy": proxy.url, "no_proxy": "127.0.0.1"}))
            self.assertEqual(len(proxy.tunnels), n)
        finally:
            proxy.close()

    def test_no_token_over_http(self):
        env = {"HF_ENDPOINT": self.plain.url()}
        self.assert_pulled(self.pull(env=env))  # to this machine it may go
        done = self.pull(env={"HF_ENDPOINT": "http://192.0.2.1", "HF_TOKEN": TOKEN})
        self.assertEqual(done.code, 1)
        self.assertIn("not encrypted", done.err)

    def test_tokens(self):
        path = os.path.join(self.home, ".cache/huggingface/token")
        os.makedirs(os.path.dirname(path))
        with open(path, "w", encoding="ascii") as file:
            file.write("hf_stored\n")
        self.assert_pulled(self.pull())
        self.assertEqual(self.server.asked(API)[-1]["Authorization"], "Bearer hf_stored")
        self.pull("-hft", "hf_flag", env={"HF_TOKEN": TOKEN})
        self.assertEqual(self.server.asked(API)[-1]["Authorization"], "Bearer hf_flag")
        done = self.pull(env={"HF_TOKEN": "hf_a\r\nX-Evil: 1"})
        self.assertEqual(done.code, 1)
        self.assertNotIn("X-Evil", done.err)

    def test_offline(self):
        for offline in (("--offline",), ()):
            env = {} if offline else {"HF_HUB_OFFLINE": "1"}
            self.server.reset({NAME: self.repo})
            shutil.rmtree(self.cache(), ignore_errors=True)
            self.assert_failed(self.pull(*offline, env=env), "not in the cache")
            self.assertEqual(self.server.requests, [])
            self.assert_pulled(self.pull())
            n = len(self.server.requests)
            self.assert_pulled(self.pull(*offline, env=env))
            self.assertEqual(len(self.server.requests), n)
            done = self.pull(*offline, env=env, name=NAME + ":Q2_K")
            self.assertEqual(done.code, 1)
            self.assertIn("Q2_K", done.err)

    def test_a_hub_out_of_reach(self):
        nowhere = {"HF_ENDPOINT": "https://127.0.0.1:1"}
        self.assert_failed(self.pull("--retries", 1, env=nowhere), "127.0.0.1", "2 attempts")
        self.assert_pulled(self.pull())
        done = self.pull(env=nowhere)
        self.assert_pulled(done)
        self.assertIn("fetched before", done.err)

    def test_places(self):
        for variable, folder in (("HF_HOME", "a/hub"), ("HF_HUB_CACHE", "a"), ("LLAMA_CACHE", "a"),
                                 ("XDG_CACHE_HOME", "a/huggingface/hub")):
            with self.subTest(variable=variable):
                place = tempfile.mkdtemp(dir=self.home)
                done = self.pull(env={variable: os.path.join(place, "a")})
                self.assertEqual(done.code, 0, done.err)
                self.assertTrue(done.text.startswith(os.path.join(place, folder, "models--org--")))

    def test_a_cache_that_cannot_be_written(self):
        blocked = self.write("blocked", "a file in the way")
        self.assert_failed(self.pull(env={"HF_HUB_CACHE": blocked}), blocked)


class Listing(Hub):
    def test_list(self):
        self.assert_pulled(self.pull())
        self.leave_incomplete(b"part")
        rows = json.loads(self.succeed("pull", "--list", "--json", env=self.environment()).out)
        named = {row["name"]: row for row in rows}
        self.assertIsNone(named["smollm2"]["path"])
        row = next(r for r in rows if r["description"] == FILE)
        self.assertEqual((row["name"], row["bytes"], row["complete"]),
                         (NAME + ":Q4_K_M", len(CONTENT), True))
        self.assertTrue(os.path.exists(row["path"]))
        unfinished = next(r for r in rows if r["description"] == "unfinished")
        self.assertEqual((unfinished["bytes"], unfinished["complete"]), (4, False))
        text = self.succeed("pull", "--list", env=self.environment()).text
        for words in ("smollm2", "not pulled", NAME + ":Q4_K_M", "1.0 MB", "unfinished"):
            self.assertIn(words, text)

    def test_usage(self):
        for args in ((), ("smollm2", "-hf", NAME)):
            self.assert_failed(self.godwit.run("pull", *args, env=self.environment()), "one model")
        for name in ("org", "org/../x", "a/b/c", "org/na--me", "org/name:", "-/x", "org/na me"):
            with self.subTest(name=name):
                self.assert_failed(self.pull(name=name), "--hf-repo: expected")
        self.assertEqual(self.server.requests, [])
        done = self.godwit.run("info", "-m", self.tiny, "-hf", NAME, env=self.environment())
        self.assertEqual(done.code, 2, done.err)
        done = self.godwit.run("info", "-m", self.tiny, "-hff", FILE, env=self.environment())
        self.assertEqual(done.code, 2, done.err)


if __name__ == "__main__":
    main()
