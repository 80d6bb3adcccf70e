"""Makes access logs to play with: the same ones each time (its own generator, no clock)."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path

SITES = {"london": 0, "stjohns": -210, "kathmandu": 345, "denver": -420}
PATHS = ("/v1/orders", "/v1/orders/export", "/v1/stock", "/v1/stock/moves", "/health", "/login")
STATUSES = (200, 200, 200, 201, 304, 404, 200, 500, 200, 502)


def numbers(seed: int) -> Iterator[int]:
    """A small linear congruential generator (constants of Numerical Recipes)."""
    while True:
        seed = (seed * 1664525 + 1013904223) % 2**32
        yield seed >> 8


def lines(minutes_east: int, seed: int, count: int) -> Iterator[str]:
    """Lines of one site over one day, oldest first."""
    pick = numbers(seed)
    zone = timezone(timedelta(minutes=minutes_east))
    when = datetime(2024, 3, 1, 18, 0, tzinfo=zone)
    for number in range(count):
        when += timedelta(seconds=next(pick) % 400)
        host = f"203.0.113.{next(pick) % 200 + 1}"
        verb = "POST" if next(pick) % 5 == 0 else "GET"
        path = PATHS[next(pick) % len(PATHS)]
        status = STATUSES[next(pick) % len(STATUSES)]
        size = next(pick) % 9000
        request = f"{next(pick) % 2**24:06x}"
        stamp = when.strftime("%d/%b/%Y:%H:%M:%S %z")
        if number % 61 == 60:
            yield f"{host} - - [{stamp}] connection reset by peer"
            continue
        yield f'{host} - - [{stamp}] "{verb} {path} HTTP/1.1" {status} {size} req={request}'


def main() -> None:
    """Write one log per site and show the progress on one line."""
    folder, count = Path(sys.argv[1]), int(sys.argv[2])
    folder.mkdir(exist_ok=True)
    for index, (site, minutes_east) in enumerate(SITES.items(), 1):
        with (folder / f"{site}.log").open("w") as file:
            for number, line in enumerate(lines(minutes_east, index, count), 1):
                file.write(line + "\n")
                if number % 10 == 0:
                    bar = "#" * (number * 30 // count)
                    print(f"\r{site:<10} [{bar:<30}] {number * 100 // count:3d} %", end="")
        print()


if __name__ == "__main__":
    main()
