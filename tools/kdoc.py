# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""What tools/man and tools/html know about the API: read from the sources.

kernel-doc above the definitions, prototypes and types of the headers, the state
table, the requirements. The kernel's own kernel-doc checks the comments
(tools/lint kernel-doc); it is not used here, since making a manual should take
neither a network nor the source of a kernel.

A call has to have everything a page needs; what is missing is an error.
"""

import re
import subprocess
import sys
import time
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from os import environ
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.dont_write_bytecode = True


class KdocError(Exception):
    """Something a page needs is not there."""


def read(path):
    return (ROOT / path).read_text(encoding="utf-8")


def load_tool(name):
    """A Python tool of this directory that has no .py in its name, as a module."""
    loader = SourceFileLoader(name.replace("-", "_"), str(ROOT / "tools" / name))
    module = module_from_spec(spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


def version():
    return re.search(r'^PACKAGE_VERSION="(.*)"', read("dkms.conf"), re.M)[1]


def date():
    """Of the sources, so that the same sources make the same pages."""
    if "SOURCE_DATE_EPOCH" in environ:
        stamp = int(environ["SOURCE_DATE_EPOCH"])
    else:
        try:
            text = subprocess.run(["git", "-C", str(ROOT), "log", "-1", "--format=%ct"],
                                  capture_output=True, text=True, check=False).stdout.strip()
        except FileNotFoundError:
            text = ""
        stamp = int(text) if text else int((ROOT / "CHANGELOG.md").stat().st_mtime)
    return time.strftime("%Y-%m-%d", time.gmtime(stamp))


class Call:
    """One exported call: its kernel-doc, taken apart.

    params: (name, C declaration, text); body: paragraphs; context and returns: text.
    """

    def __init__(self, name, path, comment):
        self.name = name
        self.path = path
        self.brief = ""
        self.texts = {}
        self.body = []
        self.context = ""
        self.returns = ""
        self.params = []
        self.prototype = ""
        self.header = ""
        self._comment(comment)

    def _comment(self, comment):
        lines = [re.sub(r"^ \*(?: |\t|$)?", lambda m: "\t" if m[0].endswith("\t") else "", line)
                 for line in comment.split("\n")[1:-1]]
        match = re.fullmatch(r"%s(?:\(\))? - (.*)" % self.name, lines[0])
        if not match:
            raise KdocError(f"{self.path}: {self.name}: no title line")
        self.brief = match[1]
        target, key = None, None
        for line in lines[1:]:
            if match := re.match(r"@(\w+):\s*(.*)", line):
                key = match[1]
                self.texts[key] = match[2]
                target = "param"
            elif match := re.match(r"(Context|Return):\s*(.*)", line):
                target = match[1].lower()
                setattr(self, "context" if target == "context" else "returns", match[2])
            elif target == "param" and line.startswith(("\t", "  ")):
                self.texts[key] += "\n" + line.strip()
            elif target == "context" and line.strip():
                self.context += "\n" + line.strip()
            elif target == "return" and line.strip():
                self.returns += "\n" + line.strip()
            elif not line.strip():
                if target in ("context", "return"):
                    target = "done"
                else:
                    target = "body"
                    self.body.append("")
            elif target == "body":
                self.body[-1] += ("\n" if self.body[-1] else "") + line
            else:
                raise KdocError(f"{self.path}: {self.name}: what is '{line}'?")
        self.body = [p for p in self.body if p.strip()]

    def complete(self, prototypes):
        """Everything is there, and the same parameters as in the header."""
        where = f"{self.path}: {self.name}()"
        if self.name not in prototypes:
            raise KdocError(f"{where}: no header declares it")
        self.header, self.prototype, declared = prototypes[self.name]
        if len(declared) != len(self.texts):
            raise KdocError(f"{where}: {len(declared)} parameters declared, "
                            f"{len(self.texts)} documented")
        # The names are those of the comment, by position.
        for (decl, name), (doc, text) in zip(declared, self.texts.items()):
            decl = re.sub(r"\b%s$" % name, doc, decl)
            self.prototype = re.sub(r"\b%s\b(?=[,)])" % name, doc, self.prototype)
            if not text.strip():
                raise KdocError(f"{where}: nothing is said about {doc}")
            self.params.append((doc, decl, text))
        for what, text in (("description", "".join(self.body)), ("Context:", self.context),
                           ("Return:", self.returns)):
            if not text.strip():
                raise KdocError(f"{where}: has no {what}")

    def returns_code(self):
        """Is what it returns a DAT_RETURN? Some extensions return an errno, a name, a bool."""
        return self.prototype.startswith("DAT_RETURN ")

    def text(self):
        return "\n".join([self.brief, *self.texts.values(), *self.body, self.context,
                          self.returns])


def prototypes():
    """name: (header, prototype on one line, [(declaration, name)])"""
    out = {}
    for header in ("dat.h", "kdat.h", "kdat_ext.h"):
        text = re.sub(r"/\*.*?\*/", "", read(f"include/dat2/{header}"), flags=re.S)
        for match in re.finditer(r"^(DAT_RETURN |DAT_BOOLEAN |int |const char \*)(\w+)\(([^;]*)\);",
                                 text, re.M):
            args = [re.sub(r"\s+", " ", a).strip() for a in match[3].split(",")]
            shown = "kdat_ext.h" if header == "kdat_ext.h" else "kdat.h"
            out[match[2]] = (shown, f"{match[1]}{match[2]}({', '.join(args)});",
                             [(a, re.search(r"(\w+)$", a)[1]) for a in args])
    return out


def calls():
    """All exported calls of the API and of the extensions, by name."""
    out = {}
    protos = prototypes()
    for path in sorted((ROOT / "kdapl").glob("*/*.c")):
        text = path.read_text(encoding="utf-8")
        for name in re.findall(r"^EXPORT_SYMBOL(?:_GPL)?\((k?dat_\w+)\);", text, re.M):
            match = re.search(r"^/\*\*\n \* %s(?:\(\))? - (?:(?!\*/).)*?\n \*/$" % name, text,
                              re.M | re.S)
            if not match:
                raise KdocError(f"{path.name}: no kernel-doc for {name}()")
            call = Call(name, path.relative_to(ROOT).as_posix(), match[0])
            call.complete(protos)
            out[name] = call
    for name in protos:
        if name not in out:
            raise KdocError(f"{name}() is declared and not exported")
    return dict(sorted(out.items()))


class Error:
    """One row of the table of errors: the type, and what causes it."""

    def __init__(self, name, cause):
        self.name = name
        self.cause = cause


def split_return(call):
    """A Return: text, taken apart: (calls whose table is part of this one, what they say
    in other words, [Error], sentences behind it).

    "DAT_SUCCESS; DAT_X (cause), or DAT_Y (cause). More." or "as dat_z(), but so; DAT_X (cause)."
    """
    text = re.sub(r"\s+", " ", call.returns.replace("@", "")).strip()
    if not call.returns_code():
        return [], "", [], text
    inherited, errors, words = [], [], ""
    token = re.compile(r"(DAT_[A-Z_]+)(?: \(((?:[^()]|\([^()]*\))*)\)|, (the [^;.]*))?")
    pos = 0
    if match := re.match(r"as (\w+)\(\)(?:, ([^;.]*))?", text):
        inherited.append(match[1])
        words = match[2] or ""
        pos = match.end()
    while True:
        pos += re.match(r"[;, ]*(?:and |or )?", text[pos:]).end()
        if match := token.match(text, pos):
            errors.append(Error(match[1], match[2] or match[3] or ""))
        elif match := re.compile(r"what [^;.]*").match(text, pos):
            words = match[0]
        else:
            break
        pos = match.end()
    rest = text[pos:].strip(" ")
    if rest[:1] != "." or not (inherited or errors) or "DAT_SUCCESS" not in \
            [e.name for e in errors] and not inherited:
        raise KdocError(f"{call.path}: {call.name}: Return: is not understood: '{rest}'")
    return inherited, words, errors, rest[1:].strip()


# What needs no cause beyond the words in dat_error.h.
PLAIN = ("DAT_SUCCESS", "DAT_INVALID_HANDLE", "DAT_RESERVED_LMR", "DAT_QUEUE_EMPTY",
         "DAT_CONN_QUAL_IN_USE", "DAT_PORT_IN_USE")


def error_table(call, known):
    """[(type, [causes])] with those of the calls it refers to; a cause is a must."""
    inherited, _, errors, _ = split_return(call)
    table = {}
    for other in inherited:
        for name, causes in error_table(known[other], known):
            table.setdefault(name, []).extend(causes)
    for error in errors:
        if not error.cause and error.name not in PLAIN:
            raise KdocError(f"{call.path}: {call.name}: {error.name} for which reason?")
        causes = table.setdefault(error.name, [])
        if error.cause:
            causes.append(error.cause)
    if "DAT_SUCCESS" not in table and call.returns_code():
        raise KdocError(f"{call.path}: {call.name}: Return: no DAT_SUCCESS")
    return sorted(table.items(), key=lambda row: row[0] != "DAT_SUCCESS")


def error_meanings():
    """Type: its comment in dat_error.h."""
    text = read("include/dat2/dat_error.h")
    return {m[2]: re.sub(r"\s+", " ", m[1]).strip() for m in
            re.finditer(r"/\* ((?:(?!\*/).)*) \*/\n\t(DAT_[A-Z_]+)\s*= 0x", text, re.S)}


def statuses():
    """Status of a completion: its comment in dat.h, none for success."""
    body = re.search(r"typedef enum dat_dto_completion_status \{(.*?)\n\}",
                     read("include/dat2/dat.h"), re.S)[1]
    return {m[2]: m[1] for m in re.finditer(r"/\* (.*?) \*/\n\t(DAT_\w+),", body)}


def types():
    """Name: (header, definition as it stands there, with its comment)."""
    out = {}
    for header in ("dat_platform_specific.h", "dat.h", "kdat.h", "kdat_ext.h"):
        text = read(f"include/dat2/{header}")
        for match in re.finditer(
                r"^(/\*(?:(?!\*/).)*\*/\n)?typedef (?:struct|enum|union) \w+ \{.*?^\} (\w+);"
                r"|^(/\*(?:(?!\*/).)*\*/\n)?(?:struct|enum) (\w+) \{.*?^\};"
                r"|^(/\*\*(?:(?!\*/).)*\*/\n)typedef void \(\*(\w+)\).*?;", text, re.M | re.S):
            name = match[2] or match[4] or match[6]
            out[name] = (header, match[0])
    return out


def call_types(call, known):
    """The types its parameters are of, and those these consist of, in that order."""
    todo = []
    for _, decl, _ in call.params:
        todo += [w for w in re.findall(r"\w+", decl) if w in known]
    out = []
    while todo:
        name = todo.pop(0)
        if name in out:
            continue
        out.append(name)
        if name.endswith(("_PARAM", "_PARAM_MASK")) and "query" not in call.name and \
                "modify" not in call.name:
            continue
        body = re.sub(r"/\*.*?\*/", "", known[name][1], flags=re.S)
        inner = [w for w in re.findall(r"\w+", body) if w in known and w != name]
        # An event is a page of its own: kdapl(7), events.md.
        todo += [w for w in inner if w != "DAT_EVENT"]
    return out


def states(name):
    """What the state table says of a call: [(state, next state or None: freed)], or None."""
    tool = load_tool("ep-states")
    inputs = [key for key, (_, words) in tool.INPUTS.items() if f"`{name}`" in words]
    if not inputs:
        return None
    table = re.search(r"ep_table\[.*?\n\};", read("kdapl/ep/ep_state.c"), re.S)[0]
    out = []
    for state in tool.STATES:
        row = re.search(r"\[DAT_EP_STATE_%s\] = \{(.*?)\n\t\}" % state, table, re.S)
        for key in inputs:
            cell = row and re.search(r"\[KDAPL_IN_%s\]\s*= TO\((\w+)\)" % key, row[1])
            if cell:
                out.append((state, key, cell[1]))
    return out


# The rules of semantics.md for a call, by the beginning of their ids.
POSTS = r"dat_ep_post_\w+|dat_srq_post_recv"
RULES = (
    (POSTS, "EP-POST FLAG FLUSH"),
    ("dat_ep_post_send", "SEND"), ("dat_ep_post_recv", "RECV"),
    ("dat_ep_post_rdma_write", "RDMAW"), ("dat_ep_post_rdma_read", "RDMAR"),
    ("dat_srq_post_recv", "SRQ-POST"), ("dat_ep_post_send_with_invalidate", "SEND SINV"),
    ("dat_ep_post_rdma_read_to_rmr", "RDMAR RTOR"),
    (r"dat_ep_create\w*", "EP-CREATE"), ("dat_ep_query", "EP-QRY"),
    ("dat_ep_get_status", "EP-STA"), ("dat_ep_recv_query", "EP-RQ"),
    ("dat_ep_modify", "EP-MOD"), ("dat_ep_disconnect", "EP-DIS"), ("dat_ep_reset", "EP-RST"),
    ("dat_ep_free", "EP-FREE"), ("dat_ep_set_watermark", "EP-WM"),
    (r"dat_ep_(dup_)?connect", "CONN"), ("dat_ep_common_connect", "CONN CCON"),
    (r"dat_(ep_\w*connect|cr_accept|ep_disconnect)", "EPSM"),
    ("dat_evd_kcreate", "EVD-CR EVD-OVF EVD-UP"), ("dat_evd_free", "EVD-FREE"),
    ("dat_evd_resize", "EVD-RSZ"), ("dat_evd_query", "EVD-QRY"),
    ("dat_evd_modify_upcall", "EVD-UP EVD-MOD"), ("dat_evd_dequeue", "EVD-DQ EVD-EV"),
    ("dat_evd_post_se", "EVD-SE"),
    ("dat_srq_create", "SRQ-CR"), ("dat_srq_query", "SRQ-QRY"), ("dat_srq_resize", "SRQ-RSZ"),
    ("dat_srq_set_lw", "SRQ-LW"), ("dat_srq_free", "SRQ-FREE"),
    (r"dat_pz_\w+", "PZ"), (r"dat_lmr_(kcreate|query)", "LMR"), ("dat_lmr_free", "LMR-FREE"),
    (r"dat_lmr_sync_\w+", "LMR-SYNC"), ("dat_ia_memtype_hint", "LMR-HINT"),
    ("dat_ia_reserved_lmr", "LMR-RES"), (r"dat_lmr_(allocate|fmr|invalidate)", "FMR"),
    (r"dat_rmr_\w+", "RMR"),
    (r"dat_psp_\w+", "PSP"), (r"dat_rsp_\w+", "RSP"), (r"dat_csp_\w+", "CSP"),
    ("dat_cr_query", "CR-QRY"), ("dat_cr_accept", "CR-ACC"), ("dat_cr_reject", "CR-REJ"),
    ("dat_cr_handoff", "CR-HO"), (r"dat_cr_\w+", "CR-LIFE"),
    ("dat_ia_openv", "IA-OPEN ASY"), ("dat_ia_query", "IA-QRY"), ("dat_ia_close", "IA-CLOSE"),
    (r"dat_registry_\w+", "REG"), (r"dat_(get|set)_\w+", "CTXT"), ("dat_strerror", "MISC-ERR"),
    (r"dat_\w+_query", "GEN-08"),
)


def rules():
    """Ids of the rows and tables of semantics.md, as they come there."""
    text = read("Documentation/conformance/semantics.md").split("\n## 17.")[0]
    return re.findall(r"^(?:\| )?([A-Z]+(?:-[A-Z]+)*-\d+)(?: \||:)", text, re.M)


def call_rules(name, ids):
    """Those for a call: ranges for the page, and the ids that are about no other kind of call."""
    out, own = [], set()
    for pattern, stems in RULES:
        if not re.fullmatch(pattern, name):
            continue
        for stem in stems.split():
            found = [i for i in ids if i == stem or re.fullmatch(stem + r"-\d+", i)]
            if not found:
                raise KdocError(f"semantics.md has no {stem}")
            found.sort()
            out.append(found[0] if len(found) == 1 else f"{found[0]} to {found[-1]}")
            if stem not in ("EP-POST", "FLAG", "FLUSH", "EPSM", "ASY", "EVD-UP"):
                own.update(found)
    return list(dict.fromkeys(out)), own


def deviations():
    """[(ids, what the standard says, what is here, why)]"""
    out = []
    for line in read("Documentation/conformance/deviations.md").split("\n"):
        cells = [c.strip() for c in line.strip("|").split(" | ")] if line.startswith("| ") else []
        if len(cells) == 3 and not cells[0].startswith(("The ", "What", "---")) or \
                len(cells) == 3 and re.search(r"\(.*\d\d", cells[0]):
            ids = set(re.findall(r"\b(?:[A-Z]+-)+\d+", cells[0]))
            out.append((ids, *[c.strip(" |") for c in cells]))
    return out
