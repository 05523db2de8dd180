// Prompts that were sent from this process and handed back by an interrupt: they are typed again.

import type { PromptId } from '../../index.js'
import { useSessionEvents } from '../../react/index.mjs'
import { useRef } from 'react'

import { draftOf, type Draft } from './draft.js'
import type { Latest } from './latest.js'

/** Has what is handed back be the draft, unless something else is being typed. */
export function useHandedBack(sessionId: string, draft: Latest<Draft>, setDraft: (draft: Draft) => void): void {
  const sent = useRef(new Set<PromptId>())
  const back = useRef('')
  useSessionEvents(sessionId, ({ body }) => {
    switch (body.type) {
      case 'promptAccepted':
        if (body.by.pid === process.pid) sent.current.add(body.prompt)
        break
      case 'turnStarted':
      case 'promptDelivered':
        sent.current.delete(body.prompt)
        break
      case 'promptReturned': {
        const { text } = draft.current
        if (!sent.current.delete(body.prompt) || (text !== '' && text !== back.current)) break
        back.current = text === '' ? body.text : `${text}\n${body.text}`
        setDraft(draftOf(back.current))
      }
    }
  })
}
