'use strict'
// Delivery of events to JavaScript. One batch is in flight at a time; the next one is sent when it
// was taken.

const { caller, warning } = require('./callbacks.js')
const { checkType, optionsOf } = require('./refusals.js')

/** Milliseconds of callbacks after which the event loop runs other work. */
const TIME_SLICE = 8

const yieldToEventLoop = () => new Promise((resolve) => setImmediate(resolve))

/**
 * Returns a function that takes batches and passes their events to a callback, one after the other.
 */
function toCallback(callback, { onEnd = () => {}, onError = warning('sessionAttach') } = {}) {
  for (const [name, value] of Object.entries({ callback, 'options.onEnd': onEnd, 'options.onError': onError })) {
    checkType(name, 'function', value)
  }
  const call = caller('sessionAttach', onError)
  return async (events, end) => {
    if (end) return call(onEnd, JSON.parse(end))
    if (!events) throw new Error('the delivery is empty')
    let since = performance.now()
    for (const event of JSON.parse(events)) {
      call(callback, event)
      if (performance.now() - since > TIME_SLICE) {
        await yieldToEventLoop()
        since = performance.now()
      }
    }
  }
}

/** Iterates over the events of a session. The next batch is sent when the last one was taken. */
function iterate(attach, detach, options) {
  const queue = { batches: [], isClosed: false, wake: () => {} }
  const events = generate(queue, attach, detach, options)
  for (const method of ['return', 'throw']) {
    const original = events[method]
    // The generator's own method would first wait for the next event.
    events[method] = (value) => {
      queue.isClosed = true
      queue.wake()
      return original.call(events, value)
    }
  }
  return events
}

async function* generate(queue, attach, detach, options) {
  const { batches } = queue
  const { attachment } = await attach(
    (events, end) =>
      new Promise((acknowledge) => {
        batches.push({ events, end, acknowledge })
        queue.wake()
      }),
    { ...optionsOf(options, ['after', 'limit']), keepAlive: true },
  )
  let acknowledge = () => {}
  try {
    for (;;) {
      while (batches.length === 0 && !queue.isClosed) {
        await new Promise((resolve) => (queue.wake = resolve))
      }
      if (queue.isClosed) return
      const batch = batches.shift()
      acknowledge = batch.acknowledge
      if (batch.end) return endOfLoop(JSON.parse(batch.end))
      yield* JSON.parse(batch.events)
      acknowledge()
    }
  } finally {
    // Batches that arrive before the detach are acknowledged and dropped.
    acknowledge()
    const detached = detach(attachment)
    queue.wake = () => batches.splice(0).forEach((batch) => batch.acknowledge())
    queue.wake()
    await detached
  }
}

/**
 * Handles the end of the events in a loop. It is an error if the program can attach again after it.
 */
function endOfLoop(end) {
  if (end.reason !== 'disconnected' && end.reason !== 'failed') return end
  const error = new Error(`the stream of events has ended: ${end.reason}, after event ${end.after}`)
  throw Object.assign(error, { code: end.reason, after: end.after })
}

module.exports = { toCallback, iterate }
