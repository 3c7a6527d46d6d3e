from tollgate import Gate, MemoryStore, Rate, StoreError


class Broken(MemoryStore):
    def take(self, *args):
        raise StoreError("connection refused")


def test_bucket_fills_again():
    now = [0.0]
    gate = Gate(MemoryStore(), Rate(2, capacity=2), clock=lambda: now[0])
    assert [gate.allow("a") for _ in range(3)] == [True, True, False]
    now[0] = 0.5
    assert gate.allow("a")


def test_denies_on_request():
    assert not Gate(Broken(), Rate(1), on_error="deny").allow("a")
