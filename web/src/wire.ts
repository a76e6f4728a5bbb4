// Generated from the types of the server. Do not edit: UPDATE_WIRE=1 cargo test -p polis-server typescript writes it anew.

/** What is in the log now; events after `seq` tell what comes of it. */
export type Accepted = {
  messageId: MessageId;
  seq: Seq;
  taskId: TaskId;
};

/** What became of it: a message, or the answer to what waited. */
export type Acted = {
  approvalId?: string | null;
  message?: Accepted | null;
};

/** An agent. */
export type Agent = {
  context: AgentContext;
  createdAt: Timestamp;
  id: AgentId;
  parentAgentId?: AgentId | null;
  /** Messages that wait in its inbox. */
  pending: number;
  roleId: RoleId;
  roleName: string;
  /** What it is at with its task: `idle`, `planning`, `executing_step` or `waiting_for_collaboration`. */
  state: AgentState;
  status: AgentStatus;
  /** The request that it works on. */
  taskId?: TaskId | null;
};

/** How full its conversation is. */
export type AgentContext = {
  /** How many compressions hold. */
  compressions: number;
  /** Messages in it. */
  messages: number;
  /** Of those, how many are shown to the model; summaries stand for the others. */
  shown: number;
};

/** One agent with everything that is known of it. */
export type AgentDetail = {
  /** Whom it has made. */
  children: Array<AgentId>;
  context: AgentContext;
  createdAt: Timestamp;
  id: AgentId;
  /** Whether it takes on nothing new, and goes when it has done what waits for it. */
  leaving: boolean;
  /** What it offers to a person at one touch. */
  operations: Array<AgentOperation>;
  parentAgentId?: AgentId | null;
  /** Messages that wait in its inbox. */
  pending: number;
  /** What it is told about itself, its models and its tools. */
  role: OrgRole | null;
  roleId: RoleId;
  roleName: string;
  /** What it is at with its task: `idle`, `planning`, `executing_step` or `waiting_for_collaboration`. */
  state: AgentState;
  status: AgentStatus;
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
  /** What is said to the agent. */
  message: string;
  /** What goes with it into the task's meta. */
  meta?: Record<string, unknown>;
  /** Its name, for programs. */
  name: string;
};

/** What an agent is at with its task. */
export type AgentState = "idle" | "planning" | "executing_step" | "waiting_for_collaboration";

/** How an agent stands. */
export type AgentStatus = "idle" | "running" | "waiting" | "parked";

/** Who is there, in the order in which they came. */
export type Agents = {
  agents: Array<Agent>;
  /** The `after` of the next page; none when there is no more. */
  next?: string | null;
};

/** A tool that need not be asked about any more. */
export type Allowed = {
  /** For whom; none for everybody. */
  agent?: AgentId | null;
  /** For a tool of a server: the definition of it that was agreed to. */
  identity?: string | null;
  /** For which request; none for all. */
  task?: TaskId | null;
  /** The tool. */
  tool: string;
  /** Which calls; none for all. */
  where?: Matching | null;
};

/** How far a person's word about a tool goes beyond the one call. */
export type Always = "agent" | "task" | "tool" | "reads";

/** What came of it. */
export type Answer = {
  verdict: Verdict;
} | "cancelled" | {
  reply: Reply;
} | {
  failed: Failure;
};

/** How an agent goes about a task, and why so. */
export type Approach = {
  /** `simple`, `template` or `workflow`. */
  name: string;
  /** What decided it. */
  reason: string;
};

/** One thing that waits. */
export type Approval = ({
  /** The call that waits, with its arguments in full. */
  call?: Call | null;
  /** The form of the `arguments` that may be given with a yes, as a JSON schema: what else has its form is refused at once. Without a call and without this they change nothing. */
  change?: unknown;
  deadline?: Timestamp | null;
  details: unknown;
  kind: "approval";
  question: string;
} | {
  /** The call that waits for the answer. */
  call?: Call | null;
  deadline?: Timestamp | null;
  details?: unknown;
  kind: "question";
  question: string;
  /** The server that asks; none when it is the agent. */
  server?: string | null;
  /** Agreement, a text or one of its options, a form with its schema, or the visit of an address. */
  wanted: Wanted;
} | {
  call: Call;
  kind: "in_doubt";
} | {
  failure: Failure;
  kind: "parked";
}) & {
  agentId: AgentId;
  id: string;
  path: string;
  taskId: TaskId;
  /** The main thread, and the path from there. */
  thread: ThreadId;
};

/** What waits for a person. */
export type Approvals = {
  approvals: Array<Approval>;
  /** The `after` of the next page; none when there is no more. */
  next?: string | null;
};

/** A reference to a content. */
export type Artifact = {
  /** How long it is. */
  bytes: number;
  /** Which content. */
  id: ArtifactId;
  /** What kind of content it is said to be. */
  mediaType: string;
  /** What it is called, for people and models. Not a path. */
  name: string;
};

/** Names a content by what it holds. */
export type ArtifactId = string;

/** Contents that the log names, oldest first. */
export type Artifacts = {
  artifacts: Array<NumberedArtifact>;
  /** How many there are: when the last one has this number, there is no more. */
  last: number;
  /** The `after` of the next page; none when there is no more. */
  next?: number | null;
};

/** An attempt at a model call that came to nothing (R193). */
export type Attempt = {
  /** Which attempt at this model it was, from 1. */
  attempt: number;
  /** How long to wait before the next one. */
  delayMs: number;
  /** What went wrong. */
  failure: Failure;
  /** How many may follow the first one at this model. */
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
  society: SocietyId;
};

/** Names the code that runs a turn. */
export type Behaviour = string;

/** The part of the settings that says where a thread stands. */
export type BriefStatus = {
  /** Where the thread stands. */
  phase: Phase;
};

/** The most that may be spent; what is not set has no limit. */
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
  /** For each agent, with everybody below it. */
  agent: Budget;
  /** For each call of a model. */
  call: Budget;
  /** For all agents of a role together. */
  roles?: Record<string, Budget>;
  /** For everything together. */
  society: Budget;
  /** For each request of a person. */
  task: Budget;
};

