// Written by scripts/declarations.mjs.
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

/**
 * Swallows the keys that were meant for an ask that has closed, until none was pressed for 300 ms.
 * Times are those of `AskForm`.
 */
export declare class AfterAsk {
  /** No ask has closed yet. */
  constructor()
  /** An ask has closed: by an answer, an interrupt, or another client. */
  begin(at: number): void
  /**
   * Whether this key is to be ignored. Keys are named as in `AskForm.press`; `esc` and `ctrl+c`
   * are never swallowed.
   */
  swallows(key: string, at: number): boolean
}

/**
 * An open ask, and the user's answer so far: keys go in, an answer comes out. The screen of
 * `holdpoint` and `holdpoint/ink` use the same one.
 *
 * Keys that answer count only 300 ms after the ask appeared, and after the last key that does not
 * answer; a second `A` counts only 700 ms after the first, so that a held key does not approve
 * always. `tab`, `backtab` and the arrows act at any time, and so do `esc` and `ctrl+c`. Pass every
 * input of the terminal to `press` or `paste`, also those that mean nothing to your program. Send
 * the answer yourself.
 *
 * All times are milliseconds of one clock that never goes back, such as `performance.now()`.
 * Methods throw `invalidArgument`.
 */
export declare class AskForm {
  /** A form for an ask of a snapshot that is shown from now on. */
  constructor(ask: Ask, at: number)
  /**
   * Passes a key in. Keys are `enter`, `esc`, `tab`, `backtab` (Shift+Tab), `left`, `right`,
   * `home`, `end`, `backspace`, `delete`, a single character such as `y`, and `ctrl+x` for any
   * letter. All else means another input of the terminal.
   */
  press(key: string, at: number): Pressed
  /**
   * Passes pasted text in, or a character of several code points: it is part of the words, and
   * never answers.
   */
  paste(text: string, at: number): Pressed
  /**
   * The ask, or another question of it, is on the screen from now on: the 300 ms begin. Call this
   * also when a `moved` has been drawn. `turned` does not need it: `press` has restarted the time.
   * The time of an earlier key changes nothing.
   */
  appear(at: number): void
  /**
   * The answer was refused and the ask is still open: another answer can be given. Earlier
   * replies are kept.
   */
  reopen(at: number): void
  /** The number of the question that is shown, from 1; 0 for a pause. */
  get questionNumber(): number
  /** How many questions there are; 0 for a pause. */
  get questionCount(): number
  /**
   * How keys are understood now: each is a choice; they are the words of a question without
   * options; or they are words that the user has chosen to type (`ownWords`), from which Esc
   * goes back to the choice.
   */
  get entry(): 'choice' | 'words' | 'ownWords'
  /** The words typed so far: for the question that is shown, or as the reason of a denial. */
  get text(): string
  /** The place of the cursor in `text`, as an index of JavaScript. */
  get cursor(): number
  /**
   * The reply to the question that is shown, if the user has come back to it: `answer` is `null`
   * if it is skipped.
   */
  get reply(): { answer: string | null } | null
  /** Whether `A` was pressed, so that a second press approves always. */
  get isArmed(): boolean
  /** Whether there are words or replies that the user has not sent. */
  get isBegun(): boolean
  /** Whether this user has answered, or interrupted the turn. */
  get isDone(): boolean
}

/**
 * Sessions, and all that can be done with them. The functions of this package are those of one of these: that of the
 * engine in this process. `connect` gives that of a daemon.
 *
 * A session is named by its id, a unique prefix of it (4 characters or more), or its name, wherever a promise is given. What fails has a
 * `code`: {@link HoldpointError}.
 */
