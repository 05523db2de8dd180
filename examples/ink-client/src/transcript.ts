// The transcript of a session: turns its events into lines. Pure.

import type { Event, ItemId } from 'holdpoint'

/** A line of the transcript, or a text of several lines. */
export interface Line {
  readonly text: string
  readonly tone: 'plain' | 'dim' | 'error' | 'user'
}

/** The finished lines, and the texts that are still streaming. */
export interface Transcript {
  readonly lines: readonly Line[]
  /** Text so far of each streaming item. */
  readonly streaming: ReadonlyMap<ItemId, string>
}

export const EMPTY: Transcript = { lines: [], streaming: new Map() }

/** Returns the transcript with another line. */
export function addLine(transcript: Transcript, text: string, tone: Line['tone'] = 'plain'): Transcript {
  return { ...transcript, lines: [...transcript.lines, { text, tone }] }
}

/** Returns the transcript after an event. */
export function addEvent(before: Transcript, { body }: Event): Transcript {
  const { lines, streaming } = before
  switch (body.type) {
    case 'promptAccepted':
      return addLine(before, `> ${body.text}`, 'user')
    case 'promptReturned':
      return addLine(before, `handed back: ${body.text}`, 'dim')
    case 'text': {
      const text = (streaming.get(body.item) ?? '') + body.text
      return { lines, streaming: new Map(streaming).set(body.item, text) }
    }
    case 'itemSoFar':
      if (body.kind !== 'text') return before
      return { lines, streaming: new Map(streaming).set(body.item, body.soFar.head ?? '') }
    case 'assistantMessage': {
      // The message has the whole texts, even if some pieces did not arrive.
      const blocks = body.blocks.filter(({ kind }) => kind === 'text')
      const texts = blocks.map(({ text }) => ({ text, tone: 'plain' as const }))
      return { lines: [...lines, ...texts], streaming: new Map() }
    }
    case 'toolFinished': {
      const output = firstLine(body.output?.head || body.result)
      return addLine(before, `[${body.status}] ${output}`, body.status === 'ok' ? 'dim' : 'error')
    }
    case 'turnFinished':
      if (body.outcome === 'interrupted') return addLine(before, 'Agent interrupted', 'error')
      return body.error ? addLine(before, body.error, 'error') : before
    default:
      return before
  }
}

function firstLine(text: string): string {
  return text.trim().split('\n', 1)[0] ?? ''
}
