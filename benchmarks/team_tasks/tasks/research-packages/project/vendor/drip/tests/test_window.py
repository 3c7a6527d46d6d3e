import pytest

from drip import TooMany, Window


def test_hits_leave_the_window():
    now = [0.0]
    window = Window(2, 10, name="a", clock=lambda: now[0])
    assert [window.hit("k"), window.hit("k")] == [1, 0]
    with pytest.raises(TooMany) as told:
        window.hit("k")
    assert told.value.retry_after == 10
    now[0] = 10.1
    assert window.hit("k") == 1
