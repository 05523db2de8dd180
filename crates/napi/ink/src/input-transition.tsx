// The input of a session. While the session works, a line replaces the input; while an ask is open,
// the ask does.

import { useRustSessionState, useSessions, useSessionSnapshot } from '../../react/index.mjs'
import { Box, Text, useApp } from 'ink'
import { useEffect, useReducer, useRef, useState, type ReactElement } from 'react'

import { useAfterAsk } from './after-ask.js'
import { formatError, useInterrupt } from './answering.js'
import { DraftText } from './draft-text.js'
import { draftOf, edit, EMPTY } from './draft.js'
import { useHandedBack } from './handed-back.js'
import { SharedInputContext, UNKNOWN, useKeys, type SharedInput, type Press } from './keys.js'
import { PauseIndicator } from './pause-indicator.js'
import { QuestionPrompt } from './question-prompt.js'
import { useLatest } from './latest.js'
import { shownLine } from './shown.js'

/** Milliseconds within which a second Ctrl+C leaves the program. */
const LEAVE_WINDOW_MS = 2_000

/** Messages while the daemon is gone. */
const DISCONNECTED_TEXT = {
  lost: 'The daemon is gone. The session continues when it is back.',
  stopped: 'The daemon was stopped. Every session is saved. The session continues when it is back.',
}

/** The props of `InputTransition`. */
export interface InputTransitionProps {
  /** Id or name of the session. */
  sessionId: string
  /** Dimmed text in the empty input. */
  placeholder?: string
  /** Dimmed text while the session works. Default: `Thinking...`. */
  thinking?: string
  /** Called by Enter with the typed text. Default: sends it to the session as a prompt. */
  onSubmit?: (text: string) => void | Promise<unknown>
  /**
   * Called by a second Ctrl+C. Default: ends the Ink program, which must be rendered with
   * `exitOnCtrlC: false`.
   */
  onLeave?: () => void
  /** Whether the component takes keys. Default: `true`. */
  isActive?: boolean
}

/**
 * The input while the session is idle or held, a dimmed line while it works, and a `PauseIndicator`
 * or a `QuestionPrompt` while it asks. The draft is kept meanwhile, and `ctrl+x p` holds and
 * releases at any time. After an ask, keys are swallowed until none was pressed for 300 ms; if
 * another client closed the ask, a line says so. Prompts of this process that an interrupt hands
 * back become the draft again, unless the user is typing something else. Enter opens a closed
 * session again. While the daemon is gone, a line says so.
 */
