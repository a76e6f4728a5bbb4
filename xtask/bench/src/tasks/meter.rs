//! Counts what is sent to a model, and how much of it a vendor could have cached.

use std::collections::HashMap;
use std::sync::Arc;

use polis_ports::ModelRequest;
use serde_json::json;

/// The requests of one task.
#[derive(Default)]
pub(crate) struct Meter {
    pub(crate) calls: usize,
    /// Characters of the first request.
    pub(crate) first: usize,
    /// Characters of system message, tools and messages, as JSON.
    pub(crate) sent: usize,
    /// The part of them that is the beginning of an earlier request of the same agent.
    pub(crate) cached: usize,
    earlier: HashMap<Arc<str>, Vec<Vec<String>>>,
}

impl Meter {
    pub(crate) fn count(&mut self, request: &ModelRequest) {
        let tools: Vec<_> = request
            .tools
            .iter()
            .map(|tool| json!({ "name": tool.name, "description": tool.description, "parameters": tool.parameters }))
            .collect();
        let messages = request.messages.iter().map(|message| json!(message).to_string());
        let parts: Vec<String> = [json!(tools).to_string(), request.system.to_string()].into_iter().chain(messages).collect();
        let earlier = self.earlier.entry(request.asker.clone()).or_default();
        self.calls += 1;
        let size = parts.iter().map(|part| part.chars().count()).sum::<usize>();
        if self.sent == 0 {
            self.first = size;
        }
        self.sent += size;
        self.cached += earlier.iter().map(|earlier| common(earlier, &parts)).max().unwrap_or_default();
        earlier.push(parts);
    }
}

/// Characters that two requests have in common from their beginning.
fn common(one: &[String], other: &[String]) -> usize {
    let same = one.iter().zip(other).take_while(|(one, other)| one == other).count();
    let whole: usize = one[..same].iter().map(|part| part.chars().count()).sum();
    let partly = match (one.get(same), other.get(same)) {
        (Some(one), Some(other)) => one.chars().zip(other.chars()).take_while(|(one, other)| one == other).count(),
        _ => 0,
    };
    whole + partly
}

#[cfg(test)]
mod tests {
    use polis_ports::ChatMessage;

    use super::*;

    #[test]
    fn the_beginning_of_an_earlier_request_of_the_same_agent_counts_as_cached() {
        let request = |asker: &str, system: &str, messages: &[&str]| ModelRequest {
            asker: asker.into(),
            system: system.into(),
            messages: messages.iter().map(|text| ChatMessage::user(*text)).collect(),
            ..ModelRequest::default()
        };
        let mut meter = Meter::default();
        meter.count(&request("a", "sys", &["one"]));
        let first = meter.sent;
        assert_eq!((meter.calls, meter.cached, meter.first), (1, 0, first));
        meter.count(&request("b", "sys", &["one"]));
        assert_eq!(meter.cached, 0, "another agent's request");
        meter.count(&request("a", "sys", &["one", "two"]));
        assert_eq!(meter.cached, first);
        meter.count(&request("a", "syx", &["one", "two"]));
        assert_eq!(meter.cached, first + "[]sy".len());
    }
}
