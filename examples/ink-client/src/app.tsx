// The screen: the transcript, the text that is still streaming, the status bar, and the input.

import type { Event, StreamEnd } from 'holdpoint'
import { useRustSessionState, useSessions } from 'holdpoint/react'
import { InputTransition, shown, StatusBar } from 'holdpoint/ink'
import { Box, Static, Text } from 'ink'
import { useEffect, useRef, useState, type ReactElement } from 'react'

import { addEvent, addLine, EMPTY, type Transcript } from './transcript.js'

export function App({ sessionId, prompt }: { sessionId: string; prompt?: string }): ReactElement {
  const { lines, streaming } = useTranscript(sessionId, prompt)
  return (
    <Box flexDirection="column">
      <Static items={[...lines]}>
        {({ text, tone }, index) => (
          <Text key={index} dimColor={tone === 'dim'} {...(tone === 'error' && { color: 'red' })} bold={tone === 'user'}>
            {shown(text)}
          </Text>
        )}
      </Static>
      {[...streaming.entries()].map(([item, text]) => (
        <Text key={item}>{shown(lastLines(text))}</Text>
      ))}
      <StatusBar sessionId={sessionId} />
      <InputTransition sessionId={sessionId} placeholder="Type a prompt" />
    </Box>
  )
}

/**
 * Returns the transcript of a session from its beginning, and sends the prompt, if there is one.
 * When a lost daemon is back, the transcript continues after the last event.
 */
function useTranscript(sessionId: string, prompt?: string): Transcript {
  const sessions = useSessions()
  const isConnected = useRustSessionState(sessionId).connection === 'connected'
  const [transcript, setTranscript] = useState(EMPTY)
  const last = useRef(0)
  const isPrompted = useRef(prompt === undefined)
  useEffect(() => {
    if (!isConnected) return
    const showError = (error: Error) => setTranscript((before) => addLine(before, error.message, 'error'))
    const onEvent = (event: Event) => {
      last.current = event.seq
      setTranscript((before) => addEvent(before, event))
    }
    const onEnd = ({ reason }: StreamEnd) => {
      if (reason !== 'closed' && reason !== 'ended') return
      setTranscript((before) => addLine(before, `the stream has ended: ${reason}`, 'dim'))
    }
    const attached = sessions.sessionAttach(sessionId, onEvent, { after: last.current, onEnd })
    const begin = async () => {
      await attached
      if (isPrompted.current) return
      isPrompted.current = true
      await sessions.sessionPrompt(sessionId, prompt ?? '')
    }
    begin().catch(showError)
    return () => {
      attached.then(({ attachment }) => sessions.sessionDetach(sessionId, attachment)).catch(() => {})
    }
  }, [sessions, sessionId, prompt, isConnected])
  return transcript
}

/** Returns the last ten lines of a text. */
function lastLines(text: string): string {
  return text.split('\n').slice(-10).join('\n')
}
