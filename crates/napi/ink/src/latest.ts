// A state that is read at once, also when several keys come before it is rendered.

import { useRef, useState } from 'react'

/** What it is, at any moment. */
export interface Latest<T> {
  readonly current: T
}

/** A state that keys can read at once, also when several come before it is rendered. */
export function useLatest<T>(initial: T): [Latest<T>, (value: T) => void] {
  const [, setRendered] = useState(initial)
  const latest = useRef(initial)
  const set = (value: T) => {
    latest.current = value
    setRendered(value)
  }
  return [latest, set]
}
