// Written by scripts/types.mjs.

/**
 * A point in time: milliseconds since 1970-01-01 UTC.
 */
export type Timestamp = number
/**
 * Names one session for ever.
 */
export type SessionId = string
/**
 * Why an answer had no effect. Whichever it is, nothing changed.
 */
export type AnswerError =
  | {
      type: 'alreadyAnswered'
      /**
       * The ask.
       */
      ask: AskId
      /**
       * Who answered it.
       */
      by: AnsweredBy
    }
  | {
      type: 'closed'
      /**
       * The ask.
       */
      ask: AskId
      /**
       * Why.
       */
      cause: AskCloseCause
    }
  | {
      type: 'unknown'
      /**
       * What was named.
       */
      ask: AskId
    }
  | {
      type: 'kindMismatch'
      /**
       * What it waits for.
       */
      expected: string
      /**
       * What was given.
       */
      given: string
    }
  | {
      type: 'incomplete'
      /**
       * The question's id.
       */
      question: string
      /**
       * What is wrong with its reply.
       */
      what: string
    }
  | {
      type: 'nothingShown'
    }
/**
 * Names one ask for ever: its session, and the number of its event.
 */
export type AskId = string
/**
 * Who gave an answer.
 */
export type AnsweredBy =
  | (Who & {
      type: 'client'
    })
  | {
      type: 'setting'
      /**
       * The setting.
       */
      asks: AsksMode
    }
/**
 * Who answers a session's asks: a property of the session, given when it opens.
 */
export type AsksMode = 'wait' | 'deny' | 'approve'
/**
 * Why an ask closed without an answer.
 */
export type AskCloseCause =
  'interrupted' | 'sessionClosed' | 'callEnded' | 'turnEnded' | 'shutdown' | 'restart' | 'panicked'
/**
 * News of all sessions: a stream's frame, by its SSE `event` field.
 */
export type SessionNews =
  | {
      event: 'session'
      data: SessionSummary
    }
  | {
      event: 'deleted'
      data: SessionId
    }
/**
 * What a session is doing. Computed from its state, never stored.
 *
 * The numbers and the words are stable: clients in other languages rely on them.
 */
export type SessionStatus = 'idle' | 'running' | 'interrupted' | 'paused'
/**
 * Names one turn within its session, counted from 1.
 */
export type TurnId = number
/**
 * How a turn ended.
 */
export type Outcome = 'done' | 'failed' | 'panicked' | 'interrupted' | 'limit'
/**
 * Why a turn was cut.
 */
export type CutCause =
  | {
      type: 'user'
      /**
       * Who.
       */
      by: Who
    }
  | {
      type: 'close'
      /**
       * Who.
       */
      by: Who
    }
  | {
      type: 'shutdown'
    }
  | {
      type: 'restart'
    }
  | {
      type: 'panic'
    }
/**
 * How a run ended.
 */
export type RunEnd = 'done' | 'interrupted' | 'closed'
/**
 * Names one tool call within its session. Drawn from the same counter as [`ItemId`], for a call's
 * output is the item of the same number.
 */
export type CallId = number
/**
 * Where an ask comes from.
 */
export type AskOrigin = 'policy' | 'tool'
/**
 * What is asked: a pause or a question.
 */
export type AskRequest =
  | (PauseRequest & {
      type: 'pause'
    })
  | (QuestionRequest & {
      type: 'question'
    })
/**
 * What kind of answer a pause waits for.
 */
export type PauseKind = 'continue' | 'confirm'
/**
 * Whether a session is held.
 */
export type Hold =
  | {
      state: 'off'
    }
  | {
      state: 'requested'
      /**
       * Why it will.
       */
      cause: HoldCause
      /**
       * Since when.
       */
      since: Timestamp
    }
  | {
      state: 'standing'
      /**
       * Why it stands.
       */
      cause: HoldCause
      /**
       * Since when.
       */
      since: Timestamp
    }
/**
 * Why a hold stands, or will.
 */
export type HoldCause =
  | {
      type: 'user'
      /**
       * Who.
       */
      by: Who
    }
  | {
      type: 'restored'
    }
  | (
      | {
          type: 'limit'
          limit: 'iterations'
          /**
           * How many it was granted.
           */
          count: number
        }
      | {
          type: 'limit'
          limit: 'tokens'
          /**
           * How many it was granted.
           */
          count: number
        }
      | {
          type: 'limit'
          limit: 'time'
          /**
           * How many milliseconds it was granted.
           */
          ms: number
        }
      | {
          type: 'limit'
          limit: 'failures'
          /**
           * How many.
           */
          count: number
        }
    )
/**
 * The gaps of a session, in order: at most 64.
 */
export type Gaps = Gap[]
/**
 * What is allowed unasked.
 */
export type PolicyMode = 'ask' | 'edits' | 'all' | 'readonly'
/**
 * Names one accepted prompt within its session, counted from 1.
 */
export type PromptId = number
/**
 * Where in a run a hold stands.
 */
export type HoldAt = 'iteration' | 'step'
/**
 * Names one task within its session, counted from 1.
 */
export type TaskId = number
/**
 * How far a task is.
 */
export type TaskState = 'todo' | 'doing' | 'done' | 'dropped'
/**
 * One event of a session's stream, by its SSE `event` field; with an SSE `id` only where it is a session's event.
 */
export type StreamFrame =
  | {
      event: 'snapshot'
      data: Snapshot
    }
  | {
      event: 'message'
      data: Event
    }
  | {
      event: 'live'
    }
  | {
      event: 'end'
      data: ClientEnd
    }
/**
 * What an [`Event`](super::Event) says.
 */
export type Body = Fact | Delta
/**
 * An event that is logged.
 */
