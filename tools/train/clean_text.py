#!/usr/bin/env python3
"""Turn unpacked Debian documentation packages into clean, deduplicated prose and code.

Writes one text a package, documents separated by a NUL byte.  A paragraph that an earlier package or file had is left out; the
order of packages and files is fixed.
"""
import argparse
import gzip
import hashlib
import multiprocessing
import os
import re
import sys

import lxml.html

import lexicon

PACKAGES = """python3.11-doc rust-doc postgresql-doc-15 sqlite3-doc nodejs-doc python-django-doc cmake-doc apache2-doc llvm-14-doc clang-14-doc
erlang-doc ghc-doc python-sqlalchemy-doc twisted-doc libboost1.81-doc vim-doc zsh-doc tcl8.6-doc sphinx-doc python-flask-doc python-jinja2-doc
varnish-doc golang-1.19-doc golang-1.19-src nova-doc cinder-doc keystone-doc ironic-doc heat-doc swift-doc glance-doc manila-doc neutron-doc
libcurl4-doc libssl-doc freebsd-manpages python-sympy-doc""".split()

LIMIT = {
    "golang-1.19-src": 7_000_000, "erlang-doc": 7_000_000, "libboost1.81-doc": 7_000_000, "freebsd-manpages": 6_000_000,
    "libssl-doc": 4_000_000, "rust-doc": 16_000_000, "cmake-doc": 5_000_000, "python-sympy-doc": 4_000_000,
    "keystone-doc": 3_000_000, "nova-doc": 3_000_000, "cinder-doc": 3_000_000, "ironic-doc": 4_000_000, "heat-doc": 2_500_000,
    "swift-doc": 3_000_000, "neutron-doc": 4_000_000, "tcl8.6-doc": 4_000_000, "vim-doc": 4_000_000
}

DEFAULT_LIMIT = 9_000_000  # characters of a package

BLOCK = set(
    "p div li ul ol dl dt dd pre h1 h2 h3 h4 h5 h6 table tr section article blockquote br hr "
    "figure figcaption aside main header form fieldset address tbody thead details summary".split()
)
DROP = set(
    "script style nav noscript svg math form button input select iframe footer head template "
    "textarea object video audio img link meta".split()
)
MAIN = (
    '//div[@role="main"]', "//main", '//div[@id="page-content"]', '//div[@id="apicontent"]', '//div[@class="body"]',
    "//article", '//div[@id="content"]', '//section[@id="main-content"]', "//body"
)


def add_html(el, out):
    """Append the text of an element to out: blocks apart, headings, list items and table cells marked."""
    if not isinstance(el.tag, str):
        return
    tag = el.tag.lower()
    if tag in DROP:
        return
    if tag == "pre":
        out.append("\n\n" + el.text_content().replace("\u00a0", " ").strip("\n") + "\n\n")
        return
    gap = "" if tag not in BLOCK else "\n" if tag in ("li", "tr", "dt", "dd", "br") else "\n\n"
    out.append(gap)
    if tag == "li":
        out.append("- ")
    if re.fullmatch(r"h[1-6]", tag):
        out.append("#" * int(tag[1]) + " ")
    if tag in ("td", "th"):
        out.append(" | ")
    if el.text:
        out.append(re.sub(r"\s+", " ", el.text))
    for child in el:
        add_html(child, out)
        if child.tail:
            out.append(re.sub(r"\s+", " ", child.tail))
    out.append(gap)


def from_html(b):
    """Text of the main part of a page; empty if the page cannot be read."""
    sys.setrecursionlimit(20000)
    out = []
    try:
        page = lxml.html.fromstring(b)
        add_html(next((found[0] for found in map(page.xpath, MAIN) if found), page), out)
    except (lxml.etree.LxmlError, ValueError, RecursionError):
        return ""
    return "".join(out)


