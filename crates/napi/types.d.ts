// Written by scripts/types.mjs.

/**
 * A point in time, in milliseconds since 1970-01-01 UTC.
 */
export type Timestamp = number
/**
 * Permanent id of a session.
 */
export type SessionId = string
/**
 * The body of an error response. A client that knows the error has the same value as the daemon.
 * It uses the message and the hint only for errors that it does not know.
 */
export type ErrorBody = (
  | {
      code: 'unknownSession'
      details: {
        /**
         * Id or name that was given.
         */
        given: string
      }
    }
  | {
      code: 'ambiguous'
      details: {
        /**
         * Name or prefix that was given.
         */
        given: string
        /**
         * Ids of the sessions that match.
         */
        ids: SessionId[]
      }
    }
  | {
      code: 'inexact'
      details: {
        /**
         * Prefix that was given.
         */
        given: string
        /**
         * Id of the session that has this prefix.
         */
        session: SessionId
      }
    }
  | {
      code: 'nameTaken'
      details: {
        /**
         * Name that is taken.
         */
        name: string
      }
    }
  | {
      code: 'live'
      details: {
        /**
         * Id of the session.
         */
        session: SessionId
      }
    }
  | {
      code: 'notLive'
      details: {
        /**
         * Id of the session.
         */
        session: SessionId
      }
    }
  | {
      code: 'tooManySessions'
      details: {
        /**
         * Maximum number of live sessions.
         */
        limit: number
      }
    }
  | {
      code: 'tooManyClients'
      details: {
        /**
         * Maximum number of attached clients.
         */
        limit: number
      }
    }
  | {
      code: 'unknownEvent'
      details: {
        /**
         * Id of the session.
         */
        session: SessionId
        /**
         * Number that the client wants to continue from.
         */
        after: number
        /**
         * Newest number of the session.
         */
        newest: number
      }
    }
  | {
      code: 'workspace'
      details: {
        /**
         * Path of the folder.
         */
        path: string
        /**
         * Reason why it can't be used.
         */
        message: string
      }
    }
  | {
      code: 'sandbox'
      details: {
        /**
         * Requested level.
         */
        level: SandboxLevel
        /**
         * Reason why it does not work.
         */
        message: string
      }
    }
  | {
      code: 'modelSetup'
      details: {
        /**
         * Setting that is missing or wrong.
         */
        message: string
        /**
         * Advice on how to set it.
         */
        hint: string
      }
    }
  | {
      code: 'model'
      details: {
        /**
         * Reason why it can't be used.
         */
        message: string
      }
    }
  | {
      code: 'policy'
      details: PolicyError
    }
  | {
      code: 'store'
      details: {
        /**
         * Description of the error and its cause.
         */
        message: string
      }
    }
  | {
      code: 'notOwner'
      details: {
        /**
         * Id of the session.
         */
        session: SessionId
        /**
         * Name of the machine.
         */
        owner: string
      }
    }
  | {
      code: 'unknownMachine'
      details: {
        /**
         * Name that was given.
         */
        machine: string
      }
    }
  | {
      code: 'machineUnreachable'
      details: {
        /**
         * Name of the machine.
         */
        machine: string
        /**
         * Reason why it can't be reached.
         */
        message: string
      }
    }
  | {
      code: 'homeAway'
      details: {
        /**
         * Id of the session.
         */
        session: SessionId
        /**
         * Name of the machine, or of the place, with the workspace.
         */
        home: string
      }
    }
  | {
      code: 'placeUnusable'
      details: {
        /**
         * Id of the session.
         */
        session: SessionId
        /**
         * Name of the machine that was to open the session.
         */
        machine: string
        /**
         * Path of the folder on that machine.
         */
        path: string
        /**
         * Reason why it can't be used.
         */
        message: string
      }
    }
  | {
      code: 'damaged'
      details: {
        /**
         * Id of the session.
         */
        session: SessionId
        /**
         * Part that is lost.
         */
        message: string
      }
    }
  | {
      code: 'gone'
      details: {
        /**
         * Id of the session.
         */
        session: SessionId
      }
    }
  | {
      code: 'stopped'
    }
  | {
      code: 'unreachable'
      details: {
        /**
         * Reason why it can't be reached.
         */
        message: string
      }
    }
  | {
      code: 'disconnected'
      details: {
        /**
         * Description of the failure.
         */
        message: string
      }
    }
  | Refused
  | RequestError
) & {
  /**
   * Description of the error, for people.
   */
  message: string
  /**
   * Advice on how to solve the problem, for people.
   */
  hint?: string | null
}
/**
 * The level of a sandbox.
 */
export type SandboxLevel = 'auto' | 'bwrap' | 'landlock' | 'off'
/**
 * The reason why a session refused an operation, which changed nothing.
 */
export type Refused =
  | {
      code: 'closed'
    }
  | {
      code: 'queueFull'
      details: {
        /**
         * Number of queued prompts.
         */
        waiting: number
      }
    }
  | {
      code: 'notQueued'
      details: {
        /**
         * Id of the prompt.
         */
        prompt: PromptId
      }
    }
  | {
      code: 'notSaving'
      details: {
        /**
         * Number of bytes that wait to be saved.
         */
        unsaved: number
      }
    }
  | {
      code: 'emptyPrompt'
    }
  | {
      code: 'promptTooLong'
      details: {
        /**
         * Size of the text in bytes.
         */
        bytes: number
        /**
         * Maximum size in bytes.
         */
        limit: number
      }
    }
  | {
      code: 'emptyGoal'
    }
  | {
      code: 'inUse'
    }
  | {
      code: 'runOpen'
    }
  | {
      code: 'turnOpen'
    }
  | {
      code: 'badTask'
      details: TaskError
    }
  | {
      code: 'badName'
      details: NameError
    }
  | AnswerError
/**
 * Id of an accepted prompt within its session, counted from 1.
 */
export type PromptId = number
/**
 * The reason why a request changed nothing.
 */
export type TaskError =
  | {
      kind: 'unknown'
      /**
       * Id that the session does not know.
       */
      task: TaskId
    }
  | {
      kind: 'noneLeft'
      /**
       * State that the task was to get.
       */
      to: TaskState
    }
  | {
      kind: 'tooMany'
      /**
       * Number of tasks in the list.
       */
      count: number
    }
  | {
      kind: 'empty'
      /**
       * Name of the text: the title, or the note.
       */
      field: string
    }
  | {
      kind: 'tooLong'
      /**
       * Name of the text: the title, or the note.
       */
      field: string
      /**
       * Length of the text in bytes.
       */
      bytes: number
      /**
       * Maximum length in bytes.
       */
      limit: number
    }
/**
 * Id of a task within its session, counted from 1.
 */
export type TaskId = number
/**
 * The state of a task.
 */
export type TaskState = 'todo' | 'doing' | 'done' | 'dropped'
/**
 * The reason why a session can't have a name.
 */
export type NameError =
  | {
      kind: 'empty'
    }
  | {
      kind: 'tooLong'
      /**
       * Length of the name in bytes.
       */
      bytes: number
    }
  | {
      kind: 'control'
    }
  | {
      kind: 'id'
    }
/**
 * The reason why an answer had no effect. The session is unchanged.
 */
export type AnswerError =
  | {
      code: 'alreadyAnswered'
      details: {
        /**
         * Id of the ask.
         */
        ask: AskId
        /**
         * The client or setting that answered first.
         */
        by: AnsweredBy
      }
    }
  | {
      code: 'askClosed'
      details: {
        /**
         * Id of the ask.
         */
        ask: AskId
        /**
         * Reason why the ask closed.
         */
        cause: AskCloseCause
      }
    }
  | {
      code: 'unknownAsk'
      details: {
        /**
         * Id that the session does not know.
         */
        ask: AskId
      }
    }
  | {
      code: 'kindMismatch'
      details: {
        /**
         * Kinds of answer that the ask accepts.
         */
        expected: string
        /**
         * Kind of the refused answer.
         */
        given: string
      }
    }
  | {
      code: 'incompleteAnswer'
      details: {
        /**
         * Id of the question.
         */
        question: string
        /**
         * Description of the fault, to follow the question's id.
         */
        problem: string
      }
    }
  | {
      code: 'nothingShown'
    }
/**
 * Permanent id of an ask: its session and the number of its event.
 */
export type AskId = string
/**
 * The origin of an answer: a client or a setting.
 */
export type AnsweredBy =
  | (Who & {
      type: 'client'
    })
  | {
      type: 'setting'
      /**
       * The asks mode of the session, which is `deny` or `approve`.
       */
      asks: AsksMode
    }
/**
 * The asks mode of a session, which clients can change.
 */
export type AsksMode = 'wait' | 'deny' | 'approve'
/**
 * The reason why an ask closed without an answer.
 */
export type AskCloseCause =
  | 'interrupted'
  | 'sessionClosed'
  | 'callEnded'
  | 'withdrawn'
  | 'turnEnded'
  | 'shutdown'
  | 'restart'
  | 'moved'
  | 'panicked'
/**
 * An error of the HTTP request itself, not of the operation that it requests.
 */
