// The display of questions, one at a time, with choices and typed replies.

import type { Ask, Question } from '../../index.mjs'
import { useSessionSnapshot } from '../../react/index.mjs'
import { Box, Text } from 'ink'
import type { ReactElement } from 'react'

import { useAnswering } from './answering.js'
import { DraftText } from './draft-text.js'
import { shown, shownLine } from './shown.js'

/** The props of `QuestionPrompt`. */
export interface QuestionPromptProps {
  /** Id or name of the session. */
  sessionId: string
  /** Whether the component takes keys. Default: `true`. */
  isActive?: boolean
}

/**
 * The question of a session, if one is open. A number chooses an option, W starts a typed reply,
 * and S (Ctrl+D while typing) skips the question. Tab and Shift+Tab move to the next and the
 * previous question, and replies are kept. Esc goes back from a typed reply to the options, or
 * clears the text, or else interrupts. Keys that answer count 300 ms after the question appeared,
 * and 300 ms after the last key that does not answer.
 */
export function QuestionPrompt({ sessionId, isActive = true }: QuestionPromptProps): ReactElement | null {
  const ask = useSessionSnapshot(sessionId)?.asks[0]
  if (ask?.request.type !== 'question') return null
  const { questions } = ask.request
  return <Questions key={ask.id} sessionId={sessionId} ask={ask} questions={questions} isActive={isActive} />
}

interface QuestionsProps extends Required<QuestionPromptProps> {
  ask: Ask
  questions: readonly Question[]
}

function Questions({ sessionId, ask, questions, isActive }: QuestionsProps): ReactElement {
  const { form, error } = useAnswering(sessionId, ask, isActive)
  const { entry, reply, text, questionNumber: number } = form
  const question = questions[number - 1]
  if (!question) return <></>
  const { options = [] } = question
  const moveHint = moveHintOf(number, questions.length)
  const isSkipped = reply?.answer === null
  const isOption = options.some(({ label }) => label === reply?.answer)
  const escAction = entry === 'ownWords' ? 'go back' : text === '' ? 'interrupt' : 'clear'
  return (
    <Box flexDirection="column">
      <Text color="yellow">
        {`⏸ ${shownLine(question.header)}: ${shown(question.question)}`}
        {questions.length > 1 && ` (${number} of ${questions.length}${isSkipped ? ', skipped' : ''})`}
      </Text>
      {options.map(({ label, description }, index) => (
        <Text key={index}>
          <Text color="cyan">{`  ${index + 1}. `}</Text>
          {shownLine(label)}
          {description && <Text dimColor>{` - ${shownLine(description)}`}</Text>}
          {label === reply?.answer && <Text color="green"> ✓</Text>}
        </Text>
      ))}
      {/* The earlier reply in the user's own words, unless the draft shows it. */}
      {reply?.answer != null && !isOption && entry !== 'ownWords' && reply.answer !== text.trim() && (
        <Text color="green">{`✓ ${shownLine(reply.answer)}`}</Text>
      )}
      {error !== null && <Text color="red">{error}</Text>}
      {entry === 'choice' ? (
        <Text bold>
          {`[1-${Math.min(options.length, 9)}] Choose [W] Your own words [S] Skip `}
          {`(${moveHint}Esc to interrupt)`}
        </Text>
      ) : (
        <>
          <DraftText draft={form} />
          <Text dimColor>{`Your words, then Enter (Ctrl+D: Skip, ${moveHint}Esc to ${escAction})`}</Text>
        </>
      )}
    </Box>
  )
}

/** Hint for the keys that move between the questions of an ask. */
function moveHintOf(number: number, count: number): string {
  if (count === 1) return ''
  if (number === count) return 'Shift+Tab: back, '
  return number === 1 ? 'Tab: next, ' : 'Tab: next, Shift+Tab: back, '
}