export type Fact =
  | {
      type: 'sessionOpened'
      /**
       * With what settings.
       */
      settings: SessionSettings
    }
  | {
      type: 'sessionRestored'
      /**
       * What had ended it.
       */
      cause: RestoreCause
    }
  | {
      type: 'sessionClosed'
      /**
       * Who closed it.
       */
      by: Who
    }
  | {
      type: 'sessionRenamed'
      /**
       * The name.
       */
      name: string
      /**
       * Who gave it.
       */
      by: Who
    }
  | {
      type: 'modelChanged'
      /**
       * The model, as `provider/name`.
       */
      model: string
      /**
       * Who gave it.
       */
      by: Who
    }
  | {
      type: 'debugChanged'
      /**
       * Whether it is.
       */
      enabled: boolean
      /**
       * Who wants it.
       */
      by: Who
    }
  | {
      type: 'promptAccepted'
      /**
       * Its name.
       */
      prompt: PromptId
      /**
       * Its words. Shared with the snapshots that show it waiting.
       */
      text: string
      /**
       * Whose it is.
       */
      by: Who
    }
  | {
      type: 'promptReturned'
      /**
       * Its name.
       */
      prompt: PromptId
      /**
       * Its words, so that nothing typed is lost.
       */
      text: string
    }
  | {
      type: 'promptDelivered'
      /**
       * Its name.
       */
      prompt: PromptId
      /**
       * The iteration it was given to.
       */
      iteration: number
    }
  | {
      type: 'runStarted'
      /**
       * With what.
       */
      run: RunSettings
      /**
       * Who began it.
       */
      by: Who
    }
  | {
      type: 'iterationStarted'
      /**
       * The turn.
       */
      turn: TurnId
      /**
       * Which iteration, counted from 1.
       */
      iteration: number
      /**
       * A restart had cut it: it goes on, with all that was said in it.
       */
      resumed?: boolean
    }
  | {
      type: 'runWaiting'
      /**
       * When.
       */
      until: Timestamp
    }
  | {
      type: 'runExtended'
      /**
       * What it may take from now on.
       */
      limits: RunLimits
    }
  | {
      type: 'runFinished'
      /**
       * How.
       */
      end: RunEnd
      /**
       * How far it was.
       */
      progress: RunProgress
      /**
       * Who interrupted it between two iterations. In an iteration, its turn was cut, and tells it.
       */
      by?: Who | null
    }
  | {
      type: 'taskAdded'
      /**
       * Its name.
       */
      task: TaskId
      /**
       * What is to be done.
       */
      title: string
    }
  | {
      type: 'taskMoved'
      /**
       * The task.
       */
      task: TaskId
      /**
       * How far it is now.
       */
      to: TaskState
    }
  | {
      type: 'noteTaken'
      /**
       * The note.
       */
      note: Note
    }
  | {
      type: 'turnStarted'
      /**
       * The turn.
       */
      turn: TurnId
      /**
       * The prompt it works on.
       */
      prompt: PromptId
    }
  | {
      type: 'stepStarted'
    }
  | (AssistantMessage & {
      type: 'assistantMessage'
    })
  | {
      type: 'toolStarted'
      /**
       * The call.
       */
      call: CallId
    }
  | (ToolResult & {
      type: 'toolFinished'
    })
  | {
      type: 'projectCut'
      /**
       * How much is missing, and why: one line.
       */
      reason: string
    }
  | (HistoryCut & {
      type: 'historyCut'
    })
  | {
      type: 'filesChanged'
      /**
       * Their paths, relative to the workspace.
       */
      paths: string[]
    }
  | {
      type: 'jobStarted'
      /**
       * Which, and what it runs.
       */
      job: Job
    }
  | {
      type: 'jobEnded'
      /**
       * The call that had started it.
       */
      job: CallId
      /**
       * How.
       */
      end: JobEnd
    }
  | {
      type: 'stepFinished'
      /**
       * What it used.
       */
      usage: Usage
      /**
       * How full the model's context is.
       */
      context?: ContextFill | null
      /**
       * The provider refused its request, and no omission helped: the user's words since the last answer are left out
       * of later ones.
       */
      refused?: boolean
      /**
       * The provider refused its request, and the conversation is sent again without this.
       */
      omitted?: Omission | null
    }
  | {
      type: 'askRaised'
      /**
       * What a client needs to show it.
       */
      ask: Ask
    }
  | {
      type: 'askAnswered'
      /**
       * The ask.
       */
      ask: AskId
      /**
       * The answer.
       */
      answer: Answer
      /**
       * Whose it was.
       */
      by: AnsweredBy
    }
  | {
      type: 'askClosed'
      /**
       * The ask.
       */
      ask: AskId
      /**
       * Why.
       */
      cause: AskCloseCause
    }
  | {
      type: 'holdChanged'
      /**
       * What it is now.
       */
      hold: Hold
    }
  | {
      type: 'turnCut'
      /**
       * Why.
       */
      cause: CutCause
    }
  | {
      type: 'turnFinished'
      /**
       * How.
       */
      outcome: Outcome
      /**
       * What went wrong, in words, where something did.
       */
      error?: string | null
      /**
       * Why it was cut, if it was.
       */
      cause?: CutCause | null
      /**
       * What the cut found and ended, if it was cut.
       */
      receipt?: Receipt | null
      /**
       * What the whole turn used.
       */
      usage: Usage
    }
/**
 * What had ended a session's actor before the session was rebuilt from its log.
 */
export type RestoreCause = 'restart' | 'panic' | 'unloaded'
/**
 * Names one item within its session: a block of text, of thought, or a tool call's output.
 */
export type ItemId = number
/**
 * What a block of an answer is.
 */
export type BlockKind = 'text' | 'thought'
/**
 * How a tool call ended.
 */