export function InputTransition(props: InputTransitionProps): ReactElement {
  const { sessionId, placeholder, thinking = 'Thinking...', isActive = true } = props
  const sessions = useSessions()
  const { status, pauseInfo, question, hold, connection } = useRustSessionState(sessionId)
  const snapshot = useSessionSnapshot(sessionId)
  const { exit } = useApp()
  const [draft, setDraft] = useLatest(EMPTY)
  const [isPrefixActive, setPrefixActive] = useLatest(false)
  const leaveHint = useArmed(LEAVE_WINDOW_MS)
  const [error, setError] = useState<string | null>(null)
  // Reading the state attaches to a session that was opened again.
  const [, redraw] = useReducer((count: number) => count + 1, 0)
  const shared = useRef<SharedInput>({ press: null, forms: new Map(), answered: new Set(), interrupted: null })
  const afterAsk = useAfterAsk(sessionId, pauseInfo?.id ?? question?.id, shared)
  const interrupt = useInterrupt(sessionId, shared)

  const isWorking = status === 'running' || status === 'interrupted'
  const attempt = (request: Promise<unknown>, undo?: () => void) => {
    request.catch((error: Error) => {
      undo?.()
      setError(formatError(error))
    })
  }
  const submit = (text: string) => {
    setDraft(EMPTY)
    const { onSubmit = (prompt: string) => sessions.sessionPrompt(sessionId, prompt) } = props
    // A refused prompt becomes the draft again, unless the user is typing something else by then.
    attempt((async () => onSubmit(text))().then(redraw), () => draft.current.text === '' && setDraft(draftOf(text)))
  }
  const enter = (text: string) => {
    if (text.trim() !== '') submit(text)
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
        if (leaveHint.isArmed()) return leave()
        leaveHint.arm()
        return setDraft(EMPTY)
      case 'esc':
        return setDraft(EMPTY)
      default:
        setDraft(edit(draft.current, press))
    }
  }
  useKeys((press) => {
    setError(null)
    const { name } = press
    const isPrefixed = isPrefixActive.current
    if (name !== 'ctrl+c') leaveHint.disarm()
    if (isPrefixed || name === 'ctrl+x') {
      setPrefixActive(!isPrefixed)
      afterAsk.hide()
      if (name === 'p' || name === 'ctrl+p') attempt(sessions.sessionToggleHold(sessionId, hold.state))
      // For an ask, and after one, this counts as a key that does not answer.
      if (shared.current.press) shared.current.press(UNKNOWN)
      else afterAsk.swallows(UNKNOWN)
    } else if (shared.current.press) {
      if (shared.current.press(press)) afterAsk.hide()
    } else if (!afterAsk.swallows(press)) {
      afterAsk.hide()
      // A held turn can be interrupted as well.
      if ((name === 'esc' || name === 'ctrl+c') && (isWorking || hasOpenWork(snapshot))) attempt(interrupt())
      else if (!isWorking) write(press)
    }
  }, isActive)

  const content = () => {
    if (pauseInfo) return <PauseIndicator sessionId={sessionId} isActive={isActive} />
    if (question) return <QuestionPrompt sessionId={sessionId} isActive={isActive} />
    if (status === 'interrupted') return <Text dimColor>Interrupting...</Text>
    if (isWorking) return <Text dimColor>{`${shownLine(thinking)} (Esc to interrupt)`}</Text>
    const empty = status === 'closed' ? 'Closed: Enter opens it again' : placeholder
    return <DraftText draft={draft.current} {...(empty !== undefined && { placeholder: empty })} />
  }
  return (
    <Box flexDirection="column">
      <SharedInputContext.Provider value={shared}>{content()}</SharedInputContext.Provider>
      {afterAsk.notice !== null && <Text color="yellow">{afterAsk.notice}</Text>}
      {connection !== 'connected' && <Text color="yellow">{DISCONNECTED_TEXT[connection]}</Text>}
      {error !== null && <Text color="red">{error}</Text>}
      <Text dimColor>
        {leaveHint.shown ? 'Ctrl+C again to leave' : holdHint(isPrefixActive.current, hold.state !== 'off')}
      </Text>
    </Box>
  )
}

function holdHint(isPrefixActive: boolean, isHeld: boolean): string {
  const action = isHeld ? 'play' : 'pause'
  return isPrefixActive ? `ctrl+x … p ${action}, Esc back` : `ctrl+x p ${action}`
}

/** Whether a turn or a run is open. */
function hasOpenWork(snapshot: { turn?: unknown; run?: unknown } | null): boolean {
  return snapshot?.turn != null || snapshot?.run != null
}

/** State that is armed for a limited time, with a flag to render. */
function useArmed(milliseconds: number) {
  const [shownUntil, setShownUntil] = useState(0)
  const until = useRef(0)
  const set = (time: number) => {
    until.current = time
    setShownUntil(time)
  }
  useEffect(() => {
    if (shownUntil === 0) return
    const timer = setTimeout(() => setShownUntil(0), milliseconds)
    return () => clearTimeout(timer)
  }, [shownUntil, milliseconds])
  return {
    shown: shownUntil > 0,
    isArmed: () => performance.now() < until.current,
    arm: () => set(performance.now() + milliseconds),
    disarm: () => set(0),
  }
}