/** One use of a tool. */
export type Call = {
  /** The arguments, as JSON text exactly as the model wrote them, but for what was meant for us. */
  arguments: string;
  /** The model's own name for the call; our name is the effect's id. */
  callId: string;
  /** What a repetition would mean. */
  class: EffectClass;
  /** Where its content comes from and goes. */
  flow?: Flow;
  /** Why no earlier result will do, in the model's words. */
  fresh?: string | null;
  /** The result of an earlier call that answers this one: nothing is called. Nobody asks for this. */
  from?: Source | null;
  /** For a tool of a server: tells this definition of it from any other. */
  identity?: string | null;
  /** What tells it from other calls, where the result of an earlier one may answer it, and its own a later one. */
  key?: Digest | null;
  /** Whether the turn itself does it, by effects of its own. It is never in doubt. */
  own?: boolean;
  /** While a person is asked about it: the tools of its server that only read, as the server says. */
  reads?: Array<ReadTool>;
  /** Whether it may be made. */
  ruling?: Ruling;
  /** Which tool, by the name that it is listed under. */
  tool: string;
  /** Whether its result may change by itself. */
  volatile?: boolean;
  /** What the model wrote for it, where that is another name. */
  wrote?: string | null;
};

/** What a tool gave back, as the model will read it. */
export type CallResult = {
  /** What it made that is too long or of another kind than text. */
  artifacts?: Array<Artifact>;
  /** The text for the model. */
  content: string;
  /** The earlier call that it was taken from, if none was made. */
  from?: EffectId | null;
  /** Whether it tells of a failure. */
  isError?: boolean;
};

/** The request that was called off. */
export type Cancelled = {
  taskId: TaskId;
};

/** A tool whose server has changed it. */
export type Changed = {
  /** The definition that the server lists now. */
  after: string;
  /** The definition that was agreed to. */
  before: string;
};

/** What becomes of the children of an agent that goes (D12). */
export type Children = "cascade" | "detach" | "refuse";

/** Which entries left an inbox unread. */
export type Cleared = {
  task: TaskId;
} | {
  askedBy: Array<TurnId>;
} | "everything";

/** What a component grows by. */
export type ComponentChunk = "again" | {
  text: {
    /** The field's name. */
    field: string;
    /** What it grows by. */
    text: string;
  };
} | {
  item: {
    /** The field's name. */
    field: string;
    /** The element's place, from 0. */
    index: number;
    /** The element. */
    value: unknown;
  };
} | {
  field: {
    /** The field's name. */
    field: string;
    /** What it holds. */
    value: unknown;
  };
};

/** The task that compresses; none where one was undone. */
export type Compressing = {
  ok: boolean;
  taskId?: TaskId | null;
};

/** What is counted. */
export type Counted = "tokens" | "cost" | "requests" | "time";

/** What an agent was asked and could not survive. */
export type DeadLetter = {
  /** Whose it was. */
  agent: AgentId;
  /** When it was set aside. */
  at: Timestamp;
  /** How the turn broke down. */
  failure: Failure;
  /** The request that it belongs to. */
  task: TaskId;
  /** The turn that came to nothing; its first event has the text. */
  turn: TurnId;
};

/** Messages that broke agents down. */
export type DeadLetters = {
  deadLetters: Array<DeadLetter>;
};

/** One chunk of a reply. */
export type Delta = {
  content: string;
} | {
  reasoning: string;
} | {
  tool_call: {
    /** More of the arguments' JSON text. */
    arguments: string;
    /** The model's name for the call, when this chunk carries it. */
    id: string | null;
    /** Which of the reply's calls. */
    index: number;
    /** The tool's name, when this chunk carries it. */
    name: string | null;
  };
} | {
  usage: Usage;
} | {
  echo: unknown;
} | {
  model: string;
} | {
  done: Finish;
} | "stopped" | {
  error: Failure;
};

/** A 64-bit digest that is the same on every machine and in every version; it tells texts apart, it hides nothing. */
export type Digest = string;

/** Something that a turn asks for and waits for. Its intent is logged before it happens. */
export type Effect = {
  model: {
    /** Whether what it says is for the turn alone: notes, a judgement. Nobody is told it as words of the agent. */
    aside?: boolean;
    /** Which model. */
    model: string;
    /** Tells this request from any other. */
    request: Digest;
    /** The most that it can cost. */
    reserve: Spent;
    /** The tools that it is shown. */
    tools?: ToolList | null;
  };
} | {
  grant: {
    /** Model calls made for the request so far, by agent. */
    calls?: Record<string, number>;
    /** What is used up. */
    lacking: Array<Level>;
  };
} | {
  tool: Call;
} | {
  ask: {
    /** When waiting ends. */
    deadline?: Timestamp | null;
    /** What is asked, and of whom. */
    envelope: Envelope;
  };
} | {
  approval: {
    /** The call that may not be made without a person's word. Nobody asks for this: it stands where the call was to be. */
    call?: Call | null;
    /** The form of what may be given in place of what is asked about, as a JSON schema. */
    change?: unknown;
    /** When waiting ends. */
    deadline?: Timestamp | null;
    /** What it is about, in full. */
    details: unknown;
    /** What to agree to. */
    question: string;
    /** What an answer must be, where a yes is not enough. */
    wanted?: Wanted;
  };
} | {
  terminate: {
    /** Who. */
    agent: AgentId;
    /** What becomes of its own children. */
    children: Children;
    /** When it goes with its work undone. */
    deadline: Timestamp;
    /** Why. */
    reason?: string;
  };
} | {
  sleep: {
    /** When to go on. */
    until: Timestamp;
  };
} | {
  unit: {
    /** What runs. */
    behaviour: Behaviour;
    /** What it is asked. */
    task: Task;
    /** Where. */
    thread: ThreadId;
  };
} | {
  keep: Artifact;
};

/** What repeating a tool call means to the world. */
export type EffectClass = "read" | "idempotent" | "write";

/** The n-th effect of a turn, written `turn.n`. */
export type EffectId = string;

/** A message between agents, or between an agent and the person: the one envelope (D30). */
export type Envelope = {
  /** Who sends. */
  from: AgentId;
  /** How many messages from agent to agent its chain has, this one included; none when it is the person's. */
  hops?: number;
  /** Its name. */
  id: MessageId;
  /** What it is. */
  kind: MessageKind;
  /** What it says. */
  payload: Payload;
  /** Who waits for what comes of it. */
  replyTo?: ReplyTo;
  /** The person's request that this belongs to. */
  taskId: TaskId;
  /** Who receives. */
  to: AgentId;
};

