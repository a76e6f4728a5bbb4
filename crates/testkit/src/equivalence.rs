//! Whether two logs are equivalent: equal apart from ids, times, and the order in which independent turns ran.

use std::collections::BTreeMap;

use polis_domain::{Event, Recorded, Spine, TurnId};
use serde_json::Value;

/// The events of each turn as text, sorted, by agent and depth. What a person said about a write
/// in doubt, and attempts in vain, are left out: they are there only because something went wrong in between. So are versions of the
/// code, which depend on the program that happened to run.
pub fn normalized_turns(log: &[Recorded]) -> BTreeMap<String, Vec<String>> {
    let spine = Spine::from_iter(log);
    let mut turns: BTreeMap<TurnId, (String, Vec<(u32, String)>)> = BTreeMap::new();
    let mut rest = BTreeMap::<String, Vec<String>>::new();
    for recorded in log {
        let is_recovery = matches!(
            recorded.event,
            Event::EffectDoubted { .. }
                | Event::EffectCleared { .. }
                | Event::EffectRestarted { .. }
                | Event::EffectRetried { .. }
                | Event::TurnRevived { .. }
                | Event::TurnRested { .. }
                | Event::VersionsSet { .. }
        );
        if is_recovery {
            continue;
        }
        let line = plain(&recorded.event);
        let place = recorded.thread.as_ref().map_or_else(String::new, |thread| {
            let (main, path) = spine.address(thread);
            if spine.threads.contains_key(&main) { format!("{main}/{}", path.segments().len()) } else { "user".to_owned() }
        });
        match recorded.turn() {
            Some(turn) => {
                // Effects that run at once may end in any order.
                let n = match &recorded.event {
                    Event::TurnStarted { .. } => 0,
                    event => event.effect().map_or(u32::MAX, |id| id.n + 1),
                };
                turns.entry(turn).or_insert_with(|| (place, Vec::new())).1.push((n, line));
            }
            None => rest.entry(place).or_default().push(line),
        }
    }
    for (place, mut lines) in turns.into_values() {
        lines.sort_by_key(|(n, _)| *n);
        let lines: Vec<_> = lines.into_iter().map(|(_, line)| line).collect();
        rest.entry(place).or_default().push(lines.join("\n"));
    }
    rest.values_mut().for_each(|stories| stories.sort());
    rest
}

/// The first difference between two logs, for people.
pub fn difference(one: &[Recorded], other: &[Recorded]) -> Option<String> {
    let (one, other) = (normalized_turns(one), normalized_turns(other));
    let places: std::collections::BTreeSet<_> = one.keys().chain(other.keys()).collect();
    places.into_iter().find_map(|place| {
        let none = Vec::new();
        let (a, b) = (one.get(place).unwrap_or(&none), other.get(place).unwrap_or(&none));
        let differs = a != b;
        let only = |a: &[String], b: &[String]| {
            a.iter().find(|normalized_turns| !b.contains(normalized_turns)).cloned().unwrap_or_default()
        };
        let (a, b) = ((a.len(), only(a, b)), (b.len(), only(b, a)));
        let line = a.1.lines().zip(b.1.lines()).find(|(a, b)| a != b).unwrap_or((a.1.as_str(), b.1.as_str()));
        let cut = |text: &str| text.chars().take(400).collect::<String>();
        differs.then(|| format!("at `{place}` ({} stories against {}):\n  {}\n  {}", a.0, b.0, cut(line.0), cut(line.1)))
    })
}

/// An event without ids and times.
fn plain(event: &Event) -> String {
    let mut value = serde_json::to_value(event).unwrap_or_default();
    if let Some(started) = value.get_mut("turnStarted").and_then(Value::as_object_mut) {
        started.remove("version");
    }
    blank(&mut value);
    value.to_string()
}

fn blank(value: &mut Value) {
    match value {
        Value::Object(map) => {
            for (key, value) in map.iter_mut() {
                match key.as_str() {
                    "timestamp" | "until" | "deadline" | "timeMs" | "durationMs" | "requests" | "seed" | "turn" | "index"
                    | "seq" | "subThreadPath" | "parentThreadPath" => {
                        *value = Value::Null;
                    }
                    _ => blank(value),
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(blank),
        Value::String(text) => *text = without_ids(text),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Replaces every unique tail, and an effect's turn, by a sign.
fn without_ids(text: &str) -> String {
    if let Some((turn, n)) = text.split_once('.')
        && turn.parse::<u64>().is_ok()
        && n.parse::<u32>().is_ok()
    {
        return format!("#.{n}");
    }
    let chars: Vec<char> = text.chars().collect();
    let mut plain = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        if is_unique(&chars[at..]) {
            plain.push('#');
            at += UNIQUE;
        } else {
            plain.push(chars[at]);
            at += 1;
        }
    }
    plain
}

/// The length of a unique tail.
const UNIQUE: usize = 36;

fn is_unique(chars: &[char]) -> bool {
    let fits = |(i, c): (usize, &char)| if matches!(i, 8 | 13 | 18 | 23) { *c == '-' } else { c.is_ascii_hexdigit() };
    chars.len() >= UNIQUE && chars[..UNIQUE].iter().enumerate().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_times_do_not_tell_stories_apart_but_words_do() {
        let a = without_ids("bot_0192f3c4-1111-7abc-8def-0123456789ab");
        assert_eq!(a, without_ids("bot_0192f3c4-2222-7abc-8def-0123456789ab"));
        assert_eq!(a, "bot_#");
        assert_eq!(without_ids("12.3"), "#.3");
        assert_eq!(without_ids("1.5 apples"), "1.5 apples");
    }
}
