"""culet chat through a pipe and on a terminal."""
import os
import pty
import re
import select
import signal
import subprocess
import time

import pytest


def talk(culet, model, lines, *args):
    return culet("chat", "-m", model, *args, stdin="".join(line + "\n" for line in lines).encode())


def replies(result):
    assert result.code == 0, result.err
    return result.out


SAMPLED = ["-n", "12", "-s", "5", "--ignore-eos"]


def test_a_pipe_gets_replies_alone(culet, chat_model):
    r = talk(culet, chat_model, ["Hello", "", "  ", "/bye", "never"], "-n", "8", "--temp", "0")
    one = culet("run", "-m", chat_model, "-p", "Hello", "-n", "8", "--temp", "0")
    assert replies(r) == one.out + b"\n" and r.err == ""


def test_end_of_input_leaves(culet, chat_model):
    r = culet("chat", "-m", chat_model, "-n", "4", "--temp", "0", stdin=b"Hello")
    assert r.code == 0 and r.out.endswith(b"\n")
    assert culet("chat", "-m", chat_model).out == b""


def test_second_turn_sees_the_first(culet, chat_model):
    both = replies(talk(culet, chat_model, ["Hello", "And then?"], *SAMPLED))
    alone = replies(talk(culet, chat_model, ["And then?"], *SAMPLED))
    first = replies(talk(culet, chat_model, ["Hello"], *SAMPLED))
    assert both.startswith(first) and both[len(first):] != alone
    cleared = replies(talk(culet, chat_model, ["Hello", "/clear", "And then?"], *SAMPLED))
    assert cleared == first + alone


def test_system_text(culet, chat_model):
    plain, terse = (replies(talk(culet, chat_model, ["Hello"], *SAMPLED, *extra)) for extra in ([], ["-sys", "Be terse."]))
    assert plain != terse
    assert replies(talk(culet, chat_model, ["x", "/clear", "Hello"], *SAMPLED, "-sys", "Be terse.")).endswith(terse)


def reused(text):
    return [tuple(map(int, m)) for m in re.findall(r"reused (\d+) of (\d+) prompt tokens", text)]


def test_only_new_tokens_are_evaluated(culet, models, small_template):
    """The whole last prompt and its reply are reused, but for the token that was sampled last."""
    r = talk(culet, models / "tiny-e2b" / "gguf" / "tiny-e2b-Q4_0.gguf", ["Hello", "/stats", "And then?", "/stats", "Why?", "/stats"],
             "--chat-template-file", small_template, "-n", "12", "--temp", "0", "--ignore-eos")
    (zero, first), (second_reused, second), (third_reused, third) = reused(r.err)
    assert zero == 0 and first < second < third
    assert second_reused in (first + 11, first + 12), r.err
    assert third_reused in (second + 11, second + 12), r.err


def test_multi_line(culet, chat_model, tmp_path):
    block = replies(talk(culet, chat_model, ['"""', "one", "two", '"""'], *SAMPLED))
    inline = replies(talk(culet, chat_model, ['"""one', 'two"""'], *SAMPLED))
    whole = culet("run", "-m", chat_model, "-p", "one\ntwo", *SAMPLED)
    assert block == inline == whole.out + b"\n"


def test_commands(culet, chat_model):
    r = talk(culet, chat_model, ["/?", "/stats", "/regen", "/think", "/think on", "/think maybe", "/set", "/set temp 0", "/set temp x",
                                 "/set nothing 1", "/set top_p 2", "/imgae x", "/image x", "/audio x", "/save", "/load", "/bye"])
    assert r.code == 0 and r.out == b""
    for words in ("/save   FILE", "no reply yet", "there is no reply", "thinking is on", "neither on nor off", "temp is 0",
                  "'x' is not a finite number", "'nothing' is not a setting", "did you mean /image", "x: No such file",
                  "cannot hear", "needs a file name"):
        assert words in r.err, (words, r.err)


def test_regen_draws_again(culet, chat_model):
    r = replies(talk(culet, chat_model, ["Hello", "/regen"], *SAMPLED))
    first = replies(talk(culet, chat_model, ["Hello"], *SAMPLED))
    assert r.startswith(first) and r[len(first):] != first
    greedy = replies(talk(culet, chat_model, ["Hello", "/regen"], "-n", "12", "--temp", "0"))
    half = len(greedy) // 2
    assert greedy[:half] == greedy[half:]


