// Generated from the types of the server. Do not edit: UPDATE_WIRE=1 cargo test -p polis-server typescript writes it anew.

/** What was accepted is in the log; the events after `seq` tell what comes of it. */
export type Accepted = {
  /** The conversation, or the agent that the message went to. */
  conversation: AgentId;
  /** The message. */
  messageId: MessageId;
  /** The position of the message in the log. */
  seq: Seq;
  /** The request. */
  taskId: TaskId;
};

/** What became of it: a message, or the answer to what waited. */
export type Acted = {
  /** What was answered. */
  approvalId?: string | null;
  /** The message that was sent. */
  message?: Accepted | null;
};

/** An agent. */
export type Agent = {
  /** Whether it works, waits or is blocked. */
  activity: AgentActivity;
  /** How full its conversation is. */
  context: AgentContext;
  /** When it was spawned. */
  createdAt: Timestamp;
  /** Its id. */
  id: AgentId;
  /** The agent that spawned it; none for root. */
  parentAgentId?: AgentId | null;
  /** Messages that wait in its inbox. */
  pending: number;
  /** Its role. */
  roleId: RoleId;
  /** The role's name, for people. */
  roleName: string;
  /** How far it is with its task. */
  state: AgentState;
  /** `active`: agents that were terminated are listed by `GET /api/org` only. */
  status: OrgStatus;
  /** The request that it works on. */
  taskId?: TaskId | null;
};

/** Whether an agent works, waits or is blocked. */
export type AgentActivity = "idle" | "running" | "waiting" | "parked";

/** How full an agent's conversation is. */
export type AgentContext = {
  /** How many compressions apply. */
  compressions: number;
  /** Messages in it. */
  messages: number;
  /** Of those, how many the model is shown; summaries stand for the others. */
  shown: number;
};

/** One agent in detail. */
export type AgentDetail = {
  /** Whether it works, waits or is blocked. */
  activity: AgentActivity;
  /** The agents that it has spawned. */
  children: Array<AgentId>;
  /** How full its conversation is. */
  context: AgentContext;
  /** When it was spawned. */
  createdAt: Timestamp;
  /** Its id. */
  id: AgentId;
  /** Whether it is being terminated: it accepts nothing new and ends when its work is done. */
  leaving: boolean;
  /** What it offers to a person at one touch. */
  operations: Array<AgentOperation>;
  /** The agent that spawned it; none for root. */
  parentAgentId?: AgentId | null;
  /** Messages that wait in its inbox. */
  pending: number;
  /** Its role: prompt, models and tools. */
  role: OrgRole | null;
  /** Its role. */
  roleId: RoleId;
  /** The role's name, for people. */
  roleName: string;
  /** How far it is with its task. */
  state: AgentState;
  /** `active`: agents that were terminated are listed by `GET /api/org` only. */
  status: OrgStatus;
  /** The request that it works on. */
  taskId?: TaskId | null;
};

/** Names an agent; `user` is the person's endpoint, `root` the entry point. */
export type AgentId = string;

/** Something that an agent offers to a person; `POST /api/agents/{id}/operate` has it done. */
export type AgentOperation = {
  /** Its name, for people. */
  label: string;
  /** Its label in other languages, by their short names such as `zh`. */
  labels?: Record<string, string>;
  /** The message that is sent to the agent. */
  message: string;
  /** Data that goes into the task's meta. */
  meta?: Record<string, unknown>;
  /** Its name, for programs. */
  name: string;
};

/** One agent of the society, with its inbox and its open turn. */
export type AgentRecord = {
  /** When it was created. */
  createdAt: Timestamp;
  /** Set when it is to be terminated. */
  dismissed?: Dismissal | null;
  /** The name that messages are addressed to. */
  id: AgentId;
  /** The first entries of its inbox. */
  inbox: Array<InboxRecord>;
  /** The agent that spawned it; none for root. */
  parent?: AgentId | null;
  /** The role that it was created with; the view has it in `roles`. */
  role: RoleId;
  /** What its own turns have spent. */
  spent: Spent;
  /** When it was terminated. */
  terminatedAt?: Timestamp | null;
  /** The open turn of its main thread. */
  turn?: TurnId | null;
  /** How many more entries its inbox has. */
  unlisted: number;
};

/** How far an agent is with its task. */
export type AgentState = "idle" | "planning" | "executing_step" | "waiting_for_collaboration";

/** The agents, in the order in which they were spawned. */
export type Agents = {
  /** The agents of this page. */
  agents: Array<Agent>;
  /** The `after` of the next page; none when there is no more. */
  next?: string | null;
};

/** A lasting approval of a tool. */
export type Allowed = {
  /** The agent that is covered; none for all. */
  agent?: AgentId | null;
  /** For a server tool: the digest of the approved definition. */
  identity?: string | null;
  /** The person whose agents are covered; none for all. */
  person?: PersonId | null;
  /** The request that is covered; none for all. */
  task?: TaskId | null;
  /** The name of the tool. */
  tool: string;
  /** The pattern of covered calls; none for all. */
  where?: Matching | null;
};

/** How far an approval goes beyond the one call. */
export type Always = "agent" | "task" | "tool" | "reads";

/** The answer to a question. */
export type Answer = {
  verdict: Verdict;
} | "cancelled" | {
  reply: Reply;
} | {
  failed: Failure;
};

/** What the client of a request prescribes for its answer. Without rules the agent answers as it likes. */
export type AnswerRules = {
  /** The format of the text. */
  format?: Format | null;
  /** Whether the answer must be a call of one of the client's tools. */
  mustCall?: boolean;
  /** Whether no answer is wanted, because the client has gone on to another message. */
  noAnswer?: boolean;
  /** Whether the client takes one call at a time. */
  oneCall?: boolean;
  /** The client's tools that may be called; all of them if this is not given. */
  tools?: Array<string> | null;
};

/** The strategy of an agent for a task. */
export type Approach = {
  /** `simple`, `template` or `workflow`. */
  name: string;
  /** Why it was chosen. */
  reason: string;
};

/** One thing that waits for a person. */
export type Approval = ({
  /** The call that waits, with its arguments in full. */
  call?: Call | null;
  /** The form of the `arguments` that may be given with a yes, as a JSON schema; another form is refused. Without a call and without this they change nothing. */
  change?: unknown;
  /** When it is denied by itself. */
  deadline?: Timestamp | null;
  /** More about it, for programs. */
  details: unknown;
  kind: "approval";
  /** The question. */
  question: string;
} | {
  /** The call that waits for the answer. */
  call?: Call | null;
  /** When it ends without an answer. */
  deadline?: Timestamp | null;
  /** More about it, for programs. */
  details?: unknown;
  kind: "question";
  /** The question. */
  question: string;
  /** The server that asks; none when it is the agent. */
  server?: string | null;
  /** Agreement, a text or one of its options, a form with its schema, or the visit of an address. */
  wanted: Wanted;
} | {
  /** The call. */
  call: Call;
  kind: "in_doubt";
} | {
  /** Why it is blocked. */
  failure: Failure;
  kind: "parked";
}) & ({
  /** The agent whose turn waits. */
  agentId: AgentId;
  /** The persons who decide it, if the caller may not. */
  approvers?: Array<PersonId>;
  /** Names it in a decision. */
  id: string;
  /** The sub-thread's path from there. */
  path: string;
  /** The person whose work it is. */
  person?: PersonId | null;
  /** The request that it works on. */
  taskId: TaskId;
  /** The main thread of the agent. */
  thread: ThreadId;
});

/** Everything that waits for a person. */
export type Approvals = {
  /** In the order of the turns that wait. */
  approvals: Array<Approval>;
  /** The `after` of the next page; none when there is no more. */
  next?: string | null;
};

/** A reference to an artifact. */
export type Artifact = {
  /** The length in bytes. */
  bytes: number;
  /** The id of the content. */
  id: ArtifactId;
  /** The media type that its creator declared. */
  mediaType: string;
  /** The name for people and models. Not a path. */
  name: string;
};

/** Names a content by what it holds. */
export type ArtifactId = string;

/** Contents that the log names, oldest first. */
export type Artifacts = {
  /** The artifacts of this page. */
  artifacts: Array<NumberedArtifact>;
  /** How many there are: when the last one has this number, there is no more. */
  last: number;
  /** The `after` of the next page; none when there is no more. */
  next?: number | null;
};

/** A failed attempt at a model call (R193). */
export type Attempt = {
  /** Which attempt at this model it was, from 1. */
  attempt: number;
  /** How long to wait before the next one. */
  delayMs: number;
  /** What went wrong. */
  failure: Failure;
  /** How many retries this model gets. */
  maxRetries: number;
  /** The model that was asked. */
  model: string;
  /** The model that is asked next. */
  next: string;
};

/** It is there. */
export type BegunSociety = {
  /** Whether it was not there before. */
  begun: boolean;
  /** Its name. */
  society: SocietyId;
};

/** Names the code that runs a turn. */
export type Behaviour = string;

/** One version of a behaviour. */
export type BehaviourVersion = {
  /** The behaviour. Its units have the same versions. */
  behaviour: Behaviour;
  /** Whether new turns begin with it. */
  newest: boolean;
  /** Whether this program has its code. */
  registered: boolean;
  /** Whether its code can be removed: a newer version is registered, and no open turn needs this one. */
  removable: boolean;
  /** The open turns that began with it, oldest first. */
  turns: Array<OpenTurn>;
  /** The version. */
  version: CodeVersion;
};

/** The part of the settings that has the phase. */
export type BriefStatus = {
  /** The current phase. */
  phase: Phase;
};

/** The most that may be spent; a field that is not set has no limit. */
export type Budget = {
  /** Billionths of a US dollar. */
  costNanos?: number | null;
  /** Requests to a vendor, failed ones included. */
  requests?: number | null;
  /** Milliseconds of waiting for models. */
  timeMs?: number | null;
  /** Tokens, in and out. */
  tokens?: number | null;
};

/** All budgets of a society. */
export type Budgets = {
  /** The budget of each agent, with all below it. */
  agent: Budget;
  /** The limit of each model call. */
  call: Budget;
  /** The budget of all agents of a role together. */
  roles?: Record<string, Budget>;
  /** The budget of the whole society. */
  society: Budget;
  /** The budget of each request of a person. */
  task: Budget;
};

/** Whether the vendor caches the beginning of requests, where it can be told. */
export type CacheMode = "off" | "on" | "long";

/** A tool call. */
export type Call = {
  /** The arguments as JSON text, exactly as the model wrote them, without the arguments that are meant for the engine. */
  arguments: string;
  /** The id that the model gave the call; our own id is that of the effect. */
  callId: string;
  /** Whether it may be repeated. */
  class: EffectClass;
  /** Where its content comes from and goes to. */
  flow?: Flow;
  /** Why the model needs a fresh result. */
  fresh?: string | null;
  /** The earlier result that answers this call, so that it is not made. Set by `decide` only. */
  from?: Source | null;
  /** For a server tool: the digest of its definition. */
  identity?: string | null;
  /** Identifies equal calls, if results may be reused between them. */
  key?: Digest | null;
  /** Whether the tool runs inside the turn and acts by its effects. Such a call is never in doubt. */
  own?: boolean;
  /** While a person is asked about it: the tools that its server declares as read-only. */
  reads?: Array<ReadTool>;
  /** What policy says about it. */
  ruling?: Ruling;
  /** The listed name of the tool. */
  tool: string;
  /** Whether its result may change although nothing was written. */
  volatile?: boolean;
  /** The name that the model wrote, if it differs. */
  wrote?: string | null;
};

/** What one call cost. */
export type CallCost = {
  /** The agent that made it. */
  agent: AgentId;
  /** When it ended. */
  at: Timestamp;
  /** The model or tool. */
  name: string;
  /** What it cost. */
  spent: Spent;
  /** The request that it was for. */
  task: TaskId;
};

/** The result of a tool, as the model reads it. */
export type CallResult = {
  /** Contents that are too long or not text. */
  artifacts?: Array<Artifact>;
  /** The text for the model. */
  content: string;
  /** The earlier call whose result was reused, if none was made. */
  from?: EffectId | null;
  /** Whether the call failed. */
  isError?: boolean;
  /** Pictures, PDFs and audio that the model is shown with the text. */
  media?: Array<Artifact>;
};

/** The request that was cancelled. */
export type Cancelled = {
  /** Its id. */
  taskId: TaskId;
};

/** A tool whose server has changed it. */
export type Changed = {
  /** The definition that the server lists now. */
  after: string;
  /** The definition that was approved. */
  before: string;
};

/** A memory that was stored, edited or erased. */
export type ChangedMemory = {
  /** Names it in routes, commands and the log. */
  id: MemoryId;
};

/** What happens to the children of a terminated agent (D12). */
export type Children = "cascade" | "detach" | "refuse";

/** A page or a file by its title and address. */
export type Citation = {
  /** The title. */
  title?: string;
  /** The address; files may have none. */
  url?: string;
};

/** Which entries were removed from an inbox unread. */
export type Cleared = {
  task: TaskId;
} | {
  askedBy: Array<TurnId>;
} | "everything";

/** The version of the code behind a behaviour. A turn keeps the one that it began with. */
export type CodeVersion = number;

/** The newest versions of behaviours, without those that are at the first. */
export type CodeVersions = Record<string, CodeVersion>;

