// A tool that has stopped: what it wants, and the keys that answer.

import type { Ask, AskForm, PauseRequest } from '../../index.mjs'
import { useSessionSnapshot } from '../../react/index.mjs'
import { Box, Text } from 'ink'
import type { ReactElement } from 'react'

import { useAnswering } from './answering.js'
import { DraftText } from './draft-text.js'
import { shown, shownLine } from './shown.js'

/** Which session it is about. */
export interface PauseIndicatorProps {
  /** The session. */
  sessionId: string
  /** Whether it takes keys: `true`. */
  isActive?: boolean
}

/**
 * The pause that a session shows, if one is open. Enter goes on with a Continue. For a Confirm, Y
 * and N approve and deny, A pressed twice approves always where that is offered, and R denies with
 * a reason. Esc and Ctrl+C interrupt; from a reason, Esc goes back. Keys that answer count from 300
 * ms after the pause appeared, and after the last key that does not answer; the second A counts
 * from 700 ms after the first.
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
  /** How many asks wait behind this one. */
  waiting: number
}

function Pause({ sessionId, ask, pause, waiting, isActive }: PauseProps): ReactElement {
  const { form, trouble } = useAnswering(sessionId, ask, isActive)
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
      {waiting > 0 && <Text dimColor>{waiting === 1 ? '1 more waits' : `${waiting} more wait`}</Text>}
      {trouble !== null && <Text color="red">{trouble}</Text>}
      {isConfirm && (form.entry === 'choice' ? <Choice form={form} always={ask.always} /> : <Reason form={form} />)}
    </Box>
  )
}

function Choice({ form, always }: { form: AskForm; always: Ask['always'] }): ReactElement {
  const key = form.isArmed ? 'Press A again to approve' : '[A] Approve'
  return (
    <>
      {always != null && <Text bold={form.isArmed}>{`${key} always in this session: ${shownLine(always)}`}</Text>}
      <Text>[R] Deny and say why</Text>
      <Text bold>[Y] Approve [N] Deny (Esc to interrupt)</Text>
    </>
  )
}

function Reason({ form }: { form: AskForm }): ReactElement {
  return (
    <>
      <DraftText draft={form} />
      <Text dimColor>Why not, then Enter (Esc to go back)</Text>
    </>
  )
}

/** A line that somebody else wrote: the rows it goes on in have no bar, so that none passes for a line of its own. */
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
