import type {
  Answer, Answered, Ask, AskId, AsksMode, CallId, ErrorBody, Event, Hold, HoldState, InboxAsk, Outcome,
  PauseRequest, PolicyMode, PromptId, Prompted, QuestionReply, Receipt, RunRequest, RunStarted, SandboxLevel, SessionCursor,
  SessionId, SessionList, SessionStatus, SessionSummary, Snapshot, Timestamp, TurnId, Unqueued,
} from './types'

export type * from './types'

/** An open pause in one flat object: a tool waits for you. */
export interface PauseState extends PauseRequest {
  /** Id of the ask, which is never used again. */
  id: AskId
  /** Tool call that the ask belongs to. */
  call: CallId
  /** Time at which the ask was raised. */
  since: Timestamp
}

/**
 * The effect of a key on an `AskForm`: `nothing`; `typed` if the text or its cursor has changed;
 * `turned` if the keys have another meaning; `moved` if another question is current; `interrupt` if
 * the user interrupts the turn; or `answer` with the user's answer.
 */
export type Pressed =
  | { type: 'nothing' | 'typed' | 'turned' | 'moved' | 'interrupt' }
  | { type: 'answer'; answer: Answer }

/** The effect of an interrupt. */
export interface Interrupted {
  /**
   * The interrupted work: the open turn, a run between two turns, or nothing, in which case nothing
   * has changed.
   */
  found: 'turn' | 'run' | 'nothing'
  /** Id of the turn. */
  turn?: TurnId
  /** Outcome of the turn, which may have ended just before the interrupt. */
  outcome?: Outcome
  /**
   * Receipt of the stopped tools, ended processes, closed asks and returned prompts; absent if the
   * call did not wait for it.
   */
  receipt?: Receipt
}

/** The beginning of an attachment. */
export interface Attached {
  /** Number of the attachment, for `sessionDetach`. */
  attachment: number
  /** Snapshot of the session at the moment of attaching. */
  snapshot: Snapshot
}

/** The end of a stream of events. */
export interface StreamEnd {
  /**
   * Reason of the end: `detached` by this program, `closed` with the session, `ended` because the
   * session's actor is gone, `stopped` or `disconnected` like the daemon or the connection to it,
   * or `failed` because of a bug in this package.
   */
  reason: 'detached' | 'closed' | 'ended' | 'stopped' | 'disconnected' | 'failed'
  /** Number up to which all events were delivered. Attaching after it continues there. */
  after: number
}

/** A record of the log. Its texts have one line each, with secrets masked. */
export interface LogRecord {
  /** Time of the record. */
  at: Timestamp
  level: 'error' | 'warn' | 'info' | 'debug' | 'trace'
  /** Module of the program that logged the record. */
  target: string
  message: string
  /** Session that the record is about, if any. */
  session?: SessionId
  /** Further fields, among them the position in the session: `turn`, `step`, `call`. */
  fields: Record<string, string | number | boolean>
}

/** The options of `sessionEvents`. */
export interface EventsOptions {
  /** Number of the last event that you have; only later events are delivered. Default: 0. */
  after?: number
  /** Maximum number of past facts to deliver; the newest ones are delivered. Default: all. */
  limit?: number
}

/**
 * The error that functions of this package throw or reject with. Its `code` is stable; a later
 * daemon may send others. Most errors of sessions have fields in `details`, which depend on the
 * code: for `alreadyAnswered`, `by` is the origin of the first answer; for `ambiguous`, `ids` has
 * all sessions that match.
 */
export type HoldpointError = Error & {
  /** Advice on how to solve the problem. */
  hint?: string
} & (ErrorFields<ErrorBody> | { code: KnownErrorCode; details?: undefined })

/** The code of an error of a session, with its details. */
type ErrorFields<Body> = Body extends { code: infer Code; details: infer Details }
  ? { code: Code; details: Details }
  : never

/** The code of an error. A later daemon may send others. */
export type ErrorCode = KnownErrorCode | (string & {})

type KnownErrorCode =
  // Sessions that can't be found, opened, closed or deleted.
  | 'unknownSession' | 'ambiguous' | 'inexact' | 'nameTaken' | 'badName' | 'live' | 'closed' | 'tooManySessions' | 'workspace'
  | 'modelSetup' | 'policy' | 'sandbox' | 'damaged' | 'notOwner' | 'unknownMachine' | 'machineUnreachable' | 'homeAway'
  | 'placeUnusable'
  // Requests that a session refuses.
  | 'emptyPrompt' | 'promptTooLong' | 'queueFull' | 'emptyGoal' | 'badTask' | 'inUse' | 'runOpen' | 'turnOpen' | 'notQueued'
  | 'tooManyClients' | 'tooManyStreams' | 'unknownEvent'
  // Answers without an effect.
  | 'alreadyAnswered' | 'askClosed' | 'unknownAsk' | 'kindMismatch' | 'incompleteAnswer' | 'nothingShown'
  // Invalid arguments and settings.
  | 'invalidArgument' | 'config' | 'alreadyStarted'
  // Saving, and the connection to a daemon.
  | 'notSaving' | 'store' | 'start' | 'unreachable' | 'disconnected' | 'otherVersion' | 'fromTool'
  // A session that is gone, thrown by hooks; a daemon or process that is about to end.
  | 'ended' | 'stopped'
  // Bugs and failures: of a session's actor, of this package, of its installation.
  | 'gone' | 'failed' | 'panicked' | 'noAddon'