/** A chunk that a component grows by. */
export type ComponentChunk = "again" | {
  text: {
    /** The field's name. */
    field: string;
    /** The additional text. */
    text: string;
  };
} | {
  item: {
    /** The field's name. */
    field: string;
    /** The index of the element, from 0. */
    index: number;
    /** The element. */
    value: unknown;
  };
} | {
  field: {
    /** The field's name. */
    field: string;
    /** The value of the field. */
    value: unknown;
  };
};

/** The request that compresses. */
export type Compressing = {
  /** Always true. */
  ok: boolean;
  /** None where a compression was undone. */
  taskId?: TaskId | null;
};

/** A conversation. */
export type Conversation = {
  /** When a message went back or forth last. */
  activeAt: Timestamp;
  /** Whether it is left out of the usual list. A message of its person takes it up again. */
  archived?: boolean;
  /** When it started. */
  createdAt: Timestamp;
  /** Names the conversation, and the agent that exists for it. */
  id: AgentId;
  /** How many messages its thread has. */
  messages: number;
  /** The model that it asks, if not the one of the role. */
  model?: string | null;
  /** The person who started it. */
  person: PersonId;
  /** Whether it is listed before the others. */
  pinned?: boolean;
  /** The role of its agent. */
  roleId: RoleId;
  /** How it calls models, where its requests do not say so themselves. */
  settings?: ModelSettings;
  /** What its agent is doing. */
  status: AgentActivity;
  /** How its requests are done, if they do not say so themselves. */
  strategy?: string | null;
  /** The request that the agent works on. */
  taskId?: TaskId | null;
  /** The title; the beginning of the first message until it is renamed. */
  title: string;
};

/** What changes about a conversation; what is `None` stays. */
export type ConversationChange = {
  /** Whether it is left out of the usual list. */
  archived?: boolean | null;
  /** Whether it is listed before the others. */
  pinned?: boolean | null;
  /** Its model, strategy and model settings, all of them. */
  settings?: ConversationSettings | null;
  /** The new title. */
  title?: string | null;
};

/** How the requests of a conversation are done unless they say otherwise. */
export type ConversationSettings = {
  /** The model. */
  model?: string | null;
  /** How models are called. */
  modelSettings?: ModelSettings;
  /** The strategy: `auto`, `simple`, `template` or `workflow`. */
  strategy?: string | null;
};

/** The conversations, those with the newest messages first. */
export type Conversations = {
  /** The conversations. */
  conversations: Array<Conversation>;
  /** Where searched words are that are not in the title or the id. */
  excerpts?: Array<Excerpt>;
  /** The `after` of the next page; none when there is no more. A search reads a part of the messages for each page, so a page may have few conversations and a `next`. */
  next?: string | null;
};

/** What a budget limits. */
export type Counted = "tokens" | "cost" | "requests" | "time";

/** A message that was given up: its turn crashed again and again, or failed while nobody waited for its result. */
export type DeadLetter = {
  /** The receiver of the message. */
  agent: AgentId;
  /** When it was dead-lettered. */
  at: Timestamp;
  /** Why it failed, or the last crash. */
  failure: Failure;
  /** Whether it needs no more attention: somebody waited for the result and got the failure, the agent has since ended a turn of the same request with a response, or the person has written about the request again. */
  handled: boolean;
  /** The request that it belongs to. */
  task: TaskId;
  /** The turn that failed; its first event has the text. */
  turn: TurnId;
};

/** Dead-lettered messages, newest first. */
export type DeadLetters = {
  /** Messages whose agents broke down over them. */
  deadLetters: Array<DeadLetter>;
};

/** The conversation that was deleted. */
export type Deleted = {
  /** Its id. */
  id: AgentId;
};

/** One chunk of a reply. */
export type Delta = {
  content: string;
} | {
  reasoning: string;
} | {
  tool_call: {
    /** More of the JSON text of the arguments. */
    arguments: string;
    /** The id that the model gave the call, if this chunk has it. */
    id: string | null;
    /** The index of the call in the reply. */
    index: number;
    /** The name of the tool, if this chunk has it. */
    name: string | null;
  };
} | {
  usage: Usage;
} | {
  echo: unknown;
} | {
  vendor_call: VendorCall;
} | {
  citation: Citation;
} | {
  model: string;
} | {
  done: Finish;
} | "stopped" | {
  error: Failure;
};

/** The versions of behaviours that this program has or that an open turn needs. */
export type Deployment = {
  /** By behaviour and version. */
  versions: Array<BehaviourVersion>;
};

/** A 64-bit digest that is the same on every machine and in every version. It is not cryptographic. */
export type Digest = string;

/** Who wants an agent terminated. */
export type Dismissal = {
  /** Who ordered it. */
  caller: AgentId;
  /** The reason, for the record. */
  reason?: string;
};

/** It does so from its next look at the table of nodes on. */
export type Drained = {
  /** Whether it gives its societies away. */
  draining: boolean;
  /** The node. */
  node: string;
};

/** Something that a turn wants and waits for. Its intent is logged before it happens. */
export type Effect = {
  model: {
    /** Whether the reply is internal to the turn, such as notes or a judgement, and not shown as text of the agent. */
    aside?: boolean;
    /** The model; empty for the default. */
    model: string;
    /** What the call is for, if its code has named it. A second run with another prompt is then the same call. */
    purpose?: string;
    /** The digest of the request. */
    request: Digest;
    /** What is reserved for it in budgets. */
    reserve: Spent;
    /** The tools that the model sees. */
    tools?: ToolList | null;
  };
} | {
  grant: {
    /** Model calls made for the request so far, by agent. */
    calls?: Record<string, number>;
    /** The accounts that are used up. */
    lacking: Array<Level>;
  };
} | {
  tool: Call;
} | {
  ask: {
    /** When the wait times out. */
    deadline?: Timestamp | null;
    /** The message with the question. */
    envelope: Envelope;
  };
} | {
  approval: {
    /** The call that needs the approval. No turn states this: `decide` puts the approval in the place of the call. */
    call?: Call | null;
    /** The JSON schema of changes that the person may make when they approve. */
    change?: unknown;
    /** When the wait times out. */
    deadline?: Timestamp | null;
    /** The full details. */
    details: unknown;
    /** The question to the person. */
    question: string;
    /** The form of the answer, if a yes or no is not enough. */
    wanted?: Wanted;
  };
} | {
  terminate: {
    /** The agent to terminate. */
    agent: AgentId;
    /** What happens to its own children. */
    children: Children;
    /** When it is terminated with its work undone. */
    deadline: Timestamp;
    /** The reason, for the record. */
    reason?: string;
  };
} | {
  sleep: {
    /** The end of the wait. */
    until: Timestamp;
  };
} | {
  unit: {
    /** The name of the code that runs. */
    behaviour: Behaviour;
    /** The task of the unit. */
    task: Task;
    /** The sub-thread. */
    thread: ThreadId;
  };
} | {
  keep: Artifact;
};

/** Whether a tool call may be repeated. */
export type EffectClass = "read" | "idempotent" | "write";

/** The n-th effect of a turn, written `turn.n`. */
export type EffectId = string;

/** One effect of a turn: a call, a message or a wait, with its result. */
export type EffectRecord = {
  /** The turns that were done for it. */
  children: Array<TurnId>;
  /** What was started, with its arguments. */
  effect: Effect;
  /** When it ended. */
  endedAt?: Timestamp | null;
  /** Its turn and its number in it. */
  id: EffectId;
  /** The questions of the call. */
  inquiries: Array<InquiryRecord>;
  /** Its result; none while it is open. */
  outcome?: Outcome | null;
  /** Why it was refused. */
  refused?: Failure | null;
  /** Its failed attempts. */
  retries: Array<Attempt>;
  /** What it cost. */
  spent?: Spent | null;
  /** How far it has got. */
  stage: EffectStage;
  /** When it started. */
  startedAt: Timestamp;
  /** The event that started it. */
  startedSeq: Seq;
  /** The thread that it is recorded under. */
  thread: ThreadId;
  /** The turn that started it. */
  turn: TurnId;
};

/** How far an effect has got. */
export type EffectStage = "open" | "ended" | "doubted" | "cleared" | "void";

/** The reasoning effort of a model. */
export type Effort = "none" | "minimal" | "low" | "medium" | "high" | "xhigh" | "max";

/** A message between agents, or between an agent and the person, with its addresses (D30). */
export type Envelope = {
  /** The sender. */
  from: AgentId;
  /** The length of its chain of messages from agent to agent, this one included; 0 if the person sent it. */
  hops?: number;
  /** The id of the message. */
  id: MessageId;
  /** The kind of message. */
  kind: MessageKind;
  /** The content. */
  payload: Payload;
  /** The person who sent it, if one did. */
  person?: PersonId | null;
  /** Who waits for the result. */
  replyTo?: ReplyTo;
  /** The person's request that this belongs to. */
  taskId: TaskId;
  /** The receiver. */
  to: AgentId;
};

/** The conversation whose content was erased. */
export type Erased = {
  /** Whether nothing was left to erase. */
  already: boolean;
  /** Its id. */
  id: AgentId;
};