/** What can happen. */
export type Event = {
  societyFounded: {
    /** What holds in it. */
    limits: Limits;
    /** Makes this society's ids unlike any other's. */
    seed: string;
  };
} | {
  societyForked: {
    /** The society that it shares its past with, as it was called then. */
    from: SocietyId;
    /** The request that asked for the fork, if it has a key. */
    request?: Request | null;
    /** Makes the ids that are drawn from now on unlike those of the other one. */
    seed: string;
  };
} | {
  requestDone: {
    /** How many events it caused. */
    events: number;
    /** Which. */
    request: Request;
  };
} | {
  toolAllowed: {
    /** Which, for whom. */
    allowed: Allowed;
  };
} | {
  toolPinned: {
    /** The definition in words. */
    definition: string;
    /** Tells this definition from any other. */
    identity: string;
    /** The tool, as it is listed. */
    tool: string;
  };
} | {
  budgetsSet: {
    /** All of them. */
    budgets: Budgets;
  };
} | {
  budgetGranted: {
    /** How much more. */
    more: Spent;
    /** To which account. */
    scope: Scope;
  };
} | {
  roleCreated: {
    /** The effect that made it; none when a person did. */
    by?: EffectId | null;
    /** The role. */
    role: Role;
  };
} | {
  roleChanged: {
    /** The role as it is from now on. */
    role: Role;
  };
} | {
  agentSpawned: {
    /** Its name. */
    agent: AgentId;
    /** The effect that made it; none when a person did. */
    by?: EffectId | null;
    /** Who made it; none for root. */
    parent?: AgentId | null;
    /** Its role. */
    role: RoleId;
  };
} | {
  agentDismissed: {
    /** Who. */
    agent: AgentId;
    /** Who said so; the person, or its parent. */
    caller: AgentId;
    /** Whether its children go to its parent instead of going first. */
    detach?: boolean;
    /** Why. */
    reason?: string;
    /** Who waits until it is gone. */
    waiter?: EffectId | null;
  };
} | {
  agentTerminated: {
    /** Who. */
    agent: AgentId;
  };
} | {
  messageSent: {
    /** The effect that sent it; none when a person did or when it answers for a settled turn. */
    by?: EffectId | null;
    /** The message. */
    envelope: Envelope;
  };
} | {
  messagesTaken: {
    /** Whose inbox they lay in. */
    agent: AgentId;
    /** The effect that did. */
    by: EffectId;
    /** The messages, oldest first. */
    envelopes: Array<Envelope>;
  };
} | {
  inboxCleared: {
    /** Whose inbox. */
    agent: AgentId;
    /** Which entries. */
    of: Cleared;
  };
} | {
  turnStarted: {
    /** Who works. */
    agent: AgentId;
    /** The code that runs. */
    behaviour: Behaviour;
    /** That message's place, or where the next one would go. */
    index: number;
    /** The user message that the task's text becomes, if it does. */
    message?: MessageId | null;
    /** Where the task came from. */
    origin: Origin;
    /** Where the thread stands, and so which handler runs. */
    phase: Phase;
    /** Who waits for what comes of it. */
    replyTo: ReplyTo;
    /** What of the thread is compressed; nothing for most. */
    shown?: Shown;
    /** What is asked. */
    task: Task;
  };
} | {
  effectStarted: {
    /** What is wanted. */
    effect: Effect;
    /** Which effect. */
    id: EffectId;
    /** What a model call is told of the budgets that it falls under; none where there are none. */
    permit?: Permit | null;
  };
} | {
  effectRetried: {
    /** What was tried, and what is next. */
    attempt: Attempt;
    /** Which effect. */
    id: EffectId;
    /** What it cost all the same. */
    spent: Spent;
  };
} | {
  effectEnded: {
    /** Which effect. */
    id: EffectId;
    /** What came. */
    outcome: Outcome;
    /** What it cost, if it is a model's. */
    spent?: Spent | null;
  };
} | {
  effectDoubted: {
    /** Which effect. */
    id: EffectId;
  };
} | {
  effectCleared: {
    /** Which effect. */
    id: EffectId;
  };
} | {
  effectRestarted: {
    /** Which effect. */
    id: EffectId;
  };
} | {
  callInquired: {
    /** Who asks: the server that the call went to. */
    by: string;
    /** Which call. */
    id: EffectId;
    /** What is asked. */
    inquiry: Inquiry;
    /** What a model call is told of the budgets that it falls under; none where there are none. */
    permit?: Permit | null;
  };
} | {
  callAnswered: {
    /** What came of it. */
    answer: Answer;
    /** Which inquiry. */
    id: InquiryId;
    /** What it cost, if it is a model's. */
    spent?: Spent | null;
  };
} | {
  effectRefused: {
    /** Why. */
    failure: Failure;
    /** Which effect. */
    id: EffectId;
  };
} | {
  acted: {
    /** Which effect. */
    id: EffectId;
  };
} | {
  messageAdded: {
    /** The effect that added it. */
    by: EffectId;
    /** Its place. */
    index: number;
    /** The message. */
    message: Message;
  };
} | {
  messageUpdated: {
    /** The effect that changed it. */
    by: EffectId;
    /** Its place. */
    index: number;
    /** What changed. */
    patch: MessagePatch;
  };
} | {
  settingsUpdated: {
    /** The effect that changed them. */
    by: EffectId;
    /** All of them. */
    settings: Settings;
  };
} | {
  planSet: {
    /** The effect that set it. */
    by: EffectId;
    /** All of it. */
    plan: Plan;
  };
} | {
  phaseSuggested: {
    /** The effect that proposes. */
    by: EffectId;
    /** What it proposes. */
    phase: Phase;
  };
} | {
  phaseApplied: {
    /** The phase. */
    phase: Phase;
  };
} | "suggestionDropped" | {
  contextCompressed: {
    /** The effect that did it. */
    by: EffectId;
    /** The first message that is shown. */
    from: number;
    /** What stands for those before it, oldest first. */
    summaries: Array<string>;
  };
} | {
  contextRestored: {
    /** The effect that did it; none when a person did. */
    by?: EffectId | null;
    /** The compression that holds again; none when everything is shown. */
    to?: Seq | null;
  };
} | {
  contextKept: {
    /** The effect that tried. */
    by: EffectId;
    /** Why. */
    failure: Failure;
  };
} | {
  threadOpened: {
    /** Whose it is. */
    agent: AgentId;
    /** The effect that opened it. */
    by: EffectId;
    /** Free data. */
    meta?: Record<string, unknown>;
    /** The thread that holds it. */
    parent: ThreadId;
    /** Its first settings (D02: its own, not its parent's). */
    settings: Settings;
  };
} | {
  threadLinked: {
    /** The effect that opened it. */
    by: EffectId;
    /** The sub-thread. */
    child: ThreadId;
    /** How the message begins to say why, should the turn end before it says what came of the sub-thread. */
    held?: string | null;
    /** The message's place. */
    index: number;
    /** The place in its meta. */
    slot: MetaPath;
  };
} | {
  turnCrashed: {
    /** How. */
    failure: Failure;
    /** Which turn. */
    turn: TurnId;
    /** When it is run again. */
    until: Timestamp;
  };
} | {
  turnRevived: {
    /** Which turn. */
    turn: TurnId;
    /** When it is run, where it has to wait until others have shown that they are not to blame. */
    until?: Timestamp | null;
  };
} | {
  turnRested: {
    /** Which turn. */
    turn: TurnId;
  };
} | {
  messageDeadLettered: {
    /** Whose message it was. */
    agent: AgentId;
    /** How it broke down last. */
    failure: Failure;
    /** The request that it belongs to. */
    task: TaskId;
    /** The turn that came to nothing. */
    turn: TurnId;
  };
} | {
  turnParked: {
    /** Why. */
    reason: Failure;
    /** Which turn. */
    turn: TurnId;
  };
} | {
  turnResumed: {
    /** Which turn. */
    turn: TurnId;
  };
} | {
  turnSettled: {
    /** That message's place, or where the next one would go. */
    index: number;
    /** The bot message that its response became, if it did. */
    message?: Message | null;
    /** Tasks that the same agent does next. */
    next?: Array<Task>;
    /** How it ended. */
    settlement: Settlement;
    /** Which turn. */
    turn: TurnId;
  };
};

