// The status bar, made of whole segments.

import type { Ask, HoldCause, Snapshot, Task } from '../../index.js'
import { useRustSessionState, useSessionSnapshot, type SessionState } from '../../react/index.mjs'
import { Text, useStdout } from 'ink'
import { useEffect, useRef, useState, type ReactElement } from 'react'

import { shownLine } from './shown.js'

/** The frames of the spinner, and the milliseconds of each. */
const SPINNER_FRAMES = ['◐', '◓', '◑', '◒'] as const
const FRAME_MS = 125
/** Maximum columns of a shortened session name. */
const SHORT_NAME_COLUMNS = 12

/** The props of `StatusBar`. */
export interface StatusBarProps {
  /** Id or name of the session. */
  sessionId: string
  /** Maximum number of columns. Default: those of the terminal. */
  width?: number
}

/**
 * The status bar of a session:
 * `holdpoint | my-session | 00:12:34 | Iteration #3 | ✓2 ●1 ○3 | 5 files modified ◐`. It shows the
 * session's name, the working time (during a run, that of the run), the iteration and the tasks of
 * a run (done, doing, to do), the number of modified files, and the current activity. `no sandbox`
 * follows the files if tool processes have the permissions of the user. Empty
 * segments are left out; without room, segments are shortened or left out as a whole. The time
 * stops while the daemon is gone.
 */
export function StatusBar({ sessionId, width }: StatusBarProps): ReactElement | null {
  const snapshot = useSessionSnapshot(sessionId)
  const columns = useColumns()
  const state = useRustSessionState(sessionId)
  const now = useNow(snapshot, state.connection === 'connected')
  if (!snapshot) return null
  const label = labelOf(snapshot, state, now)
  const room = (width ?? columns) - (label ? label.length + 1 : 0)
  const segments = segmentsOf(snapshot, now, room)
  return (
    <Text wrap="truncate">
      {segments}
      {segments && label && ' '}
      <Text bold={state.status !== 'closed'} dimColor={state.status === 'closed'}>
        {label}
      </Text>
    </Text>
  )
}

/** Returns the longest list of segments that fits. The least useful segments are dropped first. */
function segmentsOf(snapshot: Snapshot, now: number, room: number): string {
  const { settings, run, tasks = [], filesModified } = snapshot
  const name = shownLine(settings.name)
  const shortName = shorten(name, SHORT_NAME_COLUMNS)
  const time = timeOf(run?.progress ?? snapshot, now)
  const number = run && run.progress.iteration > 0 ? `#${run.progress.iteration}` : ''
  const iteration = number && `Iteration ${number}`
  const counts = countsOf(tasks)
  const files = filesModified.length === 0 ? '' : filesModified.length === 1 ? '1 file' : `${filesModified.length} files`
  const sandbox = (settings.sandbox?.level ?? 'off') === 'off' ? 'no sandbox' : ''
  const candidates = [
    ['holdpoint', name, time, iteration, counts, files && `${files} modified`, sandbox],
    [name, time, iteration, counts, files && `${files} modified`, sandbox],
    [shortName, time, iteration, counts, sandbox],
    [shortName, time, iteration, counts, files],
    [shortName, time, number, counts],
    [shortName, time, number],
    [shortName, time],
    [shortName],
  ]
  const texts = candidates.map((segments) => segments.filter((segment) => segment !== '').join(' | '))
  return texts.find((text) => columnsOf(text) <= room) ?? ''
}

/** Returns the label for the current activity. */
function labelOf({ hold, status, asks }: Snapshot, state: SessionState, now: number): string {
  if (state.connection !== 'connected') return state.connection === 'lost' ? 'daemon gone' : 'daemon stopped'
  if (state.status === 'closed') return 'closed'
  const spinner = SPINNER_FRAMES[Math.floor(now / FRAME_MS) % SPINNER_FRAMES.length] ?? ''
  if (status === 'interrupted') return `${spinner} interrupting`
  const waiting = awaitedAnswer(asks[0])
  if (hold.state === 'requested') return `${spinner} PAUSING...${waiting && `, ${waiting}`}`
  // The ask belongs to a restored turn, which continues to its boundary before the hold.
  if (hold.state === 'standing' && hold.cause.type === 'restored' && waiting) return `⏸ ${waiting}, then PAUSED: restored`
  if (hold.state === 'standing') return hold.cause.type === 'user' ? '⏸ PAUSED' : `⏸ PAUSED: ${causeOf(hold.cause)}`
  if (waiting) return `⏸ ${waiting}`
  return status === 'running' ? spinner : ''
}

