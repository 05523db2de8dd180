import type {
  Answer, AnswerError, Answered, Ask, AskId, AsksMode, CallId, Event, Hold, HoldShown, InboxAsk, Outcome,
  PauseRequest, PolicyMode, Prompted, QuestionReply, Receipt, RunRequest, RunStarted, SessionId, SessionStatus,
  SessionSummary, Snapshot, Timestamp, TurnId,
} from './types'

export type * from './types'

/** An open pause, flat: a tool has stopped and waits for you. */
export interface PauseState extends PauseRequest {
  /** Names the ask for ever. */
  id: AskId
  /** The tool call it belongs to. */
  call: CallId
  /** Since when it is open. */
  since: Timestamp
}

/**
 * The effect of a key on an `AskForm`: none; the words or their cursor have changed; the keys that answer have changed;
 * another question is shown; the user interrupts; or the user answers.
 */
export type Pressed =
  | { type: 'nothing' | 'typed' | 'turned' | 'moved' | 'interrupt' }
  | { type: 'answer'; answer: Answer }

/** What an interrupt found. */
export interface Interrupted {
  /** A turn, which is cut; a run between two turns, which is over; or nothing, and nothing has changed. */
  found: 'turn' | 'run' | 'nothing'
  /** The turn. */
  turn?: TurnId
  /** How it ended; it may have been done just before. */
  outcome?: Outcome
  /** What was stopped, ended, released and handed back; not there if it was not waited for. */
  receipt?: Receipt
}

/** What an attachment begins with. */
export interface Attached {
  /** Names the attachment, for `sessionDetach`. */
  attachment: number
  /** The session at the moment of attaching. */
  snapshot: Snapshot
}

/** Why no more events come. */
export interface StreamEnd {
  /**
   * It was detached; the session was closed, or is gone; the daemon was told to stop; the connection to it broke; or a
   * fault of this package.
   */
  reason: 'detached' | 'closed' | 'ended' | 'stopped' | 'disconnected' | 'failed'
  /** All up to this number was delivered: attaching after it continues there. */
  after: number
}

/** Something that was logged. Its texts are of one line each, with secrets masked. */
export interface LogRecord {
  /** When. */
  at: Timestamp
  level: 'error' | 'warn' | 'info' | 'debug' | 'trace'
  /** The part of the program that says so. */
  target: string
  message: string
  /** The session that it is about, if it is about one. */
  session?: SessionId
  /** What else is said, and where in the session it was: `turn`, `step`, `call`. */
  fields: Record<string, string | number | boolean>
}

/** What is received by iterating. */
export interface EventsOptions {
  /** Only what comes after this number: the last event you have. */
  after?: number
  /** Of the past, at most so many facts: the newest. */
  limit?: number
}

/** What goes wrong. */
export interface HoldpointError extends Error {
  /** Which error it is. */
  code: ErrorCode
  /** What to do about it. */
  hint?: string
  /** Why an answer had no effect, if it was one: for `alreadyAnswered`, with who was first. */
  answer?: AnswerError
  /** `ambiguous`: the sessions that may be meant. */
  ids?: SessionId[]
}

/** Which error it is. A later daemon may have others. */
export type ErrorCode =
  // Sessions that can't be found, opened, closed or deleted.
  | 'unknownSession' | 'ambiguous' | 'inexact' | 'nameTaken' | 'badName' | 'live' | 'closed' | 'tooManySessions' | 'workspace'
  | 'modelSetup' | 'policy' | 'damaged'
  // What a session does not take.
  | 'emptyPrompt' | 'promptTooLong' | 'queueFull' | 'emptyGoal' | 'badTask' | 'inUse' | 'runOpen' | 'turnOpen'
  | 'tooManyClients' | 'tooManyConnections' | 'unknownEvent'
  // Answers without effect.
  | 'alreadyAnswered' | 'askClosed' | 'unknownAsk' | 'kindMismatch' | 'incompleteAnswer' | 'nothingShown'
  // Arguments and settings that can't be meant.
  | 'invalidArgument' | 'config' | 'alreadyStarted'
  // Saving, and daemons.
  | 'notSaving' | 'store' | 'start' | 'unreachable' | 'disconnected' | 'otherVersion'
  // A session that is gone, thrown by hooks; a daemon or process that is about to end.
  | 'ended' | 'stopped'
  // Faults: of a session's actor, of this package, of how it was installed.
  | 'gone' | 'failed' | 'panicked' | 'noAddon'
  | (string & {})