export declare class Sessions {
  private constructor()
  /**
   * Answers a Continue: the tool goes on.
   *
   * Rejects with `alreadyAnswered` (`error.answer` says by whom), `askClosed`, `kindMismatch`, `unknownAsk`, or
   * `nothingShown`. Whichever it is, nothing has changed.
   */
  sessionPauseResume(id: string, options?: AnswerOptions): Promise<Answered>
  /**
   * Answers a Confirm.
   *
   * Rejects as `sessionPauseResume` does.
   */
  sessionPauseConfirm(id: string, approved: boolean, options?: ConfirmOptions): Promise<Answered>
  /**
   * Answers a pause with Interrupted, as Esc does: its turn ends, and no other. Gives what the interrupt found: nothing
   * if the ask that was shown here last is not open, or none was shown.
   */
  sessionPauseInterrupt(id: string): Promise<Interrupted>
  /**
   * Answers a question: each by its id, with `answer: null` for one that is skipped; or all by `null`, to decline.
   *
   * Rejects as `sessionPauseResume` does, and with `incompleteAnswer` if a reply is missing, empty, or one too many.
   */
  sessionAnswerQuestion(id: string, answers: QuestionReply[] | null, options?: AnswerOptions): Promise<Answered>
  /**
   * Calls back with a session's events: the past as `options` say, then what happens, in one stream of strictly rising
   * numbers. Node stays for it while a turn is open, or always with `keepAlive`.
   *
   * The session never waits for the callback. What comes while it is busy waits here, up to 64 MiB, or 32 MiB of a
   * daemon's session; beyond, facts still come all, and of text and output whose pieces are gone an `itemSoFar` says what
   * they had come to.
   *
   * Rejects with `unknownSession`, `tooManyClients`, `unknownEvent` if it has not come to `after`, or what keeps a saved
   * session from being opened.
   */
  sessionAttach(id: string, callback: (event: Event) => void, options?: AttachOptions): Promise<Attached>
  /**
   * Ends receiving: of one attachment, or of all that are attached to this session from here. When it resolves, nothing
   * more is delivered; a loop ends with what it has in hand. The session goes on as before: nothing is answered or
   * interrupted.
   */
  sessionDetach(id: string, attachment?: number): Promise<void>
  /**
   * Gives a session another name, which is its title, too. One that is only saved stays so.
   *
   * Rejects with `nameTaken` or `badName`.
   */
  sessionRename(id: string, name: string): Promise<void>
  /**
   * Gives a session another model, as `PROVIDER/NAME` or `PROVIDER`, from its next turn on.
   *
   * Rejects with `modelSetup`.
   */
  sessionSetModel(id: string, model: string): Promise<void>
  /**
   * Has a session log at debug level, or not any more: to the `log` that was given to `start`, or to that of its daemon. Its
   * snapshot's `isDebugEnabled` says what it is.
   */
  sessionSetDebug(id: string, enabled: boolean): Promise<void>
  /** Stops a session at its next boundary; an idle one at once. Gives what the hold is now. */
  sessionHold(id: string): Promise<Hold>
  /** Lets a session go on. Gives what the hold is now. */
  sessionRelease(id: string): Promise<Hold>
  /**
   * Holds or releases: the other of what the client was showing, which without `shown` is what the session has last
   * published. If that is no longer so, nothing changes. Gives what the hold is now.
   */
  sessionToggleHold(id: string, shown?: HoldShown): Promise<Hold>
  /** Every session: live ones first, the newest first. */
  sessionList(): Promise<SessionSummary[]>
  /** The open asks of all sessions, live and saved: the oldest first. */
  sessionInbox(): Promise<InboxAsk[]>
  /**
   * Finds a session by its id, a unique prefix of it (4 characters or more), or its name, and gives its id. One that
   * is only saved is opened, also if it was closed by another.
   *
   * Rejects with `unknownSession` or `ambiguous` (`error.ids` says which may be meant).
   */
  sessionFind(what: string): Promise<SessionId>
  /**
   * Ends a session: its turn is cut, its asks are answered Interrupted, its processes end, its name is free. It stays
   * saved, and opens when it is used again. One that is only saved is not opened for this.
   *
   * Rejects with `inexact` for a prefix of an id, with `closed` if it is that already, with `inUse` if it is not closed because of `unusedSince`, with
   * `notSaving` if what it has done can't be saved at present.
   */
  sessionClose(id: string, options?: CloseOptions): Promise<void>
  /**
   * Deletes a closed session, with all that was said in it.
   *
   * Rejects with `live` if it was not closed, with `inexact` for a prefix of an id.
   */
  sessionDelete(id: string): Promise<void>
  /**
   * What a session is doing. Read at once, of a session that was opened, found or attached from here, by its id.
   *
   * Throws `unknownSession`.
   */
  sessionGetStatus(id: string): SessionStatus
  /**
   * The open pause that is to be shown, or `null`: a question may be before it, or nothing waits. Read at once.
   *
   * What it gives counts as shown: an answer without an id goes to it.
   */
  sessionGetPauseState(id: string): PauseState | null
  /**
   * The session as it has last published itself; it is replaced before the event that changed it reaches a callback.
   * Read at once, and a new object each time: ask for it when an event says that something has changed.
   *
   * Its first ask counts as shown: an answer without an id goes to it.
   */
  sessionSnapshot(id: string): Snapshot
  /**
   * Opens a fresh session, and gives its id.
   *
   * Rejects with `workspace`, `modelSetup`, `policy`, `nameTaken`, `badName` or `tooManySessions`.
   */
  sessionOpen(options?: OpenOptions): Promise<SessionId>
  /**
   * Gives a session something to do. It runs, or the prompt waits, before this resolves. Node stays until it has
   * settled; of a daemon's session, if anyone is attached to it from here.
   *
   * Rejects with `emptyPrompt`, `promptTooLong`, `queueFull` or `notSaving`.
   */
  sessionPrompt(id: string, text: string): Promise<Prompted>
  /**
   * Begins a run: a goal, worked through in iterations until no task is left or it is interrupted.
   *
   * Rejects with `emptyGoal`, `promptTooLong`, `badTask`, `turnOpen` or `runOpen`.
   */
  sessionRun(id: string, run: RunRequest): Promise<RunStarted>
  /**
   * Waits until no turn and no run is open and no prompt waits, or the session is held; and until callbacks that are
   * attached from here have been given all of it.
   */
  sessionSettled(id: string): Promise<Snapshot>
  /** Ends the open turn now, and gives the receipt: what was stopped, ended, released and handed back. */
  sessionInterrupt(id: string, options?: InterruptOptions): Promise<Interrupted>