/** What can happen. */
export type Event = {
  societyFounded: {
    /** The limits of the society. */
    limits: Limits;
    /** Makes this society's ids differ from those of any other. */
    seed: string;
  };
} | {
  societyForked: {
    /** The name that the other society had then. */
    from: SocietyId;
    /** The request that asked for the fork, if it has a key. */
    request?: Request | null;
    /** Makes new ids differ from those of the other society. */
    seed: string;
  };
} | {
  requestDone: {
    /** How many events it caused. */
    events: number;
    /** Recognises a repeat. */
    request: Request;
  };
} | {
  toolAllowed: {
    /** The tool, and whose calls are covered. */
    allowed: Allowed;
  };
} | {
  toolPinned: {
    /** The definition as text. */
    definition: string;
    /** The digest of the definition. */
    identity: string;
    /** The tool, as it is listed. */
    tool: string;
  };
} | {
  versionsSet: {
    /** Those that are not version 1. */
    versions: CodeVersions;
  };
} | {
  budgetsSet: {
    /** The complete new budgets. */
    budgets: Budgets;
  };
} | {
  budgetGranted: {
    /** The additional amount. */
    more: Spent;
    /** The account. */
    scope: Scope;
  };
} | {
  roleCreated: {
    /** The effect that created it; none when a person did. */
    by?: EffectId | null;
    /** The new role. */
    role: Role;
  };
} | {
  roleChanged: {
    /** The role as it is from now on. */
    role: Role;
  };
} | {
  agentSpawned: {
    /** The id of the agent. */
    agent: AgentId;
    /** The effect that created it; none when a person did. */
    by?: EffectId | null;
    /** The parent of the agent; none for root. */
    parent?: AgentId | null;
    /** The role of the agent. */
    role: RoleId;
  };
} | {
  conversationStarted: {
    /** The id of the agent. */
    agent: AgentId;
    /** What was said before, elsewhere: the first messages of its thread. */
    messages?: Array<Message>;
    /** Whose conversation it is. */
    person: PersonId;
    /** The role of the agent. */
    role: RoleId;
    /** Its model and strategy, if they are not those of its role. */
    settings?: ConversationSettings;
    /** What lists show for it, one line. */
    title: string;
  };
} | {
  conversationChanged: {
    /** The agent of the conversation. */
    agent: AgentId;
    /** What changed. */
    change: ConversationChange;
  };
} | {
  conversationErased: {
    /** The agent of the conversation. */
    agent: AgentId;
    /** The artifacts that its events named. Those that nothing else names are removed. */
    artifacts?: Array<ArtifactId>;
    /** The person who erased it. */
    by: PersonId;
  };
} | {
  erasureDone: {
    /** The agent of the conversation. */
    agent: AgentId;
    /** The artifacts that were removed. */
    artifacts?: Array<ArtifactId>;
  };
} | {
  memoryChanged: {
    /** The effect that changed it; none when a person did. */
    by?: EffectId | null;
    /** What changed. */
    change: MemoryChange;
  };
} | {
  agentDismissed: {
    /** The agent that is to end. */
    agent: AgentId;
    /** Who ordered it: the person, or its parent. */
    caller: AgentId;
    /** Whether its children move to its parent instead of being terminated first. */
    detach?: boolean;
    /** The reason, for the record. */
    reason?: string;
    /** The effect that waits for the termination. */
    waiter?: EffectId | null;
  };
} | {
  agentTerminated: {
    /** The agent that has ended. */
    agent: AgentId;
  };
} | {
  messageSent: {
    /** The effect that sent it; none when a person did, or when it is the answer of a settled turn. */
    by?: EffectId | null;
    /** The message as its receiver gets it. */
    envelope: Envelope;
  };
} | {
  messagesTaken: {
    /** The agent whose inbox they were in. */
    agent: AgentId;
    /** The effect that took them. */
    by: EffectId;
    /** The messages, oldest first. */
    envelopes: Array<Envelope>;
  };
} | {
  inboxCleared: {
    /** The agent whose inbox was cleared. */
    agent: AgentId;
    /** Which entries were removed. */
    of: Cleared;
  };
} | {
  turnStarted: {
    /** The agent that runs it. */
    agent: AgentId;
    /** The name of the code that runs. */
    behaviour: Behaviour;
    /** The index of that message, or of the next one if there is none. */
    index: number;
    /** The user message that the task's text becomes, if it does. */
    message?: MessageId | null;
    /** Where the task came from. */
    origin: Origin;
    /** The phase of the thread, which selects the handler. */
    phase: Phase;
    /** Who waits for its result. */
    replyTo: ReplyTo;
    /** Which part of the thread the model sees. */
    shown?: Shown;
    /** What the turn is asked to do. */
    task: Task;
    /** The version of that code; the turn keeps it to its end. */
    version?: CodeVersion;
  };
} | {
  effectStarted: {
    /** The effect itself. */
    effect: Effect;
    /** The number of the effect in its turn; results name it. */
    id: EffectId;
    /** The terms of the budgets for a model call; none if no budget applies. */
    permit?: Permit | null;
  };
} | {
  effectRetried: {
    /** The failed attempt, and which model is next. */
    attempt: Attempt;
    /** The model call that is tried again. */
    id: EffectId;
    /** What the failed attempt cost. */
    spent: Spent;
  };
} | {
  effectEnded: {
    /** The effect that this is the result of. */
    id: EffectId;
    /** The result. */
    outcome: Outcome;
    /** What a model call cost. */
    spent?: Spent | null;
  };
} | {
  effectDoubted: {
    /** A write that may or may not have been done. */
    id: EffectId;
  };
} | {
  effectCleared: {
    /** The person who decided it. */
    by?: PersonId | null;
    /** The write in doubt. */
    id: EffectId;
  };
} | {
  effectRestarted: {
    /** The write that a person has cleared. */
    id: EffectId;
  };
} | {
  callInquired: {
    /** The server that the call went to. */
    by: string;
    /** The running call that asks. */
    id: EffectId;
    /** The question. */
    inquiry: Inquiry;
    /** The terms of the budgets for a model call; none if no budget applies. */
    permit?: Permit | null;
  };
} | {
  callAnswered: {
    /** The answer. */
    answer: Answer;
    /** The question. */
    id: InquiryId;
    /** What a model call cost. */
    spent?: Spent | null;
  };
} | {
  effectRefused: {
    /** Why it failed. */
    failure: Failure;
    /** The effect that was asked for and not started. */
    id: EffectId;
  };
} | {
  acted: {
    /** The number that the changes take in the turn. */
    id: EffectId;
  };
} | {
  messageAdded: {
    /** The effect that added it. */
    by: EffectId;
    /** The index of the message. */
    index: number;
    /** The message as it was added. */
    message: Message;
  };
} | {
  messageUpdated: {
    /** The effect that changed it. */
    by: EffectId;
    /** The index of the message. */
    index: number;
    /** The changed fields. */
    patch: MessagePatch;
  };
} | {
  settingsUpdated: {
    /** The effect that changed them. */
    by: EffectId;
    /** The complete new settings. */
    settings: Settings;
  };
} | {
  planSet: {
    /** The effect that set it. */
    by: EffectId;
    /** The complete new plan. */
    plan: Plan;
  };
} | {
  phaseSuggested: {
    /** The effect that suggested it. */
    by: EffectId;
    /** The suggested phase. */
    phase: Phase;
  };
} | {
  phaseApplied: {
    /** The new phase of the thread. */
    phase: Phase;
  };
} | "suggestionDropped" | {
  contextCompressed: {
    /** The effect that did it. */
    by: EffectId;
    /** The first message that is shown. */
    from: number;
    /** The summaries of the messages before it, oldest first. */
    summaries: Array<string>;
  };
} | {
  contextRestored: {
    /** The effect that did it; none when a person did. */
    by?: EffectId | null;
    /** The compression that is active again; none when everything is shown. */
    to?: Seq | null;
  };
} | {
  contextKept: {
    /** The effect that tried. */
    by: EffectId;
    /** Why it failed. */
    failure: Failure;
  };
} | {
  threadOpened: {
    /** The agent that it belongs to. */
    agent: AgentId;
    /** The effect that opened it. */
    by: EffectId;
    /** Free data. */
    meta?: Record<string, unknown>;
    /** The thread that holds it. */
    parent: ThreadId;
    /** Its initial settings (D02: its own, not those of its parent). */
    settings: Settings;
  };
} | {
  threadLinked: {
    /** The effect that opened it. */
    by: EffectId;
    /** The sub-thread. */
    child: ThreadId;
    /** The prefix of the error text that the message gets if the turn ends before it writes the result of the sub-thread. */
    held?: string | null;
    /** The index of the message. */
    index: number;
    /** The path in its meta. */
    slot: MetaPath;
  };
} | {
  turnCrashed: {
    /** The panic. */
    failure: Failure;
    /** The turn whose code panicked. */
    turn: TurnId;
    /** When it is run again. */
    until: Timestamp;
  };
} | {
  turnRevived: {
    /** The turn that is about to run again. */
    turn: TurnId;
    /** When it is run, if other suspects are run first. */
    until?: Timestamp | null;
  };
} | {
  turnRested: {
    /** The turn that only waits. */
    turn: TurnId;
  };
} | {
  messageDeadLettered: {
    /** The receiver of the message. */
    agent: AgentId;
    /** Whether its code crashed, and did not just return a failure. */
    crashed: boolean;
    /** Why it failed, or the last crash. */
    failure: Failure;
    /** The request that it belongs to. */
    task: TaskId;
    /** The turn that failed. */
    turn: TurnId;
  };
} | {
  turnParked: {
    /** What a person must fix. */
    reason: Failure;
    /** The turn that is blocked. */
    turn: TurnId;
  };
} | {
  turnResumed: {
    /** The person who resumed it. */
    by?: PersonId | null;
    /** The turn that may continue. */
    turn: TurnId;
  };
} | {
  turnSettled: {
    /** The index of that message, or of the next one if there is none. */
    index: number;
    /** The bot message of its response; none if it was silent. */
    message?: Message | null;
    /** Tasks that the same agent does next. */
    next?: Array<Task>;
    /** How it ended. */
    settlement: Settlement;
    /** The turn that has ended. */
    turn: TurnId;
  };
};

/** A part of a message in which searched words are. */
export type Excerpt = {
  /** The conversation. */
  conversation: AgentId;
  /** The request that the message is of. */
  taskId?: TaskId | null;
  /** The words with what is around them. */
  text: string;
};

/** Why something failed, for programs (`code`) and for people (`message`). */
export type Failure = {
  /** A stable code in `snake_case`. */
  code: string;
  /** What happened and what to do. */
  message: string;
};

/** The change of a text file, compared with the file as it is now. */
export type FileChange = {
  /** The lines afterwards, at most 1,000 and 32 KiB. */
  after: string;
  /** The lines now, at most 1,000 and 32 KiB. */
  before: string;
  /** Whether something is left out: the lines after these, or parts of a line that is too long, in whose place is `…`. */
  isCut: boolean;
  /** Whether there is no such file yet. */
  isNew: boolean;
  /** The number of the first of these lines. */
  line: number;
  /** The file, from the workspace's root. */
  path: string;
} | {
  /** Why. */
  reason: string;
};

/** Why a model stopped. */
export type Finish = "stop" | "tool_calls" | "length" | "content_filter" | "refusal" | "paused" | {
  other: string;
};

/** What a call does with content, as the toolbox knows before the call is made. */
export type Flow = {
  /** Whether it may destroy something that is older than the request. */
  destroys?: boolean;
  /** Whether a policy rule allows it even after outside content. */
  exempt?: boolean;
  /** The file that it reads or writes, if it is a single one. */
  file?: string | null;
  /** Whether the person has named all of its targets in this request. */
  named?: boolean;
  /** The outside source of its result as text: a web page, a server. */
  outside?: string | null;
  /** Whether its result may contain private data. */
  private?: boolean;
  /** Whether its result may contain what agents have stored in files. */
  recalls?: boolean;
  /** Whether its result may contain what was stored as an artifact. */
  recallsArtifacts?: boolean;
  /** Whether its arguments leave this machine or reach a program outside the sandbox. */
  sends?: boolean;
  /** Whether it stores something in files that agents may read later. */
  stores?: boolean;
  /** The name of what it writes, if it is a single thing. */
  target?: string | null;
};

/** The schema of a structured reply. */
export type Format = {
  /** A name for the schema: letters, digits, `_` and `-`. */
  name: string;
  /** JSON schema of the text. */
  schema: unknown;
};

/** Health of the society. */
export type Health = {
  /** The model that answers where none is named. */
  model: HealthModel;
  /** The sum of it. */
  status: HealthStatus;
  /** The log. */
  store: HealthStore;
  /** The version of the program. */
  version: string;
};

/** The model that answers where none is named. */
export type HealthModel = {
  /** Its name. */
  name: string;
  /** Whether it is the offline model. */
  offline: boolean;
};

/** How well a society is. */
export type HealthStatus = "ok" | "degraded" | "down";

/** Whether the log can be read and written. */
export type HealthStore = {
  /** What is wrong. */
  code?: string | null;
  /** Whether both. */
  ok: boolean;
  /** The last event. */
  seq?: Seq | null;
};

/** What an import has changed. */
export type Imported = {
  /** New agents. */
  agents: number;
  /** Roles that were changed. */
  changed?: number | null;
  /** What of the document was left out, in words. */
  left?: Array<string>;
  /** New roles. */
  roles: number;
};

/** An entry of an inbox. */
export type InboxRecord = {
  /** When it was sent, if that is known. */
  at?: Timestamp | null;
  /** The message; none for a task that the agent queued for itself. */
  envelope?: Envelope | null;
  /** The request that it belongs to. */
  task: TaskId;
};

/** The question. */
export type Inquiry = {
  person: {
    /** What an approval with `always` would cover, if it is possible. */
    about?: string | null;
    /** The full details. */
    details?: unknown;
    /** The question itself. */
    question: Question;
  };
} | {
  model: {
    /** The name that policy rules use for it. */
    about: string;
    /** The model. */
    model: string;
    /** The end of the prompt, for display. */
    prompt: string;
    /** The digest of the request. */
    request: Digest;
    /** What is reserved for it in budgets. */
    reserve: Spent;
    /** The ruling of the policy. */
    ruling: Ruling;
  };
};

/** A question of a running call, written `turn.n.seq`. */
export type InquiryId = string;

/** A question of a running call. */
export type InquiryRecord = {
  /** The answer. */
  answer?: Answer | null;
  /** When it was asked. */
  at: Timestamp;
  /** The server that asks. */
  by: string;
  /** Names it in a decision. */
  id: string;
  /** The question. */
  inquiry: Inquiry;
};

/** How full one account is in one respect. */
export type Level = {
  /** The budget, including grants. */
  limit: number;
  /** What a budget limits. */
  of: Counted;
  /** The owner of an account. */
  scope: Scope;
  /** Spent and reserved. */
  used: number;
};

/** The limits of a society. A command that exceeds one is refused with a code and changes nothing. */
export type Limits = {
  /** Most agents in the society. Beyond it only a person can create more. */
  agents: number;
  /** Most children of one agent. */
  children: number;
  /** How deep below root agents may spawn agents (P21). */
  depth: number;
  /** Longest chain of messages from agent to agent, each caused by the one before; the first is the person's. */
  hops: number;
  /** Most bytes of text that wait in one inbox. */
  inboxBytes: number;
  /** Most entries that wait in one inbox. */
  inboxEntries: number;
  /** Most memories of one scope. */
  memories: number;
  /** Most messages between two agents for one request since the last message of the person. Asks that the sender waits for do not count: a cycle of those is refused as a deadlock. */
  messagesPerPair: number;
  /** Similar calls with the same result within a turn before the agent is warned. */
  nudgeRepeats: number;
  /** Most effects that one turn may have open. */
  openEffects: number;
  /** How old a result may be to answer an identical call; 0 disables reuse. */
  reuseMs: number;
  /** Most agents that all agents together may spawn within a minute. */
  spawnsAMinute: number;
  /** Similar calls with the same result within a turn before further ones are refused; a little later the turn ends. */
  stopRepeats: number;
  /** Longest text of a message, in bytes. */
  textBytes: number;
  /** Most turns for a request since the last message of the person. Beyond it agents cannot send messages for it. */
  turnsPerTask: number;
};

/** A reference with its position in the log. */
export type ListedArtifact = {
  /** The agent that it belongs to; none if a person sent it. */
  agent?: AgentId | null;
  /** The time of that event. */
  at: Timestamp;
  /** The length in bytes. */
  bytes: number;
  /** The id of the content. */
  id: ArtifactId;
  /** The media type that its creator declared. */
  mediaType: string;
  /** The name for people and models. Not a path. */
  name: string;
  /** The person whose conversation names it. */
  person?: PersonId | null;
  /** The first event that referred to it under this name. */
  seq: Seq;
  /** The request that it belongs to. */
  task?: TaskId | null;
};

/** One thread of the list. */
export type ListedThread = {
  /** The agent whose it is. */
  agentId: AgentId;
  /** Its id. */
  id: ThreadId;
  /** Whether a turn works in it. */
  isOpen: boolean;
  /** How many messages it has. */
  messages: number;
  /** Its path below the agent's main thread; empty for that one. */
  path: string;
  /** Its phase. */
  phase: Phase;
};

/** A chunk of a reply that is being written: the event `delta`. */
export type LiveDelta = {
  delta: Delta;
  effect: EffectId;
  thread: ThreadId;
};

/** A part of the log. */
export type LogPage = {
  /** The events of this page, oldest first. */
  events: Array<Recorded>;
  /** The log's last place: when the last event has it, there is no more. */
  last: Seq;
  /** The `after` of the next page; none when there is no more. */
  next?: Seq | null;
};

