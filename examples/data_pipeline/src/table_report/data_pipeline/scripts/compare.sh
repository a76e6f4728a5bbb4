#!/bin/sh
# Compares a table ($1) with what it should be ($2), cell by cell; numbers may differ in how they are written. Shows the first differences.
set -eu
LC_ALL=C
export LC_ALL

awk -F '\t' '
function is_number(s) {
    return length(s) <= 40 && s ~ /^[-+]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][-+]?[0-9][0-9]?)?$/
}

function same(a, b,    d, size) {
    if (a "" == b "") return 1
    if (!is_number(a) || !is_number(b)) return 0
    d = a - b
    size = b < 0 ? -b : b + 0
    return (d < 0 ? -d : d) <= 1e-9 * (size > 1 ? size : 1)
}

function differs(place, is, should) {
    if (wrong++ < 5) print place ": `" substr(is, 1, 200) "` should be `" substr(should, 1, 200) "`"
}

pass == 1 { want[++wanted] = $0; next }
{
    got++
    if (got > wanted) next
    n = split(want[got], cells, "\t")
    if (n != NF) { differs("line " got, $0, want[got]); next }
    for (i = 1; i <= n; i++) if (!same($i, cells[i])) { differs("line " got ", cell " i, $i, cells[i]); break }
}
END {
    if (got != wanted) { print "it has " got + 0 " lines and should have " wanted + 0; wrong++ }
    exit wrong ? 5 : 0
}
' pass=1 "$2" pass=2 "$1" >&2