export type ToolStatus = 'ok' | 'error' | 'denied' | 'interrupted' | 'panicked'
/**
 * A limit of the conversation that a model is sent.
 */
export type HistoryLimit = 'lines' | 'tokens' | 'window'
/**
 * How a background job ended.
 */
export type JobEnd =
  | {
      type: 'exited'
      /**
       * The code.
       */
      code: number
    }
  | {
      type: 'signalled'
      /**
       * Its number.
       */
      signal: number
    }
  | {
      type: 'stopped'
    }
  | {
      type: 'timedOut'
    }
  | {
      type: 'interrupted'
    }
  | {
      type: 'sessionClosed'
    }
  | {
      type: 'shutdown'
    }
  | {
      type: 'lost'
    }
/**
 * A part that is left out of a conversation which a provider has refused.
 */
export type Omitted = 'calls' | 'thoughts' | 'results' | 'history'
/**
 * What a client answers to an ask.
 */
export type Answer =
  | {
      type: 'resume'
    }
  | {
      type: 'approve'
      /**
       * Also approve the same thing for as long as this session lives.
       */
      always?: boolean
    }
  | {
      type: 'deny'
      /**
       * Why; the model reads it in the same step.
       */
      reason?: string | null
    }
  | {
      type: 'reply'
      /**
       * One reply for each question; the reply to one that is skipped has no answer.
       */
      answers: QuestionReply[]
    }
  | {
      type: 'cancel'
    }
/**
 * How a tool call stopped.
 */
export type StopHow = 'returned' | 'left' | 'lost'
/**
 * An event that is not logged.
 */
export type Delta =
  | {
      type: 'text'
      /**
       * The item it adds to.
       */
      item: ItemId
      /**
       * At most 4 KiB; at an attach up to 68 KiB, where pieces that are no longer buffered are joined.
       */
      text: string
    }
  | {
      type: 'thought'
      /**
       * The item it adds to.
       */
      item: ItemId
      /**
       * At most 4 KiB; at an attach up to 68 KiB, where pieces that are no longer buffered are joined.
       */
      text: string
    }
  | {
      type: 'output'
      /**
       * The item it adds to: the call's.
       */
      item: ItemId
      /**
       * At most 32 KiB.
       */
      text: string
    }
  | {
      type: 'status'
      /**
       * To this.
       */
      status: SessionStatus
    }
  | {
      type: 'itemSoFar'
      /**
       * The item.
       */
      item: ItemId
      /**
       * What it is.
       */
      kind: ItemKind
      /**
       * Its text so far: for text and thoughts in the head, for output head and tail.
       */
      soFar: Kept
    }
  | {
      type: 'retrying'
      /**
       * Which try is next, counted from 1.
       */
      try: number
      /**
       * How many there are at most.
       */
      tries: number
      /**
       * Milliseconds until then.
       */
      waitMs: number
      /**
       * Why the last one failed.
       */
      reason: string
    }
  | {
      type: 'gap'
      /**
       * The first missing number.
       */
      from: number
      /**
       * The last missing number.
       */
      to: number
    }
  | {
      type: 'notSaved'
      /**
       * Why.
       */
      reason: string
    }
  | {
      type: 'savedAgain'
    }
/**
 * What an item is.
 */
export type ItemKind = 'text' | 'thought' | 'output'
/**
 * Why a client's stream ended.
 */
export type ClientEnd =
  | {
      reason: 'detached'
    }
  | {
      reason: 'lagged'
      /**
       * The last event it was sent.
       */
      after: number
    }
  | {
      reason: 'ended'
    }
  | {
      reason: 'stopped'
    }
  | {
      reason: 'disconnected'
      /**
       * The last event that came.
       */
      after: number
    }
/**
 * The names of tool calls in requests.
 */
export type ToolIds = 'provider' | 'own'
/**
 * The field that the most tokens of an answer are sent in.
 */
export type MaxTokensField = 'max_tokens' | 'max_completion_tokens'
/**
 * The three states of a [`Hold`], as a client shows them and sends them back with a toggle.
 */
export type HoldShown = 'off' | 'requested' | 'standing'

/**
 * The daemon itself. Read by programs of all versions: what a daemon leaves out is taken as nothing.
 */
export interface DaemonStatus {
  /**
   * The program's version.
   */
  version: string
  /**
   * The version of what is said over its socket: [`API_VERSION`].
   */
  api: number
  /**
   * Its process id.
   */
  pid: number
  /**
   * The socket it listens on; empty if all of its sockets were removed.
   */
  socket: string
  /**
   * The folder it keeps sessions in.
   */
  data: string
  /**
   * Since when it runs.
   */
  since: Timestamp
  /**
   * Seconds without work and clients after which it stops.
   */
  idleStopS?: number | null
  /**
   * What it goes by of the configuration, by key: `limits`, `log`, `notify`, `web`. It has read it when it started.
   */
  config: {
    [k: string]: unknown
  }
  /**
   * Its log.
   */
  log?: string | null
  /**
   * Lines that were left out of it, because more came than could be written.
   */
  logLinesLost: number
  /**
   * Sessions, counted.
   */
  sessions: SessionCounts & {
    [k: string]: unknown
  }
  /**
   * Connections that are open.
   */
  connections: number
  /**
   * Clients that are attached to sessions.
   */
  clients: number
  /**
   * Prompts that wait for their turn, over all sessions.
   */
  queuedPrompts: number
  /**
   * Everything is saved.
   */
  saved: boolean
  /**
   * The browsers that run for sessions.
   */
  browsers?: BrowserStatus[]
  /**
   * What was found damaged and kept aside, in words.
   */
  damaged?: string[]
}
/**
 * Sessions, counted by what they do.
 */
