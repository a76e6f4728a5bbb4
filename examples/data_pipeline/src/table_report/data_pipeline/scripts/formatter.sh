#!/bin/sh
# Reads steps.tsv and analysis_results.tsv and writes final_report.html: one page that needs nothing else and runs nothing.
# Whatever comes from the data is text there, never HTML.
set -eu
LC_ALL=C
export LC_ALL

awk -F '\t' '
# A cell as text for HTML.
function text(s,    at, c, done) {
    done = ""
    while ((at = index(s, "\\")) > 0) {
        c = substr(s, at + 1, 1)
        done = done substr(s, 1, at - 1) (c == "n" || c == "t" ? " " : c)
        s = substr(s, at + 2)
    }
    s = done s
    gsub(/&/, "\\&amp;", s)
    gsub(/</, "\\&lt;", s)
    gsub(/>/, "\\&gt;", s)
    gsub(/"/, "\\&quot;", s)
    gsub(/\047/, "\\&#39;", s)
    return s
}

function word(en, zh) {
    return language == "zh" ? zh : en
}

function value(s) {
    return s == "" ? word("(empty)", "（空）") : text(s)
}

function begin(title, names,    i, n, parts) {
    if (open) print "</table>"
    open = 1
    print "<h2>" title "</h2>"
    print "<table>"
    n = split(names, parts, "\001")
    printf "<tr>"
    for (i = 1; i <= n; i++) printf "<th>%s</th>", parts[i]
    print "</tr>"
}

function row(first, last,    i) {
    printf "<tr><th>%s</th>", value($first)
    for (i = first + 1; i <= last; i++) printf "<td>%s</td>", text($i)
    print "</tr>"
}

FILENAME ~ /steps/ && $1 == "language" { language = $2; next }
FILENAME ~ /steps/ && $1 == "source" { source = $2; next }
FILENAME ~ /steps/ && $1 == "step" { steps++; step[steps] = $2; author[steps] = $3; note[steps] = $4; next }

$1 == "table" {
    title = word("Report on ", "数据报告：") text(source)
    print "<!doctype html>"
    print "<html lang=\"" (language == "zh" ? "zh" : "en") "\">"
    print "<head>"
    print "<meta charset=\"utf-8\">"
    print "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src \047none\047; style-src \047unsafe-inline\047\">"
    print "<title>" title "</title>"
    print "<style>body{font:16px/1.5 sans-serif;margin:2em auto;max-width:60em;padding:0 1em}table{border-collapse:collapse;margin:1em 0}"
    print "th,td{border:1px solid #ccc;padding:.3em .7em;text-align:left}td{text-align:right;font-variant-numeric:tabular-nums}td.words{text-align:left}</style>"
    print "</head>"
    print "<body>"
    print "<h1>" title "</h1>"
    print "<p>" word("Records: ", "记录数：") text($2) word(", columns: ", "，列数：") text($3) "</p>"
}
$1 == "number" && !numbers++ {
    begin(word("Numbers", "数值列"), word("column\001count\001empty\001sum\001mean\001minimum\001maximum", "列\001个数\001空值\001总和\001平均值\001最小值\001最大值"))
}
$1 == "number" { row(2, 8); next }
$1 == "text" { texts[++n_texts] = $0; next }
$1 == "level" { levels[++n_levels] = $0; next }
$1 == "group" { groups[++n_groups] = $0; next }
$1 == "figure" { figures[++n_figures] = $0; next }

END {
    if (title == "") {
        print "analysis_results.tsv has no line `table`" > "/dev/stderr"
        exit 3
    }
    if (n_texts) begin(word("Texts", "文本列"), word("column\001count\001empty\001different", "列\001个数\001空值\001不同值"))
    for (i = 1; i <= n_texts; i++) { $0 = texts[i]; row(2, 5) }
    if (n_levels) begin(word("Categories by value", "按数值分类"), word("category\001records", "类别\001记录数"))
    for (i = 1; i <= n_levels; i++) { $0 = levels[i]; row(2, 3) }
    for (i = 1; i <= n_groups; i++) {
        $0 = groups[i]
        if (i == 1) begin(word("Records by ", "记录数，按 ") value($2), value($2) word("\001records", "\001记录数"))
        row(3, 4)
    }
    for (i = 1; i <= n_figures; i++) {
        $0 = figures[i]
        if (i == 1) begin(word("Numbers by ", "数值，按 ") value($2), value($2) word("\001column\001count\001sum\001mean\001minimum\001maximum", "\001列\001个数\001总和\001平均值\001最小值\001最大值"))
        row(3, 9)
    }
    begin(word("How this was made", "处理步骤"), word("step\001code by\001what happened", "步骤\001代码来源\001情况"))
    for (i = 1; i <= steps; i++)
        print "<tr><th>" text(step[i]) "</th><td class=\"words\">" text(author[i]) "</td><td class=\"words\">" text(note[i]) "</td></tr>"
    print "</table>"
    print "</body>"
    print "</html>"
}
' steps.tsv analysis_results.tsv > final_report.part
mv final_report.part final_report.html
