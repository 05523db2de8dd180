// Written by scripts/declarations.mjs.
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

/**
 * A filter for the keys after an ask has closed. It swallows keys that were meant for the ask,
 * until none was pressed for 300 ms. Times are as in `AskForm`.
 */
export declare class AfterAsk {
  /** Creates a filter that swallows no keys yet. */
  constructor()
  /** Reports that an ask has closed: by an answer, an interrupt or another client. */
  begin(at: number): void
  /**
   * Whether to ignore this key. Keys are named as in `AskForm.press`; `esc` and `ctrl+c` are
   * never swallowed.
   */
  swallows(key: string, at: number): boolean
}

/**
 * A form for an open ask: it takes key presses and produces the user's answer. The screen of
 * `holdpoint` and `holdpoint/ink` use the same form.
 *
 * Keys that answer count only 300 ms after the ask appeared, and 300 ms after the last key that
 * does not answer. A second `A` or `D` counts only 700 ms after the first, so that a held key does
 * not approve or deny *always*. `tab`, `backtab`, the arrows, `esc` and `ctrl+c` act at any time.
 * Pass every input of the terminal to `press` or `paste`, even if it has no meaning in your
 * program. The form does not send the answer; your program does.
 *
 * All times are milliseconds of one clock that never goes back, such as `performance.now()`.
 * Methods throw `invalidArgument`.
 */
export declare class AskForm {
  /** Creates a form for an ask that appears at the time `at`. */
  constructor(ask: Ask, at: number)
  /**
   * Passes a key press to the form. Key names are `enter`, `esc`, `tab`, `backtab` (Shift+Tab),
   * `left`, `right`, `home`, `end`, `backspace`, `delete`, a single character such as `y`, and
   * `ctrl+x` for any letter. Any other name is another input of the terminal.
   */
  press(key: string, at: number): Pressed
  /**
   * Passes pasted text, or a character of several code points, to the form. It becomes part of
   * the typed text, and never answers.
   */
  paste(text: string, at: number): Pressed
  /**
   * Reports that the ask, or another question of it, has appeared on the screen: the 300 ms
   * start again. Call this after a `moved` has been drawn. `turned` does not need it, because
   * `press` restarts the time. A time before that of an earlier key has no effect.
   */
  appear(at: number): void
  /**
   * Reports that the answer was refused and the ask is still open, so that another answer can be
   * given. Earlier replies are kept.
   */
  reopen(at: number): void
  /** Number of the current question, counted from 1; 0 for a pause. */
  get questionNumber(): number
  /** Number of questions; 0 for a pause. */
  get questionCount(): number
  /**
   * Meaning of the keys: `choice` if each key is a choice, `words` if the keys type the reply to
   * a question without options, and `ownWords` if the user chose to type, so that Esc returns to
   * the choice.
   */
  get entry(): 'choice' | 'words' | 'ownWords'
  /** Text typed so far: the reply to the current question, or the reason of a denial. */
  get text(): string
  /** Position of the cursor in `text`, in UTF-16 code units. */
  get cursor(): number
  /**
   * Earlier reply to the current question, if the user has returned to it. A skipped question
   * has the answer `null`.
   */
  get reply(): { answer: string | null } | null
  /**
   * Answer that a second press gives *always*: `approve` if `A` was pressed once, `deny` if `D`
   * was.
   */
  get armed(): 'approve' | 'deny' | null
  /** Whether the form has text or replies that were not sent. */
  get isBegun(): boolean
  /** Whether this user has answered, or interrupted the turn. */
  get isDone(): boolean
}

/**
 * The sessions of one engine, with all functions on them. The functions of this package are the
 * methods of such an object, for the engine in this process. `connect` returns one for a daemon's
 * sessions.
 *
 * Methods that return a promise accept a session's id, a unique prefix of it with at least 4
 * characters, or its name. Errors have a `code`: {@link HoldpointError}.
 */
