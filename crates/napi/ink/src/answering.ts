// Answers to an ask by keys: the form, and the calls that send an answer or an interrupt.

import type { Answer, Ask, HoldpointError, Pressed } from '../../index.mjs'
import { AskForm } from '../../index.mjs'
import { useSessions, useSessionSnapshot } from '../../react/index.mjs'
import { useContext, useLayoutEffect, useReducer, useRef, useState, type RefObject } from 'react'

import { SharedInputContext, useKeys, type SharedInput, type Press } from './keys.js'
import { shownLine } from './shown.js'

/** The form of the current ask. */
export interface Answering {
  form: AskForm
  /** Reason why the last answer or interrupt was refused. */
  error: string | null
}

/**
 * Handles the keys that answer an ask, from the first rendering of the component. The component
 * needs the ask's id as its `key`.
 */
export function useAnswering(sessionId: string, ask: Ask, isActive: boolean): Answering {
  const sessions = useSessions()
  const sharedRef = useContext(SharedInputContext)
  const interrupt = useInterrupt(sessionId, sharedRef)
  const [form] = useState(() => new AskForm(ask, performance.now()))
  const [error, setError] = useState<string | null>(null)
  const [, redraw] = useReducer((count: number) => count + 1, 0)
  const renderedQuestionNumber = useRef(form.questionNumber)
  const { id: askId } = ask
  const { questionNumber } = form
  // The user also needs time to read the next question of the ask.
  useLayoutEffect(() => {
    renderedQuestionNumber.current = questionNumber
    form.appear(performance.now())
    sharedRef?.current.forms.set(askId, form)
  }, [form, sharedRef, askId, isActive, questionNumber])

  const sendAnswer = (answer: Answer): Promise<unknown> => {
    switch (answer.type) {
      case 'resume':
        return sessions.sessionPauseResume(sessionId, { askId })
      case 'approve':
        return sessions.sessionPauseConfirm(sessionId, true, { askId, always: answer.always ?? false })
      case 'deny':
        return sessions.sessionPauseConfirm(sessionId, false, {
          askId,
          always: answer.always ?? false,
          ...(answer.reason != null && { reason: answer.reason }),
        })
      case 'reply':
        return sessions.sessionAnswerQuestion(sessionId, answer.answers, { askId })
      case 'cancel':
        return sessions.sessionAnswerQuestion(sessionId, null, { askId })
    }
  }
  const attempt = (request: Promise<unknown>, undo?: () => void) => {
    setError(null)
    request.catch((error: HoldpointError) => {
      // The ask is no longer open, and the event that says so is on its way.
      if (error.code === 'alreadyAnswered' || error.code === 'askClosed' || error.code === 'closed') return
      undo?.()
      setError(formatError(error))
    })
  }
  useKeys((press) => {
    // A key never answers a question before it is rendered, however long the rendering takes.
    if (renderedQuestionNumber.current !== form.questionNumber) form.appear(performance.now())
    const pressed = passKey(form, press)
    if (pressed.type === 'answer') {
      sharedRef?.current.answered.add(askId)
      attempt(sendAnswer(pressed.answer), () => {
        sharedRef?.current.answered.delete(askId)
        form.reopen(performance.now())
      })
    } else if (pressed.type === 'interrupt') attempt(interrupt())
    redraw()
    return pressed.type !== 'nothing'
  }, isActive)
  return { form, error }
}

/** Passes a key to a form. A paste, or a character of several code points, is text. */
function passKey(form: AskForm, { name, text }: Press): Pressed {
  const at = performance.now()
  return text !== undefined && [...name].length > 1 ? form.paste(text, at) : form.press(name, at)
}

/**
 * Returns a function that interrupts the current turn and no later one, or a run between two turns.
 */
export function useInterrupt(sessionId: string, sharedRef: RefObject<SharedInput> | null): () => Promise<unknown> {
  const sessions = useSessions()
  const turn = useSessionSnapshot(sessionId)?.turn ?? null
  return async () => {
    if (sharedRef) sharedRef.current.interrupted = turn
    try {
      await sessions.sessionInterrupt(sessionId, { ...(turn !== null && { turn }), wait: false })
    } catch (error) {
      // Another client may still close the ask, and then a line must report it.
      if (sharedRef?.current.interrupted === turn) sharedRef.current.interrupted = null
      throw error
    }
  }
}

/** Formats an error in one line. */
export function formatError(error: Error & { hint?: string }): string {
  return shownLine(error.hint ? `${error.message} (${error.hint})` : error.message)
}