/** A society that was made. */
export type MadeSociety = {
  /** The last event that both share. */
  at: Seq;
  /** The society whose events it has. */
  from: SocietyId;
  /** Calls whose result is not known in it. */
  inDoubt: number;
  /** What the society of before is called now, after a rewind. */
  kept?: SocietyId | null;
  /** Turns that are open in it and go on when it works. */
  openTurns: number;
  /** Its name. */
  society: SocietyId;
};

/** A pattern for each argument by name. An argument without a pattern must be content, such as `body` or `text`, unless there is a pattern for the name `*`, which matches all others. */
export type Matching = Record<string, Pattern>;

/** The memories of the caller and of the society. */
export type Memories = {
  /** Whether agents remember for the caller: they neither store nor recall anything if not. */
  enabled: boolean;
  /** The memories: newest first, or best first if words were searched. */
  memories: Array<MemoryRecord>;
  /** The `after` of the next page; none when there is no more. */
  next?: number | null;
  /** What is to be known about the search, such as an embedding model that could not be reached. */
  note?: string | null;
  /** How many there are in all. */
  total: number;
};

/** One memory, without its text. */
export type Memory = {
  /** The agent that remembered it; none if a person wrote it. */
  agent?: AgentId | null;
  /** The length of its text. */
  bytes: number;
  /** The conversation in which that was. */
  conversation?: AgentId | null;
  /** When it was last edited, if it was. */
  editedAt?: Timestamp | null;
  /** Names it in commands and the log, for good. */
  id: MemoryId;
  /** When it was first remembered. */
  keptAt: Timestamp;
  /** For whom it is. */
  scope: MemoryScope;
  /** The key of its text in the store. Each edit has a new one. */
  text: MemoryTextId;
};

/** What happened to memories. */
export type MemoryChange = {
  kept: {
    /** The memory as it is from now on. */
    memory: Memory;
  };
} | {
  erased: {
    /** Which memory is meant. */
    id: MemoryId;
    /** The person who erased it; none if an agent did. */
    person?: PersonId | null;
    /** For whom it was. */
    scope: MemoryScope;
  };
} | {
  textsRemoved: {
    /** Keys under which the store had them. */
    texts: Array<MemoryTextId>;
  };
} | {
  switched: {
    /** Whether their agents remember from now on. */
    enabled: boolean;
    /** The person. */
    person: PersonId;
  };
} | {
  embedded: {
    /** The agent that searched; none if a person did. */
    agent?: AgentId | null;
    /** The embedding model. */
    model: string;
    /** What it cost. */
    spent: Spent;
    /** How many texts it was given. */
    texts: number;
  };
};

/** Names a memory. */
export type MemoryId = string;

/** A memory. */
export type MemoryRecord = {
  /** The agent that remembered it; none if a person wrote it. */
  agentId?: AgentId | null;
  /** The conversation in which that was. */
  conversation?: AgentId | null;
  /** When it was last edited, if it was. */
  editedAt?: Timestamp | null;
  /** Names it in routes, commands and the log. */
  id: MemoryId;
  /** When it was first remembered. */
  keptAt: Timestamp;
  /** The role whose agents recall it, if it is for one role. */
  roleId?: RoleId | null;
  /** Which agents recall it. */
  scope: MemoryScopeKind;
  /** Its text; none if the text was erased and the society was rewound to a time before that. */
  text?: string | null;
};

/** For whom something is remembered. */
export type MemoryScope = {
  person: PersonId;
} | {
  role: {
    /** The person. */
    person: PersonId;
    /** The role. */
    role: RoleId;
  };
} | "society";

/** A scope as agents and people name it; whose it is follows from the agent or person. */
export type MemoryScopeKind = "person" | "role" | "society";

/** Names a text of a memory in the store; not used again for another text. */
export type MemoryTextId = string;

/** One message of a thread. A sub-thread hangs in its meta, by default at `_thread`. */
export type Message = {
  /** The id. */
  id: MessageId;
  /** Free data about the message. */
  meta?: Record<string, unknown>;
  /** Whether it is a user or a bot message. */
  sender: Sender;
  /** The text. */
  text: string;
  /** When it was added. */
  timestamp: Timestamp;
};

/** Names a message of a thread or a message between agents. */
export type MessageId = string;

/** The kind of a message. */
export type MessageKind = "message" | "answer" | {
  failure: Failure;
};

/** A change of a message; fields that it does not name stay (R022). */
export type MessagePatch = {
  /** Keys of the meta to set; a null removes one. */
  meta?: Record<string, unknown>;
  /** A new text. */
  text?: string | null;
};

/** Messages about a request, oldest first. */
export type Messages = {
  /** The messages of this page. */
  messages: Array<UserMessage>;
  /** The `after` of the next page; none when there is no more. */
  next?: string | null;
};

/** A dotted place inside a message's meta, such as `meta._thread` or `meta.threads.analysis`. */
export type MetaPath = string;

/** Settings of model calls. What a vendor does not support is left out of its requests. */
export type ModelSettings = {
  /** How long the vendor keeps the beginning of a request. */
  cache?: CacheMode | null;
  /** The reasoning effort. */
  effort?: Effort | null;
  /** The token limit of each reply. */
  maxTokens?: number | null;
  /** Whether a reply may have several calls. */
  parallelCalls?: boolean | null;
  /** The seed of sampling. */
  seed?: number | null;
  /** The vendor's own name for how fast and at what price it serves, such as `flex` or `priority`. */
  serviceTier?: string | null;
  /** Texts that end a reply where they appear; one text or a list. */
  stop?: OneOrMany;
  /** The sampling temperature, from 0 to 2. */
  temperature?: number | null;
  /** Most tokens of reasoning, for models that take a number; 0 for none. It counts instead of `effort`. */
  thinkingBudget?: number | null;
  /** Whether the model must or may not call a tool: `auto`, `none`, `required` or the name of a tool. */
  toolChoice?: string | null;
  /** The probability mass that is sampled from, above 0 and up to 1. */
  topP?: number | null;
};

/** A vendor of models. */
export type ModelVendor = {
  /** Where it is, if that is the server's own machine. */
  address?: string | null;
  /** Whether a server answers at that address at present. */
  answers?: boolean | null;
  /** The variable that its key is wanted in. */
  key?: string | null;
  /** Its name, as the part of a model's name before the `/`. */
  name: string;
  /** What must be set before it can be. */
  needs?: string | null;
  /** Whether it can be asked. */
  ready: boolean;
};

/** Which models can be asked. */
export type Models = {
  /** The one that answers where none is named. */
  default: string;
  /** Whether that is the offline model. */
  offline: boolean;
  /** Their vendors. */
  vendors: Array<ModelVendor>;
};

/** An event without its data. */
export type Moment = {
  /** When it happened. */
  at: Timestamp;
  /** The kind of event. */
  name: string;
};

/** A node of the list. */
export type Node = {
  /** Where the other nodes reach it. */
  address: string;
  /** Whether it gives its societies away and takes none. */
  draining: boolean;
  /** How long its lease lasts still, if it is not renewed. 0: the node is gone. */
  leaseMs: number;
  /** Its name, another one at every start. */
  name: string;
  /** A digest of its settings, roles, SOPs, skills and prompts at its start. All nodes should have the same one. */
  setup: string;
  /** When it joined. */
  since: Timestamp;
  /** How many societies it owns. */
  societies: number;
};

/** The nodes, by name. */
export type Nodes = {
  /** The nodes; those that are gone too, for an hour. */
  nodes: Array<Node>;
};

/** An artifact of the list. */
export type NumberedArtifact = {
  /** The agent that it belongs to; none if a person sent it. */
  agent?: AgentId | null;
  /** The time of that event. */
  at: Timestamp;
  /** The length in bytes. */
  bytes: number;
  /** The id of the content. */
  id: ArtifactId;
  /** The media type that its creator declared. */
  mediaType: string;
  /** Its place in the list, from 1 on. */
  n: number;
  /** The name for people and models. Not a path. */
  name: string;
  /** The person whose conversation names it. */
  person?: PersonId | null;
  /** The first event that referred to it under this name. */
  seq: Seq;
  /** The request that it belongs to. */
  task?: TaskId | null;
};

export type OneOrMany = string | Array<string>;

/** A request that is under way. */
export type OpenTask = {
  /** The conversation, or the agent that was asked. */
  conversation?: AgentId | null;
  /** The request. */
  id: TaskId;
  /** Of those, how many are not settled. */
  open: number;
  /** The person who asked. */
  person?: PersonId | null;
  /** Its status. */
  status: TaskStatus;
  /** The beginning of what was asked. */
  text: string;
  /** Turns that were taken for it or wait to be, since the person last wrote. */
  turns: number;
};

/** An open turn. */
export type OpenTurn = {
  /** The agent that runs it. */
  agent: AgentId;
  /** Its id. */
  id: TurnId;
  /** Why it is parked, if it is. */
  parked?: string | null;
  /** Its thread. */
  thread: ThreadId;
};

/** Roles, agents and terminations. */
export type Org = {
  /** All agents, including terminated ones, oldest first. */
  agents: Array<OrgAgent>;
  /** All roles. */
  roles: Array<OrgRole>;
  /** The records of terminations. */
  terminations: Array<OrgTermination>;
};

/** An agent. */
export type OrgAgent = {
  /** When it was created. */
  createdAt: string;
  /** The id of the agent. */
  id: AgentId;
  /** The parent; none for root. */
  parentAgentId: AgentId | null;
  /** The role of the agent. */
  roleId: RoleId;
  /** Whether it is active or terminated. */
  status: OrgStatus;
  /** When it was terminated. */
  terminatedAt: string | null;
};

/** A role and its creator. */
export type OrgRole = {
  /** The name of the code that runs its agents' turns. */
  behaviour: Behaviour;
  /** When it happened. */
  createdAt: string;
  /** The creator: an agent, or the person. */
  createdBy: AgentId;
  /** The id of the role. */
  id: RoleId;
  /** Limits of its agents, where they are lower than those of the society. */
  limits?: RoleLimits;
  /** Its models: the first choice, then the fallbacks. When empty, those of the society. */
  model?: OneOrMany;
  /** The display name. */
  name: string;
  /** The system prompt of its agents. */
  rolePrompt: string;
  /** How its agents call models, where a request or its conversation does not say so. */
  settings?: ModelSettings;
  /** The skills that its agents are told about, by name; `*` matches any text. None for all. */
  skills?: Array<string> | null;
  /** The tools that its agents may use, by name; `*` matches any text. None for all. */
  tools?: Array<string> | null;
  /** The system prompt for requests in other languages, by language code such as `zh`. */
  translations?: Record<string, string>;
};

/** The status of an agent. */
export type OrgStatus = "active" | "terminated";

/** The record of a termination. */
export type OrgTermination = {
  /** The terminated agent. */
  agentId: AgentId;
  /** The reason. */
  reason: string;
  /** When it happened. */
  terminatedAt: string;
  /** Who ordered it. */
  terminatedBy: AgentId;
};

/** Where a turn's task came from. */
export type Origin = "inbox" | {
  unit: EffectId;
};

/** The result of an effect. */
export type Outcome = {
  reply: Reply;
} | {
  result: CallResult;
} | {
  answer: string;
} | {
  verdict: Verdict;
} | "slept" | {
  kept: Artifact;
} | {
  failed: Failure;
};

/** What the operator adds to the page. */
export type PageAdditions = {
  /** The persons who decide their approvals; none if they do so themselves. */
  approvers: Array<PersonId>;
  /** Scripts to load, by the names of their files. */
  components: Array<string>;
  /** Whether they decide the approvals of others. */
  isApprover: boolean;
  liveHtml: boolean;
  /** The person who looks at it. */
  person: PersonId;
  /** What their token may do. */
  scopes: Array<string>;
};

/** The pattern of an argument. */
export type Pattern = {
  is: string;
} | {
  like: string;
} | {
  atMost: number;
};

/** The content of a message. */
export type Payload = {
  /** The meta of the task that the message becomes. */
  meta?: Record<string, unknown>;
  /** The text of the message. */
  text: string;
};

/** What a pending call would change, as far as it can be shown before the decision. */
export type PendingChange = {
  /** The change of a file; none if nothing waits under this id, or it is a call that changes no text file. */
  file?: FileChange | null;
};

/** The terms on which a call may be made. */
export type Permit = {
  /** Whether enough is left that the reply needs no token limit. */
  ample?: boolean;
  /** The accounts that are nearly used up; the agent is warned. */
  near?: Array<Level>;
  /** The longest that the call may take. */
  timeMs?: number | null;
};

/** Names a person. */
export type PersonId = string;

/** Where a thread stands. */
export type Phase = string;

/** A phase that a handler or unit suggests. */
export type PhaseUpdateSuggestion = {
  /** The suggested phase. */
  phase: Phase;
};

/** The steps of a plan in order, with strategy and result. */
export type Plan = {
  /** The id of the plan (`plan_id`). */
  id?: string | null;
  /** A short result. */
  result?: string | null;
  /** The final status: `completed` or `failed`; none while it is in progress. */
  status?: StepStatus | null;
  /** The steps, in order. */
  steps: Array<Step>;
  /** The strategy that made it. */
  strategy?: Approach | null;
};

/** Plans, newest first. */
export type Plans = {
  /** At most 100. */
  plans: Array<ShownPlan>;
};

/** The operator's rules, in order; the first that fits counts. */
export type Policy = {
  /** The rules. */
  rules: Array<PolicyRule>;
};