export declare class Sessions {
  private constructor()
  /**
   * Resumes a Continue, so that its tool proceeds.
   *
   * Rejects with `alreadyAnswered` (`error.details.by` is the origin of the first answer),
   * `askClosed`, `kindMismatch`, `unknownAsk`, or `nothingShown` if `askId` is missing and no
   * ask was shown. An answer that is rejected changes nothing.
   */
  sessionPauseResume(id: string, options?: AnswerOptions): Promise<Answered>
  /**
   * Approves or denies a Confirm.
   *
   * Rejects like `sessionPauseResume`.
   */
  sessionPauseConfirm(id: string, approved: boolean, options?: ConfirmOptions): Promise<Answered>
  /**
   * Interrupts the turn of the ask that this program was shown last, as Esc does. Resolves to
   * the effect of the interrupt; `found` is `nothing` if no ask was shown or it is no longer
   * open.
   */
  sessionPauseInterrupt(id: string): Promise<Interrupted>
  /**
   * Replies to the questions of an ask, or declines them all with `null`. There must be one
   * reply per question, with `answer: null` for a skipped one.
   *
   * Rejects like `sessionPauseResume`, and with `incompleteAnswer` if a reply is missing, empty
   * or one too many.
   */
  sessionAnswerQuestion(id: string, answers: QuestionReply[] | null, options?: AnswerOptions): Promise<Answered>
  /**
   * Attaches a callback to a session's events: first the past ones that `options` select, then
   * new ones, with strictly rising numbers. Node stays alive for it while a turn is open, or
   * always with `keepAlive`.
   *
   * The session never waits for the callback. While it is busy, up to 64 MiB of events wait, or
   * 32 MiB for a daemon's session. Beyond that, all facts are still delivered, but pieces of
   * text and output may be replaced by an `itemSoFar` with the text so far.
   *
   * Rejects with `unknownSession`, `tooManyClients`, `unknownEvent` if the session has no event
   * `after`, or the error that prevents a saved session from being opened.
   */
  sessionAttach(id: string, callback: (event: Event) => void, options?: AttachOptions): Promise<Attached>
  /**
   * Detaches one attachment, or all attachments of this program to the session. When the promise
   * resolves, no more events are delivered; a loop still gets the rest of its current batch. The
   * session continues: no ask is answered and no turn is interrupted.
   */
  sessionDetach(id: string, attachment?: number): Promise<void>
  /**
   * Renames a session. The name also becomes its title. A saved session stays saved.
   *
   * Rejects with `nameTaken`, or with `badName` if the name is not allowed.
   */
  sessionRename(id: string, name: string): Promise<void>
  /**
   * Changes the model of a session, as `PROVIDER/NAME` or `PROVIDER`, from its next turn on.
   *
   * Rejects with `modelSetup`.
   */
  sessionSetModel(id: string, model: string): Promise<void>
  /**
   * Turns the debug log of a session on or off. The lines go to the `log` callback of `start`,
   * or to the daemon's log. The snapshot has the setting as `isDebugEnabled`.
   */
  sessionSetDebug(id: string, enabled: boolean): Promise<void>
  /** Changes the asks mode of a session. The new mode also answers the open asks. */
  sessionSetAsks(id: string, asks: AsksMode): Promise<void>
  /** Changes the policy mode of a session, for the calls that follow. Open asks stay open. */
  sessionSetPolicy(id: string, policy: PolicyMode): Promise<void>
  /**
   * Holds a session at its next boundary, or at once if it is idle. Resolves to the new state of
   * the hold.
   */
  sessionHold(id: string): Promise<Hold>
  /** Releases a held session, so that it continues. Resolves to the new state of the hold. */
  sessionRelease(id: string): Promise<Hold>
  /**
   * Releases a session that the user sees as held, or holds it otherwise. `shown` is the state
   * that the user sees; its default is that of the current snapshot. If the session is in
   * another state, nothing changes. Resolves to the new state of the hold.
   */
  sessionToggleHold(id: string, shown?: HoldState): Promise<Hold>
  /**
   * Lists a page of the sessions: live ones first, then the newest first.
   *
   * Rejects with `invalidArgument` if `after` is not the `next` of a page.
   */
  sessionListPage(options?: ListOptions): Promise<SessionList>
  /** Lists all sessions: live ones first, then the newest first. */
  sessionList(): Promise<SessionSummary[]>
  /** Lists the open asks of all sessions, live and saved, the oldest first. */
  sessionInbox(): Promise<InboxAsk[]>
  /**
   * Finds a session by its id, a unique prefix of it with at least 4 characters, or its name,
   * and resolves to its id. A saved session is opened, even if another client closed it.
   *
   * Rejects with `unknownSession`, or with `ambiguous` if several sessions match
   * (`error.details.ids`).
   */
  sessionFind(what: string): Promise<SessionId>
  /**
   * Closes a session: its turn is cut, its asks are closed, its processes end and its name
   * becomes free. The session stays saved, and opens when it is used again. A saved session is
   * closed without being opened.
   *
   * Rejects with `inexact` for a prefix of an id, `closed` if the session is closed already,
   * `inUse` if `unusedSince` prevents the close, and `notSaving` if the session's events can't
   * be saved at present.
   */
  sessionClose(id: string, options?: CloseOptions): Promise<void>
  /**
   * Deletes a saved session and its log.
   *
   * Rejects with `live` if the session is live, with `inexact` for a prefix of an id, and with
   * `ambiguous` if several sessions have the name.
   */
  sessionDelete(id: string): Promise<void>
  /**
   * Opens a new session, and resolves to its id.
   *
   * Rejects with `workspace`, `sandbox`, `modelSetup`, `policy`, `nameTaken`, `badName` or
   * `tooManySessions`.
   */
  sessionOpen(options?: OpenOptions): Promise<SessionId>
  /**
   * Returns the status of a session, at once. The session must have been opened, found or
   * attached in this program; it is named by its id.
   *
   * Throws `unknownSession`.
   */
  sessionGetStatus(id: string): SessionStatus
  /**
   * Returns the pause that clients should show, or `null` if no ask is open or a question comes
   * first. Reads at once, like `sessionGetStatus`.
   *
   * The returned pause counts as shown: an answer without an id goes to it.
   */
  sessionGetPauseState(id: string): PauseState | null
  /**
   * Returns the last snapshot of a session, at once. Each call returns a new object. The
   * snapshot is replaced before the event that changed it reaches a callback, so read it when an
   * event arrives.
   *
   * The first ask of the snapshot counts as shown: an answer without an id goes to it.
   */
  sessionSnapshot(id: string): Snapshot
  /**
   * Sends a prompt to a session. When the promise resolves, the prompt's turn has started or the
   * prompt is queued. Node stays alive until the session has settled; for a daemon's session,
   * only if this program is attached to it.
   *
   * Rejects with `emptyPrompt`, `promptTooLong`, `queueFull` or `notSaving`.
   */
  sessionPrompt(id: string, text: string): Promise<Prompted>
  /**
   * Takes a queued prompt back, so that it never runs. Resolves with its text.
   *
   * Rejects with `notQueued` if its turn has started, or it has ended.
   */
  sessionUnqueue(id: string, prompt: PromptId): Promise<Unqueued>
  /**
   * Starts a run: a goal that is worked through in iterations until no task is left or the run
   * is interrupted. Node stays alive as for `sessionPrompt`.
   *
   * Rejects with `emptyGoal`, `promptTooLong`, `badTask`, `turnOpen` or `runOpen`.
   */
  sessionRun(id: string, run: RunRequest): Promise<RunStarted>
  /**
   * Waits until a session has no open turn, no run and no queued prompt, or is held, and until
   * this program's callbacks have got all its events. Resolves to the snapshot.
   */
  sessionSettled(id: string): Promise<Snapshot>
  /**
   * Interrupts the open turn, or ends a run that is between two turns. Resolves to the effect,
   * with the receipt of the stopped tools, ended processes, closed asks and returned prompts.
   */
  sessionInterrupt(id: string, options?: InterruptOptions): Promise<Interrupted>

