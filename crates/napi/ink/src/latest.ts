// State whose new value can be read before the next rendering.

import { useRef, useState } from 'react'

/** The current value of a state. */
export interface Latest<T> {
  readonly current: T
}

/**
 * Like `useState`, but key handlers read the new value at once, even if several keys arrive before
 * a rendering.
 */
export function useLatest<T>(initial: T): [Latest<T>, (value: T) => void] {
  const [, setRendered] = useState(initial)
  const latest = useRef(initial)
  const set = (value: T) => {
    latest.current = value
    setRendered(value)
  }
  return [latest, set]
}
