"""The walk is walked, and the script notices a station out of place."""

import subprocess
import sys
from pathlib import Path

from tools.walk import STATIONS, one_request, walked

ROOT = Path(__file__).resolve().parents[2]


def test_the_document_is_what_the_script_makes():
    made = subprocess.run([sys.executable, ROOT / "tools" / "walk.py", "--check"], capture_output=True, check=False)
    assert made.returncode == 0, made.stderr


def test_stations_come_in_the_order_of_the_run():
    swapped = [STATIONS[1], STATIONS[0], *STATIONS[2:]]
    assert walked(swapped, one_request) == list(STATIONS)


def test_a_station_that_is_never_passed_is_missing():
    assert walked(STATIONS, lambda: None) == []