  /**
   * Iterates over a session's events: first the past ones that `options` select, then new ones, with
   * strictly rising numbers. Leaving the loop detaches. The session never waits for the loop, and
   * Node stays alive during it. The loop ends when the session is closed, and throws if the
   * connection to a daemon breaks.
   */
  sessionEvents(id: string, options?: EventsOptions): AsyncGenerator<Event, StreamEnd, void>
}

/** The options of an answer. */
export interface AnswerOptions {
  /**
   * Id of the ask. Default: the ask that this program was shown last, by an event or by reading
   * the session, even if another ask is first by now.
   */
  askId?: AskId
}

/** The options of `sessionAttach`. */
export interface AttachOptions {
  /** Number of the last event that you have; only later events are delivered. Default: 0. */
  after?: number
  /** Maximum number of past facts to deliver; the newest ones are delivered. Default: all. */
  limit?: number
  /**
   * Whether Node stays alive while the callback is attached, even if the session is idle.
   * Default: `false`.
   */
  keepAlive?: boolean
  /** Called once, after the last event. */
  onEnd?: (end: StreamEnd) => void
  /**
   * Called with the errors that the callback or `onEnd` throws or, if it is async, rejects with.
   * Default: the process emits a warning.
   */
  onError?: (error: unknown) => void
}