export type RequestError =
  | {
      code: 'malformed'
      details: {
        /**
         * Description of the fault and its position.
         */
        message: string
      }
    }
  | {
      code: 'tooLarge'
      details: {
        /**
         * Maximum size in bytes.
         */
        limit: number
      }
    }
  | {
      code: 'tooSlow'
    }
  | {
      code: 'tooManyConnections'
      details: {
        /**
         * Maximum number of open connections.
         */
        limit: number
      }
    }
  | {
      code: 'tooManyStreams'
      details: {
        /**
         * Maximum number of open streams.
         */
        limit: number
      }
    }
  | {
      code: 'tooManyImports'
      details: {
        /**
         * Maximum number of imports at the same time.
         */
        limit: number
      }
    }
  | {
      code: 'otherVersion'
      details: {
        /**
         * Version of the daemon.
         */
        supported: number
        /**
         * Version that the client requested.
         */
        requested: string
      }
    }
  | {
      code: 'forbidden'
    }
  | {
      code: 'fromTool'
    }
  | {
      code: 'unverified'
      details: {
        /**
         * Reason why it can't be identified.
         */
        message: string
      }
    }
  | {
      code: 'unknownPath'
      details: {
        /**
         * Path of the request.
         */
        path: string
      }
    }
  | {
      code: 'unknownMethod'
      details: {
        /**
         * Path of the request.
         */
        path: string
        /**
         * Method of the request.
         */
        method: string
      }
    }
  | {
      code: 'failed'
      details: {
        /**
         * Description of the failure.
         */
        message: string
      }
    }
/**
 * A frame of the stream of all sessions. The SSE field `event` says which kind it is.
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
 * The status of a session. It is computed from the state, never stored. If several conditions hold,
 * the first of interrupted, paused, running and idle counts.
 *
 * The numbers and the names are stable, because clients in other languages rely on them.
 */
export type SessionStatus = 'idle' | 'running' | 'interrupted' | 'paused'
/**
 * Id of a turn within its session, counted from 1.
 */
export type TurnId = number
/**
 * The outcome of a turn.
 */
export type Outcome = 'done' | 'failed' | 'panicked' | 'interrupted' | 'limit'
/**
 * The reason why a turn was cut.
 */
export type CutCause =
  | {
      type: 'user'
      /**
       * Client that interrupted the turn.
       */
      by: Who
    }
  | {
      type: 'close'
      /**
       * Client that closed the session.
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
 * The reason why a run ended.
 */
export type RunEnd = 'done' | 'interrupted' | 'closed'
/**
 * Id of a tool call within its session. Calls and items share one counter: the output of a
 * call is the item with the same number.
 */
export type CallId = number
/**
 * The origin of an ask.
 */
export type AskOrigin = 'policy' | 'tool'
/**
 * The request of an ask: a pause or a question.
 */
export type AskRequest =
  | (PauseRequest & {
      type: 'pause'
    })
  | (QuestionRequest & {
      type: 'question'
    })
/**
 * The kind of a pause, which determines the answers it accepts.
 */
export type PauseKind = 'continue' | 'confirm'
/**
 * The hold of a session.
 */
export type Hold =
  | {
      state: 'off'
    }
  | {
      state: 'requested'
      /**
       * Reason for the hold.
       */
      cause: HoldCause
      /**
       * Time of the request.
       */
      since: Timestamp
    }
  | {
      state: 'standing'
      /**
       * Reason for the hold.
       */
      cause: HoldCause
      /**
       * Time at which the session stopped.
       */
      since: Timestamp
    }
/**
 * The reason for a hold.
 */
export type HoldCause =
  | {
      type: 'user'
      /**
       * Client that requested the hold.
       */
      by: Who
    }
  | {
      type: 'move'
      /**
       * Client that moves it.
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
           * Number of iterations that were granted.
           */
          count: number
        }
      | {
          type: 'limit'
          limit: 'tokens'
          /**
           * Number of tokens that were granted.
           */
          count: number
        }
      | {
          type: 'limit'
          limit: 'time'
          /**
           * Granted working time in milliseconds.
           */
          ms: number
        }
      | {
          type: 'limit'
          limit: 'failures'
          /**
           * Number of iterations that failed in a row.
           */
          count: number
        }
    )
/**
 * The gaps of a session in ascending order, at most 64.
 */
export type Gaps = Gap[]
/**
 * Position in the list of sessions.
 */
export type SessionCursor = string
/**
 * The mode of a policy: its verdict on calls that no rule covers.
 */
export type PolicyMode = 'ask' | 'edits' | 'sandboxed' | 'all' | 'readonly'
/**
 * The boundary at which a hold of a run takes effect.
 */
export type HoldAt = 'iteration' | 'step'
/**
 * A frame of a session's event stream. The SSE field `event` says which kind it is.
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
 * The content of an event: a fact or a delta.
 */
export type Body = Fact | Delta
/**
 * An event that is logged.
 */
export type Fact = SessionFact | PromptFact | TurnFact | ToolFact | JobFact | AskFact | RunFact | TaskFact
/**
 * Facts about the session as a whole: its lifecycle, settings and hold.
 */
export type SessionFact =
  | {
      type: 'sessionOpened'
      /**
       * Settings of the session.
       */
      settings: SessionSettings
    }
  | {
      type: 'sessionRestored'
      /**
       * Reason why the previous actor had ended.
       */
      cause: RestoreCause
    }
  | {
      type: 'sessionClosed'
      /**
       * Client that closed the session.
       */
      by: Who
    }
  | {
      type: 'sessionRenamed'
      /**
       * New name of the session.
       */
      name: string
      /**
       * Client that renamed the session.
       */
      by: Who
    }
  | {
      type: 'modelChanged'
      /**
       * New model, as `provider/name`.
       */
      model: string
      /**
       * Client that changed the model.
       */
      by: Who
    }
  | {
      type: 'debugChanged'
      /**
       * Whether the session is logged at debug level.
       */
      enabled: boolean
      /**
       * Client that changed the setting.
       */
      by: Who
    }
  | {
      type: 'asksChanged'
      /**
       * New asks mode.
       */
      asks: AsksMode
      /**
       * Client that changed the mode.
       */
      by: Who
    }
  | {
      type: 'policyChanged'
      /**
       * New policy mode.
       */
      policy: PolicyMode
      /**
       * Client that changed the mode.
       */
      by: Who
    }
  | {
      type: 'sessionMoved'
      /**
       * Machine of the folder, in a fleet.
       */
      machine?: string | null
      /**
       * Path of the folder there.
       */
      workspace: string
      /**
       * Client that moved the session.
       */
      by: Who
    }
  | {
      type: 'holdChanged'
      /**
       * New state of the hold.
       */
      hold: Hold
    }
  | (RefusedClient & {
      type: 'clientRefused'
    })
/**
 * The reason why a session had no actor before it was restored.
 */
export type RestoreCause = 'restart' | 'panic' | 'unloaded'
/**
 * Facts about the prompts of the user.
 */
export type PromptFact =
  | {
      type: 'promptAccepted'
      /**
       * Id of the prompt.
       */
      prompt: PromptId
      /**
       * Text of the prompt. Snapshots with this prompt in their queue share it.
       */
      text: string
      /**
       * Client that sent the prompt.
       */
      by: Who
      /**
       * Number of bytes at the beginning of the text that the user has written, if it is not
       * all of it. Only these can name content.
       */
      typedBytes?: number | null
      /**
       * Key that the client has given the request. Among the last 64 keys, a second request with
       * the same one adds no prompt.
       */
      idempotencyKey?: IdempotencyKey | null
    }
  | {
      type: 'promptReturned'
      /**
       * Id of the prompt.
       */
      prompt: PromptId
      /**
       * Text of the prompt, so that the client can restore it.
       */
      text: string
    }
  | {
      type: 'promptDelivered'
      /**
       * Id of the prompt.
       */
      prompt: PromptId
      /**
       * Iteration that received the prompt, counted from 1.
       */
      iteration: number
    }
/**
 * Key of a request, so that it has no second effect when it is sent again.
 */
export type IdempotencyKey = string
/**
 * Facts about a turn and its steps.
 */
