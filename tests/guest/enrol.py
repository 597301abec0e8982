# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""enrol.py CERTIFICATE: have the firmware of this machine, which has no owner yet (setup mode),
trust a certificate, as a manufacturer or MokManager would: an entry of the variable db."""
import struct
import sys
import uuid

DB = "/sys/firmware/efi/efivars/db-d719b2cb-3d3a-4596-a3bc-dad00e67656f"
X509 = uuid.UUID("a5c059a1-94e4-4aa7-87b5-ab155c2bf072").bytes_le
PKCS7 = uuid.UUID("4aafd29d-68df-49ee-8aa9-347d375665a7").bytes_le
OWNER = uuid.UUID("6b646170-6c00-4000-8000-000000000000").bytes_le
# Kept, seen before and after the system starts, written with a time.
ATTRIBUTES = 0x27

with open(sys.argv[1], "rb") as f:
    cert = f.read()
entry = OWNER + cert
signatures = X509 + struct.pack("<III", 28 + len(entry), 0, len(entry)) + entry
when = struct.pack("<HBBBBBxIhBx", 2026, 1, 1, 0, 0, 0, 0, 0, 0)
# Nobody has to have signed it as long as there is no platform key.
authentication = when + struct.pack("<IHH", 24, 0x0200, 0x0EF1) + PKCS7
with open(DB, "wb", buffering=0) as f:
    f.write(struct.pack("<I", ATTRIBUTES) + authentication + signatures)
