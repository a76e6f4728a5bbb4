"""Makes a wheel of a folder: a zip of its files, and a RECORD of their hashes. Arguments: the folder and the wheel."""

import base64
import hashlib
import pathlib
import sys
import zipfile

stage, wheel = map(pathlib.Path, sys.argv[1:])
[about] = stage.glob("*.dist-info")
record = about.relative_to(stage) / "RECORD"
lines = []
with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:

    def add(name, data):
        entry = zipfile.ZipInfo(str(name))
        entry.external_attr = (0o100755 if "scripts" in name.parts else 0o100644) << 16
        archive.writestr(entry, data, zipfile.ZIP_DEFLATED)

    for path in sorted(path for path in stage.rglob("*") if path.is_file()):
        name, data = path.relative_to(stage), path.read_bytes()
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(data)}\n")
        add(name, data)
    add(record, "".join(lines) + f"{record},,\n")
