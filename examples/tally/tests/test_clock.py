from datetime import UTC, datetime, timedelta, timezone

import pytest
from tally.clock import hour_of, parse_zone, spell_zone

OFFSETS = [
    "+00:00", "+01:00", "+02:00", "+03:00", "+03:30", "+04:30", "+05:30", "+05:45", "+06:30",
    "+08:45", "+09:30", "+10:30", "+12:45", "+14:00", "-01:00", "-02:30", "-03:30", "-04:00",
    "-07:00", "-09:30", "-11:00", "-12:00",
]  # fmt: skip


@pytest.mark.parametrize("text", OFFSETS)
def test_spelling_a_parsed_zone_gives_the_text_back(text):
    assert spell_zone(parse_zone(text)) == text


@pytest.mark.parametrize("text", OFFSETS)
def test_a_colon_changes_nothing(text):
    assert parse_zone(text.replace(":", "")) == parse_zone(text)


@pytest.mark.parametrize("text", OFFSETS)
def test_noon_is_noon_in_its_own_zone(text):
    zone = parse_zone(text)
    assert hour_of(datetime(2024, 3, 1, 12, 59, tzinfo=zone), zone).hour == 12


def test_z_is_utc():
    assert parse_zone("Z") == UTC


def test_the_hour_of_a_moment_in_a_half_hour_zone_west_of_greenwich():
    moment = datetime(2024, 3, 2, 3, 20, tzinfo=UTC)
    newfoundland = timezone(-timedelta(hours=3, minutes=30))
    assert hour_of(moment, parse_zone("-03:30")) == datetime(2024, 3, 1, 23, tzinfo=newfoundland)
