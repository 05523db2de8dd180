// The state of a session for components, derived from one snapshot.

import { isDeepStrictEqual } from 'node:util'

import type { Ask, AskId, CallId, Hold, PauseState, QuestionRequest, SessionStatus, Snapshot, Timestamp, Usage } from 'holdpoint'

/** An open question in one flat object: a tool asks for words or a choice. */
export interface QuestionState extends QuestionRequest {
  /** Id of the ask, which is never used again. */
  id: AskId
  /** Tool call that the ask belongs to. */
  call: CallId
  /** Time at which the ask was raised. */
  since: Timestamp
}

/**
 * The connection to a session: `lost` if its daemon is gone, `stopped` if the daemon was stopped.
 * The package reconnects by itself.
 */
export type Connection = 'connected' | 'lost' | 'stopped'

/** A session at one moment. All fields belong to the same moment. */
export interface SessionState {
  /** Status of the session, or `closed`. */
  readonly status: SessionStatus | 'closed'
  /** Whether the session is running. */
  readonly isLoading: boolean
  /** Whether the session is paused: an ask is open, or it is held. */
  readonly isPaused: boolean
  /** Current ask, if it is a pause. */
  readonly pauseInfo: PauseState | null
  /** Hold of the session and its reason. */
  readonly hold: Hold
  /** Current ask, if it is a question. */
  readonly question: QuestionState | null
  /** Model of the session, as `provider/name`. */
  readonly model: string
  /** Tokens that all turns have used. */
  readonly tokens: Usage
  /** Whether the session is logged at debug level. */
  readonly isDebugEnabled: boolean
  /**
   * Connection to the session. Unless it is `connected`, the other fields are the last known ones.
   */
  readonly connection: Connection
  /**
   * Number that rises with every change: the event number of the snapshot behind this state, or a
   * greater one if that was used before.
   */
  readonly version: number
}

/** The state of a session that is not known yet. */
export const UNKNOWN: SessionState = {
  status: 'idle',
  isLoading: false,
  isPaused: false,
  pauseInfo: null,
  hold: { state: 'off' },
  question: null,
  model: '',
  tokens: { input: 0, cached: 0, output: 0, estimated: false },
  isDebugEnabled: false,
  connection: 'connected',
  version: 0,
}

/**
 * Returns the state that follows from a snapshot. Parts that have not changed stay the same
 * objects.
 */
export function nextState(
  before: SessionState,
  snapshot: Snapshot,
  { isClosed, connection }: { isClosed: boolean; connection: Connection },
): SessionState {
  const { asks, hold, settings, usage, isDebugEnabled, seq } = snapshot
  const status: SessionState['status'] = isClosed ? 'closed' : snapshot.status
  const ask = asks[0]
  const state = {
    status,
    isLoading: status === 'running',
    isPaused: status === 'paused',
    pauseInfo: reuse(before.pauseInfo, pauseOf(ask)),
    hold: reuse(before.hold, hold),
    question: reuse(before.question, questionOf(ask)),
    model: settings.model,
    tokens: reuse(before.tokens, usage),
    isDebugEnabled,
    connection,
  }
  const { version: _, ...previous } = before
  const changed = Object.entries(state).some(([field, value]) => !Object.is(value, previous[field as keyof typeof previous]))
  return changed || before === UNKNOWN ? { ...state, version: Math.max(seq, before.version + 1) } : before
}

/**
 * Returns the last snapshot of a session that was closed: it does no work and waits for no answer.
 */
export function closedSnapshot(snapshot: Snapshot): Snapshot {
  return { ...snapshot, status: 'idle', asks: [], hold: { state: 'off' }, turn: null, run: null, workingSince: null }
}

/** Returns the earlier value if it equals the new one, so that its reference stays the same. */
function reuse<T>(before: T, now: T): T {
  return isDeepStrictEqual(before, now) ? before : now
}

function pauseOf(ask: Ask | undefined): PauseState | null {
  if (ask?.request.type !== 'pause') return null
  const { kind, toolName, message, details } = ask.request
  const { id, call, since } = ask
  return { id, kind, toolName, message, ...(details != null && { details }), call, since }
}

function questionOf(ask: Ask | undefined): QuestionState | null {
  if (ask?.request.type !== 'question') return null
  const { toolName, questions } = ask.request
  const { id, call, since } = ask
  return { id, toolName, questions, call, since }
}
