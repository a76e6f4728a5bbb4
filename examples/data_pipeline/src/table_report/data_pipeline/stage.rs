//! The four phases of the pipeline: what each reads and writes, its built-in script, and its sentences.

use super::code::Interpreter;
use super::said::Said;

/// One phase.
#[derive(Debug)]
pub(super) struct Stage {
    pub(super) phase: &'static str,
    /// The name of its script, without the ending.
    pub(super) stem: &'static str,
    /// The script that is used when no model writes one that does it.
    pub(super) built_in: &'static str,
    pub(super) input: &'static str,
    pub(super) output: &'static str,
    /// What goes before the code.
    pub(super) announcement: Said,
    /// What goes before the report, so that others find it.
    pub(super) mark: Said,
    /// Goes after the mark where no model has words for it.
    pub(super) done: Said,
    /// Prints what the output holds: a name and a figure on each line.
    pub(super) inspect: &'static str,
}

impl Stage {
    /// The file of its script.
    pub(super) fn file(&self, interpreter: &Interpreter) -> String {
        format!("{}.{}", self.stem, interpreter.extension)
    }
}

/// All of them, in order.
pub(super) const STAGES: [&Stage; 4] = [&PREPARATION, &TRANSFORMATION, &ANALYSIS, &FORMATTING];

pub(super) const PREPARATION: Stage = Stage {
    phase: "initial_phase",
    stem: "data_prep",
    built_in: include_str!("scripts/data_prep.sh"),
    input: "input.csv",
    output: "prepared_data.tsv",
    announcement: Said { en: "Code that prepares the data:", zh: "我已生成数据准备代码：" },
    mark: Said { en: "Execution result:", zh: "执行结果：" },
    done: Said {
        en: "the code was saved and run; the table is read and cleaned.",
        zh: "代码已保存并执行完成，数据已加载并清理。",
    },
    inspect: r#"awk -F '\t' 'NR == 1 { c = NF } END { print "lines\t" NR; print "records\t" NR - 1; print "columns\t" c + 0 }' prepared_data.tsv"#,
};

pub(super) const TRANSFORMATION: Stage = Stage {
    phase: "data_transformation",
    stem: "transform",
    built_in: include_str!("scripts/transform.sh"),
    input: "prepared_data.tsv",
    output: "transformed_data.tsv",
    announcement: Said {
        en: "Code that adds id, value and category to the prepared data:",
        zh: "基于预处理结果，我已生成数据转换代码：",
    },
    mark: Said { en: "Transformation complete:", zh: "转换完成：" },
    done: Said {
        en: "every record has an id, a value and a category now.", zh: "代码已保存并执行，数据已按数值分类。"
    },
    inspect: r#"awk -F '\t' 'NR > 1 { n[$3]++ } END { print "lines\t" NR; print "records\t" NR - 1; m = split("low medium high none", k, " "); for (i = 1; i <= m; i++) if (n[k[i]]) print k[i] "\t" n[k[i]] }' transformed_data.tsv"#,
};

pub(super) const ANALYSIS: Stage = Stage {
    phase: "data_analysis",
    stem: "analysis",
    built_in: include_str!("scripts/analysis.sh"),
    input: "transformed_data.tsv",
    output: "analysis_results.tsv",
    announcement: Said {
        en: "Code that works out the figures of each column and group:",
        zh: "现在需要对转换后的数据进行分析，我已生成分析代码：",
    },
    mark: Said { en: "Analysis complete:", zh: "分析完成：" },
    done: Said { en: "the figures of each column are worked out.", zh: "代码已保存并执行，统计结果如下。" },
    inspect: r#"awk -F '\t' '$1 == "table" { print "records\t" $2 } $1 == "number" && n++ < 8 { print "number\t" $2 "\t" $3 "\t" $5 "\t" $6 "\t" $7 "\t" $8 } END { print "lines\t" NR }' analysis_results.tsv"#,
};

pub(super) const FORMATTING: Stage = Stage {
    phase: "result_formatting",
    stem: "formatter",
    built_in: include_str!("scripts/formatter.sh"),
    input: "analysis_results.tsv",
    output: "final_report.html",
    announcement: Said {
        en: "Code that makes a report of the results:",
        zh: "最后需要将分析结果格式化为报告，我已生成格式化代码：",
    },
    mark: Said { en: "Processing complete:\n", zh: "处理完成：\n" },
    done: Said {
        en: "All steps are done and the report is written.", zh: "数据流水线已全部执行，最终报告已生成。"
    },
    inspect: r#"awk -F '\t' '$1 == "table" { print "records\t" $2 } $1 == "number" && n++ < 8 { print "number\t" $2 "\t" $3 "\t" $5 "\t" $6 "\t" $7 "\t" $8 } $1 == "group" && g++ < 8 { print "group\t" $2 "\t" $3 "\t" $4 }' analysis_results.tsv && awk 'END { print "lines\t" NR }' final_report.html"#,
};
