// Restores prompts that this process sent and an interrupt handed back.

import type { PromptId } from '../../index.js'
import { useSessionEvents } from '../../react/index.mjs'
import { useRef } from 'react'

import { draftOf, type Draft } from './draft.js'
import type { Latest } from './latest.js'

/** Fills the draft with prompts that were handed back, unless the user is typing something else. */
export function useHandedBack(sessionId: string, draft: Latest<Draft>, setDraft: (draft: Draft) => void): void {
  const state = useRef({ sessionId, sent: new Set<PromptId>(), restoredText: '' })
  useSessionEvents(sessionId, ({ body }) => {
    // Ids of prompts are unique only within a session.
    if (state.current.sessionId !== sessionId) state.current = { sessionId, sent: new Set(), restoredText: '' }
    const prompts = state.current
    switch (body.type) {
      case 'promptAccepted':
        if (body.by.pid === process.pid) prompts.sent.add(body.prompt)
        break
      case 'turnStarted':
      case 'promptDelivered':
        prompts.sent.delete(body.prompt)
        break
      case 'promptReturned': {
        const { text } = draft.current
        if (!prompts.sent.delete(body.prompt) || (text !== '' && text !== prompts.restoredText)) break
        prompts.restoredText = text === '' ? body.text : `${text}\n${body.text}`
        setDraft(draftOf(prompts.restoredText))
      }
    }
  })
}