export interface SessionCounts {
  /**
   * Live ones.
   */
  live: number
  /**
   * Of these, with a turn, a run or a background job: running, being interrupted, or paused, or with a job only.
   */
  busy: number
  /**
   * Of these, running.
   */
  running: number
  /**
   * Of these, paused by an ask.
   */
  waiting: number
  /**
   * Of these, held.
   */
  held: number
  /**
   * How many may be live.
   */
  most: number
}
/**
 * A browser that runs for a session.
 */
export interface BrowserStatus {
  /**
   * The session.
   */
  session: SessionId
  /**
   * Its process id.
   */
  pid: number
  /**
   * Where it listens for developer tools, on this machine alone and for whoever is on it: `127.0.0.1:PORT`.
   */
  debugging: string
  /**
   * It has a window.
   */
  visible: boolean
  /**
   * Its own sandbox is on.
   */
  sandbox: boolean
}
/**
 * What went wrong.
 */
export interface ErrorBody {
  /**
   * Which error it is: a stable word.
   */
  code: string
  /**
   * What is wrong, for people.
   */
  message: string
  /**
   * What to do about it, for people.
   */
  hint?: string | null
  /**
   * Why an answer had no effect, if it was one.
   */
  answer?: AnswerError | null
  /**
   * `ambiguous`: the sessions that may be meant. `notLive`, `gone`: the session.
   */
  ids?: SessionId[]
}
/**
 * A client as others see it: its name and, where it has one of its own, its process.
 */
export interface Who {
  /**
   * What the client calls itself, for example `run` or `tui`.
   */
  name: string
  /**
   * Its process id.
   */
  pid?: number | null
}
/**
 * A session's line in a list.
 */
export interface SessionSummary {
  /**
   * The session.
   */
  id: SessionId
  /**
   * Its name.
   */
  name: string
  /**
   * The first line of its first prompt until it is renamed; without either, its name.
   */
  title: string
  /**
   * The last line that its model has said.
   */
  lastLine?: string | null
  /**
   * It has an actor now.
   */
  live: boolean
  /**
   * What it is doing.
   */
  status: SessionStatus
  /**
   * Since when.
   */
  since: Timestamp
  /**
   * How its last turn ended.
   */
  lastTurn: LastTurn | null
  /**
   * How its last run ended.
   */
  lastRun?: LastRun | null
  /**
   * Its first open ask.
   */
  waitsFor: Ask | null
  /**
   * How many of its asks are open.
   */
  asks: number
  /**
   * Whether it is held.
   */
  hold: Hold
  /**
   * How far its run is.
   */
  run?: RunProgress | null
  /**
   * Its tasks, counted.
   */
  tasks?: TaskCounts
  /**
   * Its model.
   */
  model: string
  /**
   * Its folder.
   */
  workspace: string
  /**
   * Which of its events can't be read.
   */
  gaps?: Gaps
}
/**
 * How a session's last turn ended.
 */
export interface LastTurn {
  /**
   * The turn.
   */
  turn: TurnId
  /**
   * How it ended.
   */
  outcome: Outcome
  /**
   * Why it was cut, if it was.
   */
  cause?: CutCause | null
  /**
   * What went wrong, where something did.
   */
  error?: string | null
}
/**
 * How a session's last run ended.
 */
export interface LastRun {
  /**
   * How.
   */
  end: RunEnd
  /**
   * The session's last turn when it ended; one that came later is none of its own.
   */
  turn?: TurnId | null
  /**
   * How far it was.
   */
  progress: RunProgress
}
/**
 * How far a run is.
 */
export interface RunProgress {
  /**
   * The iteration it is in, or was in last, counted from 1; 0 before the first.
   */
  iteration: number
  /**
   * Tokens used.
   */
  tokens: number
  /**
   * Milliseconds of work until `workingSince`: without the time it was held or asked.
   */
  workedMs: number
  /**
   * Since when it works; nothing while it is held or asks.
   */
  workingSince?: Timestamp | null
}
/**
 * An open ask: what a client needs to show it and to answer it.
 */
export interface Ask {
  /**
   * Names it for ever.
   */
  id: AskId
  /**
   * The tool call it belongs to.
   */
  call: CallId
  /**
   * Where it comes from.
   */
  origin: AskOrigin
  /**
   * Since when it is open.
   */
  since: Timestamp
  /**
   * What is asked.
   */
  request: AskRequest
  /**
   * What an *always* would remember, in words; without it, *always* counts as once.
   */
  always?: string | null
}
/**
 * A tool stops and waits for the user.
 */
export interface PauseRequest {
  /**
   * What kind of answer it waits for.
   */
  kind: PauseKind
  /**
   * The tool that asks.
   */
  toolName: string
  /**
   * One line for the user.
   */
  message: string
  /**
   * What the user needs to see before answering: the exact command, an address, a diff.
   */
  details?: string | null
}
/**
 * A tool asks for words or a choice.
 */
export interface QuestionRequest {
  /**
   * The tool that asks.
   */
  toolName: string
  /**
   * What it asks, each to be answered by its id.
   */
  questions: Question[]
}
/**
 * One thing a tool wants to know.
 */
export interface Question {
  /**
   * Names the question within its request; the reply carries it.
   */
  id: string
  /**
   * A few words to head it with.
   */
  header: string
  /**
   * The question itself.
   */
  question: string
  /**
   * Ready answers; free text is always possible too.
   */
  options?: QuestionOption[]
}
/**
 * A ready answer to a [`Question`].
 */
export interface QuestionOption {
  /**
   * The answer.
   */
  label: string
  /**
   * What choosing it means.
   */
  description?: string
}
/**
 * Tasks, counted by how far they are.
 */
