// The display of a draft and its cursor.

import { Text } from 'ink'
import type { ReactElement } from 'react'

import type { Draft } from './draft.js'
import { shown } from './shown.js'

/** Shows a draft after a prompt mark, or the placeholder if the draft is empty. */
export function DraftText({ draft, placeholder = '' }: { draft: Draft; placeholder?: string }): ReactElement {
  const { text, cursor } = draft
  const underCursor = new Intl.Segmenter().segment(text).containing(cursor)?.segment ?? ''
  const isLineEnd = underCursor === '' || underCursor === '\n'
  return (
    <Text>
      <Text color="cyan">{'> '}</Text>
      {shown(text.slice(0, cursor))}
      <Text inverse>{isLineEnd ? ' ' : shown(underCursor)}</Text>
      {shown(text.slice(isLineEnd ? cursor : cursor + underCursor.length))}
      {text === '' && <Text dimColor>{shown(placeholder)}</Text>}
    </Text>
  )
}
