// A tool that has stopped: what it wants, and the keys that answer.

import type { PauseState } from '../../index.js'
import { useRustSessionState, useSessions, useSessionSnapshot } from '../../react/index.mjs'
import { Box, Text } from 'ink'
import type { ReactElement } from 'react'

import { theTurn, useAnswering } from './answering.js'
import { useKeys } from './keys.js'
import { shown, shownLine } from './shown.js'

/** Which session it is about. */
export interface PauseIndicatorProps {
  /** The session. */
  sessionId: string
  /** Whether it takes keys: `true`. */
  isActive?: boolean
}

/**
 * The pause that a session shows, if one is open. Enter goes on with a Continue; Y and N approve and deny a Confirm; Esc and
 * Ctrl+C interrupt. Keys that answer count from 300 ms after it appeared, or after any other key; no other does anything.
 */
export function PauseIndicator({ sessionId, isActive = true }: PauseIndicatorProps): ReactElement | null {
  const { pauseInfo } = useRustSessionState(sessionId)
  return pauseInfo && <Pause key={pauseInfo.id} sessionId={sessionId} pause={pauseInfo} isActive={isActive} />
}

function Pause({ sessionId, pause, isActive }: { sessionId: string; pause: PauseState; isActive: boolean }): ReactElement {
  const sessions = useSessions()
  const { counts, putOff, send, trouble } = useAnswering()
  const snapshot = useSessionSnapshot(sessionId)
  const waiting = (snapshot?.asks.length ?? 1) - 1
  const isConfirm = pause.kind === 'confirm'
  const askId = pause.id
  useKeys(({ name }) => {
    if (name === 'esc' || name === 'ctrl+c') send(() => sessions.sessionInterrupt(sessionId, theTurn(snapshot)))
    else if (counts() && !isConfirm && name === 'enter') send(() => sessions.sessionPauseResume(sessionId, { askId }))
    else if (counts() && isConfirm && /^[yn]$/i.test(name)) {
      const approved = name.toLowerCase() === 'y'
      send(() => sessions.sessionPauseConfirm(sessionId, approved, { askId }))
    } else putOff()
  }, isActive)
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
      {isConfirm && <Text bold>[Y] Approve [N] Deny (Esc to interrupt)</Text>}
    </Box>
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
