// What a component is told about a session, as it follows from one snapshot.

import { isDeepStrictEqual } from 'node:util'

import type { Ask, AskId, CallId, Hold, PauseState, QuestionRequest, SessionStatus, Snapshot, Timestamp, Usage } from 'holdpoint'

/** An open question, flat: a tool wants words or a choice. */
export interface QuestionState extends QuestionRequest {
  /** Names the ask for ever. */
  id: AskId
  /** The tool call it belongs to. */
  call: CallId
  /** Since when it is open. */
  since: Timestamp
}

/** The connection to a session: `lost` if its daemon is gone, `stopped` if that was stopped. It is made again by itself. */
export type Connection = 'connected' | 'lost' | 'stopped'

/** A session at one moment: all fields are of the same one. */
export interface SessionState {
  /** What it is doing; `closed` if it was closed. */
  readonly status: SessionStatus | 'closed'
  /** It is running. */
  readonly isLoading: boolean
  /** It is paused: an ask is open, or it is held. */
  readonly isPaused: boolean
  /** The ask that is to be shown, if that is a pause. */
  readonly pauseInfo: PauseState | null
  /** Whether it is held, and why. */
  readonly hold: Hold
  /** The ask that is to be shown, if that is a question. */
  readonly question: QuestionState | null
  /** Its model, as `provider/name`. */
  readonly model: string
  /** Tokens that all its turns have used. */
  readonly tokens: Usage
  /** It is logged at debug level. */
  readonly isDebugEnabled: boolean
  /** Whether events come. Without them all else is as it was last known. */
  readonly connection: Connection
  /** It rises with every change: the number of an event this state comes from, or more where that was one before, too. */
  readonly version: number
}

/** Of a session that nothing is known of yet. */
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

/** The state that follows from a snapshot. What has not changed is the same object as before. */
export function following(before: SessionState, snapshot: Snapshot, life: { isClosed: boolean; connection: Connection }): SessionState {
  const { asks, hold, settings, usage, isDebugEnabled, seq } = snapshot
  const status: SessionState['status'] = life.isClosed ? 'closed' : snapshot.status
  const ask = asks[0]
  const state = {
    status,
    isLoading: status === 'running',
    isPaused: status === 'paused',
    pauseInfo: kept(before.pauseInfo, pauseOf(ask)),
    hold: kept(before.hold, hold),
    question: kept(before.question, questionOf(ask)),
    model: settings.model,
    tokens: kept(before.tokens, usage),
    isDebugEnabled,
    connection: life.connection,
  }
  const { version: _, ...was } = before
  const changed = Object.entries(state).some(([field, value]) => !Object.is(value, was[field as keyof typeof was]))
  return changed || before === UNKNOWN ? { ...state, version: Math.max(seq, before.version + 1) } : before
}

/** A session that was closed, as it was left: it does nothing any more and waits for nothing. */
export function closed(snapshot: Snapshot): Snapshot {
  return { ...snapshot, status: 'idle', asks: [], hold: { state: 'off' }, turn: null, run: null, workingSince: null }
}

function kept<T>(before: T, now: T): T {
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