def from_man(s):
    """Text of a manual page, roughly."""
    out = []
    for ln in s.split("\n"):
        if ln.startswith((
            ".\\\"", "'\\\"", "\\\"", ".de", "..", ".if", ".ie", ".el", ".ds", ".nr", ".tr", ".ft", ".hy", ".ne", ".so", ".IX",
            ".rm", ".rr", ".ta"
        )):
            continue
        m = re.match(r"^[.']\s*([A-Za-z]+)\s*(.*)$", ln)
        if m:
            mac, arg = m.group(1), m.group(2)
            arg = re.sub(r'"([^"]*)"', r"\1", arg)
            if mac in ("SH", "Sh", "SS", "Ss"):
                out.append("\n\n# " + arg.capitalize() + "\n")
            elif mac in (
                "PP", "P", "LP", "Pp", "sp", "IP", "TP", "It", "Bl", "El", "Bd", "Ed", "nf", "fi", "RS", "RE", "CS", "CE", "HP",
                "OP", "AP", "QW"
            ):
                out.append("\n" if mac in ("It", "IP", "TP") else "\n\n")
                if mac in ("It", ):
                    out.append(
                        re.sub(
                            r"\b(Fl|Ar|Cm|Nm|Xr|Ns|Oc|Oo|Op|Pa|Dv|Va|Em|Sy|Ic|Li|Dq|Sq|Ql|Ev|Fn|Vt|Ft|Aq|Pq|Er|No|Ta)\b ?", "",
                            arg
                        ) + " "
                    )
                elif mac == "IP":
                    out.append(arg + " ")
            elif mac in (
                "TH", "Dd", "Dt", "Os", "HS", "BS", "BE", "SO", "SE", "DS", "DE", "Nd", "TS", "AS", "ad", "na", "in", "ti",
                "ce", "br", "ll", "pc", "VS", "VE", "UL"
            ):
                if mac == "Nd":
                    out.append("- " + arg + "\n")
                elif mac == "br":
                    out.append("\n")
            else:
                a = re.sub(
                    r"\b(Fl|Ar|Cm|Nm|Ns|Oc|Oo|Op|Pa|Dv|Va|Em|Sy|Ic|Li|Dq|Sq|Ql|Ev|Fn|Vt|Ft|Aq|Pq|Er|No|Xr|Ap|Pc|Po)\b ?", "",
                    arg
                )
                if mac in ("BR", "BI", "IR", "RB", "RI", "IB"):
                    a = a.replace(" ", "")
                out.append(a + " ")
        else:
            out.append(ln + " " if ln.strip() else "\n\n")
    s = "".join(out)
    s = re.sub(r"\\f\(?[A-Z]{1,2}|\\f[0-9]", "", s)
    s = re.sub(r"\\s[+-]?\d", "", s)
    s = s.replace("\\-", "-").replace("\\&", "").replace("\\|", "").replace("\\ ", " ").replace("\\e",
                                                                                                "\\").replace("\\(bu", "-")
    s = s.replace("\\(aq",
                  "'").replace("\\*(",
                               "").replace("\\(em",
                                           "--").replace("\\(en",
                                                         "-").replace("\\(lq",
                                                                      '"').replace("\\(rq",
                                                                                   '"').replace("\\'", "'").replace("\\`", "`")
    s = re.sub(r"\\\((..)", "", s)
    return s


PLAIN = str.maketrans({
    "\u2019": "'", "\u2018": "'", "\u201c": '"', "\u201d": '"', "\u00a0": " ", "\u2013": "-", "\u2014": "--", "\u2026": "...",
    "\u00b6": "", "\u2192": "->", "\u200b": "", "\u00ad": "", "\ufeff": "", "\u2010": "-", "\u2011": "-"
})


def tidy(s):
    s = s.translate(PLAIN).replace("\r", "")
    s = re.sub(r"[ \t]+\n", "\n", s)
    s = re.sub(r"\n - \n+", "\n- ", s)
    s = re.sub(r"(?m)^- +", "- ", s)
    s = re.sub(r"(?m)^ +\| ", "", s)
    s = re.sub(r"(?m)^\[src\]|\[source\]", "", s)
    s = re.sub(r"[\U0001F000-\U0001FFFF\u2600-\u27BF\uFE0F]", "", s)
    s = re.sub(r"(?m)^(Run|Note|See also)$", "", s)
    s = re.sub(r"\n{3,}", "\n\n", s)
    return s.strip()


def good(paragraph):
    """Keep a paragraph?  Drops link lists, tables of symbols, hashes and the like."""
    n = len(paragraph)
    if n < 3 or n > 12000:
        return False
    if n > 40 and sum(c.isalpha() or c == " " for c in paragraph) / n < 0.55:
        return False
    if sum(ord(c) > 127 for c in paragraph) / n > 0.05:
        return False
    if max(map(len, paragraph.split()), default=0) > 90:
        return False
    return not re.search(r"(?i)(all rights reserved|copyright \(c\)|created using sphinx|last updated on)", paragraph)


def load(path):
    """Text of a file by its kind; empty if it has none."""
    with (gzip.open if path.endswith(".gz") else open)(path, "rb") as f:
        b = f.read()
    if not b or len(b) > 6_000_000:
        return ""
    name = path.removesuffix(".gz")
    if name.endswith((".html", ".htm", ".en")) or b[:200].lower().lstrip().startswith((b"<!doctype html", b"<html", b"<?xml")):
        return tidy(from_html(b))
    try:
        s = b.decode("utf-8")
    except UnicodeDecodeError:
        s = b.decode("latin-1")
    if re.search(r"\.[1-9n][a-z]*$", name) and re.search(r"(?m)^\.(SH|Sh|TH)", s):
        s = from_man(s)
    return tidy(s)