export interface TaskCounts {
  /**
   * Done.
   */
  done: number
  /**
   * Being worked on.
   */
  doing: number
  /**
   * Not begun.
   */
  todo: number
  /**
   * Given up.
   */
  dropped: number
}
/**
 * Events of a session that can't be read, because they are damaged or lost in the store.
 */
export interface Gap {
  /**
   * The number of the first event.
   */
  from: number
  /**
   * The number of the last event.
   */
  to: number
}
/**
 * Open asks, the oldest first.
 */
export interface Inbox {
  /**
   * The asks.
   */
  asks: InboxAsk[]
}
/**
 * An open ask, and whose it is.
 */
export interface InboxAsk {
  /**
   * The session.
   */
  session: SessionId
  /**
   * Its name.
   */
  name: string
  /**
   * Its folder.
   */
  workspace: string
  /**
   * It has an actor now.
   */
  live: boolean
  /**
   * The ask.
   */
  ask: Ask
}
/**
 * An answer counted.
 */
export interface Answered {
  /**
   * The ask.
   */
  ask: AskId
  /**
   * The answer is saved.
   */
  saved: boolean
}
/**
 * Every session: live ones first, the newest first.
 */
export interface SessionList {
  /**
   * The sessions.
   */
  sessions: SessionSummary[]
}
/**
 * A session at one moment. Everything in it follows from the events up to `seq`.
 */
export interface Snapshot {
  /**
   * What it was opened with, under the name and with the model that it has now.
   */
  settings: SessionSettings
  /**
   * The first line of its first prompt until it is renamed; without either, its name.
   */
  title: string
  /**
   * The last line that its model has said.
   */
  lastLine?: string | null
  /**
   * The number of the last event.
   */
  seq: number
  /**
   * What it is doing.
   */
  status: SessionStatus
  /**
   * Since when.
   */
  since: Timestamp
  /**
   * How long it has worked in all, in milliseconds: without the time it waited, was asking or was held.
   */
  workedMs: number
  /**
   * It works now, and has since then; that is not yet counted.
   */
  workingSince?: Timestamp | null
  /**
   * The open turn.
   */
  turn: TurnId | null
  /**
   * Its step, counted from 1.
   */
  step: number | null
  /**
   * Its open asks; the first is the one to show.
   */
  asks: Ask[]
  /**
   * Whether it is held.
   */
  hold: Hold
  /**
   * Prompts that wait.
   */
  queue: QueuedPrompt[]
  /**
   * Its background jobs that run, the oldest first.
   */
  jobs: Job[]
  /**
   * How the last turn ended.
   */
  lastTurn: LastTurn | null
  /**
   * The run that is under way.
   */
  run?: Run | null
  /**
   * How the last run ended.
   */
  lastRun?: LastRun | null
  /**
   * Its tasks, the oldest first.
   */
  tasks: Task[]
  /**
   * Its newest notes, the oldest first.
   */
  notes: Note[]
  /**
   * What all turns used.
   */
  usage: Usage
  /**
   * How full the model's context is; nothing before the first answer.
   */
  context?: ContextFill | null
  /**
   * Files its tools changed.
   */
  filesModified: string[]
  /**
   * How many clients are attached.
   */
  clients: number
  /**
   * Everything up to `seq` is saved: it is on disk.
   */
  saved: boolean
  /**
   * Why not everything is saved; absent if it is.
   */
  notSaved?: string | null
  /**
   * Which of its events can't be read.
   */
  gaps?: Gaps
  /**
   * It is logged at debug level.
   */
  isDebugEnabled: boolean
}
/**
 * What a session is opened with.
 */
export interface SessionSettings {
  /**
   * The session.
   */
  id: SessionId
  /**
   * What people call it; unique among live sessions.
   */
  name: string
  /**
   * The folder it works in: absolute.
   */
  workspace: string
  /**
   * The model, as `provider/name`.
   */
  model: string
  /**
   * Who answers its asks.
   */
  asks: AsksMode
  /**
   * What its tools may do unasked.
   */
  policy: PolicyMode
  /**
   * What is allowed, asked or denied besides.
   */
  rules?: PolicyRules
  /**
   * The most steps one turn may take; 0 for no limit.
   */
  maxSteps: number
  /**
   * The most tokens one turn may take, of requests and answers together; 0 for no limit.
   */
  maxTurnTokens: number
}
/**
 * Rules that say more than the mode. Deny beats ask beats allow.
 */
export interface PolicyRules {
  /**
   * What is allowed unasked.
   */
  allow?: string[]
  /**
   * What is asked, even where it would be allowed.
   */
  ask?: string[]
  /**
   * What is denied, unasked.
   */
  deny?: string[]
}
/**
 * A prompt that waits for its turn.
 */
export interface QueuedPrompt {
  /**
   * Its name.
   */
  prompt: PromptId
  /**
   * Its words.
   */
  text: string
}
/**
 * A background job that runs. It ends with its session at the latest, and with an interrupt of its turn.
 */
export interface Job {
  /**
   * The call that started it; the job goes by this name.
   */
  id: CallId
  /**
   * The turn of that call.
   */
  turn: TurnId
  /**
   * What runs: the command.
   */
  command: string
  /**
   * Since when.
   */
  since: Timestamp
}
/**
 * A run that is under way.
 */
export interface Run {
  /**
   * What it was begun with.
   */
  settings: RunSettings
  /**
   * What it may take by now.
   */
  limits: RunLimits
  /**
   * How far it is.
   */
  progress: RunProgress
  /**
   * Iterations in a row that failed.
   */
  failures: number
  /**
   * After a failed iteration: when the next begins.
   */
  waitsUntil?: Timestamp | null
  /**
   * A restart has cut its iteration, which goes on when the run is released.
   */
  cut?: boolean
}
/**
 * What a run is begun with.
 */
