// What is on the screen: what was said and done, what is being said, the status bar, and where one types and answers.

import { useSessions } from 'holdpoint/react'
import { InputTransition, shown, StatusBar } from 'holdpoint/ink'
import { Box, Static, Text } from 'ink'
import { useEffect, useState, type ReactElement } from 'react'

import { add, NOTHING, type Transcript } from './transcript.js'

export function App({ sessionId }: { sessionId: string }): ReactElement {
  const { lines, open } = useTranscript(sessionId)
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

/** What the session's events come to, from its beginning on. */
function useTranscript(sessionId: string): Transcript {
  const sessions = useSessions()
  const [transcript, setTranscript] = useState(NOTHING)
  useEffect(() => {
    let followed = NOTHING
    const attached = sessions.sessionAttach(
      sessionId,
      (event) => {
        followed = add(followed, event)
        setTranscript(followed)
      },
      {
        onEnd: ({ reason }) => {
          const text = `no more comes: ${reason}`
          setTranscript({ ...followed, lines: [...followed.lines, { text, tone: 'dim' }] })
        },
      },
    )
    return () => {
      void attached.then(({ attachment }) => sessions.sessionDetach(sessionId, attachment))
    }
  }, [sessions, sessionId])
  return transcript
}

/** As much of what is being said as there is room for. */
function lastLines(text: string): string {
  return text.split('\n').slice(-10).join('\n')
}