/**
 * Describes the client of an event by its name and process id, in words that follow a verb:
 * `from the command line (pid 7)`, `from the screen (pid 7)`, `from Node.js (pid 7)`,
 * `by curl/8.5.0`.
 *
 * Throws `invalidArgument`.
 */
export declare function clientOrigin(name: string, pid?: number): string

/** The options of `sessionClose`. */
export interface CloseOptions {
  /**
   * Close the session only if it is unused: it has no turn, run or queued prompt, and got none
   * after the event with this number. Default: close in any case.
   */
  unusedSince?: number
}

/** The options of `sessionPauseConfirm`. */
export interface ConfirmOptions {
  /**
   * Id of the ask. Default: the ask that this program was shown last, by an event or by reading
   * the session, even if another ask is first by now.
   */
  askId?: AskId
  /**
   * Whether to approve or deny later calls with the same key as well, for the life of the
   * session. Default: `false`.
   */
  always?: boolean
  /** Reason of a denial, which the model reads. */
  reason?: string
}

/**
 * Connects to a running `holdpoint` daemon. The returned object has the functions of this package,
 * for the daemon's sessions.
 *
 * Rejects with `unreachable` if no daemon runs, with `disconnected` if it does not answer, with
 * `otherVersion` if it has another version of the API, with `fromTool` if a tool call has started
 * this process, with `unverified` if the daemon can't tell, and with `config` if the configuration
 * is wrong.
 */
export declare function connect(options?: ConnectOptions): Promise<Sessions>

/** The options of `connect`. */
export interface ConnectOptions {
  /** State folder of the daemon, as its `--state-dir` names it. Default: the user's own. */
  stateDir?: string
  /** Path of the daemon's socket. It overrides `stateDir`. */
  socket?: string
  /**
   * Configuration for sessions opened through this connection, as TOML text in the format of
   * `config.toml`. Default: the user's own configuration.
   */
  config?: string
}

/** The options of `sessionInterrupt`. */
export interface InterruptOptions {
  /** Turn to interrupt. If another turn is open, nothing changes. Default: the open turn. */
  turn?: TurnId
  /**
   * Whether to wait until nothing of the turn runs any more, so that the result has a receipt.
   * Default: `true`.
   */
  wait?: boolean
}

/** The options of `sessionListPage`. */
export interface ListOptions {
  /** Maximum number of sessions to list, at least 1. Default: all. */
  limit?: number
  /**
   * The end of the previous page, from its `next`. Default: the list begins with its first
   * session.
   */
  after?: SessionCursor
}

/**
 * The options of `sessionOpen`. The configuration, if it has a value, overrides the default of an
 * option.
 */