  /**
   * A session's events, to be iterated: the past as `options` say, then what happens. The session never waits; leaving the
   * loop detaches. Node stays for it. It ends with the session; if the connection to a daemon breaks, it throws.
   */
  sessionEvents(id: string, options?: EventsOptions): AsyncGenerator<Event, StreamEnd, void>
}

/** Which ask is answered. */
export interface AnswerOptions {
  /**
   * This one. Without it: the ask that was shown here last, by an event or by being looked at; never whichever is
   * first now.
   */
  askId?: AskId
}

/** What is received. */
export interface AttachOptions {
  /** Only what comes after this number: the last event you have. */
  after?: number
  /** Of the past, at most so many facts: the newest. */
  limit?: number
  /** Whether Node stays for as long as this is attached, also while nothing happens: `false`. */
  keepAlive?: boolean
  /** Called once, when nothing more will come. */
  onEnd?: (end: StreamEnd) => void
  /**
   * Called with what the callback, or `onEnd`, has thrown, or rejected with if it is async. Without it, that is told by
   * a warning of the process.
   */
  onError?: (error: unknown) => void
}

/**
 * A client of an event by its name and process, as users know it, to follow a verb: `from the command line (pid 7)`,
 * `from the screen (pid 7)`, `from Node.js (pid 7)`, `by curl/8.5.0`. Throws `invalidArgument`.
 */
export declare function clientOrigin(name: string, pid?: number): string

/** When a session is closed. */
export interface CloseOptions {
  /**
   * Only if it has nothing to do, and nobody has given it a prompt or a run, and no turn began, behind the event of this
   * number.
   */
  unusedSince?: number
}

/** How a Confirm is answered. */
export interface ConfirmOptions {
  /**
   * This one. Without it: the ask that was shown here last, by an event or by being looked at; never whichever is
   * first now.
   */
  askId?: AskId
  /** Approves what it is about from now on, for as long as the session lives. */
  always?: boolean
  /** Why it is denied, for the model to read. */
  reason?: string
}

/**
 * Connects to the daemon that `holdpoint` has started: the same functions, with its sessions.
 *
 * Rejects with `unreachable` if none runs, with `otherVersion` if it can't be spoken to.
 */
export declare function connect(options?: ConnectOptions): Promise<Sessions>

/** Which daemon is connected to. */
export interface ConnectOptions {
  /** The folder that its state lies in, as `--state-dir` names it. Without it, the user's own. */
  stateDir?: string
  /** The socket it listens on. It goes before `stateDir`. */
  socket?: string
  /**
   * The text of a configuration for the sessions that are opened here, as the program's `config.toml` has it. Without it,
   * the user's own.
   */
  config?: string
}

/** How a turn is interrupted. */
export interface InterruptOptions {
  /** Only if it is this one. */
  turn?: TurnId
  /** Whether to wait until nothing of it runs any more, for the receipt: `true`. */
  wait?: boolean
}

/** What a session is opened with. What is left out is as the configuration says, else as usual. */
export interface OpenOptions {
  /** The folder it works in; without it, that of this process. */
  cwd?: string
  /** What it is called; without it, as the folder is, with a number where that is taken. */
  name?: string
  /**
   * The model, as `PROVIDER/NAME` or `PROVIDER`. Without it: the configuration's, else the first provider whose key
   * is set, else `rehearsal`.
   */
  model?: string
  /** What its tools may do unasked: `ask`. */
  policy?: PolicyMode
  /** What is allowed, asked or denied besides. */
  rules?: OpenRules
  /** Who answers its asks: `wait`. */
  asks?: AsksMode
  /** The most steps (requests to the model) one turn may take; 0, as usual, for no limit. */
  maxSteps?: number
  /** The most tokens one turn may take; 0, as usual, for no limit. */
  maxTurnTokens?: number
  /**
   * The environment, of which an allow-list goes to its tools, and where keys of models are found; without it, that of
   * this process.
   */
  env?: Record<string, string | undefined>
}

