// The display of a draft and its cursor.

import { Text } from 'ink'
import type { ReactElement } from 'react'

import type { Draft } from './draft.js'
import { shown } from './shown.js'

/** Shows a draft after a prompt mark, or the placeholder if the draft is empty. */
export function DraftText({ draft, placeholder = '' }: { draft: Draft; placeholder?: string }): ReactElement {
  const { text, cursor } = draft
  const at = new Intl.Segmenter().segment(text).containing(cursor)?.segment ?? ''
  const isEnd = at === '' || at === '\n'
  return (
    <Text>
      <Text color="cyan">{'> '}</Text>
      {shown(text.slice(0, cursor))}
      <Text inverse>{isEnd ? ' ' : shown(at)}</Text>
      {shown(text.slice(isEnd ? cursor : cursor + at.length))}
      {text === '' && <Text dimColor>{shown(placeholder)}</Text>}
    </Text>
  )
}
