import pytest

from quotakeeper import Keeper, MemoryStore, Quota, StoreUnavailable, Undecided


class Broken(MemoryStore):
    def get(self, key):
        raise StoreUnavailable("connection refused")


def test_calls_are_spread():
    now = [100.0]
    keeper = Keeper(MemoryStore(lambda: now[0]), Quota(10, burst=0))
    assert keeper.check("a").allowed and not keeper.check("a").allowed
    now[0] += 0.11
    assert keeper.check("a").allowed


def test_is_closed_without_its_store():
    with pytest.raises(Undecided):
        Keeper(Broken(), Quota(10)).check("a")
