"""Runs a command on a pseudo-terminal and tells, as JSON, what it wrote.

Reads a JSON object from standard input:
  argv, env, cwd   the command
  size             [rows, columns] at the start
  resize           [[seconds, rows, columns], ...]
  type             [[text to wait for, text to type], ...], in order
  stdout, stderr   files to send them to instead
Writes {status, pieces: [[columns, text], ...], echo}: the text as bytes in Latin-1, with the width it was written at,
and whether the terminal echoes at the end.
"""
import fcntl
import json
import os
import pty
import select
import struct
import sys
import termios
import time

spec = json.load(sys.stdin)
master, slave = pty.openpty()
# A terminal throws away what it has not yet shown when ^C comes; whether that was the middle of a frame is chance.
modes = termios.tcgetattr(slave)
modes[3] |= termios.NOFLSH
termios.tcsetattr(slave, termios.TCSANOW, modes)


def resize(rows, columns):
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


rows, columns = spec["size"]
resize(rows, columns)
child = os.fork()
if child == 0:
    os.setsid()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    for number, name in ((0, None), (1, spec.get("stdout")), (2, spec.get("stderr"))):
        end = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) if name else slave
        os.dup2(end, number)
    os.chdir(spec["cwd"])
    os.execve(spec["argv"][0], spec["argv"], spec["env"])

began = time.monotonic()
steps = sorted(spec.get("resize", []))
answers = list(spec.get("type", []))
pieces, seen = [], ""
status = None
while True:
    while steps and time.monotonic() - began >= steps[0][0]:
        _, rows, columns = steps.pop(0)
        resize(rows, columns)
    ready, _, _ = select.select([master], [], [], 0.02)
    if ready:
        text = os.read(master, 65536).decode("latin-1")
        pieces.append([columns, text])
        seen += text
    elif status is not None:
        break
    if answers and answers[0][0] in seen:
        seen = ""
        os.write(master, answers.pop(0)[1].encode())
    if status is None:
        ended, code = os.waitpid(child, os.WNOHANG)
        if ended:
            status = os.waitstatus_to_exitcode(code)
    if time.monotonic() - began > 60:
        os.kill(child, 9)
        sys.exit("the command did not end within a minute")

echo = bool(termios.tcgetattr(slave)[3] & termios.ECHO)
json.dump({"status": status, "pieces": pieces, "echo": echo}, sys.stdout)
