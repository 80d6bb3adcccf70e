"""Names, numbers and sentences of a small company; a second vocabulary is set aside."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

OPEN = {
    "noun": """invoice refund ledger order shipment customer basket coupon payment account stock
        parcel session token cache queue worker job batch report price tax address label carrier
        pallet voucher receipt currency balance margin deposit warehouse catalogue supplier""",
    "verb": """parse load store merge split check apply revert count rank send fetch build clean
        round group match open close lock resolve schedule verify render convert expand prune""",
    "quality": """pending stale open late partial signed local daily failed empty large shared
        draft legacy external nested frozen fresh blocked manual""",
    "first": """Marta Jonas Priya Tomas Ines Yuki Ruben Sasha Amina Pavel Lucia Kofi Noor Henrik
        Mei Diego Astrid Omar Clara Viktor""",
    "last": """Okonkwo Lindqvist Barros Nakamura Petrov Haddad Keller Moreau Santos Weiss Iqbal
        Novak Ferrari Jensen Adeyemi Costa Varga Tanaka Brandt Quist""",
    "town": """Lisbon Graz Turku Leeds Porto Gdansk Malmo Bilbao Lyon Trieste Ghent Brno Cork
        Aarhus Basel Split""",
    "service": "billing ledger search media auth export notify stock mail rates audit gateway",
    "filler": """the request was handled by a worker that waits for its turn while other parts of
        the service read from the index and write to the journal before they answer so a slow disk
        holds up more than one of them and the order of what is written does not tell what was
        asked first when both arrive within the same second""",
}
HELD_OUT = {
    "noun": """patient dose ward sample assay reagent scan referral bed rota allergy chart pulse
        vaccine consent biopsy cohort trial visit symptom clinic monitor infusion gurney panel
        swab culture donor organ triage stretcher splint suture""",
    "verb": """admit screen assign transfer record observe trace inject measure calibrate archive
        approve reject sample label isolate compare review escalate page sterilise weigh discharge
        rotate dilute chart notify""",
    "quality": """acute chronic remote urgent sterile recurrent benign elective overdue prior
        bilateral severe mild visiting inpatient nightly spare rapid confirmed mobile""",
    "first": """Zanele Matteo Hanna Ravi Elif Bjorn Chiara Tunde Soraya Igor Greta Paolo Leila
        Anton Mireille Kenji Fatou Oskar Nadia Emil""",
    "last": """Dlamini Rossi Virtanen Mehta Yilmaz Halvorsen Conti Balogun Rahimi Sokolov Lange
        Bianchi Farouk Dvorak Laurent Mori Diallo Nyberg Zidane Falk""",
    "town": """Utrecht Tampere Bergen Zadar Siena Nantes Derry Kaunas Pecs Girona Ulm Varna Odense
        Tartu Linz Cadiz""",
    "service": "intake pharmacy imaging roster lab consent vitals transport records alerts beds hl",
    "filler": """each of the rooms keeps a list that nurses read at the start of a shift and amend
        when somebody is moved so that whoever comes later finds out what was given and at which
        hour although a page may be missing if the printer ran out of paper during the night""",
}


class Words:
    """Draws from one vocabulary; what ``new`` gave is not given again."""

    def __init__(self, seed: str, held_out: bool = False) -> None:
        self.draw = random.Random(seed)
        self._lists = {
            key: words.split() for key, words in (HELD_OUT if held_out else OPEN).items()
        }
        self._used: set[str] = set()

    def new(self, make: Callable[[], str]) -> str:
        """One that is nowhere else in this text; longer where short ones are used up."""
        for _ in range(60):
            one = make()
            if one not in self._used:
                self._used.add(one)
                return one
        return self.new(lambda: f"{make()}{self.draw.randint(2, 99)}")

    def of(self, *kinds: str) -> list[str]:
        """A word of each kind: noun, verb, quality, first, last, town, service, filler."""
        return [self.draw.choice(self._lists[kind]) for kind in kinds]

    def one(self, kind: str) -> str:
        return self.of(kind)[0]

    def pick(self, choices: Sequence[str]) -> str:
        return self.draw.choice(choices)

    def number(self, low: int = 1_001, high: int = 99_999) -> str:
        """A number that is nowhere else."""
        return self.new(lambda: str(self.draw.randint(low, high)))

    def plain(self, low: int = 2, high: int = 99) -> int:
        """A number that may come again."""
        return self.draw.randint(low, high)

    def money(self) -> str:
        return self.new(lambda: f"{self.draw.randint(11, 9_899)}.{self.draw.randint(11, 99)}")

    def hexadecimal(self, digits: int) -> str:
        return self.new(lambda: f"{self.draw.getrandbits(4 * digits):0{digits}x}")

    def code(self) -> str:
        """A short value with letters, such as ``RX-4417``."""
        letters = "".join(self.draw.choices("ABCDEFGHKLMNPRSTVWXZ", k=2))
        return self.new(lambda: f"{letters}-{self.draw.randint(1_000, 9_999)}")

    def person(self) -> str:
        return self.new(lambda: " ".join(self.of("first", "last")))

    def host(self) -> str:
        zone = self.pick(["eu", "us", "ap"])
        return self.new(lambda: f"{self.one('service')}-{zone}-{self.draw.randint(1, 240):02}.prod")

    def numbered(self, *kinds: str) -> str:
        """Words and a number, such as ``media-token-17``."""
        return self.new(lambda: f"{'-'.join(self.of(*kinds))}-{self.plain(1, 99)}")

    def identifier(self, case: str) -> str:
        """A name in ``snake``, ``camel`` or ``Pascal`` case."""

        def make() -> str:
            words = self.of("verb", *self.draw.choice([["noun"], ["quality", "noun"]]), "noun")
            return cased(words, case)

        return self.new(make)

    def sentence(self, low: int = 6, high: int = 16) -> str:
        """Filler without a name or a number."""
        words = [self.one("filler") for _ in range(self.draw.randint(low, high))]
        return f"{words[0].capitalize()} {' '.join(words[1:])}."

    def path(self, suffix: str) -> str:
        return self.new(
            lambda: f"src/{self.one('service')}/{'_'.join(self.of('quality', 'noun'))}{suffix}"
        )

    def date(self) -> str:
        return f"2027-{self.draw.randint(1, 12):02}-{self.draw.randint(1, 28):02}"


def cased(words: Sequence[str], case: str) -> str:
    """Words as one identifier."""
    if case == "snake":
        return "_".join(words)
    joined = "".join(word.capitalize() for word in words)
    return joined if case == "Pascal" else joined[0].lower() + joined[1:]
