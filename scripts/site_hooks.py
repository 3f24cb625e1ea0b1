# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Hooks of MkDocs (mkdocs.yml).

Files of the project that pages link to, such as ../examples/jit_mlp.py, become part of the
site, under source/. Code has colours for light and for dark pages, and is broken in tables.
"""

from __future__ import annotations

import pathlib
import re

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from pygments.formatters import HtmlFormatter

LINK = re.compile(r"(?<=\]\()\.\./([^)#\s]+)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    root = pathlib.Path(config.docs_dir).parent
    pages = [page.content_string for page in files.documentation_pages()]
    for path in sorted({path for text in pages for path in LINK.findall(text)}):
        # What is not there stays a link to nothing, which the strict build refuses.
        if (root / path).is_file():
            files.append(File.generated(config, f"source/{path}", abs_src_path=str(root / path)))
    colours = [
        HtmlFormatter(style=style, nobackground=True).get_style_defs(selector)
        for style, selector in (
            ("default", ".codehilite"),
            ("github-dark", "[data-bs-theme=dark] .codehilite"),
        )
    ]
    # Names of tests are longer than a table's column.
    style = [*colours, "td code { overflow-wrap: anywhere; }"]
    files.append(File.generated(config, "css/code.css", content="\n".join(style)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    up = "../" * page.file.src_uri.count("/")

    def replace(match: re.Match[str]) -> str:
        source = f"source/{match[1]}"
        return up + source if files.get_file_from_path(source) else match[0]

    return LINK.sub(replace, markdown)
