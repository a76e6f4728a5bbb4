//! A program with an agent of its own, which the tests serve.

use std::process::ExitCode;

use polis_domain::{Failure, Response, Role};
use polis_engine::{Agent, Cast, Turn};

/// Asks whether it may answer, and asks the model.
struct Careful;

impl Agent for Careful {
    async fn execute_task(&self, turn: &mut Turn) -> Result<Response, Failure> {
        let message = turn.task().message.clone();
        if message.contains("carefully") {
            turn.approve("Answer this?", serde_json::json!({ "message": &*message }), None).await?;
        }
        Ok(Response::new(format!("carefully: {}", turn.generate(&*message).await?)))
    }
}

fn main() -> ExitCode {
    polis_app::serve(Cast::new().with("careful", Careful), Role::new("root", "careful"))
}