/** One rule. What it does not name fits anything. */
export type PolicyRule = {
  /** The agent that calls. */
  agent?: string | null;
  /** The arguments, as JSON text. */
  arguments?: string | null;
  /** Its role. */
  role?: string | null;
  /** The server that the tool comes from. */
  server?: string | null;
  /** Whether it holds also after outside content was read. */
  tainted?: boolean;
  /** What holds then. */
  then: PolicyThen;
  /** The tool. */
  tool?: string | null;
  /** The reason, for people. */
  why: string;
};

/** What a rule says. */
export type PolicyThen = "allow" | "ask" | "deny";

/** How a failed request is answered: `application/problem+json`. */
export type Problem = {
  /** What went wrong, for programs; it never changes. */
  code: string;
  /** What went wrong and what to do, for people. */
  detail: string;
  /** The HTTP status. */
  status: number;
  /** The name of the HTTP status. */
  title: string;
  /** `urn:polis:problem:` and the code. */
  type: string;
};

/** A question to the person. */
export type Question = {
  /** How many milliseconds to wait for an answer; without limit if none. */
  patienceMs?: number | null;
  /** The text of the question. */
  text: string;
  /** The form of the answer. */
  wanted?: Wanted;
};

/** A tool that its server declares as read-only. */
export type ReadTool = {
  /** The digest of its definition. */
  identity: string;
  /** The listed name of the tool. */
  tool: string;
};

/** An event with its position, time and thread. */
export type Recorded = {
  /** When it was decided. */
  at: Timestamp;
  /** What happened. */
  event: Event;
  /** Its position in the society's log. */
  seq: Seq;
  /** The thread that it belongs to, if any. */
  thread?: ThreadId | null;
};

/** The whole reply of a model. */
export type Reply = {
  /** The sources that the text cites. */
  citations?: Array<Citation>;
  /** The tool of the first call that is not made: the reply was cut within it, so that its arguments may be incomplete, or it is one too many. */
  cutCall?: string | null;
  /** Opaque data that the vendor wants back when the conversation goes on within this turn, such as signed reasoning. Only the vendor's own adapter reads it. */
  echo?: unknown;
  /** Why it stopped. */
  finish: Finish;
  /** The model that answered, as `vendor/name`. */
  model?: string;
  /** The reasoning, if the vendor provides it. */
  reasoning?: string;
  /** The text of the reply. */
  text: string;
  /** The tool calls that the model wants. */
  toolCalls?: Array<ToolCall>;
  /** The usage of the call. */
  usage: Usage;
  /** What tools of the vendor did while it was written. */
  vendorCalls?: Array<VendorCall>;
};

/** Who waits for the result of a message. */
export type ReplyTo = "nobody" | "user" | {
  effect: EffectId;
};

/** A request that happens once. */
export type Request = {
  /** Digest of everything that was asked: another request with the same key is a mistake of the client. */
  fingerprint: Digest;
  /** The same for a repeat. */
  key: string;
};

/** A request of a person. */
export type RequestRecord = {
  /** When it was sent. */
  at: Timestamp;
  /** When it was answered or failed. */
  endedAt?: Timestamp | null;
  /** The failure of a part of it that nobody waited for, if it was answered nevertheless. */
  failedPart?: Failure | null;
  /** Why it failed or was cancelled. */
  failure?: Failure | null;
  /** The task id, which all work for the request carries. */
  id: TaskId;
  /** The id of its first message. */
  message: MessageId;
  /** The meta of its first message. */
  meta?: Record<string, unknown>;
  /** The turns for it that are not settled. */
  open: Array<TurnId>;
  /** The event that sent it. */
  seq: Seq;
  /** What was spent for it, as far as the view knows. */
  spent: Spent;
  /** Its text, cut where it is long. */
  text: string;
  /** The agent that it was sent to. */
  to: AgentId;
};

/** What was decided. */
export type Resolved = {
  /** The id of the approval. */
  id: string;
};

/** The `details` of an approval of a call: what a person should know before they decide. */
export type Review = {
  /** What an approval with `always` would cover; none if it is not possible. */
  always?: Matching | null;
  /** How the tool has changed since it was last used. */
  changed?: Changed | null;
  /** The same as text. */
  covers?: string;
  /** The outside content that the agent has read, if that is why the person is asked. */
  outside?: Array<string>;
  /** The tools that an approval of all read-only tools of the server would cover. */
  reads?: Array<string>;
};

/** A role: name, prompt, behaviour, models, tools and limits of its agents. */
export type Role = {
  /** The name of the code that runs its agents' turns. */
  behaviour: Behaviour;
  /** The id of the role. */
  id: RoleId;
  /** Limits of its agents, where they are lower than those of the society. */
  limits?: RoleLimits;
  /** Its models: the first choice, then the fallbacks. When empty, those of the society. */
  model?: OneOrMany;
  /** The display name. */
  name: string;
  /** The system prompt of its agents. */
  rolePrompt: string;
  /** How its agents call models, where a request or its conversation does not say so. */
  settings?: ModelSettings;
  /** The skills that its agents are told about, by name; `*` matches any text. None for all. */
  skills?: Array<string> | null;
  /** The tools that its agents may use, by name; `*` matches any text. None for all. */
  tools?: Array<string> | null;
  /** The system prompt for requests in other languages, by language code such as `zh`. */
  translations?: Record<string, string>;
};

/** Names a role. */
export type RoleId = string;

/** Limits of the agents of a role. */
export type RoleLimits = {
  /** Most children of each agent. */
  children?: number | null;
  /** Length of a conversation, in messages, before it is compressed. */
  contextMessages?: number | null;
  /** Most rounds of tool calls within a turn. */
  rounds?: number | null;
};

/** The roles, by id. */
export type Roles = {
  /** The `after` of the next page; none when there is no more. */
  next?: string | null;
  /** The roles of this page. */
  roles: Array<OrgRole>;
};

/** What policy says about a call. */
export type Ruling = "allow" | {
  ask: string;
} | {
  deny: string;
} | {
  stop: string;
} | "approved" | {
  person: Question;
} | {
  refuse: Failure;
} | {
  askEach: string;
};

/** An account: `society`, `task:ID`, `agent:ID` or `role:ID`. */
export type Scope = string;

/** The sender of a message in a thread. */
export type Sender = "bot" | "user";

/** The position of an event in its society's log; the first event is 1. */
export type Seq = number;

/** The state of a server connection. */
export type ServerState = "off" | "starting" | "connected" | "down";

/** A thread's settings, in the shape of the specification. */
export type Settings = {
  /** The phase to apply before the next task, if one was suggested. */
  _phaseUpdateSuggestion?: PhaseUpdateSuggestion | null;
  /** The phase and related fields. */
  briefStatus: BriefStatus;
};

/** How a turn ended. */
export type Settlement = "done" | {
  failed: Failure;
} | {
  cancelled: Failure;
};

/** Which part of a thread the model sees when a turn starts. */
export type Shown = {
  /** The active compression; none when everything is shown. */
  compression?: Seq | null;
  /** How many compressions failed since. */
  failed: number;
};

/** A plan, and whose it is. */
export type ShownPlan = {
  /** The agent that keeps it. */
  agentId: AgentId;
  /** The id of the plan (`plan_id`). */
  id?: string | null;
  /** Whether its request is under way. */
  isOpen: boolean;
  /** A short result. */
  result?: string | null;
  /** The final status: `completed` or `failed`; none while it is in progress. */
  status?: StepStatus | null;
  /** The steps, in order. */
  steps: Array<Step>;
  /** The strategy that made it. */
  strategy?: Approach | null;
  /** The request that it is for. */
  taskId: TaskId;
  /** The thread that it belongs to. */
  thread: ThreadId;
  /** When it was last changed. */
  updatedAt: Timestamp;
};

/** The societies of the store, by name. */
export type Societies = {
  /** The `after` of the next page; none when there is no more. */
  next?: string | null;
  /** The societies of this page. */
  societies: Array<Society>;
};

/** A society of the list. */
export type Society = {
  /** How many events its log has. */
  events: Seq;
  /** Whether it is the one that is meant where none is named. */
  first: boolean;
  /** The last event that both share. */
  forkedAt?: Seq | null;
  /** The society whose events it has from before it was forked. */
  forkedFrom?: SocietyId | null;
  /** Its name. */
  name: SocietyId;
  /** Whether it is at work here; else it begins to with the next request. */
  works: boolean;
};

/** Names a society: all agents, threads and budgets behind one log. */
export type SocietyId = string;

/** The position of a result in the log. */
export type Source = {
  /** The call that it is the result of. */
  effect: EffectId;
  /** The position of the result. */
  seq: Seq;
  /** The thread that it is recorded under. */
  thread: ThreadId;
};

/** One account. Of requests only those that are not answered yet have one; what an answered one cost stands in its answer. */
export type Spending = {
  /** What a person has allowed beyond the limit. */
  granted: Spent;
  /** How full it is wherever it has a limit. */
  levels: Array<Level>;
  /** What calls under way may still take. */
  reserved: Spent;
  /** The owner of the account. */
  scope: Scope;
  /** What finished calls took. */
  spent: Spent;
};

/** An amount of each thing that is counted. */
export type Spent = {
  /** Of the tokens of requests, those that came from a vendor's cache. */
  cachedTokens?: number;
  /** Billionths of a US dollar. */
  costNanos: number;
  /** Of the tokens, those of requests. */
  inputTokens?: number;
  /** Requests to a vendor, failed ones included. */
  requests: number;
  /** Milliseconds of waiting for models. */
  timeMs: number;
  /** Tokens, in and out. */
  tokens: number;
};

/** One step of a plan. */
export type Step = {
  /** The id within the plan (`task_id`); its number if it has none. */
  id?: string | null;
  /** A short result. */
  result?: string | null;
  /** The status of the step. */
  status: StepStatus;
  /** The agent that does it, if it is another one. */
  target?: string | null;
  /** What to do. */
  text: string;
};

/** The status of a step. */
export type StepStatus = "pending" | "in_progress" | "completed" | "failed" | "skipped";

/** A step of a workflow, with its address. */
export type StreamedStep = {
  /** The action, such as `planning` or `calling_tool`. */
  action: string;
  /** The kind of agent, such as `planner`. */
  agentType: string;
  /** The chunk that the component grows by. */
  chunk?: ComponentChunk | null;
  /** The component that is being written, such as `planner-response`, or the tool that is called; none when nothing is. */
  component?: string | null;
  /** How long the step took, if it has ended. */
  durationMs?: number | null;
  /** Its address. */
  path: SubThreadPath;
  /** The request that it belongs to. */
  task: TaskId;
  /** The thread that it happens in. */
  thread: ThreadId;
  /** The todo that it works on, if any. */
  todo?: string | null;
  /** The usage of the step, if a model has replied. */
  usage?: Usage | null;
};

/** Where a sub-thread lies below a main thread, such as `messages[3].meta._thread`. */
export type SubThreadPath = string;

/** Switches memory on or off for the caller. What is stored stays. */
export type SwitchMemory = {
  /** Whether agents remember for the caller from now on. */
  enabled: boolean;
};

/** What an agent is asked to do (R012-R014). The host utilities of the specification are methods of the turn. */
export type Task = {
  /** How many messages from agent to agent led to it; 0 if the person asked. The engine sets it, whatever a handler writes here. */
  hops?: number;
  /** The person's request that this belongs to. */
  id: TaskId;
  /** The text of the task. */
  message: string;
  /** Free data for the handler. */
  meta?: Record<string, unknown>;
  /** A name for people. The phase selects the handler, never this name (R050). */
  name: string;
  /** Whether the text is not added to the thread as a user message. */
  skipUserMessage?: boolean;
  /** Whether it is a message or was queued by an agent. */
  type: TaskType;
};

/** Names what a person asked for; everything done for it carries this. */
export type TaskId = string;

/** The state of a request. */
export type TaskState = {
  /** The text that ended it. */
  answer?: string | null;
  /** The agent that is busy with another request, which waits for a person: this one comes after it. */
  behind?: AgentId | null;
  /** The conversation that it belongs to, or the agent that it was sent to. */
  conversation?: AgentId | null;
  /** Why it failed or was cancelled, or why a part of it failed. */
  failure?: Failure | null;
  /** The request. */
  id: TaskId;
  /** The plans that agents keep for it. */
  plans?: Array<ShownPlan>;
  /** Whether it is under way, waits, or has ended. */
  status: TaskStatus;
};

/** The status of a request. */
export type TaskStatus = "running" | "waiting" | "needs_person" | "done" | "partial" | "failed" | "cancelled";

/** Where a task comes from. */
export type TaskType = "message" | "action";

/** The requests that are under way. */
export type Tasks = {
  /** The `after` of the next page; none when there is no more. */
  next?: string | null;
  /** By id. */
  tasks: Array<OpenTask>;
};

/** Whether the agent has ended already; otherwise it ends when its work is done (R181). */
export type Terminated = {
  /** Whether it has ended. */
  ok: boolean;
  /** The agent. */
  terminatedAgentId: AgentId;
};

/** One conversation: messages, settings and meta. */
export type Thread = {
  /** The id. */
  id: ThreadId;
  /** The messages, oldest first. */
  messages: Array<Message>;
  /** Free data about the thread. */
  meta?: Record<string, unknown>;
  /** The phase, the suggested phase, and other settings of the agent. */
  settings: Settings;
};

/** Names a thread. An agent's main thread has the agent's own name. */
export type ThreadId = string;

