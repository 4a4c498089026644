"""What is published is there whole or not at all, whoever else is at it."""

import os
import subprocess
import sys
import threading
import time

import pytest

from utils.ground import files
from utils.ground.paths import ROOT


def test_a_file_in_the_making_is_not_there_yet(tmp_path):
    path = tmp_path / "deep" / "thing"
    with files.publish(path) as made:
        made.write_text("half")
        made.with_name("scratch").write_text("what else was made")
        assert not path.exists()
    assert path.read_text() == "half"
    assert os.listdir(path.parent) == ["thing"]


def test_a_block_that_raises_leaves_what_was_there(tmp_path):
    path = tmp_path / "thing"
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt), files.publish(path) as made:
        made.write_text("new")
        raise KeyboardInterrupt
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["thing"]


def test_to_publish_nothing_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError), files.publish(tmp_path / "thing"):
        pass
    assert os.listdir(tmp_path) == []


def test_the_later_of_two_files_stays(tmp_path):
    path = tmp_path / "thing"
    with files.publish(path) as later:
        with files.publish(path) as earlier:
            earlier.write_text("earlier")
        later.write_text("later")
        assert path.read_text() == "earlier"
    assert path.read_text() == "later" and os.listdir(tmp_path) == ["thing"]


def test_the_earlier_of_two_folders_stays(tmp_path):
    path = tmp_path / "thing"
    with files.publish(path) as later:
        with files.publish(path) as earlier:
            earlier.mkdir()
            (earlier / "by").write_text("earlier")
        later.mkdir()
        (later / "by").write_text("later")
    assert (path / "by").read_text() == "earlier" and os.listdir(tmp_path) == ["thing"]


def test_a_folder_does_not_give_way_to_a_file(tmp_path):
    path = tmp_path / "thing"
    path.mkdir()
    with pytest.raises(IsADirectoryError), files.publish(path) as made:
        made.write_text("")
    assert os.listdir(tmp_path) == ["thing"]


def test_what_a_killed_process_left_is_removed_when_it_is_old(tmp_path):
    path = tmp_path / "thing"
    program = (
        "import os, pathlib, sys; from utils.ground import files\n"
        "with files.publish(pathlib.Path(sys.argv[1])) as made:\n"
        "    made.write_text('half'); os.kill(os.getpid(), 9)\n"
    )
    killed = subprocess.run([sys.executable, "-c", program, path], cwd=ROOT)
    (left,) = tmp_path.iterdir()
    assert killed.returncode == -9 and left.name.endswith(files.UNFINISHED)
    files.write_text(path, "whole")
    assert sorted(tmp_path.iterdir()) == sorted([left, path]), "it could still be at work"
    long_ago = time.time() - files.ABANDONED - 1
    os.utime(left, (long_ago, long_ago))
    files.write_text(path, "again")
    assert list(tmp_path.iterdir()) == [path] and path.read_text() == "again"


def test_threads_may_write_the_same_file_at_once(tmp_path):
    path, texts = tmp_path / "thing", [letter * 100_000 for letter in "abcd"]
    path.write_text(texts[0])
    path.chmod(0o640)
    seen, failed = set(), []

    def write(text: str) -> None:
        try:
            for _ in range(20):
                files.write_text(path, text)
                seen.add(path.read_text())
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=write, args=(text,)) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed and seen <= set(texts)
    assert path.stat().st_mode & 0o777 == 0o640 and os.listdir(tmp_path) == ["thing"]
