// Where a person types to a session: the input, what stands there while it works, and whatever it asks.

import { useRustSessionState, useSessions, useSessionSnapshot } from '../../react/index.mjs'
import { Box, Text, useApp } from 'ink'
import { useEffect, useRef, useState, type ReactElement } from 'react'

import { said, theTurn } from './answering.js'
import { DraftText } from './draft-text.js'
import { draftOf, edit, EMPTY } from './draft.js'
import { useHandedBack } from './handed-back.js'
import { InnerOf, useKeys, type Inner, type Press } from './keys.js'
import { Orphaned, useOrphaned } from './orphaned.js'
import { PauseIndicator } from './pause-indicator.js'
import { QuestionPrompt } from './question-prompt.js'
import { useLatest } from './latest.js'
import { shownLine } from './shown.js'

/** Milliseconds in which a second Ctrl+C leaves. */
const AGAIN = 2_000

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
 * The input while the session is idle or held, dimmed words while it works, a `PauseIndicator` or a `QuestionPrompt` while it
 * asks. Whatever stands there, what is being typed is kept and `ctrl+x p` holds and releases. Prompts of this process that an
 * interrupt hands back are typed again, unless something else is.
 */
export function InputTransition(props: InputTransitionProps): ReactElement {
  const { sessionId, placeholder, thinking = 'Thinking...', isActive = true } = props
  const sessions = useSessions()
  const { status, pauseInfo, question, hold } = useRustSessionState(sessionId)
  const snapshot = useSessionSnapshot(sessionId)
  const { exit } = useApp()
  const [draft, setDraft] = useLatest(EMPTY)
  const [awaitsKey, setAwaitsKey] = useLatest(false)
  const leaves = useArmed(AGAIN)
  const [trouble, setTrouble] = useState<string | null>(null)
  const inner = useRef<Inner>({ press: null, isDone: false, words: null })
  const orphaned = useOrphaned(pauseInfo?.id ?? question?.id, inner)

  const isWorking = status === 'running' || status === 'interrupted'
  const attempt = (what: Promise<unknown>, undo?: () => void) => {
    what.catch((error: Error) => {
      undo?.()
      setTrouble(said(error))
    })
  }
  const interrupt = () => attempt(sessions.sessionInterrupt(sessionId, theTurn(snapshot)))
  const submit = (text: string) => {
    setDraft(EMPTY)
    const { onSubmit = (prompt: string) => sessions.sessionPrompt(sessionId, prompt) } = props
    // What is not taken is not lost, unless something else is being typed by then.
    attempt((async () => onSubmit(text))(), () => draft.current.text === '' && setDraft(draftOf(text)))
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
        return text.trim() === '' ? undefined : submit(text)
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
    if (name !== 'ctrl+c') leaves.disarm()
    if (awaitsKey.current) {
      setAwaitsKey(false)
      if (name === 'p' || name === 'ctrl+p') attempt(sessions.sessionToggleHold(sessionId, hold.state))
    } else if (name === 'ctrl+x') setAwaitsKey(true)
    else if (orphaned.words.current) {
      const leaves = name === 'esc' || name === 'enter' || name === 'ctrl+c'
      if (leaves) orphaned.leave()
      if (name === 'ctrl+c' && isOpen(snapshot)) interrupt()
    } else if (inner.current.press) inner.current.press(press)
    else if (name !== 'ctrl+c' && orphaned.takes()) return
    // A turn that is held is one, too.
    else if ((name === 'esc' || name === 'ctrl+c') && (isWorking || isOpen(snapshot))) interrupt()
    else if (!isWorking) write(press)
  }, isActive)

  const shownNow = () => {
    if (orphaned.words.current) return <Orphaned words={orphaned.words.current} />
    if (pauseInfo) return <PauseIndicator sessionId={sessionId} />
    if (question) return <QuestionPrompt sessionId={sessionId} />
    if (status === 'interrupted') return <Text dimColor>Interrupting...</Text>
    if (isWorking) return <Text dimColor>{`${shownLine(thinking)} (Esc to interrupt)`}</Text>
    return <DraftText draft={draft.current} {...(placeholder !== undefined && { placeholder })} />
  }
  return (
    <Box flexDirection="column">
      <InnerOf.Provider value={inner}>{shownNow()}</InnerOf.Provider>
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