/** One item of a thread. */
export type ThreadItem = {
  /** When it was added. */
  at: Timestamp;
  /** Its key in `messages` of the thread. */
  index: number;
  kind: "message";
  /** The event that added it. */
  seq: Seq;
  /** The turn that it belongs to. */
  turn?: TurnId | null;
} | {
  kind: "turn";
  /** Its id, as in `turns` of the view. */
  turn: TurnId;
} | {
  /** When it was taken. */
  at: Timestamp;
  kind: "heard";
  /** The message. */
  message: Message;
  /** The event that took it. */
  seq: Seq;
};

/** Where a sub-thread is held. */
export type ThreadPlace = {
  /** The message in that thread. */
  index: number;
  /** The path in the message's meta. */
  slot: MetaPath;
  /** The thread that holds it. */
  thread: ThreadId;
};

/** A thread, or the part of it that the view shows. */
export type ThreadRecord = {
  /** The agent that it belongs to. */
  agent: AgentId;
  /** The position of the first listed turn, if there are earlier ones: `before` of the page before this one. */
  earlier?: Seq | null;
  /** Messages that hold a sub-thread, and which. */
  holds: Record<string, ThreadId>;
  /** The id that events of the thread carry. */
  id: ThreadId;
  /** Messages and turns in their order. */
  items: Array<ThreadItem>;
  /** The position of the next turn, if the page does not reach the end of the thread. */
  later?: Seq | null;
  /** Messages by their index. */
  messages: Record<string, Message>;
  /** Free data. */
  meta?: Record<string, unknown>;
  /** The message that holds it; none for a main thread. */
  parent?: ThreadPlace | null;
  /** Its plan, if a listed turn set one. */
  plan?: Plan | null;
  /** The turn that set the plan. */
  planTurn?: TurnId | null;
  /** The turn that is open in it. */
  turn?: TurnId | null;
};

/** Threads by name. */
export type Threads = {
  /** The `after` of the next page; none when there is no more. */
  next?: string | null;
  /** The threads of this page. */
  threads: Array<ListedThread>;
};

/** Milliseconds since 1970, as the clock port tells them. */
export type Timestamp = number;

/** A tool. */
export type Tool = {
  /** What it does, for models. */
  description: string;
  /** What repeating a call would mean. */
  effect: EffectClass;
  /** The name that models call it by. */
  name: string;
  /** The schema of its arguments. */
  parameters: unknown;
  /** The server that brings it; none when it is our own. */
  server: string | null;
  /** Whether an identical call may have another answer. */
  volatile: boolean;
};

/** A tool call as a model writes it. */
export type ToolCall = {
  /** The arguments as JSON text. */
  arguments: string;
  /** The id that the model gave the call. */
  id: string;
  /** The name of the tool. */
  name: string;
};

/** The list of tools that a model sees. */
export type ToolList = {
  /** The digest of names, descriptions, schemas and effect classes. */
  digest: Digest;
  /** The names, in order; empty if the log has them already. */
  names?: Array<string>;
};

/** A server that provides tools. */
export type ToolServer = {
  /** More about the state, for people. */
  detail: string;
  /** Its name in the configuration. */
  name: string;
  /** How it is reached: its command or its address. */
  reach: string;
  /** The state of the connection. */
  state: ServerState;
  /** How many tools it brings. */
  tools: number;
  /** Whether the operator trusts what it says about its tools. */
  trusted: boolean;
};

/** Which tools can be called. */
export type Tools = {
  /** The `after` of the next page; none when there is no more. */
  next?: string | null;
  /** The servers that provide tools, whether they are connected or not. */
  servers: Array<ToolServer>;
  /** The tools of this page. */
  tools: Array<Tool>;
};

/** The id of a turn: the position of the event that started it. */
export type TurnId = Seq;

/** One turn: a run of an agent's code for a task. */
export type TurnRecord = {
  /** The agent that runs it. */
  agent: AgentId;
  /** The index of the message that it answered with. */
  answer?: number | null;
  /** The name of the code that runs. */
  behaviour: Behaviour;
  /** Whether steps are left out or have cut texts; the view of the turn has them. */
  brief: boolean;
  /** Those of its effects that the view has. */
  effects: Array<EffectId>;
  /** The position of the event that started it. */
  id: TurnId;
  /** How many of its effects are not listed. */
  omitted: number;
  /** Where the task came from. */
  origin: Origin;
  /** The effect of another turn that it works for. */
  parent?: EffectId | null;
  /** Why it is blocked. */
  parked?: Failure | null;
  /** Who waits for its result. */
  replyTo: ReplyTo;
  /** When it ended. */
  settledAt?: Timestamp | null;
  /** How it ended. */
  settlement?: Settlement | null;
  /** What it spent, with all turns below it. */
  spent: Spent;
  /** When it started. */
  startedAt: Timestamp;
  /** How many of its effects a user interface shows as steps. */
  steps: number;
  /** What it works on, and for which request. */
  task: Task;
  /** The thread that it runs in. */
  thread: ThreadId;
  /** How many tool calls it made, with all turns below it. */
  tools: number;
};

/** Tokens of one model call. */
export type Usage = {
  /** How many input tokens were written to the vendor's cache. */
  cacheWriteTokens?: number;
  /** How many input tokens came from the vendor's cache. */
  cachedTokens: number;
  /** The price in billionths of a US dollar; 0 if it is unknown. */
  costNanos?: number;
  /** Tokens in the request, cached ones included. */
  inputTokens: number;
  /** Tokens in the reply, reasoning included. */
  outputTokens: number;
  /** How many output tokens were reasoning. */
  reasoningTokens: number;
};

/** What was spent on models. */
export type UsageReport = {
  /** The accounts, in the order of their owners. */
  accounts: Array<Spending>;
  /** The limits. */
  budgets: Budgets;
};

/** A message from or to the person. */
export type UserMessage = {
  /** When it was sent. */
  at: Timestamp;
  /** Why the request failed. */
  failure?: Failure | null;
  /** The sender. */
  from: AgentId;
  /** Whether it ends the request. */
  kind: UserMessageKind;
  /** Its id. */
  messageId: MessageId;
  /** Text and data. */
  payload: Payload;
  /** Its position in the log. */
  seq: Seq;
  /** The request. */
  taskId: TaskId;
  /** The receiver. */
  to: AgentId;
};

/** What a message is to a request. */
export type UserMessageKind = "message" | "answer" | "failure";

/** One use of such a tool. */
export type VendorCall = {
  /** What was found. */
  found?: Array<Citation>;
  /** The query, the address or the code, if the vendor tells it. */
  input?: string;
  /** What the code printed, or why the call failed; shortened. */
  output?: string;
  /** The tool. */
  tool: VendorTool;
  /** How many uses the vendor charges for it. */
  uses?: number;
};

/** A tool that vendors run. */
export type VendorTool = "web_search" | "web_fetch" | "code_execution" | "file_search";

/** The decision of a person about an approval. */
export type Verdict = {
  /** For a call: which similar calls need no further approval. */
  always?: Always | null;
  /** The answer of the person, if a yes or no is not enough: a text or an object. */
  answer?: unknown;
  /** Whether they approve. */
  approved: boolean;
  /** For a call: changed arguments, as JSON text. */
  arguments?: string | null;
  /** For a call of a client's tool: the files of its result. */
  artifacts?: Array<Artifact>;
  /** The person who decided. The society sets it. */
  by?: PersonId | null;
  /** The reason, for the model. */
  reason?: string;
  /** For a call of a client's tool: what the client prescribes for the answer from now on. */
  rules?: AnswerRules | null;
  /** With `always`: the pattern of the calls that are covered; the proposed one if none is given. */
  where?: Matching | null;
};

/** What runs here. */
export type Version = {
  /** The name of the program. */
  name: string;
  /** Its version. */
  version: string;
};

/** The records of a view. */
export type View = {
  /** How many agents the society has. */
  agentCount: number;
  /** Agents: all of a small society, else the first of them and those that the view is about. */
  agents: Array<AgentRecord>;
  /** The tools that have a lasting approval. */
  allowed: Array<Allowed>;
  /** The newest artifacts. */
  artifacts: Array<ListedArtifact>;
  /** The conversations, as `GET /api/conversations` lists them; only where the view is a conversation. */
  conversations?: Array<Conversation>;
  /** What single calls cost, where the view sums up more than it shows. */
  costs?: Array<CallCost>;
  /** Effects of these turns. */
  effects: Array<EffectRecord>;
  /** The event at the position, where the view is about the past. */
  event?: Moment | null;
  /** The cursor of the next page of what the view lists; none when there is no more. */
  next?: string | null;
  /** The cursor of the conversations after these. */
  nextConversations?: string | null;
  /** Whether the default model is the offline one. */
  offline: boolean;
  /** What the agent of a conversation offers. */
  operations?: Array<AgentOperation>;
  /** The name of that position, for `Last-Event-ID`. */
  place: string;
  /** Requests of people, the newest first. */
  requests: Array<RequestRecord>;
  /** The roles of the agents below, with cut prompts. */
  roles: Array<Role>;
  /** The last event that is folded in; live events follow it. */
  seq: Seq;
  /** What the society has spent. */
  spent: Spent;
  /** Threads, or parts of them. */
  threads: Array<ThreadRecord>;
  /** Turns, oldest first. */
  turns: Array<TurnRecord>;
  /** The decisions that wait for a person. */
  waiting: Array<WaitingRecord>;
  /** How many decisions wait for a person. */
  waitingCount: number;
};

/** What is to be decided, as the event stream has it. `Pending` of an approval is the same for callers that only decide: there a used-up budget is a question like any other. */
export type WaitingFor = {
  /** The call. */
  call?: Call | null;
  /** When it is denied without a decision. */
  deadline?: Timestamp | null;
  /** More about it. */
  details: unknown;
  kind: "approval";
  /** The question. */
  question: string;
} | {
  /** The call that waits for the answer. */
  call?: Call | null;
  /** When it ends without an answer. */
  deadline?: Timestamp | null;
  /** More about it. */
  details: unknown;
  kind: "question";
  /** The question. */
  question: string;
  /** The server that asks; none when it is the agent. */
  server?: string | null;
  /** The form of the answer. */
  wanted: Wanted;
} | {
  /** Model calls for the request, by agent. */
  calls: Record<string, number>;
  kind: "grant";
  /** The budgets that are used up. */
  lacking: Array<Level>;
} | {
  /** The call. */
  call: Call;
  kind: "in_doubt";
} | {
  /** Why it is blocked. */
  failure: Failure;
  kind: "parked";
};

/** A decision that waits for a person. */
export type WaitingRecord = {
  /** The agent whose turn waits. */
  agent: AgentId;
  /** Since when it waits. */
  at: Timestamp;
  /** Names it in a decision. */
  id: string;
  /** The request that it works on. */
  task: TaskId;
  /** The thread of the turn. */
  thread: ThreadId;
  /** What is to be decided. */
  what: WaitingFor;
};

/** The form of the answer. */
export type Wanted = "agreement" | {
  text: {
    /** If there are any, the answer must be one of these. */
    options?: Array<string>;
  };
} | {
  form: {
    /** The JSON schema of the object. */
    schema: unknown;
  };
} | {
  visit: {
    /** The address of the page. */
    url: string;
  };
};

