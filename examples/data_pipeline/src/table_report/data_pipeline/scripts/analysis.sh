#!/bin/sh
# Reads transformed_data.tsv and writes analysis_results.tsv, lines of cells parted by tabs:
#   table   records  columns
#   number  column  count  empty  sum  mean  least  greatest
#   text    column  count  empty  different
#   level   category  records
#   group   column  value  records
#   figure  column  value  column of numbers  count  sum  mean  least  greatest
# Groups are those of the first column of texts with 2 to 20 different ones, each there twice on average; they stand as they come.
set -eu
LC_ALL=C
export LC_ALL

awk -F '\t' '
function is_number(s) {
    return length(s) <= 40 && s ~ /^[-+]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][-+]?[0-9][0-9]?)?$/
}

# Adds x to what is kept under key; what is lost in rounding is kept beside it.
function add(key, x,    t) {
    x += 0
    if (!(key in count)) { count[key] = 0; sum[key] = 0; lost[key] = 0; least[key] = x; most[key] = x }
    count[key]++
    t = sum[key] + x
    if ((sum[key] < 0 ? -sum[key] : sum[key]) >= (x < 0 ? -x : x)) lost[key] += (sum[key] - t) + x
    else lost[key] += (x - t) + sum[key]
    sum[key] = t
    if (x < least[key]) least[key] = x
    if (x > most[key]) most[key] = x
}

function exact(x,    s) {
    s = sprintf("%.15g", x)
    return s == "-0" ? "0" : s
}

function rounded(x,    s) {
    s = sprintf("%.12g", x)
    return s == "-0" ? "0" : s
}

function figures(key,    total) {
    if (!(key in count)) return "0\t0\t\t\t"
    total = sum[key] + lost[key]
    return count[key] "\t" exact(total) "\t" rounded(total / count[key]) "\t" exact(least[key]) "\t" exact(most[key])
}

FNR == 1 { pass++ }
pass == 1 && FNR == 1 { columns = NF; for (i = 4; i <= NF; i++) name[i] = $i; next }
pass == 1 {
    for (i = 4; i <= columns; i++) {
        if ($i == "") continue
        filled[i]++
        if (!(i in text) && !is_number($i)) text[i] = 1
        if (!((i, $i) in seen)) { seen[i, $i] = 1; different[i]++ }
    }
    next
}
FNR == 1 {
    by = 0
    for (i = columns; i >= 4; i--) if ((i in text) && different[i] >= 2 && different[i] <= 20 && different[i] * 2 <= filled[i]) by = i
    next
}
{
    records++
    levels[$3]++
    if (by) {
        if (!($by in members)) { group[++groups] = $by }
        members[$by]++
    }
    for (i = 4; i <= columns; i++) {
        if ((i in text) || $i == "") continue
        add(i, $i)
        if (by) add(i SUBSEP $by, $i)
    }
}
END {
    print "table\t" records + 0 "\t" columns - 3
    for (i = 4; i <= columns; i++) {
        empty = records - filled[i]
        if ((i in text) || !filled[i]) { print "text\t" name[i] "\t" filled[i] + 0 "\t" empty + 0 "\t" different[i] + 0; continue }
        $0 = figures(i)
        print "number\t" name[i] "\t" filled[i] "\t" empty "\t" $2 "\t" $3 "\t" $4 "\t" $5
    }
    for (i = 1; i <= split("low medium high none", order, " "); i++)
        if (levels[order[i]]) print "level\t" order[i] "\t" levels[order[i]]
    for (g = 1; g <= groups; g++) {
        print "group\t" name[by] "\t" group[g] "\t" members[group[g]]
        for (i = 4; i <= columns; i++)
            if (!(i in text) && filled[i]) print "figure\t" name[by] "\t" group[g] "\t" name[i] "\t" figures(i SUBSEP group[g])
    }
}
' transformed_data.tsv transformed_data.tsv > analysis_results.part
mv analysis_results.part analysis_results.tsv
