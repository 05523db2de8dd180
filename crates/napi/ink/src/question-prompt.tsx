// A tool that wants to know something: its questions, one after the other, by choice or in words.

import type { Question, QuestionReply } from '../../index.js'
import { useRustSessionState, useSessions, useSessionSnapshot, type QuestionState } from '../../react/index.mjs'
import { Box, Text } from 'ink'
import { useRef, useState, type ReactElement } from 'react'

import { theTurn, useAnswering } from './answering.js'
import { DraftText } from './draft-text.js'
import { edit, EMPTY, type Draft } from './draft.js'
import { useKeys, type Press } from './keys.js'
import { shown, shownLine } from './shown.js'

/** Which session it is about. */
export interface QuestionPromptProps {
  /** The session. */
  sessionId: string
  /** Whether it takes keys: `true`. */
  isActive?: boolean
}

/**
 * The question that a session shows, if one is open. A number chooses an option, W is for words of one's own, S skips: the
 * tool is told that nobody answers. Esc first goes back from words to the options, then interrupts. Keys count from 300
 * ms after it appeared, or after a key that answers nothing.
 */
export function QuestionPrompt({ sessionId, isActive = true }: QuestionPromptProps): ReactElement | null {
  const { question } = useRustSessionState(sessionId)
  return question && <Questions key={question.id} sessionId={sessionId} ask={question} isActive={isActive} />
}

/** How far the user is. */
interface Progress {
  readonly replies: readonly QuestionReply[]
  /** What is typed, while words are. */
  readonly words: Draft | null
}

function Questions({ sessionId, ask, isActive }: { sessionId: string; ask: QuestionState; isActive: boolean }): ReactElement {
  const sessions = useSessions()
  const snapshot = useSessionSnapshot(sessionId)
  const { counts, isSent, putOff, send, trouble, typing } = useAnswering()
  const { questions, id: askId } = ask
  const [progress, setProgress] = useState<Progress>(() => begin([], questions[0]))
  const latest = useRef(progress)
  const go = (to: Progress) => {
    latest.current = to
    setProgress(to)
    const { replies, words } = to
    typing(words !== null && (hasOptions(questions[replies.length]) || words.text !== '') ? words : null)
  }

  const reply = (answer: string) => {
    const { replies } = latest.current
    const question = questions[replies.length]
    if (!question) return
    const all = [...replies, { id: question.id, answer }]
    if (all.length < questions.length) return go(begin(all, questions[all.length]))
    // Should the answer not be taken, it is asked for again.
    go(begin([], questions[0]))
    send(() => sessions.sessionAnswerQuestion(sessionId, all, { askId }))
  }
  const skip = () => send(() => sessions.sessionAnswerQuestion(sessionId, null, { askId }))
  const choose = (question: Question, name: string) => {
    const option = /^[1-9]$/.test(name) ? question.options?.[Number(name) - 1] : undefined
    if (option) reply(option.label)
    else if (/^w$/i.test(name)) go({ ...latest.current, words: EMPTY })
    else if (/^s$/i.test(name)) skip()
    else putOff()
  }
  const write = (words: Draft, press: Press) => {
    if (press.name === 'ctrl+d') return skip()
    if (press.name === 'enter') return words.text.trim() === '' ? undefined : reply(words.text.trim())
    go({ ...latest.current, words: edit(words, press) })
  }
  useKeys((press) => {
    const { replies, words } = latest.current
    const question = questions[replies.length]
    const hasChosen = words !== null && hasOptions(question)
    if (press.name === 'esc' && hasChosen && !isSent()) {
      go({ replies, words: null })
      putOff()
    }
    else if (press.name === 'esc' || press.name === 'ctrl+c') send(() => sessions.sessionInterrupt(sessionId, theTurn(snapshot)))
    else if (isSent() || !question) return
    // Who has chosen to type is not to lose the first letters.
    else if (words) hasChosen || counts() ? write(words, press) : undefined
    else if (counts()) choose(question, press.name)
    else putOff()
  }, isActive)

  const place = progress.replies.length
  const question = questions[place]
  if (!question) return <></>
  const of = questions.length > 1 ? ` (${place + 1} of ${questions.length})` : ''
  const skips = questions.length > 1 ? 'Skip all' : 'Skip'
  return (
    <Box flexDirection="column">
      <Text color="yellow">{`⏸ ${shownLine(question.header)}: ${shown(question.question)}${of}`}</Text>
      {question.options?.map(({ label, description }, at) => (
        <Text key={at}>
          <Text color="cyan">{`  ${at + 1}. `}</Text>
          {shownLine(label)}
          {description && <Text dimColor>{` - ${shownLine(description)}`}</Text>}
        </Text>
      ))}
      {trouble !== null && <Text color="red">{trouble}</Text>}
      {progress.words ? (
        <>
          <DraftText draft={progress.words} />
          <Text dimColor>
            {`Your words, then Enter (Ctrl+D: ${skips}, Esc to ${hasOptions(question) ? 'go back' : 'interrupt'})`}
          </Text>
        </>
      ) : (
        <Text bold>{`[1-${question.options?.length}] Choose [W] Your own words [S] ${skips} (Esc to interrupt)`}</Text>
      )}
    </Box>
  )
}

function hasOptions(question: Question | undefined): boolean {
  return (question?.options?.length ?? 0) > 0
}

/** A question that begins: with its options, if there are any. */
function begin(replies: readonly QuestionReply[], question: Question | undefined): Progress {
  return { replies, words: hasOptions(question) ? null : EMPTY }
}
