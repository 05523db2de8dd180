// Where a person types to a session: the input, what stands there while it works, and whatever it asks.

import { useRustSessionState, useSessions, useSessionSnapshot } from '../../react/index.mjs'
import { Box, Text, useApp } from 'ink'
import { useEffect, useReducer, useRef, useState, type ReactElement } from 'react'

import { useAfterAsk } from './after-ask.js'
import { said, useInterrupt } from './answering.js'
import { DraftText } from './draft-text.js'
import { draftOf, edit, EMPTY } from './draft.js'
import { useHandedBack } from './handed-back.js'
import { InnerOf, UNKNOWN, useKeys, type Inner, type Press } from './keys.js'
import { PauseIndicator } from './pause-indicator.js'
import { QuestionPrompt } from './question-prompt.js'
import { useLatest } from './latest.js'
import { shownLine } from './shown.js'

/** Milliseconds in which a second Ctrl+C leaves. */
const AGAIN = 2_000

/** Lines about a daemon that is gone. */
const GONE = {
  lost: 'The daemon is gone. This goes on when it is back.',
  stopped: 'The daemon was stopped. Every session is saved. This goes on when it is back.',
}

/** What it is about, and what it says and does. */
export interface InputTransitionProps {
  /** The session. */
  sessionId: string
  /** What stands, dimmed, where nothing is typed. */
  placeholder?: string
  /** What stands there, dimmed, while it works: `Thinking...`. */
  thinking?: string
  /** What Enter does with what is typed: gives it to the session as a prompt. */
  onSubmit?: (text: string) => void | Promise<unknown>
  /** What a second Ctrl+C does: ends the Ink program. Render that with `exitOnCtrlC: false`. */
  onLeave?: () => void
  /** Whether it takes keys: `true`. */
  isActive?: boolean
}

/**
 * The input while the session is idle or held, dimmed words while it works, a `PauseIndicator` or a
 * `QuestionPrompt` while it asks. Whatever stands there, what is being typed is kept and `ctrl+x p`
 * holds and releases. After an ask, keys are swallowed until none was pressed for 300 ms, and a
 * line says who has closed it if not this user. Prompts of this process that an interrupt hands
 * back are typed again, unless something else is. A session that was closed is opened again by
 * Enter. While the daemon is gone, a line says so.
 */