export type TurnFact =
  | {
      type: 'turnStarted'
      /**
       * Id of the turn.
       */
      turn: TurnId
      /**
       * Prompt that the turn works on.
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
      type: 'stepFinished'
      /**
       * Usage of the step.
       */
      usage: Usage
      /**
       * Fill level of the model's context; absent if it is not known.
       */
      context?: ContextFill | null
      /**
       * Whether the provider refused the request, and nothing that could be left out helped.
       * Later requests leave out the user's words since the last answer.
       */
      refused?: boolean
      /**
       * Part that is left out when the conversation is sent again, because the provider
       * refused the request.
       */
      omitted?: Omission | null
    }
  | {
      type: 'instructionsRead'
      /**
       * All instruction files that were found, the user's first and the nearest one last.
       */
      files: InstructionFile[]
    }
  | {
      type: 'projectCut'
      /**
       * Description of the missing part and the reason, on one line.
       */
      reason: string
    }
  | {
      type: 'toolsMissing'
      /**
       * Description of the missing tools and the reason, on one line.
       */
      reason: string
    }
  | {
      type: 'contentAdded'
      /**
       * Names of the content, as the prompt has them, on one line.
       */
      name: string
      /**
       * Text of the content.
       */
      text: string
    }
  | {
      type: 'agentStarted'
      /**
       * Id of the agent's own session, which a later start continues.
       */
      session: string
      /**
       * How the agent gets the conversation.
       */
      how: AgentStart
    }
  | (HistoryCut & {
      type: 'historyCut'
    })
  | {
      type: 'turnCut'
      /**
       * Reason for the cut.
       */
      cause: CutCause
    }
  | {
      type: 'turnFinished'
      /**
       * Outcome of the turn.
       */
      outcome: Outcome
      /**
       * Description of the error, if there was one.
       */
      error?: string | null
      /**
       * Reason for the cut; absent if the turn was not cut.
       */
      cause?: CutCause | null
      /**
       * What the cut found and ended; absent if the turn was not cut.
       */
      receipt?: Receipt | null
      /**
       * Usage of the whole turn.
       */
      usage: Usage
    }
/**
 * Id of an item within its session: a block of text or thought, or the output of a tool call.
 */
export type ItemId = number
/**
 * The kind of a block.
 */
export type BlockKind = 'text' | 'thought'
/**
 * The part of a refused conversation that is left out when it is sent again.
 */
export type Omitted = 'calls' | 'thoughts' | 'results' | 'history'
/**
 * How a hosted agent gets the conversation of its session.
 */
export type AgentStart = 'new' | 'resumed' | 'loaded' | 'replayed'
/**
 * A limit of the conversation that is sent to a model.
 */
export type HistoryLimit = 'lines' | 'tokens' | 'window'
/**
 * The way a tool call stopped.
 */
export type StopHow = 'returned' | 'abandoned' | 'lost'
/**
 * Facts about tool calls.
 */
export type ToolFact =
  | {
      type: 'toolStarted'
      /**
       * Id of the call.
       */
      call: CallId
    }
  | (ToolResult & {
      type: 'toolFinished'
    })
/**
 * The way a tool call ended.
 */
export type ToolStatus = 'ok' | 'error' | 'denied' | 'interrupted' | 'panicked'
/**
 * The format of an image. All providers accept these.
 */
export type ImageType = 'image/png' | 'image/jpeg' | 'image/webp'
/**
 * Facts about background jobs.
 */
export type JobFact =
  | {
      type: 'jobStarted'
      /**
       * Id, turn and command of the job.
       */
      job: Job
    }
  | {
      type: 'jobEnded'
      /**
       * Tool call that started the job.
       */
      job: CallId
      /**
       * Reason why the job ended.
       */
      end: JobEnd
    }
/**
 * The reason why a background job ended.
 */
