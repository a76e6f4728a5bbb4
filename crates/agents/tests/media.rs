//! Pictures, PDFs and audio: the log names them, the model is shown them.

use std::sync::{Arc, Mutex};

use polis_agents::Converse;
use polis_domain::{AgentId, Artifact, CallResult, EffectClass, MessageKind, Role, Timestamp};
use polis_engine::{Cast, Options, Ports, Society, WatchEvent, replay};
use polis_ports::{Artifacts, ChatMessage, Hasher, MAX_MEDIA_BYTES, Media, MediaKind, ModelRequest};
use polis_testkit::{ManualClock, MemoryArtifacts, MemoryLog, ScriptedModel, ScriptedReply, ScriptedTools};
use serde_json::{Map, Value};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n picture";
/// The same in base64.
const PNG_BASE64: &str = "iVBORw0KGgogcGljdHVyZQ==";
const PDF: &[u8] = b"%PDF-1.7 text";

struct Bed {
    log: Arc<MemoryLog>,
    artifacts: MemoryArtifacts,
    asked: Arc<Mutex<Vec<ModelRequest>>>,
    not_taken: Option<MediaKind>,
}

impl Bed {
    fn new() -> Self {
        Self { log: Arc::default(), artifacts: MemoryArtifacts::new(), asked: Arc::default(), not_taken: None }
    }

    fn ports(&self) -> Ports {
        let asked = self.asked.clone();
        let model = ScriptedModel::new(move |request| {
            asked.lock().unwrap().push(request.clone());
            let last = request.messages.last();
            match last {
                Some(ChatMessage::User { text, .. }) if text.starts_with("shoot") => ScriptedReply::call("c1", "shoot", "{}"),
                _ => ScriptedReply::text("seen"),
            }
        });
        let model = self.not_taken.into_iter().fold(model, ScriptedModel::not_taking);
        let tools = ScriptedTools::new().with("shoot", EffectClass::Read, |_, context| {
            let mut draft = context.artifacts.store.draft().unwrap();
            draft.write(PNG).unwrap();
            let (id, bytes) = draft.keep().unwrap();
            CallResult::good("a picture").with_media(vec![Artifact::new(id, "shot.png", "image/png", bytes)])
        });
        Ports {
            log: self.log.clone(),
            model: Arc::new(model),
            toolbox: Arc::new(tools),
            clock: Arc::new(ManualClock::at(Timestamp(1_700_000_000_000))),
            artifacts: Arc::new(self.artifacts.clone()),
            ..Ports::new(MemoryLog::new())
        }
    }

    async fn open(&self) -> Society {
        Society::open("main".into(), self.ports(), cast(), Options::new(7, Role::new("root", "converse"))).await.unwrap()
    }

    async fn store(&self, name: &str, media_type: &str, content: &[u8]) -> Artifact {
        let id = self.artifacts.put(content.into()).await.unwrap();
        Artifact::new(id, name, media_type, content.len() as u64)
    }

    fn last(&self) -> ModelRequest {
        self.asked.lock().unwrap().last().unwrap().clone()
    }

    fn log_text(&self) -> String {
        let events: Vec<_> = self.log.events(&"main".into()).iter().map(|recorded| recorded.event.clone()).collect();
        serde_json::to_string(&events).unwrap()
    }
}

fn cast() -> Cast {
    Cast::new().with("converse", Converse::default())
}

async fn say(society: &Society, text: &str, artifacts: &[Artifact]) {
    let mut meta = Map::new();
    Artifact::attach(&mut meta, artifacts);
    say_with(society, text, meta).await;
}

async fn say_with(society: &Society, text: &str, meta: Map<String, Value>) {
    let sent = society.send_with_meta(AgentId::root(), text, None, meta).await.unwrap();
    let answer = society.answer(&sent).await.unwrap();
    assert_eq!((&answer.kind, &*answer.payload.text), (&MessageKind::Answer, "seen"));
}

fn inline(media_type: &str, name: &str, data: &str) -> Media {
    Media::Inline { media_type: media_type.into(), name: name.into(), data: data.into() }
}

fn shown(request: &ModelRequest) -> Vec<Media> {
    request.messages.iter().flat_map(ChatMessage::media).cloned().collect()
}

fn text(message: &ChatMessage) -> &str {
    match message {
        ChatMessage::User { text, .. } | ChatMessage::Assistant { text, .. } => text,
        ChatMessage::Tool { content, .. } => content,
    }
}