/** Every route: its query, its body and its answer. */
export interface Routes {
  /** The page. */
  "GET /": {
    query: undefined;
    body: undefined;
    answer: undefined;
  };
  /** The society's A2A agent card. */
  "GET /.well-known/agent-card.json": {
    query: undefined;
    body: undefined;
    answer: undefined;
  };
  /** The society as an A2A agent; each method needs the scope of the corresponding route. */
  "POST /a2a": {
    query: undefined;
    body: undefined;
    answer: undefined;
  };
  /** The capabilities of an agent. */
  "GET /agui/{agent}": {
    query: undefined;
    body: undefined;
    answer: undefined;
  };
  /** A run of an agent, as server-sent events. */
  "POST /agui/{agent}": {
    query: undefined;
    body: undefined;
    answer: undefined;
  };
  /** What already happened on a thread, then live events, as server-sent events. */
  "POST /agui/{agent}/connect": {
    query: undefined;
    body: undefined;
    answer: undefined;
  };
  /** An action of a person on a component: a message to its agent, or the answer to a pending item. */
  "POST /api/actions": {
    query: undefined;
    body: {
      /** What was done with it, such as `select`. */
      action: string;
      /** Whose component it is; root's if not given. */
      agentId?: string;
      /** The question that it answers, as `/api/approvals` lists it; then `data` is the answer, and nothing a plain yes. Needs the scope `approve` too. */
      approvalId?: string | null;
      /** The component, such as `todo-list`. */
      component: string;
      /** What goes with it. */
      data?: unknown;
      /** The request that it belongs to; a new one if not given. */
      taskId?: string | null;
    };
    answer: Acted;
  };
  /** The agents and what each is doing. */
  "GET /api/agents": {
    query: {
      /** The `next` of the page before; the first page without it. */
      after?: string | null;
      /** Most entries of a page. */
      limit?: number | null;
    };
    body: undefined;
    answer: Agents;
  };
  /** One agent, with its role, its children and its operations. */
  "GET /api/agents/{id}": {
    query: undefined;
    body: undefined;
    answer: AgentDetail;
  };
  /** Lets an agent compress its conversation, or undoes that. */
  "POST /api/agents/{id}/compress": {
    query: undefined;
    body: {
      /** Whether the last compression is undone instead. */
      undo?: boolean;
    };
    answer: Compressing;
  };
  /** Runs an operation of an agent. */
  "POST /api/agents/{id}/operate": {
    query: undefined;
    body: {
      /** The language of the message, such as `zh`, where the operation knows it. */
      language?: string;
      /** The name of the operation, as the agent lists it. */
      operation: string;
      /** The request that it belongs to; a new one if not given. */
      taskId?: string | null;
    };
    answer: Accepted;
  };
  /** Terminates an agent. */
  "POST /api/agents/{id}/terminate": {
    query: undefined;
    body: {
      /** What becomes of its children. */
      children?: "cascade" | "detach" | "refuse";
      /** Whether it ends with its work undone. */
      now?: boolean;
      /** Why, for the log. */
      reason?: string;
    };
    answer: Terminated;
  };
  /** What waits for a person. */
  "GET /api/approvals": {
    query: {
      /** The `next` of the page before; the first page without it. */
      after?: string | null;
      /** Most entries of a page. */
      limit?: number | null;
    };
    body: undefined;
    answer: Approvals;
  };
  /** Decides a pending item. */
  "POST /api/approvals/{id}": {
    query: undefined;
    body: {
      /** For a call: do not ask again about calls like this one by this `agent`, for this `task`, or by anybody (`tool`); or about any tool of the same server that only `reads`, as the server says. */
      always?: "agent" | "task" | "tool" | "reads" | null;
      /** For a question: the words, or the object. */
      answer?: unknown;
      /** For a call: whether it is made. */
      approved?: boolean | null;
      /** For a call: other arguments, as an object or as JSON text. For the plan of a workflow: an object with other `todos`, each with `id`, `description` and `priority`; `change` of what waits says it as a schema. Another form is refused with every fault and its place, and nothing changes. */
      arguments?: unknown;
      /** For what is in doubt or blocked: `done`, `not_done`, `again`; for a server's question: `cancelled`. */
      outcome?: "done" | "not_done" | "again" | "cancelled" | null;
      /** Why; an agent reads it. */
      reason?: string;
      /** For what is in doubt: what the person found. */
      result?: string | null;
      /** With `always`: which calls are meant, as a pattern for each argument by its name; `*` stands for all other arguments. Without it, what `details.always` of the approval proposes. */
      where?: Record<string, {
        is: string;
      } | {
        like: string;
      } | {
        atMost: number;
      }> | null;
    };
    answer: Resolved;
  };
  /** What a pending call would change in a file. */
  "GET /api/approvals/{id}/change": {
    query: undefined;
    body: undefined;
    answer: PendingChange;
  };
  /** The artifacts. */
  "GET /api/artifacts": {
    query: {
      /** Only those after this number. */
      after?: number;
      /** Most of a page; never more than 1000. */
      limit?: number;
    };
    body: undefined;
    answer: Artifacts;
  };
  /** Stores an artifact. */
  "POST /api/artifacts": {
    query: {
      /** The name of a file, for people. */
      name: string;
    };
    body: undefined;
    answer: Artifact;
  };
  /** A content. */
  "GET /api/artifacts/{id}": {
    query: undefined;
    body: undefined;
    answer: undefined;
  };
  /** The conversations: pinned ones first, then those with the newest messages. */
  "GET /api/conversations": {
    query: {
      /** The `next` of the page before; the first page without it. */
      after?: string | null;
      /** Whether the archived ones are wanted instead of the others. */
      archived?: boolean | null;
      /** Most entries of a page. */
      limit?: number | null;
      /** Only those that contain all of these words in their title, id, messages or answers. Of long conversations the newest messages are searched. */
      search?: string | null;
    };
    body: undefined;
    answer: Conversations;
  };
  /** Starts a conversation without a message. */
  "POST /api/conversations": {
    query: undefined;
    body: {
      /** Its id; drawn if not given. */
      id?: string | null;
      /** The model that it asks. */
      model?: string | null;
      /** The role to talk to; that of root if not given. */
      roleId?: string | null;
      /** How it calls models. */
      settings?: {
        /** How long the vendor keeps the beginning of a request. */
        cache?: "off" | "on" | "long" | null;
        /** The reasoning effort. */
        effort?: "none" | "minimal" | "low" | "medium" | "high" | "xhigh" | "max" | null;
        /** The token limit of each reply. */
        maxTokens?: number | null;
        /** Whether a reply may have several calls. */
        parallelCalls?: boolean | null;
        /** The seed of sampling. */
        seed?: number | null;
        /** The vendor's own name for how fast and at what price it serves, such as `flex` or `priority`. */
        serviceTier?: string | null;
        /** Texts that end a reply where they appear; one text or a list. */
        stop?: string | Array<string>;
        /** The sampling temperature, from 0 to 2. */
        temperature?: number | null;
        /** Most tokens of reasoning, for models that take a number; 0 for none. It counts instead of `effort`. */
        thinkingBudget?: number | null;
        /** Whether the model must or may not call a tool: `auto`, `none`, `required` or the name of a tool. */
        toolChoice?: string | null;
        /** The probability mass that is sampled from, above 0 and up to 1. */
        topP?: number | null;
      };
      /** How its requests are done. */
      strategy?: "auto" | "simple" | "template" | "workflow" | null;
      /** Its title; its id if not given. */
      title?: string | null;
    };
    answer: Conversation;
  };
  /** One conversation. */
  "GET /api/conversations/{id}": {
    query: undefined;
    body: undefined;
    answer: Conversation;
  };
  /** Renames, pins or archives a conversation, or changes its model, strategy or model settings. */
  "POST /api/conversations/{id}": {
    query: undefined;
    body: {
      /** Whether it is left out of the usual list. */
      archived?: boolean | null;
      /** The model that it asks; an empty text for the one of its role. */
      model?: string | null;
      /** Whether it is listed before the others. */
      pinned?: boolean | null;
      /** How it calls models, all settings; an empty object for those of its role. */
      settings?: {
        /** How long the vendor keeps the beginning of a request. */
        cache?: "off" | "on" | "long" | null;
        /** The reasoning effort. */
        effort?: "none" | "minimal" | "low" | "medium" | "high" | "xhigh" | "max" | null;
        /** The token limit of each reply. */
        maxTokens?: number | null;
        /** Whether a reply may have several calls. */
        parallelCalls?: boolean | null;
        /** The seed of sampling. */
        seed?: number | null;
        /** The vendor's own name for how fast and at what price it serves, such as `flex` or `priority`. */
        serviceTier?: string | null;
        /** Texts that end a reply where they appear; one text or a list. */
        stop?: string | Array<string>;
        /** The sampling temperature, from 0 to 2. */
        temperature?: number | null;
        /** Most tokens of reasoning, for models that take a number; 0 for none. It counts instead of `effort`. */
        thinkingBudget?: number | null;
        /** Whether the model must or may not call a tool: `auto`, `none`, `required` or the name of a tool. */
        toolChoice?: string | null;
        /** The probability mass that is sampled from, above 0 and up to 1. */
        topP?: number | null;
      } | null;
      /** How its requests are done. */
      strategy?: "auto" | "simple" | "template" | "workflow" | null;
      /** The new title, one line of at most 128 characters. */
      title?: string | null;
    };
    answer: Conversation;
  };
  /** Deletes a conversation: its agent is terminated with all below it. The log keeps what was said. */
  "POST /api/conversations/{id}/delete": {
    query: undefined;
    body: Record<string, never>;
    answer: Deleted;
  };
  /** Erases the content of a conversation for good, also of one that was deleted before. One that goes on is deleted first. */
  "POST /api/conversations/{id}/erase": {
    query: undefined;
    body: Record<string, never>;
    answer: Erased;
  };
  /** The dead letters: messages that crashed agents. */
  "GET /api/dead-letters": {
    query: undefined;
    body: undefined;
    answer: DeadLetters;
  };
  /** The versions of agents' code, and the open turns that need them. */
  "GET /api/deployment": {
    query: undefined;
    body: undefined;
    answer: Deployment;
  };
  /** The log after a position and then live events, as server-sent events. */
  "GET /api/events": {
    query: {
      /** Only events after this place; all of them when it is not given. */
      after?: number;
      /** Only what this agent does, sends or is sent. */
      agent?: string | null;
      /** Only what belongs to this request. */
      task?: string | null;
      /** Only what is recorded under this thread. */
      thread?: string | null;
    };
    body: undefined;
    answer: undefined;
  };
  /** Creates a society that shares the history of this one up to an event. */
  "POST /api/fork": {
    query: undefined;
    body: {
      /** The last event that both share; now, if not given. */
      at?: number | null;
      /** What to call it. */
      name?: string | null;
    };
    answer: MadeSociety;
  };
  /** Health of the society. */
  "GET /api/health": {
    query: undefined;
    body: undefined;
    answer: Health;
  };
  /** The log in pages. */
  "GET /api/log": {
    query: {
      /** Only events after this place. */
      after?: number;
      /** Most events of a page; never more than 1000. */
      limit?: number;
    };
    body: undefined;
    answer: LogPage;
  };
  /** What agents remember for the caller and for the society: newest first, or best first if words are searched. */
  "GET /api/memories": {
    query: {
      /** How many to skip. */
      after?: number | null;
      /** Most entries of a page. */
      limit?: number | null;
      /** Words to search for. */
      search?: string | null;
    };
    body: undefined;
    answer: Memories;
  };
  /** Stores a memory for the caller, or for the society. */
  "POST /api/memories": {
    query: undefined;
    body: {
      /** Whether it is for all agents of everybody instead of the caller's own. */
      forSociety?: boolean;
      /** Its text, at most 4,096 bytes. */
      text: string;
    };
    answer: ChangedMemory;
  };
  /** Switches memory on or off for the agents that work for the caller. What is stored stays. */
  "POST /api/memories/enabled": {
    query: undefined;
    body: {
      /** Whether agents remember for the caller from now on. */
      enabled: boolean;
    };
    answer: SwitchMemory;
  };
  /** Gives a memory another text. The old text is erased. */
  "POST /api/memories/{id}": {
    query: undefined;
    body: {
      /** The new text, at most 4,096 bytes. */
      text: string;
    };
    answer: ChangedMemory;
  };
  /** Erases a memory and its text. */
  "POST /api/memories/{id}/erase": {
    query: undefined;
    body: Record<string, never>;
    answer: ChangedMemory;
  };
  /** The messages of a request. */
  "GET /api/messages/{taskId}": {
    query: {
      /** The `next` of the page before; the first page without it. */
      after?: string | null;
      /** Which way they went. */
      direction?: "received" | "all";
      /** Most messages of a page. */
      limit?: number | null;
    };
    body: undefined;
    answer: Messages;
  };
  /** The available models. */
  "GET /api/models": {
    query: undefined;
    body: undefined;
    answer: Models;
  };
  /** The nodes that share the log. */
  "GET /api/nodes": {
    query: undefined;
    body: undefined;
    answer: Nodes;
  };
  /** Has a node give its societies to others and take none, or take some again. */
  "POST /api/nodes/{name}/drain": {
    query: undefined;
    body: {
      /** Take societies again. */
      undo?: boolean;
    };
    answer: Drained;
  };
  /** The organisation as one document. */
  "GET /api/org": {
    query: undefined;
    body: undefined;
    answer: Org;
  };
  /** Creates the roles and agents of a document that do not exist yet. */
  "POST /api/org": {
    query: {
      /** Whether root's role becomes what the document says. */
      root?: boolean;
    };
    body: {
      /** All agents, including terminated ones, oldest first. */
      agents: Array<{
        /** When it was created. */
        createdAt?: string;
        /** The id of the agent. */
        id: string;
        /** The parent; none for root. */
        parentAgentId?: string | null;
        /** The role of the agent. */
        roleId: string;
        /** Whether it is active or terminated. */
        status: "active" | "terminated";
        /** When it was terminated. */
        terminatedAt?: string | null;
      }>;
      /** All roles. */
      roles: Array<{
        /** The name of the code that runs its agents' turns. */
        behaviour: string;
        /** When it happened. */
        createdAt?: string;
        /** The creator: an agent, or the person. */
        createdBy?: string;
        /** The id of the role. */
        id: string;
        /** Limits of its agents, where they are lower than those of the society. */
        limits?: {
          /** Most children of each agent. */
          children?: number | null;
          /** Length of a conversation, in messages, before it is compressed. */
          contextMessages?: number | null;
          /** Most rounds of tool calls within a turn. */
          rounds?: number | null;
        };
        /** Its models: the first choice, then the fallbacks. When empty, those of the society. */
        model?: string | Array<string>;
        /** The display name. */
        name: string;
        /** The system prompt of its agents. */
        rolePrompt: string;
        /** How its agents call models, where a request or its conversation does not say so. */
        settings?: {
          /** How long the vendor keeps the beginning of a request. */
          cache?: "off" | "on" | "long" | null;
          /** The reasoning effort. */
          effort?: "none" | "minimal" | "low" | "medium" | "high" | "xhigh" | "max" | null;
          /** The token limit of each reply. */
          maxTokens?: number | null;
          /** Whether a reply may have several calls. */
          parallelCalls?: boolean | null;
          /** The seed of sampling. */
          seed?: number | null;
          /** The vendor's own name for how fast and at what price it serves, such as `flex` or `priority`. */
          serviceTier?: string | null;
          /** Texts that end a reply where they appear; one text or a list. */
          stop?: string | Array<string>;
          /** The sampling temperature, from 0 to 2. */
          temperature?: number | null;
          /** Most tokens of reasoning, for models that take a number; 0 for none. It counts instead of `effort`. */
          thinkingBudget?: number | null;
          /** Whether the model must or may not call a tool: `auto`, `none`, `required` or the name of a tool. */
          toolChoice?: string | null;
          /** The probability mass that is sampled from, above 0 and up to 1. */
          topP?: number | null;
        };
        /** The skills that its agents are told about, by name; `*` matches any text. None for all. */
        skills?: Array<string> | null;
        /** The tools that its agents may use, by name; `*` matches any text. None for all. */
        tools?: Array<string> | null;
        /** The system prompt for requests in other languages, by language code such as `zh`. */
        translations?: Record<string, string>;
      }>;
      /** The records of terminations. */
      terminations?: Array<{
        /** The terminated agent. */
        agentId: string;
        /** The reason. */
        reason?: string;
        /** When it happened. */
        terminatedAt?: string;
        /** Who ordered it. */
        terminatedBy: string;
      }>;
    };
    answer: Imported;
  };
  /** Settings of the page. */
  "GET /api/page": {
    query: undefined;
    body: undefined;
    answer: PageAdditions;
  };
  /** The plans of agents. */
  "GET /api/plans": {
    query: {
      /** Of this request; of all without it. */
      taskId?: string | null;
    };
    body: undefined;
    answer: Plans;
  };
  /** The operator's rules for calls. */
  "GET /api/policy": {
    query: undefined;
    body: undefined;
    answer: Policy;
  };
  /** Rewinds the society to an event, and keeps its previous history under another name. */
  "POST /api/rewind": {
    query: undefined;
    body: {
      /** The last event that stays. */
      to: number;
    };
    answer: MadeSociety;
  };
  /** The roles. */
  "GET /api/roles": {
    query: {
      /** The `next` of the page before; the first page without it. */
      after?: string | null;
      /** Most entries of a page. */
      limit?: number | null;
    };
    body: undefined;
    answer: Roles;
  };
  /** Sends a message to an agent, within a request or as a new one. */
  "POST /api/send": {
    query: undefined;
    body: {
      /** The agent, or the role that has only one. */
      agentId: string;
      /** Artifacts that were stored before. */
      artifacts?: Array<{
        /** Ignored; the stored size counts. */
        bytes?: number | null;
        /** Its id, as `POST /api/artifacts` gave it. */
        id: string;
        /** Its media type. */
        mediaType?: string | null;
        /** The name that the message gives it. */
        name?: string | null;
      }>;
      /** What the application says about the request. */
      context?: Record<string, unknown>;
      /** When to ask about the plans of a new request before they are carried out; at least as often as the server was told to. */
      planApproval?: "never" | "ask" | "always" | null;
      /** How models are called for it, over the settings of the conversation. */
      settings?: {
        /** How long the vendor keeps the beginning of a request. */
        cache?: "off" | "on" | "long" | null;
        /** The reasoning effort. */
        effort?: "none" | "minimal" | "low" | "medium" | "high" | "xhigh" | "max" | null;
        /** The token limit of each reply. */
        maxTokens?: number | null;
        /** Whether a reply may have several calls. */
        parallelCalls?: boolean | null;
        /** The seed of sampling. */
        seed?: number | null;
        /** The vendor's own name for how fast and at what price it serves, such as `flex` or `priority`. */
        serviceTier?: string | null;
        /** Texts that end a reply where they appear; one text or a list. */
        stop?: string | Array<string>;
        /** The sampling temperature, from 0 to 2. */
        temperature?: number | null;
        /** Most tokens of reasoning, for models that take a number; 0 for none. It counts instead of `effort`. */
        thinkingBudget?: number | null;
        /** Whether the model must or may not call a tool: `auto`, `none`, `required` or the name of a tool. */
        toolChoice?: string | null;
        /** The probability mass that is sampled from, above 0 and up to 1. */
        topP?: number | null;
      };
      /** The request that it belongs to; a new one if not given. */
      taskId?: string | null;
      /** What it says. */
      text: string;
    };
    answer: Accepted;
  };
  /** The societies of the store. */
  "GET /api/societies": {
    query: {
      /** The `next` of the page before; the first page without it. */
      after?: string | null;
      /** Most entries of a page. */
      limit?: number | null;
    };
    body: undefined;
    answer: Societies;
  };
  /** Creates and starts a society, unless it exists. */
  "POST /api/societies": {
    query: undefined;
    body: {
      /** What to call it. */
      name: string;
    };
    answer: BegunSociety;
  };
  /** Submits a request: to a conversation, or to a new one. */
  "POST /api/submit": {
    query: undefined;
    body: {
      /** Artifacts that were stored before. */
      artifacts?: Array<{
        /** Ignored; the stored size counts. */
        bytes?: number | null;
        /** Its id, as `POST /api/artifacts` gave it. */
        id: string;
        /** Its media type. */
        mediaType?: string | null;
        /** The name that the message gives it. */
        name?: string | null;
      }>;
      /** What the application says about the request, or, for a new conversation, what was said before, elsewhere. */
      context?: Array<{
        /** Who said it: `user` or `bot`. */
        sender: "bot" | "user";
        /** What was said. */
        text: string;
      }> | Record<string, unknown>;
      /** The conversation that it belongs to; a new one if not given. */
      conversation?: string | null;
      /** The model that the conversation asks from now on. */
      model?: string | null;
      /** When to ask about its plans before they are carried out; at least as often as the server was told to. */
      planApproval?: "never" | "ask" | "always" | null;
      /** The role to talk to in a new conversation; that of root if not given. */
      roleId?: string | null;
      /** How models are called for it, over the settings of the conversation. A new conversation keeps them. */
      settings?: {
        /** How long the vendor keeps the beginning of a request. */
        cache?: "off" | "on" | "long" | null;
        /** The reasoning effort. */
        effort?: "none" | "minimal" | "low" | "medium" | "high" | "xhigh" | "max" | null;
        /** The token limit of each reply. */
        maxTokens?: number | null;
        /** Whether a reply may have several calls. */
        parallelCalls?: boolean | null;
        /** The seed of sampling. */
        seed?: number | null;
        /** The vendor's own name for how fast and at what price it serves, such as `flex` or `priority`. */
        serviceTier?: string | null;
        /** Texts that end a reply where they appear; one text or a list. */
        stop?: string | Array<string>;
        /** The sampling temperature, from 0 to 2. */
        temperature?: number | null;
        /** Most tokens of reasoning, for models that take a number; 0 for none. It counts instead of `effort`. */
        thinkingBudget?: number | null;
        /** Whether the model must or may not call a tool: `auto`, `none`, `required` or the name of a tool. */
        toolChoice?: string | null;
        /** The probability mass that is sampled from, above 0 and up to 1. */
        topP?: number | null;
      };
      /** How to go about it: a new conversation keeps it. As the conversation has it when not given, else the agent's own choice. */
      strategy?: "auto" | "simple" | "template" | "workflow" | null;
      /** What is wanted. */
      text: string;
    };
    answer: Accepted;
  };
  /** The open requests. */
  "GET /api/tasks": {
    query: {
      /** The `next` of the page before; the first page without it. */
      after?: string | null;
      /** Most entries of a page. */
      limit?: number | null;
    };
    body: undefined;
    answer: Tasks;
  };
  /** The state of a request. */
  "GET /api/tasks/{id}": {
    query: undefined;
    body: undefined;
    answer: TaskState;
  };
  /** Cancels a request. */
  "POST /api/tasks/{id}/cancel": {
    query: undefined;
    body: {
      /** Why, for the log. */
      reason?: string;
      /** Only this turn and what it started; the request itself goes on. */
      turn?: number | null;
    };
    answer: Cancelled;
  };
  /** Retries a request that has ended. */
  "POST /api/tasks/{id}/retry": {
    query: undefined;
    body: Record<string, never>;
    answer: Accepted;
  };
  /** The conversations. */
  "GET /api/threads": {
    query: {
      /** The `next` of the page before; the first page without it. */
      after?: string | null;
      /** Most entries of a page. */
      limit?: number | null;
    };
    body: undefined;
    answer: Threads;
  };
  /** A conversation, or a part of it by its address. */
  "GET /api/threads/{id}": {
    query: {
      /** The path of the sub-thread, from the thread named in the address. */
      path?: string;
      /** Whether everything below it is wanted too. */
      tree?: boolean;
    };
    body: undefined;
    answer: Thread;
  };
  /** The available tools and the state of their servers. */
  "GET /api/tools": {
    query: {
      /** The `next` of the page before; the first page without it. */
      after?: string | null;
      /** Most entries of a page. */
      limit?: number | null;
    };
    body: undefined;
    answer: Tools;
  };
  /** What was spent. */
  "GET /api/usage": {
    query: undefined;
    body: undefined;
    answer: UsageReport;
  };
  /** The version of the server. */
  "GET /api/version": {
    query: undefined;
    body: undefined;
    answer: Version;
  };
  /** A page of an agent's conversation, folded, and the newest requests. */
  "GET /api/views/conversation/{agent}": {
    query: {
      /** Only turns that started before this position; without it, the newest. */
      before?: number | null;
      /** At most this many turns, 20 unless given. */
      limit?: number | null;
      /** The page begins with this request. */
      task?: string | null;
    };
    body: undefined;
    answer: View;
  };
  /** Everything that waits for a person. */
  "GET /api/views/inbox": {
    query: undefined;
    body: undefined;
    answer: View;
  };
  /** A page of the organisation, now or after an event. */
  "GET /api/views/organisation": {
    query: {
      /** The cursor of the page before. */
      after?: string | null;
      /** The organisation as it was after this event; without it, as it is. */
      at?: number | null;
      /** At most this many agents, 500 unless given. */
      limit?: number | null;
    };
    body: undefined;
    answer: View;
  };
  /** A page of requests, the newest first. */
  "GET /api/views/requests": {
    query: {
      /** Only requests that began before this one. */
      before?: string | null;
      /** Only requests whose text contains this, in any case. */
      find?: string;
      /** At most this many, 25 unless given. */
      limit?: number | null;
    };
    body: undefined;
    answer: View;
  };
  /** A request with the outline of everything that was done for it. */
  "GET /api/views/task/{id}": {
    query: undefined;
    body: undefined;
    answer: View;
  };
  /** The same with what each request cost. */
  "GET /api/views/trace": {
    query: {
      /** Only requests that began before this one. */
      before?: string | null;
      /** Only requests whose text contains this, in any case. */
      find?: string;
      /** At most this many, 25 unless given. */
      limit?: number | null;
    };
    body: undefined;
    answer: View;
  };
  /** One turn with its newest steps. */
  "GET /api/views/turn/{id}": {
    query: {
      /** Only effects with a smaller number; without it, the newest. */
      before?: number | null;
      /** Whether the messages before the turn are wanted too. */
      context?: boolean;
    };
    body: undefined;
    answer: View;
  };
  /** A script of the operator that adds components to the page. */
  "GET /components/{name}": {
    query: undefined;
    body: undefined;
    answer: undefined;
  };
  /** This contract as a page. */
  "GET /docs": {
    query: undefined;
    body: undefined;
    answer: undefined;
  };
  /** The society as an MCP server; each tool needs the scope of the corresponding route. */
  "POST /mcp": {
    query: undefined;
    body: undefined;
    answer: undefined;
  };
  /** Figures for Prometheus. */
  "GET /metrics": {
    query: undefined;
    body: undefined;
    answer: undefined;
  };
  /** This contract. */
  "GET /openapi.json": {
    query: undefined;
    body: undefined;
    answer: undefined;
  };
  /** A frame for HTML documents of models with scripts, if the operator allows it. */
  "GET /sandbox/live": {
    query: undefined;
    body: undefined;
    answer: undefined;
  };
  /** A frame for HTML documents of models, without scripts. */
  "GET /sandbox/static": {
    query: undefined;
    body: undefined;
    answer: undefined;
  };
  /** A chat completion by an agent. */
  "POST /v1/chat/completions": {
    query: undefined;
    body: undefined;
    answer: undefined;
  };
  /** Starts a conversation. */
  "POST /v1/conversations": {
    query: undefined;
    body: undefined;
    answer: undefined;
  };
  /** Deletes a conversation. */
  "DELETE /v1/conversations/{id}": {
    query: undefined;
    body: undefined;
    answer: undefined;
  };
  /** One conversation. */
  "GET /v1/conversations/{id}": {
    query: undefined;
    body: undefined;
    answer: undefined;
  };
  /** Renames a conversation. */
  "POST /v1/conversations/{id}": {
    query: undefined;
    body: undefined;
    answer: undefined;
  };
  /** The society, its agents and its roles, as models. */
  "GET /v1/models": {
    query: undefined;
    body: undefined;
    answer: undefined;
  };
  /** One of them. */
  "GET /v1/models/{model}": {
    query: undefined;
    body: undefined;
    answer: undefined;
  };
  /** The same as a response, which can be continued by its id. */
  "POST /v1/responses": {
    query: undefined;
    body: undefined;
    answer: undefined;
  };
  /** Deletes the conversation of a response that has no other. */
  "DELETE /v1/responses/{id}": {
    query: undefined;
    body: undefined;
    answer: undefined;
  };
  /** A response in its current state. */
  "GET /v1/responses/{id}": {
    query: undefined;
    body: undefined;
    answer: undefined;
  };
  /** Cancels the request of a response. */
  "POST /v1/responses/{id}/cancel": {
    query: undefined;
    body: undefined;
    answer: undefined;
  };
  /** What the client said with the request of a response. */
  "GET /v1/responses/{id}/input_items": {
    query: undefined;
    body: undefined;
    answer: undefined;
  };
}