export interface RunSettings {
  /**
   * What is to be reached.
   */
  goal: string
  /**
   * What it may take before it is held. Each release of such a hold grants as much again.
   */
  limits: RunLimits & {
    [k: string]: unknown
  }
  /**
   * Where a hold stands.
   */
  holdAt: HoldAt & string
}
/**
 * What a run may take. None of it cuts an iteration: tokens and time are looked at before every request to the model,
 * iterations when one is over.
 */
export interface RunLimits {
  /**
   * Iterations: 50 where nothing is said, `null` for no limit.
   */
  iterations: number | null
  /**
   * Tokens, of requests and answers together.
   */
  tokens: number | null
  /**
   * Milliseconds of work: without the time it was held or asked.
   */
  timeMs: number | null
}
/**
 * Something a session has set out to do.
 */
export interface Task {
  /**
   * Its name.
   */
  id: TaskId
  /**
   * What is to be done, on one line.
   */
  title: string
  /**
   * How far it is.
   */
  state: TaskState
}
/**
 * Something a session wants to remember.
 */
export interface Note {
  /**
   * Its words.
   */
  text: string
  /**
   * The task it is about.
   */
  task?: TaskId | null
  /**
   * The iteration it was taken in, if it was in a run.
   */
  iteration?: number | null
}
/**
 * Tokens used, by the provider's own count unless `estimated`.
 */
export interface Usage {
  /**
   * Tokens of the request, cached ones included.
   */
  input: number
  /**
   * Those of the request that came from the provider's cache.
   */
  cached: number
  /**
   * Those of the request that the provider has put into its cache, where it counts them.
   */
  cacheWritten?: number
  /**
   * Tokens of the answer, thoughts included.
   */
  output: number
  /**
   * What it cost, in millionths of the currency of the price that is configured for the model; nothing without one.
   */
  cost?: number | null
  /**
   * Some of it is our own estimate, because the provider sent no count.
   */
  estimated: boolean
}
/**
 * How full the context of a session's model is.
 */
export interface ContextFill {
  /**
   * Tokens of the last request and its answer.
   */
  tokens: number
  /**
   * Tokens that a request may have; beyond, its oldest messages are left out.
   */
  limit: number
}
/**
 * Something that happened to a session.
 */
export interface Event {
  /**
   * Its number: rising, never repeated, not always by one.
   */
  seq: number
  /**
   * When it happened.
   */
  at: Timestamp
  /**
   * The turn it belongs to.
   */
  turn?: TurnId | null
  /**
   * The step of the turn, counted from 1.
   */
  step?: number | null
  /**
   * What happened.
   */
  body: Body
}
/**
 * One whole answer of a model: what a step's request brought.
 */
export interface AssistantMessage {
  /**
   * Text and thoughts, in the order they came.
   */
  blocks: Block[]
  /**
   * The tools it wants called, in order.
   */
  calls?: ToolCall[]
  /**
   * The answer was cut before its end: this is what had come.
   */
  partial?: boolean
  /**
   * The model that gave it, as `provider/name`.
   */
  model?: string | null
  /**
   * The tokens that its request used.
   */
  usage?: Usage | null
}
/**
 * One stretch of text or thought: an item, and what its deltas add up to.
 */
export interface Block {
  /**
   * The item its deltas name.
   */
  item: ItemId
  /**
   * Text or thought.
   */
  kind: BlockKind
  /**
   * All of it.
   */
  text: string
  /**
   * What the provider wants back unchanged with a thought.
   */
  signature?: string | null
  /**
   * How many calls of the answer the model had written before it.
   */
  callsBefore?: number
}
/**
 * A tool that a model wants called.
 */
export interface ToolCall {
  /**
   * Our own name for the call.
   */
  id: CallId
  /**
   * The provider's name for it, which it is sent back under.
   */
  providerId?: string | null
  /**
   * The tool.
   */
  name: string
  /**
   * Its arguments: an object.
   */
  input: {
    [k: string]: unknown
  }
  /**
   * What the provider wants back unchanged with the call.
   */
  signature?: string | null
}
/**
 * The end of a tool call: what the model reads.
 */
export interface ToolResult {
  /**
   * The call.
   */
  call: CallId
  /**
   * How it ended.
   */
  status: ToolStatus
  /**
   * What is kept of what it streamed: the call's finished item.
   */
  output?: Kept
  /**
   * What it said at its end.
   */
  result: string
  /**
   * Files it read.
   */
  read?: FileMark[]
  /**
   * Files it wrote.
   */
  wrote?: FileMark[]
}
/**
 * The head and the tail of a text of any length.
 *
 * Pushing the same text in other pieces gives the same value, so what a client folds from deltas equals
 * what the finishing fact carries. At most [`KEPT_HEAD`] + 2 × [`KEPT_TAIL`] bytes are held.
 */
export interface Kept {
  /**
   * The beginning, cut at a character's boundary.
   */
  head?: string
  /**
   * Bytes left out between head and tail.
   */
  dropped?: number
  /**
   * The end, where the head could not hold it all.
   */
  tail?: string
}
/**
 * A file as a tool saw it or left it: enough to notice that someone else has changed it since.
 */
export interface FileMark {
  /**
   * Its path, relative to the workspace where it lies inside.
   */
  path: string
  /**
   * Its size in bytes.
   */
  size: number
  /**
   * When it was last changed, in nanoseconds since 1970.
   */
  modified: number
  /**
   * What is in it: the first 128 bits of its BLAKE3 hash, in hexadecimal. Not of a file above 64 MiB.
   */
  hash?: string | null
}
/**
 * What was left out of a request to a model, and how much was left in.
 */