@pytest.mark.parametrize("kv", ["f16", "f32", "q8_0"])
def test_a_loaded_chat_continues_with_the_same_bytes(culet, chat_model, tmp_path, kv):
    """As if it had never stopped: in the same process, and in another one that was given no flags and a random seed."""
    args = ["-ctk", kv, "-ctv", kv]
    whole = replies(talk(culet, chat_model, ["Hello", "Go on", f"/save {tmp_path}/s", "And then?", "Why?"], *args, "-n", "12", "--ignore-eos"))
    rest = replies(talk(culet, chat_model, [f"/load {tmp_path}/s", "And then?", "Why?"], *args, "--ignore-eos"))
    assert rest and whole.endswith(rest)
    again = replies(talk(culet, chat_model, ["Other", f"/load {tmp_path}/s", "And then?", "Why?"], *args, "--ignore-eos", "-n", "12"))
    assert again.endswith(rest)


def test_bad_session_files_keep_the_conversation(culet, models, chat_model, tmp_path):
    kept = replies(talk(culet, chat_model, ["Hello", f"/save {tmp_path}/good", "Go on"], *SAMPLED))
    good = (tmp_path / "good").read_bytes()
    foreign = tmp_path / "foreign"
    talk(culet, models / "tiny-gemma3", ["Hello", f"/save {foreign}"], *SAMPLED)
    files = {"empty": b"", "cut": good[:-7], "half": good[:len(good) // 2], "long": good + b"x", "text": b"hello\n" * 100}
    for at in range(0, len(good), max(1, len(good) // 12)):
        files[f"flip{at}"] = good[:at] + bytes([good[at] ^ 0x40]) + good[at + 1:]
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    names = [*files, "foreign", "missing"]
    assert foreign.exists()
    r = talk(culet, chat_model, ["Hello", *(f"/load {tmp_path}/{name}" for name in names), "Go on"], *SAMPLED)
    assert replies(r) == kept
    lines = r.err.splitlines()
    for name in names:
        assert any(line.startswith("culet: ") and name in line for line in lines), (name, r.err)
    assert "loaded" not in r.err


def test_context_exceeded(culet, chat_model):
    r = talk(culet, chat_model, ["Hello", "word " * 200, "Hello"], "-c", "96", "-n", "4", "--temp", "0")
    assert r.code == 1 and "96" in r.err and "/clear" in r.err
    assert r.out.count(b"\n") >= 2


def test_base_models_are_refused(culet, models, tmp_path):
    for name in ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"):
        source = models / "tiny-gemma3" / name
        if source.exists():
            (tmp_path / name).write_bytes(source.read_bytes())
    (tmp_path / "generation_config.json").write_text('{"eos_token_id": 1}')
    config = (tmp_path / "config.json").read_text()
    (tmp_path / "config.json").write_text(re.sub(r'("eos_token_id": )\[[^]]*\]', r"\g<1>1", config))
    r = culet("chat", "-m", tmp_path)
    assert r.code == 6 and "base model" in r.err and r.out == b""
    raw = culet("run", "-m", tmp_path, "-p", "Hello", "-n", "1", "--json").json()
    assert raw["prompt_ids"] == culet("tokenize", "-m", tmp_path, "-p", "Hello", "--json").json()["ids"]
    assert culet("run", "-m", tmp_path, "-p", "Hello", "-sys", "x").code == 2
    assert culet("render", "-m", tmp_path, "-", stdin=b'{"messages":[{"role":"user","content":"x"}]}').code == 6


def test_interrupts_through_a_pipe(spawn, chat_model):
    """The first Ctrl-C ends the reply and keeps the conversation, the next one leaves."""
    p = spawn("chat", "-m", chat_model, "--temp", "0", "--ignore-eos", "-c", "32768", "-v", stderr=subprocess.DEVNULL)
    p.stdin.write(b"Hello\n")
    p.stdin.flush()
    assert os.read(p.stdout.fileno(), 4096)
    p.send_signal(signal.SIGINT)
    quiet_since = time.monotonic()
    while time.monotonic() - quiet_since < 0.5:
        if select.select([p.stdout], [], [], 0.1)[0] and os.read(p.stdout.fileno(), 65536):
            quiet_since = time.monotonic()
    assert p.poll() is None
    p.send_signal(signal.SIGINT)
    assert p.wait(30) == 130
    p.stdin.close()
    p.stdout.close()


def test_termination(spawn, chat_model):
    p = spawn("chat", "-m", chat_model, "-v")
    while b"seed" not in p.stderr.readline():
        pass
    time.sleep(0.2)
    p.send_signal(signal.SIGTERM)
    p.communicate(timeout=30)
    assert p.returncode == 143


# ---- on a terminal

class Terminal:
    """The chat on a pseudo-terminal of its own."""

    def __init__(self, binary, *args):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.update(TERM="xterm", LC_ALL="C.UTF-8")
            os.execv(binary, [binary, *map(str, args)])

    def read_until(self, *words, seconds=30):
        data, end = b"", time.monotonic() + seconds
        while not all(word in data for word in words):
            assert time.monotonic() < end, data
            if select.select([self.fd], [], [], 0.1)[0]:
                try:
                    data += os.read(self.fd, 65536)
                except OSError:
                    break
        return data

    def type(self, data):
        os.write(self.fd, data)

    def leave(self):
        try:
            while os.read(self.fd, 65536):
                pass
        except OSError:
            pass
        os.close(self.fd)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


@pytest.fixture
def terminal(binary, chat_model):
    return Terminal(binary, "chat", "-m", chat_model, "--temp", "0", "--ignore-eos", "-n", "8")


def test_terminal_chat(terminal, culet, chat_model):
    terminal.read_until(b">>> ")
    terminal.type(b"Hello\r")
    shown = terminal.read_until(b"\n>>> ")
    assert b"Hello" in shown
    terminal.type(b"/stats\r")
    terminal.read_until(b"reused", b">>> ")
    terminal.type(b"/bye\r")
    assert terminal.leave() == 0


def test_terminal_ctrl_d(terminal):
    terminal.read_until(b">>> ")
    terminal.type(b"\x04")
    assert terminal.leave() == 0


def test_terminal_ctrl_c_twice(terminal):
    terminal.read_until(b">>> ")
    terminal.type(b"half a li\x03")
    terminal.read_until(b"again", b">>> ")
    terminal.type(b"\x03")
    assert terminal.leave() == 130


def test_terminal_ctrl_c_is_forgotten_after_a_line(terminal):
    terminal.read_until(b">>> ")
    for _ in range(2):
        terminal.type(b"\x03")
        terminal.read_until(b"again", b">>> ")
        terminal.type(b"/stats\r")
        terminal.read_until(b"no reply yet", b">>> ")
    terminal.type(b"/bye\r")
    assert terminal.leave() == 0


def test_terminal_stops_a_reply(binary, chat_model):
    t = Terminal(binary, "chat", "-m", chat_model, "--temp", "0", "--ignore-eos", "-c", "32768")
    t.read_until(b">>> ")
    t.type(b"Hello\r")
    t.read_until(b"Hello\r\n")
    time.sleep(0.2)
    t.type(b"\x03")
    t.read_until(b"stopped", b">>> ")
    t.type(b"/bye\r")
    assert t.leave() == 0


def test_model_text_cannot_steer_the_terminal(binary, chat_model, culet):
    """An escape byte that the model writes is shown as U+FFFD on a terminal and passes unchanged through a pipe."""
    esc = next(i for i in range(200, 500) if culet("detokenize", "-m", chat_model, "--ids", i).out == b"\x1b")
    args = ["run", "-m", chat_model, "-p", "Hello", "-n", 3, "--temp", "0", "-l", f"{esc}+1000"]
    assert culet(*args).out == b"\x1b\x1b\x1b"
    t = Terminal(binary, *args)
    shown = t.read_until(b"\xef\xbf\xbd" * 3 + b"\r\n")
    assert b"\x1b" not in shown.split(b"\xef\xbf\xbd", 1)[1].split(b"\r\n")[0]
    assert t.leave() == 0
