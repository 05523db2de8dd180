// The status bar: what a session is doing, in whole segments.

import type { HoldCause, Snapshot, Task } from '../../index.js'
import { useRustSessionState, useSessionSnapshot, type SessionState } from '../../react/index.mjs'
import { Text, useStdout } from 'ink'
import { useEffect, useRef, useState, type ReactElement } from 'react'

import { shownLine } from './shown.js'

/** What turns, a quarter at a time, and the milliseconds of each. */
const TURNS = ['◐', '◓', '◑', '◒'] as const
const QUARTER = 125
/** Columns that a session's name keeps where there is little room. */
const NAME = 12

/** Which session it is about. */
export interface StatusBarProps {
  /** The session. */
  sessionId: string
  /** Columns it may take: those of the terminal. */
  width?: number
}

/**
 * `holdpoint | my-session | 00:12:34 | Iteration #3 | ✓2 ●1 ○3 | 5 files modified ◐`: the session, how long it has worked (of a
 * run, in that run), the iteration and the tasks of a run (done, begun, to do), the files its tools have changed, and what
 * it does now. What has nothing to say is left out; what has no room is left out or shortened, whole. While the daemon is
 * gone, the time stands still.
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

/** The segments there is room for: from all to almost nothing, the least telling go first. */
function segmentsOf(snapshot: Snapshot, now: number, room: number): string {
  const { settings, run, tasks = [], filesModified } = snapshot
  const name = shownLine(settings.name)
  const short = fitting(name, NAME)
  const time = timeOf(run?.progress ?? snapshot, now)
  const number = run && run.progress.iteration > 0 ? `#${run.progress.iteration}` : ''
  const iteration = number && `Iteration ${number}`
  const counts = countsOf(tasks)
  const files = filesModified.length === 0 ? '' : filesModified.length === 1 ? '1 file' : `${filesModified.length} files`
  const ways = [
    ['holdpoint', name, time, iteration, counts, files && `${files} modified`],
    [name, time, iteration, counts, files && `${files} modified`],
    [short, time, iteration, counts, files],
    [short, time, number, counts],
    [short, time, number],
    [short, time],
    [short],
  ]
  const texts = ways.map((way) => way.filter((segment) => segment !== '').join(' | '))
  return texts.find((text) => columnsOf(text) <= room) ?? ''
}

/** What it does now. */
function labelOf({ hold, status, asks }: Snapshot, state: SessionState, now: number): string {
  if (state.connection !== 'connected') return state.connection === 'lost' ? 'daemon gone' : 'daemon stopped'
  if (state.status === 'closed') return 'closed'
  const spinner = TURNS[Math.floor(now / QUARTER) % TURNS.length] ?? ''
  if (status === 'interrupted') return `${spinner} interrupting`
  if (hold.state === 'requested') return `${spinner} PAUSING...${asks.length > 0 ? ', asks you' : ''}`
  if (hold.state === 'standing') return hold.cause.type === 'user' ? '⏸ PAUSED' : `⏸ PAUSED: ${causeOf(hold.cause)}`
  if (asks.length > 0) return '⏸ asks you'
  return status === 'running' ? spinner : ''
}

function causeOf(cause: Exclude<HoldCause, { type: 'user' }>): string {
  if (cause.type === 'restored') return 'restored'
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

/** How long something has worked, if it has. */
function timeOf(work: { workedMs?: number; workingSince?: number | null }, now: number): string {
  const worked = (work.workedMs ?? 0) + (work.workingSince == null ? 0 : Math.max(0, now - work.workingSince))
  return worked < 1_000 ? '' : clock(worked)
}

/** Hours, minutes and seconds. */
function clock(milliseconds: number): string {
  const seconds = Math.floor(milliseconds / 1_000)
  return [seconds / 3_600, (seconds / 60) % 60, seconds % 60].map((part) => String(Math.floor(part)).padStart(2, '0')).join(':')
}

/** Hours, minutes and seconds, those that are none left out: `1h 30m`. */
function spanOf(milliseconds: number): string {
  const seconds = Math.floor(milliseconds / 1_000)
  const parts = [[seconds / 3_600, 'h'], [(seconds / 60) % 60, 'm'], [seconds % 60, 's']] as const
  const said = parts.map(([count, unit]) => [Math.floor(count), unit] as const).filter(([count]) => count > 0)
  return said.length === 0 ? `${milliseconds} ms` : said.map(([count, unit]) => `${count}${unit}`).join(' ')
}

/** The most columns that a text may take: of what is not ours or ASCII, two a character. */
function columnsOf(text: string): number {
  return [...new Intl.Segmenter().segment(text)].reduce((sum, { segment }) => sum + (OURS.test(segment) ? 1 : 2), 0)
}

const OURS = /^[ -~✓●○…]$/

function fitting(text: string, room: number): string {
  if (columnsOf(text) <= room) return text
  let kept = ''
  for (const { segment } of new Intl.Segmenter().segment(text)) {
    if (columnsOf(kept + segment) >= room) break
    kept += segment
  }
  return `${kept}…`
}

/** The time, often enough for what turns, and standing still while nothing does or the daemon is gone. */
function useNow(snapshot: Snapshot | null, isConnected: boolean): number {
  const [, setTick] = useState(0)
  const latest = useRef(0)
  if (isConnected || latest.current === 0) latest.current = Date.now()
  const works = snapshot?.status === 'running' || snapshot?.status === 'interrupted' || snapshot?.hold.state === 'requested'
  useEffect(() => {
    if (!works || !isConnected) return
    const timer = setInterval(() => setTick((tick) => tick + 1), QUARTER)
    return () => clearInterval(timer)
  }, [works, isConnected])
  return latest.current
}

/** How wide the terminal is. */
function useColumns(): number {
  const { stdout } = useStdout()
  const [columns, setColumns] = useState(stdout.columns)
  useEffect(() => {
    const resized = () => setColumns(stdout.columns)
    resized()
    stdout.on('resize', resized)
    return () => {
      stdout.off('resize', resized)
    }
  }, [stdout])
  return columns || 80
}
