// Prompts that were sent from this process and handed back by an interrupt: they are typed again.

import type { PromptId } from '../../index.js'
import { useSessionEvents } from '../../react/index.mjs'
import { useMemo } from 'react'

import { draftOf, type Draft } from './draft.js'
import type { Latest } from './latest.js'

/** Has what is handed back be the draft, unless something else is being typed. */
export function useHandedBack(sessionId: string, draft: Latest<Draft>, setDraft: (draft: Draft) => void): void {
  // Prompts are numbered by session.
  const of = useMemo(() => ({ sent: new Set<PromptId>(), back: '' }), [sessionId])
  useSessionEvents(sessionId, ({ body }) => {
    switch (body.type) {
      case 'promptAccepted':
        if (body.by.pid === process.pid) of.sent.add(body.prompt)
        break
      case 'turnStarted':
      case 'promptDelivered':
        of.sent.delete(body.prompt)
        break
      case 'promptReturned': {
        const { text } = draft.current
        if (!of.sent.delete(body.prompt) || (text !== '' && text !== of.back)) break
        of.back = text === '' ? body.text : `${text}\n${body.text}`
        setDraft(draftOf(of.back))
      }
    }
  })
}
