//! Forms for clients that begin with `initialize`: such a client is sent `elicitation/create` in the stream of its call, and answers
//! with a message of its own. What a client can do is remembered with its session, in memory; after a restart its calls end as for
//! a client without forms.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, oneshot};

use super::in_flight::fresh_name;

/// How many sessions are remembered; the oldest are forgotten first.
const MAX_SESSIONS: usize = 10_000;

/// The sessions whose clients show forms, and the forms that were sent and not answered yet.
#[derive(Default)]
pub(crate) struct ClientForms(Mutex<Forms>);

#[derive(Default)]
struct Forms {
    sessions: HashSet<String>,
    order: VecDeque<String>,
    /// By session and id.
    open: HashMap<(String, String), oneshot::Sender<Map<String, Value>>>,
}

impl ClientForms {
    /// Remembers whether the client of a session shows forms.
    pub(super) fn set(&self, session: &str, shows_forms: bool) {
        let mut forms = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !shows_forms {
            forms.sessions.remove(session);
        } else if forms.sessions.insert(session.to_owned()) {
            forms.order.push_back(session.to_owned());
            while forms.order.len() > MAX_SESSIONS {
                let Some(oldest) = forms.order.pop_front() else { break };
                forms.sessions.remove(&oldest);
            }
        }
    }

    pub(super) fn has(&self, session: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).sessions.contains(session)
    }

    /// Hands the client's answer to the call that waits for it; an answer that nobody waits for is dropped.
    pub(super) fn answer(&self, session: Option<&str>, id: &Value, message: Map<String, Value>) {
        let (Some(session), Value::String(id)) = (session, id) else { return };
        let open = self.0.lock().unwrap_or_else(PoisonError::into_inner).open.remove(&(session.to_owned(), id.clone()));
        if let Some(open) = open {
            // The call may have ended.
            let _ = open.send(message);
        }
    }
}

/// Shows forms to the client of one call.
pub(super) struct FormSender {
    pub(super) forms: Arc<ClientForms>,
    pub(super) session: String,
    pub(super) queue: mpsc::Sender<Value>,
}

/// A form that the client shows. Dropping it withdraws it.
pub(super) struct OpenForm<'a> {
    sender: &'a FormSender,
    id: String,
    answer: oneshot::Receiver<Map<String, Value>>,
}

impl FormSender {
    /// Sends a form, which is a request without an id.
    pub(super) async fn show(&self, form: &Value) -> OpenForm<'_> {
        let id = fresh_name();
        let (send, answer) = oneshot::channel();
        let key = (self.session.clone(), id.clone());
        self.forms.0.lock().unwrap_or_else(PoisonError::into_inner).open.insert(key, send);
        let mut params = form["params"].clone();
        // Clients of before 2025-11-25 know no modes, and a form is what the later ones take it for.
        params.as_object_mut().map(|params| params.remove("mode"));
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": form["method"], "params": params });
        let _ = self.queue.send(request).await;
        OpenForm { sender: self, id, answer }
    }
}

impl OpenForm<'_> {
    /// What the client answers: an action and, if the person accepted, the content. A client that fails has cancelled.
    pub(super) async fn answered(&mut self) -> Value {
        let answer = (&mut self.answer).await.ok().and_then(|mut message| message.remove("result"));
        answer.filter(Value::is_object).unwrap_or_else(|| json!({ "action": "cancel" }))
    }
}

impl Drop for OpenForm<'_> {
    fn drop(&mut self) {
        let key = (self.sender.session.clone(), self.id.clone());
        if self.sender.forms.0.lock().unwrap_or_else(PoisonError::into_inner).open.remove(&key).is_some() {
            let params = json!({ "requestId": self.id, "reason": "it was answered elsewhere" });
            let _ =
                self.sender.queue.try_send(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }));
        }
    }
}