export interface OpenOptions {
  /** Workspace of the session. Default: the current folder of this process. */
  cwd?: string
  /**
   * Name of the session, unique among live sessions: one line of at most 255 bytes. Default: the
   * name of the workspace's folder, with a number if it is taken.
   */
  name?: string
  /**
   * Model of the session, as `PROVIDER/NAME` or `PROVIDER`. Default: the model of the
   * configuration, else the first provider whose key is set, else `rehearsal`.
   */
  model?: string
  /**
   * Agent that the session hosts, instead of a model and tools of its own: a program with its
   * arguments, or the name of a known agent alone, such as `['opencode']`. `model` is then the id
   * of one of the agent's models. Default: none.
   */
  agent?: Array<string>
  /** Mode of the session's policy. Default: `ask`. */
  policy?: PolicyMode
  /** Rules of the session's policy, in addition to those of the configuration. */
  rules?: OpenRules
  /** Level of the sandbox of tool processes. Default: that of the configuration, or `auto`. */
  sandbox?: SandboxLevel
  /** Asks mode of the session. Default: `wait`. */
  asks?: AsksMode
  /** Maximum number of steps (model requests) in one turn; 0 means no limit. Default: 0. */
  maxSteps?: number
  /**
   * Maximum number of tokens that one turn may use; 0 means no limit. The limit is checked
   * before each request. Default: 0.
   */
  maxTurnTokens?: number
  /**
   * Environment of the session. Tools get the variables on an allow-list, and keys of models are
   * read from it. Default: the environment of this process.
   */
  env?: Record<string, string | undefined>
}

/**
 * Policy rules, written `TOOL` or `TOOL(PATTERN)`, for example `shell(git status)`. They override
 * the mode. Deny overrides ask, and ask overrides allow.
 */
export interface OpenRules {
  /** Calls that run without an ask. */
  allow?: Array<string>
  /** Calls that are asked about, even if they would be allowed. */
  ask?: Array<string>
  /** Calls that are denied without an ask. */
  deny?: Array<string>
}

/**
 * Sets up the engine of this process, before its first use. An engine that is used without this
 * call has the default settings.
 *
 * Throws `alreadyStarted` if the engine has been set up or used, `config` if the configuration is
 * wrong, `start` if another process uses the saved sessions, and `store` if they can't be opened.
 */
export declare function start(options?: StartOptions): void

/** The options of `start`. */
export interface StartOptions {
  /**
   * Configuration as TOML text, in the format of `config.toml`: models, policy, limits. Apart
   * from this text, only the environment is read. Default: empty.
   */
  config?: string
  /**
   * Folder in which sessions are saved, so that they outlive the process. It is the state folder
   * of a daemon as well (`--state-dir`), but only one process can use it at a time.
   * Default: sessions are not saved and end with the process.
   */
  stateDir?: string
  /**
   * Called with each record of the log: those of level `info` and above, and those of level
   * `debug` for sessions with debug logging (`sessionSetDebug`). The environment variable
   * `HOLDPOINT_LOG`, or else `log` in the configuration, sets other levels. Default: no log.
   *
   * The engine never waits for the callback. While it is busy, up to 1 MiB of records wait;
   * further ones are dropped, and a record reports their number. The callback does not keep Node
   * alive, but gets the waiting records when Node exits. If it throws or, being async, rejects,
   * the process emits a warning.
   */
  log?: (record: LogRecord) => void
}

/** Returns the version of the package. */
export declare function version(): string

/**
 * Resumes a Continue, so that its tool proceeds.
 *
 * Rejects with `alreadyAnswered` (`error.details.by` is the origin of the first answer),
 * `askClosed`, `kindMismatch`, `unknownAsk`, or `nothingShown` if `askId` is missing and no
 * ask was shown. An answer that is rejected changes nothing.
 */
export declare function sessionPauseResume(id: string, options?: AnswerOptions): Promise<Answered>

/**
 * Approves or denies a Confirm.
 *
 * Rejects like `sessionPauseResume`.
 */
export declare function sessionPauseConfirm(id: string, approved: boolean, options?: ConfirmOptions): Promise<Answered>