/**
 * Rules that say more than the policy: `TOOL` or `TOOL(PATTERN)`, for example `shell(git status)`. Deny beats ask beats
 * allow.
 */
export interface OpenRules {
  /** What is allowed unasked. */
  allow?: Array<string>
  /** What is asked, even where it would be allowed. */
  ask?: Array<string>
  /** What is denied, unasked. */
  deny?: Array<string>
}

/**
 * Says what the engine of this process is to be started with, before it is first used. Without it, it is started with
 * what is usual.
 *
 * Throws `alreadyStarted` if it has been used, `config` if the configuration is wrong, `start` if another process has
 * the saved sessions, and `store` if they can't be opened.
 */
export declare function start(options?: StartOptions): void

/** What the engine of the process is started with. */
export interface StartOptions {
  /**
   * The text of a configuration, as the program's `config.toml` has it: models, policy, limits. Nothing else is read
   * from anywhere but the environment.
   */
  config?: string
  /**
   * A folder that sessions are saved in, so that they outlive the process; without it, they end with it. It is that of
   * a daemon, too (`--state-dir`), but of one process at a time.
   */
  stateDir?: string
  /**
   * Called with what is logged: `info` and worse of all that is done here, `debug` of sessions for which that is set
   * (`sessionSetDebug`). `HOLDPOINT_LOG`, or else `log` of the configuration, says other levels. Without a callback,
   * nothing is logged.
   *
   * Nobody waits for it. Up to 1 MiB of records wait while it is busy; beyond, a record says how many were left out. Node
   * does not stay for it; what waits when Node exits is given to it then. What it throws, or rejects with if it is
   * async, is told by a warning of the process.
   */
  log?: (record: LogRecord) => void
}

/** The version of the package. */
export declare function version(): string

/**
 * Answers a Continue: the tool goes on.
 *
 * Rejects with `alreadyAnswered` (`error.answer` says by whom), `askClosed`, `kindMismatch`, `unknownAsk`, or
 * `nothingShown`. Whichever it is, nothing has changed.
 */
export declare function sessionPauseResume(id: string, options?: AnswerOptions): Promise<Answered>

/**
 * Answers a Confirm.
 *
 * Rejects as `sessionPauseResume` does.
 */
export declare function sessionPauseConfirm(id: string, approved: boolean, options?: ConfirmOptions): Promise<Answered>

/**
 * Answers a pause with Interrupted, as Esc does: its turn ends, and no other. Gives what the interrupt found: nothing
 * if the ask that was shown here last is not open, or none was shown.
 */
export declare function sessionPauseInterrupt(id: string): Promise<Interrupted>

/**
 * Answers a question: each by its id, with `answer: null` for one that is skipped; or all by `null`, to decline.
 *
 * Rejects as `sessionPauseResume` does, and with `incompleteAnswer` if a reply is missing, empty, or one too many.
 */
export declare function sessionAnswerQuestion(id: string, answers: QuestionReply[] | null, options?: AnswerOptions): Promise<Answered>

/**
 * Calls back with a session's events: the past as `options` say, then what happens, in one stream of strictly rising
 * numbers. Node stays for it while a turn is open, or always with `keepAlive`.
 *
 * The session never waits for the callback. What comes while it is busy waits here, up to 64 MiB, or 32 MiB of a
 * daemon's session; beyond, facts still come all, and of text and output whose pieces are gone an `itemSoFar` says what
 * they had come to.
 *
 * Rejects with `unknownSession`, `tooManyClients`, `unknownEvent` if it has not come to `after`, or what keeps a saved
 * session from being opened.
 */
export declare function sessionAttach(id: string, callback: (event: Event) => void, options?: AttachOptions): Promise<Attached>

/**
 * Ends receiving: of one attachment, or of all that are attached to this session from here. When it resolves, nothing
 * more is delivered; a loop ends with what it has in hand. The session goes on as before: nothing is answered or
 * interrupted.
 */
export declare function sessionDetach(id: string, attachment?: number): Promise<void>

/**
 * Gives a session another name, which is its title, too. One that is only saved stays so.
 *
 * Rejects with `nameTaken` or `badName`.
 */
export declare function sessionRename(id: string, name: string): Promise<void>

