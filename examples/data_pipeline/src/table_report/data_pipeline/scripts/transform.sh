#!/bin/sh
# Reads prepared_data.tsv and writes transformed_data.tsv: the same with three columns in front.
#   id        the number of the record
#   value     its cell in the first column of numbers that is no id
#   category  low, medium or high: the third of the range of values that it is in; none without a value
set -eu
LC_ALL=C
export LC_ALL

awk -F '\t' '
function is_number(s) {
    return length(s) <= 40 && s ~ /^[-+]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][-+]?[0-9][0-9]?)?$/
}

function is_id(name) {
    name = tolower(name)
    return name == "id" || name ~ /[_ ]id$/
}

function category(value) {
    if (value == "") return "none"
    if (high == low) return "medium"
    if (value + 0 < low + (high - low) / 3) return "low"
    return value + 0 < low + (high - low) / 3 * 2 ? "medium" : "high"
}

FNR == 1 { pass++ }
pass == 1 && FNR == 1 { columns = NF; for (i = 1; i <= NF; i++) name[i] = $i; next }
pass == 1 {
    for (i = 1; i <= columns; i++) {
        if ($i == "") continue
        if (!is_number($i)) { text[i] = 1; continue }
        if (!(i in most) || $i + 0 > most[i]) most[i] = $i + 0
        if (!(i in least) || $i + 0 < least[i]) least[i] = $i + 0
    }
    next
}
FNR == 1 {
    of = 0
    for (i = columns; i >= 1; i--) if ((i in most) && !(i in text) && !is_id(name[i])) of = i
    if (of) { low = least[of]; high = most[of] }
    print "id\tvalue\tcategory\t" $0
    next
}
{
    value = of ? $of : ""
    print FNR - 1 "\t" value "\t" category(value) "\t" $0
}
' prepared_data.tsv prepared_data.tsv > transformed_data.part
mv transformed_data.part transformed_data.tsv