export interface HistoryCut {
  /**
   * Messages that were left out.
   */
  messages: number
  /**
   * Results of tools that were cut.
   */
  results: number
  /**
   * Tokens of what was left in, by our own count.
   */
  tokens: number
  /**
   * Tokens that a request may have.
   */
  limit: number
  /**
   * Lines of what was left in.
   */
  lines: number
  /**
   * Lines that a request may have.
   */
  lineLimit: number
  /**
   * The limit that was reached.
   */
  reached: HistoryLimit
}
/**
 * An omission and its reason.
 */
export interface Omission {
  /**
   * The part that is left out.
   */
  what: Omitted
  /**
   * The provider's refusal of the conversation with it.
   */
  reason: string
}
/**
 * The reply to one [`Question`].
 */
export interface QuestionReply {
  /**
   * The question's id.
   */
  id: string
  /**
   * An option's label or free text, never empty; none (`null`) if the user skips the question.
   */
  answer: string | null
}
/**
 * What an interrupt found and ended. Part of the turn's last event.
 */
export interface Receipt {
  /**
   * The tool calls that were running, and how each stopped.
   */
  tools: StoppedTool[]
  /**
   * The processes that were ended.
   */
  processes: EndedProcesses
  /**
   * The asks that were answered Interrupted.
   */
  asks: AskId[]
  /**
   * The queued prompts that were handed back.
   */
  prompts: PromptId[]
  /**
   * The runtime, or the session's actor, had ended before the turn was: its processes were not counted.
   */
  uncounted?: boolean
}
/**
 * A tool call that the cut of its turn found running.
 */
export interface StoppedTool {
  /**
   * The call.
   */
  call: CallId
  /**
   * The tool.
   */
  name: string
  /**
   * How it stopped.
   */
  how: StopHow
}
/**
 * How many processes were ended, and how.
 */
export interface EndedProcesses {
  /**
   * Ended by TERM within the grace.
   */
  terminated: number
  /**
   * Had to be killed.
   */
  killed: number
  /**
   * Could not be ended: their process ids.
   */
  left?: number[]
}
/**
 * A prompt was accepted.
 */
export interface Prompted {
  /**
   * Its name.
   */
  prompt: PromptId
  /**
   * 0 = its turn has started, 1 = it is next.
   */
  position: number
  /**
   * It is saved.
   */
  saved: boolean
}
/**
 * A run began.
 */
export interface RunStarted {
  /**
   * The turn of its first iteration; nothing if the session is held, and the run begins when it is released.
   */
  turn?: TurnId | null
  /**
   * It is saved.
   */
  saved: boolean
}
/**
 * What an interrupt found.
 */
export interface InterruptReply {
  /**
   * The turn that is cut; nothing if there was no such turn, and nothing changed.
   */
  turn?: TurnId | null
  /**
   * No turn was open, but a run: it is over.
   */
  run?: boolean
  /**
   * The turn's end comes after this number in the session's events.
   */
  after: number
  /**
   * The turn's end, if it was waited for.
   */
  end?: TurnEnd | null
}
/**
 * How a turn ended.
 */
export interface TurnEnd {
  /**
   * The turn.
   */
  turn: TurnId
  /**
   * How it ended.
   */
  outcome: Outcome
  /**
   * What the cut found and ended, if it was cut.
   */
  receipt?: Receipt | null
}
/**
 * Opens a fresh session.
 */
export interface OpenRequest {
  /**
   * The folder it works in: absolute.
   */
  workspace: string
  /**
   * What people call it.
   */
  name?: string | null
  /**
   * Its model, as `PROVIDER/NAME` or `PROVIDER`.
   */
  model?: string | null
  /**
   * Who answers its asks.
   */
  asks?: AsksMode & string
  /**
   * What its tools may do unasked.
   */
  policy?: PolicyMode & string
  /**
   * What is allowed, asked or denied besides.
   */
  rules?: PolicyRules
  /**
   * The most steps one turn may take; 0 for no limit.
   */
  maxSteps?: number
  /**
   * The most tokens one turn may take, of requests and answers together; 0 for no limit.
   */
  maxTurnTokens?: number
  /**
   * What the client brings along for it.
   */
  supplies?: Supplies & {
    [k: string]: unknown
  }
}
/**
 * What a client brings along for the sessions it opens: kept in memory for those sessions, never saved.
 */
export interface Supplies {
  /**
   * The environment that tools' processes are started from; of it, what an allow-list lets through.
   */
  env?: [unknown, unknown][]
  /**
   * How models are reached. Without it, as the engine was told.
   */
  models?: ModelSupplies | null
  /**
   * What models are told about themselves. Without it, what the engine was told.
   */
  systemPrompt?: string | null
}
/**
 * How models are reached: what a client's configuration and environment say.
 */
export interface ModelSupplies {
  /**
   * The model of a session that names none.
   */
  model?: string | null
  /**
   * Providers, by name.
   */
  providers?: {
    [k: string]: Provider
  }
  /**
   * What is known of single models, by `PROVIDER/NAME`.
   */
  models?: {
    [k: string]: ModelSettings
  }
  /**
   * What stands between here and them.
   */
  proxies?: Proxies & {
    [k: string]: unknown
  }
  /**
   * The certificate authorities that their servers are checked by.
   */
  certificates?: Certificates & {
    [k: string]: unknown
  }
}
/**
 * How a provider of models is reached. What is not set here is read from the environment.
 */
