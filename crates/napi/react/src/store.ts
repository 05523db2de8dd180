// What is known of one session, for all who look at it: attached while anyone does, read again when an event has changed
// something.

import type { Event, HoldpointError, Sessions, Snapshot, StreamEnd } from 'holdpoint'

import { closed, following, UNKNOWN, type Connection, type SessionState } from './state'

/** Events that change nothing of what a session is. */
const PASSING = new Set(['text', 'thought', 'output', 'itemSoFar', 'retrying', 'historyCut', 'projectCut', 'gap'])

/** Milliseconds between two looks whether the daemon is back, or a closed session is open again: as on the screen of `holdpoint`. */
const LOOK = 1_000

/** Codes of errors that pass when the daemon is back. */
const AWAY = new Set(['unreachable', 'disconnected', 'stopped'])

/** One attachment, from its begin to its end. */
interface Link {
  /** Its number, when there is one. */
  attached: Promise<number>
  /** Events come: what was read holds until one says otherwise. */
  live: boolean
  /** One of them has said that the session is closed. */
  closed: boolean
  /** The last event, when it has ended with its session. */
  last: number | null
}

/** A session as it is known here. */
export class SessionStore {
  readonly #sessions: Sessions
  /** What it was called, until its id is known. */
  #id: string
  readonly #listeners = new Set<() => void>()
  readonly #followers = new Set<(event: Event) => void>()
  #link: Link | null = null
  /** What was read may be old. */
  #stale = true
  #telling = false
  #snapshot: Snapshot | null = null
  #state = UNKNOWN
  #failure: Error | null = null
  /** The number of the last event that has come, or of the snapshot that events follow. */
  #cursor: number | null = null
  #connection: Connection = 'connected'
  #isClosed = false
  /** The next look whether to attach again. */
  #retry: ReturnType<typeof setTimeout> | undefined

  constructor(sessions: Sessions, id: string) {
    this.#sessions = sessions
    this.#id = id
  }

