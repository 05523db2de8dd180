// The shared state of one session. A store attaches to its session while components use the store,
// and reads the session's snapshot again after an event that may have changed it.

import type { Event, HoldpointError, Sessions, Snapshot, StreamEnd } from 'holdpoint'

import { closedSnapshot, nextState, UNKNOWN, type Connection, type SessionState } from './state'

/** Events that do not change the state of a session. */
const STATELESS_EVENTS = new Set(['text', 'thought', 'output', 'itemSoFar', 'retrying', 'historyCut', 'projectCut', 'gap'])

/**
 * Milliseconds between two checks whether the daemon is back, or a closed session is open again.
 * The screen of `holdpoint` uses the same interval.
 */
const RETRY_INTERVAL_MS = 1_000

/** Codes of errors that end when the daemon is back. */
const RECONNECTABLE = new Set(['unreachable', 'disconnected', 'stopped'])

/** One attachment, from its start to its end. */
interface Attachment {
  /** Id of the session and number of the attachment, once it is attached. */
  attached: Promise<{ id: string; number: number }>
  /** Whether events arrive, so that the last snapshot is valid until an event changes it. */
  isReceiving: boolean
  /** Whether the last event that changed the state closed the session. */
  isSessionClosed: boolean
  /** Number of the last event, once the session has ended. */
  lastSeq: number | null
}

/** The state of a session, as this process knows it. */
export class SessionStore {
  readonly #sessions: Sessions
  /** The given id or name. */
  readonly #given: string
  /** The given id or name, until the id is known. */
  #id: string
  readonly #listeners = new Set<() => void>()
  readonly #followers = new Set<(event: Event) => void>()
  #attachment: Attachment | null = null
  /** Whether the last snapshot may be outdated. */
  #isStale = true
  #isNotifying = false
  #snapshot: Snapshot | null = null
  #state = UNKNOWN
  #failure: Error | null = null
  /** Number of the last event, or of the snapshot that the events follow. */
  #cursor: number | null = null
  #connection: Connection = 'connected'
  #isClosed = false
  /** Timer of the next attempt to attach. */
  #retryTimer: ReturnType<typeof setTimeout> | undefined

  constructor(sessions: Sessions, id: string) {
    this.#sessions = sessions
    this.#given = id
    this.#id = id
  }