/** Why work came to nothing, for programs (`code`) and for people (`message`). */
export type Failure = {
  /** Stable, `snake_case`. */
  code: string;
  /** What happened and what to do. */
  message: string;
};

/** Why a model stopped. */
export type Finish = "stop" | "tool_calls" | "length" | "content_filter" | "refusal" | {
  other: string;
};

/** What a call does with content, as its toolbox knows it before the call is made. */
export type Flow = {
  /** Whether it may destroy something that was there before the request. */
  destroys?: boolean;
  /** Whether a rule of the operator allows it after outside content as well. */
  exempt?: boolean;
  /** The one file that it reads or stores, where it is one. */
  file?: string | null;
  /** Whether the person has named every target of it in their own words for this request. */
  named?: boolean;
  /** The outside source that its result comes from, in words: a web page, a server. */
  outside?: string | null;
  /** Whether its result may hold private data. */
  private?: boolean;
  /** Whether its result may repeat what agents have stored in files. */
  recalls?: boolean;
  /** Whether its result may repeat what was kept as an artifact. */
  recallsArtifacts?: boolean;
  /** Whether its arguments leave this machine or reach a program outside the sandbox. */
  sends?: boolean;
  /** Whether it stores something in files that agents may read later. */
  stores?: boolean;
  /** What it writes, by its name, where that is one thing. */
  target?: string | null;
};

/** Whether the society is well. */
export type Health = {
  model: HealthModel;
  status: HealthStatus;
  store: HealthStore;
  version: string;
};

/** The model that answers where none is named. */
export type HealthModel = {
  name: string;
  offline: boolean;
};

export type HealthStatus = "ok" | "down" | "degraded";

/** Whether the log can be read and written. */
export type HealthStore = {
  /** What is wrong. */
  code?: string | null;
  ok: boolean;
  /** The last event. */
  seq?: Seq | null;
};

/** How much of it is new. */
export type Imported = {
  agents: number;
  /** Roles that were here and are others now. */
  changed?: number | null;
  /** What of the document did not come in, in words. */
  left?: Array<string>;
  roles: number;
};

/** What is asked. */
export type Inquiry = {
  person: {
    /** What the word may be given for always, if it may. */
    about?: string | null;
    /** What it is about, in full. */
    details?: unknown;
    /** What. */
    question: Question;
  };
} | {
  model: {
    /** Under which name the policy knows it. */
    about: string;
    /** Which model. */
    model: string;
    /** The end of what the model is told. */
    prompt: string;
    /** Tells this request from any other. */
    request: Digest;
    /** The most that it can cost. */
    reserve: Spent;
    /** What the policy says. */
    ruling: Ruling;
  };
};

/** A question of a running call, written `turn.n.seq`. */
export type InquiryId = string;

/** What a message is. */
export type Kind = "message" | "answer" | "failure";

/** How full one account is in one respect. */
export type Level = {
  /** What may be spent, with what was granted. */
  limit: number;
  /** What is counted. */
  of: Counted;
  /** Whose account. */
  scope: Scope;
  /** Spent and under way. */
  used: number;
};

/** What holds in a society. Reaching a limit is refused with a code; nothing changes. */
export type Limits = {
  /** Most agents in the society before agents may make no more. */
  agents: number;
  /** Most children that an agent may make for itself. */
  children: number;
  /** How far below root agents may make agents (P21). */
  depth: number;
  /** Messages in a chain from agent to agent, each sent on account of the one before; the first is the person's. */
  hops: number;
  /** Most bytes of text that wait in one inbox. */
  inboxBytes: number;
  /** Most entries that wait in one inbox. */
  inboxEntries: number;
  /** Messages between two agents for one request since the person last wrote about it. A question whose answer the sender waits for does not count: a cycle of those is refused as a deadlock. */
  messagesPerPair: number;
  /** Calls alike with results alike after which the agent is told so, within a turn. */
  nudgeRepeats: number;
  /** Most effects that one turn may have open at once. */
  openEffects: number;
  /** How old the result of a call may be that answers an identical one; 0 has every call made. */
  reuseMs: number;
  /** Most agents that agents may make within a minute, all together. */
  spawnsAMinute: number;
  /** Calls alike with results alike after which one more is not made, and a little later the turn ends. */
  stopRepeats: number;
  /** Longest text of a message or message. */
  textBytes: number;
  /** Turns for a request since the person last wrote about it, after which agents write no more messages for it. */
  turnsPerTask: number;
};

/** One conversation. */
export type ListedThread = {
  agentId: AgentId;
  id: ThreadId;
  /** Whether somebody works in it. */
  isOpen: boolean;
  messages: number;
  /** Where it lies below its agent's main thread; empty for that one. */
  path: string;
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
  from: SocietyId;
  inDoubt: number;
  /** What the society of before is called now, after a rewind. */
  kept?: SocietyId | null;
  openTurns: number;
  society: SocietyId;
};

/** A pattern for each argument by its name. An argument without one must be content, such as `body` or `text`, unless there is a pattern for the name `*`, which stands for all others. */
export type Matching = Record<string, Pattern>;

/** One message of a thread. A sub-thread hangs in its meta, at `_thread` unless said otherwise. */
export type Message = {
  /** Its name. */
  id: MessageId;
  /** Free data about the message. */
  meta?: Record<string, unknown>;
  /** Who speaks. */
  sender: Sender;
  /** What is said. */
  text: string;
  /** When. */
  timestamp: Timestamp;
};

/** Names a message of a thread or a message between agents. */
export type MessageId = string;

/** What a message is to its receiver. */
export type MessageKind = "message" | "answer" | {
  failure: Failure;
};

/** The fields of a message to change; the others stay (R022). */
export type MessagePatch = {
  /** Keys of the meta to set; a null removes one. */
  meta?: Record<string, unknown>;
  /** A new text. */
  text?: string | null;
};

