// What is on the screen: what was said and done, what is being said, the status bar, and where one types and answers.

import type { Event, StreamEnd } from 'holdpoint'
import { useRustSessionState, useSessions } from 'holdpoint/react'
import { InputTransition, shown, StatusBar } from 'holdpoint/ink'
import { Box, Static, Text } from 'ink'
import { useEffect, useRef, useState, type ReactElement } from 'react'

import { add, NOTHING, said, type Transcript } from './transcript.js'

export function App({ sessionId, prompt }: { sessionId: string; prompt?: string }): ReactElement {
  const { lines, open } = useTranscript(sessionId, prompt)
  return (
    <Box flexDirection="column">
      <Static items={[...lines]}>
        {({ text, tone }, at) => (
          <Text key={at} dimColor={tone === 'dim'} {...(tone === 'bad' && { color: 'red' })} bold={tone === 'mine'}>
            {shown(text)}
          </Text>
        )}
      </Static>
      {[...open.entries()].map(([item, text]) => (
        <Text key={item}>{shown(lastLines(text))}</Text>
      ))}
      <StatusBar sessionId={sessionId} />
      <InputTransition sessionId={sessionId} placeholder="What is to be done?" />
    </Box>
  )
}

/**
 * What the session's events come to, from its beginning on. It is given the prompt first, if there is one. When its daemon
 * was gone and is back, they go on behind the last one that came.
 */
function useTranscript(sessionId: string, prompt?: string): Transcript {
  const sessions = useSessions()
  const isConnected = useRustSessionState(sessionId).connection === 'connected'
  const [transcript, setTranscript] = useState(NOTHING)
  const last = useRef(0)
  const isPrompted = useRef(prompt === undefined)
  useEffect(() => {
    if (!isConnected) return
    const failed = (error: Error) => setTranscript((before) => said(before, error.message, 'bad'))
    const taken = (event: Event) => {
      last.current = event.seq
      setTranscript((before) => add(before, event))
    }
    const ended = ({ reason }: StreamEnd) => {
      if (reason === 'closed' || reason === 'ended') setTranscript((before) => said(before, `no more comes: ${reason}`, 'dim'))
    }
    const attached = sessions.sessionAttach(sessionId, taken, { after: last.current, onEnd: ended })
    const begin = async () => {
      await attached
      if (isPrompted.current) return
      isPrompted.current = true
      await sessions.sessionPrompt(sessionId, prompt ?? '')
    }
    begin().catch(failed)
    return () => {
      attached.then(({ attachment }) => sessions.sessionDetach(sessionId, attachment)).catch(() => {})
    }
  }, [sessions, sessionId, prompt, isConnected])
  return transcript
}

/** As much of what is being said as there is room for. */
function lastLines(text: string): string {
  return text.split('\n').slice(-10).join('\n')
}
