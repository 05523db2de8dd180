// An ask that is answered by keys: its form, and the calls that send an answer or an interrupt.

import type { Answer, Ask, HoldpointError, Pressed } from '../../index.mjs'
import { AskForm } from '../../index.mjs'
import { useSessions, useSessionSnapshot } from '../../react/index.mjs'
import { useContext, useLayoutEffect, useReducer, useRef, useState, type RefObject } from 'react'

import { InnerOf, useKeys, type Inner, type Press } from './keys.js'
import { shownLine } from './shown.js'

/** The form of an ask that a part shows. */
export interface Answering {
  form: AskForm
  /** Why the last answer or interrupt was refused. */
  trouble: string | null
}

/** Answers an ask by keys, from its appearance with the component on; give that the ask's id as its `key`. */
export function useAnswering(sessionId: string, ask: Ask, isActive: boolean): Answering {
  const sessions = useSessions()
  const around = useContext(InnerOf)
  const interrupt = useInterrupt(sessionId, around)
  const [form] = useState(() => new AskForm(ask, performance.now()))
  const [trouble, setTrouble] = useState<string | null>(null)
  const [, redraw] = useReducer((count: number) => count + 1, 0)
  /** The number of the question that was rendered last. */
  const rendered = useRef(form.questionNumber)
  const { id: askId } = ask
  const { questionNumber } = form
  // The next question of the ask needs the time to be read, too.
  useLayoutEffect(() => {
    rendered.current = questionNumber
    form.appear(performance.now())
    around?.current.forms.set(askId, form)
  }, [form, around, askId, isActive, questionNumber])

  const answer = (given: Answer): Promise<unknown> => {
    switch (given.type) {
      case 'resume':
        return sessions.sessionPauseResume(sessionId, { askId })
      case 'approve':
        return sessions.sessionPauseConfirm(sessionId, true, { askId, always: given.always ?? false })
      case 'deny':
        return sessions.sessionPauseConfirm(sessionId, false, {
          askId,
          ...(given.reason != null && { reason: given.reason }),
        })
      case 'reply':
        return sessions.sessionAnswerQuestion(sessionId, given.answers, { askId })
      case 'cancel':
        return sessions.sessionAnswerQuestion(sessionId, null, { askId })
    }
  }
  const send = (sent: Promise<unknown>, undo?: () => void) => {
    setTrouble(null)
    sent.catch((error: HoldpointError) => {
      // The ask is no longer open: the event that says so is on its way.
      if (error.code === 'alreadyAnswered' || error.code === 'askClosed' || error.code === 'closed') return
      undo?.()
      setTrouble(said(error))
    })
  }
  useKeys((press) => {
    // A key never answers a question that is not rendered yet, however long that takes.
    if (rendered.current !== form.questionNumber) form.appear(performance.now())
    const pressed = pressOn(form, press)
    if (pressed.type === 'answer') {
      around?.current.answered.add(askId)
      send(answer(pressed.answer), () => {
        around?.current.answered.delete(askId)
        form.reopen(performance.now())
      })
    } else if (pressed.type === 'interrupt') send(interrupt())
    redraw()
    return pressed.type !== 'nothing'
  }, isActive)
  return { form, trouble }
}

/** Presses a key on a form. A paste, and a character of several code points, are text to it. */
function pressOn(form: AskForm, { name, text }: Press): Pressed {
  const at = performance.now()
  return text !== undefined && [...name].length > 1 ? form.paste(text, at) : form.press(name, at)
}

/** Interrupts the turn that is shown, and no later one; or a run that is between two turns. */
export function useInterrupt(sessionId: string, around: RefObject<Inner> | null): () => Promise<unknown> {
  const sessions = useSessions()
  const turn = useSessionSnapshot(sessionId)?.turn ?? null
  return async () => {
    if (around) around.current.interrupted = turn
    try {
      await sessions.sessionInterrupt(sessionId, { ...(turn !== null && { turn }), wait: false })
    } catch (error) {
      // Another client may still close the ask, and a line is to say so.
      if (around?.current.interrupted === turn) around.current.interrupted = null
      throw error
    }
  }
}

/** An error in a line. */
export function said(error: Error & { hint?: string }): string {
  return shownLine(error.hint ? `${error.message} (${error.hint})` : error.message)
}