/** What passed between the person and the society, oldest first. */
export type Messages = {
  messages: Array<UserMessage>;
  /** The `after` of the next page; none when there is no more. */
  next?: string | null;
};

/** A dotted place inside a message's meta, such as `meta._thread` or `meta.threads.analysis`. */
export type MetaPath = string;

/** A vendor of models. */
export type ModelVendor = {
  /** Where it is, if that is the server's own machine. */
  address?: string | null;
  /** Whether somebody answers at that address just now. */
  answers?: boolean | null;
  /** The variable that its key is wanted in. */
  key?: string | null;
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
  vendors: Array<ModelVendor>;
};

/** A reference with its place in the log. */
export type NumberedArtifact = {
  /** Whose work it belongs to; none for what a person sent. */
  agent?: AgentId | null;
  /** When that was. */
  at: Timestamp;
  /** How long it is. */
  bytes: number;
  /** Which content. */
  id: ArtifactId;
  /** What kind of content it is said to be. */
  mediaType: string;
  n: number;
  /** What it is called, for people and models. Not a path. */
  name: string;
  /** The event that named it first under this name. */
  seq: Seq;
  /** For which request. */
  task?: TaskId | null;
};

export type OneOrMany = string | Array<string>;

/** A request that is under way. */
export type OpenTask = {
  id: TaskId;
  /** Of those, how many are not settled. */
  open: number;
  status: TaskStatus;
  /** Turns that were taken for it or wait to be, since the person last wrote. */
  turns: number;
};

/** Roles, agents and who is gone. */
export type Org = {
  /** All agents, those that are gone included; the oldest first. */
  agents: Array<OrgAgent>;
  /** All roles. */
  roles: Array<OrgRole>;
  /** Who went, and why. */
  terminations: Array<OrgTermination>;
};

/** An agent. */
export type OrgAgent = {
  /** Since when it exists. */
  createdAt: string;
  /** Its name. */
  id: AgentId;
  /** Who made it; none for root. */
  parentAgentId: AgentId | null;
  /** Its role. */
  roleId: RoleId;
  /** Whether it is there. */
  status: OrgStatus;
  /** When it went. */
  terminatedAt: string | null;
};

/** A role, and who made it. */
export type OrgRole = {
  /** The code that runs its agents' turns. */
  behaviour: Behaviour;
  /** When. */
  createdAt: string;
  /** An agent, or the person. */
  createdBy: AgentId;
  /** Its id. */
  id: RoleId;
  /** What its agents may do at most, where it is less than the society allows. */
  limits?: RoleLimits;
  /** The models it uses, where they are not the society's: the first, and those to turn to when it fails. */
  model?: OneOrMany;
  /** Its name, for people. */
  name: string;
  /** What its agents are told about themselves. */
  rolePrompt: string;
  /** The tools that its agents get, by name; `*` stands for any text. None for all. */
  tools?: Array<string> | null;
  /** What its agents are told where the request is in another language, by its short name such as `zh`. */
  translations?: Record<string, string>;
};

/** Whether an agent is there. */
export type OrgStatus = "active" | "terminated";

/** That an agent went. */
export type OrgTermination = {
  /** Who. */
  agentId: AgentId;
  /** Why. */
  reason: string;
  /** When. */
  terminatedAt: string;
  /** Who said so. */
  terminatedBy: AgentId;
};

/** Where a turn's task came from. */
export type Origin = "inbox" | {
  unit: EffectId;
};

/** What came of an effect. */
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
  /** Scripts to load, by the names of their files. */
  components: Array<string>;
  liveHtml: boolean;
};

/** What an argument must be. */
export type Pattern = {
  is: string;
} | {
  like: string;
} | {
  atMost: number;
};

/** What a message says. */
export type Payload = {
  /** Goes into the meta of the task that the message becomes. */
  meta?: Record<string, unknown>;
  /** The text. */
  text: string;
};

/** The terms on which a call may be made. */
export type Permit = {
  /** Whether so much is left that the reply needs no limit of its own. */
  ample?: boolean;
  /** The accounts that are nearly used up: the agent is told. */
  near?: Array<Level>;
  /** The longest that the call may take. */
  timeMs?: number | null;
};

/** Where a thread stands. */
export type Phase = string;

/** A phase that a handler or unit proposes. */
export type PhaseUpdateSuggestion = {
  /** The phase proposed. */
  phase: Phase;
};

/** Steps, in order; and for whom, how and with what result they are done, where that is known. */
export type Plan = {
  /** Its name (`plan_id`). */
  id?: string | null;
  /** What came of it, in short. */
  result?: string | null;
  /** What became of all of it: `completed` or `failed`; none while it is under way. */
  status?: StepStatus | null;
  /** All steps. */
  steps: Array<Step>;
  /** How it was made: by which strategy, and why that one. */
  strategy?: Approach | null;
};

/** Plans. */
export type Plans = {
  plans: Array<ShownPlan>;
};

/** The operator's rules, in order; the first that fits counts. */
export type Policy = {
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
  /** Why, for whoever reads it. */
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
  title: string;
  /** `urn:polis:problem:` and the code. */
  type: string;
};

/** A question to the person. */
export type Question = {
  /** How many milliseconds an answer is waited for; for ever where nothing is said. */
  patienceMs?: number | null;
  /** The question in words. */
  text: string;
  /** What an answer must be. */
  wanted?: Wanted;
};

/** A tool that only reads, by the word of the server that brings it. */
export type ReadTool = {
  /** Tells this definition of it from any other. */
  identity: string;
  /** Its name, as it is listed. */
  tool: string;
};

/** An event with its place, its time and its thread. */
export type Recorded = {
  /** When it was decided. */
  at: Timestamp;
  /** What happened. */
  event: Event;
  /** Its place in the society's log. */
  seq: Seq;
  /** The thread that it belongs to, if any. */
  thread?: ThreadId | null;
};

/** What a model said, whole. */
export type Reply = {
  /** What the vendor wants to see again, word for word, when the conversation goes on within this turn: signed reasoning and the like. Only the vendor's own adapter reads it. */
  echo?: unknown;
  /** Why it stopped. */
  finish: Finish;
  /** The model that answered, as `vendor/name`. */
  model?: string;
  /** The reasoning, if the vendor shows it. */
  reasoning?: string;
  /** The text. */
  text: string;
  /** The tools that the model wants used. */
  toolCalls?: Array<ToolCall>;
  /** What it cost. */
  usage: Usage;
};

/** Who waits for what comes of a message. */
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

/** What was answered. */
export type Resolved = {
  id: string;
};