  /**
   * Calls `listener` whenever something may have changed. The first listener attaches, and the last
   * one to leave detaches.
   */
  readonly subscribe = (listener: () => void): (() => void) => {
    // A listener that subscribes twice must be called until it has unsubscribed twice.
    const subscription = () => listener()
    this.#listeners.add(subscription)
    if (!this.#attachment || this.#isReopened()) this.#attachment = this.#attach()
    return () => {
      this.#listeners.delete(subscription)
      // React may unsubscribe only to subscribe again at once.
      queueMicrotask(() => {
        if (this.#listeners.size === 0) this.#detach()
      })
    }
  }

  /** Calls `follower` with every event while the store is attached. */
  readonly follow = (follower: (event: Event) => void): (() => void) => {
    const subscription = (event: Event) => follower(event)
    this.#followers.add(subscription)
    return () => {
      this.#followers.delete(subscription)
    }
  }

  /**
   * Returns the current state: the same object until something has changed. Throws when the session
   * can no longer be followed.
   */
  readonly getState = (): SessionState => {
    this.#update()
    return this.#state
  }

  /**
   * Returns the current snapshot, or `null` before the first one. Throws when the session can no
   * longer be followed.
   */
  readonly getSnapshot = (): Snapshot | null => {
    this.#update()
    return this.#snapshot
  }

  #update() {
    if (this.#failure) throw this.#failure
    if (this.#isReopened()) this.#attachment = this.#attach()
    if (!this.#isStale) return
    this.#isStale = false
    // Without events, no signal says that the snapshot is outdated. React reads twice during a
    // rendering and expects the same value both times.
    if (!this.#attachment?.isReceiving) queueMicrotask(() => (this.#isStale = true))
    const snapshot = this.#readSnapshot()
    if (snapshot && snapshot.seq !== this.#snapshot?.seq) this.#setSnapshot(snapshot)
  }

  #setSnapshot(snapshot: Snapshot) {
    this.#snapshot = snapshot
    this.#state = nextState(this.#state, snapshot, { isClosed: this.#isClosed, connection: this.#connection })
  }

  /** Sets the state of the connection. */
  #setConnection(connection: Connection) {
    if (connection === this.#connection) return
    this.#connection = connection
    if (this.#snapshot) this.#setSnapshot(this.#snapshot)
    else this.#state = { ...this.#state, connection, version: this.#state.version + 1 }
    this.#notify()
  }

  /** Returns the session's last snapshot, or `null` if the session is not known here. */
  #readSnapshot(): Snapshot | null {
    try {
      return this.#sessions.sessionSnapshot(this.#id)
    } catch (error) {
      if ((error as HoldpointError).code === 'unknownSession') return null
      throw error
    }
  }

  /** Whether the followed session has ended and was opened again since. */
  #isReopened(): boolean {
    const lastSeq = this.#attachment?.lastSeq ?? null
    return lastSeq !== null && (this.#readSnapshot()?.seq ?? 0) > lastSeq
  }

  /** Attaches after the last known event, or without past events if there is none. */
  #attach(): Attachment {
    const ifCurrent = (action: () => void) => {
      if (this.#attachment === attachment) action()
    }
    const onEvent = (event: Event) => {
      const { type } = event.body
      // Events without an effect on the state may follow `sessionClosed`.
      if (!STATELESS_EVENTS.has(type)) attachment.isSessionClosed = type === 'sessionClosed'
      ifCurrent(() => {
        this.#cursor = event.seq
        if (!STATELESS_EVENTS.has(type)) this.#markStale()
        for (const follower of [...this.#followers]) follower(event)
      })
    }
    const onEnd = (end: StreamEnd) => ifCurrent(() => this.#handleStreamEnd(end))
    this.#isStale = true
    const from = this.#cursor === null ? { limit: 0 } : { after: this.#cursor }
    const attachment: Attachment = {
      isReceiving: false,
      isSessionClosed: false,
      lastSeq: null,
      attached: this.#sessions.sessionAttach(this.#id, onEvent, { ...from, onEnd }).then(({ attachment: number, snapshot }) => {
        const { id } = snapshot.settings
        attachment.isReceiving = true
        ifCurrent(() => {
          this.#id = id
          this.#cursor ??= snapshot.seq
          if (this.#isClosed) {
            this.#isClosed = false
            this.#setSnapshot(this.#readSnapshot() ?? snapshot)
          }
          this.#setConnection('connected')
          this.#markStale()
        })
        return { id, number }
      }),
    }
    attachment.attached.catch((error: HoldpointError) =>
      ifCurrent(() => {
        if (RECONNECTABLE.has(error.code)) this.#handleDaemonLoss(error.code)
        else if (error.code !== 'closed') this.#fail(error)
        else if (this.#cursor !== null) this.#handleClose(this.#cursor)
        // The session was being closed. Once it is, attaching opens it again.
        else this.#schedule(() => (this.#attachment = this.#attach()))
      }),
    )
    return attachment
  }

  #detach() {
    const attachment = this.#attachment
    this.#attachment = null
    this.#isStale = true
    this.#snapshot = null
    this.#cursor = null
    this.#isClosed = false
    clearTimeout(this.#retryTimer)
    // The next listener tries again.
    this.#failure = null
    if (this.#id !== this.#given) {
      // The name may belong to another session when a component subscribes again.
      this.#id = this.#given
      this.#state = { ...UNKNOWN, connection: this.#connection, version: this.#state.version + 1 }
    }
    // An attachment that failed or has ended needs no detach.
    attachment?.attached.then(({ id, number }) => this.#sessions.sessionDetach(id, number)).catch(() => {})
  }

  #handleStreamEnd({ reason, after }: StreamEnd) {
    if (reason === 'closed' || this.#attachment?.isSessionClosed) {
      this.#handleClose(after)
    } else if (RECONNECTABLE.has(reason)) {
      this.#cursor = Math.max(this.#cursor ?? 0, after)
      this.#handleDaemonLoss(reason)
    } else if (reason !== 'detached') {
      const error = new Error(`the session ${this.#id} can't be followed any more: ${reason}, after event ${after}`)
      this.#fail(Object.assign(error, { code: reason }))
    }
  }

  /** Handles the close of the session. `after` is the number of its last event. */
  #handleClose(after: number) {
    if (this.#attachment) this.#attachment.lastSeq = after
    this.#isClosed = true
    const last = this.#readSnapshot() ?? this.#snapshot
    if (last) this.#setSnapshot(closedSnapshot(last))
    this.#isStale = false
    this.#setConnection('connected')
    this.#notify()
    this.#schedule(() => this.#reattachIfReopened())
  }

  /** Attaches again if the closed session was opened; otherwise checks again later. */
  #reattachIfReopened() {
    if (!this.#isClosed || !this.#attachment) return
    if (this.#isReopened()) this.#attachment = this.#attach()
    else this.#schedule(() => this.#reattachIfReopened())
  }

  /**
   * Calls `action` after the interval, unless the store is detached by then. The timer does not
   * keep Node alive.
   */
  #schedule(action: () => void) {
    clearTimeout(this.#retryTimer)
    this.#retryTimer = setTimeout(action, RETRY_INTERVAL_MS)
    this.#retryTimer.unref()
  }

  /** Handles the loss of the daemon: attaches again when it is back. */
  #handleDaemonLoss(reason: string) {
    this.#setConnection(reason === 'stopped' || this.#connection === 'stopped' ? 'stopped' : 'lost')
    this.#schedule(() => (this.#attachment = this.#attach()))
  }

  #fail(error: Error) {
    this.#failure = error
    this.#notify()
  }

  #markStale() {
    this.#isStale = true
    this.#notify()
  }

  /** Notifies all listeners, once for all changes at the same time. */
  #notify() {
    if (this.#isNotifying) return
    this.#isNotifying = true
    queueMicrotask(() => {
      this.#isNotifying = false
      for (const listener of [...this.#listeners]) listener()
    })
  }
}

/** Stores in use, by their sessions and the id or name they were created with. */
const stores = new WeakMap<Sessions, Map<string, WeakRef<SessionStore>>>()

const cleanup = new FinalizationRegistry(({ byId, id }: { byId: Map<string, WeakRef<SessionStore>>; id: string }) => {
  if (!byId.get(id)?.deref()) byId.delete(id)
})

/** Returns the store of a session, which all its users share. */
export function storeOf(sessions: Sessions, id: string): SessionStore {
  let byId = stores.get(sessions)
  if (!byId) stores.set(sessions, (byId = new Map()))
  const known = byId.get(id)?.deref()
  if (known) return known
  const store = new SessionStore(sessions, id)
  byId.set(id, new WeakRef(store))
  cleanup.register(store, { byId, id })
  return store
}
