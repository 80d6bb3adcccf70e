"""``trimtab status --total``: what all sessions of a store came to."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from typing import Any

from trimtab.amounts import many
from trimtab.cli.exit_codes import DONE
from trimtab.cli.store_options import newest_tenants, other_tenants, store_of
from trimtab.cli.terminal import clean
from trimtab.sessions.stats import PREFIX, ConversationStats


def run(args: Namespace) -> int:
    """Print the sums over the sessions of ``--tenant``; of all where none is named."""
    facts = _facts(args)
    if not facts and (hint := other_tenants(args)):
        print(hint, file=sys.stderr)
    total = ConversationStats()
    conversations = {(tenant, name.split("/")[1]) for tenant, name in facts}
    for row in facts.values():
        total.join(ConversationStats.from_dict(row))
    if args.json:
        print(json.dumps({"conversations": len(conversations), **total.as_dict()}, indent=2))
        return DONE
    print(
        f"{many(len(conversations), 'conversation')}, {many(total.turns, 'request')}: "
        f"{total.tokens_arrived:,} tokens arrived, {total.tokens_sent:,} were sent, "
        f"{total.kept_out:,} kept out"
    )
    print(
        f"{many(total.edits, 'edit')} in {many(total.batches, 'cut')}, each counted once; "
        f"{many(total.repairs, 'repair')}"
    )
    for cause, tokens in total.saved.most_common():
        print(clean(f"  {cause:16} {tokens:>12,} tokens"))
    if total.failed:
        kinds = ", ".join(f"{kind} ×{n:,}" for kind, n in total.failed.most_common())
        print(f"failed calls whose inputs were taken out: {clean(kinds)}")
    return DONE


def _facts(args: Namespace) -> dict[tuple[str, str], Any]:
    """Statistics by tenant and name of the fact."""
    from trimtab import stores

    store = store_of(args)
    tenants = [args.tenant] if args.tenant else newest_tenants(store) or ["default"]
    args.tenant = tenants[-1]
    return {
        (tenant, name): row
        for tenant in tenants
        for name, row in stores.open(store, tenant).facts(PREFIX).items()
    }