/** What a person should know before they agree to a call: the `details` of its approval. */
export type Review = {
  /** What a yes for always would cover; none where each call is asked about. */
  always?: Matching | null;
  /** How the tool differs from the one that was used before. */
  changed?: Changed | null;
  /** The same in words. */
  covers?: string;
  /** The outside content that the agent has read, on account of which it asks. */
  outside?: Array<string>;
  /** The tools that a yes for all reading tools of the server would cover. */
  reads?: Array<string>;
};

/** What an agent is for: a name, a prompt, the code that runs it, a model. */
export type Role = {
  /** The code that runs its agents' turns. */
  behaviour: Behaviour;
  /** Its id. */
  id: RoleId;
  /** What its agents may do at most, where it is less than the society allows. */
  limits?: RoleLimits;
  /** The models it uses, where they are not the society's: the first, and those to turn to when it fails. */
  model?: OneOrMany;
  /** Its name, for people. */
  name: string;
  /** What its agents are told about themselves. */
  rolePrompt: string;
  /** The tools that its agents get, by name; `*` stands for any text. None for all. */
  tools?: Array<string> | null;
  /** What its agents are told where the request is in another language, by its short name such as `zh`. */
  translations?: Record<string, string>;
};

/** Names a role. */
export type RoleId = string;

/** What agents of a role may do at most. */
export type RoleLimits = {
  /** Children that each of them may make for itself. */
  children?: number | null;
  /** Messages of a conversation before it is compressed. */
  contextMessages?: number | null;
  /** Rounds of tool use within a turn. */
  rounds?: number | null;
};

/** The roles, by name. */
export type Roles = {
  /** The `after` of the next page; none when there is no more. */
  next?: string | null;
  roles: Array<OrgRole>;
};

/** What the policy says to a call. */
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

/** Who speaks in a thread. */
export type Sender = "bot" | "user";

/** The place of an event in its society's log; the first event is 1. */
export type Seq = number;

/** How a server stands. */
export type ServerState = "off" | "starting" | "connected" | "down";

/** A thread's settings, in the documents' shape. */
export type Settings = {
  /** The phase to apply before the next task, if one was suggested. */
  _phaseUpdateSuggestion?: PhaseUpdateSuggestion | null;
  /** Holds the phase. */
  briefStatus: BriefStatus;
};

/** How a turn ended. */
export type Settlement = "done" | {
  failed: Failure;
} | {
  cancelled: Failure;
};

/** What of a thread the model is shown. */
export type Shown = {
  /** The compression that holds; none when everything is shown. */
  compression?: Seq | null;
  /** How many attempts to compress came to nothing since. */
  failed: number;
};

/** A plan, and whose it is. */
export type ShownPlan = {
  agentId: AgentId;
  /** Its name (`plan_id`). */
  id?: string | null;
  /** Whether its request is under way. */
  isOpen: boolean;
  /** What came of it, in short. */
  result?: string | null;
  /** What became of all of it: `completed` or `failed`; none while it is under way. */
  status?: StepStatus | null;
  /** All steps. */
  steps: Array<Step>;
  /** How it was made: by which strategy, and why that one. */
  strategy?: Approach | null;
  taskId: TaskId;
  thread: ThreadId;
  updatedAt: Timestamp;
};

/** The societies of the store, by name. */
export type Societies = {
  /** The `after` of the next page; none when there is no more. */
  next?: string | null;
  societies: Array<Society>;
};

export type Society = {
  /** How many events its log has. */
  events: Seq;
  /** Whether it is the one that is meant where none is named. */
  first: boolean;
  /** The last event that both share. */
  forkedAt?: Seq | null;
  /** The society whose events it has from before it was forked. */
  forkedFrom?: SocietyId | null;
  name: SocietyId;
  /** Whether it is at work here; else it begins to with the next request. */
  works: boolean;
};

/** Names a society: all agents, threads and budgets behind one log. */
export type SocietyId = string;

/** Where a result stands in the log. */
export type Source = {
  /** The call that brought it. */
  effect: EffectId;
  /** The place of the result. */
  seq: Seq;
  /** The thread that it stands under. */
  thread: ThreadId;
};

/** One account. Of requests only those that are not answered yet have one; what an answered one cost stands in its answer. */
export type Spending = {
  granted: Spent;
  /** How full it is wherever it has a limit. */
  levels: Array<Level>;
  reserved: Spent;
  scope: Scope;
  spent: Spent;
};

/** An amount of everything that can be counted. */
export type Spent = {
  /** Billionths of a US dollar. */
  costNanos: number;
  /** Requests to a vendor, failed ones included. */
  requests: number;
  /** Milliseconds of waiting for models. */
  timeMs: number;
  /** Tokens, in and out. */
  tokens: number;
};

/** One step. */
export type Step = {
  /** Its name within the plan (`task_id`); where it has none, its number is. */
  id?: string | null;
  /** What came of it, in short. */
  result?: string | null;
  /** How far it is. */
  status: StepStatus;
  /** Who does it, where that is another agent. */
  target?: string | null;
  /** What is to be done. */
  text: string;
};

/** How far a step is. */
export type StepStatus = "pending" | "in_progress" | "completed" | "failed" | "skipped";

/** What somebody in a workflow does just now, with its address. */
export type StreamedStep = {
  /** What it is seen doing, such as `planning` or `calling_tool`. */
  action: string;
  /** Who, such as `planner`. */
  agentType: string;
  /** What the component grows by. */
  chunk?: ComponentChunk | null;
  /** The component that is being written, such as `planner-response`, or the tool that is called; none when nothing is. */
  component?: string | null;
  /** How long the step took, when it is over. */
  durationMs?: number | null;
  /** Its address. */
  path: SubThreadPath;
  /** The request that it is done for. */
  task: TaskId;
  /** The thread that it happens in. */
  thread: ThreadId;
  /** The todo that it is about, if it is about one. */
  todo?: string | null;
  /** What the step used, when a model's reply is whole. */
  usage?: Usage | null;
};

/** Where a sub-thread lies below a main thread, such as `messages[3].meta._thread`. */
export type SubThreadPath = string;

/** What an agent is asked to do (R012-R014). The host utilities of the documents are the turn that it comes with. */
export type Task = {
  /** How many messages from agent to agent led to it; none when the person asked. Whatever a handler says here is overruled. */
  hops?: number;
  /** The person's request that this belongs to. */
  id: TaskId;
  /** The text. */
  message: string;
  /** Whatever the next handler needs to know. */
  meta?: Record<string, unknown>;
  /** A name for people; what happens is decided by the phase, never by it (R050). */
  name: string;
  /** Whether the text stays out of the thread. */
  skipUserMessage?: boolean;
  /** Said by somebody, or arranged by an agent. */
  type: TaskType;
};

/** Names what a person asked for; everything done for it carries this. */
export type TaskId = string;

