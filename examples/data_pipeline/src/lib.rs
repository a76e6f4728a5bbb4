//! A worked example: a table in, a report out. Code is written for each phase, saved, run in a sandbox and checked; what is
//! reported is what really happened.
//!
//! [`TableReportAgent`] talks to the person and starts [`DataPipelineAgent`] in a sub-thread, in two steps. [`tools`] are what
//! they need. `main.rs` is a program around them; a society of your own takes them the same way:
//!
//! ```no_run
//! # async fn open(ports: polis::Ports) -> Result<(), Box<dyn std::error::Error>> {
//! use data_pipeline::TableReportAgent;
//! use polis::prelude::*;
//!
//! let cast = Cast::new().with("table_report", TableReportAgent::default());
//! let society = Society::open("main".into(), ports, cast, Options::new(1, Role::new("root", "table_report"))).await?;
//! society.submit("Analyse sales.csv").await?;
//! # Ok(())
//! # }
//! ```

mod table_report;
mod tools;

pub use table_report::{DataPipelineAgent, Interpreter, TableReportAgent};
#[cfg(target_os = "linux")]
pub use tools::tools;
