'use strict'
// How events reach JavaScript: a batch at a time, of which one is on its way, and the next comes when it was taken.

const { caller, warning } = require('./callbacks.js')
const { checkType, optionsOf } = require('./refusals.js')

/** Milliseconds of callbacks after which other things have their turn. */
const SLICE = 8

const others = () => new Promise((resolve) => setImmediate(resolve))

/** What takes batches and gives a callback their events, one after the other. */
function toCallback(callback, { onEnd = () => {}, onError = warning('sessionAttach') } = {}) {
  for (const [name, value] of Object.entries({ callback, 'options.onEnd': onEnd, 'options.onError': onError })) {
    checkType(name, 'function', value)
  }
  const call = caller('sessionAttach', onError)
  return async (events, end) => {
    if (end) return call(onEnd, JSON.parse(end))
    if (!events) throw new Error('nothing was delivered')
    let since = performance.now()
    for (const event of JSON.parse(events)) {
      call(callback, event)
      if (performance.now() - since > SLICE) {
        await others()
        since = performance.now()
      }
    }
  }
}

/** The events of a session, to be iterated: the next batch comes when the last was taken. */
function iterate(attach, detach, options) {
  const arriving = { batches: [], isLeft: false, wake: () => {} }
  const events = generate(arriving, attach, detach, options)
  for (const way of ['return', 'throw']) {
    const leave = events[way]
    // A generator does so only when the event that is waited for has come.
    events[way] = (value) => {
      arriving.isLeft = true
      arriving.wake()
      return leave.call(events, value)
    }
  }
  return events
}

async function* generate(arriving, attach, detach, options) {
  const { batches } = arriving
  const { attachment } = await attach(
    (events, end) =>
      new Promise((taken) => {
        batches.push({ events, end, taken })
        arriving.wake()
      }),
    { ...optionsOf(options, ['after', 'limit']), keepAlive: true },
  )
  let taken = () => {}
  try {
    for (;;) {
      while (batches.length === 0 && !arriving.isLeft) await new Promise((resolve) => (arriving.wake = resolve))
      if (arriving.isLeft) return
      const batch = batches.shift()
      taken = batch.taken
      if (batch.end) return ended(JSON.parse(batch.end))
      yield* JSON.parse(batch.events)
      taken()
    }
  } finally {
    // Whatever comes until it is detached is taken by nobody.
    taken()
    const left = detach(attachment)
    arriving.wake = () => batches.splice(0).forEach((batch) => batch.taken())
    arriving.wake()
    await left
  }
}

/** What a loop over events sees of their end: an error, if it can be gone on from there. */
function ended(end) {
  if (end.reason !== 'disconnected' && end.reason !== 'failed') return end
  const error = new Error(`the stream of events has ended: ${end.reason}, after event ${end.after}`)
  throw Object.assign(error, { code: end.reason, after: end.after })
}

module.exports = { toCallback, iterate }