/** A request. */
export type TaskState = {
  /** The text that ended it. */
  answer?: string | null;
  /** The agent that is busy with another request, where that one waits for somebody to act: this one comes after it. */
  behind?: AgentId | null;
  failure?: Failure | null;
  id: TaskId;
  /** The plans that agents keep for it. */
  plans?: Array<ShownPlan>;
  status: TaskStatus;
};

/** Where a request stands. */
export type TaskStatus = "done" | "failed" | "cancelled" | "running" | "waiting" | "needs_person";

/** Where a task comes from. */
export type TaskType = "message" | "action";

/** What is under way. */
export type Tasks = {
  /** The `after` of the next page; none when there is no more. */
  next?: string | null;
  tasks: Array<OpenTask>;
};

/** Whether the agent is gone already; else it goes when it has done what waits for it (R181). */
export type Terminated = {
  ok: boolean;
  terminatedAgentId: AgentId;
};

/** One whole conversation: messages, settings and meta. */
export type Thread = {
  /** Its name. */
  id: ThreadId;
  /** What was said, oldest first. */
  messages: Array<Message>;
  /** Free data about the thread. */
  meta?: Record<string, unknown>;
  /** Phase, suggestion, and whatever the agent keeps here. */
  settings: Settings;
};

/** Names a thread. An agent's main thread has the agent's own name. */
export type ThreadId = string;

/** Conversations by name, and how many there are. */
export type Threads = {
  count: number;
  /** The `after` of the next page; none when there is no more. */
  next?: string | null;
  threads: Array<ListedThread>;
};

/** Milliseconds since 1970, as the clock port tells them. */
export type Timestamp = number;

export type Tool = {
  description: string;
  /** What repeating a call would mean. */
  effect: EffectClass;
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
  /** JSON text. */
  arguments: string;
  /** The model's name for the call. */
  id: string;
  /** The tool's name. */
  name: string;
};

/** The tools that a model was shown. */
export type ToolList = {
  /** Tells this list from any other: names, descriptions, schemas and effects. */
  digest: Digest;
  /** The names, in order; left out where the log has named them before. */
  names?: Array<string>;
};

export type ToolServer = {
  detail: string;
  name: string;
  reach: string;
  state: ServerState;
  /** How many tools it brings. */
  tools: number;
  trusted: boolean;
};

/** Which tools can be called. */
export type Tools = {
  /** The `after` of the next page; none when there is no more. */
  next?: string | null;
  servers: Array<ToolServer>;
  tools: Array<Tool>;
};

/** One durable run of a handler: the place of the event that started it. */
export type TurnId = Seq;

/** Tokens of one model call. */
export type Usage = {
  /** Of the input, how many the vendor put into its cache for the next time. */
  cacheWriteTokens?: number;
  /** Of the input, how many the vendor had cached. */
  cachedTokens: number;
  /** The price in billionths of a US dollar; nothing where the price is not known. */
  costNanos?: number;
  /** Tokens in the request, cached ones included. */
  inputTokens: number;
  /** Tokens in the reply, reasoning included. */
  outputTokens: number;
  /** Of the output, how many were reasoning. */
  reasoningTokens: number;
};

/** What was spent on models. */
export type UsageReport = {
  accounts: Array<Spending>;
  budgets: Budgets;
};

/** A message from or to the person. */
export type UserMessage = {
  at: Timestamp;
  failure?: Failure | null;
  from: AgentId;
  kind: Kind;
  messageId: MessageId;
  payload: Payload;
  seq: Seq;
  taskId: TaskId;
  to: AgentId;
};

/** What a person says to an approval. */
export type Verdict = {
  /** For a call: whom not to ask again about calls like this one. */
  always?: Always | null;
  /** What the person answers, where a yes is not enough: a text, or an object. */
  answer?: unknown;
  /** Whether it may happen. */
  approved: boolean;
  /** For a call: other arguments than it was to have, as JSON text. */
  arguments?: string | null;
  /** Why, for the model to read. */
  reason?: string;
  /** With `always`: which calls are meant; what the approval proposes where nothing is said. */
  where?: Matching | null;
};

/** What runs here. */
export type Version = {
  name: string;
  version: string;
};

