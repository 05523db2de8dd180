// What a session's events come to, line by line. Pure.

import type { Event, ItemId } from 'holdpoint'

/** One thing that was said or done. */
export interface Line {
  readonly text: string
  readonly tone: 'plain' | 'dim' | 'bad' | 'mine'
}

/** What was said and done, and what is being said. */
export interface Transcript {
  readonly lines: readonly Line[]
  /** Text that is still coming, by the item it belongs to. */
  readonly open: ReadonlyMap<ItemId, string>
}

export const NOTHING: Transcript = { lines: [], open: new Map() }

/** The transcript with one line more. */
export function said({ lines, open }: Transcript, text: string, tone: Line['tone'] = 'plain'): Transcript {
  return { lines: [...lines, { text, tone }], open }
}

/** The transcript after an event. */
export function add(before: Transcript, { body }: Event): Transcript {
  const { lines, open } = before
  switch (body.type) {
    case 'promptAccepted':
      return said(before, `> ${body.text}`, 'mine')
    case 'promptReturned':
      return said(before, `handed back: ${body.text}`, 'dim')
    case 'text':
      return { lines, open: new Map(open).set(body.item, (open.get(body.item) ?? '') + body.text) }
    case 'itemSoFar':
      return body.kind === 'text' ? { lines, open: new Map(open).set(body.item, body.soFar.head ?? '') } : { lines, open }
    case 'assistantMessage': {
      // What was coming is whole now, however much of it was seen.
      const whole = body.blocks.filter(({ kind }) => kind === 'text').map(({ text }) => ({ text, tone: 'plain' as const }))
      return { lines: [...lines, ...whole], open: new Map() }
    }
    case 'toolFinished':
      return said(before, `[${body.status}] ${firstLine(body.output?.head || body.result)}`, body.status === 'ok' ? 'dim' : 'bad')
    case 'turnFinished':
      if (body.outcome === 'interrupted') return said(before, 'Agent interrupted', 'bad')
      return body.error ? said(before, body.error, 'bad') : { lines, open }
    default:
      return { lines, open }
  }
}

function firstLine(text: string): string {
  return text.trim().split('\n', 1)[0] ?? ''
}
