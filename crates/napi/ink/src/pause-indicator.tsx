// The display of a pause, and the keys that answer it.

import type { Ask, AskForm, PauseRequest } from '../../index.mjs'
import { useSessionSnapshot } from '../../react/index.mjs'
import { Box, Text } from 'ink'
import type { ReactElement } from 'react'

import { useAnswering } from './answering.js'
import { DraftText } from './draft-text.js'
import { shown, shownLine } from './shown.js'

/** The props of `PauseIndicator`. */
export interface PauseIndicatorProps {
  /** Id or name of the session. */
  sessionId: string
  /** Whether the component takes keys. Default: `true`. */
  isActive?: boolean
}

/**
 * The pause of a session, if one is open. Enter resumes a Continue. For a Confirm, Y and N approve
 * and deny, A or D pressed twice approves or denies *always* if that is offered, and R denies with
 * a reason. Esc and Ctrl+C interrupt; while a reason is typed, Esc goes back. Keys that answer count
 * 300 ms after the pause appeared, and 300 ms after the last key that does not answer. The second A
 * or D counts 700 ms after the first.
 */
export function PauseIndicator({ sessionId, isActive = true }: PauseIndicatorProps): ReactElement | null {
  const asks = useSessionSnapshot(sessionId)?.asks ?? []
  const [ask] = asks
  if (ask?.request.type !== 'pause') return null
  const shared = { sessionId, isActive, waiting: asks.length - 1 }
  return <Pause key={ask.id} ask={ask} pause={ask.request} {...shared} />
}

interface PauseProps extends Required<PauseIndicatorProps> {
  ask: Ask
  pause: PauseRequest
  /** Number of asks that wait behind this one. */
  waiting: number
}

function Pause({ sessionId, ask, pause, waiting, isActive }: PauseProps): ReactElement {
  const { form, error } = useAnswering(sessionId, ask, isActive)
  const isConfirm = pause.kind === 'confirm'
  return (
    <Box flexDirection="column">
      <Text color="yellow">
        {`⏸ ${shownLine(pause.toolName)}: ${shownLine(pause.message)}`}
        {!isConfirm && ' (Press Enter to continue)'}
      </Text>
      {pause.details != null && pause.details !== '' && (
        <Box flexDirection="column">
          {shown(pause.details)
            .split('\n')
            .map((line, row) => (
              <BehindBar key={row} line={line} />
            ))}
        </Box>
      )}
      {waiting > 0 && <Text dimColor>{`${waiting} more waiting`}</Text>}
      {error !== null && <Text color="red">{error}</Text>}
      {isConfirm && (form.entry === 'choice' ? <Choice form={form} always={ask.always} /> : <Reason form={form} />)}
    </Box>
  )
}

function Choice({ form, always }: { form: AskForm; always: Ask['always'] }): ReactElement {
  const { armed } = form
  const keys = armed === null ? '[A] Approve [D] Deny' : `Press ${armed === 'deny' ? 'D' : 'A'} again to ${armed}`
  return (
    <>
      {always != null && <Text bold={armed !== null}>{`${keys} always in this session: ${shownLine(always)}`}</Text>}
      <Text>[R] Deny and say why</Text>
      <Text bold>[Y] Approve [N] Deny (Esc to interrupt)</Text>
    </>
  )
}

function Reason({ form }: { form: AskForm }): ReactElement {
  return (
    <>
      <DraftText draft={form} />
      <Text dimColor>Reason, then Enter (Esc to go back)</Text>
    </>
  )
}

/**
 * A line of foreign text behind a bar. Rows that it wraps into have no bar, so that none of them
 * looks like a line of its own.
 */
function BehindBar({ line }: { line: string }): ReactElement {
  return (
    <Box>
      <Box flexShrink={0}>
        <Text dimColor>{'│ '}</Text>
      </Box>
      <Text>{line === '' ? ' ' : line}</Text>
    </Box>
  )
}