export interface Provider {
  /**
   * The key. Without it: the provider's own variable, `OPENAI_API_KEY`, `ANTHROPIC_API_KEY` or `GEMINI_API_KEY`.
   */
  api_key?: string | null
  /**
   * Where it is, for example `http://localhost:8080/v1` (with `/v1` for `openai` alone). Without it: the provider's
   * own variable, `OPENAI_BASE_URL`, `ANTHROPIC_BASE_URL`, `GEMINI_BASE_URL` or `OLLAMA_HOST`, else its public
   * address, for Ollama this machine.
   */
  base_url?: string | null
}
/**
 * What the user says of a model. Every key may be left out.
 */
export interface ModelSettings {
  /**
   * Tokens that a request and its answer may have together. Requests stay within it; Ollama is told it as `num_ctx`.
   * Without it, `limits.max_history_tokens` alone holds.
   */
  window?: number | null
  /**
   * The most tokens of one answer. Without it, the provider's own bound; for Anthropic, who wants one, 32,000.
   */
  max_output?: number | null
  /**
   * Tokens that the model may think for: Anthropic and Gemini before 3; for Ollama, only whether it is above 0 counts.
   * Without it, the model decides.
   */
  thinking?: number | null
  /**
   * How much the model is to think, in its provider's words: `low`, `medium`, `high`, … Sent as `reasoning_effort` to
   * OpenAI, `output_config.effort` to Anthropic, `thinkingLevel` to Gemini and `think` to Ollama.
   */
  effort?: string | null
  /**
   * Fields that are added to the body of every request; those of the same name are replaced, objects are merged.
   */
  extra_body?: {
    [k: string]: unknown
  } | null
  /**
   * The names of tool calls in requests. Without it, `provider`.
   */
  tool_ids?: ToolIds | null
  /**
   * Whether requests have `stream_options`, by which the server counts tokens: OpenAI alone. Without it, they do.
   */
  stream_options?: boolean | null
  /**
   * The field that `max_output` is sent in: OpenAI alone. Without it, `max_completion_tokens` at OpenAI itself and
   * `max_tokens` at servers that are compatible.
   */
  max_tokens_field?: MaxTokensField | null
  /**
   * What it costs. Without it, no cost is shown.
   */
  price?: Price | null
}
/**
 * What a model costs, each for a million tokens, in any one currency.
 */
export interface Price {
  /**
   * Of the request.
   */
  input: number
  /**
   * Of the request that came from the provider's cache. Without it, as `input`.
   */
  cached?: number | null
  /**
   * Of the request that the provider has put into its cache. Without it, 1.25 times `input`, as Anthropic has it.
   */
  cache_written?: number | null
  /**
   * Of the answer, thoughts included.
   */
  output: number
}
/**
 * The proxies that requests to models go through: the usual variables of an environment, in lower or upper case.
 * Addresses begin with `http://`, `https://`, `socks5://` or `socks5h://`; without a scheme, it is `http`.
 */
export interface Proxies {
  /**
   * For `http` addresses: `http_proxy`.
   */
  http?: string | null
  /**
   * For `https` addresses: `https_proxy`.
   */
  https?: string | null
  /**
   * For both: `all_proxy`.
   */
  all?: string | null
  /**
   * Hosts that are reached without: `no_proxy`.
   */
  no?: string | null
}
/**
 * The certificate authorities that are trusted instead of the system's, where a client's environment names any.
 */
export interface Certificates {
  /**
   * A file of certificates in PEM, by its absolute path: `SSL_CERT_FILE`.
   */
  file?: string | null
  /**
   * Folders of such files, by their absolute paths, with colons between them: `SSL_CERT_DIR`.
   */
  dir?: string | null
}
/**
 * Gives a session something to do.
 */
export interface PromptRequest {
  /**
   * The words.
   */
  text: string
}
/**
 * Begins a run: a goal, worked through in iterations.
 */
export interface RunRequest {
  /**
   * What is to be reached.
   */
  goal: string
  /**
   * The first tasks. The model adds others.
   */
  tasks?: string[]
  /**
   * What it may take before it is held.
   */
  limits?: RunLimitsInput & {
    [k: string]: unknown
  }
  /**
   * Where a hold stands.
   */
  holdAt?: HoldAt & string
}
/**
 * What a run may take. None of it cuts an iteration: tokens and time are looked at before every request to the model,
 * iterations when one is over.
 */
export interface RunLimitsInput {
  /**
   * Iterations: 50 where nothing is said, `null` for no limit.
   */
  iterations?: number | null
  /**
   * Tokens, of requests and answers together.
   */
  tokens?: number | null
  /**
   * Milliseconds of work: without the time it was held or asked.
   */
  timeMs?: number | null
}
/**
 * Ends the open turn.
 */
export interface InterruptRequest {
  /**
   * Only if it is this one.
   */
  turn?: TurnId | null
  /**
   * Answers at once instead of with the receipt.
   */
  noWait?: boolean
}
/**
 * Holds or releases: the other of what the client was showing.
 */
export interface ToggleRequest {
  /**
   * What it was showing.
   */
  shown: HoldShown
}
/**
 * Calls a session something else.
 */
export interface RenameRequest {
  /**
   * The new name.
   */
  name: string
}
/**
 * Gives a session another model, from its next turn on.
 */
export interface ModelRequest {
  /**
   * As `PROVIDER/NAME`, or `PROVIDER` for its default.
   */
  model: string
  /**
   * How models are reached: what the client brings along for it. Without it, as the engine was told.
   */
  supplies?: ModelSupplies | null
}
/**
 * Has a session logged at debug level, or not any more.
 */
export interface DebugRequest {
  /**
   * Whether it is to be.
   */
  enabled: boolean
}
/**
 * Ends the session.
 */
export interface CloseRequest {
  /**
   * Only if it has nothing to do, and behind the event of this number nobody has given it a prompt or a run, and no turn
   * began. Else it is refused as `inUse`, and nothing changes. Background jobs keep no session open.
   */
  unusedSince?: number | null
}
