// Restores prompts that this process sent and an interrupt handed back.

import type { PromptId } from '../../index.js'
import { useSessionEvents } from '../../react/index.mjs'
import { useMemo } from 'react'

import { draftOf, type Draft } from './draft.js'
import type { Latest } from './latest.js'

/** Makes prompts that were handed back the draft, unless the user is typing something else. */
export function useHandedBack(sessionId: string, draft: Latest<Draft>, setDraft: (draft: Draft) => void): void {
  // Each session numbers its prompts.
  const returned = useMemo(() => ({ sent: new Set<PromptId>(), draft: '' }), [sessionId])
  useSessionEvents(sessionId, ({ body }) => {
    switch (body.type) {
      case 'promptAccepted':
        if (body.by.pid === process.pid) returned.sent.add(body.prompt)
        break
      case 'turnStarted':
      case 'promptDelivered':
        returned.sent.delete(body.prompt)
        break
      case 'promptReturned': {
        const { text } = draft.current
        if (!returned.sent.delete(body.prompt) || (text !== '' && text !== returned.draft)) break
        returned.draft = text === '' ? body.text : `${text}\n${body.text}`
        setDraft(draftOf(returned.draft))
      }
    }
  })
}
