"""A program on a pseudo terminal of 24 lines and 80 columns, for tests of what it writes there."""
import fcntl
import os
import pty
import select
import struct
import termios
import time


class Terminal:
    def __init__(self, command, environment):
        self.text = b""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(command[0], command, environment)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))

    def send(self, text):
        os.write(self.fd, text.encode() if isinstance(text, str) else text)

    def read(self, seconds):
        """Read on; False when nothing came or the program ended."""
        if not select.select([self.fd], [], [], seconds)[0]:
            return False
        try:
            more = os.read(self.fd, 65536)
        except OSError:
            more = b""
        self.text += more
        return bool(more)

    def until(self, text, seconds=60):
        """All that comes up to and with this text; an AssertionError if it does not come."""
        text = text.encode()
        end = time.monotonic() + seconds
        while text not in self.text:
            if not self.read(max(0, end - time.monotonic())):
                raise AssertionError(f"{text!r} did not come, but {self.text!r}")
        at = self.text.index(text) + len(text)
        before, self.text = self.text[:at], self.text[at:]
        return before.decode()

    def end(self):
        """The rest, and the exit status (negative: a signal)."""
        while self.read(60):
            pass
        rest, self.text = self.text, b""
        os.close(self.fd)
        return rest.decode(), os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