export function InputTransition(props: InputTransitionProps): ReactElement {
  const { sessionId, placeholder, thinking = 'Thinking...', isActive = true } = props
  const sessions = useSessions()
  const { status, pauseInfo, question, hold, connection } = useRustSessionState(sessionId)
  const snapshot = useSessionSnapshot(sessionId)
  const { exit } = useApp()
  const [draft, setDraft] = useLatest(EMPTY)
  const [awaitsKey, setAwaitsKey] = useLatest(false)
  const leaves = useArmed(AGAIN)
  const [trouble, setTrouble] = useState<string | null>(null)
  const [, redraw] = useReducer((count: number) => count + 1, 0)
  const inner = useRef<Inner>({ press: null, forms: new Map(), answered: new Set(), interrupted: null })
  const afterAsk = useAfterAsk(sessionId, pauseInfo?.id ?? question?.id, inner)
  const interrupt = useInterrupt(sessionId, inner)

  const isWorking = status === 'running' || status === 'interrupted'
  const attempt = (what: Promise<unknown>, undo?: () => void) => {
    what.catch((error: Error) => {
      undo?.()
      setTrouble(said(error))
    })
  }
  const submit = (text: string) => {
    setDraft(EMPTY)
    const { onSubmit = (prompt: string) => sessions.sessionPrompt(sessionId, prompt) } = props
    // What is not taken is not lost, unless something else is being typed by then.
    attempt((async () => onSubmit(text))().then(redraw), () => draft.current.text === '' && setDraft(draftOf(text)))
  }
  const enter = (text: string) => {
    if (text.trim() !== '') submit(text)
    // Rendered again, it is followed again.
    else if (status === 'closed') attempt(sessions.sessionFind(sessionId).then(redraw))
  }
  const leave = () => {
    const { onLeave = () => exit() } = props
    onLeave()
  }

  useHandedBack(sessionId, draft, setDraft)

  const write = (press: Press) => {
    const { text } = draft.current
    switch (press.name) {
      case 'enter':
        return enter(text)
      case 'ctrl+c':
        if (leaves.isArmed()) return leave()
        leaves.arm()
        return setDraft(EMPTY)
      case 'esc':
        return setDraft(EMPTY)
      default:
        setDraft(edit(draft.current, press))
    }
  }
  useKeys((press) => {
    setTrouble(null)
    const { name } = press
    const isPrefixed = awaitsKey.current
    if (name !== 'ctrl+c') leaves.disarm()
    if (isPrefixed || name === 'ctrl+x') {
      setAwaitsKey(!isPrefixed)
      afterAsk.hide()
      if (name === 'p' || name === 'ctrl+p') attempt(sessions.sessionToggleHold(sessionId, hold.state))
      // To an ask, and after it, this is a key like any other that does not answer.
      if (inner.current.press) inner.current.press(UNKNOWN)
      else afterAsk.swallows(UNKNOWN)
    } else if (inner.current.press) {
      if (inner.current.press(press)) afterAsk.hide()
    } else if (!afterAsk.swallows(press)) {
      afterAsk.hide()
      // A turn that is held is one, too.
      if ((name === 'esc' || name === 'ctrl+c') && (isWorking || isOpen(snapshot))) attempt(interrupt())
      else if (!isWorking) write(press)
    }
  }, isActive)

  const shownNow = () => {
    if (pauseInfo) return <PauseIndicator sessionId={sessionId} isActive={isActive} />
    if (question) return <QuestionPrompt sessionId={sessionId} isActive={isActive} />
    if (status === 'interrupted') return <Text dimColor>Interrupting...</Text>
    if (isWorking) return <Text dimColor>{`${shownLine(thinking)} (Esc to interrupt)`}</Text>
    const empty = status === 'closed' ? 'Closed: Enter opens it again' : placeholder
    return <DraftText draft={draft.current} {...(empty !== undefined && { placeholder: empty })} />
  }
  return (
    <Box flexDirection="column">
      <InnerOf.Provider value={inner}>{shownNow()}</InnerOf.Provider>
      {afterAsk.notice !== null && <Text color="yellow">{afterAsk.notice}</Text>}
      {connection !== 'connected' && <Text color="yellow">{GONE[connection]}</Text>}
      {trouble !== null && <Text color="red">{trouble}</Text>}
      <Text dimColor>
        {leaves.shown ? 'Ctrl+C again to leave' : hint(awaitsKey.current, hold.state !== 'off')}
      </Text>
    </Box>
  )
}

function hint(awaitsKey: boolean, isHeld: boolean): string {
  const does = isHeld ? 'play' : 'pause'
  return awaitsKey ? `ctrl+x … p ${does}, Esc back` : `ctrl+x p ${does}`
}

/** Whether something of it has begun and not ended. */
function isOpen(snapshot: { turn?: unknown; run?: unknown } | null): boolean {
  return snapshot?.turn != null || snapshot?.run != null
}

/** What holds for a while, and shows that it does. */
function useArmed(milliseconds: number) {
  const [shown, setShown] = useState(false)
  const until = useRef(0)
  useEffect(() => {
    if (!shown) return
    const timer = setTimeout(() => setShown(false), milliseconds)
    return () => clearTimeout(timer)
  }, [shown, milliseconds])
  return {
    shown,
    isArmed: () => performance.now() < until.current,
    arm: () => {
      until.current = performance.now() + milliseconds
      setShown(true)
    },
    disarm: () => {
      until.current = 0
      setShown(false)
    },
  }
}