/**
 * Interrupts the turn of the ask that this program was shown last, as Esc does. Resolves to
 * the effect of the interrupt; `found` is `nothing` if no ask was shown or it is no longer
 * open.
 */
export declare function sessionPauseInterrupt(id: string): Promise<Interrupted>

/**
 * Replies to the questions of an ask, or declines them all with `null`. There must be one
 * reply per question, with `answer: null` for a skipped one.
 *
 * Rejects like `sessionPauseResume`, and with `incompleteAnswer` if a reply is missing, empty
 * or one too many.
 */
export declare function sessionAnswerQuestion(id: string, answers: QuestionReply[] | null, options?: AnswerOptions): Promise<Answered>

/**
 * Attaches a callback to a session's events: first the past ones that `options` select, then
 * new ones, with strictly rising numbers. Node stays alive for it while a turn is open, or
 * always with `keepAlive`.
 *
 * The session never waits for the callback. While it is busy, up to 64 MiB of events wait, or
 * 32 MiB for a daemon's session. Beyond that, all facts are still delivered, but pieces of
 * text and output may be replaced by an `itemSoFar` with the text so far.
 *
 * Rejects with `unknownSession`, `tooManyClients`, `unknownEvent` if the session has no event
 * `after`, or the error that prevents a saved session from being opened.
 */
export declare function sessionAttach(id: string, callback: (event: Event) => void, options?: AttachOptions): Promise<Attached>

/**
 * Detaches one attachment, or all attachments of this program to the session. When the promise
 * resolves, no more events are delivered; a loop still gets the rest of its current batch. The
 * session continues: no ask is answered and no turn is interrupted.
 */
export declare function sessionDetach(id: string, attachment?: number): Promise<void>

/**
 * Renames a session. The name also becomes its title. A saved session stays saved.
 *
 * Rejects with `nameTaken`, or with `badName` if the name is not allowed.
 */
export declare function sessionRename(id: string, name: string): Promise<void>

/**
 * Changes the model of a session, as `PROVIDER/NAME` or `PROVIDER`, from its next turn on.
 *
 * Rejects with `modelSetup`.
 */
export declare function sessionSetModel(id: string, model: string): Promise<void>

/**
 * Turns the debug log of a session on or off. The lines go to the `log` callback of `start`,
 * or to the daemon's log. The snapshot has the setting as `isDebugEnabled`.
 */
export declare function sessionSetDebug(id: string, enabled: boolean): Promise<void>

/** Changes the asks mode of a session. The new mode also answers the open asks. */
export declare function sessionSetAsks(id: string, asks: AsksMode): Promise<void>

/** Changes the policy mode of a session, for the calls that follow. Open asks stay open. */
export declare function sessionSetPolicy(id: string, policy: PolicyMode): Promise<void>

/**
 * Holds a session at its next boundary, or at once if it is idle. Resolves to the new state of
 * the hold.
 */
export declare function sessionHold(id: string): Promise<Hold>

/** Releases a held session, so that it continues. Resolves to the new state of the hold. */
export declare function sessionRelease(id: string): Promise<Hold>

/**
 * Releases a session that the user sees as held, or holds it otherwise. `shown` is the state
 * that the user sees; its default is that of the current snapshot. If the session is in
 * another state, nothing changes. Resolves to the new state of the hold.
 */
export declare function sessionToggleHold(id: string, shown?: HoldState): Promise<Hold>

/**
 * Lists a page of the sessions: live ones first, then the newest first.
 *
 * Rejects with `invalidArgument` if `after` is not the `next` of a page.
 */
export declare function sessionListPage(options?: ListOptions): Promise<SessionList>

/** Lists all sessions: live ones first, then the newest first. */
export declare function sessionList(): Promise<SessionSummary[]>

/** Lists the open asks of all sessions, live and saved, the oldest first. */
export declare function sessionInbox(): Promise<InboxAsk[]>