NEVER = re.compile(
    r"(genindex|search\.html|py-modindex|modindex|/_static/|/_sources/|changelog|NEWS|copyright|/all\.html|/src/|index-all|sitemap|"
    r"\.js$|\.css$|\.png$|\.svg$|/_modules/|objects\.inv|README\.Debian|whatsnew/changelog|implementors|trait\.impl|print\.html)"
)
RUST_NEVER = re.compile(
    r"/html/(core|alloc|test|proc_macro)/|/core_arch/|/std/arch/|/std/os/|/intrinsics/|macro\.|/error_codes/.*redirect"
)
GO_NEVER = re.compile(
    r"/(cmd/vendor|vendor|syscall|testdata|cmd/compile/internal/ssa/rewrite|test/|cmd/asm|cmd/internal/obj|crypto/internal|"
    r"cmd/compile/internal/ssa/op|runtime/defs|internal/syscall|unicode/tables|cmd/link|zoneinfo|zerrors|zsys|ztypes)"
)


def wanted(package, path):
    """Is this file of the package worth reading?  path begins with a slash and the package's name."""
    html = path.endswith(".html")
    if package == "golang-1.19-src":
        return path.endswith(".go") and not path.endswith(("_test.go", "tables.go")) and not GO_NEVER.search(path)
    if NEVER.search(path):
        return False
    if package == "rust-doc":
        if not html or RUST_NEVER.search(path):
            return False
        kinds = r"/(struct|enum|trait|fn|primitive|keyword|index)[^/]*\.html$"
        return "/std/" not in path or bool(re.search(kinds, path))
    if package == "erlang-doc":
        never = r"megaco|snmp|diameter|wx-|asn1|corba|cos|_app\.html|index\.html"
        return html and "/lib/" in path and not re.search(never, path)
    if package == "ghc-doc":
        return html and "users_guide" in path
    if package == "llvm-14-doc":
        return html and ("/CommandGuide/" in path or "/html/" in path)
    if package == "apache2-doc":
        return path.endswith(".html.en") or html and "/en/" in path
    if package == "twisted-doc":
        return html and "/api/" not in path
    if package in ("freebsd-manpages", "libcurl4-doc", "libssl-doc", "tcl8.6-doc"):
        return "/man/" in path
    if package in ("cmake-doc", "zsh-doc", "vim-doc", "postgresql-doc-15", "sqlite3-doc"):
        return html
    if package == "libboost1.81-doc" and re.search(r"/(reference|index/|mpl|hana|proto|phoenix|geometry)/|BOOST_", path):
        return False
    return path.endswith((".html", ".htm"))


def files_of(package, folder):
    """Paths of the wanted files, in an order that does not depend on where the folder is."""
    out = []
    for root, _, names in os.walk(os.path.join(folder, package)):
        for name in names:
            path = os.path.join(root, name)
            inside = "/" + os.path.relpath(path, folder)
            if not os.path.islink(path) and wanted(package, inside):
                out.append((hashlib.md5(inside.encode()).hexdigest(), path))
    return [path for _, path in sorted(out)]


def new_paragraphs(text, seen):
    """The good paragraphs whose text, digits aside, is not in seen; adds them to it."""
    keep = []
    for paragraph in text.split("\n\n"):
        paragraph = paragraph.strip("\n")
        if not paragraph.strip() or not good(paragraph):
            continue
        if len(paragraph) > 50:
            h = hashlib.blake2b(re.sub(r"\d+", "0", paragraph).lower().encode(), digest_size=8).digest()
            if h in seen:
                continue
            seen.add(h)
        elif keep and paragraph == keep[-1]:
            continue
        keep.append(paragraph)
    return keep


def document(text, seen):
    """What is new in a text, without headings that have nothing under them; empty if too little is left."""
    if len(text) < 400:
        return ""
    new = new_paragraphs(text, seen)
    kept = [
        p for p, following in zip(new, new[1:] + ["#"])
        if not (p.startswith("#") and len(p) < 80 and following.startswith("#"))
    ]
    out = "\n\n".join(kept)
    long = sum(len(p) for p in kept if len(p) > 60)
    return out if len(out) >= 400 and long >= 0.5 * len(out) else ""


def clean(package, folder, seen, pool):
    """The documents of a package, up to its limit."""
    out, size = [], 0
    for text in pool.imap(load, files_of(package, folder), chunksize=8):
        d = document(text, seen)
        if d:
            out.append(d)
            size += len(d)
            if size > LIMIT.get(package, DEFAULT_LIMIT):
                break
    return out


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("packages", nargs="?", help="folder with one unpacked Debian package a folder")
    p.add_argument("text", nargs="?", help="folder for the texts")
    p.add_argument("--list", action="store_true", help="print the packages that this program and lexicon.py need")
    args = p.parse_args()
    if args.list:
        print(*PACKAGES, *lexicon.PACKAGES)
        return
    if not args.text:
        p.error("give the folder of packages and the folder for the texts")
    os.makedirs(args.text, exist_ok=True)
    seen = set()
    with multiprocessing.Pool() as pool:
        for package in PACKAGES:
            if not os.path.isdir(os.path.join(args.packages, package)):
                raise SystemExit(f"{args.packages} has no {package}: unpack it there, see README.md")
        for package in PACKAGES:
            lexicon.save_text(args.text, package, clean(package, args.packages, seen, pool))


if __name__ == "__main__":
    main()