  /** Calls back whenever something may have changed. The first to come attaches, the last to go detaches. */
  readonly subscribe = (listener: () => void): (() => void) => {
    // Whoever comes twice goes twice.
    const own = () => listener()
    this.#listeners.add(own)
    if (!this.#link || this.#isFoundAgain()) this.#link = this.#attach()
    return () => {
      this.#listeners.delete(own)
      // React may have gone only to come back at once.
      queueMicrotask(() => {
        if (this.#listeners.size === 0) this.#detach()
      })
    }
  }

  /** Calls back with every event that comes while anyone looks. */
  readonly follow = (follower: (event: Event) => void): (() => void) => {
    const own = (event: Event) => follower(event)
    this.#followers.add(own)
    return () => {
      this.#followers.delete(own)
    }
  }

  /** The state as it is now: the same object until something has changed. Throws when it can't be known any more. */
  readonly getState = (): SessionState => {
    this.#read()
    return this.#state
  }

  /** All of it as it is now, or `null` before anything is known. Throws when it can't be known any more. */
  readonly getSnapshot = (): Snapshot | null => {
    this.#read()
    return this.#snapshot
  }

  #read() {
    if (this.#failure) throw this.#failure
    if (this.#isFoundAgain()) this.#link = this.#attach()
    if (!this.#stale) return
    this.#stale = false
    // Without events nothing says when it gets old. React reads twice in a rendering and wants the same both times.
    if (!this.#link?.live) queueMicrotask(() => (this.#stale = true))
    const snapshot = this.#look()
    if (snapshot && snapshot.seq !== this.#snapshot?.seq) this.#take(snapshot)
  }

  #take(snapshot: Snapshot) {
    this.#snapshot = snapshot
    this.#state = following(this.#state, snapshot, { isClosed: this.#isClosed, connection: this.#connection })
  }

  /** The connection is another one now. */
  #turn(connection: Connection) {
    if (connection === this.#connection) return
    this.#connection = connection
    if (this.#snapshot) this.#take(this.#snapshot)
    else this.#state = { ...this.#state, connection, version: this.#state.version + 1 }
    this.#tell()
  }

  /** What it has last published, if it is known here at all. */
  #look(): Snapshot | null {
    try {
      return this.#sessions.sessionSnapshot(this.#id)
    } catch (error) {
      if ((error as HoldpointError).code === 'unknownSession') return null
      throw error
    }
  }

  /** What was followed has ended with its session, which was opened again since. */
  #isFoundAgain(): boolean {
    const last = this.#link?.last ?? null
    return last !== null && (this.#look()?.seq ?? 0) > last
  }

  /** Attaches behind the last event that came, or with the next event if none came. */
  #attach(): Link {
    const current = (what: () => void) => () => {
      if (this.#link === link) what()
    }
    const onEvent = (event: Event) => {
      const { type } = event.body
      // Behind its last fact there may be something passing.
      if (!PASSING.has(type)) link.closed = type === 'sessionClosed'
      current(() => {
        this.#cursor = event.seq
        if (!PASSING.has(type)) this.#changed()
        for (const follower of [...this.#followers]) follower(event)
      })()
    }
    const onEnd = (end: StreamEnd) => current(() => this.#ended(end))()
    this.#stale = true
    const from = this.#cursor === null ? { limit: 0 } : { after: this.#cursor }
    const link: Link = {
      live: false,
      closed: false,
      last: null,
      attached: this.#sessions.sessionAttach(this.#id, onEvent, { ...from, onEnd }).then(({ attachment, snapshot }) => {
        link.live = true
        current(() => {
          this.#id = snapshot.settings.id
          this.#cursor ??= snapshot.seq
          if (this.#isClosed) {
            this.#isClosed = false
            this.#take(this.#look() ?? snapshot)
          }
          this.#turn('connected')
          this.#changed()
        })()
        return attachment
      }),
    }
    link.attached.catch((error: HoldpointError) =>
      current(() => {
        if (AWAY.has(error.code)) this.#lose(error.code)
        else if (error.code === 'closed' && this.#cursor !== null) this.#close(this.#cursor)
        else this.#fail(error)
      })(),
    )
    return link
  }

  #detach() {
    const link = this.#link
    this.#link = null
    this.#stale = true
    this.#snapshot = null
    this.#cursor = null
    this.#isClosed = false
    clearTimeout(this.#retry)
    // Who comes next tries again.
    this.#failure = null
    // What could not be attached, or has ended, is detached.
    link?.attached.then((attachment) => this.#sessions.sessionDetach(this.#id, attachment)).catch(() => {})
  }

  #ended({ reason, after }: StreamEnd) {
    if (reason === 'closed' || this.#link?.closed) {
      this.#close(after)
    } else if (AWAY.has(reason)) {
      this.#cursor = Math.max(this.#cursor ?? 0, after)
      this.#lose(reason)
    } else if (reason !== 'detached') {
      const error = new Error(`the session ${this.#id} can't be followed any more: ${reason}, after event ${after}`)
      this.#fail(Object.assign(error, { code: reason }))
    }
  }

  /** The session was closed: this was its last event. */
  #close(after: number) {
    if (this.#link) this.#link.last = after
    this.#isClosed = true
    const last = this.#look() ?? this.#snapshot
    if (last) this.#take(closed(last))
    this.#stale = false
    this.#turn('connected')
    this.#tell()
    this.#later(() => this.#find())
  }

  /** Attaches again if the session, which was closed, is open; else looks again later. */
  #find() {
    if (!this.#isClosed || !this.#link) return
    if (this.#isFoundAgain()) this.#link = this.#attach()
    else this.#later(() => this.#find())
  }

  /** Does this in a while, unless nothing looks by then. Node does not stay for it. */
  #later(what: () => void) {
    clearTimeout(this.#retry)
    this.#retry = setTimeout(what, LOOK)
    this.#retry.unref()
  }

  /** The daemon is gone: attaches again when it is back. */
  #lose(reason: string) {
    this.#turn(reason === 'stopped' || this.#connection === 'stopped' ? 'stopped' : 'lost')
    this.#later(() => (this.#link = this.#attach()))
  }

  #fail(error: Error) {
    this.#failure = error
    this.#tell()
  }

  #changed() {
    this.#stale = true
    this.#tell()
  }

  /** Tells everyone: once, of all that comes in one go. */
  #tell() {
    if (this.#telling) return
    this.#telling = true
    queueMicrotask(() => {
      this.#telling = false
      for (const listener of [...this.#listeners]) listener()
    })
  }
}

/** Stores that somebody uses, by the sessions and the name they were asked for with. */
const stores = new WeakMap<Sessions, Map<string, WeakRef<SessionStore>>>()

const forgotten = new FinalizationRegistry(({ of, id }: { of: Map<string, WeakRef<SessionStore>>; id: string }) => {
  if (!of.get(id)?.deref()) of.delete(id)
})

/** The store of a session: one for all who use it. */
export function storeOf(sessions: Sessions, id: string): SessionStore {
  let of = stores.get(sessions)
  if (!of) stores.set(sessions, (of = new Map()))
  const known = of.get(id)?.deref()
  if (known) return known
  const store = new SessionStore(sessions, id)
  of.set(id, new WeakRef(store))
  forgotten.register(store, { of, id })
  return store
}