#[tokio::test(start_paused = true)]
async fn a_file_is_shown_in_this_turn_and_later_ones_and_is_in_no_event() {
    let bed = Bed::new();
    let society = bed.open().await;
    let picture = bed.store("cat.jpg", "image/jpeg", PNG).await;
    let notes = bed.store("notes.txt", "text/plain", b"notes").await;
    say(&society, "what is this?", &[picture.clone(), notes]).await;
    // The bytes decide the type, and text is named alone.
    let cat = inline("image/png", "cat.jpg", PNG_BASE64);
    assert_eq!(shown(&bed.last()), std::slice::from_ref(&cat));
    let said = bed.last().messages[0].clone();
    assert!(text(&said).starts_with(&format!("what is this?\n[sent along: {picture}]\n[sent along: ")), "{said:?}");
    say(&society, "and this?", &[bed.store("a.pdf", "application/pdf", PDF).await]).await;
    assert_eq!(shown(&bed.last()), [cat, inline("application/pdf", "a.pdf", "JVBERi0xLjcgdGV4dA==")]);
    let log = bed.log_text();
    assert!(log.contains(&picture.id.to_string()) && !log.contains("iVBORw0KGgo"), "{log}");
}

#[tokio::test(start_paused = true)]
async fn a_picture_by_its_address_is_given_to_the_model_in_this_turn_and_later_ones() {
    let bed = Bed::new();
    let society = bed.open().await;
    let mut meta = Map::new();
    Media::attach_addresses(&mut meta, ["https://h/i.png", "http://h/plain.png"]);
    say_with(&society, "what is this?", meta).await;
    let there = Media::Url("https://h/i.png".into());
    assert_eq!(shown(&bed.last()), std::slice::from_ref(&there));
    say(&society, "and now?", &[]).await;
    assert_eq!(shown(&bed.last()), [there]);
}

#[tokio::test(start_paused = true)]
async fn what_a_tool_shows_is_in_its_result_and_a_replay_needs_no_bytes() {
    let bed = Bed::new();
    let society = bed.open().await;
    say(&society, "shoot", &[]).await;
    let result = bed.last().messages.last().unwrap().clone();
    assert_eq!((text(&result), result.media()), ("a picture", &[inline("image/png", "shot.png", PNG_BASE64)][..]));
    let id = Hasher::id_of(PNG);
    assert_eq!(society.listing().find(&id).await.unwrap().name, "shot.png".into());
    assert!(!bed.log_text().contains("iVBORw0KGgo"));
    society.stop(std::time::Duration::ZERO).await;
    bed.artifacts.lose(&id);
    let replayed = replay(&"main".into(), &bed.ports(), &cast()).await.unwrap();
    assert_eq!((replayed.divergences, replayed.turns), (vec![], 1));
}

#[tokio::test(start_paused = true)]
async fn a_model_that_takes_no_pictures_is_told_their_names_and_the_person_that_it_was() {
    let bed = Bed { not_taken: Some(MediaKind::Image), ..Bed::new() };
    let society = bed.open().await;
    let (picture, pdf) = (bed.store("cat.png", "image/png", PNG).await, bed.store("a.pdf", "application/pdf", PDF).await);
    let mut watch = society.watch(society.log().head(society.id()).await.unwrap());
    say(&society, "what is this?", &[picture.clone(), pdf]).await;
    assert_eq!(shown(&bed.last()), [inline("application/pdf", "a.pdf", "JVBERi0xLjcgdGV4dA==")]);
    let line = format!("[not shown: {picture}, because this model takes no pictures]");
    assert!(text(&bed.last().messages[0]).ends_with(&line), "{:?}", bed.last().messages);
    let step = loop {
        if let WatchEvent::Step(step) = watch.next().await.unwrap().unwrap() {
            break step;
        }
    };
    assert_eq!((&*step.action, step.component.as_deref()), (Media::NOT_SHOWN, Some("cat.png: this model takes no pictures")));
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_read_is_named_with_the_reason_and_the_turn_goes_on() {
    let bed = Bed::new();
    let society = bed.open().await;
    let lost = bed.store("lost.png", "image/png", PNG).await;
    bed.artifacts.lose(&lost.id);
    let odd = bed.store("odd.png", "image/png", b"<html>").await;
    let large = Artifact { bytes: MAX_MEDIA_BYTES + 1, ..bed.store("large.png", "image/png", b"\x89PNG").await };
    say(&society, "look", &[lost, odd, large]).await;
    assert_eq!(shown(&bed.last()), []);
    let said = bed.last().messages[0].clone();
    for part in
        ["there is no artifact", "its content is not of the type that it is declared as]", "because it is longer than 10 MB]"]
    {
        assert!(text(&said).contains(part), "{part}: {said:?}");
    }
}