/**
 * Finds a session by its id, a unique prefix of it with at least 4 characters, or its name,
 * and resolves to its id. A saved session is opened, even if another client closed it.
 *
 * Rejects with `unknownSession`, or with `ambiguous` if several sessions match
 * (`error.details.ids`).
 */
export declare function sessionFind(what: string): Promise<SessionId>

/**
 * Closes a session: its turn is cut, its asks are closed, its processes end and its name
 * becomes free. The session stays saved, and opens when it is used again. A saved session is
 * closed without being opened.
 *
 * Rejects with `inexact` for a prefix of an id, `closed` if the session is closed already,
 * `inUse` if `unusedSince` prevents the close, and `notSaving` if the session's events can't
 * be saved at present.
 */
export declare function sessionClose(id: string, options?: CloseOptions): Promise<void>

/**
 * Deletes a saved session and its log.
 *
 * Rejects with `live` if the session is live, with `inexact` for a prefix of an id, and with
 * `ambiguous` if several sessions have the name.
 */
export declare function sessionDelete(id: string): Promise<void>

/**
 * Opens a new session, and resolves to its id.
 *
 * Rejects with `workspace`, `sandbox`, `modelSetup`, `policy`, `nameTaken`, `badName` or
 * `tooManySessions`.
 */
export declare function sessionOpen(options?: OpenOptions): Promise<SessionId>

/**
 * Returns the status of a session, at once. The session must have been opened, found or
 * attached in this program; it is named by its id.
 *
 * Throws `unknownSession`.
 */
export declare function sessionGetStatus(id: string): SessionStatus

/**
 * Returns the pause that clients should show, or `null` if no ask is open or a question comes
 * first. Reads at once, like `sessionGetStatus`.
 *
 * The returned pause counts as shown: an answer without an id goes to it.
 */
export declare function sessionGetPauseState(id: string): PauseState | null

/**
 * Returns the last snapshot of a session, at once. Each call returns a new object. The
 * snapshot is replaced before the event that changed it reaches a callback, so read it when an
 * event arrives.
 *
 * The first ask of the snapshot counts as shown: an answer without an id goes to it.
 */
export declare function sessionSnapshot(id: string): Snapshot

/**
 * Sends a prompt to a session. When the promise resolves, the prompt's turn has started or the
 * prompt is queued. Node stays alive until the session has settled; for a daemon's session,
 * only if this program is attached to it.
 *
 * Rejects with `emptyPrompt`, `promptTooLong`, `queueFull` or `notSaving`.
 */
export declare function sessionPrompt(id: string, text: string): Promise<Prompted>

/**
 * Takes a queued prompt back, so that it never runs. Resolves with its text.
 *
 * Rejects with `notQueued` if its turn has started, or it has ended.
 */
export declare function sessionUnqueue(id: string, prompt: PromptId): Promise<Unqueued>

/**
 * Starts a run: a goal that is worked through in iterations until no task is left or the run
 * is interrupted. Node stays alive as for `sessionPrompt`.
 *
 * Rejects with `emptyGoal`, `promptTooLong`, `badTask`, `turnOpen` or `runOpen`.
 */
export declare function sessionRun(id: string, run: RunRequest): Promise<RunStarted>

/**
 * Waits until a session has no open turn, no run and no queued prompt, or is held, and until
 * this program's callbacks have got all its events. Resolves to the snapshot.
 */
export declare function sessionSettled(id: string): Promise<Snapshot>

/**
 * Interrupts the open turn, or ends a run that is between two turns. Resolves to the effect,
 * with the receipt of the stopped tools, ended processes, closed asks and returned prompts.
 */
export declare function sessionInterrupt(id: string, options?: InterruptOptions): Promise<Interrupted>

/**
 * Iterates over a session's events: first the past ones that `options` select, then new ones, with
 * strictly rising numbers. Leaving the loop detaches. The session never waits for the loop, and
 * Node stays alive during it. The loop ends when the session is closed, and throws if the
 * connection to a daemon breaks.
 */
export declare function sessionEvents(id: string, options?: EventsOptions): AsyncGenerator<Event, StreamEnd, void>
