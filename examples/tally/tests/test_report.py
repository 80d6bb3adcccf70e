import json

from tally.clock import parse_zone
from tally.export import COLUMNS, rows, write_csv
from tally.parse import parse_lines
from tally.report import build

LINES = [
    '203.0.113.7 - - [01/Mar/2024:23:47:10 +0000] "GET /v1/orders HTTP/1.1" 200 100 req=aa01',
    '203.0.113.8 - - [01/Mar/2024:23:59:59 +0000] "GET /v1/orders HTTP/1.1" 502 0 req=aa02',
    '203.0.113.9 - - [02/Mar/2024:00:00:00 +0000] "GET /login HTTP/1.1" 200 50 req=aa03',
    "connection reset by peer",
]


def make(zone="Z"):
    return build(parse_lines(LINES), parse_zone(zone))


def test_hours_are_half_open():
    assert [hour.requests for hour in make().hours] == [2, 1]


def test_failures_name_the_request():
    assert make().hours[0].failures == ["aa02"]


def test_skipped_lines_are_counted():
    assert make().skipped == 1


def test_json_and_table_agree():
    report = make("+05:45")
    assert len(json.loads(report.as_json())["hours"]) == len(report.as_table().splitlines()) - 2


def test_csv_has_one_row_an_hour(tmp_path):
    target = tmp_path / "out.csv"
    assert write_csv(make(), target) == 2
    assert target.read_text().splitlines()[0] == ",".join(COLUMNS)


def test_rows_name_the_zone_of_the_hour():
    assert rows(make("-03:30"))[0][0] == "2024-03-01 20:00 -03:30"