/** Describes the answer that an ask waits for. Empty without an ask. */
function awaitedAnswer(ask: Ask | undefined): string {
  if (!ask) return ''
  if (ask.request.type === 'question') return 'waiting for an answer'
  return ask.request.kind === 'confirm' ? 'waiting for approval' : 'waiting to continue'
}

function causeOf(cause: Exclude<HoldCause, { type: 'user' }>): string {
  if (cause.type === 'restored') return 'restored'
  if (cause.type === 'move') return 'to be moved'
  switch (cause.limit) {
    case 'time':
      return `${spanOf(cause.ms)} of work`
    case 'failures':
      return `${cause.count} failures in a row`
    case 'iterations':
      return cause.count === 1 ? '1 iteration' : `${cause.count} iterations`
    case 'tokens':
      return `${cause.count} tokens`
  }
}

function countsOf(tasks: readonly Task[]): string {
  const count = (state: Task['state']) => tasks.filter((task) => task.state === state).length
  return tasks.length === 0 ? '' : `✓${count('done')} ●${count('doing')} ○${count('todo')}`
}

/** Formats the working time; empty if there is none. */
function timeOf(work: { workedMs?: number; workingSince?: number | null }, now: number): string {
  const worked = (work.workedMs ?? 0) + (work.workingSince == null ? 0 : Math.max(0, now - work.workingSince))
  return worked < 1_000 ? '' : clock(worked)
}

/** Formats a time as hours, minutes and seconds. */
function clock(milliseconds: number): string {
  const seconds = Math.floor(milliseconds / 1_000)
  return [seconds / 3_600, (seconds / 60) % 60, seconds % 60].map((part) => String(Math.floor(part)).padStart(2, '0')).join(':')
}

/** Formats a time as hours, minutes and seconds, without parts that are zero: `1h 30m`. */
function spanOf(milliseconds: number): string {
  const seconds = Math.floor(milliseconds / 1_000)
  const parts = [[seconds / 3_600, 'h'], [(seconds / 60) % 60, 'm'], [seconds % 60, 's']] as const
  const nonZero = parts.map(([count, unit]) => [Math.floor(count), unit] as const).filter(([count]) => count > 0)
  return nonZero.length === 0 ? `${milliseconds} ms` : nonZero.map(([count, unit]) => `${count}${unit}`).join(' ')
}

/**
 * Returns the maximum number of columns of a text. Characters outside of ASCII may take two, except
 * for those of the bar itself.
 */
function columnsOf(text: string): number {
  return [...new Intl.Segmenter().segment(text)].reduce((sum, { segment }) => sum + (NARROW.test(segment) ? 1 : 2), 0)
}

const NARROW = /^[ -~✓●○…]$/

function shorten(text: string, room: number): string {
  if (columnsOf(text) <= room) return text
  let start = ''
  for (const { segment } of new Intl.Segmenter().segment(text)) {
    if (columnsOf(start + segment) >= room) break
    start += segment
  }
  return `${start}…`
}

/**
 * Returns the current time, often enough for the spinner. The time stops while the session does
 * nothing or the daemon is gone.
 */
function useNow(snapshot: Snapshot | null, isConnected: boolean): number {
  const [, setTick] = useState(0)
  const latest = useRef(0)
  if (isConnected || latest.current === 0) latest.current = Date.now()
  const isWorking = snapshot?.status === 'running' || snapshot?.status === 'interrupted' || snapshot?.hold.state === 'requested'
  useEffect(() => {
    if (!isWorking || !isConnected) return
    const timer = setInterval(() => setTick((tick) => tick + 1), FRAME_MS)
    return () => clearInterval(timer)
  }, [isWorking, isConnected])
  return latest.current
}

/** Returns the width of the terminal in columns. */
function useColumns(): number {
  const { stdout } = useStdout()
  const [columns, setColumns] = useState(stdout.columns)
  useEffect(() => {
    const update = () => setColumns(stdout.columns)
    update()
    stdout.on('resize', update)
    return () => {
      stdout.off('resize', update)
    }
  }, [stdout])
  return columns || 80
}
