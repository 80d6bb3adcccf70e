from datetime import timedelta

import pytest
from tally.parse import BadLine, parse_line, parse_lines

GOOD = '203.0.113.7 - - [01/Mar/2024:23:47:10 -0330] "GET /v1/orders HTTP/1.1" 200 5123 req=9f3c2a'


def test_all_parts_of_a_line_are_read():
    record = parse_line(GOOD)
    assert record.host == "203.0.113.7"
    assert (record.verb, record.path, record.status) == ("GET", "/v1/orders", 200)
    assert (record.size, record.request) == (5123, "9f3c2a")


def test_a_missing_size_counts_as_zero():
    assert parse_line(GOOD.replace(" 5123 ", " - ")).size == 0


@pytest.mark.parametrize("line", ["", "nonsense", GOOD.replace("Mar", "Mrz"), GOOD[:40]])
def test_a_line_that_is_none_raises(line):
    with pytest.raises(BadLine):
        parse_line(line)


def test_blank_lines_are_silent_and_bad_ones_are_not():
    found = list(parse_lines([GOOD, "\n", "nonsense"]))
    assert len(found) == 2
    assert isinstance(found[1], BadLine)


def test_the_zone_of_the_line_is_kept():
    assert parse_line(GOOD).when.utcoffset() == -timedelta(hours=3, minutes=30)
