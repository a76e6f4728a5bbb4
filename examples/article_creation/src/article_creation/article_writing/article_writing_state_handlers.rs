//! The handlers of an article's units: each makes the message of one phase.

use polis::prelude::*;

use super::aspect_research::AspectResearchAgent;
use super::editorial_review::EditorialReviewAgent;
use super::outline::aspects;
use super::remarks::remarks;
use super::verdict::Verdict;
use crate::sources;
use crate::tagged::tagged;

/// Names the aspects of the topic.
pub(super) struct TopicOutlineHandler;

impl StateHandler for TopicOutlineHandler {
    async fn handle(&self, turn: &mut Turn) -> Result<Response, Failure> {
        let topic = turn.task().message.clone();
        let passages = sources::passages(turn, &topic, None).await?;
        let prompt = tagged("topic", &topic) + &tagged("passages", &passages.join("\n"));
        Ok(Response::new(turn.generate(prompt).await?))
    }
}

/// Has every aspect researched, beside each other. One that fails is named, and the article goes on without it.
pub(super) struct AspectResearchHandler;

impl StateHandler for AspectResearchHandler {
    fn sub_threads(&self) -> SubThreads {
        SubThreads::new().with("aspect_research", AspectResearchAgent)
    }

    async fn handle(&self, turn: &mut Turn) -> Result<Response, Failure> {
        let aspects = aspects(&said(turn, "topic_outline").await?);
        let request = |aspect: &String| SubThreadRequest::new("aspect_research", aspect.as_str()).showing(aspect);
        let results = turn.run_sub_threads(aspects.iter().map(request).collect()).await?;
        let (mut findings, mut missing) = (Vec::new(), Vec::new());
        for (aspect, result) in aspects.iter().zip(results) {
            match result.failure {
                None => findings.push(format!("## {aspect}\n\n{}", result.text.trim())),
                Some(failure) => missing.push(format!("{aspect} ({failure})")),
            }
        }
        if findings.is_empty() {
            let message = format!("no aspect could be researched: {}", missing.join("; "));
            return Err(Failure::new("nothing_researched", message));
        }
        let mut response = Response::new(findings.join("\n\n"));
        response.meta.insert("missing".to_owned(), missing.into());
        Ok(response)
    }
}

/// Writes the article from the findings; a second time also from what the review asks for.
pub(super) struct DraftWritingHandler;

impl StateHandler for DraftWritingHandler {
    async fn handle(&self, turn: &mut Turn) -> Result<Response, Failure> {
        let mut prompt = tagged("topic", &turn.task().message.clone());
        prompt += &tagged("findings", &said(turn, "aspect_research").await?);
        if let Some(review) = turn.said_in("draft_review").await? {
            prompt += &tagged("draft", &said(turn, "draft_writing").await?);
            if let Verdict::Revise(why) = Verdict::read(&review.text) {
                prompt += &tagged("changes", why);
            }
        }
        Ok(Response::new(turn.generate(prompt).await?))
    }
}

/// Has the draft reviewed. A review that fails is no reason to lose the article.
pub(super) struct DraftReviewHandler;

impl StateHandler for DraftReviewHandler {
    fn sub_threads(&self) -> SubThreads {
        SubThreads::new().with("editorial_review", EditorialReviewAgent)
    }

    async fn handle(&self, turn: &mut Turn) -> Result<Response, Failure> {
        let draft = tagged("draft", &said(turn, "draft_writing").await?);
        let findings = tagged("findings", &said(turn, "aspect_research").await?);
        Ok(turn.run_sub_thread(SubThreadRequest::new("editorial_review", draft + &findings)).await?.into())
    }
}

/// Puts the last draft and what must be said about it together. No model is asked: nothing may be added here.
pub(super) struct ArticleCompletionHandler;

impl StateHandler for ArticleCompletionHandler {
    async fn handle(&self, turn: &mut Turn) -> Result<Response, Failure> {
        let researched = turn.said_in("aspect_research").await?;
        let missing = researched.and_then(|message| message.meta.get("missing").cloned()).unwrap_or_default();
        let missing: Vec<_> =
            missing.as_array().into_iter().flatten().filter_map(|what| what.as_str().map(str::to_owned)).collect();
        let (draft, review) = (said(turn, "draft_writing").await?, said(turn, "draft_review").await?);
        Ok(Response::new(format!("{}{}", draft.trim_end(), remarks(&turn.task().message, &missing, &review))))
    }
}

/// What a phase that is over has left.
async fn said(turn: &mut Turn, phase: &str) -> Result<String, Failure> {
    Ok(turn.said_in(phase).await?.map(|message| message.text.clone()).unwrap_or_default())
}
