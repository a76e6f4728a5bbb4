//! Contents outside the log: keeping one is an effect that ends once, and whatever names one puts it into the catalogue.

use polis_domain::*;
use serde_json::Map;

use crate::support::*;

fn artifact(content: u8, name: &str) -> Artifact {
    Artifact::new(ArtifactId::new([content; 32]), name, "text/plain", 3)
}

fn end_with(id: EffectId, outcome: Outcome) -> Command {
    Command::End { id, outcome, spent: None, at: NOON }
}

#[test]
fn keeping_is_stated_ends_once_and_is_never_in_doubt() {
    let id = effect(8, 0);
    let keep = || vec![submit("a", "go"), begin(id, vec![Effect::Keep(artifact(1, "a"))])];
    let twice = || [keep(), vec![end_with(id, Outcome::Kept(artifact(1, "a")))]].concat();
    let kept = || Outcome::Kept(artifact(1, "a"));
    check(keep(), end_with(id, kept()), Ok(vec![under("a", ended(id, kept()))]));
    check(twice(), end_with(id, kept()), Err(Refusal::NotOpen(id)));
    check(keep(), end_with(id, result("no")), Err(Refusal::NotWaiting(id)));
    check(keep(), Command::Doubt { id }, Err(Refusal::NotWaiting(id)));
    let full = || Outcome::Failed(Failure::new("artifact_too_large", "too large"));
    check(keep(), end_with(id, full()), Ok(vec![under("a", ended(id, full()))]));
}

#[test]
fn whatever_names_an_artifact_lists_it_with_whose_it_is() {
    let mut society = four_agents();
    let mut meta = Map::new();
    Artifact::attach(&mut meta, &[artifact(9, "sent")]);
    let envelope = Envelope {
        id: "m".into(),
        from: AgentId::user(),
        to: "a".into(),
        task_id: "t".into(),
        kind: MessageKind::Message,
        payload: Payload { text: "go".into(), meta: meta.into() },
        reply_to: ReplyTo::User,
        person: None,
        hops: 0,
    };
    let made = CallResult::good("made").with_artifacts(vec![artifact(1, "a"), artifact(2, "b"), artifact(1, "a")]);
    let commands = [
        Command::Send { envelope: envelope.into() },
        begin(effect(8, 0), vec![call(EffectClass::Read), Effect::Keep(artifact(1, "again"))]),
        end_with(effect(8, 0), Outcome::Result(made)),
        end_with(effect(8, 1), Outcome::Kept(artifact(1, "again"))),
    ];
    for command in commands {
        society.command(command, NOON).unwrap();
    }
    let listed = society.spine.artifacts.entries().iter().map(|it| {
        let agent = it.agent.as_ref().map(ToString::to_string).unwrap_or_default();
        (it.artifact.name.to_string(), it.seq.0, agent, it.task.as_ref().map(ToString::to_string).unwrap_or_default())
    });
    let entry = |name: &str, seq, agent: &str| (name.to_owned(), seq, agent.to_owned(), "t".to_owned());
    assert_eq!(
        listed.collect::<Vec<_>>(),
        [entry("sent", 7, ""), entry("a", 11, "a"), entry("b", 11, "a"), entry("again", 12, "a")]
    );
    assert_eq!(
        society.spine.artifacts.find(&ArtifactId::new([1; 32]), &Visibility::Everything).unwrap().artifact,
        artifact(1, "a")
    );
    assert_eq!(society.spine.artifacts.find(&ArtifactId::new([3; 32]), &Visibility::Everything), None);
}
