import fcntl
import os
import tempfile
import unittest
from pathlib import Path

from collector import Collector


def descriptors():
    return len(os.listdir("/proc/self/fd"))


class HiddenTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def put(self, name, text):
        (self.folder / name).write_text(text)

    def leaked_in(self, polls, collector):
        collector.poll()
        before = descriptors()
        for _ in range(polls):
            collector.poll()
        return descriptors() - before

    def test_known_files_do_not_leak(self):
        self.put("a.txt", "1")
        self.assertEqual(self.leaked_in(50, Collector(self.folder)), 0)

    def test_files_without_a_number_do_not_leak(self):
        collector = Collector(self.folder)
        before = descriptors()
        for number in range(50):
            self.put(f"{number}.txt", "no number")
            collector.poll()
        self.assertEqual(descriptors() - before, 0)

    def test_locked_files_do_not_leak_and_come_later(self):
        self.put("a.txt", "2.5")
        collector = Collector(self.folder)
        with (self.folder / "a.txt").open("r+") as writer:
            fcntl.flock(writer, fcntl.LOCK_EX)
            self.assertEqual(collector.poll(), {})
            self.assertEqual(self.leaked_in(20, collector), 0)
        self.assertEqual(collector.poll(), {"a.txt": 2.5})

    def test_readings_are_as_before(self):
        self.put("a.txt", "1.5\n")
        self.put("b.txt", "bad")
        collector = Collector(self.folder)
        self.assertEqual(collector.poll(), {"a.txt": 1.5})
        self.assertEqual(collector.poll(), {})
        self.put("a.txt", "7")
        os.utime(self.folder / "a.txt", ns=(10**18, 10**18))
        self.assertEqual(collector.poll(), {"a.txt": 7.0})


if __name__ == "__main__":
    unittest.main()