/** What an answer must be. */
export type Wanted = "agreement" | {
  text: {
    /** If there are any, the answer is one of these. */
    options?: Array<string>;
  };
} | {
  form: {
    /** The schema, as JSON schema. */
    schema: unknown;
  };
} | {
  visit: {
    /** The address. */
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
  /** The society's card, for agents of others. */
  "GET /.well-known/agent-card.json": {
    query: undefined;
    body: undefined;
    answer: undefined;
  };
  /** The society as an A2A agent; what a method does needs the scope of the route that does it. */
  "POST /a2a": {
    query: undefined;
    body: undefined;
    answer: undefined;
  };
  /** What an agent can do. */
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
  /** What there is on a thread, and what comes, as server-sent events. */
  "POST /agui/{agent}/connect": {
    query: undefined;
    body: undefined;
    answer: undefined;
  };
  /** What a person did with a component: a word to its agent, or the answer to what waits. */
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
  /** Who is there, and what each is at. */
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
  /** Has an agent compress its conversation, or undoes that. */
  "POST /api/agents/{id}/compress": {
    query: undefined;
    body: {
      /** Whether the last compression is undone instead. */
      undo?: boolean;
    };
    answer: Compressing;
  };
  /** Has an agent do one of its operations. */
  "POST /api/agents/{id}/operate": {
    query: undefined;
    body: {
      /** The language in which it is said, such as `zh`, where the operation knows it. */
      language?: string;
      /** Its name, as the agent lists it. */
      operation: string;
      /** The request that it belongs to; a new one if not given. */
      taskId?: string | null;
    };
    answer: Accepted;
  };
  /** Sends an agent away. */
  "POST /api/agents/{id}/terminate": {
    query: undefined;
    body: {
      /** What becomes of its children. */
      children?: "cascade" | "detach" | "refuse";
      /** Whether it goes with its work undone. */
      now?: boolean;
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
  /** Says a word on what waits. */
  "POST /api/approvals/{id}": {
    query: undefined;
    body: {
      /** For a call: do not ask again about calls like this one by this `agent`, for this `task`, or by anybody (`tool`); or about any tool of the same server that only `reads` by its word. */
      always?: "agent" | "task" | "tool" | "reads" | null;
      /** For a question: the words, or the object. */
      answer?: unknown;
      approved?: boolean | null;
      /** For a call: other arguments, as an object or as JSON text. For the plan of a workflow: an object with other `todos`, each with `id`, `description` and `priority`; `change` of what waits says it as a schema. What has another form is refused with every fault and its place, and nothing changes. */
      arguments?: unknown;
      outcome?: string | null;
      reason?: string;
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
  /** What is kept outside the log. */
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
  /** Keeps a content. */
  "POST /api/artifacts": {
    query: {
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
  /** What was set aside because it broke agents down. */
  "GET /api/dead-letters": {
    query: undefined;
    body: undefined;
    answer: DeadLetters;
  };
  /** Everything that happens, as server-sent events: the log after a place, then live. */
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
  /** Begins a society with the past of this one. */
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
  /** Whether the society is well. */
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
  /** What passed between the person and the society about a request. */
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
  /** Which models can be asked. */
  "GET /api/models": {
    query: undefined;
    body: undefined;
    answer: Models;
  };
  /** The organisation as one document. */
  "GET /api/org": {
    query: undefined;
    body: undefined;
    answer: Org;
  };
  /** Makes the roles and agents of a document that are not there yet. */
  "POST /api/org": {
    query: {
      /** Whether root's role becomes what the document says. */
      root?: boolean;
    };
    body: {
      /** All agents, those that are gone included; the oldest first. */
      agents: Array<{
        /** Since when it exists. */
        createdAt?: string;
        /** Its name. */
        id: string;
        /** Who made it; none for root. */
        parentAgentId?: string | null;
        /** Its role. */
        roleId: string;
        /** Whether it is there. */
        status: "active" | "terminated";
        /** When it went. */
        terminatedAt?: string | null;
      }>;
      /** All roles. */
      roles: Array<{
        /** The code that runs its agents' turns. */
        behaviour: string;
        /** When. */
        createdAt?: string;
        /** An agent, or the person. */
        createdBy?: string;
        /** Its id. */
        id: string;
        /** What its agents may do at most, where it is less than the society allows. */
        limits?: {
          /** Children that each of them may make for itself. */
          children?: number | null;
          /** Messages of a conversation before it is compressed. */
          contextMessages?: number | null;
          /** Rounds of tool use within a turn. */
          rounds?: number | null;
        };
        /** The models it uses, where they are not the society's: the first, and those to turn to when it fails. */
        model?: string | Array<string>;
        /** Its name, for people. */
        name: string;
        /** What its agents are told about themselves. */
        rolePrompt: string;
        /** The tools that its agents get, by name; `*` stands for any text. None for all. */
        tools?: Array<string> | null;
        /** What its agents are told where the request is in another language, by its short name such as `zh`. */
        translations?: Record<string, string>;
      }>;
      /** Who went, and why. */
      terminations?: Array<{
        /** Who. */
        agentId: string;
        /** Why. */
        reason?: string;
        /** When. */
        terminatedAt?: string;
        /** Who said so. */
        terminatedBy: string;
      }>;
    };
    answer: Imported;
  };
  /** What the page has to know before it shows anything. */
  "GET /api/page": {
    query: undefined;
    body: undefined;
    answer: PageAdditions;
  };
  /** The plans that agents keep. */
  "GET /api/plans": {
    query: {
      /** Names what a person asked for; everything done for it carries this. */
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
  /** Has the society go on from an event, and keeps what it was under another name. */
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
  /** Says something to an agent, within a request or as a new one. */
  "POST /api/send": {
    query: undefined;
    body: {
      /** Names an agent; `user` is the person's endpoint, `root` the entry point. */
      agentId: string;
      /** Contents that were kept before. */
      artifacts?: Array<{
        /** Known better here. */
        bytes?: number | null;
        id: string;
        mediaType?: string | null;
        name?: string | null;
      }>;
      /** When to ask about the plans of a new request before they are carried out; at least as often as the server was told to. */
      planApproval?: "never" | "ask" | "always" | null;
      /** The request that it belongs to; a new one if not given. */
      taskId?: string | null;
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
  /** Begins a society and has it work, unless it is there. */
  "POST /api/societies": {
    query: undefined;
    body: {
      /** What to call it. */
      name: string;
    };
    answer: BegunSociety;
  };
  /** Gives root a new request. */
  "POST /api/submit": {
    query: undefined;
    body: {
      /** Contents that were kept before. */
      artifacts?: Array<{
        /** Known better here. */
        bytes?: number | null;
        id: string;
        mediaType?: string | null;
        name?: string | null;
      }>;
      /** When to ask about its plans before they are carried out; at least as often as the server was told to. */
      planApproval?: "never" | "ask" | "always" | null;
      /** How to go about it; root's own choice when not given. */
      strategy?: "auto" | "simple" | "template" | "workflow" | null;
      /** What is wanted. */
      text: string;
    };
    answer: Accepted;
  };
  /** The requests that are under way. */
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
  /** Where a request stands. */
  "GET /api/tasks/{id}": {
    query: undefined;
    body: undefined;
    answer: TaskState;
  };
  /** Calls a request off. */
  "POST /api/tasks/{id}/cancel": {
    query: undefined;
    body: {
      reason?: string;
      /** Only this turn and what it started; the request itself goes on. */
      turn?: number | null;
    };
    answer: Cancelled;
  };
  /** Does a request again that has ended. */
  "POST /api/tasks/{id}/retry": {
    query: undefined;
    body: Record<string, never>;
    answer: Accepted;
  };
  /** Which conversations there are. */
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
      /** Where the sub-thread lies, from the thread named in the address. */
      path?: string;
      /** Whether everything below it is wanted too. */
      tree?: boolean;
    };
    body: undefined;
    answer: Thread;
  };
  /** Which tools can be called, and how their servers stand. */
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
  /** What runs here. */
  "GET /api/version": {
    query: undefined;
    body: undefined;
    answer: Version;
  };
  /** A script of the operator's that adds components to the page. */
  "GET /components/{name}": {
    query: undefined;
    body: undefined;
    answer: undefined;
  };
  /** This contract, to read. */
  "GET /docs": {
    query: undefined;
    body: undefined;
    answer: undefined;
  };
  /** The society as an MCP server; what a tool does needs the scope of the route that does it. */
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
  /** A frame for documents of models with their scripts, where the operator allows it. */
  "GET /sandbox/live": {
    query: undefined;
    body: undefined;
    answer: undefined;
  };
  /** A frame for documents of models, whose scripts do not run. */
  "GET /sandbox/static": {
    query: undefined;
    body: undefined;
    answer: undefined;
  };
  /** Says something to a model that is an agent. */
  "POST /v1/chat/completions": {
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
  /** The same, as a response that can be gone on with by its id. */
  "POST /v1/responses": {
    query: undefined;
    body: undefined;
    answer: undefined;
  };
  /** A response as it stands. */
  "GET /v1/responses/{id}": {
    query: undefined;
    body: undefined;
    answer: undefined;
  };
  /** Calls off what a response is about. */
  "POST /v1/responses/{id}/cancel": {
    query: undefined;
    body: undefined;
    answer: undefined;
  };
}