/**
 * Gives a session another model, as `PROVIDER/NAME` or `PROVIDER`, from its next turn on.
 *
 * Rejects with `modelSetup`.
 */
export declare function sessionSetModel(id: string, model: string): Promise<void>

/**
 * Has a session log at debug level, or not any more: to the `log` that was given to `start`, or to that of its daemon. Its
 * snapshot's `isDebugEnabled` says what it is.
 */
export declare function sessionSetDebug(id: string, enabled: boolean): Promise<void>

/** Stops a session at its next boundary; an idle one at once. Gives what the hold is now. */
export declare function sessionHold(id: string): Promise<Hold>

/** Lets a session go on. Gives what the hold is now. */
export declare function sessionRelease(id: string): Promise<Hold>

/**
 * Holds or releases: the other of what the client was showing, which without `shown` is what the session has last
 * published. If that is no longer so, nothing changes. Gives what the hold is now.
 */
export declare function sessionToggleHold(id: string, shown?: HoldShown): Promise<Hold>

/** Every session: live ones first, the newest first. */
export declare function sessionList(): Promise<SessionSummary[]>

/** The open asks of all sessions, live and saved: the oldest first. */
export declare function sessionInbox(): Promise<InboxAsk[]>

/**
 * Finds a session by its id, a unique prefix of it (4 characters or more), or its name, and gives its id. One that
 * is only saved is opened, also if it was closed by another.
 *
 * Rejects with `unknownSession` or `ambiguous` (`error.ids` says which may be meant).
 */
export declare function sessionFind(what: string): Promise<SessionId>

/**
 * Ends a session: its turn is cut, its asks are answered Interrupted, its processes end, its name is free. It stays
 * saved, and opens when it is used again. One that is only saved is not opened for this.
 *
 * Rejects with `inexact` for a prefix of an id, with `closed` if it is that already, with `inUse` if it is not closed because of `unusedSince`, with
 * `notSaving` if what it has done can't be saved at present.
 */
export declare function sessionClose(id: string, options?: CloseOptions): Promise<void>

/**
 * Deletes a closed session, with all that was said in it.
 *
 * Rejects with `live` if it was not closed, with `inexact` for a prefix of an id.
 */
export declare function sessionDelete(id: string): Promise<void>

/**
 * What a session is doing. Read at once, of a session that was opened, found or attached from here, by its id.
 *
 * Throws `unknownSession`.
 */
export declare function sessionGetStatus(id: string): SessionStatus

/**
 * The open pause that is to be shown, or `null`: a question may be before it, or nothing waits. Read at once.
 *
 * What it gives counts as shown: an answer without an id goes to it.
 */
export declare function sessionGetPauseState(id: string): PauseState | null

/**
 * The session as it has last published itself; it is replaced before the event that changed it reaches a callback.
 * Read at once, and a new object each time: ask for it when an event says that something has changed.
 *
 * Its first ask counts as shown: an answer without an id goes to it.
 */
export declare function sessionSnapshot(id: string): Snapshot

/**
 * Opens a fresh session, and gives its id.
 *
 * Rejects with `workspace`, `modelSetup`, `policy`, `nameTaken`, `badName` or `tooManySessions`.
 */
export declare function sessionOpen(options?: OpenOptions): Promise<SessionId>

/**
 * Gives a session something to do. It runs, or the prompt waits, before this resolves. Node stays until it has
 * settled; of a daemon's session, if anyone is attached to it from here.
 *
 * Rejects with `emptyPrompt`, `promptTooLong`, `queueFull` or `notSaving`.
 */
export declare function sessionPrompt(id: string, text: string): Promise<Prompted>

/**
 * Begins a run: a goal, worked through in iterations until no task is left or it is interrupted.
 *
 * Rejects with `emptyGoal`, `promptTooLong`, `badTask`, `turnOpen` or `runOpen`.
 */
export declare function sessionRun(id: string, run: RunRequest): Promise<RunStarted>

/**
 * Waits until no turn and no run is open and no prompt waits, or the session is held; and until callbacks that are
 * attached from here have been given all of it.
 */
export declare function sessionSettled(id: string): Promise<Snapshot>

/** Ends the open turn now, and gives the receipt: what was stopped, ended, released and handed back. */
export declare function sessionInterrupt(id: string, options?: InterruptOptions): Promise<Interrupted>

/**
 * A session's events, to be iterated: the past as `options` say, then what happens. The session never waits; leaving the
 * loop detaches. Node stays for it. It ends with the session; if the connection to a daemon breaks, it throws.
 */
export declare function sessionEvents(id: string, options?: EventsOptions): AsyncGenerator<Event, StreamEnd, void>