export type JobEnd =
  | {
      type: 'exited'
      /**
       * Exit code of the command.
       */
      code: number
    }
  | {
      type: 'signalled'
      /**
       * Number of the signal.
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
 * Facts about asks.
 */
export type AskFact =
  | {
      type: 'askRaised'
      /**
       * The ask, with everything that a client needs to show it.
       */
      ask: Ask
    }
  | {
      type: 'askAnswered'
      /**
       * Id of the ask.
       */
      ask: AskId
      /**
       * The answer to the ask.
       */
      answer: Answer
      /**
       * Client or setting that answered.
       */
      by: AnsweredBy
      /**
       * Whether the ask was answered while the session was not live and its machine did not
       * respond. The answer takes effect when the session is opened there. Default: `false`.
       */
      whileAway?: boolean
    }
  | {
      type: 'askClosed'
      /**
       * Id of the ask.
       */
      ask: AskId
      /**
       * Reason why the ask closed.
       */
      cause: AskCloseCause
    }
/**
 * A client's answer to an ask.
 */
export type Answer =
  | {
      type: 'resume'
    }
  | {
      type: 'approve'
      /**
       * Also approve later calls with the same key, for the life of the session.
       * Default: `false`.
       */
      always?: boolean
    }
  | {
      type: 'deny'
      /**
       * Reason for the model, which reads it in the same step.
       */
      reason?: string | null
      /**
       * Also deny later calls with the same key, for the life of the session.
       * Default: `false`.
       */
      always?: boolean
    }
  | {
      type: 'reply'
      /**
       * One reply per question. The reply to a skipped question has the answer `null`.
       */
      answers: QuestionReply[]
    }
  | {
      type: 'cancel'
    }
/**
 * Facts about a run and its iterations.
 */
export type RunFact =
  | {
      type: 'runStarted'
      /**
       * Goal, limits and hold boundary of the run.
       */
      run: RunSettings
      /**
       * Client that started the run.
       */
      by: Who
    }
  | {
      type: 'iterationStarted'
      /**
       * Turn of the iteration.
       */
      turn: TurnId
      /**
       * Number of the iteration, counted from 1.
       */
      iteration: number
      /**
       * Whether the iteration was cut by a restart and now continues, with its conversation.
       */
      resumed?: boolean
    }
  | {
      type: 'runWaiting'
      /**
       * Time at which the next iteration starts.
       */
      until: Timestamp
    }
  | {
      type: 'runExtended'
      /**
       * New limits of the run.
       */
      limits: RunLimits
    }
  | {
      type: 'runFinished'
      /**
       * Reason why the run ended.
       */
      end: RunEnd
      /**
       * Progress of the run at its end.
       */
      progress: RunProgress
      /**
       * Client that interrupted the run between two iterations. If the run ended with a
       * turn, the cause of the turn's cut names the client.
       */
      by?: Who | null
    }
  | {
      type: 'filesChanged'
      /**
       * Paths of the files, relative to the workspace.
       */
      paths: string[]
    }
/**
 * Facts about the tasks and notes of a run.
 */
export type TaskFact =
  | {
      type: 'taskAdded'
      /**
       * Id of the task.
       */
      task: TaskId
      /**
       * Title of the task, on one line.
       */
      title: string
    }
  | {
      type: 'taskMoved'
      /**
       * Id of the task.
       */
      task: TaskId
      /**
       * New state of the task.
       */
      to: TaskState
    }
  | {
      type: 'noteTaken'
      /**
       * Text of the note, with its task and iteration.
       */
      note: Note
    }
/**
 * An event that is not logged.
 */
export type Delta =
  | {
      type: 'text'
      /**
       * Item that the piece belongs to.
       */
      item: ItemId
      /**
       * The piece, at most 4 KiB. At an attach it may have up to 68 KiB, where pieces that
       * left the buffer are joined.
       */
      text: string
    }
  | {
      type: 'thought'
      /**
       * Item that the piece belongs to.
       */
      item: ItemId
      /**
       * The piece, at most 4 KiB. At an attach it may have up to 68 KiB, where pieces that
       * left the buffer are joined.
       */
      text: string
    }
  | {
      type: 'output'
      /**
       * Item that the piece belongs to: the output of the call.
       */
      item: ItemId
      /**
       * The piece, at most 32 KiB.
       */
      text: string
    }
  | {
      type: 'status'
      /**
       * New status of the session.
       */
      status: SessionStatus
    }
  | {
      type: 'itemSoFar'
      /**
       * Id of the item.
       */
      item: ItemId
      /**
       * Kind of the item.
       */
      kind: ItemKind
      /**
       * Text so far. For text and thoughts it is in the head; output has a head and a tail.
       */
      soFar: HeadAndTail
    }
  | {
      type: 'retrying'
      /**
       * Number of the next try, counted from 1.
       */
      try: number
      /**
       * Maximum number of tries.
       */
      tries: number
      /**
       * Milliseconds until the next try.
       */
      waitMs: number
      /**
       * Reason why the last try failed.
       */
      reason: string
    }
  | {
      type: 'gap'
      /**
       * Number of the first missing fact.
       */
      from: number
      /**
       * Number of the last missing fact.
       */
      to: number
    }
  | {
      type: 'notSaved'
      /**
       * Reason why events are not saved.
       */
      reason: string
    }
  | {
      type: 'savedAgain'
    }
/**
 * The kind of an item.
 */
export type ItemKind = 'text' | 'thought' | 'output'
/**
 * The reason why a client's event stream ended.
 */
export type ClientEnd =
  | {
      reason: 'detached'
    }
  | {
      reason: 'lagged'
      /**
       * Number of the last event that was sent.
       */
      after: number
    }
  | {
      reason: 'ended'
    }
  | {
      reason: 'moved'
      /**
       * Number of the last event that was saved.
       */
      after: number
    }
  | {
      reason: 'stopped'
    }
  | {
      reason: 'disconnected'
      /**
       * Number of the last event that was received.
       */
      after: number
    }
/**
 * The ids of tool calls in requests.
 */
export type ToolIds = 'provider' | 'own'
/**
 * The name of the request field with the maximum number of tokens of an answer.
 */
export type MaxTokensField = 'max_tokens' | 'max_completion_tokens'
/**
 * The three states of a hold, as clients show them and send them back with a toggle.
 */
export type HoldState = 'off' | 'requested' | 'standing'

/**
 * The state of the daemon. Programs of every version can read it: a missing field has its empty
 * value.
 */
export interface DaemonStatus {
  /**
   * Version of the program.
   */
  version: string
  /**
   * Version of the API.
   */
  api: number
  /**
   * Process id of the daemon.
   */
  pid: number
  /**
   * Path of the socket that the daemon listens on; empty if all its sockets were removed.
   */
  socket: string
  /**
   * Folder in which sessions are saved.
   */
  data: string
  /**
   * Name of this machine in its fleet, which has the sessions in its database; absent if it is in
   * none.
   */
  machine?: string | null
  /**
   * Time at which the daemon started.
   */
  since: Timestamp
  /**
   * Seconds without work and clients after which the daemon stops; absent if it never stops by
   * itself.
   */
  idleStopS?: number | null
  /**
   * Parts of the configuration that the daemon read when it started, by key: `fleet`, `limits`,
   * `log`, `notify`, `sandbox`, `web`.
   */
  config: {
    [k: string]: unknown
  }
  /**
   * Path of the log file.
   */
  log?: string | null
  /**
   * Number of lines missing from the log, because they came faster than they could be written.
   */
  logLinesLost: number
  /**
   * Numbers of sessions, by activity.
   */
  sessions: SessionCounts & {
    [k: string]: unknown
  }
  /**
   * Number of open connections.
   */
  connections: number
  /**
   * File descriptors of the daemon.
   */
  descriptors: Descriptors & {
    [k: string]: unknown
  }
  /**
   * Number of clients attached to sessions.
   */
  clients: number
  /**
   * Number of queued prompts in all sessions.
   */
  queuedPrompts: number
  /**
   * Whether everything is saved.
   */
  saved: boolean
  /**
   * Browsers that run for sessions.
   */
  browsers?: BrowserStatus[]
  /**
   * Descriptions of damaged databases that the daemon found and set aside.
   */
  damaged?: string[]
}
/**
 * The numbers of live sessions, by activity.
 */
export interface SessionCounts {
  /**
   * Number of live sessions.
   */
  live: number
  /**
   * Number of live sessions with a turn, a run, a hold, an open ask or a background job.
   */
  busy: number
  /**
   * Number of live sessions with the status `running`.
   */
  running: number
  /**
   * Number of live sessions with an open ask.
   */
  waiting: number
  /**
   * Number of live sessions that are held.
   */
  held: number
  /**
   * Maximum number of live sessions.
   */
  limit: number
}
/**
 * The file descriptors of a process.
 */
export interface Descriptors {
  /**
   * Number of open descriptors.
   */
  open: number
  /**
   * Maximum number of open descriptors, which `ulimit -n` sets in the shell that starts the
   * process; absent if there is none.
   */
  limit?: number | null
}
/**
 * A browser that runs for a session.
 */
export interface BrowserStatus {
  /**
   * Id of the session.
   */
  session: SessionId
  /**
   * Process id of the browser.
   */
  pid: number
  /**
   * Address of the developer tools, as `127.0.0.1:PORT`. Every user of this machine can connect
   * to it.
   */
  debugging: string
  /**
   * Whether the browser has a window.
   */
  visible: boolean
  /**
   * Whether the browser's own sandbox is on.
   */
  sandbox: boolean
}
/**
 * The error for a rule that can't be applied, with the reason.
 */
export interface PolicyError {
  /**
   * Rule as the user wrote it.
   */
  rule: string
  /**
   * Mistake in the rule, and a rule to write instead.
   */
  problem: string
}
/**
 * A client as others see it: its name and its process.
 */
export interface Who {
  /**
   * Name that the client gives itself, for example `run` or `tui`.
   */
  name: string
  /**
   * Process id of the client; absent if the client has no process of its own.
   */
  pid?: number | null
}
/**
 * The summary of a session, as lists show it.
 */
export interface SessionSummary {
  /**
   * Id of the session.
   */
  id: SessionId
  /**
   * Name of the session.
   */
  name: string
  /**
   * First line of the first prompt or goal. After a rename, and before the first prompt, it is
   * the name.
   */
  title: string
  /**
   * Last line of text that the model wrote, at most 200 characters; absent before the first
   * answer.
   */
  lastLine?: string | null
  /**
   * Whether the session is live.
   */
  live: boolean
  /**
   * Status of the session.
   */
  status: SessionStatus
  /**
   * Time of the last change of the status.
   */
  since: Timestamp
  /**
   * End of the last turn; `null` before it.
   */
  lastTurn: LastTurn | null
  /**
   * End of the last run; absent before it.
   */
  lastRun?: LastRun | null
  /**
   * First open ask; `null` if there is none.
   */
  waitsFor: Ask | null
  /**
   * Number of open asks.
   */
  asks: number
  /**
   * Hold of the session.
   */
  hold: Hold
  /**
   * Progress of the run that has not ended, if there is one.
   */
  run?: RunProgress | null
  /**
   * Numbers of tasks, by state.
   */
  tasks?: TaskCounts
  /**
   * Model of the session, as `provider/name`.
   */
  model: string
  /**
   * Absolute path of the session's workspace.
   */
  workspace: string
  /**
   * Other machine of the fleet that has the session, or, if none has it, the one with its
   * workspace; absent for a session of this machine.
   */
  machine?: string | null
  /**
   * Present if `machine` does not respond. The session is then shown as it was saved last.
   */
  away?: Away | null
  /**
   * Ranges of events that can't be read.
   */
  gaps?: Gaps
}
/**
 * The end of a session's last turn.
 */
export interface LastTurn {
  /**
   * Id of the turn.
   */
  turn: TurnId
  /**
   * Outcome of the turn.
   */
  outcome: Outcome
  /**
   * Reason for the cut; absent if the turn was not cut.
   */
  cause?: CutCause | null
  /**
   * Description of the error, if there was one.
   */
  error?: string | null
}
/**
 * The end of a session's last run.
 */
export interface LastRun {
  /**
   * Reason why the run ended.
   */
  end: RunEnd
  /**
   * Last turn of the session when the run ended. Later turns do not belong to the run.
   */
  turn?: TurnId | null
  /**
   * Progress of the run at its end.
   */
  progress: RunProgress
}
/**
 * The progress of a run.
 */
export interface RunProgress {
  /**
   * Current or last iteration, counted from 1; 0 before the first.
   */
  iteration: number
  /**
   * Number of tokens used, requests and answers together.
   */
  tokens: number
  /**
   * Working time in milliseconds up to `workingSince`, without the time that the run was held or
   * waited for an answer.
   */
  workedMs: number
  /**
   * Time since which the run has been working; absent while it is held or waits for an answer.
   */
  workingSince?: Timestamp | null
}
/**
 * An open ask, with everything that a client needs to show and answer it.
 */
export interface Ask {
  /**
   * Id of the ask, which is never used again.
   */
  id: AskId
  /**
   * Tool call that the ask belongs to.
   */
  call: CallId
  /**
   * Origin of the ask.
   */
  origin: AskOrigin
  /**
   * Time at which the ask was raised.
   */
  since: Timestamp
  /**
   * The pause or the questions.
   */
  request: AskRequest
  /**
   * Description of the calls that *always* would cover. If it is absent, an answer with *always*
   * applies to this call alone.
   */
  always?: string | null
  /**
   * Whether a deny rule may apply to the call. Only a person can approve it then.
   */
  mayBeDenied?: boolean
}
/**
 * A pause: a tool waits for the user.
 */
export interface PauseRequest {
  /**
   * Kind of the pause.
   */
  kind: PauseKind
  /**
   * Name of the tool that asks.
   */
  toolName: string
  /**
   * Message for the user, on one line.
   */
  message: string
  /**
   * Text that the user needs before answering, such as the exact command, an address or a diff.
   */
  details?: string | null
}
/**
 * A request for words or a choice from the user.
 */
export interface QuestionRequest {
  /**
   * Name of the tool that asks.
   */
  toolName: string
  /**
   * Questions, each answered by its id.
   */
  questions: Question[]
}
/**
 * A question to the user.
 */
export interface Question {
  /**
   * Id of the question, unique in its request. The reply refers to it.
   */
  id: string
  /**
   * Short heading of the question.
   */
  header: string
  /**
   * Text of the question.
   */
  question: string
  /**
   * Suggested answers. The user can always reply with other words.
   */
  options?: QuestionOption[]
}
/**
 * A suggested answer to a question.
 */
export interface QuestionOption {
  /**
   * Text of the answer.
   */
  label: string
  /**
   * Explanation of the consequences of this choice.
   */
  description?: string
}
/**
 * The numbers of tasks, by state.
 */
export interface TaskCounts {
  /**
   * Number of finished tasks.
   */
  done: number
  /**
   * Number of tasks being worked on.
   */
  doing: number
  /**
   * Number of tasks not started.
   */
  todo: number
  /**
   * Number of tasks given up.
   */
  dropped: number
}
/**
 * The absence of a machine of the fleet that does not respond.
 */
export interface Away {
  /**
   * Time of the machine's last heartbeat or clean stop, by the clock of this one; absent if the
   * machine is not in the fleet any more.
   */
  seen?: Timestamp | null
}
/**
 * A range of events that can't be read, because they are damaged or lost in the store.
 */
export interface Gap {
  /**
   * Number of the first event.
   */
  from: number
  /**
   * Number of the last event.
   */
  to: number
}
/**
 * Open asks, the oldest first.
 */
export interface Inbox {
  /**
   * The open asks with their sessions.
   */
  asks: InboxAsk[]
}
/**
 * An open ask and its session.
 */
export interface InboxAsk {
  /**
   * Id of the session.
   */
  session: SessionId
  /**
   * Name of the session.
   */
  name: string
  /**
   * Absolute path of the session's workspace.
   */
  workspace: string
  /**
   * Whether the session is live.
   */
  live: boolean
  /**
   * Other machine of the fleet that has the session, as in its summary; absent for a session of
   * this machine.
   */
  machine?: string | null
  /**
   * Present if `machine` does not respond.
   */
  away?: Away | null
  /**
   * Ask that waits for an answer.
   */
  ask: Ask
}
/**
 * The response to an answer that was accepted.
 */
export interface Answered {
  /**
   * Id of the answered ask.
   */
  ask: AskId
  /**
   * Whether the answer is saved on disk.
   */
  saved: boolean
  /**
   * Name of the machine or place at which the answer takes effect, when the session is opened there;
   * absent for an answer that has taken effect.
   */
  home?: string | null
}
/**
 * A page of the list of sessions: live ones first, then the newest first.
 *
 * A session that becomes live or stops being live between two pages may be in both or in neither.
 */
export interface SessionList {
  /**
   * Summaries of the sessions.
   */
  sessions: SessionSummary[]
  /**
   * The value of `after` that lists the following sessions. Absent if there are none.
   */
  next?: SessionCursor | null
}
/**
 * A session at one moment. It reflects all events up to `seq`.
 */
export interface Snapshot {
  /**
   * Settings of the session, with its current name and model.
   */
  settings: SessionSettings
  /**
   * First line of the first prompt or goal. After a rename, and before the first prompt, it is
   * the name.
   */
  title: string
  /**
   * Last line of text that the model wrote, at most 200 characters; absent before the first
   * answer.
   */
  lastLine?: string | null
  /**
   * Number of the last event.
   */
  seq: number
  /**
   * Status of the session.
   */
  status: SessionStatus
  /**
   * Time of the last change of the status.
   */
  since: Timestamp
  /**
   * Total working time in milliseconds up to `workingSince`, without the time that the session
   * was idle, held or waiting for an answer.
   */
  workedMs: number
  /**
   * Time since which the session has been working; absent while it is idle, held or waiting for
   * an answer.
   */
  workingSince?: Timestamp | null
  /**
   * Open turn; `null` if there is none.
   */
  turn: TurnId | null
  /**
   * Current step of the open turn, counted from 1; `null` before the first.
   */
  step: number | null
  /**
   * Open asks, the oldest first. Clients show the first one.
   */
  asks: Ask[]
  /**
   * Hold of the session.
   */
  hold: Hold
  /**
   * Queued prompts, in order.
   */
  queue: QueuedPrompt[]
  /**
   * Running background jobs, the oldest first.
   */
  jobs: Job[]
  /**
   * End of the last turn; `null` before it.
   */
  lastTurn: LastTurn | null
  /**
   * Run that has not ended, if there is one.
   */
  run?: Run | null
  /**
   * End of the last run; absent before it.
   */
  lastRun?: LastRun | null
  /**
   * Tasks of the session, the oldest first.
   */
  tasks: Task[]
  /**
   * Newest notes, at most 20, the oldest first.
   */
  notes: Note[]
  /**
   * Usage of all turns.
   */
  usage: Usage
  /**
   * Fill level of the model's context; absent before the first answer.
   */
  context?: ContextFill | null
  /**
   * Instruction files that the last turn found, the user's first and the nearest one last.
   */
  instructions?: InstructionFile[]
  /**
   * Paths of the files that the session has changed, relative to the workspace if they are
   * inside.
   */
  filesModified: string[]
  /**
   * Number of attached clients.
   */
  clients: number
  /**
   * Whether all events up to `seq` are saved on disk.
   */
  saved: boolean
  /**
   * Reason why some events are not saved; absent if all are.
   */
  notSaved?: string | null
  /**
   * Ranges of events that can't be read.
   */
  gaps?: Gaps
  /**
   * Whether the session is logged at debug level.
   */
  isDebugEnabled: boolean
}
/**
 * The settings that a session is opened with.
 */
export interface SessionSettings {
  /**
   * Id of the session.
   */
  id: SessionId
  /**
   * Name of the session, unique among live sessions.
   */
  name: string
  /**
   * Absolute path of the session's workspace.
   */
  workspace: string
  /**
   * Model of the session, as `provider/name`; `agent/NAME` if it hosts an agent.
   */
  model: string
  /**
   * Agent that the session hosts; absent if it has a model and tools of its own.
   */
  agent?: AgentSettings | null
  /**
   * Asks mode of the session.
   */
  asks: AsksMode
  /**
   * Mode of the session's policy.
   */
  policy: PolicyMode
  /**
   * Rules of the session's policy, in addition to the mode.
   */
  rules?: PolicyRules
  /**
   * Sandbox of the session's tool processes. Its level is the one that was chosen when the session
   * was opened, and never `auto`. Default: `off`.
   */
  sandbox?: SandboxSettings
  /**
   * Maximum number of steps (model requests) in one turn; 0 means no limit.
   */
  maxSteps: number
  /**
   * Maximum number of tokens that one turn may use, requests and answers together; 0 means no
   * limit.
   */
  maxTurnTokens: number
}
/**
 * An agent that a session hosts: a program that is its model and its tools. The program is started
 * with the session's first turn, in its sandbox, and ends with the session.
 */
export interface AgentSettings {
  /**
   * Name of the agent: letters, digits, `.`, `_` and `-`, at most 32.
   */
  name: string
  /**
   * Program of the agent, as a path or a name to look up in the `PATH` of the session, and its
   * arguments; or the name of a known agent alone. At most 64 words and 16 KiB. No shell is
   * involved.
   */
  command: string[]
  /**
   * Model that the agent uses, by its id at the agent. At most 256 bytes. Default: the agent's own
   * choice.
   */
  model?: string | null
}
/**
 * The rules of a policy, which override its mode. Deny overrides ask, and ask overrides allow.
 */
export interface PolicyRules {
  /**
   * Calls that run without an ask.
   */
  allow?: string[]
  /**
   * Calls that are asked about, even if the mode or an allow rule allows them.
   */
  ask?: string[]
  /**
   * Calls that are denied without an ask.
   */
  deny?: string[]
}
/**
 * The settings of the sandbox of tool processes.
 */
export interface SandboxSettings {
  /**
   * Level of the sandbox: `auto`, `bwrap`, `landlock` or `off`. With `bwrap` or `landlock`, no
   * session is opened where that level does not work. Default: `auto`.
   */
  level: SandboxLevel & string
  /**
   * Further files and folders that processes may change, as absolute paths or with `~/`.
   * Default: none.
   */
  writable?: string[]
  /**
   * Further files and folders that processes can't read, as absolute paths or with `~/`.
   * Default: none.
   */
  hidden?: string[]
  /**
   * Whether processes may use the network. Default: `false`.
   */
  network: boolean
}
/**
 * A prompt in the queue of a session.
 */
export interface QueuedPrompt {
  /**
   * Id of the prompt.
   */
  prompt: PromptId
  /**
   * Text of the prompt.
   */
  text: string
}
/**
 * A running background job. It ends with its session at the latest, or when its turn is
 * interrupted.
 */
export interface Job {
  /**
   * Tool call that started the job, which is also the id of the job.
   */
  id: CallId
  /**
   * Turn of that call.
   */
  turn: TurnId
  /**
   * Shell command that runs.
   */
  command: string
  /**
   * Time at which the job started.
   */
  since: Timestamp
}
/**
 * A run that has not ended.
 */
export interface Run {
  /**
   * Settings that the run was started with.
   */
  settings: RunSettings
  /**
   * Current limits, including later grants.
   */
  limits: RunLimits
  /**
   * Progress of the run.
   */
  progress: RunProgress
  /**
   * Number of iterations that failed in a row.
   */
  failures: number
  /**
   * Start of the next iteration after a failed one; absent if the run does not wait.
   */
  waitsUntil?: Timestamp | null
  /**
   * Whether the current iteration was cut by a restart or a failure. It continues when the run
   * is released.
   */
  cut?: boolean
}
/**
 * The settings that a run is started with.
 */
export interface RunSettings {
  /**
   * Goal of the run.
   */
  goal: string
  /**
   * Limits at which the run is held. Each release of such a hold grants the same amount again.
   */
  limits: RunLimits & {
    [k: string]: unknown
  }
  /**
   * Boundary at which a hold takes effect.
   */
  holdAt: HoldAt & string
}
/**
 * The limits of a run. A run that reaches one is held, never cut: tokens and time are checked
 * before each model request, iterations at the end of each one.
 */
export interface RunLimits {
  /**
   * Maximum number of iterations; `null` means no limit. Default: 50.
   */
  iterations: number | null
  /**
   * Maximum number of tokens, requests and answers together; `null` means no limit.
   * Default: `null`.
   */
  tokens: number | null
  /**
   * Maximum working time in milliseconds, without the time that the run is held or waits for an
   * answer; `null` means no limit. Default: `null`.
   */
  timeMs: number | null
}
/**
 * A task of a session.
 */
export interface Task {
  /**
   * Id of the task.
   */
  id: TaskId
  /**
   * Title of the task, on one line.
   */
  title: string
  /**
   * State of the task.
   */
  state: TaskState
}
/**
 * A note that the model leaves for later iterations.
 */
export interface Note {
  /**
   * Text of the note.
   */
  text: string
  /**
   * Task that the note is about, if any.
   */
  task?: TaskId | null
  /**
   * Iteration in which the note was taken; absent outside of a run.
   */
  iteration?: number | null
}
/**
 * The tokens and the cost of model requests, as counted by the provider unless `estimated` is set.
 */
export interface Usage {
  /**
   * Number of request tokens, including cached ones.
   */
  input: number
  /**
   * Number of request tokens that were read from the provider's cache.
   */
  cached: number
  /**
   * Number of request tokens that were written to the provider's cache; 0 if the provider does
   * not count them.
   */
  cacheWritten?: number
  /**
   * Number of answer tokens, including thoughts.
   */
  output: number
  /**
   * Cost in millionths of the currency of the model's configured price; absent without a price.
   */
  cost?: number | null
  /**
   * Whether some numbers are estimates, because the provider sent none.
   */
  estimated: boolean
}
/**
 * The fill level of the context of a session's model.
 */
export interface ContextFill {
  /**
   * Number of tokens of the last request and its answer.
   */
  tokens: number
  /**
   * Maximum number of tokens of a request. Beyond it, the oldest messages are left out.
   */
  limit: number
}
/**
 * An instruction file that a turn found, whether or not the model gets it.
 */
export interface InstructionFile {
  /**
   * Path of the file: relative to the workspace for a file of the project, absolute for the
   * user's own.
   */
  path: string
  /**
   * Number of bytes that the model gets; 0 if the file is left out.
   */
  bytes: number
  /**
   * Reason why the model does not get the exact file; absent if it does.
   */
  reason?: string | null
}
/**
 * The response to a session that was handed over.
 */
export interface HandedOver {
  /**
   * Whether the session was live.
   */
  live: boolean
}
/**
 * An event of a session.
 */
export interface Event {
  /**
   * Number of the event. Numbers rise strictly, but not always by one, and are never used again.
   */
  seq: number
  /**
   * Time of the event.
   */
  at: Timestamp
  /**
   * Turn that the event belongs to; absent if it belongs to no turn.
   */
  turn?: TurnId | null
  /**
   * Step of the turn, counted from 1; absent if the event belongs to no step.
   */
  step?: number | null
  /**
   * Content of the event.
   */
  body: Body
}
/**
 * A client that the daemon refused because a tool call had started its process.
 */
export interface RefusedClient {
  /**
   * Process id of the client.
   */
  pid: number
  /**
   * Name of the client's program, at most 15 bytes. The process can choose it.
   */
  program: string
  /**
   * Method and path of the request, at most 200 characters.
   */
  request: string
}
/**
 * One answer of a model, received in one step.
 */
export interface AssistantMessage {
  /**
   * Text and thoughts, in the order in which they arrived.
   */
  blocks: Block[]
  /**
   * Tool calls, in order.
   */
  calls?: ToolCall[]
  /**
   * Whether the answer was cut before its end.
   */
  partial?: boolean
  /**
   * Model that answered, as `provider/name`.
   */
  model?: string | null
  /**
   * Tokens used by the request and the answer.
   */
  usage?: Usage | null
}
/**
 * One block of text or thought. It is an item, and the sum of the item's deltas.
 */
export interface Block {
  /**
   * Id of the item.
   */
  item: ItemId
  /**
   * Kind of the block.
   */
  kind: BlockKind
  /**
   * Whole text of the block.
   */
  text: string
  /**
   * Opaque data that the provider expects back unchanged with a thought.
   */
  signature?: string | null
  /**
   * Number of calls in the answer that the model wrote before this block.
   */
  callsBefore?: number
}
/**
 * A request of a model to call a tool.
 */
export interface ToolCall {
  /**
   * Id of the call in the session.
   */
  id: CallId
  /**
   * Id of the call at the provider, which is sent back with the result.
   */
  providerId?: string | null
  /**
   * Name of the tool.
   */
  name: string
  /**
   * Arguments of the call, as an object.
   */
  input: {
    [k: string]: unknown
  }
  /**
   * Opaque data that the provider expects back unchanged with the call.
   */
  signature?: string | null
}
/**
 * A part that is left out, with the reason.
 */
export interface Omission {
  /**
   * The part that is left out.
   */
  what: Omitted
  /**
   * Provider's refusal of the conversation that contained the part.
   */
  reason: string
}
/**
 * The parts that were left out of a model request, and the size of the rest.
 */
export interface HistoryCut {
  /**
   * Number of messages that were left out.
   */
  messages: number
  /**
   * Number of tool results that were shortened.
   */
  results: number
  /**
   * Number of tokens that were sent, by Holdpoint's estimate.
   */
  tokens: number
  /**
   * Maximum number of tokens of a request.
   */
  limit: number
  /**
   * Number of lines that were sent.
   */
  lines: number
  /**
   * Maximum number of lines of a request.
   */
  lineLimit: number
  /**
   * Limit that was reached.
   */
  reached: HistoryLimit
}
/**
 * The receipt of an interrupt, in the turn's last event: the stopped calls and ended processes.
 */
export interface Receipt {
  /**
   * Tool calls that were running, and how each stopped.
   */
  tools: StoppedTool[]
  /**
   * Numbers of processes that were ended.
   */
  processes: EndedProcesses
  /**
   * Asks that the interrupt closed.
   */
  asks: AskId[]
  /**
   * Queued prompts that were handed back.
   */
  prompts: PromptId[]
  /**
   * Whether the runtime or the session's actor had ended before the turn, so that its processes
   * were not counted.
   */
  uncounted?: boolean
}
/**
 * A tool call that was running when its turn was cut.
 */
export interface StoppedTool {
  /**
   * Id of the call.
   */
  call: CallId
  /**
   * Name of the tool.
   */
  name: string
  /**
   * Way the call stopped.
   */
  how: StopHow
}
/**
 * The numbers of processes that were ended, by signal.
 */
export interface EndedProcesses {
  /**
   * Number of processes that ended after TERM, within the grace.
   */
  terminated: number
  /**
   * Number of processes that were ended with KILL.
   */
  killed: number
  /**
   * Ids of processes that could not be ended.
   */
  notEnded?: number[]
}
/**
 * The end of a tool call, as the model reads it.
 */
export interface ToolResult {
  /**
   * Id of the call.
   */
  call: CallId
  /**
   * Way the call ended.
   */
  status: ToolStatus
  /**
   * Kept part of the output that the call streamed.
   */
  output?: HeadAndTail
  /**
   * Text that the tool returned at its end.
   */
  result: string
  /**
   * Images that the tool returned. The text names each of them.
   */
  images?: Image[]
  /**
   * Files that the call read.
   */
  read?: FileMark[]
  /**
   * Files that the call wrote.
   */
  wrote?: FileMark[]
}
/**
 * The head and the tail of a text of any length.
 *
 * The finished value does not depend on the pieces in which the text was pushed. A client that
 * folds deltas therefore gets the same value as the fact that ends the item. At most 48 KiB are
 * held.
 */
export interface HeadAndTail {
  /**
   * Beginning of the text, at most 16 KiB, cut at a character boundary.
   */
  head?: string
  /**
   * Number of bytes left out between head and tail.
   */
  dropped?: number
  /**
   * End of the text, if the head does not hold all of it.
   */
  tail?: string
}
/**
 * An image that a tool returned.
 */
export interface Image {
  /**
   * Format of the data.
   */
  mediaType: ImageType
  /**
   * The image file, in base64 with padding.
   */
  data: string
}
/**
 * The state of a file as a tool read or left it, which shows later changes by others.
 */
export interface FileMark {
  /**
   * Path of the file, relative to the workspace if it is inside.
   */
  path: string
  /**
   * Size of the file in bytes.
   */
  size: number
  /**
   * Time of the last modification, in nanoseconds since 1970.
   */
  modified: number
  /**
   * First 128 bits of the content's BLAKE3 hash, in hexadecimal; absent for files larger than
   * 64 MiB.
   */
  hash?: string | null
}
/**
 * The reply to one question.
 */
export interface QuestionReply {
  /**
   * Id of the question.
   */
  id: string
  /**
   * Label of an option or free text, not blank; `null` if the user skips the question.
   */
  answer: string | null
}
/**
 * The response to an accepted prompt.
 */
export interface Prompted {
  /**
   * Id of the prompt.
   */
  prompt: PromptId
  /**
   * Position in the queue, where 1 is next; 0 if the prompt's turn has started.
   */
  position: number
  /**
   * Whether the prompt is saved on disk.
   */
  saved: boolean
}
/**
 * The response to a prompt that was taken out of the queue.
 */
export interface Unqueued {
  /**
   * Id of the prompt.
   */
  prompt: PromptId
  /**
   * Text of the prompt.
   */
  text: string
  /**
   * Whether the change is saved on disk.
   */
  saved: boolean
}
/**
 * The response to the start of a run.
 */
export interface RunStarted {
  /**
   * Turn of the first iteration; absent if the session is held. The run then starts when it is
   * released.
   */
  turn?: TurnId | null
  /**
   * Whether the run is saved on disk.
   */
  saved: boolean
}
/**
 * The effect of an interrupt.
 */
export interface InterruptReply {
  /**
   * The interrupted turn; absent if no such turn was open.
   */
  turn?: TurnId | null
  /**
   * Whether the interrupt ended a run that had no open turn.
   */
  run?: boolean
  /**
   * Number of the session's last event before the interrupt. The end of the turn follows it.
   */
  after: number
  /**
   * End of the turn; absent if the request did not wait for it.
   */
  end?: TurnEnd | null
}
/**
 * The end of a turn.
 */
export interface TurnEnd {
  /**
   * Id of the turn.
   */
  turn: TurnId
  /**
   * Outcome of the turn.
   */
  outcome: Outcome
  /**
   * What the interrupt found and ended; absent if the turn was not cut.
   */
  receipt?: Receipt | null
}
/**
 * A request to open a new session.
 */
export interface OpenSession {
  /**
   * Path of the session's workspace. A daemon accepts only an absolute path.
   */
  workspace: string
  /**
   * Machine of the fleet to open the session on, with the supplies of its daemon. Default: the
   * machine of the client.
   */
  machine?: string | null
  /**
   * Name of the session, unique among live sessions: one line of at most 255 bytes. Default: the
   * name of the workspace's folder, with a number if it is taken.
   */
  name?: string | null
  /**
   * Model of the session, as `PROVIDER/NAME` or `PROVIDER`. Default: the model in `supplies`,
   * else the first provider with a key, else `rehearsal`.
   */
  model?: string | null
  /**
   * Agent that the session hosts, instead of a model and tools of its own. Default: none.
   */
  agent?: AgentSettings | null
  /**
   * Asks mode of the session. Default: `wait`.
   */
  asks?: AsksMode & string
  /**
   * Mode of the session's policy. Default: `ask`.
   */
  policy?: PolicyMode & string
  /**
   * Rules of the session's policy, in addition to the mode. Default: none.
   */
  rules?: PolicyRules
  /**
   * Sandbox of the session's tool processes. Default: the sandbox in the configuration of the
   * daemon, or of the program that runs the engine.
   */
  sandbox?: SandboxSettingsInput | null
  /**
   * Maximum number of steps (model requests) in one turn; 0 means no limit. Default: 0.
   */
  maxSteps?: number
  /**
   * Maximum number of tokens that one turn may use, requests and answers together; 0 means no
   * limit. The limit is checked before each request, so the last request may exceed it.
   * Default: 0.
   */
  maxTurnTokens?: number
  /**
   * Environment, provider settings and system prompt that the client supplies. Default: none.
   * Rust programs set them with `Sessions::with_supplies`, which replaces these.
   */
  supplies?: Supplies & {
    [k: string]: unknown
  }
}
/**
 * The settings of the sandbox of tool processes.
 */
export interface SandboxSettingsInput {
  /**
   * Level of the sandbox: `auto`, `bwrap`, `landlock` or `off`. With `bwrap` or `landlock`, no
   * session is opened where that level does not work. Default: `auto`.
   */
  level?: SandboxLevel & string
  /**
   * Further files and folders that processes may change, as absolute paths or with `~/`.
   * Default: none.
   */
  writable?: string[]
  /**
   * Further files and folders that processes can't read, as absolute paths or with `~/`.
   * Default: none.
   */
  hidden?: string[]
  /**
   * Whether processes may use the network. Default: `false`.
   */
  network?: boolean
}
/**
 * The environment, provider settings, system prompt and MCP servers that a client brings for the
 * sessions it opens. They are kept in memory, also after the session has ended, and never saved.
 */
export interface Supplies {
  /**
   * Environment for the processes of tools, as pairs of name and value. Only variables on an
   * allow-list reach the processes.
   */
  env?: [unknown, unknown][]
  /**
   * Settings for access to models. Default: those of the engine.
   */
  models?: ModelSupplies | null
  /**
   * System prompt for models. Default: that of the engine.
   */
  systemPrompt?: string | null
  /**
   * MCP servers of the sessions, by name. They start with the first turn. Default: none.
   */
  mcp?: {
    [k: string]: McpServer
  }
}
/**
 * The settings for access to models, from a client's configuration and environment.
 */
export interface ModelSupplies {
  /**
   * Model of sessions that name none, as `PROVIDER/NAME` or `PROVIDER`.
   */
  model?: string | null
  /**
   * Settings of providers, by name.
   */
  providers?: {
    [k: string]: ProviderSettings
  }
  /**
   * Settings of single models, by `PROVIDER/NAME`.
   */
  models?: {
    [k: string]: ModelSettings
  }
  /**
   * Proxies for requests to models.
   */
  proxies?: Proxies & {
    [k: string]: unknown
  }
  /**
   * Certificate authorities that the servers of models are checked against.
   */
  certificates?: Certificates & {
    [k: string]: unknown
  }
}
/**
 * The access to a provider of models. Settings that are missing here are read from the
 * environment.
 */
export interface ProviderSettings {
  /**
   * API key. Default: the provider's environment variable, `OPENAI_API_KEY`, `ANTHROPIC_API_KEY`
   * or `GEMINI_API_KEY`.
   */
  api_key?: string | null
  /**
   * Base URL, for example `http://localhost:8080/v1`; only that of `openai` includes `/v1`.
   * Default: the provider's environment variable, `OPENAI_BASE_URL`, `ANTHROPIC_BASE_URL`,
   * `GEMINI_BASE_URL` or `OLLAMA_HOST`, else the provider's public address or, for `ollama`,
   * this machine.
   */
  base_url?: string | null
}
/**
 * The settings of one model. Every key is optional.
 */
export interface ModelSettings {
  /**
   * Maximum number of tokens of a request and its answer together. Requests stay within it.
   * Ollama receives it as `num_ctx`. Default: none, so that only `limits.max_history_tokens`
   * bounds requests.
   */
  window?: number | null
  /**
   * Maximum number of tokens of one answer. Default: the provider's own maximum; for Anthropic,
   * which requires a value, 32,000 but at most half of the window.
   */
  max_output?: number | null
  /**
   * Number of tokens that the model may use for thinking. Anthropic, Gemini from 2.5 on and
   * Ollama support it; for Ollama, only 0 or more than 0 makes a difference. Default: the model
   * decides.
   */
  thinking?: number | null
  /**
   * Amount of thinking, as a word of the provider such as `low`, `medium` or `high`. OpenAI
   * receives it as `reasoning_effort`, Anthropic as `output_config.effort`, Gemini as
   * `thinkingLevel` and Ollama as `think`. Gemini and Ollama accept it only without `thinking`.
   */
  effort?: string | null
  /**
   * Fields that are added to the body of every request. A field with the same name is replaced;
   * objects are merged.
   */
  extra_body?: {
    [k: string]: unknown
  } | null
  /**
   * Ids of tool calls in requests: `provider` or `own`. Default: `provider`.
   */
  tool_ids?: ToolIds | null
  /**
   * Whether requests have `stream_options`, with which the server counts tokens. Only for OpenAI
   * and compatible servers. Default: `true`.
   */
  stream_options?: boolean | null
  /**
   * Name of the field for `max_output`, which must be set as well. Only for OpenAI and
   * compatible servers. Default: `max_completion_tokens` for OpenAI itself, `max_tokens` for
   * other servers.
   */
  max_tokens_field?: MaxTokensField | null
  /**
   * Whether the model takes images, which results of tools can have. Default: `true` for
   * Anthropic, Gemini and OpenAI itself, `false` for Ollama and for servers that are compatible
   * with OpenAI.
   */
  images?: boolean | null
  /**
   * Prices of the model. Default: none, so that no cost is shown.
   */
  price?: Price | null
}
/**
 * The prices of a model for one million tokens, in any currency.
 */
export interface Price {
  /**
   * Price of request tokens.
   */
  input: number
  /**
   * Price of request tokens that were read from the provider's cache. Default: `input`.
   */
  cached?: number | null
  /**
   * Price of request tokens that were written to the provider's cache. Default: 1.25 times
   * `input`, as at Anthropic.
   */
  cache_written?: number | null
  /**
   * Price of answer tokens, including thoughts.
   */
  output: number
}
/**
 * The proxies for requests to models, from the usual environment variables in lower or upper case.
 * An address begins with `http://`, `https://`, `socks5://` or `socks5h://`; without a scheme it
 * is `http`.
 */
export interface Proxies {
  /**
   * Proxy for `http` addresses, from `http_proxy`.
   */
  http?: string | null
  /**
   * Proxy for `https` addresses, from `https_proxy`.
   */
  https?: string | null
  /**
   * Proxy for both kinds of address if their own is not set, from `all_proxy`.
   */
  all?: string | null
  /**
   * Hosts that are reached without a proxy, from `no_proxy`.
   */
  no?: string | null
}
/**
 * The certificate authorities that are trusted instead of the system's, if the client's
 * environment sets any.
 */
export interface Certificates {
  /**
   * Absolute path of a PEM file with certificates, from `SSL_CERT_FILE`.
   */
  file?: string | null
  /**
   * Absolute paths of folders with such files, separated by colons, from `SSL_CERT_DIR`.
   */
  dir?: string | null
}
/**
 * An MCP server: a program that a session starts and talks to over its standard input and output,
 * or an address that it connects to over HTTP. It has either a `command` or a `url`.
 *
 * In the user's configuration and in a file of the client, `${NAME}` in a text is replaced by that
 * variable of the client that opens the session, and `${NAME:-TEXT}` by the text if the variable is
 * missing or empty. A server that an editor or a client of the API names is taken as it is.
 */
export interface McpServer {
  /**
   * Program of the server: a path, or a name to look up in the `PATH` of the session.
   */
  command?: string
  /**
   * Arguments of the program. Default: none.
   */
  args?: string[]
  /**
   * Variables that are added to the environment of the session's processes, such as the key of
   * a service. Default: none.
   */
  env?: {
    [k: string]: string
  }
  /**
   * Working folder of the program: an absolute path, or one below the workspace. A program
   * outside of the sandbox needs an absolute path, because programs such as `npx` run files of
   * the folder that they are started in. Default: the workspace.
   */
  cwd?: string | null
  /**
   * Address of a server that is reached over streamable HTTP, for example
   * `https://example.com/mcp`. Holdpoint itself connects to it, outside of the sandbox.
   */
  url?: string | null
  /**
   * Headers of all requests to `url`, such as `Authorization`. Default: none.
   */
  headers?: {
    [k: string]: string
  }
  /**
   * Id of this program at the authorization server of `url`, for a server that does not register
   * programs by itself. `holdpoint mcp login` uses it. Variables are replaced as in `url`.
   */
  client_id?: string | null
  /**
   * Secret that belongs to `client_id`, if the authorization server has issued one.
   */
  client_secret?: string | null
  /**
   * Whether `url` speaks HTTP with SSE, which streamable HTTP replaced in the revision
   * 2025-03-26. Default: `false`.
   */
  sse?: boolean
  /**
   * Names of the tools that the model gets. Default: all tools of the server.
   */
  tools?: string[] | null
  /**
   * Seconds that one call may take without progress, from 1 to 600. A call never takes longer
   * than 10 minutes, not counting the time that it waits for the user. Default: 60.
   */
  timeout_s?: number
  /**
   * Seconds that the server may take to start, from 1 to 600. Default: 30.
   */
  startup_s?: number
  /**
   * Whether the program may use the whole network. Default: `false`.
   */
  network?: boolean
  /**
   * Domains that the program may reach through a proxy, each `example.com` or, for all names
   * below it, `*.example.com`. Default: none.
   */
  domains?: string[]
  /**
   * Whether the program runs in the sandbox of the session. Outside of it, the program has the
   * permissions of its user. Default: `true`.
   */
  sandbox?: boolean
  /**
   * Why the server can't be used, if the client that opens the session knows a reason: see
   * [`with_mcp_variables`]. The session reports it, and does not start the server.
   */
  problem?: string | null
}
/**
 * A request to move a session to another folder, on this machine or on another one of the fleet. The
 * request waits until the session can be handed over: until the end of its step, or the end of the
 * iteration of a run. If it was live, it is live there, with its turn and its run. A policy Confirm
 * is asked again if its effect depends on the folder. Background jobs end.
 */
export interface MoveRequest {
  /**
   * Machine of the fleet that the session moves to. Default: that of the daemon.
   */
  machine?: string | null
  /**
   * Absolute path of the folder there. Default: the path of the present one.
   */
  workspace?: string | null
  /**
   * Environment, provider settings and system prompt that the client supplies, for a session of
   * its own machine. Another machine uses those of its daemon. Default: none.
   */
  supplies?: Supplies & {
    [k: string]: unknown
  }
}
/**
 * A request to hand a session over to another folder: it is held at its next boundary, and ends there
 * without an end of its turn, its run or its policy Confirms. They continue when it is opened again.
 * [`MoveRequest`] does both.
 */
export interface HandOverRequest {
  /**
   * Machine of the folder. Default: none, outside of a fleet.
   */
  machine?: string | null
  /**
   * Absolute path of the folder there, without links.
   */
  workspace: string
}
/**
 * A request to change the asks mode of a session. The new mode also answers the asks that are
 * open.
 */
export interface AsksRequest {
  /**
   * New asks mode.
   */
  asks: AsksMode
}
/**
 * A request to give a session a prompt.
 */
export interface PromptRequest {
  /**
   * Text of the prompt: not blank, at most `limits.max_prompt_bytes` bytes long.
   */
  text: string
  /**
   * Number of bytes at the beginning of `text` that the user has written. Only these can name
   * content, such as a resource of an MCP server. Default: all.
   */
  typedBytes?: number | null
  /**
   * Key of the request. If one of the last 64 keys of the session's prompts is the same, the reply is
   * that of the earlier prompt, and no other prompt is added. A client without a reply can thus send
   * the request again.
   */
  idempotencyKey?: IdempotencyKey | null
}
/**
 * A request to take a prompt out of the queue. The prompt is handed back and never runs. Its turn,
 * once started, is ended by an interrupt instead.
 */
export interface UnqueueRequest {
  /**
   * Id of the queued prompt.
   */
  prompt: PromptId
}
/**
 * A request to start a run: a goal that is worked through in iterations.
 */
export interface RunRequest {
  /**
   * Goal of the run: not blank, at most `limits.max_prompt_bytes` bytes long.
   */
  goal: string
  /**
   * Titles of the first tasks, at most 500 bytes each. The model can add more. Default: none.
   */
  tasks?: string[]
  /**
   * Limits at which the run is held. Default: 50 iterations.
   */
  limits?: RunLimitsInput & {
    [k: string]: unknown
  }
  /**
   * Boundary at which a hold takes effect. Default: `iteration`.
   */
  holdAt?: HoldAt & string
}
/**
 * The limits of a run. A run that reaches one is held, never cut: tokens and time are checked
 * before each model request, iterations at the end of each one.
 */
export interface RunLimitsInput {
  /**
   * Maximum number of iterations; `null` means no limit. Default: 50.
   */
  iterations?: number | null
  /**
   * Maximum number of tokens, requests and answers together; `null` means no limit.
   * Default: `null`.
   */
  tokens?: number | null
  /**
   * Maximum working time in milliseconds, without the time that the run is held or waits for an
   * answer; `null` means no limit. Default: `null`.
   */
  timeMs?: number | null
}
/**
 * A request to interrupt the open turn.
 */
export interface InterruptRequest {
  /**
   * Turn to interrupt. If another turn is open, nothing changes. Default: the open turn.
   */
  turn?: TurnId | null
  /**
   * Respond at once, without the turn's end and its receipt. Default: `false`.
   */
  noWait?: boolean
}
/**
 * A request to hold a session, or to release it if the client shows it as held.
 */
export interface ToggleRequest {
  /**
   * State that the client shows. If the session is in another state, nothing changes.
   */
  shown: HoldState
}
/**
 * A request to rename a session.
 */
export interface RenameRequest {
  /**
   * New name, unique among live sessions: one line of at most 255 bytes. It also becomes the
   * title.
   */
  name: string
}
/**
 * A request to change the model of a session, from its next turn on.
 */
export interface ChangeModelRequest {
  /**
   * New model, as `PROVIDER/NAME`, or `PROVIDER` for the provider's default model.
   */
  model: string
  /**
   * Provider settings of the client, with which the model is found. Default: those of the
   * engine.
   */
  supplies?: ModelSupplies | null
}
/**
 * A request to turn the debug log of a session on or off.
 */
export interface DebugRequest {
  /**
   * Whether the session is logged at debug level.
   */
  enabled: boolean
}
/**
 * A request to change the policy mode of a session. The new mode judges the calls that follow;
 * open asks stay open. The rules of the session stay as they are. Answers that were given with
 * *always* are forgotten.
 */
export interface PolicyRequest {
  /**
   * New policy mode.
   */
  policy: PolicyMode
}
/**
 * A request to close a session. The session stays saved and can be opened again.
 */
export interface CloseRequest {
  /**
   * Close the session only if it is unused: it has no turn, run or queued prompt, and got none
   * after the event with this number. Otherwise the request fails with `inUse` and changes
   * nothing. Background jobs do not count. Default: close in any case.
   */
  unusedSince?: number | null
}
