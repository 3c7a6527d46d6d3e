"""Prefixes of keys that the published rules do not have: providers of models, clouds and hosted tools, as of 2026.

A prefix alone says little: ``re_`` also begins names. What follows has to look random, see `looks_random`. The formats
are those of the providers' documentation and of the list of secrets that GitHub scans for.
"""

from __future__ import annotations

import re

LEAST_BODY = 18
"""Minimum length of a key behind its prefix."""

LEAST_RUN = 12
"""Minimum length of a run of letters and digits in it: names are words of fewer letters, or without digits."""

PREFIXES = (
    # models, and tools around them
    "AQ. nvapi- pcsk_ tvly- lsv2_pt_ lsv2_sk_ ls__ fw_ tgp_v1_ csk- jina_ pa- al- llx- fc- m0- e2b_ rpa_ ak- as- "
    "bb_live_ bb_test_ wandb_v1_ pylf_v1_ apify_api_ crsr_ sess- pk- rk- comp_ n8n_api_ phx_ phs_ key_ "
    # clouds, hosting and networks
    "vcp_ vci_ vca_ vcr_ vck_ vercel_blob_rw_ sb_secret_ tskey-auth- tskey-api- tskey-client- tskey-scim- "
    "tskey-webhook- cfut_ cfat_ cfk_ rnd_ napi_ nfc_ nfo_ nfu_ nfb_ AVNS_ mdb_sa_sk_ essu_ signkey-prod- "
    "signkey-test- tr_dev_ tr_prod_ "
    # mail, code, builds, data and payments
    "re_ lin_oauth_ figo_ figu_ figor_ CFPAT- sntryu_ bkua_ bkct_ bkaj_ CCIPAT_ CCIPRJ_ sqp_ squ_ sqa_ dbtc_ dbtu_ "
    "hcaik_ hcbik_ hcaxk_ glwt- cio sl. secret-live- secret-test-"
)
PREFIXES_OF_IDS = (
    "pat-na1- pat-na2- pat-eu1- sdk- api- xaat- xapt- xait- access-sandbox- access-development- access-production- "
    "pk-lf- sk-lf-"
)
"""Prefixes of keys that end with a UUID."""

UUID = r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"

_RUN = re.compile(rf"[A-Za-z0-9]{{{LEAST_RUN},}}+")


def looks_random(text: str) -> bool:
    """Return True if a text has a long run of letters and digits, in which both are mixed, as keys have."""
    return any(_is_mixed(run) for run in _RUN.findall(text))


def _is_mixed(run: str) -> bool:
    """Return False for words with a number behind them, and for numbers: a digit has to be between letters."""
    stem = run.rstrip("0123456789")
    return any(char.isdigit() for char in stem) or (any(map(str.islower, stem)) and sum(map(str.isupper, stem[1:])) > 4)
