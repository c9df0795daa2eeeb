"""The pause after failures: from 1 s to 10 min."""

from mam.core.growing_pause import pause_after


def test_e2_the_pause_doubles_up_to_ten_minutes() -> None:
    assert [pause_after(failures) for failures in range(1, 12)] == [
        *(1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600)
    ]
    assert pause_after(10_000) == 600
