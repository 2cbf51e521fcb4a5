# bench.awk - lines of `brass bench --json`, each with its "type", become a
# table on standard output and a plot in the file svg.
# SPDX-License-Identifier: Apache-2.0
function field(key,   s) {
    if (!match($0, "\"" key "\": *\"?[^,\"}]*"))
        return ""
    s = substr($0, RSTART, RLENGTH)
    sub(/^"[^"]*": *"?/, "", s)
    return s
}
{
    kind = substr(field("test"), 1, 2)
    what = kind == "pp" ? "prompt" : \
        field("batch") == 1 ? "answer" : field("batch") " answers"
    type = field("type")
    if (!(type in seen)) {
        seen[type] = 1
        types[++n_types] = type
    }
    if (!(what in place)) {
        place[what] = 1
        whats[++n_whats] = what
    }
    toks[type, what] = field("tok_s") + 0
    pct[type, what] = field("pct_floor") + 0
    isa = field("isa")
    read = field("read_gb_s") + 0 > read ? field("read_gb_s") + 0 : read
    threads = field("threads")
}
function text(x, y, class, s) {
    printf "<text x=\"%d\" y=\"%d\" class=\"%s\">%s</text>\n", x, y, class, s >svg
}
END {
    where = sprintf("%s, %d threads, %s, reads %.0f GB/s, load before %s", cpu, threads, isa, read, beside)
    printf "# Speed of the CPU tier\n\n`%smake bench` at %s, %s, on %s.\n", with ? "WITH=\"" with "\" " : "", commit, date, where
    printf "Random weights of the shape %s; `brass bench shape:%s:TYPE %s`,\nfor eight sequences `%s`.\n", shape, shape, flags, eight
    print "Tokens a second (median), and the share of what reading the bytes or"
    print "multiplying alone would allow on the machine in the same seconds. Logits"
    print "were compared with the reference tier's before any number was taken.\n"
    head = "| |"; rule = "|---|"
    for (i = 1; i <= n_whats; i++) {
        head = head " " whats[i] " |"
        rule = rule "---|"
    }
    print head "\n" rule
    for (t = 1; t <= n_types; t++) {
        row = "| " types[t] " |"
        for (i = 1; i <= n_whats; i++)
            row = row sprintf(" %.1f, %.0f %% |", toks[types[t], whats[i]], pct[types[t], whats[i]])
        print row
    }
    print "\n![the table as bars](bench.svg)"

    group = 22 * n_whats + 18
    high = 70 + group * n_types + 26
    printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 720 %d\" width=\"720\" height=\"%d\" role=\"img\">\n", high, high >svg
    print "<style>text{font:13px sans-serif;fill:#24292f}.h{font-weight:bold;font-size:15px}.s{font-size:11px;fill:#57606a}.r{text-anchor:end}.m{text-anchor:middle;font-size:11px;fill:#57606a}.g{stroke:#d0d7de}.b1{fill:#9a6700}.b2{fill:#bf8700}.b3{fill:#d4a72c}</style>" >svg
    printf "<rect width=\"720\" height=\"%d\" fill=\"#fff\"/>\n", high >svg
    text(16, 24, "h", shape ": tokens a second, and how near the machine's bound")
    text(16, 42, "s", where ", " commit)
    for (p = 0; p <= 100; p += 25) {
        x = 190 + p * 4
        printf "<line x1=\"%d\" x2=\"%d\" y1=\"56\" y2=\"%d\" class=\"g\"/>\n", x, x, high - 24 >svg
        text(x, high - 9, "m", p " %")
    }
    for (t = 1; t <= n_types; t++)
        for (i = 1; i <= n_whats; i++) {
            y = 62 + group * (t - 1) + 22 * (i - 1)
            share = pct[types[t], whats[i]]
            if (i == 1)
                text(16, y + 13, "h", types[t])
            text(180, y + 13, "r", whats[i])
            printf "<rect x=\"190\" y=\"%d\" width=\"%.1f\" height=\"17\" class=\"b%d\"/>\n", y, 4 * (share > 100 ? 100 : share), i >svg
            text(196 + 4 * (share > 100 ? 100 : share), y + 13, "s", sprintf("%.1f", toks[types[t], whats[i]]))
        }
    print "</svg>" >svg
}
