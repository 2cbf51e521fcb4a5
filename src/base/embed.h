/* embed.h - a file of the repository inside the binary, with a NUL behind it.
 *
 *     BR_EMBED("br_ui_page", "web/index.html");
 *     extern const char br_ui_page[], br_ui_page_end[];
 *
 * The path is from the top of the repository; the Makefile says that the object
 * depends on it. SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_EMBED_H
#define BR_EMBED_H

#define BR_EMBED(symbol, path)                                       \
    __asm__(".pushsection .rodata\n"                                 \
            ".globl " symbol "\n.hidden " symbol "\n"                \
            ".globl " symbol "_end\n.hidden " symbol "_end\n" symbol \
            ": .incbin \"" path "\"\n" symbol "_end: .byte 0\n"      \
            ".popsection\n")

#endif
