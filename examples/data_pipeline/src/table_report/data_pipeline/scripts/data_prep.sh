#!/bin/sh
# Reads input.csv and writes prepared_data.tsv: one record a line, cells parted by tabs, the first line the names of the columns.
# In a cell, \\ \n and \t stand for a backslash, a line break and a tab.
set -eu
LC_ALL=C
export LC_ALL

awk '
# Every a in s becomes b.
function swap(s, a, b,    at, done) {
    done = ""
    while ((at = index(s, a)) > 0) {
        done = done substr(s, 1, at - 1) b
        s = substr(s, at + length(a))
    }
    return done s
}

function how_often(s, mark) {
    return length(s) - length(swap(s, mark, ""))
}

# The mark that parts the cells: the one that the first line has most often.
function mark_of(line,    marks, i, best, most, n) {
    gsub(/"[^"]*"/, "", line)
    marks[1] = ","; marks[2] = ";"; marks[3] = "\t"; marks[4] = "|"
    best = ","
    most = 0
    for (i = 1; i <= 4; i++) {
        n = how_often(line, marks[i])
        if (n > most) { most = n; best = marks[i] }
    }
    return best
}

# Takes in one line. Gives 1 when the record is whole, 0 when a quoted cell goes on in the next line.
function take(line,    at, rest) {
    if (!quoted && index(line, "\"") == 0) {
        n = split(line, cells, mark == "|" ? "[|]" : mark)
        if (n == 0) { n = 1; cells[1] = "" }
        return 1
    }
    rest = line
    if (quoted) cell = cell "\n"
    else { n = 0; cell = ""; fresh = 1 }
    while (1) {
        if (quoted) {
            at = index(rest, "\"")
            if (at == 0) { cell = cell rest; return 0 }
            cell = cell substr(rest, 1, at - 1)
            rest = substr(rest, at + 1)
            if (substr(rest, 1, 1) == "\"") { cell = cell "\""; rest = substr(rest, 2); continue }
            quoted = 0
        } else if (fresh && rest ~ /^[ ]*"/) {
            sub(/^[ ]*"/, "", rest)
            quoted = 1
            fresh = 0
            begun = NR
            continue
        }
        at = index(rest, mark)
        if (at == 0) { cells[++n] = cell rest; return 1 }
        cells[++n] = cell substr(rest, 1, at - 1)
        rest = substr(rest, at + 1)
        cell = ""
        fresh = 1
    }
}

# A cell without space around it; words for nothing are nothing.
function tidy(s,    low) {
    gsub(/^[ \t\n]+/, "", s)
    gsub(/[ \t\n]+$/, "", s)
    low = tolower(s)
    if (low == "null" || low == "n/a" || low == "#n/a" || low == "nan") return ""
    return s
}

function written(s) {
    gsub(/[\001-\010\013-\037\177]/, "?", s)
    if (index(s, "\\")) s = swap(s, "\\", "\\\\")
    if (index(s, "\t")) s = swap(s, "\t", "\\t")
    if (index(s, "\n")) s = swap(s, "\n", "\\n")
    return s
}

function head(    i, name, seen, line) {
    columns = n
    line = ""
    for (i = 1; i <= n; i++) {
        name = tidy(cells[i])
        if (name == "") name = "column " i
        if (name in seen) { seen[name]++; name = name " (" seen[name] ")" }
        seen[name]++
        line = line (i > 1 ? "\t" : "") written(name)
    }
    print line
}

function record(    i, line, filled, value) {
    line = ""
    filled = 0
    for (i = 1; i <= columns; i++) {
        value = i <= n ? tidy(cells[i]) : ""
        if (value != "") filled++
        line = line (i > 1 ? "\t" : "") written(value)
    }
    records++
    for (i = columns + 1; i <= n; i++) if (tidy(cells[i]) != "") { long++; break }
    if (filled == 0) empty++
    else print line
}

# Whether a line is no text in UTF-8.
function is_foreign(line) {
    if (line !~ /[\200-\377]/) return 0
    gsub(/[\302-\337][\200-\277]/, "", line)
    gsub(/[\340-\357][\200-\277][\200-\277]/, "", line)
    gsub(/[\360-\364][\200-\277][\200-\277][\200-\277]/, "", line)
    return line ~ /[\200-\377]/
}

NR == 1 && substr($0, 1, 3) == "\357\273\277" { $0 = substr($0, 4) }
is_foreign($0) {
    print "line " NR " is no text in UTF-8; save the table in that encoding" > "/dev/stderr"
    foreign = 1
    exit 3
}
{
    line = $0
    sub(/\r$/, "", line)
    if (columns == 0 && !quoted && line == "") next
    if (columns == 0 && !quoted) mark = mark_of(line)
    if (!take(line)) next
    if (columns == 0) head()
    else record()
}
END {
    if (foreign) exit 3
    if (quoted) {
        print "a quoted cell that begins in line " begun " is never closed" > "/dev/stderr"
        exit 3
    }
    if (columns == 0) {
        print "there is no line with the names of the columns" > "/dev/stderr"
        exit 3
    }
    print "records read: " records + 0 ", empty ones left out: " empty + 0 ", with more cells than columns: " long + 0 > "/dev/stderr"
}
' input.csv > prepared_data.part
mv prepared_data.part prepared_data.tsv
